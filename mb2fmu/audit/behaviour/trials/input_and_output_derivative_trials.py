"""Co-Simulation: time derivatives of inputs and of outputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import do_communication_step
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError, Value, format_fmi_status
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError, TrialTimeBudgetError
from mb2fmu.audit.behaviour.trials.communication_step_trials import (
    CO_SIMULATION,
    choose_excited_input_values,
    list_continuous_variables,
    make_model_exchange_fixture,
)
from mb2fmu.audit.behaviour.trials.model_exchange_trials import MOTION_STOPS
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

UNCHANGED_SHARE = 0.5
"""Share of a difference that remains with quarter steps if it is not an error of the method."""

SMALL_STEP_SHARE = 0.01
"""Size of a small step, relative to the communication step: values change nearly linearly in it."""


@register_trial("derivatives of outputs by time", "steps.output_derivatives", interfaces=CO_SIMULATION)
def try_output_derivatives(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check promised output derivatives: they are the slopes at the end of the step."""
    order = int(fixture.description.interfaces[fixture.interface].get("maxOutputDerivativeOrder", "0") or 0)
    outputs = [item for item in fixture.select_scalars("output") if item.variability == "continuous"]
    if order < 1 or not outputs or not fixture.flag("canHandleVariableCommunicationStepSize"):
        return
    with fixture.open_instance() as instance:
        fixture.initialize(instance, initial_values=choose_excited_input_values(fixture))
        stop_steps = sorted({1, *(int(share * fixture.affordable_step_count) for share in MOTION_STOPS)} - {0})
        time = fixture.start
        for stop_step in stop_steps:
            while time < fixture.start + (stop_step - 0.5) * fixture.step:
                do_communication_step(fixture, instance, time, fixture.step)
                time += fixture.step
            coarse = _measure_output_derivatives(
                fixture, instance, outputs, order, time, SMALL_STEP_SHARE * fixture.step
            )
            time += 3 * SMALL_STEP_SHARE * fixture.step
            if isinstance(coarse, str):
                yield RuleViolation("steps.output_derivatives", coarse, fixture.interface)
                return
            fine_derivatives: dict[DescribedVariable, _OutputDerivativeComparison] | str = {}
            if any(item.disagrees for item in coarse.values()):
                fine_derivatives = _measure_output_derivatives(
                    fixture, instance, outputs, order, time, 0.25 * SMALL_STEP_SHARE * fixture.step
                )
                time += 0.75 * SMALL_STEP_SHARE * fixture.step
            if isinstance(fine_derivatives, str):
                return
            for variable, fine_result in fine_derivatives.items():
                # A method of first order comes nearer to the slope in proportion to its steps: that is its own matter.
                if (
                    coarse[variable].disagrees
                    and fine_result.disagrees
                    and fine_result.difference > UNCHANGED_SHARE * coarse[variable].difference
                ):
                    message = (
                        f"reports {fine_result.declared:.6g} per second at t = {time:.6g}, and moves with "
                        f"{fine_result.measured:.6g}"
                    )
                    yield RuleViolation("steps.output_derivatives", message, fixture.format_finding_location(variable))
                    return


@dataclass(frozen=True)
class _OutputDerivativeComparison:
    """Time derivative of an output: declared by the FMU, and by differences.

    Attributes:
        declared: By the FMU.
        measured: Over two tiny steps.
        disagrees: They differ by more than is explained.
    """

    declared: float
    measured: float
    disagrees: bool

    @property
    def difference(self) -> float:
        """By how much they differ."""
        return abs(self.declared - self.measured)


