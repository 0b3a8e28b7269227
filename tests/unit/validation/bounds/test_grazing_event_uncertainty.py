"""What grazing events leave in doubt: bounces too low to be counted, the count and the last impulse behind them."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import particle, reference_of

from mb2fmu import Impact
from mb2fmu.validation.bounds.grazing_event_uncertainty import compute_grazing_uncertainty
from mb2fmu.validation.bounds.one_step_flow import ExperimentCommunicationStep, OneStepFlow
from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth

GRAVITY = sm.Float(9.81)
push = me.dynamicsymbols("push")


def falling(stop: float = 1.2):
    """A ball that is dropped and comes to rest by 15 bounces, the last of them lower than a micrometre."""
    model, x, _ = particle(0.2, 0.0, lambda *_: -GRAVITY)
    model.add(Impact("ground", x, restitution=0.6))
    model.experiment(stop=stop, step=0.01)
    return model


@pytest.fixture(scope="module")
def rested():
    reference = reference_of(falling())
    return reference, compute_error_bounds(reference, measure_start_error_growth(reference))


def places(reference) -> dict[str, int]:
    return {reference.trajectory.names[c]: j for j, c in enumerate(reference.state_columns)}


def test_only_what_events_set_stays_in_doubt_behind_them(rested):
    reference, limits = rested
    doubts = compute_grazing_uncertainty(reference, limits.event_time_bounds)
    grazing = [event for event in limits.event_time_bounds if event.grazing]
    sharp = [event for event in limits.event_time_bounds if not event.grazing]
    assert len(sharp) >= 5
    assert len(grazing) >= 4
    at = places(reference)
    time = reference.trajectory.time
    before = time < grazing[0].simultaneous_events.time - grazing[0].largest_allowed_difference
    assert np.all(doubts[before] == 0.0)
    behind = time > reference.events[-1].time + 0.05
    assert np.all(doubts[behind][:, [at["x"], at["v"]]] == 0.0)
    assert np.all(doubts[behind, at["ground.impacts"]] == len(grazing))
    fallen = grazing[0].simultaneous_events.first.states[0][at["ground.impulse"]]
    assert 0.0 < doubts[-1, at["ground.impulse"]] <= 1.01 * fallen


def test_a_blow_that_does_not_graze_tells_the_impulse_again_and_not_the_count():
    """What pushes the ball up at 1 s, 0.2 s after it has come to rest, lets it fall hard once more."""
    model, x, _ = particle(0.2, 0.0, lambda *_: -GRAVITY + push)
    model.add(Impact("ground", x, restitution=0.6))
    model.discrete(push, 0.0, "N", name="push")
    model.once(1.0, {push: 30.0})
    model.once(1.1, {push: 0.0})
    model.experiment(stop=1.6, step=0.01)
    reference = reference_of(model)
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    doubts, at = compute_grazing_uncertainty(reference, limits.event_time_bounds), places(reference)
    late = (event for event in limits.event_time_bounds if event.simultaneous_events.time > 1.2 and not event.grazing)
    again = next(event for event in late if event.simultaneous_events.first.sets_state)
    row = (
        int(
            np.searchsorted(
                reference.trajectory.time, again.simultaneous_events.time + again.largest_allowed_difference
            )
        )
        + 1
    )
    assert doubts[row - 3, at["ground.impulse"]] > 0.0
    assert doubts[row, at["ground.impulse"]] == 0.0
    assert doubts[row, at["ground.impacts"]] > 0.0
    assert doubts[row, at["push"]] == 0.0


def test_a_step_with_low_bounces_may_end_after_one_more_and_others_not(rested):
    reference, _ = rested
    flow, at = OneStepFlow(reference), places(reference)
    off = 5e-5 * reference.state_scales
    for k, bounces in ((10, 0), (20, 1), (80, 2)):
        x = reference.states[k]
        base = flow.compute_step_end(ExperimentCommunicationStep(k), x)
        assert sum(event.sets_state for event in base.events) >= bounces
        same, other = flow.compute_error_after_events(ExperimentCommunicationStep(k), x, base, off)
        assert (other[at["ground.impacts"]] > 0.0) == (bounces == 2)
        if bounces == 0:
            assert not same.any()
        if bounces == 1:  # δ of height is 1.6 g δ / v of speed
            expected = max(0.6 * off[at["v"]], 1.6 * 9.81 * off[at["x"]] / np.sqrt(2 * 9.81 * 0.2))
            assert same[at["v"]] == pytest.approx(expected, rel=0.02)
