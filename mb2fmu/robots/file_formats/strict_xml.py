"""Strict reading of robot files' XML: every fault has its line, and nothing is fetched from elsewhere.

Document types, entities and XInclude are refused: a robot needs none, and they are how a file reads other files.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from lxml import etree

from mb2fmu.errors import Fault, ModelError

MAX_FILE_BYTES = 32 * 2**20
"""Bytes of a file; the largest public descriptions have less than a tenth of it."""
_ELEMENT, _ATTRIBUTE = 0.74, 0.8
"""Likeness from which an unknown word is taken for a misspelled one; extensions of other tools are less alike."""
FILE_ATTRIBUTE = "{mb2fmu}file"
"""Attribute that names the file of an element that was included."""
_NO_DOCTYPE = "remove <!DOCTYPE …>"
_INCLUDE = "http://www.w3.org/2001/XInclude"
_UNDEFINED_PREFIX = etree.ErrorTypes.NS_ERR_UNDEFINED_NAMESPACE
_XACRO = re.compile(r"xacro", re.IGNORECASE)
_XACRO_REMEDY = (
    "pip install 'mb2fmu[robots]' (or xacrodoc), and name the file .xacro; "
    "or expand the macros: xacro robot.xacro > robot.urdf"
)


class XmlSourceLine(int):
    """Number of a line, and its file if that is an included one."""

    file: str = ""


class XmlFaultCollector:
    """Collects the faults of one file.

    Args:
        file: Its name, for messages.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.faults: list[Fault] = []
        self.notes: dict[str, None] = {}
        self.misspelled: set[tuple[int, str, str]] = set()
        """Line, element and right name of attributes with a fault already: they are not missing as well."""

    def add(self, line: int, what: str, remedy: str = "") -> None:
        """Add a fault at a line."""
        file = getattr(line, "file", "") or self.file
        self.faults.append(Fault(what, f"{file}:{line}" if line else file, remedy))

    def note(self, text: str) -> None:
        """Add a note on what is left out or assumed; each sentence once."""
        self.notes[text] = None

    def raise_collected(self) -> None:
        """Raise a ``ModelError`` with all faults, if there are any, in the order of the file."""
        if self.faults:
            order = {
                where: int(where.rpartition(":")[2] or 0) for where in {f.where for f in self.faults if ":" in f.where}
            }
            ordered = sorted(dict.fromkeys(self.faults), key=lambda fault: order.get(fault.where, 0))
            raise ModelError(f"the robot cannot be read from {self.file}:", ordered)


def parse_xml(content: bytes, path: Path, expected: Collection[str]) -> etree._Element:
    """Return the root element of a file.

    Args:
        content: Of the file.
        path: Of the file, for messages.
        expected: What the root may be called.

    Raises:
        ModelError: If it is no XML, too large, or uses what a robot file has no business with.
    """
    headline = f"the robot cannot be read from {path.name}:"
    if len(content) > MAX_FILE_BYTES:
        what = f"it has {len(content) / 2**20:.0f} MB, more than {MAX_FILE_BYTES / 2**20:.0f} MB"
        raise ModelError(headline, [Fault(what, path.name, "a robot's geometry belongs into mesh files")])
    parser = _make_parser()
    try:
        root = etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        if {entry.type for entry in parser.error_log} == {_UNDEFINED_PREFIX}:
            return _check_root(_with_prefixes_kept(content), path, expected)
        where = f"{path.name}:{error.lineno or 0}"
        if b"<!DOCTYPE" in content or b"<!ENTITY" in content:
            fault = Fault("it has a document type, by which a file can read other files, or swell", where, _NO_DOCTYPE)
        elif error.code == etree.ErrorTypes.ERR_RESOURCE_LIMIT:
            fault = Fault(
                "its elements are nested too deep (more than 256), or a text has more than 10 MB",
                where,
                "write it flat",
            )
        else:
            fault = Fault(f"it is no XML: {error.msg}", where, "correct it there")
        raise ModelError(headline, [fault]) from None
    return _check_root(root, path, expected)


def _make_parser(*, recover: bool = False) -> etree.XMLParser:
    """Return a parser that fetches nothing; ``recover``: it goes on behind faults."""
    return etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
        recover=recover,
    )


