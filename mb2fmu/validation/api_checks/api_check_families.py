"""The families of API checks: of each its calls and their comparison in one record."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.validation.api_checks.api_call_plan import (
    ApiCallPlan,
    ApiCallPlanner,
    ApiCheckPoint,
    make_api_check_planner,
)
from mb2fmu.validation.api_checks.constraint_stabilization_check import (
    CONSTRAINT_STABILIZATION,
    compare_stabilization,
    plan_stabilization_calls,
)
from mb2fmu.validation.api_checks.derivative_api_checks import (
    compare_adjoint_derivatives,
    compare_directional_derivatives,
    compare_output_derivatives,
    compare_parameter_derivatives,
    plan_adjoint_derivative_calls,
    plan_directional_derivative_calls,
    plan_output_derivative_calls,
    plan_parameter_derivative_calls,
)
from mb2fmu.validation.api_checks.extreme_state_checks import (
    compare_values_at_extreme_states,
    make_extreme_state_points_operation,
)
from mb2fmu.validation.api_checks.labelled_api_calls import ApiCallSequence
from mb2fmu.validation.api_checks.recorded_api_call_comparison import RecordedApiCallComparison, RecordedValues
from mb2fmu.validation.api_checks.unusual_step_checks import UnusualStepComparison, UnusualStepPlanner
from mb2fmu.validation.api_checks.value_api_checks import (
    compare_api_check_values,
    compare_parameter_tuning,
    plan_parameter_tuning_calls,
    plan_value_api_calls,
)
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.comparison.motion_comparison import ErrorBounds
from mb2fmu.validation.experiment.perturbed_experiment import list_settable_fmu_variables
from mb2fmu.validation.reference.variable_scales import enlarge_sizes_of_zeros
from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription, InterfaceType
from mb2fmu.validation.runs.fmu_run import FmuProcessResult
from mb2fmu.validation.validation_result import ApiCallFamilyResult

_NOT_OFFERED = "the FMU does not offer it"


@dataclass(frozen=True, slots=True)
class ApiCheckFamily:
    """One family of calls and its comparison.

    Attributes:
        name: In the report; its recorded values have this name, too.
        formula: What is compared with what, for the report.
        plan: Returns its calls; None where the FMU or the reference does not offer them.
        compare: Adds the comparisons to a table.
        reported_if_absent: Whether the report says that the FMU does not offer it.
        kind: The only interface type that has it; empty: both have.
    """

    name: str
    formula: str
    plan: Callable[[ApiCallPlanner], ApiCallSequence | None]
    compare: Callable[[RecordedApiCallComparison, RecordedValues, BoundedDifferences], None]
    reported_if_absent: bool = True
    kind: str = ""


def _plan_extreme_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the call that evaluates the FMU at points beyond the experiments."""
    points, variables = planner.check_point.extreme_points, planner.description.variables
    if not points:
        return None
    call = make_extreme_state_points_operation(
        points,
        planner.check_point.reference,
        {name: variable.reference for name, variable in variables.items()},
        list_settable_fmu_variables(planner.description),
        [p.name for p in planner.definition.parameters if not p.calculated],
        planner.list_references(planner.plan.real_variables),
    )
    return ApiCallSequence().with_operation(*call, label="points")


