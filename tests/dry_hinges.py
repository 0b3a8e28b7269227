"""A double pendulum with two dry hinges that start at rest."""

from __future__ import annotations

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import CoulombFriction, Model

KINETIC, STATIC = (0.058, 0.02), (0.07, 0.02)
M1, M2, L1, L2, G = 0.2, 0.2, 0.4, 0.3, 9.81


def arm(a: float = 0.1, b: float = 0.1) -> Model:
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    A, B = N.orientnew("A", "Axis", (q1, N.z)), N.orientnew("B", "Axis", (q2, N.z))
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(N, u2 * N.z)
    O.set_vel(N, 0)
    P = O.locatenew("P", -L1 * A.y)
    P.v2pt_theory(O, N, A)
    Q = P.locatenew("Q", -L2 * B.y)
    Q.v2pt_theory(P, N, B)
    particles = [me.Particle("p", P, sm.Float(M1)), me.Particle("q", Q, sm.Float(M2))]
    loads = [(P, -M1 * G * N.y), (Q, -M2 * G * N.y)]
    model = Model(
        "Arm",
        me.KanesMethod(N, [q1, q2], [u1, u2], [q1.diff() - u1, q2.diff() - u2], bodies=particles, forcelist=loads),
    )
    model.coordinate(q1, a, "rad")
    model.coordinate(q2, b, "rad")
    model.speed(u1, 0.0, "rad/s")
    model.speed(u2, 0.0, "rad/s")
    for name, on, kinetic, static in zip(("h1", "h2"), ((N, A, N.z), (A, B, N.z)), KINETIC, STATIC, strict=True):
        model.add(CoulombFriction(name, on, kinetic=kinetic, static=static))
    model.experiment(stop=0.05, step=0.01, tolerance=1e-8)
    return model
