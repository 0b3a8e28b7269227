"""Three links of different masses that hang from each other: a model that tests cut into three FMUs."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model

LENGTH, GRAVITY = 0.5, 9.81


def whole(m1: float = 1.0, m2: float = 0.2, m3: float = 3.0) -> Model:
    """Uniform rods of 0.5 m, by absolute angles from the downward line."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    angles, rates, masses = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4"), sm.symbols("m1:4")
    bodies, loads, point = [], [], O
    for i, (q, u, m) in enumerate(zip(angles, rates, masses, strict=True), 1):
        frame = N.orientnew(f"A{i}", "Axis", (q, N.z))
        frame.set_ang_vel(N, u * N.z)
        centre = point.locatenew(f"C{i}", -LENGTH / 2 * frame.y)
        centre.v2pt_theory(point, N, frame)
        inertia = me.inertia(frame, 0, 0, m * LENGTH**2 / 12)
        bodies.append(me.RigidBody(f"link{i}", centre, frame, m, (inertia, centre)))
        loads.append((centre, -m * GRAVITY * N.y))
        end = point.locatenew(f"P{i}", -LENGTH * frame.y)
        end.v2pt_theory(point, N, frame)
        point = end
    differences = [q.diff() - u for q, u in zip(angles, rates, strict=True)]
    model = Model("UnequalLinks", me.KanesMethod(N, angles, rates, differences, bodies=bodies, forcelist=loads))
    for symbol, value in zip(masses, (m1, m2, m3), strict=True):
        model.parameter(symbol, value, "kg", min=1e-6)
    for q, u, start in zip(angles, rates, (0.4, 0.3, 0.2), strict=True):
        model.coordinate(q, start, "rad")
        model.speed(u, 0.0, "rad/s")
    model.experiment(stop=0.3, step=0.01, tolerance=1e-11)
    return model
