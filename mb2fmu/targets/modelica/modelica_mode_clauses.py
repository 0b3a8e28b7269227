"""Modes of a program whose switches are frozen, and its events, as discrete variables and one clause of Modelica.

Equations read ``pre(mode)``: the mode in force. The clause does at an event what ``runtime/events.c`` does in an
FMU, one thing in each iteration of the event, until nothing is left to do:

    1  change     the mode whose margin is the most negative one
    2  release    what was held and has been set in motion slips
    3  set        states, as the entry ``event`` says: what friction holds is at rest exactly, impacts, latches, resets
   -1  hold       for a trial: of two frictions and more, one that was released in this event, and is at rest still
   -2  judge      the trial: it is held again, once in an event, if less than its sliding friction holds it

``stage`` says what is to come: 0 nothing, 1 to set when no margin is negative any more, 2 to release, 3 to set at once,
4 to judge. A trial needs an iteration of its own, for equations read the mode in force. ``again`` is the number of the
friction to try, 0 if there is none; ``tried`` of each one is its side during the trial, 2 once it is held again, and 3
once it slips on, until other modes change.
A clause fires only where one of its conditions becomes true (Modelica 3.6, 8.3.5); therefore there are two, of which
``turn`` makes one false after each iteration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mb2fmu.compiler.events import ProgramSwitch, list_program_switches
from mb2fmu.compiler.program.scalar_program import ScalarProgram

MODE_CHANGE_MARGIN = "(-1e-10)"
"""Margin below which a mode changes, as in an FMU for Model Exchange: at the event itself no margin is zero."""

_HELD_SLIP_LIMIT = "1e-9"
"""What is held goes on where an event has set it to more than this, as in an FMU."""

_HELD_DRIVE_LIMIT = "0.999999999"
"""Of its sliding friction: what is held by less is held again, as in an FMU."""

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
_CURRENT_STAGE_WITH_TRIALS = _CURRENT_STAGE.replace("(if", "(if pre(stage) > 3.5 then -2.0 elseif", 1).replace(
    "pre(stage) > 0.5 then", "pre(stage) > 0.5 and again > 0.5 then -1.0 elseif pre(stage) > 0.5 then"
)
_NEXT_STAGE_WITH_TRIALS = _NEXT_STAGE.replace("(if", "(if doing < -1.5 then 1.0 elseif doing < -0.5 then 4.0 elseif", 1)
_EVENT_ENDS = "doing > 2.5 and fired < 0.5 and pre(stage) < 2.5"

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
        modes: All of them, and of each friction that may be held again what became of it.
        unknowns: Of the smallest margin ``least``, and of ``again`` where frictions may be held again, with equations.
        fired: Whether an event has become true, or is no longer.
        rests: Whether something is held from now on.
        settings: (state, its value after the event), of those that events set.
        active: Whether anything is left to do.
        current_stage: What is done now.
        stage: What is to come.
    """

    modes: tuple[ModelicaModeVariable, ...]
    unknowns: tuple[tuple[str, str], ...]
    fired: str
    rests: str
    settings: tuple[tuple[str, str], ...]
    active: str = _EVENT_ACTIVE
    current_stage: str = _CURRENT_STAGE
    stage: str = _NEXT_STAGE


def make_modelica_mode_identifiers(program: ScalarProgram) -> list[str]:
    """Return identifiers for the discrete memory of a frozen program, in order."""
    return [f"mode{k}" for k in range(1, len(program.layout.memory) + 1)]


