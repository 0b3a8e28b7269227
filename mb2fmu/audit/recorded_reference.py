"""A recorded run to repeat: reference result, input and options in the form of the FMI cross-check.

Beside ``X.fmu`` lie ``X_ref.csv`` (time and variables), ``X_in.csv`` (time and inputs; two rows of one time are a jump)
and ``X_ref.opt`` (StartTime, StopTime, StepSize, RelTol, one per line, the value after a comma). See
https://github.com/modelica/fmi-cross-check, FMI-CROSS-CHECK-RULES.md.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from mb2fmu.errors import Fault, Mb2FmuError

MOST_ROWS = 200_000
"""Of a table."""

_OPTIONS = {"StartTime": "start", "StopTime": "stop", "StepSize": "step", "RelTol": "tolerance"}


@dataclass(frozen=True, slots=True)
class RecordedTable:
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
class RecordedReference:
    """Motion of the FMU by another tool, or by measurement.

    Attributes:
        reference: What is to be met.
        inputs: What moves the FMU; None: its start values stay.
        start: Start time; None: the first time of the reference.
        stop: Stop time; None: the last one.
        step: Communication step; None or 0: the FMU's own.
        tolerance: Relative, that the reference was made with.
    """

    reference: RecordedTable
    inputs: RecordedTable | None = None
    start: float | None = None
    stop: float | None = None
    step: float | None = None
    tolerance: float | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the record as JSON values, for the process that runs the FMU."""
        return asdict(self)

    @classmethod
    def of_json(cls, data: Mapping[str, Any]) -> RecordedReference:
        """Read the record from JSON values, as :meth:`as_json` writes them."""
        inputs = data["inputs"]
        rest = {name: data[name] for name in _OPTIONS.values()}
        return cls(RecordedTable(**data["reference"]), None if inputs is None else RecordedTable(**inputs), **rest)


@dataclass(slots=True)
class _RecordedFilesReader:
    """Reads all files and collects their faults."""

    faults: list[Fault] = field(default_factory=list)

    def fault(self, what: str, where: str, remedy: str = "") -> None:
        self.faults.append(Fault(what, where, remedy))

    def table(self, path: Path) -> RecordedTable | None:
        """Return a table with a column of time; None if it is none."""
        known = len(self.faults)
        try:
            with path.open(newline="", encoding="utf-8-sig") as file:
                lines = [line for line in csv.reader(file) if line]
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            self.fault(f"cannot be read: {error}", path.name)
            return None
        head = [name.strip() for name in lines[0]] if lines else []
        if not head or head[0].lower() != "time" or len(head) < 2:
            self.fault("the first column is not time, or is alone", path.name, 'begin it with "time",name,…')
            return None
        doubled = sorted({name for name in head if head.count(name) > 1})
        if doubled:
            self.fault(f"columns occur twice: {', '.join(doubled)}", path.name, "leave one of each")
        if len(lines) > MOST_ROWS:
            self.fault(f"has more than {MOST_ROWS} rows", path.name, "thin it out")
            return None
        rows = [self.row(line, len(head), f"{path.name}, row {k}") for k, line in enumerate(lines[1:], 2)]
        if len(self.faults) > known:
            return None
        times = [row[0] for row in rows]
        falling = next((k for k in range(1, len(times)) if times[k] < times[k - 1]), None)
        if len(rows) < 2 or falling is not None:
            what = "has fewer than two rows" if falling is None else f"time falls at row {falling + 2}"
            self.fault(what, path.name, "give rows in the order of time")
            return None
        return RecordedTable(head[1:], times, [row[1:] for row in rows])

    def row(self, line: list[str], count: int, where: str) -> list[float]:
        """Return the numbers of one row; true and false are 1 and 0."""
        words = {"true": 1.0, "false": 0.0}
        try:
            found = [words[each.strip().lower()] if each.strip().lower() in words else float(each) for each in line]
        except ValueError:
            found = []
        if len(found) != count or not all(map(math.isfinite, found)):
            self.fault(f"does not have {count} finite numbers", where)
        return found

    def options(self, path: Path) -> dict[str, float]:
        """Read an .opt file; missing options are left out."""
        found = {}
        try:
            lines = path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            self.fault(f"cannot be read: {error}", path.name)
            return {}
        for k, line in enumerate(lines, 1):
            name, comma, text = (part.strip() for part in line.partition(","))
            if name not in _OPTIONS or not comma:
                continue
            try:
                found[_OPTIONS[name]] = float(text)
            except ValueError:
                self.fault(f'{name} is no number: "{text}"', f"{path.name}, line {k}")
        return found


def read_recorded_reference(
    reference: Path, inputs: Path | None = None, options: Path | None = None
) -> RecordedReference:
    """Read a recorded run.

    Args:
        reference: ``X_ref.csv``.
        inputs: ``X_in.csv``; None: there are none.
        options: ``X_ref.opt``; None: times are those of the reference.

    Raises:
        Mb2FmuError: With all faults of all files.
    """
    reading = _RecordedFilesReader()
    table = reading.table(reference)
    moving = reading.table(inputs) if inputs else None
    said = reading.options(options) if options else {}
    start = said.get("start", table.times[0] if table else 0.0)
    stop = said.get("stop", table.times[-1] if table else 1.0)
    if not stop > start:
        reading.fault(f"the run ends at {stop:g}, not after its start at {start:g}", (options or reference).name)
    elif table and not _covers(table, start, stop):
        reading.fault(
            f"has times from {table.times[0]:g} to {table.times[-1]:g}, and the run goes from {start:g} to {stop:g}",
            reference.name,
            "record the whole run, or name the part that was recorded as StartTime and StopTime",
        )
    elif moving and moving.times[0] > start:
        reading.fault(
            f"inputs begin at {moving.times[0]:g}, after the start at {start:g}", inputs.name if inputs else ""
        )
    if reading.faults or table is None:
        raise Mb2FmuError("the recorded run cannot be used:", reading.faults)
    return RecordedReference(table, moving, start, stop, said.get("step"), said.get("tolerance"))


def _covers(table: RecordedTable, start: float, stop: float) -> bool:
    """Return whether a result covers the time from start to end: other times cannot be judged."""
    slack = 1e-6 * (stop - start)
    return table.times[0] <= start + slack and table.times[-1] >= stop - slack


def find_recorded_reference(path: Path) -> RecordedReference | None:
    """Return the recorded run beside an FMU, by the names of the cross-check; None where there is none.

    Raises:
        Mb2FmuError: If there is one that cannot be used.
    """
    reference, inputs, options = (path.with_name(path.stem + end) for end in ("_ref.csv", "_in.csv", "_ref.opt"))
    if not reference.is_file():
        return None
    return read_recorded_reference(
        reference, inputs if inputs.is_file() else None, options if options.is_file() else None
    )
