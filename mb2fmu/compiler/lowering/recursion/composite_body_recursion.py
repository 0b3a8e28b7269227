"""Composite bodies: M from the inertia beyond each joint, f by Newton-Euler at u' = 0, and M u' - f likewise.

A speed may move several links: every column of every link counts by itself, and entries of M are sums over them. So
this applies wherever there are links, and the cost is n² only along common ancestors.

Sources: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, ch. 5, 6; P. Fisette, J. C. Samin, Robotran:
symbolic generation of multi-body system dynamic equations, in: Advanced Multibody System Dynamics, Kluwer 1993, 373.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from mb2fmu.compiler.lowering.recursion.link_force_lowering import AppliedLinkForces, form_link_inertia_force
from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkJointMotion, LinkKinematicsLowering
from mb2fmu.compiler.lowering.recursion.particle_group_inertia import (
    ParticleGroupInertia,
    form_link_inertias_with_particle_groups,
    form_particle_group_inertias,
)
from mb2fmu.compiler.lowering.recursion.regrouped_link_inertias import RigidInertia, outer_product
from mb2fmu.compiler.lowering.recursion.shared_speed_elimination import form_shared_speed_inertia_of_particle_group
from mb2fmu.compiler.lowering.recursion.spatial_algebra import (
    SpatialVector,
    shift_force_to_parent,
    shift_motion_to_link,
)
from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import NodeVectorArithmetic

GroupForces = tuple[SpatialVector, list[int]]
"""A force on the link of a group of particles, and a force along each of its speeds."""


class CompositeBodyDynamics:
    """M and f of any tree of links.

    Args:
        kinematics: Of the links.
        loads: What is applied.
        n: Number of speeds.
        only: The links that count; all with mass or loads, and the groups of particles, if nothing is said.
    """

    def __init__(
        self, kinematics: LinkKinematicsLowering, loads: AppliedLinkForces, n: int, only: Sequence[int] | None = None
    ) -> None:
        self._k = kinematics
        self._g = kinematics.algebra
        self._loads = loads
        self._n = n
        self._links = kinematics.recursion.list_carrying_links() if only is None else sorted(only)
        self._groups = form_particle_group_inertias(kinematics) if only is None else []
        self._rigid = form_link_inertias_with_particle_groups(kinematics, self._links, self._groups)

    def mass_matrix(self) -> list[int]:
        """Return the lower triangle of M, row by row.

        Forces of one speed that come from several links are summed where their ways to the ground meet, and go on as
        one.
        """
        g, b, k = self._g, self._g.b, self._k
        entries = {(i, j): g.zero for i in range(self._n) for j in range(i + 1)}
        composite = dict(self._rigid)
        carried = self._add_groups(entries)
        for link in reversed(self._links):
            joint, felt = k.joint(link), carried.pop(link, {})
            for i, force in felt.items():
                for j, column in joint.columns.items():
                    power = _joint_power(g, column, force)
                    power = b.add(power, power) if i == j else power
                    place = (max(i, j), min(i, j))
                    entries[place] = b.add(entries[place], power)
            for i, column in joint.columns.items():
                force = _spatial_momentum(g, composite[link], column)
                for j, other in joint.columns.items():
                    if j <= i:
                        entries[i, j] = b.add(entries[i, j], _joint_power(g, other, force))
                self._add_force(felt, i, force)
            parent = k.recursion.links[link].parent
            if parent > 0:
                for i, force in felt.items():
                    self._add_force(carried.setdefault(parent, {}), i, shift_force_to_parent(g, joint, force))
                passed = _shift_inertia_to_parent(g, joint, composite[link])
                composite[parent] = composite[parent].plus(passed, g)
        return [entries[i, j] for i in range(self._n) for j in range(i + 1)]

    def _add_groups(self, entries: dict[tuple[int, int], int]) -> dict[int, dict[int, SpatialVector]]:
        """Add the groups of particles to the entries of M; return the force of each of their speeds on their link."""
        carried: dict[int, dict[int, SpatialVector]] = {}
        for group in self._groups:
            coupled = form_shared_speed_inertia_of_particle_group(group, self._g)
            for place, entry in coupled.mass.items():
                entries[place] = self._g.b.add(entries[place], entry)
            for i, force in coupled.momenta.items():
                self._add_force(carried.setdefault(group.link, {}), i, force)
        return carried

    def _add_force(self, felt: dict[int, SpatialVector], i: int, force: SpatialVector) -> None:
        """Add the force of a speed to what a link feels of it."""
        old = felt.get(i)
        felt[i] = force if old is None else (self._g.add(old[0], force[0]), self._g.add(old[1], force[1]))

    def forcing(self) -> list[int]:
        """Return f: generalized forces less inertia forces at u' = 0."""
        generalized = self._k.walker.lower(self._k.recursion.generalized_forces)

        def rates(group: ParticleGroupInertia) -> GroupForces:
            """Return the opposite of the inertia forces by rates of the coordinates."""
            (torque, force), along = group.inertia_force()
            return (self._g.neg(torque), self._g.neg(force)), [self._g.b.neg(one) for one in along]

        return self._along_speeds(self._left_to_accelerate, rates, generalized)

    def inverse(self, u_dot: Sequence[int], generalized: Sequence[int]) -> list[int]:
        """Return M u' - f: the generalized forces that the given u' need (recursive Newton-Euler).

        Args:
            u_dot: One node per speed.
            generalized: Generalized forces that act beside the loads, one node per speed, or none.
        """
        g, k = self._g, self._k
        motions: dict[int, SpatialVector] = {0: (g.null, g.null)}

        def wanted(link: int) -> SpatialVector:
            """Return the acceleration of a link; it is kept for the links after it."""
            joint = k.joint(link)
            angular, linear = shift_motion_to_link(g, joint, motions[k.recursion.links[link].parent])
            for j, column in joint.columns.items():
                angular = g.add(angular, g.scale(u_dot[j], column[0]))
                linear = g.add(linear, g.scale(u_dot[j], column[1]))
            motions[link] = (angular, linear)
            taken, left = _spatial_momentum(g, self._rigid[link], motions[link]), self._left_to_accelerate(link)
            return g.sub(taken[0], left[0]), g.sub(taken[1], left[1])

        def grouped(group: ParticleGroupInertia) -> GroupForces:
            """Return the inertia forces by all accelerations."""
            (torque, force), along = group.inertia_force()
            angular, linear = motions[group.link]
            for i, (j, momentum) in enumerate(zip(group.speeds, group.momenta, strict=True)):
                torque, force = (g.add(x, g.scale(u_dot[j], y)) for x, y in zip((torque, force), momentum, strict=True))
                modal = g.dot([u_dot[l] for l in group.speeds], [group.modal_mass(i, l) for l in range(len(along))])
                along[i] = g.b.sum([along[i], _joint_power(g, (angular, linear), momentum), modal])
            return (torque, force), along

        needed = {link: wanted(link) for link in self._links}
        return self._along_speeds(needed.__getitem__, grouped, [g.b.neg(force) for force in generalized])

    def against_gravity(self) -> list[int]:
        """Return the generalized forces that hold the weights."""
        g, k = self._g, self._k

        def weight(link: int) -> SpatialVector:
            upwards, rigid = k.opposite_gravity(k.axes(link)), self._rigid[link]
            return g.cross(rigid.first, upwards), g.scale(rigid.mass, upwards)

        def grouped(group: ParticleGroupInertia) -> GroupForces:
            """Return the weight along the coordinates; that of the link has all particles."""
            upwards = k.opposite_gravity(k.axes(group.link))
            return (g.null, g.null), [g.dot(momentum[1], upwards) for momentum in group.momenta]

        return self._along_speeds(weight, grouped, ())

    def _left_to_accelerate(self, link: int) -> SpatialVector:
        """Return the loads on a link less its inertia force at u' = 0."""
        g = self._g
        inertia, applied = form_link_inertia_force(self._k, link, self._rigid[link]), self._loads.wrench_on_link(link)
        return g.sub(applied[0], inertia[0]), g.sub(applied[1], inertia[1])

    def _along_speeds(
        self,
        on: Callable[[int], SpatialVector],
        grouped: Callable[[ParticleGroupInertia], GroupForces],
        generalized: Sequence[int],
    ) -> list[int]:
        """Return generalized forces (or zeros) plus the powers of forces on links, passed on towards the ground.

        Args:
            on: The force on a link.
            grouped: What a group of particles adds to the force on its link, and the forces along its speeds.
            generalized: One node per speed, or none.
        """
        g, b, k = self._g, self._g.b, self._k
        result = list(generalized) or [g.zero] * self._n
        felt: dict[int, SpatialVector] = {}
        for group in self._groups:
            force, along = grouped(group)
            for j, one in zip(group.speeds, along, strict=True):
                result[j] = b.add(result[j], one)
            old = felt.get(group.link, (g.null, g.null))
            felt[group.link] = (g.add(old[0], force[0]), g.add(old[1], force[1]))
        for link in reversed(self._links):
            force = on(link)
            if link in felt:
                old = felt.pop(link)
                force = (g.add(old[0], force[0]), g.add(old[1], force[1]))
            joint = k.joint(link)
            for j, column in joint.columns.items():
                result[j] = b.add(result[j], _joint_power(g, column, force))
            parent = k.recursion.links[link].parent
            if parent > 0:
                carried = shift_force_to_parent(g, joint, force)
                old = felt.get(parent, (g.null, g.null))
                felt[parent] = (g.add(old[0], carried[0]), g.add(old[1], carried[1]))
        return result


