"""XML against the schemas of the standard (those that fmpy carries), and terminals against the variables."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lxml import etree

from mb2fmu.audit.description.archive_rules import FmuArchive
from mb2fmu.audit.description.description_import import parse_description
from mb2fmu.audit.description.description_records import DESCRIPTION, DescribedModel
from mb2fmu.audit.findings import Observation

TERMINALS = "terminalsAndIcons/terminalsAndIcons.xml"
MANIFEST = "fmi-ls-manifest.xml"
"""Of a layered standard, in its folder below ``extra``."""

_MANIFESTS = "http://fmi-standard.org/fmi-ls-manifest"
_OF_MANIFESTS = ("fmi-ls-name", "fmi-ls-version", "fmi-ls-description")


@cache
def _schema(path: str) -> etree.XMLSchema:
    """Return a schema of the standard, out of fmpy."""
    spec = find_spec("fmpy")
    assert spec is not None
    assert spec.origin is not None
    return etree.XMLSchema(etree.parse(str(Path(spec.origin).parent / "schema" / path)))


def find_schema_violations(content: bytes, path: str, member: str) -> Iterator[Observation]:
    """Yield violations of a schema that fmpy carries."""
    schema = _schema(path)
    if not schema.validate(parse_description(content)):
        for error in schema.error_log:
            yield Observation("xml.schema", str(error.message), f"{member}:{error.line}")


def check_schemas(archive: FmuArchive, description: DescribedModel) -> Iterator[Observation]:
    """Yield all rules of this file."""
    content = archive.contents[DESCRIPTION]
    yield from _encoding(content)
    yield from find_schema_violations(
        content, f"fmi{description.version}/fmi{description.version}ModelDescription.xsd", DESCRIPTION
    )
    terminals = archive.contents.get(TERMINALS)
    if terminals is not None:
        try:
            if description.version == 3:
                yield from find_schema_violations(terminals, "fmi3/fmi3TerminalsAndIcons.xsd", TERMINALS)
            yield from _terminals(terminals, description)
        except ValueError as error:
            yield Observation("xml.schema", str(error), TERMINALS)
    if description.version == 3:
        yield from _manifests(archive)
    build = archive.contents.get("sources/buildDescription.xml")
    if build is not None and description.version == 3:
        try:
            yield from find_schema_violations(build, "fmi3/fmi3BuildDescription.xsd", "sources/buildDescription.xml")
        except ValueError as error:
            yield Observation("xml.schema", str(error), "sources/buildDescription.xml")


def _manifests(archive: FmuArchive) -> Iterator[Observation]:
    """Yield manifests of layered standards that are no XML or do not say what they must of themselves."""
    for name in sorted(archive.names):
        if not (name.startswith("extra/") and name.rpartition("/")[2] == MANIFEST):
            continue
        try:
            root = parse_description(archive.contents[name])
        except ValueError as error:
            yield Observation("archive.manifest", str(error), name)
            continue
        lacking = [each for each in _OF_MANIFESTS if not root.get(f"{{{_MANIFESTS}}}{each}", "").strip()]
        if lacking:
            text = f"its root element has no {', '.join(lacking)} in the namespace {_MANIFESTS}"
            yield Observation("archive.manifest", text, f"{name}:{root.sourceline}")


def _encoding(content: bytes) -> Iterator[Observation]:
    """Yield a fault if the description is not in UTF-8."""
    encoding = (parse_description(content).getroottree().docinfo.encoding or "UTF-8").upper()
    if encoding not in {"UTF-8", "UTF8"}:
        yield Observation("xml.encoding", f"written in {encoding}", DESCRIPTION)


def _terminals(content: bytes, description: DescribedModel) -> Iterator[Observation]:
    """Yield terminals with a taken name, and members that are no variable or have a taken name."""
    names = {each.name for each in description.variables}
    names |= {alias.get("name", "") for each in description.variables for alias in each.aliases}
    root = parse_description(content)
    for element in root.iter("TerminalMemberVariable", "TerminalStreamMemberVariable"):
        for key in ("variableName", "inStreamVariableName", "outStreamVariableName"):
            name = element.get(key)
            if name is not None and name not in names:
                yield Observation(
                    "terminals.members", f'there is no variable "{name}"', f"{TERMINALS}:{element.sourceline}"
                )
    yield from _named_twice(root)


def _named_twice(root: etree._Element) -> Iterator[Observation]:
    """Yield terminals of one name, and members of one name where the rule goes by these (plug and bus)."""
    for parent in root.iter("Terminals", "Terminal"):
        children = [("Terminal", "name", "two terminals")]
        if parent.get("matchingRule") in {"plug", "bus"}:
            children.append(("TerminalMemberVariable", "memberName", "two members"))
        for tag, key, text in children:
            seen: set[str] = set()
            for element in parent.findall(tag):
                name = element.get(key, "")
                if not name and tag == "TerminalMemberVariable":
                    lacking = f"a member has no memberName, by which {parent.get('matchingRule')} matches"
                    yield Observation("terminals.members", lacking, f"{TERMINALS}:{element.sourceline}")
                elif name in seen:
                    yield Observation("terminals.members", f'{text} "{name}"', f"{TERMINALS}:{element.sourceline}")
                seen.add(name)
