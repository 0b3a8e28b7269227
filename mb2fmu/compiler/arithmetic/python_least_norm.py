"""Least-norm solutions of symmetric positive semidefinite systems, for printed Python functions.

Imports ``math`` and ``numpy`` only, as ``python_runtime`` does, which is copied into FMUs together with this file. The
operations are those of ``runtime/linear_algebra.c``, in the same order.

S = V Λ Vᵀ by Jacobi's rotations, which chooses no pivots: nothing jumps where two rows change places. Of the
eigenvalues the ``rank`` largest count, and each by g(λ) = λ / (λ + ε)² (2 − λ² / (λ + ε)²), ε = 1e-14 of the largest
one: 1 / λ but for round-off where λ is large, 0 where it vanishes, smooth in between (iterated Tikhonov's
regularization). Sources: Golub and Van Loan, Matrix Computations, 4th ed. 2013, sec. 8.5; Hansen, Rank-Deficient and
Discrete Ill-Posed Problems, 1998, ch. 5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .python_newton import SingularMatrixError

_SWEEPS = 30
_NOTHING = 1e-17  # of the trace: an entry below it is not rotated away
_FADING = 1e-14

Factors = tuple[list[list[float]], list[float]]


def least_norm_factor(n: int, name: str, entries: Sequence[float], rank: int) -> Factors:
    """Return eigenvectors as rows, and the factors g of their eigenvalues.

    Args:
        n: Size of the matrix.
        name: For messages.
        entries: Its lower triangle, row by row.
        rank: How many eigenvalues count.

    Raises:
        SingularMatrixError: If an entry is not finite.
    """
    S = [[0.0] * n for _ in range(n)]
    position = 0
    for i in range(n):
        for j in range(i + 1):
            value = float(entries[position])
            if not abs(value) < math.inf:
                raise SingularMatrixError(name, i, value)
            S[i][j] = S[j][i] = value
            position += 1
    V = [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]
    trace = 0.0
    for i in range(n):
        trace += S[i][i]
    for _ in range(_SWEEPS):
        rotated = False
        for p in range(n):
            for q in range(p + 1, n):
                if abs(S[p][q]) > _NOTHING * trace:
                    rotated = True
                    _rotate(n, p, q, S, V)
        if not rotated:
            break
    values = [S[i][i] for i in range(n)]
    return V, [_share(values, i, rank) for i in range(n)]


def _rotate(n: int, p: int, q: int, S: list[list[float]], V: list[list[float]]) -> None:
    """Make S[p][q] zero by a Jacobi rotation."""
    entry = S[p][q]
    theta = (S[q][q] - S[p][p]) / (2.0 * entry)
    t = 1.0 / (abs(theta) + math.sqrt(theta * theta + 1.0))
    if theta < 0.0:
        t = -t
    c = 1.0 / math.sqrt(t * t + 1.0)
    s = t * c
    S[p][p] = S[p][p] - t * entry
    S[q][q] = S[q][q] + t * entry
    S[p][q] = S[q][p] = 0.0
    for k in range(n):
        if k not in (p, q):
            first, second = S[p][k], S[q][k]
            S[p][k] = S[k][p] = c * first - s * second
            S[q][k] = S[k][q] = s * first + c * second
        first, second = V[p][k], V[q][k]
        V[p][k] = c * first - s * second
        V[q][k] = s * first + c * second


def _share(values: Sequence[float], i: int, rank: int) -> float:
    """Return g of eigenvalue i; 0 if it is not among the ``rank`` largest."""
    value, largest, before = values[i], 0.0, 0
    for j, other in enumerate(values):
        largest = max(largest, other)
        before += other > value or (other == value and j < i)
    if before >= rank or not value > 0.0:
        return 0.0
    shifted = value + _FADING * largest
    part = value / shifted
    return part / shifted * (2.0 - part * part)


def least_norm_solve(factors: Factors, right: Sequence[float]) -> list[float]:
    """Return the shortest x for which S x is nearest to ``right``."""
    V, shares = factors
    n = len(shares)
    x = [0.0] * n
    for i in range(n):
        vector = V[i]
        along = 0.0
        for j in range(n):
            along += vector[j] * right[j]
        along = along * shares[i]
        for j in range(n):
            x[j] += vector[j] * along
    return x


def array_least_norm_factor(n: int, name: str, entries: Sequence[Any], rank: int) -> tuple[Any, list[Any]]:
    """Return the shape of the batch and the factors of each instance; None where an entry is not finite."""
    stacked = np.stack(np.broadcast_arrays(*[np.asarray(entry, dtype=float) for entry in entries]))
    factors: list[Factors | None] = []
    for column in stacked.reshape(len(stacked), -1).T:
        try:
            factors.append(least_norm_factor(n, name, column.tolist(), rank))
        except SingularMatrixError:
            factors.append(None)
    return stacked.shape[1:], factors


def array_least_norm_solve(factors: tuple[Any, list[Any]], right: Sequence[Any]) -> list[Any]:
    """Return the solution of each instance; NaN where there are no factors."""
    shape, each = factors
    n = len(right)
    stacked = np.stack(np.broadcast_arrays(*right, np.zeros(shape)))[:n]
    columns = stacked.reshape(n, -1)
    result = np.full(columns.shape, math.nan)
    for i, column in enumerate(columns.T):
        known = each[i if len(each) > 1 else 0]
        if known is not None:
            result[:, i] = least_norm_solve(known, column.tolist())
    return list(result.reshape(stacked.shape))
