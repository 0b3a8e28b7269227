"""Forces on links as nodes: inertia forces at u' = 0, and applied loads."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkKinematicsLowering
from mb2fmu.compiler.lowering.recursion.regrouped_link_inertias import RigidInertia
from mb2fmu.compiler.lowering.recursion.spatial_algebra import SpatialVector
from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import Vector
from mb2fmu.mechanics.equations.link_recursion import (
    Components,
    LinkFixedPoint,
    LinkForce,
    LinkLoad,
    LinkPathwayForce,
    LinkTorque,
)


def form_link_inertia_force(kinematics: LinkKinematicsLowering, link: int, inertia: RigidInertia) -> SpatialVector:
    """Return the rate of momentum of a link at u' = 0 without gravity, about its origin, in its axes.

    With Ω = α̂0 + ω̂²: f = m a0 + Ω h, and n = h × a0 + ∫ r × Ω r dm, whose x component is (Ω P)_zy − (Ω P)_yz.
    """
    g, b = kinematics.algebra, kinematics.b
    W = kinematics.rotational_acceleration_matrix(kinematics.axes(link))
    a = kinematics.acceleration(link)
    P = inertia.second
    force = g.add(g.scale(inertia.mass, a), g.apply(W, inertia.first))
    torque = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        plus = [b.mul(W[k][i], P[i][j]), b.mul(b.sub(W[k][k], W[j][j]), P[j][k]), b.mul(W[k][j], P[j][j])]
        torque.append(b.sum(plus, [b.mul(W[j][i], P[i][k]), b.mul(W[j][k], P[k][k])]))
    return g.add((torque[0], torque[1], torque[2]), g.cross(inertia.first, a)), force


class AppliedLinkForces:
    """All loads of a recursion, per link, about the links' origins, in their axes; gravity is not among them.

    Args:
        kinematics: Of the links.
    """

    def __init__(self, kinematics: LinkKinematicsLowering) -> None:
        self._k = kinematics
        self._g = kinematics.algebra
        self._pathways: dict[int, tuple[int, int, list[Vector]]] = {}
        self._forces: dict[int, SpatialVector] | None = None

    def wrench_on_link(self, link: int) -> SpatialVector:
        """Return (torque, force) on a link."""
        if self._forces is None:
            self._forces = {}
            for load in self._k.recursion.loads:
                self._apply(load, self._forces)
        return self._forces.get(link, (self._g.null, self._g.null))

    def pathway_length_and_rate(self, number: int) -> tuple[int, int, list[Vector]]:
        """Return length, rate, and unit vectors in N of the segments of a pathway."""
        if number not in self._pathways:
            self._pathways[number] = self._pathway(self._k.recursion.pathways[number])
        return self._pathways[number]

    def _pathway(self, points: tuple[int, ...]) -> tuple[int, int, list[Vector]]:
        """Return the length in m, its rate in m/s, and the unit vectors along the segments of a pathway."""
        g, b = self._g, self._k.b
        length = rate = g.zero
        directions = []
        places = [self._k.recursion.points[point] for point in points]
        for start, end in itertools.pairwise(places):
            gap = g.sub(attachment_position(self._k, end), attachment_position(self._k, start))
            opening = g.sub(attachment_velocity(self._k, end), attachment_velocity(self._k, start))
            size = b.power(g.dot(gap, gap), b.constant(0.5))
            direction = g.scale(b.div(g.one, size), gap)
            length, rate = b.add(length, size), b.add(rate, g.dot(direction, opening))
            directions.append(direction)
        return length, rate, directions

    def _apply(self, load: LinkLoad, forces: dict[int, SpatialVector]) -> None:
        """Add a load to the spatial forces of the links that it acts on, in their own axes."""
        g, k = self._g, self._k
        match load:
            case LinkForce():
                self._push(forces, load.at, self._vector(load.force, k.axes(load.at.link)))
            case LinkTorque():
                magnitude = g.one if load.magnitude is None else k.walker.lower([load.magnitude])[0]
                for link, sign in ((load.link, magnitude), (load.reaction, k.b.neg(magnitude))):
                    if link > 0:
                        self._add(forces, link, (g.scale(sign, self._vector(load.torque, k.axes(link))), g.null))
            case LinkPathwayForce():
                strength = k.walker.lower([load.force])[0]
                ends = zip(load.points, load.points[1:], self.pathway_length_and_rate(load.number)[2], strict=False)
                for start, end, direction in ends:
                    for point, sign in ((start, k.b.neg(strength)), (end, strength)):
                        at = k.recursion.points[point]
                        if at.link > 0:
                            turn = k.relative_rotation(0, k.axes(at.link))
                            self._push(forces, at, g.apply_transposed(turn, g.scale(sign, direction)))

    def _vector(self, terms: Iterable[tuple[int, Components]], axes: int) -> Vector:
        """Sum vectors given in several frames, in components along `axes`."""
        total = self._g.null
        for frame, components in terms:
            total = self._g.add(total, self._k.express_in_axes(frame, self._k.lower(components), axes))
        return total

    def _push(self, forces: dict[int, SpatialVector], at: LinkFixedPoint, force: Vector) -> None:
        """Apply a force at a point of a link, with its moment about the link's origin; skip the ground."""
        if at.link > 0:
            self._add(forces, at.link, (self._g.cross(self._k.point_position_in_link(at), force), force))

    def _add(self, forces: dict[int, SpatialVector], link: int, force: SpatialVector) -> None:
        """Add a torque and a force to what already acts on a link."""
        old = forces.get(link, (self._g.null, self._g.null))
        forces[link] = (self._g.add(old[0], force[0]), self._g.add(old[1], force[1]))


def attachment_position(kinematics: LinkKinematicsLowering, at: LinkFixedPoint) -> Vector:
    """Return the position from O, m, in N."""
    g = kinematics.algebra
    arm = g.apply(kinematics.relative_rotation(0, kinematics.axes(at.link)), kinematics.point_position_in_link(at))
    return g.add(kinematics.position(at.link), arm)


def attachment_velocity(kinematics: LinkKinematicsLowering, at: LinkFixedPoint) -> Vector:
    """Return the velocity in N, m/s, in N's components."""
    g, axes = kinematics.algebra, kinematics.axes(at.link)
    swing = g.cross(kinematics.omega(axes), kinematics.point_position_in_link(at))
    return g.apply(kinematics.relative_rotation(0, axes), g.add(kinematics.velocity(at.link), swing))
