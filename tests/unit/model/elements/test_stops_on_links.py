"""Rigid stops of links in a chain and in a loop, against motions that are written by hand and run by SciPy alone.

At each blow the identity of energy holds: what is lost is (1 - e^2) v^2 m / 2, with the rate v of the gap before it and
the mass m that the stop meets, 1 / (G J), where J is the answer of the speeds to G with the rows of the loop held.
"""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_runs import run_with_events
from mechanisms import closed_mechanism_of
from representatives import by_night
from scipy.integrate import solve_ivp

from mb2fmu import HardStop, Impact, Model, derive, export
from mb2fmu.errors import ValidationError
from mb2fmu.mechanics import formulations
from mb2fmu.model import load
from mb2fmu.model.scales import switching_function_scales
from mb2fmu.model.scales.switching_function_scales import estimate_switching_scales
from mb2fmu.validation.reference.reference_run import make_reference

MODELS = Path(__file__).parents[4] / "models"
G = 9.81
SLOWEST = 1e-3  # rad/s: below it stops hold what strikes them
SOLVER = {"method": "DOP853", "rtol": 1e-13, "atol": 1e-14}


def events_of(slope, start, stop, gap, **others) -> tuple[float, np.ndarray, int]:
    """The first of these events, as (time, state, its number); the end, as number -1."""
    watched = [lambda t, y, f=f: f(t, y) for f in (gap, *others.get("more", ()))]
    for each in watched:
        each.terminal, each.direction = True, -1
    run = solve_ivp(slope, (others.get("begin", 0.0), stop), start, events=watched,
                    max_step=others.get("longest", 0.02), **SOLVER)  # fmt: skip
    came = [k for k, times in enumerate(run.t_events) if len(times)]
    return run.t[-1], run.y[:, -1], came[0] if came else -1


def reference_of(model: Model):
    mechanism = closed_mechanism_of(model)
    return make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))


def rows_of(run, counter: str) -> np.ndarray:
    """Rows just before each blow: the next one counts one more."""
    return np.flatnonzero(np.diff(run.found[counter]) == 1.0)


# --- a double pendulum of rods, whose elbow does not bend back --------------------------------------------------------

M1, M2, L1, L2 = 1.0, 0.8, 1.0, 0.7


def arm(e: float) -> Model:
    m1, m2, l1, l2 = (sm.Float(value) for value in (M1, M2, L1, L2))
    q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
    ground = me.RigidBody("ground")
    upper, lower = me.RigidBody("upper", mass=m1), me.RigidBody("lower", mass=m2)
    upper.central_inertia = me.inertia(upper.frame, 0, 0, m1 * l1**2 / 12)
    lower.central_inertia = me.inertia(lower.frame, 0, 0, m2 * l2**2 / 12)
    system, z = me.System.from_newtonian(ground), ground.z
    shoulder = me.PinJoint("shoulder", ground, upper, q1, u1, child_point=l1 / 2 * upper.y, joint_axis=z)
    elbow = me.PinJoint(
        "elbow", upper, lower, q2, u2, parent_point=-l1 / 2 * upper.y, child_point=l2 / 2 * lower.y, joint_axis=upper.z
    )
    system.add_joints(shoulder, elbow)
    system.apply_uniform_gravity(-G * ground.y)
    model = Model("Arm", system)
    for symbol, value in ((q1, 1.0), (q2, 0.9)):
        model.coordinate(symbol, value, "rad")
    for symbol in (u1, u2):
        model.speed(symbol, 0.0, "rad/s")
    model.add(HardStop("stop", elbow, restitution=e, lower=0.0, rest_below=SLOWEST))
    model.experiment(stop=2.5, step=0.02, tolerance=1e-9)
    return model


def matrix_of(bend: float) -> np.ndarray:
    """Mass matrix of the turns from the vertical, which differ by the bend of the elbow."""
    side = M2 * L1 * L2 / 2 * np.cos(bend)
    return np.array([[M1 * L1**2 / 3 + M2 * L1**2, side], [side, M2 * L2**2 / 3]])


def efforts_of(y: np.ndarray) -> np.ndarray:
    a, b, v, w = y
    swing = M2 * L1 * L2 / 2 * np.sin(a - b)
    return np.array([-swing * w**2 - (M1 / 2 + M2) * G * L1 * np.sin(a), swing * v**2 - M2 * G * L2 / 2 * np.sin(b)])