def _measure_output_derivatives(
    fixture: TrialFixture,
    instance: FmuInstance,
    outputs: Sequence[DescribedVariable],
    order: int,
    begin_time: float,
    step_size: float,
) -> dict[DescribedVariable, _OutputDerivativeComparison] | str:
    """Do three tiny steps from a point, and read slopes in their middle; return a text if they are refused."""
    do_communication_step(fixture, instance, begin_time, step_size)
    values_before = instance.get(outputs)
    do_communication_step(fixture, instance, begin_time + step_size, step_size)
    values_at_middle = instance.get(outputs)
    reported = [instance.get_output_derivatives(outputs, derivative_order) for derivative_order in range(1, order + 1)]
    do_communication_step(fixture, instance, begin_time + 2 * step_size, step_size)
    values_after = instance.get(outputs)
    for derivative_order, (status, _) in enumerate(reported, 1):
        if status not in {OK, WARNING}:
            answer = format_fmi_status(status)
            return f"maxOutputDerivativeOrder is {order}, but a request for order {derivative_order} returns {answer}"
    results = {}
    for variable, before, at_middle, after, declared in zip(
        outputs, values_before, values_at_middle, values_after, reported[0][1], strict=True
    ):
        assert isinstance(before, float)
        assert isinstance(at_middle, float)
        assert isinstance(after, float)
        measured, curvature_term = (after - before) / (2 * step_size), abs(after - 2 * at_middle + before) / step_size
        round_off = (
            4 * sys.float_info.epsilon * max(abs(before), abs(at_middle), abs(after)) / step_size
        )  # of slopes, by values that are rounded
        bound = (
            0.03 * max(abs(measured), abs(declared))
            + 3 * curvature_term
            + 1e-5 * fixture.typical_magnitude(variable)
            + round_off
        )
        results[variable] = _OutputDerivativeComparison(declared, measured, not abs(declared - measured) <= bound)
    return results


