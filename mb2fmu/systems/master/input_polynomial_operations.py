"""Polynomials that inputs follow during one communication step.

Coefficients are (c0, c1, c2): u(t_n + s) = c0 + c1 s + c2 s². Shapes are (n, 3) for n inputs; s is in seconds.

A component that takes a value and a slope cannot follow a parabola. The line with the same first two moments over the
step (the Legendre projection; Abramowitz & Stegun, Handbook of Mathematical Functions, 22.2.10) is used instead:
the difference is orthogonal to constants and lines, so that a smooth component's state differs by O(H^5) per step,
less than the error of an extrapolation of order 2.

What is done some ten times in each pass is done with lists: an operation of NumPy on a few numbers takes as long as a
list of fifty.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
TimedValues = tuple[float, Floats]
"""A time in s, and values there."""

_COEFFICIENTS = 3
"""Of the polynomials that inputs follow."""
_MIN_POINT_DISTANCE = 1e-3
"""Points nearer to each other than this part of a step give no slope: after an event a step may be 1e-9 s long, and the
residual of the iteration divided by that would be taken for a slope."""


def select_interpolation_points(points: Sequence[TimedValues], step_size: float) -> list[TimedValues]:
    """Return the points that are far enough apart to fit a polynomial over a step.

    Args:
        points: From the earliest to the newest, which is kept.
        step_size: Size of the step, in s.
    """
    selected_points = list(points[-1:])
    for point in reversed(points[:-1]):
        if selected_points[0][0] - point[0] >= _MIN_POINT_DISTANCE * step_size:
            selected_points.insert(0, point)
    return selected_points


def fit_input_polynomials(times: Sequence[float], values: Floats) -> Floats:
    """Return the polynomials through given points, by divided differences.

    Source: Å. Björck, V. Pereyra, Solution of Vandermonde systems of equations, Math. Comp. 24 (1970) 893-903. Small
    and large steps do equally well, and a few points take a sixth of the time of a general solver.

    Args:
        times: Distinct, relative to the beginning of the step, in s.
        values: Shape (len(times), n).

    Returns:
        Coefficients, shape (n, 3); with more than three times a column for each.
    """
    count, rows, at = len(times), values.tolist(), [float(time) for time in times]
    for distance in range(1, count):
        for k in range(count - 1, distance - 1, -1):
            span = at[k] - at[k - distance]
            rows[k] = [(value - before) / span for value, before in zip(rows[k], rows[k - 1], strict=True)]
    for first in range(count - 2, -1, -1):
        time = at[first]
        for k in range(first, count - 1):
            rows[k] = [value - time * behind for value, behind in zip(rows[k], rows[k + 1], strict=True)]
    rows += [[0.0] * values.shape[1]] * (3 - count)
    return np.array(rows).T.copy()


def evaluate_input_polynomials(polynomials: Floats, time: float | Floats) -> Floats:
    """Return values at s, shape (n,); of one polynomial, at several times, shape (n_times,)."""
    if polynomials.shape[1] == _COEFFICIENTS and isinstance(time, float):
        s = float(time)
        return np.array([first + s * (second + s * third) for first, second, third in polynomials.tolist()])
    values = polynomials[:, -1]
    for power in range(polynomials.shape[1] - 2, -1, -1):
        values = polynomials[:, power] + time * values
    return np.asarray(values)


def differentiate_input_polynomials(polynomials: Floats, time: float | Floats) -> Floats:
    """Return derivatives by time at s, shape (n,); of one polynomial, at several times, shape (n_times,)."""
    degree = polynomials.shape[1] - 1
    derivatives = degree * polynomials[:, degree]
    for power in range(degree - 1, 0, -1):
        derivatives = power * polynomials[:, power] + time * derivatives
    return np.asarray(derivatives)


def shift_input_polynomials(polynomials: Floats, time: float) -> Floats:
    """Return the polynomials counted from s."""
    if not time:
        return polynomials[:, :3]
    return np.stack(
        [
            evaluate_input_polynomials(polynomials, time),
            differentiate_input_polynomials(polynomials, time),
            polynomials[:, 2],
        ],
        axis=1,
    )


def fit_moment_preserving_input_line(polynomials: Floats, size: float) -> Floats:
    """Return the lines with the same moments of order 0 and 1 over [0, size]; shape (n, 3), the last column zero."""
    lines = [(c0 - c2 * size**2 / 6.0, c1 + c2 * size, 0.0) for c0, c1, c2 in polynomials.tolist()]
    return np.array(lines).reshape(-1, _COEFFICIENTS)


def average_input_polynomials(polynomials: Floats, size: float) -> Floats:
    """Return means over [0, size], shape (n,)."""
    return np.asarray(polynomials[:, 0] + size * (polynomials[:, 1] / 2.0 + size * polynomials[:, 2] / 3.0))
