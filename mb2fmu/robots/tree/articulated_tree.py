"""``RobotPartTree``: the parts of a robot that move against each other; fixed links are one part.

Each part has axes of its own in which its joint is simplest: a hinge turns about a coordinate axis of them. Part 0 is
the ground.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mb2fmu.errors import Fault, ModelError
from mb2fmu.robots.description.inertia_check_and_repair import (
    INERTIA_REMEDY,
    combine_inertias,
    find_inertia_faults,
    repair_inertia,
)
from mb2fmu.robots.description.robot_description import (
    Array,
    JointMimic,
    LinkInertia,
    Pose,
    RobotDescription,
    RobotJoint,
    RobotLink,
    find_link_name_in_file,
    round_rotation_entries,
)
from mb2fmu.robots.flexible_links.flexible_link import FlexibleLink
from mb2fmu.robots.robot_settings import RobotSettings

_AXIS_TOLERANCE = 1e-14
"""An axis this near to a coordinate axis is one: normalizing (0, 0, 2) leaves round-off."""
BASE_JOINT_NAME = "base"
"""Name of the joint that connects a floating or planar robot with the ground."""
GROUND_NAMES = ("ground", "world", "inertial", "ground_")
"""What the ground is called: the first that no link is."""


SETTINGS_HEADLINE = "the robot's settings do not fit it:"


@dataclass(frozen=True, slots=True, eq=False)
class RigidLinkGroup:
    """A set of links that moves as one rigid body.

    Attributes:
        name: Of the link that its joint moves.
        parent: Number of the part before it; -1 for the ground.
        joint: Moves it; None for the ground.
        parent_rotation: Its axes at joint position 0, in the parent's axes.
        axis: Of a hinge or slide: number of the coordinate axis, 0, 1, 2 (of a planar joint its normal, 2).
        sign: 1 or -1: the joint's axis is that coordinate axis, or its opposite.
        coordinate: (number of the part whose joint position moves it, factor, offset); of an own one (itself, 1, 0);
            None where the joint has not one coordinate.
        inertia: All its links together at rest, about their mass centre, in its axes; None without mass.
        links: Names of all its links, with their poses in its axes.
        body_inertia: The same of those links that do not bend.
        section: Of a joint of kind ``elastic``: the link that bends, and the number of its node; else None.
    """

    name: str
    parent: int
    joint: RobotJoint | None
    parent_rotation: Pose
    axis: int
    sign: float
    coordinate: tuple[int, float, float] | None
    inertia: LinkInertia | None
    links: tuple[tuple[str, Pose], ...]
    body_inertia: LinkInertia | None
    section: tuple[str, int] | None

    @property
    def moving_joint(self) -> RobotJoint:
        """The joint that moves the part; not for the ground."""
        assert self.joint is not None
        return self.joint


@dataclass(frozen=True, slots=True, eq=False)
class RobotPartTree:
    """The parts, parents first.

    Attributes:
        parts: Part 0 is the ground.
        location_of_link: Link → (number of its part, its pose in the part's axes).
        notes: Assumptions and repairs.
        held_joints: Joint → position at which it stands still.
    """

    parts: tuple[RigidLinkGroup, ...]
    location_of_link: Mapping[str, tuple[int, Pose]]
    notes: tuple[str, ...]
    held_joints: Mapping[str, float]

    def list_carried_parts(self, first: Collection[int]) -> set[int]:
        """Return the numbers of these parts and of all parts that they carry."""
        found = set(first)
        for i, part in enumerate(self.parts):
            if part.parent in found:
                found.add(i)
        return found


@dataclass(slots=True)
class _RobotPartDraft:
    name: str
    parent: int
    joint: RobotJoint | None
    before: Pose
    axis: int
    sign: float
    links: list[tuple[RobotLink, Pose]] = field(default_factory=list)
    section: tuple[str, int] | None = None


def build_articulated_tree(
    description: RobotDescription, settings: RobotSettings, flexible: Sequence[FlexibleLink] = ()
) -> RobotPartTree:
    """Return the parts of a robot.

    Args:
        description: Of the robot; links that bend have the inertia of their elastic data.
        settings: What the file leaves open.
        flexible: Links that bend: each node that joints hang on moves a part.

    Raises:
        ModelError: Naming every inertia that no body can have, every joint of the settings that there is not, and
            every leaf without mass that would make the mass matrix singular.
    """
    where = description.format_location()
    notes: list[str] = []
    joints = _apply_settings(description, settings, where)
    links = _check_inertias(description, settings, where, notes)
    bending = {link.name: link for link in flexible}
    drafts, place = _draft_parts(description, joints, links, settings, bending)
    parts = []
    numbers = {draft.joint.name: i for i, draft in enumerate(drafts) if draft.joint}
    for i, draft in enumerate(drafts):
        inertials = [(link.name, pose, link.inertial) for link, pose in draft.links if link.inertial]
        inertial = combine_inertias([(pose, own) for _, pose, own in inertials])
        rigid = combine_inertias([(pose, own) for name, pose, own in inertials if name not in bending])
        coordinate = _moving_coordinate(i, draft.joint, drafts, numbers)
        placed = tuple((link.name, pose) for link, pose in draft.links)
        first = (draft.name, draft.parent, draft.joint, draft.before, draft.axis, draft.sign)
        parts.append(RigidLinkGroup(*first, coordinate, inertial, placed, rigid, draft.section))
    held = {joint.name: joint.start for joint in joints if joint.kind == "fixed"}
    tree = RobotPartTree(tuple(parts), place, tuple(notes), held)
    _check_known_masses(drafts, where)
    _check_end_masses(tree, where)
    return tree


def _apply_settings(description: RobotDescription, settings: RobotSettings, where: str) -> list[RobotJoint]:
    """Return the joints with the settings applied; mimics of locked joints are locked."""
    known = {joint.name: joint for joint in description.joints}
    requested = {
        "inputs": settings.inputs or (), "locked": settings.locked, "prescribed": settings.prescribed,
        "start": settings.start, "speeds": settings.speeds, "reactions": settings.reactions,
    }  # fmt: skip
    faults = [
        Fault(f"{word} names the joint {name}, which does not exist", where, f"there are {', '.join(known)}")
        for word, names in requested.items()
        for name in names
        if name not in known and not (name == BASE_JOINT_NAME and settings.base != "fixed")
    ]
    faults += _contradiction_faults(known, requested, where)
    faults += _start_range_faults(known, settings, where)
    faults += _missing_link_faults(description, settings, where)
    if faults:
        raise ModelError(SETTINGS_HEADLINE, faults)
    found = {}
    for name, joint in known.items():
        changed = replace(joint, start=settings.start.get(name, joint.start))
        if settings.mimic == "free":
            changed = replace(changed, mimic=None)
        found[name] = changed
    locked = dict(settings.locked)
    for joint in found.values():
        if joint.mimic is not None:
            position = _locked_position(joint, found, locked)
            if position is not None:
                locked[joint.name] = position
    return [lock_joint(joint, locked[joint.name]) if joint.name in locked else joint for joint in found.values()]


def _contradiction_faults(
    known: Mapping[str, RobotJoint], requested: Mapping[str, Iterable[str]], where: str
) -> Iterator[Fault]:
    """Yield joints with settings that contradict each other; none of two is dropped silently."""
    for name, joint in known.items():
        words = [word for word, names in requested.items() if name in names]
        if joint.kind == "fixed" and words:
            what = f"{' and '.join(words)} name{'s' * (len(words) == 1)} the joint {name}, which is fixed in the file"
            yield Fault(what, f"{where}:{joint.line}" if joint.line else where, "take it out")
        elif ("locked" in words and len(words) > 1) or {"inputs", "prescribed"} <= {*words}:
            both = words if "locked" in words else ["inputs", "prescribed"]
            what = f"{' and '.join(both)} name the joint {name}: only one of them can be"
            yield Fault(what, f"{where}:{joint.line}" if joint.line else where, "take it out of the others")


def _start_range_faults(known: Mapping[str, RobotJoint], settings: RobotSettings, where: str) -> list[Fault]:
    """Return a fault for each start value that its joint cannot have."""
    return [
        Fault(
            f"start gives joint {name} {value:g}, out of its range {limits.lower:g} … {limits.upper:g}",
            f"{where}:{known[name].line}" if known[name].line else where,
            "give a position in the range, or correct the range",
        )
        for name, value in settings.start.items()
        if name in known and not (limits := known[name].limits).lower <= value <= limits.upper
    ]


def _missing_link_faults(description: RobotDescription, settings: RobotSettings, where: str) -> list[Fault]:
    """Return a fault for each link that outputs and loops of the settings name and the file does not have."""
    links = [link.name for link in description.links]
    remedy = f"there are {', '.join(links)}"
    requested = {
        f"an output is requested for {item.frame!r}": item.frame
        for item in settings.outputs
        if item.frame not in GROUND_NAMES
    }
    requested |= {f"a load acts on {item.frame!r}": item.frame for item in settings.loads}
    axes = dict.fromkeys(item.axes for item in settings.loads if item.axes not in {"", *GROUND_NAMES})
    requested |= {f"a load is along the axes of {name!r}": name for name in axes}
    requested |= {f"a loop connects {name!r}": name for item in settings.loops for name in item.frames}
    faults = [
        Fault(f"{what}, which is no link", where, remedy) for what, name in requested.items() if name not in links
    ]
    selves = dict.fromkeys(item.frames[0] for item in settings.loops if item.frames[0] == item.frames[1])
    return faults + [Fault(f"a loop connects link {name} with itself", where, "name two links") for name in selves]


def _locked_position(joint: RobotJoint, joints: Mapping[str, RobotJoint], locked: Mapping[str, float]) -> float | None:
    """Return the position of a joint whose chain of mimics ends at a locked or fixed joint."""
    factor, offset, current = 1.0, 0.0, joint
    while current.mimic is not None and current.name not in locked:
        offset += factor * current.mimic.offset
        factor *= current.mimic.multiplier
        current = joints[current.mimic.joint]
    if current.name in locked:
        return factor * locked[current.name] + offset
    return offset if current.kind == "fixed" else None


def lock_joint(joint: RobotJoint, position: float) -> RobotJoint:
    """Return a joint as a fixed one at a position."""
    moved = Pose(position=position * joint.axis)
    if joint.kind == "revolute":
        moved = Pose(rotation_about_axis(joint.axis, position))
    return replace(joint, kind="fixed", origin=joint.origin @ moved, mimic=None, start=position)


def rotation_about_axis(axis: Array, angle: float) -> Array:
    """Return the rotation by an angle about a unit vector (Rodrigues)."""
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return round_rotation_entries(np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross)


def _check_inertias(
    description: RobotDescription, settings: RobotSettings, where: str, notes: list[str]
) -> dict[str, RobotLink]:
    """Return the links with inertias that bodies can have: repaired, kept or refused, by the settings."""
    links, faults = {}, []
    for link in description.links:
        links[link.name] = link
        wrong = find_inertia_faults(link.inertial) if link.inertial else []
        if not wrong or link.inertial is None:
            continue
        if settings.inertia == "repair":
            mended = repair_inertia(link.inertial)
            links[link.name] = replace(link, inertial=mended)
            moments = ", ".join(f"{moment:.4g}" for moment in np.linalg.eigvalsh(mended.inertia))
            notes.append(
                f"link {link.name}: {wrong[0]}; repaired: mass {mended.mass:g} kg, principal moments {moments} kg·m²"
            )
        elif settings.inertia == "keep":
            notes.append(f"link {link.name}: {wrong[0]}; taken as it is")
        elif link.name == description.root and settings.base == "fixed":
            notes.append(f"link {link.name}: {wrong[0]}; it stands still, and nothing depends on it")
        else:
            line = f"{where}:{link.inertial.line}" if link.inertial.line else where
            faults += [Fault(f"link {link.name} cannot be a body: {what}", line, INERTIA_REMEDY) for what in wrong]
    if faults:
        raise ModelError("the robot has inertias that no body can have:", faults)
    return links


def _draft_parts(
    description: RobotDescription,
    joints: list[RobotJoint],
    links: Mapping[str, RobotLink],
    settings: RobotSettings,
    bending: Mapping[str, FlexibleLink],
) -> tuple[list[_RobotPartDraft], dict[str, tuple[int, Pose]]]:
    """Return the moving parts, and for each link its part and pose on it; links joined rigidly share a part."""
    drafts = [_RobotPartDraft("ground", -1, None, Pose(), 2, 1.0)]
    place: dict[str, tuple[int, Pose]] = {}
    root = links[description.root]
    if settings.base != "fixed":
        axis = np.array([0.0, 0.0, 1.0])
        base = RobotJoint(name=BASE_JOINT_NAME, kind=settings.base, parent="", child=root.name, axis=axis, driven=False)
        drafts.append(_RobotPartDraft(root.name, 0, base, Pose(), 2, 1.0))
    place[root.name] = (len(drafts) - 1, Pose())
    drafts[-1].links.append((root, Pose()))
    for joint in joints:
        parent, pose = place[joint.parent]
        at = pose @ joint.origin
        if joint.parent in bending:
            parent, at = _hang_on_section(joint, bending[joint.parent], place[joint.parent], drafts)
        if joint.kind == "fixed":
            place[joint.child] = (parent, at)
        else:
            along, sign, align = _align_axis(joint)
            drafts.append(_RobotPartDraft(joint.child, parent, joint, at @ Pose(align), along, sign))
            place[joint.child] = (len(drafts) - 1, Pose(align.T))
        number, own = place[joint.child]
        drafts[number].links.append((links[joint.child], own))
    return drafts, place


def _hang_on_section(
    joint: RobotJoint, link: FlexibleLink, place: tuple[int, Pose], drafts: list[_RobotPartDraft]
) -> tuple[int, Pose]:
    """Return the part of the node that a joint hangs on, made at the first such joint, and the joint's pose in it."""
    section = (link.name, link.nodes[joint.name])
    number = next((i for i, draft in enumerate(drafts) if draft.section == section), len(drafts))
    if number == len(drafts):
        name, (parent, pose) = f"{link.name} at node {section[1]}", place
        elastic = RobotJoint(name=name, kind="elastic", parent=link.name, child=name, driven=False)
        at = pose @ link.section_pose(section[1])
        drafts.append(_RobotPartDraft(name, parent, elastic, at, 2, 1.0, section=section))
    return number, link.joint_pose(joint)


def _align_axis(joint: RobotJoint) -> tuple[int, float, Array]:
    """Return coordinate axis and sign of a joint's axis, and the rotation that aligns it."""
    if joint.kind in {"floating", "ball"}:
        return 2, 1.0, np.eye(3)
    nearest = int(np.argmax(np.abs(joint.axis)))
    others = [abs(joint.axis[i]) for i in range(3) if i != nearest]
    if max(others) <= _AXIS_TOLERANCE and joint.kind != "planar":
        return nearest, float(np.sign(joint.axis[nearest])), np.eye(3)
    return 2, 1.0, rotation_with_z_along(joint.axis)


def rotation_with_z_along(axis: Array) -> Array:
    """Return a rotation whose third column is ``axis``, the others as near as possible to the joint's own."""
    helper = np.zeros(3)
    helper[int(np.argmin(np.abs(axis)))] = 1.0
    x = helper - (helper @ axis) * axis
    x /= np.linalg.norm(x)
    return round_rotation_entries(np.column_stack([x, np.cross(axis, x), axis]))


def _moving_coordinate(
    number: int, joint: RobotJoint | None, drafts: list[_RobotPartDraft], numbers: Mapping[str, int]
) -> tuple[int, float, float] | None:
    """Return the joint whose position moves a part, with factor and offset; chains of mimics are followed."""
    if joint is None or joint.kind not in {"revolute", "prismatic"}:
        return None
    factor, offset = 1.0, 0.0
    while joint.mimic is not None:
        mimic: JointMimic = joint.mimic
        offset += factor * mimic.offset
        factor *= mimic.multiplier
        number = numbers[mimic.joint]
        following = drafts[number].joint
        assert following is not None
        joint = following
    return number, factor, offset


def _check_known_masses(drafts: list[_RobotPartDraft], where: str) -> None:
    """Refuse links that move and have an unknown mass."""
    moving = [link for draft in drafts[1:] for link, _ in draft.links if link.unknown_mass_reason]
    if moving:
        remedy = "give {} an <inertial>, or let it stand: base = fixed"
        faults = [Fault(each.unknown_mass_reason, f"{where}:{each.line}", remedy.format(each.name)) for each in moving]
        raise ModelError("the mass of what moves is not known:", faults)


def _check_end_masses(tree: RobotPartTree, where: str) -> None:
    """Refuse end parts without mass: nothing would determine how their joints move."""
    massive: set[int] = set()
    for i in range(len(tree.parts) - 1, 0, -1):
        part = tree.parts[i]
        if part.inertia is not None or i in massive or part.moving_joint.armature > 0:
            massive.update((i, part.parent))
    moving = {part.coordinate[0] for i, part in enumerate(tree.parts) if i in massive and part.coordinate is not None}
    faults = []
    for i, part in enumerate(tree.parts):
        if i == 0 or i in massive or i in moving or part.section:
            continue
        joint = part.moving_joint
        if part.coordinate is not None and part.coordinate[0] != i:
            continue  # it follows another joint
        link = find_link_name_in_file(part.name)
        what = f"joint {joint.name} moves link {link}, which has no mass, nor has anything behind it"
        remedy = f"give {link} an <inertial>, make {joint.name} fixed, or lock it: locked = {{ {joint.name} = 0 }}"
        faults.append(Fault(what, f"{where}:{joint.line}", remedy))
    if len(tree.parts) == 1:
        faults.append(
            Fault("the robot has no joint that moves", where, "give it one, or let it float: base = floating")
        )
    if faults:
        raise ModelError("the robot's equations of motion would be singular:", faults)
