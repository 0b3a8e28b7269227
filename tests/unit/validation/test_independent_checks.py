"""x' against the user's own objects: faults planted in what was read are found, right ones are not called wrong."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import sympy as sm
import textbook_mechanisms
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import (
    Evaluated,
    State,
    cart_with_pathways,
    lagrangian_with_bodies,
    mechanism_of,
    model_of,
    moving_pivot,
    pendulum_with_reactions,
    sympy_rolling_disc,
)
from planted.fault import robot_of_tests
from representatives import by_night, marked
from strangers import STRANGERS
from sympy.physics import mechanics as me
from trees import AXES, DEGREES, KINDS, build

from mb2fmu import CoulombFriction, pipeline
from mb2fmu.mechanics.formulations import check_applicability_of_all_formulations
from mb2fmu.mechanics.mechanism import Mechanism, read_mechanism, solve_loop_closure_start_values
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, PathwayLoad, TorqueActuatorLoad, TorqueLoad
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import ExpressionOutput, RequestedOutput
from mb2fmu.model import CheckedModel, Model, Parts, check_model
from mb2fmu.model import load as load_model
from mb2fmu.pipeline.derivation.model_derivation import load_model_and_mechanism
from mb2fmu.pipeline.derivation.stage_stopwatch import StageStopwatch
from mb2fmu.validation.independent_checks import (
    SOLVED_START_FACTOR,
    IndependentChecks,
    compare_fmu_derivatives_with_source,
    run_independent_checks,
)
from mb2fmu.validation.independent_import.independent_robot_accelerations import sample_independent_robot_accelerations
from mb2fmu.validation.source_checks.numeric_kane_equations import NumericKaneEquations
from mb2fmu.validation.source_checks.source_acceleration_samples import SympySourceAccelerationSamples
from mb2fmu.validation.source_checks.source_accelerations import sample_source_accelerations
from mb2fmu.validation.source_checks.source_equations import MAX_PATHWAY_WORK, estimate_pathway_length_cost
from mb2fmu.validation.source_checks.source_objects import extract_mechanics_objects, keep_mechanics_untouched
from mb2fmu.validation.source_checks.source_symbol_slots import SympySourceEvaluationError, SympySourceSymbolSlots

assert textbook_mechanisms.__name__  # its mechanisms are among the strangers
pytestmark = pytest.mark.usefixtures("few_points")
MODELS = Path(__file__).resolve().parents[3] / "models"


Read = tuple[CheckedModel, Mechanism]


def read_of(model: Model) -> Read:
    """The checked model, and its mechanism."""
    checked = check_model(model)
    return checked, read_mechanism(checked)


def state_names(definition: CheckedModel, e) -> list[str]:
    """Of what equations of motion have as states."""
    names = [definition.coordinates[i].name for i in e.q_independent]
    names += [definition.speeds[i].name for i in e.u_independent]
    return [*names, *(z.name for z in definition.auxiliary_states)]


def states_of(motions: SympySourceAccelerationSamples, definition: CheckedModel, e) -> Iterator[State]:
    """The points at which motions are known."""
    names, free = state_names(definition, e), [p.name for p in definition.parameters if not p.calculated]
    wanted = ((motions.starts, names), (motions.inputs, motions.inputs), (motions.starts, free))
    for sample in motions.samples:
        x, r, p = (np.array([sample.point.values[places[name]] for name in some]) for places, some in wanted)
        yield State(sample.point.time, x, r, p)


def soonest(mechanism: Mechanism) -> str:
    """The formulation that takes the least time to form: what was read is tested, not what is made of it."""
    recursion = check_applicability_of_all_formulations(mechanism)["recursive-composite"]
    return "recursive-composite" if recursion.is_applicable else "auto"


def verdict(true: Read, used: Mechanism, motions=None) -> IndependentChecks:
    """What is said of an FMU that evaluates ``used`` where the model says ``true``; its program answers for it."""
    made = motions or sample_source_accelerations(*true)
    definition = true[1].declared
    evaluated = Evaluated(used, soonest(used))
    e = evaluated.equations
    answers = {}
    labels = list(evaluated.program.entries["outputs"].labels) if "outputs" in evaluated.program.entries else []
    for number, state in enumerate(states_of(made, definition, e)):
        answers[f"own motion {number}"] = [
            [evaluated("rhs", state).tolist(), evaluated("outputs", state).tolist() if labels else []]
        ]
    printed = dict.fromkeys(name for sample in made.samples for name in sample.outputs)
    rates = tuple((name, f"der({name})") for name in state_names(definition, e))
    description = SimpleNamespace(
        state_derivative_pairs=rates, variables=dict.fromkeys(printed, SimpleNamespace(is_double=True))
    )
    for answer in answers.values():
        answer[0][1] = [answer[0][1][labels.index(name)] for name in printed]
    return compare_fmu_derivatives_with_source(made, description, answers)


def models() -> dict[str, Callable[[], Read]]:
    named = {name: (lambda path=MODELS / f"{name}.py": pipeline.load(path)) for name in (
        "four_bar", "rolling_disc", "snakeboard", "governor", "driven_crank", "heavy_top",
        "turntable_ball", "muscle_arm", "bowl", "crank_slider",
    )}  # fmt: skip
    small = {
        "reactions": lambda: pendulum_with_reactions()[0],
        "disc": sympy_rolling_disc,
        "pathways": cart_with_pathways,
        "pivot": moving_pivot,
        "lagrangian": lagrangian_with_bodies,
    }
    return {name: (lambda make=make: read_of(make())) for name, make in (named | small).items()}


# Each way of the laws by day: loops, a Lagrangian, auxiliary states. Strangers roll, and have pathways and time.
BY_DAY = {"heavy_top"}
"""A Lagrangian without bodies; a loop and a muscle pass in end_to_end/test_models."""


@pytest.mark.parametrize("name", marked(models(), repeating=models().keys() - BY_DAY))
def test_right_equations_pass_against_the_objects_own(name, few_points):
    true = models()[name]()
    said = verdict(true, true[1])
    assert said.passed
    assert any(check.verdict == "passed" and check.points == few_points for check in said.checks), said


# Each way by which objects tell a motion: test_against_sympy holds all of them against SymPy's own equations by day.
WAYS_BY_DAY = {
    "wrapping_pathway", "lagrange_nonholonomic", "lagrange_rheonomic", "rod_by_deprecated_body_in_a_system",
    "joints_method_as_made", "force_along_a_velocity_constraint", "angle_with_a_rate_that_lags_behind_an_input",
    "inertia_about_other_point", "spherical_pendulum_by_dependent_coordinates", "kane_with_aux_unused",
    "moving_ground_time", "body_class_without_potential_energy", "spring_as_force_actuator_q",
}  # fmt: skip


@pytest.mark.parametrize("name", marked(STRANGERS, repeating=STRANGERS.keys() - WAYS_BY_DAY))
def test_what_strangers_hand_over_passes_against_their_own_objects(name, few_points):
    true = read_of(STRANGERS[name]())
    said = verdict(true, true[1])
    assert said.passed, said
    assert any(check.verdict == "passed" and check.points == few_points for check in said.checks), said


def test_rates_of_a_loop_that_are_given_twice_are_one():
    """SymPy's own equations are formed, though there are four velocity constraints for two dependent speeds."""
    true = read_of(STRANGERS["loop_whose_rates_are_given_twice"]())
    assert not sample_source_accelerations(*true).missing


