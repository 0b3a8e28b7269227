"""A mass matrix that is singular but for round-off is refused with the speed's name; a small inertia is not."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from mechanisms import mechanism_of, model_of
from representatives import by_night
from sympy.physics import mechanics as me

from mb2fmu.errors import MechanismError
from mb2fmu.mechanics.mechanism.numeric.random_states import count_independent_rows, row_lengths_above_round_off


def _particle_on_a_rod(sequence: str = "zxy", rotor: float = 0.0):
    """Three angles and body-fixed speeds; the spin about the rod (A.y) moves nothing but the rotor."""
    m, l, J = sm.symbols("m l J")
    q, u = me.dynamicsymbols("q1:4"), me.dynamicsymbols("u1:4")
    N, A, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
    A.orient_body_fixed(N, q, sequence)
    omega = A.ang_vel_in(N)
    O.set_vel(N, 0)
    P = O.locatenew("P", -l * A.y)
    P.set_vel(A, 0)
    bodies = [me.Particle("P", P, m)]
    if rotor:
        bodies.append(me.RigidBody("rotor", P, A, 0, (me.inertia(A, 0, J, 0), P)))
    equations = [omega.dot(axis) - speed for axis, speed in zip(A, u, strict=True)]
    kane = me.KanesMethod(N, q, u, equations, bodies=bodies, forcelist=[(P, -9.81 * m * N.y)])
    values = {"m": 1.0, "l": 1.0} | ({"J": rotor} if rotor else {})
    return model_of("Spin", kane, q, u, **values)


@pytest.mark.parametrize("sequence", ["zxy", "yxy", *by_night("xyz", "zxz")])
def test_spin_without_inertia_is_refused_with_its_speed(sequence):
    with pytest.raises(MechanismError, match=": u2 moves no mass and no inertia"):
        mechanism_of(_particle_on_a_rod(sequence))


@pytest.mark.parametrize("inertia", [1e-15, *by_night(1e-3, 1e-9)])
def test_small_inertia_of_the_spin_is_taken(inertia):
    mechanism_of(_particle_on_a_rod(rotor=inertia))


def _velocity_by_hand(factor: sm.Expr):
    """A particle whose given velocity contains ``factor`` times a second speed, which nothing else does."""
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O, P = me.ReferenceFrame("N"), me.Point("O"), me.Point("P")
    O.set_vel(N, 0)
    P.set_vel(N, u * N.x + factor.subs(sm.Symbol("x"), x) * v * N.y)
    kane = me.KanesMethod(
        N, [x, y], [u, v], [x.diff() - u, y.diff() - v], bodies=[me.Particle("P", P, 2)], forcelist=[]
    )
    return model_of("Hand", kane, [x, y], [u, v])


def test_what_cancels_within_one_expression_moves_no_mass():
    x = sm.Symbol("x")
    nothing = sm.sin(3 * x) - 3 * sm.sin(x) + 4 * sm.sin(x) ** 3  # zero, but for round-off
    assert 0.0 < abs(float(nothing.subs(x, 0.7312))) < 1e-14
    with pytest.raises(MechanismError, match=": v moves no mass and no inertia"):
        mechanism_of(_velocity_by_hand(nothing))
    mechanism_of(_velocity_by_hand(nothing + sm.Float(1e-6)))


def test_massless_body_whose_motion_constraints_hold_is_taken():
    x, y, u, v = me.dynamicsymbols("x y u v")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P, Q = O.locatenew("P", x * N.x), O.locatenew("Q", y * N.x)
    P.set_vel(N, u * N.x)
    Q.set_vel(N, v * N.x)
    kane = me.KanesMethod(
        N, [x, y], [u], [x.diff() - u, y.diff() - v], u_dependent=[v], velocity_constraints=[u - 1000 * v],
        bodies=[me.Particle("P", P, 2), me.Particle("Q", Q, 0)], forcelist=[],
    )  # fmt: skip
    mechanism_of(model_of("Geared", kane, [x, y], [u, v]))


def test_row_of_round_off_has_no_direction():
    rows = np.array([[1.0, 2.0, 0.0], [0.0, 1e-17, -2e-17], [1e-6, 0.0, 1e-6]])
    assert count_independent_rows(rows) == 2
    assert np.linalg.norm(rows / row_lengths_above_round_off(rows)[:, None], axis=1) == pytest.approx(
        [1.0, 0.0, 1.0], abs=1e-15
    )
    assert count_independent_rows(np.zeros((2, 3))) == 0
