"""Right models of users that were once called wrong: each is the smallest of its kind."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import sympy as sm
from ball_joints import linkage
from sympy.physics import mechanics as me

import mb2fmu
from mb2fmu import Contact, CoulombFriction, Impact, Latch, Model, OneWayClutch, Parts, PlaneSurface
from mb2fmu.model.supported_functions import LookupTable

RIGHT: dict[str, Callable[[], Model]] = {}


def right(function: Callable[[], Model]) -> Callable[[], Model]:
    RIGHT[function.__name__] = function
    return function


def _ground() -> tuple[me.ReferenceFrame, me.Point]:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    return N, O


@right
def spring_of_stiffness_zero() -> Model:
    """Its momentum keeps its value by default, and does not where the perturbed experiment makes the spring act."""
    (x, v), (m, k) = me.dynamicsymbols("x v"), sm.symbols("m k")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, -k * x * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, m)], forcelist=loads)
    model = Model("FreeMass", kane)
    model.parameter(m, 2.0, "kg", min=1e-3)
    model.parameter(k, 0.0, "N/m", min=0.0)
    model.coordinate(x, 0.5, "m")
    model.speed(v, 1.0, "m/s")
    model.experiment(stop=2.0, step=0.02, tolerance=1e-8)
    return model


@right
def damper_of_coefficient_zero() -> Model:
    """T + V keeps its value by default only."""
    (q, u), (m, l, c, g) = me.dynamicsymbols("q u"), sm.symbols("m l c g")
    N, O = _ground()
    A = me.ReferenceFrame("A")
    A.orient_axis(N, q, N.z)
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", -l * A.y)
    P.v2pt_theory(O, N, A)
    loads = [(P, -m * g * N.y), (A, -c * u * N.z)]
    kane = me.KanesMethod(N, [q], [u], [u - q.diff()], bodies=[me.Particle("bob", P, m)], forcelist=loads)
    model = Model("Pendulum", kane)
    for s, v, unit in ((m, 1.0, "kg"), (l, 0.5, "m"), (g, 9.81, "m/s2"), (c, 0.0, "N.m.s/rad")):
        model.parameter(s, v, unit)
    model.coordinate(q, 0.5, "rad")
    model.speed(u, 0.0, "rad/s")
    model.experiment(stop=1.0)
    return model


@right
def blade_steered_by_an_input() -> Model:
    """A velocity constraint contains an input: its residual is that of the input's present value."""
    x, y, u, v, beta = me.dynamicsymbols("x y u v beta")
    N, O = _ground()
    A = N.orientnew("A", "Axis", [beta, N.z])
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    kane = me.KanesMethod(
        N, [x, y], [u], [x.diff() - u, y.diff() - v], u_dependent=[v], velocity_constraints=[P.vel(N).dot(A.y)],
        bodies=[me.Particle("P", P, 1)], forcelist=[(P, -9.81 * N.y)],
    )  # fmt: skip
    model = Model("Blade", kane)
    model.input(beta, 0.3, "rad")
    model.input(beta.diff(), 0.0, "rad/s")
    model.coordinate(x, 0, "m")
    model.coordinate(y, 0, "m")
    model.speed(u, 0.1, "m/s")
    model.speed(v, 0, "m/s", kind="guess")
    return model


def _ball_on_a_spring(push: Callable[[sm.Expr, sm.Symbol], sm.Expr]) -> Model:
    (y, v), (m, k, g) = me.dynamicsymbols("y v"), sm.symbols("m k g")
    N, O = _ground()
    P = O.locatenew("P", y * N.y)
    P.set_vel(N, v * N.y)
    loads = [(P, (push(y, k) - m * g) * N.y)]
    kane = me.KanesMethod(N, [y], [v], [y.diff() - v], bodies=[me.Particle("ball", P, m)], forcelist=loads)
    model = Model("Ball", kane)
    for s, value, unit in ((m, 3.0, "kg"), (k, 5e5, "N/m"), (g, 9.81, "m/s2")):
        model.parameter(s, value, unit)
    model.coordinate(y, 0.2, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=0.5)
    return model


HERTZ = sm.Rational(3, 2)


