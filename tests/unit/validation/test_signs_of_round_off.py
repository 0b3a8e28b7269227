"""Conditions on what a latch holds, whose zero has the sign of round-off: events beside it are judged all the same."""

import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import particle, reference_of
from representatives import by_night

from mb2fmu import Latch, Model
from mb2fmu.validation.bounds.event_time_tolerances import compute_event_time_bounds
from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds
from mb2fmu.validation.reference.event_time_matching import drop_round_off_events, find_round_off_switches
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth

HALF = sm.Rational(1, 2)
TIP = 0.7  # of the rod, from the vertical, rad
ALOFT = 50  # m: the digits of such a height end at 7e-15


def vault(tip: float = TIP, *, foot_must_be_down: bool = False) -> Model:
    """A rod falls about its foot, which a latch holds high above the origin, until it leans enough; then it is let go.

    Args:
        tip: When it is let go: its angle from the vertical, rad.
        foot_must_be_down: The condition of letting go looks at the foot's height too, which is held at zero.
    """
    x, y, tilt = me.dynamicsymbols("x y tilt")
    v, w, turning = me.dynamicsymbols("v w turning")
    stands, landings, g = me.dynamicsymbols("stands"), me.dynamicsymbols("landings"), sm.Symbol("g", positive=True)
    N, rod = me.ReferenceFrame("N"), me.ReferenceFrame("R")
    rod.orient_axis(N, tilt, N.z)
    rod.set_ang_vel(N, turning * N.z)
    O, middle = me.Point("O"), me.Point("M")
    O.set_vel(N, 0)
    middle.set_pos(O, x * N.x + y * N.y)
    middle.set_vel(N, v * N.x + w * N.y)
    foot = middle.locatenew("F", -rod.y / 2)
    inertia = me.inertia(rod, 0, 0, sm.Rational(1, 12))
    body = me.RigidBody("rod", middle, rod, sm.Integer(1), (inertia, middle))
    kane = me.KanesMethod(
        N, [x, y, tilt], [v, w, turning], [x.diff() - v, y.diff() - w, tilt.diff() - turning], bodies=[body],
        forcelist=[(middle, -g * N.y)],
    )  # fmt: skip
    model = Model("Vault", kane)
    model.parameter(g, 9.81, "m/s2")
    for symbol, start, unit in ((x, -sm.sin(0.1) / 2, "m"), (y, ALOFT + sm.cos(0.1) / 2, "m"), (tilt, 0.1, "rad")):
        model.coordinate(symbol, float(start), unit)
    for symbol, unit in ((v, "m/s"), (w, "m/s"), (turning, "rad/s")):
        model.speed(symbol, 0.0, unit)
    model.discrete(stands, 1.0)
    model.discrete(landings, 0.0)
    place = [foot.pos_from(O).dot(N.x), foot.pos_from(O).dot(N.y) - ALOFT]
    model.add(Latch("foot", place, close=stands > HALF, open=stands < HALF, within=None, starts_engaged=True))
    tipped = sm.And(tilt >= tip, stands > HALF)
    model.when(sm.And(tipped, place[1] <= 0) if foot_must_be_down else tipped, {stands: 0}, name="tips")
    model.when(sm.And(place[1] <= 0, stands < HALF, tilt >= 1), {landings: landings + 1}, name="lands")
    model.experiment(stop=1.2, step=0.02, tolerance=1e-9)
    return model


@pytest.fixture(scope="module")
def reference():
    return reference_of(vault())


def test_events_of_round_off_are_known(reference):
    idle = [event for event in reference.events if event.round_off]
    assert idle  # the foot's height
    assert len(find_round_off_switches(reference.events)) == 1
    assert all("y" in event.name and not event.sets_state for event in idle)


def test_only_events_of_the_motion_have_limits(reference):
    limits = compute_error_bounds(reference, measure_start_error_growth(reference)).event_time_bounds
    assert sum(limit.simultaneous_events.count for limit in limits) == len(drop_round_off_events(reference.events))


@pytest.mark.parametrize("tip", [0.72, *by_night(0.66, 0.84)])
def test_the_event_beside_them_is_judged_as_exactly_as_without(tip):
    reference = reference_of(vault(tip))
    limits = compute_event_time_bounds(reference, 1e-7 + 0.0 * reference.trajectory.values)
    (opens,) = (limit for limit in limits if limit.simultaneous_events.first.name == "foot opens")
    assert not opens.grazing
    assert opens.simultaneous_events.first.states[0][2] == pytest.approx(tip, abs=1e-13)
    assert opens.largest_allowed_difference < 1e-7


def test_what_hangs_on_the_sign_of_round_off_is_not_judged():
    reference = reference_of(vault(foot_must_be_down=True))
    assert find_round_off_switches(reference.events)
    limits = compute_event_time_bounds(reference, 1e-7 + 0.0 * reference.trajectory.values)
    assert all(event.grazing for event in limits if "opens" in event.simultaneous_events.first.name)


def test_what_begins_and_ends_at_zero_is_no_round_off():
    """Thrown up: its height is zero at both ends of a step, and not in between."""
    armed, thrown = me.dynamicsymbols("armed"), me.dynamicsymbols("thrown")
    model, x, v = particle(0.0, 0.0, lambda *_: -sm.Float(9.81) * thrown)
    model.discrete(armed, 0.0, name="armed")
    model.discrete(thrown, 0.0, name="thrown")
    model.once(0.8, {thrown: 1, v: 1})
    model.when(sm.And(x <= 0, armed > HALF), {armed: 0})
    model.experiment(stop=1.6, step=0.8, tolerance=1e-8)
    events = reference_of(model).events
    assert events[-1].time == pytest.approx(0.8 + 2.0 / 9.81, rel=1e-12)
    assert not events[-1].round_off
