"""Subjects that an FMU lacks: rules about them are neither judged nor counted."""

from __future__ import annotations

from mb2fmu.audit.description.archive_rules import FmuArchive
from mb2fmu.audit.description.description_records import TERMINALS, DescribedModel, DescribedVariable
from mb2fmu.audit.description.schema_and_terminal_rules import MANIFEST_NAME

ARCHIVE_RULES = frozenset({
    "archive.suffix", "archive.paths", "archive.compression", "archive.description", "xml.readable",
})  # fmt: skip
"""Rules that need no description."""


def find_inapplicable_rules(archive: FmuArchive, description: DescribedModel) -> dict[str, str]:
    """Return rule → the missing subject for which it has nothing to judge."""
    return {
        **_exclude_unit_and_type_rules(description),
        **_exclude_variable_rules(description),
        **_exclude_structure_rules(description),
        **_exclude_archive_rules(archive, description),
    }


def _exclude_rules(subject: object, reason: str, *rules: str) -> dict[str, str]:
    """Return a reason for each rule if the FMU has nothing that these rules are about."""
    return {} if subject else dict.fromkeys(rules, reason)


def _list_with_attribute(description: DescribedModel, attribute: str) -> list[DescribedVariable]:
    """Return the variables that have an attribute."""
    return [variable for variable in description.variables if variable.get(attribute) is not None]


def _exclude_unit_and_type_rules(description: DescribedModel) -> dict[str, str]:
    """Return rules on units and types that have no subject, with reasons."""
    variables = description.variables
    enumeration_types = [each for each in description.types if each.type == "Enumeration"]
    with_display_unit = [
        variable
        for variable in variables
        if variable.get("displayUnit") or any("displayUnit" in alias for alias in variable.aliases)
    ]
    with_declared_type = [variable for variable in variables if variable.written.get("declaredType")]
    enumeration_variables = [variable for variable in variables if variable.type == "Enumeration"]
    return {
        **_exclude_rules(
            description.units,
            "it defines no units",
            "units.unique",
            "units.base",
            "units.exponents",
            "units.factor",
            "units.unused",
        ),
        **_exclude_rules(
            _list_with_attribute(description, "unit"), "no variable has a unit", "units.declared", "units.derivative"
        ),
        **_exclude_rules(with_display_unit, "no variable has a display unit", "units.display"),
        **_exclude_rules(description.types, "it defines no types", "types.unique"),
        **_exclude_rules(
            with_declared_type or enumeration_variables, "no variable has a declared type", "types.declared"
        ),
        **_exclude_rules(enumeration_types, "it has no enumerations", "types.items"),
    }


def _exclude_variable_rules(description: DescribedModel) -> dict[str, str]:
    """Return rules on variables that have no subject, with reasons."""
    variables = description.variables
    references = [variable.reference for variable in variables]
    clocks = [variable for variable in variables if variable.type == "Clock" or variable.clocked]

    def with_attribute(attribute: str) -> list[DescribedVariable]:
        return _list_with_attribute(description, attribute)

    return {
        **_exclude_rules(
            description.version == 3 or len(set(references)) < len(references),
            "no two variables share a value reference",
            "variables.aliases",
        ),
        **_exclude_rules(with_attribute("min") or with_attribute("max"), "no variable has bounds", "variables.bounds"),
        **_exclude_rules(with_attribute("nominal"), "no variable has a nominal value", "variables.nominal"),
        **_exclude_rules(with_attribute("derivative"), "no variable is a derivative", "variables.derivative"),
        **_exclude_rules(with_attribute("reinit"), "no variable has reinit", "variables.reinit"),
        **_exclude_rules(
            with_attribute("canHandleMultipleSetPerTimeInstant"),
            "no variable has this attribute",
            "variables.multiple_set",
        ),
        **_exclude_rules(
            with_attribute("intermediateUpdate"), "no variable has this attribute", "variables.intermediate"
        ),
        **_exclude_rules(
            [variable for variable in variables if variable.dimensions], "it has no arrays", "variables.dimension"
        ),
        **_exclude_rules(clocks, "it has no clocks", "variables.clocks"),
        **_exclude_rules(
            with_attribute("previous"), "no variable has previous", "variables.previous", "structure.clocked"
        ),
        **_exclude_rules(
            description.attributes.get("variableNamingConvention") == "structured" or variables,
            "no variables",
            "variables.name",
        ),
    }


def _exclude_structure_rules(description: DescribedModel) -> dict[str, str]:
    """Return rules on model structure and header that have no subject, with reasons."""
    entries = description.unknowns
    entries_with_dependencies = [entry for entry in entries if entry.dependencies]
    return {
        **_exclude_rules(entries_with_dependencies, "no dependencies are declared", "structure.dependencies"),
        **_exclude_rules(
            [entry for entry in entries if entry.kinds],
            "no kinds of dependencies are declared",
            "structure.kinds",
            "structure.factors",
        ),
        **_exclude_rules(
            description.model_structure_entries("EventIndicators"),
            "no event indicators are listed",
            "structure.indicators",
        ),
        **_exclude_rules(
            description.model_structure_entries("Derivatives"),
            "it has no continuous states",
            "structure.derivatives",
            "variables.state",
        ),
        **_exclude_rules(description.attributes.get("generationDateAndTime"), "it has no date", "header.date"),
        **_exclude_rules(description.experiment, "it has no default experiment", "experiment.values"),
        **_exclude_rules(description.categories, "it has no log categories", "log.categories"),
    }


def _exclude_archive_rules(archive: FmuArchive, description: DescribedModel) -> dict[str, str]:
    """Return rules on binaries, sources and other members that have no subject, with reasons."""
    names = archive.names
    binaries = [name for name in names if name.startswith("binaries/") and name.endswith((".so", ".dll", ".dylib"))]
    linux_binaries = [name for name in binaries if name.endswith(".so")]
    has_sources = any(description.sources.values()) or any(name.startswith("sources/") for name in names)
    pictures = [name for name in names if name.endswith((".svg", ".png")) or name == TERMINALS]
    needs_tool = any(description.flag(interface, "needsExecutionTool") for interface in description.interfaces)
    return {
        **_exclude_rules(
            binaries,
            "it has no binaries",
            "binary.folder",
            "binary.missing",
            "binary.format",
            "binary.machine",
            "binary.symbols",
            "binary.exports",
            "binary.libraries",
        ),
        **_exclude_rules(linux_binaries, "it has no binaries for Linux", "binary.glibc"),
        **_exclude_rules(
            [each for each in binaries if each[-3:] != "dll"], "it has no binaries that search", "binary.search"
        ),
        **_exclude_rules(has_sources, "it has no sources", "archive.sources"),
        **_exclude_rules(pictures, "it has no pictures", "archive.pictures"),
        **_exclude_rules(
            [name for name in names if name.startswith("documentation/licenses/")],
            "it has no folder of licences",
            "archive.licences",
        ),
        **_exclude_rules(needs_tool, "it needs no other tool", "archive.external"),
        **_exclude_rules(TERMINALS in names, "it has no terminals", "terminals.members"),
        **_exclude_rules(
            [name for name in names if name.endswith(f"/{MANIFEST_NAME}")],
            "it has no manifests of layered standards",
            "archive.manifest",
        ),
    }
