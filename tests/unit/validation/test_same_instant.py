"""What several do at one instant, or to one motion: frictions that share it, impacts beside a model's own events."""

from __future__ import annotations

import fmpy
import lines
import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import particle, reference_of
from hypothesis import example, given, settings
from hypothesis import strategies as st
from representatives import by_night

from mb2fmu import CoulombFriction, Impact, Latch, derive, export, pre, sticking_sign
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.events import convert_switches_to_modes, list_program_switches
from mb2fmu.validation.modes.coupled_holding_forces import solve_coupled_holding_forces

t = lines.t
KINDS = ["CoSimulation", "ModelExchange"]


def moved(unit, kind: str, stop: float, step: float):
    return fmpy.simulate_fmu(str(unit), fmi_type=kind, stop_time=stop, output_interval=step, relative_tolerance=1e-9)


# --- frictions that hold one motion ----------------------------------------------------------------------------------


def feet():
    """A body on two feet, 1 N and 2 N while they slide, 1.5 N and 3.6 N before, pushed by t / 2."""
    model, N, O, (P,) = lines.masses("Feet", [(0.0, 1.0)], lambda _: [t / 2])
    model.add(CoulombFriction("hind", (O, P, N.x), kinetic=1.0, static=1.5))
    model.add(CoulombFriction("fore", (O, P, N.x), kinetic=2.0, static=3.6))
    model.experiment(stop=11.0, step=0.5, tolerance=1e-9)
    return model


def test_feet_share_what_they_hold_and_let_go_together():
    """At rest where 1 - 3 t + t²/4 = 0; torn off where t / 2 is 1.5 N + 3.6 N."""
    found = reference_of(feet())
    assert [event.time for event in found.events] == pytest.approx([6 - np.sqrt(32), 10.2], abs=1e-12)
    at = found.trajectory.column
    row = found.trajectory.values[10]  # 5 s: 2.5 N in proportion to 1.5 and 3.6
    assert [row[at("hind.force")], row[at("fore.force")]] == pytest.approx([-2.5 * 1.5 / 5.1, -2.5 * 3.6 / 5.1])


@pytest.fixture(scope="module")
def on_feet(tmp_path_factory):
    return export(feet(), tmp_path_factory.mktemp("feet")).path


@pytest.mark.parametrize("kind", KINDS)
def test_the_fmu_on_feet_does_so(on_feet, kind):
    found = moved(on_feet, kind, 11.0, 0.25)
    held = found[(found["time"] > 0.35) & (found["time"] < 10.1)]
    assert np.max(np.abs(held["v1"])) < 1e-12
    assert set(held["hind.sticking"]) == set(held["fore.sticking"]) == {1.0}
    assert held["hind.force"] == pytest.approx(-held["time"] / 2 * 1.5 / 5.1, rel=1e-9)
    assert found["v1"][-1] == pytest.approx((11**2 - 10.2**2) / 4 - 3 * 0.8, rel=1e-6)


@settings(max_examples=15)
@given(st.floats(0.01, 100.0), st.floats(0.01, 100.0), st.floats(1.0, 3.0), st.floats(1.0, 3.0), st.floats(-1.0, 1.0))
@example(63.0, 0.0625, 1.0, 1.0, 1.0)
@example(0.01, 100.0, 1.0, 3.0, 0.5)
def test_any_two_share_in_proportion_to_what_they_hold(first, second, one, other, pull):
    """By the elimination with filters, and by the group inverse of the reference: B = -[[F, G], [F, G]] / m.

    In closed form: factors are as the limits, each at least a thousandth of |(F, G)| over its own force (what can take
    next to nothing of what others can, such as an open clutch, is taken for more), and F σ + G σ' is the pull.
    """
    frozen, names = shared()
    m = [0.0] * len(names)
    p = (first, one, second, other, pull)
    factors = make_evaluator(frozen, "surfaces")(0.0, [0.0, 0.0], (), p, m)[-2:]
    size = np.hypot(first, second)
    parts = {"v": max(one, 1e-3 * size / first), "2*v": max(other, 1e-3 * size / second)}
    whole = first * parts["v"] + second * parts["2*v"]
    for name, factor in zip(names, factors, strict=True):
        assert factor == pytest.approx(pull * parts[name] / whole, rel=1e-8, abs=1e-14)
    assert make_evaluator(frozen, "rhs")(0.0, [0.0, 0.0], (), p, m)[1] == pytest.approx(0.0, abs=1e-14 * whole)
    B = -np.array([[first, second], [2 * first, 2 * second]])
    own = solve_coupled_holding_forces(B, -pull * np.array([1.0, 2.0]), np.array([one, other]))
    assert own == pytest.approx([pull * parts["v"] / whole, pull * parts["2*v"] / whole], rel=1e-8, abs=1e-14)


_SHARED = []


def shared():
    """Two signs of one speed, with different limits: the second looks at twice the speed."""
    if not _SHARED:
        F, f, G, g, pull = sm.symbols("F f G g pull", positive=True)
        model, *_ = particle(0.0, 0.0, lambda _, v: pull - F * sticking_sign(v, f) - G * sticking_sign(v, g))
        for symbol in (F, f, G, g, pull):
            model.parameter(symbol, 1.5)
        frozen = convert_switches_to_modes(derive(model).program)
        _SHARED.append((frozen, [switch.name for switch in list_program_switches(frozen)]))
    return _SHARED[0]


