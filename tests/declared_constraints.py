"""Mechanisms with declared constraints on positions, some of whose start values are guesses that do not obey them."""

from __future__ import annotations

import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu import Model, Parts

T = me.dynamicsymbols._t


def falling_body(*, q0: float = 1.0, given: bool = False, kind: str = "guess") -> Model:
    """A body that falls from rest; |q| = 1 is declared and q1 = 0.5 fixed, so that q0 = 0.866 follows.

    The velocity of the centre is along the body, v = R(q)ᵀ x', with a matrix that is no rotation where |q| ≠ 1.

    Args:
        q0: What is said of it.
        given: C's velocity is said; else that SymPy takes from its position.
        kind: Of q0: "guess" or "fixed".
    """
    x, v, q = (me.dynamicsymbols(names) for names in ("x y z", "v1:4", "q0:4"))
    u0, *w = me.dynamicsymbols("u0 w1:4")
    m, J, g = sm.symbols("m J g")
    N, B, O, C = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O"), me.Point("C")
    B.orient_quaternion(N, q)
    C.set_pos(O, sum((a * e for a, e in zip(x, N, strict=True)), me.Vector(0)))
    rate, turn = C.pos_from(O).dt(N), B.ang_vel_in(N)
    equations = [a - rate.dot(e) for a, e in zip(v, B, strict=True)] + [u0 - q[0].diff(T)]
    equations += [a - turn.dot(e) for a, e in zip(w, B, strict=True)]
    B.set_ang_vel(N, sum((a * e for a, e in zip(w, B, strict=True)), me.Vector(0)))
    O.set_vel(N, 0)
    C.set_vel(N, sum((a * e for a, e in zip(v, B, strict=True)), me.Vector(0)))
    length = sm.Matrix([sum(c**2 for c in q) - 1])
    body = me.RigidBody("body", C, B, m, (me.inertia(B, J, 2 * J, 3 * J), C))
    kane = me.KanesMethod(
        N, (*x, *q[1:]), (*v, *w), kd_eqs=equations, q_dependent=(q[0],), u_dependent=(u0,),
        configuration_constraints=length, velocity_constraints=length.diff(T), bodies=[body],
        forcelist=[(C, -m * g * N.z)],
    )  # fmt: skip
    model = Model("Falling", kane)
    for symbol, value, unit in ((m, 2.0, "kg"), (J, 0.1, "kg.m2"), (g, 9.81, "m/s2")):
        model.parameter(symbol, value, unit)
    for symbol in x:
        model.coordinate(symbol, 0.0, "m")
    model.coordinate(q[0], q0, "1", kind=kind)
    for symbol, value in zip(q[1:], (0.5, 0.0, 0.0), strict=True):
        model.coordinate(symbol, value, "1")
    model.speed(u0, 0.0, "1/s", kind="guess")
    for symbol in v:
        model.speed(symbol, 0.0, "m/s")
    for symbol in w:
        model.speed(symbol, 0.1, "rad/s")
    model.output("length", sum(c**2 for c in q), "1")
    if given:
        model.output_position("centre", C)
    model.experiment(stop=1.0)
    return model


def swinging_director() -> Model:
    """A bead on a rod whose direction is a unit vector d with d' = ω × d; |d| = 1 is declared, and ω ⊥ d."""
    d, w = me.dynamicsymbols("d1:4"), me.dynamicsymbols("w1:4")
    m, g, l = sm.symbols("m g l")
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, l * sum((a * e for a, e in zip(d, N, strict=True)), me.Vector(0)))
    D, W = sm.Matrix(d), sm.Matrix(w)
    parts = Parts(
        frame=N, origin=O, q=list(d), u=list(w), bodies=[me.Particle("bead", P, m)], loads=[(P, -m * g * N.z)],
        kinematic_equations=[a.diff(T) - b for a, b in zip(d, W.cross(D), strict=True)],
        holonomic_constraints=[(D.T * D)[0] - 1], velocity_constraints=[(D.T * W)[0]], u_dependent=[w[2]],
    )  # fmt: skip
    model = Model("Director", parts)
    for symbol, value in ((m, 2.0), (g, 9.81), (l, 1.0)):
        model.parameter(symbol, value)
    for symbol, value, kind in zip(d, (0.5, 0.0, 0.8), ("fixed", "fixed", "guess"), strict=True):
        model.coordinate(symbol, value, kind=kind)
    for symbol, kind in zip(w, ("fixed", "fixed", "guess"), strict=True):
        model.speed(symbol, 0.1, kind=kind)
    return model


def two_quaternions() -> Model:
    """Two bodies in a chain, each turned by a quaternion against the one before, velocities by SymPy's v2pt_theory."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    frame, end, bodies, q, u, equations = N, O, [], [], [], []
    for name in "AB":
        e, w = me.dynamicsymbols(f"{name.lower()}0:4"), me.dynamicsymbols(f"w{name.lower()}1:4")
        turned = frame.orientnew(name, "Quaternion", e)
        turned.set_ang_vel(frame, sum((a * axis for a, axis in zip(w, turned, strict=True)), me.Vector(0)))
        centre, far = (end.locatenew(f"{name}{k}", -k * turned.z) for k in (1, 2))
        for point in (centre, far):
            point.v2pt_theory(end, N, turned)
        bodies.append(me.RigidBody(name, centre, turned, 1.0, (me.inertia(turned, 1, 1, 0.5), centre)))
        q, u, equations = [*q, *e], [*u, *w], equations + me.kinematic_equations(w, e, "Quaternion")
        frame, end = turned, far
    loads = [(body.masscenter, -9.81 * N.z) for body in bodies]
    model = Model("Chain", me.KanesMethod(N, q, u, kd_eqs=equations, bodies=bodies, forcelist=loads))
    for symbol, value in zip(q, (0.8, 0.6, 0.0, 0.0, 0.6, 0.0, 0.8, 0.0), strict=True):
        model.coordinate(symbol, value, "1")
    for symbol in u:
        model.speed(symbol, 0.1, "rad/s")
    return model
