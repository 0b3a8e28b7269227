"""FMUs of mechanisms whose declared constraints are solved for at the start, and kept from there on."""

from __future__ import annotations

import fmpy
import pytest
from declared_constraints import falling_body
from shorter_validations import shorter_validations

from mb2fmu import pipeline


@pytest.fixture(scope="module")
def falling(tmp_path_factory):
    """The FMU's path."""
    return str(pipeline.export(falling_body(), tmp_path_factory.mktemp("falling"), method="tmt").path)


@pytest.mark.repeats  # the motion by day; laws of motion are judged in test_fmu_run_laws_of_motion_check
def test_a_body_whose_quaternion_is_a_guess_is_judged(tmp_path):
    with shorter_validations():
        result = pipeline.run(falling_body(), tmp_path, method="tmt").validated.result
    assert result.passed
    laws = {check.name: check for check in result.independent_checks if "the FMU's own runs" in check.name}
    assert [check.verdict for check in laws.values()] == ["passed", "passed"]
    assert "position constraints" in {each.name for each in result.invariants}


def test_a_body_whose_quaternion_is_a_guess_falls_freely(falling):
    """Half of g in the first second, whatever its attitude; with |q|² = 1.25 it was 0.29 m less, and passed."""
    motion = fmpy.simulate_fmu(falling, stop_time=1.0, output=["z", "q0", "q1", "length", "u0"])
    assert motion["z"][-1] == pytest.approx(-9.81 / 2, abs=1e-6)
    assert motion["q0"][0] == pytest.approx(0.75**0.5, abs=1e-12)
    assert motion["length"] == pytest.approx(1.0, abs=1e-7)
    assert motion["u0"][0] == pytest.approx(-0.025, abs=1e-12)


def test_the_guess_is_solved_for_again_in_the_fmu(falling):
    motion = fmpy.simulate_fmu(falling, stop_time=1.0, start_values={"q1": 0.1, "q2": -0.3}, output=["z", "q0", "q2"])
    assert motion["q0"][0] == pytest.approx(0.9**0.5, abs=1e-12)
    assert motion["z"][-1] == pytest.approx(-9.81 / 2, abs=1e-6)
