"""Contacts with Coulomb's friction: closed forms of sliding, sticking and rolling, impacts, Painlevé's rod."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from mechanisms import closed_mechanism_of
from representatives import by_night
from touching import planar_body

from mb2fmu import Impact, Model, derive, simulate, validation
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.numerics.coulomb_contacts import CoulombContactProblem, choose_contact_modes
from mb2fmu.compiler.numerics.friction_force_solve import FrictionContactMatrix, FrictionForceSolver
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, ProgramVariableLayout
from mb2fmu.errors import MechanismError, ModelError, ValidationError
from mb2fmu.mechanics import formulations
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model
from mb2fmu.validation.modes import contact_friction_modes

G = 9.81


def body(
    name: str, radius: float, inertia: float, *, slope: float = 0.0, speeds=(0.0, 0.0, 0.0), along=0.0, **contact
) -> Model:
    """A body of 2 kg in a plane, that touches a floor below its middle; the floor may slope, a force pull ``along``."""
    model, (_, y, _, u, _, w) = planar_body(name, 2, inertia, (0.0, 0.0, 0.0, *speeds), slope=slope, along=along)
    model.add(Impact("floor", y, slip=u + radius * w, **contact))
    model.experiment(stop=3.0, step=0.3, tolerance=1e-9)
    return model


def reference(model: Model):
    mechanism = closed_mechanism_of(model)
    equations = formulations.formulate(mechanism, "tmt")
    return validation.make_reference(mechanism.declared, equations)


@functools.cache
def ball(law: str, order: str, method: str):
    """A ball that strikes a floor, derived."""
    contact = {"friction": 0.25, "restitution": 0.6, "law": law, "order": order}
    return derive(body("Ball", 0.1, 0.4 * 2 * 0.1**2, **contact), method=method)


def behind(derivation, **state: float) -> dict[str, float]:
    """What the impact makes of the start, with other speeds."""
    program = derivation.program
    known = {
        item.name.replace(".", "_"): item.start for item in derivation.definition.quantities if hasattr(item, "start")
    }
    known |= state
    x = [known[str(symbol)] for symbol in derivation.equations.states]
    p = [item.value for item in derivation.definition.parameters if not item.calculated]
    values = make_evaluator(program, "resets")(0.0, x, [], p)
    found: dict[str, float] = {}
    for label, value in zip(program.entries["resets"].labels, values, strict=True):
        found.setdefault(label.partition(":")[2], value)  # the impact comes first
    return found


# --- motion -----------------------------------------------------------------------------------------------------------


def last(run, name: str) -> float:
    return float(run.trajectory[name][-1])


def test_a_block_slides_stops_and_stays():
    """v / (mu g) long, v^2 / (2 mu g) far: .679578661230037 both, for v = 2 and mu = .3."""
    run = reference(body("Block", 0.0, 1.0, speeds=(2.0, 0.0, 0.0), friction=0.3, starts_resting=True))
    stops = [event.time for event in run.events if event.sets_state]
    assert stops == pytest.approx([0.679578661230037], abs=1e-13)
    assert [event.name for event in run.events if event.sets_state] == ["floor sticks"]
    assert last(run, "x") == pytest.approx(0.679578661230037, abs=1e-13)


@pytest.mark.parametrize(("steeper", "moves"), [(-1e-6, False), (1e-2, True)])
def test_a_block_rests_on_slopes_below_the_angle_of_friction(steeper, moves):
    slope = np.arctan(0.3) + steeper
    run = reference(body("Slope", 0.0, 1.0, slope=slope, friction=0.3, starts_resting=True))
    slides = 0.5 * G * (np.sin(slope) - 0.3 * np.cos(slope)) * 9.0 if moves else 0.0
    assert last(run, "x") == pytest.approx(slides, abs=1e-13)
    assert last(run, "floor.sliding") == float(moves)


@pytest.mark.parametrize("sense", [*by_night(1), -1])
def test_a_block_breaks_away_where_the_pull_has_grown_to_what_friction_holds(sense):
    """Pulled by 4 t N it leaves at t0 = mu m g / 4, with s' = 0; then 2 s'' = 4 (t - t0)."""
    run = reference(body("Pulled", 0.0, 1.0, along=4 * sense * me.dynamicsymbols._t, friction=0.3, starts_resting=True))
    leaves = 0.3 * 2 * G / 4
    assert [event.time for event in run.events if event.sets_state] == pytest.approx([leaves], rel=1e-12)
    assert last(run, "x") == pytest.approx(sense * (3 - leaves) ** 3 / 3, rel=1e-11)
    assert [event.name for event in run.events if event.sets_state] == ["floor slides"]


