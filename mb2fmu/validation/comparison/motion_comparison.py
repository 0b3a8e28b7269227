"""Judge an FMU's motion by the reference's, within stated bounds that are never loosened.

A variable v is judged against

    bound_v(t) = min(F(t) · tolerance · max(size_v, S_v(t)) + rounding_v + ρ S_v(t), 5 % of size_v)
                 + 2 · uncertainty_v(t)
    F(t) = max(FACTOR, N(t))

with the tolerance of the experiment, v's own size and round-off (``variable_scales``: its range if it moves), the
measured sensitivity S_v (``start_error_growth``; of outputs that stand still also by later errors), the round-off ρ of
states as a part of their scales (1e-14, but where an angle of 1e9 rad moves by one), and the reference's own
uncertainty. FACTOR = 50: an integrator keeps the error of each of its steps at about the tolerance and makes many of
them; Dormand and Prince's method of order 5, tried on double pendulums over 10 s, stays below 12 tolerance · S_v. N(t)
says how often the motion has gone through its range by then (``range_traversal_count``): what oscillates a thousand
times adds up more errors, at every tolerance. Integrators measure the error of a step by the value of a state: where
states are far from zero and hardly move (a quaternion near 1), at least 10 · tolerance · max |x| is allowed, and what
that makes of outputs.

A variable that moves by less than 1e-6 of its typical magnitude, and that could not be judged by what it moves by, is
judged as if it stood still, by its typical magnitude: constants of a file have some eight digits (an angle of 1.5707963
is π/2 less 2.7e-8), and what their round-off moves says nothing. So is an output that moves so little and of which
states that are off by their bounds change more than 5 % of its range, be it with the square of their errors: the
friction that holds a rod at rest against l u² of a speed u that is drift.

Where events graze, what they may have set or not is added (``grazing_event_uncertainty``).

v is judged up to the time until which it is predictable: as long as the reference knows v a hundred times better than
the bound (100 · uncertainty_v ≤ bound_v), and errors have not grown beyond what says anything
(F · tolerance · S_v ≤ 5 % of the larger of size_v and S_v(0)).
Beyond it the motion is chaotic, and the invariants alone are judged, over the whole run, since they hold for every
true motion:

- One-step error: for each state j and step k, |x_FMU(t_k+1) − Φ(x_FMU(t_k))| with Φ the reference's flow over one
  step, against min(FACTOR · tolerance · max(scale_j, L_j, E_jk) + late_j, 5 % of size_j) + 64 ulp(max |x_j|), L_j the
  largest sensitivity over one step, measured at up to ten steps of the reference without events, E_jk how far x_j
  goes within step k (a stiff spring's vibration that dies out between two communication points), and late_j what
  events in this very step make of being as late as indicators are off, and of states that are off by their bounds
  (``one_step_flow``). If those come through other events (one bounce more), what these make is added. No error can
  hide behind those before it.
- Energy: |T − T(0) − W| along the FMU's motion, W the sum of the work in each step by the reference's flow, against
  FACTOR · tolerance · (scale of energies + ∫|P| dt), P the power of all loads.
- Integrals of motion, see ``first_integrals_along_run``.
- Constraints: |φ_i(q, t)| and |A_i u + b_i| of the FMU's own q and u, each over its row's own scale, against
  FACTOR · tolerance and the round-off of the row's terms.
- What the FMU reports of its constraints, computed again at its own q and u, see ``constraint_diagnostics``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.validation.bounds.event_time_tolerances import (
    EventTimeBound,
    ValuesNearEvents,
    compute_event_time_bounds,
    find_communication_points_near_events,
)
from mb2fmu.validation.bounds.grazing_event_uncertainty import compute_grazing_uncertainty
from mb2fmu.validation.bounds.marginal_friction_modes import compute_sticking_output_changes
from mb2fmu.validation.bounds.one_step_flow import ExperimentCommunicationStep, OneStepFlow, OneStepFlowEnd
from mb2fmu.validation.bounds.range_traversal_count import count_state_range_traversals
from mb2fmu.validation.bounds.small_error_propagation import propagate_errors_over_step
from mb2fmu.validation.comparison.constraint_diagnostics import compare_constraint_diagnostics, form_invariant_result
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.first_integrals_along_run import CONSERVATION_FORMULA, FirstIntegralsAlongRun
from mb2fmu.validation.reference.reference_run import (
    ReferenceRun,
    compute_constraint_scales,
)
from mb2fmu.validation.reference.start_error_growth import (
    RELATIVE_START_ERROR,
    choose_start_error_directions,
    measure_output_sensitivity,
    measure_step_control_errors,
)
from mb2fmu.validation.reference.variable_scales import (
    ERROR_BOUND_FACTOR,
    MAX_INFORMATIVE_FRACTION,
    NEGLIGIBLE_FRACTION,
    REFERENCE_ACCURACY_FACTOR,
    ROUND_OFF_ALLOWANCE,
    compute_variable_sizes_of_motion,
    find_largest_value_per_unit,
    find_moving_variables,
)
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult
from mb2fmu.validation.validation_result import InvariantResult, VariableResult

if TYPE_CHECKING:
    from mb2fmu.validation.modes.mode_equations import SwitchModes
    from mb2fmu.validation.runs.fmu_description_for_runs import InterfaceType

Floats = npt.NDArray[np.float64]

MIN_JUDGED_POINTS = 10
_GROWTH_SAMPLES = 10
_ENERGY_STEPS = 20  # communication steps whose exchange of energy is integrated, where a balance is beyond its bound
_HELD_EFFORT_SAMPLES = 8  # points of a motion at which held efforts are looked at
_SMALL_ROUND_OFF = 1e-3  # of what a variable moves by
CONTRADICTED_MARGIN = 1e-6
"""What a switch's margin may be below zero, over its size, by the FMU's own state: root searches are not exact."""


@dataclass(frozen=True, slots=True)
class ErrorBounds:
    """How far each variable may be off.

    Attributes:
        values: bound_v(t), shape (n_t, n).
        predictable_points: Number of points from the start up to the horizon, shape (n,).
        reasons: Why the horizon ends before the run does; empty where it does not.
        event_time_bounds: What is allowed of each event.
        sides_near_events: Of points that may be on either side of an event.
        traversals: How often the motion has gone through its range by each point, shape (n_t,); see
            ``count_state_range_traversals``.
        step_error_growth: L, the largest growth of errors of each state over one step, shape (n_x,).
    """

    values: Floats
    predictable_points: npt.NDArray[np.int64]
    reasons: tuple[str, ...]
    event_time_bounds: tuple[EventTimeBound, ...] = ()
    sides_near_events: Mapping[int, ValuesNearEvents] = field(default_factory=dict)
    traversals: Floats = field(default_factory=lambda: np.zeros(0))
    step_error_growth: Floats = field(default_factory=lambda: np.zeros(0))


def compute_error_bounds(reference: ReferenceRun, sensitivity: Floats) -> ErrorBounds:
    """Return bounds and horizons of all variables, by the formulas of this module.

    Args:
        reference: What it is judged by.
        sensitivity: What errors at the start grow to, shape (n_t, n); later ones are added for outputs at rest.
    """
    sensitivity = _include_later_errors(reference, sensitivity)
    sizes, rounding = _compute_variable_sizes(reference, sensitivity[0])
    traversals = count_state_range_traversals(reference)
    allowed, predictable_points, reasons = _compute_bounds_by_size(reference, sensitivity, sizes, rounding, traversals)
    is_at_rest = _find_motions_of_round_off(reference, predictable_points, allowed)
    if is_at_rest.any():
        sizes = np.where(is_at_rest, np.maximum(sizes, reference.typical), sizes)
        allowed, predictable_points, reasons = _compute_bounds_by_size(
            reference, sensitivity, sizes, rounding, traversals
        )
    events = compute_event_time_bounds(reference, allowed)
    allowed[:, list(reference.state_columns)] += compute_grazing_uncertainty(reference, events)
    sides = find_communication_points_near_events(reference, events)
    step_error_growth = _measure_step_error_growth(reference, sides)
    return ErrorBounds(allowed, predictable_points, reasons, events, sides, traversals, step_error_growth)


def _include_later_errors(reference: ReferenceRun, sensitivity: Floats) -> Floats:
    """Return S; of outputs that stand still with what errors of states at any point change them by.

    What moves has its range for a size, and keeps its bounds.
    """
    trajectory = reference.trajectory
    is_moving = find_moving_variables(trajectory.values, trajectory.uncertainty, reference.typical)
    is_output = np.array([variable.kind == "output" for variable in reference.variables])
    if not (is_output & ~is_moving).any():
        return sensitivity
    output_sensitivity = np.zeros(len(is_output))
    output_sensitivity[is_output] = measure_output_sensitivity(reference)
    return np.maximum(sensitivity, np.where(is_moving, 0.0, output_sensitivity))


def _compute_bounds_by_size(
    reference: ReferenceRun, sensitivity: Floats, sizes: Floats, rounding: Floats, traversals: Floats
) -> tuple[Floats, npt.NDArray[np.int64], tuple[str, ...]]:
    """Return bounds, shape (n_t, n), how many points are predictable, shape (n,), and why not all of them are.

    Args:
        reference: What is judged by.
        sensitivity: S, shape (n_t, n).
        sizes: Of the variables, shape (n,).
        rounding: Round-off of the variables, shape (n,).
        traversals: N, shape (n_t,).
    """
    state_round_off = _compute_state_round_off(reference) * sensitivity
    tolerance_bound = (
        np.maximum(ERROR_BOUND_FACTOR, traversals)[:, None]
        * reference.experiment.tolerance
        * np.maximum(sizes, sensitivity)
    )
    step_control_errors = reference.experiment.tolerance * measure_step_control_errors(reference)
    allowed = np.maximum(tolerance_bound, step_control_errors) + rounding + state_round_off
    allowed = np.minimum(allowed, MAX_INFORMATIVE_FRACTION * sizes)
    allowed += 2 * reference.trajectory.uncertainty
    is_known = _is_well_known(reference, allowed, sizes, state_round_off)
    is_informative = tolerance_bound <= MAX_INFORMATIVE_FRACTION * np.maximum(sizes, sensitivity[0])
    predictable_points, reasons = [], []
    for column in range(len(sizes)):
        ends_of_masks = [
            np.argmin(mask) if not mask.all() else len(mask)
            for mask in (is_known[:, column], is_informative[:, column])
        ]
        predictable_points.append(min(ends_of_masks))
        if min(ends_of_masks) == len(allowed):
            reasons.append("")
        elif ends_of_masks[0] <= ends_of_masks[1]:
            reasons.append("the reference no longer knows it a hundred times better than the bound")
        else:
            reasons.append(
                f"the bound exceeds {MAX_INFORMATIVE_FRACTION:.0%} of its size: motion too sensitive for this tolerance"
            )
    return allowed, np.array(predictable_points), tuple(reasons)


def _find_motions_of_round_off(
    reference: ReferenceRun, predictable_points: npt.NDArray[np.int64], bounds: Floats
) -> npt.NDArray[np.bool_]:
    """Return which variables move so little, as round-off of a file's constants makes, that nothing can judge it.

    ``bounds``: How far each variable may be off, shape (n_t, n).
    """
    values, typical = reference.trajectory.values, reference.typical
    ranges = np.ptp(values, axis=0)
    is_tiny = ranges <= NEGLIGIBLE_FRACTION * typical
    is_unpredictable = predictable_points < _count_required_points(values)
    is_output = np.array([variable.kind == "output" for variable in reference.variables])
    is_moving_output = is_output & find_moving_variables(values, reference.trajectory.uncertainty, typical)
    if (is_tiny & is_moving_output & ~is_unpredictable).any():
        state_errors = np.min(bounds[:, list(reference.state_columns)], axis=0)
        changes = np.zeros(len(ranges))
        changes[is_output] = measure_output_sensitivity(reference, state_errors, 1.0)
        is_unpredictable |= is_moving_output & (changes > MAX_INFORMATIVE_FRACTION * ranges)
    return np.asarray(is_tiny & is_unpredictable)


def _compute_state_round_off(reference: ReferenceRun) -> float:
    """Return the largest round-off of a state as a part of its scale: 1e-14, but for one that has turned 1e9 rad."""
    largest = np.max(np.abs(reference.states), axis=0, initial=0.0)
    return float(np.max(ROUND_OFF_ALLOWANCE * largest / reference.state_scales, initial=0.0))


def _is_well_known(
    reference: ReferenceRun, allowed: Floats, sizes: Floats, state_round_off: Floats
) -> npt.NDArray[np.bool_]:
    """Return where the reference knows a value a hundred times better than its bound, shape (n_t, n).

    Round-off of a large value (an angle of 1e9 rad), or of a large state, counts once where it is small beside what the
    value moves by: both sides have it, and the bound contains it.
    """
    trajectory = reference.trajectory
    round_off = ROUND_OFF_ALLOWANCE * np.max(np.abs(trajectory.values), axis=0) + state_round_off
    counted_uncertainty = np.where(
        round_off <= _SMALL_ROUND_OFF * sizes, trajectory.uncertainty - round_off, trajectory.uncertainty
    )
    return np.asarray(counted_uncertainty * REFERENCE_ACCURACY_FACTOR <= allowed)


def _compute_variable_sizes(reference: ReferenceRun, at_start: Floats) -> tuple[Floats, Floats]:
    """Return size and round-off of each variable by the formulas of ``scales``, shapes (n,); ``at_start``: S(0)."""
    values, variables = reference.trajectory.values, reference.variables
    is_moving = find_moving_variables(values, reference.trajectory.uncertainty, reference.typical)
    largest_of_unit = find_largest_value_per_unit([v.unit for v in variables], values, is_moving, reference.typical)
    start_sensitivity = np.where([bool(v.nominal) for v in variables], 0.0, at_start)
    rounding = ROUND_OFF_ALLOWANCE * (largest_of_unit + _compute_holding_efforts(reference))
    return compute_variable_sizes_of_motion(
        reference.visited_values, is_moving, reference.typical, largest_of_unit, start_sensitivity
    ), rounding


def _compute_holding_efforts(reference: ReferenceRun) -> Floats:
    """Return for each variable how large the efforts of its unit are that cancel while signs hold, shape (n,)."""
    numeric, run = reference.numeric, reference.experiment
    largest_efforts = np.zeros(len(reference.variables))
    if is_hybrid(numeric) and numeric.frozen.outputs:
        prepared = numeric.prepare(run.parameters)
        for k in np.unique(np.linspace(0, len(run.time) - 1, _HELD_EFFORT_SAMPLES).astype(np.int64)).tolist():
            t, x, inputs = float(run.time[k]), reference.states[k], run.inputs_at(k).tolist()
            effects = compute_sticking_output_changes(numeric, t, x, inputs, prepared, reference.modes[k])
            largest_efforts[-len(effects) :] = np.fmax(largest_efforts[-len(effects) :], effects)
    units = [v.unit for v in reference.variables]
    return np.array(
        [max(size for size, other in zip(largest_efforts, units, strict=True) if other == unit) for unit in units]
    )


def _count_required_points(values: Floats) -> int:
    """Return the number of points that a verdict needs."""
    return min(MIN_JUDGED_POINTS, len(values))


def compare_variables(
    reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult
) -> tuple[VariableResult, ...]:
    """Compare every variable of the reference with the FMU's."""
    time = reference.trajectory.time
    reference_values = _select_values_of_fmu_side(reference, limits, simulation)
    results = []
    for column, variable in enumerate(reference.variables):
        expected = reference_values[:, column]
        recorded = simulation[variable.name]
        errors = np.abs(recorded - expected)
        bound = limits.values[:, column]
        predictable_points = int(limits.predictable_points[column])
        is_finite = bool(np.all(np.isfinite(recorded)))
        has_enough_points = predictable_points >= _count_required_points(reference.trajectory.values)
        ratios = np.where(errors <= 0, 0.0, errors / np.where(bound > 0, bound, np.finfo(float).tiny))[
            : max(predictable_points, 1)
        ]
        ratios = np.where(np.isfinite(ratios), ratios, np.inf)
        worst_point = int(np.argmax(ratios))
        is_within_bounds = is_finite and bool(np.all(ratios <= 1.0))
        reason = limits.reasons[column]
        if not is_finite:
            reason = "the FMU gives no finite number"
        elif not is_within_bounds:
            reason = f"the error is {ratios[worst_point]:.3g} times its bound"
        results.append(
            VariableResult(
                name=variable.name,
                kind=variable.kind,
                unit=variable.unit,
                range=float(np.ptp(expected)),
                max_error=float(np.max(errors[: max(predictable_points, 1)])),
                at=float(time[worst_point]),
                error=float(errors[worst_point]),
                bound=float(bound[worst_point]),
                ratio=float(ratios[worst_point]) if is_finite else float("inf"),
                horizon=float(time[max(predictable_points - 1, 0)]),
                verdict="failed" if not is_within_bounds else "passed" if has_enough_points else "unjudged",
                reason=reason,
                errors=errors,
                bounds=bound,
            )
        )
    return tuple(results)


