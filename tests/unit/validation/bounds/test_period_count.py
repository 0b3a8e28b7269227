"""Errors of a right FMU add up over the periods of its motion, at every tolerance; bounds grow as they do."""

from __future__ import annotations

import numpy as np
import pytest
from event_models import particle, reference_of
from scipy.integrate import solve_ivp

from mb2fmu.model import check_model
from mb2fmu.validation.bounds.range_traversal_count import count_state_range_traversals
from mb2fmu.validation.comparison.motion_comparison import ERROR_BOUND_FACTOR, compare_variables, compute_error_bounds
from mb2fmu.validation.experiment.perturbed_experiment import list_perturbed_experiments
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult

FREQUENCY = 97.0  # Hz, seen every 0.01 s: hardly more than one point in a period
PERIODS = 2 * FREQUENCY


def spring(stiffness: float, start: float = 1e-3, about: float = 0.0):
    model, _, _ = particle(start + about, 0.0, lambda x, _: -stiffness * (x - about))
    model.experiment(stop=2.0, step=0.01, tolerance=1e-6)
    return model


@pytest.fixture(scope="module")
def judged():
    reference = reference_of(spring((2 * np.pi * FREQUENCY) ** 2))
    return reference, compute_error_bounds(reference, measure_start_error_growth(reference))


def unit(reference, stiffness: float) -> FmuSimulationResult:
    """What an FMU by Dormand and Prince's method of order 5 does at the experiment's tolerance."""
    time, start = reference.trajectory.time, reference.states[0]
    found = solve_ivp(
        lambda _, s: [s[1], -stiffness * s[0]], (0.0, time[-1]), start, "RK45", time, rtol=1e-6, atol=1e-9
    )
    return FmuSimulationResult(("x", "v"), time, found.y.T, (), 0.0)


def test_periods_between_points_are_counted(judged):
    often = count_state_range_traversals(judged[0])
    assert often[0] == 0.0
    assert often[-1] == pytest.approx(2 * PERIODS, rel=0.02)
    assert often[len(often) // 2] == pytest.approx(PERIODS, rel=0.02)


def test_a_right_fmu_passes_and_another_spring_does_not(judged):
    reference, limits = judged
    stiffness = (2 * np.pi * FREQUENCY) ** 2
    results = compare_variables(reference, limits, unit(reference, stiffness))
    assert {each.verdict for each in results} == {"passed"}
    assert max(each.ratio for each in results) > 1.0 / ERROR_BOUND_FACTOR  # the bound says something
    wrong = compare_variables(reference, limits, unit(reference, stiffness * (1 + 1e-5)))
    assert {each.verdict for each in wrong} == {"failed"}


def test_what_is_far_from_zero_and_hardly_moves_is_moved():
    model = spring(4.0, start=0.2, about=1e4)
    assert next(list_perturbed_experiments(check_model(model), reference_of(model))).experiment is not None
