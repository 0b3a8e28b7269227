"""URDF: a file of the Unified Robot Description Format → ``RobotDescription``.

Source of the format: the XML schema and parser of urdfdom. What drives no motion (sensors, Gazebo's and Drake's
extensions, controllers) is left out and said; what is misspelled is a fault.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from mb2fmu.robots.description.robot_description import (
    GeometryKind,
    JointLimits,
    JointMimic,
    LinkGeometry,
    LinkInertia,
    Pose,
    RobotDescription,
    RobotJoint,
    RobotJointKind,
    RobotLink,
    rotation_from_roll_pitch_yaw,
    round_rotation_entries,
)
from mb2fmu.robots.file_formats.strict_xml import XmlElement, XmlFaultCollector, parse_xml

_JOINT_KINDS: dict[str, RobotJointKind] = {
    "revolute": "revolute",
    "continuous": "revolute",
    "prismatic": "prismatic",
    "fixed": "fixed",
    "floating": "floating",
    "planar": "planar",
}
_IGNORED_ELEMENTS = {
    "actuator", "collision_checking", "collision_filter_group", "contact", "disable_collisions", "frame",
    "gazebo", "gripper", "group", "hardwareInterface", "kinematics", "mechanism", "mujoco",
    "plugin", "proximity", "ros2_control", "self_collision_checking", "sensor", "tendon", "verbose",
}  # fmt: skip
_IGNORED_JOINT_ELEMENTS = (
    "safety_controller",
    "calibration",
    "hardwareInterface",
    "actuator",
)
_ACTING_IN_GAZEBO = {
    "springStiffness": "add a SpringDamper to the joint",
    "dampingFactor": "add a SpringDamper to the joint",
    "turnGravityOff": "add a force that holds its weight",
    "gravity": "add a force that holds its weight",
    "joint": "give it as one of the loops in the side file",
    "static": "choose the base: base = fixed",
}
"""Element of ``<gazebo>`` that acts on the motion there → what to do instead."""
_ACTING_IN_JOINT = {
    "rotor_inertia": "it counts in the actuator of a <transmission>",
    "gear_ratio": "it counts in the actuator of a <transmission>",
    "joint_properties": "damping and friction count in <dynamics>",
}
"""Element of a joint that acts elsewhere in other tools → where it counts here."""
_MIN_AXIS_LENGTH = 1e-12


def read_urdf(content: bytes, path: Path) -> RobotDescription:
    """Read a URDF file.

    Args:
        content: Of the file.
        path: Of the file.

    Raises:
        ModelError: With every fault of the file, each with its line.
    """
    faults = XmlFaultCollector(path.name)
    root = XmlElement(parse_xml(content, path, ("robot",)), faults)
    name = root.attribute("name")
    if not name:
        faults.note(f"the robot has no name and is called after its file, {path.stem}")
    _note_what_acts_elsewhere(root)
    root.check_allowed(
        {"link", "joint", "material", "transmission", "gazebo", "loop_joint"}, _IGNORED_ELEMENTS - {"gazebo"}
    )
    colors = _read_materials(root)
    links = [_read_link(element, colors) for element in root.children("link")]
    joints = _read_joints(root, {link.name for link in links if link.inertial is not None})
    joints = _add_rotor_inertias(root, joints)
    description = RobotDescription(
        name=name, links=tuple(links), joints=tuple(joints), root="", source=path, notes=tuple(faults.notes)
    )
    from mb2fmu.robots.description.link_tree_checks import check_and_sort_link_tree

    return check_and_sort_link_tree(description, faults)


def _note_what_acts_elsewhere(root: XmlElement) -> None:
    """Note what other tools take from their own elements for the motion, and what to do about each."""
    for element in root.children("gazebo"):
        acting = [child.name for child in element.list_elements() if _acts_in_gazebo(child)]
        reference = element.attribute("reference")
        whose = f"of {reference} " if reference else ""
        for word in acting:
            root.faults.note(f"<{word}> in <gazebo> {whose}acts in Gazebo and is left out: {_ACTING_IN_GAZEBO[word]}")
        if not acting:
            root.faults.note("<gazebo> in <robot> is left out: it does not move the robot")
    for element in root.children("loop_joint"):
        what = f"loop_joint {element.attribute('name')} is left out, which leaves its loop open"
        root.faults.note(f"{what}: {_ACTING_IN_GAZEBO['joint']}")
    for joint in root.children("joint"):
        for word in (child.name for child in joint.list_elements() if child.name in _ACTING_IN_JOINT):
            what = f"<{word}> in joint {joint.attribute('name')} is left out"
            root.faults.note(f"{what}: {_ACTING_IN_JOINT[word]}")


def _acts_in_gazebo(element: XmlElement) -> bool:
    """Return True if an element of ``<gazebo>`` changes the motion there, by what is written in it."""
    switched_off = {"1", "true"} if element.name == "gravity" else {"0", "0.0", "false"}
    return element.name in _ACTING_IN_GAZEBO and (element.node.text or "").strip() not in switched_off


def _read_joints(root: XmlElement, massive: Collection[str]) -> list[RobotJoint]:
    """Read all joints; of frames without mass that end a branch (sensors, tool centres) the pose moves nothing."""
    elements = list(root.children("joint"))
    parents = {parent.attribute("link") for element in elements if (parent := element.child("parent"))}

    def moves_nothing(element: XmlElement) -> bool:
        child = element.child("child")
        name = child.attribute("link") if child else ""
        return element.attribute("type") == "fixed" and bool(name) and name not in massive and name not in parents

    return [_read_joint(element, moves_nothing=moves_nothing(element)) for element in elements]


def _read_pose(parent: XmlElement, *, moves_nothing: bool = False) -> Pose:
    """Return the ``origin`` of an element; the identity where there is none."""
    origin = parent.child("origin")
    if origin is None:
        return Pose()
    origin.check_allowed((), attributes=("xyz", "rpy", "quat_xyzw"), moves_nothing=moves_nothing)
    xyz, rpy = origin.vector("xyz", (0.0, 0.0, 0.0)), origin.vector("rpy", (0.0, 0.0, 0.0))
    return Pose(round_rotation_entries(rotation_from_roll_pitch_yaw(rpy)), np.array(xyz))


def _read_materials(root: XmlElement) -> dict[str, str]:
    """Return the named colours of the robot as #rrggbb."""
    return {
        material.attribute("name"): color for material in root.children("material") if (color := _read_color(material))
    }


