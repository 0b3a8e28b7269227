"""Charts as SVG text: stacked panels over one time axis; the page's style sheet sets the colours.

Drawn here and not by a plotting library: text stays text (searchable, scales with the page's font), the lines take
their colours from style sheet classes and so follow light, dark and paper, and a chart of long signals has a few
kilobytes.
One unit of the drawing is about one pixel on a phone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from markupsafe import Markup, escape

from mb2fmu.report.figures.chart_axes import AxisScale, ChartAxis, choose_linear_axis, choose_log_axis
from mb2fmu.report.figures.signal_decimation import Samples, decimate_signal, find_line_gaps
from mb2fmu.report.number_format import format_power_of_ten

LineStyle = Literal["reference", "fmu", "error", "bound", "uncertainty", "first", "second", "third", "fourth", "fifth"]

CHART_WIDTH = 440
_LEFT_MARGIN, _RIGHT_MARGIN, _PANEL_HEAD_HEIGHT, _FOOT_HEIGHT = 50, 8, 27, 32
_PANEL_HEIGHTS = {"linear": 120, "log": 92}
_STRIP_HEIGHT = 34
_MAX_STRIP_LABEL_LETTERS = 66  # of a strip's label that fit
_EMPTY_PANEL_TEXT = "no finite values"
_PLOT_WIDTH = CHART_WIDTH - _LEFT_MARGIN - _RIGHT_MARGIN


@dataclass(frozen=True, slots=True, eq=False)
class ChartLine:
    """One signal.

    Attributes:
        label: For the legend and for those who do not see the picture.
        style: Class of the line in the style sheet.
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
class ModeStrip:
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
    strips: tuple[ModeStrip, ...] = ()

    @property
    def legend(self) -> tuple[tuple[LineStyle, str], ...]:
        """(style, label) of the lines, each once."""
        return tuple(dict.fromkeys((line.style, line.label) for panel in self.panels for line in panel.lines))


def draw_chart(chart: Chart, *, columns: int = 2 * _PLOT_WIDTH) -> Markup:
    """Return the chart as an SVG element.

    Args:
        chart: What to draw.
        columns: Pixel columns that lines are thinned to; see
            :func:`mb2fmu.report.figures.signal_decimation.decimate_signal`.
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
            _PanelFrame(time_axis, _choose_panel_axis(panel), panel.scale, upper, lower),
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
class _PanelFrame:
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


def _draw_panel(panel: ChartPanel, frame: _PanelFrame, columns: int, shaded_from: float | None) -> Iterator[str]:
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


def _draw_mode_strip(time_axis: ChartAxis, strip: ModeStrip, top: int) -> Iterator[str]:
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
        said = f"<title>{escape(text)}: {begin:.6g} s to {end:.6g} s</title>"
        place = f'x="{x:.1f}" y="{top + 17}" width="{max(to - x, 0.1):.1f}" height="12"'
        yield f'<rect class="span {style}" {place}>{said}</rect>'
        if to - x > 7 * len(text):
            yield f'<text class="tick middle" x="{(x + to) / 2:.1f}" y="{top + 26.5}">{escape(text)}</text>'


def _format_line_path(line: ChartLine, frame: _PanelFrame, columns: int) -> str:
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
    cuts = [0, *find_line_gaps(y, chosen).tolist(), chosen.size]
    runs = [_format_path_steps(across[start:stop].tolist(), up[start:stop].tolist()) for start, stop in pairwise(cuts)]
    place = f"translate({_LEFT_MARGIN} {frame.lower})scale(.1)"
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
