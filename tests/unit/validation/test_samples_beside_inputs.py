"""Samples at communication points at which inputs jump, too: they are events of the motion, not of the inputs."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import particle, reference_of

from mb2fmu import Model
from mb2fmu.validation.comparison.event_comparison import select_reference_events
from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth

t = me.dynamicsymbols._t
DESCRIPTION = SimpleNamespace(state_derivative_pairs=(("x", "der(x)"), ("v", "der(v)"), ("force", "der(force)")))


def sampled() -> Model:
    """A mass whose force is sampled at every other communication point, and an input that changes at each."""
    force, push = me.dynamicsymbols("force push")
    model, x, v = particle(0.4, 0.1, lambda *_: force + push)
    model.input(push, 0.0, "N")
    model.discrete(force, 0.0, "N")
    model.every(0.02, {force: -8 * x - 3 * v}, offset=0.01, name="sample")
    model.experiment(stop=1.0, step=0.01, tolerance=1e-5, signals={push: sm.sin(7 * t)})
    return model


@pytest.fixture(scope="module")
def found():
    return reference_of(sampled())


def test_every_sample_is_an_event_of_the_motion(found):
    assert [event.time for event in found.events] == pytest.approx(0.01 + 0.02 * np.arange(50), abs=1e-12)
    assert not any(event.from_input_jump for event in found.events)


def test_samples_that_change_rates_only_are_not_judged_where_inputs_change_them_too(found):
    looked = select_reference_events(found, compute_error_bounds(found, measure_start_error_growth(found)), DESCRIPTION)
    of_rates = [watch for watch in looked if watch.variable_index >= len(found.variables)]
    assert of_rates
    assert all("jump with the inputs, too" in watch.reason for watch in of_rates)
    assert sum(not watch.reason for watch in looked) > 20
