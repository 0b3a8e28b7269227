"""SDF → ``RobotDescription``: every element is honoured, ignored by name, or refused by name with its line.

A joint's frame and its child's differ in SDF. Between them stands a link without mass, and so does one between the two
axes of a universal joint; what is fixed together becomes one body later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from mb2fmu.robots.description.link_tree_checks import check_and_sort_link_tree
from mb2fmu.robots.description.robot_description import (
    Array,
    JointLimits,
    JointMimic,
    LinkGeometry,
    LinkInertia,
    LoopConnection,
    Pose,
    RobotDescription,
    RobotJoint,
    RobotJointKind,
    RobotLink,
    RobotLoop,
    form_massless_link_name,
)
from mb2fmu.robots.file_formats.mesh_file_search import NO_PACKAGES
from mb2fmu.robots.file_formats.mesh_solids import MeshFileAccess
from mb2fmu.robots.file_formats.sdf_collision_masses import (
    SdfCollisionMassCalculator,
    read_sdf_shape_sizes,
    read_xml_child_number,
    read_xml_element_text,
)
from mb2fmu.robots.file_formats.sdf_frames import MODEL, WORLD, SdfFrames, SdfRelativePose, read_sdf_relative_pose
from mb2fmu.robots.file_formats.sdf_model_inclusion import SdfModelInserter
from mb2fmu.robots.file_formats.sdf_nested_models import (
    IGNORED_ELEMENTS,
    MODEL_ELEMENTS,
    PLACEMENT_ATTRIBUTE,
    flatten_nested_models,
)
from mb2fmu.robots.file_formats.strict_xml import XmlElement, XmlFaultCollector
from mb2fmu.robots.tree.articulated_tree import rotation_with_z_along

_JOINT_KINDS: dict[str, tuple[RobotJointKind, ...]] = {
    "revolute": ("revolute",), "continuous": ("revolute",), "prismatic": ("prismatic",), "fixed": ("fixed",),
    "ball": ("ball",), "universal": ("revolute", "revolute"),
}  # fmt: skip
_LOOP_CONNECTIONS: dict[str, LoopConnection] = {"ball": "point", "revolute": "hinge", "fixed": "weld"}
_WORLD_ELEMENTS = {
    "joint": "write it into the model",
    "frame": "write it into the model",
}
"""Element of a world that would place or hold the robot → what to do about it."""
STANDARD_GRAVITY_VECTOR = (0.0, 0.0, -9.81)
_AXIS_ELEMENTS = ("axis", "axis2")
_ROTOR_ELEMENTS = ("rotor_inertia", "gear_ratio")
"""Of Drake's own namespace."""
_UNBOUNDED_LIMIT = 1e16
"""Bounds from which on SDF means none."""
_MIN_VECTOR_LENGTH = 1e-12


def read_sdf(
    content: bytes, path: Path, content_of: Callable[[Path], bytes | None], packages: Mapping[str, str] = NO_PACKAGES
) -> RobotDescription:
    """Read an SDF file with one model, in a world or alone.

    Args:
        content: Of the file.
        path: Of the file.
        content_of: Reads included files; None where there is none.
        packages: Package or Gazebo model → folder, relative ones from the file's.

    Raises:
        ModelError: With every fault of the file, each with its line.
    """
    faults = XmlFaultCollector(path.name)
    folders = {name: str(path.absolute().parent / folder) for name, folder in packages.items()}
    root = XmlElement(SdfModelInserter(faults, content_of, folders).parse(content, path), faults)
    models, gravity = root.children("model"), None
    for world in root.children("world"):
        models += world.children("model")
        for word, remedy in _WORLD_ELEMENTS.items():
            for each in world.children(word):
                faults.add(each.line, f"<{word}> in <world> is not honoured", remedy)
        if (given := world.child("gravity")) is not None:
            numbers = given.read_numbers(given.node.text or "", "gravity", 3)
            gravity = (numbers[0], numbers[1], numbers[2]) if numbers else None
    models = _select_moving_models(models, faults)
    if not models:
        faults.raise_collected()  # of an include, whose model is not there for that reason
    if len(models) != 1:
        line = models[1].line if models else root.line
        named = ": " + ", ".join(each.attribute("name") for each in models) if models else ""
        remedy = "leave one: an FMU is one robot" if models else "write one: <model name=…>"
        faults.add(line, f"the file has {len(models)} models{named}", remedy)
        faults.raise_collected()
    flatten_nested_models(models[0].node, faults)
    model = _SdfModelReader(models[0], faults, MeshFileAccess(path, folders, content_of))
    links, joints = model.read_model()
    name = models[0].attribute("name")
    if not name:
        faults.note(f"the robot has no name and is called after its file, {path.stem}")
    if WORLD not in {joint.parent for joint in joints}:
        faults.note("no joint holds the robot in the world: it stands fixed unless base = floating")
        gravity = model.express_gravity_in_root(gravity or STANDARD_GRAVITY_VECTOR)
    description = RobotDescription(
        name=name, links=tuple(links), joints=tuple(joints), root="", gravity=gravity, source=path,
        notes=tuple(faults.notes), loops=tuple(model.loops),
    )  # fmt: skip
    return check_and_sort_link_tree(description, faults, model.frames.duplicate_names)


