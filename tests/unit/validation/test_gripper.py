"""The gripper: what it does in turn, and the impulse and the fall in closed form, by the reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mechanisms import closed_mechanism_of

from mb2fmu.mechanics import formulations
from mb2fmu.model import load
from mb2fmu.validation.reference.event_integration import IntegrationEventLog, integrate_with_events
from mb2fmu.validation.reference.experiment_values import form_experiment_values
from mb2fmu.validation.reference.reference_run import (
    compute_start_state,
    drop_diagnostic_outputs,
    make_numeric_equations,
)

MODEL = Path(__file__).parents[3] / "models" / "gripper.py"
G, HALF, LENGTH = 9.81, 0.05, 0.5
GRIPS = "impact of floor, grip closes"


@pytest.fixture(scope="module")
def done():
    """Names of the states, and what happened."""
    mechanism = closed_mechanism_of(load(MODEL))
    run = form_experiment_values(mechanism.declared)
    equations = drop_diagnostic_outputs(formulations.formulate(mechanism, "kane"))
    numeric = make_numeric_equations(equations, mechanism.declared)
    numeric.compile()
    start, log = np.append(compute_start_state(numeric, run), 0.0), IntegrationEventLog()
    scales = np.maximum(np.abs(start), 1e-3)
    prepared = numeric.prepare(run.parameters)
    options = {"parts": 1, "projected": False, "budget": 10**6}
    integrate_with_events(numeric, run.time, run.inputs, prepared, start, 1e-10, scales, event_log=log, **options)
    return [str(symbol) for symbol in equations.states], [event for event in log.events if event.sets_state]


def at(done, name: str, which: str, side: int) -> float:
    """A state before (0) or after (1) the first event of that name."""
    names, events = done
    event = next(event for event in events if event.name == name)
    return float(event.states[side][names.index(which)])


def test_it_grips_lifts_drops_and_the_load_bounces(done):
    happened = [event.name for event in done[1]]
    assert happened[:5] == [GRIPS, "floor opens", "floor has parted", "grip opens", "impact of floor"]
    assert [done[1][i].time for i in (0, 3)] == pytest.approx([0.1, 0.8], abs=1e-12)


def test_gripping_makes_load_and_hand_go_on_together(done):
    """The hand comes down, so that the load is pressed upon the floor at the same instant, and stays there."""
    q1, q2, u1, u2, vx, vy = (at(done, GRIPS, name, 1) for name in ("q1", "q2", "u1", "u2", "vx", "vy"))
    links = ((q1, u1), (q1 + q2, u1 + u2))
    hand = [LENGTH * sum(rate * along(turn) for turn, rate in links) for along in (lambda a: -np.sin(a), np.cos)]
    assert [vx, vy] == pytest.approx(hand, abs=1e-12)
    assert abs(vx) > 1e-3
    assert vy == pytest.approx(0.0, abs=1e-12)
    work = np.diff([side[-1] for side in done[1][0].states])
    assert work < 0.0  # a latch closes without restitution


def test_what_is_dropped_falls_freely_and_bounces(done):
    height, speed = (at(done, "grip opens", name, 1) for name in ("y", "vy"))
    times = {event.name: event.time for event in reversed(done[1])}
    fall = (speed + np.sqrt(speed**2 + 2 * G * (height - HALF))) / G
    assert times["impact of floor"] - times["grip opens"] == pytest.approx(fall, rel=1e-8)
    struck = [at(done, "impact of floor", "vy", side) for side in (0, 1)]
    assert struck == pytest.approx([speed - G * fall, 0.4 * (G * fall - speed)], rel=1e-8)