@right
def power_of_a_maximum() -> Model:
    """Where the reference looks for the end of the contact, −y is negative: its real power has no value."""
    return _ball_on_a_spring(lambda y, k: k * sm.Max(-y, 0) ** HERTZ)


@right
def power_of_an_absolute_value() -> Model:
    return _ball_on_a_spring(lambda y, k: k * ((sm.Abs(y) - y) / 2) ** HERTZ)


@right
def power_that_a_piecewise_guards() -> Model:
    return _ball_on_a_spring(lambda y, k: sm.Piecewise((k * (-y) ** HERTZ, y < 0), (0, True)))


@right
def power_that_a_step_guards() -> Model:
    return _ball_on_a_spring(lambda y, k: k * sm.Heaviside(-y) * (-y) ** HERTZ)


@right
def root_of_a_maximum() -> Model:
    return _ball_on_a_spring(lambda y, k: k * sm.sqrt(sm.Max(-y, 0)) / 100)


@right
def angle_of_a_clamped_cosine() -> Model:
    """Scripts clamp what they give to ``acos``; just beyond the clamp's event it has no value."""
    x, v = me.dynamicsymbols("x v")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    force = -30 * x + 5 * sm.acos(sm.Max(-1, sm.Min(1, x / 0.4)))
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, 1.0)], forcelist=[(P, force * N.x)])
    model = Model("Clamped", kane)
    model.coordinate(x, -1.0, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=2.0)
    return model


def _mass_beside_a_wall(push: Callable[[sm.Expr], sm.Expr]) -> Model:
    (x, v), (m, k) = me.dynamicsymbols("x v"), sm.symbols("m k")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    force = -k * (x - sm.Rational(9, 10)) + push(x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, m)], forcelist=[(P, force * N.x)])
    model = Model("Guarded", kane)
    model.parameter(m, 1.0, "kg", min=0.1)
    model.parameter(k, 10.0, "N/m")
    model.coordinate(x, 0.5, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=3.0)
    return model


@right
def angle_that_a_piecewise_guards() -> Model:
    """Beyond the switch ``acos`` has no value, and the force jumps there."""
    return _mass_beside_a_wall(lambda x: sm.Piecewise((sm.acos(x), x < 1), (-sm.Rational(1, 2), True)))


@right
def half_circle_that_a_piecewise_guards() -> Model:
    """The condition is another function of x than the root's argument."""
    return _mass_beside_a_wall(lambda x: sm.Piecewise((sm.sqrt(1 - x**2), sm.Abs(x) < 1), (0, True)))


@right
def roots_that_two_conditions_guard() -> Model:
    return _mass_beside_a_wall(lambda x: sm.Piecewise((sm.sqrt(x) * sm.sqrt(1 - x), (x < 1) & (x > 0)), (0, True)))


@right
def block_that_sticks_on_a_shaking_plate() -> Model:
    """It starts with the plate's speed, and what an integrator leaves of its slip is round-off."""
    t, (x, v) = me.dynamicsymbols._t, me.dynamicsymbols("x v")
    m = sm.Symbol("m")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("P", P, m)], forcelist=[])
    model = Model("OnAPlate", kane)
    model.parameter(m, 1.0, "kg")
    model.coordinate(x, 0.0, "m")
    model.speed(v, 0.03 * 7.0, "m/s")
    plate_speed = 0.03 * 7.0 * sm.cos(7 * t)
    model.add(CoulombFriction("rub", (O, P, N.x), kinetic=2.0, static=2.2, drive=plate_speed))
    model.experiment(stop=2.0)
    return model


@right
def rod_after_many_turns() -> Model:
    """Of an angle of 1e9 rad seven digits are left for its cosine, too, and for the speed that gravity gives."""
    (q, u), m = me.dynamicsymbols("q u"), sm.Symbol("m")
    N, O = _ground()
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", sm.Float(0.5) * A.x)
    P.v2pt_theory(O, N, A)
    rod = me.RigidBody("rod", P, A, m, (me.inertia(A, 0, 0, sm.Float(0.1)), P))
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[rod], forcelist=[(P, -9.81 * m * N.y)])
    model = Model("TurnedRod", kane)
    model.parameter(m, 1.0, "kg")
    model.coordinate(q, 1e9, "rad")
    model.speed(u, 1.0, "rad/s")
    model.output("height", sm.sin(q) / 2, "m")
    model.experiment(stop=1.0)
    return model


