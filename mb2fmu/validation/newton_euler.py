"""The reference for many joints: Newton-Euler equations in NumPy, body by body, on the ``Mechanism`` records.

Where SymPy's Kane's method would expand for minutes (more than seven bodies in space), the accelerations come from
:class:`mb2fmu.mechanism.numeric_mechanism.NumericMechanism`: no formulation and no symbolic composition between bodies.
Only the declared outputs are evaluated from expressions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mb2fmu.equations.motion import EquationsOfMotion
from mb2fmu.mechanism import Mechanism
from mb2fmu.mechanism.consistency import parameter_values
from mb2fmu.mechanism.numeric_mechanism import NumericMechanism
from mb2fmu.validation.numeric import NumericEquations
from mb2fmu.validation.plans import Plan, Planner, solve

Floats = npt.NDArray[np.float64]

MOST_BODIES = 7
"""In space, up to which SymPy's Kane's method is a matter of seconds."""


def outgrows_symbols(mechanism: Mechanism) -> bool:
    """True for more than :data:`MOST_BODIES` bodies that do not all turn about one direction."""
    m = mechanism
    if m.lagrangian_alone or len(m.bodies) <= MOST_BODIES:
        return False
    numeric, d = NumericMechanism(m), m.definition
    q, z, r = (np.array([item.start for item in i]) for i in (d.coordinates, d.auxiliary_states, d.inputs))
    speeds = np.random.default_rng(1).uniform(0.5, 1.0, len(m.u_all))
    numeric.set(0.3, q + 0.2, speeds, z, r, numeric.parameters(parameter_values(m)))
    directions = np.array([numeric.frames[body.frame].omega for body in m.bodies if body.frame >= 0])
    return len(directions) > 0 and int(np.linalg.matrix_rank(directions, tol=1e-9)) > 1


class NewtonEuler(NumericEquations):
    """The numbers of a mechanism without its equations of motion.

    Args:
        mechanism: With bodies.
        equations: Of the same mechanism, dynamics or none; only names and the expressions of the outputs are taken.
    """

    formulation = "Newton-Euler, numerically"

    def __init__(self, mechanism: Mechanism, equations: EquationsOfMotion) -> None:
        self.mechanism = mechanism
        self._auxiliary = np.zeros(len(mechanism.u_auxiliary))
        super().__init__(equations)

    @cached_property
    def _numeric(self) -> NumericMechanism:
        """The mechanism in NumPy; not needed where it is compiled."""
        assert self.mechanism
        return NumericMechanism(self.mechanism)

    def _plan_dynamics(self, planner: Planner) -> Plan:
        self.rows = self.n_u  # the mass matrix is over all speeds, whatever the equations have
        return planner.plan([], keep=False)

    def _complete(self, values: list[float]) -> None:
        self._constraints(values)
        self._late(values)

    def _advance(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]
    ) -> tuple[list[float], list[float], Floats, float]:
        n_q, n_u, n_i = self.n_q, self.n_u, len(self._independent)
        m = self._numeric
        q, z = x[:n_q], x[n_q + n_i :]
        u = np.zeros(n_u)
        u[self._independent] = x[n_q : n_q + n_i]

        def move() -> None:
            m.set(t, q, np.concatenate([u, self._auxiliary]), z, np.array(r, dtype=float), np.array(prepared))

        move()
        A, b, gamma = m.constraints()
        if self._dependent:
            free = A[:, self._independent] @ u[self._independent] + b
            u[self._dependent] = solve(A[:, self._dependent], -free[:, None], "the dependent speeds")[:, 0]
            move()
            A, b, gamma = m.constraints()
        M, f = m.dynamics()
        constraints = [*A.ravel().tolist(), *b.tolist()]
        numbers = [*M[:n_u, :n_u].ravel(), *f[:n_u], *gamma]
        K, k0 = m.kinematics()
        values = [t, *q.tolist(), *u.tolist(), *z.tolist(), *r, *prepared]
        values += self._blank[len(values) :]
        u_dot = self._accelerations(values, numbers, constraints)
        values[self._u_dot : self._u_dot + n_u] = u_dot.tolist()
        self._set_multipliers(values, numbers, constraints, u_dot)
        x_dot = np.concatenate([K @ u + k0, u_dot[self._independent], m.z_dot()])
        return values, constraints, x_dot, float(sum(m.powers()))
