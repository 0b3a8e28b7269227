"""FMI 1: only its schema and its variables are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mb2fmu.audit.description.description_import import parse_root_element_safely
from mb2fmu.audit.description.description_records import DESCRIPTION
from mb2fmu.audit.description.schema_and_terminal_rules import find_xml_schema_violations
from mb2fmu.audit.rules_and_findings import RuleViolation


def find_fmi1_version(content: bytes) -> str:
    """Return ``1.0`` if a description is of that version; else empty."""
    try:
        root = parse_root_element_safely(content)
    except ValueError:
        return ""
    version = root.get("fmiVersion", "")
    return version if root.tag == "fmiModelDescription" and version.startswith("1.") else ""


def check_fmi1_description(content: bytes) -> Iterator[RuleViolation]:
    """Check schema, names and value references."""
    yield from find_xml_schema_violations(content, "fmi1/fmiModelDescription.xsd", DESCRIPTION)
    variables = list(parse_root_element_safely(content).iter("ScalarVariable"))
    for name, count in Counter(variable.get("name", "") for variable in variables).items():
        if count > 1 or not name:
            yield RuleViolation("variables.unique", f'the name "{name}" is given {count} times', DESCRIPTION)
    for variable in variables:
        reference = variable.get("valueReference", "")
        if not reference.isdigit() or not 0 <= int(reference) < 2**32:
            message = f"value reference {reference!r} is no unsigned 32-bit number"
            yield RuleViolation(
                "variables.reference", message, f'{DESCRIPTION}:{variable.sourceline}, "{variable.get("name")}"'
            )
