"""Speeds that move several links, as modal speeds do: where articulated bodies eliminate them.

The inertia that a link feels then has rows for these speeds, too, beside the six of its own motion. They are carried
inwards from each link that they move, and eliminated in the link where all these ways meet, before its own joint.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mb2fmu.compiler.lowering.recursion.link_kinematics import LinkJointMotion, LinkKinematicsLowering
from mb2fmu.compiler.lowering.recursion.particle_group_inertia import ParticleGroupInertia
from mb2fmu.compiler.lowering.recursion.spatial_algebra import (
    SpatialInertia,
    SpatialVector,
    form_spatial_inertia_from_matrix,
    shift_force_to_parent,
    shift_inertia_to_parent,
    shift_motion_to_link,
)
from mb2fmu.compiler.lowering.recursion.vector_node_arithmetic import NodeVectorArithmetic
from mb2fmu.mechanics.equations.link_recursion import LinkRecursion

Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class SharedLinkSpeeds:
    """Shared speeds of a tree.

    Attributes:
        at: Link → shared speeds that have rows in what it feels, those that end there first.
        ends: Link → how many of them are eliminated there.
        joints: Link → shared speeds that move it against its parent.
    """

    at: Mapping[int, tuple[int, ...]]
    ends: Mapping[int, int]
    joints: Mapping[int, tuple[int, ...]]

    def beyond(self, link: int) -> tuple[int, ...]:
        """Return the speeds that have rows of a link and of its parent."""
        return self.at[link][self.ends[link] :]


def find_shared_link_speeds(recursion: LinkRecursion, links: Sequence[int]) -> SharedLinkSpeeds:
    """Return the speeds of particle groups, and where they go.

    Args:
        recursion: The relations.
        links: Those that count, parents first, without the ground.
    """
    shared = {j for group in recursion.particle_groups for j in group.speeds}
    joints = {link: tuple(sorted(recursion.list_joint_speeds(link) & shared)) for link in links}
    starts = [(recursion.links[link].parent, j) for link in links for j in joints[link]]
    starts += [(group.link, j) for group in recursion.particle_groups for j in group.speeds]
    ways: dict[int, list[list[int]]] = {}
    for link, j in starts:
        way = [link]
        while way[-1] > 0:
            way.append(recursion.links[way[-1]].parent)
        ways.setdefault(j, []).append(way)
    at: dict[int, list[int]] = {link: [] for link in (0, *links)}
    ends = dict.fromkeys(at, 0)
    for j in sorted(ways):
        common = set.intersection(*(set(way) for way in ways[j]))
        end = max(common)  # parents have lower numbers
        for link in {link for way in ways[j] for link in way if link == end or link not in common}:
            at[link].insert(ends[link] if link == end else len(at[link]), j)
        ends[end] += 1
    return SharedLinkSpeeds({link: tuple(speeds) for link, speeds in at.items()}, ends, joints)


@dataclass(frozen=True, slots=True)
class InertiaWithSharedSpeeds:
    """Inertia of a link's own motion and of shared speeds.

    Attributes:
        frame: Of the link's motion.
        momenta: Shared speed → momentum of the link's motion by a unit of it.
        mass: Two shared speeds, the larger first → entry of their mass matrix.
    """

    frame: SpatialInertia
    momenta: dict[int, SpatialVector]
    mass: dict[Pair, int]

    def plus(self, other: InertiaWithSharedSpeeds, g: NodeVectorArithmetic) -> InertiaWithSharedSpeeds:
        """Return the sum of both inertias."""
        momenta, mass = dict(self.momenta), dict(self.mass)
        for j, momentum in other.momenta.items():
            momenta[j] = _add(g, momenta[j], momentum) if j in momenta else momentum
        for pair, entry in other.mass.items():
            mass[pair] = g.b.add(mass.get(pair, g.zero), entry)
        return InertiaWithSharedSpeeds(self.frame.plus(other.frame, g), momenta, mass)

    def rows(self, speeds: Sequence[int], g: NodeVectorArithmetic) -> list[list[int]]:
        """Return all entries: six of the link's motion, then the speeds in their order."""
        none = (g.null, g.null)
        columns = [[*angular, *linear] for angular, linear in (self.momenta.get(j, none) for j in speeds)]
        upper = [[*row, *(column[i] for column in columns)] for i, row in enumerate(self.frame.rows(g))]
        lower = [
            [*column, *(self.mass.get((max(i, j), min(i, j)), g.zero) for j in speeds)]
            for i, column in zip(speeds, columns, strict=True)
        ]
        return upper + lower


def form_shared_speed_inertia_of_particle_group(
    group: ParticleGroupInertia, g: NodeVectorArithmetic
) -> InertiaWithSharedSpeeds:
    """Return the inertia of a group beside that of its link, which has the particles as they lie."""
    nothing = (g.null, g.null, g.null)
    mass = {}
    for i, speed in enumerate(group.speeds):
        for j, other in enumerate(group.speeds[: i + 1]):
            mass[max(speed, other), min(speed, other)] = group.modal_mass(i, j)
    momenta = dict(zip(group.speeds, group.momenta, strict=True))
    return InertiaWithSharedSpeeds(SpatialInertia(nothing, nothing, nothing), momenta, mass)