def _select_moving_models(models: list[XmlElement], faults: XmlFaultCollector) -> list[XmlElement]:
    """Return the models of a world without those that stand still beside a robot, which a note names."""
    if len(models) < 2:
        return models
    still = [each for each in models if _read_child_boolean(each, "static")]
    for each in still if len(still) < len(models) else ():
        faults.note(f"model {each.attribute('name')} is static and left out: nothing touches it here")
    return [each for each in models if each not in still] or models


@dataclass(slots=True)
class _SdfModelReader:
    element: XmlElement
    faults: XmlFaultCollector
    files: MeshFileAccess
    frames: SdfFrames = field(init=False)
    links: list[RobotLink] = field(default_factory=list)
    joints: list[RobotJoint] = field(default_factory=list)
    loops: list[RobotLoop] = field(default_factory=list)
    _moved: set[str] = field(default_factory=set)

    def read_model(self) -> tuple[list[RobotLink], list[RobotJoint]]:
        """Return links and joints; frames are links without mass."""
        element = self.element
        element.check_allowed(MODEL_ELEMENTS, IGNORED_ELEMENTS)
        if _read_child_boolean(element, "static"):
            self.faults.add(element.line, "the model is static", "remove <static>: it would not move")
        self.frames = SdfFrames(self.faults)
        placed = read_sdf_relative_pose(element, WORLD)
        if placed.relative_to != WORLD:
            what = f"the pose of the model is relative to {placed.relative_to}"
            self.faults.add(element.line, what, "give it in the world")
        placement_frame = element.attribute("placement_frame") or MODEL
        self.frames.pose_of_frame[WORLD] = SdfRelativePose(placement_frame, placed.pose.inverse(), element.line)
        self._place_frames()
        names = {child.attribute("name") for child in element.children("link")}
        self.links = [self._read_link(child) for child in element.children("link")]
        for child in element.children("joint"):
            self._read_joint(child, names)
        self._add_frames(names)
        if any(joint.parent == WORLD for joint in self.joints):
            self.links.insert(0, RobotLink(WORLD, line=element.line))
        return self.links, self.joints

    def express_gravity_in_root(self, gravity: tuple[float, float, float]) -> tuple[float, float, float]:
        """Return gravity in the axes of the root link, turned by the poses of model and link."""
        moved = {joint.child for joint in self.joints}
        root = next((link.name for link in self.links if link.name not in moved), MODEL)
        turned = self._relative_pose(WORLD, root, 0).rotation.T @ np.array(gravity)
        x, y, z = map(float, turned)
        return (x, y, z)

    def _place_frames(self) -> None:
        """Place all links, frames and joints; a frame attached to nothing or the model hangs on the canonical link."""
        for child in self.element.children("link"):
            self.frames.add_frame(child.attribute("name", required=True), read_sdf_relative_pose(child, MODEL))
        for child in self.element.children("frame"):
            attached = child.attribute("attached_to")
            placed = read_sdf_relative_pose(child, attached or MODEL)
            placed = replace(placed, placement_frame=child.attribute(PLACEMENT_ATTRIBUTE))
            self.frames.add_frame(child.attribute("name", required=True), placed)
            first = next((link.attribute("name") for link in self.element.children("link")), "")
            canonical = self.element.attribute("canonical_link") or first
            self.frames.parent_of_frame[child.attribute("name")] = canonical if attached in {"", MODEL} else attached
        for child in self.element.children("joint"):
            end = child.child("child", required=True)
            on = read_xml_element_text(end) if end else MODEL
            self.frames.add_frame(child.attribute("name", required=True), read_sdf_relative_pose(child, on))
            self.frames.parent_of_frame[child.attribute("name")] = on

    def _add_frames(self, names: set[str]) -> None:
        """Add each explicit frame as a link without mass, fixed to the link that carries it."""
        for child in self.element.children("frame"):
            name = child.attribute("name")
            link = self.frames.find_link(name, names, child.line)
            if link and name not in names:
                self.links.append(RobotLink(name, line=child.line))
                origin = self._relative_pose(link, name, child.line)
                self.joints.append(_make_fixed_joint(f"{name} (frame)", link, name, origin, child.line))

    def _relative_pose(self, parent: str, child: str, line: int) -> Pose:
        """Return a frame's pose in another one, with all joints at 0."""
        return self.frames.find_pose(parent, line).inverse() @ self.frames.find_pose(child, line)

    def _read_link(self, element: XmlElement) -> RobotLink:
        """Read a link; refuse what changes its motion and is not honoured."""
        element.check_allowed(
            {"pose", "inertial", "visual", "collision", "gravity", "kinematic", "velocity_decay"}, IGNORED_ELEMENTS
        )
        name = element.attribute("name")
        if element.child("gravity") is not None and not _read_child_boolean(element, "gravity"):
            self.faults.add(element.line, f"link {name} has no weight, which is not honoured", "remove <gravity>")
        if _read_child_boolean(element, "kinematic"):
            self.faults.add(element.line, f"link {name} is kinematic, which is not honoured", "prescribe its joint")
        decay = element.child("velocity_decay")
        decays = (
            [part.read_numbers(read_xml_element_text(part) or "0", "the text", 1) for part in decay.list_elements()]
            if decay
            else []
        )
        if decay is not None and any(numbers and numbers[0] for numbers in decays):
            self.faults.add(decay.line, f"velocity_decay of link {name} is not honoured", "give its joint a damping")
        inertial = element.child("inertial")
        if inertial is None:
            self.faults.note(f"link {name} has no <inertial>: it has SDF's default, 1 kg and 1 kg·m² about every axis")
        own: LinkInertia | None = LinkInertia(1.0, np.zeros(3), np.eye(3), element.line)
        unknown = ""
        if inertial is not None and inertial.attribute("auto") in {"true", "1"}:
            self._check_inertial(inertial)
            weighing = SdfCollisionMassCalculator(self.files, partial(self._read_shape_pose, link=name))
            own, unknown = weighing.weigh_link(element, inertial)
        elif inertial is not None:
            own = self._read_inertial(inertial)
        shapes = [
            shape
            for word in ("visual", "collision")
            for child in element.children(word)
            for shape in self._read_shapes(child, name)
        ]
        return RobotLink(name, own, tuple(shapes), element.line, unknown)

    def _check_inertial(self, element: XmlElement) -> None:
        """Refuse what of an ``<inertial>`` changes the motion and is not honoured."""
        element.check_allowed({"pose", "mass", "inertia", "fluid_added_mass", "density", "auto_inertia_params"})
        if element.child("fluid_added_mass") is not None:
            self.faults.add(element.line, "added mass is not honoured", "remove <fluid_added_mass>")

    def _read_inertial(self, element: XmlElement) -> LinkInertia:
        """Read mass and inertia about the centre of mass, turned into the link's axes."""
        self._check_inertial(element)
        pose = read_sdf_relative_pose(element, "").pose
        mass = read_xml_child_number(element, "mass", 1.0)
        inertia = element.child("inertia")
        words = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        defaults = dict(zip(words, (1.0, 0.0, 0.0, 1.0, 0.0, 1.0), strict=True))
        if inertia is not None:
            inertia.check_allowed(words)
            defaults = {word: read_xml_child_number(inertia, word, value) for word, value in defaults.items()}
        xx, xy, xz, yy, yz, zz = defaults.values()
        turned = pose.rotation @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ pose.rotation.T
        return LinkInertia(mass, pose.position, (turned + turned.T) / 2, element.line)

    def _read_shapes(self, element: XmlElement, link: str) -> Iterator[LinkGeometry]:
        """Yield the shapes of a visual or collision, placed on the link."""
        pose = self._read_shape_pose(element, link)
        geometry = element.child("geometry", required=True)
        for shape in geometry.list_elements() if geometry else ():
            kind, sizes, mesh = read_sdf_shape_sizes(shape)
            if kind is None:
                self.faults.note(f"the shape <{shape.name}> is not drawn")
                continue
            yield LinkGeometry(kind, sizes, pose, _read_color(element), mesh, element.name == "collision", element.line)

    def _read_shape_pose(self, element: XmlElement, link: str) -> Pose:
        """Return the pose of a visual or collision on its link."""
        placed = read_sdf_relative_pose(element, link)
        if placed.relative_to == link:
            return placed.pose
        return self._relative_pose(link, placed.relative_to, element.line) @ placed.pose

    def _read_joint(self, element: XmlElement, links: set[str]) -> None:
        """Read a joint as one link per axis; a joint to a link that another joint moves closes a loop."""
        element.check_allowed(
            {"pose", "parent", "child", "axis", "axis2", "physics", *_ROTOR_ELEMENTS}, IGNORED_ELEMENTS
        )
        name, kind = element.attribute("name"), element.attribute("type", required=True)
        if kind and kind not in _JOINT_KINDS:
            remedy = f"honoured are {', '.join(_JOINT_KINDS)}"
            self.faults.add(element.line, f"joint {name} is of the type {kind!r}, which is not honoured", remedy)
        ends = [element.child(word, required=True) for word in ("parent", "child")]
        parent, child = (
            self.frames.find_link(read_xml_element_text(end), links, end.line) if end else "" for end in ends
        )
        if child == WORLD:
            self.faults.add(element.line, f"the child of joint {name} is the world", "let the world be its parent")
            return
        if parent and parent == child:
            self.faults.add(element.line, f"joint {name} goes from {parent} to itself", "give it two links")
            return
        if kind not in _JOINT_KINDS or not parent or not child:  # what such a joint moves is no second root
            if child and child not in self._moved:
                self._moved.add(child)
                self.joints.append(_make_fixed_joint(name, parent, child, Pose(), element.line))
            return
        if child in self._moved:
            self._close_loop(element, name, kind, (parent, child))
            return
        self._moved.add(child)
        at, before = self._relative_pose(parent, name, element.line), parent
        for word, one in zip(_AXIS_ELEMENTS, _JOINT_KINDS[kind], strict=False):
            own = name if len(_JOINT_KINDS[kind]) == 1 else f"{name}_{word}"
            between = form_massless_link_name(child, own)
            self.links.append(RobotLink(between, line=element.line))
            along = self._make_axis_joint(element, word, own, one, before, between, at)
            self.joints.append(replace(along, armature=self._read_armature(element, name, kind)))
            at, before = Pose(), between
        self.joints.append(
            _make_fixed_joint(
                f"{name} (to {child})", before, child, self._relative_pose(name, child, element.line), element.line
            )
        )

    def _close_loop(self, element: XmlElement, name: str, kind: str, ends: tuple[str, str]) -> None:
        """Close a loop by a joint whose child another joint moves: it has no coordinate and no effort."""
        if kind not in _LOOP_CONNECTIONS:
            what = f"joint {name} closes a loop and is of the type {kind!r}"
            self.faults.add(element.line, what, f"honoured there are {', '.join(_LOOP_CONNECTIONS)}")
            return
        axis = element.child("axis")
        turned = Pose()
        if axis is not None and kind == "revolute":
            turned = Pose(rotation_with_z_along(self._read_direction(axis, name)))
        acting = self._make_axis_joint(element, "axis", name, _JOINT_KINDS[kind][0], *ends, Pose())
        if (
            acting.damping
            or acting.friction
            or acting.stiffness
            or acting.mimic
            or self._read_armature(element, name, kind)
        ):
            what = f"joint {name} closes a loop, and its dynamics are not honoured"
            self.faults.add(element.line, what, "let another joint of the loop close it")
        if kind == "revolute" and np.isfinite([acting.limits.lower, acting.limits.upper]).any():
            self.faults.note(f"the range of joint {name} is left out: it closes a loop")
        at, other = (self._relative_pose(end, name, element.line) @ turned for end in ends)
        loop = RobotLoop(
            name=name,
            kind=_LOOP_CONNECTIONS[kind],
            first=ends[0],
            second=ends[1],
            at=at,
            other=other,
            line=element.line,
        )
        self.loops.append(loop)

    def _read_armature(self, element: XmlElement, name: str, kind: str) -> float:
        """Return a rotor's inertia as felt at the joint, by Drake's words for it; 0 if it has several axes."""
        inertia, ratio = (
            read_xml_child_number(element, "rotor_inertia", 0.0),
            read_xml_child_number(element, "gear_ratio", 1.0),
        )
        if inertia < 0:
            self.faults.add(element.line, f"rotor_inertia of joint {name} is {inertia:g}", "give a number ≥ 0")
        if inertia and len(_JOINT_KINDS[kind]) + (kind == "ball") != 1:
            self.faults.note(f"the rotor of joint {name} is left out: a {kind} joint has none")
            return 0.0
        return inertia * ratio**2

    def _make_axis_joint(
        self, element: XmlElement, word: str, name: str, kind: RobotJointKind, parent: str, child: str, at: Pose
    ) -> RobotJoint:
        """Return one axis of a joint as a joint of its own."""
        axis = element.child(word, required=kind in {"revolute", "prismatic"})
        plain = RobotJoint(name=name, kind=kind, parent=parent, child=child, origin=at, line=element.line)
        if axis is None or kind not in {"revolute", "prismatic", "ball"}:
            return plain
        axis.check_allowed({"xyz", "dynamics", "limit", "mimic", "use_parent_model_frame"}, {"initial_position"})
        dynamics = axis.child("dynamics")
        values = {"damping": 0.0, "friction": 0.0, "spring_stiffness": 0.0, "spring_reference": 0.0}
        if dynamics is not None:
            dynamics.check_allowed(values)
            values = {key: read_xml_child_number(dynamics, key, 0.0) for key in values}
        for key in ("damping", "friction", "spring_stiffness"):
            if values[key] < 0 and dynamics is not None:
                self.faults.add(dynamics.line, f"{key} of joint {name} is {values[key]:g}", "give a number ≥ 0")
        if kind == "ball":
            return replace(plain, damping=values["damping"], friction=self._read_ball_friction(axis, name, values))
        return replace(
            plain, axis=self._read_direction(axis, element.attribute("name")), limits=self._read_limits(axis, name),
            damping=values["damping"], friction=values["friction"], stiffness=values["spring_stiffness"],
            spring_reference=values["spring_reference"], mimic=_read_mimic(axis),
        )  # fmt: skip

    def _read_ball_friction(self, axis: XmlElement, name: str, values: Mapping[str, float]) -> float:
        """Return the dry friction of a ball; the direction of its axis means nothing, and its damping acts on all."""
        if values["spring_stiffness"]:
            what = f"spring_stiffness of the ball joint {name} is not honoured"
            self.faults.add(axis.line, what, "remove it, or make three hinges of the ball")
        limits = self._read_limits(axis, name)
        left_out = {
            "range": np.isfinite([limits.lower, limits.upper]).any(),
            "effort": 0 < limits.effort < np.inf,  # a drive; 0 is SDF's word for none
            "mimic": axis.child("mimic") is not None,
        }
        for word in (word for word, is_there in left_out.items() if is_there):
            self.faults.note(f"the {word} of the ball joint {name} is left out")
        return values["friction"]

    def _read_direction(self, axis: XmlElement, joint: str) -> Array:
        """Return a unit vector in the joint's frame."""
        xyz = axis.child("xyz")
        given = np.array([0.0, 0.0, 1.0])
        turned = MODEL if _read_child_boolean(axis, "use_parent_model_frame") else ""
        if xyz is not None:
            given = np.array(xyz.read_numbers(xyz.node.text or "", "the text", 3) or given)
            turned = xyz.attribute("expressed_in") or turned
        length = float(np.linalg.norm(given))
        if length < _MIN_VECTOR_LENGTH:
            self.faults.add(axis.line, f"the axis of joint {joint} is zero", "give a direction")
            return np.array([0.0, 0.0, 1.0])
        given = given / length
        return self._relative_pose(joint, turned, axis.line).rotation @ given if turned else given

    def _read_limits(self, axis: XmlElement, name: str) -> JointLimits:
        """Read bounds; SDF's ±1e16 and negative efforts and velocities mean none."""
        limit = axis.child("limit")
        if limit is None:
            return JointLimits()
        limit.check_allowed({"lower", "upper", "effort", "velocity"}, {"stiffness", "dissipation"})
        lower, upper = read_xml_child_number(limit, "lower", -np.inf), read_xml_child_number(limit, "upper", np.inf)
        if lower > upper:
            self.faults.add(
                limit.line, f"lower = {lower:g} of joint {name} is above upper = {upper:g}", "exchange them"
            )
        effort, velocity = (read_xml_child_number(limit, word, -1.0) for word in ("effort", "velocity"))
        return JointLimits(
            lower=lower if lower > -_UNBOUNDED_LIMIT else -np.inf, upper=upper if upper < _UNBOUNDED_LIMIT else np.inf,
            effort=effort if effort >= 0 else np.inf, velocity=velocity if velocity >= 0 else np.inf,
        )  # fmt: skip


