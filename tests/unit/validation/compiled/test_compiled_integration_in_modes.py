"""Steps in C against their twin in Python: margins at random states and modes, and whole motions with events."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from dry_hinges import arm
from event_models import dropped, particle, reference_of
from hypothesis import given
from hypothesis import strategies as st
from representatives import by_night, examples, marked
from right_models import RIGHT

from mb2fmu import Impact, Latch, Model, Parts, pre
from mb2fmu.errors import ValidationError
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.modes.mode_equations import ModeEquations, SwitchModes
from mb2fmu.validation.reference.event_integration import IntegrationEventLog, integrate_with_events

TIME = me.dynamicsymbols._t

FORCES = {
    "dry friction": lambda x, v: -64 * x - 1.1 * sm.sign(v),
    "two-sided stop": lambda x, _: -sm.Piecewise((200 * (x - 0.1), x > 0.1), (200 * (x + 0.1), x < -0.1), (0, True)),
    "one-sided spring": lambda x, _: -30 * sm.Max(x, 0) - 5 * x,
    "quadratic drag": lambda x, v: -20 * x - 2 * v * sm.Abs(v),
    "friction and drag": lambda x, v: -40 * x - 0.5 * sm.sign(v) - v * sm.Abs(v),
    "belt": lambda x, v: -50 * x - 2 * sm.sign(v - sm.Rational(1, 2)),
    "step in time": lambda x, _: -20 * x + sm.Heaviside(TIME - 0.4),
    "floor of time": lambda x, _: -20 * x + sm.floor(4 * TIME) / 4,
    "saturation": lambda x, v: sm.Max(-1, sm.Min(1, -60 * x)) - 0.2 * v,
    "position-dependent friction": lambda x, v: -30 * x - (1 + x**2) * sm.sign(v),
}


SIGNS_AND_SIDES = {"dry friction", "two-sided stop", "quadratic drag", "floor of time", "saturation"}
"""By day: each kind of switch that C evaluates; the others are of these."""


@pytest.fixture(scope="module", params=marked(FORCES, repeating=FORCES.keys() - SIGNS_AND_SIDES))
def reference(request):
    model, *_ = particle(0.25, 0.0, FORCES[request.param])
    model.experiment(stop=1.0, step=0.05, tolerance=1e-9)
    return reference_of(model)


def test_margins_agree_at_random_states_and_modes(reference, monkeypatch):
    numeric, random = reference.numeric, np.random.default_rng(0)
    compiled, prepared = numeric.mode_steps, numeric.prepare(reference.experiment.parameters)
    assert compiled is not None
    monkeypatch.setattr(ModeEquations, "mode_steps", None)
    compared = 0
    for _ in range(50):
        t, x = float(random.random()), random.normal(size=numeric.n_x)
        values = [
            float(random.integers(-1, 2)) if switch.kind == "sign" else float(random.integers(0, 2))
            for switch in numeric.frozen.switches
        ]
        modes = SwitchModes(np.array(values), np.zeros(len(numeric.frozen.events)))
        held_inputs = numeric.list_held_inputs(x, modes)
        if held_inputs is None:
            continue
        compiled.set_modes(modes.values, [], prepared, 0.0, held_inputs)
        wanted = numeric.margins(t, x, [], prepared, modes)
        assert compiled.compute_margins(t, x) == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        wanted = numeric.find_holding_values(t, x, [], prepared, modes)
        assert compiled.find_holding_values(t, x) == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        compared += 1
    assert compared > 10


def pressed_against_a_stop():
    """Bounces, rests, and leaves when the force pulls."""
    model, x, _ = particle(0.0, 1.0, lambda x, v: 20 - 40 * TIME - 3 * v - 10 * x)
    model.add(Impact("stop", sm.Rational(1, 10) - x, restitution=0.4, rest_below=0.05))
    return model


def caught():
    """A latch closes at 0.1 m and opens at 0.5 s."""
    model, x, _ = particle(0.0, 0.5, lambda x, _: sm.cos(3 * TIME) - 5 * x)
    model.add(Latch("hook", x, close=sm.And(x >= 0.1, TIME < 0.5), open=TIME >= 0.5, within=None))
    return model


X, Y, V, W = me.dynamicsymbols("x y v w")


def two_coordinates(name, forces, starts, *, in_plane=True):
    """A particle of 2 kg in a plane, or two of them on a line, with the coordinates X, Y and the speeds V, W."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    if in_plane:
        points, directions = [O.locatenew("P", X * N.x + Y * N.y)], (N.x, N.y)
        points[0].set_vel(N, V * N.x + W * N.y)
    else:
        points, directions = [O.locatenew("P", X * N.x), O.locatenew("Q", Y * N.x)], (N.x, N.x)
        points[0].set_vel(N, V * N.x)
        points[1].set_vel(N, W * N.x)
    bodies = [me.Particle(point.name, point, sm.Integer(2)) for point in points]
    loads = [
        (point, force * along) for point, force, along in zip((points[0], points[-1]), forces, directions, strict=True)
    ]
    rates = [X.diff() - V, Y.diff() - W]
    parts = Parts(frame=N, origin=O, q=[X, Y], u=[V, W], kinematic_equations=rates, bodies=bodies, loads=loads)
    model = Model(name, parts)
    for symbol, start in zip((X, Y, V, W), starts, strict=True):
        if symbol in (X, Y):
            model.coordinate(symbol, start, "m")
        else:
            model.speed(symbol, start, "m/s")
    model.experiment(stop=0.8, step=0.05, tolerance=1e-8)
    return model


