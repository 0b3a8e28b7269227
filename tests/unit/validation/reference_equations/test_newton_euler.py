"""The numeric Newton-Euler reference gives what the symbolic ones give."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from hinges import BENNETT, linkage
from mechanisms import (
    cart_with_pathways,
    mechanism_of,
    model_of,
    moving_pivot,
    random_states,
    sympy_rolling_disc,
)
from representatives import by_night
from scipy.spatial.transform import Rotation
from sympy.physics import mechanics as me

from mb2fmu import pipeline
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.mechanics.formulations.outputs import output_expressions
from mb2fmu.validation import is_too_large_for_symbols, make_reference
from mb2fmu.validation.reference_equations import observables
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

MODELS = Path(__file__).resolve().parents[4] / "models"
SHOWN = ("rolling_disc", "rigid_body", "driven_crank")


def _chain(count: int, *, spatial: bool):
    """Equal rods on pins; ``spatial``: every other axis is turned."""
    ground = me.RigidBody("ground")
    system = me.System.from_newtonian(ground)
    parent = ground
    for i in range(count):
        body = me.RigidBody(f"rod{i}", mass=1)
        body.central_inertia = me.inertia(body.frame, 0.1, 0.2, 0.15)
        axis = parent.y if spatial and i % 2 else parent.z
        system.add_joints(
            me.PinJoint(
                f"pin{i}", parent, body, joint_axis=axis, parent_point=0.2 * parent.x, child_point=-0.3 * body.x
            )
        )
        parent = body
    system.apply_uniform_gravity(-9.81 * ground.y)
    return mechanism_of(model_of("Chain", system, list(system.q), list(system.u)))


@pytest.mark.parametrize(
    ("count", "spatial", "expected"), [(7, True, False), *by_night((8, False, False)), (8, True, True)]
)
def test_only_many_bodies_in_space_outgrow_symbols(count, spatial, expected):
    assert is_too_large_for_symbols(_chain(count, spatial=spatial)) is expected


def _cart():
    model = cart_with_pathways()
    model.output_total_energy()
    return model


SHOWN_MODELS = [lambda name=name: pipeline.load(MODELS / f"{name}.py") for name in SHOWN]


@pytest.mark.parametrize("make", [_cart, SHOWN_MODELS[0], *by_night(*SHOWN_MODELS[1:])])
def test_slopes_powers_and_outputs_are_those_of_the_symbolic_reference(make):
    """Reactions, momenta, multipliers, attitudes and energies among them."""
    mechanism = mechanism_of(make())
    equations = formulate(mechanism, "tmt")
    symbolic, numeric = NumericEquations(equations), NewtonEulerEquations(mechanism, equations)
    for state in random_states(mechanism, 10):
        prepared = symbolic.prepare(list(state.p))
        a = symbolic.motion(state.t, state.x, list(state.r), prepared)
        b = numeric.motion(state.t, state.x, list(state.r), prepared)
        assert np.allclose(a.x_dot, b.x_dot, rtol=1e-11, atol=1e-11)
        assert np.allclose(a.outputs, b.outputs, rtol=1e-11, atol=1e-11)
        assert a.power == pytest.approx(b.power, rel=1e-10, abs=1e-10)
        assert a.kinetic == pytest.approx(b.kinetic, rel=1e-12)


def test_a_fault_of_the_formulations_outputs_and_energies_is_not_the_references():
    """What all formulations share writes another expression: the reference reads its own off the mechanism."""
    mechanism = mechanism_of(pipeline.load(MODELS / "rolling_disc.py"))
    equations = formulate(mechanism, "tmt")
    wrong = replace(
        equations,
        outputs=tuple(replace(output, expression=2 * output.expression + 1) for output in equations.outputs),
        energy=replace(equations.energy, kinetic=sm.Integer(0)),
    )
    right, misled = NewtonEulerEquations(mechanism, equations), NewtonEulerEquations(mechanism, wrong)
    state = random_states(mechanism, 1)[0]
    prepared = right.prepare(list(state.p))
    a, b = (each.motion(state.t, state.x, list(state.r), prepared) for each in (right, misled))
    own = [i for i, output in enumerate(equations.outputs) if output.name not in {"potential_energy", "total_energy"}]
    assert len(own) > 10
    assert np.array_equal(a.outputs[own], b.outputs[own])
    assert a.kinetic == b.kinetic > 0


@pytest.mark.parametrize(
    "make", [cart_with_pathways, sympy_rolling_disc, *by_night(moving_pivot, lambda: linkage(*BENNETT)), lambda: None]
)
def test_compiled_it_is_what_it_is_in_numpy(make):
    model = make()
    mechanism = mechanism_of(model) if model else _chain(5, spatial=True)
    equations = formulate(mechanism, "tmt")
    plain, fast = NewtonEulerEquations(mechanism, equations), NewtonEulerEquations(mechanism, equations)
    assert fast.compile()
    for state in random_states(mechanism, 10):
        prepared = plain.prepare(list(state.p))
        one = plain.motion(state.t, state.x, list(state.r), prepared)
        other = fast.motion(state.t, state.x, list(state.r), prepared)
        for name in ("x_dot", "outputs", "residual", "u", "power", "kinetic"):
            assert np.allclose(getattr(other, name), getattr(one, name), rtol=1e-11, atol=1e-11), name
        rows = [each.row_singular_values(state.t, state.x, list(state.r), prepared) for each in (plain, fast)]
        assert np.allclose(*rows, rtol=1e-11, atol=1e-11)


def test_a_whole_reference():
    mechanism = _chain(2, spatial=True)
    definition = mechanism.declared
    object.__setattr__(definition.experiment, "stop", 0.5)
    equations = formulate(mechanism, "tmt")
    reference = make_reference(definition, equations, mechanism=mechanism)
    plain = make_reference(definition, formulate(mechanism, "kane"))
    assert reference.trajectory.provenance["formulation"] == "Newton-Euler, numerically"
    assert np.allclose(reference.trajectory.values, plain.trajectory.values, rtol=0, atol=1e-10)
    assert all(balance.worst < 1e-11 for balance in reference.balances)


@pytest.mark.parametrize("sequence", ["quaternion", "zxy", "313", "yxz", "121"])
def test_attitudes_are_those_of_the_formulations(sequence):
    """Two ways to write the angles of a matrix, near the ends of their ranges too."""
    rng = np.random.default_rng(3)
    R = sm.Matrix(3, 3, sm.symbols("r0:9"))
    own = (
        observables.convert_rotation_to_quaternion(R)
        if sequence == "quaternion"
        else observables.euler_angles(R, sequence)
    )
    theirs = (
        output_expressions.quaternion_from_matrix(sm.ImmutableMatrix(R))
        if sequence == "quaternion"
        else output_expressions.euler_angles_from_matrix(sm.ImmutableMatrix(R), sequence)
    )
    function = sm.lambdify([list(R)], [*own, *theirs])
    for matrix in Rotation.from_rotvec(rng.uniform(-3, 3, (40, 3))).as_matrix():
        found = np.array(function(matrix.ravel().tolist()), dtype=float).reshape(2, -1)
        assert np.allclose(found[0], found[1], rtol=0, atol=1e-7)
