"""Charts as SVG text: stacked panels over one time axis; the page's style sheet sets the colours.

Drawn here and not by a plotting library: text stays text (searchable, scales with the page's font), the lines take
their colours from style sheet classes and so follow light, dark and paper, and a chart of long signals has a few
kilobytes.
One unit of the drawing is about one pixel on a phone.

Axes: shown range, ticks and their labels.

Thin out long signals for drawing without changing any pixel column.

A column of pixels shows where the line enters, where it leaves and how far it reaches up and down. Keeping each
column's first, last, lowest and highest sample (Jugel and others, "M4: a visualization-oriented time series data
aggregation", 2014) draws the same picture as all samples, however short a spike is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from mb2fmu.report.number_format import MINUS_SIGN, format_power_of_ten

Samples = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


AxisScale = Literal["linear", "log"]
# A range narrower than this part of the values would need more digits at its ticks than fit beside the axis; what
# varies by its last digits only is shown as the constant that it is, on an axis of its own size.
_NARROWEST, _CONSTANT = 4e-4, 1e-12
# Letters of a tick for which there is room beside the axis.
_MAX_TICK_LETTERS = 7
# Values this much below the largest are drawn on the lower edge of a logarithmic axis.
_MAX_DECADES = 14
# A signal keeps this part of a decade from the edges of a logarithmic axis.
_EDGE_MARGIN_DECADES = 0.1
LineStyle = Literal[
    "reference", "fmu", "error", "bound", "uncertainty", "measured", "first", "second", "third", "fourth", "fifth"
]
CHART_WIDTH = 440
_LEFT_MARGIN, _RIGHT_MARGIN, _PANEL_HEAD_HEIGHT, _FOOT_HEIGHT = 50, 8, 27, 32
_PANEL_HEIGHTS = {"linear": 120, "log": 92}
_STRIP_HEIGHT = 34
_MAX_STRIP_LABEL_LETTERS = 66  # of a strip's label that fit
_EMPTY_PANEL_TEXT = "no finite values"
_PLOT_WIDTH = CHART_WIDTH - _LEFT_MARGIN - _RIGHT_MARGIN


def decimate_signal(t: Samples, y: Samples, columns: int) -> Indices:
    """Return indices of the samples that draw the same line as all of them.

    Args:
        t: Shape (n,), not decreasing, finite.
        y: Shape (n,). Samples that are not finite are left out.
        columns: Number of pixel columns that the range of ``t`` fills, ≥ 1.

    Returns:
        Increasing indices into ``t`` and ``y``, at most four per column: first, lowest, highest and last of each.

    Raises:
        ValueError: If the shapes differ, ``t`` decreases, or ``columns`` < 1.
    """
    if t.shape != y.shape or t.ndim != 1:
        raise ValueError(f"t has shape {t.shape}, y has shape {y.shape}")
    if columns < 1:
        raise ValueError(f"columns = {columns}")
    if np.any(np.diff(t) < 0):
        raise ValueError("time runs backwards")
    finite = np.flatnonzero(np.isfinite(y))
    if finite.size <= 2:
        return finite
    column = _pixel_columns(t[finite], float(t[0]), float(t[-1]), columns)
    first = np.flatnonzero(np.diff(column, prepend=-1))
    if first.size == column.size:
        return finite
    last = np.append(first[1:], column.size) - 1
    lowest = _find_first_extremes(y[finite], np.minimum.reduceat(y[finite], first), first)
    highest = _find_first_extremes(y[finite], np.maximum.reduceat(y[finite], first), first)
    chosen = np.unique(np.concatenate([first, lowest, highest, last]))
    return np.asarray(finite[chosen], dtype=np.intp)


def find_line_gaps(y: Samples, indices: Indices) -> Indices:
    """Return positions in ``indices`` where a line must be interrupted, because samples before are not finite.

    Args:
        y: Shape (n,), the whole signal.
        indices: Increasing indices into ``y``, from :func:`decimate_signal`.

    Returns:
        Positions k ≥ 1 such that some sample between ``indices[k - 1]`` and ``indices[k]`` is not finite.
    """
    missing = np.cumsum(~np.isfinite(y))
    return np.flatnonzero(np.diff(missing[indices]) > 0) + 1


def _pixel_columns(t: Samples, start: float, stop: float, columns: int) -> Indices:
    """Return the pixel column of each time, 0 … columns − 1."""
    if stop <= start:
        return np.zeros(t.size, dtype=np.intp)
    position = (t - start) / (stop - start) * columns
    return np.clip(position.astype(np.intp), 0, columns - 1)


def _find_first_extremes(y: Samples, extremes: Samples, first: Indices) -> Indices:
    """Return the index of each group's first sample (groups start at ``first``) that equals the group's extreme."""
    counts = np.diff(np.append(first, y.size))
    group = np.repeat(np.arange(first.size), counts)
    candidates = np.flatnonzero(y == extremes[group])
    _, positions = np.unique(group[candidates], return_index=True)
    return np.asarray(candidates[positions], dtype=np.intp)


@dataclass(frozen=True, slots=True)
class ChartAxis:
    """One axis: values from ``low`` to ``high``; on a logarithmic one both are > 0.

    Attributes:
        scale: ``linear`` or ``log``.
        low: Value at the start of the axis.
        high: Value at its end.
        ticks: (value, label) pairs within the range.
        factor: Exponent e: labels are in units of 10^e.
    """

    scale: AxisScale
    low: float
    high: float
    ticks: tuple[tuple[float, str], ...]
    factor: int = 0

    def __post_init__(self) -> None:
        if not (math.isfinite(self.low) and math.isfinite(self.high) and self.low < self.high):
            raise ValueError(f"an axis from {self.low} to {self.high}")
        if self.scale == "log" and self.low <= 0:
            raise ValueError(f"a logarithmic axis from {self.low}")

    def place(self, values: Samples) -> Samples:
        """Return positions of ``values``: 0 at ``low``, 1 at ``high``; a logarithmic axis cuts them at its ends."""
        if self.scale == "linear":
            return (values - self.low) / (self.high - self.low)
        span = math.log10(self.high) - math.log10(self.low)
        cut = np.clip(values, self.low, self.high)
        return (np.log10(cut) - math.log10(self.low)) / span


def choose_linear_axis(values: Samples, *, about: int = 4, tight: bool = False) -> ChartAxis:
    """Return a linear axis that shows all finite ``values``.

    Args:
        values: What is to be shown; may be empty.
        about: How many ticks are wanted, roughly.
        tight: True: the axis ends where the values end (time). False: it ends at ticks.
    """
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (0.0, 1.0)
    largest = max(abs(low), abs(high))
    if high - low <= _NARROWEST * largest:
        part = 1.0 if high - low <= _CONSTANT * largest else _NARROWEST
        middle, half = (low + high) / 2, part * largest / 2
        low, high = middle - half, middle + half
    if low == high:
        low, high = low - 1.0, high + 1.0
    step = _round_tick_step((high - low) / about)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    if tight:
        first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    else:
        low, high = first * step, last * step
    power = math.floor(math.log10(max(abs(low), abs(high))) + 1e-9)
    digits = -math.floor(math.log10(step) + 1e-9)
    plain = max(power, 0) + 1 + (digits + 1 if digits > 0 else 0) + (low < 0)
    factor = 0 if -3 <= power < 5 and plain <= _MAX_TICK_LETTERS else power
    decimals = max(0, factor + digits)
    ticks = tuple((k * step, _format_tick(k * step / 10.0**factor, decimals)) for k in range(first, last + 1))
    return ChartAxis("linear", low, high, ticks, factor)


def choose_log_axis(*signals: Samples, about: int = 4) -> ChartAxis:
    """Return a logarithmic axis over whole decades, at most fourteen, on whose edges no signal lies.

    Args:
        signals: What is to be shown; each may be empty. Where an error crosses zero, its logarithm dives: what only one
            in a hundred samples of a signal reaches is drawn on the lower edge.
        about: How many ticks are wanted, roughly.
    """
    positive = [s[np.isfinite(s) & (s > 0)] for s in signals]
    positive = [s for s in positive if s.size]
    top = max((math.ceil(math.log10(float(s.max())) + _EDGE_MARGIN_DECADES) for s in positive), default=0)
    bottom = min(
        (math.floor(math.log10(float(np.quantile(s, 0.01))) - _EDGE_MARGIN_DECADES) for s in positive), default=top - 1
    )
    top = min(max(top, -306), 308)
    bottom = min(max(bottom, top - _MAX_DECADES, -307), top - 1)
    stride = max(1, math.ceil((top - bottom) / about))
    ticks = tuple((10.0**k, format_power_of_ten(k)) for k in range(top, bottom - 1, -1) if (top - k) % stride == 0)
    return ChartAxis("log", 10.0**bottom, 10.0**top, ticks)


def _round_tick_step(step: float) -> float:
    """Return 1, 2 or 5 times a power of ten, not smaller than ``step``."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1.0, 2.0, 5.0, 10.0) if m * power >= step * (1 - 1e-9))


