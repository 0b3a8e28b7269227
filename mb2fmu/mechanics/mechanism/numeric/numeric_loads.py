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
class AppliedForceOrTorqueVectors:
    """Forces on points, or torques on frames.

    Attributes:
        nodes: Number of the point or frame of each vector, shape (n,).
        loads: Number of the load of each vector, shape (n,).
        vectors: Components in N, in N or N·m, shape (n, 3).
    """

    nodes: Indices
    loads: Indices
    vectors: Array

    def sum_by_node(self, count: int) -> Array:
        """Return their sum at each of ``count`` points or frames, shape (count, 3)."""
        total = np.zeros((count, 3))
        np.add.at(total, self.nodes, self.vectors)
        return total


@dataclass(frozen=True, slots=True)
class _LoadTerm:
    """A vector written in a frame, acting on a point or frame: sign times factor times components."""

    node: int
    load: int
    frame: int
    components: int
    factor: int
    sign: float


class _LoadTermTable:
    """Columns of all load pieces."""

    def __init__(self, pieces: Sequence[_LoadTerm]) -> None:
        self._nodes = np.array([piece.node for piece in pieces], dtype=np.intp)
        self._loads = np.array([piece.load for piece in pieces], dtype=np.intp)
        self._frames = np.array([piece.frame for piece in pieces], dtype=np.intp)
        self._components = np.array([piece.components for piece in pieces], dtype=np.intp)[:, None] + np.arange(3)
        self._factors = np.array([piece.factor for piece in pieces], dtype=np.intp)
        self._signs = np.array([piece.sign for piece in pieces])

    def evaluate(self, numbers: Array, rotations: Array) -> AppliedForceOrTorqueVectors:
        """Return all applied vectors."""
        vectors = (rotations[self._frames] @ numbers[self._components][:, :, None])[:, :, 0]
        return AppliedForceOrTorqueVectors(
            self._nodes, self._loads, (self._signs * numbers[self._factors])[:, None] * vectors
        )


class NumericLoadEvaluator:
    """Positions of the numbers of all loads; the caller applies loads along pathways, which need the points' motion.

    Args:
        loads: Of the mechanism.
        add: Registers three components that depend on the motion only, and returns the position of their values.

    Attributes:
        scalars: Expressions of all loads, in order: components by frame, or a magnitude.
        pathway_magnitudes: For loads along pathways: number of the load, position of its magnitude among ``scalars``.
    """

    def __init__(self, loads: Sequence[Load], add: Callable[[Sequence[sm.Expr]], int]) -> None:
        scalars = [_load_scalars(load) for load in loads]
        self.scalars = [
            sm.sympify(expression)
            for list_load_magnitude_scalars in scalars
            for expression in list_load_magnitude_scalars
        ]
        starts = np.cumsum([0, *map(len, scalars)]).tolist()
        position_of_one = len(self.scalars)  # the place of 1, after which the values come: see ``evaluate``
        force_pieces: list[_LoadTerm] = []
        torque_pieces: list[_LoadTerm] = []
        self.pathway_magnitudes: list[tuple[int, int]] = []
        for load_number, (load, start) in enumerate(zip(loads, starts, strict=False)):
            if isinstance(load, ForceLoad):
                pieces = enumerate(load.force)
                force_pieces += [
                    _LoadTerm(load.point, load_number, frame, start + 3 * i, position_of_one, 1.0)
                    for i, (frame, _) in pieces
                ]
            elif isinstance(load, TorqueLoad):
                pieces = enumerate(load.torque)
                torque_pieces += [
                    _LoadTerm(load.frame, load_number, frame, start + 3 * i, position_of_one, 1.0)
                    for i, (frame, _) in pieces
                ]
            elif isinstance(load, TorqueActuatorLoad):
                axis = [(frame, position_of_one + 1 + add(components)) for frame, components in load.axis]
                loaded_nodes = [(node, sign) for node, sign in ((load.frame, 1.0), (load.reaction, -1.0)) if node >= 0]
                torque_pieces += [
                    _LoadTerm(node, load_number, axis_frame, position, start, sign)
                    for node, sign in loaded_nodes
                    for axis_frame, position in axis
                ]
            else:
                self.pathway_magnitudes.append((load_number, start))
        self._force_pieces, self._torque_pieces = _LoadTermTable(force_pieces), _LoadTermTable(torque_pieces)

    def evaluate(
        self, scalars: Array, values: Array, rotations: Array
    ) -> tuple[AppliedForceOrTorqueVectors, AppliedForceOrTorqueVectors]:
        """Return forces on points and torques on frames, those along pathways left out.

        Args:
            scalars: Values of ``self.scalars``.
            values: Array that the positions returned by ``add`` refer to.
            rotations: ``N_C_B`` of every frame, shape (n_frames, 3, 3).
        """
        numbers = np.concatenate([scalars, [1.0], values])
        return self._force_pieces.evaluate(numbers, rotations), self._torque_pieces.evaluate(numbers, rotations)


def _load_scalars(load: Load) -> list[sm.Expr]:
    """Return all expressions that a load needs evaluated: three per vector term, or the one of an actuator."""
    if isinstance(load, ForceLoad):
        return [component for _, components in load.force for component in components]
    if isinstance(load, TorqueLoad):
        return [component for _, components in load.torque for component in components]
    return [load.torque if isinstance(load, TorqueActuatorLoad) else load.force]
