"""How many digits of x' the data determine."""

from __future__ import annotations

import pytest
import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu import Model, mechanism, model
from mb2fmu.formulation import formulate_motion
from mb2fmu.validation import make_reference
from mb2fmu.validation.digits import FEW, known_digits


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
    read = mechanism.read(model.check(made))
    return make_reference(read.declared, formulate_motion(read), mechanism=read)


@pytest.mark.parametrize(("stiffness", "few"), [(1.0, False), (1e9, True)])
def test_forces_that_cancel_leave_few_digits(stiffness, few):
    digits = known_digits(_between_springs(stiffness))
    assert digits is not None
    assert (digits.known < FEW) is few
    assert bool(digits.text) is few
