"""The elements of an MJCF file with includes inserted and defaults written out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from pathlib import Path

from lxml import etree

from mb2fmu.errors import ModelError
from mb2fmu.robots.file_formats.strict_xml import FILE, Faults, line_of, parse, tag

ACTUATORS = ("general", "motor", "position", "velocity", "damper", "intvelocity", "cylinder", "muscle", "adhesion",
             "dcmotor", "pid", "orientation")  # fmt: skip
_OWN = {"kp", "kv", "dampratio", "timeconst", "inheritrange"}
"""Attributes of actuators that mean another thing in each kind, or nothing."""
_GAINS = {"kp", "kv", "dampratio"}
_BIAS = 3
"""Numbers that an affine bias has."""
_TYPES = {"gaintype", "biastype"}
_OVERWRITTEN = {
    "motor": {*_TYPES, "gainprm", "biasprm", "dyntype", "dynprm"}, "position": _TYPES, "velocity": _TYPES,
}  # fmt: skip
"""Attributes of <general> that a kind of actuator sets itself, whatever its class says."""
_HAVE_CLASS = {"joint", "geom", "site", "mesh", "material", "connect", "weld", "fixed", "spatial", "tendon", *ACTUATORS}
_MOST_INCLUDED = 100

ContentOf = Callable[[Path], bytes | None]
"""The content of a file; None where there is none."""
Class = dict[str, dict[str, str]]
"""Element → attribute → value."""


def whole_tree(content: bytes, path: Path, faults: Faults, content_of: ContentOf) -> etree._Element:
    """Return the root of an MJCF file: includes and defaults are resolved into elements and attributes.

    Args:
        content: Of the file.
        path: Of the file.
        faults: Take what is wrong.
        content_of: Reads included files.

    Raises:
        ModelError: If the file, or one that it includes, is no XML, or is not to be read at all.
    """
    root = parse(content, path, ("mujoco",))
    _include(root, path.parent.resolve(), {path.resolve()}, faults, content_of)
    classes = {"main": Class()}
    for section in list(root):
        if tag(section) == "default":
            _read_class(section, classes, section.get("class", "main"), {}, faults)
            root.remove(section)
    _write_out(root, "main", classes, faults)
    return root


def _include(root: etree._Element, folder: Path, seen: set[Path], faults: Faults, content_of: ContentOf) -> None:
    """Insert the elements of included files; no file twice, and none outside the folder."""
    while (node := root.find(".//include")) is not None:
        parent = node.getparent()
        assert parent is not None
        name, place = node.get("file", ""), parent.index(node)
        found = _included(name, node, folder, seen, faults, content_of)
        parent.remove(node)
        for offset, child in enumerate(found):
            parent.insert(place + offset, child)


def _included(
    name: str, node: etree._Element, folder: Path, seen: set[Path], faults: Faults, content_of: ContentOf
) -> list[etree._Element]:
    """Return the elements of an included file; empty, with a fault, if it is outside, absent or included twice."""
    path = (folder / name).resolve() if name else folder
    if not name or Path(name).is_absolute() or not path.is_relative_to(folder) or ".." in Path(name).parts:
        faults.add(line_of(node), f"it includes {name!r}", "name a file in the folder of the robot's file")
    elif path in seen or len(seen) > _MOST_INCLUDED:
        faults.add(line_of(node), f"{name} is included twice", "include every file once")
    elif (content := content_of(path)) is None:
        faults.add(line_of(node), f"it includes {name}, which is not there", "correct the name")
    else:
        seen.add(path)
        try:
            root = parse(content, path, ("mujoco", "mujocoinclude"))
        except ModelError as error:
            faults.found += error.faults
            return []
        for element in root.iter():
            element.set(FILE, name)
        return list(root)
    return []


def _read_class(
    section: etree._Element, classes: dict[str, Class], name: str, inherited: Mapping[str, Mapping[str, str]],
    faults: Faults,
) -> None:  # fmt: skip
    """Read a class of defaults and its nested classes, which inherit its values."""
    if not name:
        faults.add(line_of(section), "a class of defaults has no name", 'add class="…"')
        return
    for key in {str(key) for key in section.attrib} - {"class", FILE}:
        faults.add(line_of(section), f"<default> has {key}, which is not known", "remove it")
    own = classes.setdefault(name, Class())
    for word, values in inherited.items():
        own.setdefault(word, {}).update(values)
    inner = []
    for child in section:
        if tag(child) == "default":
            inner.append(child)
            continue
        given = {str(key): str(value) for key, value in child.attrib.items() if key != FILE}
        own.setdefault(tag(child), {}).update(given)
    for child in inner:
        if child.get("class") in classes:
            faults.add(line_of(child), f"two classes of defaults are called {child.get('class')}", "rename one")
            continue
        _read_class(child, classes, child.get("class", ""), own, faults)


def _write_out(element: etree._Element, childclass: str, classes: Mapping[str, Class], faults: Faults) -> None:
    """Write the defaults into elements that lack these attributes."""
    for child in element:
        inside = child.get("childclass") or childclass
        name = child.get("class") or inside
        for asked in {inside, name} - classes.keys():
            faults.add(
                line_of(child), f"<{tag(child)}> is of the class {asked!r}, which does not exist", "correct the name"
            )
        if tag(child) in _HAVE_CLASS:
            for key, value in _defaults(tag(child), child, classes.get(name, {})):
                if child.get(key) is None:
                    child.set(key, value)
        _write_out(child, inside if inside in classes else childclass, classes, faults)


def _says_all(child: etree._Element) -> bool:
    """Return whether <general> itself says all that gains of another kind's defaults would be."""
    bias = child.get("biastype")
    whole = bias == "none" or (bias == "affine" and len(child.get("biasprm", "").split()) >= _BIAS)
    return whole and bool(child.get("gainprm", "").split())


def _defaults(name: str, child: etree._Element, of: Mapping[str, Mapping[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the defaults of one element; actuators share theirs, rows of equality take those of ``equality``."""
    parent = child.getparent()
    section = "" if parent is None else tag(parent)
    if section == "actuator":
        overruled = _GAINS if name == "general" and _says_all(child) else set()
        for word in (name, *(other for other in ACTUATORS if other != name)):
            for key, value in of.get(word, {}).items():
                # <general> takes the gains that another kind's defaults make; there it is refused by its attribute
                kept = key not in _OWN or (name == "general" and key != "inheritrange")
                if word == name or (kept and key not in _OVERWRITTEN.get(name, ()) and key not in overruled):
                    yield key, value
    elif section in {"equality", "tendon"}:
        yield from deepcopy(of.get(section, {})).items()
    elif name not in {"connect", "weld", "fixed", "spatial", "tendon"}:
        yield from of.get(name, {}).items()
