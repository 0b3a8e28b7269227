"""Articulated bodies: u' in three sweeps over the links; several sets of generalized forces share the inertias.

Outwards: velocities and the accelerations at u' = 0. Inwards: inertias and forces as felt through the joints below,
each direction of a joint eliminated by itself. Outwards: what the joints' accelerations add. Because the second sweep
starts from the accelerations at u' = 0, velocities enter forces only, once per link.

Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, ch. 7.2.

Joint spaces: directions of motion of a link against its parent, coordinate directions where possible.

If d speeds move a link in d coordinate directions of its own axes (a hinge, a ball, a free body), its motion is said by
the components w = B u in these directions: rows and columns of inertias are then eliminated as they stand, and B, of
size d, is solved for u' alone. Otherwise (a hinge about a slanted axis, a screw) the columns are general.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.compiler.lowering.recursion.composite_bodies import CompositeBodies
from mb2fmu.compiler.lowering.recursion.link_forces import AppliedLinkForces, link_inertia_force
from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkJointMotion, LinkKinematics
from mb2fmu.compiler.lowering.recursion.regrouped_link_inertias import regroup_inertias
from mb2fmu.compiler.lowering.recursion.spatial_algebra import (
    SpatialInertia,
    SpatialVector,
    form_link_spatial_inertia,
    make_spatial_inertia,
    shift_force_to_parent,
    shift_inertia_to_parent,
    shift_motion_to_link,
)
from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import NodeVectorArithmetic
from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem

_MAX_CRAMER_SIZE = 3  # blocks of B up to this size are inverted by cofactors: no pivot is chosen, none can be wrong


@dataclass(frozen=True, slots=True)
class _JointMotionDirection:
    """A direction of motion: six components; ``unit`` is the index of the only non-zero one, if it is 1."""

    components: tuple[int, ...]
    unit: int | None


class _JointMotionSubspace:
    """Directions of one joint, and the relation between their components w and the speeds.

    Args:
        g: Takes the nodes.
        joint: The joint.
        name: For messages.
        geared: Inertia acts along the speed itself: directions are the columns as they stand.
    """

    def __init__(self, g: NodeVectorArithmetic, joint: LinkJointMotion, name: str, *, geared: bool = False) -> None:
        self._g = g
        self._name = name
        self.speeds = sorted(joint.columns)
        columns = [(*joint.columns[j][0], *joint.columns[j][1]) for j in self.speeds]
        rows = [i for i in range(6) if any(column[i] != g.zero for column in columns)]
        self._B: list[list[int]] | None = None
        if len(rows) == len(columns) and not geared:
            self._B = [[column[i] for column in columns] for i in rows]
            units = (tuple(g.one if i == k else g.zero for i in range(6)) for k in rows)
            self.directions = [_JointMotionDirection(unit, k) for unit, k in zip(units, rows, strict=True)]
        else:
            self.directions = [_JointMotionDirection(column, None) for column in columns]

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
                return FactoredLinearSystem(self._g.b, matrix, f"the speeds of the joint of {self._name}").solve(right)
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


def _solve_by_cramer(g: NodeVectorArithmetic, m: list[list[int]], right: list[int], name: str) -> list[int]:
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


@dataclass(frozen=True, slots=True)
class _EliminatedDirection:
    """One eliminated direction of a joint.

    Attributes:
        direction: Which.
        inverse: One over the inertia felt along it.
        ratios: Inertia between it and every component, over that along it.
    """

    direction: _JointMotionDirection
    inverse: int
    ratios: tuple[int, ...]


class ArticulatedBodies:
    """Forward and inverse dynamics of a tree whose speeds move one link each.

    Args:
        kinematics: Of the links.
        loads: What is applied.
        n: Number of speeds.
        geared: Links that only add inertia and force along a joint.
    """

    def __init__(
        self, kinematics: LinkKinematics, loads: AppliedLinkForces, n: int, geared: Sequence[int] = ()
    ) -> None:
        self._k = kinematics
        self._g = kinematics.algebra
        self._loads = loads
        links = kinematics.recursion.links
        self._links = [i for i, link in enumerate(links) if link.carries_mass_or_load and i > 0 and i not in geared]
        self._inertia, self._force = _project_geared_links(kinematics, loads, n, geared)
        self._spaces = {i: self._space(i, links[i].name) for i in self._links}
        self._rigid = regroup_inertias(kinematics, self._links)
        self._bias: dict[int, SpatialVector] = {}
        self._eliminated: dict[int, list[_EliminatedDirection]] = {}

    def _space(self, link: int, name: str) -> _JointMotionSubspace:
        """Return the joint's motion subspace, geared where a rotor's inertia acts on one of its speeds."""
        joint = self._k.joint(link)
        return _JointMotionSubspace(self._g, joint, name, geared=any(j in self._inertia for j in joint.columns))

    def accelerations(self, forces: Mapping[int, int]) -> dict[int, int]:
        """Return speed → u', for generalized forces that are added in the rows of some speeds."""
        self._eliminate()
        g, k = self._g, self._k
        through = self._forces_inwards(forces)
        motions: dict[int, SpatialVector] = {0: (g.null, g.null)}
        result: dict[int, int] = {}
        for link in self._links:
            parent = k.recursion.links[link].parent
            carried = shift_motion_to_link(g, k.joint(link), motions[parent])
            motion = [*carried[0], *carried[1]]
            w = [self._along(one, force, motion) for one, force in zip(*through[link], strict=True)]
            motions[link] = ((motion[0], motion[1], motion[2]), (motion[3], motion[4], motion[5]))
            space = self._spaces[link]
            result |= dict(zip(space.speeds, space.speeds_from(w), strict=True))
        return result

    def _along(self, one: _EliminatedDirection, force: int, motion: list[int]) -> int:
        """Return the acceleration along a direction; ``motion`` grows by it."""
        g, b = self._g, self._g.b
        unit = one.direction.unit
        if unit is None:
            w = b.sub(b.mul(one.inverse, force), g.dot(one.ratios, motion))
            for i, component in enumerate(one.direction.components):
                motion[i] = b.add(motion[i], b.mul(component, w))
            return w
        others = [i for i in range(6) if i != unit]
        total = b.sub(b.mul(one.inverse, force), g.dot([one.ratios[i] for i in others], [motion[i] for i in others]))
        w = b.sub(total, motion[unit])
        motion[unit] = total
        return w

    def _forces_inwards(self, forces: Mapping[int, int]) -> dict[int, tuple[list[_EliminatedDirection], list[int]]]:
        """Return the directions of each link, innermost first, and the remaining force along each."""
        g, b, k = self._g, self._g.b, self._k
        felt: dict[int, list[int]] = {}
        result = {}
        for link in reversed(self._links):
            bias = self.bias(link)
            force = [*bias[0], *bias[1]]
            force = [b.add(x, y) for x, y in zip(force, felt.pop(link, [g.zero] * 6), strict=True)]
            space, eliminated = self._spaces[link], self._eliminated[link]
            own = [b.add(forces.get(j, g.zero), self._force.get(j, g.zero)) for j in space.speeds]
            tau = space.forces_along(own)
            left = [g.zero] * len(tau)
            for i in reversed(range(len(tau))):
                one = eliminated[i]
                left[i] = b.sub(tau[i], g.dot(one.direction.components, force))
                for j in range(6):
                    if j != one.direction.unit:
                        force[j] = b.add(force[j], b.mul(one.ratios[j], left[i]))
                if one.direction.unit is not None:
                    force[one.direction.unit] = tau[i]
            result[link] = (eliminated, left)
            parent = k.recursion.links[link].parent
            if parent > 0:
                carried = shift_force_to_parent(
                    g, k.joint(link), ((force[0], force[1], force[2]), (force[3], force[4], force[5]))
                )
                old = felt.get(parent, [g.zero] * 6)
                felt[parent] = [b.add(x, y) for x, y in zip(old, (*carried[0], *carried[1]), strict=True)]
        return result

    def bias(self, link: int) -> SpatialVector:
        """Return the inertia force at u' = 0 less the applied force."""
        if link not in self._bias:
            inertia = link_inertia_force(self._k, link, self._rigid[link])
            applied = self._loads.wrench_on_link(link)
            self._bias[link] = (self._g.sub(inertia[0], applied[0]), self._g.sub(inertia[1], applied[1]))
        return self._bias[link]

    def _eliminate(self) -> None:
        """Eliminate inertias inwards; once."""
        g, k = self._g, self._k
        if self._eliminated:
            return
        felt: dict[int, SpatialInertia] = {}
        for link in reversed(self._links):
            inertia = form_link_spatial_inertia(g, self._rigid[link])
            if link in felt:
                inertia = felt.pop(link).plus(inertia, g)
            rows = inertia.rows(g)
            space = self._spaces[link]
            rotors = [self._inertia.get(j, g.zero) for j in space.speeds]  # zero where directions are not the columns
            along = list(zip(space.directions, rotors, strict=True))
            eliminated = [self._eliminated_from(rows, d, rotor, link) for d, rotor in reversed(along)]
            self._eliminated[link] = eliminated[::-1]
            parent = k.recursion.links[link].parent
            if parent > 0:
                carried = shift_inertia_to_parent(g, k.joint(link), make_spatial_inertia(rows))
                felt[parent] = felt[parent].plus(carried, g) if parent in felt else carried

    def _eliminated_from(
        self, rows: list[list[int]], direction: _JointMotionDirection, rotor: int, link: int
    ) -> _EliminatedDirection:
        """Remove a direction from an inertia, in place; ``rotor`` acts along its speed alone."""
        g, b = self._g, self._g.b
        unit = direction.unit
        column = list(rows[unit]) if unit is not None else [g.dot(row, direction.components) for row in rows]
        pivot = column[unit] if unit is not None else g.dot(direction.components, column)
        pivot = b.add(pivot, rotor)
        b.require(pivot, f"the inertia felt by the joint of {self._k.recursion.links[link].name}", positive=True)
        inverse = b.div(g.one, pivot)
        ratios = [g.one if i == unit else b.mul(entry, inverse) for i, entry in enumerate(column)]
        for i in range(6):
            for j in range(i + 1):
                left = g.zero if unit in (i, j) else b.sub(rows[i][j], b.mul(ratios[i], column[j]))
                rows[i][j] = rows[j][i] = left
        return _EliminatedDirection(direction, inverse, tuple(ratios))


def _project_geared_links(
    kinematics: LinkKinematics, loads: AppliedLinkForces, n: int, geared: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return inertia and force of geared links in the rows of their speeds."""
    if not geared:
        return {}, {}
    bodies = CompositeBodies(kinematics, loads, n, geared)
    speeds = sorted({j for link in geared for j in kinematics.joint(link).columns})
    M, f = bodies.mass_matrix(), bodies.forcing()
    given = kinematics.walker.lower(kinematics.recursion.generalized_forces)  # counted where they are asked for
    f = [kinematics.b.sub(x, y) for x, y in zip(f, given, strict=True)] if given else f
    return {j: M[j * (j + 1) // 2 + j] for j in speeds}, {j: f[j] for j in speeds}
