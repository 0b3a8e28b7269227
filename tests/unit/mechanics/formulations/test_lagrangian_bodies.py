"""A ``LagrangesMethod`` with bodies: every method gives its motion, where it is the mechanism's."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from mechanisms import model_of
from sympy.physics import mechanics as me

from mb2fmu import Model, pipeline
from mb2fmu.errors import FormulationError


def _skate() -> Model:
    """A knife edge on an inclined plane, its potential energy given to the body."""
    x, y, turn = q = me.dynamicsymbols("x y turn")
    m, J, g = sm.symbols("m J g")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    B = N.orientnew("B", "Axis", [turn, N.z])
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, x.diff() * N.x + y.diff() * N.y)
    body = me.RigidBody("skate", P, B, m, (me.inertia(B, 0, 0, J), P))
    body.potential_energy = -m * g * x / 3
    rows = [P.vel(N).dot(B.y)]
    method = me.LagrangesMethod(me.Lagrangian(N, body), list(q), nonhol_coneqs=rows, bodies=[body], frame=N)
    return model_of("Skate", method, q, [qi.diff() for qi in q], m=1.0, J=0.2, g=9.81)


def test_potential_forces_go_through_velocity_constraints():
    """Closed form: along the edge nothing but gravity pulls, g sin(slope) cos(turn), and turning is free."""
    states = np.random.default_rng(1).uniform(-0.5, 0.5, (4, 5))
    for method in ("lagrange", "kane", "tmt", "recursive"):
        f = pipeline.rhs(_skate(), method=method)
        turn = f.states.index("turn")
        rate, along = f.states.index("turn_dot"), f.states.index("x_dot")
        x_dot = f(0.0, states)
        velocity = states[:, along] / np.cos(states[:, turn])
        pull = 9.81 / 3 * np.cos(states[:, turn])
        wanted = pull * np.cos(states[:, turn]) - velocity * states[:, rate] * np.sin(states[:, turn])
        np.testing.assert_allclose(x_dot[:, along], wanted, rtol=1e-12, err_msg=method)
        np.testing.assert_allclose(x_dot[:, rate], 0, atol=1e-12, err_msg=method)


def test_velocities_that_roll_already_have_no_lagrangian():
    """SymPy's disc from the contact point up: a Lagrangian with the constraints in it, which errs."""
    q1, q2, q3 = q = me.dynamicsymbols("q1:4")
    m, r, g = sm.symbols("m r g")
    N = me.ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q1, N.z])
    L = Y.orientnew("L", "Axis", [q2, Y.x])
    R = L.orientnew("R", "Axis", [q3, L.y])
    contact = me.Point("contact")
    contact.set_vel(N, 0)
    centre = contact.locatenew("centre", r * L.z)
    centre.v2pt_theory(contact, N, R)
    across = m * r**2 / 4
    disc = me.RigidBody("disc", centre, R, m, (me.inertia(L, across, 2 * across, across), centre))
    disc.potential_energy = m * g * r * sm.cos(q2)
    method = me.LagrangesMethod(me.Lagrangian(N, disc), list(q), bodies=[disc], frame=N)
    model = model_of("Disc", method, q, [qi.diff() for qi in q], m=2.0, r=0.3, g=9.81)
    with pytest.raises(FormulationError, match="is not the derivative of a"):
        pipeline.derive(model, method="lagrange")
    x = np.array([0.1, 0.3, 0.2, 1.0, 0.1, 8.0])
    kane, tmt = (pipeline.rhs(model, method=name)(0.0, x) for name in ("kane", "tmt"))
    np.testing.assert_allclose(kane, tmt, rtol=1e-12)


@pytest.mark.parametrize("rate", [0.0, 0.4])
def test_a_constraint_that_moves_does_work_on_a_lagrangian_alone(rate):
    """Seen in a script from the net: a row in t, and the energy balance of a right unit was off by 68 J."""
    x, y = me.dynamicsymbols("x y")
    m, g, a = sm.symbols("m g a")
    t = me.dynamicsymbols._t
    lagrangian = m * (x.diff() ** 2 + y.diff() ** 2) / 2 - m * g * y
    row = y.diff() - sm.sin(x) * x.diff() - (a * t if rate else 0)
    model = model_of(
        "Slope", me.LagrangesMethod(lagrangian, [x, y], nonhol_coneqs=[row]), (x, y), (x.diff(), y.diff()),
        m=1.0, g=9.81, **({"a": rate} if rate else {}),
    )  # fmt: skip
    energy = pipeline.derive(model).equations.energy
    assert energy.balanced is (rate == 0.0)
    assert ("a constraint that moves" in energy.reason) is (rate != 0.0)