def _read_color(material: XmlElement) -> str:
    """Return a material's colour as #rrggbb; empty without one."""
    element = material.child("color")
    if element is None:
        return ""
    text = element.attribute("rgba", required=True)
    numbers = element.read_numbers(text, "rgba", 4) if text else None
    if numbers is None:
        return ""
    return "#" + "".join(f"{round(255 * min(max(part, 0.0), 1.0)):02x}" for part in numbers[:3])


def _read_link(element: XmlElement, colors: dict[str, str]) -> RobotLink:
    """Read a link with its inertia and shapes."""
    name = element.attribute("name", required=True)
    element.check_allowed(
        {"inertial", "visual", "collision"}, {*_IGNORED_ELEMENTS, "surface", "self_collide", "material", "origin"},
        ("name", "type"), moves_nothing=True,
    )  # fmt: skip
    inertial = element.child("inertial")
    shapes = [
        shape
        for word in ("visual", "collision")
        for one in element.children(word)
        for shape in _read_shapes(one, colors)
    ]
    return RobotLink(name, _read_inertia(inertial) if inertial else None, tuple(shapes), element.line)


def _read_inertia(element: XmlElement) -> LinkInertia:
    """Read mass and inertia about the centre of mass, turned into the link's axes."""
    element.check_allowed({"origin", "mass", "inertia"}, _IGNORED_ELEMENTS)
    pose, mass, inertia = (
        _read_pose(element),
        element.child("mass", required=True),
        element.child("inertia", required=True),
    )
    if mass:
        mass.check_allowed((), attributes=("value",))
    value = mass.number("value", required=True) if mass else 0.0
    entries = {"ixx": 0.0, "ixy": 0.0, "ixz": 0.0, "iyy": 0.0, "iyz": 0.0, "izz": 0.0}
    if inertia:
        inertia.check_allowed((), attributes=tuple(entries))
        entries = {name: inertia.number(name, required=name in {"ixx", "iyy", "izz"}) for name in entries}
    xx, xy, xz, yy, yz, zz = entries.values()
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    turned = pose.rotation @ matrix @ pose.rotation.T
    return LinkInertia(value, pose.position, (turned + turned.T) / 2, element.line)


