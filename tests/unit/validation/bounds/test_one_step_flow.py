"""The reference's flow over one step: where it leads, and how late events make its end."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import ball, behind_a_clutch, particle, reference_of

from mb2fmu import Impact
from mb2fmu.validation.bounds.event_time_tolerances import MARGIN_OFFSETS
from mb2fmu.validation.bounds.one_step_flow import ExperimentCommunicationStep, OneStepFlow
from mb2fmu.validation.comparison.motion_comparison import compute_invariant_results
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult

G, BOUNCE = 9.81, 0.7


@pytest.fixture(scope="module")
def falling():
    """A ball that is at the ground in the middle of step 9, from 1.1 m, to be met almost to round-off."""
    model = ball(BOUNCE, start=1.1)
    model.experiment(stop=0.8, step=0.05, tolerance=1e-14)
    reference = reference_of(model)
    event = reference.events[0]
    return reference, ExperimentCommunicationStep(event.step), float(event.time)


@pytest.mark.parametrize("kind", ["ModelExchange", "CoSimulation"])
def test_lateness_is_what_the_saltation_says(falling, kind):
    """In closed form: late by δ = o / |v⁻|, it is lower by (v⁺ − v⁻) δ just behind, and faster by (1 + e) g δ."""
    reference, step, time = falling
    flow, x = OneStepFlow(reference), reference.states[step.k]
    base = flow.compute_step_end(step, x)
    assert base.x == pytest.approx(reference.states[step.k + 1], rel=1e-9)
    assert base.events[0].time == pytest.approx(time, rel=1e-12)
    late = MARGIN_OFFSETS[kind] / (G * time)
    faster = G * (1.0 + BOUNCE) * late
    rest = float(reference.trajectory.time[step.k + 1]) - time
    lower = (1.0 + BOUNCE) * G * time * late - faster * rest
    found = flow.compute_delay_shift(step, x, base, kind)
    assert found == pytest.approx([lower, faster], rel=1e-2, abs=2e-15)


def test_a_flow_ends_at_the_same_state_where_its_events_are_not_recorded(falling):
    reference, step, _ = falling
    flow, x = OneStepFlow(reference), reference.states[step.k]
    quick, full = flow.compute_step_end_without_events(step, x), flow.compute_step_end(step, x)
    assert full.events
    assert not quick.events
    assert quick.x == pytest.approx(full.x, rel=1e-13)
    assert quick.work == pytest.approx(full.work, rel=1e-12)
    assert quick.modes is not None
    assert quick.modes.values.tolist() == full.modes.values.tolist()


def test_all_steps_by_one_call_end_where_each_alone_does():
    """To the bit; behind a state without numbers nothing is known."""
    model, _, _ = particle(0.1, 0.3, lambda x, v: -40.0 * x - 0.2 * v)
    reference = reference_of(model)
    states = reference.states[:-1] * (1.0 + 1e-7)
    ends = OneStepFlow(reference).compute_all_step_ends_without_events(states)
    flow = OneStepFlow(reference)
    for k, end in enumerate(ends):
        alone = flow.compute_step_end_without_events(ExperimentCommunicationStep(k), states[k])
        assert end.x.tolist() == alone.x.tolist()
        assert end.work == alone.work
    states[3, 0] = np.nan
    broken = flow.compute_all_step_ends_without_events(states)
    assert broken[2].x.tolist() == ends[2].x.tolist()
    assert np.isnan([[*end.x, end.work] for end in broken[3:]]).all()


def test_steps_with_events_are_not_gone_by_one_call(falling):
    reference, _, _ = falling
    assert OneStepFlow(reference).compute_all_step_ends_without_events(reference.states[:-1]) is None


@pytest.mark.parametrize("late", [0.0, 1e-6])
def test_an_fmu_that_bounces_just_behind_the_end_of_a_step_is_at_a_side_of_the_event(late):
    """The ball is at the ground at 0.3 s, where a step ends: an FMU that is late still falls there."""
    model = ball(BOUNCE, start=0.5 * G * 0.3**2)
    model.experiment(stop=0.5, step=0.1, tolerance=1e-8)
    reference = reference_of(model)
    flow, x, k = OneStepFlow(reference), reference.states[2], 2
    falls = np.array([-0.5 * G * late**2, -G * (0.3 + late)])
    near = ExperimentCommunicationStep(k, fmu_state_near_event=falls)
    assert flow.compute_step_end_without_events(near, x).x[1] == pytest.approx(-G * 0.3, rel=1e-9)
    bounced = ExperimentCommunicationStep(k, fmu_state_near_event=np.array([0.0, BOUNCE * G * 0.3]))
    assert flow.compute_step_end_without_events(bounced, x).x[1] == pytest.approx(BOUNCE * G * 0.3, rel=1e-9)


def test_nothing_is_late_where_nothing_happens(falling):
    reference, step, _ = falling
    flow, quiet = OneStepFlow(reference), ExperimentCommunicationStep(step.k - 2)
    x = reference.states[quiet.k]
    assert not flow.compute_delay_shift(quiet, x, flow.compute_step_end(quiet, x), "ModelExchange").any()


@pytest.mark.parametrize(("later", "passes"), [(1.0, True), (-1.0, True), (4.0, False), (-4.0, False)])
def test_a_fmu_is_allowed_its_offset_and_no_more(falling, later, passes):
    """The bounds of a tight tolerance are below what the offset does; twice the offset is allowed."""
    reference, step, _ = falling
    flow = OneStepFlow(reference)
    x = reference.states[step.k]
    values = reference.trajectory.values.copy()
    end = flow.compute_step_end(step, x, margin_offset=later * 1e-10).x
    columns = list(reference.state_columns)
    values[step.k + 1, columns] = end
    for k in range(step.k + 1, len(values) - 1):
        end = flow.compute_step_end(ExperimentCommunicationStep(k), end).x
        values[k + 1, columns] = end
    names = tuple(v.name for v in reference.variables)
    unit = FmuSimulationResult(names, reference.trajectory.time, values, (), 0.0, kind="ModelExchange")
    found = {
        r.name: r.verdict for r in compute_invariant_results(reference, unit) if r.name.startswith("one-step error")
    }
    assert (set(found.values()) == {"passed"}) is passes
    assert np.all(np.isfinite(values))


def test_a_step_that_begins_in_given_modes_has_the_event_of_its_new_inputs():
    """A clutch is pressed from one step to the next: the modes of the step before are not those of this one."""
    reference = reference_of(behind_a_clutch(0.3 * sm.sin(4 * me.dynamicsymbols._t)))
    flow, inputs = OneStepFlow(reference), reference.experiment.inputs[:, 0]
    pressed = [k for k in range(1, len(inputs)) if inputs[k - 1] <= 0.0 < inputs[k]]
    assert pressed
    for k in pressed:
        found = flow.compute_step_end(
            ExperimentCommunicationStep(k, start_modes=reference.modes[k]), reference.states[k]
        )
        assert found.x == pytest.approx(reference.states[k + 1], rel=1e-8, abs=1e-10)


def test_a_step_at_which_parameters_change_opens_what_they_lift():
    """A floor is lowered by 1 mm under what rests on it, as in a unit: it opens, falls, and is struck 14 ms later."""
    height = sm.Symbol("height")
    model, x, _ = particle(0.1, 0.0, lambda *_: -sm.Float(G))
    model.parameter(height, 0.1, "m")
    model.add(Impact("floor", x - height, restitution=0.5, rest_below=0.01, starts_resting=True))
    reference = reference_of(model)
    before = tuple(reference.experiment.parameters)
    names = [p.name for p in model.declared if type(p).__name__ == "Parameter"]
    lowered = list(before)
    lowered[names.index("height")] = 0.099
    flow, k = OneStepFlow(reference, lowered), 4
    held = flow.compute_step_end(ExperimentCommunicationStep(k), reference.states[k])
    assert not held.events  # as if it had always been so: what rests keeps its gap
    found = flow.compute_step_end(ExperimentCommunicationStep(k, parameters_before=before), reference.states[k])
    first = next(event for event in found.events if event.sets_state)
    assert first.name == "impact of floor"
    assert first.time - reference.experiment.time[k] == pytest.approx(np.sqrt(2e-3 / G), rel=1e-9)
