"""The work of loads: what gravity, a damper and a motor have done is what energies say."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from scipy.integrate import solve_ivp

from mb2fmu import Model, Parts, Work, rhs
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model

t = me.dynamicsymbols._t


def pendulum() -> tuple[Model, dict[str, object]]:
    """A rod of 1.5 kg on a pin: gravity, a motor, and a spring with a damper in line to a point beside it."""
    q, u, drive = me.dynamicsymbols("q u drive")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    O.set_vel(N, 0)
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    G, foot = O.locatenew("G", -0.4 * A.y), O.locatenew("foot", 0.5 * N.x)
    G.v2pt_theory(O, N, A)
    foot.set_vel(N, 0)
    rod = me.RigidBody("rod", G, A, 1.5, (me.inertia(A, 0, 0, 0.08), G))
    way = me.LinearPathway(foot, G)
    given = {
        "gravity": (G, -1.5 * 9.81 * N.y),
        "motor": me.TorqueActuator(drive, N.z, A, N),
        "damper": me.LinearDamper(3.0, way),
        "spring": me.ForceActuator(-40 * (way.length - 0.3), way),
    }
    parts = Parts(frame=N, origin=O, q=[q], u=[u], kinematic_equations=[q.diff(t) - u], bodies=[rod],
                  loads=[given["gravity"]], actuators=[given[k] for k in ("motor", "damper", "spring")])  # fmt: skip
    model = Model("Pendulum", parts)
    model.coordinate(q, 0.9, "rad")
    model.speed(u, 0.5, "rad/s")
    model.input(drive, 0.7, "N.m")
    return model, given


def test_work_is_what_energies_say():
    model, given = pendulum()
    for name, load in given.items():
        model.add(Work(name, load))
    f = rhs(model, method="tmt")
    assert f.states[2:] == tuple(f"{name}.work" for name in given)
    run = solve_ivp(f, (0.0, 2.0), f.x0, method="DOP853", rtol=1e-11, atol=1e-12)
    (q, u), work = run.y[:2], dict(zip(given, run.y[2:], strict=True))
    assert work["gravity"] == pytest.approx(1.5 * 9.81 * 0.4 * (np.cos(q) - np.cos(0.9)), abs=1e-9)
    assert work["motor"] == pytest.approx(0.7 * (q - 0.9), abs=1e-9)
    stretch = np.hypot(0.4 * np.sin(q) - 0.5, 0.4 * np.cos(q)) - 0.3
    assert work["spring"] == pytest.approx(20 * (stretch[0] ** 2 - stretch**2), abs=1e-8)
    assert (np.diff(work["damper"]) <= 0).all()
    kinetic = (0.08 + 1.5 * 0.4**2) * u**2 / 2
    assert sum(work.values()) == pytest.approx(kinetic - kinetic[0], abs=1e-8)
    reported = dict(zip(f.output_names, f.outputs(0.0, f.x0), strict=True))
    assert reported["motor.power"] == pytest.approx(0.7 * 0.5, rel=1e-14)


def test_what_is_no_load_is_reported():
    model, given = pendulum()
    far = me.Point("far")
    for k, load in enumerate(("gravity", (far, given["gravity"][1]), (far, 3), (sm.Symbol("x"), given["gravity"][1]))):
        model.add(Work(f"wrong{k}", load))
    with pytest.raises(ModelError) as caught:
        check_model(model)
    for k in range(4):
        assert f"Work wrong{k}: the power of" in str(caught.value)