def _find_fmu_event_sides(
    reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult
) -> dict[int, int]:
    """Return points near an event → the number of the side on which all of the FMU's variables are."""
    return {
        k: int(np.argmin(_compute_error_ratios_by_side(reference, limits, simulation, k)))
        for k in limits.sides_near_events
    }


def find_fmu_switch_modes(
    reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult
) -> dict[int, SwitchModes]:
    """Return points near an event → the modes of the FMU's side.

    Sides that the FMU's own state contradicts are left out: where errors have grown, the values of both sides lie
    within the bounds, and only the state shows where the FMU is. A point of which all sides are left out is not there:
    its modes follow from the state.
    """
    numeric, run = reference.numeric, reference.experiment
    modes_by_point: dict[int, SwitchModes] = {}
    if not is_hybrid(numeric):
        return modes_by_point
    prepared = numeric.prepare(run.parameters)
    columns = [simulation.names.index(reference.trajectory.names[c]) for c in reference.state_columns]
    for k, sides in limits.sides_near_events.items():
        instant = float(run.time[k]), simulation.values[k, columns], run.inputs_at(k).tolist(), prepared
        possible = [
            i
            for i, modes in enumerate(sides.modes)
            if numeric.mode_contradiction(*instant, modes) <= CONTRADICTED_MARGIN
        ]
        error_ratios = _compute_error_ratios_by_side(reference, limits, simulation, k)[possible]
        if possible:
            modes_by_point[k] = sides.modes[possible[int(np.argmin(error_ratios))]]
    return modes_by_point


