"""One rule for units of q and u where q' = u, whatever the mechanics are handed over as."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu import Model, Parts
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model

EQUATIONS: dict[str, Callable[[sm.Expr, sm.Expr], sm.Expr]] = {
    "q' - u": lambda q, u: q.diff() - u,
    "u - q'": lambda q, u: u - q.diff(),
    "2 q' - 2 u": lambda q, u: 2 * q.diff() - 2 * u,
}


def _model(source: str, equation: Callable[[sm.Expr, sm.Expr], sm.Expr], unit: str, rate_unit: str = "m/s") -> Model:
    q, u = me.dynamicsymbols("q u")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", q * N.x)
    P.set_vel(N, u * N.x)
    body, row = me.Particle("P", P, 1.0), equation(q, u)
    if source == "Parts":
        mechanics = Parts(frame=N, origin=O, q=[q], u=[u], kinematic_equations=[row], bodies=[body])
    elif source == "System":
        mechanics = me.System(N, O)
        mechanics.add_coordinates(q)
        mechanics.add_speeds(u)
        mechanics.add_kdes(row)
        mechanics.add_bodies(body)
    else:
        mechanics = me.KanesMethod(N, [q], [u], [row], bodies=[body], forcelist=[])
    model = Model("Slider", mechanics)
    model.coordinate(q, 0.1, unit)
    model.speed(u, 0.0, rate_unit)
    return model


@pytest.mark.parametrize("source", ["KanesMethod", "System", "Parts"])
@pytest.mark.parametrize("name", EQUATIONS)
def test_an_angle_has_no_rate_in_metres_per_second(source, name):
    with pytest.raises(ModelError, match="u is q' by the kinematic equations, and is in m/s, though q is in rad"):
        check_model(_model(source, EQUATIONS[name], "rad"))
    check_model(_model(source, EQUATIONS[name], "m"))


def test_an_angle_in_degrees_is_to_be_declared_in_radians():
    """The other way, a speed in deg/s, would let 30 deg move as 30 rad."""
    with pytest.raises(ModelError) as caught:
        check_model(_model("KanesMethod", EQUATIONS["q' - u"], "deg", "rad/s"))
    (remedy,) = (fault.remedy for fault in caught.value.faults)
    assert remedy == 'declare q in rad; its number may have its own unit: "0.1 deg"'
