"""A mass on a spring to the wall and one to a given point: the side that takes motion and gives force."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model


def right() -> Model:
    """A unit mass whose own frequency is 1 Hz, coupled four times as stiffly to the given point."""
    x, v, s = me.dynamicsymbols("x v s")
    m, k, c = sm.symbols("m k c")
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, x * N.x)
    P.set_vel(N, v * N.x)
    body, loads = me.Particle("body", P, m), [(P, (c * (s - x) - k * x) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[body], forcelist=loads)
    model = Model("RightMass", kane, description="A mass on a spring to the wall and one to a given point")
    model.parameter(m, 1.0, "kg", min=1e-9)
    model.parameter(k, 4 * sm.pi**2, "N/m")
    model.parameter(c, 16 * sm.pi**2, "N/m", description="of the spring between the masses")
    model.input(s, 0.0, "m", description="where the other end of the spring is")
    model.coordinate(x, 0.0, "m", description="from the place where the springs are at rest")
    model.speed(v, 0.0, "m/s")
    model.output("force", c * (x - s), "N", description="of the spring on what holds its other end, along x")
    model.experiment(stop=1.0, step=0.01, tolerance=1e-11)
    return model