def _compute_error_ratios_by_side(
    reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult, k: int
) -> Floats:
    """Return the FMU's largest error over bound on each side of an event at a point, shape (sides,)."""
    recorded = np.array([simulation[variable.name][k] for variable in reference.variables])
    ratios = np.abs(recorded - limits.sides_near_events[k].values) / np.maximum(limits.values[k], np.finfo(float).tiny)
    return np.asarray(np.max(ratios, axis=1))


def _select_values_of_fmu_side(reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult) -> Floats:
    """Return the reference's values; near events those of the FMU's side."""
    values = reference.trajectory.values.copy()
    for k, side in _find_fmu_event_sides(reference, limits, simulation).items():
        values[k] = limits.sides_near_events[k].values[side]
    return values


def compute_invariant_results(
    reference: ReferenceRun,
    simulation: FmuSimulationResult,
    limits: ErrorBounds | None = None,
    integrals: FirstIntegralsAlongRun | None = None,
) -> tuple[InvariantResult, ...]:
    """Judge quantities conserved in every true motion, from the FMU's values; () if these are not finite.

    ``limits``: say which points may be on either side of an event. ``integrals``: of motion, of the same experiment.
    """
    order = [simulation.names.index(name) for name in reference.trajectory.names]
    values = simulation.values[:, order]
    if not np.all(np.isfinite(values)):
        return ()
    states = values[:, list(reference.state_columns)]
    start_modes = find_fmu_switch_modes(reference, limits, simulation) if limits else {}
    sides = limits.sides_near_events if limits else {}
    count = len(states) - 1
    steps = [
        ExperimentCommunicationStep(k, start_modes.get(k), states[k + 1] if k + 1 in sides else None)
        for k in range(count)
    ]
    flow = OneStepFlow(reference)
    step_ends = _compute_step_ends(flow, steps, states)
    step_error_growth = limits.step_error_growth if limits else _measure_step_error_growth(reference, sides)
    results = [*_judge_one_step_errors(reference, flow, states, (steps, step_ends), simulation.kind, step_error_growth)]
    if any(balance.name == "energy" for balance in reference.balances) and all(
        np.isfinite(step_end.work) for step_end in step_ends
    ):
        results.append(_judge_energy_balance(reference, flow, states, (steps, step_ends)))
    if integrals:
        results += _judge_first_integrals(reference, integrals, values)
    return (
        *results,
        *_judge_constraint_residuals(reference, values),
        *compare_constraint_diagnostics(reference, simulation),
    )


