"""Joint spaces: directions of motion of a link against its parent, coordinate directions where possible.

If d speeds move a link in d coordinate directions of its own axes (a hinge, a ball, a free body), its motion is said by
the components w = B u in these directions: rows and columns of inertias are then eliminated as they stand, and B, of
size d, is solved for u' alone. Otherwise (a hinge about a slanted axis, a screw) the columns are general.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkJointMotion
from mb2fmu.compiler.lowering.recursion.vector_nodes import VectorNodeAlgebra
from mb2fmu.compiler.numerics.linear_solve import LinearSystem

_MAX_CRAMER_SIZE = 3  # blocks of B up to this size are inverted by cofactors: no pivot is chosen, none can be wrong


@dataclass(frozen=True, slots=True)
class MotionDirection:
    """A direction of motion: six components; ``unit`` is the index of the only non-zero one, if it is 1."""

    components: tuple[int, ...]
    unit: int | None


class JointMotionSubspace:
    """Directions of one joint, and the relation between their components w and the speeds.

    Args:
        g: Takes the nodes.
        joint: The joint.
        name: For messages.
        geared: Inertia acts along the speed itself: directions are the columns as they stand.
    """

    def __init__(self, g: VectorNodeAlgebra, joint: LinkJointMotion, name: str, *, geared: bool = False) -> None:
        self._g = g
        self._name = name
        self.speeds = sorted(joint.columns)
        columns = [(*joint.columns[j][0], *joint.columns[j][1]) for j in self.speeds]
        rows = [i for i in range(6) if any(column[i] != g.zero for column in columns)]
        self._B: list[list[int]] | None = None
        if len(rows) == len(columns) and not geared:
            self._B = [[column[i] for column in columns] for i in rows]
            units = (tuple(g.one if i == k else g.zero for i in range(6)) for k in rows)
            self.directions = [MotionDirection(unit, k) for unit, k in zip(units, rows, strict=True)]
        else:
            self.directions = [MotionDirection(column, None) for column in columns]

    def speeds_from(self, w: Sequence[int]) -> list[int]:
        """Return u, or u', for given w: B u = w."""
        return list(w) if self._B is None else self._solve(self._B, list(w))

    def forces_along(self, tau: Sequence[int]) -> list[int]:
        """Return forces along the directions for given generalized forces of the speeds: Bᵀ f = τ."""
        if self._B is None or all(self._g.b.is_zero(t) for t in tau):
            return list(tau)
        return self._solve([list(column) for column in zip(*self._B, strict=True)], list(tau))

    def _solve(self, matrix: list[list[int]], right: list[int]) -> list[int]:
        """Solve for the speeds of a joint: block by block by Cramer's rule, or all together if a block is large."""
        n = len(right)
        result = [self._g.zero] * n
        for rows, columns in _find_diagonal_blocks(matrix, self._g.zero):
            block = [[matrix[i][j] for j in columns] for i in rows]
            values = [right[i] for i in rows]
            if len(rows) != len(columns) or len(rows) > _MAX_CRAMER_SIZE:
                return LinearSystem(self._g.b, matrix, f"the speeds of the joint of {self._name}").solve(right)
            name = f"the speeds of the joint of {self._name}"
            for j, value in zip(columns, _solve_by_cramer(self._g, block, values, name), strict=True):
                result[j] = value
        return result


def _find_diagonal_blocks(matrix: list[list[int]], zero: int) -> list[tuple[list[int], list[int]]]:
    """Return rows and columns of the diagonal blocks."""
    left = set(range(len(matrix)))
    found = []
    while left:
        rows: set[int] = {min(left)}
        columns: set[int] = set()
        while True:
            reached = {j for i in rows for j, entry in enumerate(matrix[i]) if entry != zero}
            more = {i for i in left if any(matrix[i][j] != zero for j in reached)} | rows
            if reached == columns and more == rows:
                break
            rows, columns = more, reached
        left -= rows
        found.append((sorted(rows), sorted(columns)))
    return found


def _solve_by_cramer(g: VectorNodeAlgebra, m: list[list[int]], right: list[int], name: str) -> list[int]:
    """Return the solution of one to three equations by cofactors."""
    b = g.b
    if len(m) == 1:
        b.require(m[0][0], name, positive=False)
        return [b.div(right[0], m[0][0])]
    if len(m) == 2:
        determinant = b.sub(b.mul(m[0][0], m[1][1]), b.mul(m[0][1], m[1][0]))
        b.require(determinant, name, positive=False)
        first = b.sub(b.mul(m[1][1], right[0]), b.mul(m[0][1], right[1]))
        second = b.sub(b.mul(m[0][0], right[1]), b.mul(m[1][0], right[0]))
        return [b.div(first, determinant), b.div(second, determinant)]
    x, y, z = ((m[0][j], m[1][j], m[2][j]) for j in range(3))
    r = (right[0], right[1], right[2])
    yz, zx, xy = g.cross(y, z), g.cross(z, x), g.cross(x, y)
    determinant = g.dot(x, yz)
    b.require(determinant, name, positive=False)
    return [b.div(g.dot(r, cofactors), determinant) for cofactors in (yz, zx, xy)]
