"""What draws states back to the constraints: x' off them, with two rates of stabilization.

No reference can judge that, since its states are on the constraints. But with rates α and β

    x'(α) - x'(β) = -(α - β) (x - P(x)),    so P(x) = x + (x'(α) - x'(β)) / (α - β)

where x is drawn to a point P(x) of the constraints (treatment ``attractor``), and P(x) has to lie on them. By
Baumgarte's terms (treatment ``multipliers``; J. Baumgarte, Stabilization of constraints and integrals of motion in
dynamical systems, Computer Methods in Applied Mechanics and Engineering 1 (1972), 1-16)

    A u' + γ + 2 α ρ + α² φ = 0, ρ = A u + b,    so ρ(u + (u'(α) - u'(β)) / (2 (α - β))) = -(α + β) φ / 2.

Which of both an FMU does is for its exporter to choose: it has to do one. A wrong sign drives states away: by round-off
only in a short run, but more with each second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.validation.api_checks.api_call_plan import ApiCallPlanner, ApiCheckPoint
from mb2fmu.validation.api_checks.extreme_state_checks import form_point_experiment
from mb2fmu.validation.api_checks.labelled_api_calls import ApiCallSequence
from mb2fmu.validation.api_checks.recorded_api_call_comparison import RecordedApiCallComparison, RecordedValues
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.experiment.perturbed_experiment import compute_constraint_row_scales, list_settable_fmu_variables
from mb2fmu.validation.validation_result import ApiCallFamilyResult, ExercisedQuantityResult

Floats = npt.NDArray[np.float64]

CONSTRAINT_STABILIZATION = "constraint stabilization"
"""Name of the family of calls."""
_DISPLACEMENT_FRACTION = 1e-3
"""Of each state's scale: the way off the constraints."""
_RESIDUAL_FRACTION = 1e-3
"""What may be left of residuals as large as such a way makes them."""
_RANDOM_SEED = 5


def plan_stabilization_calls(planner: ApiCallPlanner) -> ApiCallSequence | None:
    """Return the calls that evaluate x' off the constraints, once with each rate; None where nothing draws back."""
    plan, check_point = planner.plan, planner.check_point
    references = {name: variable.reference for name, variable in planner.description.variables.items()}
    reference = check_point.reference
    run, settable = reference.experiment, list_settable_fmu_variables(planner.description)
    rate_index = _find_rate_index(check_point)
    free = [p.name for p in planner.definition.parameters if not p.calculated]
    places = [reference.trajectory.names[c] for c in reference.state_columns]
    if plan.kind != "ModelExchange" or rate_index is None or set(plan.states) != set(places):
        return None
    if free[rate_index] not in settable:
        return None
    time = float(run.time[check_point.row])
    x = dict(zip(places, reference.states[check_point.row].tolist(), strict=True))
    displaced = dict(zip(places, _displace_state(check_point).tolist(), strict=True))
    calls = ApiCallSequence()
    for label, rate in zip(("first", "second"), _choose_rates(check_point, rate_index), strict=True):
        starts = dict(zip(free, run.parameters, strict=True)) | x | {free[rate_index]: rate}
        starts = {name: value for name, value in starts.items() if name in settable}
        point = form_point_experiment(run, time, starts, references)
        inputs, states = run.inputs_at(check_point.row).tolist(), [displaced[name] for name in plan.states]
        evaluation = ["derivatives", point, inputs, states, planner.list_references(plan.rates), []]
        calls = calls.with_operation("new") if calls.operations else calls
        calls = calls.with_operation("attempt", [evaluation], label=label)
    return calls


def compare_stabilization(
    comparison: RecordedApiCallComparison, recorded: RecordedValues, error_table: BoundedDifferences
) -> None:
    """Compare residuals of the point that x' returns to with zero; an FMU may refuse states off the constraints."""
    check_point, plan = comparison.check_point, comparison.plan
    reference, rate_index = check_point.reference, _find_rate_index(check_point)
    assert rate_index is not None
    if any(isinstance(recorded[label], str) for label in ("first", "second")):
        error_table.left_out_count += 1
        return
    slopes = [dict(zip(plan.states, recorded[label][0][0], strict=True)) for label in ("first", "second")]
    names = [reference.trajectory.names[c] for c in reference.state_columns]
    first, second = _choose_rates(check_point, rate_index)
    change = np.array([slopes[0][name] - slopes[1][name] for name in names]) / (first - second)
    if not np.all(np.isfinite(change)):  # an expression of the model may have no value off the constraints
        error_table.left_out_count += 1
        return
    allowed = _compute_bounds(check_point)
    both_residuals = _compute_residuals(check_point, change, (first + second) / 2.0)
    residuals = min(both_residuals, key=lambda residuals: float(np.max(residuals / allowed)))
    for k, (residual, bound) in enumerate(zip(residuals.tolist(), allowed.tolist(), strict=True)):
        error_table.add(residual, bound, f"row {k + 1} of the constraints that x' returns to")


