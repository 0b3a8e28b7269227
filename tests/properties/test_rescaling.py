"""The verdict does not depend on units: all lengths, masses and times may be a million times larger or smaller."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from explicit_euler import make_slope_with_held_inputs
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mechanisms import mechanism_of
from representatives import by_night
from rescaling import factor, rescale
from scipy.integrate import solve_ivp

from mb2fmu import Model, pipeline, validation
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.mechanism import solve_loop_closure_start_values
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import matches_lagrangian_kinetic_energy
from mb2fmu.model.scales import characteristic_units
from mb2fmu.pipeline.derivation import model_derivation
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations
from mb2fmu.validation import FmuSimulationResult, form_experiment_values, make_reference, measure_start_error_growth
from mb2fmu.validation.api_checks import derivative_api_checks
from mb2fmu.validation.bounds.differences_with_bounds import BoundedDifferences
from mb2fmu.validation.comparison.motion_comparison import (
    compare_variables,
    compute_error_bounds,
    compute_invariant_results,
)
from mb2fmu.validation.conformity_checks import check_fmu_conformity
from mb2fmu.validation.reference.reference_run import (
    ReferenceRun,
    compute_start_state,
    observe_trajectory,
)

MODELS = Path(__file__).parents[2] / "models"
POWERS = st.sampled_from([1e-6, 1.0, 1e6])
SEVERAL = settings(max_examples=2, deadline=None, suppress_health_check=list(HealthCheck))
WITHIN = 3.0
"""Ratios of error over bound agree within this factor: integrators take other steps where round-off differs."""


def sprung_pendulum() -> Model:
    """A pendulum on a sprung, damped cart: lengths, masses and times of all kinds, and nothing written as a number."""
    x, theta, v, w = me.dynamicsymbols("x theta v w")
    M, m, l, k, c, g = sm.symbols("M m l k c g", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", [theta, N.z])
    A.set_ang_vel(N, w * N.z)
    C = O.locatenew("C", x * N.x)
    C.set_vel(N, v * N.x)
    P = C.locatenew("P", -l * A.y)
    P.v2pt_theory(C, N, A)
    kane = me.KanesMethod(N, [x, theta], [v, w], [x.diff() - v, theta.diff() - w])
    bodies = [me.Particle("cart", C, M), me.Particle("bob", P, m)]
    kane.kanes_equations(bodies, [(C, (-k * x - c * v) * N.x), (P, -m * g * N.y)])
    model = Model("SprungPendulum", kane)
    for symbol, value, unit in (
        (M, 2.0, "kg"), (m, 0.5, "kg"), (l, 0.4, "m"), (k, 90.0, "N/m"), (c, 0.3, "N.s/m"), (g, 9.81, "m/s2"),
    ):  # fmt: skip
        model.parameter(symbol, value, unit)
    model.coordinate(x, 0.0, "m")
    model.coordinate(theta, 0.9, "rad")
    model.speed(v, 0.0, "m/s")
    model.speed(w, 0.0, "rad/s")
    model.output("tip", x + l * sm.sin(theta), "m")
    model.output("spring_force", -k * x, "N")
    model.experiment(stop=1.5, step=0.05, tolerance=1e-6)
    return model


def judged(model: Model, wrong: dict[str, float]) -> dict[str, tuple[str, float]]:
    """Verdict and ratio of everything, for an integration with relative parts of parameters changed."""
    mechanism = mechanism_of(model)
    if mechanism.holonomic:
        mechanism = solve_loop_closure_start_values(mechanism)
    definition = mechanism.declared
    reference = make_reference(definition, formulate(mechanism, "kane"))
    limits = compute_error_bounds(reference, measure_start_error_growth(reference))
    values = {p.name: p.value * (1 + wrong.get(p.name, 0.0)) for p in definition.parameters}
    numeric, run = reference.numeric, form_experiment_values(definition, values)
    slope = make_slope_with_held_inputs(numeric, run)(0)
    answer = solve_ivp(
        lambda t, x: slope(t, np.append(x, 0.0))[:-1],
        (0.0, float(run.time[-1])),
        compute_start_state(numeric, run),
        t_eval=run.time,
        rtol=1e-7,
        atol=1e-9 * reference.state_scales,
    )
    found = observe_trajectory(numeric, run, answer.y.T, numeric.prepare(run.parameters))[0]
    simulation = FmuSimulationResult(reference.trajectory.names, reference.trajectory.time, found, (), 0.0)
    results = [*compare_variables(reference, limits, simulation), *compute_invariant_results(reference, simulation)]
    return {r.name: (r.verdict, r.ratio) for r in results}


@SEVERAL
@given(length=POWERS, mass=POWERS, time=POWERS, wrong=st.sampled_from(["", "M", "m", "l", "k", "c", "g"]))
def test_no_verdict_depends_on_units(length, mass, time, wrong):
    change = {wrong: 0.01} if wrong else {}
    known = judged(sprung_pendulum(), change)
    assert ("failed" in {verdict for verdict, _ in known.values()}) is bool(wrong)
    found = judged(rescale(sprung_pendulum(), length=length, mass=mass, time=time), change)
    assert {name: verdict for name, (verdict, _) in found.items()} == {name: each for name, (each, _) in known.items()}
    for name, (_, ratio) in found.items():
        if known[name][1] > 1e-3:
            assert known[name][1] / WITHIN < ratio < known[name][1] * WITHIN


@pytest.mark.parametrize(
    ("name", "wrong", "length", "mass", "time"),
    [*by_night(("four_bar", "m", 1.0, 1e-6, 1e6)), ("bouncing_ball", "e", 1e-6, 1.0, 1.0)],
)
def test_real_fmus_are_right_and_wrong_in_any_units(tmp_path, name, wrong, length, mass, time):
    """A closed loop, whose states are drawn to it by its own magnitudes; a ball whose impacts were late by 1e-10 m."""

    def made() -> Model:
        model = pipeline.load(MODELS / f"{name}.py")
        model.default_experiment = replace(model.default_experiment, stop=model.default_experiment.stop / 4)
        return rescale(model, length=length, mass=mass, time=time)

    unit = pipeline.export(made(), tmp_path).path
    for change in (1.0, 1.001):
        other = made()
        other.declared = [replace(p, value=p.value * change) if p.name == wrong else p for p in other.declared]
        read = mechanism_of(other)
        source = choose_reference_equations(read, None)
        result = validation.validate(
            unit, read.declared, source.equations, mechanism=source.mechanism, conformance=False, perturb=False
        )
        assert result.passed is (change == 1.0)
        judged = [
            *result.variables,
            *result.invariants,
            *(v for kind in result.other_interface_types for v in kind.variables),
        ]
        assert any(v.verdict == "failed" for v in judged) is (change != 1.0)


@pytest.mark.parametrize("name", ["four_bar", *by_night("crank_slider")])
def test_loops_are_drawn_together_by_the_models_own_time(name):
    """Seen: per s or per µs only, so that in milliseconds α was a thousand times too large, and the FMU stiff."""
    rates = [
        characteristic_units.choose_stabilization_rate(
            mechanism_of(rescale(pipeline.load(MODELS / f"{name}.py"), time=time)).declared
        )
        for time in (1.0, 1e-3, 1e6)
    ]
    np.testing.assert_allclose(rates, [10.0, 1e4, 1e-5], rtol=1e-15)


SMALL = {"length": 1e-3, "mass": 1e-3, "time": 1e-3}


@pytest.fixture(scope="module")
def small_four_bar(tmp_path_factory):
    """An FMU that is drawn together a thousand times faster than by default."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(characteristic_units, "DEFAULT_ATTRACTOR_RATE", 10_000)
        model = rescale(pipeline.load(MODELS / "four_bar.py"), **SMALL)
        yield pipeline.export(model, tmp_path_factory.mktemp("small")).path


