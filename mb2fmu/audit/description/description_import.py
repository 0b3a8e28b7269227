"""``read_description``: make records of a ``modelDescription.xml``; faults are kept, not judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lxml import etree

from mb2fmu.audit.description.description_records import (
    FLOATS,
    KINDS,
    ArrayDimension,
    DescribedModel,
    DescribedVariable,
    StructureUnknown,
    TypeDefinition,
    UnitDefinition,
)

Element = etree._Element  # noqa: SLF001  lxml has no public name for it
LISTS3 = {
    "Output": "Outputs",
    "ContinuousStateDerivative": "Derivatives",
    "InitialUnknown": "InitialUnknowns",
    "EventIndicator": "EventIndicators",
    "ClockedState": "ClockedStates",
}


def read_description(content: bytes) -> DescribedModel:
    """Read a description of FMI 2 or 3.

    Raises:
        ValueError: If it is no XML, or of another version: then there is nothing to judge.
    """
    root = parse_description(content)
    version = root.get("fmiVersion", "")
    if root.tag != "fmiModelDescription" or not version.startswith(("2.", "3.")):
        raise ValueError(f'<{root.tag!s} fmiVersion="{version}"> is neither FMI 2 nor 3: it is not judged')
    return _description2(root) if version.startswith("2.") else _description3(root)


def parse_description(content: bytes) -> Element:
    """Return the root element; nothing outside of the file is loaded, and entities that multiply are an error.

    Raises:
        ValueError: If it is no XML.
    """
    parser = etree.XMLParser(resolve_entities="internal", no_network=True, remove_comments=True)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from error


def _attributes(element: Element | None) -> dict[str, str]:
    """Return an element's attributes as text; empty without an element."""
    return {} if element is None else {str(key): str(value) for key, value in element.attrib.items()}


def _children(parent: Element | None, *names: str) -> Iterator[Element]:
    """Yield child elements, only those with these names if any are given; comments are skipped."""
    if parent is not None:
        for child in parent:
            if isinstance(child.tag, str) and (not names or child.tag in names):
                yield child


def _line(element: Element) -> int:
    """Return the line of an element in the file, 0 if unknown."""
    return int(element.sourceline or 0)


def _integer(text: str | None) -> int | None:
    """Return text as an integer; None if it is none."""
    try:
        return int(text or "")
    except ValueError:
        return None


def default_of_initial(causality: str, variability: str) -> str:
    """Return the default of ``initial`` (2.0.5: 2.2.7, 3.0.2: 2.4.7.5)."""
    if causality in {"parameter", "structuralParameter"} or variability == "constant":
        return "exact"
    return {"independent": "", "input": ""}.get(causality, "calculated")


def _resolved(attributes: Mapping[str, str], kind: str) -> tuple[str, str, str]:
    """Return causality, variability and initial with the standard's defaults put in."""
    causality = attributes.get("causality", "local")
    variability = attributes.get("variability", "continuous" if kind in FLOATS else "discrete")
    return causality, variability, attributes.get("initial", default_of_initial(causality, variability))


def _units(root: Element) -> tuple[UnitDefinition, ...]:
    """Return the unit definitions, with display units in order, doubles included."""
    found = []
    for element in _children(root.find("UnitDefinitions"), "Unit"):
        base = element.find("BaseUnit")
        display = list(_children(element, "DisplayUnit"))
        found.append(
            UnitDefinition(
                element.get("name", ""),
                None if base is None else _attributes(base),
                {each.get("name", ""): _attributes(each) for each in display},
                tuple(each.get("name", "") for each in display),
                _line(element),
            )
        )
    return tuple(found)


def _sources(root: Element) -> dict[str, tuple[str, ...]]:
    """Return the source files that each interface type lists (FMI 2)."""
    return {
        kind: tuple(each.get("name", "") for each in root.findall(f"{kind}/SourceFiles/File"))
        for kind in KINDS
        if root.find(kind) is not None
    }


def _general(root: Element) -> dict[str, object]:
    """Return what both versions write alike: attributes, interfaces, units, log categories, experiment."""
    return {
        "attributes": _attributes(root),
        "interfaces": {kind: _attributes(root.find(kind)) for kind in KINDS if root.find(kind) is not None},
        "sources": _sources(root),
        "units": _units(root),
        "categories": tuple(each.get("name", "") for each in _children(root.find("LogCategories"), "Category")),
        "experiment": _attributes(root.find("DefaultExperiment")),
    }