def _compute_step_ends(
    flow: OneStepFlow, steps: Sequence[ExperimentCommunicationStep], states: Floats
) -> list[OneStepFlowEnd]:
    """Return where the flow leads from the FMU's state at the beginning of each step.

    No numbers from where the mechanism cannot move on from the FMU's state: the reference has gone through the whole
    experiment, so that this is the FMU's failure, and no reason to end the validation.
    """
    if (smooth_ends := flow.compute_all_step_ends_without_events(states[: len(steps)])) is not None:
        return smooth_ends
    ends = [OneStepFlowEnd(np.full(states.shape[1], np.nan), np.nan, ())] * len(steps)
    try:
        for i, step in enumerate(steps):
            ends[i] = flow.compute_step_end_without_events(step, states[step.k])
    except (ValidationError, ArithmeticError, ValueError):
        return ends
    return ends


def _judge_one_step_errors(
    reference: ReferenceRun,
    flow: OneStepFlow,
    states: Floats,
    steps_and_ends: tuple[Sequence[ExperimentCommunicationStep], Sequence[OneStepFlowEnd]],
    kind: InterfaceType,
    step_error_growth: Floats,
) -> list[InvariantResult]:
    """Return one one-step error per state.

    Args:
        reference: What the FMU is judged by.
        flow: Of the reference.
        states: The FMU's, shape (n_t, n_x).
        steps_and_ends: All steps, and where the flow leads from the FMU's state at the beginning of each.
        kind: How the FMU is run.
        step_error_growth: L, shape (n_x,).
    """
    steps, step_ends = steps_and_ends
    columns = list(reference.state_columns)
    sizes, _ = _compute_variable_sizes(reference, reference.scales)
    largest_bound = MAX_INFORMATIVE_FRACTION * sizes[columns]
    growth_bound = reference.experiment.tolerance * np.maximum(
        ERROR_BOUND_FACTOR * step_error_growth, measure_step_control_errors(reference)[columns]
    )
    bounds = np.tile(np.minimum(growth_bound, largest_bound), (len(steps), 1))
    rounding = ROUND_OFF_ALLOWANCE * np.max(np.abs(reference.states), axis=0)
    errors = np.abs(states[1:] - np.array([step_end.x for step_end in step_ends]))
    for k in np.flatnonzero(np.any(errors > bounds + rounding, axis=1)).tolist():
        step_end = flow.compute_step_end(steps[k], states[k])  # with its events
        delay_shift = flow.compute_delay_shift(steps[k], states[k], step_end, kind)
        same_event_error, other_event_error = flow.compute_error_after_events(
            steps[k], states[k], step_end, np.minimum(growth_bound, largest_bound)
        )
        step_bound = growth_bound
        if not any(event.sets_state for event in step_end.events):
            excursions = flow.compute_excursions(steps[k], states[k])
            step_bound = np.maximum(growth_bound, ERROR_BOUND_FACTOR * reference.experiment.tolerance * excursions)
        bounds[k] = np.minimum(step_bound + delay_shift + same_event_error, largest_bound) + other_event_error
    names = [reference.trajectory.names[c] for c in columns]
    units = [reference.variables[c].unit for c in columns]
    time = reference.trajectory.time[1:]
    formula = "|x(t + h) − Φ(x(t))|, Φ the reference's flow over one step"
    return [
        form_invariant_result(
            time, f"one-step error of {name}", formula, unit, errors[:, j], bounds[:, j] + rounding[j]
        )
        for j, (name, unit) in enumerate(zip(names, units, strict=True))
    ]


