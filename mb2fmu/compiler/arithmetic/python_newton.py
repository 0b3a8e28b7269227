"""Newton's method for printed Python functions, and the errors of their solves.

Imports ``math`` and ``numpy`` only, as ``python_runtime`` does, which is copied into FMUs together with this file. The
steps are those of ``runtime/linear_algebra.c``, in the same order.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_ITERATIONS = 60
_HALVINGS = 12
_ERROR = 1e-16  # after the last step, which leaves an error of its product with the whole way from the guess
_STEP = 1e-13  # a step below it is the last one anyway
_RESIDUAL = 1e-10  # what is left over where no step makes it smaller, if the equations are singular there; or little
_STEPS = 2.0  # times the sum of the steps: the most that is left over of rows of unit length if these steps close them
_SCARCELY = 0.9  # less of a decrease is none
_BEND = 0.55  # of a step: how far the next one may be from what Newton's path leaves of it; 0.5 at a double solution
_LITTLE = 0.03125  # less of a bend shows that the solution is near
_FAR = 0.2  # a longer step may have a little bend only
_OPEN = 0.05  # more left over before a step: the sign of the determinant is looked at
_TURNING = 0.1  # of a step: so where it bends more
_NUDGE = 1e-6  # of a step: for differences
_FLAT = 1e-4  # less of a column has no sign: round-off

_At = Callable[[Sequence[float]], tuple[float, Sequence[float], Sequence[float]]]


class SingularMatrixError(Exception):
    """A linear solve has no unique answer.

    Args:
        name: What was solved for.
        row: The pivot that failed, counted from 0.
        pivot: Its value.
    """

    def __init__(self, name: str, row: int, pivot: float) -> None:
        self.name = name
        self.row = row
        self.pivot = pivot
        super().__init__(f"the matrix of {name or 'a linear solve'} is singular: pivot {row} is {pivot!r}")


class NoSolutionError(SingularMatrixError):
    """Newton's method does not find a solution.

    Args:
        name: What was solved for.
        residual: What is left over, scaled so that 1 is large.
    """

    def __init__(self, name: str, residual: float) -> None:
        self.name = name
        self.residual = residual
        Exception.__init__(self, f"no solution is found for {name}: {residual:.3g} is left over")


class OtherBranchError(NoSolutionError):
    """Newton's method finds a solution only beyond a singular position, on another branch of the assembly.

    Args:
        name: What was solved for.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.residual = 0.0
        solved_for, colon, rest = name.partition(":")
        told = f"a solution is found for {solved_for} on another branch of the assembly only{colon}{rest}"
        Exception.__init__(self, told)


class InconsistentEquationsError(NoSolutionError):
    """Equations contradict each other: no step reduces the residual further.

    Args:
        name: What was solved for.
        gaps: Row → what is left over of it, in its own unit.
    """

    def __init__(self, name: str, gaps: dict[str, float]) -> None:
        self.name = name
        self.residual = max(map(abs, gaps.values()))
        self.gaps = gaps
        told = ", ".join(f"{row} by {gap:.3g}" for row, gap in gaps.items())
        Exception.__init__(self, f"no solution is found for {name}: they contradict each other and stay open, {told}")


