"""Subjects that an FMU lacks: rules about them are neither judged nor counted."""

from __future__ import annotations

from mb2fmu.audit.description.archive_rules import FmuArchive
from mb2fmu.audit.description.description_records import DescribedModel, DescribedVariable
from mb2fmu.audit.description.schema_validation import MANIFEST, TERMINALS

ARCHIVE = frozenset({
    "archive.suffix", "archive.paths", "archive.compression", "archive.description", "xml.readable",
})  # fmt: skip
"""Rules that need no description."""


def find_inapplicable_rules(archive: FmuArchive, description: DescribedModel) -> dict[str, str]:
    """Return rule → the missing subject for which it has nothing to judge."""
    return {**_variables(description), **_structure(description), **_archive(archive, description)}


def _idle(found: object, why: str, *rules: str) -> dict[str, str]:
    """Return a reason for each rule if the FMU has nothing that these rules are about."""
    return {} if found else dict.fromkeys(rules, why)


def _variables(description: DescribedModel) -> dict[str, str]:
    """Return rules on FMUs, types and variables that have no subject, with reasons."""
    variables = description.variables

    def some(key: str) -> list[DescribedVariable]:
        return [each for each in variables if each.get(key) is not None]

    references = [each.reference for each in variables]
    types = [each for each in description.types if each.type == "Enumeration"]
    shown = [each for each in variables if each.get("displayUnit") or any("displayUnit" in a for a in each.aliases)]
    declared = [each for each in variables if each.written.get("declaredType")]
    enumerations = [each for each in variables if each.type == "Enumeration"]
    clocks = [each for each in variables if each.type == "Clock" or each.clocked]
    return {
        **_idle(description.units, "it defines no units", "units.unique", "units.base", "units.exponents",
                "units.factor", "units.unused"),
        **_idle(some("unit"), "no variable has a unit", "units.declared", "units.derivative"),
        **_idle(shown, "no variable has a display unit", "units.display"),
        **_idle(description.types, "it defines no types", "types.unique"),
        **_idle(declared or enumerations, "no variable has a declared type", "types.declared"),
        **_idle(types, "it has no enumerations", "types.items"),
        **_idle(description.version == 3 or len(set(references)) < len(references), "no two variables share a value "
                "reference", "variables.aliases"),
        **_idle(some("min") or some("max"), "no variable has bounds", "variables.bounds"),
        **_idle(some("nominal"), "no variable has a nominal value", "variables.nominal"),
        **_idle(some("derivative"), "no variable is a derivative", "variables.derivative"),
        **_idle(some("reinit"), "no variable has reinit", "variables.reinit"),
        **_idle(some("canHandleMultipleSetPerTimeInstant"), "no variable says so", "variables.multiple_set"),
        **_idle(some("intermediateUpdate"), "no variable says so", "variables.intermediate"),
        **_idle([each for each in variables if each.dimensions], "it has no arrays", "variables.dimension"),
        **_idle(clocks, "it has no clocks", "variables.clocks"),
        **_idle(some("previous"), "no variable has previous", "variables.previous", "structure.clocked"),
        **_idle(description.attributes.get("variableNamingConvention") == "structured" or variables, "no variables",
                "variables.name"),
    }  # fmt: skip


def _structure(description: DescribedModel) -> dict[str, str]:
    """Return rules on model structure and header that have no subject, with reasons."""
    entries = description.unknowns
    dependent = [each for each in entries if each.dependencies]
    return {
        **_idle(dependent, "no dependencies are declared", "structure.dependencies"),
        **_idle([each for each in entries if each.kinds], "no kinds of dependencies are declared", "structure.kinds",
                "structure.factors"),
        **_idle(description.listed("EventIndicators"), "no event indicators are listed", "structure.indicators"),
        **_idle(description.listed("Derivatives"), "it has no continuous states", "structure.derivatives",
                "variables.state"),
        **_idle(description.attributes.get("generationDateAndTime"), "it has no date", "header.date"),
        **_idle(description.experiment, "it has no default experiment", "experiment.values"),
        **_idle(description.categories, "it has no log categories", "log.categories"),
    }  # fmt: skip


def _archive(archive: FmuArchive, description: DescribedModel) -> dict[str, str]:
    """Return rules on binaries, sources and other members that have no subject, with reasons."""
    names = archive.names
    built = [name for name in names if name.startswith("binaries/") and name.endswith((".so", ".dll", ".dylib"))]
    linux = [name for name in built if name.endswith(".so")]
    sources = any(description.sources.values()) or any(name.startswith("sources/") for name in names)
    pictures = [name for name in names if name.endswith((".svg", ".png")) or name == TERMINALS]
    tool = any(description.flag(kind, "needsExecutionTool") for kind in description.interfaces)
    return {
        **_idle(built, "it has no binaries", "binary.folder", "binary.missing", "binary.format", "binary.machine",
                "binary.symbols", "binary.exports", "binary.libraries"),
        **_idle(linux, "it has no binaries for Linux", "binary.glibc"),
        **_idle([each for each in built if each[-3:] != "dll"], "it has no binaries that search", "binary.search"),
        **_idle(sources, "it has no sources", "archive.sources"),
        **_idle(pictures, "it has no pictures", "archive.pictures"),
        **_idle([name for name in names if name.startswith("documentation/licenses/")], "it has no folder of licences",
                "archive.licences"),
        **_idle(tool, "it needs no other tool", "archive.external"),
        **_idle(TERMINALS in names, "it has no terminals", "terminals.members"),
        **_idle([name for name in names if name.endswith(f"/{MANIFEST}")], "it has no manifests of layered standards",
                "archive.manifest"),
    }  # fmt: skip
