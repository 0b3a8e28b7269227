"""Motion prescribed by inputs r, r', r'' is motion prescribed by time, where they say the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import sympy as sm
from mechanisms import Evaluated, mechanism_of, model_of, random_states
from representatives import by_night
from sympy.physics import mechanics as me

from mb2fmu import Model

T = me.dynamicsymbols._t
MOTION = 0.7 * sm.sin(2 * T) + 0.3 * T**2


def crank(*, by_time: bool) -> Model:
    """A crank whose angle is given, a rod that swings on its pin in space, a slider on a rail that goes up and down."""
    angle = MOTION if by_time else me.dynamicsymbols("angle")
    q, u = me.dynamicsymbols("q1:3"), me.dynamicsymbols("u1:3")
    m, l, g = sm.symbols("m l g")
    wall = me.RigidBody("wall")
    system = me.System.from_newtonian(wall)
    N, C, A = system.frame, me.ReferenceFrame("C"), me.ReferenceFrame("A")
    C.orient_axis(N, N.z, angle)
    A.orient_body_fixed(C, (q[0], 0.3 * angle, 0), "xyz")
    centre = system.fixed_point.locatenew("pin", 0.3 * C.x + 0.1 * angle**2 * N.z).locatenew("centre", -l * A.y)
    rod = me.RigidBody("rod", centre, A, m, (me.inertia(A, 0.3, 0.1, 0.2), centre))
    bead = me.Particle("bead", centre.locatenew("bead", q[1] * A.x), 0.4 * m)
    system.add_bodies(rod, bead)
    system.add_coordinates(*q)
    system.add_speeds(*u)
    system.add_kdes(*(a.diff() - b for a, b in zip(q, u, strict=True)))
    system.apply_uniform_gravity(-g * N.y)
    model = model_of("Crank", system, q, u, m=1.3, l=0.7, g=9.81)
    if not by_time:
        model.input(angle, 0.0, "rad")
        model.input(angle.diff(), 0.0, "rad/s")
        model.input(angle.diff(T, 2), 0.0, "rad/s2")
    model.output_velocity("v", bead.masscenter)
    model.output_acceleration("a", bead.masscenter)
    model.output_reaction("pin", [rod, bead], at=centre)
    return model


@pytest.fixture(scope="module")
def mechanisms():
    return mechanism_of(crank(by_time=True)), mechanism_of(crank(by_time=False))


@pytest.mark.parametrize("method", ["tmt", *by_night("kane", "lagrange"), "recursive"])
def test_inputs_say_what_time_says(mechanisms, method):
    timed, driven = (Evaluated(mechanism, method) for mechanism in mechanisms)
    values = sm.lambdify(T, [MOTION, MOTION.diff(T), MOTION.diff(T, 2)])
    for state in random_states(mechanisms[0], 3):
        same = replace(state, r=np.array(values(state.t)))
        for entry in ("rhs", "outputs"):
            expected = timed(entry, state)
            assert driven(entry, same) == pytest.approx(expected, rel=1e-9, abs=1e-9), entry
    assert not driven.equations.energy.balanced
    assert "prescribed" in driven.equations.energy.reason
