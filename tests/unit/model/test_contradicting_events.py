"""Events that set one value differently at one instant are reported when the model is read, both named."""

from __future__ import annotations

import math

import pytest
import sympy as sm
from event_models import particle
from hypothesis import example, given
from hypothesis import strategies as st
from representatives import examples

from mb2fmu.errors import ModelError
from mb2fmu.model import check_model

_KNOWN: list = []


def a_particle(stop: float = 1.0):
    """A particle with two values that events set; the same one each time, without its events."""
    if not _KNOWN:
        model, x, v = particle(1.0, 0.0, lambda x, _: -x)
        f, g = sm.symbols("f g", cls=sm.Function)
        symbols = [f(sm.Symbol("t")), g(sm.Symbol("t"))]
        for symbol in symbols:
            model.discrete(symbol)
        _KNOWN.append((model, x, v, *symbols))
    model = _KNOWN[0][0]
    model.declared_events.clear()
    model.experiment(stop=stop, step=stop / 10)
    return _KNOWN[0]


def list_contradictions(model) -> list[str]:
    try:
        check_model(model)
    except ModelError as error:
        return [fault.what for fault in error.faults]
    return []


CONDITIONS = [
    (lambda x, _: (x <= 0, sm.Float(2.0) * x <= 0), True),
    (lambda x, _: (x <= 0, sm.Le(0, -x, evaluate=False)), True),
    (lambda x, v: (x - v < 1, 2 * v + 2 > 2 * x), True),
    (lambda x, v: (sm.And(x > 0, v > 1), sm.And(3 * v > 3, x > 0)), True),
    (lambda x, _: (x <= 0, x <= 1), False),
    (lambda x, _: (x <= 0, x >= 0), False),
    (lambda x, v: (sm.And(x > 0, v > 1), sm.Or(x > 0, v > 1)), False),
]


@pytest.mark.parametrize(("conditions", "together"), CONDITIONS)
def test_conditions_that_say_the_same(conditions, together):
    model, x, v, f, g = a_particle()
    for name, condition, value in zip(("first", "second"), conditions(x, v), (1, 2), strict=True):
        model.when(condition, {f: value, g: 3}, name=name)
    wanted = ["f(t) is set by first and second at the same instants, to different values"]
    assert list_contradictions(model) == (wanted if together else [])


def test_all_that_contradict_each_other_are_reported_at_once():
    model, x, _, f, g = a_particle()
    model.when(x < 0, {f: 1}, name="a")
    model.when(2 * x < 0, {f: 2, g: 1}, name="b")
    model.every(0.1, {g: x}, name="c")
    model.once(0.3, {g: -x}, name="d")
    assert list_contradictions(model) == [
        "f(t) is set by a and b at the same instants, to different values",
        "g(t) is set by c and d at t = 0.3 s, to different values",
    ]


def test_two_events_of_one_name_are_reported():
    model, x, _, f, g = a_particle()
    model.when(x < 0, {f: 1}, name="a")
    model.when(x < -1, {g: 1}, name="a")
    model.every(0.1, {f: x}, name="a")
    assert [what.partition(": one is said at ")[0] for what in list_contradictions(model)] == [
        "two events are called a"
    ] * 2
    assert all(what.endswith(", and another") for what in list_contradictions(model))


def test_events_without_names_may_wait_for_the_same():
    model, x, _, f, g = a_particle()
    model.every(0.1, {f: x})
    model.every(0.1, {g: x})
    model.when(x < 0, {f: 1})
    model.when(x < 0, {g: 1})
    assert list_contradictions(model) == []


EVERY = st.tuples(st.integers(1, 30), st.integers(0, 30))
ONCE = st.tuples(st.none(), st.integers(0, 100))


@examples(15)
@given(st.one_of(EVERY, ONCE), st.one_of(EVERY, ONCE))
@example((10, 0), (20, 0))
@example((10, 5), (20, 0))
@example((30, 7), (28, 0))
@example((None, 30), (10, 0))
def test_instants_that_coincide_are_those_of_a_list(one, other):
    """Periods and offsets in hundredths of a second, against all instants up to the stop time, one by one."""
    model, _, _, f, _ = a_particle()
    instants = []
    for value, (period, offset) in enumerate((one, other)):
        if period is None:
            model.once(offset / 100, {f: value})
            instants.append({offset})
        else:
            model.every(period / 100, {f: value}, offset=offset / 100)
            instants.append(set(range(offset, 101, period)))
    common = min(instants[0] & instants[1], default=math.inf)
    found = list_contradictions(model)
    assert len(found) == (common <= 100)
    assert not found or f"at t = {common / 100:g} s, to different values" in found[0]


def test_events_that_agree_on_a_value_are_let_pass():
    model, x, _, f, _ = a_particle()
    model.every(0.1, {f: x})
    model.every(0.2, {f: x})
    assert list_contradictions(model) == []


def test_what_coincides_behind_the_stop_time_only_is_let_pass():
    model, _, _, f, _ = a_particle(stop=0.5)
    model.every(0.3, {f: 1}, offset=0.3)
    model.every(0.2, {f: 2}, offset=0.2)
    assert list_contradictions(model) == []
