"""The stiff integrator: its order, its digits and its stiffness."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from mb2fmu.errors import ValidationError
from mb2fmu.validation import make_reference
from mb2fmu.validation.reference.radau_collocation import compute_radau_coefficients, integrate_stiff_equations
from mb2fmu.validation.reference.smooth_integration import integrate_smooth_equations, make_slope_at_instants
from mb2fmu.validation.reference.trajectory_integration import TrajectoryIntegrationProblem

ONE = np.array([1.0])


@pytest.mark.parametrize("stages", [1, 2, 3, 5, 7])
def test_collocation_integrates_polynomials_of_its_order(stages):
    c, A = compute_radau_coefficients(stages)
    for power in range(stages):
        assert A @ c**power == pytest.approx(c ** (power + 1) / (power + 1), abs=1e-14)
    for power in range(2 * stages - 1):
        assert A[-1] @ c**power == pytest.approx(1 / (power + 1), abs=1e-14)
    assert not np.isclose(A[-1] @ c ** (2 * stages - 1), 1 / (2 * stages), rtol=1e-9, atol=0)


def test_two_stages_are_the_published_ones():
    c, A = compute_radau_coefficients(2)
    assert c.tolist() == pytest.approx([1 / 3, 1], abs=1e-15)
    assert A.ravel().tolist() == pytest.approx([5 / 12, -1 / 12, 3 / 4, 1 / 4], abs=1e-15)


@settings(max_examples=20, deadline=None)
@given(rate=st.floats(1.0, 1e6), step=st.floats(0.01, 0.5))
def test_stiff_equations_meet_their_closed_form(rate, step):
    """y' = -rate (y - cos t) - sin t has y = cos t, however stiff."""
    time = np.arange(11) * step
    y = integrate_stiff_equations(
        lambda _: make_slope_at_instants(lambda t, y: -rate * (y - np.cos(t)) - np.sin(t)),
        time,
        ONE,
        1e-13,
        ONE,
        10_000,
    )
    assert np.max(np.abs(y[:, 0] - np.cos(time))) < 1e-11


def test_both_integrators_agree_on_what_both_can_do():
    """Van der Pol's oscillator with mu = 5."""
    time = np.linspace(0, 5, 51)

    def slope(_t, y):
        return np.array([y[1], 5 * (1 - y[0] ** 2) * y[1] - y[0]])

    start, scales = np.array([2.0, 0.0]), np.array([2.0, 7.0])
    explicit = integrate_smooth_equations(lambda _: slope, time, start, 2.3e-14, scales, 10**6)
    implicit = integrate_stiff_equations(lambda _: make_slope_at_instants(slope), time, start, 2.3e-14, scales, 10**5)
    assert np.max(np.abs(explicit - implicit) / scales) < 1e-9


def test_forces_that_cancel_to_round_off_do_not_hold_it_up():
    """Two masses 1 km away, held together by a hard spring that either feels with its own round-off.

    Their difference leaves 1e-5 m/s² of noise in the motion of both together, which obeys X'' = -X. No Newton iteration
    makes residuals smaller than that; asking for it cost steps of microseconds.
    """

    def slope(_t, y):
        x1, x2, v1, v2 = y
        drag = 1e4 * (v1 - v2)
        return np.array([v1, v2, -x1 - 1e8 * (x1 - x2 - 1.0) - drag, -x2 + 1e8 * (x1 - (x2 + 1.0)) + drag])

    time = np.arange(51) * 0.02
    start, scales = np.array([1000.7, 999.3, 0.0, 0.0]), np.array([1e3, 1e3, 1e3, 1e3])
    y = integrate_stiff_equations(lambda _: make_slope_at_instants(slope), time, start, 2.3e-14, scales, 100)
    assert np.max(np.abs(y[:, :2].sum(axis=1) / 2 - 1000 * np.cos(time))) < 1e-8
    assert np.max(np.abs(y[1:, 0] - y[1:, 1] - 1.0)) < 1e-6