def _format_tick(value: float, decimals: int) -> str:
    """Write the number at a tick: no sign before zero, a real minus before others."""
    text = f"{value:.{decimals}f}"
    if float(text) == 0:
        text = text.lstrip("-")
    return text.replace("-", MINUS_SIGN)


@dataclass(frozen=True, slots=True, eq=False)
class ChartLine:
    """One signal.

    Attributes:
        label: For the legend and for those who do not see the picture.
        style: Class of the line in the style sheet; ``measured``: points instead of a line.
        t: Time in s, shape (n,), not decreasing.
        y: Shape (n,).
    """

    label: str
    style: LineStyle
    t: Samples
    y: Samples

    def __post_init__(self) -> None:
        if self.t.shape != self.y.shape or self.t.ndim != 1:
            raise ValueError(f"{self.label}: t has shape {self.t.shape}, y has shape {self.y.shape}")


@dataclass(frozen=True, slots=True, eq=False)
class ChartPanel:
    """One pair of axes.

    Attributes:
        quantity: What the vertical axis shows.
        unit: Its unit, ``1`` for a ratio.
        lines: Drawn in this order, later ones on top.
        scale: Of the vertical axis.
    """

    quantity: str
    unit: str
    lines: tuple[ChartLine, ...]
    scale: AxisScale = "linear"