def faults(m: Mechanism) -> dict[str, Mechanism]:
    """What a reading could get wrong, one at a time."""
    wrong = {}
    for i, body in enumerate(m.bodies):
        if body.inertia is not None:
            lost = replace(body, inertia=None, frame=-1)
            if any(body.inertia):
                wrong[f"inertia of {body.name} lost"] = _with(m, "bodies", i, lost)
            products = body.inertia - sm.diag(*(body.inertia[k, k] for k in range(3)))
            if any(products):
                turned = replace(body, inertia=sm.ImmutableMatrix(body.inertia - 2 * products))
                wrong[f"products of inertia of {body.name} with another sign"] = _with(m, "bodies", i, turned)
        if body.mass != 0:
            wrong[f"mass of {body.name}"] = _with(m, "bodies", i, replace(body, mass=body.mass * sm.Rational(101, 100)))
    for i, load in enumerate(m.loads):
        wrong[f"load {load.name} by a percent"] = _with(m, "loads", i, _scaled(load, sm.Rational(101, 100)))
        wrong[f"load {load.name} lost"] = _with(m, "loads", i, _scaled(load, sm.S.Zero))
    return wrong


def _with(m: Mechanism, field: str, i: int, item: object) -> Mechanism:
    items = list(getattr(m, field))
    items[i] = item
    return replace(m, **{field: tuple(items)})


