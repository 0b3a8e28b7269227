"""``parse_model_description``: make records of a ``modelDescription.xml``; faults are kept, not judged."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lxml import etree

from mb2fmu.audit.description.description_records import (
    FLOATS,
    INTERFACE_TYPES,
    ArrayDimension,
    DescribedModel,
    DescribedTerminalMember,
    DescribedType,
    DescribedUnit,
    DescribedUnknown,
    DescribedVariable,
)

Element = etree._Element  # noqa: SLF001  lxml has no public name for it
STRUCTURE_LISTS_FMI3 = {
    "Output": "Outputs",
    "ContinuousStateDerivative": "Derivatives",
    "InitialUnknown": "InitialUnknowns",
    "EventIndicator": "EventIndicators",
    "ClockedState": "ClockedStates",
}


class UnsupportedFmiVersionError(ValueError):
    """What was read describes no FMU of FMI 2 or 3; the text says what it is."""


def parse_model_description(content: bytes) -> DescribedModel:
    """Read a description of FMI 2 or 3.

    Raises:
        ValueError: If it is no XML.
        UnsupportedFmiVersionError: If it is of another version: then there is nothing to judge.
    """
    return read_model_description_records(parse_root_element_safely(content))


def read_model_description_records(root: Element) -> DescribedModel:
    """Return the records of a description's root element.

    Raises:
        UnsupportedFmiVersionError: If it is of another version.
    """
    version = root.get("fmiVersion", "")
    if root.tag != "fmiModelDescription":
        raise UnsupportedFmiVersionError(f"is a <{root.tag!s}>")
    if not version.startswith(("2.", "3.")):
        raise UnsupportedFmiVersionError(f"is FMI {version or 'of no version'}")
    if "-" in version:  # its C interface is not that of the release
        raise UnsupportedFmiVersionError(f"is FMI {version}, a draft")
    return _read_fmi2_description(root) if version.startswith("2.") else _read_fmi3_description(root)


def parse_root_element_safely(content: bytes) -> Element:
    """Return the root element; nothing outside of the file is loaded, and entities that multiply are an error.

    Raises:
        ValueError: If it is no XML.
    """
    parser = etree.XMLParser(resolve_entities="internal", no_network=True, remove_comments=True)
    try:
        return etree.fromstring(content, parser)
    except etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from error


def read_terminals(content: bytes) -> Mapping[str, tuple[DescribedTerminalMember, ...]]:
    """Return the members of each terminal of a ``terminalsAndIcons.xml``, by its name; none where it is no XML."""
    try:
        root = parse_root_element_safely(content)
    except ValueError:
        return {}  # the schema check reports it
    return {
        terminal.get("name", ""): tuple(
            DescribedTerminalMember(
                member.get("memberName", member.get("variableName", "")),
                member.get("variableName", ""),
                member.get("variableKind", "signal"),
            )
            for member in _children(terminal, "TerminalMemberVariable")
        )
        for terminal in _children(root.find("Terminals"), "Terminal")
    }


def _attributes(element: Element | None) -> dict[str, str]:
    """Return an element's attributes as text; empty without an element."""
    return {} if element is None else {str(key): str(value) for key, value in element.attrib.items()}


def _children(parent: Element | None, *names: str) -> Iterator[Element]:
    """Yield child elements, only those with these names if any are given; comments are skipped."""
    if parent is not None:
        for child in parent:
            if isinstance(child.tag, str) and (not names or child.tag in names):
                yield child


def _line_number(element: Element) -> int:
    """Return the line of an element in the file, 0 if unknown."""
    return int(element.sourceline or 0)


def _parse_integer(text: str | None) -> int | None:
    """Return text as an integer; None if it is none."""
    try:
        return int(text or "")
    except ValueError:
        return None


def _default_initial(causality: str, variability: str) -> str:
    """Return the default of ``initial`` (2.0.5: 2.2.7, 3.0.2: 2.4.7.5)."""
    if causality in {"parameter", "structuralParameter"} or variability == "constant":
        return "exact"
    return {"independent": "", "input": ""}.get(causality, "calculated")


def _fill_in_defaults(attributes: Mapping[str, str], type_name: str) -> tuple[str, str, str]:
    """Return causality, variability and initial with the standard's defaults put in."""
    causality = attributes.get("causality", "local")
    variability = attributes.get("variability", "continuous" if type_name in FLOATS else "discrete")
    return causality, variability, attributes.get("initial", _default_initial(causality, variability))


def _read_units(root: Element) -> tuple[DescribedUnit, ...]:
    """Return the unit definitions, with display units in order, doubles included."""
    units = []
    for element in _children(root.find("UnitDefinitions"), "Unit"):
        base_unit = element.find("BaseUnit")
        display_units = list(_children(element, "DisplayUnit"))
        units.append(
            DescribedUnit(
                element.get("name", ""),
                None if base_unit is None else _attributes(base_unit),
                {display_unit.get("name", ""): _attributes(display_unit) for display_unit in display_units},
                tuple(display_unit.get("name", "") for display_unit in display_units),
                _line_number(element),
            )
        )
    return tuple(units)


def _read_sources(root: Element) -> dict[str, tuple[str, ...]]:
    """Return the source files that each interface type lists (FMI 2)."""
    return {
        interface: tuple(file.get("name", "") for file in root.findall(f"{interface}/SourceFiles/File"))
        for interface in INTERFACE_TYPES
        if root.find(interface) is not None
    }


def _read_general_part(root: Element) -> dict[str, object]:
    """Return the parts that both versions share: attributes, interfaces, units, log categories, experiment."""
    return {
        "attributes": _attributes(root),
        "interfaces": {
            interface: _attributes(root.find(interface))
            for interface in INTERFACE_TYPES
            if root.find(interface) is not None
        },
        "sources": _read_sources(root),
        "units": _read_units(root),
        "categories": tuple(category.get("name", "") for category in _children(root.find("LogCategories"), "Category")),
        "experiment": _attributes(root.find("DefaultExperiment")),
    }