def propagate_inertia_to_parent(
    kinematics: LinkKinematicsLowering, shared: SharedLinkSpeeds, link: int, rows: list[list[int]]
) -> InertiaWithSharedSpeeds:
    """Return what a link's parent feels of its inertia: turned, with the shared speeds of the joint, then moved."""
    g, b, joint = kinematics.algebra, kinematics.b, kinematics.joint(link)
    frame = form_spatial_inertia_from_matrix(rows)
    first, beyond = 6 + shared.ends[link], shared.beyond(link)
    if not beyond and not shared.joints[link]:
        return InertiaWithSharedSpeeds(shift_inertia_to_parent(g, joint, frame), {}, {})
    C, moved = joint.rotation, _without_rotation(g, joint)
    frame = SpatialInertia(g.rotate_symmetric(C, frame.J), g.rotate(C, frame.H), g.rotate_symmetric(C, frame.M))
    columns = kinematics.joint_columns_in_parent(link)
    carried: dict[int, SpatialVector] = {}
    for n, j in enumerate(beyond, start=first):
        carried[j] = (g.apply(C, [row[n] for row in rows[:3]]), g.apply(C, [row[n] for row in rows[3:6]]))
    total = dict(carried)
    for j in shared.joints[link]:
        angular, linear = columns[j]
        spin = g.add(g.apply(frame.J, angular), g.apply(frame.H, linear))
        push = g.add(g.apply(g.transpose(frame.H), angular), g.apply(frame.M, linear))
        total[j] = _add(g, total[j], (spin, push)) if j in total else (spin, push)
    mass = {
        (i, j): rows[m][n]
        for m, i in enumerate(beyond, start=first)
        for n, j in enumerate(beyond, start=first)
        if j <= i
    }
    for i in sorted(total):
        for j in (j for j in sorted(total) if j <= i):
            entry = mass.get((i, j), g.zero)
            if i in shared.joints[link]:
                entry = b.add(entry, _power(g, columns[i], total[j]))
            if j in shared.joints[link] and i in carried:
                entry = b.add(entry, _power(g, columns[j], carried[i]))
            mass[i, j] = entry
    momenta = {j: shift_force_to_parent(g, moved, momentum) for j, momentum in total.items()}
    return InertiaWithSharedSpeeds(shift_inertia_to_parent(g, moved, frame), momenta, mass)


def shift_force_with_shared_speeds(
    kinematics: LinkKinematicsLowering, shared: SharedLinkSpeeds, link: int, force: Sequence[int]
) -> tuple[SpatialVector, dict[int, int]]:
    """Return what a link's parent feels of a force on it, and the forces along shared speeds."""
    g, b, joint = kinematics.algebra, kinematics.b, kinematics.joint(link)
    on_link = ((force[0], force[1], force[2]), (force[3], force[4], force[5]))
    along = dict(zip(shared.beyond(link), force[6 + shared.ends[link] :], strict=True))
    if not shared.joints[link]:
        return shift_force_to_parent(g, joint, on_link), along
    turned = (g.apply(joint.rotation, on_link[0]), g.apply(joint.rotation, on_link[1]))
    columns = kinematics.joint_columns_in_parent(link)
    for j in shared.joints[link]:
        along[j] = b.add(along.get(j, g.zero), _power(g, columns[j], turned))
    return shift_force_to_parent(g, _without_rotation(g, joint), turned), along


def shift_motion_with_shared_speeds(
    kinematics: LinkKinematicsLowering,
    shared: SharedLinkSpeeds,
    link: int,
    motion: SpatialVector,
    u_dot: Mapping[int, int],
) -> SpatialVector:
    """Return the part of a link's motion that its parent's motion and shared speeds cause."""
    g, joint = kinematics.algebra, kinematics.joint(link)
    if not shared.joints[link]:
        return shift_motion_to_link(g, joint, motion)
    angular, linear = shift_motion_to_link(g, _without_rotation(g, joint), motion)
    columns = kinematics.joint_columns_in_parent(link)
    for j in shared.joints[link]:
        angular = g.add(angular, g.scale(u_dot[j], columns[j][0]))
        linear = g.add(linear, g.scale(u_dot[j], columns[j][1]))
    return g.apply_transposed(joint.rotation, angular), g.apply_transposed(joint.rotation, linear)


def _without_rotation(g: NodeVectorArithmetic, joint: LinkJointMotion) -> LinkJointMotion:
    """Return the joint between the parent and axes that are its own, at the link's origin."""
    return LinkJointMotion(g.identity, joint.position, {}, joint.inherits_rotation, joint.moves)


def _add(g: NodeVectorArithmetic, x: SpatialVector, y: SpatialVector) -> SpatialVector:
    """Return x + y."""
    return g.add(x[0], y[0]), g.add(x[1], y[1])


def _power(g: NodeVectorArithmetic, column: SpatialVector, force: SpatialVector) -> int:
    """Return ω · torque + v · force."""
    return g.b.add(g.dot(column[0], force[0]), g.dot(column[1], force[1]))
