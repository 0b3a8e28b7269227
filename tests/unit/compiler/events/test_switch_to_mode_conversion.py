"""Programs with modes: the same values where modes are right, margins that say so, and what is held."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from hypothesis import given, settings
from hypothesis import strategies as st

from mb2fmu import Impact, Model, derive, load, no_event
from mb2fmu.compiler import derivatives
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.events import convert_switches_to_modes, list_program_switches
from mb2fmu.compiler.program.scalar_program import ScalarProgram

x, v = me.dynamicsymbols("x v")
SWITCHING = {
    "abs": sm.Abs(x + v),
    "max": sm.Max(x, v, 1),
    "min": sm.Min(x, 2 * v),
    "step": sm.Heaviside(x - v),
    "piecewise": sm.Piecewise((x, x > v), (2 * v, sm.And(v > 0, x < -1)), (v**2, True)),
    "floor": sm.floor(3 * x) + sm.ceiling(2 * v),
    "mod": sm.Mod(x, 0.7) + sm.frac(v),
    "nested": sm.Abs(sm.Max(x, -v) - 1),
}


def program_of(
    force: sm.Expr, name: str = "Mass", parameters: dict[sm.Symbol, float] | None = None, **outputs: sm.Expr
) -> ScalarProgram:
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("mass", P, 2)], forcelist=[(P, force * N.x)])
    model = Model(name, kane)
    model.coordinate(x, 0.2, "m")
    model.speed(v, 0.0, "m/s")
    for symbol, value in (parameters or {}).items():
        model.parameter(symbol, value)
    for key, expression in outputs.items():
        model.output(key, expression)
    return derive(model).program


@pytest.fixture(scope="module")
def switching() -> tuple[ScalarProgram, ScalarProgram]:
    program = program_of(-x, **SWITCHING)
    return program, convert_switches_to_modes(program)


def modes(
    frozen: ScalarProgram, state: np.ndarray, time: float = 0.0, parameters: tuple[float, ...] = ()
) -> np.ndarray:
    """As the FMU finds them at its start."""
    surfaces, found = make_evaluator(frozen, "surfaces"), np.zeros(len(frozen.layout.memory))
    for _ in found:
        s = surfaces(time, state, (), parameters, found)
        for switch in list_program_switches(frozen):
            at = s[switch.memory]
            found[switch.memory] = np.floor(at) if switch.kind == "steps" else float(at > 0)
    return found


@settings(deadline=None)
@given(st.integers(-3000, 3000), st.integers(-3000, 3000))
def test_values_are_those_of_the_model_where_modes_are_right(switching, position, speed):
    program, frozen = switching
    state = (position / 1000 + 1.1e-4, speed / 1000 + 2.3e-4)  # on no surface
    m = modes(frozen, np.array(state))
    assert np.all(make_evaluator(frozen, "indicators")(0.0, state, (), (), m) > 0)
    wanted, found = make_evaluator(program, "velocity"), make_evaluator(frozen, "velocity")
    places = [program.entries["velocity"].labels.index(name) for name in SWITCHING]
    np.testing.assert_allclose(found(0.0, state, (), (), m)[places], wanted(0.0, state)[places], rtol=0, atol=1e-12)


@pytest.mark.parametrize("place", [0.0, 0.3])
def test_arc_functions_of_clamps_are_those_of_the_model_inside(place):
    """At zero, too, where acos is a right angle and asin has a slope; a power would have neither."""
    clamped = sm.Max(-1, sm.Min(1, x))
    outputs = {"acos": sm.acos(clamped), "asin": sm.asin(clamped), "atanh": sm.atanh(clamped / 2)}
    program = program_of(-x, **outputs)
    frozen, state = convert_switches_to_modes(program), np.array([place, 0.0])
    m = modes(frozen, state)
    exact = [np.arccos(place), np.arcsin(place), np.arctanh(place / 2)]
    np.testing.assert_allclose(make_evaluator(frozen, "position")(0.0, state, (), (), m), exact, rtol=1e-15)
    slopes = derivatives.form_jacobian(frozen, "position", ("states",))
    found = make_evaluator(slopes.program, slopes.entry)(0.0, state, (), (), m)
    arc = 1 / np.sqrt(1 - place**2)
    np.testing.assert_allclose(found, [-arc, arc, 0.5 / (1 - place**2 / 4)], rtol=1e-14)


GUARDED = {
    "acos": (sm.Piecewise((sm.acos(x), x < 1), (-5, True)), 0.0),
    "circle": (sm.Piecewise((sm.sqrt(1 - x**2), sm.Abs(x) < 1), (-5, True)), 0.0),
    "hertz": (sm.Piecewise((2 + (1 - x) ** sm.Rational(3, 2), x < 1), (-5, True)), 2.0),
    "nested": (sm.Piecewise((sm.Piecewise((sm.sqrt(1 - x), v < 9), (7, True)), x < 1), (-5, True)), 0.0),
}


def test_guarded_branches_go_on_beyond_their_event_alone():
    """Just beyond, in the modes of before, a branch keeps its value; where its condition holds a fault stays one."""
    outputs = {name: expression + v for name, (expression, _) in GUARDED.items()}
    frozen = convert_switches_to_modes(
        program_of(-x, **outputs, wrong=sm.Piecewise((sm.sqrt(1 - x), v < 9), (7, True)))
    )
    evaluate, before = make_evaluator(frozen, "velocity"), np.array([0.9, 0.0])
    labels, m = frozen.entries["velocity"].labels, modes(frozen, before)
    inside, beyond = (
        [evaluate(0.0, [place, 0.0], (), (), m)[labels.index(k)] for k in GUARDED] for place in (0.9, 1.1)
    )
    exact = [float(expression.subs({x: 0.9, v: 0})) for expression, _ in GUARDED.values()]
    np.testing.assert_allclose(inside, exact, rtol=1e-15)
    np.testing.assert_allclose(beyond, [end for _, end in GUARDED.values()])
    slopes = derivatives.form_jacobian(frozen, "velocity", ("states",))
    found = make_evaluator(slopes.program, slopes.entry)(0.0, [1.1, 0.0], (), (), m)
    assert np.isnan(found).tolist() == [False] * (len(found) - 1) + [True]  # the last is that of the fault
    assert np.isnan(evaluate(0.0, [1.1, 0.0], (), (), m)[labels.index("wrong")])


def test_powers_share_a_base_that_is_evaluated_as_it_is_written():
    """The base of the first power is a part of the second's: beyond the event neither is frozen."""
    base = sm.Max(1 - x, 0) + v**2
    frozen = convert_switches_to_modes(program_of(-x, first=sm.sqrt(base), second=sm.sqrt(sm.cos(base))))
    m, exact = modes(frozen, np.array([0.9, 0.0])), [0.5, np.sqrt(np.cos(0.25))]
    assert make_evaluator(frozen, "velocity")(0.0, [1.1, 0.5], (), (), m) == pytest.approx(exact, rel=1e-15)


