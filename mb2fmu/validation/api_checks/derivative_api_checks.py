"""API checks of derivatives: directional, adjoint, by parameters, and of outputs in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.scales.characteristic_units import choose_stabilization_rate
from mb2fmu.validation.api_checks.api_call_plan import (
    ApiCallPlanner,
    list_direction_seeds,
)
from mb2fmu.validation.api_checks.labelled_api_calls import ApiCallSequence
from mb2fmu.validation.api_checks.recorded_api_call_comparison import (
    KNOWN_FRACTION,
    NOISE_FRACTION,
    UNCERTAINTY_FACTOR,
    RecordedApiCallComparison,
    RecordedValues,
)
from mb2fmu.validation.bounds.derivative_stabilization_allowance import compute_stabilization_effect
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.finite_differences import (
    DirectionalDifferences,
    compute_differences_along_directions,
    compute_variable_time_derivatives,
    find_modes_of_point,
)

Floats = npt.NDArray[np.float64]


class _OwnStateDifferences:
    """The reference's differences at the FMU's own state, measured when they are first needed.

    The FMU's derivatives are those at its own state, which may be off by as much as its trajectory: where speeds turn
    round within a step, they differ.
    """

    def __init__(self, comparison: RecordedApiCallComparison, directions: DirectionalDifferences) -> None:
        self._reference, self._directions = comparison.check_point.reference, directions
        state = directions.point.state
        self._state = comparison.own_state(directions.point.row) if state is None else state

    @cached_property
    def _own(self) -> DirectionalDifferences | None:
        """The differences; None where the reference leaves the domain of an expression."""
        try:
            return compute_differences_along_directions(self._reference, self._directions, self._state)
        except (ValidationError, ArithmeticError, ValueError):
            return None

    def change_of(self, direction: int, column: int, *, is_rate: bool) -> float:
        """Return how far a difference at the FMU's state is from that at the reference's."""
        if self._own is None:
            return math.inf
        values = [each.rates if is_rate else each.variables for each in (self._own, self._directions)]
        return float(abs(values[0][direction, column] - values[1][direction, column]))


def _provides_derivatives(planner: ApiCallPlanner) -> bool:
    """Return whether the FMU offers directional derivatives that the reference knows, too."""
    check_point, plan = planner.check_point, planner.plan
    is_known = check_point.derivatives_before_change and check_point.derivatives_after_change(plan.kind)
    return bool(planner.capabilities.directional and plan.states and plan.unknowns and is_known)


def _list_known_references(planner: ApiCallPlanner) -> list[int]:
    """Return the value references of states and inputs."""
    return planner.list_references((*planner.plan.states, *planner.plan.inputs))


def plan_directional_derivative_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls for derivatives by states and inputs, before and after a change of parameters."""
    if not _provides_derivatives(planner):
        return None
    check_point, states = planner.check_point, planner.plan.states
    unknown, known = planner.list_references(planner.plan.unknowns), _list_known_references(planner)
    directions = check_point.derivatives_before_change, check_point.derivatives_after_change(planner.plan.kind)
    before, after = (list_direction_seeds(d, check_point.reference, states) for d in directions if d)
    return (
        planner.plan_calls_to_point()
        .with_operation("directional", unknown, known, before, label="before")
        .with_operation(*planner.form_parameter_change_call())
        .with_operation("get", planner.list_references(states), label="states after")
        .with_operation("directional", unknown, known, after, label="after")
    )


