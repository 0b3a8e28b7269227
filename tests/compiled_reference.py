"""Holds the compiled reference against the same equations in NumPy."""

from __future__ import annotations

import numpy as np
from mechanisms import random_states

from mb2fmu.mechanics.formulations import form_equations_except_dynamics
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.validation.reference_equations.newton_euler import NewtonEulerEquations


def largest_difference(compiled: NewtonEulerEquations, mechanism: Mechanism, *, count: int, seed: int) -> float:
    """Of x' by C from that by NumPy, which solves M u' = f, over the largest, at random states."""
    python = NewtonEulerEquations(mechanism, form_equations_except_dynamics(mechanism))
    worst = 0.0
    for state in random_states(mechanism, count, seed=seed):
        r, p = list(state.r), tuple(state.p.tolist())
        found, wanted = (each.x_dot(state.t, state.x, r, each.prepare(p))[0] for each in (compiled, python))
        worst = max(worst, float(np.max(np.abs(found - wanted)) / np.max(np.abs(wanted))))
    return worst
