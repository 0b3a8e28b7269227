"""Both masses as one model: the truth of the coupled system. Exact: x1, x2 = ½ cos 2πt ± ½ cos 6πt."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model


def whole() -> Model:
    """Two unit masses between two walls, three springs."""
    x, v = me.dynamicsymbols("x1 x2"), me.dynamicsymbols("v1 v2")
    m, k, c = sm.symbols("m k c")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies, loads = [], []
    for i in (0, 1):
        P = me.Point(f"P{i + 1}")
        P.set_pos(O, x[i] * N.x)
        P.set_vel(N, v[i] * N.x)
        bodies.append(me.Particle(f"body{i + 1}", P, m))
        loads.append((P, (c * (x[1 - i] - x[i]) - k * x[i]) * N.x))
    kane = me.KanesMethod(N, x, v, [a.diff() - b for a, b in zip(x, v, strict=True)], bodies=bodies, forcelist=loads)
    model = Model("TwoMassesWhole", kane, description="Two masses between two walls, three springs")
    model.parameter(m, 1.0, "kg", min=1e-9)
    model.parameter(k, 4 * sm.pi**2, "N/m")
    model.parameter(c, 16 * sm.pi**2, "N/m")
    for i, start in ((0, 1.0), (1, 0.0)):
        model.coordinate(x[i], start, "m")
        model.speed(v[i], 0.0, "m/s")
    model.experiment(stop=1.0, step=0.01, tolerance=1e-11)
    return model
