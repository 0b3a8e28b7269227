"""Pictures of a study: cases as lines over varied quantities, results over each quantity, Sobol' indices.

They stand in the page as SVG text, as the charts of :mod:`mb2fmu.report.figures.svg_chart` do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from mb2fmu.report.figures.svg_chart import ChartAxis, choose_linear_axis, format_axis_label
from mb2fmu.report.number_format import MINUS_SIGN, format_declared_number

Floats = npt.NDArray[np.float64]

MOST_LINES, MOST_POINTS, MOST_ACROSS, MOST_DOWN = 1500, 4000, 5, 6
_MEDIAN_BINS = 12
_RAMP = ("#3d62d8", "#7a5fd6", "#b85fb8", "#d9707f", "#d8963a")
"""Colours from the smallest to the largest result: each is lighter than the one before, and seen on white and dark."""
_RAMP_STEPS = 24
_LETTER_WIDTH = 6.5
"""Of a label, about, in units of the drawing, which are pixels."""
_LEFT_MARGIN, _HEAD_HEIGHT, _FOOT_HEIGHT, _GAP = 50, 28, 36, 18
_PANEL_WIDTH, _PANEL_HEIGHT, _LINES_HEIGHT, _BAR_HEIGHT = 150, 120, 240, 11
_ROW_WIDTH, _NARROWEST_COLUMN, _BARS_WIDTH = 900, 100, 360
"""Panels and columns share the page's width where they are few; they keep a least width where they are many."""
_POINTS_PER_PATH = 500
"""Points of one path do not cover each other; those of several do, so that many cases in a place are darker."""


@dataclass(frozen=True, slots=True)
class SobolIndexBarValues:
    """Sobol' indices of one result, as shown: estimates and intervals, shapes (d,) and (d, 2)."""

    first: Floats
    total: Floats
    first_interval: Floats
    total_interval: Floats


def draw_parallel_coordinates(
    varied: Mapping[str, tuple[str, Floats]], result: tuple[str, str, Floats], *, log: Sequence[str]
) -> Markup:
    """Return each case as a line over the varied quantities, coloured by a result; failed cases in red.

    Args:
        varied: FMU name → unit, values of all cases.
        result: Name, unit, values; NaN where a case failed.
        log: Names whose scale is logarithmic.
    """
    values = result[2]
    columns = [*((n, u, v) for n, (u, v) in varied.items()), result]
    labels = [format_axis_label(n, u) for n, u, _ in columns]
    shown = _choose_evenly_spaced(len(values), MOST_LINES)
    heights, marks = zip(*(_scale_to_unit_interval(v, log=n in log) for n, _, v in columns), strict=True)
    distance = _choose_width(labels, _ROW_WIDTH, _NARROWEST_COLUMN)
    lower = _HEAD_HEIGHT + _LINES_HEIGHT
    across = [(k + 0.5) * distance for k in range(len(columns))]
    parts = [*_draw_case_lines(across, np.column_stack(heights)[shown])]
    for x, label, (low, high) in zip(across, labels, marks, strict=True):
        parts.append(f'<path class="frame" d="M{x:.1f} {_HEAD_HEIGHT}V{lower}"/>')
        parts.append(_draw_text("tick middle", x, _HEAD_HEIGHT - 8, f"{high:.4g}".replace("-", MINUS_SIGN)))
        parts.append(_draw_text("tick middle", x, lower + 14, f"{low:.4g}".replace("-", MINUS_SIGN)))
        parts.append(_draw_text("label middle", x, lower + 30, label))
    step = _LINES_HEIGHT / _RAMP_STEPS
    for k in range(_RAMP_STEPS if np.isfinite(values).any() else 0):
        y = lower - k * step
        path = f"M{across[-1]:.1f} {y:.1f}v{-step:.1f}"
        parts.append(f'<path class="ramp" stroke="{_choose_ramp_colour(k)}" d="{path}"/>')
    title = f"Cases as lines, coloured by {result[0]}"
    return _wrap_drawing(title, len(columns) * distance, lower + _FOOT_HEIGHT, parts)