@right
def angle_after_many_turns() -> Model:
    """An angle of 1e9 rad has seven digits behind the point; it moves by 1 rad."""
    (q, u), (m, l, c) = me.dynamicsymbols("q u"), sm.symbols("m l c")
    N, O = _ground()
    A = N.orientnew("A", "Axis", [q, N.z])
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", -l * A.y)
    P.v2pt_theory(O, N, A)
    loads = [(P, -9.81 * m * N.y), (A, -c * u * N.z)]
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("bob", P, m)], forcelist=loads)
    model = Model("ManyTurns", kane)
    for s, value, unit in ((m, 1.0, "kg"), (l, 0.7, "m"), (c, 0.1, "N.m.s/rad")):
        model.parameter(s, value, unit)
    model.coordinate(q, 1e9, "rad")
    model.speed(u, 0.0, "rad/s")
    model.experiment(stop=1.0)
    return model


@right
def two_latches_hold_one_motion() -> Model:
    """How they share its force is of least norm, and so is what each force changes by with the value it holds at."""
    t, (q1, q2, u1, u2) = me.dynamicsymbols._t, me.dynamicsymbols("q1 q2 u1 u2")
    m, l, g = sm.symbols("m l g")
    N, O = _ground()
    A, B = N.orientnew("A", "Axis", [q1, N.z]), me.ReferenceFrame("B")
    B.orient_axis(A, q2, N.z)
    A.set_ang_vel(N, u1 * N.z)
    B.set_ang_vel(A, u2 * N.z)
    P = O.locatenew("P", -l * A.y)
    Q = P.locatenew("Q", -l * B.y)
    P.v2pt_theory(O, N, A)
    Q.v2pt_theory(P, N, B)
    particles = [me.Particle(name, point, m) for name, point in (("P", P), ("Q", Q))]
    kane = me.KanesMethod(
        N, [q1, q2], [u1, u2], [q1.diff() - u1, q2.diff() - u2], bodies=particles,
        forcelist=[(point, -m * g * N.y) for point in (P, Q)],
    )  # fmt: skip
    model = Model("TwiceHeld", kane)
    for s, value, unit in ((m, 1.2, "kg"), (l, 0.7, "m"), (g, 9.81, "m/s2")):
        model.parameter(s, value, unit)
    for q, u, start in ((q1, u1, 0.6), (q2, u2, 0.4)):
        model.coordinate(q, start, "rad")
        model.speed(u, 0.0, "rad/s")
    model.add(Latch("elbow", q2, close=t >= 0.3, open=t >= 0.8, within=None))
    model.add(Latch("stick", sm.sin(q2), close=t >= 0.5, open=t >= 0.9, within=None))
    model.experiment(stop=1.0)
    return model


@right
def force_as_a_plain_symbol() -> Model:
    """Scripts write ``F = symbols("F")`` for a force; it is an input where ``model.input`` says so."""
    (x, v), (m, k, F) = me.dynamicsymbols("x v"), sm.symbols("m k F")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, (F - k * x) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, m)], forcelist=loads)
    model = Model("Pushed", kane)
    model.parameter(m, 2.0, "kg")
    model.parameter(k, 3.0, "N/m")
    model.input(F, 0.5, "N")
    model.coordinate(x, 0.1, "m")
    model.speed(v, 0.0, "m/s")
    model.output("power", F * v, "W")
    model.experiment(stop=1.0)
    return model


@right
def oscillator_at_rest_within_a_step() -> Model:
    """Its spring gives 5 kJ to its damper within a hundredth of the first step, at whose ends nothing has any power."""
    (x, v), (m, k, c) = me.dynamicsymbols("x v"), sm.symbols("m k c")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, (-k * x - c * v) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, m)], forcelist=loads)
    model = Model("StiffMass", kane)
    for s, value, unit in ((m, 1.0, "kg"), (k, 1e8, "N/m"), (c, 2e4, "N.s/m")):
        model.parameter(s, value, unit, min=1e-3)
    model.coordinate(x, 0.01, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=0.5)
    return model