def _scaled(load, factor):
    def vector(terms):
        return tuple((frame, tuple(factor * c for c in components)) for frame, components in terms)

    match load:
        case ForceLoad():
            return replace(load, force=vector(load.force))
        case TorqueLoad():
            return replace(load, torque=vector(load.torque))
        case TorqueActuatorLoad():
            return replace(load, torque=factor * load.torque)
        case PathwayLoad():
            return replace(load, force=factor * load.force)
    raise AssertionError(load)


def moves_nothing(true: Mechanism, wrong: Mechanism, motions) -> bool:
    """Whether a fault has no effect on x' at all: the inertia of a body that does not turn, a load at a fixed point."""
    right, off = (Evaluated(each, soonest(each)) for each in (true, wrong))
    for state in islice(states_of(motions, true.declared, right.equations), 5):
        expected = right("rhs", state)
        if np.max(np.abs(expected - off("rhs", state))) > 1e-9 * np.max(np.abs(expected)):
            return False
    return True


# The faults of others are of kinds that pathways and random trees have.
@pytest.mark.parametrize(
    "name", ["pathways", *by_night("four_bar", "governor", "snakeboard", "crank_slider", "rolling_disc")]
)
def test_what_was_read_wrongly_fails(name):
    true = models()[name]()
    mechanism, motions = true[1], sample_source_accelerations(*true)
    for what, wrong in faults(mechanism).items():
        said = verdict(true, wrong, motions)
        assert not said.passed or moves_nothing(mechanism, wrong, motions), what


def test_a_reaction_force_that_was_read_wrongly_fails():
    """Kane's equations do not contain it, and FMU and reference share its reading; its auxiliary equations show it."""
    true = models()["reactions"]()
    mechanism, motions = true[1], sample_source_accelerations(*true)
    assert verdict(true, mechanism, motions).passed
    (number, load), = ((k, each) for k, each in enumerate(mechanism.loads) if each.force[0][1][0] != 0)  # fmt: skip
    turned = replace(load, force=tuple((mechanism.bodies[0].frame, components) for _, components in load.force))
    for wrong in (_scaled(load, sm.Rational(103, 100)), turned):
        said = verdict(true, _with(mechanism, "loads", number, wrong), motions)
        assert [check.verdict for check in said.checks] == ["passed", "passed", "failed"], said


def test_points_at_which_no_mechanism_exists_are_drawn_again(few_points):
    """A smaller inertia about a pivot makes M indefinite: there the FMU refuses, rightly."""
    true = read_of(STRANGERS["inertias_about_pivots"]())
    mechanism, motions = true[1], sample_source_accelerations(*true)
    assert motions.indefinite_points >= 1
    assert len(motions.samples) == few_points
    said = verdict(true, mechanism, motions)
    assert said.passed, said
    assert f"{motions.indefinite_points} drawn again" in said.checks[0].how
    for body in mechanism.bodies:
        heavier = replace(body, mass=body.mass * sm.Rational(1001, 1000))
        wrong = _with(mechanism, "bodies", mechanism.bodies.index(body), heavier)
        assert not verdict(true, replace(wrong, lagrangian=None), motions).passed, body.name