def test_between_events_values_are_smooth(switching):
    """With modes of another place a value goes on as it was: no jump where the model has one."""
    _, frozen = switching
    at = frozen.entries["velocity"].labels.index("step")
    m = modes(frozen, np.array([1.0, 0.5]))
    assert make_evaluator(frozen, "velocity")(0.0, [1.0, 1.5], (), (), m)[at] == 1.0
    assert np.min(make_evaluator(frozen, "indicators")(0.0, [1.0, 1.5], (), (), m)) < 0


def test_nothing_changes_where_nothing_switches():
    program = program_of(-x, kink=no_event(sm.Abs(v)), other=Model.no_event(sm.Abs(v)), size=sm.sqrt(x**2 + v**2))
    assert convert_switches_to_modes(program) is program


def test_what_parameters_alone_decide_is_no_switch():
    k = sm.Symbol("k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    force = -sm.Piecewise((k, k > 1), (1, True)) * x
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=[me.Particle("m", P, 2)], forcelist=[(P, force * N.x)])
    model = Model("Chosen", kane)
    model.parameter(k, 2.0)
    model.coordinate(x, 0.2, "m")
    model.speed(v, 0.0, "m/s")
    program = derive(model).program
    assert convert_switches_to_modes(program) is program


def test_dry_friction_holds_with_what_it_takes():
    frozen = convert_switches_to_modes(program_of(-100 * x - 1.2 * sm.sign(v), "Held"))
    (switch,) = list_program_switches(frozen)
    assert (switch.name, switch.kind) == ("v", "sticking")
    rhs, margins, event = (make_evaluator(frozen, name) for name in ("rhs", "indicators", "event"))
    at_rest = [0.008, 0.0]
    np.testing.assert_allclose(rhs(0.0, at_rest, (), (), [0.0]), [0.0, 0.0], atol=1e-15)
    np.testing.assert_allclose(margins(0.0, at_rest, (), (), [0.0]), [1 - 0.8 / 1.2])
    np.testing.assert_allclose(margins(0.0, [0.02, 0.0], (), (), [0.0]), [1 - 2 / 1.2])
    np.testing.assert_allclose(rhs(0.0, at_rest, (), (), [1.0]), [0.0, -1.0])
    np.testing.assert_allclose(event(0.0, [0.008, 1e-3], (), (), [0.0]), at_rest, atol=1e-18)


