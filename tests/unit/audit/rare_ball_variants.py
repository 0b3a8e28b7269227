"""The ball in right forms that are rare: other names and references, one interface, no options, other limits."""

# ruff: noqa: E501  an edit: one line

from __future__ import annotations

from dataclasses import dataclass

import ball
from late_mutants import by_tolerance

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
    "steps by the tolerance": Odd(2, code=by_tolerance(2)),
    "steps by the tolerance, FMI 3": Odd(3, code=by_tolerance(3)),
    "no options at all": Odd(2, ((CAPABLE2, ""), (' maxOutputDerivativeOrder="1"', ""))),
    "no options at all, FMI 3": Odd(3, ((CAPABLE3, ""),)),
    "Model Exchange only": Odd(3, kinds=("ModelExchange",)),
    "fixed steps": Odd(2, (('canHandleVariableCommunicationStepSize="true" ', ""),), ((STEP, STEP + '\n    NEED(fabs(size - 0.05) < 1e-9, "steps are of 0.05 s");'),), ("CoSimulation",)),
    "a text that its energy lists": Odd(2, (('dependencies="2 3 6 8" dependenciesKind="dependent dependent dependent dependent"', 'dependencies="2 3 6 8 17" dependenciesKind="dependent dependent dependent dependent dependent"'),), (("case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v);", "case ENERGY: *value = s->m * (s->g * s->h + 0.5 * s->v * s->v) + 0.01 * (double)strlen(s->label);"),)),
    "rounds in its own way within each call": Odd(3, code=(("*dv = s->resting ? 0.0 : -s->g + s->c * (s->wind - v) / s->m;", "{ int found = fegetround(); fesetround(FE_TONEAREST); *dv = s->resting ? 0.0 : -s->g + s->c * (s->wind - v) / s->m; fesetround(found); }"),)),
    "first order, whose steps have other slopes": Odd(2, code=(("    s->h += size / 6.0 * (a + 2.0 * b + 2.0 * c + d);\n    s->v += size / 6.0 * (p + 2.0 * q + 2.0 * r + t);", "    s->v += size * p;\n    s->h += size * s->v;"),), kinds=("CoSimulation",)),
    "ticks that are not equidistant": Odd(3, code=(("        s->next_tick += PERIOD;\n", "        s->next_tick += s->ticks % 2 ? 0.3 : PERIOD;\n"),)),
    "two names of the height": Odd(2, (("</ModelVariables>", '<ScalarVariable name="altitude" valueReference="1" causality="local" variability="continuous"><Real unit="m"/></ScalarVariable></ModelVariables>'),)),
    "an alias in FMI 3": Odd(3, (('unit="m" start="1" reinit="true"/>', 'unit="m" start="1" reinit="true"><Alias name="altitude"/></Float64>'),)),
    "says much where it may": Odd(2, code=(('    NEED(b->s.mode == STEPPING, "wrong mode");', '    if (b->logging) callbacks_of(b).logger(b->environment, b->name, fmi2OK, "logStatusError", "a step from %g to %g, 100%% done", point, point + size);\n    NEED(b->s.mode == STEPPING, "wrong mode");'),)),
    "bounds that are reached": Odd(2, ((BOUNDS, 'unit="m" min="-1e300" max="1" nominal="0.1" start="1" reinit="true"'),)),
    "an output far from zero": Odd(2, code=(("case HEIGHT_TWICE: *value = 2.0 * s->h;", "case HEIGHT_TWICE: *value = 2.0 * s->h + 1e13;"),)),
    "partials by one-sided differences": Odd(2, code=(
        ("        out[i] = 0.0;\n", "        State moved = b->s;\n        double before, after;\n"),
        (
            "            out[i] += d * seed[j];\n        }\n",
            "".join(f"            if (k[j] == {name.upper()}) moved.{name} += 1e-6 * seed[j];\n" for name in ("h", "v", "g", "m", "c", "e", "wind"))
            + '        }\n        NEED(!ball_get(&b->s, u[i], &before) && !ball_get(&moved, u[i], &after), "no such derivative");\n        out[i] = (after - before) / 1e-6;\n',
        ),
    )),
    "an unusual description": Odd(2, (
        ('<?xml version="1.0" encoding="UTF-8"?>\n', '<?xml version="1.0" encoding="UTF-8"?>\n<!-- made by hand -->\n<?note of no one?>\n'),
        ('start="9.81"', 'start=" +9.81E0 "'), ('startTime="0" stopTime="2" tolerance="1e-6" stepSize="0.05"', 'stopTime="0.002" tolerance="1e-6" stepSize="5e-5"'),
        ("</UnitDefinitions>", '<Unit name="K"><BaseUnit K="1"/><DisplayUnit name="degC" offset="-273.15"/><DisplayUnit name="degF" factor="1.8" offset="-459.67"/></Unit></UnitDefinitions>'),
        ("<ModelVariables>", '<VendorAnnotations><Tool name="none"><a xmlns="urn:none" b="1"/></Tool></VendorAnnotations><ModelVariables>'),
    )),
    "answers that are seldom": Odd(2, (
        ("</ModelVariables>", '<ScalarVariable name="der(height_twice)" valueReference="30" causality="local" variability="continuous"><Real unit="m/s" derivative="13"/></ScalarVariable></ModelVariables>'),
        ('<Category name="logStatusError"/>', '<Category name="logStatusError"/><Category name="steps"/>'),
        ('maxOutputDerivativeOrder="1"', 'maxOutputDerivativeOrder="1" canInterpolateInputs="true"'),
    ), (
        ("case GAP: *value = ball_indicator(s); break;", "case GAP: *value = ball_indicator(s); break;\n    case 30: *value = 2.0 * dh; break;"),
        ("    b->s.stop = stop;\n    return fmi2OK;", '    b->s.stop = stop;\n    callbacks_of(b).logger(b->environment, b->name, fmi2Warning, "logStatusError", "the tolerance %g is not used by %s", tol, b->name);\n    return fmi2Warning;'),
        ("    (void)n, (void)names;\n    ((Ball *)c)->logging = on;", '    size_t i;\n    ((Ball *)c)->logging = on;\n    ((Ball *)c)->previous_indicator = n == 0;\n    for (i = 0; i < n; ++i) if (!strcmp(names[i], "steps")) ((Ball *)c)->previous_indicator = 1.0;'),
        ("    b->logging = logging;", "    b->logging = logging;\n    b->previous_indicator = logging;"),
        ('    NEED(b->s.mode == STEPPING, "wrong mode");', '    if (b->logging && b->previous_indicator == 1.0) callbacks_of(b).logger(b->environment, b->name, fmi2OK, "steps", "%d bounces, %g s", b->s.bounces, point);\n    NEED(b->s.mode == STEPPING, "wrong mode");'),
        ('        snprintf(b->s.label, sizeof b->s.label, "%s", value[i]);', '        NEED(value[i][0] && strlen(value[i]) < sizeof b->s.label, "a label has 1 to 63 bytes");\n        strcpy(b->s.label, value[i]);'),
        ("    unsigned char blob[8];\n", "    unsigned char blob[8];\n    double ramp;\n"),
        ('    (void)vr, (void)n, (void)order, (void)value;\n    return fail((Ball *)c, "not supported");', '    Ball *b = (Ball *)c;\n    size_t i;\n    for (i = 0; i < n; ++i) {\n        NEED(vr[i] == WIND && order[i] == 1, "no such slope");\n        b->s.ramp = value[i];\n    }\n    return fmi2OK;'),
        ("    double a, b, c, d, p, q, r, t;", "    double a, b, c, d, p, q, r, t;\n    const double from = s->wind;"),
        ("    s->time += size;\n}", "    s->time += size;\n    s->wind = from + s->ramp * size;\n}"),
        ("    s->time = end;\n    return 0;", "    s->ramp = 0.0;\n    s->time = end;\n    return 0;"),
    )),
    "one instance in the life of a process": Odd(2, (('modelIdentifier="ball"', 'modelIdentifier="ball" canBeInstantiatedOnlyOncePerProcess="true"'),), (("    b = (Ball *)functions->allocateMemory(1, sizeof *b);", "    { static int made; if (made++) abort(); }\n    b = (Ball *)functions->allocateMemory(1, sizeof *b);"),)),
    "all messages where all are asked for": Odd(2, (('<Category name="logStatusError"/>', '<Category name="logStatusError"/><Category name="logAll"/><Category name="steps"/>'),), (
        ("    (void)n, (void)names;\n    ((Ball *)c)->logging = on;", '    size_t i;\n    ((Ball *)c)->logging = on;\n    ((Ball *)c)->previous_indicator = n == 0;\n    for (i = 0; i < n; ++i) if (!strcmp(names[i], "steps") || !strcmp(names[i], "logAll")) ((Ball *)c)->previous_indicator = 1.0;'),
        ("    b->logging = logging;", "    b->logging = logging;\n    b->previous_indicator = logging;"),
        ('    NEED(b->s.mode == STEPPING, "wrong mode");', '    if (b->logging && b->previous_indicator == 1.0) callbacks_of(b).logger(b->environment, b->name, fmi2OK, "steps", "%d bounces, %g s", b->s.bounces, point);\n    NEED(b->s.mode == STEPPING, "wrong mode");'),
    )),
    "updates that show values": Odd(3, (
        ('name="energy" valueReference="11" causality="output"', 'name="energy" valueReference="11" intermediateUpdate="true" causality="output"'),
        ('name="h" valueReference="1" causality="output"', 'name="h" valueReference="1" intermediateUpdate="true" causality="output"'),
        ('<EventIndicator valueReference="20"/>', '<EventIndicator valueReference="20" dependencies="1 2" dependenciesKind="dependent dependent"/>'),
        ('providesIntermediateUpdate="true" ', 'providesIntermediateUpdate="true" maxOutputDerivativeOrder="1" '),
    ), (
        ("ABSENT(GetOutputDerivatives, R, const fmi3Int32 o[], fmi3Float64 v[], size_t nv)", "fmi3Status fmi3GetOutputDerivatives(fmi3Instance c, R, const fmi3Int32 o[], fmi3Float64 v[], size_t nv) { size_t i; for (i = 0; i < n; ++i) { double a, b; State *s = &((Unit *)c)->ball.s; ball_slopes(s, s->h, s->v, &a, &b); v[i] = vr[i] == HEIGHT_TWICE ? 2.0 * a : vr[i] == H ? a : s->m * (s->g * a + s->v * b); } return fmi3OK; }"),
    )),
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