def count_stabilization_rate_as_exercised(
    quantities: Sequence[ExercisedQuantityResult],
    definition: DeclaredModelContent,
    check_point: ApiCheckPoint | None,
    api_checks: Sequence[ApiCallFamilyResult],
) -> tuple[ExercisedQuantityResult, ...]:
    """Return the quantities, the rate of stabilization exercised if these calls were judged: no experiment shows it."""
    rate_index = _find_rate_index(check_point) if check_point else None
    judged = any(check.name == CONSTRAINT_STABILIZATION and check.verdict != "unjudged" for check in api_checks)
    if check_point is None or rate_index is None or not judged:
        return tuple(quantities)
    name = [p.name for p in definition.parameters if not p.calculated][rate_index]
    change = np.zeros(len(check_point.reference.state_scales))  # of x', by an FMU that ignores it
    ratio = float(np.max(_compute_residuals(check_point, change, 0.0)[0] / _compute_bounds(check_point)))
    most = "residuals of the constraints"
    return tuple(replace(item, ratio=ratio, most=most, reason="") if item.name == name else item for item in quantities)


def _compute_bounds(check_point: ApiCheckPoint) -> Floats:
    """Return what may be left of the residual of each row of the constraints."""
    return _RESIDUAL_FRACTION * _DISPLACEMENT_FRACTION * compute_constraint_row_scales(check_point.reference)


def _find_rate_index(check_point: ApiCheckPoint) -> int | None:
    """Return the place of the stabilization rate among the free parameters; None where there is none to change.

    Nor where dependent speeds are no states, or rows follow from others: off the constraints these contradict.
    """
    numeric = check_point.reference.numeric
    equations = numeric.equations
    if numeric.n_x != numeric.n_q + numeric.n_u + numeric.n_z:
        return None
    rate = equations.baumgarte[0] if equations.baumgarte else equations.attractor_rate
    return None if rate not in equations.p or equations.redundant_rows else equations.p.index(rate)


def _choose_rates(check_point: ApiCheckPoint, rate_index: int) -> tuple[float, float]:
    """Return the experiment's rate and another, 1/s."""
    rate = check_point.reference.experiment.parameters[rate_index]
    return rate, 2.0 * rate or 1.0


def _displace_state(check_point: ApiCheckPoint) -> Floats:
    """Return the state x off the constraints."""
    reference = check_point.reference
    directions = np.random.default_rng(_RANDOM_SEED).uniform(0.5, 1.0, len(reference.state_scales))
    directions *= np.where(np.arange(len(directions)) % 2, -1.0, 1.0)
    return np.asarray(reference.states[check_point.row] + _DISPLACEMENT_FRACTION * directions * reference.state_scales)


def _compute_residuals(check_point: ApiCheckPoint, change: Floats, mean_rate: float) -> tuple[Floats, Floats]:
    """Return the magnitude of what has to be zero in each row of the constraints, by ``attractor`` and by Baumgarte.

    Args:
        check_point: Where x' was evaluated.
        change: (x'(α) - x'(β)) / (α - β), shape (n_x,).
        mean_rate: (α + β) / 2, 1/s.
    """
    reference = check_point.reference
    numeric, run = reference.numeric, reference.experiment
    prepared, inputs = numeric.prepare(run.parameters), run.inputs_at(check_point.row)
    x, speeds = _displace_state(check_point), slice(numeric.n_q, numeric.n_q + numeric.n_u)
    pushed = x.copy()
    pushed[speeds] += change[speeds] / 2.0
    time = [float(run.time[check_point.row])]
    at_nearest, of_pushed = numeric.residuals(
        np.array([np.concatenate([time, state, inputs]) for state in (x + change, pushed)]), prepared
    )
    n_phi, holonomic = len(numeric.equations.position_rows), len(numeric.equations.holonomic)
    of_pushed[n_phi : n_phi + holonomic] += mean_rate * of_pushed[:holonomic]
    of_pushed[:n_phi] = 0.0
    at_nearest[holonomic:n_phi] = 0.0  # what q' = K u + k0 keeps by itself is not stabilized
    return np.abs(at_nearest), np.abs(of_pushed)
