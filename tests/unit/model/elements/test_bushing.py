"""Bushings against forces and torques written by hand, against what they keep and lose, and small angles."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from representatives import by_night
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from mb2fmu import Bushing, Model, Parts, rhs
from mb2fmu.errors import ModelError
from mb2fmu.mechanics.formulations.energies.energy_and_power import is_load_potential
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model

t = me.dynamicsymbols._t
STIFF = (1e3, 2e3, 3e3, 10.0, 20.0, 30.0)
DAMP = (5.0, 6.0, 7.0, 0.1, 0.2, 0.3)
MASS, INERTIA, ARM = 2.0, np.array([0.1, 0.2, 0.3]), np.array([0.05, 0.02, -0.03])


def mounted(stiffness=STIFF, damping=(0.0,) * 6, *, count: int = 1) -> Model:
    """``count`` free bodies (places, angles x, y, z); the last on a bushing to the one before, or the ground."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    q, u, equations, bodies, places = [], [], [], [], [(O, N)]
    for i in range(1, count + 1):
        own = me.dynamicsymbols(f"x{i} y{i} z{i} a{i} b{i} c{i}")
        speeds = me.dynamicsymbols(f"vx{i} vy{i} vz{i} wx{i} wy{i} wz{i}")
        B = me.ReferenceFrame(f"B{i}")
        B.orient_body_fixed(N, own[3:], "xyz")
        rates = B.ang_vel_in(N)
        B.set_ang_vel(N, sum((w * axis for w, axis in zip(speeds[3:], B, strict=True)), me.Vector(0)))
        C = O.locatenew(f"C{i}", sum((x * axis for x, axis in zip(own, N, strict=False)), me.Vector(0)))
        C.set_vel(N, sum((v * axis for v, axis in zip(speeds, N, strict=False)), me.Vector(0)))
        Q = C.locatenew(f"Q{i}", sum((float(a) * axis for a, axis in zip(ARM, B, strict=True)), me.Vector(0)))
        Q.v2pt_theory(C, N, B)
        equations += [x.diff(t) - v for x, v in zip(own[:3], speeds[:3], strict=True)]
        equations += [rates.dot(axis) - w for w, axis in zip(speeds[3:], B, strict=True)]
        bodies.append(me.RigidBody(B.name, C, B, MASS, (me.inertia(B, *INERTIA), C)))
        places.append((Q, B))
        q, u = [*q, *own], [*u, *speeds]
    model = Model("Mounted", Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=equations, bodies=bodies))
    for symbol in q:
        model.coordinate(symbol, 0.0)
    for symbol in u:
        model.speed(symbol, 0.0)
    model.add(Bushing("mount", places[-2], places[-1], stiffness=stiffness, damping=damping))
    return model


