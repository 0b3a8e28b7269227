"""Settings of an MJCF file's compiler, and the poses and angles that depend on them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mb2fmu.robots.description.robot_description import Array, Pose, round_rotation_entries
from mb2fmu.robots.file_formats.strict_xml import XmlElement
from mb2fmu.robots.tree.articulated_tree import rotation_about_axis

ORIENTATION_ATTRIBUTES = ("quat", "axisangle", "xyaxes", "zaxis", "euler")
_MIN_VECTOR_LENGTH = 1e-12
_HARMLESS_ATTRIBUTES = ("alignfree", "discardvisual", "fusestatic", "usethread", "strippath", "texturedir",
                        "saveinertial",
             "conflict", "fitaabb", "passthrough", "savecanonical", "savecompiled")  # fmt: skip
_HONOURED_ATTRIBUTES = ("angle", "autolimits", "balanceinertia", "boundinertia", "boundmass", "coordinate", "eulerseq",
             "inertiafromgeom", "inertiagrouprange", "meshdir", "assetdir", "settotalmass")  # fmt: skip

_ZERO_DEFAULT_ATTRIBUTES = ("actuatorgravcomp", "delay", "gravcomp", "mocap", "springdamper")
"""Attributes that are not honoured, and do nothing where they are 0 or false."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MjcfCompilerSettings:
    """Settings of ``<compiler>``.

    Attributes:
        angles_in_degrees: Angles are in degrees; rad otherwise.
        limited: A joint with a range is limited unless it says otherwise.
        sequence: Axes of Euler angles; lower case turns with the frame, upper case stays.
        inertia_from_geoms: ``auto``: inertias come from geoms where a body gives none; ``true``: always; ``false``:
            never.
        inertia_groups: First and last group of geoms that have mass.
        min_mass: kg.
        min_inertia: kg·m².
        total_mass: kg; ≤ 0: as the file has it.
        balance_inertia: Moments that no body can have are replaced by their mean.
        mesh_folder: Folder of meshes, in front of their names.
    """

    angles_in_degrees: bool = True
    limited: bool = True
    sequence: str = "xyz"
    inertia_from_geoms: str = "auto"
    inertia_groups: tuple[int, int] = (0, 5)
    min_mass: float = 0.0
    min_inertia: float = 0.0
    total_mass: float = -1.0
    balance_inertia: bool = False
    mesh_folder: str = ""

    def to_radians(self, value: float) -> float:
        """Return an angle of the file in rad."""
        return float(np.deg2rad(value)) if self.angles_in_degrees else value


def read_mjcf_compiler_settings(root: XmlElement) -> MjcfCompilerSettings:
    """Return the settings of all ``<compiler>`` elements; later ones override earlier ones."""
    found: dict[str, str] = {}
    element = None
    for element in root.children("compiler"):
        check_mjcf_attributes(element, _HONOURED_ATTRIBUTES, _HARMLESS_ATTRIBUTES)
        if element.attribute("alignfree") == "true":
            element.faults.note("alignfree is left out: poses of free bodies are those of their axes in the file")
        found |= {str(key): str(value) for key, value in element.node.attrib.items()}
    if element is None:
        return MjcfCompilerSettings()
    for key, value in found.items():
        element.node.set(key, value)
    if element.attribute("coordinate") not in {"", "local"}:
        element.faults.add(element.line, "coordinates are global, which MuJoCo has given up", "save it as local")
    sequence = element.attribute("eulerseq") or "xyz"
    if len(sequence) != 3 or set(sequence.lower()) - set("xyz"):
        element.faults.add(element.line, f'eulerseq is "{sequence}"', "give three of x, y, z, X, Y, Z")
        sequence = "xyz"
    groups = element.vector("inertiagrouprange", (0.0, 5.0))
    folder = element.attribute("meshdir") or element.attribute("assetdir")
    return MjcfCompilerSettings(
        angles_in_degrees=read_choice_attribute(element, "angle", ("degree", "radian")) == "degree",
        limited=read_choice_attribute(element, "autolimits", ("true", "false")) == "true",
        sequence=sequence,
        inertia_from_geoms=read_choice_attribute(element, "inertiafromgeom", ("auto", "true", "false")),
        inertia_groups=(int(groups[0]), int(groups[1])),
        min_mass=element.number("boundmass"),
        min_inertia=element.number("boundinertia"),
        total_mass=element.number("settotalmass", -1.0),
        balance_inertia=read_choice_attribute(element, "balanceinertia", ("false", "true")) == "true",
        mesh_folder=folder,
    )


def read_choice_attribute(element: XmlElement, name: str, known: tuple[str, ...]) -> str:
    """Return an attribute that is one of some words; the first of them where it is not given."""
    text = element.attribute(name) or known[0]
    if text not in known:
        element.faults.add(element.line, f'{name} of <{element.name}> is "{text}"', f"it is one of {', '.join(known)}")
        return known[0]
    return text


