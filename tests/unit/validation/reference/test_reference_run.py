"""The reference against closed forms."""

from __future__ import annotations

from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy.linalg
import sympy as sm
from explicit_euler import integrate_explicit_euler
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import mechanism_of
from sympy.physics import mechanics as me
from sympy.physics.mechanics import dynamicsymbols

from mb2fmu import Model
from mb2fmu.errors import ValidationError
from mb2fmu.mechanics.equations.equations_of_motion import MassMatrixDynamics
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.validation import form_experiment_values, make_reference
from mb2fmu.validation.reference.smooth_integration import (
    TIGHTEST_SOLVER_TOLERANCE,
    integrate_smooth_equations,
)


def pendulum_angle(time: float, start: float, g: float) -> float:
    """2 asin(k sn(K - w t | k²)), k = sin(start/2): the pendulum released from rest."""
    with mpmath.workdps(30):
        k = mpmath.sin(mpmath.mpf(start) / 2)
        argument = mpmath.ellipk(k**2) - mpmath.sqrt(mpmath.mpf(g)) * mpmath.mpf(time)
        return float(2 * mpmath.asin(k * mpmath.ellipfun("sn", argument, m=k**2)))


@settings(max_examples=5, deadline=None)
@given(start=st.floats(0.1, 3.0))
def test_pendulum_meets_elliptic_functions_within_its_uncertainty(cases, start):
    case = cases["pendulum"](start, step=0.05)
    trajectory = make_reference(case.definition, case.equations).trajectory
    exact = [pendulum_angle(time, start, 9.81) for time in trajectory.time.tolist()]
    error = np.abs(trajectory["q"] - exact)
    assert np.all(error <= 3 * trajectory.uncertainty[:, 0])
    assert np.max(error) < 1e-11


def linear_answer(time, tau, start, w):
    """(q, u, z) at each time by the matrix exponential, the input held over each step."""
    A = np.array([[0, 1, 0], [-(w**2), 0, 0], [1, 0, -1.0]])
    B = np.array([0, 1.0, 0])
    h = time[1]
    # exp of the augmented matrix gives the held input's exact effect.
    whole = scipy.linalg.expm(np.block([[A, B[:, None]], [np.zeros((1, 4))]]) * h)
    x = [np.array(start)]
    for value in tau:
        x.append(whole[:3, :3] @ x[-1] + whole[:3, 3] * value)
    return np.array(x)


def test_forced_linear_system_meets_the_matrix_exponential(cases):
    now = dynamicsymbols._t
    case = cases["oscillator"](signal=2 * sm.sin(4 * now) + sm.Piecewise((1, now < 1), (0, True)))
    reference = make_reference(case.definition, case.equations)
    run = reference.experiment
    assert run.inputs[3, 0] == pytest.approx(2 * np.sin(4 * run.time[3]) + 1, rel=1e-15)
    exact = linear_answer(run.time, run.inputs[:, 0], [0.4, -0.3, 0.1], 3.0)
    assert np.max(np.abs(reference.states - exact)) < 1e-12
    # Outputs at a communication point see the input of the step that ends there.
    held = np.concatenate([run.inputs[:1, 0], run.inputs[:, 0]])
    assert np.max(np.abs(reference.trajectory["pull"] - (2 * held - 9.0 * exact[:, 0]))) < 1e-11


def test_energy_is_balanced_only_by_true_powers(cases):
    case = cases["oscillator"](signal=1.5)
    right = make_reference(case.definition, case.equations).balances
    assert [b.name for b in right] == ["energy"]
    assert right[0].worst < 1e-12
    wrong = replace(case.equations, energy=replace(case.equations.energy, powers=case.equations.energy.powers[:1]))
    assert make_reference(case.definition, wrong).balances[0].worst > 1e-2


def test_unbalanced_energy_is_not_judged(cases):
    case = cases["pendulum"](stop=0.2)
    energy = replace(case.equations.energy, balanced=False, reason="the pivot is moved")
    assert make_reference(case.definition, replace(case.equations, energy=energy)).balances == ()


def test_uncertainty_never_decreases(cases):
    case = cases["double_pendulum"]((2.0, 1.0), stop=3.0)
    uncertainty = make_reference(case.definition, case.equations).trajectory.uncertainty
    assert np.all(np.diff(uncertainty, axis=0) >= 0)
    assert np.all(uncertainty > 0)


def test_explicit_euler_takes_the_steps_it_says():
    time = np.array([0.0, 0.5, 1.0])
    y = integrate_explicit_euler(lambda _: lambda _t, y: -y, time, np.array([1.0]), 0.1)
    assert y[:, 0] == pytest.approx([1.0, 0.9**5, 0.9**10], rel=1e-14)


def test_inertia_that_vanishes_is_named(cases):
    case = cases["pendulum"]()
    dynamics = MassMatrixDynamics(sm.ImmutableMatrix([[0]]), case.equations.dynamics.forcing)
    with pytest.raises(ValidationError, match="the accelerations is singular"):
        make_reference(case.definition, replace(case.equations, dynamics=dynamics))


