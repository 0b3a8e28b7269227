"""FMUs whose contacts bounce, rest and open: published rows at any communication step; planted faults are caught."""

from __future__ import annotations

import dataclasses
from unittest.mock import patch

import fmpy
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import forget_events
from event_runs import run_with_events
from fmpy.fmi1 import FMICallException
from judging import Judge
from mechanisms import closed_mechanism_of

from mb2fmu import Impact, Model, export
from mb2fmu.compiler.lowering import contact_accelerations
from mb2fmu.fmu.package import read_archive
from mb2fmu.mechanics.equations.contact_equations import UnilateralContact
from mb2fmu.validation.reference.experiment_values import form_experiment_values
from mb2fmu.validation.runs.fmu_description_for_runs import read_fmu_description
from mb2fmu.validation.runs.fmu_run import run_fmu_process

pytestmark = pytest.mark.slow
RESTS = 2.49911331422462  # of a ball from 1 m with e = 0.7 that rests below 0.1 m/s: its 11th impact


def body(name: str, restitution: float, rest_below: float, ground: sm.Expr = sm.S.Zero, start: float = 1.0) -> Model:
    """A particle that falls upon a ground, which may move."""
    h, v = me.dynamicsymbols("h v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", h * N.y)
    P.set_vel(N, v * N.y)
    ball = me.Particle("ball", P, 2)
    kane = me.KanesMethod(N, [h], [v], [h.diff() - v], bodies=[ball], forcelist=[(P, -2 * sm.Float(9.81) * N.y)])
    model = Model(name, kane)
    model.coordinate(h, start, "m")
    model.speed(v, 0.0, "m/s")
    model.add(Impact("ground", h - ground, restitution=restitution, rest_below=rest_below))
    model.experiment(stop=3.0, step=0.2, tolerance=1e-9)
    return model


def ball(restitution: float = 0.7, rest_below: float = 0.1) -> Model:
    return body("Ball", restitution, rest_below)


def shaken() -> Model:
    """On a table that shakes so that it is thrown off, and falls back."""
    t = me.dynamicsymbols._t
    model = body("Shaken", 0.0, 0.01, sm.Rational(1, 10) * sm.sin(12 * t), start=0.0)
    model.experiment(stop=1.2, step=0.1, tolerance=1e-9)
    return model


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    return export(ball(), tmp_path_factory.mktemp("impacts")).path


@pytest.fixture(scope="module")
def shaken_unit(tmp_path_factory):
    return export(shaken(), tmp_path_factory.mktemp("shaken")).path


def moved(unit, kind: str, stop: float, step: float):
    return fmpy.simulate_fmu(
        str(unit), fmi_type=kind, stop_time=stop, output_interval=step, relative_tolerance=1e-9,
        output=["h", "v", "ground.impacts", "ground.resting", "ground.force", "ground.impulse"],
    )  # fmt: skip


@pytest.mark.parametrize(("step", "still"), [(0.05, 1e-11), (1.0, 1e-9)])
def test_a_ball_bounces_and_rests_at_any_communication_step(unit, step, still):
    found = moved(unit, "CoSimulation", 100.0, step)
    heights = np.interp([1.0, 2.0, 100.0], found["time"], found["h"])
    assert heights == pytest.approx([0.225059760719034, 0.0424335478026277, 0.0], abs=1e-10)
    assert found["ground.impacts"][-1] == 11
    back = 10.0**2 * found["h"][-1] + 2 * 10.0 * found["v"][-1]  # to round-off, by its stabilization
    assert found["ground.force"][-1] == pytest.approx(2 * (9.81 - back), rel=1e-14)
    assert found["ground.impulse"][-1] == pytest.approx(2 * 0.7**10 * np.sqrt(2 * 9.81), rel=1e-9)
    assert abs(found["v"][-1]) < still  # in steps as long as the method is stable for, what is left is the tolerance


