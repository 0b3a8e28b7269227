"""Loads of a ``Mechanism`` as numbers: forces on points and torques on frames, all expressed in N."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, Load, TorqueActuatorLoad, TorqueLoad

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class AppliedVectors:
    """Forces on points, or torques on frames.

    Attributes:
        nodes: Number of the point or frame of each, shape (n,).
        loads: Number of the load it belongs to, shape (n,).
        vectors: In N's components, N or N·m, shape (n, 3).
    """

    nodes: Indices
    loads: Indices
    vectors: Array

    def over(self, count: int) -> Array:
        """Return their sum at each of ``count`` points or frames, shape (count, 3)."""
        total = np.zeros((count, 3))
        np.add.at(total, self.nodes, self.vectors)
        return total


@dataclass(frozen=True, slots=True)
class _LoadPiece:
    """A vector written in a frame, acting on a point or frame: sign times factor times components."""

    node: int
    load: int
    frame: int
    components: int
    factor: int
    sign: float


class _LoadPieceTable:
    """Pieces as columns."""

    def __init__(self, pieces: Sequence[_LoadPiece]) -> None:
        self._nodes = np.array([p.node for p in pieces], dtype=np.intp)
        self._loads = np.array([p.load for p in pieces], dtype=np.intp)
        self._frames = np.array([p.frame for p in pieces], dtype=np.intp)
        self._components = np.array([p.components for p in pieces], dtype=np.intp)[:, None] + np.arange(3)
        self._factors = np.array([p.factor for p in pieces], dtype=np.intp)
        self._signs = np.array([p.sign for p in pieces])

    def evaluated(self, numbers: Array, rotations: Array) -> AppliedVectors:
        """Return all of them."""
        vectors = (rotations[self._frames] @ numbers[self._components][:, :, None])[:, :, 0]
        return AppliedVectors(self._nodes, self._loads, (self._signs * numbers[self._factors])[:, None] * vectors)


class LoadTables:
    """Where the numbers of all loads are; those along pathways need the points' motion and are left to the caller.

    Args:
        loads: Of the mechanism.
        add: Takes three components that depend on the motion only, gives the place of their values.

    Attributes:
        scalars: Expressions of all loads, in order: components by frame, or a magnitude.
        magnitudes: Of loads along pathways: number of the load, and place of its magnitude among ``scalars``.
    """

    def __init__(self, loads: Sequence[Load], add: Callable[[Sequence[sm.Expr]], int]) -> None:
        scalars = [_load_scalars(load) for load in loads]
        self.scalars = [sm.sympify(e) for some in scalars for e in some]
        starts = np.cumsum([0, *map(len, scalars)]).tolist()
        one = len(self.scalars)  # the place of 1, after which the values come: see ``evaluated``
        on_points: list[_LoadPiece] = []
        on_frames: list[_LoadPiece] = []
        self.magnitudes: list[tuple[int, int]] = []
        for number, (load, at) in enumerate(zip(loads, starts, strict=False)):
            if isinstance(load, ForceLoad):
                pieces = enumerate(load.force)
                on_points += [_LoadPiece(load.point, number, frame, at + 3 * i, one, 1.0) for i, (frame, _) in pieces]
            elif isinstance(load, TorqueLoad):
                pieces = enumerate(load.torque)
                on_frames += [_LoadPiece(load.frame, number, frame, at + 3 * i, one, 1.0) for i, (frame, _) in pieces]
            elif isinstance(load, TorqueActuatorLoad):
                axis = [(frame, one + 1 + add(components)) for frame, components in load.axis]
                ends = [(node, sign) for node, sign in ((load.frame, 1.0), (load.reaction, -1.0)) if node >= 0]
                on_frames += [_LoadPiece(node, number, k, place, at, sign) for node, sign in ends for k, place in axis]
            else:
                self.magnitudes.append((number, at))
        self._on_points, self._on_frames = _LoadPieceTable(on_points), _LoadPieceTable(on_frames)

    def evaluated(self, scalars: Array, values: Array, rotations: Array) -> tuple[AppliedVectors, AppliedVectors]:
        """Return forces on points and torques on frames, those along pathways left out.

        Args:
            scalars: Values of ``self.scalars``.
            values: Where the places that ``add`` gave point to.
            rotations: ``N_C_B`` of every frame, shape (n_frames, 3, 3).
        """
        numbers = np.concatenate([scalars, [1.0], values])
        return self._on_points.evaluated(numbers, rotations), self._on_frames.evaluated(numbers, rotations)


def _load_scalars(load: Load) -> list[sm.Expr]:
    """Return all expressions that a load needs evaluated: three per vector term, or the one of an actuator."""
    if isinstance(load, ForceLoad):
        return [c for _, components in load.force for c in components]
    if isinstance(load, TorqueLoad):
        return [c for _, components in load.torque for c in components]
    return [load.torque if isinstance(load, TorqueActuatorLoad) else load.force]
