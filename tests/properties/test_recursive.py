"""The recursive formulation: random trees of all joints, both variants, forward and inverse, energies and outputs."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import (
    Evaluated,
    Numeric,
    cart_with_pathways,
    close,
    mechanism_of,
    model_of,
    moving_pivot,
    random_states,
)
from representatives import by_night
from sympy.physics import mechanics as me
from trees import AXES, DEGREES, KINDS, build

from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.compiler.program import count_operations
from mb2fmu.mechanics.formulations import check_applicability_of_all_formulations, formulate
from mb2fmu.model.model import Parts

VARIANTS = ("recursive-articulated", "recursive-composite")
TREES = st.lists(
    st.tuples(st.sampled_from(KINDS), st.sampled_from(AXES), st.integers(0, 5)), min_size=1, max_size=6
).filter(lambda kinds: 1 <= sum(DEGREES[kind] for kind, *_ in kinds) <= 9)


def _tree(kinds, *, tilted):
    """A random tree with a pathway, a torque between two bodies, and outputs of every level."""
    system = build(kinds, tilted=tilted)
    ground, last = system.bodies[0], system.bodies[-1]
    hook = ground.masscenter.locatenew("hook", 2 * ground.x + ground.y - 3 * ground.z)
    tip = last.masscenter.locatenew("tip", 0.3 * last.x)
    system.add_actuators(
        me.LinearSpring(sm.Symbol("k"), me.LinearPathway(hook, tip), equilibrium_length=1),
        me.TorqueActuator(0.4, last.z, last, system.bodies[len(system.bodies) // 2]),
    )
    values = {"m": 1.2, "J": 0.3, "g": 9.81, "T": 0.3, "k": 20.0}
    model = model_of("Tree", system, list(system.q), list(system.u), **values)
    model.output_position("at", tip)
    model.output_velocity("v", tip)
    model.output_acceleration("a", tip)
    model.output_angular_velocity("w", last.frame)
    model.output_orientation("turn", last.frame)
    return mechanism_of(model)


@pytest.mark.parametrize(
    "kinds",
    [
        pytest.param([("pin", "z", 0), ("weld", "y", 1), ("prismatic", "y", 1)], id="branched"),
        *by_night([("spherical", "z", 0), ("weld", "y", 1), ("prismatic", "y", 1)]),
        *by_night([("cylindrical", "x", 0), ("weld", "y", 1), ("pin", "z", 2), ("prismatic", "y", 1)]),
        *by_night([("spherical", "z", 0), ("planar", "x", 1)]),
    ],
)
def test_trees(kinds):
    """All joints stand in test_pinocchio."""
    _agree(kinds, tilted=True)


@pytest.mark.repeats
@settings(max_examples=25)
@given(TREES, st.booleans())
def test_random_trees(kinds, tilted):
    _agree(kinds, tilted)


def _agree(kinds, tilted):
    mechanism = _tree(kinds, tilted=tilted)
    numeric = Numeric(mechanism)
    n = len(mechanism.u)
    evaluated = [Evaluated(mechanism, method) for method in VARIANTS]
    for state in random_states(mechanism, 3):
        expected, condition = numeric.accelerations(state), numeric.condition()
        tip = numeric.numeric.points[next(i for i, p in enumerate(mechanism.points) if p.name == "tip")]
        motion = [*tip.position, *tip.velocity, *(tip.acceleration0 + tip.partials @ expected)]
        energies = numeric.numeric.kinetic_energy(), sum(numeric.numeric.powers())
        for one in evaluated:
            assert close(one("accelerations", state), expected, condition), one.equations.method
            assert close(one("outputs", state)[:9], np.array(motion), condition), one.equations.method
            energy = dict(zip(one.program.entries["energy"].labels, one("energy", state), strict=True))
            assert np.allclose([energy["kinetic"], energy["power"]], energies, rtol=1e-10, atol=1e-10)
        M = evaluated[1]("equations", state)[: n * n].reshape(n, n)
        assert np.allclose(M, numeric.numeric.unconstrained_mass_and_forcing()[0], rtol=1e-11, atol=1e-11)
        assert np.min(np.linalg.eigvalsh(M)) > 0


@pytest.mark.parametrize("n", [3, *by_night(4, 7)])
def test_an_arm_agrees_with_kanes_method(n: int) -> None:
    """SymPy's own KanesMethod, as far as it goes: axes z, y, x, …, full inertias, bodies in space."""
    q, u = me.dynamicsymbols(f"q1:{n + 1}"), me.dynamicsymbols(f"u1:{n + 1}")
    m, g, a, J = sm.symbols("m g a J")
    before, joint = me.ReferenceFrame("N"), me.Point("O")
    N, O = before, joint
    bodies, loads = [], []
    for i in range(n):
        B = me.ReferenceFrame(f"B{i}")
        axis, along = (before.z, before.y, before.x)[i % 3], (B.x, B.z, B.y)[i % 3]
        B.orient_axis(before, axis, q[i])
        B.set_ang_vel(before, u[i] * axis)
        middle = joint.locatenew(f"C{i}", a * along)
        inertia = me.inertia(B, J, 2 * J, 2.5 * J, 0.1 * J, 0.2 * J, 0.3 * J)
        bodies.append(me.RigidBody(f"body{i}", middle, B, m, (inertia, middle)))
        loads.append(me.Force(middle, -m * g * N.z))
        before, joint = B, joint.locatenew(f"J{i}", 2 * a * along)
    equations = [speed - angle.diff() for angle, speed in zip(q, u, strict=True)]
    parts = Parts(frame=N, origin=O, q=q, u=u, kinematic_equations=equations, bodies=bodies, loads=loads)
    mechanism = mechanism_of(model_of("Arm", parts, q, u, m=1.2, g=9.81, a=0.4, J=0.1))
    numeric, kane = Numeric(mechanism), Evaluated(mechanism, "kane")
    evaluated = [Evaluated(mechanism, method) for method in VARIANTS]
    for state in random_states(mechanism, 3):
        expected = kane("accelerations", state)
        assert close(numeric.accelerations(state), expected, numeric.condition())
        for one in evaluated:
            assert close(one("accelerations", state), expected, numeric.condition()), one.equations.method