@dataclass(frozen=True, slots=True)
class ModeTimelineStrip:
    """A row of spans over time, each with its meaning.

    Attributes:
        label: What it is of.
        mode_spans: (begin in s, end in s, class in the style sheet, what it is then), in order.
    """

    label: str
    mode_spans: tuple[tuple[float, float, str, str], ...]


@dataclass(frozen=True, slots=True, eq=False)
class Chart:
    """Panels over one time axis.

    Attributes:
        identity: Unique in the page; the title element is named after it.
        title: One line, for those who do not see the picture.
        panels: From top to bottom.
        shading_start_time: Time in s from which on the picture is shaded, because nothing is judged there; or None.
        ticks: Instants in s that are marked on the time axis of each panel.
        strips: Below the panels.
    """

    identity: str
    title: str
    panels: tuple[ChartPanel, ...]
    shading_start_time: float | None = None
    ticks: tuple[float, ...] = ()
    strips: tuple[ModeTimelineStrip, ...] = ()

    @property
    def legend(self) -> tuple[tuple[LineStyle, str], ...]:
        """(style, label) of the lines, each once."""
        return tuple(dict.fromkeys((line.style, line.label) for panel in self.panels for line in panel.lines))


def draw_chart(chart: Chart, *, columns: int = 2 * _PLOT_WIDTH) -> Markup:
    """Return the chart as an SVG element.

    Args:
        chart: What to draw.
        columns: Pixel columns that lines are thinned to; see
            :func:`mb2fmu.report.figures.svg_chart.decimate_signal`.
    """
    times = np.concatenate(
        [line.t[[0, -1]] for panel in chart.panels for line in panel.lines if line.t.size]
        + [np.array(span[:2]) for strip in chart.strips for span in strip.mode_spans]
    )
    time_axis = choose_linear_axis(times, about=5, tight=True)
    parts: list[str] = []
    top = 0
    for panel in chart.panels:
        upper, lower = top + _PANEL_HEAD_HEIGHT, top + _PANEL_HEAD_HEIGHT + _PANEL_HEIGHTS[panel.scale]
        parts += _draw_panel(
            panel,
            _ChartPanelFrame(time_axis, _choose_panel_axis(panel), panel.scale, upper, lower),
            columns,
            chart.shading_start_time,
        )
        parts += _draw_time_ticks(time_axis, chart.ticks, lower)
        top = lower
    for strip in chart.strips:
        parts += _draw_mode_strip(time_axis, strip, top)
        top += _STRIP_HEIGHT
    if chart.strips:
        parts += _draw_time_ticks(time_axis, chart.ticks, top)
    parts += _draw_time_labels(time_axis, top)
    name = f"{escape(chart.identity)}-title"
    head = (
        f'<svg class="chart" viewBox="0 0 {CHART_WIDTH} {top + _FOOT_HEIGHT}" role="img" aria-labelledby="{name}"'
        f' data-from="{time_axis.low!r}" data-to="{time_axis.high!r}">'
        f'<title id="{name}">{escape(chart.title)}</title>'
    )
    return Markup(head + "".join(parts) + "</svg>")  # noqa: S704 (every text in it went through escape)


