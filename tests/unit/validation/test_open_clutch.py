"""An open clutch holds nothing, beside a freewheel that does: its slip goes through zero, and on."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import reference_of

from mb2fmu import Brake, Clutch, Model, OneWayClutch
from mb2fmu.validation.modes.coupled_holding_forces import solve_coupled_holding_forces


def drive_line() -> Model:
    """Engine, shaft, vehicle: clutch, freewheel between them; the brake stops what the freewheel does not drive."""
    p, w = me.dynamicsymbols("p1:4"), me.dynamicsymbols("w1:4")
    press, brake = me.dynamicsymbols("press brake")
    t, N, O = me.dynamicsymbols._t, me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    frames, bodies = [], []
    for i, (angle, rate, inertia) in enumerate(zip(p, w, (0.2, 0.05, 0.8), strict=True)):
        frame = N.orientnew(f"F{i}", "Axis", (angle, N.z))
        frame.set_ang_vel(N, rate * N.z)
        frames.append(frame)
        bodies.append(me.RigidBody(f"b{i}", O, frame, 1, (me.inertia(frame, 0, 0, inertia), O)))
    kane = me.KanesMethod(N, list(p), list(w), [a.diff() - r for a, r in zip(p, w, strict=True)], bodies=bodies)
    model = Model("DriveLine", kane)
    for angle in p:
        model.coordinate(angle, 0.0, "rad")
    for rate, value in zip(w, (10.0, 12.0, 12.0), strict=True):
        model.speed(rate, value, "rad/s")
    for symbol in (press, brake):
        model.input(symbol, 0.0, "1", name=str(symbol.func))
    model.add(Clutch("clutch", (frames[0], frames[1], N.z), capacity=60.0, engagement=press, peak=1.25))
    model.add(OneWayClutch("freewheel", (frames[1], frames[2], N.z), capacity=100.0))
    model.add(Brake("brakes", (N, frames[2], N.z), capacity=45.0, engagement=brake))
    model.experiment(stop=0.4, step=0.05, tolerance=1e-8, signals={brake: sm.Piecewise((0.3, t >= 0.1), (0, True))})
    return model


def test_the_braked_shaft_goes_through_the_speed_of_an_engine_that_nothing_couples():
    values = reference_of(drive_line()).trajectory
    shaft, vehicle = (values.values[-1, values.names.index(name)] for name in ("w2", "w3"))
    braked = 12.0 - 0.3 * 45.0 / 0.85 * 0.3
    assert values.values[-1, values.names.index("w1")] == pytest.approx(10.0, abs=1e-9)
    assert (shaft, vehicle) == pytest.approx((braked, braked), abs=1e-7)


@pytest.mark.parametrize("small", [0.0, 1e-13, 3e-10])
def test_what_next_to_nothing_presses_has_no_part_in_holding(small):
    B = np.array([[-small, 125.0], [0.8 * small, -132.8125]])
    found = solve_coupled_holding_forces(B, np.array([125.0, -125.773]), np.array([1.25, 1.0]))
    assert found[0] == 0.0
    assert found[1] == pytest.approx(125.773 / 132.8125, rel=1e-12)
