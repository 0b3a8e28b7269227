"""Ten mechanisms with events, written as somebody writes them who sees mb2fmu for the first time.

``scripts/bench_validation --further`` measures what their validation takes; a single one is run by
``mb2fmu run scripts/bench_mechanisms.py --set name=relay``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import CoulombFriction, Impact, Model, Parts, sticking_sign

T = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
GRAVITY = sm.Float(9.81)


def _ground() -> tuple[me.ReferenceFrame, me.Point]:
    """Return the inertial frame and a point that is fixed in it."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    return N, O


def _turn(N: me.ReferenceFrame, name: str, angle: sm.Expr, speed: sm.Expr) -> me.ReferenceFrame:
    """Return a frame that turns about ``N.z`` by an angle in rad, with a speed in rad/s."""
    frame = N.orientnew(name, "Axis", (angle, N.z))
    frame.set_ang_vel(N, speed * N.z)
    return frame


def _wheel(name: str, O: me.Point, frame: me.ReferenceFrame, inertia: float) -> me.RigidBody:
    """Return a wheel on the axis through ``O``; its moment of inertia in kg.m2."""
    return me.RigidBody(name, O, frame, sm.S.One, (me.inertia(frame, 0, 0, inertia), O))


def _make_model(
    name: str, N: me.ReferenceFrame, O: me.Point, speeds: dict[sm.Expr, sm.Expr], bodies: list[Any], loads: list[Any],
    **constraints: Any,
) -> Model:  # fmt: skip
    """Return a model whose speeds are the rates of its coordinates; ``speeds``: coordinate → speed."""
    rates = [q.diff(T) - u for q, u in speeds.items()]
    q, u = list(speeds), list(speeds.values())
    mechanics = Parts(
        frame=N, origin=O, q=q, u=u, kinematic_equations=rates, bodies=bodies, loads=loads, **constraints
    )  # fmt: skip
    return Model(name, mechanics)


def _line(name: str, mass: float, force: Callable[[sm.Expr, sm.Expr], sm.Expr]) -> tuple[Model, sm.Expr, sm.Expr]:
    """Return a particle on a line under a force of its position in m and speed in m/s."""
    x, v = me.dynamicsymbols("x v")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    model = _make_model(name, N, O, {x: v}, [me.Particle("p", P, sm.Float(mass))], [(P, force(x, v) * N.x)])
    return model, x, v


def _declare(
    model: Model, starts: dict[sm.Expr, float], speeds: dict[sm.Expr, float], lengths: tuple[sm.Expr, ...]
) -> None:
    """Declare coordinates and speeds with their start values; what is not among ``lengths`` is an angle."""
    for (q, q_0), (u, u_0) in zip(starts.items(), speeds.items(), strict=True):
        unit = "m" if q in lengths else "rad"
        model.coordinate(q, q_0, unit)
        model.speed(u, u_0, f"{unit}/s")


def _two_frictions() -> Model:
    """Two blocks on a rough floor with a spring between them, one of them driven."""
    x1, x2, v1, v2 = me.dynamicsymbols("x1 x2 v1 v2")
    N, O = _ground()
    P, Q = O.locatenew("P", x1 * N.x), O.locatenew("Q", x2 * N.x)
    P.set_vel(N, v1 * N.x)
    Q.set_vel(N, v2 * N.x)
    k = sm.Symbol("k")
    loads = [
        (P, (6 * sm.sin(3 * T) + k * (x2 - x1) - 2.0 * sm.sign(v1)) * N.x),
        (Q, (-k * (x2 - x1) - 1.5 * sm.sign(v2)) * N.x),
    ]
    bodies = [me.Particle("p", P, sm.S.One), me.Particle("r", Q, sm.Rational(1, 2))]
    model = _make_model("TwoFrictions", N, O, {x1: v1, x2: v2}, bodies, loads)
    model.parameter(k, 40.0, "N/m")
    _declare(model, {x1: 0.0, x2: 0.0}, {v1: 0.0, v2: 0.0}, (x1, x2))
    model.experiment(stop=5.0, step=0.01, tolerance=1e-8)
    return model


def _stop_and_spring() -> Model:
    """A slider on a spring that runs against an elastic stop."""
    k, c, gap = sm.symbols("k c gap")
    model, x, v = _line("StopAndSpring", 2.0, lambda x, v: -k * sm.Max(x - gap, 0) - 20 * x - c * v)
    model.parameter(k, 5e3, "N/m")
    model.parameter(c, 0.4, "N.s/m")
    model.parameter(gap, 0.1, "m")
    _declare(model, {x: -0.4}, {v: 0.0}, (x,))
    model.experiment(stop=10.0, step=0.01, tolerance=1e-8)
    return model


