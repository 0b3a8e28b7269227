"""Steep friction changes its sign where that has no effect, and a stiff step ends beside its interpolant's crossing."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from event_models import particle, reference_of
from scipy.optimize import brentq

PUSH, RATE, STEEP = 3.0, 11.0, 4_000.0  # N, 1/s, N s/m on 1 kg
BAND = 2.5e-3  # m/s; the friction takes 10 N at most


def foot():
    """Is pushed to and fro within the band of a friction that is written as contact scripts write it."""

    def force(_x: sm.Expr, v: sm.Expr) -> sm.Expr:
        push = PUSH * sm.sin(RATE * sm.Symbol("t"))
        return push - sm.Piecewise((STEEP * v, sm.Abs(v) < BAND), (STEEP * BAND * sm.sign(v), True))

    model, *_ = particle(0.0, 0.0, force)
    model.experiment(stop=0.4, step=0.05, tolerance=1e-8)
    return model


def speed(t: float) -> float:
    """The solution of v' = P sin(w t) - c v from rest."""
    wave = STEEP * np.sin(RATE * t) - RATE * np.cos(RATE * t)
    return float(PUSH * (wave + RATE * np.exp(-STEEP * t)) / (STEEP**2 + RATE**2))


def test_a_steep_friction_changes_its_sign_when_it_should():
    reference = reference_of(foot())
    wanted = brentq(speed, 0.9 * np.pi / RATE, 1.1 * np.pi / RATE, xtol=1e-16)
    times = [event.time for event in reference.events if event.time > 0.1]
    assert times == pytest.approx([wanted] * len(times), abs=1e-11)
    assert times
    v = reference.trajectory.values[:, reference.trajectory.column("v")]
    assert v == pytest.approx([speed(t) for t in reference.trajectory.time], abs=1e-14)