def _read_shapes(element: XmlElement, colors: dict[str, str]) -> Iterator[LinkGeometry]:
    """Yield the geometry of a ``visual`` or ``collision``."""
    geometry = element.child("geometry", required=True)
    if geometry is None:
        return
    material = element.child("material")
    color = (_read_color(material) or colors.get(material.attribute("name"), "")) if material else ""
    for shape in geometry.list_elements():
        shape.check_allowed((), attributes=("size", "radius", "length", "filename", "scale"), moves_nothing=True)
        kind, sizes = _read_shape_sizes(shape)
        if kind is None:
            shape.faults.note(f"the shape <{shape.name}> is not drawn")
            continue
        mesh = shape.attribute("filename", required=True) if kind == "mesh" else ""
        yield LinkGeometry(kind, sizes, _read_pose(element), color, mesh, element.name == "collision", element.line)


def _read_shape_sizes(shape: XmlElement) -> tuple[GeometryKind | None, tuple[float, ...]]:
    """Return kind and sizes of a shape, in m; mesh sizes are its scale."""
    match shape.name:
        case "box":
            return "box", shape.vector("size", (1.0, 1.0, 1.0), required=True)
        case "cylinder" | "capsule":
            sizes = (shape.number("radius", 1.0, required=True), shape.number("length", 1.0, required=True))
            return ("cylinder" if shape.name == "cylinder" else "capsule"), sizes
        case "sphere":
            return "sphere", (shape.number("radius", 1.0, required=True),)
        case "mesh":
            return "mesh", shape.vector("scale", (1.0, 1.0, 1.0))
    return None, ()


def _read_joint(element: XmlElement, *, moves_nothing: bool) -> RobotJoint:
    """Read a joint; one of an unknown type, a fault, is a hinge for the checks that follow."""
    name, text = element.attribute("name", required=True), element.attribute("type", required=True)
    parent, child = element.child("parent", required=True), element.child("child", required=True)
    known = {"parent", "child", "origin", "axis", "limit", "dynamics", "mimic", *_ACTING_IN_JOINT}
    ignored = {*_IGNORED_ELEMENTS, *_IGNORED_JOINT_ELEMENTS}
    element.check_allowed(known, ignored, ("name", "type"), moves_nothing=True)  # both are required
    if text and text not in _JOINT_KINDS:
        remedy = f"known are {', '.join(_JOINT_KINDS)}"
        element.faults.add(element.line, f"joint {name} is of the type {text!r}, which does not exist", remedy)
    ends = [end.attribute("link", required=True) if end else "" for end in (parent, child)]
    kind = _JOINT_KINDS.get(text)
    limits, (damping, friction) = _read_limits(element, text), _read_dynamics(element)
    mimic, axis = _read_mimic(element), _read_axis(element, name, kind)
    if kind == "floating" and damping:
        element.faults.note(f"damping of joint {name} is left out: it floats")
    if mimic is not None and kind in {"floating", "planar"}:
        element.faults.note(f"mimic of joint {name} is left out: it is {text}")
    return RobotJoint(
        name=name,
        kind=kind or "revolute",
        parent=ends[0],
        child=ends[1],
        origin=_read_pose(element, moves_nothing=moves_nothing),
        axis=axis,
        limits=limits,
        damping=damping,
        friction=friction,
        mimic=mimic if kind in {"revolute", "prismatic", None} else None,
        line=element.line,
    )


def _read_axis(element: XmlElement, name: str, kind: RobotJointKind | None) -> np.ndarray:
    """Return the unit axis of a joint, x by default; fault if it is zero."""
    axis = element.child("axis")
    if axis:
        axis.check_allowed((), attributes=("xyz",), moves_nothing=kind in {"fixed", "floating"})
    given = np.array(axis.vector("xyz", (1.0, 0.0, 0.0)) if axis else (1.0, 0.0, 0.0))
    length = float(np.linalg.norm(given))
    if length < _MIN_AXIS_LENGTH:
        if kind in {"revolute", "prismatic", "planar", None}:
            line = axis.line if axis else element.line
            element.faults.add(line, f"the axis of joint {name} is zero", "give a direction")
        return np.array([1.0, 0.0, 0.0])
    return given / length


