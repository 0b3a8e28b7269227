"""Minimal coordinates by partition: what is chosen, what moves, what is refused."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import solve_ivp

from mb2fmu import model, pipeline
from mb2fmu.compiler.arithmetic.python_newton import NoSolutionError
from mb2fmu.compiler.derivatives.forward_derivatives import differentiate_forward
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.errors import FormulationError
from mb2fmu.mechanics import formulations, mechanism

FOUR_BAR = "models/four_bar.py"


def four_bar(*dependent):
    """The four-bar with other coordinates, and their speeds, named as dependent; none: no names."""
    loaded = model.load(FOUR_BAR)
    parts = loaded.mechanics
    pick = [i for i, q in enumerate(parts.q) if q.name in dependent]
    loaded.mechanics = replace(parts, q_dependent=[parts.q[i] for i in pick], u_dependent=[parts.u[i] for i in pick])
    return loaded


@pytest.fixture(scope="module")
def partitioned():
    return pipeline.derive(FOUR_BAR, method="tmt", constraints="partition")


def test_independent_coordinates_are_those_that_are_not_named_or_chosen_by_pivots(partitioned):
    assert partitioned.equations.states == partitioned.equations.q[:1] + partitioned.equations.u[:1]
    assert "independent: q1" in partitioned.treated
    chosen = pipeline.derive(four_bar(), method="tmt", constraints="partition")
    assert len(chosen.equations.states) == 2
    assert chosen.program.layout.memory == tuple(f"last {chosen.equations.q[i]}" for i in chosen.equations.q_dependent)


@pytest.mark.parametrize("asked", ["partition", "explicit"])
def test_independent_coordinates_are_those_that_the_user_names(asked):
    """The speeds go with them, though the mechanics name others."""
    derivation = pipeline.derive(FOUR_BAR, method="tmt", constraints=asked, independent=["q3"])
    assert derivation.equations.states == derivation.equations.q[2:] + derivation.equations.u[2:]
    f = pipeline.right_hand_side(derivation)
    whole = pipeline.right_hand_side(pipeline.derive(FOUR_BAR, method="tmt"))
    assert f(0.0, f.x0) == pytest.approx(whole(0.0, whole.x0)[[2, 5]], rel=1e-11)


@pytest.mark.parametrize(
    ("asked", "independent", "message"),
    [
        ("partition", ["q1", "crank", "q9"], r"crank is no coordinate\n.*q1, q2, q3\n.*q9 is no"),
        ("explicit", ["q1", "q2"], "2 independent coordinates are named; 3 coordinates under 2 constraints have 1"),
        ("attractor", ["q1"], "not for attractor"),
    ],
)
def test_independent_coordinates_that_cannot_be_are_refused(partitioned, asked, independent, message):
    with pytest.raises(FormulationError, match=message):
        formulations.plan_constraint_treatment(partitioned.mechanism, asked, independent=independent)


def test_the_motion_is_that_of_all_coordinates(partitioned):
    """Through several turns of the coupler's and rocker's angles, by less than half the operations."""
    whole = pipeline.derive(FOUR_BAR, method="tmt")
    ends = []
    for derivation in (partitioned, whole):
        f = pipeline.right_hand_side(derivation)
        found = solve_ivp(lambda t, x, f=f: f(t, x, r=[0.0]), (0, 2), f.x0, "DOP853", rtol=1e-10, atol=1e-10)
        states = derivation.equations.states
        ends.append([found.y[states.index(s), -1] for s in partitioned.equations.states])
        outputs = f.outputs(0.0, found.y[:, -1])
        ends[-1] += [outputs[f.output_names.index(name)] for name in ("loop_force.x", "crank_acceleration")]
    assert ends[0] == pytest.approx(ends[1], abs=1e-6)


def test_derivatives_are_exact(partitioned):
    program = partitioned.program
    f = make_evaluator(program, "outputs")
    p = [item.value for item in partitioned.definition.parameters]
    x, r, m = np.array([0.4, 1.3]), np.array([0.5]), np.array(partitioned.equations.warm_start)
    along = differentiate_forward(program, "outputs", ["states", "parameters"])
    direction = np.random.default_rng(2).normal(size=2 + len(p))
    exact = make_evaluator(along, "jvp_outputs")(0.0, x, r, p, m, direction)
    h = 1e-5
    ends = [f(0.0, x + k * h * direction[:2], r, p + k * h * direction[2:], m) for k in (1, -1)]
    smooth = [not name.startswith("diagnostics") for name in program.entries["outputs"].labels]
    differences = (ends[0] - ends[1]) / (2 * h)
    assert exact[smooth] == pytest.approx(differences[smooth], rel=1e-6, abs=1e-6)


def test_where_newton_begins_changes_no_more_than_last_digits(partitioned):
    f, m = make_evaluator(partitioned.program, "rhs"), np.array(partitioned.equations.warm_start)
    p = [item.value for item in partitioned.definition.parameters]
    near, far = (f(0.0, [0.3, 1.0], [0.0], p, m + offset) for offset in (0.0, 0.05))
    assert near == pytest.approx(far, rel=1e-11)


def test_a_motion_that_leaves_the_chart_says_so():
    """The rocker turns back while the crank goes on."""
    derivation = pipeline.derive(four_bar("q1", "q2"), method="tmt", constraints="partition")
    f = pipeline.right_hand_side(derivation)
    assert "independent: q3" in derivation.treated
    with pytest.raises(NoSolutionError, match=r"q1, q2: the motion leaves what the independent ones describe"):
        f(0.0, f.x0 - [0.2, 0.0])


def test_coordinates_that_cannot_be_the_dependent_ones_are_refused():
    """Where the crank lies on the line of the ground pins, the rocker's angle from the coupler is at its extreme."""
    angle = np.arccos((4.0 + 1.2**2 - 1.0) / (2 * 2.0 * 1.2))
    definition = model.check_model(four_bar("q1", "q2"))
    values = {"q1": 0.0, "q2": angle, "q3": np.arctan2(-2.0 * np.sin(angle), 1.2 - 2.0 * np.cos(angle)) - angle}
    coordinates = tuple(replace(c, start=values[c.name], kind="guess") for c in definition.coordinates)
    read = mechanism.solve_loop_closure_start_values(
        mechanism.read_mechanism(replace(definition, coordinates=coordinates))
    )
    with pytest.raises(FormulationError, match="q1, q2 do not follow from the others at the start"):
        formulations.apply_constraint_treatment(formulations.formulate(read, "tmt"), read, "partition")


