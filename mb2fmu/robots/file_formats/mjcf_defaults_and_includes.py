"""The elements of an MJCF file with includes inserted and defaults written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path

from lxml import etree

from mb2fmu.errors import ModelError
from mb2fmu.robots.file_formats.strict_xml import (
    FILE_ATTRIBUTE,
    FaultCollector,
    element_line,
    local_tag_name,
    parse_xml,
)

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


def expand_mjcf(content: bytes, path: Path, faults: FaultCollector, content_of: FileContentReader) -> etree._Element:
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
    root: etree._Element, folder: Path, seen: set[Path], faults: FaultCollector, content_of: FileContentReader
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
    faults: FaultCollector,
    content_of: FileContentReader,
) -> list[etree._Element]:
    """Return the elements of an included file; empty, with a fault, if it is outside, absent or included twice."""
    path = (folder / name).resolve() if name else folder
    if not name or Path(name).is_absolute() or not path.is_relative_to(folder) or ".." in Path(name).parts:
        faults.add(element_line(node), f"it includes {name!r}", "name a file in the folder of the robot's file")
    elif path in seen or len(seen) > _MAX_INCLUDED_FILES:
        faults.add(element_line(node), f"{name} is included twice", "include every file once")
    elif (content := content_of(path)) is None:
        faults.add(element_line(node), f"it includes {name}, which is not there", "correct the name")
    else:
        seen.add(path)
        try:
            root = parse_xml(content, path, ("mujoco", "mujocoinclude"))
        except ModelError as error:
            faults.found += error.faults
            return []
        for element in root.iter():
            element.set(FILE_ATTRIBUTE, name)
        return list(root)
    return []


def _read_class(
    section: etree._Element, classes: dict[str, DefaultsClass], name: str, inherited: Mapping[str, Mapping[str, str]],
    faults: FaultCollector,
) -> None:  # fmt: skip
    """Read a class of defaults and its nested classes, which inherit its values."""
    if not name:
        faults.add(element_line(section), "a class of defaults has no name", 'add class="…"')
        return
    for key in {str(key) for key in section.attrib} - {"class", FILE_ATTRIBUTE}:
        faults.add(element_line(section), f"<default> has {key}, which is not known", "remove it")
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
            faults.add(element_line(child), f"two classes of defaults are called {child.get('class')}", "rename one")
            continue
        _read_class(child, classes, child.get("class", ""), own, faults)


def _apply_defaults(
    element: etree._Element, childclass: str, classes: Mapping[str, DefaultsClass], faults: FaultCollector
) -> None:
    """Write the defaults into elements that lack these attributes."""
    for child in element:
        inside = child.get("childclass") or childclass
        name = child.get("class") or inside
        for asked in {inside, name} - classes.keys():
            faults.add(
                element_line(child),
                f"<{local_tag_name(child)}> is of the class {asked!r}, which does not exist",
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
