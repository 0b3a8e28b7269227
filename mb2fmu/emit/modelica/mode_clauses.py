"""Modes of a program whose switches are frozen, as discrete variables that change at events.

Equations read ``pre(mode)``: the mode in force. At an event a clause sets it anew, and the tool repeats the event until
``pre(mode)`` is the mode. A clause fires only where its condition becomes true (Modelica 3.6, 8.3.5). A mode that must
change twice at one instant (friction comes to rest, and is driven on at once) therefore has two conditions, of which
each mode makes one false. At the start, where modes are 0, clauses fire by ``initial()``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mb2fmu.program.program import Program
from mb2fmu.switching import Switch, switches_of

LATE = "-1e-10"
"""Margin below which a mode changes, as in a unit of Model Exchange: at the event itself no margin is zero."""


@dataclass(frozen=True, slots=True)
class Mode:
    """A discrete variable.

    Attributes:
        name: Identifier.
        title: What it is the mode of, for people.
        conditions: Any of them, as it becomes true, fires the clause.
        value: What the clause sets.
    """

    name: str
    title: str
    conditions: tuple[str, ...]
    value: str


def mode_names(program: Program) -> list[str]:
    """Return identifiers for the discrete memory of a frozen program, in order."""
    return [f"mode{k}" for k in range(1, len(program.layout.memory) + 1)]


def modes(program: Program, margins: Sequence[str], surfaces: Sequence[str]) -> list[Mode]:
    """Return the modes of a frozen program.

    Args:
        program: Frozen, without events of the model's own.
        margins: How the results of its entry ``indicators`` are read, one per switch.
        surfaces: Likewise of ``surfaces``: what each switch looks at, then what drives those that are held.
    """
    switches, names = switches_of(program), mode_names(program)
    looked, drives = surfaces[: len(switches)], surfaces[len(switches) :]
    return [
        _mode(switch, names[switch.memory], margin, surface, drive)
        for switch, margin, surface, drive in zip(switches, margins, looked, drives, strict=True)
    ]


def _mode(switch: Switch, name: str, margin: str, surface: str, drive: str) -> Mode:
    """Return the mode of one switch: the trigger of its clause, and the value that it sets.

    A sign that can be held is at the start what it says; if it is zero, all are held at first.
    """
    was, due = f"pre({name})", f"{margin} < {LATE}"
    if switch.kind == "steps":
        conditions = (f"{surface} >= {was} + 1.0", f"{surface} < {was}")
        return Mode(name, switch.name, conditions, f"noEvent(floor({surface}))")
    if switch.kind == "relation":
        conditions = (f"{due} and {was} < 0.5", f"{due} and {was} > 0.5")
        return Mode(name, switch.name, conditions, f"noEvent(if {due} then 1.0 - {was} else {was})")
    conditions = (f"{due} and {was} * {was} > 0.5", f"{due} and {was} * {was} < 0.5")
    begun = f"if initial() and {surface} > 0.0 then 1.0 elseif initial() and {surface} < 0.0 then -1.0"
    driven = f"(if {was} * {was} > 0.5 then 0.0 elseif {drive} > 0.0 then 1.0 else -1.0)"
    return Mode(name, switch.name, conditions, f"noEvent({begun} elseif {due} then {driven} else {was})")


def brought_to_rest(
    program: Program, states: Sequence[str], after: Sequence[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Return when friction comes to rest, and the states set then: speeds exactly zero.

    All of it is one clause, since a state may be set in one alone.

    Args:
        program: As of :func:`modes`.
        states: Identifiers.
        after: How the states' results of the entry ``event`` are read.

    Returns:
        Conditions, and (state, value) of each state that friction can move.
    """
    names = mode_names(program)
    held = [names[switch.memory] for switch in switches_of(program) if switch.kind == "sticking"]
    conditions = tuple(f"pre({name}) * pre({name}) < 0.5" for name in held)
    return conditions, tuple((x, value) for x, value in zip(states, after, strict=True) if x != value)