def check_mjcf_attributes(element: XmlElement, honoured: tuple[str, ...], harmless: tuple[str, ...] = ()) -> None:
    """Refuse every attribute that is neither supported nor harmless: MJCF has no extensions, so it is misspelt or new.

    Args:
        element: Whose.
        honoured: What is read.
        harmless: What does not act on the motion of a mechanism without contact.
    """
    for key in map(str, element.node.attrib):
        if (
            "}" not in key
            and key not in {*honoured, *harmless, "class", "user", "name"}
            and not _has_no_effect(element, key)
        ):
            what = (
                f'{key}="{element.attribute(key)}" of <{element.name}{format_name_attribute(element)}> is not honoured'
            )
            element.faults.add(element.line, what, f"remove it; honoured are {', '.join(honoured)}")


def _has_no_effect(element: XmlElement, key: str) -> bool:
    """Return whether an attribute says that its effect is not there, as by default."""
    return key in _ZERO_DEFAULT_ATTRIBUTES and set(element.attribute(key).split()) <= {"0", "0.0", "false"}


def format_name_attribute(element: XmlElement) -> str:
    """Return an element's name in a message."""
    name = element.node.get("name")
    return f' name="{name}"' if name else ""


def read_mjcf_element_pose(element: XmlElement, compiler: MjcfCompilerSettings) -> Pose:
    """Return ``pos`` and the orientation of an element, from one of the five attributes."""
    return Pose(
        round_rotation_entries(_read_rotation(element, compiler)), np.array(element.vector("pos", (0.0, 0.0, 0.0)))
    )


def _read_rotation(element: XmlElement, compiler: MjcfCompilerSettings) -> Array:
    """Return the rotation matrix of an element, from whichever orientation attribute it has; fault if several."""
    given = [name for name in ORIENTATION_ATTRIBUTES if element.attribute(name)]
    if len(given) > 1:
        what = f"<{element.name}{format_name_attribute(element)}> has several orientations: {', '.join(given)}"
        element.faults.add(element.line, what, "leave one")
    match given[:1]:
        case ["quat"]:
            return rotation_from_quaternion(_read_direction(element, "quat", (1.0, 0.0, 0.0, 0.0)))
        case ["axisangle"]:
            *axis, angle = element.vector("axisangle", (1.0, 0.0, 0.0, 0.0))
            return rotation_about_axis(np.array(axis) / (np.linalg.norm(axis) or 1.0), compiler.to_radians(angle))
        case ["euler"]:
            return _rotation_from_euler_angles(element.vector("euler", (0.0, 0.0, 0.0)), compiler)
        case ["xyaxes"]:
            return _rotation_from_two_axes(element)
        case ["zaxis"]:
            return rotation_aligning_z(_read_direction(element, "zaxis", (0.0, 0.0, 1.0)))
    return np.eye(3)


def _rotation_from_two_axes(element: XmlElement) -> Array:
    """Return the rotation with x along the first of two directions, and y as near as possible to the second."""
    six = np.array(element.vector("xyaxes", (1.0, 0.0, 0.0, 0.0, 1.0, 0.0)))
    x = six[:3] / (np.linalg.norm(six[:3]) or 1.0)
    y = six[3:] - (six[3:] @ x) * x
    if np.linalg.norm(y) < _MIN_VECTOR_LENGTH:
        element.faults.add(element.line, "the two axes of xyaxes are parallel", "give two directions")
        return np.eye(3)
    y /= np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])


def _read_direction(element: XmlElement, name: str, default: tuple[float, ...]) -> Array:
    """Return an attribute of unit length; a fault where it has none."""
    value = np.array(element.vector(name, default))
    length = float(np.linalg.norm(value))
    if length < _MIN_VECTOR_LENGTH:
        element.faults.add(
            element.line, f"{name} of <{element.name}{format_name_attribute(element)}> is zero", "give a direction"
        )
        return np.array(default)
    return value / length


def rotation_from_quaternion(quaternion: Array) -> Array:
    """Return the rotation of a unit quaternion w, x, y, z."""
    w, x, y, z = quaternion
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    rotation: Array = np.eye(3) + 2 * w * cross + 2 * cross @ cross
    return rotation


def _rotation_from_euler_angles(angles: tuple[float, ...], compiler: MjcfCompilerSettings) -> Array:
    """Return three turns about axes that turn along (lower case) or stay (upper case)."""
    rotation = np.eye(3)
    for axis, angle in zip(compiler.sequence, angles, strict=True):
        turn = rotation_about_axis(np.eye(3)["xyz".index(axis.lower())], compiler.to_radians(angle))
        rotation = rotation @ turn if axis.islower() else turn @ rotation
    return rotation


def rotation_aligning_z(direction: Array) -> Array:
    """Return the smallest rotation that takes the z axis to a unit vector; about x where it is the opposite."""
    axis = np.cross([0.0, 0.0, 1.0], direction)
    sine = float(np.linalg.norm(axis))
    if sine < _MIN_VECTOR_LENGTH:
        return np.eye(3) if direction[2] > 0 else np.diag([1.0, -1.0, -1.0])
    return rotation_about_axis(axis / sine, float(np.arctan2(sine, direction[2])))
