"""What a quantity changes of the motion, where the motion with its default ends in events that lead nowhere."""

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import particle, reference_of

from mb2fmu import Model
from mb2fmu.validation.comparison.motion_comparison import compute_error_bounds
from mb2fmu.validation.experiment import exercised_quantities
from mb2fmu.validation.experiment.exercised_quantities import _ExperimentWithOneDefault, _integrate_change
from mb2fmu.validation.reference.reference_run import observe_trajectory
from mb2fmu.validation.reference.start_error_growth import measure_start_error_growth

HALF = sm.Rational(1, 2)


def crossing(wall: float) -> Model:
    """Pushed by a force that depends on where a wall is; there two events undo what the other has set."""
    L, side = sm.Symbol("L"), me.dynamicsymbols("side")
    model, x, _ = particle(0.0, 1.0, lambda *_: L / 100)
    model.parameter(L, wall, "m")
    model.discrete(side, 0.0, name="side")
    model.when(sm.And(x >= L, side < HALF), {side: 1}, name="to the right")
    model.when(sm.And(x >= L, side > HALF), {side: 0}, name="to the left")
    return model


def test_a_motion_that_cannot_be_run_to_its_end_is_looked_at_up_to_there():
    reference = reference_of(crossing(wall=10.0))
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    change = _ExperimentWithOneDefault(np.array([0.6 - 10.0]), np.zeros_like(reference.experiment.inputs))
    ratios = _integrate_change(reference, limits, change)  # comes to its wall at 0.6 s, of 0.8 s
    assert ratios is not None
    assert ratios[0] > 1.0


def test_nothing_is_said_of_a_motion_that_cannot_be_begun():
    reference = reference_of(crossing(wall=10.0))
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    change = _ExperimentWithOneDefault(np.array([0.001 - 10.0]), np.zeros_like(reference.experiment.inputs))
    assert _integrate_change(reference, limits, change) is None


@pytest.mark.parametrize(("wall", "parts"), [(9.0, 16), (10.0 * (1 + 1e-12), 1)])
def test_a_change_is_followed_until_it_is_clear(monkeypatch, wall, parts):
    reference = reference_of(crossing(wall=10.0))
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    change = _ExperimentWithOneDefault(np.array([wall - 10.0]), np.zeros_like(reference.experiment.inputs))
    looks = []

    def observe(numeric, run, states, *others, first_point):
        looks.append(first_point + len(states) - 1)
        return observe_trajectory(numeric, run, states, *others, first_point=first_point)

    monkeypatch.setattr(exercised_quantities, "observe_trajectory", observe)
    ratios = _integrate_change(reference, limits, change)
    assert ratios is not None
    assert (ratios.max() > 100.0) == (parts > 1)
    assert looks[-1] == (len(reference.experiment.time) - 1) // parts
    assert len(looks) == (1 if parts > 1 else len(set(looks)))