def _measure_step_error_growth(reference: ReferenceRun, sides: Mapping[int, ValuesNearEvents]) -> Floats:
    """Return the largest growth of errors over a step of the reference without events, or scales, shape (n_x,).

    ``sides``: of points that may be on either side of an event, between which and the next nothing is measured.
    """
    flow, growth = OneStepFlow(reference), reference.state_scales.copy()
    steps_with_events = {event.step for event in reference.events} | {k - side for k in sides for side in (0, 1)}
    steps = [k for k in range(len(reference.states) - 1) if k not in steps_with_events]
    axes = choose_start_error_directions(len(growth))
    samples = np.linspace(0, len(steps) - 1, _GROWTH_SAMPLES).astype(np.int64) if steps else ()
    for i in np.unique(samples).tolist():
        k = steps[i]
        errors = propagate_errors_over_step(reference, k, axes)
        if errors is None:
            errors = _integrate_errors_over_step(reference, flow, k, axes)
        growth = np.fmax(growth, np.sum(np.abs(errors), axis=0) * reference.state_scales)
    return np.asarray(growth)


def _integrate_errors_over_step(reference: ReferenceRun, flow: OneStepFlow, k: int, errors: Floats) -> Floats:
    """Return what errors, over the scales, are at the end of step k, shape (n_d, n_x); no numbers where it has none."""
    starts = reference.states[k] + RELATIVE_START_ERROR * errors * reference.state_scales
    try:
        ends = [flow.compute_step_end(ExperimentCommunicationStep(k), start).x for start in starts]
    except (ValidationError, ArithmeticError, ValueError):
        return np.full_like(errors, np.nan)
    return np.asarray((np.array(ends) - reference.states[k + 1]) / (RELATIVE_START_ERROR * reference.state_scales))


