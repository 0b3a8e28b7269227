"""A second, minimal reading of an SDF file, without ``mb2fmu.robots``.

Every link, joint and frame is placed in the world with all joints at 0. A link's body stands in the frame of the joint
that moves it, not in its own, so that no frame of the first reading is met again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np

from mb2fmu.validation.independent_import.independent_sdf_solid_moments import integrate_shape_moments
from mb2fmu.validation.independent_import.independent_urdf_equations import (
    Array,
    Pose,
    RobotTree,
    RobotTreeJoint,
    axes_with_third_direction,
    parse_xml_with_undeclared_prefixes,
    rotation_about_axis,
)

_IDENTITY_POSE = (np.eye(3), np.zeros(3))
_WORLD_NAME = "world"
_MERGE_MARK = "merged"
"""Attribute of models that were included with ``merge``."""
_VERSION_MARK = "axes along the model"
"""Attribute of models in files of versions in which axes were along the model's."""
_NO_BOUND = 1e16
"""Of the standard: bounds as large as this are none, and so are negative efforts and speeds."""
_CLOSING_JOINT_KINDS = {"ball": "point", "revolute": "hinge", "continuous": "hinge", "fixed": "weld"}


def read_sdf_tree(content: bytes, path: Path, packages: Mapping[str, str]) -> RobotTree:
    """Return the links and joints of an SDF file with one model that moves; files that it includes are read again.

    Args:
        content: Of the file.
        path: Of the file.
        packages: Package or Gazebo model → folder, relative ones from the file's.
    """
    folders = {name: path.parent / folder for name, folder in packages.items()}
    root = _read_with_included_models(content, path, folders)
    return _SdfTreeReader(_find_moving_model(root)).form_tree(
        _read_numbers(root.find("world"), "gravity", (0.0, 0.0, -9.81))
    )


def _read_with_included_models(content: bytes, path: Path, packages: Mapping[str, Path]) -> ET.Element:
    """Return the root of a file, with ``<model>`` of the included file in place of each ``<include>``."""
    root = parse_xml_with_undeclared_prefixes(content)
    for uri in root.iterfind(".//collision//mesh/uri"):
        places = _iterate_places((uri.text or "").strip(), path, packages)
        uri.text = str(next((place for place in places if place.is_file()), uri.text))
    if tuple(int(part) for part in root.get("version", "2").split(".")) < (1, 5):
        for model in root.iter("model"):
            model.set(_VERSION_MARK, "old")
    for parent in [each for each in root.iter() if each.tag in {"sdf", "world", "model"}]:
        for place, include in [(k, child) for k, child in enumerate(parent) if child.tag == "include"]:
            file = _find_included_file(_read_text(include, "uri"), path, packages)
            models = _read_with_included_models(file.read_bytes(), file, packages).findall("model")
            for model in models if include.get("merge") in {"true", "1"} else ():
                model.set(_MERGE_MARK, "true")
            parent[place] = _change_as_include_says(models[0], include) if models else ET.Element("light")
    return root


def _change_as_include_says(model: ET.Element, include: ET.Element) -> ET.Element:
    """Return the model with the include's name, pose, placement frame and ``static``, where it has them."""
    for each in include:
        if each.tag in {"name", "placement_frame"}:
            model.set(each.tag, (each.text or "").strip())
        elif each.tag in {"pose", "static"}:
            model[:] = [each, *(child for child in model if child.tag != each.tag)]
    return model


def _iterate_places(uri: str, path: Path, packages: Mapping[str, Path]) -> Iterator[Path]:
    """Yield the files or folders that a URI in a file may mean."""
    scheme, sign, name = uri.rpartition("://")
    listed = [os.environ.get(key, "") for key in ("ROS_PACKAGE_PATH", "GZ_SIM_RESOURCE_PATH", "SDF_PATH")]
    starts = [Path(entry) for entry in os.pathsep.join(listed).split(os.pathsep) if entry]
    starts = [*starts, *path.absolute().parents] if sign and scheme != "file" else [path.parent, *starts]
    first, *rest = Path(name).parts
    if sign and first in packages:
        yield packages[first].joinpath(*rest)
    own = {start for start in starts if sign and start.name == first}  # the folder of the model itself
    for start in starts:
        yield from [start.joinpath(*rest), start / name] if start in own else [start / name]


