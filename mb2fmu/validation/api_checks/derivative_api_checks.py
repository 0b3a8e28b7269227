"""API checks of derivatives: directional, adjoint, by parameters, and of outputs in time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.model.scales.characteristic_units import choose_stabilization_rate
from mb2fmu.validation.api_checks.api_call_plan import (
    ApiCallPlanner,
    list_state_and_input_changes,
)
from mb2fmu.validation.api_checks.api_call_sequence import ApiCallSequence
from mb2fmu.validation.api_checks.api_check_comparison import (
    KNOWN_FRACTION,
    NOISE_FRACTION,
    UNCERTAINTY_FACTOR,
    ApiCheckComparison,
    RecordedValues,
)
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.bounds.stabilization_allowance import compute_stabilization_effect
from mb2fmu.validation.reference.finite_differences import DirectionalDifferences, compute_variable_time_derivatives

Floats = npt.NDArray[np.float64]


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
    before, after = (list_state_and_input_changes(d, check_point.reference, states) for d in directions if d)
    return (
        planner.plan_calls_to_point()
        .with_operation("directional", unknown, known, before, label="before")
        .with_operation(*planner.form_parameter_change_call())
        .with_operation("directional", unknown, known, after, label="after")
    )


def compare_directional_derivatives(
    comparison: ApiCheckComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare directional derivatives with differences of the reference, before and after parameters change."""
    assert comparison.check_point.derivatives_before_change is not None
    after_change = comparison.check_point.derivatives_after_change(comparison.plan.kind)
    assert after_change is not None
    parameters_before, parameters_after = comparison.run_parameters, comparison.check_point.changed_parameters
    _compare_partial_derivatives(
        comparison,
        comparison.check_point.derivatives_before_change,
        np.array(recorded["before"]),
        error_table,
        "",
        parameters_before,
    )
    _compare_partial_derivatives(
        comparison,
        after_change,
        np.array(recorded["after"]),
        error_table,
        " after parameters changed",
        parameters_after,
    )


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
        .with_operation("adjoint", unknown, known, rows, label="after")
    )


def compare_adjoint_derivatives(
    comparison: ApiCheckComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare adjoint derivatives times directions with differences of the reference."""
    assert comparison.check_point.derivatives_before_change is not None
    after_change = comparison.check_point.derivatives_after_change(comparison.plan.kind)
    assert after_change is not None
    for directions, derivatives, situation, parameters in (
        (comparison.check_point.derivatives_before_change, recorded["before"], "", comparison.run_parameters),
        (after_change, recorded["after"], " after parameters changed", comparison.check_point.changed_parameters),
    ):
        changes = np.array(
            list_state_and_input_changes(directions, comparison.check_point.reference, comparison.plan.states)
        )
        _compare_partial_derivatives(
            comparison, directions, changes @ np.array(derivatives).T, error_table, situation, parameters
        )


def plan_parameter_derivative_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls for derivatives by the parameters that are changed during the run."""
    check_point, tuned = planner.check_point, planner.list_references(planner.plan.tuned_parameters)
    if not (_provides_derivatives(planner) and tuned and check_point.by_parameters):
        return None
    sizes = check_point.by_parameters.parameters[:, list(check_point.tuned_parameters)].tolist()
    changes = list_state_and_input_changes(check_point.by_parameters, check_point.reference, planner.plan.states)
    # A state that the reference does not have cannot be moved.
    rows = [[*a, *b] for a, b in zip(changes, sizes, strict=True)] if changes else sizes[:-1]
    known = [*_list_known_references(planner), *tuned] if changes else tuned
    unknown = planner.list_references(planner.plan.unknowns)
    return planner.plan_calls_to_point().with_operation("directional", unknown, known, rows, label="derivatives")


def compare_parameter_derivatives(
    comparison: ApiCheckComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare derivatives by parameters with differences of the reference."""
    assert comparison.check_point.by_parameters is not None
    directions = comparison.check_point.by_parameters
    _compare_partial_derivatives(
        comparison,
        directions,
        np.array(recorded["derivatives"]),
        error_table,
        " by parameters",
        comparison.run_parameters,
    )


def plan_output_derivative_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls for the first derivatives of outputs by time."""
    if not planner.plan.differentiated_outputs:
        return None
    references = planner.list_references(planner.plan.differentiated_outputs)
    return planner.plan_calls_to_point().with_operation("slopes", references, 1, label="slopes")


def compare_output_derivatives(
    comparison: ApiCheckComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare time derivatives of outputs with differences of the reference; skip those it does not know well."""
    reference = comparison.check_point.reference
    try:
        expected, uncertainty = compute_variable_time_derivatives(reference, comparison.check_point.point)
    except (ValidationError, ArithmeticError, ValueError):
        return
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
    comparison: ApiCheckComparison,
    directions: DirectionalDifferences,
    derivatives: Floats,
    error_table: BoundedDifferences,
    situation: str,
    parameters: Sequence[float],
) -> None:
    """Compare ``derivatives``: a row per direction, a column per unknown; drift stabilization is allowed for.

    ``parameters``: free ones at that point.
    """
    reference, places = comparison.check_point.reference, comparison.state_places()
    names, row = comparison.simulation.names, comparison.check_point.row
    columns = [names.index(reference.trajectory.names[c]) for c in reference.state_columns]
    x, attractor_rate = comparison.simulation.values[row, columns], choose_stabilization_rate(comparison.definition)
    largest, stabilization_effect = (
        comparison.magnitudes(),
        compute_stabilization_effect(reference, directions, row, x, parameters, attractor_rate),
    )
    rate_of = dict(zip(comparison.plan.rates, comparison.plan.states, strict=True))
    for column, name in enumerate(comparison.plan.unknowns):
        if name in rate_of:
            if rate_of[name] not in places:
                continue
            j = places[rate_of[name]]
            expected, uncertainty, scale = (
                directions.rates[:, j],
                directions.rate_errors[:, j],
                float(comparison.rates[j]),
            )
        else:
            j = reference.trajectory.column(name)
            expected, uncertainty, scale = (
                directions.variables[:, j],
                directions.variable_errors[:, j],
                float(largest[j]),
            )
        size = float(np.max(np.abs(expected), initial=0.0))
        for d in range(len(derivatives)):
            if UNCERTAINTY_FACTOR * uncertainty[d] > KNOWN_FRACTION * max(size, NOISE_FRACTION * scale):
                error_table.left_out_count += 1
                continue
            allowed = comparison.agreement * size + UNCERTAINTY_FACTOR * uncertainty[d] + NOISE_FRACTION * scale
            allowed += float(stabilization_effect[d, j]) if name in rate_of else 0.0
            error_table.add(
                abs(derivatives[d, column] - expected[d]), float(allowed), f"{name} in direction {d + 1}{situation}"
            )
