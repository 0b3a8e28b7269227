"""API checks of values: every variable read and set, and the motion after parameters were changed during the run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from mb2fmu.errors import ValidationError
from mb2fmu.validation.api_checks.api_call_plan import PERTURBED_EXPERIMENT_INDEX, ApiCallPlanner
from mb2fmu.validation.api_checks.labelled_api_calls import ApiCallSequence
from mb2fmu.validation.api_checks.recorded_api_call_comparison import RecordedApiCallComparison, RecordedValues
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.bounds.event_time_tolerances import DUE_TIME_FRACTION
from mb2fmu.validation.bounds.one_step_flow import ExperimentCommunicationStep, OneStepFlow, start_flow_in_modes
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.variable_scales import ERROR_BOUND_FACTOR, MAX_INFORMATIVE_FRACTION

if TYPE_CHECKING:
    from mb2fmu.validation.modes.mode_equations import SwitchModes


def plan_value_api_calls(planner: ApiCallPlanner) -> ApiCallSequence:
    """Return the calls that set discrete parameters, and read every variable at start and end."""
    plan, real_references = planner.plan, planner.list_references(planner.plan.real_variables)
    calls = ApiCallSequence()
    for kind, names in plan.discrete_parameters.items():
        calls = calls.with_operation("put", kind, planner.list_references(names), plan.discrete_start_values[kind])
    calls = (
        calls.with_operation("begin", PERTURBED_EXPERIMENT_INDEX)
        .with_operation("get", real_references, label="start")
        .with_operation("steps", PERTURBED_EXPERIMENT_INDEX, 0, planner.check_point.row, label="rows")
        .with_operation("get", real_references, label="end")
    )
    if plan.kind == "ModelExchange" and plan.nominals:
        calls = calls.with_operation("nominals", label="nominals")
    for kind, names in plan.discrete_parameters.items():
        calls = calls.with_operation("look", kind, planner.list_references(names), label=kind)
    return calls


def compare_api_check_values(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare all variables at start and end: settings and records to the bit, the others within their bounds."""
    run, row = comparison.check_point.reference.experiment, comparison.check_point.row
    time, names = run.time, comparison.simulation.names
    error_table.add_identical_rows(
        recorded["rows"], comparison.simulation.values[1 : row + 1], names, time[1 : row + 1]
    )
    for recorded_reals, point in ((recorded["start"], 0), (recorded["end"], row)):
        values = dict(zip(comparison.plan.real_variables, recorded_reals, strict=True))
        comparison.compare_parameters_and_inputs(values, point, run.parameters, error_table)
        for name, value in zip(names, comparison.simulation.values[point].tolist(), strict=True):
            error_table.add_identical(values[name], value, f"{name} at {time[point]:.6g} s")
        comparison.compare_rates_and_outputs(
            values, (point, comparison.find_modes(point)), run.parameters, error_table, f"at {time[point]:.6g} s"
        )
    for state, nominal in zip(comparison.plan.states, recorded.get("nominals", ()), strict=False):
        declared = comparison.plan.nominals.get(state, nominal)
        error_table.add(abs(nominal - declared), 1e-9 * declared, f"nominal value of {state}")
    for kind, discrete in comparison.plan.discrete_parameters.items():
        for name, recorded_value, set_value in zip(
            discrete, recorded[kind], comparison.plan.discrete_start_values[kind], strict=True
        ):
            error_table.add_identical(float(recorded_value), float(set_value), name)


def plan_parameter_tuning_calls(planner: ApiCallPlanner) -> ApiCallSequence:
    """Return the calls that change parameters during the run and step on."""
    check_point, real_references = planner.check_point, planner.list_references(planner.plan.real_variables)
    last = check_point.row + check_point.steps_after
    return (
        planner.plan_calls_to_point()
        .with_operation(*planner.form_parameter_change_call())
        .with_operation("get", planner.list_references(planner.plan.tuned_parameters), label="parameters")
        .with_operation("get", real_references, label="after the change")
        .with_operation("steps", PERTURBED_EXPERIMENT_INDEX, check_point.row, last, label="rows")
        .with_operation("get", real_references, label="end")
    )


