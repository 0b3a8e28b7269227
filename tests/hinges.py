"""Four hinges in space, five closing conditions: Bennett's linkage (rank two of five) and a planar one (two of five).

J. E. Angeles, Fundamentals of Robotic Mechanical Systems, 4th ed. 2014, sec. 4.2 (Denavit and Hartenberg's frames);
G. T. Bennett, Engineering 76 (1903) 777-778: sin(alpha) / a = sin(beta) / b.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sympy as sm
import sympy.physics.mechanics as me
from scipy.optimize import least_squares

from mb2fmu import Model

BENNETT = ([1.0, np.sin(1.0) / np.sin(0.6)] * 2, [0.6, 1.0] * 2)
PLANAR = ([0.8, 2.0, 1.0, 2.0], [0.0] * 4)


def angles(lengths: Sequence[float], twists: Sequence[float], first: float) -> np.ndarray:
    """The other angles of a loop of hinges, rad, shape (3,)."""

    def link(angle, length, twist):
        c, s, ct, st = np.cos(angle), np.sin(angle), np.cos(twist), np.sin(twist)
        return np.array(
            [[c, -s * ct, s * st, length * c], [s, c * ct, -c * st, length * s], [0, st, ct, 0], [0, 0, 0, 1]]
        )

    def gap(rest):
        chain = np.eye(4)
        for each in zip((first, *rest), lengths, twists, strict=True):
            chain = chain @ link(*each)
        return (chain - np.eye(4))[:3].ravel()

    for guess in np.random.default_rng(0).uniform(-3, 3, (50, 3)):
        found = least_squares(gap, guess, xtol=1e-15, ftol=1e-15, gtol=1e-15)
        if found.cost < 1e-20:
            return found.x
    raise AssertionError("the loop does not close")


def linkage(lengths: Sequence[float], twists: Sequence[float]) -> Model:
    """Three links on three hinges, the fourth closes the loop with five conditions.

    Args:
        lengths: Of the links between the hinges' axes, m; the last one is the ground.
        twists: Angles between the axes at the links' ends, rad.
    """
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    a, twist, m, g = sm.symbols("a1:5"), sm.symbols("twist1:5"), *sm.symbols("m g")
    ground = me.RigidBody("ground")
    N, system = ground.frame, me.System.from_newtonian(ground)
    body, hinge = ground, N
    for i in range(3):
        frame = me.ReferenceFrame(f"L{i}")
        link = me.RigidBody(f"link{i}", frame=frame, mass=m)
        link.inertia = (me.inertia(frame, m * a[i] ** 2 / 50, m * a[i] ** 2 / 12, m * a[i] ** 2 / 12), link.masscenter)
        joint = me.PinJoint(
            f"joint{i}", body, link, q[i], u[i], parent_point=a[i - 1] / 2 * body.x if i else None,
            child_point=-a[i] / 2 * link.x, parent_interframe=hinge, child_interframe=frame, joint_axis=hinge.z,
        )  # fmt: skip
        system.add_joints(joint)
        system.add_loads(me.Force(link, -m * g * N.y))
        body, hinge = link, frame.orientnew(f"H{i}", "Axis", [twist[i], frame.x])
    back = N.orientnew("back", "Axis", [-twist[3], N.x])
    end = body.masscenter.locatenew("end", a[2] / 2 * body.x)
    gap = end.pos_from(system.fixed_point) + a[3] * N.x
    rows = [*(gap.dot(e) for e in N), hinge.z.dot(back.x), hinge.z.dot(back.y)]
    system.add_holonomic_constraints(*rows)
    model = Model("Hinges", system)
    for symbols, values, unit in ((a, lengths, "m"), (twist, twists, "rad"), ((m, g), (1.0, 9.81), "1")):
        for symbol, value in zip(symbols, values, strict=True):
            model.parameter(symbol, float(value), {m: "kg", g: "m/s2"}.get(symbol, unit))
    start = [1.0, *angles(lengths, twists, 1.0)[:2]]
    for i in range(3):
        model.coordinate(q[i], float(start[i]), "rad", kind="guess" if i else "fixed")
        model.speed(u[i], 0.0 if i else 0.5, "rad/s", kind="guess" if i else "fixed")
    pins = [[(end, e)] for e in N]
    tilts = [[(body.frame, hinge.z.cross(e))] for e in (back.x, back.y)]
    for name, row, acts in zip(("x", "y", "z", "tilt_x", "tilt_y"), rows, pins + tilts, strict=True):
        model.constraint(row, f"last.{name}", acts=acts)
        model.output_multiplier(f"lambda.{name}", row)
    model.output_reaction("first", system.joints[0])
    model.output_total_energy()
    model.experiment(stop=2.0, step=0.05, tolerance=1e-8)
    return model
