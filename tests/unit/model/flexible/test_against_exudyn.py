"""Flexible bodies against Exudyn's ``ObjectFFRFreducedOrder``: a pendulum, a plate that tumbles."""

from __future__ import annotations

import numpy as np
import pytest
from finite_elements import box_model
from flexible_bodies import free_body, pinned_body
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from mb2fmu import FlexibleBody, Model, rhs

pytest.importorskip("exudyn", reason="Exudyn, which moves the same flexible body, is not installed")
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


@pytest.mark.repeats
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