def form_modelica_modes_and_events(
    program: ScalarProgram, states: Sequence[str], results: Mapping[str, Sequence[str]]
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
    rows = enumerate(zip(looking, margins, surfaces, drives, strict=True), 1)
    sticking = [
        _StickingFriction(names[row[0].memory], row[0].name, *row[1:], number)
        for number, row in rows
        if row[0].kind == "sticking"
    ]
    rests = [f"{each.margin} <= least and {each.slips}" for each in sticking]
    settings = tuple((x, value) for x, value in zip(states, after, strict=True) if x != value)
    unknowns = _smallest_margin(margins)
    events = ModelicaEvents(tuple(modes), unknowns, _any_condition(differ), _any_condition(rests), settings)
    return events if len(sticking) < _MIN_FRICTIONS_OF_TRIALS else _add_trials(events, sticking)


_MIN_FRICTIONS_OF_TRIALS = 2


@dataclass(frozen=True, slots=True)
class _StickingFriction:
    """A friction that sticks.

    Attributes:
        mode: Identifier of its mode.
        title: What it is, for people.
        margin: How far its mode is from being wrong.
        surface: Its slip.
        drive: What holds it, over its sliding friction.
        number: Among switches.
    """

    mode: str
    title: str
    margin: str
    surface: str
    drive: str
    number: int

    @property
    def slips(self) -> str:
        """The condition that it slips by its mode."""
        return f"pre({self.mode}) * pre({self.mode}) > 0.5"

    @property
    def can_be_tried(self) -> str:
        """The condition that it was released at rest, and not tried yet."""
        tried = f"pre(tried{self.number})"
        return f"{self.slips} and {tried} < 0.5 and {tried} > -0.5 and {_near_rest(self.surface)}"

    @property
    def _is_chosen(self) -> str:
        """The condition that it is held for a trial now."""
        return f"doing > -1.5 and doing < -0.5 and again > {self.number - 0.5} and again < {self.number + 0.5}"

    @property
    def _is_judged(self) -> str:
        """The condition that its trial is judged now."""
        tried = f"pre(tried{self.number})"
        return f"doing < -1.5 and {tried} * {tried} > 0.5 and {tried} * {tried} < 1.5"

    @property
    def trial(self) -> ModelicaModeVariable:
        """What became of the trial to hold it again."""
        tried = f"tried{self.number}"
        trial_result = f"(if pre({tried}) * {self.drive} < {_HELD_DRIVE_LIMIT} then 2.0 else 3.0)"
        changes = f"doing > 0.5 and doing < 2.5 and pre({tried}) > 2.5"
        value = (
            f"noEvent(if {self._is_judged} then {trial_result} elseif {self._is_chosen} then pre({self.mode}) "
            f"elseif {_EVENT_ENDS} or {changes} then 0.0 else pre({tried}))"
        )
        return ModelicaModeVariable(tried, f"{self.title}: of its trial to be held again", 0.0, value)

    def hold_again(self, mode: ModelicaModeVariable) -> ModelicaModeVariable:
        """Return its mode, which a trial sets first of all."""
        tried = f"pre(tried{self.number})"
        trial_result = f"(if {tried} * {self.drive} < {_HELD_DRIVE_LIMIT} then 0.0 else {tried})"
        trial = f"noEvent(if {self._is_judged} then {trial_result} elseif {self._is_chosen} then 0.0 elseif "
        return replace(mode, value=mode.value.replace("noEvent(if ", trial, 1))


def _add_trials(events: ModelicaEvents, sticking: Sequence[_StickingFriction]) -> ModelicaEvents:
    """Return the events with trials to hold again what was released."""
    trials = {each.mode: each for each in sticking}
    modes = [trials[mode.name].hold_again(mode) if mode.name in trials else mode for mode in events.modes]
    return replace(
        events,
        modes=(*modes, *(each.trial for each in sticking)),
        unknowns=(*events.unknowns, ("again", _choose_trial(sticking))),
        current_stage=_CURRENT_STAGE_WITH_TRIALS,
        stage=_NEXT_STAGE_WITH_TRIALS,
    )


def _choose_trial(sticking: Sequence[_StickingFriction]) -> str:
    """Return the number of the first friction that may be held again; 0 if there is none."""
    choices = " elseif ".join(f"{each.can_be_tried} then {each.number}.0" for each in sticking)
    return f"noEvent(if {choices} else 0.0)"


def _near_rest(surface: str) -> str:
    """Return the condition that a slip is none, as far as events know."""
    return f"{surface} <= {_HELD_SLIP_LIMIT} and {surface} >= -{_HELD_SLIP_LIMIT}"


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


def _mode_update(switch: ProgramSwitch, name: str, margin: str, surface: str, drive: str) -> str:
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
    near = _near_rest(surface)
    let_go = f"doing > 1.5 and doing < 2.5 and not ({near})"
    return (
        f"noEvent({begun} elseif {due} then {driven} elseif doing > 0.5 and doing < 1.5 and rests > 0.5 and {near} "
        f"then 0.0 elseif {let_go} then {side} else {was})"
    )
