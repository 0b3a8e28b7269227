"""The command ``mb2fmu linearize``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from mb2fmu.cli.options import debug_option, options, set_option
from mb2fmu.cli.progress import Progress


def _numbers(_ctx: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, float]:
    """NAME=NUMBER with FMU names."""
    found = {}
    for text in values:
        name, sign, value = text.partition("=")
        try:
            found[name] = float(value)
        except ValueError:
            sign = ""
        if not sign:
            raise click.BadParameter(f"{text}: write NAME=NUMBER, as in --at theta=0.1")
    return found


@click.command(short_help="Linear equations about an operating point, and eigenvalues.")
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL.py")
@click.option("--method", default="auto", show_default=True, help="Formulation of the equations of motion.")
@click.option(
    "--at",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_numbers,
    help="Value of a state, input or parameter instead of its start value. States keep it. May be repeated.",
)
@click.option("--trim", multiple=True, metavar="INPUT", help="Input that may change to make it an operating point.")
@click.option("--instant", is_flag=True, help="At the start values themselves: look for no equilibrium.")
@click.option(
    "--plot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also draw the eigenvalues, as .svg or .png.",
)
@click.option(
    "--json",
    "json_file",
    type=click.Path(path_type=Path, dir_okay=False, allow_dash=True),
    metavar="FILE",
    help="Also write all matrices as JSON; - writes them to stdout instead of the text.",
)
@options(set_option, debug_option)
def linearize(
    model: Path,
    method: Any,
    arguments: dict[str, str],
    at: dict[str, float],
    trim: tuple[str, ...],
    plot: Path | None,
    json_file: Path | None,
    *,
    instant: bool,
) -> None:
    """Finds an equilibrium or steady motion near the start values, and linearizes there.

    Prints eigenvalues of x' = A x + B r on the constraints; --json gives A, B, C, D too.

    \b
    Examples:
      mb2fmu linearize models/cart_pole.py --at x=1
      mb2fmu linearize models/rolling_disc.py --plot wobble.svg
      mb2fmu linearize models/rolling_disc.py --at u2=12 --json disc.json
    """
    from mb2fmu import pipeline
    from mb2fmu.report.spectrum import spectrum, spectrum_text

    with Progress() as progress:
        found = pipeline.linearize(
            model, at=at, trim=trim, search=not instant, arguments=arguments, method=method, observer=progress
        )
    if plot is not None:
        pipeline.write(plot, spectrum(found, form="png" if plot.suffix.lower() == ".png" else "svg"))
    to_stdout = json_file is not None and str(json_file) == "-"
    if json_file is not None and not to_stdout:
        pipeline.write(json_file, found.to_json().encode())
    click.echo(found.to_json() if to_stdout else spectrum_text(found), nl=False)
