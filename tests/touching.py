"""Balls and blocks that touch: models of the element Contact."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Contact, Model, Parts, PlaneSurface

t = me.dynamicsymbols._t


def striking_ball(exponent: float = 1.5, dissipation: float = 0.1) -> Model:
    """A ball of 2 kg that strikes the floor at 1 m/s, without gravity, 0.01 m above it at the start."""
    h, v = me.dynamicsymbols("h v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", h * N.y)
    P.set_vel(N, v * N.y)
    ball = me.Particle("ball", P, 2)
    model = Model("Striking", me.KanesMethod(N, [h], [v], [h.diff() - v], bodies=[ball], forcelist=[]))
    model.coordinate(h, 0.06, "m")
    model.speed(v, -1.0, "m/s")
    floor = PlaneSurface(O, N.y)
    model.add(Contact("floor", ball, floor, radius=0.05, stiffness=1e4, exponent=exponent, dissipation=dissipation))
    model.experiment(stop=0.4, step=0.02, tolerance=1e-9)
    return model


def two_bodies() -> tuple[Model, me.ReferenceFrame, list[me.RigidBody]]:
    """Two free bodies in the plane of N.x and N.y, of 2 kg and 0.5 kg.m2, and 3 kg and 0.7 kg.m2."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    q, u, kde, bodies = [], [], [], []
    for i, (mass, inertia) in enumerate(((2, 0.5), (3, 0.7)), 1):
        x, y, a = me.dynamicsymbols(f"x{i} y{i} a{i}")
        vx, vy, w = me.dynamicsymbols(f"vx{i} vy{i} w{i}")
        B, C = me.ReferenceFrame(f"B{i}"), me.Point(f"C{i}")
        B.orient_axis(N, N.z, a)
        B.set_ang_vel(N, w * N.z)
        C.set_pos(O, x * N.x + y * N.y)
        C.set_vel(N, vx * N.x + vy * N.y)
        bodies.append(me.RigidBody(f"body{i}", C, B, mass, (me.inertia(B, 1, 1, sm.Float(inertia)), C)))
        q += [x, y, a]
        u += [vx, vy, w]
        kde += [x.diff(t) - vx, y.diff(t) - vy, a.diff(t) - w]
    parts = Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=kde, bodies=bodies)
    model = Model("TwoBodies", parts)
    for symbol in q:
        model.coordinate(symbol, 0.0)
    for symbol in u:
        model.speed(symbol, 0.0)
    return model, N, bodies


def planar_body(
    name: str,
    mass: float,
    inertia: sm.Expr | float,
    starts: Sequence[float],
    *,
    slope: float = 0.0,
    along: sm.Expr | float = 0.0,
) -> tuple[Model, tuple[sm.Expr, ...]]:
    """A free body in the plane of N.x and N.y, under gravity of 9.81 m/s2.

    Args:
        name: Of the model.
        mass: In kg.
        inertia: About its middle, in kg.m2.
        starts: Of x, y, a and u, v, w: its middle in m, its angle in rad, and their rates.
        slope: Of the ground, in rad: N.y is perpendicular to it, and gravity pulls along N.x.
        along: A force on its middle along N.x, in N.

    Returns:
        The model, and the symbols of x, y, a, u, v, w.
    """
    x, y, a, u, v, w = symbols = me.dynamicsymbols("x y a u v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    B = N.orientnew("B", "Axis", (a, N.z))
    B.set_ang_vel(N, w * N.z)
    C = O.locatenew("C", x * N.x + y * N.y)
    C.set_vel(N, u * N.x + v * N.y)
    body = me.RigidBody("body", C, B, mass, (me.inertia(B, 0, 0, inertia), C))
    pull = mass * sm.Float(9.81) * (sm.Float(np.sin(slope)) * N.x - sm.Float(np.cos(slope)) * N.y) + along * N.x
    rates = [x.diff() - u, y.diff() - v, a.diff() - w]
    model = Model(name, me.KanesMethod(N, [x, y, a], [u, v, w], rates, bodies=[body], forcelist=[(C, pull)]))
    for symbol, start in zip(symbols, starts, strict=True):
        declare = model.coordinate if symbol in (x, y, a) else model.speed
        declare(symbol, float(start), {a: "rad", w: "rad/s"}.get(symbol, "m" if symbol in (x, y) else "m/s"))
    return model, tuple(symbols)


def thrown_ball(speed: float, *, bowled: bool = False) -> Model:
    """A ball of 0.1085 m in the plane of N.x and N.y, thrown or bowled upon a floor of friction 0.12.

    Bowled it lies on the floor, pressed in as deep as its weight does, so that its middle is 0.1085 m above it.
    """
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    x, y, a, vx, vy, w = me.dynamicsymbols("x y a vx vy w")
    B, C = me.ReferenceFrame("B"), me.Point("C")
    B.orient_axis(N, N.z, a)
    B.set_ang_vel(N, w * N.z)
    C.set_pos(O, x * N.x + y * N.y)
    C.set_vel(N, vx * N.x + vy * N.y)
    radius, mass, g, k = 0.1085, 6.0, 9.81, 1e4
    inertia = 0.4 * mass * radius**2
    ball = me.RigidBody("ball", C, B, mass, (me.inertia(B, inertia, inertia, inertia), C))
    kde = [x.diff(t) - vx, y.diff(t) - vy, a.diff(t) - w]
    parts = Parts(frame=N, origin=O, q=[x, y, a], u=[vx, vy, w], kinematic_equations=kde, bodies=[ball],
                  loads=[(C, -mass * sm.Float(g) * N.y)])  # fmt: skip
    model = Model("Bowling" if bowled else "Thrown", parts)
    model.coordinate(x, 0.0, "m")
    model.coordinate(y, radius if bowled else 0.3, "m")
    model.coordinate(a, 0.0, "rad")
    for symbol, start, unit in ((vx, speed, "m/s"), (vy, 0.0, "m/s"), (w, 0.0, "rad/s")):
        model.speed(symbol, start, unit)
    depth = mass * g / k if bowled else 0.0
    model.add(
        Contact(
            "floor", ball, PlaneSurface(O, N.y), radius=radius + depth, stiffness=k, exponent=1,
            dissipation=0.0 if bowled else 1.0, kinetic=0.12, plane=N.z,
        )
    )  # fmt: skip
    model.experiment(stop=2.5 if bowled else 1.5, step=0.05, tolerance=1e-9)
    return model
