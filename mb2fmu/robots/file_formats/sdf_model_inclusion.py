"""Put the models that an SDF file includes in place of ``<include>``, as Gazebo does, and nothing is fetched.

``<name>``, ``<pose>``, ``<placement_frame>`` and ``<static>`` of the include have precedence over those of the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from lxml import etree

from mb2fmu.errors import ModelError
from mb2fmu.robots.file_formats.mesh_file_search import iterate_package_folders, iterate_resource_folders
from mb2fmu.robots.file_formats.sdf_nested_models import MERGE_ATTRIBUTE
from mb2fmu.robots.file_formats.strict_xml import (
    FILE_ATTRIBUTE,
    XmlElement,
    XmlFaultCollector,
    find_xml_element_line,
    local_tag_name,
    parse_xml,
)

_OLDEST, _OWN_AXES, _NEWEST = (1, 2), (1, 5), (1, 12)
"""Versions of SDF: the first with <pose>; from which on axes are along their joint's frame; today's."""
_MAX_INCLUDED_FILES = 100
_PLACES_OF_INCLUDES = {"sdf", "world", "model"}
_NOTHING_THAT_MOVES = {"light", "actor"}


@dataclass(slots=True)
class SdfModelInserter:
    """Parses an SDF file and the files that it includes.

    Attributes:
        faults: Take what is wrong.
        content_of: Returns the content of a file; None where there is none.
        packages: Package or Gazebo model → its folder, absolute.
    """

    faults: XmlFaultCollector
    content_of: Callable[[Path], bytes | None]
    packages: Mapping[str, str]
    _count: int = 0

    def parse(self, content: bytes, path: Path, including: tuple[Path, ...] = ()) -> etree._Element:
        """Return the root of a file; no ``<include>`` is left in it, and every axis says what it is along.

        Args:
            content: Of the file.
            path: Of the file.
            including: Files that include this one, the outermost first.

        Raises:
            ModelError: If the file is no XML, or is not to be read at all.
        """
        root = parse_xml(content, path, ("sdf",))
        if including:
            for element in root.iter():
                element.set(FILE_ATTRIBUTE, f"{path.parent.name}/{path.name}")
        if self._read_version(root) < _OWN_AXES:
            for axis in root.iter("axis", "axis2"):
                if axis.find("use_parent_model_frame") is None:
                    etree.SubElement(axis, "use_parent_model_frame").text = "true"
        for node in [*root.iter("include")]:
            parent = node.getparent()
            if parent is None or parent.tag not in _PLACES_OF_INCLUDES:
                continue
            model = self._read_included_model(XmlElement(node, self.faults), (*including, path.absolute()))
            if model is None:
                parent.remove(node)
            else:
                parent.replace(node, model)
        return root

    def _read_version(self, root: etree._Element) -> tuple[int, ...]:
        """Return the version of the format that the file is written in; the newest if it does not say."""
        text, line = root.get("version", "").strip(), find_xml_element_line(root)
        if not text:
            self.faults.note("the file does not say its version of SDF, and is read as the newest")
            return _NEWEST
        if not all(part.isdecimal() for part in text.split(".")):
            self.faults.add(line, f'version of <sdf> is "{text}"', 'write version="1.9" or what it is')
            return _NEWEST
        version = tuple(int(part) for part in text.split("."))
        if version < _OLDEST:
            what = f"version {text} of SDF, in which poses were written in another way, is not honoured"
            self.faults.add(line, what, "write it in a newer one: gz sdf --print FILE")
        return version

    def _read_included_model(self, include: XmlElement, including: tuple[Path, ...]) -> etree._Element | None:
        """Return the model that an ``<include>`` stands for; None, with a fault or a note, if there is none."""
        include.check_allowed({"uri", "name", "pose", "placement_frame", "static", "params"}, {"plugin"})
        if include.child("params") is not None:
            self.faults.add(include.line, "<params> of <include> is not honoured", "change the included file")
        if include.child("placement_frame") is not None:
            include.child("pose", required=True)
        element = include.child("uri", required=True)
        uri = "" if element is None else _text_of(element.node)
        found = self._find_file(uri, include, including[-1]) if uri else None
        if found is None:
            return None
        path, content, folder = found
        if path in including or self._count >= _MAX_INCLUDED_FILES:
            what = (
                f"{uri} includes itself" if path in including else f"more than {_MAX_INCLUDED_FILES} files are included"
            )
            self.faults.add(include.line, what, "write the model out")
            return None
        self._count += 1
        try:
            root = self.parse(content, path, including)
        except ModelError as error:
            self.faults.faults += error.faults
            return None
        models = root.findall("model")
        if len(models) != 1:
            if not models and any(local_tag_name(child) in _NOTHING_THAT_MOVES for child in root):
                self.faults.note(f"{uri} is left out: it does not move the robot")
            else:
                self.faults.add(include.line, f"{uri} has {len(models)} models", "include a file with one")
            return None
        _place_relative_names(models[0], folder)
        _overwrite_from_include(models[0], include)
        if include.attribute("merge") in {"true", "1"}:
            models[0].set(MERGE_ATTRIBUTE, "true")
            parent = include.node.getparent()
            if parent is None or parent.tag != "model":
                self.faults.add(include.line, "merge of an <include> in a world is not honoured", "remove merge")
        return models[0]

    def _find_file(self, uri: str, include: XmlElement, source: Path) -> tuple[Path, bytes, str] | None:
        """Return path, content and folder (as a URI) of the file that a URI means; None, with a fault, if none."""
        scheme, sign, name = uri.partition("://")
        name = (name if sign else uri).rstrip("/")
        if sign and scheme not in {"model", "package", "file"}:
            self.faults.add(include.line, f"{uri} is not on this computer, and nothing is fetched", "write its folder")
            return None
        if not name or ".." in PurePosixPath(name).parts:
            self.faults.add(include.line, f"{uri} names no model, or leaves its folder by ..", "write model://FOLDER")
            return None
        prefix = f"{scheme}://" if sign else ""
        for candidate in _list_candidates(scheme if sign else "", name, source, self.packages):
            if (content := self.content_of(candidate)) is not None:
                return candidate.absolute(), content, prefix + str(PurePosixPath(name).parent)
            path = candidate / self._find_model_name(candidate)
            if (content := self.content_of(path)) is not None:
                return path.absolute(), content, prefix + name
        remedy = (
            "put its folder beside the file, name it by --package NAME=DIR, or set GZ_SIM_RESOURCE_PATH or SDF_PATH"
        )
        self.faults.add(include.line, f"the file includes {uri}, which is not there", remedy)
        return None

    def _find_model_name(self, folder: Path) -> str:
        """Return the file of a model's folder: the newest version that ``model.config`` names, else ``model.sdf``."""
        content = self.content_of(folder / "model.config")
        if content is None:
            return "model.sdf"
        try:
            names = parse_xml(content, folder / "model.config", ("model",)).findall("sdf")
        except ModelError as error:
            self.faults.faults += error.faults
            return "model.sdf"
        versions = {_parse_version(each.get("version", "")): _text_of(each) for each in names}
        known = [version for version in versions if version <= _NEWEST]
        return versions[max(known)] if known else "model.sdf"


