"""The variational equation against perturbed motions, each integrated by itself."""

from __future__ import annotations

import numpy as np
import pytest

from mb2fmu.validation import make_reference
from mb2fmu.validation.bounds import small_error_propagation
from mb2fmu.validation.bounds.small_error_propagation import propagate_small_errors
from mb2fmu.validation.reference import start_error_growth


@pytest.mark.parametrize("step", [0.01, 0.1])
def test_growth_is_that_of_integrated_motions(cases, step, monkeypatch):
    """Of swings at 0.8 rad; with ten times the step there are points between the communication points."""
    case = cases["double_pendulum"]((0.8, 0.4), step=step)
    reference = make_reference(case.definition, case.equations)
    divisions = []
    divide = small_error_propagation._integrate_between_points

    def note_division(reference, motion, parts):
        divisions.append(parts)
        return divide(reference, motion, parts)

    monkeypatch.setattr(small_error_propagation, "_integrate_between_points", note_division)
    by_variation = start_error_growth._measure_growth_to_first_order(reference)
    integrated = start_error_growth._measure_growth(reference, start_error_growth.RELATIVE_START_ERROR)
    assert bool(divisions) == (step == 0.1)
    assert by_variation == pytest.approx(integrated, rel=0.1)


def test_what_is_not_known_well_enough_is_not_told(cases, monkeypatch):
    case = cases["double_pendulum"]((0.8, 0.4), step=0.1)
    reference = make_reference(case.definition, case.equations)
    rows = np.arange(len(reference.experiment.time))
    assert propagate_small_errors(reference, np.eye(4), rows) is not None
    monkeypatch.setattr(small_error_propagation, "MAX_STEPS", len(rows) - 1)
    assert propagate_small_errors(reference, np.eye(4), rows) is None
