"""A loop in space with a ball joint whose coordinates are a quaternion: crank, coupler, rocker (RSSR).

The crank turns about the vertical, the rocker about a horizontal axis; the coupler hangs on the crank's tip by a ball
joint, and its other end is on the rocker's tip. Two freedoms: the crank, and the coupler's turning about itself.
"""

from __future__ import annotations

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.optimize import brentq

from mb2fmu import Model, Parts

CRANK, COUPLER, ROCKER = 0.3, 1.0, 0.6
PIN = (0.9, 0.2, 0.3)


def start(crank: float, longer: float = 1.0) -> np.ndarray:
    """Crank angle, quaternion of length ``longer``, rocker angle that close the loop."""
    tip = CRANK * np.array([np.cos(crank), np.sin(crank), 0.0])

    def line(rocker: float) -> np.ndarray:
        return np.array(PIN) + ROCKER * np.array([0.0, np.cos(rocker), np.sin(rocker)]) - tip

    rocker = brentq(lambda angle: np.linalg.norm(line(angle)) - COUPLER, 0.0, np.pi / 2)
    along = line(rocker) / COUPLER
    e = np.array([1.0 + along[0], *np.cross([1.0, 0.0, 0.0], along)])  # the shortest way from B.x to there
    return np.array([crank, *(longer * e / np.linalg.norm(e)), rocker])


def linkage(longer: float = 1.0) -> Model:
    """The mechanism; ``longer``: length of the quaternion at the start."""
    t = me.dynamicsymbols._t
    crank, rocker = me.dynamicsymbols("crank rocker")
    e = me.dynamicsymbols("e0:4")
    u_crank, u_rocker = me.dynamicsymbols("u_crank u_rocker")
    w = me.dynamicsymbols("wx wy wz")
    m, g = sm.symbols("m g", positive=True)
    N, A, B, C = (me.ReferenceFrame(name) for name in "NABC")
    A.orient_axis(N, N.z, crank)
    A.set_ang_vel(N, u_crank * N.z)
    B.orient_quaternion(N, e)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    C.orient_axis(N, N.x, rocker)
    C.set_ang_vel(N, u_rocker * N.x)
    O = me.Point("O")
    O.set_vel(N, 0)
    crank_tip = O.locatenew("crank_tip", CRANK * A.x)
    middle = crank_tip.locatenew("middle", COUPLER / 2 * B.x)
    end = crank_tip.locatenew("end", COUPLER * B.x)
    pin = O.locatenew("pin", sum((c * axis for c, axis in zip(PIN, N, strict=True)), me.Vector(0)))
    pin.set_vel(N, 0)
    rocker_tip = pin.locatenew("rocker_tip", ROCKER * C.y)
    crank_tip.v2pt_theory(O, N, A)
    middle.v2pt_theory(crank_tip, N, B)
    end.v2pt_theory(crank_tip, N, B)
    rocker_tip.v2pt_theory(pin, N, C)
    gap = end.pos_from(O) - rocker_tip.pos_from(O)
    coupler = me.RigidBody(
        "coupler", middle, B, m, (me.inertia(B, m / 200, m * COUPLER**2 / 12, m * COUPLER**2 / 12 + m / 300), middle)
    )
    tip = me.Particle("tip", rocker_tip, m)
    wx, wy, wz = w
    rates = (
        (-e[1] * wx - e[2] * wy - e[3] * wz) / 2,
        (e[0] * wx - e[3] * wy + e[2] * wz) / 2,
        (e[3] * wx + e[0] * wy - e[1] * wz) / 2,
        (-e[2] * wx + e[1] * wy + e[0] * wz) / 2,
    )
    parts = Parts(
        frame=N,
        origin=O,
        q=(crank, *e, rocker),
        u=(u_crank, *w, u_rocker),
        kinematic_equations=(
            crank.diff(t) - u_crank,
            *(c.diff(t) - rate for c, rate in zip(e, rates, strict=True)),
            rocker.diff(t) - u_rocker,
        ),
        bodies=(coupler, tip, me.RigidBody("crank", O, A, m, (me.inertia(A, 0, 0, m / 20), O))),
        loads=tuple(me.Force(point, -m * g * N.z) for point in (middle, rocker_tip)),
        holonomic_constraints=tuple(gap.dot(axis) for axis in N),
    )
    model = Model("BallJoint", parts)
    model.parameter(m, 1.0, "kg")
    model.parameter(g, 9.81, "m/s2")
    values = start(0.5, longer)
    model.coordinate(crank, float(values[0]), "rad")
    for symbol, value in zip(e, values[1:5], strict=True):
        model.coordinate(symbol, float(value), kind="guess")
    model.coordinate(rocker, float(values[5]), "rad", kind="guess")
    model.speed(u_crank, 2.0, "rad/s")
    for symbol, value in zip(w, (3.0, 0.0, 0.0), strict=True):
        model.speed(symbol, value, "rad/s", kind="guess")
    model.speed(u_rocker, 0.0, "rad/s", kind="guess")
    model.output_position("middle", middle)
    model.output_total_energy()
    model.experiment(stop=2.0, step=0.05, tolerance=1e-8)
    return model