@pytest.mark.repeats  # by day of two trees: pathways, and an arm whose axis is another
@settings(max_examples=3)
@given(
    st.lists(
        st.tuples(st.sampled_from(KINDS), st.sampled_from(AXES), st.integers(0, 3)), min_size=1, max_size=3
    ).filter(lambda kinds: 1 <= sum(DEGREES[kind] for kind, *_ in kinds) <= 4 and kinds[-1][0] != "weld"),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_faults_in_the_reading_of_random_trees_are_found(kinds, tilted, random):
    system = build(kinds, tilted=tilted)
    model = model_of("Tree", system, list(system.q), list(system.u), m=1.2, J=0.05, g=9.81, T=0.3)
    true = read_of(model)
    mechanism, motions = true[1], sample_source_accelerations(*true)
    said = verdict(true, mechanism, motions)
    assert [check.verdict for check in said.checks[:2]] == ["passed", "passed"], said
    what, wrong = random.choice(sorted(faults(mechanism).items()))
    assert not verdict(true, wrong, motions).passed or moves_nothing(mechanism, wrong, motions), what


def test_a_joint_about_another_axis_fails():
    right = read_of(_arm("x"))
    wrong = replace(mechanism_of(_arm("y")), declared=right[1].declared)
    said = verdict(right, wrong)
    assert [check.verdict for check in said.checks] == ["failed", "failed"]


def _arm(axis: str):
    system = build([("pin", "z", 0), ("pin", axis, 1)], tilted=True)
    return model_of("Arm", system, list(system.q), list(system.u), m=1.2, J=0.05, g=9.81, T=0.3)


@pytest.mark.parametrize("name", ["driven_crank", *by_night("four_bar")])
def test_an_output_that_is_not_what_the_model_says_fails(name):
    true = models()[name]()
    mechanism, motions = true[1], sample_source_accelerations(*true)
    printed = {output for sample in motions.samples for output in sample.outputs}
    outputs = mechanism.outputs
    assert printed
    for i, item in enumerate(outputs):
        if isinstance(item, ExpressionOutput) and item.name in printed:
            off = replace(item, expression=item.expression * sm.Rational(1001, 1000))
        elif isinstance(item, RequestedOutput) and item.kind == "position":
            off = replace(item, subject=(mechanism.bodies[0].masscenter,))
        else:
            continue
        said = verdict(true, replace(mechanism, outputs=(*outputs[:i], off, *outputs[i + 1 :])), motions)
        assert [check.verdict for check in said.checks] == ["passed", "passed", "failed"], item.name
        assert item.name in said.checks[-1].reason


def test_a_deprecated_body_keeps_its_rotational_inertia():
    q, u = me.dynamicsymbols("q u")
    m, length, g = sm.symbols("m l g")
    N = me.ReferenceFrame("N")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ceiling = me.Body("ceiling", frame=N)
        rod = me.Body("rod", mass=m, central_inertia=me.inertia(N, 0, 0, m * length**2 / 12))
        me.PinJoint("J", ceiling, rod, q, u, child_point=length / 2 * rod.frame.y, joint_axis=N.z)
    rod.apply_force(-m * g * N.y)
    kane = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[rod], forcelist=rod.loads)
    true = read_of(model_of("Rod", kane, [q], [u], m=1.0, l=1.0, g=9.81))
    mechanism = true[1]
    lost = _with(mechanism, "bodies", 0, replace(mechanism.bodies[0], inertia=None, frame=-1))
    said = verdict(true, lost)
    assert [check.verdict for check in said.checks] == ["failed", "failed"]


def test_the_reading_is_held_against_the_objects_where_equations_are_not_formed(monkeypatch):
    monkeypatch.setattr("mb2fmu.validation.source_checks.source_accelerations.MAX_FORMING_WORK", -1)
    true = models()["governor"]()
    mechanism = true[1]
    said = verdict(true, mechanism)
    assert [check.verdict for check in said.checks] == ["unjudged", "passed", "passed", "passed"]
    heavier = replace(mechanism.bodies[-1], mass=mechanism.bodies[-1].mass * sm.Rational(101, 100))
    wrong = _with(mechanism, "bodies", len(mechanism.bodies) - 1, heavier)
    against = sample_source_accelerations(true[0], wrong)
    assert verdict(true, mechanism, against).checks[-1].verdict == "failed"


def test_the_reading_is_held_against_the_objects_where_a_latch_is_always_closed(few_points):
    """A block stands on one corner or on the other: there is no point at which its objects alone tell x'."""
    definition, right = read_of(pipeline.load(MODELS / "rocking_block.py"))
    made = sample_source_accelerations(definition, right)
    assert not made.samples, "the block is held somewhere else now: take another model"
    assert len(made.latched_import_differences) == few_points
    assert _worst_of(made) < 1.0
    for wrong in list(faults(right).values())[:: 3 if few_points > 8 else 9]:
        assert _worst_of(sample_source_accelerations(definition, wrong)) > 1e3


def _worst_of(made: SympySourceAccelerationSamples) -> float:
    """Largest error over its bound of what was read where a latch is closed."""
    return max(
        error / bound for _, found in made.latched_import_differences for error, bound in found.values() if bound > 0.0
    )