def thrown():
    """Falls on a rough ground in a plane, and slides until it sticks."""
    model = two_coordinates("Thrown", (-V, -sm.Float(19.62)), (0.0, 0.05, 1.0, 0.0))
    model.add(Impact("ground", Y, restitution=0.3, rest_below=0.2, slip=V, friction=0.3))
    return model


def pulled_blocks():
    """Two rough blocks with a spring between them slide and stick, both together for a while."""
    spring = 9 * (Y - X)
    forces = (4 * sm.sin(8 * TIME) + spring - 3 * sm.sign(V), -spring - sm.sign(W))
    return two_coordinates("Pulled", forces, (0.0, 0.0, 0.3, 0.4), in_plane=False)


def rubbing_at_a_stop():
    """A rough mass is pushed to a stop, rests there and leaves when the force pulls."""
    model, x, _ = particle(0.0, 1.0, lambda x, v: 20 - 60 * TIME - 3 * v - 10 * x - 2 * sm.sign(v))
    model.add(Impact("stop", sm.Rational(1, 10) - x, restitution=0.4, rest_below=0.05))
    return model


def pulled_blocks_at_a_stop():
    """The second of two rough blocks comes to a stop, and friction holds the first one beside it for a while."""
    model = pulled_blocks()
    model.add(Impact("stop", sm.Rational(1, 20) - Y, restitution=0.2, rest_below=0.1))
    return model


def rubbing_in_a_corner():
    """A point with friction along two axes in a plane comes to a slanted wall."""
    model = two_coordinates("Corner", (6 - 2 * sm.sign(V), 2 - sm.sign(W)), (0.0, 0.0, 0.3, 0.4))
    model.add(Impact("wall", sm.Rational(1, 10) - X - Y / 3, restitution=0.2, rest_below=0.1))
    return model


def docked():
    """A point in a plane is caught in two directions at 0.2 s, and let go at 0.5 s."""
    model = two_coordinates("Docked", (-V, sm.cos(3 * TIME)), (0.0, 0.05, 1.0, 1.0))
    model.add(Latch("dock", [X + Y, X - Y / 3], close=TIME >= 0.2, open=TIME >= 0.5, within=None))
    return model


def docked_on_the_ground():
    """Slides on a rough ground; rows that are closed from 0.3 s to 0.6 s hold what the contact holds, and one more."""
    model = thrown()
    model.add(Latch("dock", [X + Y, X - Y / 3], close=TIME >= 0.3, open=TIME >= 0.6, within=None))
    return model


def hooked_on_the_ground():
    """Falls beside a hook that is closed from 0.1 s to 0.4 s and holds its way along the ground."""
    model = thrown()
    model.add(Latch("hook", X, close=TIME >= 0.1, open=TIME >= 0.4, within=None))
    return model


def integrate(reference):
    """Return the trajectory and events of a reference's experiment, from its start."""
    numeric, run, log = reference.numeric, reference.experiment, IntegrationEventLog()
    y = integrate_with_events(
        numeric, run.time, run.inputs, numeric.prepare(run.parameters), np.append(reference.states[0], 0.0),
        1e-12, np.ones(numeric.n_x + 1), parts=1, projected=False, budget=1_000_000, event_log=log,
    )  # fmt: skip
    return y, log.events


def follows_opening(event):
    """What a contact leaves like 1e-16 m + j t^3 / 6 by itself is known to the cube root of round-off."""
    return not event.sets_state and event.name.startswith("gap of ")


