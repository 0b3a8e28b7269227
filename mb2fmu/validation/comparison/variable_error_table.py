"""Errors of an FMU against the reference as a list that prints as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mb2fmu.validation.validation_result import ValidationResult


@dataclass(frozen=True, slots=True)
class VariableErrorEntry:
    """Largest error of one variable over its bound, in one run of the FMU.

    Attributes:
        name: FMU name of the variable.
        unit: Of ``error`` and ``bound``.
        run: The interface type, and ``perturbed`` for the perturbed experiment.
        error: |FMU - reference| where error/bound is largest.
        bound: Allowed error there.
        ratio: error/bound there; above 1 the variable failed.
        time: Time there, s.
        passed: Whether the variable is judged and within its bound.
    """

    name: str
    unit: str
    run: str
    error: float
    bound: float
    ratio: float
    time: float
    passed: bool


class VariableErrorTable(Sequence[VariableErrorEntry]):
    """Errors of all variables, the worst first; prints as a table.

    Args:
        rows: One for each variable and run.
    """

    def __init__(self, rows: Sequence[VariableErrorEntry]) -> None:
        self._rows = tuple(sorted(rows, key=lambda row: -math.inf if math.isnan(row.ratio) else -row.ratio))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[VariableErrorEntry]:
        return iter(self._rows)

    def __getitem__(self, index: Any) -> Any:
        """Return a row, or a tuple of rows for a slice."""
        return self._rows[index]

    def __repr__(self) -> str:
        """Return the table."""
        head = ["variable", "unit", "run", "error", "bound", "error/bound", "at t in s"]
        rows = [
            [row.name, row.unit, row.run, *(f"{each:.3g}" for each in (row.error, row.bound, row.ratio, row.time))]
            for row in self._rows
        ]
        widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
        lines = ("  ".join(f"{text:<{w}}" for text, w in zip(row, widths, strict=True)) for row in [head, *rows])
        return "\n".join(line.rstrip() for line in lines)

    @property
    def worst(self) -> str:
        """The worst variable and its error over its bound, in words."""
        return f"worst error/bound {self._rows[0].ratio:.2g} ({self._rows[0].name})"

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with a column for each attribute of a row."""
        import pandas as pd

        names = [field.name for field in fields(VariableErrorEntry)]
        return pd.DataFrame([[getattr(row, name) for name in names] for row in self._rows], columns=names)


def list_variable_errors(result: ValidationResult) -> VariableErrorTable:
    """Return the errors of each variable in each run: default and perturbed, Co-Simulation and Model Exchange."""
    return VariableErrorTable(
        [
            VariableErrorEntry(v.name, v.unit, run, v.error, v.bound, v.ratio, v.at, v.verdict == "passed")
            for run, kind in result.judged_runs
            for v in kind.variables
        ]
    )