def _list_candidates(scheme: str, name: str, source: Path, packages: Mapping[str, str]) -> Iterator[Path]:
    """Yield what a URI may mean, the surest first."""
    if scheme in {"model", "package"}:
        package, _, inside = name.partition("/")
        yield from (folder / inside for folder in iterate_package_folders(package, source, packages))
        return
    yield source.parent / name
    if not scheme:
        yield from (folder / name for folder in iterate_resource_folders())


def _place_relative_names(model: etree._Element, folder: str) -> None:
    """Name the meshes of an included model from the folder of the file that includes it."""
    for element in model.iter("uri"):
        name = _text_of(element)
        if "://" not in name and not name.startswith("/"):
            element.text = f"{folder}/{name}"


def _overwrite_from_include(model: etree._Element, include: XmlElement) -> None:
    """Let name, pose, placement frame and ``static`` of an ``<include>`` replace those of its model."""
    for tag, attribute in (("name", "name"), ("placement_frame", "placement_frame")):
        if (child := include.child(tag)) is not None:
            model.set(attribute, _text_of(child.node))
    for tag in ("pose", "static"):
        if (child := include.child(tag)) is not None:
            for own in model.findall(tag):
                model.remove(own)
            model.append(child.node)


def _text_of(node: etree._Element) -> str:
    """Return an element's text, stripped."""
    return (node.text or "").strip()


def _parse_version(text: str) -> tuple[int, ...]:
    """Return a version as numbers; 0 where it is none."""
    parts = text.strip().split(".")
    return tuple(int(part) for part in parts) if all(part.isdecimal() for part in parts) else (0,)