def test_a_block_that_is_thrown_up_a_steep_slope_slides_back():
    """Slip comes through zero and goes on to the other side, without rest."""
    up, down = (G * (np.sin(0.5) + side * 0.3 * np.cos(0.5)) for side in (1, -1))
    run = reference(body("Thrown", 0.0, 1.0, slope=0.5, speeds=(-2.0, 0.0, 0.0), friction=0.3, starts_resting=True))
    assert [event.time for event in run.events if event.sets_state] == pytest.approx([2 / up], rel=1e-12)
    assert last(run, "x") == pytest.approx(-2 / up + down * (3 - 2 / up) ** 2 / 2, rel=1e-11)


def test_a_block_pulled_to_and_fro_stops_and_breaks_away_to_the_other_side():
    pull = 10 * sm.sin(3 * me.dynamicsymbols._t)
    run = reference(body("Shaken", 0.0, 1.0, along=pull, friction=0.3, starts_resting=True))
    breaks = np.arcsin(0.3 * 2 * G / 10) / 3
    times = [event.time for event in run.events if event.sets_state]
    assert times[::2] == pytest.approx([breaks, breaks + np.pi / 3, breaks + 2 * np.pi / 3], rel=1e-11)
    speed = [event.states[1][3] for event in run.events if event.sets_state]
    assert speed == pytest.approx([0.0] * len(times), abs=1e-11)

    def slid(t):  # from the break-away on, until s = 0
        return (10 / 3 * (np.cos(3 * breaks) - np.cos(3 * t)) - 0.3 * 2 * G * (t - breaks)) / 2

    assert slid(times[1]) == pytest.approx(0.0, abs=1e-11)


def test_a_bowling_ball_slides_and_then_rolls():
    """2 v / (7 mu g) long: published with v = 8 m/s, mu = .12, R = .1085 m."""
    R = 0.1085
    run = reference(body("Bowling", R, 0.4 * 2 * R**2, speeds=(8.0, 0.0, 0.0), friction=0.12, starts_resting=True))
    rolls = [event for event in run.events if event.sets_state]
    assert [event.time for event in rolls] == pytest.approx([1.94165331780011], abs=1e-12)
    assert rolls[0].states[1][0] == pytest.approx(13.3141941792007, abs=1e-11)
    assert last(run, "floor.friction") == pytest.approx(0.0, abs=1e-12)
    assert last(run, "u") == pytest.approx(8.0 * 5 / 7, abs=1e-12)


def test_a_block_rocks_on_its_corners_by_friction():
    """Published: it stands upright at .312308575112622 s, and comes to theta .0947367931208167 on the other corner."""
    tilt, half, height = np.arctan(0.25) / 2, sm.Rational(1, 10), sm.Rational(2, 5)
    x, y = 0.1 * np.cos(tilt) - 0.4 * np.sin(tilt), 0.1 * np.sin(tilt) + 0.4 * np.cos(tilt)
    model, (_, y, a, u, _, w) = planar_body("Rocking", 1, sm.Rational(17, 300), (x, y, tilt, 0.0, 0.0, 0.0))
    for name, side in (("left", -half), ("right", half)):
        arm = (side * sm.cos(a) + height * sm.sin(a), side * sm.sin(a) - height * sm.cos(a))
        slip = u - w * arm[1]
        model.add(
            Impact(name, y + arm[1], slip=slip, friction=1.5, order="simultaneous", starts_resting=name == "left")
        )
    upright, top = 0.312308575112622, 0.0947367931208167
    model.experiment(stop=0.55, step=0.05, tolerance=1e-9)
    run = reference(model)
    struck = [event for event in run.events if event.sets_state]
    assert struck[0].time == pytest.approx(upright, abs=1e-10)
    assert struck[0].name == "left opens, impact of right"
    assert struck[0].states[0][5] == pytest.approx(-0.893414307302563, abs=1e-9)
    angle, speed = run.trajectory["a"], run.trajectory["w"]
    back = 4 / 3 * np.hypot(0.1, 0.4)  # energy about the corner: back w^2 / 2 = g (cos(alpha - top) - cos(alpha))
    alpha = np.arctan(0.25)
    level = back * speed**2 / 2 / G + np.cos(alpha - np.abs(angle))
    assert level[run.trajectory.time > upright] == pytest.approx(np.cos(alpha - top), abs=1e-9)


