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
