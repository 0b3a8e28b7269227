"""How small errors of the state move along a reference: by the variational equation d' = J(t) d.

J are differences of the reference's own x'. Over a step of size h, from J₀ to J₁, errors move by exp(h (J₀ + J₁) / 2):
exactly where J is constant, however stiff or fast the modes are, and with an error of order h² else. Steps of twice the
size show how large that is: what differs by a part p there is right to about p / 3. Where communication points are too
far from each other, the reference is integrated to points between them, too.

An integration of its own for each error would take some hundred evaluations per step where a body vibrates: its steps
are as small as those vibrations need, although nearly nothing of them is in the error.

Source: A. Iserles, H. Munthe-Kaas, S. Norsett, A. Zanna, Lie-group methods, Acta Numerica 9 (2000), section 4 (the
method of Magnus of order 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.validation.compiled.compiled_equations import CompiledEquations, CompiledFunctionError
from mb2fmu.validation.experiment.matrix_exponential import exponentiate_matrix
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference.trajectory_integration import TrajectoryIntegrationProblem

Floats = npt.NDArray[np.float64]

MAX_STATES = 24
"""Above so many states Jacobians and exponentials take longer than integrations of six errors."""
MAX_STEPS = 8000
MAX_DIFFERENCE = 0.25
"""What steps of twice the size may change of the largest error so far: the smaller ones are right to a tenth then."""
_POINTS = 1000
_PARTS_OF_STEP = 4
_ATTEMPTS = 4
_MARGIN = 2.5
_PROBE_FRACTION = 1e-6
_INTEGRATION_TOLERANCE = 1e-8
_STEPS_TOGETHER = 128


@dataclass(frozen=True, slots=True)
class _MotionAtPoints:
    """A motion: instants, shape (m + 1,), states there, shape (m + 1, n_x), and inputs held between them."""

    time: Floats
    states: Floats
    inputs: Floats


def propagate_small_errors(reference: ReferenceRun, errors: Floats, rows: npt.NDArray[np.int64]) -> Floats | None:
    """Return what errors at the start have become at communication points; None where that is not known to a tenth.

    Args:
        reference: Whose errors.
        errors: One in each row, over the scales of the states, shape (n_d, n_x).
        rows: The points, ascending.

    Returns:
        Over the scales, shape (n_rows, n_d, n_x).
    """
    run, dense_rows = reference.experiment.select_points(_POINTS, further_points=rows)
    motion = _MotionAtPoints(run.time, reference.states[dense_rows], run.inputs)
    parts = 1 if len(run.inputs) > 1 else _PARTS_OF_STEP  # with two steps of half the size there is a comparison
    propagated = _propagate_accurately(reference, motion, errors, parts)
    return None if propagated is None else propagated[np.searchsorted(dense_rows, rows)]


def propagate_errors_over_step(reference: ReferenceRun, k: int, errors: Floats) -> Floats | None:
    """Return what errors at the beginning of communication step k are at its end; as :func:`propagate_small_errors`.

    Returns:
        Over the scales, shape (n_d, n_x).
    """
    run = reference.experiment
    motion = _MotionAtPoints(run.time[k : k + 2], reference.states[k : k + 2], run.inputs[k : k + 1])
    propagated = _propagate_accurately(reference, motion, errors, _PARTS_OF_STEP)
    return None if propagated is None else propagated[-1]


def _propagate_accurately(
    reference: ReferenceRun, motion: _MotionAtPoints, errors: Floats, parts: int
) -> Floats | None:
    """Return errors at the points of a motion, with at least so many parts of each step, shape (m + 1, n_d, n_x)."""
    numeric, compiled = reference.numeric, reference.numeric.compiled_equations
    if is_hybrid(numeric) or numeric.has_state_constraints or compiled is None or not 0 < numeric.n_x <= MAX_STATES:
        return None
    try:
        for _ in range(_ATTEMPTS):
            if parts * len(motion.inputs) > MAX_STEPS:
                return None
            divided = motion if parts == 1 else _integrate_between_points(reference, motion, parts)
            propagated, difference = _propagate(reference, compiled, divided, errors)
            if difference <= MAX_DIFFERENCE:
                return propagated[::parts]
            if not np.isfinite(difference):
                return None
            parts *= math.ceil(_MARGIN * math.sqrt(difference / MAX_DIFFERENCE))
    except (ValidationError, CompiledFunctionError, ArithmeticError, ValueError):
        return None
    return None


def _integrate_between_points(reference: ReferenceRun, motion: _MotionAtPoints, parts: int) -> _MotionAtPoints:
    """Return the motion at points that divide each step into so many parts."""
    between = motion.time[:-1, None] + np.diff(motion.time)[:, None] * (np.arange(parts) / parts)
    time, inputs = np.append(between.ravel(), motion.time[-1]), np.repeat(motion.inputs, parts, axis=0)
    numeric, run = reference.numeric, reference.experiment
    problem = TrajectoryIntegrationProblem(numeric, time, inputs, numeric.prepare(run.parameters), stiff=run.stiff)
    states = problem.integrate_trajectory(
        np.append(motion.states[0], 0.0), _INTEGRATION_TOLERANCE, reference.error_scales(_INTEGRATION_TOLERANCE)
    )[:, :-1]
    return _MotionAtPoints(time, states, inputs)


def _propagate(
    reference: ReferenceRun, compiled: CompiledEquations, motion: _MotionAtPoints, errors: Floats
) -> tuple[Floats, float]:
    """Return errors at all points, shape (m + 1, n_d, n_x), and what steps of twice the size change, as a part of them.

    The part is that of the largest error so far of any state.
    """
    m = len(motion.inputs)
    fine, coarse = np.empty((m + 1, *errors.shape)), np.empty((m // 2 + 1, *errors.shape))
    fine[0] = coarse[0] = errors
    with np.errstate(over="ignore", invalid="ignore"):
        for begin in range(0, m, _STEPS_TOGETHER):
            steps = slice(begin, min(begin + _STEPS_TOGETHER, m))
            at_begin, at_end = _compute_jacobians(reference, compiled, motion, steps)
            h = np.diff(motion.time)[steps, None, None]
            for k, flow in enumerate(exponentiate_matrix(h * (at_begin + at_end) / 2), begin):
                fine[k + 1] = fine[k] @ flow.T
            pairs = len(h) // 2
            spans = h[0 : 2 * pairs : 2] + h[1 : 2 * pairs : 2]
            means = (at_begin[0 : 2 * pairs : 2] + at_end[1 : 2 * pairs : 2]) / 2
            for k, flow in enumerate(exponentiate_matrix(spans * means), begin // 2):
                coarse[k + 1] = coarse[k] @ flow.T
        grown, grown_coarsely = _find_largest_errors(fine[::2]), _find_largest_errors(coarse)
        return fine, float(np.max(np.abs(grown - grown_coarsely) / grown))


def _find_largest_errors(errors: Floats) -> Floats:
    """Return the largest error of each state up to each point, all rows together, shape (n, n_x)."""
    return np.asarray(np.maximum.accumulate(np.sum(np.abs(errors), axis=1), axis=0))


def _compute_jacobians(
    reference: ReferenceRun, compiled: CompiledEquations, motion: _MotionAtPoints, steps: slice
) -> tuple[Floats, Floats]:
    """Return J of x' by x, both over the scales, at the beginning and the end of steps, shape (n, n_x, n_x) each."""
    n, scales = compiled.n_x, reference.state_scales
    prepared = reference.numeric.prepare(reference.experiment.parameters)
    displacements = np.vstack([np.zeros(n), np.diag(_PROBE_FRACTION * scales)])

    def differentiate(points: slice, held: Floats) -> Floats:
        """Return J at points with their inputs, a row for each."""
        states = motion.states[points, None, :] + displacements
        time, inputs = np.repeat(motion.time[points], n + 1), np.repeat(held, n + 1, axis=0)
        slopes = compiled.motions(time, states.reshape(-1, n), inputs, prepared, "")["x_dot"].reshape(states.shape)
        return np.asarray(((slopes[:, 1:] - slopes[:, :1]) / (_PROBE_FRACTION * scales)).transpose(0, 2, 1))

    inputs = motion.inputs[steps]
    if np.all(inputs == inputs[0]):
        jacobians = differentiate(slice(steps.start, steps.stop + 1), np.vstack([inputs, inputs[-1]]))
        return jacobians[:-1], jacobians[1:]
    ends = slice(steps.start + 1, steps.stop + 1)
    return differentiate(steps, inputs), differentiate(ends, inputs)
