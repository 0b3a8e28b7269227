"""A recorded run to repeat: reference result, input and options in the form of the FMI cross-check.

Beside ``X.fmu`` lie ``X_ref.csv`` (time and variables), ``X_in.csv`` (time and inputs; two rows of one time are a jump)
and ``X_ref.opt`` (StartTime, StopTime, StepSize, RelTol, one per line, the value after a comma). See
https://github.com/modelica/fmi-cross-check, FMI-CROSS-CHECK-RULES.md.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mb2fmu.errors import Fault, Mb2FmuError

MAX_ROWS = 200_000
"""Of a table."""

_FIELDS_BY_OPTION = {"StartTime": "start", "StopTime": "stop", "StepSize": "step", "RelTol": "tolerance"}


@dataclass(frozen=True, slots=True)
class RecordedReferenceTable:
    """Columns over time.

    Attributes:
        names: Of the columns, without the time.
        times: Never falling.
        rows: One list of numbers per time.
    """

    names: list[str]
    times: list[float]
    rows: list[list[float]]


@dataclass(frozen=True, slots=True)
class AuditReferenceRun:
    """Motion of the FMU by another tool, or by measurement.

    Attributes:
        reference: Values to reproduce.
        inputs: Inputs over time; None: the start values stay.
        start: Start time; None: the first time of the reference.
        stop: Stop time; None: the last one.
        step: Communication step; None or 0: the FMU's own.
        tolerance: Relative, that the reference was made with.
    """

    reference: RecordedReferenceTable
    inputs: RecordedReferenceTable | None = None
    start: float | None = None
    stop: float | None = None
    step: float | None = None
    tolerance: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON values, for the process that runs the FMU."""
        return asdict(self)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> AuditReferenceRun:
        """Read the record from JSON values, as :meth:`as_json` writes them."""
        inputs = data["inputs"]
        options = {name: data[name] for name in _FIELDS_BY_OPTION.values()}
        return cls(
            RecordedReferenceTable(**data["reference"]),
            None if inputs is None else RecordedReferenceTable(**inputs),
            **options,
        )


@dataclass(slots=True)
class ReferenceRunFilesReader:
    """Reads all files and collects their faults."""

    faults: list[Fault] = field(default_factory=list)

    def add_fault(self, message: str, place: str, remedy: str = "") -> None:
        """Note a fault and its place."""
        self.faults.append(Fault(message, place, remedy))

    def read_table(self, path: Path) -> RecordedReferenceTable | None:
        """Return a table with a column of time; None if it is none."""
        try:
            return self.parse_table(path.name, path.read_bytes())
        except OSError as error:
            self.add_fault(f"cannot be read: {error}", path.name)
            return None

    def parse_table(self, name: str, content: bytes) -> RecordedReferenceTable | None:
        """Return the table in a file of that name; None if it is none."""
        fault_count = len(self.faults)
        try:
            lines = [line for line in csv.reader(io.StringIO(content.decode("utf-8-sig"), newline="")) if line]
        except (UnicodeDecodeError, csv.Error) as error:
            self.add_fault(f"cannot be read: {error}", name)
            return None
        head = [name.strip() for name in lines[0]] if lines else []
        if not head or head[0].lower() != "time" or len(head) < 2:
            self.add_fault("the first column is not time, or is alone", name, 'begin it with "time",name,…')
            return None
        duplicates = sorted({name for name in head if head.count(name) > 1})
        if duplicates:
            self.add_fault(f"columns occur twice: {', '.join(duplicates)}", name, "leave one of each")
        if len(lines) > MAX_ROWS:
            self.add_fault(f"has more than {MAX_ROWS} rows", name, "thin it out")
            return None
        rows = [
            self.read_row(line, len(head), f"{name}, row {row_number}") for row_number, line in enumerate(lines[1:], 2)
        ]
        if len(self.faults) > fault_count:
            return None
        times = [row[0] for row in rows]
        falling_row = next(
            (row_number for row_number in range(1, len(times)) if times[row_number] < times[row_number - 1]), None
        )
        if len(rows) < 2 or falling_row is not None:
            message = "has fewer than two rows" if falling_row is None else f"time falls at row {falling_row + 2}"
            self.add_fault(message, name, "give rows in the order of time")
            return None
        return RecordedReferenceTable(head[1:], times, [row[1:] for row in rows])

    def read_row(self, line: list[str], count: int, place: str) -> list[float]:
        """Return the numbers of one row; true and false are 1 and 0."""
        boolean_numbers = {"true": 1.0, "false": 0.0}
        try:
            numbers = [
                boolean_numbers[cell.strip().lower()] if cell.strip().lower() in boolean_numbers else float(cell)
                for cell in line
            ]
        except ValueError:
            numbers = []
        if len(numbers) != count or not all(map(math.isfinite, numbers)):
            self.add_fault(f"does not have {count} finite numbers", place)
        return numbers

    def read_options(self, path: Path) -> dict[str, float]:
        """Read an .opt file; missing options are left out."""
        values = {}
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            self.add_fault(f"cannot be read: {error}", path.name)
            return {}
        for line_number, line in enumerate(lines, 1):
            name, separator, text = (part.strip() for part in line.partition(","))
            if name not in _FIELDS_BY_OPTION or not separator:
                continue
            try:
                values[_FIELDS_BY_OPTION[name]] = float(text)
            except ValueError:
                self.add_fault(f'{name} is no number: "{text}"', f"{path.name}, line {line_number}")
        return values