def _with_prefixes_kept(content: bytes) -> etree._Element:
    """Return the root of a file whose only fault is that prefixes such as ``drake:`` are declared nowhere.

    Tools that know nothing of namespaces take such files; a prefix becomes the namespace, ``xi`` that of XInclude.
    """
    root = etree.fromstring(content, _make_parser(recover=True))
    for element in root.iter(etree.Element):
        prefix, colon, name = str(element.tag).partition(":")
        if colon and not prefix.startswith("{"):
            element.tag = f"{{{_INCLUDE if prefix == 'xi' else prefix}}}{name}"
        for key, value in [(str(key), str(value)) for key, value in element.attrib.items()]:
            prefix, colon, name = key.partition(":")
            if colon and not prefix.startswith("{"):
                del element.attrib[key]
                element.set(f"{{{prefix}}}{name}", value)
    return root


def _check_root(root: etree._Element, path: Path, expected: Collection[str]) -> etree._Element:
    """Return the root; raise if it is another one, or if something has no business in a robot's file."""
    headline = f"the robot cannot be read from {path.name}:"
    faults = XmlFaultCollector(path.name)
    if root.getroottree().docinfo.doctype:
        faults.add(1, "it has a document type, by which a file can read other files, or swell", _NO_DOCTYPE)
    for element in root.iter():
        _refuse_foreign(element, faults)
    faults.raise_collected()
    if root.tag not in expected:
        what = f"its root element is <{local_tag_name(root)}>"
        remedy = f"a robot file has <{'> or <'.join(expected)}> there"
        raise ModelError(headline, [Fault(what, f"{path.name}:{root.sourceline}", remedy)])
    return root


def _refuse_foreign(element: etree._Element, faults: XmlFaultCollector) -> None:
    """Add a fault for entities, XInclude and macros, which would have to be expanded first."""
    name = element.tag if isinstance(element.tag, str) else ""
    line = element.sourceline or 0
    if not name:  # an entity
        faults.add(line, "it uses an entity", "write out what it stands for")
    elif name.startswith(f"{{{_INCLUDE}}}"):
        faults.add(line, "it includes another file by XInclude", "put the parts into one file")
    elif name.startswith("{") and _XACRO.search(name.partition("}")[0]):
        faults.add(line, f"<xacro:{local_tag_name(element)}> is a macro", _XACRO_REMEDY)
    elif "${" in "".join(str(value) for value in element.attrib.values()):
        faults.add(line, f"an attribute of <{local_tag_name(element)}> has ${{…}} in it", _XACRO_REMEDY)


def local_tag_name(element: etree._Element) -> str:
    """Return an element's name without its namespace."""
    return str(element.tag).rpartition("}")[2]


def find_xml_element_line(element: etree._Element) -> XmlSourceLine:
    """Return the line that an element begins in."""
    line = XmlSourceLine(element.sourceline or 0)
    line.file = element.get(FILE_ATTRIBUTE) or ""
    return line