def draw_study_results(
    varied: Mapping[str, tuple[str, Floats]], results: Sequence[tuple[str, str, Floats]], *, log: Sequence[str]
) -> Markup:
    """Return each result over each varied quantity: all cases as points, the median of neighbours as a line."""
    names = list(varied)[:MOST_ACROSS]
    below = {name: _choose_axis_across(varied[name][1], log=name in log) for name in names}
    labels = {name: format_axis_label(name, varied[name][0], axis.factor) for name, axis in below.items()}
    width = _choose_width(list(labels.values()), _ROW_WIDTH - _LEFT_MARGIN - len(names) * _GAP, _PANEL_WIDTH)
    lefts = [_LEFT_MARGIN + k * (width + _GAP) for k in range(len(names))]
    parts: list[str] = []
    lower = 0
    for name, unit, values in results[:MOST_DOWN]:
        lower += _HEAD_HEIGHT + _PANEL_HEIGHT
        beside = choose_linear_axis(values)
        parts.append(_draw_text("label", 4, lower - _PANEL_HEIGHT - 9, format_axis_label(name, unit, beside.factor)))
        for value, text in beside.ticks:
            y = lower - _PANEL_HEIGHT * _place(beside, value)
            parts.append(_draw_text("tick end", _LEFT_MARGIN - 5, y + 3.5, text))
            parts += [f'<path class="grid" d="M{left} {y:.1f}h{width}"/>' for left in lefts]
        for other, left in zip(names, lefts, strict=True):
            for value, _ in below[other].ticks:
                x = left + width * _place(below[other], value)
                parts.append(f'<path class="grid" d="M{x:.1f} {lower}v{-_PANEL_HEIGHT}"/>')
            cases = np.column_stack([varied[other][1], values])
            medians = _find_neighbour_medians(cases, log=other in log)
            points, line = (
                np.column_stack(
                    [10 * width * below[other].place(xy[:, 0]), -10 * _PANEL_HEIGHT * beside.place(xy[:, 1])]
                )
                for xy in (cases, medians)
            )
            parts.append(f'<g transform="translate({left} {lower})scale(.1)">')
            parts += [*_draw_case_points(points), *_draw_polyline("median", line), "</g>"]
            parts.append(f'<path class="frame" d="M{left} {lower - _PANEL_HEIGHT}v{_PANEL_HEIGHT}h{width}"/>')
    for other, left in zip(names, lefts, strict=True):
        for value, text in below[other].ticks:
            parts.append(_draw_text("tick middle", left + width * _place(below[other], value), lower + 13, text))
        parts.append(_draw_text("label middle", left + width / 2, lower + 29, labels[other]))
    return _wrap_drawing("Results over what varies", lefts[-1] + width + _GAP, lower + _FOOT_HEIGHT, parts)


