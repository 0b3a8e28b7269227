"""Faults of events: C sources of an FMU in which an event is late, missing, of another size, or in one kind only."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from planted.fault import Mutant, Subject, generator
from planted.runtime import chained, replaced

from mb2fmu.compiler.events import convert_switches_to_modes, list_program_switches
from mb2fmu.fmu.emit_c import EquationSourceFiles

Planted = Iterator[tuple[str, str, Callable[[EquationSourceFiles], EquationSourceFiles]]]

_DENSE = "    mb2fmu_method_of(&integrator->memory)->dense(work, part, x);\n"
_DUE = "    for (int k = 0; k < MB2FMU_N_INDICATORS; k++) {\n        const double margin = work->settling.margin[k]"
_SET = "        x[i] = s->after[i];\n"
_MARGINS = "    const int failed = model_indicators(t, x, r, p, w, s->margin);\n    int due = -1;\n"
_SIDE = "*mode = s->surface[MB2FMU_N_INDICATORS + k] > 0.0 ? 1.0 : -1.0;"
_TAKEN = "        memcpy(now->x, instance->x_next, sizeof now->x);\n"
_BYTES = "    mb2fmu_stream_reals(stream, now->memory, MB2FMU_N_MEMORY);\n"
_RESTORE = "    memcpy(&instance->now, &state->now, sizeof instance->now);\n"


def mutants(subject: Subject) -> Iterator[Mutant]:
    """Every fault of events that changes what this FMU does; nothing where it has none."""
    program = convert_switches_to_modes(subject.derivation.program)
    kinds = {switch.kind for switch in list_program_switches(program)}
    if not kinds:
        return
    fmi: Literal["2", "3"] = "2" if generator(subject.name, "events").random() < 0.5 else "3"
    faults = [*_of_instants()]
    faults += _of_friction(breaks_away=_breaks_away(subject)) if "sticking" in kinds else ()
    faults += _of_jumps() if kinds & {"condition", "ticks"} else ()
    faults += _of_memory() if "sticking" in kinds else ()  # other modes may follow from the state
    for i, name in enumerate(program.layout.states):
        if name.endswith("impulse"):
            wrong = _SET.replace("s->after[i]", f"s->after[i] * (i == {i} && s->after[i] != x[i] ? -1.0 : 1.0)")
            faults.append(("impulse", f"{name} has the wrong sign", replaced("events.c", _SET, wrong)))
    for kind, place, change in faults:
        yield Mutant(kind, "sources", place, change, fmi=fmi, by_construction=True)


def _breaks_away(subject: Subject) -> bool:
    """Whether something that is held begins to slip in the default experiment."""
    events = subject.yardstick.reference.events
    return any(old == 0.0 != new for event in events for old, new in zip(event.before, event.after, strict=True))


def _of_instants() -> Planted:
    late = _DENSE.replace("part, x", "part - 1e-4 / work->step, x")
    yield (
        "event late",
        "by 1e-4 s, in Co-Simulation",
        chained(
            replaced("solver_events.c", _DENSE, late),
            replaced("solver_events.c", _DUE, _DENSE + _DUE),
        ),
    )
    yield (
        "event late",
        "indicators off by 1e-5, in Model Exchange",
        replaced("events.h", "#define MB2FMU_OFFSET 1e-10", "#define MB2FMU_OFFSET 1e-5"),
    )


def _of_friction(*, breaks_away: bool) -> Planted:
    longer = _MARGINS + (
        "    for (int k = 0; failed == 0 && k < MB2FMU_N_INDICATORS; k++) {\n"
        "        s->margin[k] += model_switches[k].kind == MB2FMU_SWITCH_STICKING && *mb2fmu_mode(w, k) == 0.0\n"
        "                            ? 1e-3 : 0.0;\n    }\n"
    )
    if breaks_away:
        yield "sticks too long", "by a thousandth of the limit", replaced("events.c", _MARGINS, longer)
    wrong = _SIDE.replace("? 1.0 : -1.0", "? -1.0 : 1.0")
    yield "slips the wrong way", "as it breaks away", replaced("events.c", _SIDE, wrong)


def _of_jumps() -> Planted:
    more = _SET.replace("s->after[i]", "x[i] + 1.001 * (s->after[i] - x[i])")
    yield "jump", "larger by a thousandth", replaced("events.c", _SET, more)
    old = "    for (int i = 0; i < MB2FMU_N_STATES; i++) {\n        if (!isfinite(s->after[i]))"
    missed = (
        "    {\n        static int mutant_jumps;\n        int jumps = 0;\n"
        "        for (int i = 0; i < MB2FMU_N_STATES; i++) {\n"
        "            jumps = jumps || fabs(s->after[i] - x[i]) > 1e-6;\n        }\n"
        "        mutant_jumps += jumps;\n"
        "        for (int i = 0; jumps && mutant_jumps % 2 == 0 && i < MB2FMU_N_STATES; i++) {\n"
        "            s->after[i] = x[i];\n        }\n    }\n"
    )
    yield "missed event", "every second", replaced("events.c", old, missed + old)
    yield "event in one kind only", "nothing is set in Model Exchange", replaced("instance_events.c", _TAKEN, "")


def _of_memory() -> Planted:
    kept = (
        "    {\n        double mutant_memory[MB2FMU_SIZE(MB2FMU_N_MEMORY)];\n"
        "        memcpy(mutant_memory, instance->now.memory, sizeof mutant_memory);\n"
        f"{_RESTORE}        memcpy(instance->now.memory, mutant_memory, sizeof mutant_memory);\n    }}\n"
    )
    yield "restored state forgets", "the modes", replaced("state.c", _RESTORE, kept)
    lost = (
        "    for (int k = 0; k < MB2FMU_N_MEMORY; k++) {\n        double one = 1.0;\n"
        "        mb2fmu_stream_real(stream, &one);\n        now->memory[k] = 1.0;\n    }\n"
    )
    yield "restored state forgets", "the modes, as bytes", replaced("state.c", _BYTES, lost)
