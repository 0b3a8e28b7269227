"""Modes of a program, and the switches of one that has none yet; most programs have neither."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.scalar_program import ScalarProgram

SwitchKind = Literal["relation", "steps", "sticking", "condition", "ticks"]

NEXT_TIME_EVENT_ENTRY = "next_time_event"
_MOTION_ENTRIES = (
    "rhs",
    "position",
    "velocity",
    "acceleration",
    "dependent_speeds",
    "accelerations",
    "conditions",
    "resets",
)


@dataclass(frozen=True, slots=True)
class ProgramSwitch:
    """One mode.

    Attributes:
        name: The expression, as messages name it.
        kind: ``relation``, ``steps`` (floor, ceiling), ``sticking`` (a sign that can be held); or, of events
            of the model's own and without a margin, ``condition`` and ``ticks`` (a number that grows at each).
        memory: Place of its mode in discrete memory.
        depends_on_time_only: It looks at time alone, so that the instant at which it changes next is known.
    """

    name: str
    kind: SwitchKind
    memory: int
    depends_on_time_only: bool = False


MEMORY_LABEL_PREFIXES: dict[SwitchKind, str] = {
    "relation": "mode of ",
    "steps": "step of ",
    "sticking": "slip of ",
    "condition": "condition of ",
    "ticks": "ticks of ",
}


def list_program_switches(program: ScalarProgram) -> tuple[ProgramSwitch, ...]:
    """Return a program's modes from ``convert_switches_to_modes``, in order of their margins; conditions last."""
    found: list[ProgramSwitch] = []
    timed = set(program.entries[NEXT_TIME_EVENT_ENTRY].labels) if NEXT_TIME_EVENT_ENTRY in program.entries else set()
    for place, label in enumerate(program.layout.memory):
        for kind, prefix in MEMORY_LABEL_PREFIXES.items():
            if label.startswith(prefix) and "indicators" in program.entries:
                found.append(ProgramSwitch(label.removeprefix(prefix), kind, place, f"{len(found)}" in timed))
    return tuple(found)


def needs_modes(program: ScalarProgram) -> bool:
    """Return whether something in a program without modes switches, or the model has events of its own."""
    return bool(find_motion_switches(program)) or "conditions" in program.entries


def find_motion_switches(program: ScalarProgram) -> list[int]:
    """Return the switches that the motion needs, in the order of the program."""
    entry = program.entries.get("switches")
    if entry is None:
        return []
    results = [n for name in _MOTION_ENTRIES if name in program.entries for n in program.entries[name].results]
    nodes, _ = find_needed_nodes(program, results)
    return sorted(node for node in set(entry.results) if nodes[node])