@pytest.mark.parametrize("method", VARIANTS)
@pytest.mark.parametrize(
    "kinds",
    [
        [("pin", "x", 0), ("pin", "y", 1)],
        *by_night([("spherical", "x", 0), ("pin", "y", 1), ("planar", "z", 2)], [("pin", "z", 0)] * 4),
    ],
)
def test_inverse_of_forward_is_zero_and_added_forces_add(method, kinds):
    mechanism = _tree(kinds, tilted=True)
    program = lower_equations_to_program(formulate(mechanism, method), ["forward", "inverse"])
    forward, inverse = make_evaluator(program, "forward"), make_evaluator(program, "inverse")
    n = len(mechanism.u)
    for state in random_states(mechanism, 3):
        forces = np.random.default_rng(5).uniform(-1, 1, n)
        u_dot = forward(state.t, state.x, state.r, state.p, (), forces)
        needed = inverse(state.t, state.x, state.r, state.p, (), u_dot)
        assert np.allclose(needed, forces, rtol=1e-9, atol=1e-9)
        alone = make_evaluator(program, "accelerations")(state.t, state.x, state.r, state.p)
        assert np.allclose(inverse(state.t, state.x, state.r, state.p, (), alone), 0, atol=1e-9)


@pytest.mark.parametrize("method", VARIANTS)
def test_several_sets_of_forces_share_their_inertias(method):
    kinds = [("pin", "x", 0), ("pin", "y", 1), ("pin", "z", 2)]
    mechanism = _tree(kinds, tilted=False)
    equations = formulate(mechanism, method)
    one, three = (lower_equations_to_program(equations, ["forward"], forces=count) for count in (1, 3))
    n = len(mechanism.u)
    (state,) = random_states(mechanism, 1)
    forces = np.random.default_rng(7).uniform(-1, 1, (3, n))
    arguments = (state.t, state.x, state.r, state.p, ())
    together = make_evaluator(three, "forward")(*arguments, forces.ravel()).reshape(3, n)
    for force, u_dot in zip(forces, together, strict=True):
        np.testing.assert_allclose(make_evaluator(one, "forward")(*arguments, force), u_dot, rtol=1e-12, atol=1e-12)
    costs = [sum(count_operations(program, "forward").values()) for program in (one, three)]
    assert costs[1] < 1.8 * costs[0]


@pytest.mark.parametrize("build_model", [cart_with_pathways, moving_pivot])
def test_power_is_the_change_of_energy(build_model):
    mechanism = mechanism_of(build_model())
    tmt = Evaluated(mechanism, "tmt")
    for method in VARIANTS:
        one = Evaluated(mechanism, method)
        for state in random_states(mechanism, 3):
            assert np.allclose(one("rhs", state), tmt("rhs", state), rtol=1e-11, atol=1e-11)
            assert np.allclose(one("energy", state), tmt("energy", state), rtol=1e-11, atol=1e-11)


