"""MJCF → ``RobotDescription``: every element is honoured, ignored by name (no effect on motion), or refused by name.

MuJoCo's constraints are soft and its integrator steps; here couplings are exact and time is continuous. Contacts are no
part of a robot's description here, and are reported.

Damping of MJCF's position drives from a ratio to critical damping (``dampratio``).

The elements of an MJCF file with includes inserted and defaults written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import numpy as np
from lxml import etree

from mb2fmu.errors import ModelError
from mb2fmu.robots.description.link_tree_checks import check_and_sort_link_tree
from mb2fmu.robots.description.robot_description import Array, RobotActuator, RobotDescription, RobotJoint
from mb2fmu.robots.file_formats.mesh_file_search import NO_PACKAGES
from mb2fmu.robots.file_formats.mesh_solids import MeshFileAccess
from mb2fmu.robots.file_formats.mjcf_actuators_and_tendons import MjcfActuationReader
from mb2fmu.robots.file_formats.mjcf_bodies import MjcfBodyReader
from mb2fmu.robots.file_formats.mjcf_geoms import read_mjcf_assets
from mb2fmu.robots.file_formats.mjcf_settings_and_poses import format_name_attribute, read_mjcf_compiler_settings
from mb2fmu.robots.file_formats.strict_xml import (
    FILE_ATTRIBUTE,
    XmlElement,
    XmlFaultCollector,
    find_xml_element_line,
    local_tag_name,
    parse_xml,
)
from mb2fmu.robots.robot_settings import RobotSettings
from mb2fmu.robots.tree.articulated_tree import build_articulated_tree
from mb2fmu.robots.tree.robot_inertia_and_stability import compute_robot_inertia_and_weight, list_tree_motion_directions

_HONOURED_SECTIONS = {"compiler", "option", "asset", "worldbody", "tendon", "equality", "actuator", "default"}
_IGNORED_SECTIONS = {"size", "statistic", "visual", "sensor", "custom"}
_OPTION_ATTRIBUTES = {"gravity", "density", "viscosity", "wind", "magnetic"}
_SOLVER_ATTRIBUTES = {
    "timestep", "integrator", "cone", "jacobian", "solver", "iterations", "tolerance", "ls_iterations",
    "ls_tolerance", "noslip_iterations", "noslip_tolerance", "ccd_iterations", "ccd_tolerance", "impratio", "o_margin",
    "o_solref", "o_solimp", "o_friction", "sdf_iterations", "sdf_initpoints", "sleep_tolerance",
    "actuatorgroupdisable", "apirate",
}  # fmt: skip
_SUPPORTED_FLAGS = {"gravity", "spring", "damper", "passive", "actuation", "equality", "clampctrl"}
"""Flags that act on what is honoured."""
_DEFAULT_GRAVITY = (0.0, 0.0, -9.81)


def _resolve_damping_ratios(
    description: RobotDescription,
    joints: Mapping[str, RobotJoint],
    zero: Mapping[str, float],
    ratios: Mapping[str, float],
) -> tuple[RobotActuator, ...]:
    """Return the actuators; those with a damping ratio get the damping 2 × ratio × √(gain × m).

    m = 1/(J M⁻¹ Jᵀ) is the inertia that the drive feels at the file's own pose with all joints free, as in MuJoCo 4.

    Args:
        description: Of the robot; its order of joints is a tree's.
        joints: Name → joint as the file has it, nothing coupled or held.
        zero: Joint → position that the file draws it at.
        ratios: Actuator → ratio.

    Raises:
        ModelError: If the robot's mass matrix would be singular.
    """
    if not ratios:
        return description.actuators
    free = replace(description, joints=tuple(joints[joint.name] for joint in description.joints), loops=())
    tree = build_articulated_tree(free, RobotSettings(inertia="keep"))
    positions = {i: zero.get(part.moving_joint.name, 0.0) for i, part in enumerate(tree.parts[1:], 1)}
    M = compute_robot_inertia_and_weight(tree, positions, np.zeros(3))[0]
    row = {tree.parts[i].moving_joint.name: j for j, (i, _) in enumerate(list_tree_motion_directions(tree))}
    return tuple(
        _set_actuator_damping(actuator, ratios[actuator.name], M, row) if actuator.name in ratios else actuator
        for actuator in description.actuators
    )


def _set_actuator_damping(actuator: RobotActuator, ratio: float, M: Array, row: Mapping[str, int]) -> RobotActuator:
    """Return the actuator with its damping, rows of M being those of joints."""
    J = np.zeros(len(M))
    for joint, factor in actuator.terms:
        J[row[joint]] += factor
    inertia = 1.0 / float(J @ np.linalg.lstsq(M, J, rcond=None)[0])
    b0, b1, _ = actuator.bias
    return replace(actuator, bias=(b0, b1, -2.0 * ratio * float(np.sqrt(actuator.gain * inertia))))


ACTUATOR_TAGS = ("general", "motor", "position", "velocity", "damper", "intvelocity", "cylinder", "muscle", "adhesion",
             "dcmotor", "pid", "orientation")  # fmt: skip
_SHORTCUT_ATTRIBUTES = {"kp", "kv", "dampratio", "timeconst", "inheritrange"}
"""Attributes of actuators that mean another thing in each kind, or nothing."""
_GAIN_ATTRIBUTES = {"kp", "kv", "dampratio"}
_MIN_BIAS_COUNT = 3
"""Numbers that an affine bias has."""
_TYPE_ATTRIBUTES = {"gaintype", "biastype"}
_OVERWRITTEN_ATTRIBUTES = {
    "motor": {*_TYPE_ATTRIBUTES, "gainprm", "biasprm", "dyntype", "dynprm"},
    "position": _TYPE_ATTRIBUTES, "velocity": _TYPE_ATTRIBUTES,
}  # fmt: skip
"""Attributes of <general> that a kind of actuator sets itself, whatever its class says."""
_TAGS_WITH_DEFAULTS = {
    "joint",
    "geom",
    "site",
    "mesh",
    "material",
    "connect",
    "weld",
    "fixed",
    "spatial",
    "tendon",
    *ACTUATOR_TAGS,
}
_MAX_INCLUDED_FILES = 100

FileContentReader = Callable[[Path], bytes | None]
"""The content of a file; None where there is none."""
DefaultsClass = dict[str, dict[str, str]]
"""Element → attribute → value."""


def _expand_mjcf(
    content: bytes, path: Path, faults: XmlFaultCollector, content_of: FileContentReader
) -> etree._Element:
    """Return the root of an MJCF file: includes and defaults are resolved into elements and attributes.

    Args:
        content: Of the file.
        path: Of the file.
        faults: Take what is wrong.
        content_of: Reads included files.

    Raises:
        ModelError: If the file, or one that it includes, is no XML, or is not to be read at all.
    """
    root = parse_xml(content, path, ("mujoco",))
    _insert_includes(root, path.parent.resolve(), {path.resolve()}, faults, content_of)
    classes = {"main": DefaultsClass()}
    for section in list(root):
        if local_tag_name(section) == "default":
            _read_class(section, classes, section.get("class", "main"), {}, faults)
            root.remove(section)
    _apply_defaults(root, "main", classes, faults)
    return root


def _insert_includes(
    root: etree._Element, folder: Path, seen: set[Path], faults: XmlFaultCollector, content_of: FileContentReader
) -> None:
    """Insert the elements of included files; no file twice, and none outside the folder."""
    while (node := root.find(".//include")) is not None:
        parent = node.getparent()
        assert parent is not None
        name, place = node.get("file", ""), parent.index(node)
        found = _read_included_file(name, node, folder, seen, faults, content_of)
        parent.remove(node)
        for offset, child in enumerate(found):
            parent.insert(place + offset, child)


def _read_included_file(
    name: str,
    node: etree._Element,
    folder: Path,
    seen: set[Path],
    faults: XmlFaultCollector,
    content_of: FileContentReader,
) -> list[etree._Element]:
    """Return the elements of an included file; empty, with a fault, if it is outside, absent or included twice."""
    path = (folder / name).resolve() if name else folder
    if not name or Path(name).is_absolute() or not path.is_relative_to(folder) or ".." in Path(name).parts:
        faults.add(
            find_xml_element_line(node), f"it includes {name!r}", "name a file in the folder of the robot's file"
        )
    elif path in seen or len(seen) > _MAX_INCLUDED_FILES:
        faults.add(find_xml_element_line(node), f"{name} is included twice", "include every file once")
    elif (content := content_of(path)) is None:
        faults.add(find_xml_element_line(node), f"it includes {name}, which is not there", "correct the name")
    else:
        seen.add(path)
        try:
            root = parse_xml(content, path, ("mujoco", "mujocoinclude"))
        except ModelError as error:
            faults.faults += error.faults
            return []
        for element in root.iter():
            element.set(FILE_ATTRIBUTE, name)
        return list(root)
    return []


def _read_class(
    section: etree._Element, classes: dict[str, DefaultsClass], name: str, inherited: Mapping[str, Mapping[str, str]],
    faults: XmlFaultCollector,
) -> None:  # fmt: skip
    """Read a class of defaults and its nested classes, which inherit its values."""
    if not name:
        faults.add(find_xml_element_line(section), "a class of defaults has no name", 'add class="…"')
        return
    for key in {str(key) for key in section.attrib} - {"class", FILE_ATTRIBUTE}:
        faults.add(find_xml_element_line(section), f"<default> has {key}, which is not known", "remove it")
    own = classes.setdefault(name, DefaultsClass())
    for word, values in inherited.items():
        own.setdefault(word, {}).update(values)
    inner = []
    for child in section:
        if local_tag_name(child) == "default":
            inner.append(child)
            continue
        given = {str(key): str(value) for key, value in child.attrib.items() if key != FILE_ATTRIBUTE}
        own.setdefault(local_tag_name(child), {}).update(given)
    for child in inner:
        if child.get("class") in classes:
            faults.add(
                find_xml_element_line(child), f"two classes of defaults are called {child.get('class')}", "rename one"
            )
            continue
        _read_class(child, classes, child.get("class", ""), own, faults)


def _apply_defaults(
    element: etree._Element, childclass: str, classes: Mapping[str, DefaultsClass], faults: XmlFaultCollector
) -> None:
    """Write the defaults into elements that lack these attributes."""
    for child in element:
        inside = child.get("childclass") or childclass
        name = child.get("class") or inside
        for missing_class in {inside, name} - classes.keys():
            faults.add(
                find_xml_element_line(child),
                f"<{local_tag_name(child)}> is of the class {missing_class!r}, which does not exist",
                "correct the name",
            )
        if local_tag_name(child) in _TAGS_WITH_DEFAULTS:
            for key, value in _element_defaults(local_tag_name(child), child, classes.get(name, {})):
                if child.get(key) is None:
                    child.set(key, value)
        _apply_defaults(child, inside if inside in classes else childclass, classes, faults)


def _overrides_all_gains(child: etree._Element) -> bool:
    """Return whether <general> itself says all that gains of another kind's defaults would be."""
    bias = child.get("biastype")
    whole = bias == "none" or (bias == "affine" and len(child.get("biasprm", "").split()) >= _MIN_BIAS_COUNT)
    return whole and bool(child.get("gainprm", "").split())


