"""The report of a fit: measured and fitted motions, residuals, uncertainty of the values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.fitted_curve import FittedCurve
from mb2fmu.report.figures.figure_style import BLUE, INK, LINE, RED, SOFT, render_figure
from mb2fmu.report.figures.svg_chart import format_axis_label
from mb2fmu.report.pages.page_template import embed_svg_image, render_document

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
    curves: Sequence[FittedCurve]
    noise: Mapping[str, str]
    facts: Mapping[str, str]


def render_fit_page(page: FitPageContent) -> bytes:
    """Print the content as one self-contained HTML page."""
    by_experiment: dict[str, list[FittedCurve]] = {}
    for curve in page.curves:
        by_experiment.setdefault(curve.experiment, []).append(curve)
    pictures = []
    for number, (experiment, curves) in enumerate(by_experiment.items(), 1):
        names = ", ".join(curve.name for curve in curves)
        words = f"{names}: points were measured, lines are the model's with the found values; right: what is left over."
        pictures.append(
            (f"Experiment {number}: {experiment}", embed_svg_image(_draw_fitted_motions(curves), words), words)
        )
    words = "Correlation of the errors: near +1 or -1 one unknown makes up for the other."
    matrix = (
        embed_svg_image(_draw_correlation_matrix(page.names, page.correlation), words) if len(page.names) > 1 else None
    )
    return render_document("fit.html.jinja", page=page, pictures=pictures, matrix=matrix, matrix_words=words)


def _draw_fitted_motions(curves: Sequence[FittedCurve]) -> bytes:
    """Draw measured and fitted motion of each column, and the residual, side by side. SVG."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 0.5 + 2.2 * len(curves)), layout="constrained", facecolor="white")
    grid = figure.subplots(len(curves), 2, sharex=True, squeeze=False, width_ratios=(3, 2))
    for (motion, rest), curve in zip(grid, curves, strict=True):
        motion.plot(curve.time, curve.measured, ".", color=SOFT, markersize=3.5, label="measured")
        motion.plot(curve.time, curve.found, color=BLUE, linewidth=1.5, label="found")
        motion.set_ylabel(format_axis_label(curve.name, curve.unit), color=INK)
        rest.axhline(0.0, color=SOFT, linewidth=0.8)
        rest.plot(curve.time, curve.measured - curve.found, ".", color=RED, markersize=3.0)
        rest.set_ylabel(f"left over, {curve.unit}" if curve.unit else "left over", color=INK)
        for axes in (motion, rest):
            axes.grid(color=LINE, linewidth=0.5)
            axes.set_axisbelow(True)
            axes.tick_params(colors=SOFT, labelsize=8.5)
            for side in axes.spines.values():
                side.set_color(LINE)
    grid[0][0].legend(loc="best", frameon=False, fontsize=9)
    for axes in grid[-1]:
        axes.set_xlabel("t, s", color=INK)
    return render_figure(figure, "svg")


def _draw_correlation_matrix(names: Sequence[str], correlation: Floats) -> bytes:
    """Draw the matrix as coloured fields with its numbers. SVG."""
    from matplotlib.figure import Figure

    size = min(9.0, 2.2 + 0.7 * len(names))
    figure = Figure(figsize=(size, 0.85 * size), layout="constrained", facecolor="white")
    axes = figure.subplots()
    axes.imshow(np.nan_to_num(correlation), cmap="RdBu", vmin=-1.0, vmax=1.0)
    for i, row in enumerate(correlation):
        for j, value in enumerate(row):
            text = f"{value:+.2f}" if np.isfinite(value) else "?"
            axes.text(j, i, text, ha="center", va="center", color="white" if abs(value) > 0.6 else INK, fontsize=8.5)
    axes.set_xticks(range(len(names)), names, rotation=35, ha="right", color=INK)
    axes.set_yticks(range(len(names)), names, color=INK)
    return render_figure(figure, "svg")