def test_a_spring_along_many_joints_is_not_composed():
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    q = me.dynamicsymbols("q:14")
    frame, point = N, O
    for k, qk in enumerate(q):
        frame = frame.orientnew(f"A{k}", "Axis", (qk, (frame.x, frame.y, frame.z)[k % 3]))
        point = point.locatenew(f"P{k}", 0.3 * frame.x + 0.1 * frame.y)
    before = next(iter(point._pos_dict))
    short, long = (
        Parts(
            frame=N, origin=O, q=q, u=[], kinematic_equations=[], bodies=[],
            actuators=[me.LinearSpring(1, me.LinearPathway(O, end))],
        )
        for end in (before, point)
    )  # fmt: skip
    assert estimate_pathway_length_cost(long) > MAX_PATHWAY_WORK
    assert estimate_pathway_length_cost(long) > 1.3 * estimate_pathway_length_cost(short)  # what is one joint longer


def snapshot(mechanics) -> list[dict]:
    """What SymPy keeps in the points and frames of bodies, and in the method."""
    items = [*(b.masscenter for b in mechanics.bodies), *(getattr(b, "frame", None) for b in mechanics.bodies)]
    items += list({p: None for item in items if isinstance(item, me.Point) for p in item._pos_dict})
    names = ("_vel_dict", "_pos_dict", "_acc_dict", "_dcm_cache", "_ang_vel_dict")
    stores = [copy.copy(getattr(item, name, {})) for item in items if item is not None for name in names]
    return [*stores, {k: str(v) for k, v in getattr(mechanics, "__dict__", {}).items()}]


@pytest.mark.parametrize("name", ["four_bar", *by_night("bowl", "double_pendulum", "rolling_disc", "simple_pendulum")])
def test_the_users_objects_stay_as_they_were(name):
    definition, mechanism = load_model_and_mechanism(MODELS / f"{name}.py", None, StageStopwatch(None))
    before = snapshot(definition.mechanics)
    sample_source_accelerations(definition, mechanism)
    assert snapshot(definition.mechanics) == before


@pytest.fixture(scope="module")
def four_bar_samples() -> SympySourceAccelerationSamples:
    return sample_source_accelerations(*models()["four_bar"]())


@pytest.mark.parametrize("off", [1e-10, 1e-8])
def test_what_closing_anew_is_allowed_hides_no_fault(off, four_bar_samples):
    """Sixteen times the bounds are still some 1e-11 of x': whatever is wrong in an FMU is larger."""
    made = four_bar_samples
    names = tuple(made.samples[0].rates["kinematics"])
    description = SimpleNamespace(state_derivative_pairs=tuple((name, f"der({name})") for name in names), variables={})
    largest = max(abs(sample.rates["kinematics"]["q1"]) for sample in made.samples)

    def said(wrong: float) -> IndependentChecks:
        answers = {
            f"own motion {k}": [[[rate * (1 + wrong) for rate in sample.rates["kinematics"].values()], []]]
            for k, sample in enumerate(made.samples)
        }
        return compare_fmu_derivatives_with_source(made, description, answers, bound_factor=SOLVED_START_FACTOR)

    assert largest > 0
    assert said(0.0).passed
    assert not said(off).passed


def test_samples_are_admissible(few_points):
    d, mechanism = models()["four_bar"]()
    made = sample_source_accelerations(d, mechanism)
    assert len(made.samples) == few_points
    with keep_mechanics_untouched(d.mechanics):
        parts = extract_mechanics_objects(d.mechanics)
        residual = SympySourceSymbolSlots(d, parts).compile_function([*parts.holonomic, *parts.velocity])
        for sample in made.samples:
            assert np.max(np.abs(residual(list(sample.point.values)))) < 1e-12
    free = {p.name: p for p in d.parameters if not p.calculated}
    for name, p in free.items():
        values = [sample.point.values[made.starts[name]] for sample in made.samples]
        assert len(set(values)) == few_points
        assert 0.0 not in values
        assert p.minimum is None or min(values) >= p.minimum


def test_an_expression_without_a_number_leaves_nothing_behind():
    """A contact's force has no number; what is asked for after it once ended in a function with an argument twice."""
    d, _ = models()["pivot"]()
    with keep_mechanics_untouched(d.mechanics):
        symbols, more = (
            SympySourceSymbolSlots(d, extract_mechanics_objects(d.mechanics)),
            [sm.Symbol("mb2fmu_own_dot_0")],
        )
    values = [float(k) for k in range(len(symbols.slot))]
    for _ in range(2):
        with pytest.raises(SympySourceEvaluationError):
            symbols.compile_function([sm.Function("force")(symbols.t)], more)
    assert symbols.compile_function([symbols.q[0] + more[0]], more)([*values, 0.5]) == [1.5]


