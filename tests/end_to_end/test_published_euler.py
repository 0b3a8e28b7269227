"""SimulationX's double pendulum, integrated as its published reference was: explicit Euler, 0.1 ms, g = 9.81 m/s²."""

from __future__ import annotations

from pathlib import Path

import pytest

from mb2fmu import model
from mb2fmu.mechanics import formulations, mechanism
from mb2fmu.validation import form_experiment_values, integrate_reference_by_explicit_euler

ROOT = Path(__file__).parents[2]


@pytest.mark.repeats  # the equations' motion is known in test_models, the method's steps in unit/fmu/runtime_solvers
@pytest.mark.parametrize("method", ["tmt", "kane", "lagrange"])
def test_euler_ends_at_the_published_digits(method):
    definition = model.check_model(model.load(ROOT / "models" / "msl_double_pendulum.py"))
    equations = formulations.formulate(mechanism.read_mechanism(definition), method)
    found = integrate_reference_by_explicit_euler(
        definition, equations, 1e-4, experiment=form_experiment_values(definition, {"g": 9.81})
    )
    assert found.time[-1] == pytest.approx(3.0, abs=1e-12)
    speeds = [found[speed.name][-1] for speed in definition.speeds]
    assert speeds == pytest.approx([4.21289321, -0.17732859], abs=5e-9)
