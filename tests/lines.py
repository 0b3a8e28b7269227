"""Inertias on one axis and masses on one line, with elements between them: published cases of friction and stops."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import CoulombFriction, HardStop, Model, OneWayClutch

t = me.dynamicsymbols._t
Places = tuple[me.ReferenceFrame, me.Point, list[me.Point]]


def masses(name: str, starts: list[tuple[float, float]], force: Callable[[list[sm.Expr]], list[sm.Expr]]) -> tuple:
    """Particles of 1 kg along N.x: (model, N, O, points); ``force`` of positions gives the force on each."""
    x = me.dynamicsymbols(f"x1:{len(starts) + 1}")
    v = me.dynamicsymbols(f"v1:{len(starts) + 1}")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O.locatenew(f"P{i}", q * N.x) for i, q in enumerate(x, 1)]
    for point, speed in zip(points, v, strict=True):
        point.set_vel(N, speed * N.x)
    bodies = [me.Particle(point.name, point, 1) for point in points]
    loads = [(point, f * N.x) for point, f in zip(points, force(list(x)), strict=True)]
    equations = [q.diff() - u for q, u in zip(x, v, strict=True)]
    model = Model(name, me.KanesMethod(N, list(x), list(v), equations, bodies=bodies, forcelist=loads))
    for q, u, (start, speed) in zip(x, v, starts, strict=True):
        model.coordinate(q, start, "m")
        model.speed(u, speed, "m/s")
    return model, N, O, points


def inertias(name: str, J: float, starts: list[tuple[float, float]], first: sm.Expr) -> tuple:
    """Bodies of inertia ``J`` that turn about N.z: (model, N, frames); the first is driven by a torque."""
    q = me.dynamicsymbols(f"phi1:{len(starts) + 1}")
    w = me.dynamicsymbols(f"w1:{len(starts) + 1}")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    frames = [N.orientnew(f"A{i}", "Axis", (angle, N.z)) for i, angle in enumerate(q, 1)]
    for frame, speed in zip(frames, w, strict=True):
        frame.set_ang_vel(N, speed * N.z)
    bodies = [me.RigidBody(f.name, O, f, 1, (me.inertia(f, 0, 0, J), O)) for f in frames]
    equations = [angle.diff() - u for angle, u in zip(q, w, strict=True)]
    loads = [(frames[0], first * N.z)]
    model = Model(name, me.KanesMethod(N, list(q), list(w), equations, bodies=bodies, forcelist=loads))
    for angle, u, (start, speed) in zip(q, w, starts, strict=True):
        model.coordinate(angle, start, "rad")
        model.speed(u, speed, "rad/s")
    return model, N, frames


def elasto_gap() -> Model:
    """The mass between two stops of Modelica.Mechanics.Translational.Examples.ElastoGap."""
    model, N, O, (P,) = masses("Gap", [(2.0, 0.0)], lambda _: [sm.S.Zero])
    model.add(HardStop("stops", (O, P, N.x), stiffness=10, damping=1.5, lower=-0.5, upper=0.5))
    model.experiment(stop=5.0, step=0.1, tolerance=1e-9)
    return model


def driven_friction() -> Model:
    """``stop1`` of Modelica.Mechanics.Translational.Examples.Friction: 25 sin(π t/2) N against Stribeck's curve."""
    model, N, O, (P,) = masses("Driven", [(0.0, 0.0)], lambda _: [25 * sm.sin(sm.pi * t / 2)])
    model.add(CoulombFriction("rail", (O, P, N.x), curve=lambda v: 5 + v + 10 * sm.exp(-2 * v), static=15 * 1.001))
    model.experiment(stop=5.0, step=0.1, tolerance=1e-9)
    return model


def stribeck_belt() -> Model:
    """A mass on a spring on a belt of 0.2 m/s: friction 1/(1 + 3 |v|)."""
    model, N, O, (P,) = masses("Stribeck", [(1.0, 0.2)], lambda x: [-x[0]])
    model.add(CoulombFriction("belt", (O, P, N.x), curve=lambda v: 1 / (1 + 3 * v), drive=0.2))
    model.experiment(stop=26.0, step=0.5, tolerance=1e-9)
    return model


def sliding_block() -> Model:
    """A block thrown at 2 m/s on a plane, μ = 0.3, g = 9.81 m/s²; it stays where it stops."""
    model, N, O, (P,) = masses("Sliding", [(0.0, 2.0)], lambda _: [sm.S.Zero])
    model.add(CoulombFriction("floor", (O, P, N.x), kinetic=0.3, normal=9.81))
    model.experiment(stop=2.0, step=0.2, tolerance=1e-9)
    return model


def freewheel() -> Model:
    """An inertia that drives another through a freewheel, 4 sin(t) N.m: together up to π/2, then the second runs on."""
    model, N, A = inertias("Freewheel", 2.0, [(0.0, 0.0), (0.0, 0.0)], 4 * sm.sin(t))
    model.add(OneWayClutch("wheel", (A[0], A[1], N.z), capacity=100.0))
    model.experiment(stop=6.0, step=0.2, tolerance=1e-9)
    return model


def busy_line() -> Model:
    """The masses of ElastoGap, of Friction, on Stribeck's belt and of the sliding block, in one model."""
    starts = [(2.0, 0.0), (0.0, 0.0), (1.0, 0.2), (0.0, 2.0)]
    model, N, O, (gap, driven, belt, block) = masses(
        "BusyLine", starts, lambda x: [sm.S.Zero, 25 * sm.sin(sm.pi * t / 2), -x[2], sm.S.Zero]
    )
    model.add(HardStop("stops", (O, gap, N.x), stiffness=10, damping=1.5, lower=-0.5, upper=0.5))
    model.add(CoulombFriction("rail", (O, driven, N.x), curve=lambda v: 5 + v + 10 * sm.exp(-2 * v), static=15 * 1.001))
    model.add(CoulombFriction("belt", (O, belt, N.x), curve=lambda v: 1 / (1 + 3 * v), drive=0.2))
    model.add(CoulombFriction("floor", (O, block, N.x), kinetic=0.3, normal=9.81))
    model.experiment(stop=26.0, step=0.5, tolerance=1e-9)
    return model
