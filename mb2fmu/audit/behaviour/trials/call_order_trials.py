"""Calls in any order that the standard's state machines allow: none is refused, and a reset forgets them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_changed_value,
    choose_varied_input_values,
    list_parameters_and_exact_starts,
)
from mb2fmu.audit.behaviour.fixture.trial_fixture import EndlessEventsError, TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import find_first_run_difference, run_as_interface_type
from mb2fmu.audit.behaviour.instance.fmi_c_interface import DISCARD, RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.life_cycle_trials import SHORT_RUN_STEPS
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

SEQUENCE_COUNT = 16
SEQUENCE_LENGTH = 40
MAX_QUOTED_CALLS = 8
"""Calls that a message names."""

INSTANTIATED, INITIALIZATION_MODE, EVENT_MODE, CONTINUOUS_TIME_MODE, STEP_MODE, TERMINATED = (
    "Instantiated", "Initialization Mode", "Event Mode", "Continuous-Time Mode", "Step Mode", "Terminated",
)  # fmt: skip


@dataclass
class _RandomCallSequence:
    """One instance during a random walk through the state machine.

    Attributes:
        fixture: Of the FMU.
        instance: Instance that is called.
        random_source: Random numbers of this walk.
        time: Present time, s.
        called: What was called, with the mode.
        saved_state: A state that was got, with mode and time.
        initial_values: What was set before the initialization was over.
        history: Actions since then: values that were set, and a time for each communication step.
        saved_history: ``given`` and ``way`` of the kept state.
    """

    fixture: TrialFixture
    instance: FmuInstance
    random_source: random.Random
    time: float
    called: list[str] = field(default_factory=list)
    saved_state: tuple[object, str, float] | None = None
    initial_values: dict[DescribedVariable, Value] = field(default_factory=dict)
    history: list[dict[DescribedVariable, Value] | float] = field(default_factory=list)
    saved_history: tuple[dict[DescribedVariable, Value], list[dict[DescribedVariable, Value] | float]] = field(
        default_factory=lambda: ({}, [])
    )

    def set_and_record(self, values: dict[DescribedVariable, Value]) -> None:
        """Set inputs or tunable parameters."""
        self.history.append(values)
        self.instance.set(values)

    def describe_last_calls(self) -> str:
        """Return the last calls."""
        return f"the calls before it: {'; '.join(self.called[-MAX_QUOTED_CALLS:])}"

    def do_random_call(self) -> None:
        """Do one allowed call."""
        mode = self.instance.mode
        name, action = self.random_source.choice(ACTIONS_BY_MODE[mode])
        if self.fixture.interface == "CoSimulation" and action in _MODEL_EXCHANGE_ACTIONS:
            return
        self.called.append(f"{name} in {mode}")
        action(self)


def _enter_initialization(sequence: _RandomCallSequence) -> None:
    """Enter Initialization Mode at the start time."""
    sequence.instance.enter_initialization(sequence.fixture.start, None, sequence.fixture.tolerance)
    sequence.time = sequence.fixture.start


def _exit_initialization(sequence: _RandomCallSequence) -> None:
    """Leave Initialization Mode; where that leads to Event Mode, iterate until it is settled."""
    sequence.instance.exit_initialization()
    if sequence.instance.mode == EVENT_MODE:
        sequence.fixture.settle_events(sequence.instance)


def _set_start_value(sequence: _RandomCallSequence) -> None:
    """Set one start value, parameter or input, or none, before the end of the initialization."""
    variables = [
        candidate
        for candidate in list_parameters_and_exact_starts(sequence.fixture)
        if not candidate.get("min") and not candidate.get("max")
    ]
    variables = [candidate for candidate in variables if candidate.type not in {"String", "Binary"}]
    if variables:
        variable = sequence.random_source.choice(variables)
        value = choose_changed_value(sequence.fixture, variable, "order", 0.02)
        if value is not None:
            sequence.initial_values[variable] = value
            sequence.instance.set({variable: value})


def _set_inputs(sequence: _RandomCallSequence) -> None:
    """Set all inputs to values of a random instant."""
    sequence.set_and_record(dict(choose_varied_input_values(sequence.fixture, sequence.random_source.randrange(6))))


def _set_continuous_inputs(sequence: _RandomCallSequence) -> None:
    """Set the continuous inputs to values of a random instant."""
    values = choose_varied_input_values(sequence.fixture, sequence.random_source.randrange(6))
    sequence.set_and_record(
        {variable: value for variable, value in values.items() if variable.variability == "continuous"}
    )


def _set_tunable_parameter(sequence: _RandomCallSequence) -> None:
    """Change a random tunable parameter without bounds by a little."""
    variables = [
        candidate
        for candidate in sequence.fixture.variables_to_try
        if candidate.causality == "parameter" and candidate.variability == "tunable"
    ]
    variables = [candidate for candidate in variables if not candidate.get("min") and not candidate.get("max")]
    if variables:
        variable = sequence.random_source.choice(variables)
        value = choose_changed_value(sequence.fixture, variable, "order", 0.02)
        if value is not None:
            sequence.set_and_record({variable: value})


def _read_variables(sequence: _RandomCallSequence) -> None:
    """Read a random half of the variables in random order."""
    chosen_variables = [
        variable for variable in sequence.fixture.variables_to_try if sequence.random_source.random() < 0.5
    ]
    sequence.random_source.shuffle(chosen_variables)
    sequence.instance.get(chosen_variables)


def _read_in_initialization(sequence: _RandomCallSequence) -> None:
    """Read what FMI 2 lets an FMU show in Initialization Mode: exact values, outputs, states and derivatives."""
    listed_ids = {
        id(entry.variable)
        for name in ("Outputs", "Derivatives")
        for entry in sequence.fixture.description.model_structure_entries(name)
    }
    variables = [
        entry for entry in sequence.fixture.variables_to_try if entry.initial == "exact" or id(entry) in listed_ids
    ]
    sequence.instance.get([entry for entry in variables if sequence.random_source.random() < 0.5])


def _enter_event_mode(sequence: _RandomCallSequence) -> None:
    """Enter Event Mode and iterate until it is settled."""
    sequence.instance.enter_event_mode()
    sequence.fixture.settle_events(sequence.instance)


def _update_discrete_states(sequence: _RandomCallSequence) -> None:
    """Iterate the events until they are settled."""
    sequence.fixture.settle_events(sequence.instance)


def _leave_event_mode(sequence: _RandomCallSequence) -> None:
    """Settle the events and return to Continuous-Time or Step Mode."""
    sequence.fixture.settle_events(sequence.instance)
    sequence.instance.leave_event_mode()


def _advance_time(sequence: _RandomCallSequence) -> None:
    """Advance the time by a random part of a step."""
    sequence.time += sequence.fixture.step * sequence.random_source.uniform(0.01, 0.5)
    sequence.instance.set_time(sequence.time)


def _set_states(sequence: _RandomCallSequence) -> None:
    """Set the continuous states to their own values."""
    size = sequence.fixture.n_states
    if size:
        sequence.instance.set_states(sequence.instance.get_states(size))


def _evaluate_vectors(sequence: _RandomCallSequence) -> None:
    """Read derivatives, indicators, nominals and states in random order."""
    fixture, instance = sequence.fixture, sequence.instance
    functions = ["GetEventIndicators", "GetNominalsOfContinuousStates", "GetContinuousStates", "slopes"]
    sequence.random_source.shuffle(functions)
    for function in functions:
        count = fixture.n_indicators if function == "GetEventIndicators" else fixture.n_states
        if count and function == "slopes":
            instance.get_derivatives(count)
        elif count:
            instance.get_vector(function, count)


def _complete_step(sequence: _RandomCallSequence) -> None:
    """Report an accepted step and handle the event that it requests."""
    enters_event_mode, _ = sequence.instance.complete_step()
    if enters_event_mode:
        _enter_event_mode(sequence)
        sequence.instance.leave_event_mode()


def _do_communication_step(sequence: _RandomCallSequence) -> None:
    """Do one communication step."""
    sequence.history.append(sequence.time)
    sequence.instance.must_step(sequence.time, sequence.fixture.step)
    sequence.time += sequence.fixture.step


def _save_state(sequence: _RandomCallSequence) -> None:
    """Keep the FMU's state with its mode and time; free the one kept before."""
    if sequence.fixture.can_save_states:
        if sequence.saved_state:
            sequence.instance.free_state(sequence.saved_state[0])  # type: ignore[arg-type]
        sequence.saved_state = sequence.instance.get_state(), sequence.instance.mode, sequence.time
        sequence.saved_history = dict(sequence.initial_values), list(sequence.history)


