"""An FMU's runs against laws that share no start value with it: planted faults are found, right runs pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from ball_joints import linkage
from declared_constraints import falling_body, swinging_director
from representatives import by_night
from right_models import (
    body_of_quaternion_and_offset_centre,
    mass_between_springs_of_tables,
    mass_on_straight_tables,
)
from scipy.integrate import solve_ivp
from strangers import STRANGERS

from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.mechanics import formulations
from mb2fmu.mechanics.mechanism import Mechanism, read_mechanism, solve_loop_closure_start_values
from mb2fmu.model import CheckedModel, Model, check_model
from mb2fmu.model import load as load_model
from mb2fmu.validation.reference.experiment_values import ExperimentValues
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult
from mb2fmu.validation.source_checks.fmu_run_laws_of_motion_check import ExperimentRun, LawsOfMotionCheck
from mb2fmu.validation.source_checks.numeric_kane_equations import NumericKaneEquations
from mb2fmu.validation.source_checks.random_admissible_points import RandomAdmissibleStateGenerator
from mb2fmu.validation.source_checks.source_kinematics_evaluation import SympySourceKinematicsEvaluator
from mb2fmu.validation.source_checks.source_objects import extract_mechanics_objects, keep_mechanics_untouched
from mb2fmu.validation.source_checks.source_symbol_slots import SympySourceSymbolSlots

MODELS = Path(__file__).resolve().parents[3] / "models"
MECHANISMS: dict[str, Callable[[], Model]] = {
    "a quaternion whose length is declared": falling_body,
    "a quaternion with a dependent rate": STRANGERS["quaternion_with_a_dependent_rate"],
    "a director": swinging_director,
    "a Lagrangian's condition": STRANGERS["lagrangian_of_a_particle_on_a_circle"],
    "rows that one coordinate joins": STRANGERS["three_coordinates_and_two_rows"],
    "ball joints": linkage,
    "an offset centre": body_of_quaternion_and_offset_centre,
    "springs of tables": mass_between_springs_of_tables,
    "straight tables": mass_on_straight_tables,
    **{
        name: lambda name=name: load_model(MODELS / f"{name}.py")
        for name in ("crank_slider", "n_four_bar", "msl_planar_four_bar", "excavator_arm")
    },
}
STEPS, STEP, TOLERANCE = 24, 0.01, 1e-6


@cache
def given(name: str) -> tuple[CheckedModel, Mechanism]:
    """The checked model, and its mechanism as it was read: start values are the model's own."""
    definition = check_model(MECHANISMS[name]())
    return definition, read_mechanism(definition)


@cache
def laws(name: str) -> LawsOfMotionCheck:
    """The laws in the words of the source objects."""
    definition, mechanism = given(name)
    quaternions = mechanism.quaternions
    with keep_mechanics_untouched(definition.mechanics):
        parts = extract_mechanics_objects(definition.mechanics)
        symbols = SympySourceSymbolSlots(definition, parts)
        rows = SympySourceKinematicsEvaluator(parts, symbols, complex_step=False)
        points = RandomAdmissibleStateGenerator(definition, parts, symbols, rows, quaternions)
        kinematics = None if parts.lagrangian else NumericKaneEquations(parts, symbols)
        scales = (points.q_scale, points.u_scale)
        return LawsOfMotionCheck(
            definition, symbols, rows, kinematics, scales, has_bent_loads="tables" in name, quaternions=quaternions
        )


def shifted(mechanism: Mechanism, by: float, *, all_guesses: bool = True) -> Mechanism:
    """The mechanism with guesses of coordinates elsewhere; none is solved for here."""
    coordinates = list(mechanism.declared.coordinates)
    guesses = [i for i, c in enumerate(coordinates) if c.kind == "guess"] or [0]
    for i in guesses if all_guesses else guesses[:1]:
        coordinates[i] = replace(coordinates[i], start=coordinates[i].start + by)
    return replace(mechanism, declared=replace(mechanism.declared, coordinates=tuple(coordinates)))


def unconstrained(mechanism: Mechanism) -> Mechanism:
    """The mechanism without constraints on positions and their rates; what no motion can leave is not solved for."""
    left, c = len(mechanism.holonomic), mechanism.velocity_constraints
    mechanism = replace(mechanism, holonomic=(), kinematic_invariants=())
    if not left:
        return mechanism
    assert c is not None
    assert len(c.names) == left
    free = replace(
        mechanism, velocity_constraints=None, multipliers=(), force_applications=(), outputs=(), needs_multipliers=False
    )
    return replace(free, u_independent=tuple(range(len(mechanism.u))))


