"""Articulated bodies: u' in three sweeps over the links; several sets of generalized forces share the inertias.

Outwards: velocities and the accelerations at u' = 0. Inwards: inertias and forces as felt through the joints below,
each direction of a joint eliminated by itself, after the speeds that deform the link (``shared_speed_elimination``).
Outwards: what the joints' accelerations add. Because the second sweep starts from the accelerations at u' = 0,
velocities enter forces only, once per link.

Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, ch. 7.2.

Joint spaces: directions of motion of a link against its parent, coordinate directions where possible.

If d speeds move a link in d coordinate directions of its own axes (a hinge, a ball, a free body), its motion is said by
the components w = B u in these directions: rows and columns of inertias are then eliminated as they stand, and B, of
size d, is solved for u' alone. Otherwise (a hinge about a slanted axis, a screw) the columns are general.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.compiler.lowering.recursion.composite_body_recursion import CompositeBodyDynamics
from mb2fmu.compiler.lowering.recursion.link_force_lowering import AppliedLinkForces, form_link_inertia_force
from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkJointMotion, LinkKinematicsLowering
from mb2fmu.compiler.lowering.recursion.particle_group_inertia import (
    form_link_inertias_with_particle_groups,
    form_particle_group_inertias,
)
from mb2fmu.compiler.lowering.recursion.shared_speed_elimination import (
    InertiaWithSharedSpeeds,
    find_shared_link_speeds,
    form_shared_speed_inertia_of_particle_group,
    propagate_inertia_to_parent,
    shift_force_with_shared_speeds,
    shift_motion_with_shared_speeds,
)
from mb2fmu.compiler.lowering.recursion.spatial_algebra import (
    SpatialInertia,
    SpatialVector,
    form_link_spatial_inertia,
)
from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import NodeVectorArithmetic
from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem

_MAX_CRAMER_SIZE = 3  # blocks of B up to this size are inverted by cofactors: no pivot is chosen, none can be wrong


@dataclass(frozen=True, slots=True)
class _JointMotionDirection:
    """A direction: six components and those of shared speeds; ``unit`` is the index of the only non-zero one, if 1."""

    components: tuple[int, ...]
    unit: int | None


class _JointMotionSubspace:
    """Directions of one joint, and the relation between their components w and the speeds.

    Args:
        g: Takes the nodes.
        joint: The joint.
        name: For messages.
        geared: Inertia acts along the speed itself: directions are the columns as they stand.
        shared: Speeds that move other links, too, and are none of its own.
    """

    def __init__(
        self,
        g: NodeVectorArithmetic,
        joint: LinkJointMotion,
        name: str,
        *,
        geared: bool = False,
        shared: Collection[int] = (),
    ) -> None:
        self._g = g
        self._name = name
        self.speeds = sorted(joint.columns.keys() - set(shared))
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


class ArticulatedBodyDynamics:
    """Forward dynamics of a tree whose speeds move one link each, or deform one (particle groups).

    Args:
        kinematics: Of the links.
        loads: What is applied.
        n: Number of speeds.
        geared: Links that only add inertia and force along a joint.
    """

    def __init__(
        self, kinematics: LinkKinematicsLowering, loads: AppliedLinkForces, n: int, geared: Sequence[int] = ()
    ) -> None:
        self._k = kinematics
        self._g = kinematics.algebra
        self._loads = loads
        recursion = kinematics.recursion
        self._links = [i for i in recursion.list_carrying_links() if i not in geared]
        self._shared = find_shared_link_speeds(recursion, self._links)
        self._inertia, self._force = _project_geared_links(kinematics, loads, n, geared)
        self._spaces = {i: self._space(i, recursion.links[i].name) for i in self._links}
        self._groups = form_particle_group_inertias(kinematics)
        self._rigid = form_link_inertias_with_particle_groups(kinematics, self._links, self._groups)
        self._bias: dict[int, SpatialVector] = {}
        self._eliminated: dict[int, list[_EliminatedDirection]] = {}

    def _space(self, link: int, name: str) -> _JointMotionSubspace:
        """Return the joint's motion subspace, geared where a rotor's inertia acts on one of its speeds."""
        joint, shared = self._k.joint(link), self._shared.joints[link]
        geared = any(j in self._inertia for j in joint.columns)
        return _JointMotionSubspace(self._g, joint, name, geared=geared, shared=shared)

    def _directions(self, link: int) -> list[_JointMotionDirection]:
        """Return the directions that a link eliminates: those of its joint, then shared speeds that end there."""
        g, padding = self._g, [self._g.zero] * len(self._shared.at[link])
        own = self._spaces[link].directions if link else ()
        directions = [_JointMotionDirection((*one.components, *padding), one.unit) for one in own]
        for i in range(6, 6 + self._shared.ends[link]):
            unit = tuple(g.one if i == k else g.zero for k in range(6 + len(padding)))
            directions.append(_JointMotionDirection(unit, i))
        return directions

    def accelerations(self, forces: Mapping[int, int]) -> dict[int, int]:
        """Return speed → u', for generalized forces that are added in the rows of some speeds."""
        self._eliminate()
        g, k = self._g, self._k
        through = self._forces_inwards(forces)
        motions: dict[int, SpatialVector] = {}
        result: dict[int, int] = {}
        for link in (0, *self._links):
            carried = (g.null, g.null)
            if link:
                parent = k.recursion.links[link].parent
                carried = shift_motion_with_shared_speeds(k, self._shared, link, motions[parent], result)
            passing = [result[j] for j in self._shared.beyond(link)]
            motion = [*carried[0], *carried[1], *[g.zero] * self._shared.ends[link], *passing]
            w = [self._along(one, force, motion) for one, force in zip(*through[link], strict=True)]
            motions[link] = ((motion[0], motion[1], motion[2]), (motion[3], motion[4], motion[5]))
            space = self._spaces.get(link)
            own = len(w) - self._shared.ends[link]
            result |= dict(zip(self._shared.at[link], w[own:], strict=False))
            if space is not None:
                result |= dict(zip(space.speeds, space.speeds_from(w[:own]), strict=True))
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
        others = [i for i in range(len(motion)) if i != unit]
        total = b.sub(b.mul(one.inverse, force), g.dot([one.ratios[i] for i in others], [motion[i] for i in others]))
        w = b.sub(total, motion[unit])
        motion[unit] = total
        return w

    def _forces_inwards(self, forces: Mapping[int, int]) -> dict[int, tuple[list[_EliminatedDirection], list[int]]]:
        """Return the directions of each link, innermost first, and the remaining force along each."""
        g, b, k = self._g, self._g.b, self._k
        felt = {link: [g.zero] * (6 + len(speeds)) for link, speeds in self._shared.at.items()}
        for group in self._groups:
            (torque, force_on_link), along = group.inertia_force()
            self._add_force(felt, group.link, (torque, force_on_link), dict(zip(group.speeds, along, strict=True)))
        result = {}
        for link in (*reversed(self._links), 0):
            if link:
                self._add_force(felt, link, self.bias(link), {})
            force, eliminated = felt[link], self._eliminated[link]
            tau = self._forces_along(link, forces)
            left = [g.zero] * len(tau)
            for i in reversed(range(len(tau))):
                one = eliminated[i]
                left[i] = b.sub(tau[i], g.dot(one.direction.components, force))
                for j in range(len(force)):
                    if j != one.direction.unit:
                        force[j] = b.add(force[j], b.mul(one.ratios[j], left[i]))
                if one.direction.unit is not None:
                    force[one.direction.unit] = tau[i]
            result[link] = (eliminated, left)
            parent = k.recursion.links[link].parent
            if link and (parent > 0 or self._shared.at[parent]):
                self._add_force(felt, parent, *shift_force_with_shared_speeds(k, self._shared, link, force))
        return result

    def _forces_along(self, link: int, forces: Mapping[int, int]) -> list[int]:
        """Return the generalized forces along the directions of a link."""
        added = {j: self._g.b.add(forces.get(j, self._g.zero), self._force.get(j, self._g.zero)) for j in forces}
        ends = self._shared.at[link][: self._shared.ends[link]]
        own = []
        if link:
            space = self._spaces[link]
            own = space.forces_along([added.get(j, self._force.get(j, self._g.zero)) for j in space.speeds])
        return own + [added.get(j, self._g.zero) for j in ends]

    def _add_force(self, felt: dict[int, list[int]], link: int, force: SpatialVector, along: Mapping[int, int]) -> None:
        """Add a force, and forces along shared speeds, to what a link feels."""
        b, rows = self._g.b, felt[link]
        both = [*force[0], *force[1], *(along.get(j, self._g.zero) for j in self._shared.at[link])]
        felt[link] = [b.add(x, y) for x, y in zip(rows, both, strict=True)]

    def bias(self, link: int) -> SpatialVector:
        """Return the inertia force at u' = 0 less the applied force, without rates of particle groups."""
        if link not in self._bias:
            inertia = form_link_inertia_force(self._k, link, self._rigid[link])
            applied = self._loads.wrench_on_link(link)
            self._bias[link] = (self._g.sub(inertia[0], applied[0]), self._g.sub(inertia[1], applied[1]))
        return self._bias[link]

    def _eliminate(self) -> None:
        """Eliminate inertias inwards; once."""
        g, k = self._g, self._k
        if self._eliminated:
            return
        nothing = (g.null, g.null, g.null)
        felt = {0: InertiaWithSharedSpeeds(SpatialInertia(nothing, nothing, nothing), {}, {})}
        for link in self._links:
            felt[link] = InertiaWithSharedSpeeds(form_link_spatial_inertia(g, self._rigid[link]), {}, {})
        for group in self._groups:
            felt[group.link] = felt[group.link].plus(form_shared_speed_inertia_of_particle_group(group, g), g)
        for link in (*reversed(self._links), 0):
            rows = felt.pop(link).rows(self._shared.at[link], g)
            space = self._spaces.get(link)
            rotors = [self._inertia.get(j, g.zero) for j in space.speeds] if space else []
            # a rotor's inertia is zero where directions are not the columns
            rotors += [g.zero] * self._shared.ends[link]
            along = list(zip(self._directions(link), rotors, strict=True))
            eliminated = [self._eliminated_from(rows, d, rotor, link) for d, rotor in reversed(along)]
            self._eliminated[link] = eliminated[::-1]
            parent = k.recursion.links[link].parent
            if link and (parent > 0 or self._shared.at[parent]):
                felt[parent] = felt[parent].plus(propagate_inertia_to_parent(k, self._shared, link, rows), g)

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
        for i in range(len(rows)):
            for j in range(i + 1):
                left = g.zero if unit in (i, j) else b.sub(rows[i][j], b.mul(ratios[i], column[j]))
                rows[i][j] = rows[j][i] = left
        return _EliminatedDirection(direction, inverse, tuple(ratios))


def _project_geared_links(
    kinematics: LinkKinematicsLowering, loads: AppliedLinkForces, n: int, geared: Sequence[int]
) -> tuple[dict[int, int], dict[int, int]]:
    """Return inertia and force of geared links in the rows of their speeds."""
    if not geared:
        return {}, {}
    bodies = CompositeBodyDynamics(kinematics, loads, n, geared)
    speeds = sorted({j for link in geared for j in kinematics.joint(link).columns})
    M, f = bodies.mass_matrix(), bodies.forcing()
    given = kinematics.walker.lower(kinematics.recursion.generalized_forces)  # counted where they are requested
    f = [kinematics.b.sub(x, y) for x, y in zip(f, given, strict=True)] if given else f
    return {j: M[j * (j + 1) // 2 + j] for j in speeds}, {j: f[j] for j in speeds}
