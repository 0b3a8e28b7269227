"""Axes show all that is to be shown, at round numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mb2fmu.report.figures.svg_chart import ChartAxis, choose_linear_axis, choose_log_axis

samples = arrays(float, st.integers(1, 50), elements=st.floats(-1e12, 1e12, allow_subnormal=False))
positive = arrays(float, st.integers(1, 50), elements=st.floats(1e-200, 1e200))


@given(samples)
def test_a_linear_axis_holds_all_values_between_a_few_round_ticks(values):
    axis = choose_linear_axis(values)
    slack = 1e-8 * (axis.high - axis.low)
    assert axis.low - slack <= values.min()
    assert values.max() <= axis.high + slack
    assert 2 <= len(axis.ticks) <= 8
    assert len({label for _, label in axis.ticks}) == len(axis.ticks)
    assert all(len(label) <= 8 for _, label in axis.ticks)


@given(samples)
def test_labels_say_where_the_ticks_are(values):
    axis = choose_linear_axis(values)
    step = axis.ticks[1][0] - axis.ticks[0][0]
    for value, label in axis.ticks:
        assert abs(float(label.replace("−", "-")) * 10.0**axis.factor - value) < 1e-3 * step


@given(positive)
def test_a_log_axis_holds_the_largest_value_and_fourteen_decades_at_most(values):
    axis = choose_log_axis(values)
    assert values.max() < axis.high
    assert 1 <= round(np.log10(axis.high / axis.low)) <= 14
    assert len(axis.ticks) <= 6


def test_one_dive_to_nothing_does_not_stretch_a_log_axis():
    values = np.full(1000, 1e-6)
    values[500] = 1e-18
    assert choose_log_axis(values).low == pytest.approx(1e-7)


def test_places_on_axes():
    assert choose_log_axis(np.array([2e-3, 2e-1])).place(np.array([1e-3, 1e-2, 1.0, 0.0])) == pytest.approx(
        [0, 1 / 3, 1, 0]
    )
    assert choose_linear_axis(np.array([0.0, 4.0])).place(np.array([0.0, 1.0, 4.0])) == pytest.approx([0, 0.25, 1])


def test_time_ends_where_it_ends():
    axis = choose_linear_axis(np.array([0.0, 9.7]), about=5, tight=True)
    assert (axis.low, axis.high) == (0.0, 9.7)
    assert [label for _, label in axis.ticks] == ["0", "2", "4", "6", "8"]


@pytest.mark.parametrize(
    ("values", "labels", "factor"),
    [
        ([0.0, 0.0], ["−1.0", "−0.5", "0.0", "0.5", "1.0"], 0),
        ([0.0, 2e6], ["0.0", "0.5", "1.0", "1.5", "2.0"], 6),
        ([0.0, 4e-5], ["0", "1", "2", "3", "4"], -5),
        ([float("nan"), 0.0, 1.0], ["0.0", "0.5", "1.0"], 0),
    ],
)
def test_ticks(values, labels, factor):
    axis = choose_linear_axis(np.array(values))
    assert ([label for _, label in axis.ticks], axis.factor) == (labels, factor)


def test_axes_without_values_and_impossible_axes():
    nothing = np.array([float("nan")])
    assert choose_linear_axis(nothing).low < choose_linear_axis(nothing).high
    assert choose_log_axis(nothing).low < choose_log_axis(nothing).high
    with pytest.raises(ValueError, match="axis from"):
        ChartAxis("linear", 1.0, 1.0, ())
    with pytest.raises(ValueError, match="logarithmic"):
        ChartAxis("log", 0.0, 1.0, ())


@pytest.mark.parametrize("value", [-0.1, 12345.678, 1.5e-3, -98765.0, 3e-9, 7e8])
@pytest.mark.parametrize("spread", [0.0, 1e-15, 1e-9, 3e-4, 2e-3])
def test_labels_fit_beside_the_axis(value, spread):
    """A constant stands in the middle of an axis of its own size; no label needs more room than there is."""
    axis = choose_linear_axis(value * (1 + spread * np.linspace(0, 1, 5)))
    assert max(len(label) for _, label in axis.ticks) <= 8
    assert len({label for _, label in axis.ticks}) == len(axis.ticks)
    if spread < 1e-12:
        assert axis.high - axis.low > 0.5 * abs(value)