def assert_that_twin_agrees(reference, compiled, monkeypatch, time_tolerance=1e-10):
    """Compare the trajectory and events of steps in C with those in Python alone."""
    y, events = compiled
    with monkeypatch.context() as patch:
        patch.setattr(ModeEquations, "mode_steps", None)
        wanted, wanted_events = integrate(reference)
    assert y == pytest.approx(wanted, abs=1e-10)
    assert [event.name for event in events] == [event.name for event in wanted_events]
    for event, other in zip(events, wanted_events, strict=True):
        assert event.time == pytest.approx(other.time, abs=1e-6 if follows_opening(event) else time_tolerance)


def test_motions_and_events_agree(reference, monkeypatch):
    assert_that_twin_agrees(reference, integrate(reference), monkeypatch)


@pytest.mark.parametrize(
    ("make_model", "most_held"),
    [(caught, 1), (rubbing_at_a_stop, 2),
     *by_night((pressed_against_a_stop, 1), (docked, 2), (hooked_on_the_ground, 2)), (docked_on_the_ground, 2),
     *by_night((RIGHT["two_latches_that_hold_one_motion"], 2))],
)  # fmt: skip
def test_contacts_and_latches_agree(make_model, most_held, monkeypatch):
    run = reference_of(make_model())
    held = []

    def list_held_inputs(self, x, modes, blocked_lines=()):
        held.append(original(self, x, modes, blocked_lines))
        return held[-1]

    original = ModeEquations.list_held_inputs
    with monkeypatch.context() as patch:
        patch.setattr(ModeEquations, "list_held_inputs", list_held_inputs)
        compiled = integrate(run)
    assert [] in held
    assert max(map(len, held)) == most_held  # in C; where two say the same Python goes on
    # A released latch leaves its place like 1e-13 m + a t^2 / 2: when, is known to the root of round-off.
    assert_that_twin_agrees(run, compiled, monkeypatch, time_tolerance=1e-8)


def test_margins_of_a_contact_that_a_latch_blocks_agree(monkeypatch):
    """It has no force, and rests nevertheless."""
    reference = reference_of(docked_on_the_ground())
    numeric, prepared = reference.numeric, reference.numeric.prepare(reference.experiment.parameters)
    row = int(np.searchsorted(reference.trajectory.time, 0.45))
    t, x, modes = float(reference.trajectory.time[row]), reference.states[row], reference.modes[row]
    blocked_lines = numeric.find_blocked_contact_lines(t, x, [], prepared, modes)
    assert len(blocked_lines) == 2
    held_inputs = numeric.list_held_inputs(x, modes, blocked_lines)
    places = [line - numeric.contact_line_count for line in blocked_lines]
    compiled = numeric.mode_steps
    monkeypatch.setattr(ModeEquations, "mode_steps", None)
    compiled.set_modes(modes.values, [], prepared, 0.0, held_inputs, set_inputs=places)
    wanted = numeric.margins(t, x, [], prepared, modes)
    assert compiled.compute_margins(t, x) == pytest.approx(wanted, rel=1e-9, abs=1e-9)


def draw_modes(numeric, random):
    """Return a state and modes, as far as they could be just before an event."""
    x = random.normal(size=numeric.n_x)
    for place in numeric._resting_states:
        x[place] = random.choice([0.0, 0.25, 1.0])
    for place, contact in zip(numeric._sliding_states, numeric._friction_contact_indices, strict=True):
        x[place] = random.choice([-1.0, 0.0, 1.0]) if x[numeric._resting_states[contact]] == 1.0 else 0.0
    values = random.integers(0, 2, size=len(numeric.frozen.switches)).astype(float)
    for i in numeric.signs:
        values[i] = random.choice([-1.0, 0.0, 1.0])
    return x, SwitchModes(values, np.zeros(len(numeric.frozen.events)))


@pytest.mark.parametrize("make", [*by_night(rubbing_at_a_stop), pulled_blocks_at_a_stop, rubbing_in_a_corner])
def test_friction_beside_contacts_agrees_at_random_states(make):
    """Where several frictions and a contact hold one motion Python shares it."""
    reference = reference_of(make())
    numeric, random = reference.numeric, np.random.default_rng(0)
    prepared, shared = numeric.prepare(reference.experiment.parameters), 0
    for _ in range(80):
        x, modes = draw_modes(numeric, random)
        compiled = numeric.set_modes_in_c(x, [], prepared, modes)
        found, margins = compiled.find_holding_values(0.3, x), compiled.compute_margins(0.3, x)
        if found is None:
            assert len(numeric._list_holding_inputs(x, modes)) > numeric.n_u
            shared += 1
            continue
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ModeEquations, "mode_steps", None)
            wanted = numeric.find_holding_values(0.3, x, [], prepared, modes)
            wanted_margins = numeric.margins(0.3, x, [], prepared, modes)
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-12)
        assert margins == pytest.approx(wanted_margins, rel=1e-12, abs=1e-12)
    assert shared < 20
    assert (shared > 0) == (make is rubbing_in_a_corner)