@right
def two_latches_that_hold_one_motion() -> Model:
    """Each bears its part of one force; one opens before the other."""
    t, (x, y, v, w) = me.dynamicsymbols._t, me.dynamicsymbols("x y v w")
    m, k = sm.symbols("m k")
    N, O = _ground()
    P, Q = O.locatenew("P", x * N.x), O.locatenew("Q", y * N.x)
    P.set_vel(N, v * N.x)
    Q.set_vel(N, w * N.x)
    loads = [(P, (5 * m * sm.sin(3 * t) - k * (x - y)) * N.x), (Q, (k * (x - y) - 20 * y) * N.x)]
    bodies = [me.Particle("p", P, m), me.Particle("q", Q, 2 * m)]
    kane = me.KanesMethod(N, [x, y], [v, w], [x.diff() - v, y.diff() - w], bodies=bodies, forcelist=loads)
    model = Model("TwoLatches", kane)
    model.parameter(m, 1.3, "kg", min=0.1)
    model.parameter(k, 40.0, "N/m")
    for q, u, start in ((x, v, 0.0), (y, w, 0.1)):
        model.coordinate(q, start, "m")
        model.speed(u, 0.0, "m/s")
    model.add(Latch("one", [x - y], close=t >= 0.1, open=t >= 0.4, within=None))
    model.add(Latch("two", [2 * x - 2 * y], close=t >= 0.1, open=t >= 0.3, within=None))
    model.experiment(stop=0.5)
    return model


@right
def mass_that_rests_by_default() -> Model:
    """Nothing moves and nothing has a size, until the perturbed experiment starts elsewhere."""
    x, v = me.dynamicsymbols("x v")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, 1)], forcelist=[(P, -40 * x * N.x)])
    model = Model("Resting", kane)
    model.coordinate(x, 0.0, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=1.0)
    return model


@right
def light_mass_that_trembles_on_a_heavy_one() -> Model:
    """Its acceleration swings several times in a step: a slope over steps is not its derivative."""
    (x, y, v, w), k = me.dynamicsymbols("x y v w"), sm.Symbol("k")
    N, O = _ground()
    P, Q = O.locatenew("P", x * N.x), O.locatenew("Q", y * N.x)
    P.set_vel(N, v * N.x)
    Q.set_vel(N, w * N.x)
    bodies = [me.Particle("p", P, 1000), me.Particle("q", Q, 1e-6)]
    loads = [(P, (-1e4 * x - k * (x - y)) * N.x), (Q, k * (x - y) * N.x)]
    kane = me.KanesMethod(N, [x, y], [v, w], [x.diff() - v, y.diff() - w], bodies=bodies, forcelist=loads)
    model = Model("TwoScales", kane)
    model.parameter(k, 10.0, "N/m")
    for q, u in ((x, v), (y, w)):
        model.coordinate(q, 0.1, "m")
        model.speed(u, 0.0, "m/s")
    model.experiment(stop=0.2, step=0.005, tolerance=1e-9)
    return model


@right
def stiff_coupling_that_starts_away_from_rest() -> Model:
    """The coupling's vibration has died out at the first communication point, which shows a ten-thousandth of it."""
    (x, y, v, w), (m, k, K, c) = me.dynamicsymbols("x y v w"), sm.symbols("m k K c")
    N, O = _ground()
    P, Q = O.locatenew("P", x * N.x), O.locatenew("Q", (x + y) * N.x)
    P.set_vel(N, v * N.x)
    Q.set_vel(N, (v + w) * N.x)
    pair = K * y + c * w
    loads = [(P, (-k * x + pair) * N.x), (Q, -pair * N.x)]
    bodies = [me.Particle("heavy", P, m), me.Particle("light", Q, m / 1000)]
    kane = me.KanesMethod(N, [x, y], [v, w], [x.diff() - v, y.diff() - w], bodies=bodies, forcelist=loads)
    model = Model("StiffCoupling", kane)
    model.parameter(m, 1.0, "kg", min=0.1)
    model.parameter(k, 10.0, "N/m")
    model.parameter(K, 1e6, "N/m")
    model.parameter(c, 10.0, "N.s/m")
    model.coordinate(x, 1.0, "m")
    model.coordinate(y, 0.0, "m")
    model.speed(v, 0.0, "m/s")
    model.speed(w, 0.0, "m/s")
    model.experiment(stop=1.0, step=0.01, stiff=True)
    return model


