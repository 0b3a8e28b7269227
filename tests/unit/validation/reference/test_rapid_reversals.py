"""Where a motion passes close to a singular position, small errors are measured at the passage and not beside it."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from event_models import belt, reference_of
from sympy.physics import mechanics as me

from mb2fmu import Model
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import read_mechanism
from mb2fmu.model import check_model
from mb2fmu.validation.reference import start_error_growth
from mb2fmu.validation.reference.reference_run import make_reference


def spinning_disc() -> Model:
    """A Lagrangian that is singular at theta = 0; theta' reverses near there, and psi' has peaks of 400 rad/s."""
    psi, theta, phi, z = q = me.dynamicsymbols("psi theta phi z")
    M, R, g = sm.symbols("M R g")
    rates = [coordinate.diff() for coordinate in q]
    turning = M * R**2 / 8 * (rates[1] ** 2 + rates[0] ** 2 * sm.sin(theta) ** 2)
    spinning = M * R**2 / 4 * (rates[2] + rates[0] * sm.cos(theta)) ** 2
    lagrangian = M * rates[3] ** 2 / 2 + turning + spinning + M * g * z
    N = me.ReferenceFrame("N")
    row = rates[3] + R * sm.sin(theta) * rates[1]
    model = Model("Disc", me.LagrangesMethod(lagrangian, list(q), nonhol_coneqs=[row], frame=N))
    for symbol, value, unit in ((M, 1.0, "kg"), (R, 0.1, "m"), (g, 9.81, "m/s2")):
        model.parameter(symbol, value, unit)
    for coordinate, start in ((psi, 0.0), (theta, 0.5), (phi, 0.0)):
        model.coordinate(coordinate, start, "rad")
    model.coordinate(z, 0.0, "m")
    for rate, start in zip(rates[:3], (0.0, 0.0, 1.0), strict=True):
        model.speed(rate, start, "rad/s")
    model.speed(rates[3], 0.0, "m/s", kind="guess")
    model.experiment(stop=1.5)
    return model


def test_sensitivity_of_a_reversal_is_measured_there(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = read_mechanism(check_model(spinning_disc()))
    reference = make_reference(mechanism.declared, formulate(mechanism, "lagrange"))
    full = start_error_growth.measure_start_error_growth(reference)
    monkeypatch.setattr(start_error_growth, "MAX_SENSITIVITY_POINTS", 30)
    thinned = start_error_growth.measure_start_error_growth(reference)
    sizes = np.ptp(reference.trajectory.values, axis=0)
    assert np.max(np.maximum(full, sizes) / np.maximum(thinned, sizes)) < 3.0
    monkeypatch.setattr(start_error_growth, "find_fast_changing_points", lambda _: np.zeros(0, dtype=np.int64))
    blind = start_error_growth.measure_start_error_growth(reference)
    assert np.max(np.maximum(full, sizes) / np.maximum(blind, sizes)) > 3.5


def test_rates_are_those_of_the_outputs_of_a_model_with_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its equations between events have further outputs."""
    reference = reference_of(belt())
    monkeypatch.setattr(start_error_growth, "MAX_SENSITIVITY_POINTS", 5)
    rows = np.arange(len(reference.experiment.time))
    rates = start_error_growth._compute_output_rates(reference, rows)
    assert rates.shape == (len(rows), 1)
    assert rates[0] == pytest.approx(0.5, rel=1e-6)  # friction that holds has the spring's rate
    assert not np.isin(start_error_growth.find_fast_changing_points(reference), [0, len(rows) - 1]).any()
