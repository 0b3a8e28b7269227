"""A foot that events put elsewhere has velocity zero, as the origin has: which is which must be said."""

from __future__ import annotations

import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model, Parts
from mb2fmu.errors import ModelError
from mb2fmu.model import check_model


def walker(*, said: bool) -> Model:
    """An inverted pendulum on a foot S, which is ``place`` before O and steps on at an event."""
    angle, rate, place = me.dynamicsymbols("angle rate place")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    A = N.orientnew("A", "Axis", (angle, N.z))
    A.set_ang_vel(N, rate * N.z)
    S = O.locatenew("S", place * N.x)
    S.set_vel(N, 0)
    H = S.locatenew("H", A.y)
    H.v2pt_theory(S, N, A)
    hip, loads, kinematic = me.Particle("hip", H, 1), [(H, -9.81 * N.y)], [angle.diff() - rate]
    if said:
        mechanics = Parts(
            frame=N, origin=O, q=[angle], u=[rate], kinematic_equations=kinematic, bodies=[hip], loads=loads
        )
    else:
        mechanics = me.KanesMethod(N, [angle], [rate], kinematic, bodies=[hip], forcelist=loads)
    model = Model("Walker", mechanics)
    model.coordinate(angle, 0.1, "rad")
    model.speed(rate, 0.0, "rad/s")
    model.discrete(place, 0.0, "m")
    model.when(angle > sm.Rational(1, 2), {place: place - 1, angle: -angle}, name="step")
    model.experiment(stop=1.0, step=0.1)
    return model


def test_an_origin_that_events_move_is_asked_for():
    with pytest.raises(ModelError, match=r"S and O have velocity zero, and events change their distance by place\(t\)"):
        check_model(walker(said=False))
    check_model(walker(said=True))