def settle_in_both(reference, seed):
    """Return what one event makes of random modes, in C and in Python; None where that one cannot settle it."""
    numeric, random = reference.numeric, np.random.default_rng(seed)
    prepared, (x, modes) = numeric.prepare(reference.experiment.parameters), draw_modes(numeric, random)
    if numeric.signs and numeric.contact_line_count:  # else round-off decides whether friction stops an impact
        if not np.any(x[numeric._resting_states] == 1.0):
            x[: numeric.n_q] = -np.abs(x[: numeric.n_q])  # on the free side of each stop
        x = numeric.stop_held_speeds(0.3, x, [], prepared, modes)
    switch = int(random.integers(len(modes.values)))
    numeric.mode_steps.set_modes(modes.values, [], prepared, 0.0, past_conditions=modes.past_conditions)
    found = numeric.mode_steps.settle(0.3, x, switch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModeEquations, "mode_steps", None)
        try:
            x, _ = numeric.settle_modes(0.3, x, [], prepared, modes, [switch])
        except ValidationError:
            return found, None
    return found, (x, modes.values, modes.past_conditions)


SETTLED = [arm, thrown, pulled_blocks_at_a_stop, *by_night(pulled_blocks, rubbing_at_a_stop)]


@pytest.fixture(scope="module", params=SETTLED)
def settled(request):
    return reference_of(request.param())


@examples(8)
@given(seed=st.integers(0, 100_000))
def test_settling_agrees_at_random_states(settled, seed):
    found, wanted = settle_in_both(settled, seed)
    assert (found is None) == (wanted is None)
    if wanted is not None:
        x, values, conditions = found
        differs = values != wanted[1]
        if differs.any():  # round-off decides whether a gap still closes that friction has stopped
            numeric = settled.numeric
            assert numeric.signs
            assert numeric.contact_line_count
            assert not differs[numeric.signs].any()
            prepared = numeric.prepare(settled.experiment.parameters)
            motion = numeric.evaluate_in_modes(0.3, wanted[0], [], prepared, wanted[1])
            assert np.abs(motion.surfaces[differs]).max() < 1e-12
        assert x == pytest.approx(wanted[0], rel=1e-12, abs=1e-12)
        assert conditions == pytest.approx(wanted[2])


@pytest.mark.parametrize(("slip", "side"), [(-3e-7, -1.0), (-3e-10, 1.0)])
def test_weak_friction_slips_on_to_its_event(slip, side):
    """A rough integration is a little before the event, and friction could not bring the mass to rest there."""
    model, *_ = particle(0.0, -1.0, lambda _, v: 60 - sm.Float(1e-6) * sm.sign(v))
    numeric = reference_of(model).numeric
    prepared, x = numeric.prepare(()), np.array([0.0, slip])
    before = SwitchModes(np.array([-1.0]), np.zeros(0))
    numeric.mode_steps.set_modes(before.values, [], prepared, 0.0)
    states, values, _ = numeric.mode_steps.settle(0.0, x, 0)
    after = before.copy()
    wanted, _ = numeric.settle_modes(0.0, x, [], prepared, after, [0])
    assert values == after.values == side
    assert (states == wanted).all()
    assert (states == x).all()


def sampled():
    """A controller samples every 20 ms, a second one every 50 ms, at common instants too."""
    force, slow, count = me.dynamicsymbols("force slow count")
    model, x, v = particle(0.25, 0.0, lambda _, v: force + slow - 2 * v)
    model.discrete(force, 0.0, "N")
    model.discrete(slow, 0.0, "N")
    model.discrete(count, 0.0)
    model.every(0.02, {force: -40 * x - 2 * v, count: pre(count) + 1})
    model.every(0.05, {slow: -count / 10}, offset=0.01)
    return model


