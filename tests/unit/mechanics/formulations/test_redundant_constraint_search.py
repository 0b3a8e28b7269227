"""Constraints that are redundant, wrong or too many: a platform on three parallel cranks, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from cranks import platform
from mechanisms import mechanism_of, model_of
from representatives import by_night
from sympy.physics import mechanics as me

import mb2fmu
from mb2fmu import Model, Parts, pipeline
from mb2fmu.errors import MechanismError, ModelError


@pytest.mark.parametrize("method", ["tmt", *by_night("lagrange", "kane")])
def test_three_parallel_cranks_swing_as_one(method):
    """Closed form: (M + m) l q'' = -(M + 3 m / 2) g sin(q); the platform does not turn."""
    derivation = mb2fmu.derive(platform(), method=method)
    f = pipeline.right_hand_side(derivation)
    angle, rate = 0.7, 0.9
    q = [angle, angle, angle, 0.5 * np.sin(angle), -0.5 * np.cos(angle), 0.0]
    u = [rate, rate, rate, 0.5 * rate * np.cos(angle), 0.5 * rate * np.sin(angle), 0.0]
    slope = f(0.0, np.array([*q, *u]))
    expected = -(4.0 + 1.5) * 9.81 * np.sin(angle) / (5.0 * 0.5)
    assert slope[:6] == pytest.approx(u, abs=1e-9)
    assert slope[6:9] == pytest.approx([expected] * 3, rel=1e-8)
    assert slope[11] == pytest.approx(0.0, abs=1e-8)


@pytest.mark.repeats  # by day: their acceleration, above
def test_their_frequency():
    found = mb2fmu.linearize(platform(), method="tmt")
    assert len(found.states) == 2
    assert np.max(np.abs(found.eigenvalues.imag)) == pytest.approx(np.sqrt(5.5 * 9.81 / 2.5), rel=1e-7)


def _sliding(row: sm.Expr, **more: object) -> Model:
    x, y, vx, vy = me.dynamicsymbols("x y vx vy")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    P = O.locatenew("P", x * N.x + y * N.y)
    parts = Parts(
        frame=N, origin=O, q=[x, y], u=[vx, vy], kinematic_equations=[x.diff() - vx, y.diff() - vy],
        bodies=[me.Particle("P", P, 1)], **{"velocity_constraints": [row], "u_dependent": [vy], **more},
    )  # fmt: skip
    return model_of("Sliding", parts, [x, y], [vx, vy])


def test_constraints_that_are_none():
    x, y, vx, vy = me.dynamicsymbols("x y vx vy")
    with pytest.raises(ModelError, match=r"velocity_constraints takes .* one on accelerations"):
        mechanism_of(_sliding(vy - vx.diff()))
    with pytest.raises(MechanismError, match="not linear in the speeds"):
        mechanism_of(_sliding(vy - vx**2))
    more = {"holonomic_constraints": [x - vy], "velocity_constraints": [], "q_dependent": [y]}
    with pytest.raises(ModelError, match=r"holonomic_constraints takes .* one on velocities"):
        mechanism_of(_sliding(vy, **more))
    rail = me.dynamicsymbols("rail")
    model = _sliding(vy, holonomic_constraints=[y - rail], velocity_constraints=[], q_dependent=[y])
    for order, unit in enumerate(("m", "m/s", "m/s2")):
        model.input(rail.diff(me.dynamicsymbols._t, order) if order else rail, 0.0, unit)
    with pytest.raises(MechanismError, match="contains the input rail: coordinates would jump"):
        mechanism_of(model)
    with pytest.raises(ModelError, match="2 dependent speeds"):
        mechanism_of(_sliding(vy, u_dependent=[vx, vy]))
