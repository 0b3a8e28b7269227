"""The command ``mb2fmu linearize``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    at_option,
    combine_click_options,
    is_quiet_option_given,
    json_file_option,
    set_option,
)
from mb2fmu.cli.robot_options import add_robot_options
from mb2fmu.cli.stage_progress_display import StageProgressDisplay
from mb2fmu.mechanics.formulation_registry import FORMULATIONS

MAX_SWEEP_POINTS = 10_000


def _parse_sweep_range(
    _ctx: click.Context, _parameter: click.Parameter, text: str | None
) -> tuple[str, list[float]] | None:
    """Return NAME=FIRST:LAST:STEP as a name and its values."""
    if text is None:
        return None
    name, _, numbers = text.partition("=")
    try:
        first, last, step = map(float, numbers.split(":"))
        count = int((last - first) / step * (1 + 1e-12) + 1e-9)
    except (ValueError, ZeroDivisionError, OverflowError):
        count = 0
    if not name or not 0 < count <= MAX_SWEEP_POINTS:
        raise click.BadParameter(
            f"{text}: write NAME=FIRST:LAST:STEP, as in --sweep v=0:10:0.1, with 2 to {MAX_SWEEP_POINTS} values"
        )
    return name, [first + k * step for k in range(count + 1)]


def _run_root_locus(
    model: Path, over: tuple[str, list[float]], plot: Path | None, json_file: Path | None, **given: Any
) -> None:
    """Print, draw and write a root locus."""
    from mb2fmu import pipeline
    from mb2fmu.report.figures.figure_style import choose_figure_format
    from mb2fmu.report.figures.root_locus_figure import draw_root_locus, format_root_locus

    form = "svg" if plot is None else choose_figure_format(plot)
    with StageProgressDisplay() as progress:
        found = pipeline.sweep(model, *over, observer=progress, **given)
    if plot is not None:
        pipeline.write(plot, draw_root_locus(found, form=form))
    if json_file is not None and str(json_file) != "-":
        pipeline.write(json_file, found.to_json().encode())
    if json_file is not None and str(json_file) == "-":
        click.echo(found.to_json(), nl=False)
    elif not is_quiet_option_given():
        click.echo(format_root_locus(found), nl=False)


@click.command(short_help="Linear equations about an operating point, and eigenvalues.")
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL.py|ROBOT.urdf")
@click.option(
    "--method",
    type=click.Choice(["auto", *(row.name for row in FORMULATIONS)]),
    default="auto",
    show_default=True,
    help="Formulation of the equations of motion.",
)
@at_option
@click.option("--trim", multiple=True, metavar="INPUT", help="Input that may change to make it an operating point.")
@click.option("--instant", is_flag=True, help="At the start values themselves: look for no equilibrium.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also draw the eigenvalues, as .svg, .png or .pdf.",
)
@click.option(
    "--sweep",
    metavar="NAME=FIRST:LAST:STEP",
    callback=_parse_sweep_range,
    help="Eigenvalues over a state, input or parameter, and the values at which stability changes.",
)
@combine_click_options(json_file_option, set_option, add_robot_options, add_quiet_and_debug_options)
def linearize(
    model: Path,
    method: Any,
    arguments: dict[str, str],
    at: dict[str, str],
    trim: tuple[str, ...],
    plot: Path | None,
    json_file: Path | None,
    sweep: tuple[str, list[float]] | None,
    *,
    instant: bool,
) -> None:
    """Finds an equilibrium or steady motion near the start values, and linearizes there.

    States named by --at keep their values in the search. Prints eigenvalues of x' = A x + B r on the constraints,
    and A and B of up to 6 states; --json gives A, B, C, D.

    \b
    Examples:
      mb2fmu linearize cart_pole --at x=1
      mb2fmu linearize rolling_disc --plot wobble.svg
      mb2fmu linearize rolling_disc --at u2=12 --json disc.json
      mb2fmu linearize bicycle --at lean_rate=0 --sweep v=0:10:0.1 --plot bicycle.svg
    """
    if sweep is not None:
        if instant:
            raise click.UsageError("--sweep looks for an operating point at each value: leave --instant out")
        _run_root_locus(model, sweep, plot, json_file, at=at, trim=trim, arguments=arguments, method=method)
        return
    from mb2fmu import pipeline
    from mb2fmu.report.figures.eigenvalue_figure import draw_eigenvalues, format_eigenvalues
    from mb2fmu.report.figures.figure_style import choose_figure_format

    form = "svg" if plot is None else choose_figure_format(plot)
    with StageProgressDisplay() as progress:
        found = pipeline.linearize(
            model, at=at, trim=trim, search=not instant, arguments=arguments, method=method, observer=progress
        )
    if plot is not None:
        pipeline.write(plot, draw_eigenvalues(found, form=form))
    to_stdout = json_file is not None and str(json_file) == "-"
    if json_file is not None and not to_stdout:
        pipeline.write(json_file, found.to_json().encode())
    if to_stdout:
        click.echo(found.to_json(), nl=False)
    elif not is_quiet_option_given():
        click.echo(format_eigenvalues(found), nl=False)
