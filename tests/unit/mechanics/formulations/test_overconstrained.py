"""Closed loops whose rows are redundant where they are closed, and only there."""

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night
from scipy.integrate import solve_ivp

from mb2fmu import Model, Parts, pipeline
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

LENGTH, START, STOP = 0.5, 1.0, 3.0


def platform() -> Model:
    """A platform that hangs on three parallel cranks and does not turn: four rows of rank three, one freedom."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    q, u = me.dynamicsymbols("q1:4 p"), me.dynamicsymbols("u1:4 w")
    m, length, g = sm.symbols("m l g")
    O.set_vel(N, 0)
    feet = [0 * N.x, 0.7 * N.x, 0.4 * N.x + 0.3 * N.y]
    frames = [N.orientnew(f"A{i}", "Axis", [angle, N.z]) for i, angle in enumerate(q)]
    for frame, speed in zip(frames, u, strict=True):
        frame.set_ang_vel(N, speed * N.z)
    pins, rows = [], []
    for i, foot in enumerate(feet):
        F = O.locatenew(f"F{i}", foot)
        F.set_vel(N, 0)
        pins.append(F.locatenew(f"P{i}", -length * frames[i].y))
        pins[i].v2pt_theory(F, N, frames[i])
        corner = foot.to_matrix(N)[0] * frames[3].x + foot.to_matrix(N)[1] * frames[3].y
        gap = pins[i].pos_from(pins[0]) - corner
        rows += [gap.dot(N.x), gap.dot(N.y)] if i else []
    centre = pins[0].locatenew("C", 0.3 * frames[3].x + 0.1 * frames[3].y)
    centre.v2pt_theory(pins[0], N, frames[3])
    bodies = [me.RigidBody("platform", centre, frames[3], m, (me.inertia(frames[3], 0, 0, m / 10), centre))]
    bodies += [me.Particle(f"pin{i}", pin, m / 5) for i, pin in enumerate(pins)]
    loads = [(centre, -m * g * N.y), *((pin, -m / 5 * g * N.y) for pin in pins)]
    kinematics = [a.diff() - b for a, b in zip(q, u, strict=True)]
    parts = Parts(
        frame=N,
        origin=O,
        q=q,
        u=u,
        kinematic_equations=kinematics,
        bodies=bodies,
        loads=loads,
        holonomic_constraints=rows,
    )
    model = Model("Platform", parts)
    for symbol, value, unit in ((m, 1.0, "kg"), (length, LENGTH, "m"), (g, 9.81, "m/s2")):
        model.parameter(symbol, value, unit)
    for i in range(4):
        kind = "guess" if i else "fixed"
        model.coordinate(q[i], 0.0 if i == 3 else START, "rad", kind=kind)
        model.speed(u[i], 0.0, "rad/s", kind=kind)
    model.experiment(stop=STOP, step=0.05, tolerance=1e-6)
    return model


def pendulum() -> float:
    """Where the cranks are at the end: those of a simple pendulum of their length."""
    swing = solve_ivp(
        lambda _, y: [y[1], -9.81 / LENGTH * np.sin(y[0])], (0, STOP), [START, 0], "DOP853", rtol=1e-12, atol=1e-12
    )
    return float(swing.y[0, -1])


@pytest.mark.parametrize(("asked", "rate"), [("attractor", None), ("multipliers", 20.0)])
def test_a_platform_on_three_parallel_cranks_is_a_pendulum(asked, rate):
    derivation = pipeline.derive(platform(), method="tmt", constraints=asked, baumgarte=rate)
    assert "redundant" in derivation.treated
    f = pipeline.right_hand_side(derivation)
    found = solve_ivp(f, (0, STOP), f.x0, rtol=1e-6, atol=1e-6)
    assert found.success
    assert found.nfev < 2000  # it does not fight its own constraints
    assert found.y[0, -1] == pytest.approx(pendulum(), abs=1e-4)


@pytest.mark.parametrize("seed", [0, *by_night(1, 2, 3)])
def test_a_drift_off_the_constraints_changes_accelerations_by_as_much(seed):
    """Beside the constraints the four rows are independent, and would allow no motion."""
    derivation = pipeline.derive(platform(), method="tmt", constraints="multipliers", baumgarte=20.0)
    f = pipeline.right_hand_side(derivation)
    off = f.x0 + 1e-6 * np.random.default_rng(seed).normal(size=8)
    numeric = NumericEquations(derivation.equations)
    prepared = numeric.prepare([p.value for p in derivation.definition.parameters])
    for slope in (lambda x: f(0, x), lambda x: numeric.motion(0.0, x, [], prepared).x_dot):
        assert slope(off) == pytest.approx(slope(f.x0), abs=1e-2)
