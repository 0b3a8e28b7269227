"""Laws of contacts and latches: modes that change late, in what FMU and reference share, are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sm
from event_models import forget_events, particle
from representatives import by_night
from sympy.physics import mechanics as me

from mb2fmu import Impact, Latch
from mb2fmu.mechanics import formulations
from mb2fmu.mechanics.equations import contact_equations
from mb2fmu.mechanics.equations.contact_equations import UnilateralContact
from mb2fmu.mechanics.equations.latch_equations import MechanicalLatch
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import Model, check_model
from mb2fmu.validation import independent_checks, make_reference
from mb2fmu.validation.comparison.contact_and_latch_law_violations import (
    _choose_events,
    compute_contact_and_latch_law_violations,
)
from mb2fmu.validation.reference.reference_run import ReferenceRun


def _pushed_block() -> Model:
    """A block that is dropped, comes to rest, is pushed until it slides, and is lifted off."""
    t = me.dynamicsymbols._t
    x, y, v, w = me.dynamicsymbols("x y v w")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, v * N.x + w * N.y)
    kane = me.KanesMethod(
        N, [x, y], [v, w], [x.diff() - v, y.diff() - w], bodies=[me.Particle("block", P, 1)],
        forcelist=[(P, 5 * t * N.x + (4 * t - 10) * N.y)],
    )  # fmt: skip
    model = Model("PushedBlock", kane)
    for symbol, start in ((x, 0.0), (y, 0.02)):
        model.coordinate(symbol, start, "m")
    for symbol in (v, w):
        model.speed(symbol, 0.0, "m/s")
    model.add(Impact("floor", y, slip=v, friction=0.5, restitution=0.3, rest_below=0.1))
    model.experiment(stop=2.8, step=0.05)
    return model


def _held_particle() -> Model:
    """Falls, is held once it is low, and is let go after a while."""
    model, x, _ = particle(1.0, 0.0, lambda *_: -sm.Float(9.81))
    t = me.dynamicsymbols._t
    model.add(Latch("hook", x, close=x <= 0.7, open=t >= 0.5, within=1.0))
    return model


def _integrate(model: Model) -> ReferenceRun:
    definition = check_model(model)
    return make_reference(definition, formulations.formulate(read_mechanism(definition), "tmt"))


def _delay_mode(number: int) -> Callable[[pytest.MonkeyPatch], None]:
    """Let a mode of resting contacts end where its margin is -0.01 N: of the normal force, or of friction."""
    right = contact_equations._mode_margins

    def late(*args: object) -> Iterator[sm.Expr]:
        for k, margin in enumerate(right(*args)):
            yield margin + (sm.Rational(1, 100) if k == number else 0)

    return lambda monkeypatch: monkeypatch.setattr(contact_equations, "_mode_margins", late)


def _touch_at(gap: sm.Expr) -> Callable[[pytest.MonkeyPatch], None]:
    """Let contacts touch at another gap than zero."""
    shifted = property(lambda contact: contact.position - gap)
    return lambda monkeypatch: monkeypatch.setattr(UnilateralContact, "gap", shifted)


@pytest.fixture(autouse=True)
def _no_events_of_other_tests() -> Iterator[None]:
    """Equal contacts share their events: a planted one is nobody else's."""
    forget_events()
    yield
    forget_events()


def test_right_contacts_keep_their_laws():
    (check,) = independent_checks._check_contact_and_latch_laws([_integrate(_pushed_block())])
    assert check.verdict == "passed"
    assert check.ratio < 1e-3


@pytest.mark.parametrize(
    ("plant", "law"),
    [
        (_delay_mode(0), "floor pulls"),
        (_delay_mode(2), "floor sticks by more than friction holds"),
        (_touch_at(sm.Rational(1, 1000)), "floor has an impact while it is open"),
        (_touch_at(-sm.Rational(1, 1000)), "floor is open and penetrates"),
    ],
)
def test_a_mode_that_changes_late_on_both_sides_is_found(plant, law, monkeypatch):
    plant(monkeypatch)
    reference = _integrate(_pushed_block())
    violations = compute_contact_and_latch_law_violations([reference]) or ()
    broken = {place.partition(" at ")[0] for ratio, place in violations if ratio > 1}
    assert law in broken
    (check,) = independent_checks._check_contact_and_latch_laws([reference])
    assert check.verdict == "failed"


@pytest.mark.parametrize(
    ("condition", "part", "moved", "law"),
    [
        ("opening_condition", "open", ("t", -sm.Rational(1, 8)), "closed"),
        # by a twentieth of a communication step
        *by_night(
            ("closing_condition", "close", ("x", sm.Rational(1, 5)), "open"),
            ("opening_condition", "open", ("t", -sm.Rational(1, 2000)), "closed"),
        ),
        ("closing_condition", "close", ("x", sm.Rational(1, 1000)), "open"),
    ],
)
def test_a_latch_that_changes_late_on_both_sides_is_found(condition, part, moved, law, monkeypatch):
    right, (name, delay) = getattr(MechanicalLatch, condition), moved

    def late(latch: MechanicalLatch) -> sm.Basic:
        user_condition = getattr(latch, part)
        (symbol,) = (each for each in user_condition.free_symbols if each.name == name)
        return right.fget(replace(latch, **{part: user_condition.xreplace({symbol: symbol + delay})}))

    for is_planted in (False, True):
        forget_events()
        if is_planted:
            monkeypatch.setattr(MechanicalLatch, condition, property(late))
        (check,) = independent_checks._check_contact_and_latch_laws([_integrate(_held_particle())])
        assert check.verdict == ("failed" if is_planted else "passed")
    assert check.reason.startswith(f"hook is {law} against its condition at t = ")


def test_events_are_chosen_from_the_first_to_the_last() -> None:
    """Of a thousand the first and the last are among them, and some of each hundred."""
    times = np.linspace(0.01, 9.99, 1000)
    events = [SimpleNamespace(time=t, step=int(t)) for t in times]
    run = SimpleNamespace(time=np.arange(11.0))
    chosen = _choose_events(SimpleNamespace(events=events, experiment=run), 1e-9)
    assert len(chosen) == 99
    assert (chosen[0].time, chosen[-1].time) == (times[0], times[-1])
    assert np.all(np.diff([event.time for event in chosen]) > 0.0)
    assert {int(event.time) for event in chosen} == set(range(10))


def test_where_a_gap_has_no_slope_nothing_is_judged() -> None:
    """It passes the nearest point of a round stop, without stabilization: no size says how deep is too deep."""
    model, x, _ = particle(0.0, 1.0, lambda *_: sm.S.Zero)
    model.add(Impact("stop", sm.sqrt(x**2 + sm.Rational(1, 4)), stabilization=0.0))
    violations = compute_contact_and_latch_law_violations([_integrate(model)])
    assert violations
    assert max(ratio for ratio, _ in violations) == 0.0