# --- impacts ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "order", "method"),
    [
        *by_night(
            ("newton", "sequential", "lagrange"), ("newton", "simultaneous", "kane"), ("poisson", "sequential", "tmt")
        ),
        ("newton", "sequential", "recursive-articulated"),
        ("poisson", "simultaneous", "kane"),
    ],
)
@pytest.mark.parametrize("spin", [0.0, 30.0, -80.0])
def test_a_ball_with_spin_bounces_as_in_closed_form(law, order, method, spin):
    """It sticks where 2/7 m abs(s) <= mu (1 + e) m abs(v), else the impulse of friction is the right side."""
    R, m, e, mu, u, v = 0.1, 2.0, 0.6, 0.25, 1.5, -2.0
    found = behind(ball(law, order, method), u=u, v=v, w=spin)
    slip, normal = u + R * spin, (1 + e) * m * -v
    sticks = 2 / 7 * m * abs(slip) <= mu * normal
    along = -2 / 7 * m * slip if sticks else -mu * normal * np.sign(slip)
    assert sticks == (spin == 0.0)
    after = {"u": u + along / m, "v": -e * v, "w": spin + R * along / (0.4 * m * R**2)}
    assert {name: found[name] for name in after} == pytest.approx(after, rel=1e-13)
    assert [found["floor_impulse"], found["floor_impulse_along"]] == pytest.approx([normal, along], rel=1e-13)


def rod(mu: float, angle: float, spin: float = 0.0, restitution: float = 0.0, speed: float = -1.0) -> Model:
    """A uniform rod of 1 kg and half length 1 m, whose lower end slides on a floor towards the side it leans to."""
    speeds = (speed - spin * np.sin(angle), spin * np.cos(angle), spin)
    starts = (np.cos(angle), np.sin(angle), angle, *speeds)
    model, (_, y, a, u, _, w) = planar_body("Rod", 1, sm.Rational(1, 3), starts)
    slip, tip = u + w * sm.sin(a), y - sm.sin(a)
    model.add(Impact("floor", tip, slip=slip, friction=mu, restitution=restitution, starts_resting=True))
    model.experiment(stop=0.01, step=0.01, tolerance=1e-9)
    return model


@pytest.mark.parametrize(("mu", "right"), [(4 / 3 - 1e-6, True), (4 / 3 + 1e-6, False)])
def test_painleves_rod_has_no_motion_above_the_least_coefficient(mu, right):
    """1 + 3 cos a (cos a - mu sin a) is zero first at mu = 4/3, where tan a = 2: 63.4349488 degrees."""
    model = rod(mu, np.arctan(2.0))
    if right:
        assert last(reference(model), "floor.force") > 0.0
    else:
        with pytest.raises(ValidationError, match="no motion agrees with Coulomb's friction of floor"):
            reference(model)


def test_a_rod_that_may_lift_or_be_pressed_has_more_than_one_motion():
    """It turns so fast that it could lift, and is so rough that it could as well be pressed."""
    with pytest.raises(ValidationError, match="more than one motion agrees"):
        reference(rod(2.0, np.arctan(2.0), spin=5.0))


# --- the law of modes, against another way ----------------------------------------------------------------------------


def problem(count: int) -> ProgramBuilder:
    """A program that chooses modes of contacts with friction: inputs W, q, mu and senses that are known, row by row."""
    n = 2 * count
    names = tuple(f"x{i}" for i in range(n * n + n + 2 * count))
    b = ProgramBuilder(ProgramVariableLayout(states=names, inputs=(), parameters=(), memory=(), seeds=()))
    nodes = [b.state(i) for i in range(len(names))]
    W = [nodes[n * i : n * i + n] for i in range(n)]
    q, mu, known = nodes[n * n : n * n + n], nodes[n * n + n : n * n + n + count], nodes[n * n + n + count :]
    tangents, yes = [*range(count, n)], [b.constant(1.0)] * count
    chosen = choose_contact_modes(b, CoulombContactProblem(W, q, tangents, mu, yes, known))
    held = [b.binary(Op.LT, b.constant(0.5), each) for each in (*chosen.pressed, *chosen.stuck)]
    rows = FrictionForceSolver(b, FrictionContactMatrix(W, tangents, mu), held, chosen.senses, "parts")
    parts = rows.solve([b.neg(each) for each in q])
    results = [*parts, *chosen.pressed, *chosen.senses, chosen.fits, chosen.uniqueness_merit]
    b.entry("found", [f"{i}" for i in range(len(results))], results)
    return b


