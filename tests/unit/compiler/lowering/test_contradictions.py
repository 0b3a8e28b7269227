"""Constraints that contradict each other: small steps of Newton's method do not show that they hold."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from cranks import platform

from mb2fmu import pipeline
from mb2fmu.compiler.arithmetic.python_newton import (
    InconsistentEquationsError,
    NoSolutionError,
    OtherBranchError,
    newton,
)
from mb2fmu.compiler.lowering.position_projection import compute_magnitude_sum_bound
from mb2fmu.model.supported_functions import NoEvent

ANGLE = 0.7
ON_THE_WAY = np.array([ANGLE] * 3 + [0.5 * np.sin(ANGLE), -0.5 * np.cos(ANGLE), 0.0] + [0.0] * 6)


@pytest.fixture(scope="module")
def derivation():
    return pipeline.derive(platform(), method="tmt")


def changed(f, third: float) -> np.ndarray:
    p = f.p0.copy()
    p[f.parameters.index("l3")] = third
    return p


@pytest.mark.parametrize("third", [0.5001, 0.50000002, 0.51, 0.6, 0.4])
def test_cranks_of_unlike_lengths_contradict_each_other(derivation, third):
    f = pipeline.right_hand_side(derivation)
    with pytest.raises(InconsistentEquationsError, match="they contradict each other and stay open") as caught:
        f(0.0, ON_THE_WAY, f.r0, changed(f, third))
    assert "holonomic[6] by" in str(caught.value)
    error = caught.value
    assert isinstance(error, NoSolutionError)
    assert not isinstance(error, OtherBranchError)
    # The gap is shared by the cranks: a part of what the third one is longer by.
    assert 0.1 * abs(third - 0.5) < max(map(abs, error.gaps.values())) < abs(third - 0.5)


def test_the_same_in_a_batch(derivation):
    f = pipeline.right_hand_side(derivation)
    p = np.array([f.p0, changed(f, 0.5001), f.p0])
    found = f(0.0, np.array([ON_THE_WAY] * 3), p=p)
    assert np.isnan(found[1]).all()
    np.testing.assert_array_equal(found[0], found[2])
    assert np.isfinite(found[0]).all()


def test_cranks_as_equal_as_round_off_lets_them_be_swing(derivation):
    f = pipeline.right_hand_side(derivation)
    expected = f(0.0, ON_THE_WAY, f.r0, f.p0)
    np.testing.assert_allclose(f(0.0, ON_THE_WAY, f.r0, changed(f, 0.5 * (1 + 1e-14))), expected, rtol=1e-9, atol=1e-9)


def _rows(y, theta):
    """x = 1 and x = 1 + theta[0], a step that makes both of them equally wrong."""
    left = [y[0] - 1.0, y[0] - 1.0 - theta[0]]
    mean = -0.5 * (left[0] + left[1])
    return [*left, mean, 0.0]


def test_what_is_left_over_is_reported_row_by_row():
    closing = [1.0, 10.0, 1e-9, 1e-9]
    assert newton(2, "x", _rows, [1e-12, *closing], [0.0, 0.0], ("first", "second"))[0] == pytest.approx(1.0, abs=1e-11)
    with pytest.raises(InconsistentEquationsError, match=r"stay open, first by 0\.005, second by -0\.0005") as caught:
        newton(2, "x", _rows, [0.01, *closing], [0.0, 0.0], ("first", "second"))
    assert caught.value.residual == pytest.approx(0.005)


def test_terms_are_measured_whatever_the_angles():
    q, x, l = sm.symbols("q x l", positive=True)
    assert compute_magnitude_sum_bound(l * sm.cos(q) - 2 * x * sm.sin(q) - 3) == l + 2 * x + 3
    assert compute_magnitude_sum_bound((x - l) ** 2) == (x + l) ** 2
    assert compute_magnitude_sum_bound(-sm.sqrt(x - l)) == NoEvent(sm.Abs(sm.sqrt(x - l)))
