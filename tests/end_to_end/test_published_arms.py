"""Arms against what others published of them: the PUMA's torques and inertias, a chain's accelerations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mechanisms import Numeric, State

from mb2fmu import model, pipeline
from mb2fmu.mechanics import mechanism
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import free_parameter_values

MODELS = Path(__file__).parents[2] / "models"


def _still(read, q, **parameters):
    """The arm at rest in a pose, frictionless there; ``parameters`` replace values by name."""
    free = [p for p in read.declared.parameters if not p.calculated]
    values = np.array([parameters.get(p.name, p.value) for p in free], dtype=float)
    return State(0.0, np.concatenate([q, np.zeros(len(q))]), np.zeros(len(read.r)), values)


@pytest.fixture(scope="module")
def puma():
    return mechanism.read_mechanism(model.check_model(model.load(MODELS / "robot_arm.py")))


def test_gravity_of_the_puma_is_the_papers(puma):
    """Armstrong, Khatib and Burdick, table A5: g1 to g5 to the printed digits, and how the poses combine them."""
    numeric = Numeric(puma)
    g1, g2, g3, g4, g5 = -37.2, -8.44, 1.02, 2.49e-1, -2.82e-2
    for q in np.random.default_rng(3).uniform(-np.pi, np.pi, (20, 6)):
        numeric.move(_still(puma, q, load=0.0))
        needed = -numeric.numeric.generalized_forces()  # the motors hold what gravity pulls
        s2, c2 = np.sin(q[1]), np.cos(q[1])
        s23, c23 = np.sin(q[1] + q[2]), np.cos(q[1] + q[2])
        s4, c4, s5, c5 = np.sin(q[3]), np.cos(q[3]), np.sin(q[4]), np.cos(q[4])
        wrist = g5 * (s23 * c5 + c23 * c4 * s5)
        wanted = [
            0.0,
            g1 * c2 + g2 * s23 + g3 * s2 + g4 * c23 + wrist,
            g2 * s23 + g4 * c23 + wrist,
            -g5 * s23 * s4 * s5,
            g5 * (c23 * s5 + s23 * c4 * c5),
            0.0,
        ]
        np.testing.assert_allclose(needed, wanted, rtol=0, atol=0.1)  # half a unit of g1's last digit, and of g2's
        np.testing.assert_allclose(needed[3:], wanted[3:], rtol=0, atol=1e-4)


def test_inertia_of_the_puma_is_the_papers(puma):
    """The same paper, table A2: diagonal elements that few constants make up."""
    numeric = Numeric(puma)
    for q in np.random.default_rng(4).uniform(-np.pi, np.pi, (5, 6)):
        numeric.move(_still(puma, q, load=0.0))
        M = numeric.numeric.unconstrained_mass_and_forcing()[0]
        assert M[5, 5] == pytest.approx(0.193 + 4.0e-5, abs=1e-6)  # I_m6 + I_23
        assert M[4, 4] == pytest.approx(0.179 + 6.42e-4, abs=1e-6)  # I_m5 + I_17
    numeric.move(_still(puma, np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0]), load=0.0))
    # I_m3 + I_6 + 2 I_15 (wrist straight), to the paper's three digits
    assert numeric.numeric.unconstrained_mass_and_forcing()[0][2, 2] == pytest.approx(
        0.827 + 0.333 + 2 * 1.25e-3, abs=2e-3
    )


@pytest.mark.repeats  # by day a longer chain has those of Pinocchio
def test_accelerations_of_the_chain_are_those_of_another_tool():
    """CasADi's graph of the articulated-body algorithm gives these for seven bodies."""
    definition = model.check_model(model.load(MODELS / "chain.py", {"n": 7}))
    read = mechanism.read_mechanism(definition)
    k = np.arange(7)
    q, u, torque = 0.1 * (k % 7) + 0.05, 0.2 * (k % 5) - 0.3, 0.1 * (k % 3)
    state = State(0.0, np.concatenate([q, u]), torque, np.array(free_parameter_values(read)))
    first, last = -0.512313714923209, 0.642003004962666
    numeric = Numeric(read)
    found = numeric.accelerations(state)
    assert (found[0], found[-1]) == pytest.approx((first, last), rel=1e-12)
    rhs = pipeline.rhs(model.load(MODELS / "chain.py", {"n": 7}))
    np.testing.assert_allclose(rhs(0.0, state.x, state.r)[7:], found, rtol=0, atol=1e-11)
