"""Modes of a program whose switches are frozen, and its events, as discrete variables and one clause of Modelica.

Equations read ``pre(mode)``: the mode in force. The clause does at an event what ``runtime/events.c`` does in a
unit, one thing in each iteration of the event, until nothing is left to do:

    1  change     the mode whose margin is the most negative one
    2  let go     what was held and has been set in motion slips
    3  set        states, as the entry ``event`` says: what friction holds is at rest exactly, impacts, latches, resets

``stage`` says what is to come: 0 nothing, 1 to set when no margin is negative any more, 2 to let go, 3 to set at once.
A clause fires only where one of its conditions becomes true (Modelica 3.6, 8.3.5); therefore there are two, of which
``turn`` makes one false after each iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.compiler.events import Switch, list_program_switches
from mb2fmu.compiler.program.scalar_program import Program

MODE_CHANGE_MARGIN = "(-1e-10)"
"""Margin below which a mode changes, as in an FMU for Model Exchange: at the event itself no margin is zero."""

_HELD_SLIP_LIMIT = "1e-9"
"""What is held goes on where an event has set it to more than this, as in an FMU."""

_EVENT_ACTIVE = f"(least < {MODE_CHANGE_MARGIN} or pre(stage) > 0.5)"
_CURRENT_STAGE = (
    "noEvent(if pre(stage) > 2.5 then 3.0 elseif pre(stage) > 1.5 then 2.0 "
    f"elseif least < {MODE_CHANGE_MARGIN} then 1.0 "
    "elseif pre(stage) > 0.5 then 3.0 else 0.0)"
)
_NEXT_STAGE = (
    "noEvent(if initial() or doing > 1.5 and doing < 2.5 then 1.0 elseif doing > 2.5 and fired > 0.5 then 2.0 "
    "elseif doing > 2.5 and pre(stage) < 2.5 then 0.0 elseif doing < 1.5 and rests > 0.5 then 3.0 else 1.0)"
)

_CONDITION_KINDS = frozenset({"condition", "ticks"})


@dataclass(frozen=True, slots=True)
class ModelicaModeVariable:
    """A discrete variable.

    Attributes:
        name: Identifier.
        title: What it is the mode of, for people.
        start: At first.
        value: What the clause sets.
    """

    name: str
    title: str
    start: float
    value: str


@dataclass(frozen=True, slots=True)
class ModelicaEvents:
    """What a frozen program says of events.

    Attributes:
        modes: All of them.
        least: Unknowns of the smallest margin, each with its equation; the last one is ``least``.
        fired: Whether an event has become true, or is no longer.
        rests: Whether something is held from now on.
        settings: (state, its value after the event), of those that events set.
        active: Whether anything is left to do.
        current_stage: What is done now.
        stage: What is to come.
    """

    modes: tuple[ModelicaModeVariable, ...]
    least: tuple[tuple[str, str], ...]
    fired: str
    rests: str
    settings: tuple[tuple[str, str], ...]
    active: str = _EVENT_ACTIVE
    current_stage: str = _CURRENT_STAGE
    stage: str = _NEXT_STAGE


def make_modelica_mode_identifiers(program: Program) -> list[str]:
    """Return identifiers for the discrete memory of a frozen program, in order."""
    return [f"mode{k}" for k in range(1, len(program.layout.memory) + 1)]


def form_modelica_modes_and_events(
    program: Program, states: Sequence[str], results: Mapping[str, Sequence[str]]
) -> ModelicaEvents:
    """Return the modes and events of a frozen program.

    Args:
        program: Frozen.
        states: Identifiers.
        results: How the results of its entries ``indicators`` (one margin per switch), ``surfaces`` (what each switch
            looks at, then what drives those that are held) and ``event`` are read.
    """
    switches, names, margins = (
        list_program_switches(program),
        make_modelica_mode_identifiers(program),
        results["indicators"],
    )
    looking = [switch for switch in switches if switch.kind not in _CONDITION_KINDS]
    conditions = [switch for switch in switches if switch.kind in _CONDITION_KINDS]
    surfaces, drives = results["surfaces"][: len(looking)], results["surfaces"][len(looking) :]
    after, now = results["event"][: len(states)], results["event"][len(states) :]
    modes = [
        ModelicaModeVariable(
            names[switch.memory], switch.name, 0.0, _mode_update(switch, names[switch.memory], margin, surface, drive)
        )
        for switch, margin, surface, drive in zip(looking, margins, surfaces, drives, strict=True)
    ]
    for switch, value in zip(conditions, now, strict=True):
        name = names[switch.memory]
        start = 0.0 if switch.kind == "ticks" else 1.0  # what is true at the start does not become true
        modes.append(
            ModelicaModeVariable(
                name, switch.name, start, f"noEvent(if not initial() and doing > 2.5 then {value} else pre({name}))"
            )
        )
    was = [f"pre({names[switch.memory]})" for switch in conditions]
    differ = [f"{value} > {old} or {value} < {old}" for value, old in zip(now, was, strict=True)]
    stick = [(names[s.memory], margin) for s, margin in zip(looking, margins, strict=True) if s.kind == "sticking"]
    rests = [f"{margin} <= least and pre({name}) * pre({name}) > 0.5" for name, margin in stick]
    settings = tuple((x, value) for x, value in zip(states, after, strict=True) if x != value)
    return ModelicaEvents(
        tuple(modes), _smallest_margin(margins), _any_condition(differ), _any_condition(rests), settings
    )


def _any_condition(conditions: Sequence[str]) -> str:
    """Return an expression that is 1 where one of them holds, else 0."""
    return f"noEvent(if {' or '.join(conditions)} then 1.0 else 0.0)" if conditions else "0.0"


def _smallest_margin(margins: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the smallest margin, in steps of two."""
    found: list[tuple[str, str]] = []
    last = margins[0]
    for k, margin in enumerate(margins[1:], 1):
        found.append((f"least{k}", f"noEvent(if {margin} < {last} then {margin} else {last})"))
        last = f"least{k}"
    return (*found, ("least", last))


def _mode_update(switch: Switch, name: str, margin: str, surface: str, drive: str) -> str:
    """Return what the clause sets the mode of one switch to; at the start all are what they look at.

    What rests with another sign is held with it, as far as it can be.
    """
    was, due = f"pre({name})", f"doing > 0.5 and doing < 1.5 and {margin} <= least"
    if switch.kind == "steps":
        return f"noEvent(if initial() or {due} then floor({surface}) else {was})"
    if switch.kind == "relation":
        begun = f"if initial() then (if {surface} > 0.0 then 1.0 else 0.0)"
        return f"noEvent({begun} elseif {due} then 1.0 - {was} else {was})"
    begun = f"if initial() then (if {surface} > 0.0 then 1.0 elseif {surface} < 0.0 then -1.0 else 0.0)"
    side = f"(if {surface} > 0.0 then 1.0 else -1.0)"
    driven = f"(if {was} * {was} > 0.5 then 0.0 elseif {drive} > 0.0 then 1.0 else -1.0)"
    near = f"{surface} <= {_HELD_SLIP_LIMIT} and {surface} >= -{_HELD_SLIP_LIMIT}"
    let_go = f"doing > 1.5 and doing < 2.5 and not ({near})"
    return (
        f"noEvent({begun} elseif {due} then {driven} elseif doing > 0.5 and doing < 1.5 and rests > 0.5 and {near} "
        f"then 0.0 elseif {let_go} then {side} else {was})"
    )