def draw_sobol_indices(names: Sequence[str], indices: Mapping[str, SobolIndexBarValues]) -> Markup:
    """Draw Sobol' indices as bars with their intervals: a panel per result."""
    kinds = (("first", "alone"), ("third", "with all it acts together with"))
    left, width = int(_LETTER_WIDTH * max(map(len, names))) + 14, _BARS_WIDTH
    bounds = [ends.ravel() for found in indices.values() for ends in (found.first_interval, found.total_interval)]
    axis = choose_linear_axis(np.concatenate([*bounds, [0.0, 1.0]]))
    parts: list[str] = []
    for k, (style, text) in enumerate(kinds):
        parts.append(f'<path class="bar line {style}" d="M{left + 80 * k} 10h14"/>')
        parts.append(_draw_text("tick", left + 80 * k + 19, 13.5, text))
    zero = left + width * _place(axis, 0.0)
    lower = _HEAD_HEIGHT
    for result, found in indices.items():
        upper = lower + _HEAD_HEIGHT
        lower = upper + 3 * _BAR_HEIGHT * len(names)
        parts.append(_draw_text("label", 4, upper - 8, result))
        for value, _ in axis.ticks:
            parts.append(f'<path class="grid" d="M{left + width * _place(axis, value):.1f} {upper}V{lower}"/>')
        estimated = ((found.first, found.first_interval), (found.total, found.total_interval))
        for i, name in enumerate(names):
            middle = upper + 3 * _BAR_HEIGHT * (i + 0.5)
            parts.append(_draw_text("tick end", left - 6, middle + 3.5, name))
            for (style, _), (values, intervals), shift in zip(kinds, estimated, (-0.55, 0.55), strict=True):
                y = middle + shift * _BAR_HEIGHT
                end = left + width * _place(axis, float(values[i]))
                parts.append(f'<path class="bar line {style}" d="M{zero:.1f} {y:.1f}H{end:.1f}"/>')
                if np.isfinite(intervals[i]).all():
                    low, high = (left + width * _place(axis, float(bound)) for bound in intervals[i])
                    whisker = f"M{low:.1f} {y:.1f}H{high:.1f}m0 -3v6M{low:.1f} {y - 3:.1f}v6"
                    parts.append(f'<path class="median" d="{whisker}"/>')
        parts.append(f'<path class="frame" d="M{left} {upper}V{lower}h{width}"/>')
    for value, text in axis.ticks:
        parts.append(_draw_text("tick middle", left + width * _place(axis, value), lower + 13, text))
    parts.append(_draw_text("label middle", left + width / 2, lower + 29, "part of the variance"))
    return _wrap_drawing("Sobol’ indices", left + width + 3 * _GAP, lower + _FOOT_HEIGHT, parts)


def _draw_case_lines(across: Sequence[float], table: Floats) -> Iterator[str]:
    """Draw cases as lines through heights 0 … 1, shape (n, n_columns); the last is the result's: it sets the colour."""
    good = np.isfinite(table[:, -1])
    drawn = table[good][np.argsort(table[good, -1])]
    opacity = float(np.clip(60.0 / max(len(drawn), 1), 0.12, 0.8))
    x = 10.0 * np.array(across)
    yield f'<g transform="translate(0 {_HEAD_HEIGHT + _LINES_HEIGHT})scale(.1)" stroke-opacity="{opacity:.2g}">'
    for row in drawn:
        colour = _choose_ramp_colour(min(int(row[-1] * _RAMP_STEPS), _RAMP_STEPS - 1))
        yield from _draw_polyline("case", np.column_stack([x, -10 * _LINES_HEIGHT * row]), f' stroke="{colour}"')
    for row in table[~good]:
        failed = np.column_stack([x, -10 * _LINES_HEIGHT * row])[:-1]
        yield from _draw_polyline("case failed", failed, ' stroke-opacity="0.8"')
    yield "</g>"


def _draw_case_points(points: Floats) -> Iterator[str]:
    """Draw cases as points, shape (n, 2), failed ones as marks at the lower edge; places in tenths of a unit."""
    good = np.isfinite(points[:, 1])
    shown = np.flatnonzero(good)[_choose_evenly_spaced(int(good.sum()), MOST_POINTS)]
    places = np.rint(points[shown]).astype(int).tolist()
    opacity = float(np.clip(300.0 / max(len(shown), 1), 0.12, 0.9))
    for k in range(0, len(places), _POINTS_PER_PATH):
        path = "".join(f"M{across} {up}h0" for across, up in places[k : k + _POINTS_PER_PATH])
        yield f'<path class="point" stroke-opacity="{opacity:.2g}" d="{path}"/>'
    if not good.all():
        marks = "".join(f"M{across:.0f} 0v-80" for across in points[~good, 0].tolist())
        yield f'<path class="case failed" d="{marks}"/>'


def _draw_polyline(style: str, points: Floats, attributes: str = "") -> Iterator[str]:
    """Draw lines between points, shape (n, 2); nothing where there are none."""
    if len(points):
        text = "L".join(f"{x:.0f} {y:.0f}" for x, y in points.tolist())
        yield f'<path class="{style}"{attributes} d="M{text}"/>'