def free(_: float, y: np.ndarray) -> np.ndarray:
    return np.array([*y[2:], *np.linalg.solve(matrix_of(y[1] - y[0]), efforts_of(y))])


def straight(_: float, y: np.ndarray) -> np.ndarray:
    turn = efforts_of(y).sum() / matrix_of(0.0).sum()
    return np.array([*y[2:], turn, turn])


def push(_: float, y: np.ndarray) -> float:
    """What the stop pushes the lower rod with while the elbow is straight."""
    return float(matrix_of(0.0)[1].sum() * straight(0.0, y)[2] - efforts_of(y)[1])


def blows_by_hand(e: float, stop: float) -> list[tuple[float, float]]:
    """(time, impulse) of each blow; (time, 0) where the elbow begins to bend again."""
    t, y, resting = 0.0, np.array([1.0, 1.9, 0.0, 0.0]), False
    found = []
    while True:
        longest = 0.02
        if not resting and y[3] - y[2] > 1e-6:  # behind a blow: it may be back soon
            turns = free(t, y)
            longest = min(longest, 0.3 * (y[3] - y[2]) / max(turns[2] - turns[3], 1e-9))
        slope, gap = (straight, push) if resting else (free, lambda _, y: y[1] - y[0] + 1e-13)
        t, y, came = events_of(slope, y, stop, gap, begin=t, longest=longest)
        if came < 0:
            return found
        if resting:
            found.append((t, 0.0))
            resting = False
            y[1] = y[0]
            continue
        row = np.array([-1.0, 1.0])
        answer = np.linalg.solve(matrix_of(0.0), row)
        rate = row @ y[2:]
        slow = -e * rate < SLOWEST
        impulse = -(1.0 if slow else 1.0 + e) * rate / (row @ answer)
        y[1], y[2:] = y[0], y[2:] + answer * impulse
        resting = bool(slow and push(t, y) > 0.0)  # what would have to pull lets go at once
        found.append((t, impulse))


@pytest.fixture(scope="module", params=[0.5, pytest.param(0.0, marks=pytest.mark.repeats)])
def elbow(request):
    e = request.param
    return e, arm(e), blows_by_hand(e, 2.5)


@pytest.mark.repeats  # by day a rocker, in a loop
def test_the_reference_strikes_the_elbow_as_by_hand(elbow):
    e, model, wanted = elbow
    reference = reference_of(model)
    impulse = list(reference.state_columns).index(reference.trajectory.column("stop.lower_stop.impulse"))
    blows = [event for event in reference.events if event.states[0][impulse] != event.states[1][impulse]]
    struck = [(t, size) for t, size in wanted if size]
    assert len(struck) >= (10 if e else 1)
    assert [event.time for event in blows] == pytest.approx([t for t, _ in struck], rel=1e-8)
    assert [event.states[1][impulse] for event in blows] == pytest.approx(
        [size for _, size in struck], rel=1e-8, abs=1e-9
    )
    opened = [event.time for event in reference.events if event.name.endswith("opens")]
    assert opened == pytest.approx([t for t, size in wanted if not size], rel=1e-8)
    assert len(opened) == 1


def test_the_fmu_strikes_the_elbow_as_by_hand(elbow, tmp_path):
    e, model, wanted = elbow
    names = ["q1", "q2", "u1", "u2", "stop.lower_stop.impulse", "stop.lower_stop.impacts", "stop.lower_stop.resting"]
    run = run_with_events(str(export(model, tmp_path, fmi="3").path), "CoSimulation", 2.5, 0.02, names)
    at = rows_of(run, "stop.lower_stop.impacts")
    struck = [(t, size) for t, size in wanted if size]
    assert run.found["time"][at] == pytest.approx([t for t, _ in struck], rel=1e-7)
    assert run.found["stop.lower_stop.impulse"][at + 1] == pytest.approx(
        [size for _, size in struck], rel=1e-7, abs=1e-7
    )
    for row in at:
        bend, v0, v1 = (run.found[name][[row, row + 1]] for name in ("q2", "u1", "u2"))
        speeds = np.array([v0, v0 + v1])  # of the turns from the vertical
        matrix, normal = matrix_of(bend[0]), np.array([-1.0, 1.0])
        held = run.found["stop.lower_stop.resting"][row + 1]
        kept = 0.0 if held else e
        energy = [0.5 * speeds[:, k] @ matrix @ speeds[:, k] for k in (0, 1)]
        mass = 1.0 / (normal @ np.linalg.solve(matrix, normal))
        lost = 0.5 * (1.0 - kept**2) * v1[0] ** 2 * mass
        assert energy[0] - energy[1] == pytest.approx(lost, rel=1e-11, abs=1e-14 * energy[0])
        assert v1[1] == pytest.approx(-kept * v1[0], rel=1e-12, abs=1e-14)


