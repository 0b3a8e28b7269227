"""Velocity constraints in which the relations of closed forms replace their rows."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import ClosedForm, VelocityConstraints
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.plain_symbols import coordinate_rates, time_derivative


def form_reduced_constraints(mechanism: Mechanism, forms: Sequence[ClosedForm]) -> VelocityConstraints | None:
    """Return the rows that determine the dependent speeds; None where the mechanism's own rows do."""
    m, c = mechanism, mechanism.velocity_constraints
    relations = {name: row for form in forms for name, row in zip(form.rows, form.relation, strict=False)}
    if c is None or not relations:
        return None
    q_dot = coordinate_rates(m.kinematics, m.u)
    without = dict.fromkeys(m.u, sm.S.Zero)
    A, b, gamma = c.jacobian.as_mutable(), c.offset.as_mutable(), c.bias.as_mutable()
    for i, name in enumerate(c.names):
        if name in relations:
            rate = time_derivative(relations[name], m.q, q_dot, m.t)
            A[i, :] = sm.Matrix([[rate.diff(u) for u in m.u]])
            b[i] = rate.xreplace(without)
            gamma[i] = time_derivative(rate, m.q, q_dot, m.t)
    return VelocityConstraints(c.names, *(sm.ImmutableMatrix(part) for part in (A, b, gamma)))
