"""How commands that judge a unit show the verdict."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from mb2fmu.validation import ValidationResult

PIPED_WIDTH = 120

json_option = click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Also write the verdict and all numbers as JSON; - writes them to stdout instead of the table.",
)


def show_verdict(result: ValidationResult, json_file: Path | None, files: Mapping[str, Path]) -> None:
    """Prints a verdict and where to find what was written; ends with exit code 0 or 1."""
    from rich.console import Console

    from mb2fmu import pipeline
    from mb2fmu.report.terminal import verdict_blocks

    to_stdout = json_file is not None and str(json_file) == "-"
    if json_file is not None:
        text = result.to_json(timings=True)
        if to_stdout:
            click.echo(text, nl=False)
        else:
            pipeline.write(json_file, text.encode())
    if not to_stdout:
        console = Console(width=None if sys.stdout.isatty() else PIPED_WIDTH)
        for block in verdict_blocks(result, console.width):
            console.print(block)
        for what, path in files.items():
            console.print(f"{what}: {path}", soft_wrap=True, highlight=False, markup=False)
    click.get_current_context().exit(0 if result.passed else 1)