@pytest.mark.parametrize("count", [2, *by_night(1, 3)])
def test_modes_are_those_of_the_reference(count):
    """Random contacts, some of them redundant; the parts obey Coulomb's law by themselves, too."""
    solve, draw = make_evaluator(problem(count).build(), "found"), np.random.default_rng(count)
    n, reported = 2 * count, 0
    for number in range(40):
        rank = n if number % 4 else max(2, n - 1)
        root = draw.normal(size=(rank, n))
        W, mu = root.T @ root, draw.uniform(0.1, 0.8, count)
        q = root.T @ draw.normal(size=rank)
        known = draw.choice([-1.0, 0.0, 1.0], count) if number % 2 else np.zeros(count)
        found = np.array(solve(0.0, [*W.ravel(), *q, *mu, *known], [], []))
        law = contact_friction_modes._ContactComplementarityProblem(
            W, q, tuple(range(count)), mu, np.zeros(count), known
        )
        try:
            other = contact_friction_modes._solve_contact_modes(law, np.ones(count, dtype=bool), "them", 0.0)
        except ValidationError:
            assert min(found[-2:]) <= 0.0
            reported += 1
            continue
        assert min(found[-2:]) > 0.0
        parts = found[:n]
        assert root @ parts == pytest.approx(root @ other.contact_unknowns, abs=1e-7 * max(1.0, np.abs(parts).max()))
        y = q + W @ parts
        size = 1e-8 * (1.0 + np.abs(q).sum() + np.abs(W).max() * np.abs(parts).max())
        normal, along = parts[:count], parts[count:]
        assert (y[:count] > -size).all()
        assert (normal > -size).all()
        assert np.abs(normal * y[:count]).max() < size * (1.0 + np.abs(normal).max())
        assert (np.abs(along) <= mu * normal + size).all()
        senses = np.where(known != 0.0, known, np.sign(y[count:]) * (np.abs(y[count:]) > size))
        moving = (senses != 0.0) & (normal > size)
        assert along[moving] == pytest.approx(-(mu * senses * normal)[moving], abs=size)
    assert reported < 20


# --- what is wrong is reported ----------------------------------------------------------------------------------------

SPEED, OTHER = me.dynamicsymbols("u w")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"friction": -0.1, "slip": SPEED}, "friction is -0.1"),
        ({"friction": 0.3}, "it has friction, and no slip"),
        ({"slip": SPEED}, "it has a slip, and no friction"),
        ({"slip": SPEED, "friction": 0}, "it has a slip, and no friction"),
        ({"slip": SPEED * OTHER, "friction": 0.3}, "is not linear in the speeds"),
        (
            {"slip": sm.sqrt(SPEED**2 + OTHER**2), "friction": 0.3},
            "is not linear in the speeds\n.*one tangent: .* plane",
        ),
        ({"slip": (SPEED, OTHER), "friction": 0.3}, "several components\n.*in space take Contact"),
        ({"slip": SPEED * me.ReferenceFrame("N").x, "friction": 0.3}, "several components\n.*in space take Contact"),
        ({"slip": "u", "friction": 0.3}, "its slip, u, is no expression"),
        ({"slip": me.dynamicsymbols("x"), "friction": 0.3}, "contains no speed"),
        ({"slip": me.dynamicsymbols("x").diff(), "friction": 0.3}, "the slip of wall contains Derivative"),
    ],
)
def test_faults_are_reported(arguments, words):
    model = body("Ball", 0.1, 1.0, friction=0.3)
    model.add(Impact("wall", me.dynamicsymbols("x") + 1, **arguments))
    with pytest.raises(ModelError, match=words):
        check_model(model)


def test_too_many_contacts_are_reported():
    model = body("Ball", 0.1, 1.0, friction=0.3)
    for name in ("left", "right", "top"):
        model.add(Impact(name, me.dynamicsymbols("x") + 1))
    with pytest.raises(ModelError, match="4 contacts are too many where one has friction"):
        check_model(model)