def _restore_state(sequence: _RandomCallSequence) -> None:
    """Go back to the state that was kept."""
    if sequence.saved_state:
        sequence.instance.set_state(sequence.saved_state[0])  # type: ignore[arg-type]
        sequence.instance.mode, sequence.time = sequence.saved_state[1], sequence.saved_state[2]
        sequence.initial_values, sequence.history = dict(sequence.saved_history[0]), list(sequence.saved_history[1])


def _terminate(sequence: _RandomCallSequence) -> None:
    """Terminate the instance."""
    sequence.instance.terminate()


def _reset(sequence: _RandomCallSequence) -> None:
    """Reset the instance; start values that were given are forgotten."""
    sequence.instance.reset()
    sequence.initial_values.clear()
    sequence.history.clear()
    sequence.time = sequence.fixture.start


Action = Callable[[_RandomCallSequence], None]
_STATE_ACTIONS: tuple[tuple[str, Action], ...] = (
    ("keeping the state", _save_state),
    ("going back to a state", _restore_state),
)
ACTIONS_BY_MODE: Mapping[str, Sequence[tuple[str, Action]]] = {
    INSTANTIATED: (
        ("setting a start value", _set_start_value),
        ("entering initialization", _enter_initialization),
        ("entering initialization", _enter_initialization),
        ("entering initialization", _enter_initialization),
        *_STATE_ACTIONS,
    ),
    INITIALIZATION_MODE: (
        ("setting a start value", _set_start_value),
        ("setting inputs", _set_inputs),
        ("reading", _read_in_initialization),
        ("leaving initialization", _exit_initialization),
        ("leaving initialization", _exit_initialization),
        *_STATE_ACTIONS,
    ),
    EVENT_MODE: (
        ("setting inputs", _set_inputs),
        ("setting a tunable parameter", _set_tunable_parameter),
        ("reading", _read_variables),
        ("updating discrete states", _update_discrete_states),
        ("evaluating", _evaluate_vectors),
        ("leaving Event Mode", _leave_event_mode),
        ("leaving Event Mode", _leave_event_mode),
        ("leaving Event Mode", _leave_event_mode),
        ("terminating", _terminate),
        *_STATE_ACTIONS,
    ),
    CONTINUOUS_TIME_MODE: (
        ("setting the time", _advance_time),
        ("setting the states", _set_states),
        ("setting inputs", _set_continuous_inputs),
        ("reading", _read_variables),
        ("evaluating", _evaluate_vectors),
        ("completing a step", _complete_step),
        ("entering Event Mode", _enter_event_mode),
        ("evaluating", _evaluate_vectors),
        ("reading", _read_variables),
        ("terminating", _terminate),
        *_STATE_ACTIONS,
    ),
    STEP_MODE: (
        ("setting inputs", _set_inputs),
        ("setting a tunable parameter", _set_tunable_parameter),
        ("reading", _read_variables),
        ("a step", _do_communication_step),
        ("a step", _do_communication_step),
        ("a step", _do_communication_step),
        ("terminating", _terminate),
        *_STATE_ACTIONS,
    ),
    TERMINATED: (("reading", _read_variables), ("a reset", _reset), ("a reset", _reset), *_STATE_ACTIONS),
}
_READ_FUNCTIONS = ("fmi2GetReal", "fmi3GetFloat")
_MODEL_EXCHANGE_ACTIONS = frozenset({_enter_event_mode, _evaluate_vectors})