def _draw_text(style: str, x: float, y: float, text: str) -> str:
    """Return a text at a place."""
    return f'<text class="{style}" x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'


def _wrap_drawing(title: str, width: float, height: float, parts: Sequence[str]) -> Markup:
    """Return the drawing as an element as wide as it is made; the title is for those who do not see it."""
    head = f'<svg class="chart" viewBox="0 0 {width:.0f} {height:.0f}" style="width:{width:.0f}px" role="img"'
    text = f'{head} aria-label="{escape(title)}">{"".join(parts)}</svg>'
    return Markup(text)  # noqa: S704 (every text in it went through escape)


def _choose_width(labels: Sequence[str], row_width: int, least: int) -> int:
    """Return the width of each of several panels or columns, in which its label has room."""
    return max(least, row_width // len(labels), math.ceil(_LETTER_WIDTH * max(map(len, labels))) + 10)


def _choose_ramp_colour(step: int) -> str:
    """Return the colour of a step of the ramp, 0 … ``_RAMP_STEPS`` - 1."""
    at = step / (_RAMP_STEPS - 1) * (len(_RAMP) - 1)
    k = min(int(at), len(_RAMP) - 2)
    ends = [[int(colour[i : i + 2], 16) for i in (1, 3, 5)] for colour in _RAMP[k : k + 2]]
    return "#" + "".join(f"{round(a + (at - k) * (b - a)):02x}" for a, b in zip(*ends, strict=True))


def _choose_axis_across(values: Floats, *, log: bool) -> ChartAxis:
    """Return the axis of a quantity, from its smallest to its largest value."""
    if not log:
        return choose_linear_axis(values, tight=True)
    low, high = float(values.min()), float(values.max())
    if low == high:
        low, high = low / 2.0, high * 2.0
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [10.0**k for k in powers if low <= 10.0**k <= high]
    if len(ticks) < 3:
        ticks = [m * 10.0**k for k in powers for m in (1.0, 2.0, 5.0) if low <= m * 10.0**k <= high]
    ticks = ticks[:: math.ceil(len(ticks) / 5)] if ticks else []
    return ChartAxis("log", low, high, tuple((tick, format_declared_number(float(f"{tick:.0e}"))) for tick in ticks))


def _place(axis: ChartAxis, value: float) -> float:
    """Return the position of one value on an axis, 0 … 1."""
    return float(axis.place(np.array([value]))[0])


def _find_neighbour_medians(cases: Floats, *, log: bool) -> Floats:
    """Return mean place and median of cases that lie side by side, shapes (n, 2); none of few cases."""
    x, y = cases[np.isfinite(cases[:, 1])].T
    if len(x) < 3 * _MEDIAN_BINS:
        return np.zeros((0, 2))
    edges = np.quantile(x, np.linspace(0.0, 1.0, _MEDIAN_BINS + 1))
    place = np.clip(np.searchsorted(edges, x, side="right") - 1, 0, _MEDIAN_BINS - 1)
    found = [(x[place == b], y[place == b]) for b in range(_MEDIAN_BINS) if (place == b).any()]
    return np.array([[np.exp(np.log(a).mean()) if log else a.mean(), np.median(b)] for a, b in found])


def _scale_to_unit_interval(values: Floats, *, log: bool) -> tuple[Floats, tuple[float, float]]:
    """Return values scaled to 0 … 1, and the meaning of both ends."""
    scaled = np.log(values) if log else values
    finite = np.isfinite(scaled)
    if not finite.any():
        return np.full(len(values), np.nan), (0.0, 0.0)
    low, high = float(scaled[finite].min()), float(scaled[finite].max())
    ends = float(np.nanmin(values[finite])), float(np.nanmax(values[finite]))
    return np.where(finite, (scaled - low) / (high - low) if high > low else 0.5, np.nan), ends


def _choose_evenly_spaced(n: int, most: int) -> npt.NDArray[np.intp]:
    """Return at most so many of n, always the same ones."""
    return np.arange(n) if n <= most else np.sort(np.random.default_rng(0).choice(n, most, replace=False))
