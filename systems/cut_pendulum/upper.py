"""The upper two of four links: take the force at their end, give its motion."""

import sympy as sm
import sympy.physics.mechanics as me
from links import Links

from mb2fmu import Model


def upper() -> Model:
    """Two links from the ceiling, a force at their end."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    links = Links(range(2), N, O, O)
    fx, fy = me.dynamicsymbols("fx fy")
    model = Model("UpperLinks", links.kane([(links.end, fx * N.x + fy * N.y)]))
    links.declare(model)
    model.input(fx, 0.0, "N", description="on the end, along x")
    model.input(fy, 0.0, "N", description="on the end, along y")
    place, velocity = links.end.pos_from(O), links.end.vel(N)
    t = me.dynamicsymbols._t
    for name, axis in (("x", N.x), ("y", N.y)):
        model.output(name, place.dot(axis), "m")
        model.output(f"v{name}", velocity.dot(axis), "m/s")
        model.output(f"a{name}", sm.diff(velocity.dot(axis), t), "m/s2")
    return model
