"""Pictures of a study: cases as lines over varied quantities, results over each quantity, Sobol' indices."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.report.figures.figure_style import BLUE, GREEN, INK, LINE, RED, SOFT, make_empty_figure, render_figure
from mb2fmu.report.figures.svg_chart import format_axis_label

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Floats = npt.NDArray[np.float64]

MOST_LINES, MOST_POINTS, MOST_ACROSS, MOST_DOWN = 1500, 4000, 5, 6
_MEDIAN_BINS = 12


@dataclass(frozen=True, slots=True)
class SobolIndexBarValues:
    """Sobol' indices of one result, as shown: estimates and intervals, shapes (d,) and (d, 2)."""

    first: Floats
    total: Floats
    first_interval: Floats
    total_interval: Floats


def draw_parallel_coordinates(
    varied: Mapping[str, tuple[str, Floats]], result: tuple[str, str, Floats], *, log: Sequence[str]
) -> bytes:
    """Return each case as a line over the varied quantities, coloured by a result; failed cases in red. SVG.

    Args:
        varied: FMU name → unit, values of all cases.
        result: Name, unit, values; NaN where a case failed.
        log: Names whose scale is logarithmic.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize

    name, unit, values = result
    columns = [*((n, u, v) for n, (u, v) in varied.items()), result]
    shown = _choose_evenly_spaced(len(values), MOST_LINES)
    figure = make_empty_figure(min(11.0, 2.2 + 1.5 * len(columns)), 4.2)
    axes = figure.subplots()
    heights, marks = zip(*(_scale_to_unit_interval(v, log=n in log) for n, _, v in columns), strict=True)
    table = np.column_stack(heights)[shown]
    good = np.isfinite(values[shown])
    finite = values[np.isfinite(values)]
    colours = ScalarMappable(Normalize(*((finite.min(), finite.max()) if len(finite) else (0.0, 1.0))), "viridis")
    order = np.argsort(values[shown][good])
    across = np.arange(len(columns))
    lines = [np.column_stack([across, row]) for row in table[good][order]]
    opacity = float(np.clip(60.0 / max(len(lines), 1), 0.12, 0.8))
    axes.add_collection(
        LineCollection(lines, colors=colours.to_rgba(values[shown][good][order]), linewidths=0.9, alpha=opacity,
                       rasterized=True)
    )  # fmt: skip
    for row in table[~good]:
        axes.plot(across[:-1], row[:-1], color=RED, linewidth=0.9, alpha=0.8)
    for k, (low, high) in enumerate(marks):
        axes.plot([k, k], [0.0, 1.0], color=SOFT, linewidth=1.0)
        axes.text(k, -0.03, f"{low:.4g}", ha="center", va="top", color=SOFT, fontsize=8.5)
        axes.text(k, 1.03, f"{high:.4g}", ha="center", va="bottom", color=SOFT, fontsize=8.5)
        axes.text(
            k, -0.12, format_axis_label(columns[k][0], columns[k][1]), ha="center", va="top", color=INK, fontsize=9.5
        )
    axes.set(xlim=(-0.4, len(columns) - 0.6), ylim=(-0.22, 1.1))
    axes.axis("off")
    if len(finite):
        bar = figure.colorbar(colours, ax=axes, pad=0.02, fraction=0.05)
        bar.set_label(format_axis_label(name, unit), color=INK)
    return render_figure(figure, "svg")


def draw_study_results(
    varied: Mapping[str, tuple[str, Floats]], results: Sequence[tuple[str, str, Floats]], *, log: Sequence[str]
) -> bytes:
    """Return each result over each varied quantity: all cases as points, the median of neighbours as a line. SVG."""
    names = list(varied)[:MOST_ACROSS]
    rows = results[:MOST_DOWN]
    figure = make_empty_figure(min(11.0, 1.2 + 2.4 * len(names)), 0.5 + 2.1 * len(rows))
    grid = figure.subplots(len(rows), len(names), sharey="row", sharex="col", squeeze=False)
    for i, (name, unit, values) in enumerate(rows):
        for k, other in enumerate(names):
            axes, x = grid[i, k], varied[other][1]
            _draw_case_points(axes, x, values)
            _draw_neighbour_medians(axes, x, values, log=other in log)
            if other in log:
                axes.set_xscale("log")
            if i == len(rows) - 1:
                axes.set_xlabel(format_axis_label(other, varied[other][0]), color=INK)
        grid[i, 0].set_ylabel(textwrap.fill(format_axis_label(name, unit), 24), color=INK)  # as long as a panel is high
    return render_figure(figure, "svg")


def draw_sobol_indices(names: Sequence[str], indices: Mapping[str, SobolIndexBarValues]) -> bytes:
    """Draw Sobol' indices as bars with their intervals: a panel per result. SVG."""
    figure = make_empty_figure(8.0, 0.7 + (0.55 + 0.36 * len(names)) * len(indices))
    grid = figure.subplots(len(indices), 1, sharex=True, squeeze=False)[:, 0]
    at = np.arange(len(names))
    for axes, (result, found) in zip(grid, indices.items(), strict=True):
        for shift, values, bounds, colour, label in (
            (-0.18, found.first, found.first_interval, BLUE, "alone"),
            (0.18, found.total, found.total_interval, GREEN, "with all it acts together with"),
        ):
            error = np.abs(np.nan_to_num(bounds.T - values))
            axes.barh(at + shift, values, height=0.32, color=colour, label=label)
            axes.errorbar(values, at + shift, xerr=error, fmt="none", ecolor=INK, elinewidth=1.0, capsize=2)
        axes.set_yticks(at, names)
        axes.invert_yaxis()
        axes.set_title(result, loc="left", fontsize=10, color=INK)
        axes.set_xlim(min(0.0, axes.get_xlim()[0]), max(1.0, axes.get_xlim()[1]))
        _style_finished_axes(axes)
    grid[0].legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False, fontsize=9)
    grid[-1].set_xlabel("part of the variance", color=INK)
    return render_figure(figure, "svg")