def read_audit_reference_run(
    reference: Path, inputs: Path | None = None, options: Path | None = None
) -> AuditReferenceRun:
    """Read a recorded run.

    Args:
        reference: ``X_ref.csv``.
        inputs: ``X_in.csv``; None: there are none.
        options: ``X_ref.opt``; None: times are those of the reference.

    Raises:
        Mb2FmuError: With all faults of all files.
    """
    reader = ReferenceRunFilesReader()
    table = reader.read_table(reference)
    input_table = reader.read_table(inputs) if inputs else None
    option_values = reader.read_options(options) if options else {}
    start = option_values.get("start", table.times[0] if table else 0.0)
    stop = option_values.get("stop", table.times[-1] if table else 1.0)
    if not stop > start:
        reader.add_fault(f"the run ends at {stop:g}, not after its start at {start:g}", (options or reference).name)
    elif table and not _covers_run(table, start, stop):
        reader.add_fault(
            f"has times from {table.times[0]:g} to {table.times[-1]:g}, and the run goes from {start:g} to {stop:g}",
            reference.name,
            "record the whole run, or name the part that was recorded as StartTime and StopTime",
        )
    elif input_table and input_table.times[0] > start:
        reader.add_fault(
            f"inputs begin at {input_table.times[0]:g}, after the start at {start:g}", inputs.name if inputs else ""
        )
    if reader.faults or table is None:
        raise Mb2FmuError("the recorded run cannot be used:", reader.faults)
    return AuditReferenceRun(table, input_table, start, stop, option_values.get("step"), option_values.get("tolerance"))


def _covers_run(table: RecordedReferenceTable, start: float, stop: float) -> bool:
    """Return whether a result covers the time from start to end: other times cannot be judged."""
    tolerance = 1e-6 * (stop - start)
    return table.times[0] <= start + tolerance and table.times[-1] >= stop - tolerance


def find_recorded_reference_run(path: Path) -> AuditReferenceRun | None:
    """Return the recorded run beside an FMU, by the names of the cross-check; None where there is none.

    Raises:
        Mb2FmuError: If there is one that cannot be used.
    """
    reference, inputs, options = (path.with_name(path.stem + end) for end in ("_ref.csv", "_in.csv", "_ref.opt"))
    if not reference.is_file():
        return None
    return read_audit_reference_run(
        reference, inputs if inputs.is_file() else None, options if options.is_file() else None
    )
