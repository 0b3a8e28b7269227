"""Newton's cradle of three pendulums: balls that rest against each other are struck where their forces vanish."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_runs import run_with_events
from mechanisms import closed_mechanism_of
from scipy.special import ellipj, ellipk

from mb2fmu import Impact, Model, Parts, export
from mb2fmu.mechanics import formulations
from mb2fmu.validation.reference.reference_run import make_reference

LENGTH, G, LIFTED = 0.3, 9.81, 0.5
MODULUS = np.sin(LIFTED / 2) ** 2
QUARTER = np.sqrt(LENGTH / G) * ellipk(MODULUS)


def cradle() -> Model:
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies = []
    for i in range(3):
        pin = O.locatenew(f"S{i}", sm.Float(0.02) * i * N.x)
        pin.set_vel(N, 0)
        B = N.orientnew(f"B{i}", "Axis", (q[i], N.z))
        B.set_ang_vel(N, u[i] * N.z)
        P = pin.locatenew(f"P{i}", -sm.Float(LENGTH) * B.y)
        P.v2pt_theory(pin, N, B)
        bodies.append(me.Particle(f"ball{i}", P, sm.Float(0.1)))
    loads = [(ball.masscenter, -ball.mass * sm.Float(G) * N.y) for ball in bodies]
    rates = [a.diff() - b for a, b in zip(q, u, strict=True)]
    model = Model("Cradle", Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=rates, bodies=bodies, loads=loads))
    for i in range(3):
        model.coordinate(q[i], 0.0 if i else -LIFTED, "rad")
        model.speed(u[i], 0.0, "rad/s")
    for i in range(2):
        gap = sm.Float(LENGTH) * (sm.sin(q[i + 1]) - sm.sin(q[i]))
        model.add(Impact(f"pair{i}", gap, restitution=1, order="sequential"))
    model.experiment(stop=3.0, step=0.05, tolerance=1e-9)
    return model


def by_hand(time: np.ndarray) -> np.ndarray:
    """Angles (n, 3): the first ball and the last one take turns with the exact pendulum's motion, the middle rests."""
    sine, *_ = ellipj(ellipk(MODULUS) - np.sqrt(G / LENGTH) * time, MODULUS)
    angle = -2 * np.arcsin(np.sqrt(MODULUS) * sine)
    return np.column_stack([np.minimum(angle, 0.0), 0.0 * time, np.maximum(angle, 0.0)])


def test_the_reference_swings_to_and_fro():
    mechanism = closed_mechanism_of(cradle())
    reference = make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))
    trajectory = reference.trajectory
    found = trajectory.values[:, [trajectory.column(f"q{i}") for i in (1, 2, 3)]]
    assert found == pytest.approx(by_hand(trajectory.time), abs=1e-8)
    hard = [event.time for event in reference.events if np.abs(event.states[1] - event.states[0]).max() > 1.0]
    first = [time for k, time in enumerate(hard) if not k or time > hard[k - 1] + 1e-6]
    assert first == pytest.approx(np.arange(1, 2 * len(first), 2) * QUARTER, rel=1e-8)
    assert len(first) == int((3.0 / QUARTER + 1) / 2)


@pytest.mark.repeats  # by day: the reference, above; an FMU with impacts in ``test_impact``
def test_the_fmu_swings_to_and_fro(tmp_path):
    path = str(export(cradle(), tmp_path, fmi="3").path)
    names = ["q1", "q2", "q3"]
    found = run_with_events(path, "CoSimulation", 3.0, 0.05, names).found
    assert np.column_stack([found[name] for name in names]) == pytest.approx(by_hand(found["time"]), abs=1e-7)
