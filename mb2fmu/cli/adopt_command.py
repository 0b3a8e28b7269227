"""The command ``mb2fmu adopt``: a model file for a SymPy script."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    combine_click_options,
    json_file_option,
    print_unless_quiet,
    write_json_result,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mb2fmu.pipeline.adoption.adopted_script_result import AdoptedModelFile

_MAX_NAMES = 12
"""Names that are listed in one line."""


@click.command(short_help="Write a model file for a SymPy script, which stays as it is.")
@click.argument("script", type=click.Path(path_type=Path), metavar="SCRIPT.py|NOTEBOOK.ipynb")
@click.option(
    "-o",
    "--output",
    "output",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="MODEL.py",
    help="The model file.  [default: SCRIPT_model.py beside the script]",
)
@click.option(
    "--object", "label", metavar="NAME", help="The script's variable with the mechanics to use, if it makes several."
)
@click.option(
    "--time", "time_limit", type=click.FloatRange(min=1.0), default=60.0, show_default=True, metavar="SECONDS",
    help="Time limit of the script.",
)  # fmt: skip
@click.option(
    "--inline", is_flag=True, help="Write the script's lines into the model file, which then needs no script."
)
@click.option("--force", "overwrite", is_flag=True, help="Replace MODEL.py if it is there, with what was edited in it.")
@combine_click_options(json_file_option, add_quiet_and_debug_options)
def adopt(
    script: Path,
    output: Path | None,
    label: str | None,
    time_limit: float,
    inline: bool,
    overwrite: bool,
    json_file: Path | None,
) -> None:
    """Writes a model file for a script that makes a KanesMethod, LagrangesMethod, JointsMethod or System.

    The script runs in a process of its own, up to its first integration. Values, start values and the experiment are
    those of the script; units of measurement follow from the mechanics. What the script does not say is a line to fill
    in.

    \b
    Example:
      mb2fmu adopt pendulum.py
      mb2fmu run pendulum_model.py
    """
    from mb2fmu.pipeline.adoption.script_adoption import adopt as adopt_script

    path, record = adopt_script(script, output, label=label, time_limit=time_limit, inline=inline, overwrite=overwrite)
    if write_json_result({"model": str(path), **asdict(record)}, json_file):
        return
    for line in _describe(record, script):
        print_unless_quiet(line)
    filled = f"fill in the lines with TODO in {path}, then: " if record.missing else ""
    print_unless_quiet(f"{path}: {filled}mb2fmu run {path}")


def _describe(record: AdoptedModelFile, script: Path) -> list[str]:
    """Return what is said about an adopted script."""
    counts = ", ".join(f"{count} {kind}{'s' * (count != 1)}" for kind, count in record.counts.items() if count)
    lines = [f"{script.name}: {record.label}, {record.kind}, with {counts}"]
    if record.others:
        lines.append(f"  it also makes {', '.join(record.others)}; choose one by --object NAME")
    if record.inputs:
        lines.append(f"  inputs: {', '.join(record.inputs)}")
    if record.missing:
        lines.append(f"  no value found: {', '.join(record.missing)}")
    if record.no_signal:
        lines.append(f"  no signal found: {_join_some(record.no_signal)}")
    if record.no_start:
        lines.append(f"  no start value found, one is assumed: {_join_some(record.no_start)}")
    lines += [f"  units do not fit: {each}" for each in record.contradictions[:5]]
    if record.error:
        lines.append(f"  the script ended by an error, after its mechanics were made: {record.error}")
    lines += [f"  note: {each}" for each in record.notes]
    lines += [f"  to mend: {each}" for each in record.faults]
    return lines


def _join_some(names: Sequence[str]) -> str:
    """Return names in one line that can be read: the first of many, and how many more there are."""
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