def test_it_rests_at_the_instant_that_it_should(unit):
    for stop, resting in ((RESTS - 1e-10, 0), (RESTS + 1e-10, 1)):
        assert moved(unit, "CoSimulation", stop, stop)["ground.resting"][-1] == resting


def test_it_bounces_and_rests_in_model_exchange(unit):
    found = moved(unit, "ModelExchange", 4.0, 0.01)
    assert found["ground.impacts"][-1] == 11
    assert found["time"][np.flatnonzero(found["ground.resting"])[0]] == pytest.approx(
        RESTS, abs=1e-4
    )  # as CVODE finds eleven instants
    assert found["h"][-1] == pytest.approx(0.0, abs=1e-9)


def test_what_is_shaken_leaves_where_its_table_falls_faster(shaken_unit):
    """It leaves at sin(12 t) = g / (0.1 · 144), in free flight with the table's speed."""
    leaves = np.arcsin(9.81 / 14.4) / 12
    for stop, resting in ((leaves - 1e-6, 1), (leaves + 1e-6, 0.25)):
        assert moved(shaken_unit, "CoSimulation", stop, stop)["ground.resting"][-1] == resting
    found = moved(shaken_unit, "CoSimulation", leaves + 0.05, leaves + 0.05)
    height, speed = 0.1 * np.sin(12 * leaves), 1.2 * np.cos(12 * leaves)
    assert found["h"][-1] == pytest.approx(height + 0.05 * speed - 9.81 / 2 * 0.05**2, abs=1e-9)


@pytest.fixture(scope="module")
def lowered(tmp_path_factory):
    """Runs a ball that rests on a ground whose height is a parameter: where it is at 0.55, 0.6, … s, by kind and depth.

    The ground sinks at 0.5 s.
    """
    floor = sm.Symbol("floor")
    model = body("Lowered", 0.5, 1e-3, floor, start=0.0)
    model.parameter(floor, 0.0, "m")
    at_rest = [dataclasses.replace(d, start=1.0) if d.name == "ground.resting" else d for d in model.declared]
    model.declared = at_rest
    model.experiment(stop=2.0, step=0.05, tolerance=1e-9)
    path = export(model, tmp_path_factory.mktemp("lowered")).path
    experiment = form_experiment_values(closed_mechanism_of(model).declared)
    changed = [read_fmu_description(read_archive(path)).variables["floor"].reference]

    def run(kind: str, depth: float) -> np.ndarray:
        steps = [["begin", 0], ["steps", 0, 0, 10], ["tune", changed, [-depth]], ["steps", 0, 10, 40]]
        names = ["h", "ground.resting", "ground.impacts"]
        return np.array(
            run_fmu_process(path, [experiment], names, kind=kind, sessions={"low": steps}).recorded_values["low"][-1]
        )

    return run


@pytest.mark.parametrize("kind", ["CoSimulation", "ModelExchange"])
@pytest.mark.parametrize("depth", [1e-6, 0.1])
def test_a_ground_that_sinks_lets_go_what_rests_on_it(lowered, kind, depth):
    """It falls, strikes with the speed of that height, and bounces until it leaves the ground below 1 mm/s."""
    found = lowered(kind, depth)
    height = -min(9.81 / 2 * 0.05**2, depth)
    bounces = int(np.ceil(np.log(np.sqrt(2 * 9.81 * depth) / 1e-3) / np.log(2)))
    assert found[0, 0] == pytest.approx(height, rel=1e-4)
    assert found[-1].tolist() == pytest.approx([-depth, 1.0, bounces], rel=1e-7)


def test_a_ground_that_sinks_less_than_a_resting_contact_may_err_lets_nothing_go(lowered):
    """2e-7 m: 2/1000 of 1 mm/s over 10 / s. What rests is brought there by its stabilization, without a blow."""
    found = lowered("CoSimulation", 1.9e-7)
    assert found[-1].tolist() == pytest.approx([-1.9e-7, 1.0, 0.0], rel=1e-4)
    assert (found[:, 1] == 1.0).all()


