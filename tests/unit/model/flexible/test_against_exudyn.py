"""Flexible bodies against Exudyn's ``ObjectFFRFreducedOrder``: a pendulum, a slider-crank, a plate that tumbles."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from finite_elements import box_model
from flexible_bodies import free_body, pinned_body
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from mb2fmu import FlexibleBody, Model, Parts, rhs

pytest.importorskip("exudyn", reason="Exudyn, which moves the same flexible body, is not installed")
from exudyn.itemInterface import (
    MarkerBodyRigid,
    MarkerNodePosition,
    NodePoint,
    NodeRigidBodyEP,
    ObjectMassPoint,
    ObjectRigidBody,
    SphericalJoint,
)
from exudyn_model import ExudynSystem, FiniteElements, make_system, simulate_node

STOP, SAMPLES, GRAVITY = 2.0, 100, 9.81
CLOSE = 1e-6
"""m: of a body of 1 m whose tip is deflected by centimetres."""

E = 2e7
"""Pa: as soft as rubber, so that frequencies are low and all modes are of account within 2 s."""

ROD = FiniteElements(*box_model((1.0, 0.05, 0.02), (10, 2, 2), E=E, rho=1000.0))
ROOT = np.flatnonzero(ROD.nodes[:, 0] == 0.0)
TIP = int(np.flatnonzero((ROD.nodes == [1.0, 0.0, 0.0]).all(axis=1))[0])


def rod(modes: int = 3) -> FlexibleBody:
    return FlexibleBody.from_finite_elements(
        "rod", K=ROD.K, M=ROD.M, nodes=ROD.nodes, interfaces={"root": ROOT}, modes=modes
    )


def rotation_about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def integrate(model: Model, times: np.ndarray, **start: float) -> np.ndarray:
    """States over time, shape (states, t); ``start`` by name, of the rest the model's."""
    f = rhs(model)
    x0 = [start.pop(name, value) for name, value in zip(f.states, f.x0, strict=True)]
    assert not start
    run = solve_ivp(f, (0.0, STOP), x0, method="DOP853", rtol=1e-11, atol=1e-13, t_eval=times)
    assert run.success
    return run.y


def modal(body: FlexibleBody, eta: np.ndarray) -> dict[str, float]:
    """Modal coordinates by the names of states."""
    return {f"{body.name}.eta[{k + 1}]": value for k, value in enumerate(eta)}


def displaced(body: FlexibleBody, node: int, eta: np.ndarray) -> np.ndarray:
    """Positions of a node in the body's frame by modal coordinates (m, t), shape (t, 3)."""
    return body.data.nodes[node] + (body.data.modes[:, node].T @ eta).T


@pytest.mark.repeats
def test_a_pendulum_that_bends():
    body, eta = rod(), np.array([0.01, -0.02, 0.002])

    def make() -> ExudynSystem:
        frame = {"rotationMatrixRef": rotation_about_z(0.3), "initialAngularVelocity": [0.0, 0.0, 1.0]}
        system = make_system(body, ROD, eta, **frame)
        system.add_weight(ROD, GRAVITY)
        system.pin(system.ground, system.frame())
        return system

    times, theirs, doubt = simulate_node(make, TIP, STOP, SAMPLES)
    x = integrate(pinned_body(body, gravity=GRAVITY), times, theta=0.3, omega=1.0, **modal(body, eta))
    local = displaced(body, TIP, x[1:4])
    ours = np.array([rotation_about_z(theta) @ place for theta, place in zip(x[0], local, strict=True)])
    assert doubt <= CLOSE / 3
    assert np.max(np.abs(ours - theirs)) <= CLOSE


def test_a_plate_that_tumbles():
    plate = FiniteElements(*box_model((0.6, 0.4, 0.02), (6, 4, 1), E=1e6, rho=1000.0))
    body = FlexibleBody.from_finite_elements("plate", K=plate.K, M=plate.M, nodes=plate.nodes, interfaces={}, modes=4)
    corner, eta = len(plate.nodes) - 1, np.array([0.02, -0.01, 0.01, 0.005])
    w, v = [1.0, 2.0, 3.0], [0.3, -0.2, 0.1]

    def make() -> ExudynSystem:
        return make_system(body, plate, eta, initialAngularVelocity=w, initialVelocity=v)

    times, theirs, doubt = simulate_node(make, corner, STOP, SAMPLES)
    speeds = dict(zip(("w1", "w2", "w3", "v1", "v2", "v3"), (*w, *v), strict=True))
    place = dict.fromkeys(("x1", "x2", "x3"), 0.0)
    x = integrate(free_body(body), times, **place, **speeds, **modal(body, eta))
    local = displaced(body, corner, x[7:11])
    quaternions = (x[:4] / np.linalg.norm(x[:4], axis=0)).T
    ours = x[4:7].T + Rotation.from_quat(quaternions, scalar_first=True).apply(local)
    assert doubt <= CLOSE / 3
    assert np.max(np.abs(ours - theirs)) <= CLOSE


CRANK, CRANK_INERTIA, SLIDER = 0.2, 0.05, 0.5
"""Length in m, inertia about the shaft in kg·m², mass in kg; the crank has no mass beside the shaft."""
ANGLE, SPEED = 0.4, 4.0