def _judge_energy_balance(
    reference: ReferenceRun,
    flow: OneStepFlow,
    states: Floats,
    steps_and_ends: tuple[Sequence[ExperimentCommunicationStep], Sequence[OneStepFlowEnd]],
) -> InvariantResult:
    """Judge the energy balance |T − T(0) − W| in J; the bound grows with the energy that loads have exchanged.

    Powers at communication points miss what is exchanged between them (a stiff spring and its damper come to rest
    within a step): where the balance is beyond its bound, the steps that contribute most are looked into. Where the
    mechanism cannot move on from the FMU's state the balance has no number, and fails: see :func:`_compute_step_ends`.
    """
    run = reference.experiment
    T, P = _compute_energies_and_powers(reference, states)
    steps, work = steps_and_ends[0], np.array([step_end.work for step_end in steps_and_ends[1]])
    imbalance = np.abs(T - T[0] - np.concatenate([[0.0], np.cumsum(work)]))
    part = ERROR_BOUND_FACTOR * run.tolerance + ROUND_OFF_ALLOWANCE * np.sqrt(len(T))
    exchanged_by_step = (P[1:] + P[:-1]) / 2 * np.diff(run.time)
    bound = part * (reference.work_scale + np.concatenate([[0.0], np.cumsum(exchanged_by_step)]))
    if np.any(imbalance > bound):
        contributions = np.abs(np.diff(T) - work)
        for k in np.argsort(contributions)[: -_ENERGY_STEPS - 1 : -1].tolist():
            with suppress(ValidationError, ArithmeticError, ValueError):
                exchanged_by_step[k] = max(exchanged_by_step[k], flow.compute_exchanged_energy(steps[k], states[k]))
        bound = part * (reference.work_scale + np.concatenate([[0.0], np.cumsum(exchanged_by_step)]))
    return form_invariant_result(run.time, "energy balance", "|T − T(0) − W|", "J", imbalance, bound)


