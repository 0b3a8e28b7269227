"""Calls in any order that the standard's state machines allow: none is refused, and a reset forgets them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_moving_inputs,
    choose_other_value,
    list_settable_variables,
)
from mb2fmu.audit.behaviour.fixture.short_runs import find_first_difference, run_interface_type
from mb2fmu.audit.behaviour.fixture.trial_fixture import EndlessEventsError, TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import DISCARD, RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.life_cycle_trials import SHORT
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

WALKS = 16
LENGTH = 40
TOLD = 8
"""Calls that a message tells."""

I, M, E, C, S, T = (
    "Instantiated", "Initialization Mode", "Event Mode", "Continuous-Time Mode", "Step Mode", "Terminated",
)  # fmt: skip


@dataclass
class RandomCallSequence:
    """One instance during a random walk through the state machine.

    Attributes:
        stage: Of the FMU.
        instance: That is walked with.
        draw: Random numbers of this walk.
        time: Where it stands.
        told: What was called, with the mode.
        kept: A state that was got, with mode and time.
        given: What was set before the initialization was over.
        way: How it came here from there: what was set, and a time for each communication step.
        kept_way: ``given`` and ``way`` of the kept state.
    """

    stage: TrialFixture
    instance: FmuInstance
    draw: random.Random
    time: float
    told: list[str] = field(default_factory=list)
    kept: tuple[object, str, float] | None = None
    given: dict[DescribedVariable, Value] = field(default_factory=dict)
    way: list[dict[DescribedVariable, Value] | float] = field(default_factory=list)
    kept_way: tuple[dict[DescribedVariable, Value], list[dict[DescribedVariable, Value] | float]] = field(
        default_factory=lambda: ({}, [])
    )

    def put(self, values: dict[DescribedVariable, Value]) -> None:
        """Set inputs or tunable parameters."""
        self.way.append(values)
        self.instance.set(values)

    def past(self) -> str:
        """Return the last calls."""
        return f"the calls before it: {'; '.join(self.told[-TOLD:])}"

    def step(self) -> None:
        """Do one allowed call."""
        mode = self.instance.mode
        name, action = self.draw.choice(ACTIONS[mode])
        if self.stage.kind == "CoSimulation" and action in _EXCHANGE_ONLY:
            return
        self.told.append(f"{name} in {mode}")
        action(self)


def _enter(walk: RandomCallSequence) -> None:
    """Enter Initialization Mode at the start time."""
    walk.instance.enter(walk.stage.start, None, walk.stage.tolerance)
    walk.time = walk.stage.start


def _exit(walk: RandomCallSequence) -> None:
    """Leave Initialization Mode; where that leads to Event Mode, iterate until it is settled."""
    walk.instance.exit()
    if walk.instance.mode == E:
        walk.stage.settle(walk.instance)


def _set(walk: RandomCallSequence) -> None:
    """Set one start value, parameter or input, or none, before the end of the initialization."""
    known = [each for each in list_settable_variables(walk.stage) if not each.get("min") and not each.get("max")]
    known = [each for each in known if each.type not in {"String", "Binary"}]
    if known:
        variable = walk.draw.choice(known)
        value = choose_other_value(walk.stage, variable, "order", 0.02)
        if value is not None:
            walk.given[variable] = value
            walk.instance.set({variable: value})


def _set_inputs(walk: RandomCallSequence) -> None:
    """Set all inputs to values of a random instant."""
    walk.put(dict(choose_moving_inputs(walk.stage, walk.draw.randrange(6))))


def _set_continuous(walk: RandomCallSequence) -> None:
    """Set the continuous inputs to values of a random instant."""
    values = choose_moving_inputs(walk.stage, walk.draw.randrange(6))
    walk.put({each: value for each, value in values.items() if each.variability == "continuous"})


def _set_tunable(walk: RandomCallSequence) -> None:
    """Change a random tunable parameter without bounds by a little."""
    known = [each for each in walk.stage.variables if each.causality == "parameter" and each.variability == "tunable"]
    known = [each for each in known if not each.get("min") and not each.get("max")]
    if known:
        variable = walk.draw.choice(known)
        value = choose_other_value(walk.stage, variable, "order", 0.02)
        if value is not None:
            walk.put({variable: value})


def _get(walk: RandomCallSequence) -> None:
    """Read a random half of the variables in random order."""
    some = [each for each in walk.stage.variables if walk.draw.random() < 0.5]
    walk.draw.shuffle(some)
    walk.instance.get(some)


def _get_early(walk: RandomCallSequence) -> None:
    """Read what FMI 2 lets an FMU show in Initialization Mode: exact values, outputs, states and derivatives."""
    listed = {id(each.variable) for name in ("Outputs", "Derivatives") for each in walk.stage.description.listed(name)}
    known = [each for each in walk.stage.variables if each.initial == "exact" or id(each) in listed]
    walk.instance.get([each for each in known if walk.draw.random() < 0.5])


def _event(walk: RandomCallSequence) -> None:
    """Enter Event Mode and iterate until it is settled."""
    walk.instance.event()
    walk.stage.settle(walk.instance)


def _update(walk: RandomCallSequence) -> None:
    """Iterate the events until they are settled."""
    walk.stage.settle(walk.instance)


def _go_on(walk: RandomCallSequence) -> None:
    """Settle the events and return to Continuous-Time or Step Mode."""
    walk.stage.settle(walk.instance)
    walk.instance.go_on()


def _later(walk: RandomCallSequence) -> None:
    """Advance the time by a random part of a step."""
    walk.time += walk.stage.step * walk.draw.uniform(0.01, 0.5)
    walk.instance.set_time(walk.time)


def _states(walk: RandomCallSequence) -> None:
    """Set the continuous states to their own values."""
    size = walk.stage.n_states
    if size:
        walk.instance.set_states(walk.instance.states(size))


def _evaluate(walk: RandomCallSequence) -> None:
    """Read derivatives, indicators, nominals and states in random order."""
    stage, instance = walk.stage, walk.instance
    names = ["GetEventIndicators", "GetNominalsOfContinuousStates", "GetContinuousStates", "slopes"]
    walk.draw.shuffle(names)
    for name in names:
        size = stage.n_indicators if name == "GetEventIndicators" else stage.n_states
        if size and name == "slopes":
            instance.slopes(size)
        elif size:
            instance.vector(name, size)


def _completed(walk: RandomCallSequence) -> None:
    """Report an accepted step and handle the event that it asks for."""
    event, _ = walk.instance.completed()
    if event:
        _event(walk)
        walk.instance.go_on()


def _advance(walk: RandomCallSequence) -> None:
    """Do one communication step."""
    walk.way.append(walk.time)
    walk.instance.must_step(walk.time, walk.stage.step)
    walk.time += walk.stage.step


def _keep(walk: RandomCallSequence) -> None:
    """Keep the FMU's state with its mode and time; free the one kept before."""
    if walk.stage.keeps_states:
        if walk.kept:
            walk.instance.free_state(walk.kept[0])  # type: ignore[arg-type]
        walk.kept = walk.instance.get_state(), walk.instance.mode, walk.time
        walk.kept_way = dict(walk.given), list(walk.way)


