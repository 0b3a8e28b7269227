"""Dense linear solves by pivoted LU in Python: systems are small, and the bits are the same on every machine."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from .failures import UndefinedValueError


def make_linear_solver(matrix: list[list[float]]) -> Callable[[Sequence[float]], list[float]]:
    """Factor a square matrix (in place) and return a function that solves with it.

    Raises:
        UndefinedValueError: If it is singular or not finite.
    """
    n = len(matrix)
    order = list(range(n))
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(matrix[i][k]))
        matrix[k], matrix[best] = matrix[best], matrix[k]
        order[k], order[best] = order[best], order[k]
        upper = matrix[k]
        pivot = upper[k]
        if not 0.0 < abs(pivot) < float("inf"):
            raise UndefinedValueError(f"the matrix of the implicit method is singular: pivot {k} is {pivot!r}")
        for row in matrix[k + 1 :]:
            factor = row[k] / pivot
            row[k] = factor
            if factor:
                for j in range(k + 1, n):
                    row[j] -= factor * upper[j]

    return functools.partial(_solve, matrix, order)


def _solve(factors: list[list[float]], order: list[int], right: Sequence[float]) -> list[float]:
    """Solve L U x = P b: `factors` hold L (FMU diagonal) below and U above, `order` is P."""
    # Not sum(): since Python 3.12 it compensates round-off, and bits would depend on the interpreter.
    n = len(order)
    x = [right[i] for i in order]
    for i in range(1, n):
        row, value = factors[i], x[i]
        for j in range(i):
            value -= row[j] * x[j]
        x[i] = value
    for i in range(n - 1, -1, -1):
        row, value = factors[i], x[i]
        for j in range(i + 1, n):
            value -= row[j] * x[j]
        x[i] = value / row[i]
    return x