def format_axis_label(quantity: str, unit: str, factor: int = 0) -> str:
    """Return ``speed in 10⁻³ m/s``; the unit ``1`` is left out."""
    amount = format_power_of_ten(factor) if factor else ""
    unit_text = "" if unit == "1" else unit
    tail = f"{amount} {unit_text}".strip()
    return f"{quantity} in {tail}" if tail else quantity


@dataclass(frozen=True, slots=True)
class _ChartPanelFrame:
    """Where a panel's axes stand in the drawing: the vertical one from ``lower`` up to ``upper``."""

    time: ChartAxis
    axis: ChartAxis
    scale: AxisScale
    upper: int
    lower: int

    def x(self, time: float) -> float:
        return _horizontal_position(self.time, time)

    def y(self, value: float) -> float:
        return self.lower - (self.lower - self.upper) * float(self.axis.place(np.array([value]))[0])


def _choose_panel_axis(panel: ChartPanel) -> ChartAxis:
    """Return the axis of a panel's values; a logarithmic one is of their sizes."""
    if panel.scale == "log":
        return choose_log_axis(*(np.abs(line.y) for line in panel.lines))
    return choose_linear_axis(np.concatenate([line.y for line in panel.lines]))


def _draw_panel(panel: ChartPanel, frame: _ChartPanelFrame, columns: int, shaded_from: float | None) -> Iterator[str]:
    """Draw one panel as SVG: its label, the shaded time, the grid, and the lines."""
    upper, lower, right = frame.upper, frame.lower, CHART_WIDTH - _RIGHT_MARGIN
    data = {"upper": upper, "lower": lower, "low": repr(frame.axis.low), "high": repr(frame.axis.high)}
    data |= {"scale": frame.scale, "quantity": panel.quantity, "unit": panel.unit}
    attributes = "".join(f' data-{name}="{escape(value)}"' for name, value in data.items())
    yield f'<g class="panel"{attributes}>'
    label = format_axis_label(panel.quantity, panel.unit, frame.axis.factor)
    yield f'<text class="label" x="4" y="{upper - 10}">{escape(label)}</text>'
    if shaded_from is not None and frame.time.low <= shaded_from < frame.time.high:
        x = frame.x(shaded_from)
        yield f'<rect class="beyond" x="{x:.1f}" y="{upper}" width="{right - x:.1f}" height="{lower - upper}"/>'
    for value, text in frame.axis.ticks:
        y = frame.y(value)
        yield f'<path class="grid" d="M{_LEFT_MARGIN} {y:.1f}H{right}"/>'
        yield f'<text class="tick end" x="{_LEFT_MARGIN - 5}" y="{y + 3.5:.1f}">{escape(text)}</text>'
    for value, _ in frame.time.ticks:
        yield f'<path class="grid time" d="M{frame.x(value):.1f} {upper}V{lower}"/>'
    yield '<g class="lines">'
    for line in panel.lines:
        yield _format_line_path(line, frame, columns)
    yield "</g>"
    yield f'<path class="frame" d="M{_LEFT_MARGIN} {upper}V{lower}H{right}"/></g>'


def _draw_time_ticks(time_axis: ChartAxis, instants: tuple[float, ...], lower: int) -> Iterator[str]:
    """Draw the marks on a time axis."""
    marks = [
        f"M{_horizontal_position(time_axis, t):.1f} {lower}v-6"
        for t in instants
        if time_axis.low <= t <= time_axis.high
    ]
    if marks:
        yield f'<path class="event" d="{"".join(dict.fromkeys(marks))}"/>'