def test_two_frictions_that_hold_each_other():
    """Two masses on a rough plate, tied by a spring: each is held by its own friction, the impulse by its own too."""
    y, w = me.dynamicsymbols("y w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies, loads = [], []
    for q, u, mass in ((x, v, 1), (y, w, 3)):
        P = O.locatenew(f"P{q.func}", q * N.x)
        P.set_vel(N, u * N.x)
        bodies.append(me.Particle(f"b{q.func}", P, mass))
        loads.append((P, (-sm.sign(u) + 10 * (y - x) * (1 if q == x else -1)) * N.x))
    rubbing = sm.sign(v - w)
    loads += [(bodies[0].masscenter, -rubbing * N.x), (bodies[1].masscenter, rubbing * N.x)]
    kane = me.KanesMethod(N, [x, y], [v, w], [x.diff() - v, y.diff() - w], bodies=bodies, forcelist=loads)
    model = Model("Pair", kane)
    for q, u in ((x, v), (y, w)):
        model.coordinate(q, 0.0, "m")
        model.speed(u, 0.0, "m/s")
    frozen = convert_switches_to_modes(derive(model).program)
    names = [switch.name for switch in list_program_switches(frozen)]
    state = [0.02, 0.0, 0.1, 0.1]
    m = [0.0 if name not in ("v", "w") else 1.0 for name in names]
    rates = make_evaluator(frozen, "rhs")(0.0, state, (), (), m)
    assert rates[2] == pytest.approx(rates[3], abs=1e-14)
    assert 1.0 * rates[2] + 3.0 * rates[3] == pytest.approx(-2.0, abs=1e-14)
    after = make_evaluator(frozen, "event")(0.0, [0.02, 0.0, 0.3, 0.1], (), (), m)[:4]
    assert after[2] == pytest.approx(after[3], abs=1e-15)
    assert 1.0 * after[2] + 3.0 * after[3] == pytest.approx(0.6, abs=1e-15)


t, (T, late) = me.dynamicsymbols._t, sm.symbols("T late")
IN_TIME = {
    "steps": (sm.floor((t - late) / T), (0.2, 0.7, 1.2)),
    "before": (sm.Piecewise((1, 3 * t < 2 * late), (0, True)), (0.4 / 3, np.inf)),
    "saw": (sm.Piecewise((1, sm.Mod(t, T) < late), (0, True)), (0.2, 0.5, 0.7, 1.0)),
    "chosen": (sm.Heaviside(sm.Max(t - late, (t - late) / 4) - 0.1), (0.2, 0.3, np.inf)),
}
"""Force of T = 0.5 s and late = 0.2 s, and when it switches from 0.05 s on."""


@pytest.mark.parametrize("name", IN_TIME)
def test_what_time_alone_switches_says_when(name):
    """Against instants by hand, in NumPy; told a few units of round-off later, so that the switch is over there."""
    force, instants_due = IN_TIME[name]
    frozen = convert_switches_to_modes(program_of(force - x, parameters={T: 0.5, late: 0.2}))
    timed = [each for each in list_program_switches(frozen) if each.depends_on_time_only]
    assert len(timed) == len(frozen.entries["next_time_event"].results) >= 1
    instants, margins = make_evaluator(frozen, "next_time_event"), make_evaluator(frozen, "indicators")
    places = {each.memory: i for i, each in enumerate(list_program_switches(frozen))}
    now = 0.05
    for due in instants_due:
        m = modes(frozen, np.zeros(2), now, (0.5, 0.2))
        reported = instants(now, np.zeros(2), (), (0.5, 0.2), m)
        assert reported.min() == pytest.approx(due, rel=1e-14), (name, now)
        if due < np.inf:
            first = places[timed[int(reported.argmin())].memory]
            assert margins(reported.min(), np.zeros(2), (), (0.5, 0.2), m)[first] <= 0
            assert margins(due * (1 - 1e-12), np.zeros(2), (), (0.5, 0.2), m)[first] > 0
            now = float(reported.min()) + 1e-6


@pytest.mark.parametrize("force", [sm.sign(sm.sin(t) - 0.5), sm.Abs(t - x), sm.floor(t * v), sm.Heaviside(t**2 - 1)])
def test_of_other_functions_of_time_nothing_is_reported(force):
    frozen = convert_switches_to_modes(program_of(force - x))
    assert len(frozen.entries["indicators"].results) == 1
    assert "next_time_event" not in frozen.entries
    assert not any(each.depends_on_time_only for each in list_program_switches(frozen))


@pytest.mark.parametrize("friction", [None, 0.3])
def test_switches_of_contacts_say_what_happens(friction):
    """Their expressions have the contact's memory in them, and say nothing to people."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    q, w = me.dynamicsymbols("q w")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + q * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    kane = me.KanesMethod(N, [x, q], [v, w], [x.diff() - v, q.diff() - w], bodies=[me.Particle("ball", P, 2)])
    model = Model("Ball", kane)
    for symbol, start in ((x, 0.0), (q, 1.0)):
        model.coordinate(symbol, start, "m")
    for symbol in (v, w):
        model.speed(symbol, 0.0, "m/s")
    rubs = {} if friction is None else {"friction": friction, "slip": v}
    model.add(Impact("floor", q, restitution=0.5, **rubs))
    frozen = convert_switches_to_modes(derive(model).program)
    reported = {switch.name for switch in list_program_switches(frozen)[: len(frozen.entries["indicators"].results)]}
    contact = {
        "floor is apart: q > 0",
        "floor approaches: the rate of q < 0",
        "floor parts: the rate of q > 0",
        "floor would have to pull: its force < 0",
    }
    slides = {
        "floor ends to slide forwards, or is pushed backwards by more than friction holds",
        "floor ends to slide backwards, or is pushed forwards by more than friction holds",
    }
    assert reported == (contact if friction is None else contact | slides)


@pytest.mark.parametrize(
    ("first", "second", "surfaces"),
    [
        (x - v <= 1, v - x >= -1, 1),  # one comparison, its sides on either side
        (-2 * x < 3 * v - 1, 1 - 3 * v < 2 * x, 1),
        (sm.Lt(x * v + x, 0, evaluate=False), sm.Gt(-x * v - x, 0, evaluate=False), 1),
        (x <= 0, x > 0, 1),  # each the other's contrary
        (x <= 0, x >= 0, 2),  # both hold where x is zero
        (x - v <= 1, x + v <= 1, 2),
        (x <= 0, 2 * x <= 1, 2),
    ],
)
def test_one_surface_has_one_indicator_however_it_is_written(first, second, surfaces):
    values = [sm.Piecewise((k, each), (0, True), evaluate=False) for k, each in enumerate((first, second), 1)]
    frozen = convert_switches_to_modes(program_of(values[0] + 5 * values[1], "Twice"))
    assert len(list_program_switches(frozen)) == surfaces
    program = program_of(values[0] + 5 * values[1], "Twice")
    at = program.entries["rhs"].labels.index("v")
    for state in ((0.3, 0.4), (-0.7, 0.2), (0.9, -0.6), (-0.2, -0.9), (2.0, 0.1)):
        m = modes(frozen, np.array(state))
        assert np.all(make_evaluator(frozen, "indicators")(0.0, state, (), (), m) > 0)
        assert (
            make_evaluator(frozen, "rhs")(0.0, state, (), (), m)[at] == make_evaluator(program, "rhs")(0.0, state)[at]
        )


def test_the_gripper_has_no_indicator_twice():
    """Its latch says each bound from both sides, its contact one gap in two forms."""
    program = derive(load(Path(__file__).parents[4] / "models" / "gripper.py")).program
    frozen = program if "surfaces" in program.entries else convert_switches_to_modes(program)
    looking = [switch for switch in list_program_switches(frozen) if switch.kind not in {"condition", "ticks"}]
    assert len({switch.name for switch in looking}) == len(looking)
    random = np.random.default_rng(4)
    rows = np.array([_seen(frozen, random)[: len(looking)] for _ in range(6)])
    spread = np.abs(rows[:, :, None] - rows[:, None, :]).max(axis=0) / np.abs(rows).max(axis=0)
    assert np.all(spread + np.eye(len(looking)) > 1e-6)


def _seen(frozen: ScalarProgram, random: np.random.Generator) -> np.ndarray:
    """Surfaces anywhere."""
    layout = frozen.layout
    at = [random.uniform(0.2, 1.7, len(names)) for names in (layout.states, layout.inputs, layout.parameters)]
    return make_evaluator(frozen, "surfaces")(random.uniform(0, 2), *at, np.ones(len(layout.memory)))