def _relay() -> Model:
    """A pendulum that a relay with hysteresis holds at the top."""
    q, u, on = me.dynamicsymbols("q u on")
    N, O = _ground()
    A = _turn(N, "A", q, u)
    P = O.locatenew("P", 0.6 * A.y)
    P.v2pt_theory(O, N, A)
    loads = [(P, -GRAVITY / 2 * N.y), (A, (4 * on - 0.05 * u) * N.z)]
    bodies = [me.Particle("p", P, sm.Rational(1, 2))]
    model = _make_model("Relay", N, O, {q: u}, bodies, loads)
    _declare(model, {q: 0.15}, {u: 0.0}, ())
    model.discrete(on, -1.0)
    model.when(q + 0.2 * u > 0.05, {on: -1.0})
    model.when(q + 0.2 * u < -0.05, {on: 1.0})
    model.experiment(stop=5.0, step=0.01, tolerance=1e-8)
    return model


def _pid() -> Model:
    """A cart on a spring with a PID controller that samples 1,000 times per second."""
    F, error_sum = me.dynamicsymbols("F I")
    model, x, v = _line("Pid", 1.0, lambda x, v: F - 0.5 * v - 3 * x)
    _declare(model, {x: 0.0}, {v: 0.0}, (x,))
    model.discrete(F, 0.0, "N")
    model.discrete(error_sum, 0.0, "m.s")
    error = 0.5 - x
    model.every(0.001, {F: 30 * error + 10 * error_sum - 6 * v, error_sum: error_sum + 0.001 * error})
    model.experiment(stop=10.0, step=0.01, tolerance=1e-8)
    return model


def _belt() -> Model:
    """A block between two springs on a moving belt."""
    k, V = sm.symbols("k V")
    model, x, v = _line("Belt", 1.0, lambda x, v: -k * x - 0.1 * v - 0.8 * sticking_sign(v - V, 1.5))
    model.parameter(k, 3.0, "N/m")
    model.parameter(V, 0.3, "m/s")
    _declare(model, {x: 0.0}, {v: 0.0}, (x,))
    model.experiment(stop=20.0, step=0.02, tolerance=1e-8)
    return model


def _three_contacts() -> Model:
    """A plate on three elastic feet that falls and tilts in the plane."""
    x, y, a, v_x, v_y, w = me.dynamicsymbols("x y a v_x v_y w")
    N, O = _ground()
    A = _turn(N, "A", a, w)
    C = O.locatenew("C", x * N.x + y * N.y)
    C.set_vel(N, v_x * N.x + v_y * N.y)
    plate = me.RigidBody("plate", C, A, sm.Integer(2), (me.inertia(A, 0, 0, sm.Rational(1, 20)), C))
    loads = [(C, -2 * GRAVITY * N.y)]
    for number, place in enumerate((-0.3, 0.0, 0.3)):
        foot = C.locatenew(f"foot{number}", place * A.x - 0.1 * A.y)
        foot.v2pt_theory(C, N, A)
        depth, rate = -foot.pos_from(O).dot(N.y), -foot.vel(N).dot(N.y)
        push = sm.Max(0, sm.Piecewise((4e3 * depth + 20 * rate, depth > 0), (0, True)))
        loads += [(foot, push * N.y), (foot, -2 * foot.vel(N).dot(N.x) * N.x)]
    model = _make_model("ThreeContacts", N, O, {x: v_x, y: v_y, a: w}, [plate], loads)
    _declare(model, {x: 0.0, y: 0.2, a: 0.2}, {v_x: 0.3, v_y: 0.0, w: 0.0}, (x, y))
    model.experiment(stop=2.0, step=0.005, tolerance=1e-8)
    return model


