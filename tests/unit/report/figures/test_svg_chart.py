"""Charts draw what they are given: points where the axes say, extremes kept, gaps left open."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from lxml import etree

from mb2fmu.report.figures.svg_chart import Chart, ChartLine, ChartPanel, draw_chart, format_axis_label


def drawing(*lines, scale="linear"):
    return etree.fromstring(draw_chart(Chart("c", "a title", (ChartPanel("angle", "rad", lines, scale),))))


def paths(root, style):
    """The points of each run of a line, in tenths of an FMU, from the lower left corner of its panel."""
    found = []
    for path in root.iter("path"):
        if path.get("class") == f"line {style}":
            for run in path.get("d").split("M")[1:]:
                start, _, steps = run.partition("l")
                numbers = [int(n) for n in re.findall(r"-?\d+", steps)]
                points = np.array([[int(n) for n in start.split()], *zip(numbers[::2], numbers[1::2], strict=True)])
                found.append(np.cumsum(points, axis=0))
    return found


@given(arrays(float, st.integers(2, 200), elements=st.floats(-1e3, 1e3)))
def test_the_highest_and_lowest_points_are_drawn(y):
    t = np.linspace(0.0, 1.0, y.size)
    (points,) = paths(drawing(ChartLine("FMU", "fmu", t, y)), "fmu")
    across, up = points[:, 0], -points[:, 1]
    assert across[0] == 0
    assert across[-1] == 3820
    spread = np.ptp(y)
    low, high = up.min(), up.max()
    if spread > 1e-3 * np.abs(y).max():
        at = across[np.argmax(up)] / 3820
        assert y[np.abs(t - at) <= 1 / 380].max() >= y.max() - 2e-3 * spread
        assert high - low > 300


def test_points_on_a_straight_line_are_left_out():
    t = np.linspace(0.0, 1.0, 1001)
    (flat,) = paths(drawing(ChartLine("FMU", "fmu", t, np.ones_like(t))), "fmu")
    assert len(flat) == 2
    (stair,) = paths(drawing(ChartLine("FMU", "fmu", t, np.where(t < 0.5, 0.0, 1.0))), "fmu")
    assert len(stair) == 4


def test_missing_numbers_interrupt_the_line():
    t = np.linspace(0.0, 1.0, 11)
    y = np.sin(t)
    y[5] = np.nan
    assert len(paths(drawing(ChartLine("FMU", "fmu", t, y)), "fmu")) == 2


def test_a_line_without_any_number_says_so():
    t = np.linspace(0.0, 1.0, 11)
    root = drawing(ChartLine("FMU", "fmu", t, np.full_like(t, np.nan)))
    assert "no finite values" in [text.text for text in root.iter("text")]


def test_a_log_panel_draws_magnitudes():
    t = np.linspace(0.0, 1.0, 3)
    (points,) = paths(drawing(ChartLine("error", "error", t, np.array([-1e-3, 1e-3, 1e-1])), scale="log"), "error")
    assert points[0, 1] == points[1, 1]
    assert points[2, 1] < points[1, 1]


def test_names_are_escaped():
    t = np.array([0.0, 1.0])
    chart = Chart('"><script>', "<script>", (ChartPanel("<script>", "<b>", (ChartLine("<i>", "fmu", t, t),)),))
    root = etree.fromstring(draw_chart(chart))
    assert root.find("title").text == "<script>"
    assert not list(root.iter("script", "b", "i"))


def test_a_line_needs_a_time_for_each_value():
    with pytest.raises(ValueError, match="FMU: t has shape"):
        ChartLine("FMU", "fmu", np.zeros(3), np.zeros(2))


@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        (("speed", "m/s"), "speed in m/s"),
        (("speed", "m/s", -3), "speed in 10⁻³ m/s"),
        (("ratio", "1"), "ratio"),
        (("ratio", "1", 6), "ratio in 10⁶"),
    ],
)
def test_axis_labels(arguments, label):
    assert format_axis_label(*arguments) == label