def _compute_energies_and_powers(reference: ReferenceRun, states: Floats) -> tuple[Floats, Floats]:
    """Return T in J and the magnitude of the power of loads in W at each communication point; nan where unknown."""
    run, numeric = reference.experiment, reference.numeric
    prepared, inputs = numeric.prepare(run.parameters), run.inputs_at(np.arange(len(states)))
    with suppress(ValidationError, ArithmeticError, ValueError):
        motions = numeric.motions(run.time[: len(states)], states, inputs, prepared)
        return motions.kinetic, np.abs(motions.power)
    T, P = np.full(len(states), np.nan), np.full(len(states), np.nan)
    for k, x in enumerate(states):
        with suppress(ValidationError, ArithmeticError, ValueError):
            motion = numeric.motion(float(run.time[k]), x, inputs[k].tolist(), prepared)
            T[k], P[k] = motion.kinetic, abs(motion.power)
    return T, P


def _judge_first_integrals(
    reference: ReferenceRun, integrals: FirstIntegralsAlongRun, values: Floats
) -> list[InvariantResult]:
    """Judge each integral of motion."""
    deviations = integrals.compute_deviations(values)
    bounds = integrals.compute_bounds(ERROR_BOUND_FACTOR * reference.experiment.tolerance)
    return [
        form_invariant_result(
            integrals.time, first_integral.name, CONSERVATION_FORMULA, first_integral.unit, deviations[i], bounds[i]
        )
        for i, first_integral in enumerate(integrals.first_integrals)
        if integrals.has_judged_steps(i)
    ]


