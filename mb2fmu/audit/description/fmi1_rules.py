"""FMI 1: only its schema and its variables are judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from mb2fmu.audit.description.description_import import parse
from mb2fmu.audit.description.description_records import DESCRIPTION
from mb2fmu.audit.description.schema_validation import violations
from mb2fmu.audit.findings import Observation


def version(content: bytes) -> str:
    """Return ``1.0`` if a description is of that version; else empty."""
    try:
        root = parse(content)
    except ValueError:
        return ""
    said = root.get("fmiVersion", "")
    return said if root.tag == "fmiModelDescription" and said.startswith("1.") else ""


def check(content: bytes) -> Iterator[Observation]:
    """Check schema, names and value references."""
    yield from violations(content, "fmi1/fmiModelDescription.xsd", DESCRIPTION)
    variables = list(parse(content).iter("ScalarVariable"))
    for name, count in Counter(each.get("name", "") for each in variables).items():
        if count > 1 or not name:
            yield Observation("variables.unique", f'the name "{name}" is given {count} times', DESCRIPTION)
    for each in variables:
        written = each.get("valueReference", "")
        if not written.isdigit() or not 0 <= int(written) < 2**32:
            text = f"value reference {written!r} is no unsigned 32-bit number"
            yield Observation("variables.reference", text, f'{DESCRIPTION}:{each.sourceline}, "{each.get("name")}"')
