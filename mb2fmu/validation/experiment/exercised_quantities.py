"""Coverage of influence: the parameters, start values and inputs that changed a judged variable.

Asked of the reference, along the perturbed experiment: by how much would each judged variable be off, had one
parameter or input alone kept its default? Only what is off by more than its bound could have been seen. The motion is
integrated anew with that one quantity at its default, wherever this is cheap (compiled equations) or needed (events).
Elsewhere, and where that motion cannot be run, the change is followed to first order by the variational equation d' =
J d + g: J (by the states) and g (by the quantity) from differences of the reference's own x', d carried from sample to
sample by the matrix exponential, and put back onto the constraints there. It is judged as the FMU is: against the
bounds, within the horizons. A start value is judged where it is set: at t = 0. What is a hundred
times its bound after a sixteenth, an eighth, a quarter or half of the experiment is not followed any further.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.linalg import expm

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.model_declarations import Declarations
from mb2fmu.validation.comparison.motion_comparison import ErrorBounds
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.reference.reference_run import ReferenceRun, observe_trajectory
from mb2fmu.validation.reference.trajectory_integration import TrajectoryIntegration
from mb2fmu.validation.result import ExercisedResult, Perturbation

Floats = npt.NDArray[np.float64]

_PROBE_FRACTION = 1e-6
_INTEGRATION_TOLERANCE = 1e-10
_CLEAR_RATIO = 1e2  # times its bound: no need to follow a change further
_NEGLIGIBLE_RATIO = 1e-2  # of a bound: as much as round-off makes of differences
_MOST_SAMPLES = 20
_FEWEST_SAMPLES = 3
_EVALUATION_BUDGET = 1500  # evaluations of the reference's equations


@dataclass(frozen=True, slots=True)
class _ResetToDefault:
    """A quantity put back to its default: parameters, and inputs at each communication step."""

    parameters: Floats
    inputs: Floats


def find_exercised_quantities(
    definition: Declarations,
    moves: Sequence[Perturbation],
    default: ReferenceRun,
    moved: ReferenceRun | None,
    limits: ErrorBounds | None,
) -> tuple[ExercisedResult, ...]:
    """Return one result per free parameter, fixed start value and input.

    Args:
        definition: The checked model.
        moves: What became of them, in the perturbed experiment.
        default: The default experiment.
        moved: The moved one; None if there is none: nothing is validated then.
        limits: Bounds and horizons of the moved one.
    """
    if moved is None or limits is None:
        return tuple(
            ExercisedResult(name=m.name, role=m.role, ratio=0.0, most="", reason=m.reason or "nothing was moved")
            for m in moves
        )
    changes = _form_resets(definition, moves, moved)
    found = dict(zip(changes, _compute_change_ratios(moved, limits, list(changes.values())), strict=True))
    return tuple(_judge_quantity(move, found.get((move.role, move.name)), default, moved, limits) for move in moves)


def _compute_change_ratios(
    moved: ReferenceRun, limits: ErrorBounds, changes: Sequence[_ResetToDefault]
) -> list[Floats]:
    """Return for each change and variable the largest |change of the variable| over its bound, shape (n,) each."""
    events = isinstance(moved.numeric, HybridEquations)
    if not (events or moved.numeric.compiled_equations):
        return _follow_changes_to_first_order(moved, limits, changes)
    found = [_integrate_change(moved, limits, change) for change in changes]
    lacking = [] if events else [i for i, ratios in enumerate(found) if ratios is None]
    first_order = dict(
        zip(lacking, _follow_changes_to_first_order(moved, limits, [changes[i] for i in lacking]), strict=True)
    )
    none = np.zeros(len(moved.variables))
    return [first_order.get(i, none) if ratios is None else ratios for i, ratios in enumerate(found)]


def _judge_quantity(
    move: Perturbation, followed: Floats | None, default: ReferenceRun, moved: ReferenceRun, limits: ErrorBounds
) -> ExercisedResult:
    """Return the verdict on one quantity."""
    if followed is None:  # a start value: it is a variable itself
        column = moved.trajectory.column(move.name)
        allowed = float(limits.values[0, column])
        off = abs(moved.trajectory.values[0, column] - default.trajectory.values[0, column])
        ratio, most = off / max(allowed, np.finfo(float).tiny), move.name
    else:
        worst = int(np.argmax(followed))
        ratio, most = float(followed[worst]), moved.variables[worst].name
    reason = move.reason
    if not reason and ratio <= _NEGLIGIBLE_RATIO:
        reason = "not exercised"
    elif not reason and ratio <= 1.0:
        reason = "its influence is smaller than the bounds"
    return ExercisedResult(
        name=move.name, role=move.role, ratio=float(ratio), most=most if ratio > 0 else "", reason=reason
    )


def _form_resets(
    definition: Declarations, moves: Sequence[Perturbation], moved: ReferenceRun
) -> dict[tuple[str, str], _ResetToDefault]:
    """Return for each parameter and input the changes if it keeps its default."""
    run = moved.experiment
    still = np.zeros_like(run.inputs)
    free = [p.name for p in definition.parameters if not p.calculated]
    found: dict[tuple[str, str], _ResetToDefault] = {}
    for move in moves:
        parameters, inputs = np.zeros(len(free)), still.copy()
        if move.role == "parameter":
            parameters[free.index(move.name)] = move.default - run.parameters[free.index(move.name)]
        elif move.role == "input":
            column = run.input_names.index(move.name)
            inputs[:, column] = move.default - run.inputs[:, column]
        else:
            continue
        found[move.role, move.name] = _ResetToDefault(parameters, inputs)
    return found


def _integrate_change(reference: ReferenceRun, limits: ErrorBounds, change: _ResetToDefault) -> Floats | None:
    """Return :func:`_compute_change_ratios` for one change; None where the motion cannot be run or has no numbers.

    With events, which a motion is not taken up between, it is run all at once, and for a shorter time where it fails.
    """
    ends = _list_check_points(len(reference.experiment.time) - 1)
    ways = [[end] for end in reversed(ends)] if isinstance(reference.numeric, HybridEquations) else [ends]
    for way in ways:
        try:
            ratios = _follow_change(reference, limits, change, way)
        except (ValidationError, ArithmeticError, ValueError):
            continue
        if np.all(np.isfinite(ratios)):
            return ratios
    return None


def _follow_change(
    reference: ReferenceRun, limits: ErrorBounds, change: _ResetToDefault, ends: Sequence[int]
) -> Floats:
    """Return :func:`_compute_change_ratios` for one change, compared at each of the points ``ends``."""
    numeric, run = reference.numeric, reference.experiment
    scales = reference.error_scales(_INTEGRATION_TOLERANCE)
    parameters = tuple((np.array(run.parameters) + change.parameters).tolist())
    other = replace(run, parameters=parameters, inputs=run.inputs + change.inputs)
    prepared = numeric.prepare(parameters)
    start = numeric.project(0.0, reference.states[0], prepared)
    moved, ratios = np.append(start, 0.0)[None, :], np.zeros(len(reference.variables))
    for end in ends:
        rows = slice(len(moved) - 1, end + 1)
        part = TrajectoryIntegration(numeric, run.time[rows], other.inputs[rows.start : end], prepared, stiff=run.stiff)
        further = part.integrate_trajectory(
            moved[-1], _INTEGRATION_TOLERANCE, scales, projected=numeric.has_state_constraints
        )
        moved = np.concatenate([moved, further[1:]])
        ratios = _compute_largest_ratios(
            reference, limits, observe_trajectory(numeric, other, moved[:, :-1], prepared)[0]
        )
        if not np.max(ratios) <= _CLEAR_RATIO:
            break
    return ratios


def _list_check_points(last: int) -> list[int]:
    """Return the points up to which a change is followed before the next look."""
    return sorted({max(1, last // part) for part in (16, 8, 4, 2, 1)})


def _compute_largest_ratios(reference: ReferenceRun, limits: ErrorBounds, seen: Floats) -> Floats:
    """Return the largest |change of each variable| over its bound, at the first judged points, as many as there are."""
    count = len(seen)
    judged = np.arange(count)[:, None] < limits.predictable_points[None, :]
    off = np.where(judged, np.abs(seen - reference.trajectory.values[:count]), 0.0)
    return np.asarray(np.max(off / np.maximum(limits.values[:count], np.finfo(float).tiny), axis=0))


def _follow_changes_to_first_order(
    reference: ReferenceRun, limits: ErrorBounds, changes: Sequence[_ResetToDefault]
) -> list[Floats]:
    """Return :func:`_compute_change_ratios` to first order; a change that overflows is followed no further."""
    numeric, run = reference.numeric, reference.experiment
    n_x, steps = numeric.n_x, len(run.time) - 1
    affordable = _EVALUATION_BUDGET // max(1, n_x + 2 * len(changes))
    count = min(steps, max(_FEWEST_SAMPLES, min(_MOST_SAMPLES, affordable)))
    rows = np.unique(np.linspace(0, steps, count + 1).astype(np.int64))
    gone = [np.zeros(n_x) for _ in changes]
    ratios = [np.zeros(len(reference.variables)) for _ in changes]
    for k, row in enumerate(rows.tolist()):
        span = float(run.time[rows[k + 1]] - run.time[row]) if k + 1 < len(rows) else 0.0
        # What is held over the coming steps; at the last row over the step before.
        held = min(row, steps - 1)
        matrix = _compute_state_jacobian(reference, row, held) if span else np.zeros((n_x, n_x))
        flow, reach = _compute_linear_flow(matrix, span)
        base = _evaluate_with_change(reference, row, held, np.zeros(n_x), None)
        for i, change in enumerate(changes):
            after = _evaluate_with_change(reference, row, held, gone[i], change)
            if base is None or after is None or not _is_finite(after):
                continue
            values = np.abs(after.values - base.values) / _PROBE_FRACTION
            judged = limits.predictable_points > row
            bound = np.maximum(limits.values[row], np.finfo(float).tiny)
            ratios[i] = np.where(judged, np.maximum(ratios[i], values / bound), ratios[i])
            if span:
                away = after.state_distance - base.state_distance
                forced = (after.x_dot - base.x_dot) / _PROBE_FRACTION - matrix @ away
                gone[i] = flow @ away + reach @ forced
    return ratios


def _is_finite(seen: _ComparedValues) -> bool:
    return bool(np.all(np.isfinite(seen.values)) and np.all(np.isfinite(seen.x_dot)))


@dataclass(frozen=True, slots=True)
class _ComparedValues:
    """All compared variables and x' at a state near the reference's, and its distance (over the probe)."""

    values: Floats
    x_dot: Floats
    state_distance: Floats


def _evaluate_with_change(
    reference: ReferenceRun, row: int, held: int, gone: Floats, change: _ResetToDefault | None
) -> _ComparedValues | None:
    """Evaluate at a state shifted by the probe times ``gone``, with a change; None where that is impossible."""
    numeric, run = reference.numeric, reference.experiment
    parameters, inputs = np.array(run.parameters), run.inputs[held].copy()
    if change is not None:
        parameters = parameters + _PROBE_FRACTION * change.parameters
        inputs += _PROBE_FRACTION * change.inputs[held]
    t, x0 = float(run.time[row]), reference.states[row]
    try:
        prepared = numeric.prepare(parameters.tolist())
        x = numeric.project(t, x0 + _PROBE_FRACTION * gone, prepared)
        motion = numeric.motion(t, x, inputs.tolist(), prepared)
    except (ValidationError, ArithmeticError, ValueError):
        return None
    values = np.concatenate([x[: numeric.n_q], motion.u, x[len(x) - numeric.n_z :], motion.outputs])
    return _ComparedValues(values, motion.x_dot, (x - x0) / _PROBE_FRACTION)


def _compute_state_jacobian(reference: ReferenceRun, row: int, held: int) -> Floats:
    """Return J of x' by x at a row, shape (n_x, n_x); zeros where it cannot be evaluated."""
    numeric, run = reference.numeric, reference.experiment
    prepared = numeric.prepare(run.parameters)
    t, x, r = float(run.time[row]), reference.states[row], run.inputs[held].tolist()
    columns = np.zeros((numeric.n_x, numeric.n_x))
    try:
        base, _ = numeric.x_dot(t, x, r, prepared)
        for j, scale in enumerate(reference.state_scales.tolist()):
            beside = x.copy()
            beside[j] += _PROBE_FRACTION * scale
            columns[:, j] = (numeric.x_dot(t, beside, r, prepared)[0] - base) / (_PROBE_FRACTION * scale)
    except (ValidationError, ArithmeticError, ValueError):
        return np.zeros_like(columns)
    return columns


def _compute_linear_flow(matrix: Floats, span: float) -> tuple[Floats, Floats]:
    """Return (A, B), each (n_x, n_x): d' = ``matrix`` d + f, f constant, ends at A d(0) + B f after ``span``."""
    n = len(matrix)
    whole = np.zeros((2 * n, 2 * n))
    whole[:n, :n] = matrix
    whole[:n, n:] = np.eye(n)
    grown = expm(whole * span)
    return grown[:n, :n], grown[:n, n:]
