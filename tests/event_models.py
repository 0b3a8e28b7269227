"""Small models with one event at 0.5 s, and their references."""

from __future__ import annotations

from collections.abc import Callable

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Clutch, CoulombFriction, Impact, Model, OneWayClutch, pre, sticking_sign
from mb2fmu.mechanics import formulations
from mb2fmu.mechanics.equations import event_definitions
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model
from mb2fmu.validation.reference.reference_run import ReferenceRun, make_reference


def forget_events() -> None:
    """What is formed once of equal contacts is formed anew: planted conditions are nobody else's."""
    for each in vars(event_definitions).values():
        if hasattr(each, "cache_clear"):
            each.cache_clear()


def particle(start: float, speed: float, force: Callable[..., sm.Expr]) -> tuple[Model, sm.Expr, sm.Expr]:
    x, v = me.dynamicsymbols("x v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(
        N, [x], [v], [x.diff() - v], bodies=[me.Particle("mass", P, 1)], forcelist=[(P, force(x, v) * N.x)]
    )
    model = Model("Particle", kane)
    model.coordinate(x, start, "m")
    model.speed(v, speed, "m/s")
    model.experiment(stop=0.8, step=0.05, tolerance=1e-8)
    return model, x, v


def belt(limit: float = 2.0) -> Model:
    """Sticks to a belt of 0.5 m/s until the spring's force is ``limit`` / 8: at 0.5 s, if that is 0.25."""

    def force(x: sm.Expr, v: sm.Expr) -> sm.Expr:
        return -x - sticking_sign(v - sm.Rational(1, 2), limit) / 8

    model, x, v = particle(0.0, 0.5, force)
    model.output("friction", force(x, v) + x, "N")
    return model


def ball(restitution: float = 0.7, start: float = 1.22625) -> Model:
    """Falls from a height from which it takes 0.5 s."""
    model, x, v = particle(start, 0.0, lambda *_: -sm.Float(9.81))
    model.when(x <= 0, {v: -restitution * pre(v)}, name="impact")
    return model


def reference_of(model: Model) -> ReferenceRun:
    definition = check_model(model)
    return make_reference(definition, formulations.formulate(read_mechanism(definition), "tmt"))


def dropped() -> Model:
    """Bounces three times upon a contact, and rests."""
    model, x, _ = particle(0.3, 0.0, lambda *_: -sm.Float(9.81))
    model.add(Impact("ground", x, restitution=0.5, rest_below=0.5))
    model.experiment(stop=1.2, step=0.05, tolerance=1e-8)
    return model


def two_blocks(first: float, second: float) -> Model:
    """Slide with these speeds and stop by dry friction after as many seconds."""
    (x, y), (v, w) = me.dynamicsymbols("x y"), me.dynamicsymbols("v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P, Q = O.locatenew("P", x * N.x), O.locatenew("Q", y * N.x)
    P.set_vel(N, v * N.x)
    Q.set_vel(N, w * N.x)
    bodies = [me.Particle("p", P, 1), me.Particle("q", Q, 1)]
    model = Model("Blocks", me.KanesMethod(N, [x, y], [v, w], [x.diff() - v, y.diff() - w], bodies=bodies))
    model.coordinate(x, 0.0, "m")
    model.coordinate(y, 0.0, "m")
    model.speed(v, first, "m/s")
    model.speed(w, second, "m/s")
    for name, point in (("a", P), ("b", Q)):
        model.add(CoulombFriction(name, (O, point, N.x), kinetic=1.0, static=1.0))
    model.experiment(stop=2.0)
    return model


def trampoline(start: float = 1.0) -> Model:
    """Falls upon a spring that does not pull, at 0.45 s: its force has a kink and no jump."""
    model, x, _ = particle(start, 0.0, lambda x, _: -sm.Float(9.81) - sm.Piecewise((2000 * x, x < 0), (0, True)))
    model.output("force", -sm.Piecewise((2000 * x, x < 0), (0, True)), "N")
    model.experiment(stop=2.4, step=0.01, tolerance=1e-3)
    return model


def behind_a_clutch(pressed: sm.Expr | float = 0.0) -> Model:
    """A motor, a clutch, a freewheel that drives a flywheel, and dry friction in the flywheel's bearing."""
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    wheels, bodies = [], []
    for number, (angle, rate, inertia) in enumerate(zip(q, u, (0.1, 0.05, 0.2), strict=True)):
        wheels.append(N.orientnew(f"wheel{number}", "Axis", (angle, N.z)))
        wheels[-1].set_ang_vel(N, rate * N.z)
        bodies.append(me.RigidBody(f"rotor{number}", O, wheels[-1], 1, (me.inertia(wheels[-1], 0, 0, inertia), O)))
    torque = 6 * sm.sin(5 * me.dynamicsymbols._t)
    rates = [angle.diff() - rate for angle, rate in zip(q, u, strict=True)]
    kane = me.KanesMethod(N, list(q), list(u), rates, bodies=bodies, forcelist=[(wheels[0], torque * N.z)])
    model = Model("BehindAClutch", kane)
    for angle, rate in zip(q, u, strict=True):
        model.coordinate(angle, 0.0, "rad")
        model.speed(rate, 0.0, "rad/s")
    pressing = me.dynamicsymbols("pressing")
    model.input(pressing, 0.0)
    model.add(Clutch("clutch", (wheels[0], wheels[1], N.z), capacity=3.0, engagement=pressing))
    model.add(OneWayClutch("free", (wheels[1], wheels[2], N.z), capacity=5.0))
    model.add(CoulombFriction("bearing", (N, wheels[2], N.z), kinetic=0.2))
    model.experiment(stop=2.0, step=0.05, tolerance=1e-8, signals={pressing: pressed})
    return model