def test_motors_add_inertia_along_their_joints():
    """A geared wheel on the ground beside a pendulum that its speed moves, too; torques on both."""
    q, u, x, v = me.dynamicsymbols("q u x v")
    m, J, r, g = sm.symbols("m J r g")
    N, A, B, W = (me.ReferenceFrame(name) for name in "NABW")
    O = me.Point("O")
    A.orient_axis(N, N.z, q)
    A.set_ang_vel(N, u * N.z)
    B.orient_axis(A, A.x, x)
    B.set_ang_vel(A, v * A.x)
    W.orient_axis(N, N.y, -3 * q)
    W.set_ang_vel(N, -3 * u * N.y)
    elbow = O.locatenew("elbow", r * A.x)
    points = (O.locatenew("first", r / 2 * A.x), elbow.locatenew("second", r * B.y), O.locatenew("third", r / 9 * W.x))
    bodies = [
        me.RigidBody(f"body{i}", point, frame, m, (me.inertia(frame, J, 2 * J, 1.5 * J), point))
        for i, (point, frame) in enumerate(zip(points, (A, B, W), strict=True))
    ]
    loads = [(body.masscenter, -m * g * N.y) for body in bodies] + [(W, 0.7 * N.y), (A, -0.1 * u * N.z)]
    equations = [u - q.diff(), v - x.diff()]
    parts = Parts(frame=N, origin=O, q=[q, x], u=[u, v], kinematic_equations=equations, bodies=bodies, loads=loads)
    mechanism = mechanism_of(model_of("Geared", parts, [q, x], [u, v], m=1.0, J=0.2, r=0.5, g=9.81))
    numeric, evaluated = Numeric(mechanism), [Evaluated(mechanism, method) for method in VARIANTS]
    assert len(evaluated[0].equations.dynamics.geared_links) == 1
    program = lower_equations_to_program(evaluated[0].equations, ["forward", "inverse"])
    forward, inverse = make_evaluator(program, "forward"), make_evaluator(program, "inverse")
    for state in random_states(mechanism, 3):
        expected, condition = numeric.accelerations(state), numeric.condition()
        for one in evaluated:
            assert close(one("accelerations", state), expected, condition)
        added = np.array([0.3, -0.2])
        u_dot = forward(state.t, state.x, state.r, state.p, (), added)
        M = numeric.numeric.unconstrained_mass_and_forcing()[0]
        assert np.allclose(M @ (u_dot - expected), added, rtol=1e-10, atol=1e-10)
        assert np.allclose(inverse(state.t, state.x, state.r, state.p, (), u_dot), added, rtol=1e-10, atol=1e-10)


def test_a_shared_speed_is_said_and_composite_bodies_take_it():
    """Two wheels on a carrier, geared to each other: articulated bodies would need a joint each."""
    q, u, x, v = me.dynamicsymbols("q u x v")
    m, J, r, g = sm.symbols("m J r g")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    O = me.Point("O")
    A.orient_axis(N, N.x, x)
    A.set_ang_vel(N, v * N.x)
    bodies = [me.RigidBody("carrier", O.locatenew("C", r * A.y), A, m, (me.inertia(A, J, J, J), O))]
    for i, ratio in enumerate((1, -2)):
        W = me.ReferenceFrame(f"W{i}")
        W.orient_axis(A, A.z, ratio * q)
        W.set_ang_vel(A, ratio * u * A.z)
        centre = O.locatenew(f"C{i}", (1 + i) * r * A.y + r / 4 * W.x)
        bodies.append(me.RigidBody(f"wheel{i}", centre, W, m, (me.inertia(W, J, 2 * J, J), centre)))
    loads = [(body.masscenter, -m * g * N.y) for body in bodies]
    equations = [u - q.diff(), v - x.diff()]
    parts = Parts(frame=N, origin=O, q=[q, x], u=[u, v], kinematic_equations=equations, bodies=bodies, loads=loads)
    mechanism = mechanism_of(model_of("Gears", parts, [q, x], [u, v], m=1.0, J=0.2, r=0.5, g=9.81))
    answer = check_applicability_of_all_formulations(mechanism)["recursive-articulated"]
    assert not answer.is_applicable
    assert "u moves both" in answer.reason
    one, numeric = Evaluated(mechanism, "recursive"), Numeric(mechanism)
    assert one.equations.method == "recursive-composite"
    for state in random_states(mechanism, 3):
        assert close(one("accelerations", state), numeric.accelerations(state), numeric.condition())
