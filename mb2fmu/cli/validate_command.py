"""The command ``mb2fmu validate``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    combine_click_options,
    load_model_with_values,
    set_option,
    start_fmu_run_server,
    verbose_option,
)
from mb2fmu.cli.stage_progress_display import StageProgressDisplay
from mb2fmu.cli.verdict_output import (
    default_only_option,
    print_data_table_verdicts,
    print_validation_verdict,
    verdict_json_option,
)

if TYPE_CHECKING:
    from mb2fmu.validation import MeasuredDataRunSettings, ValidationDataTolerance

_table_options = (
    click.option(
        "--data",
        type=click.Path(path_type=Path, dir_okay=False),
        multiple=True,
        metavar="FILE.csv",
        help="What was measured over time: a column time, and columns by FMU name. May be repeated.",
    ),
    click.option(
        "--points",
        type=click.Path(path_type=Path, dir_okay=False),
        multiple=True,
        metavar="FILE.csv|json",
        help="Points: states, inputs, parameters that are set, and der(x) and outputs as they must then be.",
    ),
    click.option(
        "--tolerance",
        "tolerances",
        multiple=True,
        metavar="[NAME=]VALUE[%]",
        help="How far a column of --data or --points may be off, in its unit or in percent of its largest magnitude; "
        "without a name: all other columns. May be repeated.",
    ),
    click.option(
        "--at",
        "starts",
        multiple=True,
        metavar="NAME=VALUE",
        help="Value of the model, as for other commands. With --data or --points: value of the FMU along these, in the "
        "FMU's own unit. May be repeated.",
    ),
    click.option("--step", type=float, metavar="SECONDS", help="Longest communication step along the table of --data."),
)


@click.command(short_help="Run any FMU against a model's reference, or against your own numbers.")
@click.argument("fmu", type=click.Path(path_type=Path), metavar="[NAME.fmu]", required=False)
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
    help="Also write the report page; needs --model.",
)
@combine_click_options(*_table_options)
@click.option(
    "--check-report",
    "claimed",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Say whether this report is about NAME.fmu (the one beside it, if none is given), and what it says of it.",
)
@combine_click_options(
    set_option, default_only_option, verdict_json_option, verbose_option, add_quiet_and_debug_options
)
def validate(
    fmu: Path | None,
    model: Path | None,
    report: Path | None,
    data: tuple[Path, ...],
    points: tuple[Path, ...],
    tolerances: tuple[str, ...],
    starts: tuple[str, ...],
    step: float | None,
    claimed: Path | None,
    arguments: dict[str, str],
    default_only: bool,
    json_file: Path | None,
) -> None:
    """Runs any FMU against the model's independently integrated reference, and against numbers of your own.

    The FMU may come from any tool; its variables are found by name. Columns of --data and --points are headed by FMU
    names, with a unit where it is another than the FMU's: theta [deg]. A second row that begins with "tolerance" says
    how far each may be off. With --check-report nothing is run: exit code 0 only if the report is about this very file
    and says that it passed.

    \b
    Examples:
      mb2fmu validate out/CartPole.fmu --model cart_pole
      mb2fmu validate theirs.fmu --model cart_pole --json verdict.json --report verdict.html
      mb2fmu validate out/CartPole.fmu --model cart_pole --data measured.csv
      mb2fmu validate theirs.fmu --data measured.csv --tolerance theta=0.5 --tolerance 1%
      mb2fmu validate theirs.fmu --points published.json --tolerance 1e-9
      mb2fmu validate --check-report out/CartPole.html
    """
    given_options = (model, report, json_file, *data, *points)
    if claimed is not None:
        _check_report_match(claimed, fmu, runs_nothing=not any(each is not None for each in given_options))
        return
    _refuse_files_as_start_values(starts)
    if fmu is None or (model is None and not data and not points):
        raise click.UsageError(
            "name the FMU and its model: mb2fmu validate NAME.fmu --model MODEL.py; or --data, --points. "
            "Without a model or numbers, mb2fmu audit NAME.fmu holds an FMU against its own description"
        )
    if model is None and default_only:
        raise click.UsageError("--default-only needs --model: it is about the model's experiments")
    if model is None and report is not None:
        raise click.UsageError("--report needs --model: the page is about the model's equations")
    of_tables = bool(data or points)
    if (tolerances or step is not None) and not of_tables:
        raise click.UsageError("--tolerance and --step are of --data and --points: the validation has its own bounds")
    start_fmu_run_server()
    from mb2fmu import pipeline

    settings = _form_data_run_settings(tolerances, starts if of_tables else (), step)
    if model is None:
        print_data_table_verdicts(pipeline.compare_with_data(fmu, data=data, at=points, settings=settings), json_file)
        return
    values = {} if of_tables else {name: value for name, _, value in (text.partition("=") for text in starts)}
    judging = load_model_with_values(model, arguments, values)
    with StageProgressDisplay() as progress:
        tables = pipeline.compare_with_data(fmu, data=data, at=points, settings=settings)
        validated = pipeline.validate(fmu, judging, arguments=arguments, observer=progress, default_only=default_only)
    if tables:
        validated = replace(validated, result=replace(validated.result, tables=tables))
    if report:
        pipeline.write(report, pipeline.render_validation_report(validated))
    print_validation_verdict(validated.result, json_file, fmu, report)


def _refuse_files_as_start_values(starts: tuple[str, ...]) -> None:
    """Raise for values of --at without a name: they look like files of points."""
    files = [text for text in starts if "=" not in text]
    if files:
        what = f"{', '.join(files)}: write NAME=VALUE; a file of points is given by --points"
        raise click.BadParameter(what, param_hint="--at")


def _form_data_run_settings(
    tolerances: tuple[str, ...], starts: tuple[str, ...], step: float | None
) -> MeasuredDataRunSettings:
    """Return the options of tables as one record."""
    from mb2fmu.validation import MeasuredDataRunSettings, ValidationDataTolerance

    named: dict[str, ValidationDataTolerance] = {}
    otherwise: ValidationDataTolerance | None = None
    for text in tolerances:
        name, sign, value = text.rpartition("=")
        try:
            tolerance = ValidationDataTolerance.read(value)
        except ValueError as error:
            raise click.BadParameter(f"{text}: write NAME=0.01, NAME=1% or 1%", param_hint="--tolerance") from error
        if sign:
            named[name.strip()] = tolerance
        else:
            otherwise = tolerance
    if step is not None and not step > 0.0:
        raise click.BadParameter(f"{step} is not positive", param_hint="--step")
    return MeasuredDataRunSettings(
        starts=_parse_numbers(starts), tolerances=named, default_tolerance=otherwise, step=step
    )


def _parse_numbers(texts: tuple[str, ...]) -> Mapping[str, float]:
    """Return NAME=VALUE pairs as numbers by name."""
    found = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError as error:
            raise click.BadParameter(f"{text}: write NAME=VALUE", param_hint="--at") from error
    return found


def _check_report_match(report: Path, fmu: Path | None, *, runs_nothing: bool) -> None:
    """Report whether a report and an FMU belong together; end with exit code 0 or 1."""
    from mb2fmu.pipeline.run_and_report import fmu_and_report_publication

    if not runs_nothing:
        raise click.UsageError("--check-report runs nothing: give it no --model, --report, --json, --data or --points")
    belonging = fmu_and_report_publication.match_report_to_fmu(report, fmu)
    click.echo(belonging.text)
    click.get_current_context().exit(0 if belonging.passed else 1)
