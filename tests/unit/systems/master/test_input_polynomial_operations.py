"""Courses of inputs: through points that are apart, whatever else was met on the way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mb2fmu.systems.master import input_polynomial_operations


@given(
    gaps=st.lists(st.floats(1e-15, 1.0), min_size=0, max_size=4), size=st.floats(1e-4, 1.0), error=st.floats(-1.0, 1.0)
)
def test_what_the_passes_left_open_makes_no_slope(gaps: list[float], size: float, error: float) -> None:
    """A line, with an error of 1e-11 at its newest point: over the step it is off by little, wherever points lie."""
    times = [0.0, *np.cumsum(gaps)]
    points = [(t - times[-1], np.array([2.0 + 3.0 * t])) for t in times]
    points[-1] = points[-1][0], points[-1][1] + 1e-11 * error
    kept = input_polynomial_operations.select_interpolation_points(points, size)[-2:]
    assert kept[-1] is points[-1]
    end = np.array([2.0 + 3.0 * (times[-1] + size)])
    course = input_polynomial_operations.fit_input_polynomials(
        [*(t for t, _ in kept), size], np.array([*(u for _, u in kept), end])
    )
    for part in (0.25, 0.5, 0.75):
        assert input_polynomial_operations.evaluate_input_polynomials(course, part * size) == pytest.approx(
            2.0 + 3.0 * (times[-1] + part * size), abs=1e-8
        )


def test_points_that_are_apart_are_all_kept() -> None:
    points = [(t, np.array([t])) for t in (-0.02, -0.01, 0.0)]
    assert input_polynomial_operations.select_interpolation_points(points, 0.01) == points
    assert [
        t for t, _ in input_polynomial_operations.select_interpolation_points([*points, (1e-9, np.array([0.0]))], 0.01)
    ] == [
        -0.02,
        -0.01,
        1e-9,
    ]