def test_own_kinematics_know_the_accelerations_of_a_published_pendulum():
    """A compound pendulum driven at its pivot has an acceleration that is known by hand."""
    d, _ = models()["pivot"]()
    with keep_mechanics_untouched(d.mechanics):
        parts = extract_mechanics_objects(d.mechanics)
        symbols = SympySourceSymbolSlots(d, parts)
        motion = NumericKaneEquations(parts, symbols).evaluate_motion(
            symbols.complete_values([0.3] * len(symbols.slot))
        )
    assert np.all(np.isfinite(motion.u_dot))
    assert np.all(motion.scale >= np.abs(motion.u_dot))


def test_own_kinematics_say_the_same_of_several_states_as_of_each():
    """Of a loop with a rotating part, whose rows and inertias differ from state to state."""
    d, _ = models()["driven_crank"]()
    with keep_mechanics_untouched(d.mechanics):
        parts = extract_mechanics_objects(d.mechanics)
        symbols = SympySourceSymbolSlots(d, parts)
        equations = NumericKaneEquations(parts, symbols)
        random = np.random.default_rng(1)
        states = [symbols.complete_values(random.uniform(0.5, 1.5, len(symbols.slot)).tolist()) for _ in range(5)]
        together, alone = equations.evaluate_motions(states), [equations.evaluate_motion(state) for state in states]
    for several, single in zip(together, alone, strict=True):
        for name in (
            "q_dot",
            "u_dot",
            "rate_scale",
            "scale",
            "velocities",
            "omegas",
            "kinetic",
            "forces",
            "mass_matrix",
        ):
            np.testing.assert_allclose(getattr(several, name), getattr(single, name), rtol=1e-9, atol=1e-12)


@pytest.mark.repeats  # by day: an FMU of the pendulum, below, and each whole validation
@pytest.mark.parametrize(("fmi", "kind"), [("3", "ModelExchange"), ("2", "CoSimulation")])
def test_real_fmus_are_asked(fmi, kind, tmp_path):
    exported = pipeline.export(MODELS / "driven_crank.py", tmp_path, fmi=fmi)
    derivation = exported.build.derivation
    said = run_independent_checks(exported.path, derivation.checked, derivation.mechanism, kind=kind)
    assert [check.verdict for check in said.checks] == ["passed"] * 3


def test_a_real_fmu_of_another_model_fails(tmp_path):
    path = MODELS / "simple_pendulum.py"
    source = path.read_text(encoding="utf-8")
    other = tmp_path / "simple_pendulum.py"
    other.write_text(source.replace("-mass * g * N.y", "-1.001 * mass * g * N.y"), encoding="utf-8")
    assert other.read_text(encoding="utf-8") != source
    exported = pipeline.export(other, tmp_path)
    own = exported.build.derivation
    for kind in ("CoSimulation", "ModelExchange"):
        assert run_independent_checks(exported.path, own.checked, own.mechanism, kind=kind).passed
    definition, mechanism = load_model_and_mechanism(path, None, StageStopwatch(None))
    said = run_independent_checks(exported.path, definition, mechanism)
    assert not said.passed
    assert "der(omega)" in said.checks[0].reason


