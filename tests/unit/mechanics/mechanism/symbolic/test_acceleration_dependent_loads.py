"""Loads that are linear in accelerations are inertia: the same mechanism with bodies in place of them moves alike."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from mechanisms import Evaluated, Numeric, close, mechanism_of, model_of, random_states
from representatives import by_night
from sympy.physics import mechanics as me

from mb2fmu.errors import MechanismError

J, K, H, m, l, g = sm.symbols("J K H m l g")
q1, q2, u1, u2 = me.dynamicsymbols("q1 q2 u1 u2")
VALUES = {"m": 1.3, "l": 0.6, "g": 9.81, "J": 0.4, "K": 0.2, "H": 0.7}


def _double_pendulum(kind, loads_of, *, bodies_of=lambda _: []):
    """Two rods without inertia and two particles.

    Args:
        kind: "kane", or "lagrange" (without bodies).
        loads_of: The loads with accelerations, as a function of frames, points and speeds.
        bodies_of: Further bodies.
    """
    speeds = (u1, u2) if kind == "kane" else (q1.diff(), q2.diff())
    N, A, B, O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.ReferenceFrame("B"), me.Point("O")
    A.orient_axis(N, N.z, q1)
    A.set_ang_vel(N, speeds[0] * N.z)
    B.orient_axis(A, A.z, q2)
    B.set_ang_vel(A, speeds[1] * A.z)
    O.set_vel(N, 0)
    P = O.locatenew("P", l * A.x)
    P.v2pt_theory(O, N, A)
    Q = P.locatenew("Q", l * B.x)
    Q.v2pt_theory(P, N, B)
    parts = {"N": N, "A": A, "B": B, "P": P, "Q": Q, "speeds": speeds}
    bodies = [me.Particle("p", P, m), me.Particle("q", Q, m), *bodies_of(parts)]
    loads = [(P, -m * g * N.y), (Q, -m * g * N.y), (B, -H * speeds[1] * N.z), *loads_of(parts)]
    if kind == "kane":
        rates = [q1.diff() - u1, q2.diff() - u2]
        method = me.KanesMethod(N, [q1, q2], [u1, u2], rates, bodies=bodies, forcelist=loads)
    else:
        method = me.LagrangesMethod(me.Lagrangian(N, *bodies), [q1, q2], forcelist=loads, frame=N)
    return model_of("Pendulum", method, [q1, q2], list(speeds), **VALUES)


def _inertia_forces(parts):
    """Of a rotor J on A, of a rotor K on B, and of a mass m at P beside its own."""
    a, b = (speed.diff() for speed in parts["speeds"])
    return [
        (parts["A"], -J * a * parts["A"].z),
        (parts["B"], -K * (a + b) * parts["N"].z),
        (parts["P"], -m * l * a * parts["A"].y),
    ]


def _equal_bodies(parts):
    """The same inertia as bodies."""
    rotors = [
        me.RigidBody(name, parts["P"], parts[frame], 0, (me.inertia(parts[frame], 0, 0, size), parts["P"]))
        for name, frame, size in (("rotor_A", "A", J), ("rotor_B", "B", K))
    ]
    return [*rotors, me.Particle("added", parts["P"], m)]


@pytest.mark.parametrize(
    ("kind", "method"),
    [
        ("kane", "tmt"),
        ("kane", "recursive"),
        ("lagrange", "lagrange"),
        *by_night(("kane", "kane"), ("kane", "lagrange")),
    ],
)
def test_loads_of_inertia_move_as_bodies_do(kind, method):
    mechanism = mechanism_of(_double_pendulum(kind, _inertia_forces))
    bodies = mechanism_of(_double_pendulum("kane", lambda _: [], bodies_of=_equal_bodies))
    ours, theirs = Evaluated(mechanism, method), Numeric(bodies)
    for state in random_states(bodies, 5):
        found = ours("rhs", state)[2:]
        expected = theirs.accelerations(state)
        assert close(found, expected, theirs.condition())


def test_the_reference_has_their_inertia_too():
    mechanism = mechanism_of(_double_pendulum("kane", _inertia_forces))
    bodies = mechanism_of(_double_pendulum("kane", lambda _: [], bodies_of=_equal_bodies))
    for state in random_states(bodies, 5):
        assert np.allclose(Numeric(mechanism).accelerations(state), Numeric(bodies).accelerations(state), rtol=1e-10)


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (lambda p: (p["A"], -J * p["speeds"][1].diff() * p["A"].z), "is not symmetric"),
        (lambda p: (p["P"], -m * p["speeds"][0].diff() * p["N"].x), "changes with the motion"),
        (lambda p: (p["A"], -J * p["speeds"][0].diff() ** 2 * p["A"].z), "not linear"),
    ],
)
def test_what_is_no_inertia_is_refused(load, reason):
    with pytest.raises(MechanismError, match=reason) as error:
        mechanism_of(_double_pendulum("kane", lambda parts: [load(parts)]))
    assert "inertia" in error.value.faults[0].remedy
