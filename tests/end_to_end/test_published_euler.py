"""SimulationX's double pendulum, integrated as its published reference was: explicit Euler, 0.1 ms, g = 9.81 m/s²."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from explicit_euler import integrate_explicit_euler, make_slope_with_held_inputs

from mb2fmu import model
from mb2fmu.mechanics import formulations, mechanism
from mb2fmu.validation import form_experiment_values
from mb2fmu.validation.reference.reference_run import compute_start_state
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

ROOT = Path(__file__).parents[2]


@pytest.mark.repeats  # the equations' motion is known in test_models, the method's steps in unit/fmu/runtime_solvers
@pytest.mark.parametrize("method", ["tmt", "kane", "lagrange"])
def test_euler_ends_at_the_published_digits(method):
    definition = model.check_model(model.load(ROOT / "models" / "msl_double_pendulum.py"))
    equations = formulations.formulate(mechanism.read_mechanism(definition), method)
    run = form_experiment_values(definition, {"g": 9.81})
    numeric = NumericEquations(equations)
    start = np.append(compute_start_state(numeric, run), 0.0)
    states = integrate_explicit_euler(make_slope_with_held_inputs(numeric, run), run.time, start, 1e-4)
    assert run.time[-1] == pytest.approx(3.0, abs=1e-12)
    speeds = states[-1, numeric.n_q : numeric.n_q + numeric.n_u].tolist()
    assert speeds == pytest.approx([4.21289321, -0.17732859], abs=5e-9)
