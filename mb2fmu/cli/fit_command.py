"""The command ``mb2fmu fit``."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from mb2fmu.cli.command_options import (
    add_quiet_and_debug_options,
    at_option,
    combine_click_options,
    json_file_option,
    load_model_with_values,
    print_unless_quiet,
    set_option,
)
from mb2fmu.cli.stage_progress_display import StageProgressDisplay
from mb2fmu.errors import Mb2FmuError

if TYPE_CHECKING:
    from mb2fmu.analysis.studies.model_fitting import FitResult


def _parse_bounds(
    _ctx: click.Context, _option: click.Parameter, texts: tuple[str, ...]
) -> dict[str, tuple[float, float]]:
    """Return NAME=LOW:HIGH options as bounds by name (click's callback)."""
    found = {}
    for text in texts:
        name, _, both = text.partition("=")
        low, _, high = both.partition(":")
        try:
            ends = float(low or "-inf"), float(high or "inf")
            if not ends[0] < ends[1]:
                raise click.BadParameter(f"{text}: LOW is not below HIGH; write --bounds m2=0.1:5")
            found[name.strip()] = ends
        except ValueError as error:
            raise click.BadParameter(f"{text}: write NAME=LOW:HIGH, as in --bounds m2=0.1:5") from error
    return found


@click.command(short_help="Find parameters of a model from measured motions.")
@click.argument("model", type=click.Path(path_type=Path), metavar="MODEL.py|ROBOT.urdf")
@click.option(
    "--data",
    required=True,
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.csv",
    help="A measured motion: time, and columns headed by FMU names, with units in brackets if they are others. "
    "Inputs may be among them. Given again: further experiments.",
)
@click.option(
    "--free",
    required=True,
    metavar="NAMES",
    callback=lambda _c, _o, text: tuple(name.strip() for name in text.split(",") if name.strip()),
    help="What to find, separated by commas: parameters, and states, whose start values are found for each experiment.",
)
@click.option(
    "--bounds",
    multiple=True,
    metavar="NAME=LOW:HIGH",
    callback=_parse_bounds,
    help="Bounds of the search. May be repeated.",
)
@click.option(
    "--between",
    type=click.Choice(["smooth", "lines"]),
    default="smooth",
    show_default=True,
    help="Interpolation of inputs between rows: cubics, for smooth signals; or lines, as importers and simulate use.",
)
@click.option(
    "-o",
    "--output",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Also write the FMU with the found values, and their origin beside it.",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.html",
    help="Also write a page: measured and found motions, residuals, intervals of the values.",
)
@combine_click_options(at_option, set_option, json_file_option, add_quiet_and_debug_options)
def fit(
    model: Path,
    data: tuple[Path, ...],
    free: tuple[str, ...],
    bounds: dict[str, tuple[float, float]],
    between: Literal["smooth", "lines"],
    folder: Path | None,
    report: Path | None,
    at: dict[str, str],
    arguments: dict[str, str],
    json_file: Path | None,
) -> None:
    """Finds parameters and start values by least squares, with exact derivatives, and says how sure they are.

    The search begins at the model's values (--at moves them). Columns count in units of their noise, which is
    found, too. Exit code 1 if some of what is free cannot be found from these measurements.

    \b
    Examples:
      mb2fmu fit double_pendulum --data swing.csv --free m2,l2
      mb2fmu fit cart_pole --data a.csv --data b.csv --free c,b,theta -o fitted --report fit.html
    """
    from mb2fmu import pipeline
    from mb2fmu.pipeline.study_runs.parameter_fit import identify_parameters

    with StageProgressDisplay() as progress:
        chosen = load_model_with_values(model, arguments, at)
        found = identify_parameters(
            chosen, data, free, bounds=bounds, arguments=arguments, between=between, observer=progress
        )
        facts = _form_fit_facts(found, data)
    with _print_fit_on_write_failure(found, quiet=str(json_file) == "-"), StageProgressDisplay() as progress:
        if folder is not None:
            values = {u.name: float(v) for u, v in zip(found.unknowns, found.values, strict=True) if u.name in free}
            started = pipeline.load(chosen, arguments) if isinstance(chosen, Path) else chosen
            documents = {"fit.json": _format_json(facts)}
            documents |= {"fit.html": _render_fit_report(started.name, found, facts)} if report else {}
            exported = pipeline.export(started.at(values), folder, observer=progress, documents=documents)
            facts["fmu"] = str(exported.path)
            facts["sha256"] = hashlib.sha256(exported.path.read_bytes()).hexdigest()
            beside = exported.path.with_suffix(".fit.json")
            pipeline.write(beside, _format_json(facts))
        if report is not None:
            name = pipeline.load(chosen, arguments).name if isinstance(chosen, Path) else chosen.name
            pipeline.write(report, _render_fit_report(name, found, facts))
    if json_file is not None:
        if str(json_file) == "-":
            click.echo(_format_json(facts).decode(), nl=False)
        else:
            pipeline.write(json_file, _format_json(facts))
    if str(json_file) != "-":
        _print_fit(found)
        print_unless_quiet(f"Report: {report}") if report is not None else None
        print_unless_quiet(
            f"FMU: {facts['fmu']}, and where its values come from: {beside}"
        ) if folder is not None else None
    click.get_current_context().exit(0 if found.rank == len(found.unknowns) else 1)


@contextmanager
def _print_fit_on_write_failure(found: FitResult, *, quiet: bool) -> Iterator[None]:
    """Say what was found although it cannot be written: it took a while."""
    try:
        yield
    except Mb2FmuError:
        if not quiet:
            _print_fit(found)
        raise


def _format_json(facts: dict[str, Any]) -> bytes:
    """Return facts as JSON."""
    return (json.dumps(facts, indent=2) + "\n").encode()


def _render_fit_report(name: str, found: FitResult, facts: dict[str, Any]) -> bytes:
    """Return the report of a fit."""
    from mb2fmu.report.pages.fit_page import FitPageContent, render_fit_page

    numbers = zip(found.unknowns, found.values.tolist(), found.intervals.tolist(), strict=True)
    rows = []
    for unknown, value, half in numbers:
        sure = f"{half:.2g}" if math.isfinite(half) else "cannot be found"
        bounds = (f"{bound:g}" if math.isfinite(bound) else "" for bound in (unknown.low, unknown.high))
        rows.append((unknown.name, f"{value:.8g}", sure, unknown.unit, f"{unknown.start:g}", *bounds))
    units = {curve.name: curve.unit for curve in found.curves}
    points = sum(len(curve.time) for curve in found.curves)
    experiments = len(facts["data"])
    lead = (
        f"{len(rows)} {'quantity' if len(rows) == 1 else 'quantities'} by least squares from {points} numbers "
        f"of {experiments} {'experiment' if experiments == 1 else 'experiments'}, with exact derivatives."
    )
    page = FitPageContent(
        title=name,
        is_identifiable=found.rank == len(found.unknowns),
        summary_sentence=lead,
        rows=rows,
        words=found.words,
        names=[unknown.name for unknown in found.unknowns],
        correlation=found.correlation,
        curves=found.curves,
        noise={column: f"{noise:.3g} {units.get(column, '')}".strip() for column, noise in found.noise.items()},
        facts={f"SHA-256 of {path}": digest for path, digest in facts["data"].items()}
        | {"Motions integrated": str(found.evaluations)}
        | ({"FMU": facts["fmu"], "SHA-256 of the FMU": facts["sha256"]} if "sha256" in facts else {}),
    )
    return render_fit_page(page)


def _form_fit_facts(found: FitResult, data: tuple[Path, ...]) -> dict[str, Any]:
    """Return everything as numbers; infinite ones are null."""
    rows = zip(found.unknowns, found.values.tolist(), found.deviations.tolist(), found.intervals.tolist(), strict=True)
    return {
        "data": {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in data},
        "fitted": {
            unknown.name: {
                "value": value,
                "unit": unknown.unit,
                "start": unknown.start,
                "standard_deviation": deviation if math.isfinite(deviation) else None,
                "half_width_95": half if math.isfinite(half) else None,
            }
            for unknown, value, deviation, half in rows
        },
        "correlation": found.correlation.tolist(),
        "rank": found.rank,
        "noise": found.noise,
        "words": list(found.words),
        "evaluations": found.evaluations,
    }


def _print_fit(found: FitResult) -> None:
    """Print the values with their intervals, then remarks."""
    width = max(len(each.name) for each in found.unknowns)
    for unknown, value, half in zip(found.unknowns, found.values.tolist(), found.intervals.tolist(), strict=True):
        sure = f"± {half:.2g} (95 %)" if math.isfinite(half) else "cannot be found from these measurements"
        shown = f"{value:.10g} {unknown.unit}" if math.isfinite(half) else f"{value:.4g} {unknown.unit}"
        print_unless_quiet(f"  {unknown.name:{width}}  {shown}  {sure}, begun at {unknown.start:g}")
    for name, noise in found.noise.items():
        print_unless_quiet(f"  residual of {name}: {noise:.3g} (root mean square)")
    for sentence in found.words:
        print_unless_quiet(f"Note: {sentence}.")
