"""Rigid inertias of links, regrouped so that as much as possible belongs to links that move less.

With P = ∫ r rᵀ dm about a link's origin (so that J = tr(P) 1 − P) and h = ∫ r dm, what a hinge about e cannot tell
apart from inertia of the link before it is m, the part of h along e, and P_ee: they are moved there, link by link
towards the ground, and constants of the geometry and inertia are all that this takes (base parameters: M. Gautier,
W. Khalil, Direct calculation of minimum set of inertial parameters of serial robots, IEEE Trans. Robotics and
Automation 6, 1990, 368-373). The accelerations are the same; a chain's links are left without mass.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

import sympy as sm

from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkKinematicsLowering
from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import Matrix, NodeVectorArithmetic, Vector
from mb2fmu.mechanics.equations.link_recursion import LinkBody


@dataclass(frozen=True, slots=True)
class RigidInertia:
    """Mass, its first moments h and its second moments P, about a link's origin, in the link's axes."""

    mass: int
    first: Vector
    second: Matrix

    def plus(self, other: RigidInertia, g: NodeVectorArithmetic) -> RigidInertia:
        """Return the sum of both inertias."""
        return RigidInertia(
            g.b.add(self.mass, other.mass), g.add(self.first, other.first), g.add_matrices(self.second, other.second)
        )

    def rotational_inertia_matrix(self, g: NodeVectorArithmetic) -> Matrix:
        """Return J = tr(P) 1 − P."""
        (xx, xy, xz), (_, yy, yz), (_, _, zz) = self.second
        b = g.b
        return (
            (b.add(yy, zz), b.neg(xy), b.neg(xz)),
            (b.neg(xy), b.add(xx, zz), b.neg(yz)),
            (b.neg(xz), b.neg(yz), b.add(xx, yy)),
        )


def _form_rigid_inertias(kinematics: LinkKinematicsLowering, apart: Container[int] = ()) -> dict[int, RigidInertia]:
    """Return the rigid inertia of each massive link, without regrouping, and without the bodies ``apart``."""
    g = kinematics.algebra
    inertias: dict[int, RigidInertia] = {}
    for number, body in enumerate(kinematics.recursion.bodies):
        if number in apart:
            continue
        one = _form_body_inertia(body, kinematics)
        link = body.masscenter.link
        inertias[link] = inertias[link].plus(one, g) if link in inertias else one
    return inertias


def _form_body_inertia(body: LinkBody, kinematics: LinkKinematicsLowering) -> RigidInertia:
    """Return the inertia of one body about its link's origin."""
    g, b = kinematics.algebra, kinematics.b
    mass = kinematics.walker.lower([body.mass])[0]
    place = kinematics.point_position_in_link(body.masscenter)
    first = g.scale(mass, place)
    second = outer_product(first, place, g)
    if body.inertia is not None:
        about_center = g.rotate_symmetric(
            kinematics.fixed_frame_rotation(body.frame), _second_moment_matrix(body.inertia, kinematics)
        )
        second = g.add_matrices(second, about_center)
    return RigidInertia(b.add(mass, g.zero), first, second)


def outer_product(x: Vector, y: Vector, g: NodeVectorArithmetic) -> Matrix:
    """Return X yᵀ."""
    return (g.scale(x[0], y), g.scale(x[1], y), g.scale(x[2], y))


def _second_moment_matrix(inertia: sm.ImmutableMatrix, kinematics: LinkKinematicsLowering) -> Matrix:
    """Return P = tr(J)/2 1 − J."""
    b = kinematics.b
    entries = kinematics.walker.lower(inertia)
    half = b.mul(b.constant(0.5), b.add(b.add(entries[0], entries[4]), entries[8]))
    xy, xz, yz = b.neg(entries[1]), b.neg(entries[2]), b.neg(entries[5])
    diagonal = [b.sub(half, entries[i]) for i in (0, 4, 8)]
    rows: Matrix = ((diagonal[0], xy, xz), (xy, diagonal[1], yz), (xz, yz, diagonal[2]))
    return rows


def regroup_link_inertias(
    kinematics: LinkKinematicsLowering, links: list[int], inertias: dict[int, RigidInertia]
) -> dict[int, RigidInertia]:
    """Return inertias in which parts that a joint cannot distinguish from its parent's inertia are moved there."""
    g = kinematics.algebra
    none = RigidInertia(g.zero, g.null, (g.null, g.null, g.null))
    result = {link: inertias.get(link, none) for link in links}
    for link in sorted(links, reverse=True):
        parent = kinematics.recursion.links[link].parent
        moved = _split_movable_inertia(link, result[link], kinematics)
        if moved is None:
            continue
        result[link], given = moved
        if parent in result:
            result[parent] = result[parent].plus(given, g)
    return result


def _split_movable_inertia(
    link: int, inertia: RigidInertia, kinematics: LinkKinematicsLowering
) -> tuple[RigidInertia, RigidInertia] | None:
    """Return the part that stays, and the part for the parent, about its origin in its axes."""
    g, joint = kinematics.algebra, kinematics.joint(link)
    if not (joint.inherits_rotation and joint.moves):
        return None
    angular = [column[0] for column in joint.columns.values() if not g.is_zero_vector(column[0])]
    linear = [column[1] for column in joint.columns.values() if not g.is_zero_vector(column[1])]
    if not angular and linear and joint.rotation is g.identity:
        nothing = RigidInertia(g.zero, g.null, (g.null, g.null, g.null))
        stays = RigidInertia(inertia.mass, inertia.first, nothing.second)
        return stays, RigidInertia(g.zero, g.null, inertia.second)
    if len(angular) != 1 or linear or not g.depends_on_parameters_only(joint.position):
        return None
    axis = _find_coordinate_axis(angular[0], g)
    if axis is None:
        return None
    direction = g.transpose(joint.rotation)[axis]
    return (
        _split_along_hinge(axis, direction, inertia, kinematics, joint.position)
        if g.depends_on_parameters_only(direction)
        else None
    )


def _split_along_hinge(
    axis: int, direction: Vector, inertia: RigidInertia, kinematics: LinkKinematicsLowering, position: Vector
) -> tuple[RigidInertia, RigidInertia]:
    """Return the parts along a hinge's axis, which has a ``direction`` in the parent."""
    g, b = kinematics.algebra, kinematics.b
    first, rows = list(inertia.first), [list(row) for row in inertia.second]
    along, square = first[axis], rows[axis][axis]
    first[axis] = rows[axis][axis] = g.zero
    x, y, z = ((row[0], row[1], row[2]) for row in rows)
    stays = RigidInertia(g.zero, (first[0], first[1], first[2]), (x, y, z))
    moment = g.scale(along, direction)
    shifted = g.scale(inertia.mass, position)
    second = g.add_matrices(
        outer_product(g.scale(square, direction), direction, g), outer_product(shifted, position, g)
    )
    mixed = outer_product(moment, position, g)
    second = g.add_matrices(second, g.add_matrices(mixed, g.transpose(mixed)))
    return stays, RigidInertia(b.add(inertia.mass, g.zero), g.add(moment, shifted), second)


def _find_coordinate_axis(x: Vector, g: NodeVectorArithmetic) -> int | None:
    """Return the axis of a vector's only non-zero component; None if there are more."""
    present = [i for i in range(3) if x[i] != g.zero]
    return present[0] if len(present) == 1 else None
