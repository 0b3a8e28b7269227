"""Measured sensitivity against the transition matrix of a linear system."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.linalg
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import OutputExpression
from mb2fmu.validation import make_reference, measure_start_error_growth
from mb2fmu.validation.reference.start_error_growth import (
    MAX_ERROR_DIRECTIONS,
    MAX_SENSITIVITY_POINTS,
    choose_start_error_directions,
)


def test_sensitivity_is_the_running_maximum_of_the_transition_matrix(cases):
    case = cases["oscillator"]()
    reference = make_reference(case.definition, case.equations)
    A = np.array([[0, 1, 0], [-9.0, 0, 0], [1, 0, -1.0]])
    exact = np.array(
        [np.abs(scipy.linalg.expm(A * t)) @ reference.state_scales for t in reference.trajectory.time.tolist()]
    )
    measured = measure_start_error_growth(reference)
    assert measured[:, :3] == pytest.approx(np.maximum.accumulate(exact), rel=1e-3)
    assert np.all(np.diff(measured, axis=0) >= 0)


def test_a_short_rapid_change_of_an_output_is_seen(cases):
    """The direction of a point that passes 1 mm from the centre; the 200 points of a coarse look miss what it does."""
    case, q, e = cases["oscillator"](stop=8.0, step=0.002), sm.Symbol("q"), 1e-3
    direction = OutputExpression("direction", sm.atan2(q, e), "direction", "rad")
    reference = make_reference(case.definition, replace(case.equations, outputs=(direction,)))
    time, position = reference.trajectory.time, reference.states[:, 0]
    A = np.array([[0, 1, 0], [-9.0, 0, 0], [1, 0, -1.0]])
    grown = np.array([np.abs(scipy.linalg.expm(A * t))[0] @ reference.state_scales for t in time.tolist()])
    exact = e / (position**2 + e**2) * grown
    _, usual = reference.experiment.select_points(MAX_SENSITIVITY_POINTS)
    assert np.max(exact[usual]) < 0.3 * np.max(exact)
    assert 0.7 * np.max(exact) < measure_start_error_growth(reference)[-1, 3] < 1.01 * np.max(exact)


def test_chaos_is_seen(cases):
    low, high = (
        measure_start_error_growth(make_reference(case.definition, case.equations))[-1, 0]
        for case in (cases["double_pendulum"](start) for start in ((0.2, 0.1), (2.5, 1.0)))
    )
    assert high > 1000 * low


@pytest.mark.parametrize("n", [1, MAX_ERROR_DIRECTIONS, MAX_ERROR_DIRECTIONS + 1, 20])
def test_directions_touch_every_state_and_are_always_the_same(n):
    rows = choose_start_error_directions(n)
    assert rows.shape[0] == min(n, MAX_ERROR_DIRECTIONS)
    assert np.all(np.any(rows != 0, axis=0))
    assert np.array_equal(rows, choose_start_error_directions(n))
