"""How many digits of x' the data determine."""

from __future__ import annotations

import pytest
import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu import Model, model
from mb2fmu.mechanics import mechanism
from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.validation import make_reference
from mb2fmu.validation.reference.derivative_conditioning import FEW_DIGITS, compute_digits_of_worst_derivative


def _between_springs(stiffness: float):
    """A mass between a spring that holds it and one that drives it away, nearly as strong."""
    q, u, pull, push, m = *me.dynamicsymbols("q u"), *sm.symbols("pull push m")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q * N.x)
    P.set_vel(N, u * N.x)
    kane = me.KanesMethod(N, [q], [u], kd_eqs=[u - q.diff()])
    kane.kanes_equations([me.Particle("block", P, m)], [(P, (push - pull) * q * N.x)])
    made = Model("Springs", kane)
    made.parameter(pull, stiffness + 1.0, "N/m")
    made.parameter(push, stiffness, "N/m")
    made.parameter(m, 1.0, "kg")
    made.coordinate(q, 0.1, "m")
    made.speed(u, 0.0, "m/s")
    made.experiment(stop=1.0, step=0.1)
    read = mechanism.read_mechanism(model.check_model(made))
    return make_reference(read.declared, form_equations_except_dynamics(read), mechanism=read)


@pytest.mark.parametrize(("stiffness", "few"), [(1.0, False), (1e9, True)])
def test_forces_that_cancel_leave_few_digits(stiffness, few):
    digits = compute_digits_of_worst_derivative(_between_springs(stiffness))
    assert digits is not None
    assert (digits.known < FEW_DIGITS) is few
    assert bool(digits.text) is few


def test_what_cancels_throughout_is_zero_and_not_ill_conditioned():
    """Of a ball that turns freely (Ix - Iy) u1 u2 is zero: no digit of it is known, and none is needed."""
    q, u, inertias = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4"), sm.symbols("Ix Iy Iz")
    N, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("B"), me.Point("O")
    B.orient_body_fixed(N, q, "xyz")
    turning = [B.ang_vel_in(N).dot(axis) for axis in B]
    B.set_ang_vel(N, sum((speed * axis for speed, axis in zip(u, B, strict=True)), me.Vector(0)))
    O.set_vel(N, 0)
    body = me.RigidBody("ball", O, B, sm.S.One, (me.inertia(B, *inertias), O))
    kane = me.KanesMethod(N, q, u, kd_eqs=[speed - rate for speed, rate in zip(u, turning, strict=True)])
    kane.kanes_equations([body], [])
    made = Model("Ball", kane)
    for symbol in inertias:
        made.parameter(symbol, 0.1083, "kg.m2")
    for angle, speed in zip(q, u, strict=True):
        made.coordinate(angle, 0.1, "rad")
        made.speed(speed, 0.1, "rad/s")
    read = mechanism.read_mechanism(model.check_model(made))
    digits = compute_digits_of_worst_derivative(
        make_reference(read.declared, form_equations_except_dynamics(read), mechanism=read)
    )
    assert digits is not None
    assert not digits.text, digits