def friction_added(kind: str) -> Model:
    """A pendulum whose equations are formed already, with a spring and dry friction added to it."""
    q, u = me.dynamicsymbols("q u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    speed = q.diff() if kind == "lagrange" else u
    A = N.orientnew("A", "Axis", (q, N.z))
    A.set_ang_vel(N, speed * N.z)
    rod = me.RigidBody("rod", O.locatenew("C", A.x), A, 2, (me.inertia(A, 1, 1, 1), O.locatenew("I", A.x)))
    rod.masscenter.v2pt_theory(O, N, A)
    rod.central_inertia = me.inertia(A, 1, 1, 1)
    if kind == "lagrange":
        mechanics = me.LagrangesMethod(me.Lagrangian(N, rod), [q], bodies=[rod], frame=N)
        mechanics.form_lagranges_equations()
    else:
        mechanics = me.KanesMethod(N, [q], [u], [q.diff() - u], bodies=[rod])
        mechanics.kanes_equations()
    model = Model("Pendulum", mechanics)
    model.coordinate(q, 0.3, "rad")
    model.speed(speed, 0.2, "rad/s", name="u")
    model.add_loads((rod.masscenter, -9 * N.y))
    model.add(CoulombFriction("bearing", (N, A, N.z), curve=lambda v: 0.5 / (1 + v)))
    return model


@pytest.mark.parametrize("kind", ["kane", "lagrange"])
def test_loads_that_were_added_are_held_against_the_objects_own_equations(kind, few_points):
    true = read_of(friction_added(kind))
    motions = sample_source_accelerations(*true)
    said = verdict(true, true[1], motions)
    assert said.passed, said
    assert (said.checks[0].verdict, said.checks[0].points) == ("passed", few_points)
    wrong = {name: m for name, m in faults(true[1]).items() if name.startswith("load")}
    wrong["turned friction"] = _with(true[1], "loads", 1, _scaled(true[1].loads[1], -1))
    assert len(wrong) == 5
    for name, mechanism in wrong.items():
        assert not verdict(true, mechanism, motions).passed, name


@cache
def steering() -> Read:
    definition = check_model(load_model(MODELS / "steering_linkage.py"))
    return definition, solve_loop_closure_start_values(read_mechanism(definition))


@cache
def steering_points(computed: tuple[str, ...]) -> SympySourceAccelerationSamples:
    return sample_source_accelerations(*steering(), computed_coordinates=computed)


def steering_crosses(computed: tuple[str, ...]) -> np.ndarray:
    """Sines of the angles between tie rods and steering arms, whose signs tell the branches; rows: start, points."""
    (definition, mechanism), made = steering(), steering_points(computed)
    start = {item.name: item.start for item in mechanism.declared.coordinates}
    start |= {p.name: float(p.value) for p in definition.parameters if not p.calculated}
    points = [start, *({n: s.point.values[k] for n, k in made.starts.items()} for s in made.samples)]
    found = []
    for v in points:
        for side, way in (("left", 1.0), ("right", -1.0)):
            tie, steer = v[f"tie_{side}"], v[f"steer_{side}"]
            rod = np.array([-np.sin(tie), np.cos(tie)]) * way
            c, s = np.cos(steer), np.sin(steer)
            arm = np.array([[c, -s], [s, c]]) @ np.array([-v["ax"], -way * v["ay"]])
            found.append((rod[0] * arm[1] - rod[1] * arm[0]) / np.hypot(*arm))
    return np.array(found).reshape(-1, 2)


def test_points_are_put_together_as_the_start_where_the_fmu_computes(monkeypatch):
    """An FMU by ``explicit`` has the start's branch of each loop; it is asked there, away from where two meet."""
    monkeypatch.undo()  # of eight points none has another branch
    computed = ("rack", "tie_left", "steer_left", "tie_right", "steer_right")
    own = steering_crosses(computed)
    assert len(own) > 20
    assert np.all(own * own[0] > 0.0)
    assert np.abs(own).min() > 0.03
    anywhere = steering_crosses(())
    assert np.any(anywhere * anywhere[0] < 0.0) or np.abs(anywhere).min() < 0.03


def test_couplings_in_other_units_are_not_flat(few_points):
    """Of a valve train rows in rad stand behind rows in mm; each is a loop by itself, which always closes."""
    definition = check_model(load_model(MODELS / "valve_train.py"))
    made = sample_source_accelerations(
        definition,
        solve_loop_closure_start_values(read_mechanism(definition)),
        computed_coordinates=("lift", "rocker", "valve"),
    )
    assert len(made.samples) == few_points
    for sample in made.samples:
        values = {name: sample.point.values[slot] for name, slot in made.starts.items()}
        assert values["valve"] == pytest.approx(values["b"] / values["a"] * values["lift"], abs=1e-12)


def test_round_off_of_closed_loops_is_no_scale():
    """The rack starts at 1e-33 m where its loops were closed: points move it by millimetres all the same."""
    made = steering_points(())
    rack = [abs(sample.point.values[made.starts["rack"]]) for sample in made.samples]
    assert np.median(rack) > 1e-3


def test_inputs_have_either_sign_at_the_points():
    """A robot's torque hangs about what holds its weight; an FMU that is wrong beyond zero must not pass."""
    checked = check_model(robot_of_tests())
    made = sample_independent_robot_accelerations(checked)
    for place in made.inputs.values():
        values = [sample.point.values[place] for sample in made.samples]
        assert min(values) < 0.0 < max(values)