def by_hand(x: np.ndarray, K: np.ndarray, D: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Force and torque on the body at Q in N, and the energy: e and e' by numbers, the torque by virtual work."""
    R = Rotation.from_euler("XYZ", x[3:6]).as_matrix()
    omega = R @ x[9:12]

    def strain(place: np.ndarray, turned: np.ndarray) -> np.ndarray:
        skew = turned - turned.T
        return np.array([*place, skew[2, 1] / 2, skew[0, 2] / 2, skew[1, 0] / 2])

    place, speed = x[:3] + R @ ARM, x[6:9] + np.cross(omega, R @ ARM)
    e, step = strain(place, R), 1e-6

    def moved(by: np.ndarray, turn: np.ndarray, h: float) -> np.ndarray:
        return strain(place + h * by, Rotation.from_rotvec(h * turn).as_matrix() @ R)

    def slope(by: np.ndarray, turn: np.ndarray) -> np.ndarray:
        return (moved(by, turn, step) - moved(by, turn, -step)) / (2 * step)

    w = K @ e + D @ slope(speed, omega)
    zero, axes = np.zeros(3), np.eye(3)
    force = np.array([-w @ slope(axis, zero) for axis in axes])
    torque = np.array([-w @ slope(zero, axis) for axis in axes])
    return force, torque, e @ K @ e / 2


STATE = np.array([0.01, -0.02, 0.015, 0.3, -0.5, 0.7, 0.2, -0.1, 0.4, 1.0, -2.0, 0.5])


def coupled(seed: int) -> np.ndarray:
    """A symmetric positive definite matrix, with all its couplings."""
    root = np.random.default_rng(seed).normal(size=(6, 6)) * np.array([30, 30, 30, 3, 3, 3])[:, None]
    return root @ root.T


@pytest.mark.parametrize("kind", [*by_night("diagonal"), "coupled"])
def test_force_and_torque_are_those_of_virtual_work(kind):
    K, D = (np.diag(STIFF), np.diag(DAMP)) if kind == "diagonal" else (coupled(1), coupled(2) * 1e-2)
    f = rhs(
        mounted(STIFF if kind == "diagonal" else K.tolist(), DAMP if kind == "diagonal" else D.tolist()),
        method="recursive-composite",
    )
    force, torque, energy = by_hand(STATE, K, D)
    reported = dict(zip(f.output_names, f.outputs(0.0, STATE), strict=True))
    assert [reported[f"mount.force.{axis}"] for axis in "xyz"] == pytest.approx(force, rel=1e-7)
    assert [reported[f"mount.torque.{axis}"] for axis in "xyz"] == pytest.approx(torque, rel=1e-7)
    assert reported["mount.energy"] == pytest.approx(energy, rel=1e-13)
    R, w = Rotation.from_euler("XYZ", STATE[3:6]).as_matrix(), STATE[9:12]
    about_centre = R.T @ (torque + np.cross(R @ ARM, force))
    rates = f(0.0, STATE)
    assert rates[6:9] == pytest.approx(force / MASS, rel=1e-7)
    assert rates[9:] == pytest.approx((about_centre - np.cross(w, INERTIA * w)) / INERTIA, rel=1e-7)


def test_small_angles_are_those_about_the_axes():
    """Turned by 1e-4 about each axis and moved: what six single springs do, to the order of the angle."""
    f = rhs(mounted(), method="recursive-composite")
    x = np.zeros(12)
    x[:3], x[3:6] = np.array([1e-4, 2e-4, -1e-4]) - ARM, (1e-4, -2e-4, 3e-4)
    reported = dict(zip(f.output_names, f.outputs(0.0, x), strict=True))
    assert reported["mount.torque.x"] == pytest.approx(-10.0 * 1e-4, rel=1e-3)
    assert reported["mount.torque.y"] == pytest.approx(20.0 * 2e-4, rel=1e-3)
    assert reported["mount.torque.z"] == pytest.approx(-30.0 * 3e-4, rel=1e-3)


def test_its_energy_is_kept():
    """Kinetic energy and the bushing's stay together, through angles of a radian."""
    model = mounted(coupled(3).tolist())
    model.output_total_energy()
    f = rhs(model, method="recursive-composite")
    run = solve_ivp(f, (0.0, 0.3), STATE, method="DOP853", rtol=1e-9, atol=1e-11)
    reported = f.outputs(run.t, run.y.T)
    assert np.ptp(reported[:, f.output_names.index("mount.energy")]) > 0.1  # it is at work
    energy = reported[:, f.output_names.index("total_energy")]
    assert np.ptp(energy) < 1e-7 * np.abs(energy).max()


def test_the_first_body_has_the_reaction():
    """Of two free bodies all of momentum stays, linear and angular about the origin."""
    f = rhs(mounted(DAMP, DAMP, count=2), method="recursive-composite")
    x = np.array([*STATE[:6] * 0.3, *-STATE[:6] * 0.2, *STATE[6:], *-0.5 * STATE[6:]])
    rates = f(0.0, x)
    linear, angular = np.zeros(3), np.zeros(3)
    for place, moving in ((0, 12), (6, 18)):
        R = Rotation.from_euler("XYZ", x[place + 3 : place + 6]).as_matrix()
        w, turning = x[moving + 3 : moving + 6], rates[moving + 3 : moving + 6]
        push = MASS * rates[moving : moving + 3]
        linear += push
        angular += R @ (INERTIA * turning + np.cross(w, INERTIA * w)) + np.cross(x[place : place + 3], push)
        assert np.abs(push).max() > 0.1
    assert linear == pytest.approx(np.zeros(3), abs=1e-13)
    assert angular == pytest.approx(np.zeros(3), abs=1e-13)


def test_what_it_tells_of_its_energy_is_held_against_its_loads():
    definition = check_model(mounted())
    ((loads, energy),) = definition.known_potentials
    for factor, fits in ((1, True), (sm.Rational(101, 100), False)):
        changed = replace(definition, known_potentials=((loads, factor * energy),))
        mechanism = read_mechanism(changed)
        ((names, told_energy),) = mechanism.known_potentials
        assert len(names) == 2  # the ground takes its reaction
        assert is_load_potential(mechanism, told_energy) is fits


def test_a_matrix_that_is_not_symmetric_has_no_energy():
    rows = np.diag(STIFF)
    rows[0, 1] = 50.0
    model = mounted(rows.tolist())
    definition = check_model(model)
    assert "mount.energy" not in {output.name for output in definition.outputs}
    assert {p.name: p.unit for p in definition.parameters if "[1," in p.name} == {
        "mount.stiffness[1,1]": "N/m",
        "mount.stiffness[1,2]": "N/m",
    }


def test_everything_wrong_is_reported_at_once():
    model = mounted()
    N, far, B = me.ReferenceFrame("N"), me.Point("far"), me.ReferenceFrame("B")
    model.add(Bushing("a", (far, B), (me.Point("other"), N), stiffness=(1, 2, 3)))
    model.add(Bushing("b", far, (far, N), stiffness=(1, 2, 3, 4, 5, -6), damping=(sm.nan,) * 6))
    with pytest.raises(ModelError) as caught:
        check_model(model)
    message = str(caught.value)
    for part in (
        "a: the way is not known", "a: stiffness is (1, 2, 3)", "b: it acts on far",
        "b: stiffness has a number below 0", "b: damping has an entry that is not finite",
    ):  # fmt: skip
        assert part in message, message