def _find_included_file(uri: str, path: Path, packages: Mapping[str, Path]) -> Path:
    """Return the SDF file that a URI means: itself, or named in ``model.config`` of its folder."""
    for place in _iterate_places(uri, path, packages):
        config = place / "model.config"
        files = ET.parse(config).findall("sdf") if config.is_file() else []  # noqa: S314 - read before, strictly
        numbers = [re.fullmatch(r"[\d.]*\d", each.get("version", "").strip()) for each in files]
        versions = {
            tuple(map(int, number[0].split("."))) if number else (0,): each.text or ""
            for number, each in zip(numbers, files, strict=True)
        }
        known = [version for version in versions if version <= (1, 12)]
        file = place if place.is_file() else place / (versions[max(known)].strip() if known else "model.sdf")
        if file.is_file():
            return file
    raise FileNotFoundError(uri)


def _find_moving_model(root: ET.Element) -> ET.Element:
    """Return the first model that is not static."""
    models = [*root.findall("model"), *root.findall("world/model")]
    return next((each for each in models if _read_text(each, "static").lower() not in {"true", "1"}), models[0])


def read_sdf_joint_values(
    content: bytes, path: Path, packages: Mapping[str, str]
) -> dict[str, tuple[float, float, float, float, float]]:
    """Return joint → damping, bounds of the position, largest effort and speed (SI units) of an SDF file.

    What the file does not bound is infinite there; the two axes of a universal joint are joints of their own, and of a
    ball the damping counts alone.
    """
    values_by_joint = {}
    folders = {name: path.parent / folder for name, folder in packages.items()}
    reader = _SdfTreeReader(_find_moving_model(_read_with_included_models(content, path, folders)))
    for joint in reader.list_joints():
        name, kind = joint.get("name", ""), joint.get("type", "")
        for axis in [each for tag in ("axis", "axis2") for each in joint.findall(tag)]:
            key = f"{name}_{axis.tag}" if kind == "universal" else name
            texts = [_read_text(axis, f"limit/{limit_name}") for limit_name in ("lower", "upper", "effort", "velocity")]
            lower, upper, effort, velocity = (
                float(text or default) for text, default in zip(texts, ("-inf", "inf", "-1", "-1"), strict=True)
            )
            values_by_joint[key] = (
                float(_read_text(axis, "dynamics/damping") or 0.0),
                lower if lower > -_NO_BOUND else -np.inf,
                upper if upper < _NO_BOUND else np.inf,
                effort if effort >= 0.0 else np.inf,
                velocity if velocity >= 0.0 else np.inf,
            )
    return values_by_joint


@dataclass(frozen=True, slots=True)
class _SdfModelScope:
    """A model, the prefix of the names in it, and the name of its frame, both as the outermost model sees them."""

    prefix: str
    frame: str
    model: ET.Element

    def full_name(self, name: str) -> str:
        """Return a name in the model as the outermost model sees it."""
        if name in {"", "__model__"}:
            return self.frame
        return name if name == _WORLD_NAME else self.prefix + name