def _read_mimic(axis: XmlElement) -> JointMimic | None:
    """Return position = multiplier × (leader − reference) + offset."""
    mimic = axis.child("mimic")
    if mimic is None:
        return None
    mimic.check_allowed({"multiplier", "offset", "reference"})
    multiplier, offset = read_xml_child_number(mimic, "multiplier", 1.0), read_xml_child_number(mimic, "offset", 0.0)
    return JointMimic(
        mimic.attribute("joint", required=True),
        multiplier,
        offset - multiplier * read_xml_child_number(mimic, "reference", 0.0),
    )


def _make_fixed_joint(name: str, parent: str, child: str, origin: Pose, line: int) -> RobotJoint:
    """Return a joint that does not move."""
    return RobotJoint(name=name, kind="fixed", parent=parent, child=child, origin=origin, line=line)


def _read_child_boolean(element: XmlElement, name: str) -> bool:
    """Return whether a child says true or 1; false without it."""
    child = element.child(name)
    if child is None:
        return False
    text = read_xml_element_text(child).lower()
    if text not in {"true", "1", "false", "0", ""}:
        child.faults.add(child.line, f'the text of <{name}> is "{text}"', "give true or false")
    return text in {"true", "1"}


def _read_color(element: XmlElement) -> str:
    """Return the diffuse colour, else the ambient one, as #rrggbb; empty without any."""
    material = element.child("material")
    diffuse = (material.child("diffuse") or material.child("ambient")) if material else None
    if diffuse is None:
        return ""
    numbers = [float(part) for part in read_xml_element_text(diffuse).split()[:3] if _is_number(part)]
    return (
        "#" + "".join(f"{round(255 * min(max(part, 0.0), 1.0)):02x}" for part in numbers) if len(numbers) == 3 else ""
    )


def _is_number(text: str) -> bool:
    """Return whether text is a finite number."""
    try:
        return bool(np.isfinite(float(text)))
    except ValueError:
        return False
