"""Cholesky factors of sparse matrices of solid meshes: nested dissection by coordinates, and dense fronts.

A mesh is cut in two halves at the median of its longest side. The unknowns of one half that are coupled with the other
one are the separator: they are eliminated last. The halves are cut likewise, down to ``LEAF_SIZE`` unknowns. Each piece
of this tree is a *front*: its own unknowns, and those of separators above that they are coupled with. Its dense matrix
is the sum of the entries of the matrix and of what its two halves leave (Schur complements); so all work is done by
LAPACK. For n unknowns of a solid the factors have O(n^(4/3)) entries; minimum degree (SuperLU) has several times more.

Source: A. George, Nested Dissection of a Regular Finite Element Mesh, SIAM J. Numer. Anal. 10 (1973) 345-363;
I. S. Duff, J. K. Reid, The Multifrontal Solution of Indefinite Sparse Symmetric Linear Systems, ACM TOMS 9 (1983)
302-325.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy.linalg
import scipy.sparse
from scipy.linalg import blas

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int_]
SparseMatrix: TypeAlias = Any

LEAF_SIZE = 120
"""Unknowns of a piece that is not cut further: smaller pieces cost more calls than they save arithmetic."""

NO_PIVOT = 1e-13
"""Share of a diagonal entry below which its pivot is a rounding error: the matrix is singular."""


@dataclass(frozen=True, slots=True)
class _EliminationFront:
    """Unknowns that are eliminated together, and their columns of the factor.

    Attributes:
        own: Their numbers, shape (s,).
        above: Unknowns of separators above that they are coupled with, in order of elimination, shape (b,).
        triangle: Rows of ``own``, lower triangular, shape (s, s).
        below: Rows of ``above``, shape (b, s).
    """

    own: Indices
    above: Indices
    triangle: Array
    below: Array


class SparseCholesky:
    """Factors of a symmetric positive definite sparse matrix, by which systems are solved.

    Args:
        matrix: Shape (n, n), both halves of it.
        places: Position of each unknown, shape (n, 3), m; they decide the order only.

    Raises:
        numpy.linalg.LinAlgError: If the matrix is not positive definite.
    """

    def __init__(self, matrix: SparseMatrix, places: Array) -> None:
        A = scipy.sparse.csr_array(matrix, dtype=float)
        A.sum_duplicates()
        pieces = list(_cut(A, places, np.arange(A.shape[0])))
        position = np.empty(A.shape[0], dtype=int)
        position[np.concatenate([own for own, _ in pieces])] = np.arange(A.shape[0])
        self._fronts: list[_EliminationFront] = []
        left: list[tuple[Indices, Array]] = []  # by pieces whose separator is still to come: unknowns, matrix
        for own, halves in pieces:
            parts = [left.pop() for _ in range(halves)]
            front, rest = _eliminate(A[own], own, parts, position)
            self._fronts.append(front)
            left.append((front.above, rest))

    @property
    def entries(self) -> int:
        """Number of entries of the factors, zeros above the diagonal of fronts among them."""
        return sum(front.triangle.size + front.below.size for front in self._fronts)

    def solve(self, right: Array) -> Array:
        """Return the solution for one right side, shape (n,), or for several, (n, k)."""
        x = np.array(right, dtype=float).reshape(len(right), -1)
        for front in self._fronts:
            x[front.own] = blas.dtrsm(1.0, front.triangle, x[front.own], lower=1)
            x[front.above] -= front.below @ x[front.own]
        for front in reversed(self._fronts):
            known = x[front.own] - front.below.T @ x[front.above]
            x[front.own] = blas.dtrsm(1.0, front.triangle, known, lower=1, trans_a=1)
        return x.reshape(np.shape(right))


def _cut(matrix: SparseMatrix, places: Array, unknowns: Indices) -> Iterator[tuple[Indices, int]]:
    """Yield (unknowns, number of halves below) of each piece of some unknowns, in order of elimination."""
    if len(unknowns) <= LEAF_SIZE:
        yield unknowns, 0
        return
    extent = np.ptp(places[unknowns], axis=0)
    along = places[unknowns, np.argmax(extent)]
    lower = along < np.median(along)
    if not np.any(lower):  # half of them or more are at one place
        lower = np.arange(len(unknowns)) < len(unknowns) // 2
    first, second = unknowns[lower], unknowns[~lower]
    is_second = np.zeros(matrix.shape[0])
    is_second[second] = 1.0
    rows = matrix[first]
    pattern = scipy.sparse.csr_array((np.ones_like(rows.data), rows.indices, rows.indptr), shape=rows.shape)
    touches = pattern @ is_second > 0.0
    halves = [half for half in (first[~touches], second) if len(half)]
    for half in halves:
        yield from _cut(matrix, places, half)
    yield first[touches], len(halves)


def _eliminate(
    rows: SparseMatrix, own: Indices, parts: Sequence[tuple[Indices, Array]], position: Indices
) -> tuple[_EliminationFront, Array]:
    """Return the front of a piece, and what it leaves of the matrix of its unknowns above (lower triangle).

    Args:
        rows: Of the matrix, those of ``own``.
        own: Unknowns to eliminate.
        parts: What the halves below have left: unknowns, and lower triangle of their matrix.
        position: Of each unknown in the order of elimination.
    """
    s, last = len(own), int(position[own[-1]]) if len(own) else -1
    coupled = np.unique(np.concatenate([rows.indices, *(names for names, _ in parts)]))
    above = coupled[position[coupled] > last] if s else coupled
    above = above[np.argsort(position[above])]
    order = np.concatenate([own, above])
    place = np.full(len(position), -1)
    place[order] = np.arange(len(order))
    dense = np.zeros((len(order), len(order)), order="F")
    coordinates = rows.tocoo()
    line = place[coordinates.col]
    dense[line[line >= 0], coordinates.row[line >= 0]] = coordinates.data[line >= 0]
    for names, rest in parts:
        dense[np.ix_(place[names], place[names])] += rest
    triangle = np.asfortranarray(scipy.linalg.cholesky(dense[:s, :s], lower=True, check_finite=False))
    if np.any(np.diag(triangle) ** 2 < NO_PIVOT * rows[np.arange(s), own]):
        raise np.linalg.LinAlgError("the matrix is singular")
    below, rest = np.asfortranarray(dense[s:, :s]), np.asfortranarray(dense[s:, s:])
    if s and len(above):
        below = blas.dtrsm(1.0, triangle, below, side=1, lower=1, trans_a=1, overwrite_b=1)
        rest = blas.dsyrk(-1.0, below, beta=1.0, c=rest, lower=1, overwrite_c=1)
    return _EliminationFront(own, above, triangle, below), rest
