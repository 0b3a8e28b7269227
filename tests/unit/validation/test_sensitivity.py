"""Measured sensitivity against the transition matrix of a linear system."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from mb2fmu.validation import make_reference, measure_sensitivity
from mb2fmu.validation.sensitivity import DIRECTIONS, directions


def test_sensitivity_is_the_running_maximum_of_the_transition_matrix(cases):
    case = cases["oscillator"]()
    reference = make_reference(case.definition, case.equations)
    A = np.array([[0, 1, 0], [-9.0, 0, 0], [1, 0, -1.0]])
    exact = np.array(
        [np.abs(scipy.linalg.expm(A * t)) @ reference.state_scales for t in reference.trajectory.time.tolist()]
    )
    measured = measure_sensitivity(reference)
    assert measured[:, :3] == pytest.approx(np.maximum.accumulate(exact), rel=1e-3)
    assert np.all(np.diff(measured, axis=0) >= 0)


def test_chaos_is_seen(cases):
    low, high = (
        measure_sensitivity(make_reference(case.definition, case.equations))[-1, 0]
        for case in (cases["double_pendulum"](start) for start in ((0.2, 0.1), (2.5, 1.0)))
    )
    assert high > 1000 * low


@pytest.mark.parametrize("n", [1, DIRECTIONS, DIRECTIONS + 1, 20])
def test_directions_touch_every_state_and_are_always_the_same(n):
    rows = directions(n)
    assert rows.shape[0] == min(n, DIRECTIONS)
    assert np.all(np.any(rows != 0, axis=0))
    assert np.array_equal(rows, directions(n))