@pytest.mark.parametrize("asked", ["partition", "explicit"])
def test_redundant_constraints_leave_no_chart_and_are_named(asked):
    loaded = four_bar()
    parts = loaded.mechanics
    rows = parts.holonomic_constraints
    loaded.mechanics = replace(parts, holonomic_constraints=[*rows, 2 * rows[0]])
    with pytest.raises(FormulationError, match=r"holonomic\[[13]\]: redundant.*\n.*leave these out"):
        pipeline.derive(loaded, method="tmt", constraints=asked)


def test_values_depend_on_their_arguments_and_not_on_what_was_asked_before(partitioned):
    """Rejected steps and difference quotients change nothing: equal bits in any order, one by one and in batches."""
    generator = np.random.default_rng(9)
    x = np.column_stack([generator.uniform(-12.0, 12.0, 4), generator.uniform(-3.0, 3.0, 4)])
    whole = pipeline.right_hand_side(partitioned)(0.0, x, r=[0.0])
    assert np.isfinite(whole).all()
    for _ in range(2):
        f = pipeline.right_hand_side(partitioned)
        for i in generator.permutation(len(x)):
            value, outputs = f(0.0, x[i], r=[0.0]), f.outputs(0.0, x[i], r=[0.0])
            np.testing.assert_allclose(value, whole[i], rtol=1e-12, atol=1e-12)
            assert value.tobytes() == pipeline.right_hand_side(partitioned)(0.0, x[i], r=[0.0]).tobytes()
            assert outputs.tobytes() == pipeline.right_hand_side(partitioned).outputs(0.0, x[i], r=[0.0]).tobytes()


def test_memory_is_not_found_again_where_only_an_input_changes(partitioned, monkeypatch):
    """The way to the place is followed once: a torque that changes in time made the nominals of a four-bar cost 3 s."""
    f = make_evaluator(partitioned.program, "rhs")
    x0, r0, p0 = pipeline.start_values(partitioned)
    found, remember = [], f.memory._remember
    monkeypatch.setattr(f.memory, "_remember", lambda *at: found.append(at) or remember(*at))
    costs = []
    for torque in (0.0, 1.0):
        f(0.0, x0 + np.array([1.0, 0.0]), r0 + torque, p0)
        costs.append(len(found))
    assert costs[0] > 5
    assert costs[1] == costs[0] + 1


def test_a_memory_that_is_given_is_used_and_stays(partitioned):
    """Who keeps it from one accepted step to the next asks ``remember`` for the next one."""
    program = partitioned.program
    f, remember = make_evaluator(program, "rhs"), make_evaluator(program, "remember")
    p = [item.value for item in partitioned.definition.parameters]
    m = np.array(partitioned.equations.warm_start)
    for angle in np.linspace(0.2, 7.0, 60):
        m = remember(0.0, [angle, 1.0], [0.0], p, m)
        assert f(0.0, [angle, 1.0], [0.0], p, m) == pytest.approx(f(0.0, [angle, 1.0], [0.0], p), rel=1e-10)