def _assembled(
    root: Element, version: int, types: tuple[TypeDefinition, ...], variables: tuple[DescribedVariable, ...],
    entries: list[tuple[str, Element]], lists: frozenset[str],
) -> DescribedModel:  # fmt: skip
    """Return the description with the entries of its model structure resolved to variables."""
    general = _general(root)
    whole = DescribedModel(version, types=types, variables=variables, unknowns=(), lists=lists, **general)  # type: ignore[arg-type]
    key = "index" if version == 2 else "valueReference"
    unknowns = []
    for name, element in entries:
        listed = element.get("dependencies")
        dependencies = None if listed is None else tuple(listed.split())
        kinds = element.get("dependenciesKind")
        unknowns.append(
            StructureUnknown(
                name,
                element.get(key, ""),
                whole.target(element.get(key)),
                dependencies,
                tuple(whole.target(each) for each in dependencies or ()),
                None if kinds is None else tuple(kinds.split()),
                _line(element),
            )
        )
    return DescribedModel(
        version,
        types=types,
        variables=variables,
        unknowns=tuple(unknowns),
        lists=lists,
        **general,  # type: ignore[arg-type]
    )


def _description2(root: Element) -> DescribedModel:
    """Read a description of FMI 2."""
    types = []
    for element in _children(root.find("TypeDefinitions"), "SimpleType"):
        inner = next(_children(element, "Real", "Integer", "Boolean", "String", "Enumeration"), None)
        types.append(
            TypeDefinition(
                element.get("name", ""),
                "" if inner is None else str(inner.tag),
                _attributes(inner),
                tuple(_attributes(item) for item in _children(inner, "Item")),
                _line(element),
            )
        )
    declared = {each.name: each.attributes for each in types}
    variables = []
    for index, element in enumerate(_children(root.find("ModelVariables"), "ScalarVariable"), 1):
        inner = next(_children(element, "Real", "Integer", "Boolean", "String", "Enumeration"), None)
        kind = "" if inner is None else str(inner.tag)
        written = {**_attributes(element), **_attributes(inner)}
        start = written.get("start")
        variables.append(
            DescribedVariable(
                index,
                element.get("name", ""),
                kind,
                _integer(element.get("valueReference")),
                *_resolved(written, kind),
                start=None if start is None else (start,),
                written=written,
                declared=declared.get(written.get("declaredType", ""), {}),
                line=_line(element),
            )
        )
    structure = root.find("ModelStructure")
    entries = [
        (str(part.tag), unknown)
        for part in _children(structure, "Outputs", "Derivatives", "InitialUnknowns")
        for unknown in _children(part, "Unknown")
    ]
    lists = frozenset(str(part.tag) for part in _children(structure))
    return _assembled(root, 2, tuple(types), tuple(variables), entries, lists)


def _description3(root: Element) -> DescribedModel:
    """Read a description of FMI 3."""
    types = tuple(
        TypeDefinition(
            element.get("name", ""),
            str(element.tag).removesuffix("Type"),
            _attributes(element),
            tuple(_attributes(item) for item in _children(element, "Item")),
            _line(element),
        )
        for element in _children(root.find("TypeDefinitions"))
    )
    declared = {each.name: each.attributes for each in types}
    variables = []
    for index, element in enumerate(_children(root.find("ModelVariables")), 1):
        kind = str(element.tag)
        written = _attributes(element)
        variables.append(
            DescribedVariable(
                index,
                element.get("name", ""),
                kind,
                _integer(element.get("valueReference")),
                *_resolved(written, kind),
                start=_start3(element, kind),
                written=written,
                declared=declared.get(written.get("declaredType", ""), {}),
                dimensions=tuple(
                    ArrayDimension(each.get("start"), each.get("valueReference"))
                    for each in _children(element, "Dimension")
                ),
                aliases=tuple(_attributes(each) for each in _children(element, "Alias")),
                line=_line(element),
            )
        )
    entries = [(LISTS3[str(element.tag)], element) for element in _children(root.find("ModelStructure"), *LISTS3)]
    return _assembled(root, 3, types, tuple(variables), entries, frozenset(LISTS3.values()))


def _start3(element: Element, kind: str) -> tuple[str, ...] | None:
    """Return the start values of a variable, element by element; None without any."""
    if kind in {"String", "Binary"}:
        values = tuple(each.get("value", "") for each in _children(element, "Start"))
        return values or None
    start = element.get("start")
    return None if start is None else tuple(start.split())
