"""The reference trajectory inside an FMU, in the format of the draft layered standard fmi-ls-ref.

Pinned version: 1.0.0-beta.1. A manifest lists related files by their role: ``result`` (what the default experiment
gives, CSV, times in the first column), ``report``, and ``experiment/validation`` (an experiment with its stimuli and
the results to compare with). Paths are relative to the manifest.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from lxml import etree

from mb2fmu.errors import Fault, PackageError
from mb2fmu.fmu.in_memory_file_tree import InMemoryFileTree
from mb2fmu.fmu.interface.fmu_interface import FmuInterface

REFERENCE_FOLDER = "extra/org.fmi-standard.fmi-ls-ref"
LAYERED_STANDARD_VERSION = "1.0.0-beta.1"
LAYERED_STANDARD_DESCRIPTION = "Layered Standard providing information on related files included in an FMU."
"""The schema of the standard fixes this text."""

REPORT_PATH = "documentation/index.html"

_MANIFEST_NAMESPACE = "http://fmi-standard.org/fmi-ls-manifest"
REFERENCE_FILE, _STIMULI_FILE, _EXPERIMENTS_FILE = "reference.csv", "stimuli.csv", "experiments.xml"


@dataclass(frozen=True, slots=True)
class EmbeddedTrajectoryTable:
    """Values of variables over time.

    Attributes:
        names: FMU names, in the order of the columns.
        time: In s, growing, shape (n_t,).
        values: In the variables' units, shape (n_t, n).
    """

    names: Sequence[str]
    time: Sequence[float]
    values: Sequence[Sequence[float]]

    def csv(self) -> bytes:
        """Return one line of names, then one line per time; numbers read back to the same bits."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["time", *self.names])
        for time, row in zip(self.time, self.values, strict=True):
            writer.writerow([repr(float(time)), *(repr(float(value)) for value in row)])
        return text.getvalue().encode()


def form_embedded_reference_files(
    interface: FmuInterface,
    reference: EmbeddedTrajectoryTable,
    *,
    stimuli: EmbeddedTrajectoryTable | None = None,
    origin: str,
    report: bool = True,
) -> InMemoryFileTree:
    """Return the folder of the layered standard.

    Args:
        interface: Whose default experiment it is.
        reference: What the FMU is to give.
        stimuli: Inputs of the experiment; each value holds until the next time, and is written as two rows of one
            time where it jumps: importers interpolate. None: start values.
        origin: One line: what the reference was made by, independently of the FMU.
        report: The FMU carries its report.

    Returns:
        Manifest, reference trajectory, experiment, and stimuli if there are any.

    Raises:
        PackageError: If a table names what is no variable of the FMU, or no input.
    """
    _check_columns(interface, reference, stimuli)
    files = {
        REFERENCE_FILE: reference.csv(),
        _EXPERIMENTS_FILE: _form_experiments(interface, stimuli=stimuli is not None),
    }
    if stimuli is not None:
        files[_STIMULI_FILE] = _write_held_values(stimuli, interface.experiment.stop).csv()
    files["fmi-ls-manifest.xml"] = _form_manifest(origin, report=report)
    return InMemoryFileTree(files).move_under(REFERENCE_FOLDER)


def _write_held_values(table: EmbeddedTrajectoryTable, stop: float) -> EmbeddedTrajectoryTable:
    """Return a table that is right by linear interpolation: two rows of one time where a held value jumps."""
    time, rows = list(table.time[:1]), list(table.values[:1])
    for instant, row in zip(table.time[1:], table.values[1:], strict=True):
        if list(row) != list(rows[-1]):
            time += [instant, instant]
            rows += [rows[-1], row]
    if time and time[-1] < stop:
        time.append(stop)
        rows.append(rows[-1])
    return EmbeddedTrajectoryTable(table.names, time, rows)


def _check_columns(
    interface: FmuInterface, reference: EmbeddedTrajectoryTable, stimuli: EmbeddedTrajectoryTable | None
) -> None:
    """Raise if a table has names that are no variables of the FMU, or stimuli that are no inputs."""
    known = {variable.name: variable.causality for variable in interface.variables}
    faults = [Fault("is no variable of the FMU", name) for name in reference.names if name not in known]
    if stimuli is not None:
        faults += [Fault("is no input of the FMU", name) for name in stimuli.names if known.get(name) != "input"]
    if faults:
        raise PackageError("the reference does not belong to the FMU:", faults)


def _form_manifest(origin: str, *, report: bool) -> bytes:
    """Return the manifest that says which files are references of the FMU."""
    root = etree.Element("fmiReferences", nsmap={"fmi-ls": _MANIFEST_NAMESPACE})
    root.set(f"{{{_MANIFEST_NAMESPACE}}}fmi-ls-name", "org.fmi-standard.fmi-ls-ref")
    root.set(f"{{{_MANIFEST_NAMESPACE}}}fmi-ls-version", LAYERED_STANDARD_VERSION)
    root.set(f"{{{_MANIFEST_NAMESPACE}}}fmi-ls-description", LAYERED_STANDARD_DESCRIPTION)
    related = [("text/csv", REFERENCE_FILE, "result", f"The default experiment: {origin}")]
    if report:
        where = "/".join([".."] * len(REFERENCE_FOLDER.split("/"))) + f"/{REPORT_PATH}"
        related.append(("text/html", where, "report", "Comparison of this FMU with the reference"))
    related.append(
        ("text/xml", _EXPERIMENTS_FILE, "experiment/validation", "The default experiment with its reference")
    )
    for kind, source, role, description in related:
        etree.SubElement(root, "Related", {"type": kind, "source": source, "role": role, "description": description})
    return _serialize_xml(root)


def _form_experiments(interface: FmuInterface, *, stimuli: bool) -> bytes:
    """Return the default experiment with its reference, as the layered standard writes it."""
    run = interface.experiment
    root = etree.Element("Experiments", {"name": f"{interface.model_name} experiments"})
    numbers = {"startTime": run.start, "stopTime": run.stop, "stepSize": run.step, "tolerance": run.tolerance}
    attributes = {"name": "validation", **{name: repr(value) for name, value in numbers.items()}}
    experiment = etree.SubElement(root, "Experiment", attributes)
    if stimuli:
        etree.SubElement(experiment, "Stimuli", {"type": "text/csv", "source": _STIMULI_FILE})
    etree.SubElement(experiment, "References", {"type": "text/csv", "source": REFERENCE_FILE})
    return _serialize_xml(root)


def _serialize_xml(root: etree._Element) -> bytes:
    """Return the XML as bytes."""
    return etree.tostring(root, encoding="UTF-8", xml_declaration=True, pretty_print=True)
