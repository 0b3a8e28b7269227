"""Switches that never change are reported: a limit that nothing reaches is not exercised by what happens below it."""

from __future__ import annotations

import sympy as sm
import sympy.physics.mechanics as me
from event_models import dropped, particle, reference_of

from mb2fmu.validation.bounds.untested_switches import find_untested_switches


def controlled(top: float, start: float = 0.3):
    """A sampled controller whose push is limited to ``top`` and to -60 N."""
    push, limit = me.dynamicsymbols("push"), sm.Symbol("top")
    model, x, v = particle(start, 0.0, lambda *_: push)
    model.discrete(push, 0.0, "N")
    model.parameter(limit, top, "N")
    model.every(0.05, {push: sm.Max(sm.Min(-40 * x - 5 * v, limit), -60)}, name="controller")
    return model


def test_limits_that_nothing_reaches_are_reported_with_what_they_are():
    reported = find_untested_switches([reference_of(controlled(50.0))])
    assert len(reported) == 2
    assert "Min(top, -5*v - 40*x): -5*v - 40*x all the time" in reported
    assert "Max(-60, Min(top, -5*v - 40*x)): Min(top, -5*v - 40*x) all the time" in reported


def test_limits_that_another_experiment_reaches_are_not():
    low = reference_of(controlled(1.0))
    assert not any(each.startswith("Min(") for each in find_untested_switches([reference_of(controlled(50.0)), low]))
    assert any(each.startswith("Max(") for each in find_untested_switches([low]))


def test_what_switches_and_what_contacts_do_is_not_reported():
    assert find_untested_switches([reference_of(dropped())]) == ()