def _joint_power(g: NodeVectorArithmetic, column: SpatialVector, force: SpatialVector) -> int:
    """Return ω · torque + v · force: a joint's column times a spatial force, the generalized force of that column."""
    return g.b.add(g.dot(column[0], force[0]), g.dot(column[1], force[1]))


def _spatial_momentum(g: NodeVectorArithmetic, inertia: RigidInertia, motion: SpatialVector) -> SpatialVector:
    """Return inertia times a motion."""
    angular, linear = motion
    push = g.add(g.scale(inertia.mass, linear), g.cross(angular, inertia.first))
    return g.add(g.apply(inertia.rotational_inertia_matrix(g), angular), g.cross(inertia.first, linear)), push


def _shift_inertia_to_parent(g: NodeVectorArithmetic, joint: LinkJointMotion, inertia: RigidInertia) -> RigidInertia:
    """Return a composite body about its parent's origin: P_r = C P Cᵀ + r hᵀ + h rᵀ + m r rᵀ."""
    nothing = (g.null, g.null, g.null)
    if not joint.moves:
        # only the turning is the parent's: what is left of P counts, as a pure moment of inertia
        second = g.rotate_symmetric(joint.rotation, inertia.second) if joint.inherits_rotation else nothing
        return RigidInertia(g.zero, g.null, second)
    r = joint.position
    if not joint.inherits_rotation:
        return RigidInertia(inertia.mass, g.scale(inertia.mass, r), outer_product(g.scale(inertia.mass, r), r, g))
    first = g.apply(joint.rotation, inertia.first)
    second = g.rotate_symmetric(joint.rotation, inertia.second)
    half = g.add(first, g.scale(g.b.mul(g.b.constant(0.5), inertia.mass), r))
    mixed = outer_product(half, r, g)
    second = g.add_matrices(second, g.add_matrices(mixed, g.transpose(mixed)))
    return RigidInertia(inertia.mass, g.add(first, g.scale(inertia.mass, r)), second)
