"""Rows of closed loops: two links share a point, form a hinge, or are welded.

Both sides are written in the axes of the last part that carries both, so that a row knows only the joints of its loop:

    point: r_1 − r_2 = 0
    hinge: and x_1 · z_2 = y_1 · z_2 = 0
    weld:  and x_1 · y_2 = y_1 · z_2 = z_1 · x_2 = 0
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import KinematicEquations, VelocityConstraints
from mb2fmu.mechanics.mechanism.records.frame_and_point_records import Components, Frame, KinematicPoint
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    coordinate_rates,
    differentiate_along_rates,
)
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy
from mb2fmu.robots.description.robot_description import Array, Pose, RobotLoop
from mb2fmu.robots.tree.articulated_tree import RobotPartTree
from mb2fmu.robots.tree.link_motion_expressions import express_in_parent_frame, sparse_dot_product

_ZERO_TOLERANCE = 1e-9
"""Slopes of a row, m or 1 per unit of a coordinate, that round-off alone leaves."""
_SAMPLE_COUNT = 4


@dataclass(slots=True)
class LoopConstraintWriter:
    """Writes the rows of loops.

    Attributes:
        tree: The parts.
        frames: Of the mechanism.
        points: Of the mechanism.
        part_frame: Part → frame of its axes.
        part_origin: Part → point.
    """

    tree: RobotPartTree
    frames: Sequence[Frame]
    points: Sequence[KinematicPoint]
    part_frame: Sequence[int]
    part_origin: Sequence[int]

    def form_rows(self, loop: RobotLoop) -> list[tuple[str, sm.Expr]]:
        """Return (name, φ) of one loop."""
        sides = [self._locate_side(link, pose) for link, pose in ((loop.first, loop.at), (loop.second, loop.other))]
        common = self._find_common_part(sides[0][0], sides[1][0])
        places = [self._express_point(common, part, pose.position) for part, pose in sides]
        rows = [a - b for a, b in zip(*places, strict=True)]
        names = ["x", "y", "z"]
        if loop.kind != "point":
            first, second = (
                [self._express_vector(common, part, pose.rotation[:, k]) for k in range(3)] for part, pose in sides
            )
            pairs = ((0, 2), (1, 2)) if loop.kind == "hinge" else ((0, 1), (1, 2), (2, 0))
            rows += [sparse_dot_product(first[i], second[j]) for i, j in pairs]
            names += [f"turn_{k + 1}" for k in range(len(pairs))]
        return [(f"{loop.name}.{name}", row) for name, row in zip(names, rows, strict=True)]

    def _locate_side(self, link: str, pose: Pose) -> tuple[int, Pose]:
        """Return the moving part that carries a link, and a pose given in the link as seen from the part."""
        part, own = self.tree.location_of_link[link]
        return part, own @ pose

    def _find_common_part(self, first: int, second: int) -> int:
        """Return the last part that carries both."""
        while first != second:
            if first > second:
                first = self.tree.parts[first].parent
            else:
                second = self.tree.parts[second].parent
        return first

    def _express_vector(self, common: int, part: int, vector: Array) -> Components:
        """Return a vector fixed in a part, in the axes of one that carries it."""
        x, y, z = (sm.Float(c) if c not in (0.0, 1.0, -1.0) else sm.Integer(int(c)) for c in map(float, vector))
        return self._express_in_ancestor(self.part_frame[part], self.part_frame[common], (x, y, z))

    def _express_in_ancestor(self, frame: int, target: int, vector: Components) -> Components:
        """Turn components from a frame's axes into those of an ancestor."""
        while frame != target:
            vector, frame = express_in_parent_frame(self.frames[frame], vector), self.frames[frame].parent
        return vector

    def _express_point(self, common: int, part: int, position: Array) -> Components:
        """Return a point fixed in a part, from the origin and in the axes of one that carries it."""
        at = self._express_vector(part, part, position)
        while part != common:
            before = self.tree.parts[part].parent
            at = self._express_in_ancestor(self.part_frame[part], self.part_frame[before], at)
            point = self.part_origin[part]
            while point != self.part_origin[before]:
                for frame, vector in self.points[point].position or ():
                    x, y, z = (
                        a + b
                        for a, b in zip(
                            at, self._express_in_ancestor(frame, self.part_frame[before], vector), strict=True
                        )
                    )
                    at = (x, y, z)
                point = self.points[point].parent
            part = before
        return at


def form_loop_velocity_constraints(
    holonomic: Sequence[tuple[str, sm.Expr]],
    kinematics: KinematicEquations,
    q: Sequence[sm.Symbol],
    u: Sequence[sm.Symbol],
) -> VelocityConstraints:
    """Return a u = 0 and its bias, from φ(q) = 0 and q' = K u."""
    rates = dict(zip(q, coordinate_rates(kinematics, u), strict=True))
    rows = [differentiate_along_rates(phi, rates) for _, phi in holonomic]
    slopes = {
        (i, j): differentiate_along_rates(row, {speed: sm.S.One})
        for i, row in enumerate(rows)
        for j, speed in enumerate(u)
        if speed in row.free_symbols
    }
    jacobian = sm.ImmutableMatrix(sm.SparseMatrix(len(rows), len(u), slopes))
    bias = sm.ImmutableMatrix([differentiate_along_rates(row, rates) for row in rows])
    return VelocityConstraints(
        tuple(name for name, _ in holonomic), jacobian, sm.ImmutableMatrix.zeros(len(rows), 1), bias
    )


def drop_trivial_constraint_rows(rows: Sequence[tuple[str, sm.Expr]]) -> list[tuple[str, sm.Expr]]:
    """Return the rows that some coordinate changes: rows across the plane of a planar loop are trivial."""
    kept, random = [], np.random.default_rng(5)
    for name, phi in rows:
        symbols = sorted(phi.free_symbols, key=str)
        slopes = [differentiate_along_rates(phi, {symbol: sm.S.One}) for symbol in symbols]
        function = lambdify_for_numpy(symbols, slopes, cse=True)
        values = (
            [function(*random.uniform(-1.0, 1.0, len(symbols))) for _ in range(_SAMPLE_COUNT)] if symbols else [[0.0]]
        )
        if np.max(np.abs(np.array(values, dtype=float))) > _ZERO_TOLERANCE:
            kept.append((name, phi))
    return kept


def choose_independent_speeds(constraints: VelocityConstraints, start: dict[sm.Symbol, float]) -> tuple[int, ...]:
    """Return the numbers of the speeds that the rows determine worst at the start; these are independent."""
    import scipy.linalg

    symbols = sorted(constraints.jacobian.free_symbols, key=str)
    A = np.array(lambdify_for_numpy(symbols, constraints.jacobian, cse=True)(*(start[s] for s in symbols)))
    R, order = scipy.linalg.qr(A.astype(float), pivoting=True, mode="r")[:2]
    sizes = np.abs(np.diag(R))
    rank = int(np.count_nonzero(sizes > 1e-9 * max(float(sizes[0]), 1e-300)))
    dependent = set(order[:rank].tolist())
    return tuple(j for j in range(A.shape[1]) if j not in dependent)
