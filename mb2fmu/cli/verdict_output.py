"""Show verdicts of the commands that judge an FMU."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mb2fmu.cli.command_options import is_quiet, json_file_option

if TYPE_CHECKING:
    from rich.console import RenderableType

    from mb2fmu.validation import TableResult, ValidationResult

PIPED_WIDTH_CHARACTERS = 120

verdict_json_option = json_file_option


def print_validation_verdict(result: ValidationResult, json_file: Path | None, files: Mapping[str, Path]) -> None:
    """Print a verdict and the places of written files; end with exit code 0 or 1."""
    from mb2fmu.report.terminal_verdict import format_verdict_blocks

    text = result.to_json(timings=True) if json_file is not None else ""
    _print_verdict(text, json_file, lambda width: format_verdict_blocks(result, width), files)
    click.get_current_context().exit(0 if result.passed else 1)


def print_table_verdicts(results: Sequence[TableResult], json_file: Path | None) -> None:
    """Show the verdict on tables alone, without a model."""
    from mb2fmu.report.sections.measurement_comparison import format_tables_as_json, format_tables_for_terminal

    text = format_tables_as_json(results) if json_file is not None else ""
    _print_verdict(text, json_file, lambda width: format_tables_for_terminal(results, width), {})
    click.get_current_context().exit(0 if all(result.passed for result in results) else 1)


def _print_verdict(
    text: str,
    json_file: Path | None,
    blocks: Callable[[int], Iterable[RenderableType]],
    files: Mapping[str, Path],
) -> None:
    """Print JSON where it goes to stdout; else print blocks, and write JSON into its file."""
    from rich.console import Console

    from mb2fmu import pipeline

    if json_file is not None and str(json_file) == "-":
        click.echo(text, nl=False)
        return
    if json_file is not None:
        pipeline.write(json_file, text.encode())
    if is_quiet():
        return
    console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH_CHARACTERS)
    for block in blocks(console.width):
        console.print(block)
    for what, path in files.items():
        console.print(f"{what}: {path}", soft_wrap=True, highlight=False, markup=False)
