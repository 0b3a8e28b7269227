"""XML against the schemas of the standard (those that fmpy carries), and terminals against the variables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lxml import etree

from mb2fmu.audit.description.archive_rules import FmuArchive
from mb2fmu.audit.description.description_import import parse_root_element_safely
from mb2fmu.audit.description.description_records import DESCRIPTION, TERMINALS, DescribedModel
from mb2fmu.audit.embedded_reference_run import read_embedded_reference_run
from mb2fmu.audit.rules_and_findings import RuleViolation

MANIFEST_NAME = "fmi-ls-manifest.xml"
"""Of a layered standard, in its folder below ``extra``."""

_MANIFEST_NAMESPACE = "http://fmi-standard.org/fmi-ls-manifest"
_MANIFEST_ATTRIBUTES = ("fmi-ls-name", "fmi-ls-version", "fmi-ls-description")
_REFERENCES_TAG = "fmiReferences"
_FIXED_REFERENCE_ATTRIBUTES = {
    "fmi-ls-name": "org.fmi-standard.fmi-ls-ref",
    "fmi-ls-description": "Layered Standard providing information on related files included in an FMU.",
}
_REFERENCE_ROLE = re.compile(
    r"document|requirement|specification|model|parameter|system|testcase|"
    r"experiment(/(smoke-test|validation|uncertainty-analysis))?|result|method|rationale|report|request|delivery|"
    r"configuration|signature|serialized-state(/.*)?|meta-data|other"
)
"""Of a related file, as the schema of fmi-ls-ref 1.0.0-beta.1 has it."""


@cache
def _load_schema(path: str) -> etree.XMLSchema:
    """Return a schema of the standard, out of fmpy."""
    spec = find_spec("fmpy")
    assert spec is not None
    assert spec.origin is not None
    return etree.XMLSchema(etree.parse(str(Path(spec.origin).parent / "schema" / path)))


def find_xml_schema_violations(content: bytes, path: str, member: str) -> Iterator[RuleViolation]:
    """Yield violations of a schema that fmpy carries."""
    schema = _load_schema(path)
    if not schema.validate(parse_root_element_safely(content)):
        for error in schema.error_log:
            yield RuleViolation("xml.schema", str(error.message), f"{member}:{error.line}")


def check_xml_schemas(archive: FmuArchive, description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield violations of the XML schemas, and terminals that do not fit the variables."""
    content = archive.contents[DESCRIPTION]
    yield from _check_encoding(content)
    yield from find_xml_schema_violations(
        content, f"fmi{description.version}/fmi{description.version}ModelDescription.xsd", DESCRIPTION
    )
    terminals = archive.contents.get(TERMINALS)
    if terminals is not None:
        try:
            if description.version == 3:
                yield from find_xml_schema_violations(terminals, "fmi3/fmi3TerminalsAndIcons.xsd", TERMINALS)
            yield from _check_terminals(terminals, description)
        except ValueError as error:
            yield RuleViolation("xml.schema", str(error), TERMINALS)
    yield from _check_manifests(archive)
    build_description = archive.contents.get("sources/buildDescription.xml")
    if build_description is not None and description.version == 3:
        try:
            yield from find_xml_schema_violations(
                build_description, "fmi3/fmi3BuildDescription.xsd", "sources/buildDescription.xml"
            )
        except ValueError as error:
            yield RuleViolation("xml.schema", str(error), "sources/buildDescription.xml")


def _check_manifests(archive: FmuArchive) -> Iterator[RuleViolation]:
    """Yield manifests of layered standards that are no XML or lack required attributes."""
    for name in sorted(archive.names):
        if not (name.startswith("extra/") and name.rpartition("/")[2] == MANIFEST_NAME):
            continue
        try:
            root = parse_root_element_safely(archive.contents[name])
        except ValueError as error:
            yield RuleViolation("archive.manifest", str(error), name)
            continue
        missing = [
            attribute
            for attribute in _MANIFEST_ATTRIBUTES
            if not root.get(f"{{{_MANIFEST_NAMESPACE}}}{attribute}", "").strip()
        ]
        if missing:
            message = f"its root element has no {', '.join(missing)} in the namespace {_MANIFEST_NAMESPACE}"
            yield RuleViolation("archive.manifest", message, f"{name}:{root.sourceline}")
        if root.tag == _REFERENCES_TAG:
            yield from _check_reference_manifest(name, root)
            for fault in read_embedded_reference_run(archive.contents)[1]:
                yield RuleViolation("archive.manifest", fault.what, fault.where)


def _check_reference_manifest(name: str, root: etree._Element) -> Iterator[RuleViolation]:
    """Yield what the schema of fmi-ls-ref 1.0.0-beta.1 forbids: fixed texts, and roles that it does not know."""
    for attribute, fixed_value in _FIXED_REFERENCE_ATTRIBUTES.items():
        value = root.get(f"{{{_MANIFEST_NAMESPACE}}}{attribute}", "").strip()
        if value and value != fixed_value:
            message = f'{attribute} is "{value}", and the schema of fmi-ls-ref fixes it to "{fixed_value}"'
            yield RuleViolation("archive.manifest", message, f"{name}:{root.sourceline}")
    for related in root.iter("Related"):
        role = related.get("role", "")
        if not _REFERENCE_ROLE.fullmatch(role):
            message = f'the role "{role}" is none of fmi-ls-ref'
            yield RuleViolation("archive.manifest", message, f"{name}:{related.sourceline}")


def _check_encoding(content: bytes) -> Iterator[RuleViolation]:
    """Yield a fault if the description is not in UTF-8."""
    encoding = (parse_root_element_safely(content).getroottree().docinfo.encoding or "UTF-8").upper()
    if encoding not in {"UTF-8", "UTF8"}:
        yield RuleViolation("xml.encoding", f"written in {encoding}", DESCRIPTION)


def _check_terminals(content: bytes, description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield terminals with a taken name, and members that are no variable or have a taken name."""
    names = {variable.name for variable in description.variables}
    names |= {alias.get("name", "") for variable in description.variables for alias in variable.aliases}
    root = parse_root_element_safely(content)
    for element in root.iter("TerminalMemberVariable", "TerminalStreamMemberVariable"):
        for attribute in ("variableName", "inStreamVariableName", "outStreamVariableName"):
            name = element.get(attribute)
            if name is not None and name not in names:
                yield RuleViolation(
                    "terminals.members", f'there is no variable "{name}"', f"{TERMINALS}:{element.sourceline}"
                )
    yield from _find_duplicate_terminals(root)


def _find_duplicate_terminals(root: etree._Element) -> Iterator[RuleViolation]:
    """Yield terminals of one name, and members of one name where the rule goes by these (plug and bus)."""
    for parent in root.iter("Terminals", "Terminal"):
        children = [("Terminal", "name", "two terminals")]
        if parent.get("matchingRule") in {"plug", "bus"}:
            children.append(("TerminalMemberVariable", "memberName", "two members"))
        for tag, attribute, subject in children:
            names_seen: set[str] = set()
            for element in parent.findall(tag):
                name = element.get(attribute, "")
                if not name and tag == "TerminalMemberVariable":
                    message = f"a member has no memberName, by which {parent.get('matchingRule')} matches"
                    yield RuleViolation("terminals.members", message, f"{TERMINALS}:{element.sourceline}")
                elif name in names_seen:
                    yield RuleViolation("terminals.members", f'{subject} "{name}"', f"{TERMINALS}:{element.sourceline}")
                names_seen.add(name)