@right
def mount_that_moves_by_micrometres() -> Model:
    """Typical magnitudes of its mass and stiffness are metres and kilometres a second: nominals are a millionth."""
    (x, v, f), (m, k, c) = me.dynamicsymbols("x v f"), sm.symbols("m k c")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    loads = [(P, (f - k * x - c * v) * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, m)], forcelist=loads)
    model = Model("Mount", kane)
    model.parameter(m, 1.0, "kg", min=0.1)
    model.parameter(k, 1e8, "N/m", min=1e6)
    model.parameter(c, 2e3, "N.s/m", min=100.0)
    model.input(f, unit="N", start=0.0)
    model.coordinate(x, 0.0, "m")
    model.speed(v, 0.0, "m/s")
    model.output("mount.force", k * x, "N")
    t = me.dynamicsymbols._t
    model.experiment(stop=0.3, step=0.01, signals={f: 100 * sm.sin(20 * t)})
    return model


@right
def double_pendulum_near_the_top() -> Model:
    """Chaotic: the perturbed experiment can be predicted for two communication points only."""
    (a, b, w, z), (m, l, g) = me.dynamicsymbols("a b w z"), sm.symbols("m l g")
    N, O = _ground()
    A, B = me.ReferenceFrame("A"), me.ReferenceFrame("B")
    A.orient_axis(N, a, N.z)
    B.orient_axis(N, b, N.z)
    A.set_ang_vel(N, w * N.z)
    B.set_ang_vel(N, z * N.z)
    P = O.locatenew("P", -l * A.y)
    Q = P.locatenew("Q", -l * B.y)
    P.v2pt_theory(O, N, A)
    Q.v2pt_theory(P, N, B)
    bodies, loads = [me.Particle("p", P, m), me.Particle("q", Q, m)], [(S, -m * g * N.y) for S in (P, Q)]
    kane = me.KanesMethod(N, [a, b], [w, z], [a.diff() - w, b.diff() - z], bodies=bodies, forcelist=loads)
    model = Model("Chaotic", kane)
    model.parameter(m, 1.0, "kg", min=0.1)
    model.parameter(l, 1.0, "m", min=0.1)
    model.parameter(g, 9.81, "m/s2")
    model.coordinate(a, 3.0, "rad")
    model.coordinate(b, 3.1, "rad")
    model.speed(w, 0.0, "rad/s")
    model.speed(z, 0.0, "rad/s")
    model.experiment(stop=60.0, step=0.02)
    return model


@right
def wheels_whose_play_rattles() -> Model:
    """Two wheels with play: errors of 1e-6 grow to the size of the play, which is 4 % of what the wheels turn by."""
    return mb2fmu.load(Path(__file__).parents[1] / "scripts" / "bench_mechanisms.py", {"name": "play"})


@right
def mass_between_springs_of_tables() -> Model:
    """The springs' slopes bend: sums over communication points do not give the momentum to the tolerance."""
    x, v, y, w = me.dynamicsymbols("x v y w")
    N, O = _ground()
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    lengths = [-0.3, 0.0, 0.2, 0.4]
    along = LookupTable("along", lengths, [3.0, 0.5, -1.0, -6.0], kind="pchip", extrapolation="constant")
    across = LookupTable("across", lengths, [5.0, 0.5, -1.0, -6.0], kind="cubic", extrapolation="constant")
    loads = [(P, 9 * along(x) * N.x + 8 * across(y) * N.y)]
    rates = [x.diff() - v, y.diff() - w]
    kane = me.KanesMethod(N, [x, y], [v, w], rates, bodies=[me.Particle("b", P, sm.S.One)], forcelist=loads)
    model = Model("BetweenTables", kane)
    for q, start in ((x, 0.7), (y, 0.8)):
        model.coordinate(q, start, "m")
    for u in (v, w):
        model.speed(u, 0.0, "m/s")
    model.experiment(stop=6.0, tolerance=1e-8)
    return model


