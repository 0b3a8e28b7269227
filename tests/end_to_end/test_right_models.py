"""A right model that fails is as bad as a wrong one that passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from right_models import RIGHT

import mb2fmu

REPEATED = {
    "angle_after_many_turns",
    "angle_that_a_piecewise_guards",
    "damper_of_coefficient_zero",
    "light_mass_that_trembles_on_a_heavy_one",
    "oscillator_at_rest_within_a_step",
    "roots_that_two_conditions_guard",
    "two_latches_hold_one_motion",
    "power_of_an_absolute_value",
    "power_that_a_step_guards",
    "root_of_a_maximum",
    "half_circle_that_a_piecewise_guards",
}
"""Of kinds that others stand for by day."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.repeats if name in REPEATED else ()) for name in RIGHT]
)
def test_a_right_model_passes(name: str, tmp_path: Path) -> None:
    result = mb2fmu.run(RIGHT[name](), tmp_path).validated.result
    failed = [each.name for each in (*result.variables, *result.invariants) if each.verdict != "passed"]
    assert result.passed, (failed, result.notes)