def _draw_case_points(axes: Axes, x: Floats, y: Floats) -> None:
    """Draw cases as points, failed ones as marks at the lower edge."""
    shown = _choose_evenly_spaced(len(x), MOST_POINTS)
    opacity = float(np.clip(300.0 / max(len(shown), 1), 0.12, 0.9))
    axes.scatter(x[shown], y[shown], s=9, color=BLUE, alpha=opacity, linewidths=0, rasterized=True)
    lost = ~np.isfinite(y)
    if lost.any():
        axes.plot(x[lost], np.zeros(lost.sum()), "|", color=RED, markersize=9, transform=axes.get_xaxis_transform())
    _style_finished_axes(axes)


def _draw_neighbour_medians(axes: Axes, x: Floats, y: Floats, *, log: bool) -> None:
    """Draw medians of cases that lie side by side."""
    good = np.isfinite(y)
    x, y = x[good], y[good]
    if len(x) < 3 * _MEDIAN_BINS:
        return
    edges = np.quantile(x, np.linspace(0.0, 1.0, _MEDIAN_BINS + 1))
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, _MEDIAN_BINS - 1)
    found = [(x[place == b], y[place == b]) for b in range(_MEDIAN_BINS) if (place == b).any()]
    middle = [float(np.exp(np.log(a).mean()) if log else a.mean()) for a, _ in found]
    axes.plot(middle, [float(np.median(b)) for _, b in found], color=INK, linewidth=1.6)


def _scale_to_unit_interval(values: Floats, *, log: bool) -> tuple[Floats, tuple[float, float]]:
    """Return values scaled to 0 … 1, and the meaning of both ends."""
    scaled = np.log(values) if log else values
    finite = np.isfinite(scaled)
    if not finite.any():
        return np.full(len(values), np.nan), (0.0, 0.0)
    low, high = float(scaled[finite].min()), float(scaled[finite].max())
    ends = float(np.nanmin(values[finite])), float(np.nanmax(values[finite]))
    return (scaled - low) / (high - low) if high > low else np.full(len(values), 0.5), ends


def _choose_evenly_spaced(n: int, most: int) -> npt.NDArray[np.intp]:
    """Return at most so many of n, always the same ones."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def _style_finished_axes(axes: Axes) -> None:
    """Give axes the look that all pictures of studies have."""
    axes.grid(color=LINE, linewidth=0.5)
    axes.set_axisbelow(True)
    axes.tick_params(colors=SOFT, labelsize=8.5)
    for side in axes.spines.values():
        side.set_color(LINE)
