"""The reference of mechanisms with bodies: Newton-Euler equations in numbers, from ``Mechanism`` records.

The accelerations come from :class:`.numeric_mechanism_evaluation.MechanismEvaluator`, or compiled from ``bodies.c``:
no formulation and no symbolic composition between bodies. Outputs and energies are read off the same motion
(``observables``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, SymbolAssignment
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import free_parameter_values
from mb2fmu.model.scales.characteristic_units import typical_motion_magnitudes
from mb2fmu.validation.evaluation_plans.expression_evaluation_plan import (
    EvaluationPlan,
    EvaluationPlanner,
    solve_linear_system,
)
from mb2fmu.validation.evaluation_plans.kinematic_quantities import KinematicQuantity, evaluate_kinematic_quantities
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations, ObservedExpressions
from mb2fmu.validation.reference_equations.observables import form_observable_expressions

Floats = npt.NDArray[np.float64]

MAX_SYMBOLIC_BODIES = 7
"""In space, up to which SymPy's Kane's method is a matter of seconds."""


def is_too_large_for_symbols(mechanism: Mechanism) -> bool:
    """Return True for more than :data:`MAX_SYMBOLIC_BODIES` bodies that do not all turn about one direction."""
    m = mechanism
    if m.is_lagrangian_only or len(m.bodies) <= MAX_SYMBOLIC_BODIES:
        return False
    numeric, d = MechanismEvaluator(m), m.declared
    q, z, r = (np.array([item.start for item in i]) for i in (d.coordinates, d.auxiliary_states, d.inputs))
    speeds = np.random.default_rng(1).uniform(0.5, 1.0, len(m.u_all))
    numeric.set_state(0.3, q + 0.2, speeds, z, r, numeric.parameters(free_parameter_values(m)))
    directions = np.array([numeric.frames[body.frame].omega for body in m.bodies if body.frame >= 0])
    return len(directions) > 0 and int(np.linalg.matrix_rank(directions, tol=1e-9)) > 1


def can_integrate_newton_euler_reference(mechanism: Mechanism) -> bool:
    """Return whether the reference can be integrated from a mechanism itself, without any formulation's equations.

    It cannot where there are no bodies, where loads or z' depend on forces of constraints or on accelerations, and
    where auxiliary speeds stand in the constraints.
    """
    m = mechanism
    if m.is_lagrangian_only or m.constraint_forces or m.auxiliary_rows is not None:
        return False
    acceleration_symbols = {*m.u_dot, *m.multipliers}
    return not any(sm.sympify(e).free_symbols & acceleration_symbols for e in m.z_dot)


class NewtonEulerEquations(NumericEquations):
    """Equations in numbers from a mechanism, without its equations of motion.

    Args:
        mechanism: With bodies.
        equations: Of the same mechanism, dynamics or none; only names and a potential energy's closed form are taken.
    """

    formulation = "Newton-Euler, numerically"

    def __init__(self, mechanism: Mechanism, equations: EquationsOfMotion) -> None:
        self.mechanism = mechanism
        self._auxiliary = np.zeros(len(mechanism.u_auxiliary))
        self._observables = form_observable_expressions(mechanism, equations)
        super().__init__(equations, typical_motion_magnitudes(mechanism.declared))

    @cached_property
    def _numeric(self) -> MechanismEvaluator:
        """The mechanism in NumPy; not needed where it is compiled."""
        assert self.mechanism
        return MechanismEvaluator(self.mechanism)

    def _form_observed_quantities(self) -> ObservedExpressions:
        """Return energies and outputs, computed from the mechanism; only a closed-form potential is of the equations.

        It is written in the equations' intermediates, of which those are evaluated that it needs.
        """
        assert self.mechanism
        observables, outputs = self._observables, tuple(output.expression for output in self._observables.outputs)
        pathway_symbols = {assignment.symbol for assignment in observables.pathways}
        intermediates = [
            i
            for i in self.equations.intermediates
            if not (isinstance(i, SymbolAssignment) and i.symbol in pathway_symbols)
        ]
        needed_multipliers = set().union(*(e.free_symbols for e in outputs)) & set(self.mechanism.multipliers)
        return ObservedExpressions(
            kinetic=observables.kinetic,
            outputs=outputs,
            multipliers=self.mechanism.multipliers if needed_multipliers else (),
            intermediates=(*observables.pathways, *intermediates),
            quantity_symbols=observables.kinematic_quantities.symbols,
        )

    def _kinematic_quantities(self) -> tuple[KinematicQuantity, ...]:
        """Return the quantities that outputs read from the mechanism."""
        return self._observables.kinematic_quantities.all

    def _plan_dynamics(self, planner: EvaluationPlanner) -> EvaluationPlan:
        """Plan nothing: the mass matrix comes from bodies, over all speeds."""
        self.rows = self.n_u  # the mass matrix is over all speeds, whatever the equations have
        return planner.plan([], keep=False)

    def _plan_late(self, planner: EvaluationPlanner) -> EvaluationPlan:
        """Plan nothing: there are no late intermediates."""
        return planner.plan([], keep=False)

    def _complete(self, values: list[float]) -> None:
        """Complete the quantities of the mechanism at the state that :meth:`_advance` has set."""
        u_dot = np.concatenate([values[self._u_dot : self._u_dot + self.n_u], self._auxiliary])
        numbers = evaluate_kinematic_quantities(self._kinematic_quantities(), self._numeric, u_dot)
        values[self._first_quantity_slot : self._first_quantity_slot + len(numbers)] = numbers

    def _advance(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]
    ) -> tuple[list[float], list[float], Floats, float]:
        """Return all values, constraint entries, x' and the power of loads in W, at one state."""
        n_q, n_u, n_i = self.n_q, self.n_u, len(self._independent)
        m = self._numeric
        q, z = x[:n_q], x[n_q + n_i :]
        u = np.zeros(n_u)
        u[self._independent] = x[n_q : n_q + n_i]

        def set_state() -> None:
            m.set_state(t, q, np.concatenate([u, self._auxiliary]), z, np.array(r, dtype=float), np.array(prepared))

        set_state()
        A, b, gamma = m.velocity_constraint_terms()
        if self._dependent:
            independent_terms = A[:, self._independent] @ u[self._independent] + b
            u[self._dependent] = solve_linear_system(
                A[:, self._dependent], -independent_terms[:, None], "the dependent speeds"
            )[:, 0]
            set_state()
            A, b, gamma = m.velocity_constraint_terms()
        M, f = m.unconstrained_mass_and_forcing()
        constraints = [*A.ravel().tolist(), *b.tolist()]
        numbers = [*M[:n_u, :n_u].ravel(), *f[:n_u], *gamma]
        K, k0 = m.kinematic_matrices()
        values = [t, *q.tolist(), *u.tolist(), *z.tolist(), *r, *prepared]
        values += self._blank_values[len(values) :]
        u_dot = self._accelerations(values, numbers, constraints)
        values[self._u_dot : self._u_dot + n_u] = u_dot.tolist()
        self._set_multipliers(values, numbers, constraints, u_dot)
        x_dot = np.concatenate([K @ u + k0, u_dot[self._independent], m.z_dot()])
        potential_power = m.potential_power(u) if m.mechanism.potential_forces else 0.0
        return values, constraints, x_dot, float(sum(m.powers())) + potential_power
