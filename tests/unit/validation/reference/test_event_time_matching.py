"""Events that fall on a communication point: an FMU may be on either side of them, wholly, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest
from event_models import ball, belt, reference_of, trampoline

from mb2fmu.validation.comparison.motion_comparison import (
    compare_variables,
    compute_error_bounds,
    compute_invariant_results,
)
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult

AT = 10  # the point on which the event falls


@pytest.fixture(scope="module", params=[belt, ball], ids=["belt", "ball"])
def judged(request):
    """A model, what judges it, and its bounds."""
    reference = reference_of(request.param())
    return request.param, reference, compute_error_bounds(reference, measure_start_error_growth(reference))


def moved(reference, rows=None) -> FmuSimulationResult:
    """What an FMU would do that has the reference's values, but for some rows."""
    values = reference.trajectory.values.copy()
    for k, row in (rows or {}).items():
        values[k] = row
    names = tuple(v.name for v in reference.variables)
    return FmuSimulationResult(names=names, time=reference.trajectory.time, values=values, log=(), seconds_per_step=0.0)


def failed(reference, limits, simulation) -> set[str]:
    return {each.name for each in compare_variables(reference, limits, simulation) if each.verdict != "passed"}


def test_the_event_is_at_the_point_and_spoils_no_bound(judged):
    _, reference, limits = judged
    assert list(limits.sides_near_events) == [AT]
    assert np.all(limits.predictable_points == len(reference.trajectory.time))
    sizes = np.ptp(reference.trajectory.values, axis=0)
    assert np.all(limits.values <= 1e-4 * np.maximum(sizes, 0.1))


@pytest.mark.parametrize("side", [1, 2])
def test_either_side_passes(judged, side):
    _, reference, limits = judged
    unit = moved(reference, {AT: limits.sides_near_events[AT].values[side]})
    assert not failed(reference, limits, unit)
    assert all(each.verdict == "passed" for each in compute_invariant_results(reference, unit, limits))


def test_a_jump_of_another_size_is_caught(judged):
    _, reference, limits = judged
    _, before, after = limits.sides_near_events[AT].values
    for part in (0.999, 0.5, 1.001):
        assert failed(reference, limits, moved(reference, {AT: before + part * (after - before)}))


def test_variables_on_different_sides_are_caught(judged):
    _, reference, limits = judged
    _, before, after = limits.sides_near_events[AT].values
    jumping = np.flatnonzero(np.abs(after - before) > 1e-3)
    half = after.copy()
    half[jumping[0]] = before[jumping[0]]
    if len(jumping) > 1:
        assert failed(reference, limits, moved(reference, {AT: half}))


def test_an_event_that_is_missing_or_a_step_late_is_caught(judged):
    _, reference, limits = judged
    _, before, after = limits.sides_near_events[AT].values
    later = reference.trajectory.values[AT + 1] + before - after
    assert failed(reference, limits, moved(reference, {AT: before, AT + 1: later}))


@pytest.mark.parametrize("late", [1e-4, -1e-4])
def test_an_event_at_another_instant_is_caught(judged, late):
    make, reference, limits = judged
    other = make(2.0 * (1 + 2 * late)) if make is belt else make(start=9.81 / 2 * (0.5 + late) ** 2)
    values = reference_of(other).trajectory.values
    assert failed(reference, limits, moved(reference, dict(enumerate(values))))


def test_the_fmus_own_state_says_where_it_is_when_bounds_have_grown():
    reference = reference_of(trampoline())
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    other = reference_of(trampoline(1.03))  # a true motion that has its events milliseconds apart
    unit = moved(reference, dict(enumerate(other.trajectory.values)))
    assert limits.sides_near_events
    assert not [each.name for each in compute_invariant_results(reference, unit, limits) if each.verdict != "passed"]
    # Near an event of the reference this FMU is in the spring already; for a step it falls as if it were not.
    column, h = reference.trajectory.column("x"), 0.01
    k = next(k for k in limits.sides_near_events if other.trajectory.values[k, column] < -1e-3)
    x, v, *rest = other.trajectory.values[k]
    late = moved(reference, {**dict(enumerate(other.trajectory.values)), k + 1: (x + v * h, v - 9.81 * h, *rest)})
    found = {each.name for each in compute_invariant_results(reference, late, limits) if each.verdict == "failed"}
    assert {"one-step error of x", "one-step error of v"} & found