def relay():
    """A relay with hysteresis, and a kick by which the kinetic energy jumps."""
    force, kicks = me.dynamicsymbols("force kicks")
    model, x, v = particle(0.25, 0.0, lambda _, v: force - v)
    model.discrete(force, -4.0, "N")
    model.discrete(kicks, 0.0)
    model.when(x < -0.1, {force: 4}, name="pull")
    model.when(x > 0.1, {force: -4}, name="push")
    model.when(TIME >= 0.7, {v: pre(v) + 1, kicks: pre(kicks) + 1}, name="kick")
    return model


def bounces():
    """An event sets a speed, and a force has a kink."""
    model, x, v = particle(0.2, 0.0, lambda x, _: -20 * x - 3 * sm.Max(x - 0.05, 0) - 10)
    model.when(x <= 0, {v: -0.7 * pre(v)}, name="impact")
    return model


@pytest.mark.parametrize(
    "make",
    [sampled, relay, bounces, thrown, *by_night(pulled_blocks_at_a_stop, dropped, pulled_blocks, rubbing_at_a_stop)],
)
def test_events_that_are_settled_in_c_agree(make, monkeypatch):
    model = make()
    model.experiment(stop=1.0, step=0.05, tolerance=1e-9)
    run = reference_of(model)
    settled = []
    with monkeypatch.context() as patch:
        original = HybridEquations.settle_modes
        patch.setattr(HybridEquations, "settle_modes", lambda self, *a: settled.append(a[0]) or original(self, *a))
        y, events = integrate(run)
        assert set(settled) <= {0.0}  # Python settles the start alone
        patch.setattr(ModeEquations, "mode_steps", None)
        wanted, wanted_events = integrate(run)
    assert len(events) >= 4
    assert len(settled) > len(events)
    assert y == pytest.approx(wanted, abs=1e-10)
    for event, other in zip(events, wanted_events, strict=True):
        assert (event.name, event.switch, event.step, event.sets_state, event.round_off) == (
            other.name, other.switch, other.step, other.sets_state, other.round_off
        )  # fmt: skip
        time_tolerance, state_tolerance = (1e-6, 1e-6) if follows_opening(event) else (1e-10, 1e-9)
        assert event.time == pytest.approx(other.time, abs=time_tolerance)
        assert event.states == pytest.approx(other.states, abs=state_tolerance)
        for side, other_side in zip(event.sides, other.sides, strict=True):
            assert side.values == pytest.approx(other_side.values)
            assert side.past_conditions == pytest.approx(other_side.past_conditions)


def test_events_see_what_friction_bears_before_a_stop(monkeypatch):
    """Friction holds with half of what it can while an event reads its value; a contact is open."""
    record = me.dynamicsymbols("record")
    model, x, v = particle(0.0, 0.0, lambda _, v: 1 - 2 * sm.sign(v))
    model.add(Impact("stop", sm.Rational(1, 10) - x, restitution=0.4, rest_below=0.05))
    model.discrete(record, 0.0)
    model.when(TIME >= 0.3, {record: sm.sign(v)}, name="read")
    run = reference_of(model)
    place = run.numeric.event_targets[[event.name for event in run.numeric.frozen.events].index("read")]
    y, events = integrate(run)
    assert [event.name for event in events] == ["read"]
    assert y[-1, place] == pytest.approx([0.5], rel=1e-12)
    assert_that_twin_agrees(run, (y, events), monkeypatch)


def test_what_drift_makes_of_slip_ends_where_a_contact_opens():
    """A contact rests with a rate of 1e-8 m/s that is none of its motion: friction beside it would slip by it."""
    reference = reference_of(rubbing_at_a_stop())
    numeric = reference.numeric
    prepared, names = numeric.prepare(reference.experiment.parameters), numeric.switch_names
    x = np.zeros(numeric.n_x)
    x[:2], x[numeric._resting_states] = (0.1, 1e-8), 1.0
    modes = SwitchModes(np.array([0.0, 0.0, 0.0, 1.0, 0.0]), np.zeros(len(numeric.frozen.events)))
    switch = names.index("force of stop")
    numeric.mode_steps.set_modes(modes.values, [], prepared, 0.0, past_conditions=modes.past_conditions)
    states, values, conditions = numeric.mode_steps.settle(0.7, x, switch)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ModeEquations, "mode_steps", None)
        wanted, _ = numeric.settle_modes(0.7, x, [], prepared, modes, [switch])
    assert wanted[numeric._resting_states[0]] < 1.0  # it opens
    assert states[1] == wanted[1] == 0.0
    assert states == pytest.approx(wanted, rel=1e-12)
    assert values.tolist() == modes.values.tolist()
    assert conditions == pytest.approx(modes.past_conditions)
