"""A right model that fails is as bad as a wrong one that passes."""

from __future__ import annotations

from pathlib import Path

import pytest
from right_models import RIGHT
from shorter_validations import shorten_validations

import mb2fmu
from mb2fmu.validation import ValidationResult

REPEATED = {
    "angle_after_many_turns",
    "angle_that_a_piecewise_guards",
    "block_that_bristles_hold",
    "body_of_quaternion_and_offset_centre",
    "damper_of_coefficient_zero",
    "engine_that_a_freewheel_joins_to_a_wheel",
    "force_as_a_plain_symbol",
    "linkage_of_ball_joints",
    "light_mass_that_trembles_on_a_heavy_one",
    "mass_between_springs_of_tables",
    "oscillator_at_rest_within_a_step",
    "pendulum_that_samples_spin_up",
    "rod_that_comes_to_rest_on_both_ends",
    "roots_that_two_conditions_guard",
    "two_latches_hold_one_motion",
    "power_of_an_absolute_value",
    "power_that_a_piecewise_guards",
    "power_that_a_step_guards",
    "root_of_a_maximum",
    "half_circle_that_a_piecewise_guards",
    "wheels_whose_play_rattles",
    "mass_on_straight_tables",
}
"""Of kinds that others stand for by day; momentum with tables and quaternions are judged in
test_fmu_run_laws_of_motion_check, steps of many turns in test_state_spans, and what the rod showed in
test_friction_force_solve and test_motion_comparison."""

SEEN_BY_DEFAULT = {
    "block_that_sticks_on_a_shaking_plate",
    "pendulums_quicker_than_steps",
    "two_latches_that_hold_one_motion",
}
"""Those whose disturbed motion, which takes half of the time, showed nothing more."""


@pytest.mark.parametrize("name", [name for name in RIGHT if name not in REPEATED])
def test_a_right_model_passes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was seen was the judging of motion and calls, not of what an FMU declares."""
    shorten_validations(monkeypatch, perturb=name not in SEEN_BY_DEFAULT)
    model = RIGHT[name]()
    assert_passed(mb2fmu.validate(mb2fmu.export(model, tmp_path), model).result)


@pytest.mark.repeats
@pytest.mark.parametrize("name", RIGHT)
def test_a_right_model_passes_in_whole(name: str, tmp_path: Path) -> None:
    assert_passed(mb2fmu.run(RIGHT[name](), tmp_path).validated.result)


def assert_passed(result: ValidationResult) -> None:
    failed = [each.name for each in (*result.variables, *result.invariants) if each.verdict != "passed"]
    assert result.passed, (failed, result.notes)