def run_of(mechanism: Mechanism, steps: int = STEPS, step: float = STEP) -> ExperimentRun:
    """What an FMU of this mechanism does, beginning at its start values as they are."""
    d = mechanism.declared
    answers = formulations.check_applicability_of_all_formulations(mechanism)
    method = next(name for name in ("recursive-composite", *answers) if answers[name].is_applicable)
    program = lower_equations_to_program(formulations.formulate(mechanism, method))
    rhs, outputs, speeds = (make_evaluator(program, entry) for entry in ("rhs", "outputs", "dependent_speeds"))
    p = tuple(float(each.value) for each in d.parameters if not each.calculated)
    r = tuple(each.start for each in d.inputs)
    independent = range(len(d.speeds)) if mechanism.holonomic else mechanism.u_independent
    dependent = [i for i in range(len(d.speeds)) if i not in independent]
    x0 = [*(c.start for c in d.coordinates), *(d.speeds[i].start for i in independent)]
    time = np.linspace(0.0, steps * step, steps + 1)
    way = solve_ivp(
        lambda t, x: rhs(t, x, r, p), (0.0, time[-1]), x0, method="DOP853", t_eval=time, rtol=1e-9, atol=1e-10
    )
    assert way.success
    columns = dict(zip((c.name for c in d.coordinates), way.y, strict=False))
    columns |= dict(zip((d.speeds[i].name for i in independent), way.y[len(d.coordinates) :], strict=True))
    found = [(speeds(t, x, r, p), outputs(t, x, r, p)) for t, x in zip(time, way.y.T, strict=True)]
    for values, names in zip(
        zip(*found, strict=True),
        ([d.speeds[i].name for i in dependent], program.entries["outputs"].labels),
        strict=True,
    ):
        columns |= dict(zip(names, np.array(values).T, strict=True))
    run = ExperimentValues(
        time=time,
        inputs=np.tile(r, (steps, 1)),
        input_names=tuple(each.name for each in d.inputs),
        parameters=p,
        q=tuple(c.start for c in d.coordinates),
        u=(),
        z=(),
        tolerance=TOLERANCE,
    )
    return run, FmuSimulationResult(tuple(columns), time, np.array(list(columns.values())).T, (), 0.0)


def worst(name: str, mechanism: Mechanism) -> float:
    """The largest error over bound of the declared constraints."""
    return max(ratio for ratio, _ in laws(name).judge_constraints([run_of(mechanism)]))


WITHOUT_CONSTRAINTS = ("an offset centre", "springs of tables", "straight tables")
BY_DAY = ("a director", "a Lagrangian's condition", "crank_slider")


@pytest.mark.parametrize(
    "name", [*BY_DAY, *by_night(*(name for name in MECHANISMS if name not in (*BY_DAY, *WITHOUT_CONSTRAINTS)))]
)
def test_starts_beside_declared_constraints_are_found_and_right_ones_pass(name):
    _, mechanism = given(name)
    closed = solve_loop_closure_start_values(mechanism)
    assert worst(name, closed) < 1.0
    assert worst(name, shifted(mechanism, 0.01)) > 1.0, "a guess that is not solved for"
    assert worst(name, unconstrained(closed if mechanism.holonomic else shifted(mechanism, 0.01))) > 1.0, (
        "a constraint left out"
    )
    assert worst(name, shifted(closed, 1e-3, all_guesses=False)) > 1.0, "a start off by a thousandth"
    assert worst(name, solve_loop_closure_start_values(shifted(mechanism, 0.01))) < 1.0, "another guess, solved for"


def test_a_free_body_falls_with_g_whatever_its_reading_says():
    """Found without the declared constraints: q' = K u is wrong on both sides where a matrix is no rotation."""
    name = "a quaternion whose length is declared"
    _, mechanism = given(name)
    right = solve_loop_closure_start_values(mechanism)
    assert max(ratio for ratio, _ in laws(name).judge_momentum([run_of(right, 8)])) < 1.0
    K = mechanism.kinematics.matrix.as_mutable()
    K[:3, :] *= sum(q**2 for q in mechanism.q[3:])
    off = replace(mechanism, kinematics=replace(mechanism.kinematics, matrix=K.as_immutable()))
    ratio, where = max(laws(name).judge_momentum([run_of(off, 8)]))
    assert ratio > 1e3
    assert "free axis 3" in where


@pytest.mark.parametrize("length", [0.8, *by_night(1.3)])
def test_a_quaternion_of_another_length_means_the_same_orientation(length: float) -> None:
    """Eccentric, so that its centre is where the orientation puts it; loops are closed by it."""
    falling, linked = (
        _with_quaternion_of_length(given(name)[1], length) for name in ("an offset centre", "ball joints")
    )
    assert max(ratio for ratio, _ in laws("an offset centre").judge_momentum([run_of(falling, 8)])) < 1.0
    assert worst("ball joints", linked) < 1.0
    run, simulation = run_of(linked)
    unit = replace(run, q=tuple(c.start for c in given("ball joints")[1].declared.coordinates))
    judged = laws("ball joints").judge_constraints([(unit, simulation)])
    assert max(ratio for ratio, _ in judged) > 1e3, "the experiment gave length 1"


def _with_quaternion_of_length(mechanism: Mechanism, length: float) -> Mechanism:
    """The mechanism with another length of its quaternion at the start, which nothing solves for."""
    closed = solve_loop_closure_start_values(mechanism)
    coordinates = [
        replace(c, start=c.start * (length if i in mechanism.quaternions[0] else 1.0))
        for i, c in enumerate(closed.declared.coordinates)
    ]
    return replace(closed, declared=replace(closed.declared, coordinates=tuple(coordinates)))


def test_momentum_says_nothing_of_what_hangs_on_the_ground():
    assert not list(
        laws("n_four_bar").judge_momentum([run_of(solve_loop_closure_start_values(given("n_four_bar")[1]))])
    )


@pytest.mark.parametrize("name", [*by_night("springs of tables"), "straight tables"])
@pytest.mark.parametrize(("steps", "step"), [(20, 0.025), *by_night((40, 0.025), (100, 0.02))])
def test_momentum_of_loads_with_tables_is_judged_between_the_points(name: str, steps: int, step: float) -> None:
    """A mass that is off by a thousandth is found; a right one passes, though its slope bends between the points."""
    _, mechanism = given(name)
    (body,) = mechanism.bodies
    off = replace(mechanism, bodies=(replace(body, mass=body.mass * sm.Rational(1001, 1000)),))
    right, wrong = (
        max(ratio for ratio, _ in laws(name).judge_momentum([run_of(each, steps, step)])) for each in (mechanism, off)
    )
    assert right < 0.2
    assert wrong > 1.0
