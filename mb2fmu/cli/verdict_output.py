"""Show verdicts of commands: a short summary, all tables with ``--verbose``, JSON where it is requested."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mb2fmu.cli.command_options import is_quiet_option_given, is_verbose_option_given, json_file_option, write_json_text
from mb2fmu.cli.stage_progress_display import seconds_since_command_start

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from mb2fmu.pipeline import RunResult
    from mb2fmu.report.summary_lines import VerdictSummaryLine
    from mb2fmu.validation import MeasuredTableComparison, ValidationResult

PIPED_WIDTH_CHARACTERS = 120
MAX_LINES_GOOD, MAX_LINES_BAD = 14, 30
"""Lines of a summary."""

verdict_json_option = json_file_option
default_only_option = click.option(
    "--default-only",
    is_flag=True,
    help="Exit with code 0 too where the default experiment agrees and no other values could be exercised.",
)


def print_run_verdict(run: RunResult, json_file: Path | None, report: Path) -> None:
    """Print the verdict on an FMU that was made here; end with exit code 0 or 1."""
    from mb2fmu.report.sections.model_and_fmu_facts import summarize_fmu
    from mb2fmu.report.summary_lines import VerdictSummaryLine

    built = run.exported.build
    made = [
        VerdictSummaryLine("FMU", str(run.exported.path), is_path=True),
        VerdictSummaryLine("", summarize_fmu(built.derivation.equations, built.interface, built.platforms)),
    ]
    files = [VerdictSummaryLine("Report", str(report), is_path=True)]
    _finish_validation(run.validated.result, json_file, made, files)


def print_validation_verdict(result: ValidationResult, json_file: Path | None, fmu: Path, report: Path | None) -> None:
    """Print the verdict on any FMU, and where the report is; end with exit code 0 or 1."""
    from mb2fmu.report.summary_lines import VerdictSummaryLine
    from mb2fmu.validation.validation_result import INTERFACE_TYPE_NAMES

    kinds = " and ".join(INTERFACE_TYPE_NAMES[kind.simulation.kind].split(",")[0] for kind in result.kinds)
    made = [VerdictSummaryLine("FMU", str(fmu), is_path=True), VerdictSummaryLine("", kinds)]
    files = [VerdictSummaryLine("Report", str(report), is_path=True)] if report else []
    _finish_validation(result, json_file, made, files)


def _finish_validation(
    result: ValidationResult,
    json_file: Path | None,
    made: Sequence[VerdictSummaryLine],
    files: Sequence[VerdictSummaryLine],
) -> None:
    """Print a validation; end with exit code 0 or 1."""
    from mb2fmu.report.terminal_verdict_tables import format_terminal_verdict_blocks
    from mb2fmu.report.verdict_summary import summarize_validation

    text = result.to_json(timings=True) if json_file is not None else ""
    if not write_json_text(text, json_file):
        headline, lines = summarize_validation(result, made, files, seconds_since_command_start())
        print_verdict_summary(headline, lines, lambda width: format_terminal_verdict_blocks(result, width))
    click.get_current_context().exit(0 if result.passed else 1)


def print_data_table_verdicts(results: Sequence[MeasuredTableComparison], json_file: Path | None) -> None:
    """Show the verdict on tables alone, without a model."""
    from mb2fmu.report.sections.measured_data_section import (
        format_measurements_as_json,
        format_measurements_for_terminal,
    )

    text = format_measurements_as_json(results) if json_file is not None else ""
    if not write_json_text(text, json_file) and not is_quiet_option_given():
        console = _make_terminal_console()
        for block in format_measurements_for_terminal(results, console.width):
            console.print(block)
    click.get_current_context().exit(0 if all(result.passed for result in results) else 1)


def print_verdict_summary(
    headline: VerdictSummaryLine,
    lines: Iterable[VerdictSummaryLine],
    details: Callable[[int], Iterable[RenderableType]] | None = None,
) -> None:
    """Print details where they are requested, then the headline and a line for each question.

    Args:
        headline: The verdict.
        lines: Answers to the user's questions.
        details: Returns all tables for a width; printed with ``--verbose`` only.
    """
    if is_quiet_option_given():
        return
    from rich.text import Text

    from mb2fmu.report.summary_lines import truncate_summary, wrap_summary_lines

    console = _make_terminal_console()
    if details is not None and is_verbose_option_given():
        for block in details(console.width):
            console.print(block)
        console.print(Text())
    rows = list(wrap_summary_lines(headline, lines, console.width, sys.stdout.encoding))
    most = MAX_LINES_BAD if headline.state == "bad" else MAX_LINES_GOOD
    for row in rows if is_verbose_option_given() else truncate_summary(rows, most):
        console.print(row, soft_wrap=True, highlight=False)


def _make_terminal_console() -> Console:
    """Return a console as wide as the terminal; of a fixed width, and without colours, where there is none."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH_CHARACTERS, highlight=False)