def _read_limits(element: XmlElement, kind: str) -> JointLimits:
    """Read bounds, effort and velocity; 0 means none for both of the latter, and for a range of equal ends."""
    limit = element.child("limit")
    if limit is None:
        if kind in {"revolute", "prismatic"}:
            name = element.attribute("name")
            element.faults.note(f"joint {name} is {kind} and has no <limit>: it is taken as one without bounds")
        return JointLimits()
    limit.check_allowed(
        (), attributes=("lower", "upper", "effort", "velocity", "acceleration", "jerk", "friction", "damping")
    )
    effort, velocity = (limit.number(word, 0.0, infinite=True) or np.inf for word in ("effort", "velocity"))
    lower, upper = -np.inf, np.inf
    if kind in {"revolute", "prismatic"}:
        lower, upper = limit.number("lower", 0.0, infinite=True), limit.number("upper", 0.0, infinite=True)
        if lower > upper:
            limit.faults.add(limit.line, f"lower = {lower:g} is above upper = {upper:g}", "exchange them")
        if lower == upper:  # the default of both, zero: no range is meant
            lower, upper = -np.inf, np.inf
    return JointLimits(lower=lower, upper=upper, effort=abs(effort), velocity=abs(velocity))


def _read_dynamics(element: XmlElement) -> tuple[float, float]:
    """Return damping and friction, with a fault where they are negative."""
    dynamics = element.child("dynamics")
    if dynamics is None:
        return 0.0, 0.0
    dynamics.check_allowed((), attributes=("damping", "friction"), moves_nothing=element.attribute("type") == "fixed")
    found = []
    for word in ("damping", "friction"):
        value = dynamics.number(word)
        if value < 0:
            dynamics.faults.add(dynamics.line, f"the {word} is {value:g}", "it brakes: give a number ≥ 0")
        found.append(value)
    return found[0], found[1]


def _read_mimic(element: XmlElement) -> JointMimic | None:
    """Return the joint that this one follows, with multiplier and offset; None for a joint without ``mimic``."""
    mimic = element.child("mimic")
    if mimic is None:
        return None
    mimic.check_allowed((), attributes=("joint", "multiplier", "offset"))
    return JointMimic(mimic.attribute("joint", required=True), mimic.number("multiplier", 1.0), mimic.number("offset"))


def _add_rotor_inertias(root: XmlElement, joints: list[RobotJoint]) -> list[RobotJoint]:
    """Return joints with the rotor inertia of their transmissions, as felt at the joint: inertia × reduction².

    Drake's ``drake:rotor_inertia`` and ``drake:gear_ratio`` have their number in an attribute; the latter goes before
    ``mechanicalReduction``, which is about the actuator's units beside them.
    """
    felt: dict[str, float] = {}
    names = {joint.name for joint in joints}
    for transmission in root.children("transmission"):
        ends = [joint.attribute("name") for joint in transmission.children("joint")]
        for end in ends:
            if end and end not in names:
                line = transmission.line
                root.faults.note(f"the transmission in line {line} names joint {end}, which does not exist: left out")
        for actuator in transmission.children("actuator"):
            inertia = _read_child_number(actuator, ("motorInertia", "rotorInertia", "rotor_inertia"), 0.0)
            reduction = _read_child_number(actuator, ("gear_ratio", "mechanicalReduction"), 1.0)
            if inertia < 0:
                root.faults.add(actuator.line, f"the rotor's inertia is {inertia:g}", "give a number ≥ 0")
            elif inertia and len(ends) != 1:
                what = f"the rotor of the transmission in line {transmission.line} is left out"
                root.faults.note(f"{what}: it has {len(ends)} joints, not one")
            elif inertia:
                felt[ends[0]] = felt.get(ends[0], 0.0) + inertia * reduction**2
    return [replace(joint, armature=felt.get(joint.name, 0.0)) for joint in joints]


def _read_child_number(element: XmlElement, names: tuple[str, ...], default: float) -> float:
    """Return the number of the first child that has one of these names, or the default."""
    for name in names:
        for child in element.children(name):
            text = child.attribute("value") or child.node.text or ""
            found = child.read_numbers(text, name, 1)
            return default if found is None else found[0]
    return default
