"""The perturbed experiment: generic, within bounds, as far as the mechanism allows; what it exercises is true."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from cranks import platform
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import mechanism_of

from mb2fmu import Impact, Model, pipeline
from mb2fmu.mechanics.equations.equations_of_motion import (
    EnergyBalance,
    EquationsOfMotion,
    KinematicEquations,
    MassMatrixDynamics,
    VelocityConstraints,
)
from mb2fmu.mechanics.mechanism import solve_loop_closure_start_values
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.model import DeclaredExperiment
from mb2fmu.model.quantity_declarations import Coordinate, Parameter, Speed
from mb2fmu.pipeline.run_and_report.validation_run import choose_reference_equations
from mb2fmu.validation import form_experiment_values, make_reference, make_reference_and_bounds
from mb2fmu.validation.bounds.perturbation_and_excitation_sizes import (
    LARGEST_PERTURBATION_FRACTION,
    SMALLEST_PERTURBATION_FRACTION,
    choose_perturbation_fraction,
    mirror_perturbed_value_into_bounds,
)
from mb2fmu.validation.experiment.perturbed_experiment import (
    add_perturbed_value_overrides,
    find_speeds_outside_fmu_states,
    list_perturbed_experiments,
)
from mb2fmu.validation.reference_and_bounds import _make_perturbed_reference_and_bounds

MODELS = Path(__file__).parents[4] / "models"

x, y, u, v, a, b, l1, l2, g, unused = sm.symbols("x y u v a b l1 l2 g unused")


@given(st.integers(0, 400))
def test_parts_are_generic(index):
    parts = [choose_perturbation_fraction(k) for k in range(index, index + 40)]
    assert all(SMALLEST_PERTURBATION_FRACTION <= abs(part) <= LARGEST_PERTURBATION_FRACTION for part in parts)
    assert np.min(np.diff(np.sort(parts))) > 1e-5
    assert {part > 0 for part in parts} == {True, False}


@settings(max_examples=200)
@given(
    value=st.floats(-5, 5),
    target=st.floats(-8, 8),
    low=st.one_of(st.none(), st.floats(-9, 0)),
    high=st.one_of(st.none(), st.floats(0, 9)),
)
def test_moves_stay_within_bounds(value, target, low, high):
    value = min(max(value, -9.0 if low is None else low), 9.0 if high is None else high)
    moved = mirror_perturbed_value_into_bounds(
        Parameter(name="p", symbol=l1, value=value, minimum=low, maximum=high), value, target
    )
    assert (low is None or moved >= low) and (high is None or moved <= high)  # noqa: PT018  one law
    if (low is None or low <= target) and (high is None or target <= high):
        assert moved == target


def test_everything_is_moved_and_reported(cases):
    case = cases["oscillator"](signal=0.0)
    zero = replace(case.definition.parameters[0], name="d", symbol=sm.Symbol("d"), value=0.0, minimum=0.0)
    definition = replace(case.definition, parameters=(*case.definition.parameters, zero))
    forcing = case.equations.dynamics.forcing - sm.ImmutableMatrix([[sm.Symbol("d") * case.equations.u[0]]])
    dynamics = replace(case.equations.dynamics, forcing=forcing)
    equations = replace(
        case.equations, p=(*case.equations.p, sm.Symbol("d")), dynamics=dynamics, energy=EnergyBalance()
    )
    reference = make_reference(definition, equations)
    found = next(list_perturbed_experiments(definition, reference))
    assert found.part == 1.0
    assert [move.reason for move in found.perturbations] == [""] * len(found.perturbations)
    assert [(move.role, move.name) for move in found.perturbations] == [
        ("parameter", "w"),
        ("parameter", "d"),
        ("start value", "q"),
        ("start value", "u"),
        ("start value", "z"),
        ("input", "tau"),
    ]
    values = {move.name: (move.default, move.moved) for move in found.perturbations}
    assert all(default != moved != 0.0 for default, moved in values.values())
    assert values["d"][1] > 0
    run = found.experiment
    assert run is not None
    assert len(np.unique(run.inputs)) == len(run.inputs)
    assert np.max(np.abs(np.diff(run.inputs[:, 0]))) > 0.3 * np.max(np.abs(run.inputs))  # the step
    reported = add_perturbed_value_overrides(run, form_experiment_values(definition), definition, {"w", "q", "z"})
    assert dict(reported.overridden_values) == {"w": values["w"][1], "q": values["q"][1], "z": values["z"][1]}
    kept = next(list_perturbed_experiments(definition, reference, settable={"w", "q", "z"}))
    assert {move.name: move.reason for move in kept.perturbations if move.role != "input"} == {
        "w": "", "q": "", "z": "", "d": "the FMU does not let it be set", "u": "the FMU does not let it be set",
    }  # fmt: skip
    assert kept.experiment is not None
    assert kept.experiment.parameters == (values["w"][1], 0.0)


def rings(second: sm.Expr = l2) -> tuple[CheckedModel, EquationsOfMotion]:
    """A bead held by two rings at once: they must have the same radius, and no single one can be moved."""
    circles = (x**2 + y**2 - l1**2, x**2 + y**2 - second**2)
    zero = sm.ImmutableMatrix.zeros
    equations = EquationsOfMotion(
        method="kane",
        t=sm.Symbol("t"),
        treatment="multipliers",
        q=(x, y),
        u=(u, v),
        u_independent=(0, 1),
        u_dot=(a, b),
        p=(l1, l2, g, unused),
        kinematics=KinematicEquations(sm.ImmutableMatrix.eye(2), zero(2, 1)),
        holonomic=(("first", circles[0]), ("second", circles[1])),
        velocity_constraints=VelocityConstraints(
            ("first", "second"),
            sm.ImmutableMatrix([[2 * x, 2 * y], [2 * x, 2 * y]]),
            zero(2, 1),
            sm.ImmutableMatrix([[2 * u**2 + 2 * v**2]] * 2),
        ),
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix.eye(2), sm.ImmutableMatrix([[0], [-g]])),
    )
    units = {l1: "m", l2: "m", g: "m/s2", unused: "kg"}
    values = {l1: 1.0, l2: 1.0, g: 9.81, unused: 2.0}
    definition = CheckedModel(
        name="Rings",
        description="",
        mechanics=None,  # type: ignore[arg-type]
        potential_energy=None,
        experiment=DeclaredExperiment(stop=2.0, step=0.02, tolerance=1e-7),
        parameters=tuple(Parameter(name=s.name, symbol=s, value=values[s], unit=units[s]) for s in values),
        inputs=(),
        coordinates=(
            Coordinate(name="x", symbol=x, start=0.6, unit="m"),
            Coordinate(name="y", symbol=y, start=-0.8, unit="m", kind="guess"),
        ),
        speeds=(
            Speed(name="u", symbol=u, start=0.4, unit="m/s"),
            Speed(name="v", symbol=v, start=0.3, unit="m/s", kind="guess"),
        ),
        auxiliary_states=(),
        constraint_forces=(),
        outputs=(),
    )
    return definition, equations


def test_what_cannot_be_moved_is_not_proven():
    """Moved lengths would open the loop, a mass that nothing depends on moves nothing: neither counts as passed."""
    definition, equations = rings(sm.Integer(1))
    moved = make_reference_and_bounds(definition, equations).perturbed
    assert moved is not None
    run = moved.perturbed_experiment.experiment
    assert run is not None
    assert run.parameters[0] == 1.0
    assert run.q[0] ** 2 + run.q[1] ** 2 == pytest.approx(1.0, abs=1e-12)
    found = {item.name: item for item in moved.exercised_quantities}
    assert {name for name, item in found.items() if not item.is_exercised} == {"l1", "l2", "unused"}
    assert found["l1"].reason == "the mechanism cannot be started with another value"
    assert found["l2"].reason == found["unused"].reason == "not exercised"
    assert "y" not in found
    assert "1 keep their defaults" in moved.perturbed_experiment.text


def test_lengths_that_must_be_equal_are_moved_together():
    """Each alone opens a loop; by one factor both are moved, and validated."""
    moved = make_reference_and_bounds(*rings()).perturbed
    assert moved is not None
    run = moved.perturbed_experiment.experiment
    assert run is not None
    assert run.parameters[0] == run.parameters[1] != 1.0
    assert np.hypot(*run.q) == pytest.approx(run.parameters[0], abs=1e-12)
    found = {item.name: item for item in moved.exercised_quantities}
    assert {name for name, item in found.items() if not item.is_exercised} == {"unused"}


def test_no_length_locks_what_moves_by_default():
    """Seen: three equal cranks were started with lengths of which one was another, in the only place that closes.

    A right FMU, made for what swings, then failed in a rigid frame.
    """
    read = mechanism_of(platform())
    source = choose_reference_equations(solve_loop_closure_start_values(read), None)
    reference = make_reference(source.mechanism.declared, source.equations, mechanism=source.mechanism)
    found = next(list_perturbed_experiments(source.mechanism.declared, reference))
    moved = {move.name: move for move in found.perturbations}
    assert moved["l"].moved == moved["l3"].moved != 0.5
    assert moved["M"].moved != 4.0
    assert found.part > 0.0


def followed(off: np.ndarray) -> float:
    """The largest of all ratios, shape (points, variables), or of the first part in which one is above a hundred."""
    last = len(off) - 1
    largest = [float(np.max(off[: last // part + 1])) for part in (16, 8, 4, 2, 1)]
    return next((ratio for ratio in largest if ratio > 1e2), largest[-1])


@pytest.mark.parametrize("name", ["oscillator", "pendulum", "double_pendulum"])
def test_influence_is_what_a_fmu_that_ignores_it_would_be_off(cases, name):
    """By integrating again with one quantity at its default, which the first order is compared with."""
    case = cases[name]((0.6, 0.3), stop=2.0) if name == "double_pendulum" else cases[name](stop=2.0)
    made = make_reference_and_bounds(case.definition, case.equations)
    moved = made.perturbed
    assert moved is not None
    assert moved.reference is not None
    assert moved.limits is not None
    run = moved.reference.experiment
    default = form_experiment_values(case.definition).parameters
    for k, record in enumerate(case.definition.parameters):
        parameters = list(run.parameters)
        parameters[k] = default[k]
        ignoring = make_reference(
            case.definition, case.equations, experiment=replace(run, parameters=tuple(parameters))
        ).trajectory.values
        off = np.abs(ignoring - moved.reference.trajectory.values) / moved.limits.values
        found = next(item for item in moved.exercised_quantities if item.name == record.name)
        assert found.ratio == pytest.approx(followed(off), rel=1e-3)
    for k, name_ in enumerate(run.input_names):
        inputs = run.inputs.copy()
        inputs[:, k] = case.definition.inputs[k].start
        ignoring = make_reference(
            case.definition, case.equations, experiment=replace(run, inputs=inputs)
        ).trajectory.values
        off = np.abs(ignoring - moved.reference.trajectory.values) / moved.limits.values
        found = next(item for item in moved.exercised_quantities if item.name == name_)
        assert found.ratio == pytest.approx(followed(off), rel=1e-3)


def test_a_fmu_is_asked_where_its_own_states_determine_the_rest():
    """A four-bar, moved, passes its dead centre: where an FMU of the crank's angle alone ends."""
    read = mechanism_of(pipeline.load(MODELS / "four_bar.py"))
    source = choose_reference_equations(read, None)
    reference = make_reference(read.declared, source.equations, mechanism=source.mechanism)
    settable = {"la", "lb", "lc", "ln", "m", "g", "q1", "u1"}
    everywhere = next(
        list_perturbed_experiments(
            read.declared, reference, settable=settable, states={"q1", "q2", "q3", "u1", "u2", "u3"}
        )
    )
    charted = next(list_perturbed_experiments(read.declared, reference, settable=settable, states={"q1", "u1"}))
    assert everywhere.part > charted.part > 0.0
    assert "leaves the positions that the FMU's states determine" in charted.text
    assert "states determine" not in everywhere.text
    assert not any(move.reason for move in charted.perturbations)
    assert all(move.moved != move.default for move in charted.perturbations)
    foreign = next(
        list_perturbed_experiments(read.declared, reference, settable=settable, states={"internal[1]", "internal[2]"})
    )
    assert foreign.part == everywhere.part  # nothing is known of such states
    assert find_speeds_outside_fmu_states(read.declared, reference, {"u1", "u2"}) == ()  # more states than are needed


