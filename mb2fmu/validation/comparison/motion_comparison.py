"""Judge an FMU's motion by the reference's, within stated bounds that are never loosened.

A variable v is judged against

    bound_v(t) = min(F(t) · tolerance · max(size_v, S_v(t)) + rounding_v, 5 % of size_v) + 2 · uncertainty_v(t)
    F(t) = max(FACTOR, N(t))

with the tolerance of the experiment, v's own size and round-off (``scales``: its range if it moves), the measured
sensitivity S_v (``sensitivity``) and the reference's own uncertainty. FACTOR = 50: an integrator keeps the error of
each of its steps at about the tolerance and makes many of them; Dormand and Prince's method of order 5, tried on double
pendulums over 10 s, stays below 12 tolerance · S_v. N(t) says how often the motion has gone through its range by then
(``count_traversals``): what oscillates a thousand times adds up more errors, at every tolerance.

Where events graze, what they may have set or not is added (``compute_grazing_uncertainty``).

v is judged up to its horizon: as long as the reference knows v a hundred times better than the bound
(100 · uncertainty_v ≤ bound_v), and errors have not grown beyond what says anything
(F · tolerance · S_v ≤ 5 % of the larger of size_v and S_v(0)).
Beyond it, chaos has the word, and the invariants alone are judged: they hold for every true motion, so the whole run:

- One-step error: for each state j and compared step k (``compared_steps``), |x_FMU(t_k+1) − Φ(x_FMU(t_k))| with Φ the
  reference's flow over one step, against min(FACTOR · tolerance · max(scale_j, L_j) + late_j, 5 % of size_j) +
  64 ulp(max |x_j|), L_j the largest sensitivity over one step, measured at up to ten steps without events, and late_j
  what events in this very step make of being as late as indicators are off, and of states that are off by their bounds
  (``step_flows``). If those come through other events (one bounce more), what these make is added. No error of these
  steps can hide behind those before it.
- Energy: |Σ (ΔT − W)| over the compared steps of the FMU's motion, W the work in each by the reference's flow, against
  FACTOR · tolerance · (scale of energies + ∫|P| dt), P the power of all loads.
- Integrals of motion, see ``kept_integrals``.
- Constraints: |φ_i(q, t)| and |A_i u + b_i| of the FMU's own q and u, each over its row's own scale, against
  FACTOR · tolerance and the round-off of the row's terms.
- What the FMU tells of its constraints, computed again at its own q and u, see ``own_diagnostics``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.bounds.event_time_bounds import (
    EventTimeBound,
    ValuesNearEvents,
    compute_event_time_bounds,
    find_values_near_events,
)
from mb2fmu.validation.bounds.grazing_events import compute_grazing_uncertainty
from mb2fmu.validation.bounds.indeterminate_friction import compute_sticking_force_effects
from mb2fmu.validation.bounds.one_step_flow import CommunicationStep, OneStepFlow, StepEnd
from mb2fmu.validation.bounds.traversal_count import count_traversals
from mb2fmu.validation.comparison.compared_steps import choose_compared_steps
from mb2fmu.validation.comparison.constraint_diagnostics import compare_constraint_diagnostics
from mb2fmu.validation.comparison.invariant_result import form_invariant_result
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.modes.mode_equations import SwitchModes
from mb2fmu.validation.reference.first_integrals_along_run import CONSERVATION_FORMULA, FirstIntegralsAlongRun
from mb2fmu.validation.reference.reference_run import (
    ReferenceRun,
    compute_constraint_scales,
)
from mb2fmu.validation.reference.start_sensitivity import RELATIVE_START_ERROR, choose_error_directions
from mb2fmu.validation.reference.variable_scales import (
    ERROR_BOUND_FACTOR,
    MAX_INFORMATIVE_FRACTION,
    REFERENCE_ACCURACY_FACTOR,
    ROUND_OFF_ALLOWANCE,
    compute_variable_sizes_of_motion,
    find_largest_of_unit,
    find_moving_variables,
)
from mb2fmu.validation.result import InvariantResult, VariableResult
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult

if TYPE_CHECKING:
    from mb2fmu.validation.runs.fmu_description import InterfaceType

Floats = npt.NDArray[np.float64]

MIN_JUDGED_POINTS = 10
_GROWTH_SAMPLES = 10
_HELD_EFFORT_SAMPLES = 8  # points of a motion at which held efforts are looked at
_CONTRADICTED_MARGIN = 1e-6
"""What a switch's margin may be below zero, over its size, by the FMU's own state: root searches are not exact."""


@dataclass(frozen=True, slots=True)
class ErrorBounds:
    """How far each variable may be off.

    Attributes:
        values: bound_v(t), shape (n_t, n).
        judged: Number of points from the start up to the horizon, shape (n,).
        reasons: Why the horizon ends before the run does; empty where it does not.
        events: What is allowed of each event.
        sides: Of points that may be on either side of an event.
        traversals: How often the motion has gone through its range by each point, shape (n_t,); see
            ``count_traversals``.
    """

    values: Floats
    judged: npt.NDArray[np.int64]
    reasons: tuple[str, ...]
    events: tuple[EventTimeBound, ...] = ()
    sides: Mapping[int, ValuesNearEvents] = field(default_factory=dict)
    traversals: Floats = field(default_factory=lambda: np.zeros(0))


def compute_error_bounds(reference: ReferenceRun, sensitivity: Floats) -> ErrorBounds:
    """Return bounds and horizons of all variables, by the formulas of this module.

    Args:
        reference: What it is judged by.
        sensitivity: S, shape (n_t, n).
    """
    values, uncertainty = reference.trajectory.values, reference.trajectory.uncertainty
    sizes, rounding = compute_variable_sizes(reference, sensitivity[0])
    often = count_traversals(reference)
    grown = (
        np.maximum(ERROR_BOUND_FACTOR, often)[:, None] * reference.conditions.tolerance * np.maximum(sizes, sensitivity)
    )
    allowed = np.minimum(grown + rounding, MAX_INFORMATIVE_FRACTION * sizes) + 2 * uncertainty
    known = uncertainty * REFERENCE_ACCURACY_FACTOR <= allowed
    telling = grown <= MAX_INFORMATIVE_FRACTION * np.maximum(sizes, sensitivity[0])
    judged, reasons = [], []
    for column in range(values.shape[1]):
        ends = [np.argmin(mask) if not mask.all() else len(mask) for mask in (known[:, column], telling[:, column])]
        judged.append(min(ends))
        if min(ends) == len(values):
            reasons.append("")
        elif ends[0] <= ends[1]:
            reasons.append("the reference no longer knows it a hundred times better than the bound")
        else:
            reasons.append(
                f"the bound exceeds {MAX_INFORMATIVE_FRACTION:.0%} of its size: motion too sensitive for this tolerance"
            )
    events = compute_event_time_bounds(reference, allowed)
    allowed[:, list(reference.state_columns)] += compute_grazing_uncertainty(reference, events)
    sides = find_values_near_events(reference, events)
    return ErrorBounds(allowed, np.array(judged), tuple(reasons), events, sides, often)


def compute_variable_sizes(reference: ReferenceRun, at_start: Floats) -> tuple[Floats, Floats]:
    """Return size and round-off of each variable by the formulas of ``scales``, shapes (n,); ``at_start``: S(0)."""
    values, variables = reference.trajectory.values, reference.variables
    moves = find_moving_variables(values, reference.trajectory.uncertainty, reference.typical)
    beside = find_largest_of_unit([v.unit for v in variables], values, moves, reference.typical)
    sensitive = np.array([0.0 if v.nominal else s for v, s in zip(variables, at_start.tolist(), strict=True)])
    rounding = ROUND_OFF_ALLOWANCE * (beside + _compute_holding_efforts(reference))
    return compute_variable_sizes_of_motion(values, moves, reference.typical, beside, sensitive), rounding


def _compute_holding_efforts(reference: ReferenceRun) -> Floats:
    """Return for each variable how large the efforts of its unit are that cancel while signs hold, shape (n,)."""
    numeric, run = reference.numeric, reference.conditions
    found = np.zeros(len(reference.variables))
    if isinstance(numeric, HybridEquations) and numeric.frozen.outputs:
        prepared = numeric.prepare(run.parameters)
        for k in np.unique(np.linspace(0, len(run.time) - 1, _HELD_EFFORT_SAMPLES).astype(np.int64)).tolist():
            t, x, r = float(run.time[k]), reference.states[k], run.held(k).tolist()
            held = compute_sticking_force_effects(numeric, t, x, r, prepared, reference.modes[k])
            found[-len(held) :] = np.fmax(found[-len(held) :], held)
    units = [v.unit for v in reference.variables]
    return np.array([max(size for size, other in zip(found, units, strict=True) if other == unit) for unit in units])


def _count_required_points(values: Floats) -> int:
    """Return the number of points that a verdict needs."""
    return min(MIN_JUDGED_POINTS, len(values))


def compare_variables(
    reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult
) -> tuple[VariableResult, ...]:
    """Compare every variable of the reference with the FMU's."""
    time = reference.trajectory.time
    whole = _select_values_of_fmu_side(reference, limits, simulation)
    results = []
    for column, variable in enumerate(reference.variables):
        truth = whole[:, column]
        found = simulation[variable.name]
        errors = np.abs(found - truth)
        bound = limits.values[:, column]
        judged = int(limits.judged[column])
        finite = bool(np.all(np.isfinite(found)))
        enough = judged >= _count_required_points(reference.trajectory.values)
        ratios = np.where(errors <= 0, 0.0, errors / np.where(bound > 0, bound, np.finfo(float).tiny))[: max(judged, 1)]
        ratios = np.where(np.isfinite(ratios), ratios, np.inf)
        worst = int(np.argmax(ratios))
        good = finite and bool(np.all(ratios <= 1.0))
        reason = limits.reasons[column]
        if not finite:
            reason = "the FMU gives no finite number"
        elif not good:
            reason = f"the error is {ratios[worst]:.3g} times its bound"
        results.append(
            VariableResult(
                name=variable.name,
                kind=variable.kind,
                unit=variable.unit,
                range=float(np.ptp(truth)),
                max_error=float(np.max(errors[: max(judged, 1)])),
                at=float(time[worst]),
                error=float(errors[worst]),
                bound=float(bound[worst]),
                ratio=float(ratios[worst]) if finite else float("inf"),
                horizon=float(time[max(judged - 1, 0)]),
                verdict="failed" if not good else "passed" if enough else "unjudged",
                reason=reason,
                errors=errors,
                bounds=bound,
            )
        )
    return tuple(results)


