"""A controller that samples, against the textbook's equations and its force held between samples, by SciPy alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mb2fmu import derive, formulation
from mb2fmu.model import load
from mb2fmu.validation.reference import make_reference

MODELS = Path(__file__).parents[3] / "models"
M, m, length, g = 1.0, 0.1, 1.0, 9.81
FIRST, PERIOD, STOP = 0.01, 0.02, 2.0


def slope(_: float, y: np.ndarray, force: float) -> list[float]:
    """Of (x, theta, v, omega), Florian's equations."""
    theta, v, omega = y[1:]
    half = m * length / 2
    masses = [[M + m, -half * np.cos(theta)], [-half * np.cos(theta), m * length**2 / 3]]
    forces = [force - half * np.sin(theta) * omega**2, half * g * np.sin(theta)]
    return [v, omega, *np.linalg.solve(masses, forces)]


def test_the_sampled_cart_pole_moves_by_the_force_of_its_last_sample():
    derivation = derive(load(MODELS / "sampled_cart_pole.py"))
    found = make_reference(derivation.definition, formulation.formulate(derivation.mechanism, "lagrange"))
    y, force, t = np.array([0.0, 0.1, 0.0, 0.0]), 0.0, 0.0
    samples = FIRST + PERIOD * np.arange(round(STOP / PERIOD))
    for sample in [*samples, STOP]:
        y = solve_ivp(slope, (t, sample), y, "DOP853", args=(force,), rtol=1e-12, atol=1e-14).y[:, -1]
        if sample < STOP:
            force, t = float(3.0 * y[0] + 4.5 * y[2] - 35.0 * y[1] - 9.0 * y[3]), sample
    last = [float(found.trajectory[name][-1]) for name in ("x", "theta", "v", "omega", "force")]
    assert last == pytest.approx([*y, force], rel=1e-9, abs=1e-11)
    assert [event.time for event in found.events if event.jumped] == pytest.approx(samples.tolist(), rel=1e-14)
