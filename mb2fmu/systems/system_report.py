"""The report of a system: picture, stepping, errors against the whole, bonds, other masters."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from mb2fmu.report.figures.svg_chart import Chart, ChartLine, ChartPanel, LineStyle, draw_chart
from mb2fmu.report.pages.page_template import render_document
from mb2fmu.systems.exports.foreign_masters import ForeignMasterResult
from mb2fmu.systems.reference_comparison import VariableDeviation
from mb2fmu.systems.system_picture import draw_system_picture
from mb2fmu.systems.system_simulation import SystemMotion
from mb2fmu.systems.wired_system import WiredSystem

_STYLES: tuple[LineStyle, ...] = ("first", "second", "third", "fourth", "fifth")
_MOST_LINES = 5


@dataclass(frozen=True, slots=True)
class VerdictTile:
    """One number of the verdict."""

    title: str
    value: str
    note: str
    bad: bool = False


def render_system_page(
    joined: WiredSystem,
    motion: SystemMotion,
    truth: Sequence[VariableDeviation],
    answers: Sequence[ForeignMasterResult],
) -> bytes:
    """Return one self-contained HTML document.

    Args:
        joined: The system.
        motion: What it did.
        truth: Against the whole model; may be empty.
        answers: Of other masters; may be empty.
    """
    own = Environment(
        loader=PackageLoader("mb2fmu.systems"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    picture = Markup(draw_system_picture(joined.wiring, f"{joined.system.name}: FMUs and what flows between them"))  # noqa: S704
    bound = joined.system.run.bound
    return render_document(
        own.get_template("system.html.jinja"),
        system=joined.system,
        joined=joined,
        picture=picture,
        passed=bound is None or all(each.relative <= bound for each in truth),
        judged=bound is not None and bool(truth),
        headline=_headline(truth, bound),
        tiles=list(_tiles(motion, truth, bound)),
        links=list(_links(joined)),
        stepping=list(_stepping(joined, motion)),
        truth=truth,
        bound=bound,
        charts=list(_charts(motion, truth)),
        bonds=list(_bonds(motion)),
        answers=answers,
        ends={each.name: (each.truth[-1], each.found[-1]) for each in truth},
        shown=[each.name for each in truth] or list(motion.names[:_MOST_LINES]),
        number=_number,
    )


def _number(value: float) -> str:
    """Return a number with nine digits."""
    return f"{value:.9g}"


def _headline(truth: Sequence[VariableDeviation], bound: float | None) -> str:
    """Return the first sentence of the report: the largest error, or that there is nothing to compare with."""
    if not truth:
        return "The system was run; no whole model is given to hold it against."
    worst = max(truth, key=lambda each: each.relative)
    said = f"Largest error against the whole: {worst.relative:.2e} of {worst.name}'s size"
    return f"{said}." if bound is None else f"{said}; the bound is {bound:.1e}."


def _tiles(motion: SystemMotion, truth: Sequence[VariableDeviation], bound: float | None) -> Iterator[VerdictTile]:
    """Yield the figures at the top: error, steps, unsettled steps, stability, energy defect."""
    tally = motion.tally
    if truth:
        worst = max(each.relative for each in truth)
        yield VerdictTile(
            "Largest error", f"{worst:.2e}", "of a variable's own size", bound is not None and worst > bound
        )
    passes = tally["all_passes"] / max(tally["steps"], 1)
    yield VerdictTile("Steps", str(tally["steps"]), f"{passes:.2f} passes each, {tally['rejected']} made again")
    if tally["unsettled"]:
        note = f"up to {tally['largest_change']:.1e} of the inputs' size"
        yield VerdictTile(
            "Not settled", str(tally["unsettled"]), f"steps whose inputs still changed by {note}", bad=True
        )
    if tally["forecast"]:
        foretold = tally["forecast"]
        note = f"errors' growth over the experiment is foretold as a factor {_factor(foretold['growth'])}"
        yield VerdictTile("Stability", "unstable" if foretold["growth"] > math.log(1e3) else "stable", note)
    if motion.bonds:
        yield VerdictTile("Energy defect", f"{np.max(np.abs(motion.defects)):.2e} J", "the largest of all bonds")


def _factor(growth: float) -> str:
    """Return e^growth as a number, or as a power where it would overflow."""
    return f"{math.exp(growth):.4g}" if abs(growth) < 700.0 else f"e^{growth:.3g}"


def _links(joined: WiredSystem) -> Iterator[tuple[str, str, str, bool]]:
    """Yield source, target, conversion, and direct feedthrough of each link."""
    wiring = joined.wiring
    through = {j for _, j in wiring.feedthrough}
    for link in wiring.links:
        source_unit, target_unit = wiring.outputs[link.source].unit, wiring.inputs[link.target].unit
        way = f"{source_unit or 'no unit'} → {target_unit or 'no unit'}" if source_unit != target_unit else source_unit
        if (link.factor, link.offset) != (1.0, 0.0):
            way += f", × {link.factor:.9g}" + (f" + {link.offset:.9g}" if link.offset else "")
        yield wiring.output_name(link.source), wiring.input_name(link.target), way, link.source in through


def _stepping(joined: WiredSystem, motion: SystemMotion) -> Iterator[tuple[str, str]]:
    """Yield how the system was stepped, as rows of name and value."""
    stepping, run = joined.system.run.stepping, joined.system.run
    orders = ("held", "lines", "parabolas")
    yield (
        "Method",
        {"jacobi": "Jacobi: all FMUs with inputs from the past", "gauss-seidel": "Gauss–Seidel"}[stepping.method],
    )
    yield "Inputs", f"{orders[stepping.order]} (order {stepping.order})"
    yield (
        "Communication step",
        f"{stepping.step:g} s"
        if stepping.accuracy is None
        else (
            f"adapted to an accuracy of {stepping.accuracy:g}, {np.min(np.diff(motion.time)):.3g} to "
            f"{np.max(np.diff(motion.time)):.3g} s"
        ),
    )
    kind = "Newton steps with the interface Jacobian" if stepping.jacobian else "repeated substitution"
    yield "Passes", "one" if stepping.passes == 1 else f"up to {stepping.passes}, {kind}, until {stepping.converged:g}"
    yield "Units' own tolerance", f"{run.tolerance:g}"
    yield "Time", f"0 to {run.stop:g} s"


def _charts(
    motion: SystemMotion, truth: Sequence[VariableDeviation]
) -> Iterator[tuple[str, Markup, list[tuple[str, str]]]]:
    """Yield title, picture, legend of each chart."""
    for k, each in enumerate(truth):
        error = ChartLine("error", "error", each.time, np.abs(each.found - each.truth))
        lines = (
            ChartLine("whole", "reference", each.time, each.truth),
            ChartLine("system", "fmu", each.time, each.found),
        )
        panels = (
            ChartPanel(each.name, each.unit or "1", lines),
            ChartPanel("error", each.unit or "1", (error,), "log"),
        )
        chart = Chart(f"variable-{k}", f"{each.name} of the system over {each.whole} of the whole", panels)
        yield each.name, draw_chart(chart), list(chart.legend)
    if not truth:
        for k, name in enumerate(motion.names[:_MOST_LINES]):
            panel = ChartPanel(name, motion.units[k] or "1", (ChartLine(name, "fmu", motion.time, motion[name]),))
            chart = Chart(f"variable-{k}", name, (panel,))
            yield name, draw_chart(chart), list(chart.legend)
    shown = motion.bonds[:_MOST_LINES]
    if shown:
        defects = tuple(
            ChartLine(name, _STYLES[k], motion.time, np.abs(motion.defects[:, k])) for k, name in enumerate(shown)
        )
        chart = Chart("bonds", "energy defects of the bonds", (ChartPanel("energy defect", "J", defects, "log"),))
        yield "Energy defects", draw_chart(chart), list(chart.legend)


def _bonds(motion: SystemMotion) -> Iterator[tuple[str, float, float, float]]:
    """Yield name, largest exchanged energy, defect at the end, largest defect, in J."""
    for k, name in enumerate(motion.bonds):
        exchanged, defect = motion.energies[:, k], motion.defects[:, k]
        yield name, float(np.max(np.abs(exchanged))), float(defect[-1]), float(np.max(np.abs(defect)))