@right
def mass_on_straight_tables() -> Model:
    """The kinks of a linear table, 0.05 m apart, each in a step or between two, are no events where it is smooth."""
    x, v = me.dynamicsymbols("x v")
    N, O = _ground()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    lengths = [k * 0.05 for k in range(-20, 21)]
    spring = LookupTable("spring", lengths, [-(30 * s + 200 * s**3) for s in lengths])
    kane = me.KanesMethod(
        N, [x], [v], [x.diff() - v], bodies=[me.Particle("b", P, 1)], forcelist=[(P, spring(x) * N.x)]
    )
    model = Model("StraightTable", kane)
    model.coordinate(x, 0.83, "m")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=2.0, step=0.02, tolerance=1e-7)
    return model


@right
def pendulums_quicker_than_steps() -> Model:
    """Speeds turn round within each step: derivatives at the FMU's own state differ from those at the reference's."""
    a, b, w, z, torque = me.dynamicsymbols("a b w z torque")
    l, g = sm.symbols("l g")
    N, O = _ground()
    A, B = N.orientnew("A", "Axis", (a, N.z)), N.orientnew("B", "Axis", (b, N.z))
    A.set_ang_vel(N, w * N.z)
    B.set_ang_vel(N, z * N.z)
    P = O.locatenew("P", -l * A.y)
    P.v2pt_theory(O, N, A)
    Q = P.locatenew("Q", -l * B.y)
    Q.v2pt_theory(P, N, B)
    bodies = [me.Particle("p", P, 1e-12), me.Particle("q", Q, 1e-12)]
    loads = [*((S, -1e-12 * g * N.y) for S in (P, Q)), (A, torque * N.z)]
    kane = me.KanesMethod(N, [a, b], [w, z], [a.diff() - w, b.diff() - z], bodies=bodies, forcelist=loads)
    model = Model("Tiny", kane)
    model.parameter(l, 1e-5, "m", min=1e-6)
    model.parameter(g, 9.81, "m/s2")
    model.input(torque, 0.0, "N.m")
    for q in (a, b):
        model.coordinate(q, 0.3, "rad")
    for u in (w, z):
        model.speed(u, 0.0, "rad/s")
    model.output("a_rate", w, "rad/s")
    t = me.dynamicsymbols._t
    model.experiment(stop=2.0, step=4e-3, signals={torque: 5e-17 * sm.sin(5 * t)})
    return model


@right
def block_that_bristles_hold() -> Model:
    """A block in space that sticks, slides to and fro along a slope, and sticks again."""
    x, y, z, u, v, w, push = me.dynamicsymbols("x y z u v w push")
    N, O = _ground()
    A = N.orientnew("A", "Axis", (0.2, N.x))
    P = O.locatenew("P", x * A.x + y * A.y + z * A.z)
    P.set_vel(N, u * A.x + v * A.y + w * A.z)
    block = me.Particle("block", P, 2.0)
    rates = [x.diff() - u, y.diff() - v, z.diff() - w]
    loads = [(P, -2 * 9.81 * N.z + push * A.x)]
    model = Model("Block", me.KanesMethod(N, [x, y, z], [u, v, w], rates, bodies=[block], forcelist=loads))
    for q in (x, y, z):
        model.coordinate(q, 0.0, "m")
    for s in (u, v, w):
        model.speed(s, 0.0, "m/s")
    model.input(push, 0.0, "N")
    law = {"stiffness": 1e5, "exponent": 1, "dissipation": 1.0}
    floor = PlaneSurface(O, A.z)
    model.add(Contact("floor", block, floor, **law, kinetic=0.5, slip_speed=0.01, presliding=1e-3))
    model.experiment(stop=2.0, signals={push: 15 * sm.sin(4 * me.dynamicsymbols._t)})
    return model