def test_a_loop_that_is_read_again_is_drawn_together_as_its_fmu_is(small_four_bar):
    """Seen: in grams, millimetres, milliseconds α was 1e7/s; allowed for was 10/s, and a right FMU failed."""
    unit = small_four_bar
    checked, read = model_derivation.load_model_and_mechanism(
        rescale(pipeline.load(MODELS / "four_bar.py"), **SMALL), None, StageStopwatch(None)
    )
    assert validation.run_independent_checks(unit, checked, read).passed
    wrong = rescale(pipeline.load(MODELS / "four_bar.py"), **SMALL)
    loads = tuple(me.Force(load.point, (1 + 1e-6) * load.force) for load in wrong.mechanics.loads)
    wrong.mechanics = replace(wrong.mechanics, loads=loads)
    checked, read = model_derivation.load_model_and_mechanism(wrong, None, StageStopwatch(None))
    assert not validation.run_independent_checks(unit, checked, read).passed


def test_partials_beside_the_loop_are_allowed_for_no_more_than_they_are_off(small_four_bar, monkeypatch):
    """Seen: α = 1e7/s, and CVODE's states 3e-9 rad off the reference's: der(q3) by them was off by 1.2 of its bound."""
    unit = small_four_bar
    read = mechanism_of(rescale(pipeline.load(MODELS / "four_bar.py"), **SMALL))
    true, ratios = derivative_api_checks._compare_partial_derivatives, []

    def beside(comparison, directions, found, tally, when):
        true(comparison, directions, found, tally, when)
        for column in range(len(comparison.plan.rates)):
            wrong, other = found.copy(), BoundedDifferences()
            wrong[:, column] *= 1.001
            true(comparison, directions, wrong, other, when)
            ratios.append(other.ratio)

    monkeypatch.setattr(derivative_api_checks, "_compare_partial_derivatives", beside)
    source = choose_reference_equations(read, None)
    result = validation.validate(unit, read.declared, source.equations, mechanism=source.mechanism, conformance=False)
    assert result.passed
    assert len(ratios) == 2 * 3 * 6
    assert min(ratios) > 1.0


