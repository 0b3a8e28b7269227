"""The ball in right forms that are rare: other names and references, one interface, no options, other limits."""

# ruff: noqa: E501  an edit: one line

from __future__ import annotations

from dataclasses import dataclass

import ball

CAPABLE2 = ' canGetAndSetFMUstate="true" canSerializeFMUstate="true" providesDirectionalDerivative="true"'
CAPABLE3 = ' canGetAndSetFMUState="true" canSerializeFMUState="true" providesDirectionalDerivatives="true" providesAdjointDerivatives="true"'
BOUNDS = 'unit="m" start="1" reinit="true"'
STEP = 'NEED(size > 0.0, "the step size must be positive");'


@dataclass(frozen=True)
class Odd:
    """Changes of the ball that leave it right.

    Attributes:
        version: Of FMI.
        description: Places of its description, and what stands there instead; all of each kind.
        code: Places of its sources, and what stands there instead.
        kinds: Its interfaces.
    """

    version: int
    description: tuple[tuple[str, str], ...] = ()
    code: tuple[tuple[str, str], ...] = ()
    kinds: tuple[str, ...] = ("ModelExchange", "CoSimulation")


ODD = {
    "names in other letters": Odd(2, (('variableNamingConvention="structured" ', 'variableNamingConvention="flat" '), ('name="height_twice"', 'name="Höhe × 2 (über Grund)"'), ('name="wind"', 'name="风 &lt;m/s&gt; %s"'))),
    "a reference of 32 bits": Odd(2, (('valueReference="11"', 'valueReference="4294967295"'),), (("    double dh, dv;\n    ball_slopes(s, s->h, s->v, &dh, &dv);\n    switch (reference) {", "    double dh, dv;\n    if (reference == 4294967295u) reference = ENERGY;\n    ball_slopes(s, s->h, s->v, &dh, &dv);\n    switch (reference) {"), ("    *value = 0.0;\n    if (known != H", "    *value = 0.0;\n    if (unknown == 4294967295u) unknown = ENERGY;\n    if (known != H"), ("vr[i] == H || vr[i] == ENERGY ||", "vr[i] == H || vr[i] == 4294967295u ||"))),
    "an experiment before zero": Odd(2, (('startTime="0" stopTime="2"', 'startTime="-30" stopTime="-28"'),)),
    "an experiment that begins late": Odd(3, (('startTime="0" stopTime="2"', 'startTime="86400" stopTime="86402"'),)),
    "no options at all": Odd(2, ((CAPABLE2, ""), (' maxOutputDerivativeOrder="1"', ""))),
    "no options at all, FMI 3": Odd(3, ((CAPABLE3, ""),)),
    "Model Exchange only": Odd(3, kinds=("ModelExchange",)),
    "fixed steps": Odd(2, (('canHandleVariableCommunicationStepSize="true" ', ""),), ((STEP, STEP + '\n    NEED(fabs(size - 0.05) < 1e-9, "steps are of 0.05 s");'),), ("CoSimulation",)),
    "two names of the height": Odd(2, (("</ModelVariables>", '<ScalarVariable name="altitude" valueReference="1" causality="local" variability="continuous"><Real unit="m"/></ScalarVariable></ModelVariables>'),)),
    "an alias in FMI 3": Odd(3, (('unit="m" start="1" reinit="true"/>', 'unit="m" start="1" reinit="true"><Alias name="altitude"/></Float64>'),)),
    "says much where it may": Odd(2, code=(('    NEED(b->s.mode == STEPPING, "wrong mode");', '    if (b->logging) callbacks_of(b).logger(b->environment, b->name, fmi2OK, "logStatusError", "a step from %g to %g, 100%% done", point, point + size);\n    NEED(b->s.mode == STEPPING, "wrong mode");'),)),
    "bounds that are reached": Odd(2, ((BOUNDS, 'unit="m" min="-1e300" max="1" nominal="0.1" start="1" reinit="true"'),)),
    "an output far from zero": Odd(2, code=(("case HEIGHT_TWICE: *value = 2.0 * s->h;", "case HEIGHT_TWICE: *value = 2.0 * s->h + 1e13;"),)),
}  # fmt: skip


def contents(name: str) -> dict[str, bytes]:
    """Members of one archive."""
    odd = ODD[name]
    text = ball.description(odd.version, odd.kinds)
    for old, new in odd.description:
        assert old in text, old
        text = text.replace(old, new)
    sources = {
        each: (ball.HERE / "foreign" / each).read_text(encoding="utf-8") for each in ("ball.h", f"ball{odd.version}.c")
    }
    members = ball.contents(odd.version, odd.kinds)
    return {
        **members, "modelDescription.xml": text.encode(), ball.BINARIES[odd.version]: ball.compiled(sources, odd.code),
    }  # fmt: skip