@right
def body_of_quaternion_and_offset_centre() -> Model:
    """Other start values give its quaternion another length, at which SymPy's matrix is no rotation."""
    t, x, v = me.dynamicsymbols._t, me.dynamicsymbols("x y z"), me.dynamicsymbols("vx vy vz")
    e, w = me.dynamicsymbols("e0:4"), me.dynamicsymbols("wx wy wz")
    N, O = _ground()
    B = me.ReferenceFrame("B")
    B.orient_quaternion(N, e)
    B.set_ang_vel(N, w[0] * B.x + w[1] * B.y + w[2] * B.z)
    P = O.locatenew("P", x[0] * N.x + x[1] * N.y + x[2] * N.z)
    P.set_vel(N, v[0] * N.x + v[1] * N.y + v[2] * N.z)
    C = P.locatenew("C", 0.3 * B.x)
    C.v2pt_theory(P, N, B)
    rates = (
        (-e[1] * w[0] - e[2] * w[1] - e[3] * w[2]) / 2,
        (e[0] * w[0] - e[3] * w[1] + e[2] * w[2]) / 2,
        (e[3] * w[0] + e[0] * w[1] - e[1] * w[2]) / 2,
        (-e[2] * w[0] + e[1] * w[1] + e[0] * w[2]) / 2,
    )
    parts = Parts(
        frame=N,
        origin=O,
        q=(*x, *e),
        u=(*v, *w),
        kinematic_equations=tuple(q.diff(t) - rate for q, rate in zip((*x, *e), (*v, *rates), strict=True)),
        bodies=(me.RigidBody("body", C, B, 2.0, (me.inertia(B, 0.1, 0.2, 0.25), C)),),
        loads=(me.Force(C, -2.0 * 9.81 * N.z),),
    )
    model = Model("Offset", parts)
    for symbol in x:
        model.coordinate(symbol, 0.0, "m")
    for symbol, value in zip(e, (0.8, 0.0, 0.6, 0.0), strict=True):
        model.coordinate(symbol, value)
    for symbol, value in zip(v, (1.0, 0.0, 2.0), strict=True):
        model.speed(symbol, value, "m/s")
    for symbol, value in zip(w, (3.0, 0.2, 0.1), strict=True):
        model.speed(symbol, value, "rad/s")
    model.experiment(stop=2.0, step=0.05, tolerance=1e-8)
    return model


@right
def linkage_of_ball_joints() -> Model:
    """All four components of its quaternion are solved for, which says nothing of their length."""
    return linkage()


@right
def cart_with_a_gain_that_changes_as_it_samples() -> Model:
    """Its force is sampled at communication points, where parameters change, and its slopes depend on the force."""
    x, q, v, u, force = me.dynamicsymbols("x q v u force")
    gain, damping = sm.symbols("gain damping")
    N, O = _ground()
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    R = P.locatenew("R", -A.y)
    R.v2pt_theory(P, N, A)
    bodies = [me.Particle("cart", P, 2), me.Particle("bob", R, 1)]
    loads = [(P, force * N.x), (R, -9.81 * N.y)]
    kane = me.KanesMethod(N, [x, q], [v, u], [x.diff() - v, q.diff() - u], bodies=bodies, forcelist=loads)
    model = Model("Sampled", kane)
    model.parameter(gain, 40.0, "N/m")
    model.parameter(damping, 12.0, "N.s/m")
    for symbol, value, unit in ((x, 0.5, "m"), (q, 0.6, "rad")):
        model.coordinate(symbol, value, unit)
    for symbol, unit in ((v, "m/s"), (u, "rad/s")):
        model.speed(symbol, 0.0, unit)
    model.discrete(force, 0.0, "N")
    model.every(0.02, {force: -gain * x - damping * v})
    model.experiment(stop=0.4, step=0.02)
    return model


