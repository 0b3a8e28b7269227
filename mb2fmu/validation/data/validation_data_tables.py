"""The user's tables of numbers: measured over time (CSV), or published at given points (CSV or JSON).

A column is headed by an FMU name, with its unit in brackets if it is another than the FMU's: ``theta [deg]``. The row
below the head may say how far each column may be off: its first cell is ``tolerance``. Empty cells say nothing. Lines
that begin with # are left out.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError

Floats = npt.NDArray[np.float64]

TIME_COLUMN = "time"
TOLERANCE_ROW = "tolerance"
_DECIMAL_COMMA = re.compile(r"\s*[-+]?\d*,\d+(?:[eE][-+]?\d+)?\s*")
_COLUMN_HEADING = re.compile(
    r"(?P<name>.*?)(?:\s+\[(?P<unit>[^\[\]]*)\]|\[(?P<close>[^\[\]]*[^\[\]\d,\s][^\[\]]*)\])?\Z", re.DOTALL
)
"""A name, and a unit in brackets; brackets without a space before them that hold numbers only are an index."""
_MAX_SHOWN_FAULTS = 8


@dataclass(frozen=True, slots=True)
class ValidationDataTolerance:
    """Allowed error of a column: ``value`` in its unit, or as a fraction of its largest magnitude."""

    value: float
    relative: bool = False

    @classmethod
    def read(cls, text: str) -> ValidationDataTolerance:
        """Read ``0.01`` or ``1%``.

        Raises:
            ValueError: If it is neither, or not positive.
        """
        stripped = text.strip()
        number = float(stripped.removesuffix("%"))
        if not (math.isfinite(number) and number > 0.0):
            raise ValueError(f"{text!r} is not positive")
        return cls(number / 100.0, relative=True) if stripped.endswith("%") else cls(number)

    def absolute_tolerance(self, values: Floats) -> float:
        """Return the tolerance in the unit of a column with these values."""
        return self.value * float(np.nanmax(np.abs(values))) if self.relative else self.value


@dataclass(frozen=True, slots=True)
class ValidationDataColumn:
    """One column.

    Attributes:
        name: FMU name, or ``time``.
        unit: In brackets behind the name; empty: the FMU's.
        values: NaN where the cell is empty, shape (n_rows,).
        tolerance: From the table; None if it says none.
    """

    name: str
    unit: str
    values: Floats
    tolerance: ValidationDataTolerance | None = None


@dataclass(frozen=True, slots=True)
class ValidationDataTable:
    """Columns of equal length.

    Attributes:
        source: The file's name.
        columns: In the file's order.
        lines: Number of each row's line in the file; () in JSON, where rows are points.
    """

    source: str
    columns: tuple[ValidationDataColumn, ...]
    lines: tuple[int, ...] = ()

    def describe_row(self, row: int) -> str:
        """Return the place of a row, for people."""
        return f"{self.source}:{self.lines[row]}" if self.lines else f"{self.source}: point {row + 1}"

    def column(self, name: str) -> ValidationDataColumn | None:
        """Return a column by its name."""
        return next((each for each in self.columns if each.name == name), None)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.columns[0].values)


def read_validation_table(path: Path) -> ValidationDataTable:
    """Read a table: JSON if the file is named so, else CSV.

    Raises:
        ValidationError: With everything that is wrong with it, by line and column.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problem = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _make_table_error(
            path, [Fault(problem, str(path), "is it the right path, and text in UTF-8?")]
        ) from error
    table, faults = _read_json(path, text) if path.suffix.lower() == ".json" else _read_csv(path, text)
    names = [column.name for column in table.columns]
    faults += [
        Fault(f"{name} stands in it more than once", path.name, "leave one of the columns out")
        for name in dict.fromkeys(names)
        if names.count(name) > 1
    ]
    if not faults and not (table.columns and table.rows):
        faults = [Fault("it has no rows of numbers", path.name, "a head with FMU names, and numbers below")]
    if faults:
        raise _make_table_error(path, faults)
    return table


def _make_table_error(path: Path, faults: Sequence[Fault]) -> ValidationError:
    """Return the error of a table with its first faults, and how many more there are."""
    further_faults = [Fault(f"and {len(faults) - _MAX_SHOWN_FAULTS} more")] if len(faults) > _MAX_SHOWN_FAULTS else []
    return ValidationError(
        f"{path} cannot be used as a table of numbers:", [*faults[:_MAX_SHOWN_FAULTS], *further_faults]
    )


