"""A mass on a spring to the wall, pushed by a force: the side that takes force and gives motion."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model


def left() -> Model:
    """A unit mass whose own frequency is 1 Hz."""
    x, v, force = me.dynamicsymbols("x v F")
    m, k = sm.symbols("m k")
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, x * N.x)
    P.set_vel(N, v * N.x)
    body, loads = me.Particle("body", P, m), [(P, (force - k * x) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[body], forcelist=loads)
    model = Model("LeftMass", kane, description="A mass on a spring to the wall, pushed by a force")
    model.parameter(m, 1.0, "kg", min=1e-9)
    model.parameter(k, 4 * sm.pi**2, "N/m")
    model.input(force, 0.0, "N", description="along x, on the mass")
    model.coordinate(x, 1.0, "m", description="from the place where the spring is at rest")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=1.0, step=0.01, tolerance=1e-11)
    return model