def _assemble_model(
    root: Element, version: int, types: tuple[DescribedType, ...], variables: tuple[DescribedVariable, ...],
    entries: list[tuple[str, Element]], lists: frozenset[str],
) -> DescribedModel:  # fmt: skip
    """Return the description with the entries of its model structure resolved to variables."""
    general_part = _read_general_part(root)
    model_without_structure = DescribedModel(
        version,
        types=types,
        variables=variables,
        unknowns=(),
        lists=lists,
        **general_part,  # type: ignore[arg-type]
    )
    reference_attribute = "index" if version == 2 else "valueReference"
    unknowns = []
    for list_name, element in entries:
        dependencies_text = element.get("dependencies")
        dependencies = None if dependencies_text is None else tuple(dependencies_text.split())
        kinds_text = element.get("dependenciesKind")
        unknowns.append(
            DescribedUnknown(
                list_name,
                element.get(reference_attribute, ""),
                model_without_structure.find_referenced_variable(element.get(reference_attribute)),
                dependencies,
                tuple(model_without_structure.find_referenced_variable(reference) for reference in dependencies or ()),
                None if kinds_text is None else tuple(kinds_text.split()),
                _line_number(element),
            )
        )
    return DescribedModel(
        version,
        types=types,
        variables=variables,
        unknowns=tuple(unknowns),
        lists=lists,
        **general_part,  # type: ignore[arg-type]
    )


def _read_fmi2_description(root: Element) -> DescribedModel:
    """Read a description of FMI 2."""
    types = []
    for element in _children(root.find("TypeDefinitions"), "SimpleType"):
        type_element = next(_children(element, "Real", "Integer", "Boolean", "String", "Enumeration"), None)
        types.append(
            DescribedType(
                element.get("name", ""),
                "" if type_element is None else str(type_element.tag),
                _attributes(type_element),
                tuple(_attributes(item) for item in _children(type_element, "Item")),
                _line_number(element),
            )
        )
    declared = {type_definition.name: type_definition.attributes for type_definition in types}
    variables = []
    for index, element in enumerate(_children(root.find("ModelVariables"), "ScalarVariable"), 1):
        type_element = next(_children(element, "Real", "Integer", "Boolean", "String", "Enumeration"), None)
        type_name = "" if type_element is None else str(type_element.tag)
        attributes = {**_attributes(element), **_attributes(type_element)}
        start = attributes.get("start")
        variables.append(
            DescribedVariable(
                index,
                element.get("name", ""),
                type_name,
                _parse_integer(element.get("valueReference")),
                *_fill_in_defaults(attributes, type_name),
                start=None if start is None else (start,),
                written=attributes,
                declared=declared.get(attributes.get("declaredType", ""), {}),
                line=_line_number(element),
            )
        )
    structure = root.find("ModelStructure")
    entries = [
        (str(part.tag), unknown)
        for part in _children(structure, "Outputs", "Derivatives", "InitialUnknowns")
        for unknown in _children(part, "Unknown")
    ]
    lists = frozenset(str(part.tag) for part in _children(structure))
    return _assemble_model(root, 2, tuple(types), tuple(variables), entries, lists)


def _read_fmi3_description(root: Element) -> DescribedModel:
    """Read a description of FMI 3."""
    types = tuple(
        DescribedType(
            element.get("name", ""),
            str(element.tag).removesuffix("Type"),
            _attributes(element),
            tuple(_attributes(item) for item in _children(element, "Item")),
            _line_number(element),
        )
        for element in _children(root.find("TypeDefinitions"))
    )
    declared = {definition.name: definition.attributes for definition in types}
    variables = []
    for index, element in enumerate(_children(root.find("ModelVariables")), 1):
        type_name = str(element.tag)
        attributes = _attributes(element)
        variables.append(
            DescribedVariable(
                index,
                element.get("name", ""),
                type_name,
                _parse_integer(element.get("valueReference")),
                *_fill_in_defaults(attributes, type_name),
                start=_read_fmi3_start(element, type_name),
                written=attributes,
                declared=declared.get(attributes.get("declaredType", ""), {}),
                dimensions=tuple(
                    ArrayDimension(definition.get("start"), definition.get("valueReference"))
                    for definition in _children(element, "Dimension")
                ),
                aliases=tuple(_attributes(definition) for definition in _children(element, "Alias")),
                annotations={
                    annotation.get("type", ""): _read_annotation(annotation)
                    for annotation in _children(element.find("Annotations"), "Annotation")
                },
                line=_line_number(element),
            )
        )
    entries = [
        (STRUCTURE_LISTS_FMI3[str(element.tag)], element)
        for element in _children(root.find("ModelStructure"), *STRUCTURE_LISTS_FMI3)
    ]
    return _assemble_model(root, 3, types, tuple(variables), entries, frozenset(STRUCTURE_LISTS_FMI3.values()))


def _read_annotation(annotation: Element) -> str:
    """Return the text of an annotation of FMI 3, or what its children call names."""
    return (annotation.text or "").strip() or " ".join(
        child.get("names", "") for child in _children(annotation)
    ).strip()


def _read_fmi3_start(element: Element, type_name: str) -> tuple[str, ...] | None:
    """Return the start values of a variable, element by element; None without any."""
    if type_name in {"String", "Binary"}:
        values = tuple(start_element.get("value", "") for start_element in _children(element, "Start"))
        return values or None
    start = element.get("start")
    return None if start is None else tuple(start.split())
