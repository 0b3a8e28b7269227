"""MJCF → ``RobotDescription``: every element is honoured, ignored by name (no effect on motion), or refused by name.

MuJoCo's constraints are soft and its integrator steps; here couplings are exact and time is continuous. Contacts are no
part of a robot's description here, and are told.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mb2fmu.robots.description.robot_description import RobotDescription
from mb2fmu.robots.description.tree_checks import check_tree
from mb2fmu.robots.file_formats.mjcf_actuation import ActuationReader
from mb2fmu.robots.file_formats.mjcf_bodies import BodyReader
from mb2fmu.robots.file_formats.mjcf_compiler_settings import describe_element_name, read_compiler
from mb2fmu.robots.file_formats.mjcf_damping import resolve_damping_ratios
from mb2fmu.robots.file_formats.mjcf_defaults_and_includes import FileContentReader, expand_mjcf
from mb2fmu.robots.file_formats.mjcf_geoms import read_assets
from mb2fmu.robots.file_formats.strict_xml import FaultCollector, XmlElement

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


def read_mjcf(content: bytes, path: Path, content_of: FileContentReader) -> RobotDescription:
    """Read an MJCF file.

    Args:
        content: Of the file.
        path: Of the file; what it includes stands in the same folder, or below.
        content_of: Reads included files.

    Raises:
        ModelError: With every fault of the file, each with its line.
    """
    faults = FaultCollector(path.name)
    root = XmlElement(expand_mjcf(content, path, faults, content_of), faults)
    name = root.attribute("model")
    if not name:
        faults.note(f"the robot has no name and is called after its file, {path.stem}")
    _check_sections(root)
    gravity = _read_options(root)
    compiler = read_compiler(root)
    bodies = BodyReader(compiler, read_assets(root, compiler), faults)
    bodies.read(root)
    actuation = ActuationReader(
        compiler, {joint.name: joint for joint in bodies.joints}, bodies.zero, bodies.drawn_poses, faults
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
    checked = check_tree(description, faults)
    drawn = {joint.name: joint for joint in bodies.joints}  # followers move by themselves
    return replace(checked, actuators=resolve_damping_ratios(checked, drawn, bodies.zero, actuation.ratios))


def _check_sections(root: XmlElement) -> None:
    """Note sections that move nothing and are left out; refuse those that are unknown."""
    for section in root.all():
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
            flag.faults.add(flag.line, what, f"remove what it switches off, or the flag{describe_element_name(flag)}")
    return gravity
