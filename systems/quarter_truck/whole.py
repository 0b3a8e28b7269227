"""The quarter truck as one model: the truth."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model


def whole() -> Model:
    """Body and axle over a bump."""
    z, v = me.dynamicsymbols("z_body z_axle"), me.dynamicsymbols("v_body v_axle")
    masses = sm.symbols("m_body m_axle")
    g, k, c, k_tyre, bump, start, width = sm.symbols("g k c k_tyre bump start width")
    t = me.dynamicsymbols._t
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = []
    for i, name in enumerate(("body", "axle")):
        P = me.Point(name)
        P.set_pos(O, z[i] * N.z)
        P.set_vel(N, v[i] * N.z)
        points.append(P)
    road = bump * sm.exp(-(((t - start) / width) ** 2))
    suspension = masses[0] * g + k * (z[1] - z[0]) + c * (v[1] - v[0])
    tyre = (masses[0] + masses[1]) * g + k_tyre * (road - z[1])
    loads = [
        (points[0], (suspension - masses[0] * g) * N.z),
        (points[1], (tyre - suspension - masses[1] * g) * N.z),
    ]
    bodies = [me.Particle(name, P, m) for name, P, m in zip(("body", "axle"), points, masses, strict=True)]
    kane = me.KanesMethod(N, z, v, [a.diff() - b for a, b in zip(z, v, strict=True)], bodies=bodies, forcelist=loads)
    model = Model("QuarterTruckWhole", kane)
    for symbol, value, unit in (
        (masses[0], 4000.0, "kg"), (masses[1], 500.0, "kg"), (g, 9.81, "m/s2"), (k, 4.0e5, "N/m"), (c, 2.0e4, "N.s/m"),
        (k_tyre, 2.0e6, "N/m"), (bump, 0.05, "m"), (start, 1.0, "s"), (width, 0.1, "s"),
    ):  # fmt: skip
        model.parameter(symbol, value, unit)
    for i in (0, 1):
        model.coordinate(z[i], 0.0, "m")
        model.speed(v[i], 0.0, "m/s")
    model.experiment(stop=3.0, step=0.01, tolerance=1e-10)
    return model