def test_a_singularity_is_reported():
    time = np.array([0.0, 0.5, 1.5])
    with pytest.raises(ValidationError, match=r"the step size vanishes|steps are spent"):
        integrate_stiff_equations(
            lambda _: make_slope_at_instants(lambda _t, y: np.array([float(y[0]) ** 2])), time, ONE, 1e-10, ONE, 2000
        )


def reference_in_honey(case, honey_speed=0):
    """The reference of a pendulum in honey: rate 1e5 1/s, which an explicit method would resolve for nothing."""
    u = case.equations.u[0]
    drag = 1e5 * (u - honey_speed)
    forcing = case.equations.dynamics.forcing - sm.ImmutableMatrix([[drag]])
    energy = replace(case.equations.energy, powers=(*case.equations.energy.powers, ("honey", -drag * u)))
    equations = replace(
        case.equations, dynamics=replace(case.equations.dynamics, forcing=forcing), energy=energy, outputs=()
    )
    definition = replace(case.definition, experiment=replace(case.definition.experiment, stiff=True))
    return make_reference(definition, equations)


@pytest.fixture(scope="module")
def honey(cases):
    return reference_in_honey(cases["pendulum"](start=1.0, stop=0.5, step=0.05))


@pytest.fixture(scope="module")
def stirred_honey(cases):
    """The honey turns to and fro, so slopes depend on time."""
    case = cases["pendulum"](start=1.0, stop=0.5, step=0.05)
    return reference_in_honey(case, sm.cos(20 * case.equations.t))


def test_a_stiff_model_has_a_reference_that_knows_itself(honey):
    # u = -g sin(q)/1e5 but for terms of order 1e-10 of it: q follows tan(q/2) = tan(1/2) exp(-g t/1e5).
    slow = 2 * np.arctan(np.tan(0.5) * np.exp(-9.81e-5 * honey.trajectory.time))
    assert np.max(np.abs(honey.trajectory["q"] - slow)) < 1e-8
    assert np.max(honey.trajectory.uncertainty[:, 0]) < 1e-11
    assert honey.trajectory.provenance["integrator"].startswith("Radau IIA")


def stiff_problem(reference, **changes):
    run, numeric = reference.experiment, reference.numeric
    prepared = numeric.prepare(run.parameters)
    return TrajectoryIntegrationProblem(numeric, run.time, run.inputs, prepared, stiff=True, **changes)


@pytest.mark.parametrize("speed", [1.0, 3.0])
def test_c_comes_to_the_digits_of_its_twin(stirred_honey, speed):
    """A speed of 3 rad/s comes to that of the honey within 0.1 ms: steps are refused, slopes turn between halves."""
    problem, scales = stiff_problem(stirred_honey), stirred_honey.error_scales(1e-13)
    assert stirred_honey.numeric.compiled_equations is not None
    start = np.array([1.0, speed, 0.0])
    compiled = problem.integrate_trajectory(start, 2.3e-14, scales)
    twin = integrate_stiff_equations(problem._slopes, problem.time, start, 2.3e-14, scales, 10**4)
    assert np.max(np.abs(compiled - twin) / (scales + np.abs(twin))) < 1e-12  # ten steps to 1e-13 each


@pytest.mark.parametrize("budget", [3, 6, 9, 12])
def test_c_takes_the_steps_of_its_twin(stirred_honey, budget):
    start, scales = np.array([1.0, 3.0, 0.0]), stirred_honey.error_scales(1e-13)
    problem, ends = stiff_problem(stirred_honey), []
    for integrate in (
        lambda: replace(problem, budget=budget).integrate_trajectory(start, 2.3e-14, scales),
        lambda: integrate_stiff_equations(problem._slopes, problem.time, start, 2.3e-14, scales, budget),
    ):
        with pytest.raises(ValidationError, match=f"{budget} steps are spent") as error:
            integrate()
        ends.append(float(re.search(r"at t = (\S+) s", str(error.value))[1]))
    assert ends[0] == pytest.approx(ends[1], rel=0.05)  # errors near round-off choose the sizes of steps