# --- a four-bar linkage whose rocker meets a stop ---------------------------------------------------------------------

LA, LB, LC, LN, STOP = 0.8, 2.0, 1.0, 2.0, -1.8


def across(x: float) -> np.ndarray:
    return np.array([-np.sin(x), np.cos(x)])


def along(x: float) -> np.ndarray:
    return np.array([np.cos(x), np.sin(x)])


def rocker(crank: float) -> tuple[float, float, float]:
    """(turn of the rocker, its rate over the crank's, and what that changes by with the crank's turn)."""
    c = LA * along(crank) - [LN, 0.0]
    far = np.hypot(*c)
    turn = np.arctan2(c[1], c[0]) % (2 * np.pi) + np.arccos((LB**2 - far**2 - LC**2) / (2 * LC * far)) - 2 * np.pi
    link = c + LC * along(turn)
    k = -LA * (link @ across(crank)) / (LC * (link @ across(turn)))
    rate = LA * across(crank) + LC * k * across(turn)
    bend = (-rate @ rate + link @ (LA * along(crank) + LC * k**2 * along(turn))) / (LC * (link @ across(turn)))
    return turn, k, bend


def linkage(e: float) -> Model:
    model = load(MODELS / "four_bar.py")
    model.add(Impact("stop", STOP - sum(model.mechanics.q), restitution=e, unit="rad", rest_below=SLOWEST))
    model.experiment(stop=3.0, step=0.02, tolerance=1e-9, signals={me.dynamicsymbols("torque"): 0.0})
    return model


def crank_by_hand(_: float, y: np.ndarray) -> list[float]:
    turn, k, bend = rocker(y[0])
    mass = LA**2 + LC**2 * k**2
    weight = G * (LA * np.cos(y[0]) - LC * k * np.cos(turn))
    return [y[1], -(weight + LC**2 * k * bend * y[1] ** 2) / mass]


def loop_blows(e: float, stop: float) -> list[tuple[float, float]]:
    """(time, impulse) of each blow until the rocker rests: all that moves has one freedom, and is turned round."""
    t, y, found = 0.0, np.array([0.17453292519943295, 0.0]), []
    gap = lambda _, y: STOP - rocker(y[0])[0]  # noqa: E731
    longest = 0.02
    while True:
        t, y, came = events_of(crank_by_hand, y, stop, gap, begin=t, longest=longest)
        if came < 0:
            return found
        _, k, _ = rocker(y[0])
        rate = -k * y[1]
        resting = -e * rate < SLOWEST
        found.append((t, -(1.0 if resting else 1.0 + e) * rate * (LA**2 + LC**2 * k**2) / k**2))
        if resting:
            return found
        y[1] *= -e
        away = crank_by_hand(t, y)[1]
        longest = min(0.02, 0.3 * abs(y[1] / away)) if away * y[1] < 0 else 0.02


@pytest.fixture(scope="module")
def known():
    return {e: loop_blows(e, 3.0) for e in (0.5, 0.0)}


@pytest.mark.parametrize("e", [0.5, *by_night(0.0)])
def test_the_reference_strikes_the_rocker_as_by_hand(known, e):
    reference = reference_of(linkage(e))
    impulse = list(reference.state_columns).index(reference.trajectory.column("stop.impulse"))
    blows = [event for event in reference.events if event.states[0][impulse] != event.states[1][impulse]]
    n = len(known[e])
    assert n >= (5 if e else 1)
    assert [event.time for event in blows][:n] == pytest.approx([t for t, _ in known[e]], rel=1e-8)
    assert [event.states[1][impulse] for event in blows][:n] == pytest.approx(
        [size for _, size in known[e]], rel=1e-8, abs=1e-9
    )


