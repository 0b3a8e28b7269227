"""Scales: covariant with lengths, masses and times; nothing large beside a small thing hides its faults."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from explicit_euler import make_slope_with_held_inputs
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import mechanism_of
from representatives import by_night
from scipy.integrate import solve_ivp

from mb2fmu import Model, Parts
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units
from mb2fmu.units import BASE_UNITS, parse_unit
from mb2fmu.validation import (
    FmuSimulationResult,
    ReferenceRun,
    form_experiment_values,
    make_reference,
    measure_start_error_growth,
)
from mb2fmu.validation.comparison.motion_comparison import (
    compare_variables,
    compute_error_bounds,
    compute_invariant_results,
)
from mb2fmu.validation.reference.reference_run import (
    compute_constraint_scales,
    compute_start_state,
    observe_trajectory,
)
from mb2fmu.validation.reference.variable_scales import (
    compute_motion_scales,
    compute_residual_scales_and_round_off,
    compute_variable_sizes_of_motion,
    enlarge_sizes_of_zeros,
    find_moving_variables,
)

POWERS = st.integers(-6, 6).map(lambda n: 10.0**n)


def rotor_beside_spring(stiffness: float, amplitude: float) -> Model:
    """A rotor of 1,000 rad/s; beside it, free of it, a mass of 1 kg on a spring."""
    theta, s, w, v = me.dynamicsymbols("theta s w v")
    J, m, k = sm.symbols("J m k", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", [theta, N.z])
    A.set_ang_vel(N, w * N.z)
    P = O.locatenew("P", s * N.x)
    P.set_vel(N, v * N.x)
    bodies = [me.RigidBody("rotor", O, A, m, (me.inertia(A, J, J, J), O)), me.Particle("mass", P, m)]
    kane = me.KanesMethod(N, [theta, s], [w, v], [theta.diff() - w, s.diff() - v])
    kane.kanes_equations(bodies, [(P, -k * s * N.x)])
    model = Model("Rotor", kane)
    model.parameter(J, 0.1, "kg.m2")
    model.parameter(m, 1.0, "kg")
    model.parameter(k, stiffness, "N/m")
    model.coordinate(theta, 0.0, "rad")
    model.coordinate(s, amplitude, "m")
    model.speed(w, 1000.0, "rad/s")
    model.speed(v, 0.0, "m/s")
    model.experiment(stop=10.0, step=0.05, tolerance=1e-6)
    return model


def rotor_beside_loop() -> Model:
    """A rotor of 1,000 rad/s beside a pendulum of 0.5 m in Cartesian coordinates, which a constraint closes."""
    theta, x, y, w, u, v = me.dynamicsymbols("theta x y w u v")
    J, m, l, g = sm.symbols("J m l g", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", [theta, N.z])
    A.set_ang_vel(N, w * N.z)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, u * N.x + v * N.y)
    parts = Parts(
        frame=N,
        origin=O,
        q=(theta, x, y),
        u=(w, u, v),
        kinematic_equations=(w - theta.diff(), u - x.diff(), v - y.diff()),
        bodies=(me.RigidBody("rotor", O, A, m, (me.inertia(A, J, J, J), O)), me.Particle("bob", P, m)),
        loads=(me.Force(P, -m * g * N.y),),
        holonomic_constraints=(sm.sqrt(x**2 + y**2) - l,),
        q_dependent=(y,),
        u_dependent=(v,),
    )
    model = Model("RotorAndLoop", parts)
    model.parameter(J, 0.1, "kg.m2")
    model.parameter(m, 1.0, "kg")
    model.parameter(l, 0.5, "m")
    model.parameter(g, 9.81, "m/s2")
    model.coordinate(theta, 0.0, "rad")
    model.coordinate(x, 0.3, "m")
    model.coordinate(y, -0.4, "m", kind="guess")
    model.speed(w, 1000.0, "rad/s")
    model.speed(u, 0.0, "m/s")
    model.speed(v, 0.0, "m/s", kind="guess")
    model.experiment(stop=10.0, step=0.05, tolerance=1e-6)
    return model


def reference_of(model: Model) -> ReferenceRun:
    mechanism = mechanism_of(model)
    return make_reference(mechanism.declared, formulate(mechanism, "tmt"))


def integrated(reference: ReferenceRun, parameters: dict[str, float], definition) -> np.ndarray:
    """What an FMU with other parameters shows, one that integrates well."""
    numeric, run = reference.numeric, form_experiment_values(definition, parameters)
    slope = make_slope_with_held_inputs(numeric, run)(0)
    answer = solve_ivp(
        lambda t, x: slope(t, np.append(x, 0.0))[:-1],
        (0.0, float(run.time[-1])),
        compute_start_state(numeric, run),
        t_eval=run.time,
        method="DOP853",
        rtol=1e-10,
        atol=1e-14,
    )
    return observe_trajectory(numeric, run, answer.y.T, numeric.prepare(run.parameters))[0]


def simulation(reference: ReferenceRun, values: np.ndarray) -> FmuSimulationResult:
    return FmuSimulationResult(reference.trajectory.names, reference.trajectory.time, values, (), 0.0)


@pytest.mark.parametrize("amplitude", [4e-4, *by_night(5e-3)])
def test_a_fast_rotor_hides_no_wrong_spring(amplitude):
    """Seen: with k = 4 instead of 5 it passed, for the bound of 0.4 mm was that of 1,000 rad/s."""
    model = rotor_beside_spring(5.0, amplitude)
    definition = mechanism_of(model).declared
    reference = reference_of(model)
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    assert np.all(limits.values[:, 1] <= 0.05 * 2 * amplitude)
    for stiffness, wrong in ((5.0, set()), (5.0005, {"s", "v"}), (4.0, {"s", "v"})):
        found = simulation(reference, integrated(reference, {"k": stiffness}, definition))
        results = compare_variables(reference, limits, found)
        assert {r.name for r in results if r.verdict != "passed"} == wrong
    invariants = {i.name: i.verdict for i in compute_invariant_results(reference, found)}
    assert invariants["one-step error of v"] == "failed"
    assert invariants["one-step error of w"] == "passed"


def test_after_many_turns_a_loop_may_gape_no_wider():
    """Seen: with a wheel at 1e4 rad, half a metre was within the bound of a loop."""
    reference = reference_of(rotor_beside_loop())
    values = reference.trajectory.values
    names = reference.trajectory.names
    assert np.max(np.abs(values[:, names.index("theta")])) > 9e3
    assert {i.verdict for i in compute_invariant_results(reference, simulation(reference, values))} == {"passed"}
    for name, gap, invariant in (("x", 1e-4, "position constraints"), ("u", 1e-3, "velocity constraints")):
        torn = values.copy()
        torn[100:, names.index(name)] += gap
        failed = {
            i.name for i in compute_invariant_results(reference, simulation(reference, torn)) if i.verdict == "failed"
        }
        assert invariant in failed


def test_an_angle_changes_a_row_by_no_more_than_it_turns():
    reference = reference_of(rotor_beside_loop())
    names, scales = reference.trajectory.names, reference.scales.copy()
    scales[names.index("theta")] *= 1e6
    sizes, _ = compute_constraint_scales(reference.numeric, reference.experiment, reference.trajectory.values, scales)
    assert 0.1 < sizes[0] < 2.0  # of a pendulum of 0.5 m

    class Crank:
        """A row that turns with its first coordinate."""

        def residuals(self, points, _):
            return (0.3 * np.sin(points[:, 1]) + points[:, 2])[:, None]

    turned = np.linspace(0.0, 1e4, 50)
    motion = np.column_stack([turned, turned, -0.3 * np.sin(turned)])
    found, terms = compute_residual_scales_and_round_off(Crank(), (1, 2), motion, np.array([1e4, 0.3]), ())
    assert 0.5 < found[0] < 1.0
    assert terms[0] < 1e4


def rescaled(model: Model, factors: dict[str, float]):
    """A definition with all its numbers measured in other base units."""

    def scaled(value: float, unit: str) -> float:
        powers = dict(zip(BASE_UNITS, parse_unit(unit).exponents, strict=True))
        return value * float(np.prod([factor ** powers[base] for base, factor in factors.items()]))

    d = mechanism_of(model).declared
    return replace(
        d,
        parameters=tuple(replace(p, value=scaled(p.value, p.unit)) for p in d.parameters),
        coordinates=tuple(replace(c, start=scaled(c.start, c.unit)) for c in d.coordinates),
        speeds=tuple(replace(s, start=scaled(s.start, s.unit)) for s in d.speeds),
        experiment=replace(
            d.experiment, stop=scaled(d.experiment.stop, "s"), step=scaled(d.experiment.step, "s"), signals={}
        ),
    )


@settings(max_examples=8, deadline=None)
@given(
    length=POWERS, mass=POWERS, time=POWERS, unit=st.sampled_from(["m", "mm/s", "N", "N.m/rad", "J", "kg.m2", "deg"])
)
def test_natural_units_follow_every_change_of_units(length, mass, time, unit):
    model = rotor_beside_loop()
    before = estimate_characteristic_units(mechanism_of(model).declared)
    after = estimate_characteristic_units(rescaled(model, {"m": length, "kg": mass, "s": time}))
    powers = dict(zip(BASE_UNITS, parse_unit(unit).exponents, strict=True))
    factor = length ** powers["m"] * mass ** powers["kg"] * time ** powers["s"]
    assert after.magnitude(unit) == pytest.approx(factor * before.magnitude(unit), rel=1e-9)


def test_round_off_says_nothing():
    """Seen: speeds that loops had given as 1e-17 made a natural time of a day."""
    model = rotor_beside_loop()
    d = mechanism_of(model).declared
    speeds = [replace(s, start=1e-17) if s.name == "u" else s for s in d.speeds]
    guessed = [replace(s, start=1e-17, kind="guess") if s.name == "u" else s for s in d.speeds]
    for unit in ("s", "m", "kg"):
        known = estimate_characteristic_units(d).magnitude(unit)
        assert known / 5 < estimate_characteristic_units(replace(d, speeds=tuple(speeds))).magnitude(unit) < 5 * known
        assert estimate_characteristic_units(replace(d, speeds=tuple(guessed))).magnitude(unit) == known


def test_what_a_model_says_nothing_of_has_si_units():
    model = rotor_beside_loop()
    assert estimate_characteristic_units(mechanism_of(model).declared).magnitude("A") == 1.0
    assert estimate_characteristic_units(mechanism_of(model).declared, [(3.0, "A")]).magnitude("mA") == pytest.approx(
        3000.0
    )


@settings(max_examples=50, deadline=None)
@given(factor=POWERS, offset=st.floats(-1e5, 1e5), noise=st.floats(1e-18, 1e-14))
def test_scales_follow_their_own_variable_alone(factor, offset, noise):
    t = np.linspace(0.0, 1.0, 40)
    values = np.stack([np.sin(9 * t), offset + np.cos(5 * t), noise * np.sin(7 * t), np.full_like(t, 3.0)], axis=1)
    uncertainty = np.full_like(values, 1e-15) + 64 * 2.2e-16 * np.abs(values).max(axis=0)
    typical = np.array([0.5, 0.5, 0.5, 0.5])
    moves = find_moving_variables(values, uncertainty, typical)
    assert moves.tolist() == [True, True, False, False]
    scales = compute_motion_scales(values, moves, typical)
    sizes = compute_variable_sizes_of_motion(values, moves, typical, np.full(4, 1e3), np.array([7.0, 7.0, 7.0, 0.0]))
    assert scales[1] <= 10 * np.ptp(values[:, 1])
    assert sizes[:2] == pytest.approx(np.ptp(values[:, :2], axis=0))
    assert sizes[2:].tolist() == [7.0, 0.5]
    # One column measured in other units: its own scale follows, the others do not notice.
    other = np.array([factor, 1.0, 1.0, 1.0])
    again = compute_motion_scales(
        values * other, find_moving_variables(values * other, uncertainty * other, typical * other), typical * other
    )
    assert again == pytest.approx(scales * other, rel=1e-12)


def test_zeros_have_the_size_of_what_cancels_in_them():
    """A hinge's torque about its own axis beside energies, a force beside forces; what is small has its own size."""
    units, largest = ["N.m", "N.m", "N", "N", "m"], np.array([1e-12, 1e-3, 3e-11, 50.0, 0.0])
    sizes = enlarge_sizes_of_zeros(np.array([2e-4, 1e-3, 2e-4, 50.0, 0.7]), largest, units, energy=20.0)
    assert sizes.tolist() == [20.0, 1e-3, 50.0, 50.0, 0.7]