@right
def engine_that_a_freewheel_joins_to_a_wheel() -> Model:
    """It sticks while parameters change; what its slip has drifted by then lets it go, in Model Exchange."""
    q, r, x, f, u, w, v, s = me.dynamicsymbols("q r x f u w v s")
    N, O = _ground()
    A, B, F = (me.ReferenceFrame(name) for name in "ABF")
    for frame, angle, rate in ((A, q, u), (B, r, w), (F, f, s)):
        frame.orient_axis(N, angle, N.z)
        frame.set_ang_vel(N, rate * N.z)
    P = O.locatenew("P", 0.05 * A.x)
    P.v2pt_theory(O, N, A)
    end, middle = P.locatenew("end", 0.2 * B.x), P.locatenew("middle", 0.1 * B.x)
    for point in (end, middle):
        point.v2pt_theory(P, N, B)
    S = O.locatenew("S", x * N.x)
    S.set_vel(N, v * N.x)
    gap = end.pos_from(S)
    parts = Parts(
        frame=N,
        origin=O,
        q=(q, r, x, f),
        u=(u, w, v, s),
        kinematic_equations=tuple(a.diff() - b for a, b in ((q, u), (r, w), (x, v), (f, s))),
        bodies=(
            me.RigidBody("crank", O, A, 1, (me.inertia(A, 0, 0, 0.002), O)),
            me.RigidBody("rod", middle, B, 0.3, (me.inertia(B, 0, 0, 0.001), middle)),
            me.Particle("piston", S, 0.4),
            me.RigidBody("wheel", O, F, 1, (me.inertia(F, 0, 0, 0.05), O)),
        ),
        loads=(me.Force(S, -200 * (x - 0.2) * N.x), me.Torque(A, 1.5 * N.z), me.Torque(F, -0.01 * s * N.z)),
        holonomic_constraints=(gap.dot(N.x), gap.dot(N.y)),
    )
    model = Model("Engine", parts)
    for symbol, value, unit, kind in (
        (q, 0.4, "rad", "fixed"), (r, -0.1, "rad", "guess"), (x, 0.24, "m", "guess"), (f, 0.0, "rad", "fixed")
    ):  # fmt: skip
        model.coordinate(symbol, value, unit, kind=kind)
    for symbol, value, unit, kind in (
        (u, 5.0, "rad/s", "fixed"), (w, 0.0, "rad/s", "guess"), (v, 0.0, "m/s", "guess"), (s, 4.0, "rad/s", "fixed")
    ):  # fmt: skip
        model.speed(symbol, value, unit, kind=kind)
    model.add(OneWayClutch("free", (A, F, N.z), capacity=50.0))
    model.experiment(stop=2.0, step=0.01)
    return model


@right
def pendulum_that_samples_spin_up() -> Model:
    """Its feedback is unstable: at 1e9 rad steps of many turns say nothing about slopes."""
    q, u, torque = me.dynamicsymbols("q u torque")
    k = sm.symbols("k")
    N, O = _ground()
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", -A.y)
    P.v2pt_theory(O, N, A)
    loads = [(P, -9.81 * N.y), (A, torque * N.z)]
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[me.Particle("p", P, sm.S.One)], forcelist=loads)
    model = Model("SpinUp", kane)
    model.parameter(k, 1500.0, "N.m/rad")
    model.coordinate(q, 0.1, "rad")
    model.speed(u, 0.0, "rad/s")
    model.discrete(torque, 0.0, "N.m")
    model.every(0.1, {torque: -k * q})
    model.experiment(stop=1.7)
    return model


@right
def rod_that_comes_to_rest_on_both_ends() -> Model:
    """Its ends stick while it still turns a little: no force gives both slips the rates that they want."""
    (x, y, q), (v, w, u) = me.dynamicsymbols("x y q"), me.dynamicsymbols("v w u")
    N, O = _ground()
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    half = sm.Rational(3, 10)
    rod = me.RigidBody("rod", P, A, sm.S.One, (me.inertia(A, 0, 0, half**2 / 3), P))
    rates = [x.diff() - v, y.diff() - w, q.diff() - u]
    kane = me.KanesMethod(N, [x, y, q], [v, w, u], rates, bodies=[rod], forcelist=[(P, -9.81 * N.y)])
    model = Model("RodAtRest", kane)
    for symbol, start, unit in ((x, 0.0, "m"), (y, 0.0045, "m"), (q, -0.01, "rad")):
        model.coordinate(symbol, start, unit)
    for symbol, start, unit in ((v, 0.002, "m/s"), (w, -0.3, "m/s"), (u, 0.9, "rad/s")):
        model.speed(symbol, start, unit)
    for name, side in (("left", -half), ("right", half)):
        slip = v - side * sm.sin(q) * u
        model.add(Impact(name, y + side * sm.sin(q), restitution=0.4, rest_below=0.05, slip=slip, friction=0.25))
    model.experiment(stop=0.2, step=0.01)
    return model
