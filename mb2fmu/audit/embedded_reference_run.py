"""A recorded run that an FMU carries itself, after the layered standard fmi-ls-ref.

The manifest names experiments (XML: times, stimuli, references) and results of the default experiment. The first one
with a table of reference values is repeated; parameter sets are not applied, so experiments with some are left out.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from pathlib import Path

from lxml import etree

from mb2fmu.audit.description.archive_rules import read_fmu_archive
from mb2fmu.audit.description.description_import import parse_root_element_safely
from mb2fmu.audit.recorded_reference_run import (
    AuditReferenceRun,
    RecordedReferenceTable,
    ReferenceRunFilesReader,
    find_recorded_reference_run,
)
from mb2fmu.errors import Fault

REFERENCE_FOLDER = "extra/org.fmi-standard.fmi-ls-ref"
REFERENCE_MANIFEST = f"{REFERENCE_FOLDER}/fmi-ls-manifest.xml"
_TABLE_TYPES = frozenset({"text/csv", ""})


def find_reference_run_of_fmu(path: Path) -> AuditReferenceRun | None:
    """Return the recorded run beside an FMU, else one that it carries; None where there is none.

    Raises:
        Mb2FmuError: If there is one beside it that cannot be used, or the archive cannot be read.
    """
    reference_beside = find_recorded_reference_run(path)
    return reference_beside or read_embedded_reference_run(read_fmu_archive(path).contents)[0]


def read_embedded_reference_run(files: Mapping[str, bytes]) -> tuple[AuditReferenceRun | None, list[Fault]]:
    """Return the recorded run in an archive, and what is wrong with the files that its manifest names.

    Args:
        files: Member of the archive → content.
    """
    reader = ReferenceRunFilesReader()
    if REFERENCE_MANIFEST not in files:
        return None, reader.faults
    related = _parse(files[REFERENCE_MANIFEST], REFERENCE_MANIFEST, reader)
    for place in [] if related is None else _list_missing_files(related, files):
        reader.add_fault("the archive has no such file", place)
    candidates = [] if related is None else [*_list_experiments(related, files, reader), *_list_results(related, files)]
    for attributes, result, stimuli in candidates:
        table = _read_table(result, files, reader)
        inputs = _read_table(stimuli, files, reader) if stimuli else None
        if table is not None and (inputs is not None or not stimuli):
            return _form_reference(attributes, table, inputs), reader.faults
    return None, reader.faults


def _parse(content: bytes, place: str, reader: ReferenceRunFilesReader) -> etree._Element | None:
    """Return the root of an XML file; None, with a fault, if it is none."""
    try:
        return parse_root_element_safely(content)
    except ValueError as error:
        reader.add_fault(str(error), place)
        return None


def _find_member_path(source: str) -> str:
    """Return the member of the archive that a relative address in the manifest names."""
    return posixpath.normpath(f"{REFERENCE_FOLDER}/{source}")


def _list_missing_files(manifest: etree._Element, files: Mapping[str, bytes]) -> Iterator[str]:
    """Yield relative addresses of files that are not there."""
    for item in manifest.iter("Related"):
        source = item.get("source", "")
        if "://" not in source and _find_member_path(source) not in files:
            yield source


_Candidate = tuple[Mapping[str, str], str, str]
"""Attributes of the experiment; members with the result and with the stimuli, empty where there are none."""


def _list_experiments(
    manifest: etree._Element, files: Mapping[str, bytes], reader: ReferenceRunFilesReader
) -> Iterator[_Candidate]:
    """Yield experiments without parameter sets that have reference values as a table."""
    for item in manifest.iter("Related"):
        member = _find_member_path(item.get("source", ""))
        if not item.get("role", "").startswith("experiment") or member not in files:
            continue
        root = _parse(files[member], member, reader)
        for experiment in [] if root is None else root.iter("Experiment"):
            references, stimuli = experiment.find("References"), experiment.find("Stimuli")
            if references is None or experiment.find("Parameters") is not None:
                continue
            if all(part is None or part.get("type", "") in _TABLE_TYPES for part in (references, stimuli)):
                sources = (
                    "" if part is None else _find_member_path(part.get("source", "")) for part in (references, stimuli)
                )
                result, inputs = sources
                yield {str(name): str(value) for name, value in experiment.attrib.items()}, result, inputs


def _list_results(manifest: etree._Element, files: Mapping[str, bytes]) -> Iterator[_Candidate]:
    """Yield results of the default experiment that are tables."""
    for item in manifest.iter("Related"):
        member = _find_member_path(item.get("source", ""))
        if item.get("role") == "result" and item.get("type") == "text/csv" and member in files:
            yield {}, member, ""


def _read_table(
    member: str, files: Mapping[str, bytes], reader: ReferenceRunFilesReader
) -> RecordedReferenceTable | None:
    """Return a table of the archive; None, with a fault, if it cannot be read."""
    if member not in files:
        reader.add_fault("the archive has no such file", member)
        return None
    return reader.parse_table(member, files[member])


def _form_reference(
    attributes: Mapping[str, str], table: RecordedReferenceTable, inputs: RecordedReferenceTable | None
) -> AuditReferenceRun:
    """Return the recorded run, with the experiment's numbers or the times of its result."""
    numbers: dict[str, float | None] = {}
    for name in ("startTime", "stopTime", "stepSize", "tolerance"):
        try:
            numbers[name] = float(attributes[name])
        except (KeyError, ValueError):
            numbers[name] = None
    start, stop = numbers["startTime"], numbers["stopTime"]
    return AuditReferenceRun(
        table,
        inputs,
        table.times[0] if start is None else max(start, table.times[0]),
        table.times[-1] if stop is None else min(stop, table.times[-1]),
        numbers["stepSize"],
        numbers["tolerance"],
    )