def compare_directional_derivatives(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare directional derivatives with differences of the reference, before and after parameters change."""
    assert comparison.check_point.derivatives_before_change is not None
    after_change = _measure_differences_after_change(comparison, recorded["states after"])
    for directions, label, situation in (
        (comparison.check_point.derivatives_before_change, "before", ""),
        (after_change, "after", " after parameters changed"),
    ):
        _compare_partial_derivatives(comparison, directions, np.array(recorded[label]), error_table, situation)


def _measure_differences_after_change(
    comparison: RecordedApiCallComparison, states: Sequence[float]
) -> DirectionalDifferences:
    """Return the reference's differences after parameters changed; at the FMU's own state, if events differ there.

    A change of parameters is an event: an instant that falls on the point may come in it, so that a controller samples
    with the new ones, and what has drifted while it stuck is released. The check of changed parameters judges the state
    and x' after it. Elsewhere the reference's state is the better one: an FMU's drifts off its constraints.

    Args:
        comparison: Of the interface type.
        states: Of the FMU, after the change.
    """
    check_point = comparison.check_point
    reference = check_point.reference
    directions = check_point.derivatives_after_change(comparison.plan.kind)
    assert directions is not None
    if not (directions.point.after_event and is_hybrid(reference.numeric)):
        return directions
    x, places = comparison.own_state(check_point.row), comparison.state_places()
    for name, value in zip(comparison.plan.states, states, strict=True):
        if name in places:
            x[places[name]] = value
    try:
        modes, own_modes = (
            find_modes_of_point(reference, replace(directions.point, state=state)) for state in (None, x)
        )
        if check_point.row in comparison.limits.sides_near_events or not np.array_equal(modes, own_modes):
            return compute_differences_along_directions(reference, directions, x)
    except (ValidationError, ArithmeticError, ValueError):
        pass
    return directions


def plan_adjoint_derivative_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls for adjoint derivatives of each unknown, before and after a change of parameters."""
    if not (_provides_derivatives(planner) and planner.capabilities.adjoint):
        return None
    unknown, known = planner.list_references(planner.plan.unknowns), _list_known_references(planner)
    rows = np.eye(len(unknown)).tolist()
    return (
        planner.plan_calls_to_point()
        .with_operation("adjoint", unknown, known, rows, label="before")
        .with_operation(*planner.form_parameter_change_call())
        .with_operation("get", planner.list_references(planner.plan.states), label="states after")
        .with_operation("adjoint", unknown, known, rows, label="after")
    )


def compare_adjoint_derivatives(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare adjoint derivatives times directions with differences of the reference."""
    assert comparison.check_point.derivatives_before_change is not None
    after_change = _measure_differences_after_change(comparison, recorded["states after"])
    for directions, derivatives, situation in (
        (comparison.check_point.derivatives_before_change, recorded["before"], ""),
        (after_change, recorded["after"], " after parameters changed"),
    ):
        changes = np.array(list_direction_seeds(directions, comparison.check_point.reference, comparison.plan.states))
        _compare_partial_derivatives(comparison, directions, changes @ np.array(derivatives).T, error_table, situation)


def plan_parameter_derivative_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls for derivatives by the parameters that are changed during the run."""
    check_point, tuned = planner.check_point, planner.list_references(planner.plan.tuned_parameters)
    if not (_provides_derivatives(planner) and tuned and check_point.by_parameters):
        return None
    sizes = check_point.by_parameters.parameters[:, list(check_point.tuned_parameters)].tolist()
    changes = list_direction_seeds(check_point.by_parameters, check_point.reference, planner.plan.states)
    # A state that the reference does not have cannot be moved.
    rows = [[*a, *b] for a, b in zip(changes, sizes, strict=True)] if changes else sizes[:-1]
    known = [*_list_known_references(planner), *tuned] if changes else tuned
    unknown = planner.list_references(planner.plan.unknowns)
    return planner.plan_calls_to_point().with_operation("directional", unknown, known, rows, label="derivatives")


def compare_parameter_derivatives(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare derivatives by parameters with differences of the reference."""
    assert comparison.check_point.by_parameters is not None
    directions = comparison.check_point.by_parameters
    derivatives = np.array(recorded["derivatives"])
    _compare_partial_derivatives(comparison, directions, derivatives, error_table, " by parameters")


def plan_output_derivative_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls for the first derivatives of outputs by time."""
    if not planner.plan.differentiated_outputs:
        return None
    references = planner.list_references(planner.plan.differentiated_outputs)
    return planner.plan_calls_to_point().with_operation("slopes", references, 1, label="slopes")


def compare_output_derivatives(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare time derivatives of outputs with differences of the reference; skip those it does not know well."""
    reference, point = comparison.check_point.reference, comparison.check_point.point
    try:
        expected, uncertainty = compute_variable_time_derivatives(reference, point)
        own, _ = compute_variable_time_derivatives(reference, replace(point, state=comparison.own_state(point.row)))
    except (ValidationError, ArithmeticError, ValueError):
        return
    uncertainty = uncertainty + np.abs(own - expected)
    values, time = reference.trajectory.values, reference.experiment.time
    steepest = np.max(np.abs(np.diff(values, axis=0)), axis=0) / np.diff(time)[0]
    for name, derivative in zip(comparison.plan.differentiated_outputs, recorded["slopes"], strict=True):
        j = reference.trajectory.column(name)
        size = max(float(steepest[j]), abs(float(expected[j])))
        if UNCERTAINTY_FACTOR * uncertainty[j] > KNOWN_FRACTION * size:
            error_table.left_out_count += 1
            continue
        noise = NOISE_FRACTION * float(comparison.magnitudes()[j]) / float(time[1])
        error_table.add(
            abs(derivative - expected[j]),
            comparison.agreement * size + UNCERTAINTY_FACTOR * float(uncertainty[j]) + noise,
            name,
        )


def _compare_partial_derivatives(
    comparison: RecordedApiCallComparison,
    directions: DirectionalDifferences,
    derivatives: Floats,
    error_table: BoundedDifferences,
    situation: str,
) -> None:
    """Compare ``derivatives``: a row per direction, a column per unknown; drift stabilization is allowed for."""
    reference, point, places = comparison.check_point.reference, directions.point, comparison.state_places()
    x, attractor_rate = comparison.own_state(point.row), choose_stabilization_rate(comparison.definition)
    largest, stabilization_effect = (
        comparison.magnitudes(),
        compute_stabilization_effect(reference, directions, point.row, x, point.parameters, attractor_rate),
    )
    own = _OwnStateDifferences(comparison, directions)
    rate_of = dict(zip(comparison.plan.rates, comparison.plan.states, strict=True))
    for column, name in enumerate(comparison.plan.unknowns):
        is_rate = name in rate_of
        if is_rate and rate_of[name] not in places:
            continue
        j = places[rate_of[name]] if is_rate else reference.trajectory.column(name)
        scale = float(comparison.rates[j] if is_rate else largest[j])
        expected = (directions.rates if is_rate else directions.variables)[:, j]
        uncertainty = (directions.rate_errors if is_rate else directions.variable_errors)[:, j]
        size = float(np.max(np.abs(expected), initial=0.0))
        for d in range(len(derivatives)):
            error = abs(derivatives[d, column] - expected[d])
            allowed = comparison.agreement * size + NOISE_FRACTION * scale
            allowed += float(stabilization_effect[d, j]) if is_rate else 0.0
            spread = UNCERTAINTY_FACTOR * uncertainty[d]
            if error > allowed + spread:
                spread += UNCERTAINTY_FACTOR * own.change_of(d, j, is_rate=is_rate)
            if spread > KNOWN_FRACTION * max(size, NOISE_FRACTION * scale):
                error_table.left_out_count += 1
                continue
            error_table.add(error, float(allowed + spread), f"{name} in direction {d + 1}{situation}")
