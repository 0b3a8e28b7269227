"""Why an integration stands still is said by its numbers: a state that runs away, stiffness, no value of x'."""

from __future__ import annotations

import math

import numpy as np
import pytest
from event_models import particle, reference_of
from scipy.integrate import solve_ivp
from sympy.physics import mechanics as me

from mb2fmu.errors import ValidationError
from mb2fmu.validation.reference import event_integration
from mb2fmu.validation.reference.integration_standstill_diagnosis import (
    diagnose_integration_standstill,
    make_scipy_failure_error,
)
from mb2fmu.validation.reference.smooth_integration import (
    IntegrationStandstillError,
    integrate_smooth_equations,
    make_integration_standstill_error,
)

TIME = np.linspace(0.0, 2.0, 21)


def standstill(slope, start, budget: int) -> tuple[IntegrationStandstillError, object]:
    """The error of an integration."""
    with pytest.raises(IntegrationStandstillError) as caught:
        integrate_smooth_equations(lambda _: slope, TIME, np.array(start), 1e-10, np.ones(len(start)), budget)
    return caught.value, diagnose_integration_standstill(caught.value, slope, ["angle", "speed"][: len(start)])


def test_a_state_that_runs_away_is_named_with_its_numbers():
    error, found = standstill(lambda _, y: np.array([y[1], y[1] ** 2]), [0.0, 1.0], 20_000)  # speed = 1 / (1 - t)
    assert error.reached is not None
    assert 0.9 < error.time < 1.0 + 1e-9
    text = str(found)
    assert "states grow without bound: speed from 1.9" in text or "states grow without bound: speed from 2" in text
    assert "an earlier stop" in text
    assert "no value" not in text


def test_stiff_equations_are_not_said_to_have_no_value():
    _, found = standstill(lambda t, y: -1e7 * (y - np.cos(t)), [1.0], 5_000)
    assert "no state grows just before: " in str(found)
    assert "unstable feedback" in str(found)  # one event may have made it large before
    assert "stiff=True if the model is stiff" in str(found)


def test_where_there_is_no_value_is_said():
    """At the point, or a little further on: then no other cause is guessed."""
    error = make_integration_standstill_error(0.5, "the step size vanishes", np.ones((3, 2)))
    found = diagnose_integration_standstill(error, lambda *_: np.array([1.0, np.nan]), ["angle", "speed"])
    assert "x' has no value at angle = 1, speed = 1" in str(found)
    assert "stiff" not in str(found)
    _, found = standstill(lambda _, y: np.array([y[1], math.sqrt(1.0 - y[0])]), [0.0, 1.0], 20_000)
    assert "x' has no value at angle = 1," in str(found)
    assert found.is_explained


def test_nothing_is_added_where_nothing_is_known():
    unknown = make_integration_standstill_error(0.5, "the step size vanishes")
    assert isinstance(unknown, ValidationError)
    assert diagnose_integration_standstill(unknown, lambda _, y: y, ["angle"]) is unknown


def test_scipys_words_become_what_the_numbers_show():
    slope = lambda _, y: np.array([y[1], y[1] ** 2])  # noqa: E731
    solution = solve_ivp(slope, (0.0, 2.0), [0.0, 1.0], method="DOP853", t_eval=np.linspace(0, 2, 201), rtol=1e-10)
    assert not solution.success
    found = make_scipy_failure_error(solution, slope, ["angle", "speed"], "M cannot be simulated to 2 s:", 0.0)
    text = str(found)
    assert text.startswith("M cannot be simulated to 2 s:")
    assert "at t = 1 s or soon after the step size vanishes; x' has values there, and states grow" in text
    assert "spacing between numbers" not in text


def test_too_many_samples_are_told_as_such(monkeypatch):
    """Nothing is singular: the remedy is about what samples."""
    monkeypatch.setattr(event_integration, "_MAX_EVENTS", 40)
    force = me.dynamicsymbols("force")
    model, x, _ = particle(0.25, 0.0, lambda _, v: force - 2 * v)
    model.discrete(force, 0.0, "N")
    model.every(0.001, {force: -40 * x})
    with pytest.raises(ValidationError, match="more than 40 events came before") as caught:
        reference_of(model)
    (fault,) = caught.value.faults
    assert "sample less often" in fault.remedy
    assert "singular" not in fault.remedy
