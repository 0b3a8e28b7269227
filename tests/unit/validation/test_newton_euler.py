"""The numeric Newton-Euler reference gives what the symbolic ones give."""

from __future__ import annotations

import numpy as np
import pytest
from mechanisms import cart_with_pathways, mechanism_of, model_of, moving_pivot, random_states, sympy_rolling_disc
from sympy.physics import mechanics as me

from mb2fmu.formulation import formulate
from mb2fmu.validation import make_reference, outgrows_symbols
from mb2fmu.validation.newton_euler import NewtonEuler
from mb2fmu.validation.numeric import NumericEquations


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


@pytest.mark.parametrize(("count", "spatial", "expected"), [(7, True, False), (8, False, False), (8, True, True)])
def test_only_many_bodies_in_space_outgrow_symbols(count, spatial, expected):
    assert outgrows_symbols(_chain(count, spatial=spatial)) is expected


def test_slopes_powers_and_outputs_are_those_of_the_symbolic_reference():
    model = cart_with_pathways()
    model.output_total_energy()
    mechanism = mechanism_of(model)
    equations = formulate(mechanism, "tmt")
    symbolic, numeric = NumericEquations(equations), NewtonEuler(mechanism, equations)
    for state in random_states(mechanism, 10):
        prepared = symbolic.prepare(list(state.p))
        a = symbolic.motion(state.t, state.x, list(state.r), prepared)
        b = numeric.motion(state.t, state.x, list(state.r), prepared)
        assert np.allclose(a.x_dot, b.x_dot, rtol=1e-11, atol=1e-11)
        assert np.allclose(a.outputs, b.outputs, rtol=1e-11, atol=1e-11)
        assert a.power == pytest.approx(b.power, rel=1e-10, abs=1e-10)
        assert a.kinetic == pytest.approx(b.kinetic, rel=1e-12)


@pytest.mark.parametrize("make", [cart_with_pathways, moving_pivot, sympy_rolling_disc, lambda: None])
def test_compiled_it_is_what_it_is_in_numpy(make):
    model = make()
    mechanism = mechanism_of(model) if model else _chain(5, spatial=True)
    equations = formulate(mechanism, "tmt")
    plain, fast = NewtonEuler(mechanism, equations), NewtonEuler(mechanism, equations)
    assert fast.compile()
    for state in random_states(mechanism, 10):
        prepared = plain.prepare(list(state.p))
        one = plain.motion(state.t, state.x, list(state.r), prepared)
        other = fast.motion(state.t, state.x, list(state.r), prepared)
        for name in ("x_dot", "outputs", "residual", "u", "power", "kinetic"):
            assert np.allclose(getattr(other, name), getattr(one, name), rtol=1e-11, atol=1e-11), name


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