def _compare_extremes(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare x' and outputs at points beyond the experiments with the reference's at the FMU's own state."""
    reference, names = comparison.check_point.reference, comparison.plan.real_variables
    values = [each if isinstance(each, str) else dict(zip(names, each, strict=True)) for each in recorded["points"]]
    outputs = [k for k, v in enumerate(reference.variables) if v.kind == "output"]
    largest = np.max(np.abs(reference.trajectory.values), axis=0)[outputs]
    units = [reference.variables[k].unit for k in outputs]
    sizes = enlarge_sizes_of_zeros(comparison.magnitudes()[outputs], largest, units, reference.work_scale)
    sizes = np.concatenate([comparison.rates, sizes])
    rates = dict(zip(comparison.plan.states, comparison.plan.rates, strict=True))
    compare_values_at_extreme_states(
        comparison.check_point.extreme_points, values, reference, rates, sizes, error_table
    )


def _make_step_planner(planner: ApiCallPlanner) -> UnusualStepPlanner | None:
    """Return the planner of tiny and long steps; None if there are none, or the FMU allows no other step size."""
    step_start, description, kind = planner.check_point.steps, planner.description, planner.plan.kind
    if step_start is None or (kind == "CoSimulation" and not description.any_step):
        return None
    settable = list_settable_fmu_variables(description)
    return UnusualStepPlanner(step_start, planner.definition, description, settable, kind)


def _plan_step_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls for tiny and long steps from another start time."""
    steps = _make_step_planner(planner)
    return steps.plan_steps() if steps else None


def _compare_steps(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare tiny and long steps from another start time with the reference."""
    assert comparison.check_point.steps is not None
    UnusualStepComparison(comparison.check_point.steps, error_table).compare_steps(recorded)


def _plan_solver_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls for a step by each solver."""
    steps = _make_step_planner(planner)
    return steps.plan_solvers() if steps else None


def _compare_solvers(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare a step by each solver that the FMU offers with the reference."""
    assert comparison.check_point.steps is not None
    UnusualStepComparison(comparison.check_point.steps, error_table).compare_solvers(recorded)


def _plan_ramp_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls for a step along ramps of the inputs."""
    steps = _make_step_planner(planner)
    return steps.plan_ramps() if steps else None


def _compare_ramps(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare a step along ramps of the inputs with the reference, and what was saved with that."""
    assert comparison.check_point.steps is not None
    UnusualStepComparison(comparison.check_point.steps, error_table).compare_ramps(recorded)


DIRECTIONAL = ApiCheckFamily(
    "directional derivatives", "against differences of the reference's x' and outputs",
    plan_directional_derivative_calls, compare_directional_derivatives,
)  # fmt: skip
EXTREMES = ApiCheckFamily(
    "values beyond the experiments", "x' and outputs against the reference's there",
    _plan_extreme_calls, _compare_extremes, reported_if_absent=False,
)  # fmt: skip
STEPS = ApiCheckFamily(
    "other start times and step sizes", "states behind tiny and long steps against the reference",
    _plan_step_calls, _compare_steps, reported_if_absent=False,
)  # fmt: skip
SOLVERS = ApiCheckFamily(
    "each solver", "states behind a step against the reference",
    _plan_solver_calls, _compare_solvers, reported_if_absent=False,
)  # fmt: skip
_API_CHECKS = (
    ApiCheckFamily("every variable read and set", "bits of what was set and recorded; der(x) against x'",
             plan_value_api_calls, compare_api_check_values),
    ApiCheckFamily("parameters changed during the run", "x', outputs and steps from there against the reference",
             plan_parameter_tuning_calls, compare_parameter_tuning),
    DIRECTIONAL,
    ApiCheckFamily("adjoint derivatives", "times directions, against the same differences",
             plan_adjoint_derivative_calls, compare_adjoint_derivatives, reported_if_absent=False),
    ApiCheckFamily("derivatives by parameters", "against differences of the reference by parameters",
             plan_parameter_derivative_calls, compare_parameter_derivatives, reported_if_absent=False),
    EXTREMES,
    ApiCheckFamily(CONSTRAINT_STABILIZATION, "the point that x' returns to lies on the constraints",
             plan_stabilization_calls, compare_stabilization, reported_if_absent=False),
    STEPS,
    SOLVERS,
    ApiCheckFamily("ramps of inputs", "states behind a step against the reference; saved ones the same bits",
             _plan_ramp_calls, _compare_ramps, reported_if_absent=False),
    ApiCheckFamily("derivatives of outputs in time", "against differences along the reference",
             plan_output_derivative_calls, compare_output_derivatives, kind="CoSimulation"),
)  # fmt: skip


def plan_api_calls(
    check_point: ApiCheckPoint, definition: DeclaredModelContent, description: FmuDescription, kind: InterfaceType
) -> ApiCallPlan:
    """Return the calls of all families for one interface type of an FMU."""
    planner = make_api_check_planner(check_point, definition, description, kind)
    sequences = {check.name: check.plan(planner) for check in _API_CHECKS}
    return replace(planner.plan, sequences={name: calls for name, calls in sequences.items() if calls is not None})


def compare_api_checks(
    definition: DeclaredModelContent,
    check_point: ApiCheckPoint,
    plan: ApiCallPlan,
    fmu_result: FmuProcessResult,
    limits: ErrorBounds,
) -> tuple[ApiCallFamilyResult, ...]:
    """Return one result per family of calls; one that was not planned is unjudged with its reason, or left out.

    Args:
        definition: The checked model.
        check_point: Where the calls were made.
        plan: The requested calls.
        fmu_result: Results of the FMU: the last of its experiments is the perturbed one.
        limits: Bounds of the perturbed experiment.
    """
    comparison = RecordedApiCallComparison(definition, check_point, plan, limits, fmu_result.simulations[-1])
    return tuple(_iterate_results(comparison, fmu_result.recorded_values))


def _iterate_results(
    comparison: RecordedApiCallComparison, recorded_values: Mapping[str, list[Any]]
) -> Iterator[ApiCallFamilyResult]:
    """Compare each family of calls."""
    for check in _API_CHECKS:
        if check.name not in comparison.plan.sequences:
            reason = _explain_missing_calls(check, comparison)
            if reason:
                yield _form_result(check, comparison.plan.kind, BoundedDifferences(), reason)
            continue
        sequence, values = comparison.plan.sequences[check.name], recorded_values[check.name]
        table, failure = BoundedDifferences(), values[-1]["failed"] if values and isinstance(values[-1], dict) else ""
        if failure:
            table.add(np.inf, 0.0, f"{sequence.operations[len(values) - 1][0]}: {failure}")
        else:
            check.compare(comparison, sequence.label_recorded_values(values), table)
        unjudged = "" if table.count else "there is nothing to compare"
        yield _form_result(check, comparison.plan.kind, table, unjudged)


def _explain_missing_calls(check: ApiCheckFamily, comparison: RecordedApiCallComparison) -> str:
    """Return why calls were not made; empty where they do not exist for this interface type or version."""
    if not check.reported_if_absent or (check.kind and check.kind != comparison.plan.kind):
        return ""
    if check is DIRECTIONAL and comparison.check_point.derivatives_before_change is None:
        return "the reference has no derivatives there"
    return _NOT_OFFERED


def _form_result(
    check: ApiCheckFamily, kind: InterfaceType, error_table: BoundedDifferences, unjudged: str
) -> ApiCallFamilyResult:
    """Return the verdict of one family from its largest ratio of error to bound; above 1 it has failed."""
    reason = unjudged
    if not unjudged and error_table.ratio > 1:
        reason = f"{error_table.worst_place}: off by {error_table.value:.3g}, bound {error_table.bound:.3g}"
    return ApiCallFamilyResult(
        name=check.name,
        kind=kind,
        formula=check.formula,
        value=error_table.value,
        bound=error_table.bound,
        ratio=error_table.ratio,
        where=error_table.worst_place,
        count=error_table.count,
        verdict="unjudged" if unjudged else "failed" if error_table.ratio > 1 else "passed",
        reason=reason,
        may_be_integration_error=not unjudged and error_table.ratio > 1 >= error_table.instant_ratio,
    )