def test_impacts_without_end_are_reported(tmp_path):
    """An elastic ball between two walls that both touch it goes to and fro at one instant."""
    model = body("Squeezed", 1.0, 1e-3, start=0.0)
    h = me.dynamicsymbols("h")
    room = sm.Symbol("room")
    model.parameter(room, 0.0, "m")
    model.add(Impact("ceiling", room - h, restitution=1.0))
    model.declared = [dataclasses.replace(item, start=-1.0) if item.name == "v" else item for item in model.declared]
    said: list[str] = []
    with pytest.raises(FMICallException):
        fmpy.simulate_fmu(
            str(export(model, tmp_path).path),
            fmi_type="CoSimulation",
            stop_time=1.0,
            debug_logging=True,
            logger=lambda *words: said.append(str(words)),
        )
    assert "impact of ground, ceiling" in " ".join(said)


# --- the validation
# --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def judge():
    return Judge()


def test_right_fmus_pass_and_their_events_are_those_of_the_series(judge, unit, shaken_unit):
    assert judge.passes(ball, unit)
    assert judge.passes(shaken, shaken_unit)
    times = [event.time for event in judge.reference(ball).events if event.sets_state]
    series = np.sqrt(2 / 9.81) * (1 + 2 * 0.7 * (1 - 0.7 ** np.arange(11)) / 0.3)
    assert times == pytest.approx(series, abs=1e-12)


@pytest.mark.repeats  # as in test_events
def test_a_wrong_restitution_is_caught(judge, tmp_path):
    assert not judge.passes(ball, export(ball(restitution=0.70001), tmp_path).path)


def test_a_bounce_more_is_caught(judge, tmp_path):
    assert not judge.passes(ball, export(ball(rest_below=0.08), tmp_path).path)


def test_a_contact_that_pulls_is_caught(judge, tmp_path):
    """Planted: the contact that would have to pull stays closed."""
    # It knows those of right contacts, and must not keep those of wrong ones.
    forget_events()
    try:
        with patch.object(UnilateralContact, "normal_force_margin", property(lambda c: 2 - c.resting)):
            path = export(shaken(), tmp_path).path
    finally:
        forget_events()
    assert not judge.passes(shaken, path)


def test_a_wrong_impulse_is_caught(judge, tmp_path):
    """Planted: an impulse that is larger by a hundred thousandth."""
    right = contact_accelerations.solve_sequential_impulses

    def wrong(b, blows):
        impulses, rests = right(b, blows)
        return [b.mul(b.constant(1.00001), impulse) for impulse in impulses], rests

    with patch.object(contact_accelerations, "solve_sequential_impulses", wrong):
        path = export(ball(), tmp_path).path
    assert not judge.passes(ball, path)


def bowl(push: sm.Expr | None = None, **options: float) -> Model:
    """A particle that slides to and fro in a round bowl without friction: its contact rests all the time.

    A push, an input in N, acts along N.x.
    """
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    loads = [(P, (push or 0) * N.x - sm.Float(9.81) * N.y)]
    rates = [x.diff() - u, y.diff() - v]
    kane = me.KanesMethod(N, [x, y], [u, v], rates, bodies=[me.Particle("ball", P, 1)], forcelist=loads)
    model = Model("InABowl", kane)
    if push is not None:
        model.input(push, 0.0, "N", name="F")
    for symbol, start in ((x, 0.6), (y, -0.8)):
        model.coordinate(symbol, start, "m")
    for symbol in (u, v):
        model.speed(symbol, 0.0, "m/s")
    model.add(Impact("wall", 1 - sm.sqrt(x**2 + y**2), rest_below=0.01, starts_resting=True, **options))
    model.experiment(stop=100.0, step=0.1, tolerance=1e-6)
    return model


@pytest.fixture(scope="module")
def sliding_unit(tmp_path_factory):
    return str(export(bowl(), tmp_path_factory.mktemp("bowl"), fmi="3").path)