def _spatial_loop() -> Model:
    """A crank and a lever in space, coupled by a rod of fixed length, with dry friction at the crank."""
    a, b, c, u, v, w = me.dynamicsymbols("a b c u v w")
    N, O = _ground()
    A = _turn(N, "A", a, u)
    P = O.locatenew("P", 0.3 * A.x)
    P.v2pt_theory(O, N, A)
    E = O.locatenew("E", 0.8 * N.x + 0.2 * N.z)
    E.set_vel(N, 0)
    B = N.orientnew("B", "Body", (b, c, 0), "YXZ")
    B.set_ang_vel(N, v * N.y + w * B.x)
    Q = E.locatenew("Q", -0.4 * B.z)
    Q.v2pt_theory(E, N, B)
    rod = Q.pos_from(P)
    bodies = [
        me.RigidBody("A", P, A, sm.S.One, (me.inertia(A, 0.001, 0.01, 0.01), P)),
        me.RigidBody("B", Q, B, sm.S.One, (me.inertia(B, 0.01, 0.01, 0.001), Q)),
    ]
    loads = [(P, -GRAVITY * N.y), (Q, -GRAVITY * N.y), (A, -0.2 * sm.sign(u) * N.z)]
    length = rod.dot(rod) - 0.75**2
    model = _make_model(
        "SpatialLoop", N, O, {a: u, b: v, c: w}, bodies, loads,
        q_dependent=[c], u_dependent=[w], holonomic_constraints=[length],
    )  # fmt: skip
    _declare(model, {a: 0.4, b: 0.3}, {u: 0.0, v: 0.0}, ())
    model.coordinate(c, 0.2, "rad", kind="guess")
    model.speed(w, 0.0, "rad/s", kind="guess")
    model.experiment(stop=3.0, step=0.01, tolerance=1e-8)
    return model


def _pendulum_at_a_stop() -> Model:
    """A double pendulum whose first link hits a rigid stop."""
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    N, O = _ground()
    A, B = _turn(N, "A", q1, u1), _turn(N, "B", q2, u2)
    P = O.locatenew("P", -0.5 * A.y)
    P.v2pt_theory(O, N, A)
    Q = P.locatenew("Q", -0.4 * B.y)
    Q.v2pt_theory(P, N, B)
    bodies, loads = (
        [me.Particle("p", P, sm.S.One), me.Particle("r", Q, sm.S.One)],
        [(P, -GRAVITY * N.y), (Q, -GRAVITY * N.y)],
    )
    model = _make_model("PendulumAtAStop", N, O, {q1: u1, q2: u2}, bodies, loads)
    model.add(Impact("stop", q1 + 0.2, restitution=0.6, unit="rad"))
    _declare(model, {q1: 0.8, q2: 0.4}, {u1: 0.0, u2: 0.0}, ())
    model.experiment(stop=3.0, step=0.01, tolerance=1e-8)
    return model


def _play() -> Model:
    """A motor and a wheel with play in their coupling, which rattles."""
    a, b, u, v = me.dynamicsymbols("a b u v")
    N, O = _ground()
    A, B = _turn(N, "A", a, u), _turn(N, "B", b, v)
    d = a - b
    torque = sm.Piecewise((500 * (d - 0.05), d > 0.05), (500 * (d + 0.05), d < -0.05), (0, True))
    wheels = [_wheel("A", O, A, 0.2), _wheel("B", O, B, 0.5)]
    loads = [(A, (5 * sm.sin(4 * T) - torque - 0.1 * u) * N.z), (B, (torque - 0.3 * v) * N.z)]
    model = _make_model("Play", N, O, {a: u, b: v}, wheels, loads)
    _declare(model, {a: 0.0, b: 0.0}, {u: 0.0, v: 0.0}, ())
    model.experiment(stop=10.0, step=0.01, tolerance=1e-8)
    return model


def _driven_brake() -> Model:
    """A wheel that an input drives against a brake which sticks."""
    q, u, torque = me.dynamicsymbols("q u T")
    N, O = _ground()
    A = _turn(N, "A", q, u)
    model = _make_model("DrivenBrake", N, O, {q: u}, [_wheel("wheel", O, A, 0.3)], [(A, torque * N.z)])
    _declare(model, {q: 0.0}, {u: 0.0}, ())
    model.input(torque, unit="N.m")
    model.add(CoulombFriction("brake", (N, A, N.z), kinetic=0.8, static=1.2))
    model.experiment(stop=8.0, step=0.01, tolerance=1e-8, signals={torque: 2 * sm.sin(2 * T)})
    return model


MECHANISMS: dict[str, Callable[[], Model]] = {
    function.__name__.removeprefix("_"): function
    for function in (
        _two_frictions, _stop_and_spring, _relay, _pid, _belt, _three_contacts, _spatial_loop, _pendulum_at_a_stop,
        _play, _driven_brake,
    )
}  # fmt: skip


def bench_mechanism(name: str = "belt") -> Model:
    """One of ``MECHANISMS``."""
    return MECHANISMS[name]()