def test_three_that_hold_two_motions_leave_nothing_to_chance():
    """Redundant and not in proportion; a clutch that is open counts for nothing, and is no part of the others' rank."""
    G = np.array([[1.0, -1.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    B = -G @ np.diag([2.0, 0.5]) @ G.T @ np.diag([4.0, 2.0, 5.0, 1e-10])
    right = -G @ np.array([3.0, -1.0])
    found = solve_coupled_holding_forces(B, right, np.ones(4))
    assert B @ found == pytest.approx(right, abs=1e-12)
    assert solve_coupled_holding_forces(B[:2, :2], right[:2], np.ones(2)) == pytest.approx(
        np.linalg.solve(B[:2, :2], right[:2])
    )
    equal = -G @ np.diag([2.0, 0.5]) @ G.T @ np.diag([4.0, 2.0, 5.0, 1.0])
    assert equal @ solve_coupled_holding_forces(equal, right, np.ones(4)) == pytest.approx(right, abs=1e-12)
    with pytest.raises(np.linalg.LinAlgError, match="holds what is driven"):
        solve_coupled_holding_forces(equal, right + np.array([0.0, 1.0, 0.0, 0.0]), np.ones(4))


# --- events of the model's own at the instant of an impact -----------------------------------------------------------


def slowed(late: bool):
    """A ball that is slowed to half its speed as it touches the ground, which reflects 0.8 of that."""
    model, x, v = particle(1.22625, 0.0, lambda *_: -sm.Float(9.81))
    if late:
        model.add(Impact("ground", x, restitution=0.8, rest_below=0.01))
    model.when(x <= 0, {v: pre(v) / 2}, name="hit")
    if not late:
        model.add(Impact("ground", x, restitution=0.8, rest_below=0.01))
    return model


@pytest.mark.parametrize("late", [False, True])
def test_an_impact_sees_what_an_event_of_the_same_instant_has_set(tmp_path, late):
    """Whichever was declared first: v = -4.905, -2.4525, 1.962."""
    found = reference_of(slowed(late))
    after = 0.8 * 4.905 / 2
    wanted = after * 0.3 - 9.81 * 0.3**2 / 2
    column = found.trajectory.column("x")
    assert found.trajectory.values[-1, column] == pytest.approx(wanted, rel=1e-11)
    if late:  # one order in the FMU, too: the other goes through the same lines
        return
    unit = export(slowed(late), tmp_path).path
    for kind, accuracy in zip(KINDS, (1e-9, 1e-6), strict=True):
        assert moved(unit, kind, 0.8, 0.05)["x"][-1] == pytest.approx(wanted, rel=accuracy)


def test_a_latch_sees_it_too():
    """Two carts meet as the second is set to 1 m/s: they go on together at the mean."""
    model, *_ = lines.masses("Carts", [(0.0, 2.0), (1.0, 0.0)], lambda _: [sm.S.Zero] * 2)
    x1, _, x2, v2 = (item.symbol for item in model.declared[:4])
    model.add(Latch("coupling", x2 - x1, close=x2 - x1 <= 0, within=None))
    model.when(x2 - x1 <= 0, {v2: pre(v2) + 1}, name="kick")
    model.experiment(stop=0.8, step=0.05, tolerance=1e-8)
    found = reference_of(model).trajectory
    assert [found.values[-1, found.column(name)] for name in ("v1", "v2")] == pytest.approx([1.5, 1.5], abs=1e-11)
    assert found.values[-1, found.column("coupling.impulse")] == pytest.approx(0.5, abs=1e-11)


# --- values that are set exactly upon a surface ----------------------------------------------------------------------


def counting():
    """Counts at 0 s, 0.1 s, … and begins again as it reaches 3; when it is reset to 0 a flag says so."""
    n, rounds, empty = me.dynamicsymbols("n rounds empty")
    model, _, _ = particle(1.0, 0.0, lambda *_: sm.Integer(-1))
    model.discrete(n, 1.0)
    model.discrete(rounds, 0.0)
    model.discrete(empty, 0.0)
    model.every(0.1, {n: pre(n) + 1})
    model.when(n >= 3, {n: 0, rounds: pre(rounds) + 1}, name="full")
    model.when(n <= 0, {empty: pre(empty) + 1}, name="begins again")
    model.experiment(stop=1.0, step=0.05, tolerance=1e-8)
    return model


def counted(points) -> list[tuple[float, float, float]]:
    """n, rounds and how often it was 0, by hand: the first instant makes n 2, the second 0."""
    made = [1 + int(np.floor(10 * point + 1e-6)) for point in points]
    return [((k + 1) % 3, (k + 1) // 3, (k + 1) // 3) for k in made]


BETWEEN = slice(1, None, 2)  # 0.05 s, 0.15 s, …: between the instants


def test_a_counter_that_is_set_upon_its_limit_has_reached_it():
    found = reference_of(counting()).trajectory
    rows = found.values[BETWEEN][:, [found.column(name) for name in ("n", "rounds", "empty")]]
    assert [tuple(row) for row in rows.tolist()] == counted(found.time[BETWEEN])


@pytest.mark.parametrize("fmi", [*by_night("2"), "3"])
def test_the_counter_in_the_fmu_has_reached_it(tmp_path, fmi):
    unit = export(counting(), tmp_path, fmi=fmi).path
    for kind in KINDS:
        found = moved(unit, kind, 1.0, 0.05)
        points = np.arange(0.05, 1.0, 0.1)
        at = [int(np.flatnonzero(np.abs(found["time"] - point) < 1e-9)[-1]) for point in points]
        assert [(found["n"][i], found["rounds"][i], found["empty"][i]) for i in at] == counted(points)