@dataclass(slots=True)
class _SdfTreeReader:
    """A model, and the poses of its parts in the world."""

    model: ET.Element
    _places: dict[str, Pose] = field(default_factory=dict)
    _parts: dict[str, ET.Element] = field(default_factory=dict)
    _scopes: dict[str, _SdfModelScope] = field(default_factory=dict)  # part → scope of the words in it
    _inner: dict[str, _SdfModelScope] = field(default_factory=dict)  # frame of a model → scope of its parts

    def __post_init__(self) -> None:
        self._collect_parts(_SdfModelScope("", "", self.model))
        self._places[_WORLD_NAME] = _IDENTITY_POSE
        self._places[""] = self._read_model_pose(self._inner[""])

    def _read_model_pose(self, scope: _SdfModelScope) -> Pose:
        """Return a model's pose in the frame that it is relative to; written may be that of one of its frames."""
        known = dict(self._places)
        self._places[scope.frame] = _IDENTITY_POSE
        placement_frame = self.place_of(scope.full_name(scope.model.get("placement_frame", "")))
        self._places = known  # what was placed on the way is elsewhere in the world
        return _compose_poses(_read_pose(scope.model)[0], _relative_pose(placement_frame, _IDENTITY_POSE))

    def _collect_parts(self, scope: _SdfModelScope) -> None:
        """Name each part as the outermost model sees it, and keep the scope that its own words are of."""
        self._inner[scope.frame] = scope
        for part in scope.model:
            name = scope.prefix + part.get("name", "")
            if part.tag in {"link", "joint", "frame"}:
                part.set("name", name)
                self._parts[name], self._scopes[name] = part, scope
            elif part.tag == "model":
                is_merged = part.get(_MERGE_MARK) is not None
                frame = f"{scope.prefix}_merged__{part.get('name', '')}__model__" if is_merged else name
                self._parts[frame], self._scopes[frame] = part, scope
                self._collect_parts(_SdfModelScope(scope.prefix if is_merged else f"{frame}::", frame, part))

    def list_joints(self) -> list[ET.Element]:
        """Return all joints, each with its full name."""
        return [part for part in self._parts.values() if part.tag == "joint"]

    def form_tree(self, gravity: Array) -> RobotTree:
        """Return all of it; gravity is in the world's axes."""
        links = {name: part for name, part in self._parts.items() if part.tag == "link"}
        joints = self.list_joints()
        joint_links = {
            joint.get("name", ""): (self._find_link(joint, "parent"), self._find_link(joint, "child"))
            for joint in joints
        }
        moved_by: dict[str, str] = {}
        for name, (_, child) in joint_links.items():
            moved_by.setdefault(child, name)
        unmoved_link = next((link for link in links if link not in moved_by), "")
        root = _WORLD_NAME if any(parent == _WORLD_NAME for parent, _ in joint_links.values()) else unmoved_link
        frame = {link: self.place_of(moved_by.get(link, link)) for link in (*links, _WORLD_NAME)}
        bodies = {link: self._read_body(part, frame[link]) for link, part in links.items()}
        tree_joints: dict[str, RobotTreeJoint] = {}
        closing = []
        for joint in joints:
            name = joint.get("name", "")
            parent, child = joint_links[name]
            if moved_by[child] != name:
                closing.append(self._form_loop_closure(joint, (parent, child), (frame[parent], frame[child])))
                continue
            tree_joints |= {each.name: each for each in self._iterate_joints(joint, parent, child, frame[parent])}
        frames_of_links = {link: _relative_pose(frame[link], self.place_of(link)) for link in links}
        return RobotTree(bodies, tree_joints, root, frame[root][0].T @ gravity, closing, frames_of_links)

    def _form_loop_closure(
        self, joint: ET.Element, links: tuple[str, str], frames: tuple[Pose, Pose]
    ) -> tuple[str, tuple[str, str], tuple[Pose, Pose]]:
        """Return a joint whose child another one moves, in the frames of both links' bodies."""
        name = joint.get("name", "")
        joint_without_axis = RobotTreeJoint(name, "", *links, *_IDENTITY_POSE, np.array([0.0, 0.0, 1.0]))
        axis = self._read_axis(joint, "axis", joint_without_axis).axis
        place = _compose_poses(self.place_of(name), (axes_with_third_direction(axis), np.zeros(3)))
        return (
            _CLOSING_JOINT_KINDS[joint.get("type", "")],
            links,
            (_relative_pose(frames[0], place), _relative_pose(frames[1], place)),
        )

    def place_of(self, name: str) -> Pose:
        """Return the place of a link, joint, frame or inner model in the world."""
        if name not in self._places:
            part, scope = self._parts[name], self._scopes[name]
            default = {"joint": _read_text(part, "child"), "frame": part.get("attached_to", "")}.get(part.tag, "")
            place, relative = _read_pose(part)
            place = self._read_model_pose(self._inner[name]) if part.tag == "model" else place
            self._places[name] = _compose_poses(self.place_of(scope.full_name(relative or default)), place)
        return self._places[name]

    def _find_link(self, joint: ET.Element, end: str) -> str:
        """Return the link, or the world, that an end of a joint is fixed to."""
        name = self._scopes[joint.get("name", "")].full_name(_read_text(joint, end))
        while name != _WORLD_NAME and (name in self._inner or self._parts[name].tag != "link"):
            if name in self._inner:
                name = self._find_canonical_link(self._inner[name])
                continue
            part = self._parts[name]
            carrier = _read_text(part, "child") if part.tag == "joint" else part.get("attached_to", "")
            name = self._scopes[name].full_name(carrier)
        return name

    def _find_canonical_link(self, scope: _SdfModelScope) -> str:
        """Return the link that a model's frame is attached to: the one it names, else its first, else an inner one."""
        if named := scope.model.get("canonical_link"):
            return scope.prefix + named
        inside = [*scope.model.iter("model")]
        own = [name for name, each in self._scopes.items() if each.prefix == scope.prefix and each.model in inside]
        link = next((name for name in own if self._parts[name].tag == "link"), "")  # its own, or a merged one
        return link or self._find_canonical_link(next(self._inner[name] for name in own if name in self._inner))

    def _read_body(self, link: ET.Element, frame: Pose) -> tuple[float, Array, Array]:
        """Return mass, mass centre and inertia in the frame of the joint that moves the link."""
        inertial = link.find("inertial")
        if inertial is None:  # the standard's default: 1 kg, 1 kg m2
            return 1.0, _relative_pose(frame, self.place_of(link.get("name", "")))[1], np.eye(3)
        if inertial.get("auto") in {"true", "1"}:
            return self._weigh_collisions(link, inertial, frame)
        R, center = _compose_poses(_relative_pose(frame, self.place_of(link.get("name", ""))), _read_pose(inertial)[0])
        xx, yy, zz = (float(_read_text(inertial, f"inertia/i{ii}") or 1.0) for ii in ("xx", "yy", "zz"))
        xy, xz, yz = (float(_read_text(inertial, f"inertia/i{ij}") or 0.0) for ij in ("xy", "xz", "yz"))
        inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
        return float(_read_text(inertial, "mass") or 1.0), center, inertia

    def _weigh_collisions(self, link: ET.Element, inertial: ET.Element, frame: Pose) -> tuple[float, Array, Array]:
        """Return mass, mass centre and inertia of a link's collision shapes, from ∫ dm, ∫ x dm and ∫ x xᵀ dm."""
        mass, first, second = 0.0, np.zeros(3), np.zeros((3, 3))
        name = link.get("name", "")
        for collision in link.findall("collision"):
            density = float(_read_text(collision, "density") or _read_text(inertial, "density") or 1000.0)
            place, relative = _read_pose(collision)
            base = self.place_of(self._scopes[name].full_name(relative) if relative else name)
            R, p = _relative_pose(frame, _compose_poses(base, place))
            for shape in collision.findall("geometry/*"):
                volume, center, moment = integrate_shape_moments(shape)
                c = p + R @ center
                mass, first = mass + density * volume, first + density * volume * c
                second += density * (R @ moment @ R.T + volume * np.outer(c, c))
        at = first / mass
        about = second - mass * np.outer(at, at)
        given = float(_read_text(inertial, "mass") or mass)
        return given, at, given / mass * (np.trace(about) * np.eye(3) - about)

    def _iterate_joints(self, element: ET.Element, parent: str, child: str, frame: Pose) -> Iterator[RobotTreeJoint]:
        """Yield one joint, or the two of a universal one."""
        name, kind = element.get("name", ""), element.get("type", "")
        R, p = _relative_pose(frame, self.place_of(name))
        if kind != "universal":
            joint = self._read_axis(
                element, "axis", RobotTreeJoint(name, kind, parent, child, R, p, np.array([0.0, 0.0, 1.0]))
            )
            if kind != "ball":
                inertia, ratio = (
                    _read_number(element, element_name) for element_name in ("rotor_inertia", "gear_ratio")
                )
                joint.armature = (inertia or 0.0) * (1.0 if ratio is None else ratio) ** 2
            yield joint
            return
        intermediate_link = f"{child} behind {name}"
        for element_name, joint_links, place in (
            ("axis", (parent, intermediate_link), (R, p)),
            ("axis2", (intermediate_link, child), _IDENTITY_POSE),
        ):
            joint = RobotTreeJoint(
                f"{name}_{element_name}", "revolute", *joint_links, *place, np.array([0.0, 0.0, 1.0])
            )
            yield self._read_axis(element, element_name, joint)

    def _read_axis(self, element: ET.Element, axis_name: str, joint: RobotTreeJoint) -> RobotTreeJoint:
        """Return the joint with the content of its axis element."""
        axis = element.find(axis_name)
        if axis is None:
            return joint
        xyz = axis.find("xyz")
        axis_numbers = _read_numbers(axis, "xyz", (0.0, 0.0, 1.0))
        scope = self._scopes[element.get("name", "")]
        expressed_in = "" if xyz is None else xyz.get("expressed_in", "")
        is_along_model = _read_text(axis, "use_parent_model_frame") or str(scope.model.get(_VERSION_MARK) is not None)
        if expressed_in or is_along_model.lower() in {"true", "1"}:
            place = self.place_of(scope.full_name(expressed_in))
            axis_numbers = self.place_of(element.get("name", ""))[0].T @ place[0] @ axis_numbers
        joint.axis = axis_numbers / np.linalg.norm(axis_numbers)
        joint.friction, joint.stiffness, joint.rest = (
            float(_read_text(axis, f"dynamics/{field_name}") or 0.0)
            for field_name in ("friction", "spring_stiffness", "spring_reference")
        )
        mimic = axis.find("mimic")
        if mimic is not None:
            factor = float(_read_text(mimic, "multiplier") or 1.0)
            offset, reference = (float(_read_text(mimic, field_name) or 0.0) for field_name in ("offset", "reference"))
            joint.mimic = (scope.full_name(mimic.get("joint", "")), factor, offset - factor * reference)
        return joint


