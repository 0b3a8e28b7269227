"""The body of a quarter truck: a mass that takes the suspension's force, and gives its motion."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model


def body() -> Model:
    """A mass under gravity, pushed by the suspension."""
    z, v, force = me.dynamicsymbols("z v f")
    m, g = sm.symbols("m g")
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, z * N.z)
    P.set_vel(N, v * N.z)
    loads = [(P, (force - m * g) * N.z)]
    kane = me.KanesMethod(N, [z], [v], [z.diff() - v], bodies=[me.Particle("body", P, m)], forcelist=loads)
    model = Model("TruckBody", kane, description="A quarter of a truck's body")
    model.parameter(m, 4000.0, "kg", min=1e-6)
    model.parameter(g, 9.81, "m/s2")
    model.input(force, 0.0, "N", description="of the suspension on the body, upward")
    model.coordinate(z, 0.0, "m", description="height over the place at rest")
    model.speed(v, 0.0, "m/s", description="upward")
    model.terminal("mount", {"f": force, "s": z, "v": v}, inflow=["f"], description="where the suspension pushes")
    model.experiment(stop=3.0, step=0.01, tolerance=1e-10)
    return model
