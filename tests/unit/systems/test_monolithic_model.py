"""The model of a whole system is integrated by the equations of its reference."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, pipeline
from mb2fmu.errors import ValidationError
from mb2fmu.pipeline.system_runs.monolithic_model_simulation import simulate_monolithic_model

WHOLE = Path(__file__).parents[3] / "systems" / "two_masses" / "whole.py"


def pulled_mass(start: float) -> Model:
    """x'' = r + √x, held by nothing; r starts at 2."""
    x, v, r = me.dynamicsymbols("x v r")
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_pos(O, x * N.x)
    P.set_vel(N, v * N.x)
    bodies, loads = [me.Particle("m", P, 1)], [(P, (r + sm.sqrt(x)) * N.x)]
    model = Model("Pulled", me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=bodies, forcelist=loads))
    model.coordinate(x, start, "m")
    model.speed(v, 0.0, "m/s")
    model.input(r, 2.0, "N")
    model.output("force", r + sm.sqrt(x), "N")
    model.experiment(stop=1.0, step=0.1, signals={r: 7.0})
    return model


def test_two_masses_move_as_their_closed_form() -> None:
    time = np.linspace(0.0, 1.0, 21)
    found = simulate_monolithic_model(pipeline.derive(WHOLE), time)
    slow, fast = 0.5 * np.cos(2.0 * np.pi * time), 0.5 * np.cos(6.0 * np.pi * time)
    assert found["x1"] == pytest.approx(slow + fast, abs=1e-11)
    assert found["x2"] == pytest.approx(slow - fast, abs=1e-11)


def test_inputs_keep_their_starts_and_outputs_are_known_at_any_times() -> None:
    time = np.array([0.0, 0.3, 0.35, 2.0])
    found = simulate_monolithic_model(pipeline.derive(pulled_mass(1.0)), time)
    assert found["force"] == pytest.approx(2.0 + np.sqrt(found["x"]), abs=1e-13)
    energy = 0.5 * found["v"] ** 2 - 2.0 * found["x"] - found["x"] ** 1.5 / 1.5
    assert energy == pytest.approx(energy[0], abs=1e-9)


def test_a_start_without_a_derivative_is_named() -> None:
    with pytest.raises(ValidationError, match="Pulled cannot be simulated:"):
        simulate_monolithic_model(pipeline.derive(pulled_mass(-1.0)), np.linspace(0.0, 1.0, 3))