# By multipliers, blows in a loop are held to the attractor's by day in test_every_way.
WAYS = [*itertools.product((0.5, 0.0), ("attractor", "explicit", "multipliers"))]


@pytest.mark.repeats  # by day: the reference strikes it, the FMU strikes the elbow
@pytest.mark.parametrize(("e", "way"), WAYS)
def test_fmus_strike_the_rocker_as_by_hand(known, e, way, tmp_path):
    names = ["q1", "q2", "q3", "u1", "u2", "u3", "stop.impulse", "stop.impacts", "stop.resting"]
    path = export(linkage(e), tmp_path, fmi="3", constraints=way).path
    run = run_with_events(str(path), "CoSimulation", 3.0, 0.02, names)
    at, wanted = rows_of(run, "stop.impacts"), known[e]
    at = at[: len(wanted)]
    assert run.found["time"][at] == pytest.approx([t for t, _ in wanted], rel=1e-7)
    assert run.found["stop.impulse"][at + 1] == pytest.approx([size for _, size in wanted], rel=1e-7, abs=1e-7)
    for row in at:
        turns = np.cumsum([run.found[name][row] for name in names[:3]])
        before, behind = (np.cumsum([run.found[name][k] for name in names[3:6]]) for k in (row, row + 1))
        closing = np.column_stack([f * across(x) for f, x in zip((LA, LB, LC), turns, strict=True)])
        jump = behind - before if way == "multipliers" else behind  # there the rows hold as well as they are integrated
        assert np.abs(closing @ jump).max() < 1e-12
        drift = 2e-10 if way == "multipliers" else 1e-12  # m/s: its rows hold as well as they are integrated
        assert np.abs(closing @ behind).max() < drift
        side = LA * LB * np.cos(turns[0] - turns[1])
        mass, normal = np.array([[2 * LA**2, side, 0], [side, LB**2, 0], [0, 0, 0]]), np.array([0, 0, -1.0])
        whole = np.block([[mass, closing.T], [closing, np.zeros((2, 2))]])
        answer = np.linalg.solve(whole, [*normal, 0, 0])[:3]
        kept = 0.0 if run.found["stop.resting"][row + 1] else e
        rate = normal @ before
        impulse = -(1.0 + kept) * rate / (normal @ answer)
        assert behind == pytest.approx(before + answer * impulse, rel=1e-10, abs=1e-12)
        assert run.found["stop.impulse"][row + 1] == pytest.approx(impulse, rel=1e-10)
        lost = 0.5 * (before @ mass @ before - behind @ mass @ behind)
        drift = 1e-11 if way == "multipliers" else 1e-13  # J: what the rows err by before the blow takes part in it
        assert lost == pytest.approx(0.5 * (1 - kept**2) * rate**2 / (normal @ answer), rel=1e-9, abs=drift)


def test_a_start_inside_of_the_stop_is_reported():
    """The rocker starts at -2.35285 rad: beyond a stop at -2.4 rad."""
    model = load(MODELS / "four_bar.py")
    model.add(Impact("stop", -sm.Float(2.4) - sum(model.mechanics.q), restitution=0.5, unit="rad"))
    with pytest.raises(ValidationError, match=r"the gap of stop is -0\.04715\d* at the start"):
        reference_of(model)


def test_loops_that_do_not_close_at_tried_numbers_have_sizes(monkeypatch):
    """Sizes of switches are found where the loop starts: that of a gap is about a thousandth of a metre here."""
    model = load(MODELS / "four_bar.py")
    lengths = {"la", "lb", "lc", "ln"}
    model.declared = [
        dataclasses.replace(item, value=item.value / 1024, minimum=None) if item.name in lengths else item
        for item in model.declared
    ]
    la, lb = sm.symbols("la lb", positive=True)
    q1, q2, _ = model.mechanics.q
    model.add(Impact("floor", la * sm.sin(q1) + lb * sm.sin(q1 + q2) + la, restitution=0.5))
    found = []
    monkeypatch.setattr(
        switching_function_scales,
        "estimate_switching_scales",
        lambda *reported: found.append(estimate_switching_scales(*reported)) or found[-1],
    )
    derive(model, constraints="attractor")
    assert any(2**-12 < size < 2**-8 for size in found[-1])