def slider_crank(body: FlexibleBody) -> Model:
    crank, rod_angle, slider = me.dynamicsymbols("crank rod_angle slider")
    omega, nu, v = me.dynamicsymbols("omega nu v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A, B = N.orientnew("A", "Axis", (crank, N.z)), body.frame()
    B.orient_axis(N, N.z, rod_angle)
    A.set_ang_vel(N, omega * N.z)
    B.set_ang_vel(N, nu * N.z)
    body.point().set_pos(O, CRANK * A.x)
    pin = O.locatenew("pin", slider * N.x)
    pin.set_vel(N, v * N.x)
    loop = body.point(TIP).pos_from(pin)
    wheel = me.RigidBody("wheel", O, A, sm.Float(1.0), (me.inertia(A, 0, 0, CRANK_INERTIA), O))
    q, u = (crank, rod_angle, slider), (omega, nu, v)
    parts = Parts(
        frame=N,
        origin=O,
        q=(*q, *body.q),
        u=(*u, *body.u),
        kinematic_equations=(*(a - b.diff() for a, b in zip(u, q, strict=True)), *body.kinematic_equations),
        bodies=(wheel, me.Particle("piston", pin, sm.Float(SLIDER)), *body.bodies),
        loads=(*body.loads, *body.weight(-GRAVITY * N.y)),
        holonomic_constraints=(loop.dot(N.x), loop.dot(N.y)),
        q_dependent=(rod_angle, slider),
        u_dependent=(nu, v),
    )
    model = Model("SliderCrank", parts)
    beta, nu0, slider0, v0 = loop_start()
    for symbol, value, unit in ((crank, ANGLE, "rad"), (rod_angle, beta, "rad"), (slider, slider0, "m")):
        model.coordinate(symbol, value, unit, kind="fixed" if symbol is crank else "guess")
    for symbol, value, unit in ((omega, SPEED, "rad/s"), (nu, nu0, "rad/s"), (v, v0, "m/s")):
        model.speed(symbol, value, unit, kind="fixed" if symbol is omega else "guess")
    model.add(body)
    return model


def loop_start() -> tuple[float, float, float, float]:
    """Angle and angular speed of the straight rod, place and speed of the slider."""
    beta = -np.arcsin(CRANK * np.sin(ANGLE))
    nu = -CRANK * SPEED * np.cos(ANGLE) / np.cos(beta)
    speed = -CRANK * SPEED * np.sin(ANGLE) - nu * np.sin(beta)
    return beta, nu, CRANK * np.cos(ANGLE) + np.cos(beta), speed


def slider_crank_in_exudyn(body: FlexibleBody) -> ExudynSystem:
    beta, nu, place, speed = loop_start()
    end = CRANK * np.array([np.cos(ANGLE), np.sin(ANGLE), 0.0])
    velocity = CRANK * SPEED * np.array([-np.sin(ANGLE), np.cos(ANGLE), 0.0])
    motion = {"initialVelocity": velocity, "initialAngularVelocity": [0.0, 0.0, nu]}
    motion |= {"rotationMatrixRef": rotation_about_z(beta), "positionRef": end}
    system = make_system(body, ROD, np.zeros(body.data.mode_count), **motion)
    system.add_weight(ROD, GRAVITY)
    mbs = system.mbs
    parameters, rates = (
        np.array([np.cos(ANGLE / 2), 0, 0, np.sin(ANGLE / 2)]),
        SPEED / 2 * np.array([-np.sin(ANGLE / 2), 0, 0, np.cos(ANGLE / 2)]),
    )
    node = mbs.AddNode(
        NodeRigidBodyEP(referenceCoordinates=[0.0, 0.0, 0.0, *parameters], initialVelocities=[0.0, 0.0, 0.0, *rates])
    )
    inertia = [1e-3, 1e-3, CRANK_INERTIA, 0.0, 0.0, 0.0]  # what does not turn about z, does nothing
    crank = mbs.AddObject(ObjectRigidBody(nodeNumber=node, mass=1.0, inertia=inertia))
    hub, tip = (mbs.AddMarker(MarkerBodyRigid(bodyNumber=crank, localPosition=[x, 0.0, 0.0])) for x in (0.0, CRANK))
    system.pin(system.ground, hub)
    system.pin(tip, system.frame())
    point = mbs.AddNode(NodePoint(referenceCoordinates=[place, 0.0, 0.0], initialVelocities=[speed, 0.0, 0.0]))
    mbs.AddObject(ObjectMassPoint(nodeNumber=point, mass=SLIDER))
    piston = mbs.AddMarker(MarkerNodePosition(nodeNumber=point))
    mbs.AddObject(SphericalJoint(markerNumbers=[system.ground, piston], constrainedAxes=[0, 1, 1]))
    mbs.AddObject(SphericalJoint(markerNumbers=[piston, system.node(TIP)], constrainedAxes=[1, 1, 0]))
    return system


@pytest.mark.repeats
def test_a_slider_crank_whose_rod_bends():
    body = rod()
    times, theirs, doubt = simulate_node(lambda: slider_crank_in_exudyn(body), TIP, STOP, SAMPLES)
    x = integrate(slider_crank(body), times)
    local = displaced(body, TIP, x[3:6])
    end = CRANK * np.column_stack([np.cos(x[0]), np.sin(x[0]), np.zeros(len(times))])
    ours = end + np.array([rotation_about_z(angle) @ place for angle, place in zip(x[1], local, strict=True)])
    assert doubt <= CLOSE / 3
    assert np.max(np.abs(ours - theirs)) <= CLOSE