def test_a_slip_that_constraints_hold_is_reported():
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    particle = me.Particle("particle", P, 1)
    kane = me.KanesMethod(
        N, [y], [v], [x.diff() - u, y.diff() - v], q_dependent=[x], u_dependent=[u],
        configuration_constraints=[x - 1], velocity_constraints=[u], bodies=[particle],
    )  # fmt: skip
    model = Model("Rail", kane)
    model.coordinate(y, 0.0, "m")
    model.coordinate(x, 1.0, "m", kind="guess")
    model.speed(v, 0.0, "m/s")
    model.speed(u, 0.0, "m/s", kind="guess")
    model.add(Impact("floor", y, slip=u, friction=0.3))
    model.experiment(stop=1.0, step=0.1)
    with pytest.raises(MechanismError, match="the constraints hold the slip of floor"):
        derive(model)


@pytest.mark.parametrize("joined", [False, True])
def test_a_slip_that_is_a_multiple_of_the_rate_of_the_gap_is_reported(joined):
    """The tip of a lever: seen as an error of the unit, whose matrix of normal force and friction is singular."""
    q, u, s, v = me.dynamicsymbols("q u s v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, u * N.z)
    P = O.locatenew("P", -A.y)
    P.v2pt_theory(O, N, A)
    bob = me.Particle("bob", P, 1)
    if joined:  # by a rod that slides with it
        kane = me.KanesMethod(
            N, [q], [u], [q.diff() - u, s.diff() - v], q_dependent=[s], u_dependent=[v],
            configuration_constraints=[s - sm.sin(q)], velocity_constraints=[v - u * sm.cos(q)], bodies=[bob],
        )  # fmt: skip
    else:
        kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[bob])
    model = Model("Lever", kane)
    model.coordinate(q, -0.5, "rad")
    model.speed(u, 0.0, "rad/s")
    if joined:
        model.coordinate(s, -0.5, "m", kind="guess")
        model.speed(v, 0.0, "m/s", kind="guess")
    model.add(Impact("wall", sm.Rational(1, 10) - sm.sin(q), slip=P.vel(N).dot(N.y), friction=0.3))
    with pytest.raises(MechanismError, match="the slip of wall is a multiple of the rate of its gap") as error:
        read_mechanism(check_model(model))
    assert "leave slip and friction out" in str(error.value)


@pytest.mark.parametrize("angle", [0.0, *by_night(0.01)])
def test_a_contact_that_starts_open_where_its_rows_vanish_or_are_parallel(angle: float) -> None:
    """A double pendulum that stands stretched above a floor: the rows of its tip's gap and slip are one, or 0.

    Energy falls in the strike alone, whose impulses are in the cone of friction.
    """
    q, u = me.dynamicsymbols("q1:3"), me.dynamicsymbols("u1:3")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    points = [O]
    for k in range(2):
        A = N.orientnew(f"A{k}", "Axis", (q[k], N.z))
        A.set_ang_vel(N, u[k] * N.z)
        points.append(points[-1].locatenew(f"P{k}", A.y))
        points[-1].v2pt_theory(points[-2], N, A)
    middle, tip = points[1:]
    bobs = [me.Particle("a", middle, 1), me.Particle("b", tip, 1)]
    rates = [q[k].diff() - u[k] for k in range(2)]
    weights = [(middle, -G * N.y), (tip, -G * N.y)]
    model = Model("Stands", me.KanesMethod(N, q, u, rates, bodies=bobs, forcelist=weights))
    for k, start in enumerate((2.0, 1.0)):
        model.coordinate(q[k], angle, "rad")
        model.speed(u[k], start, "rad/s")
    gap = tip.pos_from(O).dot(N.y) + 1.5
    model.add(Impact("floor", gap, slip=tip.vel(N).dot(N.x), friction=0.3, restitution=0.5))
    model.output("gap", gap, "m")
    energy = sum(sm.Rational(1, 2) * p.vel(N).magnitude() ** 2 + G * p.pos_from(O).dot(N.y) for p in (middle, tip))
    model.output("energy", energy, "J")
    model.experiment(stop=1.5, step=0.01)
    run = simulate(model)
    strikes = np.array(run["floor.impacts"])
    assert strikes[0] == 0
    assert strikes[-1] > 0
    assert min(run["gap"]) > -1e-9
    first = int(np.argmax(strikes > 0))
    assert run["energy"][:first] == pytest.approx(run["energy"][0], rel=1e-5)
    assert run["energy"][first] < run["energy"][0] - 0.1
    assert abs(run["floor.impulse_along"][first]) <= 0.3 * run["floor.impulse"][first] * (1 + 1e-9)
