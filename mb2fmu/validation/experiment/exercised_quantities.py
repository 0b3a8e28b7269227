"""Coverage of influence: the parameters, start values and inputs that changed a judged variable.

Computed from the reference, along the perturbed experiment: by how much would each judged variable differ, had one
parameter or input alone kept its default? Only a difference beyond its bound could have been detected. The motion is
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

from mb2fmu.errors import ValidationError
from mb2fmu.model.declarations.declared_content_and_experiment import DeclaredModelContent
from mb2fmu.validation.comparison.motion_comparison import ErrorBounds
from mb2fmu.validation.experiment.matrix_exponential import exponentiate_matrix
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun, observe_trajectory
from mb2fmu.validation.reference.trajectory_integration import TrajectoryIntegrationProblem
from mb2fmu.validation.validation_result import TOO_LITTLE_EFFECT, ExercisedQuantityResult, PerturbedExperimentValue

Floats = npt.NDArray[np.float64]


_PROBE_FRACTION = 1e-6
_INTEGRATION_TOLERANCE = 1e-10
_CLEAR_RATIO = 1e2  # times its bound: no need to follow a change further
NEGLIGIBLE_RATIO = 1e-2
"""Of a bound: as much as round-off makes of differences."""
_MOST_SAMPLES = 20
_FEWEST_SAMPLES = 3
_EVALUATION_BUDGET = 1500  # evaluations of the reference's equations


@dataclass(frozen=True, slots=True)
class _ExperimentWithOneDefault:
    """A quantity put back to its default: parameters, and inputs at each communication step."""

    parameters: Floats
    inputs: Floats


def find_exercised_quantities(
    definition: DeclaredModelContent,
    perturbations: Sequence[PerturbedExperimentValue],
    default: ReferenceRun,
    perturbed: ReferenceRun | None,
    limits: ErrorBounds | None,
) -> tuple[ExercisedQuantityResult, ...]:
    """Return one result per free parameter, fixed start value and input.

    Args:
        definition: The checked model.
        perturbations: What became of them, in the perturbed experiment.
        default: The default experiment.
        perturbed: The moved one; None if there is none: nothing is validated then.
        limits: Bounds and horizons of the moved one.
    """
    if perturbed is None or limits is None:
        return tuple(
            ExercisedQuantityResult(
                name=perturbation.name,
                role=perturbation.role,
                ratio=0.0,
                most="",
                reason=perturbation.reason or "nothing was moved",
            )
            for perturbation in perturbations
        )
    resets = _form_resets(definition, perturbations, perturbed)
    ratios_by_reset = dict(zip(resets, _compute_change_ratios(perturbed, limits, list(resets.values())), strict=True))
    return tuple(
        _judge_quantity(
            perturbation, ratios_by_reset.get((perturbation.role, perturbation.name)), default, perturbed, limits
        )
        for perturbation in perturbations
    )


def _compute_change_ratios(
    perturbed: ReferenceRun, limits: ErrorBounds, resets: Sequence[_ExperimentWithOneDefault]
) -> list[Floats]:
    """Return for each change and variable the largest |change of the variable| over its bound, shape (n,) each."""
    has_events = is_hybrid(perturbed.numeric)
    if not (has_events or perturbed.numeric.compiled_equations):
        return _follow_changes_to_first_order(perturbed, limits, resets)
    ratios_by_change = [_integrate_change(perturbed, limits, reset) for reset in resets]
    unintegrated = [] if has_events else [i for i, ratios in enumerate(ratios_by_change) if ratios is None]
    first_order = dict(
        zip(
            unintegrated,
            _follow_changes_to_first_order(perturbed, limits, [resets[i] for i in unintegrated]),
            strict=True,
        )
    )
    no_change = np.zeros(len(perturbed.variables))
    return [first_order.get(i, no_change) if ratios is None else ratios for i, ratios in enumerate(ratios_by_change)]


def _judge_quantity(
    perturbation: PerturbedExperimentValue,
    ratios: Floats | None,
    default: ReferenceRun,
    perturbed: ReferenceRun,
    limits: ErrorBounds,
) -> ExercisedQuantityResult:
    """Return the verdict on one quantity."""
    if ratios is None:  # a start value: it is a variable itself
        column = perturbed.trajectory.column(perturbation.name)
        bound = float(limits.values[0, column])
        difference = abs(perturbed.trajectory.values[0, column] - default.trajectory.values[0, column])
        ratio, most_affected = difference / max(bound, np.finfo(float).tiny), perturbation.name
    else:
        worst = int(np.argmax(ratios))
        ratio, most_affected = float(ratios[worst]), perturbed.variables[worst].name
    reason = perturbation.reason
    if not reason and ratio <= NEGLIGIBLE_RATIO:
        reason = "not exercised"
    elif not reason and ratio <= 1.0:
        reason = TOO_LITTLE_EFFECT
    return ExercisedQuantityResult(
        name=perturbation.name,
        role=perturbation.role,
        ratio=float(ratio),
        most=most_affected if ratio > 0 else "",
        reason=reason,
    )


def _form_resets(
    definition: DeclaredModelContent, perturbations: Sequence[PerturbedExperimentValue], perturbed: ReferenceRun
) -> dict[tuple[str, str], _ExperimentWithOneDefault]:
    """Return for each parameter and input the changes if it keeps its default."""
    run = perturbed.experiment
    unchanged_inputs = np.zeros_like(run.inputs)
    free = [p.name for p in definition.parameters if not p.calculated]
    resets: dict[tuple[str, str], _ExperimentWithOneDefault] = {}
    for perturbation in perturbations:
        parameters, inputs = np.zeros(len(free)), unchanged_inputs.copy()
        if perturbation.role == "parameter":
            parameters[free.index(perturbation.name)] = (
                perturbation.default - run.parameters[free.index(perturbation.name)]
            )
        elif perturbation.role == "input":
            column = run.input_names.index(perturbation.name)
            inputs[:, column] = perturbation.default - run.inputs[:, column]
        else:
            continue
        resets[perturbation.role, perturbation.name] = _ExperimentWithOneDefault(parameters, inputs)
    return resets


def _integrate_change(reference: ReferenceRun, limits: ErrorBounds, reset: _ExperimentWithOneDefault) -> Floats | None:
    """Return :func:`_compute_change_ratios` for one change; None where the motion cannot be run or has no numbers.

    With events, which a motion is not taken up between, it is run anew for a shorter time where it fails.
    """
    check_points = _list_check_points(len(reference.experiment.time) - 1)
    shortest = 1 if is_hybrid(reference.numeric) else len(check_points)
    for count in range(len(check_points), shortest - 1, -1):
        try:
            ratios = _follow_change(reference, limits, reset, check_points[:count])
        except (ValidationError, ArithmeticError, ValueError):
            continue
        if np.all(np.isfinite(ratios)):
            return ratios
    return None


def _follow_change(
    reference: ReferenceRun, limits: ErrorBounds, reset: _ExperimentWithOneDefault, check_points: Sequence[int]
) -> Floats:
    """Return :func:`_compute_change_ratios` for one change, compared at each of the points ``check_points``."""
    numeric, run = reference.numeric, reference.experiment
    scales = reference.error_scales(_INTEGRATION_TOLERANCE)
    parameters = tuple((np.array(run.parameters) + reset.parameters).tolist())
    changed_experiment = replace(run, parameters=parameters, inputs=run.inputs + reset.inputs)
    prepared = numeric.prepare(parameters)
    start = numeric.project(0.0, reference.states[0], changed_experiment.inputs_at(0), prepared)
    trajectory, ratios = np.append(start, 0.0)[None, :], np.zeros(len(reference.variables))
    values = np.zeros((0, len(reference.variables)))  # at the points that were looked at

    def is_clear(followed: Floats) -> bool:
        """Return whether the change is clear, or no number, by a point that is looked at; take its ratios."""
        nonlocal ratios, values
        if len(followed) - 1 not in check_points:
            return False
        further_values, _, _ = observe_trajectory(
            numeric, changed_experiment, followed[len(values) :, :-1], prepared, first_point=len(values)
        )
        values = np.concatenate([values, further_values])
        ratios = _compute_largest_ratios(reference, limits, values)
        return not np.max(ratios) <= _CLEAR_RATIO

    for end in check_points[-1:] if is_hybrid(numeric) else check_points:
        rows = slice(len(trajectory) - 1, end + 1)
        part = TrajectoryIntegrationProblem(
            numeric, run.time[rows], changed_experiment.inputs[rows.start : end], prepared, stiff=run.stiff
        )
        continuation = part.integrate_trajectory(
            trajectory[-1], _INTEGRATION_TOLERANCE, scales, projected=numeric.has_state_constraints, ends_early=is_clear
        )
        trajectory = np.concatenate([trajectory, continuation[1:]])
        if not is_hybrid(numeric) and is_clear(trajectory):
            break
    return ratios


def _list_check_points(last: int) -> list[int]:
    """Return the points up to which a change is followed before the next look."""
    return sorted({max(1, last // divisor) for divisor in (16, 8, 4, 2, 1)})


def _compute_largest_ratios(reference: ReferenceRun, limits: ErrorBounds, values: Floats) -> Floats:
    """Return the largest |change of each variable| over its bound, at the first judged points, as many as there are."""
    count = len(values)
    is_judged = np.arange(count)[:, None] < limits.predictable_points[None, :]
    differences = np.where(is_judged, np.abs(values - reference.trajectory.values[:count]), 0.0)
    return np.asarray(np.max(differences / np.maximum(limits.values[:count], np.finfo(float).tiny), axis=0))


def _follow_changes_to_first_order(
    reference: ReferenceRun, limits: ErrorBounds, resets: Sequence[_ExperimentWithOneDefault]
) -> list[Floats]:
    """Return :func:`_compute_change_ratios` to first order; a change that overflows is followed no further."""
    numeric, run = reference.numeric, reference.experiment
    n_x, steps = numeric.n_x, len(run.time) - 1
    affordable = _EVALUATION_BUDGET // max(1, n_x + 2 * len(resets))
    count = min(steps, max(_FEWEST_SAMPLES, min(_MOST_SAMPLES, affordable)))
    rows = np.unique(np.linspace(0, steps, count + 1).astype(np.int64))
    distance = [np.zeros(n_x) for _ in resets]
    ratios = [np.zeros(len(reference.variables)) for _ in resets]
    for k, row in enumerate(rows.tolist()):
        span = float(run.time[rows[k + 1]] - run.time[row]) if k + 1 < len(rows) else 0.0
        # What is held over the coming steps; at the last row over the step before.
        input_row = min(row, steps - 1)
        state_jacobian = _compute_state_jacobian(reference, row, input_row) if span else np.zeros((n_x, n_x))
        flow, forcing_matrix = _compute_linear_flow(state_jacobian, span)
        unchanged_values = _evaluate_with_change(reference, row, input_row, np.zeros(n_x), None)
        for i, reset in enumerate(resets):
            changed = _evaluate_with_change(reference, row, input_row, distance[i], reset)
            if unchanged_values is None or changed is None or not _is_finite(changed):
                continue
            values = np.abs(changed.values - unchanged_values.values) / _PROBE_FRACTION
            is_judged = limits.predictable_points > row
            bound = np.maximum(limits.values[row], np.finfo(float).tiny)
            ratios[i] = np.where(is_judged, np.maximum(ratios[i], values / bound), ratios[i])
            if span:
                displacement = changed.state_distance - unchanged_values.state_distance
                forcing = (changed.x_dot - unchanged_values.x_dot) / _PROBE_FRACTION - state_jacobian @ displacement
                with np.errstate(over="ignore", invalid="ignore"):
                    distance[i] = flow @ displacement + forcing_matrix @ forcing
    return ratios


def _is_finite(values: _ComparedValuesAtState) -> bool:
    return bool(np.all(np.isfinite(values.values)) and np.all(np.isfinite(values.x_dot)))


@dataclass(frozen=True, slots=True)
class _ComparedValuesAtState:
    """All compared variables and x' at a state near the reference's, and its distance (over the probe)."""

    values: Floats
    x_dot: Floats
    state_distance: Floats


def _evaluate_with_change(
    reference: ReferenceRun, row: int, input_row: int, distance: Floats, reset: _ExperimentWithOneDefault | None
) -> _ComparedValuesAtState | None:
    """Evaluate at a state shifted by the probe times ``distance``, with a change; None where that is impossible."""
    numeric, run = reference.numeric, reference.experiment
    parameters, inputs = np.array(run.parameters), run.inputs[input_row].copy()
    if reset is not None:
        parameters = parameters + _PROBE_FRACTION * reset.parameters
        inputs += _PROBE_FRACTION * reset.inputs[input_row]
    t, x0 = float(run.time[row]), reference.states[row]
    try:
        prepared = numeric.prepare(parameters.tolist())
        x = numeric.project(t, x0 + _PROBE_FRACTION * distance, inputs, prepared)
        motion = numeric.motion(t, x, inputs.tolist(), prepared)
    except (ValidationError, ArithmeticError, ValueError):
        return None
    values = np.concatenate([x[: numeric.n_q], motion.u, x[len(x) - numeric.n_z :], motion.outputs])
    return _ComparedValuesAtState(values, motion.x_dot, (x - x0) / _PROBE_FRACTION)


def _compute_state_jacobian(reference: ReferenceRun, row: int, input_row: int) -> Floats:
    """Return J of x' by x at a row, shape (n_x, n_x); zeros where it cannot be evaluated."""
    numeric, run = reference.numeric, reference.experiment
    prepared = numeric.prepare(run.parameters)
    t, x, inputs = float(run.time[row]), reference.states[row], run.inputs[input_row].tolist()
    columns = np.zeros((numeric.n_x, numeric.n_x))
    try:
        base, _ = numeric.x_dot(t, x, inputs, prepared)
        for j, scale in enumerate(reference.state_scales.tolist()):
            displaced_x = x.copy()
            displaced_x[j] += _PROBE_FRACTION * scale
            columns[:, j] = (numeric.x_dot(t, displaced_x, inputs, prepared)[0] - base) / (_PROBE_FRACTION * scale)
    except (ValidationError, ArithmeticError, ValueError):
        return np.zeros_like(columns)
    return columns


def _compute_linear_flow(matrix: Floats, span: float) -> tuple[Floats, Floats]:
    """Return (A, B), each (n_x, n_x): d' = ``matrix`` d + f, f constant, ends at A d(0) + B f after ``span``."""
    n = len(matrix)
    block_matrix = np.zeros((2 * n, 2 * n))
    block_matrix[:n, :n] = matrix
    block_matrix[:n, n:] = np.eye(n)
    with np.errstate(over="ignore", invalid="ignore"):  # of a slip of round-off the slope is that of a jump
        exponential = exponentiate_matrix(block_matrix * span)
    return exponential[:n, :n], exponential[:n, n:]
