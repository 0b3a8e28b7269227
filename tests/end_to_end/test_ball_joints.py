"""A ball joint of quaternion coordinates in a loop: the length of the quaternion never matters, and is drawn to 1."""

from __future__ import annotations

import numpy as np
import pytest
from ball_joints import COUPLER, CRANK, PIN, ROCKER, linkage
from scipy.integrate import solve_ivp

from mb2fmu import pipeline
from mb2fmu.compiler.evaluation import make_evaluator

QUATERNION, CRANK_ANGLE, ROCKER_ANGLE = slice(1, 5), 0, 5


@pytest.fixture(scope="module")
def f():
    return pipeline.right_hand_side(pipeline.derive(linkage(), method="tmt"))


def gap(x: np.ndarray) -> np.ndarray:
    """From the rocker's tip to the coupler's end, whatever the quaternion's length; shape (3,), m."""
    w, i, j, k = x[QUATERNION] / np.linalg.norm(x[QUATERNION])
    along = np.array([w * w + i * i - j * j - k * k, 2 * (i * j + w * k), 2 * (i * k - w * j)])
    crank, rocker = x[CRANK_ANGLE], x[ROCKER_ANGLE]
    end = CRANK * np.array([np.cos(crank), np.sin(crank), 0.0]) + COUPLER * along
    return end - np.array(PIN) - ROCKER * np.array([0.0, np.cos(rocker), np.sin(rocker)])


def test_a_guess_of_another_length_means_the_same_orientation(f):
    longer = pipeline.right_hand_side(pipeline.derive(linkage(1.3), method="tmt"))
    assert longer.x0 == pytest.approx(f.x0, abs=1e-12)
    assert np.linalg.norm(longer.x0[QUATERNION]) == pytest.approx(1.0, abs=1e-13)
    assert gap(f.x0) == pytest.approx(0.0, abs=1e-12)


def test_what_an_fmu_solves_for_at_its_start_has_length_1():
    derivation = pipeline.derive(linkage(), method="tmt")
    f = pipeline.right_hand_side(derivation)
    x0 = f.x0.copy()
    x0[CRANK_ANGLE] += 0.3
    p = [float(each.value) for each in derivation.mechanism.declared.parameters]
    x = make_evaluator(derivation.program, "initialize")(0.0, x0, (), p)
    assert x[CRANK_ANGLE] == x0[CRANK_ANGLE]
    assert np.linalg.norm(x[QUATERNION]) == pytest.approx(1.0, abs=1e-14)
    assert gap(x) == pytest.approx(0.0, abs=1e-9)


def test_the_length_changes_no_acceleration_and_no_output(f):
    x = f.x0.copy()
    x[QUATERNION] *= 1.2
    assert f(0.0, x)[6:] == pytest.approx(f(0.0, f.x0)[6:], rel=1e-10)
    assert f.outputs(0.0, x) == pytest.approx(f.outputs(0.0, f.x0), rel=1e-12)
    # Off the unit sphere only along the quaternion: e' = … + (1 − e·e) e
    pull = f(0.0, x)[QUATERNION] - 1.2 * f(0.0, f.x0)[QUATERNION]
    assert pull == pytest.approx((1 - 1.2**2) * x[QUATERNION], rel=1e-9)


def test_the_loop_stays_closed_and_the_quaternion_of_unit_length(f):
    begin = f.x0.copy()
    begin[QUATERNION] *= 1.1
    solution = solve_ivp(f, (0.0, 3.0), begin, method="DOP853", rtol=1e-9, atol=1e-9)
    energy = [f.outputs(t, x)[-1] for t, x in zip(solution.t, solution.y.T, strict=True)]
    assert np.ptp(energy) < 1e-6  # of some 5 J
    assert np.ptp(solution.y[CRANK_ANGLE]) > 1.0
    assert max(np.max(np.abs(gap(x))) for x in solution.y.T) < 1e-7
    # Its length by itself: s = e·e has s' = 2 (1 − s) s.
    s = np.sum(solution.y[QUATERNION] ** 2, axis=0)
    wanted = 1 / (1 + (1 / 1.1**2 - 1) * np.exp(-2 * solution.t))
    assert s == pytest.approx(wanted, abs=1e-7)