def _element_defaults(
    name: str, child: etree._Element, of: Mapping[str, Mapping[str, str]]
) -> Iterator[tuple[str, str]]:
    """Yield the defaults of one element; actuators share theirs, rows of equality take those of ``equality``."""
    parent = child.getparent()
    section = "" if parent is None else local_tag_name(parent)
    if section == "actuator":
        overruled = _GAIN_ATTRIBUTES if name == "general" and _overrides_all_gains(child) else set()
        for word in (name, *(other for other in ACTUATOR_TAGS if other != name)):
            for key, value in of.get(word, {}).items():
                # <general> takes the gains that another kind's defaults make; there it is refused by its attribute
                kept = key not in _SHORTCUT_ATTRIBUTES or (name == "general" and key != "inheritrange")
                if word == name or (kept and key not in _OVERWRITTEN_ATTRIBUTES.get(name, ()) and key not in overruled):
                    yield key, value
    elif section in {"equality", "tendon"}:
        yield from deepcopy(of.get(section, {})).items()
    elif name not in {"connect", "weld", "fixed", "spatial", "tendon"}:
        yield from of.get(name, {}).items()


def read_mjcf(content: bytes, path: Path, content_of: FileContentReader) -> RobotDescription:
    """Read an MJCF file.

    Args:
        content: Of the file.
        path: Of the file; what it includes stands in the same folder, or below.
        content_of: Reads included files.

    Raises:
        ModelError: With every fault of the file, each with its line.
    """
    faults = XmlFaultCollector(path.name)
    root = XmlElement(_expand_mjcf(content, path, faults, content_of), faults)
    name = root.attribute("model")
    if not name:
        faults.note(f"the robot has no name and is called after its file, {path.stem}")
    _check_sections(root)
    gravity = _read_options(root)
    compiler = read_mjcf_compiler_settings(root)
    bodies = MjcfBodyReader(
        compiler, read_mjcf_assets(root, compiler, MeshFileAccess(path, NO_PACKAGES, content_of)), faults
    )
    bodies.read_worldbody(root)
    actuation = MjcfActuationReader(
        compiler, {joint.name: joint for joint in bodies.joints}, bodies.reference_positions, bodies.drawn_poses, faults
    )
    tendons = actuation.read_tendons(root)
    actuators = actuation.read_actuators(root)
    joints = actuation.read_couplings(root)
    ordered = [joints[joint.name] for joint in bodies.joints]
    if any(shape.collision for link in bodies.links for shape in link.shapes):
        faults.note("geoms are drawn and weighed, and touch nothing: contact is left out")
    description = RobotDescription(
        name=name, links=tuple(bodies.links), joints=tuple(ordered), root="", gravity=gravity, source=path,
        notes=tuple(faults.notes), actuators=actuators, tendons=tendons, loops=tuple(actuation.loops),
    )  # fmt: skip
    checked = check_and_sort_link_tree(description, faults)
    drawn = {joint.name: joint for joint in bodies.joints}  # followers move by themselves
    return replace(
        checked, actuators=_resolve_damping_ratios(checked, drawn, bodies.reference_positions, actuation.damping_ratios)
    )