def test_a_contact_that_rests_does_not_drift(sliding_unit, tmp_path):
    """Over 100 s and 49 swings; without stabilization, which is the default, the gap is lost by millimetres."""
    drift = {}
    without = str(export(bowl(stabilization=0.0), tmp_path, fmi="3").path)
    for rate, path in ((0.0, without), (10.0, sliding_unit)):
        names = ["x", "y", "wall.resting"]
        found = fmpy.simulate_fmu(path, stop_time=100.0, output_interval=1.0, output=names, relative_tolerance=1e-6)
        assert (found["wall.resting"] == 1.0).all()
        drift[rate] = np.abs(np.hypot(found["x"], found["y"]) - 1.0).max()
    assert drift[10.0] < 1e-6
    assert drift[0.0] > 30 * drift[10.0]


@pytest.mark.parametrize("tolerance", [1e-3, 1e-4, 1e-5])
def test_what_rests_on_a_curve_makes_no_events_of_an_importers_errors(sliding_unit, tolerance):
    """By CVODE with coarse tolerances, which drift by more than a contact may be struck with."""
    run = run_with_events(sliding_unit, "ModelExchange", 20.0, 0.1, ["x", "y", "wall.impacts"], tolerance)
    assert not len(run.events)
    assert run.found["wall.impacts"][-1] == 0.0
    assert np.abs(np.hypot(run.found["x"], run.found["y"]) - 1.0).max() < 10.0 * tolerance


@pytest.fixture(scope="module")
def pushed_unit(tmp_path_factory):
    return str(export(bowl(me.dynamicsymbols("F")), tmp_path_factory.mktemp("pushed"), fmi="3").path)


@pytest.mark.parametrize("pushed", [False, True], ids=["alone", "with_an_input"])
@pytest.mark.parametrize("tolerance", [1e-2, *(pytest.param(each, marks=pytest.mark.repeats) for each in (1e-3, 1e-4))])
def test_coarse_steps_strike_nothing_that_rests(pushed_unit, tolerance, pushed):
    """The FMU's own integration errs by more than a contact may be struck with; neither that nor an input opens it."""
    time = np.arange(0.0, 20.05, 0.1)
    signal = np.array([(t, pushed * 0.3 * np.sin(3.0 * t)) for t in time], dtype=[("t", float), ("F", float)])
    found = fmpy.simulate_fmu(
        pushed_unit, stop_time=20.0, output_interval=0.1, relative_tolerance=tolerance, input=signal,
        output=["x", "y", "wall.impacts", "wall.resting"],
    )  # fmt: skip
    assert found["wall.impacts"][-1] == 0.0
    assert (found["wall.resting"] == 1.0).all()
    assert np.abs(np.hypot(found["x"], found["y"]) - 1.0).max() < tolerance


def block_on_a_belt() -> Model:
    """A block that rests on a belt whose speed is an input."""
    x, y, u, v, belt = me.dynamicsymbols("x y u v belt")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    loads = [(P, -sm.Float(9.81) * N.y)]
    rates = [x.diff() - u, y.diff() - v]
    kane = me.KanesMethod(N, [x, y], [u, v], rates, bodies=[me.Particle("block", P, 1)], forcelist=loads)
    model = Model("OnABelt", kane)
    for symbol, unit in ((x, "m"), (y, "m"), (u, "m/s"), (v, "m/s")):
        (model.coordinate if unit == "m" else model.speed)(symbol, 0.0, unit)
    model.input(belt, 0.0, "m/s", name="belt")
    model.add(Impact("contact", y, starts_resting=True, slip=u - belt, friction=0.2))
    model.experiment(stop=1.0, step=0.05, tolerance=1e-6)
    return model


@pytest.fixture(scope="module")
def belt_unit(tmp_path_factory):
    return str(export(block_on_a_belt(), tmp_path_factory.mktemp("belt"), fmi="3").path)