def _draw_mode_strip(time_axis: ChartAxis, strip: ModeTimelineStrip, top: int) -> Iterator[str]:
    """Yield a label and, below it, a row of spans, each with its meaning as a tooltip."""
    shown = (
        strip.label
        if len(strip.label) <= _MAX_STRIP_LABEL_LETTERS
        else f"{strip.label[: _MAX_STRIP_LABEL_LETTERS - 1].rstrip()}…"
    )
    whole = "" if shown == strip.label else f"<title>{escape(strip.label)}</title>"
    yield f'<text class="label" x="4" y="{top + 12}">{whole}{escape(shown)}</text>'
    for begin, end, style, text in strip.mode_spans:
        x, to = _horizontal_position(time_axis, begin), _horizontal_position(time_axis, end)
        title = f"<title>{escape(text)}: {begin:.6g} s to {end:.6g} s</title>"
        place = f'x="{x:.1f}" y="{top + 17}" width="{max(to - x, 0.1):.1f}" height="12"'
        yield f'<rect class="span {style}" {place}>{title}</rect>'
        if to - x > 7 * len(text):
            yield f'<text class="tick middle" x="{(x + to) / 2:.1f}" y="{top + 26.5}">{escape(text)}</text>'


def _format_line_path(line: ChartLine, frame: _ChartPanelFrame, columns: int) -> str:
    """Return the line as a path of relative steps in tenths of a unit, which take the fewest characters."""
    y = np.abs(line.y) if frame.scale == "log" else line.y
    chosen = decimate_signal(line.t, y, columns)
    if not chosen.size:
        middle = (frame.upper + frame.lower) // 2
        return (
            f'<text class="tick middle" x="{_LEFT_MARGIN + _PLOT_WIDTH // 2}" y="{middle}">{_EMPTY_PANEL_TEXT}</text>'
        )
    across = np.rint(10 * _PLOT_WIDTH * frame.time.place(line.t[chosen])).astype(int)
    up = np.rint(-10 * (frame.lower - frame.upper) * frame.axis.place(y[chosen])).astype(int)
    place = f"translate({_LEFT_MARGIN} {frame.lower})scale(.1)"
    if line.style == "measured":
        points = "".join(f"M{x} {y}h0" for x, y in zip(across.tolist(), up.tolist(), strict=True))
        return f'<path class="line measured" transform="{place}" d="{points}"/>'
    cuts = [0, *find_line_gaps(y, chosen).tolist(), chosen.size]
    runs = [_format_path_steps(across[start:stop].tolist(), up[start:stop].tolist()) for start, stop in pairwise(cuts)]
    return f'<path class="line {line.style}" transform="{place}" d="{"".join(runs)}"/>'


def _format_path_steps(across: list[int], up: list[int]) -> str:
    """Return ``M x y l dx dy …``, without points on straight runs."""
    text = [f"M{across[0]} {up[0]}l"]
    dx = dy = 0
    for k in range(1, len(across)):
        step_x, step_y = across[k] - across[k - 1], up[k] - up[k - 1]
        forward = dx * step_x + dy * step_y >= 0
        if dx * step_y == dy * step_x and forward:
            dx, dy = dx + step_x, dy + step_y
            continue
        text.append(_format_coordinate_pair(dx, dy, first=len(text) == 1))
        dx, dy = step_x, step_y
    text.append(_format_coordinate_pair(dx, dy, first=len(text) == 1))
    return "".join(text)


def _format_coordinate_pair(dx: int, dy: int, *, first: bool) -> str:
    """Return two numbers; a minus sign separates as well as a space does."""
    separator = "" if first or dx < 0 else " "
    return f"{separator}{dx}{'' if dy < 0 else ' '}{dy}"


def _horizontal_position(time_axis: ChartAxis, time: float) -> float:
    """Return the horizontal place of a time, in units of the drawing."""
    return _LEFT_MARGIN + _PLOT_WIDTH * float(time_axis.place(np.array([time]))[0])


def _draw_time_labels(time_axis: ChartAxis, top: int) -> Iterator[str]:
    """Label the ticks of the time axis below the lowest panel; ``top`` is its lower edge in pixels."""
    for value, label in time_axis.ticks:
        x = _horizontal_position(time_axis, value)
        anchor = "end" if x > CHART_WIDTH - _RIGHT_MARGIN - 8 else "middle"
        yield f'<text class="tick time {anchor}" x="{x:.1f}" y="{top + 13}">{escape(label)}</text>'
    label = format_axis_label("time", "s", time_axis.factor)
    middle = _LEFT_MARGIN + _PLOT_WIDTH // 2
    yield f'<text class="label seconds middle" x="{middle}" y="{top + 26}">{escape(label)}</text>'