def _check_sections(root: XmlElement) -> None:
    """Note sections that move nothing and are left out; refuse those that are unknown."""
    for section in root.list_elements():
        if section.name in _IGNORED_SECTIONS:
            root.faults.note(f"<{section.name}> is left out: it does not move the robot")
        elif section.name == "contact":
            root.faults.note("<contact> is left out: nothing touches")
        elif section.name == "keyframe":
            root.faults.note("<keyframe> is left out: give start values by start = { joint = … }")
        elif section.name not in _HONOURED_SECTIONS:
            what = f"<{section.name}> is not honoured"
            root.faults.add(section.line, what, "remove it: flexible bodies, plugins and extensions are no part of it")


def _read_options(root: XmlElement) -> tuple[float, float, float]:
    """Return gravity; refuse other parts of ``<option>`` that change the motion."""
    gravity = _DEFAULT_GRAVITY
    for option in root.children("option"):
        x, y, z = option.vector("gravity", gravity)
        gravity = (x, y, z)
        for key in map(str, option.node.attrib):
            if "}" in key or key in _SOLVER_ATTRIBUTES or key in {"gravity", "wind", "magnetic"}:
                continue
            if key not in _OPTION_ATTRIBUTES:
                option.faults.add(option.line, f"<option> has {key}, which is not known", "remove it")
            elif option.number(key):
                what = f'{key}="{option.attribute(key)}" of <option> is not honoured: there is no drag of a fluid'
                option.faults.add(option.line, what, f"remove {key}")
        for flag in option.children("flag"):
            gravity = _apply_flags(flag, gravity)
    return gravity


def _apply_flags(flag: XmlElement, gravity: tuple[float, float, float]) -> tuple[float, float, float]:
    """Return gravity with MuJoCo's flags applied; refuse other flags that are switched off."""
    for key in map(str, flag.node.attrib):
        if key not in _SUPPORTED_FLAGS or flag.attribute(key) != "disable":
            continue
        if key == "gravity":
            gravity = (0.0, 0.0, 0.0)
        elif key != "clampctrl":
            what = f'the flag {key}="disable" is not honoured'
            flag.faults.add(flag.line, what, f"remove what it switches off, or the flag{format_name_attribute(flag)}")
    return gravity
