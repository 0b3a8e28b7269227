"""Saving, restoring and serializing the state: the motion continues bit for bit, also in other instances."""

from __future__ import annotations

import ctypes as c
import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import TypeVar

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_changed_value,
    choose_excited_run_values,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, are_identical_values
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    ModelExchangeIntegration,
    find_first_run_difference,
    run_co_simulation,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.communication_step_trials import CO_SIMULATION, enter_step_mode
from mb2fmu.audit.rules_and_findings import RuleViolation

Observation = TypeVar("Observation")

MAX_STEPS_PER_RUN = 120
"""Communication steps from a kept state on."""


def _count_steps_after_state(fixture: TrialFixture) -> int:
    """Return communication steps after the saved state: to the end of the run, with its later events."""
    return max(1, min(MAX_STEPS_PER_RUN, fixture.affordable_step_count - _count_steps_to_state(fixture)))


def _count_steps_to_state(fixture: TrialFixture) -> int:
    """Return communication steps up to the saved state."""
    return max(1, min(3, fixture.affordable_step_count - 1), min(fixture.affordable_step_count // 2, MAX_STEPS_PER_RUN))


def _state_capabilities(fixture: TrialFixture) -> tuple[bool, bool]:
    """Return whether the FMU keeps states, and whether it serializes them."""
    state_word = "state" if fixture.description.version == 2 else "State"
    return fixture.can_save_states, fixture.flag(f"canSerializeFMU{state_word}")


def _run_from_state(fixture: TrialFixture, instance: FmuInstance, start: float) -> RecordedTrialRun:
    """Return more of the motion from a state on, values at its start first."""
    variables = fixture.variables_to_try
    if fixture.interface == "CoSimulation":
        return run_co_simulation(
            fixture, instance, variables, steps=_count_steps_after_state(fixture), begin_time=start
        )
    run = RecordedTrialRun([start], [instance.get(variables)])
    instance.set_time(start)
    instance.enter_event_mode()
    next_event_time = fixture.settle_events(instance).next_time
    instance.leave_event_mode()
    integration = ModelExchangeIntegration(fixture, instance, start, 1e-4, next_event_time)
    for step_index in range(_count_steps_after_state(fixture)):
        integration.advance(start + (step_index + 1) * fixture.step)
        run.times.append(integration.time)
        run.values.append(instance.get(variables))
    return run


def _run_to_state(fixture: TrialFixture, instance: FmuInstance) -> float:
    """Move to the middle of the run, with inputs that move."""
    run_with_excitation(fixture, instance, (), steps=_count_steps_to_state(fixture), tolerance=1e-4)
    return fixture.start + _count_steps_to_state(fixture) * fixture.step


def _change_inputs_and_parameters(fixture: TrialFixture, instance: FmuInstance) -> None:
    """Set other inputs and tunable parameters of all types, which a restored state must take back."""
    variables = [
        candidate for candidate in fixture.variables_to_try
        if candidate.causality == "input" or (candidate.causality == "parameter" and candidate.variability == "tunable")
    ]  # fmt: skip
    is_model_exchange = fixture.interface == "ModelExchange"
    if is_model_exchange:
        instance.enter_event_mode()
    for variable in variables:
        value = choose_changed_value(fixture, variable, "disorder", 0.2)
        if value is not None:
            instance.try_set(variable, value)
    if is_model_exchange:
        with suppress(SkippedTrialError):
            fixture.settle_events(instance)
            instance.leave_event_mode()


INITIAL_TOLERANCE_SHARE = 1e-3
"""Factor of the tolerance before any integration: then the values must be the saved ones."""


def _compare_runs(
    fixture: TrialFixture, rule: str, runs: tuple[RecordedTrialRun, RecordedTrialRun], situation: str
) -> Iterator[RuleViolation]:
    """Yield the first difference: an error if it is visible, a warning if only last digits differ."""
    first, second = runs
    difference = find_first_run_difference(fixture.variables_to_try, first, second)
    if not difference:
        return
    tolerance = max(1e3 * (fixture.tolerance or 1e-4), 1e-5)
    for index, variable in enumerate(fixture.variables_to_try):
        values = [
            (first_values[index], second_values[index])
            for first_values, second_values in zip(first.values, second.values, strict=True)
        ]
        magnitudes = [
            abs(first_values)
            for first_values, _ in values
            if isinstance(first_values, float) and math.isfinite(first_values)
        ]
        magnitude = max([*magnitudes, 1e-3 * fixture.typical_magnitude(variable)])
        for point, (first_values, second_values) in enumerate(values):
            bound = (tolerance if point else INITIAL_TOLERANCE_SHARE * tolerance) * magnitude
            is_small = (
                isinstance(first_values, float)
                and isinstance(second_values, float)
                and abs(first_values - second_values) <= bound
            )
            if not are_identical_values(first_values, second_values) and not is_small:
                place = "at once" if point == 0 else f"{point} points"
                yield RuleViolation(rule, f'"{variable.name}" differs {place} after {situation}', fixture.interface)
                return
    message = f'"{difference[0].name}" differs in its last digits {difference[1]} points after {situation}'
    yield RuleViolation("state.bits", message, fixture.interface)


@register_trial("going back to a state", "state.roundtrip", "state.free", "state.bits")
def try_saved_state(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check save, continue, restore, continue; also with other inputs, parameters and modes in between."""
    if not _state_capabilities(fixture)[0]:
        for rule in ("state.roundtrip", "state.free", "state.bits"):
            fixture.mark_inapplicable(rule, "it cannot get and set its state")
        return
    with fixture.open_instance() as instance:
        state_time = _run_to_state(fixture, instance)
        mode = instance.mode
        try:
            state = instance.get_state()
            first_run = _run_from_state(fixture, instance, state_time)
            repeated_runs = []
            for situation in ("a state was set", "a state was set once more", OTHER_START):
                if situation == OTHER_START and not _restart_with_other_parameters(fixture, instance):
                    continue
                if situation != OTHER_START:
                    _change_inputs_and_parameters(fixture, instance)
                _compute_everything(fixture, instance)
                instance.set_state(state)
                instance.mode = mode
                repeated_runs.append((_run_from_state(fixture, instance, state_time), situation))
            instance.free_state(state)
        except RefusedCallError as error:
            yield RuleViolation("state.roundtrip", str(error), fixture.interface)
            return
        if state.value:
            yield RuleViolation("state.free", "the pointer to a freed state is not null afterwards", fixture.interface)
    for run, situation in repeated_runs:
        observations = list(_compare_runs(fixture, "state.roundtrip", (first_run, run), situation))
        yield from observations
        if observations:
            return


@register_trial("getting a state into the memory of an earlier one", "state.roundtrip")
def try_overwriting_saved_state(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that saving into an existing copy replaces it, as importers do at each step."""
    if not _state_capabilities(fixture)[0]:
        return
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        state = instance.get_state()
        _move_to_other_point(fixture, instance, 1)
        instance.get_state(state)
        expected = instance.get(fixture.variables_to_try)
        _move_to_other_point(fixture, instance, 2)
        _compute_everything(fixture, instance)
        instance.set_state(state)
        values = instance.get(fixture.variables_to_try)
        instance.free_state(state)
    difference = find_first_run_difference(
        fixture.variables_to_try, RecordedTrialRun([0.0], [expected]), RecordedTrialRun([0.0], [values])
    )
    if difference:
        message = (
            f'"{difference[0].name}" differs after a state was set that had been got into the memory of an earlier one'
        )
        yield RuleViolation("state.roundtrip", message, fixture.interface)


def _compute_everything(fixture: TrialFixture, instance: FmuInstance) -> None:
    """Read all variables: what an FMU keeps of computed values must not survive the setting of a state."""
    with suppress(RefusedCallError):
        instance.get(fixture.variables_to_try)


@register_trial("a state of Initialization Mode", "state.roundtrip", "state.serialize")
def try_state_of_initialization(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a state saved before the initialization ends has what was set by then, and nothing set later.

    Neither may it have the start values of the description, wherever it is restored.
    """
    variables = fixture.variables_to_try
    values, other_values = (choose_excited_run_values(fixture, number) for number in (1, 2))
    can_save, can_serialize = _state_capabilities(fixture)
    if not can_save or not values:
        return
    restored_values, data = {}, b""
    with suppress(RefusedCallError, SkippedTrialError), fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        instance.set(values)
        state = instance.get_state()
        mode, expected = instance.mode, instance.get(variables)
        data = instance.serialize_state(state) if can_serialize else b""
        instance.set(other_values)
        instance.set_state(state)
        restored_values["a state of Initialization Mode was set there"] = instance.get(variables)
        instance.reset()
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        instance.set_state(state)
        instance.mode = mode
        restored_values["a state of Initialization Mode was set in a reset instance"] = instance.get(variables)
        instance.free_state(state)
    if data and not fixture.flag("canBeInstantiatedOnlyOncePerProcess"):
        with suppress(RefusedCallError, SkippedTrialError), fixture.open_instance(name=b"heir") as second_instance:
            second_instance.enter_initialization(fixture.start, None, fixture.tolerance)
            state = second_instance.deserialize_state(data)
            second_instance.set_state(state)
            restored_values["bytes of Initialization Mode were set in a new instance"] = second_instance.get(variables)
            second_instance.free_state(state)
    for situation, restored_value in restored_values.items():
        difference = find_first_run_difference(
            variables, RecordedTrialRun([0.0], [expected]), RecordedTrialRun([0.0], [restored_value])
        )
        if difference:
            rule = "state.serialize" if situation.startswith("bytes") else "state.roundtrip"
            yield RuleViolation(rule, f'"{difference[0].name}" differs after {situation}', fixture.interface)
            return


STEPS_TO_STATE = 2
"""Communication steps up to a state whose setup is tried; its stop time is there."""


def _observe_restored(
    fixture: TrialFixture,
    move_to_state: Callable[[FmuInstance], None],
    move_elsewhere: Callable[[FmuInstance], None],
    observe: Callable[[FmuInstance], Observation],
) -> dict[str, Observation]:
    """Return what is observed from a state on: "before" where it was saved, else by the rule of how it was restored.

    It is restored in the instance after a reset, and as bytes in a new one, both moved elsewhere first.
    """
    can_save, can_serialize = _state_capabilities(fixture)
    observations: dict[str, Observation] = {}
    if not can_save:
        return observations
    with suppress(RefusedCallError, SkippedTrialError), fixture.open_instance() as instance:
        move_to_state(instance)
        state, mode = instance.get_state(), instance.mode
        data = instance.serialize_state(state) if can_serialize else b""
        observations["before"] = observe(instance)
        instance.reset()
        move_elsewhere(instance)
        instance.set_state(state)
        instance.mode = mode
        instance.free_state(state)
        observations["state.roundtrip"] = observe(instance)
        if data and not fixture.flag("canBeInstantiatedOnlyOncePerProcess"):
            with fixture.open_instance(name=b"heir") as heir:
                move_elsewhere(heir)
                state = heir.deserialize_state(data)
                heir.set_state(state)
                heir.free_state(state)
                observations["state.serialize"] = observe(heir)
    return observations


@register_trial("the stop time of a state", "state.roundtrip", "state.serialize", interfaces=CO_SIMULATION)
def try_stop_time_of_saved_state(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a restored state makes, or refuses, a step beyond the stop time as the saved one does."""
    stop_time = fixture.start + STEPS_TO_STATE * fixture.step
    for saved_stop, other_stop in ((stop_time, None), (None, stop_time)):
        is_step_made = _observe_restored(
            fixture,
            partial(_step_to_stop_time, fixture, stop_time=saved_stop),
            partial(_step_to_stop_time, fixture, stop_time=other_stop),
            partial(_makes_step, fixture, time=stop_time),
        )
        for rule, is_made in is_step_made.items():
            if is_made != is_step_made["before"]:
                stop_text = "with a stop time there" if saved_stop is not None else "without a stop time"
                outcomes = ("is refused", "returns OK")
                message = (
                    f"a step beyond {stop_time:.6g} s {outcomes[is_step_made['before']]} in a run {stop_text}, and "
                    f"{outcomes[is_made]} from the state saved in it: the state does not keep the stop time"
                )
                yield RuleViolation(rule, message, fixture.interface)
                return


def _step_to_stop_time(fixture: TrialFixture, instance: FmuInstance, *, stop_time: float | None) -> None:
    """Initialize, with or without a stop time, and step to where it is."""
    enter_step_mode(fixture, instance, stop_time)
    run_co_simulation(fixture, instance, (), steps=STEPS_TO_STATE, include_start=False)


def _makes_step(fixture: TrialFixture, instance: FmuInstance, *, time: float) -> bool:
    """Return whether a step from a time on succeeds."""
    return instance.do_step(time, fixture.step).status in {OK, WARNING}


SAVED_TOLERANCE, OTHER_TOLERANCE = 1e-4, 1e-8
STEPS_OF_VISIBLE_TOLERANCE = 20
"""Communication steps that show a tolerance which has shown in the few steps before the state."""


@register_trial("the tolerance of a state", "state.roundtrip", "state.serialize", interfaces=CO_SIMULATION)
def try_tolerance_of_saved_state(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a restored state goes on by the tolerance of its own run, not by that of where it is restored.

    Bit for bit: only where the same tolerance gives the same bits, other bits say that the tolerance is another one.
    """
    move_to_state = partial(_step_with_tolerance, fixture, tolerance=SAVED_TOLERANCE)
    move_elsewhere = partial(_step_with_tolerance, fixture, tolerance=OTHER_TOLERANCE)
    variables, begin_time = fixture.variables_to_try, fixture.start + STEPS_TO_STATE * fixture.step
    if not fixture.can_save_states:
        return
    values_at_state = []
    for move in (move_to_state, move_elsewhere):
        with fixture.open_instance() as instance, suppress(RefusedCallError, SkippedTrialError):
            move(instance)
            values_at_state.append(instance.get(variables))
    steps = _count_steps_after_state(fixture)
    if len(values_at_state) == 2 and not all(map(are_identical_values, *values_at_state)):
        steps = min(steps, STEPS_OF_VISIBLE_TOLERANCE)
    run_on = partial(run_co_simulation, fixture, variables=variables, steps=steps, begin_time=begin_time)
    same, other = (
        _observe_restored(fixture, move_to_state, begin, run_on) for begin in (move_to_state, move_elsewhere)
    )
    for rule in ("state.roundtrip", "state.serialize"):
        if rule not in same or rule not in other or find_first_run_difference(variables, same["before"], same[rule]):
            continue
        difference = find_first_run_difference(variables, same[rule], other[rule])
        if difference:
            message = (
                f'"{difference[0].name}" differs after a state of a run with tolerance {SAVED_TOLERANCE:g} was set '
                f"where the instance had been initialized with {OTHER_TOLERANCE:g}, and does not where that had the "
                "same: the state does not keep the tolerance"
            )
            yield RuleViolation(rule, message, fixture.interface)
            return


def _step_with_tolerance(fixture: TrialFixture, instance: FmuInstance, *, tolerance: float) -> None:
    """Initialize with a tolerance, and make some steps."""
    fixture.initialize(instance, tolerance=tolerance)
    run_co_simulation(fixture, instance, (), steps=STEPS_TO_STATE, include_start=False)


def _move_to_other_point(fixture: TrialFixture, instance: FmuInstance, step_number: int) -> None:
    """Do a step, or move to another point."""
    begin_time = fixture.start + (step_number - 1) * fixture.step
    if fixture.interface == "CoSimulation":
        instance.must_step(begin_time, fixture.step)
        return
    states = instance.get_states(fixture.n_states) if fixture.n_states else []
    derivatives = instance.get_derivatives(fixture.n_states) if fixture.n_states else []
    new_states = [state + fixture.step * derivative for state, derivative in zip(states, derivatives, strict=True)]
    fixture.set_time_and_states(instance, begin_time + fixture.step, new_states)


OTHER_START = "a state was set where the instance had been initialized with other parameters"


def _restart_with_other_parameters(fixture: TrialFixture, instance: FmuInstance) -> bool:
    """Reset, and begin with other parameters; return whether that is possible."""
    initial_values = choose_excited_run_values(fixture, 1)
    if not initial_values:
        return False
    instance.reset()
    with suppress(SkippedTrialError):
        fixture.initialize(instance, initial_values=initial_values)
        return True
    return False


@register_trial("a state as bytes", "state.serialize", "state.bits")
def try_serialized_state(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check serialization: restore in a new instance that began otherwise, and continue there."""
    if not all(_state_capabilities(fixture)) or fixture.flag("canBeInstantiatedOnlyOncePerProcess"):
        fixture.mark_inapplicable("state.serialize", "it cannot serialize its state, or there can be only one instance")
        return
    with fixture.open_instance() as instance:
        state_time = _run_to_state(fixture, instance)
        try:
            state = instance.get_state()
            data = instance.serialize_state(state)
            if instance.serialize_state(state) != data:
                yield RuleViolation(
                    "state.serialize", "the same state gives other bytes the second time", fixture.interface
                )
            instance.free_state(state)
            first_run = _run_from_state(fixture, instance, state_time)
        except RefusedCallError as error:
            yield RuleViolation("state.serialize", str(error), fixture.interface)
            return
        # The first one is another by now: bytes that lead back to it are found out.
        with suppress(RefusedCallError):
            _restart_with_other_parameters(fixture, instance)
        yield from _check_deserialized_state(fixture, data, state_time, first_run)


def _check_deserialized_state(
    fixture: TrialFixture, data: bytes, state_time: float, first_run: RecordedTrialRun
) -> Iterator[RuleViolation]:
    """Check that a new instance continues the motion from the serialized state of another one."""
    with fixture.open_instance(name=b"heir") as new_instance:
        fixture.initialize(new_instance, initial_values=choose_excited_run_values(fixture, 1))
        try:
            state = new_instance.deserialize_state(data)
            new_instance.set_state(state)
            second_run = _run_from_state(fixture, new_instance, state_time)
            new_instance.free_state(state)
        except RefusedCallError as error:
            yield RuleViolation("state.serialize", f"in a new instance: {error}", fixture.interface)
            return
    yield from _compare_runs(fixture, "state.serialize", (first_run, second_run), "bytes were set in a new instance")


@register_trial("freeing no state", "state.free", crash_rule="state.free")
def try_freeing_null_state(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that freeing a null pointer is ignored."""
    if _state_capabilities(fixture)[0]:
        with fixture.open_instance() as instance:
            try:
                instance.free_state(c.c_void_p())
            except RefusedCallError as error:
                yield RuleViolation("state.free", f"a null state: {error}", fixture.interface)
