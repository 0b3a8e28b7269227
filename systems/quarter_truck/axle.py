"""Axle, tyre and suspension of a quarter truck: take the body's motion, give the suspension's force."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model


def axle() -> Model:
    """A mass on a tyre, with a spring and damper up to the body; at rest in its weight and the body's."""
    z, v, s, w = me.dynamicsymbols("z v s w")
    m, g, k, c, k_tyre, load = sm.symbols("m g k c k_tyre load")
    bump, start, width = sm.symbols("bump start width")
    t = me.dynamicsymbols._t
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, z * N.z)
    P.set_vel(N, v * N.z)
    # A smooth bump of the road, and springs that carry the weights in the place at rest.
    road = bump * sm.exp(-(((t - start) / width) ** 2))
    suspension = load + k * (z - s) + c * (v - w)
    tyre = load + m * g + k_tyre * (road - z)
    loads = [(P, (tyre - suspension - m * g) * N.z)]
    kane = me.KanesMethod(N, [z], [v], [z.diff() - v], bodies=[me.Particle("axle", P, m)], forcelist=loads)
    model = Model("TruckAxle", kane, description="Axle, tyre and suspension of a quarter truck")
    for symbol, value, unit in (
        (m, 500.0, "kg"), (g, 9.81, "m/s2"), (k, 4.0e5, "N/m"), (c, 2.0e4, "N.s/m"), (k_tyre, 2.0e6, "N/m"),
        (load, 4000.0 * 9.81, "N"), (bump, 0.05, "m"), (start, 1.0, "s"), (width, 0.1, "s"),
    ):  # fmt: skip
        model.parameter(symbol, value, unit)
    model.input(s, 0.0, "m", description="height of the body")
    model.input(w, 0.0, "m/s", description="its rate")
    model.coordinate(z, 0.0, "m", description="height over the place at rest")
    model.speed(v, 0.0, "m/s", description="upward")
    model.output("force", suspension, "N", description="of the suspension on the body, upward")
    model.terminal("mount", {"f": "force", "s": s, "v": w}, outflow=["f"], description="where the suspension pushes")
    model.experiment(stop=3.0, step=0.01, tolerance=1e-10)
    return model
