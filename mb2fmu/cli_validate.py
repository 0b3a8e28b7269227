"""The command ``mb2fmu validate``."""

from __future__ import annotations

from pathlib import Path

import click

from mb2fmu.cli_options import debug_option, options, set_option
from mb2fmu.cli_progress import Progress
from mb2fmu.cli_verdict import json_option, show_verdict


@click.command(short_help="Run any FMU against a model's reference.")
@click.argument("fmu", type=click.Path(path_type=Path), metavar="[UNIT.fmu]", required=False)
@click.option(
    "--model",
    type=click.Path(path_type=Path),
    metavar="MODEL.py",
    help="Model file whose reference the FMU has to meet.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Also write the report page.",
)
@click.option(
    "--check-report",
    "claimed",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Say whether this report is about UNIT.fmu (the one beside it, if none is given), and what it says of it.",
)
@options(set_option, json_option, debug_option)
def validate(
    fmu: Path | None,
    model: Path | None,
    report: Path | None,
    claimed: Path | None,
    arguments: dict[str, str],
    json_file: Path | None,
) -> None:
    """Runs any FMU against the model's independently integrated reference.

    The FMU may come from any tool; its variables are found by name. With --check-report nothing is run: exit code 0
    only if the report is about this very file and says that it passed.

    \b
    Examples:
      mb2fmu validate out/CartPole.fmu --model models/cart_pole.py
      mb2fmu validate theirs.fmu --model models/cart_pole.py --json verdict.json --report verdict.html
      mb2fmu validate --check-report out/CartPole.html
    """
    if claimed is not None:
        _check(claimed, fmu, others=(model, report, json_file))
        return
    if fmu is None or model is None:
        raise click.UsageError("name the unit and its model: mb2fmu validate UNIT.fmu --model MODEL.py")
    from mb2fmu import pipeline

    with Progress() as progress:
        validated = pipeline.validate(fmu, model, arguments=arguments, observer=progress)
    if report:
        pipeline.write(report, pipeline.report(validated))
    show_verdict(validated.result, json_file, {"report": report} if report else {})


def _check(report: Path, unit: Path | None, others: tuple[Path | None, ...]) -> None:
    """Says whether a report and a unit belong together; ends with exit code 0 or 1."""
    from mb2fmu import publication

    if any(each is not None for each in others):
        raise click.UsageError("--check-report runs nothing: give it no --model, --report or --json")
    belonging = publication.check_report(report, unit)
    click.echo(belonging.text)
    click.get_current_context().exit(0 if belonging.passed else 1)
