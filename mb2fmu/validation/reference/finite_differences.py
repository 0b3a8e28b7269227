"""Effects of small changes of states, inputs or parameters, by differences of the reference's x' and outputs.

Directions lie along the constraints: the reference's state is moved, put back onto them, and whatever of q, u and z the
FMU has for states follows. So the choice of states does not matter, nor how an FMU is stabilized towards the
constraints. Central differences of two step sizes, extrapolated; how far these are apart says how well they are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun

Floats = npt.NDArray[np.float64]

_STEP_FRACTION = 1e-4
_MAX_DIRECTIONS = 12
_RANDOM_SEED = 11


@dataclass(frozen=True, slots=True)
class FiniteDifferencePoint:
    """A point at which derivatives are taken.

    Attributes:
        row: A communication point.
        inputs: Inputs.
        parameters: Free ones.
        after_event: State and modes are those behind the event in which parameters became these; else those before it.
        state: x there; None: the reference's.
    """

    row: int
    inputs: Floats
    parameters: tuple[float, ...]
    after_event: bool = False
    state: Floats | None = None


@dataclass(frozen=True, slots=True)
class DirectionalDifferences:
    """Changes and their effects. One row per direction.

    Attributes:
        point: Where.
        variables: Changes of all compared variables (q, u, z, outputs), shape (n_d, n).
        inputs: Changes of the inputs, shape (n_d, n_r).
        parameters: Changes of the free parameters, shape (n_d, n_p).
        rates: Changes of x', shape (n_d, n_x).
        variable_errors: How well ``variables`` are known, same shape.
        rate_errors: How well ``rates`` are known, same shape.
    """

    point: FiniteDifferencePoint
    variables: Floats
    inputs: Floats
    parameters: Floats
    rates: Floats
    variable_errors: Floats
    rate_errors: Floats


def _compute_state_spans(reference: ReferenceRun) -> Floats:
    """Return how far each state goes in the experiment, > 0, shape (n_x,); 1/100 of its magnitude if it rests.

    Of an angle a turn at most: steps of many turns, where feedback is unstable, agree with each other and say nothing.
    """
    spans = np.maximum(np.ptp(reference.states, axis=0), 1e-2 * reference.state_scales)
    turns = [2 * np.pi if reference.variables[column].unit == "rad" else np.inf for column in reference.state_columns]
    return np.asarray(np.minimum(spans, turns))


def compute_state_and_input_differences(
    reference: ReferenceRun, point: FiniteDifferencePoint
) -> DirectionalDifferences:
    """Return directions along each state and input if these are few, else random ones; then along all at once.

    What is wrong only where several are requested in one call shows in the last.
    """
    n_x, n_r = reference.numeric.n_x, len(point.inputs)
    directions = np.vstack(
        [
            _choose_directions(n_x) @ np.eye(n_x, n_x + n_r),
            _choose_directions(n_r) @ np.eye(n_r, n_x + n_r, n_x),
            _draw_random_signs(n_x + n_r),
        ]
    )
    directions = directions * np.append(_compute_state_spans(reference), _compute_input_ranges(reference))
    return _measure_differences(
        reference, point, directions[:, :n_x], directions[:, n_x:], np.zeros((len(directions), len(point.parameters)))
    )


def compute_parameter_differences(
    reference: ReferenceRun, point: FiniteDifferencePoint, indices: Sequence[int]
) -> DirectionalDifferences:
    """Return directions along single parameters at the same state, then along all of them with states and inputs.

    ``indices``: only such parameters as leave the state on the constraints.
    """
    values = np.array(point.parameters)
    n_x, n_r, parameter_indices = reference.numeric.n_x, len(point.inputs), list(indices)
    directions = np.zeros((len(parameter_indices) + 1, n_x + n_r + len(values)))
    sizes = np.where(values == 0, 1.0, np.abs(values))
    directions[np.arange(len(parameter_indices)), n_x + n_r + np.array(parameter_indices, dtype=int)] = sizes[
        parameter_indices
    ]
    signs = _draw_random_signs(n_x + n_r + len(parameter_indices))[0]
    directions[-1, : n_x + n_r] = signs[: n_x + n_r] * np.append(
        _compute_state_spans(reference), _compute_input_ranges(reference)
    )
    directions[-1, [n_x + n_r + index for index in parameter_indices]] = signs[n_x + n_r :] * sizes[parameter_indices]
    return _measure_differences(
        reference, point, directions[:, :n_x], directions[:, n_x : n_x + n_r], directions[:, n_x + n_r :]
    )


def compute_differences_along_directions(
    reference: ReferenceRun, directions: DirectionalDifferences, state: Floats
) -> DirectionalDifferences:
    """Return the differences along the same changes at another state."""
    states = directions.variables[:, list(reference.state_columns)]
    point = replace(directions.point, state=state)
    return _measure_differences(reference, point, states, directions.inputs, directions.parameters)


def compute_variable_time_derivatives(reference: ReferenceRun, point: FiniteDifferencePoint) -> tuple[Floats, Floats]:
    """Return time derivatives of all compared variables along the motion, inputs held, and their accuracy."""
    x = _state_at_point(reference, point)
    x_dot = _evaluate_at_point(reference, point, 0.0, x, point.inputs, point.parameters)[1]
    step = _STEP_FRACTION * reference.experiment.step

    def values_after(size: float) -> Floats:
        """Return all variables a little later."""
        return _evaluate_at_point(reference, point, size, x + size * x_dot, point.inputs, point.parameters)[0]

    with _keep_modes_of_point(reference, point):
        small_step = (values_after(step) - values_after(-step)) / (2 * step)
        large_step = (values_after(2 * step) - values_after(-2 * step)) / (4 * step)
        noise = _measure_round_off(reference, point, x)[0] / step
    return (4 * small_step - large_step) / 3, np.abs(small_step - large_step) + noise


def _measure_round_off(reference: ReferenceRun, point: FiniteDifferencePoint, x: Floats) -> tuple[Floats, Floats]:
    """Return what the last digit of each state makes of all compared variables and of x'.

    A step along a direction moves an angle of 1e9 rad by a few of its last digits: two step sizes that err alike agree.
    """
    sides = [
        _evaluate_at_point(reference, point, 0.0, x + sign * np.spacing(np.abs(x)), point.inputs, point.parameters)
        for sign in (-1.0, 0.0, 1.0)
    ]
    values, rates = ([np.abs(side[i] - sides[1][i]) for side in sides[::2]] for i in (0, 1))
    return np.maximum(*values), np.maximum(*rates)


def _state_at_point(reference: ReferenceRun, point: FiniteDifferencePoint) -> Floats:
    """Return the state there; a change of parameters may have parted a contact, for example."""
    x = reference.states[point.row] if point.state is None else point.state
    run, numeric = reference.experiment, reference.numeric
    if not point.after_event:
        return np.asarray(x)
    before, after = numeric.prepare(run.parameters), numeric.prepare(list(point.parameters))
    return numeric.state_after_parameter_change(float(run.time[point.row]), x, point.inputs.tolist(), before, after)


def find_modes_of_point(reference: ReferenceRun, point: FiniteDifferencePoint) -> Floats:
    """Return the modes behind the event in which parameters change, of equations with events."""
    numeric, t = reference.numeric, float(reference.experiment.time[point.row])
    assert is_hybrid(numeric)
    x, prepared = _state_that_tells_modes(reference, point), numeric.prepare(list(point.parameters))
    with _keep_modes_of_point(reference, point):
        return numeric.find_modes(t, x, point.inputs.tolist(), prepared).values


def _state_that_tells_modes(reference: ReferenceRun, point: FiniteDifferencePoint) -> Floats:
    """Return the point's own state behind an event, else the reference's."""
    state = point.state if point.after_event else None
    return np.asarray(reference.states[point.row] if state is None else state)


def _keep_modes_of_point(reference: ReferenceRun, point: FiniteDifferencePoint) -> AbstractContextManager[None]:
    """Keep the modes of the point: other parameters would change them by events only.

    Another state has the modes of the reference's, for what sticks drifts by an integrator's errors; but an event finds
    modes by the state that it comes in.
    """
    numeric, run = reference.numeric, reference.experiment
    t, x = float(run.time[point.row]), _state_that_tells_modes(reference, point)
    after = numeric.prepare(list(point.parameters)) if point.after_event else None
    return numeric.keep_modes(t, x, point.inputs.tolist(), numeric.prepare(run.parameters), after)


def _compute_input_ranges(reference: ReferenceRun) -> Floats:
    """Return the range of each input in the experiment, > 0, shape (n_r,); 1 where it is always zero."""
    inputs = reference.experiment.inputs
    if inputs.shape[1] == 0:
        return np.ones(0)
    ranges = np.maximum(np.ptp(inputs, axis=0), 1e-3 * np.max(np.abs(inputs), axis=0))
    return np.where(ranges > 0, ranges, 1.0)


def _draw_random_signs(n: int) -> Floats:
    """Return one row of random signs, shape (1, n): all at once."""
    return np.random.default_rng(_RANDOM_SEED + 1).choice(np.array([-1.0, 1.0]), size=(1, n))


def _choose_directions(n: int) -> Floats:
    """Return the axes if these are few, else random directions of all."""
    if n <= _MAX_DIRECTIONS:
        return np.eye(n)
    return np.random.default_rng(_RANDOM_SEED).choice(np.array([-1.0, 1.0]), size=(_MAX_DIRECTIONS, n))


def _measure_differences(
    reference: ReferenceRun, point: FiniteDifferencePoint, states: Floats, inputs: Floats, parameters: Floats
) -> DirectionalDifferences:
    """Return differences along given changes, one per row."""
    rows, x = [], _state_at_point(reference, point)
    with _keep_modes_of_point(reference, point):
        noise = [each / _STEP_FRACTION for each in _measure_round_off(reference, point, x)]
    for dx, dr, dp in zip(states, inputs, parameters, strict=True):
        with _keep_modes_of_point(reference, point):
            values_by_step = {
                k: _evaluate_at_point(reference, point, 0.0, x + k * _STEP_FRACTION * dx,
                       point.inputs + k * _STEP_FRACTION * dr,
                       np.array(point.parameters) + k * _STEP_FRACTION * dp)
                for k in (-2, -1, 1, 2)
            }  # fmt: skip
        small_step = [
            (a - b) / (2 * _STEP_FRACTION) for a, b in zip(values_by_step[1], values_by_step[-1], strict=True)
        ]
        large_step = [
            (a - b) / (4 * _STEP_FRACTION) for a, b in zip(values_by_step[2], values_by_step[-2], strict=True)
        ]
        best = [(4 * a - b) / 3 for a, b in zip(small_step, large_step, strict=True)]
        errors = (np.abs(a - b) + c for a, b, c in zip(small_step, large_step, noise, strict=True))
        rows.append((*best, *errors))
    n, n_x = len(reference.variables), reference.numeric.n_x
    stacked_values = [np.array([row[i] for row in rows]).reshape(len(rows), (n, n_x, n, n_x)[i]) for i in range(4)]
    return DirectionalDifferences(
        point, stacked_values[0], inputs, parameters, stacked_values[1], stacked_values[2], stacked_values[3]
    )


def _evaluate_at_point(
    reference: ReferenceRun,
    point: FiniteDifferencePoint,
    time_shift: float,
    state: Floats,
    inputs: Floats,
    parameters: Sequence[float] | Floats,
) -> tuple[Floats, Floats]:
    """Return all compared variables and x', at the point's time + ``time_shift`` and a state, put onto the constraints.

    Raises:
        ValidationError, ArithmeticError, ValueError: Where an expression leaves its domain.
    """
    numeric = reference.numeric
    t = float(reference.experiment.time[point.row]) + time_shift
    prepared = numeric.prepare([float(p) for p in parameters])
    x = numeric.project(t, state, inputs, prepared)
    motion = numeric.motion(t, x, inputs.tolist(), prepared)
    values = np.concatenate([x[: numeric.n_q], motion.u, x[len(x) - numeric.n_z :], motion.outputs])
    return values, motion.x_dot
