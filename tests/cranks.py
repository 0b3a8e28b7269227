"""A platform that hangs on equal parallel cranks, with one constraint more than it needs."""

from __future__ import annotations

import sympy as sm
from mechanisms import model_of
from sympy.physics import mechanics as me

from mb2fmu import Model, Parts

M, m, l, third, g = sm.symbols("M m l l3 g")
ARMS = (-1, 0, 1)


def platform(*, cranks: int = 3) -> Model:
    """Two rows for each crank, the third one's partly redundant.

    The third crank has a length of its own, a parameter ``l3`` of the same value.
    """
    q, u = me.dynamicsymbols(f"q1:{cranks + 1}"), me.dynamicsymbols(f"u1:{cranks + 1}")
    x, y, a, vx, vy, w = me.dynamicsymbols("x y a vx vy w")
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    B.orient_axis(N, N.z, a)
    centre = O.locatenew("centre", x * N.x + y * N.y)
    bodies = [me.RigidBody("platform", centre, B, M, (me.inertia(B, 1, 1, M), centre))]
    loads, rows = [(centre, -M * g * N.y)], []
    for i in range(cranks):
        A = me.ReferenceFrame(f"A{i}")
        A.orient_axis(N, N.z, q[i])
        pivot = O.locatenew(f"pivot{i}", ARMS[i] * N.x)
        middle = pivot.locatenew(f"middle{i}", -l / 2 * A.y)
        rod = me.RigidBody(f"rod{i}", middle, A, m, (me.inertia(A, 0, 0, m * l**2 / 12), middle))
        bodies.append(rod)
        loads.append((middle, -m * g * N.y))
        gap = centre.locatenew(f"ear{i}", ARMS[i] * B.x).pos_from(O) - pivot.locatenew(
            f"end{i}", -(third if i == 2 else l) * A.y
        ).pos_from(O)
        rows += [gap.dot(N.x), gap.dot(N.y)]
    coordinates, speeds = [*q, x, y, a], [*u, vx, vy, w]
    equations = [c.diff() - s for c, s in zip(coordinates, speeds, strict=True)]
    parts = Parts(
        frame=N, origin=O, q=coordinates, u=speeds, kinematic_equations=equations, bodies=bodies, loads=loads,
        holonomic_constraints=rows,
    )  # fmt: skip
    model = model_of("Platform", parts, [], [], M=4.0, m=1.0, l=0.5, g=9.81, **({"l3": 0.5} if cranks == 3 else {}))
    for symbol in coordinates:
        model.coordinate(symbol, -0.5 if symbol is y else 0.0, kind="guess")
    for symbol in speeds:
        model.speed(symbol, 0.0, kind="guess")
    return model


def carried() -> Model:
    """A bar that three massless cranks carry, two rows for each but the first: one follows from the others."""
    q, u = me.dynamicsymbols("q1:5"), me.dynamicsymbols("u1:5")
    lengths, b = sm.symbols("l1:4"), sm.Symbol("b")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    *arms, D = (me.ReferenceFrame(name) for name in "ABCD")
    for frame, angle, rate in zip((*arms, D), q, u, strict=True):
        frame.orient_axis(N, N.z, angle)
        frame.set_ang_vel(N, rate * N.z)
    first = O.locatenew("first", lengths[0] * arms[0].x)
    first.v2pt_theory(O, N, arms[0])
    centre = first.locatenew("centre", b * D.x)
    centre.v2pt_theory(first, N, D)
    rows: list[sm.Expr] = []
    for i in (1, 2):
        gap = i * b * N.x + lengths[i] * arms[i].x - first.locatenew(f"ear{i}", i * b * D.x).pos_from(O)
        rows += [gap.dot(N.x), gap.dot(N.y)]
    bar = me.RigidBody("bar", centre, D, m, (me.inertia(D, 0, 0, m * b**2 / 3), centre))
    parts = Parts(
        frame=N, origin=O, q=q, u=u, kinematic_equations=[c.diff() - s for c, s in zip(q, u, strict=True)],
        bodies=[bar], loads=[(centre, -m * g * N.y)], holonomic_constraints=rows, q_dependent=q[1:], u_dependent=u[1:],
    )  # fmt: skip
    model = model_of("Carried", parts, [], [], m=1.0, g=9.81)
    for length in lengths:
        model.parameter(length, 0.5, "m")
    model.parameter(b, 0.8, "m")
    for symbol, start, kind in zip(q, (1.0, 1.0, 1.0, 0.0), ("fixed", "guess", "guess", "guess"), strict=True):
        model.coordinate(symbol, start, "rad", kind=kind)
    for symbol, start, kind in zip(u, (2.0, 0.0, 0.0, 0.0), ("fixed", "guess", "guess", "guess"), strict=True):
        model.speed(symbol, start, "rad/s", kind=kind)
    model.experiment(stop=0.5, step=0.01)
    return model