def find_event_sides_taken(
    reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult
) -> dict[int, int]:
    """Return points near an event → the number of the side on which all of the FMU's variables are."""
    return {k: int(np.argmin(_compute_error_ratios_by_side(reference, limits, simulation, k))) for k in limits.sides}


def find_switch_modes_taken(
    reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult
) -> dict[int, SwitchModes]:
    """Return points near an event → the modes of the FMU's side.

    Sides that the FMU's own state contradicts are left out: where errors have grown, the values of both sides lie
    within the bounds, and only the state tells where the FMU is. A point of which all sides are left out is not there:
    its modes follow from the state.
    """
    numeric, run = reference.numeric, reference.conditions
    found: dict[int, SwitchModes] = {}
    if not isinstance(numeric, HybridEquations):
        return found
    prepared = numeric.prepare(run.parameters)
    columns = [simulation.names.index(reference.trajectory.names[c]) for c in reference.state_columns]
    for k, sides in limits.sides.items():
        at = float(run.time[k]), simulation.values[k, columns], run.held(k).tolist(), prepared
        possible = [
            i for i, modes in enumerate(sides.modes) if numeric.contradiction(*at, modes) <= _CONTRADICTED_MARGIN
        ]
        off = _compute_error_ratios_by_side(reference, limits, simulation, k)[possible]
        if possible:
            found[k] = sides.modes[possible[int(np.argmin(off))]]
    return found