def _compose_poses(first: Pose, second: Pose) -> Pose:
    """Return the second pose, given in the first, seen from where the first is given."""
    return first[0] @ second[0], first[1] + first[0] @ second[1]


def _relative_pose(frame: Pose, place: Pose) -> Pose:
    """Return a place as seen from a frame, both given in the same frame."""
    return frame[0].T @ place[0], frame[0].T @ (place[1] - frame[1])


def _read_pose(element: ET.Element) -> tuple[Pose, str]:
    """Return a pose as written, and the frame that it is relative to."""
    pose = element.find("pose")
    if pose is None:
        return _IDENTITY_POSE, ""
    numbers, relative = [float(number_text) for number_text in (pose.text or "").split()], pose.get("relative_to", "")
    if not numbers:
        return _IDENTITY_POSE, relative
    x, y, z = np.eye(3)
    if pose.get("rotation_format") == "quat_xyzw":
        vector, length = np.array(numbers[3:6]), float(np.linalg.norm(numbers[3:]))
        angle = 2.0 * float(np.arctan2(np.linalg.norm(vector), numbers[6]))
        axis = vector / (np.linalg.norm(vector) or length)
        return (rotation_about_axis(axis, angle), np.array(numbers[:3])), relative
    factor = np.pi / 180 if pose.get("degrees", "").lower() in {"true", "1"} else 1.0
    roll, pitch, yaw = (factor * angle for angle in numbers[3:])
    return (
        rotation_about_axis(z, yaw) @ rotation_about_axis(y, pitch) @ rotation_about_axis(x, roll),
        np.array(numbers[:3]),
    ), relative


def _read_number(element: ET.Element, tag: str) -> float | None:
    """Return the number in a child of any namespace; None without one."""
    matching_elements = [child for child in element if child.tag.rpartition("}")[2] == tag]
    return float(matching_elements[0].text or "") if matching_elements else None


def _read_text(element: ET.Element, path: str) -> str:
    """Return an element's text at a path, stripped; empty where there is none."""
    return (element.findtext(path) or "").strip()


def _read_numbers(element: ET.Element | None, path: str, default: tuple[float, float, float]) -> Array:
    """Return three numbers at a path, or the default."""
    numbers_text = "" if element is None else _read_text(element, path)
    return np.array([float(number_text) for number_text in numbers_text.split()] or default)
