"""How many digits solving for x' leaves."""

from __future__ import annotations

import pytest
import sympy as sm
from sympy.physics import mechanics as me

from mb2fmu import Model, model
from mb2fmu.mechanics import mechanism
from mb2fmu.validation.source_checks.mass_matrix_solve_accuracy import FEW_DIGITS, find_least_accurate_derivative
from mb2fmu.validation.source_checks.source_accelerations import sample_source_accelerations


def _rotors(inertias):
    """Two rotors on one axis, the second turning relative to the first, each held by a spring."""
    q, u, J, k = me.dynamicsymbols("q1:3"), me.dynamicsymbols("u1:3"), sm.symbols("J1:3"), sm.Symbol("k")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    bodies, loads, before = [], [], N
    for i in range(2):
        A = before.orientnew(f"A{i}", "Axis", (q[i], N.z))
        A.set_ang_vel(before, u[i] * N.z)
        bodies.append(me.RigidBody(f"rotor{i}", O, A, sm.S.One, (me.inertia(A, J[i], J[i], J[i]), O)))
        loads += [(A, -k * q[i] * N.z)] + ([(before, k * q[i] * N.z)] if i else [])
        before = A
    kane = me.KanesMethod(N, q, u, kd_eqs=[a.diff() - b for a, b in zip(q, u, strict=True)])
    kane.kanes_equations(bodies, loads)
    made = Model("Rotors", kane)
    for symbol, inertia in zip(J, inertias, strict=True):
        made.parameter(symbol, inertia, "kg.m2")
    made.parameter(k, 1.0, "N.m/rad")
    for angle, speed in zip(q, u, strict=True):
        made.coordinate(angle, 0.3, "rad")
        made.speed(speed, 0.1, "rad/s")
    checked = model.check_model(made)
    samples = sample_source_accelerations(checked, mechanism.read_mechanism(checked)).samples
    return find_least_accurate_derivative(samples, dict.fromkeys(("u1", "u2"), 1.0), 10.0)


@pytest.mark.parametrize(("inertias", "few"), [((1.0, 1.0), False), ((1.0, 1e8), True)])
def test_a_heavy_rotor_on_a_light_one_costs_digits(inertias, few):
    """M = [[J1 + J2, J2], [J2, J2]]: u1' = (f1 - f2)/J1 is left of terms J2/J1 times as large."""
    found = _rotors(inertias)
    assert (found.known < FEW_DIGITS) is few
    assert bool(found.text) is few
    if few:
        assert found.known == pytest.approx(16 - 8, abs=1.0)