def test_motion_that_ends_in_a_singularity_is_named(cases):
    """u' = u², u(0) = 1 runs to infinity at t = 1."""
    case = cases["pendulum"]()
    dynamics = MassMatrixDynamics(sm.ImmutableMatrix([[1]]), sm.ImmutableMatrix([[case.equations.u[0] ** 2]]))
    definition = replace(case.definition, speeds=(replace(case.definition.speeds[0], start=1.0),))
    with pytest.raises(ValidationError, match="cannot be integrated"):
        make_reference(definition, replace(case.equations, dynamics=dynamics))


def test_bad_signals_are_all_named(cases):
    case = cases["oscillator"](signal=sm.Symbol("nobody") + 1)
    with pytest.raises(ValidationError, match="nobody"):
        form_experiment_values(case.definition)
    case = cases["oscillator"](signal=1 / dynamicsymbols._t)
    with pytest.raises(ValidationError, match="tau"):
        form_experiment_values(case.definition)


def test_parameters_are_overridden_by_name(cases):
    case = cases["pendulum"](stop=1.0)
    run = form_experiment_values(case.definition, {"g": 5.0})
    angle = make_reference(case.definition, case.equations, experiment=run).trajectory["q"][-1]
    assert angle == pytest.approx(pendulum_angle(1.0, 2.0, 5.0), abs=1e-12)
    with pytest.raises(ValidationError, match="gravity is no free parameter"):
        form_experiment_values(case.definition, {"gravity": 5.0})


@settings(max_examples=50, deadline=None)
@given(steps=st.integers(1, 400), step=st.floats(1e-4, 0.5))
def test_the_last_step_is_not_lost_to_round_off(cases, steps, step):
    case = cases["pendulum"]()
    experiment = replace(case.definition.experiment, stop=step * steps, step=step)
    assert len(form_experiment_values(replace(case.definition, experiment=experiment)).time) == steps + 1


def test_round_off_of_slopes_does_not_make_steps_short():
    """An estimate of the error sums a dozen slopes: none is smaller than what their round-off makes of that sum.

    Two coupled equations whose slopes are known to 1e-7 only, as those of a chain of 300 links. A few hundred
    evaluations are enough; where one slope's round-off was allowed for, it took more than 40,000.
    """
    spent = 0

    def slope(t: float, y: np.ndarray) -> np.ndarray:
        nonlocal spent
        spent += 1
        return 10.0 * np.cos(y[::-1]) + 1e-7 * np.sin(1e17 * y + 1e15 * t)

    found = integrate_smooth_equations(
        lambda _: slope, np.linspace(0.0, 1.0, 11), np.array([0.1, 1.0]), TIGHTEST_SOLVER_TOLERANCE, np.ones(2), 100_000
    )
    smooth = integrate_smooth_equations(
        lambda _: lambda _, y: 10.0 * np.cos(y[::-1]), np.linspace(0.0, 1.0, 11), np.array([0.1, 1.0]),
        TIGHTEST_SOLVER_TOLERANCE, np.ones(2), 100_000,
    )  # fmt: skip
    assert spent < 1000
    assert np.max(np.abs(found - smooth)) < 1e-6


@pytest.mark.parametrize(("dependent", "when"), [("y", 0.8), ("along", None)])
def test_dependent_speeds_that_become_undetermined_are_noticed(dependent, when):
    """A skate that turns steadily: where it stands across x after a quarter turn, its speed along x says nothing."""
    x, y, turn, ux, uy, omega = me.dynamicsymbols("x y turn ux uy omega")
    m, J = sm.symbols("m J")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    B = N.orientnew("B", "Axis", [turn, N.z])
    B.set_ang_vel(N, omega * N.z)
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    if dependent == "y":
        P.set_vel(N, ux * N.x + uy * N.y)
    else:
        P.set_vel(N, ux * B.x + uy * B.y)
    kinematics = [P.pos_from(O).dt(N).dot(axis) - P.vel(N).dot(axis) for axis in (N.x, N.y)]
    body = me.RigidBody("skate", P, B, m, (me.inertia(B, 0, 0, J), P))
    kane = me.KanesMethod(
        N, [x, y, turn], [ux, omega], [*kinematics, turn.diff() - omega],
        u_dependent=[uy], velocity_constraints=[P.vel(N).dot(B.y)], bodies=[body], forcelist=[(P, m * N.x)],
    )  # fmt: skip
    model = Model("Skate", kane)
    for symbol in (m, J):
        model.parameter(symbol, 1.0)
    for symbol in (x, y, turn):
        model.coordinate(symbol, 0.0)
    for symbol, start in ((ux, 0.0), (uy, 0.0), (omega, 2.0)):
        model.speed(symbol, start, kind="guess" if symbol == uy else "fixed")
    model.experiment(stop=1.0, step=0.05, tolerance=1e-6)
    mechanism = mechanism_of(model)
    reference = make_reference(mechanism.declared, formulate(mechanism, "tmt"))
    assert reference.find_undetermined_time() == (when if when is None else pytest.approx(when))