class NonPositiveValueError(SingularMatrixError):
    """A value that must be positive is not.

    Args:
        name: What is wrong then, as a clause.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        Exception.__init__(self, name)


def newton(
    n: int,
    name: str,
    body: Callable[..., Sequence[float]],
    theta: Any,
    guess: Sequence[float],
    rows: Sequence[str] = (),
) -> list[float]:
    """Solve F(y, theta) = 0 by damped steps, until they are so small that one more is the last.

    Newton's path takes F away evenly, so that the steps along it are (1 − part) of the first. A step that ends, or has
    its middle, where the next one is quite another has jumped off the path, maybe across a singular position: it is too
    long. So is one after which the determinant of F's slopes has another sign than at the guess; that is looked for, by
    differences, where much is left over or steps bend. So what is found is on the branch of the guess.

    Small steps alone do not show that F vanishes, where its rows may contradict each other: then no more of each may be
    left over than theta says (see ``Block.rows``).

    Args:
        n: Number of unknowns.
        name: For messages.
        body: (y, theta) → F and the steps, 2 n numbers.
        theta: Handed on.
        guess: Where y starts.
        rows: Names of the rows of F, where they may contradict each other.

    Raises:
        InconsistentEquationsError: If the steps become small, and F does not.
        OtherBranchError: If the path ends in a singular position, and there is a solution beyond it.
        NoSolutionError: If neither the steps nor F become small.
    """
    closing = _ResidualTolerance(name, rows, [float(value) for value in theta[len(theta) - 2 * len(rows) :]])
    found, residual = _iterate(n, body, theta, guess, closing, on_path=True)
    if found is not None:
        return found
    beyond, _ = _iterate(n, body, theta, guess, closing, on_path=False)
    if beyond is not None:
        raise OtherBranchError(name)
    raise NoSolutionError(name, residual)


class _ResidualTolerance:
    """The residual that each row may keep.

    Args:
        name: What is solved for.
        rows: Names of the rows; none: what is left over is not evaluated where steps are small.
        limits: What a unit of each row counts, then how much of each may be left over.
    """

    def __init__(self, name: str, rows: Sequence[str], limits: Sequence[float]) -> None:
        n = len(rows)
        self._name, self._rows = name, rows
        self._unit, self._limit = limits[:n], limits[n:]

    def violated_residuals(self, residual: Sequence[float], size: float) -> dict[str, float]:
        """Return the residuals of the rows that exceed their limits, in the rows' own units.

        Args:
            residual: Of each row.
            size: Largest component of a step that will still be made.
        """
        if not self._rows:
            return {}
        gaps = {}
        for row, left, unit, limit in zip(self._rows, residual, self._unit, self._limit, strict=True):
            if abs(left) > limit + _STEPS * len(self._rows) * size:
                gaps[row] = float(left / unit)
        return gaps

    def is_closed(self, residual: Sequence[float]) -> bool:
        """Return whether the residual is so small that no further step is needed."""
        return not self.violated_residuals(residual, 0.0) if self._rows else _largest(residual) <= _RESIDUAL

    def raise_if_not_closed(self, residual: Sequence[float], size: float) -> None:
        """Raise if rows are still open before the last step of that size."""
        gaps = self.violated_residuals(residual, size)
        if gaps:
            raise InconsistentEquationsError(self._name, gaps)


def _iterate(
    n: int,
    body: Callable[..., Sequence[float]],
    theta: Any,
    guess: Sequence[float],
    closing: _ResidualTolerance,
    *,
    on_path: bool,
) -> tuple[list[float] | None, float]:
    """Return the solution if there is one, and the largest residual; beyond the path all steps are full."""

    def at(tried: Sequence[float]) -> tuple[float, Sequence[float], Sequence[float]]:
        try:
            values = body(tried, theta)
        except SingularMatrixError:
            return math.inf, (), ()
        return _largest(values[:n]), values[n:], values[:n]

    y = [float(value) for value in guess]
    path = _NewtonPath(at, y)
    way: Sequence[float] = [0.0] * n
    residual, step, left_over = at(y)
    for _ in range(_ITERATIONS):
        if residual == math.inf:
            break
        size = _largest(step)
        if size <= _STEP or size * (_largest(way) + size) <= _ERROR:
            closing.raise_if_not_closed(left_over, size)
            return [a + b for a, b in zip(y, step, strict=True)], residual
        part = 1.0
        for _ in range(_HALVINGS):
            tried = [a + part * b for a, b in zip(y, step, strict=True)]
            left, found, now_over = at(tried)
            if not on_path and left < math.inf:
                break
            if left <= max(_SCARCELY, 1.0 - 0.5 * part) * residual and (
                residual <= _RESIDUAL or path.stays_on_path(y, (residual, step), part, tried, found)
            ):
                break
            part = part * 0.5
        else:
            break
        way = [total + (a - b) for total, a, b in zip(way, tried, y, strict=True)]
        y, step, residual, left_over = tried, found, left, now_over
    return (y if residual < math.inf and closing.is_closed(left_over) else None), residual


class _NewtonPath:
    """Newton's path from a guess; it ends where the determinant of F's Jacobian changes its sign.

    Args:
        at: y → largest residual, steps, F.
        guess: Where it begins.
    """

    def __init__(self, at: _At, guess: Sequence[float]) -> None:
        self._at, self._guess = at, list(guess)
        self._of_guess: int | None = None

    def stays_on_path(
        self,
        y: Sequence[float],
        before: tuple[float, Sequence[float]],
        part: float,
        tried: Sequence[float],
        after: Sequence[float],
    ) -> bool:
        """Return whether a part of a step stays on the path, judged by the steps there and half-way; the determinant.

        Args:
            y: Where the step begins.
            before: Largest residual there, and the step.
            part: How much of the step is made.
            tried: Where that leads.
            after: The step from there.
        """
        residual, step = before
        size, bend = _largest(step), _bend(part, step, after)
        is_far = part * size > _FAR
        if bend > _LITTLE * size or is_far:
            half = 0.5 * part
            left, between, _ = self._at([a + half * b for a, b in zip(y, step, strict=True)])
            bend = max(bend, _bend(half, step, between)) if left < math.inf else math.inf
        if not bend <= (_LITTLE if is_far else _BEND) * size:
            return False
        is_doubtful = residual > _OPEN or bend > _TURNING * size
        return not (is_doubtful and self._is_beyond(tried, _NUDGE * size))

    def _is_beyond(self, tried: Sequence[float], nudge: float) -> bool:
        """Return whether a singular position lies between the guess and a point; ``nudge``: for differences."""
        if self._of_guess is None:
            self._of_guess = self._side(self._guess, nudge)
        return self._of_guess * self._side(tried, nudge) < 0

    def _side(self, at: Sequence[float], nudge: float) -> int:
        """Return the sign of the determinant, -1 or 1; 0 where round-off decides it."""
        rows: list[list[float]] = []
        first: Sequence[float] = ()
        for j in range(-1, len(at)):
            point = [value + nudge if i == j else value for i, value in enumerate(at)]
            left, _, values = self._at(point)
            if not left < math.inf:
                return 0
            if j < 0:
                first = values
            else:
                rows.append([a - b for a, b in zip(values, first, strict=True)])
        return _orientation(rows)


def _orientation(a: list[list[float]]) -> int:
    """Return the sign of a matrix's determinant, by Givens' rotations in place; 0 where round-off decides it."""
    n, sign = len(a), 1
    for k in range(n):
        top, column = a[k], 0.0
        for i in range(n):
            row = a[i]
            x, y = top[k], row[k]
            r = math.sqrt(x * x + y * y)
            if i > k and r > 0.0:
                for j in range(k, n):
                    above, below = top[j], row[j]
                    top[j] = x / r * above + y / r * below
                    row[j] = x / r * below - y / r * above
            column += y * y
        if not abs(top[k]) > _FLAT * math.sqrt(column):
            return 0
        sign = -sign if top[k] < 0.0 else sign
    return sign


def _bend(part: float, step: Sequence[float], after: Sequence[float]) -> float:
    """Return the distance between the step after a partial step and the rest that Newton's path predicts."""
    left = 1.0 - part
    return _largest([b - left * a for a, b in zip(step, after, strict=True)])


def _largest(values: Sequence[float]) -> float:
    """Return the largest magnitude; inf if one is not finite."""
    largest = 0.0
    for value in values:
        size = abs(value)
        if not size < math.inf:
            return math.inf
        largest = max(largest, size)
    return float(largest)


def array_newton(
    n: int, name: str, body: Callable[..., Any], theta: Sequence[Any], guess: Sequence[Any], rows: Sequence[str] = ()
) -> list[Any]:
    """Solve each instance with its own number of steps; NaN where there is no solution."""
    operands = np.broadcast_arrays(*[np.asarray(value, dtype=float) for value in (*theta, *guess)], np.zeros(1))[:-1]
    shape = operands[0].shape
    columns = np.stack([operand.reshape(-1) for operand in operands])
    count = len(theta)
    result = np.full((n, columns.shape[1]), math.nan)
    for i, column in enumerate(columns.T):
        try:
            result[:, i] = newton(n, name, body, column[:count], column[count:], rows)
        except SingularMatrixError:
            continue
    return [row.reshape(shape) for row in result]