def _is_refused_in_usual_order(sequence: _RandomCallSequence) -> bool:
    """Return whether a new instance refuses the same values in the ordinary order: then the order is not to blame."""
    inputs = {
        variable: value for action in sequence.history if isinstance(action, dict) for variable, value in action.items()
    }
    with sequence.fixture.open_instance(name=b"ordinary") as instance:
        try:
            sequence.fixture.initialize(instance, values_before=sequence.initial_values, initial_values=inputs)
        except RefusedCallError:
            return True
    return False


def _is_discarded_in_usual_order(sequence: _RandomCallSequence, refusal: RefusedCallError) -> bool:
    """Return whether a new instance with only the same sets and steps also discards the step: values are to blame.

    A solver that was chosen at random may be unable to make it, or make one so large that nothing can be read.
    """
    with sequence.fixture.open_instance(name=b"straight") as instance:
        *earlier, last_action = sequence.history
        try:
            sequence.fixture.initialize(instance, values_before=sequence.initial_values)
            for action in earlier:
                _repeat_action(sequence, instance, action)
        except RefusedCallError:
            return False
        try:
            _repeat_action(sequence, instance, last_action)
            if refusal.function.startswith(_READ_FUNCTIONS):
                instance.get(sequence.fixture.variables_to_try)
        except RefusedCallError as error:
            return error.status == DISCARD
    return False