def _read_csv(path: Path, text: str) -> tuple[ValidationDataTable, list[Fault]]:
    """Return the table, and its faults."""
    lines = [(k, line) for k, line in enumerate(text.splitlines(), 1) if line.strip() and not line.startswith("#")]
    if not lines:
        return ValidationDataTable(path.name, ()), []
    delimiter = max(",;\t", key=lines[0][1].count)
    faults: list[Fault] = []
    rows = [_split_cells(line, delimiter, f"{path.name}:{line_number}", faults) for line_number, line in lines]
    if faults:
        return ValidationDataTable(path.name, ()), faults
    head = [_parse_heading(cell) for cell in rows[0]]
    faults += [
        Fault(f"column {k} has no name", f"{path.name}:{lines[0][0]}")
        for k, (name, _) in enumerate(head, 1)
        if not name
    ]
    numbers = [line_number for line_number, _ in lines]
    tolerances: list[ValidationDataTolerance | None] = [None] * len(head)
    first_data_row = 1
    if len(rows) > 1 and rows[1] and rows[1][0].strip().lower() == TOLERANCE_ROW:
        first_data_row = 2
        if len(rows[1]) > len(head):
            faults.append(Fault(f"{len(rows[1])} cells below {len(head)} names", f"{path.name}:{numbers[1]}"))
        for k, cell in enumerate(rows[1][1 : len(head)], 1):
            tolerances[k] = _parse_tolerance(cell, f"{path.name}:{numbers[1]}", head[k][0], faults)
    values = np.full((len(rows) - first_data_row, len(head)), np.nan)
    for row, (line_number, cells) in enumerate(zip(numbers[first_data_row:], rows[first_data_row:], strict=True)):
        if len(cells) != len(head):
            faults.append(Fault(f"{len(cells)} cells below {len(head)} names", f"{path.name}:{line_number}"))
            continue
        for column, cell in enumerate(cells):
            values[row, column] = _parse_number(cell, f"{path.name}:{line_number}", head[column][0], faults)
    columns = [ValidationDataColumn(*head[k], values[:, k], tolerances[k]) for k in range(len(head))]
    return ValidationDataTable(path.name, tuple(columns), tuple(numbers[first_data_row:])), faults


def _split_cells(line: str, delimiter: str, place: str, faults: list[Fault]) -> list[str]:
    """Return the cells of a line; with a fault, none, where its quotation marks do not close, for example.

    Where cells are not separated by commas, a comma in a number is a decimal one.
    """
    try:
        (cells,) = csv.reader([line], delimiter=delimiter, strict=True)
    except csv.Error as error:
        faults.append(Fault(f"is no line of cells: {error}", place, "every quotation mark needs one that closes it"))
        return []
    if delimiter == ",":
        return cells
    return [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell) else cell for cell in cells]


def _read_json(path: Path, text: str) -> tuple[ValidationDataTable, list[Fault]]:
    """Read a list of points, or ``{"tolerance": {…}, "points": […]}``; a point is name → number."""
    try:
        record = json.loads(text)
    except (ValueError, RecursionError) as error:
        return ValidationDataTable(path.name, ()), [Fault(f"is no JSON: {error}", path.name)]
    data: Any = record if isinstance(record, dict) else {"points": record}
    points, tolerances = data.get("points"), data.get(TOLERANCE_ROW, {})
    if not (isinstance(points, list) and all(isinstance(each, dict) for each in points)) or not isinstance(
        tolerances, Mapping
    ):
        remedy = 'write {"tolerance": {"der(u)": 1e-9}, "points": [{"time": 0, "q": 0.1, "der(u)": -3.2}]}'
        return ValidationDataTable(path.name, ()), [Fault("it holds no list of points", path.name, remedy)]
    faults: list[Fault] = []
    columns = []
    for heading in dict.fromkeys(name for point in points for name in point):
        name, unit = _parse_heading(heading)
        cells = [point.get(heading, "") for point in points]
        values = [_parse_number(cell, f"{path.name}: point {k}", name, faults) for k, cell in enumerate(cells, 1)]
        tolerance_text = tolerances.get(heading, tolerances.get(name, ""))
        columns.append(
            ValidationDataColumn(
                name, unit, np.array(values), _parse_tolerance(str(tolerance_text), path.name, name, faults)
            )
        )
    column_names = {column.name for column in columns}
    faults += [
        Fault("no point has the quantity of this tolerance", f"{path.name}: {name}")
        for name in tolerances
        if _parse_heading(name)[0] not in column_names
    ]
    return ValidationDataTable(path.name, tuple(columns)), faults


def _parse_heading(text: str) -> tuple[str, str]:
    """Return name and unit of a column; an empty name if it cannot be read."""
    match = _COLUMN_HEADING.match(text.strip())
    return (match["name"].strip(), (match["unit"] or match["close"] or "").strip()) if match else ("", "")


def _parse_number(cell: object, place: str, name: str, faults: list[Fault]) -> float:
    """Return a cell as a number; NaN where it is empty, or, with a fault, where it is no number."""
    if cell is None or (isinstance(cell, str) and not cell.strip()):
        return math.nan
    try:
        number = float(cell) if isinstance(cell, str | int | float) and not isinstance(cell, bool) else math.nan
    except (ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        faults.append(Fault(f"{name}: {cell!r} is no number", place, "write it as 1.5e-3"))
    return number


def _parse_tolerance(cell: str, place: str, name: str, faults: list[Fault]) -> ValidationDataTolerance | None:
    """Read a tolerance from a cell; None if the cell is empty, or wrong: then ``faults`` grows."""
    if not cell.strip():
        return None
    try:
        return ValidationDataTolerance.read(cell)
    except ValueError:
        faults.append(Fault(f"{name}: {cell!r} is no tolerance", place, "a positive number, or one with %: 0.01, 1%"))
        return None
