"""The report of a fit: measured and fitted motions, residuals, uncertainty of the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.measured_and_fitted_curve import MeasuredAndFittedCurve
from mb2fmu.report.figures.svg_chart import Chart, ChartLine, ChartPanel, draw_chart
from mb2fmu.report.pages.page_rendering import render_html_document

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class FitPageContent:
    """Content of the page.

    Attributes:
        title: The model's name.
        is_identifiable: Everything that is free can be found from these measurements.
        summary_sentence: One sentence.
        rows: Of each unknown: name, value, ± 95 %, unit, begun at, lower and upper bound, as text.
        words: What a reader must know.
        names: Of the unknowns.
        correlation: Of the unknowns, shape (n, n).
        curves: In order of experiments.
        noise: Column → root mean square of what is left over, as text with unit.
        facts: Provenance.
    """

    title: str
    is_identifiable: bool
    summary_sentence: str
    rows: Sequence[tuple[str, ...]]
    words: Sequence[str]
    names: Sequence[str]
    correlation: Floats
    curves: Sequence[MeasuredAndFittedCurve]
    noise: Mapping[str, str]
    facts: Mapping[str, str]


def render_fit_page(page: FitPageContent) -> bytes:
    """Print the content as one self-contained HTML page."""
    by_experiment: dict[str, list[MeasuredAndFittedCurve]] = {}
    for curve in page.curves:
        by_experiment.setdefault(curve.experiment, []).append(curve)
    charts = [
        (
            f"Experiment {number}: {experiment}",
            [_chart_fitted_motion(f"fit-{number}-{k}", c) for k, c in enumerate(curves)],
        )
        for number, (experiment, curves) in enumerate(by_experiment.items(), 1)
    ]
    return render_html_document(
        "fit.html.jinja", page=page, charts=charts, draw=draw_chart, fields=_colour_correlation(page)
    )


def _chart_fitted_motion(identity: str, curve: MeasuredAndFittedCurve) -> Chart:
    """Return a chart of a column's measured and fitted motion, and of what is left over."""
    unit = curve.unit or "1"
    motion = (
        ChartLine("model with the found values", "fmu", curve.time, curve.found),
        ChartLine("measured", "measured", curve.time, curve.measured),
    )
    rest = ChartLine("left over", "error", curve.time, curve.measured - curve.found)
    panels = (ChartPanel(curve.name, unit, motion), ChartPanel("measured − model", unit, (rest,)))
    return Chart(identity, f"{curve.name}: measured and found", panels)


def _colour_correlation(page: FitPageContent) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return for each unknown its name, and its correlations as texts with their colours: -1 red, +1 blue."""
    return [
        (name, [(f"{value:+.2f}" if np.isfinite(value) else "?", _mix_colour(float(value))) for value in row])
        for name, row in zip(page.names, page.correlation, strict=True)
    ]


def _mix_colour(correlation: float) -> str:
    """Return the colour of a field as CSS: the stronger, the nearer to ±1; none where it is no number."""
    share = 60.0 * abs(correlation) if np.isfinite(correlation) else 0.0
    return f"color-mix(in srgb, var(--{'fmu' if correlation > 0 else 'error'}) {share:.0f}%, transparent)"