def _repeat_action(
    sequence: _RandomCallSequence, instance: FmuInstance, action: dict[DescribedVariable, Value] | float
) -> None:
    """Repeat one action of a sequence."""
    if isinstance(action, float):
        instance.must_step(action, sequence.fixture.step)
    else:
        instance.set(action)


@register_trial("calls in other orders", "life.order")
def try_random_call_sequences(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check random walks through the state machine, each with its own numbers; then a reset, and the ordinary run."""
    with fixture.open_instance() as instance:
        expected = run_as_interface_type(fixture, instance, fixture.variables_to_try, steps=SHORT_RUN_STEPS)
    for seed in range(SEQUENCE_COUNT):
        with fixture.open_instance(name=b"walk%d" % seed) as instance:
            sequence = _RandomCallSequence(fixture, instance, random.Random(seed), fixture.start)  # noqa: S311
            try:
                for _ in range(SEQUENCE_LENGTH):
                    sequence.do_random_call()
            except EndlessEventsError as error:
                sequence.called.append(str(error))
            except RefusedCallError as error:
                if instance.mode in {INSTANTIATED, INITIALIZATION_MODE} and _is_refused_in_usual_order(sequence):
                    continue
                if (
                    instance.mode == STEP_MODE
                    and error.status == DISCARD
                    and sequence.history
                    and _is_discarded_in_usual_order(sequence, error)
                ):
                    continue
                yield RuleViolation("life.order", f"{error}; {sequence.describe_last_calls()}", fixture.interface)
                return
            except SkippedTrialError:
                continue
            finally:
                if sequence.saved_state:
                    instance.free_state(sequence.saved_state[0])  # type: ignore[arg-type]
            instance.reset()
            run = run_as_interface_type(fixture, instance, fixture.variables_to_try, steps=SHORT_RUN_STEPS)
        difference = find_first_run_difference(fixture.variables_to_try, expected, run)
        if difference:
            message = f'"{difference[0].name}" differs after a reset; {sequence.describe_last_calls()}'
            yield RuleViolation("life.order", message, fixture.interface)
            return