def in_a_hole(*, rests: bool) -> Model:
    """A bead in a round hole in a vertical plane, whose radius is a parameter: it falls, or rests at the bottom."""
    X, Y, v_x, v_y = me.dynamicsymbols("X Y v_x v_y")
    m, c, gravity = sm.symbols("m c gravity", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", X * N.x + Y * N.y)
    P.set_vel(N, v_x * N.x + v_y * N.y)
    bead = me.Particle("bead", P, m)
    rates = [X.diff() - v_x, Y.diff() - v_y]
    kane = me.KanesMethod(N, [X, Y], [v_x, v_y], rates, bodies=[bead], forcelist=[(P, -m * gravity * N.y)])
    model = Model("InAHole", kane)
    for symbol, value, unit in ((m, 0.2, "kg"), (c, 0.01, "m"), (gravity, 9.81, "m/s2")):
        model.parameter(symbol, value, unit, min=1e-9)
    model.coordinate(X, 0.0 if rests else -0.007, "m")
    model.coordinate(Y, -0.01 if rests else 0.007, "m")
    model.speed(v_x, 0.0, "m/s")
    model.speed(v_y, 0.0, "m/s")
    model.add(Impact("wall", c - sm.sqrt(X**2 + Y**2), restitution=0.5, rest_below=0.01, starts_resting=rests))
    model.experiment(stop=0.2, step=0.01)
    return model


@pytest.mark.parametrize("rests", [False, True])
def test_nothing_starts_inside_of_what_it_touches(rests):
    """Each coordinate and the hole's radius are moved by themselves; the bead is put back, and modes are no numbers."""
    read = mechanism_of(in_a_hole(rests=rests))
    source = choose_reference_equations(read, None)
    reference = make_reference(read.declared, source.equations, mechanism=source.mechanism)
    found = next(
        each
        for each in list_perturbed_experiments(read.declared, reference)
        if {move.name: move.moved for move in each.perturbations}["wall.resting"] == float(rests)
    )
    assert found.experiment is not None
    moved = {move.name: move.moved for move in found.perturbations}
    assert all(moved[name] != 0.0 for name in ("X", "Y", "c"))
    assert moved["c"] != pytest.approx(0.01)
    opening = moved["c"] - np.hypot(moved["X"], moved["Y"])
    assert opening == pytest.approx(0.0, abs=1e-12) if rests else opening >= -1e-15
    if rests:  # it would be let go if it left what it rests on, and sooner or later by whoever looks
        rate = moved["X"] * moved["v_x"] + moved["Y"] * moved["v_y"]
        assert np.hypot(moved["v_x"], moved["v_y"]) > 0.0
        assert abs(rate) < 1e-12 * np.hypot(moved["X"], moved["Y"]) * np.hypot(moved["v_x"], moved["v_y"])
    assert moved["wall.resting"] == float(rests)
    assert {move.name for move in found.perturbations if "where bodies are" in move.reason} == {"wall.resting"}


def test_a_contact_that_rests_and_is_never_struck_strikes_first():
    """The wall has no impact by default, so its restitution and its speed of rest would count for nothing."""
    read = mechanism_of(in_a_hole(rests=True))
    source = choose_reference_equations(read, None)
    reference = make_reference(read.declared, source.equations, mechanism=source.mechanism)
    found = next(list_perturbed_experiments(read.declared, reference))
    moved = {move.name: move.moved for move in found.perturbations}
    distance = np.hypot(moved["X"], moved["Y"])
    rate = (moved["X"] * moved["v_x"] + moved["Y"] * moved["v_y"]) / distance
    assert moved["wall.resting"] == 0.0
    assert 0.0 < moved["c"] - distance < rate * found.experiment.time[-1] / 16
    data = _make_perturbed_reference_and_bounds(
        read.declared, source.equations, reference, None, any_step=True, states=None
    )
    exercised = {each.name for each in data.exercised_quantities if each.is_exercised}
    assert {"wall.restitution", "wall.rest_below"} <= exercised


@pytest.mark.parametrize("light", [1e-5, 1.0])
def test_bounds_of_a_drive_throw_nothing_away(light):
    """What is light is moved as far as by default, some ten times, though its drive could do a million times that."""
    heavy, small, t = *me.dynamicsymbols("heavy small"), me.dynamicsymbols._t
    v_1, v_2, F_1, F_2 = me.dynamicsymbols("v_1 v_2 F_1 F_2")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    one, other = O.locatenew("one", heavy * N.x), O.locatenew("other", small * N.x)
    one.set_vel(N, v_1 * N.x)
    other.set_vel(N, v_2 * N.x)
    bodies = [me.Particle("a", one, 2), me.Particle("b", other, light)]
    loads = [(one, F_1 * N.x), (other, F_2 * N.x)]
    kane = me.KanesMethod(
        N, [heavy, small], [v_1, v_2], [heavy.diff() - v_1, small.diff() - v_2], bodies=bodies, forcelist=loads
    )
    model = Model("Drives", kane)
    for q, speed in ((heavy, v_1), (small, v_2)):
        model.coordinate(q, 0.0, "m")
        model.speed(speed, 0.0, "m/s")
    for force in (F_1, F_2):
        model.input(force, 0.0, "N", min=-50.0, max=50.0)
    model.experiment(stop=1.0, step=0.01, signals={F_1: 2 * sm.sin(3 * t), F_2: light * sm.sin(4 * t)})
    read = mechanism_of(model)
    source = choose_reference_equations(read, None)
    found = next(
        list_perturbed_experiments(
            read.declared, make_reference(read.declared, source.equations, mechanism=source.mechanism)
        )
    )
    assert found.experiment is not None
    assert found.part == 1.0
    pushed = np.abs(found.experiment.inputs).max(axis=0)
    assert np.all(pushed <= 50.0)
    assert 1.0 < pushed[1] / light < 100.0