def _return(walk: RandomCallSequence) -> None:
    """Go back to the state that was kept."""
    if walk.kept:
        walk.instance.set_state(walk.kept[0])  # type: ignore[arg-type]
        walk.instance.mode, walk.time = walk.kept[1], walk.kept[2]
        walk.given, walk.way = dict(walk.kept_way[0]), list(walk.kept_way[1])


def _terminate(walk: RandomCallSequence) -> None:
    """Terminate the instance."""
    walk.instance.terminate()


def _reset(walk: RandomCallSequence) -> None:
    """Reset the instance; start values that were given are forgotten."""
    walk.instance.reset()
    walk.given.clear()
    walk.way.clear()
    walk.time = walk.stage.start


Action = Callable[[RandomCallSequence], None]
_STATE: tuple[tuple[str, Action], ...] = (("keeping the state", _keep), ("going back to a state", _return))
ACTIONS: Mapping[str, Sequence[tuple[str, Action]]] = {
    I: (
        ("setting a start value", _set), ("entering initialization", _enter), ("entering initialization", _enter),
        ("entering initialization", _enter), *_STATE,
    ),
    M: (
        ("setting a start value", _set), ("setting inputs", _set_inputs), ("reading", _get_early),
        ("leaving initialization", _exit), ("leaving initialization", _exit), *_STATE,
    ),
    E: (
        ("setting inputs", _set_inputs), ("setting a tunable parameter", _set_tunable), ("reading", _get),
        ("updating discrete states", _update), ("evaluating", _evaluate), ("leaving Event Mode", _go_on),
        ("leaving Event Mode", _go_on), ("leaving Event Mode", _go_on), ("terminating", _terminate), *_STATE,
    ),
    C: (
        ("setting the time", _later), ("setting the states", _states), ("setting inputs", _set_continuous),
        ("reading", _get), ("evaluating", _evaluate), ("completing a step", _completed),
        ("entering Event Mode", _event), ("evaluating", _evaluate), ("reading", _get), ("terminating", _terminate),
        *_STATE,
    ),
    S: (
        ("setting inputs", _set_inputs), ("setting a tunable parameter", _set_tunable), ("reading", _get),
        ("a step", _advance), ("a step", _advance), ("a step", _advance), ("terminating", _terminate), *_STATE,
    ),
    T: (("reading", _get), ("a reset", _reset), ("a reset", _reset), *_STATE),
}  # fmt: skip
_READING = ("fmi2GetReal", "fmi3GetFloat")
_EXCHANGE_ONLY = frozenset({_event, _evaluate})