@pytest.mark.repeats  # magnitudes are known in unit/audit/behaviour/fixture/test_typical_magnitudes
@pytest.mark.parametrize(("length", "mass", "time"), [(1e-6, 1e-12, 1e-6)])
def test_the_auditor_moves_parameters_by_their_own_magnitudes(tmp_path, length, mass, time):
    """Seen: a moment of inertia of 1e-26 kg m2 was taken for round-off and became 0.3, and a right FMU failed."""
    model = rescale(pipeline.load(MODELS / "crank_slider.py"), length=length, mass=mass, time=time)
    read = solve_loop_closure_start_values(mechanism_of(model))
    unit = pipeline.export(model, tmp_path).path
    findings = check_fmu_conformity(unit, read.declared, choose_reference_equations(read, None).equations)
    assert [each.message for each in findings if each.severity == "error"] == []


@pytest.mark.parametrize(("length", "mass", "time"), [(1e-6, 1.0, 1.0), *by_night((1e6, 1e-6, 1e-3))])
def test_the_reference_moves_alike_in_any_units(length, mass, time):
    """Seen: with a crank of 50 nm one row of the loop was taken for redundant, and the reference came to no end."""

    def moved(scales: dict[str, float]) -> ReferenceRun:
        model = rescale(pipeline.load(MODELS / "crank_slider.py"), **scales)
        model.default_experiment = replace(model.default_experiment, stop=0.3 * scales["time"])
        read = mechanism_of(model)
        source = choose_reference_equations(read, None)
        return make_reference(read.declared, source.equations, mechanism=source.mechanism)

    known = moved({"length": 1.0, "mass": 1.0, "time": 1.0})
    found = moved({"length": length, "mass": mass, "time": time})
    sizes = [factor(v.unit, length=length, mass=mass, time=time) for v in known.variables]
    off = np.abs(found.trajectory.values / sizes - known.trajectory.values) / known.scales
    assert np.max(off) < 1e-9


@pytest.mark.parametrize("size", [1.0, 1e-3, 1e3])
def test_kinetic_energies_are_compared_in_any_units(size):
    """Seen: with grams and millimetres a Lagrangian of another mass was taken for that of the bodies."""
    q = me.dynamicsymbols("q")
    m = sm.Symbol("m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q * N.x)
    P.set_vel(N, q.diff() * N.x)
    for part, agrees in ((1, True), (2, False)):
        lagrangian = part * m * q.diff() ** 2 / 2
        method = me.LagrangesMethod(lagrangian, [q], bodies=[me.Particle("mass", P, m)], frame=N)
        method.form_lagranges_equations()
        model = Model("Mass", method)
        model.parameter(m, 1.0 * size, "kg")
        model.coordinate(q, 0.1 * size, "m")
        model.speed(q.diff(), 0.2 * size, "m/s")
        mechanism = mechanism_of(model)
        assert matches_lagrangian_kinetic_energy(mechanism) is agrees


def test_what_a_value_is_multiplied_by():
    assert factor("N.m/rad", length=10.0, mass=3.0, time=2.0) == pytest.approx(100.0 * 3.0 / 4.0)