class XmlElement:
    """An element whose attributes are read by name and kind.

    Args:
        node: The element.
        faults: Take what is wrong.
    """

    def __init__(self, node: etree._Element, faults: XmlFaultCollector) -> None:
        self.node = node
        self.faults = faults
        self.line = find_xml_element_line(node)
        self.name = local_tag_name(node)

    def attribute(self, name: str, *, required: bool = False) -> str:
        """Return an attribute's text; empty where there is none."""
        value = self.node.get(name)
        if value is None and required:
            if (self.line, self.name, name) in self.faults.misspelled:
                return ""
            self.faults.add(self.line, f"<{self.name}{self._format_name(name)}> has no {name}", f'add {name}="…"')
        elif required and not str(value).strip():
            self.faults.add(
                self.line, f"{name} of <{self.name}{self._format_name(name)}> is empty", f'write {name}="…"'
            )
        return "" if value is None else value.strip()

    def number(self, name: str, default: float = 0.0, *, required: bool = False, infinite: bool = False) -> float:
        """Return an attribute that is one number."""
        text = self.attribute(name, required=required)
        found = self.read_numbers(text, name, 1, infinite=infinite) if text else None
        return default if found is None else found[0]

    def vector(self, name: str, default: tuple[float, ...], *, required: bool = False) -> tuple[float, ...]:
        """Return an attribute that is as many numbers as ``default``."""
        text = self.attribute(name, required=required)
        found = self.read_numbers(text, name, len(default)) if text else None
        return default if found is None else found

    def read_numbers(self, text: str, name: str, count: int, *, infinite: bool = False) -> tuple[float, ...] | None:
        """Return so many numbers from a text; None, and a fault, if it is anything else."""
        try:
            numbers = tuple(float(part) for part in text.split()) if "_" not in text else ()  # 1_000 is Python's
        except ValueError:
            numbers = ()
        wanted = "a number" if count == 1 else f"{count} numbers"
        if len(numbers) != count:
            self.faults.add(self.line, f'{name} of <{self.name}> is "{text}"', f"give {wanted}")
            return None
        if any(math.isnan(x) or (math.isinf(x) and not infinite) for x in numbers):
            self.faults.add(self.line, f'{name} of <{self.name}> is "{text}"', f"give {wanted}, finite")
            return None
        return numbers

    def children(self, name: str) -> list[XmlElement]:
        """Return elements of a name right below."""
        return [XmlElement(child, self.faults) for child in self.node if local_tag_name(child) == name]

    def child(self, name: str, *, required: bool = False) -> XmlElement | None:
        """Return the one element of a name right below; the first, and a fault, where there are several."""
        found = self.children(name)
        if len(found) > 1:
            self.faults.add(found[1].line, f"<{self.name}> has {len(found)} <{name}>", "leave one")
        if not found and required:
            self.faults.add(self.line, f"<{self.name}{self._format_name()}> has no <{name}>", f"add <{name} …/>")
        return found[0] if found else None

    def _format_name(self, requested: str = "") -> str:
        """Return the element's name attribute for a message; empty without one, or while that is being read."""
        own = self.node.get("name") if requested != "name" else None
        return f' name="{own}"' if own else ""

    def list_elements(self) -> Iterator[XmlElement]:
        """Yield all elements right below."""
        for child in self.node:
            yield XmlElement(child, self.faults)

    def check_allowed(
        self,
        children: Collection[str],
        left_out: Collection[str] = (),
        attributes: Collection[str] = (),
        *,
        moves_nothing: bool = False,
    ) -> None:
        """Declare the allowed words; similar ones are faults, all others are ignored with a note.

        Args:
            children: Elements.
            left_out: Elements that do not move the robot.
            attributes: Attributes; none: they are not checked.
            moves_nothing: Whether no equation of motion depends on the attributes: then similar ones are notes, too.
        """
        for child in self.node:
            name = local_tag_name(child)
            if name in left_out:
                self.faults.note(f"<{name}> in <{self.name}> is left out: it does not move the robot")
            elif name not in children:
                near = difflib.get_close_matches(name, children, n=1, cutoff=_ELEMENT)
                if near:
                    what = f"<{self.name}{self._format_name()}> cannot have <{name}>"
                    self.faults.add(find_xml_element_line(child), what, f"did you mean <{near[0]}>?")
                else:
                    self.faults.note(f"<{name}> in <{self.name}> is not known and left out")
        if attributes:
            for key in self.node.attrib:
                name = str(key).rpartition("}")[2]
                if name not in attributes and "}" not in str(key):
                    absent = [word for word in attributes if word not in self.node.attrib]
                    near = [word for word in absent if sorted(word) == sorted(name)]  # xzy: too short for likeness
                    near += difflib.get_close_matches(name, attributes, n=1, cutoff=_ATTRIBUTE)
                    if near and moves_nothing:
                        what = f"the attribute {name} of <{self.name}> in line {self.line} is left out"
                        self.faults.note(f"{what}: did you mean {near[0]}? No mass moves with it")
                    elif near:
                        what = f"<{self.name}> cannot have the attribute {name}"
                        self.faults.add(self.line, what, f"did you mean {near[0]}?")
                        self.faults.misspelled.add((self.line, self.name, near[0]))
                    else:
                        self.faults.note(f"the attribute {name} of <{self.name}> is not known and left out")
