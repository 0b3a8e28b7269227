"""The lower two of four links: take the motion of the point from which they hang, give the force on it."""

import sympy as sm
import sympy.physics.mechanics as me
from links import Links, g, m

from mb2fmu import Model


def lower() -> Model:
    """Two links from a point that moves as it is prescribed."""
    N, O, B = me.ReferenceFrame("N"), me.Point("O"), me.Point("B")
    x, y = me.dynamicsymbols("x y")
    O.set_vel(N, 0)
    B.set_pos(O, x * N.x + y * N.y)
    B.set_vel(N, x.diff() * N.x + y.diff() * N.y)
    links = Links(range(2, 4), N, B, O)
    model = Model("LowerLinks", links.kane([]))
    links.declare(model)
    t = me.dynamicsymbols._t
    for name, r, start in (("x", x, 0.0), ("y", y, -1.0)):
        model.input(r, start, "m", name=name)
        model.input(r.diff(t), 0.0, "m/s", name=f"v{name}")
        model.input(r.diff(t, 2), 0.0, "m/s2", name=f"a{name}")
    # What the links exert on the point: their weight less mass times acceleration.
    accelerations = [body.masscenter.vel(N) for body in links.bodies]
    for name, axis, weight in (("fx", N.x, 0), ("fy", N.y, m * g)):
        force = sum(-m * sm.diff(v.dot(axis), t) - weight for v in accelerations)
        model.output(name, force, "N", description="of the links on the point")
    return model