def compare_parameter_tuning(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare x', outputs and later steps after parameters changed during the run with a reference of the new."""
    check_point = comparison.check_point
    expected = [check_point.changed_parameters[i] for i in check_point.tuned_parameters]
    for name, recorded_value, set_value in zip(
        comparison.plan.tuned_parameters, recorded["parameters"], expected, strict=True
    ):
        error_table.add_identical(recorded_value, set_value, name)
    if not check_point.tuned_parameters:
        return
    values = dict(zip(comparison.plan.real_variables, recorded["after the change"], strict=True))
    start_modes = comparison.modes.get(check_point.row)
    if comparison.plan.kind == "ModelExchange":
        start_modes = _compare_states_after_change(comparison, values, error_table)
        parameters_before = check_point.reference.experiment.parameters
        point_and_modes = (check_point.row, start_modes)
        comparison.compare_rates_and_outputs(
            values, point_and_modes, check_point.changed_parameters, error_table, "after the change", parameters_before
        )
    modes = _compare_one_step_states(comparison, values, recorded["rows"], start_modes, error_table)
    end_values, end_point = (
        dict(zip(comparison.plan.real_variables, recorded["end"], strict=True)),
        check_point.row + check_point.steps_after,
    )
    comparison.compare_parameters_and_inputs(end_values, end_point, check_point.changed_parameters, error_table)
    comparison.compare_rates_and_outputs(
        end_values, (end_point, modes), check_point.changed_parameters, error_table, "after the change"
    )


def _compare_states_after_change(
    comparison: RecordedApiCallComparison, values: Mapping[str, float], error_table: BoundedDifferences
) -> SwitchModes | None:
    """Compare states after a change of parameters with the reference's event from the FMU's states before.

    An instant that falls on the point may come in that event, with the new parameters, or behind it.

    Returns:
        Modes in which the motion goes on, where they do not follow from the state: near an event.
    """
    check_point = comparison.check_point
    reference, run = check_point.reference, check_point.reference.experiment
    numeric, names = reference.numeric, comparison.simulation.names
    states = [reference.trajectory.names[c] for c in reference.state_columns]
    x = np.array([comparison.simulation.values[check_point.row, names.index(name)] for name in states])
    t, r = float(run.time[check_point.row]), run.inputs_at(check_point.row).tolist()
    modes_after = comparison.modes.get(check_point.row)
    prepared_before, prepared_after = (
        numeric.prepare(run.parameters),
        numeric.prepare(list(check_point.changed_parameters)),
    )
    try:
        with start_flow_in_modes(numeric, modes_after):
            expected = numeric.state_after_parameter_change(t, x, r, prepared_before, prepared_after)
            if check_point.row in comparison.limits.sides_near_events and is_hybrid(numeric):
                modes = numeric.find_modes(t, x, r, prepared_before)
                state_after_due_event = numeric.settle_modes(
                    t + DUE_TIME_FRACTION * float(run.time[-1]), x, r, prepared_after, modes, ()
                )[0]
                fmu_state = np.array([values[name] for name in states])
                scales = reference.state_scales
                if np.max(np.abs(fmu_state - state_after_due_event) / scales) < np.max(
                    np.abs(fmu_state - expected) / scales
                ):
                    expected, modes_after = state_after_due_event, modes
    except (ValidationError, ArithmeticError, ValueError):
        return modes_after
    for name, value, scale in zip(states, expected.tolist(), reference.state_scales.tolist(), strict=True):
        allowed = ERROR_BOUND_FACTOR * run.tolerance * max(abs(value), scale)
        error_table.add(abs(values[name] - value), allowed, f"{name} as parameters change")
    return modes_after


def _compare_one_step_states(
    comparison: RecordedApiCallComparison,
    values: Mapping[str, float],
    rows: Sequence[Sequence[float]],
    modes: SwitchModes | None,
    error_table: BoundedDifferences,
) -> SwitchModes | None:
    """Compare states step by step with the reference's, from the FMU's own, with the changed parameters.

    Co-Simulation reconsiders modes at the beginning of the first step, Model Exchange has done so in its event:
    a contact whose gap the new parameters lift opens there.

    ``modes``: in which the first step begins; None: those of the state.

    Returns:
        Modes at the end, where they do not follow from the state: near an event.
    """
    check_point = comparison.check_point
    reference, names = check_point.reference, comparison.simulation.names
    columns = [names.index(reference.trajectory.names[c]) for c in reference.state_columns]
    states = [[values[reference.trajectory.names[c]] for c in reference.state_columns]]
    states += [[row[c] for c in columns] for row in rows]
    run, flow = reference.experiment, OneStepFlow(reference, check_point.changed_parameters)
    parameters_before = None if comparison.plan.kind == "ModelExchange" else run.parameters
    for k, (state_before, state_after) in enumerate(pairwise(states), check_point.row):
        try:
            fmu_state = np.array(state_after) if k + 1 in comparison.limits.sides_near_events else None
            step = ExperimentCommunicationStep(
                k,
                modes,
                fmu_state,
                tuple(parameters_before) if parameters_before is not None and k == check_point.row else None,
            )
            step_end = flow.compute_step_end(step, np.array(state_before))
        except (ValidationError, ArithmeticError, ValueError):
            return None
        modes = step_end.modes if step.fmu_state_near_event is not None else None
        step_size = np.maximum(np.abs(step_end.x - state_before), reference.state_scales)
        allowed, error = ERROR_BOUND_FACTOR * run.tolerance * step_size, np.abs(np.array(state_after) - step_end.x)
        if np.any(error > allowed):
            delay_shift = flow.compute_delay_shift(step, np.array(state_before), step_end, comparison.plan.kind)
            cap = MAX_INFORMATIVE_FRACTION * step_size
            same_event_error, other_event_error = flow.compute_error_after_events(
                step, np.array(state_before), step_end, np.minimum(allowed, cap)
            )
            allowed = np.minimum(allowed + delay_shift + same_event_error, cap) + other_event_error
        for j, c in enumerate(reference.state_columns):
            place = f"step of {reference.trajectory.names[c]} from {run.time[k]:.6g} s"
            error_table.add(float(error[j]), float(allowed[j]), place, is_integrated=True)
    return modes