@register_trial("inputs with slopes", "steps.input_derivatives", interfaces=CO_SIMULATION)
def try_input_derivatives(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check FMI 2's input derivatives: a ramp in one step against many short steps with the input moved along.

    A stiff state is at the end of a ramp where the slope holds it, and where short steps of equal length hold their
    input it settles: there both are right and differ. Steps that shorten towards the end follow every time constant,
    so a difference counts that both ways of stepping show. Effects are against the same steps with the input held:
    shorter steps alone change what a solver's tolerance leaves open.
    """
    if fixture.description.version != 2 or not fixture.flag("canInterpolateInputs") or not fixture.inputs:
        return
    if not fixture.flag("canHandleVariableCommunicationStepSize"):
        return
    variables = fixture.states or [
        candidate for candidate in list_continuous_variables(fixture) if candidate.written.get("derivative") is None
    ]
    start_values = {known: fixture.choose_near_start(known, 0.0) for known in fixture.inputs}

    @cache
    def run_with_held_inputs(part_ends: tuple[float, ...]) -> list[float]:
        """Return values after a step in parts with all inputs at their start values: the same for each input."""
        return _run_with_moved_input(fixture, variables, start_values, {}, part_ends)

    for known in start_values:
        slope = fixture.typical_magnitude(known) / fixture.step
        held_input_values = run_with_held_inputs((1.0,))
        ramp_values = _run_with_input_derivative(fixture, variables, start_values, known, slope)
        if ramp_values is None:
            message = f'canInterpolateInputs is true, but a slope of "{known.name}" is refused'
            yield RuleViolation("steps.input_derivatives", message, fixture.interface)
            return
        differing = dict.fromkeys(range(len(variables)), 0.0)
        for part_ends in (_EQUAL_PARTS, _SHORTENING_PARTS):
            moved_values = _run_with_moved_input(fixture, variables, start_values, {known: slope}, part_ends)
            still_values = run_with_held_inputs(part_ends)
            effects = {index: moved_values[index] - still_values[index] for index in differing}
            differing = {
                index: effect
                for index, effect in effects.items()
                if abs(effect)
                > 1e-6 * max(abs(moved_values[index]), 1e-3 * fixture.typical_magnitude(variables[index]))
                and abs(ramp_values[index] - held_input_values[index] - effect) > 0.3 * abs(effect)
            }
            if not differing:
                break
        for index, effect in differing.items():
            message = (
                f'a slope of "{known.name}" moves it by {ramp_values[index] - held_input_values[index]:.4g} in a step'
            )
            message += f"; moving the input along, by {effect:.4g}"
            yield RuleViolation("steps.input_derivatives", message, fixture.format_finding_location(variables[index]))
            return


def _shortening_parts() -> tuple[float, ...]:
    """Return ends of steps within [0, 1]: at most 1/32, and at most 1/5 of the rest, down to a millionth."""
    part_ends, remaining_length = [], 1.0
    while remaining_length > 1e-6:
        remaining_length -= min(1 / 32, remaining_length / 5)
        part_ends.append(1.0 - remaining_length)
    return (*part_ends[:-1], 1.0)


_EQUAL_PARTS = tuple((k + 1) / 16 for k in range(16))
_SHORTENING_PARTS = _shortening_parts()


def _run_with_moved_input(
    fixture: TrialFixture,
    variables: Sequence[DescribedVariable],
    start_values: Mapping[DescribedVariable, float],
    slopes: Mapping[DescribedVariable, float],
    part_ends: Sequence[float],
) -> list[float]:
    """Return values after one communication step in parts, with moving inputs at their values in the middle of each.

    Args:
        fixture: Where the FMU is tried.
        variables: What is read at the end.
        start_values: Of all inputs.
        slopes: By time, of those that move.
        part_ends: Ends of the parts over the step; the last is 1.
    """
    with fixture.open_instance() as instance:
        fixture.initialize(instance, initial_values=dict(start_values))
        begin_share = 0.0
        for end_share in part_ends:
            for known, slope in slopes.items():
                instance.set({known: start_values[known] + slope * fixture.step * (begin_share + end_share) / 2})
            do_communication_step(
                fixture, instance, fixture.start + begin_share * fixture.step, (end_share - begin_share) * fixture.step
            )
            begin_share = end_share
        return _select_floats(instance.get(variables))


def _run_with_input_derivative(
    fixture: TrialFixture,
    variables: Sequence[DescribedVariable],
    start_values: Mapping[DescribedVariable, float],
    known: DescribedVariable,
    slope: float,
) -> list[float] | None:
    """Return values after one communication step with a slope of one input; None if the slope is refused."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance, initial_values=dict(start_values))
        if instance.set_input_derivatives([known], [slope]) not in {OK, WARNING}:
            return None
        do_communication_step(fixture, instance, fixture.start, fixture.step)
        return _select_floats(instance.get(variables))


def _select_floats(values: Sequence[Value]) -> list[float]:
    """Return values of continuous variables, which are floating point numbers."""
    return [value for value in values if isinstance(value, float)]


WATCHED_STEPS = 3
"""Steps that are watched after an input was set."""

MAX_INPUTS = 6


@register_trial("inputs that are set between steps", "steps.exchange", interfaces=CO_SIMULATION)
def try_one_step_input_delay(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that an input on which derivatives depend directly moves its states in the very next step."""
    model_exchange = make_model_exchange_fixture(fixture)
    if model_exchange is None or not fixture.states or not fixture.inputs:
        return
    for known in fixture.inputs[:MAX_INPUTS]:
        try:
            if _find_first_affected_step(fixture, known) == 1 and _affects_derivatives(model_exchange, known):
                message = "set between two steps, it moves no state in the next one, but in the one after; as Model "
                message += "Exchange derivatives follow at once"
                yield RuleViolation("steps.exchange", message, fixture.format_finding_location(known))
                return
        except TrialTimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError):
            continue


def _find_first_affected_step(fixture: TrialFixture, known: DescribedVariable) -> int | None:
    """Return the number of the first step, from 0 on, after which a state differs because of an input."""
    runs = []
    for is_changed in (False, True):
        with fixture.open_instance() as instance:
            fixture.initialize(instance)
            do_communication_step(fixture, instance, fixture.start, fixture.step)
            if is_changed:
                instance.set({known: fixture.choose_near_start(known, 0.3)})
            readings = []
            for step_index in range(WATCHED_STEPS):
                do_communication_step(fixture, instance, fixture.start + (step_index + 1) * fixture.step, fixture.step)
                readings.append(instance.get(fixture.states))
            runs.append(readings)
    return next(
        (
            step_index
            for step_index, (unchanged_value, changed_value) in enumerate(zip(*runs, strict=True))
            if unchanged_value != changed_value
        ),
        None,
    )


def _affects_derivatives(model_exchange: TrialFixture, known: DescribedVariable) -> bool:
    """Return whether derivatives follow an input at once."""
    with model_exchange.open_instance() as instance:
        model_exchange.initialize(instance)
        derivatives_before = instance.get_derivatives(model_exchange.n_states)
        instance.set({known: model_exchange.choose_near_start(known, 0.3)})
        return instance.get_derivatives(model_exchange.n_states) != derivatives_before
