"""The user's tables against the FMU: on a terminal, in the report, as JSON. Numbers are copied only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from mb2fmu.report.pages.report_page_records import VariableErrorRow
from mb2fmu.report.sections.validation_sections import error_ratio_bar_width, make_display_number
from mb2fmu.validation.validation_result import INTERFACE_TYPE_NAMES

if TYPE_CHECKING:
    from mb2fmu.validation.data.measured_data_comparison import MeasuredColumnComparison, MeasuredTableComparison

_VERDICT_STYLES = {"passed": "green", "failed": "bold red"}
_NARROW_WIDTH = 88


def format_measurements_for_terminal(
    results: Sequence[MeasuredTableComparison], width: int
) -> Iterator[RenderableType]:
    """Yield blocks of tables for a terminal of that ``width``, with one last line each."""
    for result in results:
        yield _make_error_table(result, wide=width >= _NARROW_WIDTH)
        yield _format_verdict_line(result)


def list_measurement_rows(results: Sequence[MeasuredTableComparison]) -> dict[str, tuple[VariableErrorRow, ...]]:
    """Return heading → rows of the report, the worst first."""
    return {
        _format_table_heading(result): tuple(
            _form_column_row(result, column) for column in sorted(result.columns, key=lambda each: -each.ratio)
        )
        for result in results
    }


def describe_failed_measured_tables(results: Sequence[MeasuredTableComparison]) -> tuple[str, ...]:
    """Return what failed, for a headline."""
    return tuple(
        f"{result.source}: not within its tolerances: {', '.join(_failed_columns(result))}"
        for result in results
        if _failed_columns(result)
    )


def format_measurements_as_json(results: Sequence[MeasuredTableComparison]) -> str:
    """Return tables without a model's validation, as JSON."""
    record: Mapping[str, Any] = {
        "passed": all(result.passed for result in results),
        "tables": [result.to_record() for result in results],
    }
    return json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False, allow_nan=False) + "\n"


def _failed_columns(result: MeasuredTableComparison) -> list[str]:
    """Return names of the columns that exceed their bounds."""
    return [column.name for column in result.columns if column.verdict == "failed"]


def _format_table_heading(result: MeasuredTableComparison) -> str:
    """Return the heading of a comparison with a user's table."""
    what = "points of" if result.points else "along"
    kind = "Model Exchange" if result.points and result.kind == "ModelExchange" else INTERFACE_TYPE_NAMES[result.kind]
    return f"Your own numbers: {what} {result.source}, {kind}"


def _describe_largest_error_place(result: MeasuredTableComparison, column: MeasuredColumnComparison) -> str:
    """Return the place of the largest error."""
    return f"row {column.row}" if result.points else f"{column.time:.6g} s"


def _form_column_row(result: MeasuredTableComparison, column: MeasuredColumnComparison) -> VariableErrorRow:
    """Return one column as a row of the report."""
    values = f"{column.expected:.6g} in the table, {column.found:.6g} of the FMU"
    return VariableErrorRow(
        name=column.name,
        anchor="",
        unit=column.unit,
        largest=make_display_number(column.error),
        error=make_display_number(column.error),
        bound=make_display_number(column.tolerance),
        ratio=make_display_number(column.ratio),
        bar_length=error_ratio_bar_width(column.ratio),
        when=make_display_number(column.time),
        verdict=column.verdict,
        state="good" if column.verdict == "passed" else "bad",
        remark=f"row {column.row}: {values}" if result.points else values,
    )


def _format_verdict_line(result: MeasuredTableComparison) -> Text:
    """Return whether it passed, and by how much."""
    wrong = _failed_columns(result)
    worst = max(result.columns, key=lambda column: column.ratio)
    count = f"{len(result.columns)} columns" if len(result.columns) != 1 else "1 column"
    if wrong:
        return Text(
            f"{result.source}: failed: {', '.join(wrong)} not within tolerance", style=_VERDICT_STYLES["failed"]
        )
    text = (
        f"{result.source}: passed, {count} within tolerance, largest error/tolerance {worst.ratio:.3g} ({worst.name})"
    )
    return Text(text, style=_VERDICT_STYLES["passed"])


def _make_error_table(result: MeasuredTableComparison, *, wide: bool) -> Table:
    """Return each column's largest error."""
    table = Table(
        title=_format_table_heading(result),
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
    )
    table.add_column("column", overflow="fold")
    headings = ["error", "tolerance", "ratio"]
    if wide:
        table.add_column("unit")
        headings = ["table", "FMU gives", *headings, "at", "numbers"]
    for heading in headings:
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("verdict")
    for column in result.columns:
        numbers = [f"{value:.3g}" for value in (column.error, column.tolerance, column.ratio)]
        cells = [f"{column.name} ({column.unit or '1'})", *numbers]
        if wide:
            seen = [f"{column.expected:.6g}", f"{column.found:.6g}"]
            cells = [
                column.name,
                column.unit or "1",
                *seen,
                *numbers,
                _describe_largest_error_place(result, column),
                str(column.count),
            ]
        table.add_row(*cells, Text(column.verdict, style=_VERDICT_STYLES[column.verdict]))
    return table
