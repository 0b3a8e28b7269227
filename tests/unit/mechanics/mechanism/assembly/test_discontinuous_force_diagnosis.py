"""Where an integrator gives up, forces that jump are named."""

from __future__ import annotations

import pytest
import sympy as sm
from strangers import declared, world
from sympy.physics import mechanics as me

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.mechanics.mechanism import Mechanism, add_discontinuity_note, read_mechanism
from mb2fmu.model import check_model


def _sliding(friction: str) -> Mechanism:
    x, v = me.dynamicsymbols("x v")
    N, O = world()
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    force = sm.sympify(friction).subs({sm.Symbol("v"): v, sm.Symbol("x"): x})
    bodies = [me.Particle("p", P, sm.Symbol("m"))]
    kane = me.KanesMethod(N, [x], [v], [x.diff() - v], bodies=bodies, forcelist=[(P, force * N.x)])
    return read_mechanism(check_model(declared("Sliding", kane, "m=1 mu=0.3", {x: 1.0, v: 0.0})))


@pytest.mark.parametrize("friction", ["-mu*sign(v)", "-mu*Heaviside(x - 1)", "Piecewise((-mu, v > 0), (mu, True))"])
def test_what_jumps_is_named(friction):
    mechanism = _sliding(friction)
    fault = Fault("5000000 evaluations are spent")
    with (
        pytest.raises(ValidationError, match="the reference cannot be integrated") as error,
        add_discontinuity_note(mechanism),
    ):
        raise ValidationError("the reference cannot be integrated:", [fault])
    assert error.value.faults[0] == fault
    assert "load[1] at P" in error.value.faults[1].what


def test_nothing_is_said_of_smooth_forces():
    with pytest.raises(ValidationError) as error, add_discontinuity_note(_sliding("-mu*tanh(v/0.01)")):
        raise ValidationError("the reference cannot be integrated:", [Fault("spent")])
    assert len(error.value.faults) == 1
