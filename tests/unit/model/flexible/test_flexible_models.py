"""Shipped models with flexible bodies: at rest they bend as beams do."""

from __future__ import annotations

import numpy as np
import pytest

import mb2fmu


def test_the_crane_starts_at_rest():
    f = mb2fmu.rhs("bending_crane")
    assert np.max(np.abs(f(0.0, f.x0))) < 1e-6  # numbers of twelve digits, a cylinder of 1e7 N/m
    assert f.x0[f.states.index("boom.eta[1]")] < -0.1


def test_a_level_forearm_sags_as_a_cantilever_with_payload():
    found = mb2fmu.linearize("flexible_robot_arm", at={"shoulder.command": 0.0, "elbow.command": 0.0})
    sag = found.point.x[found.states.index("forearm.eta[2]")]
    EI, weight, line = 70e9 * 0.022**4 / 12, 2.0 * 9.81, 2700.0 * 0.022**2 * 9.81
    assert -sag == pytest.approx((weight / 3 + line / 8) / EI, rel=0.03)  # its first mode has 97 % of it