def _refused_anyway(walk: RandomCallSequence) -> bool:
    """Return whether a new instance refuses the same values in the ordinary order: then the order is not to blame."""
    inputs = {variable: value for each in walk.way if isinstance(each, dict) for variable, value in each.items()}
    with walk.stage.instance(name=b"ordinary") as instance:
        try:
            walk.stage.initialize(instance, before=walk.given, within=inputs)
        except RefusedCallError:
            return True
    return False


def _discarded_anyway(walk: RandomCallSequence, refused: RefusedCallError) -> bool:
    """Return whether a new instance with only the same sets and steps also discards the step: values are to blame.

    A solver that was chosen at random may be unable to make it, or make one so large that nothing can be read.
    """
    with walk.stage.instance(name=b"straight") as instance:
        *before, last = walk.way
        try:
            walk.stage.initialize(instance, before=walk.given)
            for each in before:
                _repeat(walk, instance, each)
        except RefusedCallError:
            return False
        try:
            _repeat(walk, instance, last)
            if refused.function.startswith(_READING):
                instance.get(walk.stage.variables)
        except RefusedCallError as error:
            return error.status == DISCARD
    return False


def _repeat(walk: RandomCallSequence, instance: FmuInstance, each: dict[DescribedVariable, Value] | float) -> None:
    """Repeat a part of the walk."""
    if isinstance(each, float):
        instance.must_step(each, walk.stage.step)
    else:
        instance.set(each)


@probe("calls in other orders", "life.order")
def try_random_call_sequences(stage: TrialFixture) -> Iterator[Observation]:
    """Check random walks through the state machine, each with its own numbers; then a reset, and the ordinary run."""
    with stage.instance() as instance:
        expected = run_interface_type(stage, instance, stage.variables, steps=SHORT)
    for number in range(WALKS):
        with stage.instance(name=b"walk%d" % number) as instance:
            walk = RandomCallSequence(stage, instance, random.Random(number), stage.start)  # noqa: S311
            try:
                for _ in range(LENGTH):
                    walk.step()
            except EndlessEventsError as error:
                walk.told.append(str(error))
            except RefusedCallError as error:
                if instance.mode in {I, M} and _refused_anyway(walk):
                    continue
                if instance.mode == S and error.status == DISCARD and walk.way and _discarded_anyway(walk, error):
                    continue
                yield Observation("life.order", f"{error}; {walk.past()}", stage.kind)
                return
            except SkippedTrialError:
                continue
            finally:
                if walk.kept:
                    instance.free_state(walk.kept[0])  # type: ignore[arg-type]
            instance.reset()
            found = run_interface_type(stage, instance, stage.variables, steps=SHORT)
        different = find_first_difference(stage.variables, expected, found)
        if different:
            text = f'"{different[0].name}" differs after a reset; {walk.past()}'
            yield Observation("life.order", text, stage.kind)
            return
