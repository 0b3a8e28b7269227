"""The reference with events, compared with closed forms and published numbers."""

from __future__ import annotations

import functools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from event_models import dropped
from event_models import reference_of as reference_of_model
from judging import in_long_steps
from mechanisms import closed_mechanism_of

from mb2fmu.mechanics import formulations
from mb2fmu.validation.modes.equations_between_events import EquationsBetweenEvents
from mb2fmu.validation.reference.reference_run import make_reference

MODELS = Path(__file__).parents[4] / "models"


@functools.cache
def reference_of(name: str, step: float):
    mechanism = closed_mechanism_of(in_long_steps(MODELS / f"{name}.py", step))
    return make_reference(mechanism.declared, formulations.formulate(mechanism, "tmt"))


def ball():
    return reference_of("bouncing_ball", 0.1)


def friction():
    return reference_of("dry_friction_oscillator", 0.1)


def belt():
    return reference_of("stick_slip_belt", 0.25)


def instants(reference, *, jumps: bool = True) -> list[float]:
    return [event.time for event in reference.events if event.sets_state or not jumps]


def test_a_ball_bounces_when_it_should():
    reference = ball()
    wanted = [0.451523640985731, 1.08365673836575, 1.52614990653177]
    assert instants(reference)[:3] == pytest.approx(wanted, rel=1e-13)
    heights = reference.trajectory.values[:, reference.trajectory.column("h")]
    assert heights[10] == pytest.approx(0.225059760719034, rel=1e-12)
    assert heights[20] == pytest.approx(0.0424335478026277, rel=1e-11)


def test_dry_friction_stops_for_ever():
    reference = friction()
    assert instants(reference) == pytest.approx(np.pi / 10 * np.arange(1, 9), rel=1e-13)
    at = reference.trajectory.time > 0.8 * np.pi
    positions = reference.trajectory.values[at, reference.trajectory.column("x")]
    assert positions == pytest.approx(0.008, rel=1e-11)
    assert np.ptp(positions) < 1e-15
    (balance,) = reference.balances
    assert balance.worst < 1e-13


def test_stick_and_slip_take_turns():
    reference = belt()
    slip, stick = 3.90260540781452, 5.0
    wanted = np.cumsum([stick, slip, stick, slip])
    assert instants(reference, jumps=False) == pytest.approx(wanted, rel=1e-13)
    x, v = (reference.trajectory.values[:, reference.trajectory.column(name)] for name in ("x", "v"))
    sliding = (reference.trajectory.time > 5.0) & (reference.trajectory.time < 5.0 + slip)
    assert np.hypot(x - 0.5, v)[sliding] == pytest.approx(0.538516480713450, rel=1e-12)
    assert np.max(np.abs(v[reference.trajectory.time < 5.0] - 0.2)) < 1e-15


def test_modes_follow_from_a_state_alone():
    reference = friction()
    numeric, run = reference.numeric, reference.experiment
    prepared = numeric.prepare(run.parameters)
    for position, speed, wanted in ((0.005, 0.0, 0.0), (0.05, 0.0, -3.8), (0.05, 0.1, -6.2), (0.05, -0.1, -3.8)):
        rate, _ = numeric.x_dot(0.0, np.array([position, speed]), [], prepared)
        assert rate[1] == pytest.approx(wanted, abs=1e-13)


def test_parameters_that_change_are_an_event():
    """A faster belt sets what sticks to it in motion and gives it no speed; nor does one that passes what slides."""
    reference = belt()
    numeric, run = reference.numeric, reference.experiment
    names = [p.name for p in numeric.equations.p]
    before = dict(zip(names, run.parameters, strict=True))
    old = numeric.prepare(run.parameters)
    for speed, changes, rate in (
        (0.2, {"V": 0.3}, 0.4),  # stuck: pulled by F_k
        (0.2, {"F_s": 0.05, "F_k": 0.025}, -0.075),  # stuck: torn off by the spring
        (0.25, {"V": 0.3}, 0.4),  # slides faster than the belt, then slower
    ):
        x = np.array([0.1, speed])
        new = numeric.prepare([(before | changes)[name] for name in names])
        assert numeric.state_after_parameter_change(1.0, x, [], old, new).tolist() == x.tolist()
        with numeric.keep_modes(1.0, x, [], old, new):
            assert numeric.x_dot(1.0, x, [], new)[0][1] == pytest.approx(rate, abs=1e-13)
        with numeric.keep_modes(1.0, x, [], old):
            kept, _ = numeric.x_dot(1.0, x, [], new)
        assert abs(kept[1] - rate) > 0.05  # in the modes before


def test_what_changes_no_contact_is_reported_by_what_it_looks_at():
    """In turn: the ball's speed comes through zero at the top, its gap opens and closes."""
    reported = [event.name for event in reference_of_model(dropped()).events]
    up, away = "rate of the gap of ground", "gap of ground"
    assert reported == [up, "impact of ground", away, up, "impact of ground", away, up, "impact of ground"]


@pytest.mark.repeats  # by day which conditions depend on an impulse, below
def test_impacts_are_solved_for_only_where_a_condition_says_so(monkeypatch):
    """It changes nothing to solve for the impacts of every instant at which modes are found."""
    quick = reference_of("slider_crank_clearance", 0.01)
    monkeypatch.setattr(EquationsBetweenEvents, "conditions_know_impacts", True)
    thorough = reference_of.__wrapped__("slider_crank_clearance", 0.01)
    assert [event.name for event in quick.events if event.sets_state] == [
        event.name for event in thorough.events if event.sets_state
    ]
    assert len(instants(quick)) > 5
    assert instants(quick) == pytest.approx(instants(thorough), rel=1e-10)
    assert np.all(np.abs(quick.states - thorough.states) <= 1e-9 * quick.state_scales)


def test_a_condition_that_depends_on_an_impulse_is_known():
    frozen = reference_of("slider_crank_clearance", 0.01).numeric.frozen
    assert not frozen.conditions_know_impacts
    first = frozen.outputs + 3 * len(frozen.switches)
    impulse = frozen.contacts.impact_unknowns[0]
    outputs = [*frozen.equations.outputs]
    outputs[first] = replace(outputs[first], expression=outputs[first].expression + impulse)
    assert replace(frozen, equations=replace(frozen.equations, outputs=tuple(outputs))).conditions_know_impacts