def _compute_error_ratios_by_side(
    reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult, k: int
) -> Floats:
    """Return the FMU's largest error over bound on each side of an event at a point, shape (sides,)."""
    found = np.array([simulation[variable.name][k] for variable in reference.variables])
    off = np.abs(found - limits.sides[k].values) / np.maximum(limits.values[k], np.finfo(float).tiny)
    return np.asarray(np.max(off, axis=1))


def _select_values_of_fmu_side(reference: ReferenceRun, limits: ErrorBounds, simulation: FmuSimulationResult) -> Floats:
    """Return the reference's values; near events those of the FMU's side."""
    truth = reference.trajectory.values.copy()
    for k, side in find_event_sides_taken(reference, limits, simulation).items():
        truth[k] = limits.sides[k].values[side]
    return truth


def compare_invariants(
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
    begins = find_switch_modes_taken(reference, limits, simulation) if limits else {}
    beside = limits.sides if limits else {}
    steps = [
        CommunicationStep(k, begins.get(k), states[k + 1] if k + 1 in beside else None)
        for k in choose_compared_steps(reference).tolist()
    ]
    flow = OneStepFlow(reference)
    landings = [flow.compute_step_end(step, states[step.k]) for step in steps]
    results = [*_judge_one_step_errors(reference, flow, states, (steps, landings), simulation.kind)]
    if any(balance.name == "energy" for balance in reference.balances):
        results.append(_judge_energy_balance(reference, states, (steps, landings)))
    if integrals:
        results += _judge_first_integrals(reference, integrals, values)
    return (
        *results,
        *_judge_constraint_residuals(reference, values),
        *compare_constraint_diagnostics(reference, simulation),
    )


def _judge_one_step_errors(
    reference: ReferenceRun,
    flow: OneStepFlow,
    states: Floats,
    made: tuple[Sequence[CommunicationStep], Sequence[StepEnd]],
    kind: InterfaceType,
) -> list[InvariantResult]:
    """Return one one-step error per state.

    Args:
        reference: What the FMU is judged by.
        flow: Of the reference.
        states: The FMU's, shape (n_t, n_x).
        made: The compared steps, and where the flow leads from the FMU's state at the beginning of each.
        kind: How the FMU is run.
    """
    steps, landings = made
    columns = list(reference.state_columns)
    sizes, _ = compute_variable_sizes(reference, reference.scales)
    cap = MAX_INFORMATIVE_FRACTION * sizes[columns]
    grown = (
        ERROR_BOUND_FACTOR * reference.conditions.tolerance * _compute_step_error_growth(reference, flow, states, made)
    )
    limits = np.tile(np.minimum(grown, cap), (len(steps), 1))
    rounding = ROUND_OFF_ALLOWANCE * np.max(np.abs(reference.states), axis=0)
    numbers = np.array([step.k for step in steps])
    defects = np.abs(states[numbers + 1] - np.array([landing.x for landing in landings]))
    for i in np.flatnonzero(np.any(defects > limits + rounding, axis=1)).tolist():
        begin = states[steps[i].k]
        late = flow.compute_delay_shift(steps[i], begin, landings[i], kind)
        same, other = flow.spread(steps[i], begin, landings[i], np.minimum(grown, cap))
        limits[i] = np.minimum(grown + late + same, cap) + other
    names = [reference.trajectory.names[c] for c in columns]
    units = [reference.variables[c].unit for c in columns]
    time = reference.trajectory.time[numbers + 1]
    formula = "|x(t + h) − Φ(x(t))|, Φ the reference's flow over one step" + _format_compared_share(reference, steps)
    return [
        form_invariant_result(
            time, f"one-step error of {name}", formula, unit, defects[:, j], limits[:, j] + rounding[j]
        )
        for j, (name, unit) in enumerate(zip(names, units, strict=True))
    ]


def _compute_step_error_growth(
    reference: ReferenceRun,
    flow: OneStepFlow,
    states: Floats,
    made: tuple[Sequence[CommunicationStep], Sequence[StepEnd]],
) -> Floats:
    """Return the largest growth of errors over a step, at up to ten steps without events, or scales, (n_x,)."""
    scales = reference.state_scales
    smooth = [
        (s, end) for s, end in zip(*made, strict=True) if not end.events and s.start_modes is None and s.beside is None
    ]
    local = scales.copy()
    for i in np.unique(np.linspace(0, len(smooth) - 1, _GROWTH_SAMPLES).astype(np.int64)).tolist() if smooth else ():
        step, end = smooth[i]
        axes = choose_error_directions(len(scales))
        moved = [flow.compute_step_end(step, states[step.k] + RELATIVE_START_ERROR * axis * scales).x for axis in axes]
        local = np.maximum(local, np.sum(np.abs(np.array(moved) - end.x), axis=0) / RELATIVE_START_ERROR)
    return np.asarray(local)


def _judge_energy_balance(
    reference: ReferenceRun, states: Floats, made: tuple[Sequence[CommunicationStep], Sequence[StepEnd]]
) -> InvariantResult:
    """Judge the energy balance |Σ ΔT − W| in J over the compared steps: |T − T(0) − W| where these are all steps.

    The bound grows with the energy that loads have exchanged in them.
    """
    run, numeric = reference.conditions, reference.numeric
    prepared = numeric.prepare(run.parameters)
    numbers = np.array([step.k for step in made[0]])
    kinetic, power = np.zeros(len(states)), np.zeros(len(states))
    for k in np.union1d(numbers, numbers + 1).tolist():
        motion = numeric.motion(float(run.time[k]), states[k], run.held(k).tolist(), prepared)
        kinetic[k], power[k] = motion.kinetic, abs(motion.power)
    mean = (power[numbers + 1] + power[numbers]) / 2
    exchanged = np.concatenate([[0.0], np.cumsum(mean * np.diff(run.time)[numbers])])
    work = np.array([landing.work for landing in made[1]])
    scale = reference.work_scale
    drift = np.abs(np.concatenate([[0.0], np.cumsum(kinetic[numbers + 1] - kinetic[numbers] - work)]))
    limit = ERROR_BOUND_FACTOR * run.tolerance * (scale + exchanged) + ROUND_OFF_ALLOWANCE * (
        scale + exchanged
    ) * np.sqrt(len(drift))
    time = run.time[np.concatenate([[0], numbers + 1])]
    formula = "|Σ (ΔT − W)|" + _format_compared_share(reference, made[0])
    return form_invariant_result(time, "energy balance", formula, "J", drift, limit)


def _format_compared_share(reference: ReferenceRun, steps: Sequence[CommunicationStep]) -> str:
    """Return at how many of all steps something is compared, to follow its formula; nothing where at all of them."""
    count = len(reference.trajectory.time) - 1
    return "" if len(steps) == count else f", at {len(steps)} of {count} steps"


def _judge_first_integrals(
    reference: ReferenceRun, integrals: FirstIntegralsAlongRun, values: Floats
) -> list[InvariantResult]:
    """Judge each integral of motion."""
    strays = integrals.compute_deviations(values)
    limits = integrals.limits(ERROR_BOUND_FACTOR * reference.conditions.tolerance)
    return [
        form_invariant_result(integrals.time, kept.name, CONSERVATION_FORMULA, kept.unit, strays[i], limits[i])
        for i, kept in enumerate(integrals.kept)
        if integrals.told(i)
    ]


def _judge_constraint_residuals(reference: ReferenceRun, values: Floats) -> list[InvariantResult]:
    """Judge residuals of position and velocity constraints, each over its row's scale; the worst row at each time."""
    run, numeric = reference.conditions, reference.numeric
    n_q, n_u, n_z = numeric.n_q, numeric.n_u, numeric.n_z
    n_phi = len(numeric.equations.position_rows)
    if not numeric.m and not n_phi:
        return []
    prepared = numeric.prepare(run.parameters)
    rows = []
    for t, row in zip(run.time.tolist(), values, strict=True):
        q, u, z = np.split(row[: n_q + n_u + n_z], [n_q, n_q + n_u])
        rows.append(np.abs(numeric.residual(t, q, u, z, prepared)))
    scales, terms = compute_constraint_scales(numeric, run, reference.trajectory.values, reference.scales)
    relative = np.array(rows) / scales
    limits = np.broadcast_to(
        ERROR_BOUND_FACTOR * run.tolerance + ROUND_OFF_ALLOWANCE * (1 + terms / scales), relative.shape
    )
    results = []
    for name, formula, part in (
        ("position constraints", "|φ(q, t)| over the row's scale", slice(None, n_phi)),
        ("velocity constraints", "|A u + b| over the row's scale", slice(n_phi, None)),
    ):
        if relative[:, part].shape[1]:
            worst = np.argmax(relative[:, part] / limits[:, part], axis=1)[:, None]
            values, bound = (np.take_along_axis(each[:, part], worst, axis=1)[:, 0] for each in (relative, limits))
            results.append(form_invariant_result(run.time, name, formula, "1", values, bound))
    return results
