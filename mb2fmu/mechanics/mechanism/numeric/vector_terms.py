"""Vectors of a ``Mechanism`` as numbers: all terms are evaluated at once, and summed along the paths from the origin.

A term is a vector written in one frame. Its numbers, in that frame, are three rows of (partials with respect to the
speeds it contains, component, rate of the component, second rate).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class TermLocation:
    """Place of the numbers of a vector that is written in a frame.

    Attributes:
        frame: Number of the frame.
        columns: Speeds that its partials are not zero for, indices into ``u_all``.
        start: Of its three rows.
    """

    frame: int
    columns: Indices
    start: int


@dataclass(frozen=True, slots=True)
class ExpressedTerms:
    """Terms in N's components: partials (n_terms, 3, n_u), vector, first and second rate (n_terms, 3)."""

    partials: Array
    vector: Array
    rate: Array
    second: Array


class TermGroups:
    """Terms that are evaluated together, in groups of the same number of speeds.

    Args:
        terms: In any order, which stays.
        n_u: Number of all speeds.
    """

    def __init__(self, terms: Sequence[TermLocation], n_u: int) -> None:
        self.frames = np.array([term.frame for term in terms], dtype=np.intp)
        self._n_u = n_u
        sizes = [len(term.columns) for term in terms]
        self._groups: list[tuple[Indices, Indices, Indices]] = []  # (numbers of terms, places of values, columns)
        for size in sorted(set(sizes)):
            numbers = np.array([k for k, each in enumerate(sizes) if each == size], dtype=np.intp)
            starts = np.array([terms[k].start for k in numbers], dtype=np.intp)
            places = starts[:, None] + np.arange(3 * (size + 3))
            columns = np.array([terms[k].columns for k in numbers], dtype=np.intp).reshape(len(numbers), size)
            self._groups.append((numbers, places.reshape(-1, 3, size + 3), columns))

    def express_in_inertial_frame(self, values: Array, rotations: Array) -> ExpressedTerms:
        """Return the terms in N.

        Args:
            values: Where the places of the terms point to.
            rotations: ``N_C_B`` of every frame, shape (n_frames, 3, 3).
        """
        partials, rest = np.zeros((len(self.frames), 3, self._n_u)), np.zeros((len(self.frames), 3, 3))
        for numbers, places, columns in self._groups:
            block = rotations[self.frames[numbers]] @ values[places]
            size = columns.shape[1]
            rest[numbers] = block[:, :, size:]
            partials[numbers[:, None], :, columns] = block[:, :, :size].transpose(0, 2, 1)
        return ExpressedTerms(partials, rest[:, :, 0], rest[:, :, 1], rest[:, :, 2])


class PathSums:
    """A forest of nodes, each with terms of its own on the path from the node above it.

    Args:
        own: Numbers of the terms of each node.
        above: The node above each, -1 for none.
        count: Of all terms.
    """

    def __init__(self, own: Sequence[Sequence[int]], above: Sequence[int], count: int) -> None:
        rows = [k for k, some in enumerate(own) for _ in some]
        columns = [number for some in own for number in some]
        self._own = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(own), count))
        self._steps = [(k, above[k]) for k in _parents_first_order(above) if above[k] >= 0]

    def sum(self, values: Array) -> Array:
        """Return the terms' values added up along the path to each node; shapes (n_terms, …) and (n_nodes, …)."""
        total = np.asarray(self._own @ values.reshape(len(values), math.prod(values.shape[1:])))
        for k, up in self._steps:
            total[k] += total[up]
        return total.reshape(len(total), *values.shape[1:])


def _parents_first_order(above: Sequence[int]) -> list[int]:
    """Return the numbers of nodes so that each comes after the one above it."""
    depth = [-1] * len(above)
    for k in range(len(above)):
        path = [k]
        while depth[path[-1]] < 0 and above[path[-1]] >= 0:
            path.append(above[path[-1]])
        for node in reversed(path):
            depth[node] = 0 if above[node] < 0 else depth[above[node]] + 1
    return sorted(range(len(above)), key=depth.__getitem__)


def cross_rows(a: Array, b: Array) -> Array:
    """Return a × b, row by row, shape (n, 3)."""
    (a1, a2, a3), (b1, b2, b3) = a.T, b.T
    return np.stack((a2 * b3 - a3 * b2, a3 * b1 - a1 * b3, a1 * b2 - a2 * b1), axis=1)


def cross_product_matrices(rho: Array) -> Array:
    """Return the matrices of w × rho as linear in w, shape (n, 3, 3)."""
    matrices = np.zeros((len(rho), 3, 3))
    x, y, z = rho.T
    matrices[:, 0, 1], matrices[:, 0, 2], matrices[:, 1, 2] = z, -y, x
    return matrices - matrices.transpose(0, 2, 1)