def _judge_constraint_residuals(reference: ReferenceRun, values: Floats) -> list[InvariantResult]:
    """Judge residuals of position and velocity constraints, each over its row's scale; the worst row at each time."""
    run, numeric = reference.experiment, reference.numeric
    n_q, n_u, n_z = numeric.n_q, numeric.n_u, numeric.n_z
    n_phi = len(numeric.equations.position_rows)
    if not numeric.m and not n_phi:
        return []
    prepared = numeric.prepare(run.parameters)
    residuals = numeric.residuals(run.form_points(values[:, : n_q + n_u + n_z]), prepared)
    scales, terms = compute_constraint_scales(numeric, run, reference.trajectory.values, reference.scales)
    relative = np.abs(residuals) / scales
    bounds = np.broadcast_to(
        ERROR_BOUND_FACTOR * run.tolerance + ROUND_OFF_ALLOWANCE * (1 + terms / scales), relative.shape
    )
    results = []
    for name, formula, rows_of_part in (
        ("position constraints", "|φ(q, t)| over the row's scale", slice(None, n_phi)),
        ("velocity constraints", "|A u + b| over the row's scale", slice(n_phi, None)),
    ):
        if relative[:, rows_of_part].shape[1]:
            worst = np.argmax(relative[:, rows_of_part] / bounds[:, rows_of_part], axis=1)[:, None]
            values, worst_bounds = (
                np.take_along_axis(array[:, rows_of_part], worst, axis=1)[:, 0] for array in (relative, bounds)
            )
            results.append(form_invariant_result(run.time, name, formula, "1", values, worst_bounds))
    return results