@pytest.mark.parametrize("speed", [0.1, 1.0])
def test_an_input_that_moves_the_surface_breaks_the_block_loose(belt_unit, speed):
    """The belt jumps to a speed: the block gains 0.2 g t until it moves with the belt.

    Planted: an input that changes no condition; then a slip of 0.1 m/s fades as drift does, by the stabilization.
    """
    signal = np.array([(0.0, 0.0), (0.5, 0.0), (0.5, speed), (2.0, speed)], dtype=[("t", float), ("belt", float)])
    found = fmpy.simulate_fmu(belt_unit, stop_time=1.2, output_interval=0.01, relative_tolerance=1e-6, input=signal,
                              output=["u", "contact.resting"])  # fmt: skip
    assert found["u"] == pytest.approx(np.clip(0.2 * 9.81 * (found["time"] - 0.5), 0.0, speed), abs=1e-6)
    assert (found["contact.resting"] == 1.0).all()


def plank() -> Model:
    """A plank rests on two supports at -1 and 1 m; a stone falls upon it 2 m from its middle, beyond the right one."""
    y, turn, h, v, omega, w = me.dynamicsymbols("y turn h v omega w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    A = N.orientnew("A", "Axis", (turn, N.z))
    A.set_ang_vel(N, omega * N.z)
    O.set_vel(N, 0)
    middle, stone = O.locatenew("M", y * N.y), O.locatenew("S", 2 * N.x + h * N.y)
    middle.set_vel(N, v * N.y)
    stone.set_vel(N, w * N.y)
    bodies = [me.RigidBody("plank", middle, A, 1, (me.inertia(A, 0, 0, 1), middle)), me.Particle("stone", stone, 1)]
    loads = [(body.masscenter, -sm.Float(9.81) * N.y) for body in bodies]
    rates = [y.diff() - v, turn.diff() - omega, h.diff() - w]
    model = Model("Plank", me.KanesMethod(N, [y, turn, h], [v, omega, w], rates, bodies=bodies, forcelist=loads))
    for symbol, start, unit in ((y, 0.0, "m"), (turn, 0.0, "rad"), (h, 0.5, "m")):
        model.coordinate(symbol, start, unit)
    for symbol, unit in ((v, "m/s"), (omega, "rad/s"), (w, "m/s")):
        model.speed(symbol, 0.0, unit)
    laws = {"restitution": 0.0, "rest_below": 0.01, "order": "simultaneous"}
    model.add(Impact("left", y - turn, starts_resting=True, **laws))
    model.add(Impact("right", y + turn, starts_resting=True, **laws))
    model.add(Impact("stone", h - y - 2 * turn, **laws))
    model.experiment(stop=0.35, step=0.01, tolerance=1e-6)
    return model


@pytest.fixture(scope="module")
def plank_unit(tmp_path_factory):
    return str(export(plank(), tmp_path_factory.mktemp("plank"), fmi="3").path)


@pytest.mark.parametrize(("kind", "tolerance"), [("CoSimulation", 1e-6), ("ModelExchange", 1e-3)])
def test_what_an_impact_elsewhere_throws_off_leaves_at_once(plank_unit, kind, tolerance):
    """About the right support the moment of momentum stays: of plank and stone 3 kg.m2 omega, of the stone before."""
    contacts = ("left", "right", "stone")
    names = ["v", "omega", "w", *(f"{name}.resting" for name in contacts), *(f"{name}.impacts" for name in contacts)]
    run = run_with_events(plank_unit, kind, 0.35, 0.01, names, tolerance)
    assert run.events[-1] == pytest.approx(np.sqrt(1.0 / 9.81), abs=tolerance)
    behind = np.flatnonzero(run.found["time"] == run.events[-1])[-1]
    found = [run.found[name][behind] for name in names]
    omega = -np.sqrt(9.81) / 3.0
    assert found[:3] == pytest.approx([-omega, omega, omega], abs=tolerance)
    assert found[3:] == [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]
