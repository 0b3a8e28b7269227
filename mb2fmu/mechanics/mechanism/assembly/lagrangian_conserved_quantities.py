"""Find conserved quantities of a Lagrangian alone numerically.

    p_r = ∂L/∂q'_r           kept where ∂L/∂q_r + Q_r = 0 and no constraint's force works along q_r
    h   = Σ q'_r p_r - L     kept where Σ Q_r q'_r - ∂L/∂t = 0 and no constraint does work

Neither is kept where inputs stand in it: whoever sets one need not set its rate to its derivative.

Source: Goldstein, Classical Mechanics, sect. 2.6 and 2.7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.assembly.conserved_quantities import (
    ZERO_TOLERANCE,
    ConservedQuantity,
    derive_momentum_unit,
    find_coordinates_with_constraint_work,
    has_working_constraints,
)
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import (
    RandomStateSample,
    draw_random_states,
    free_parameter_values,
    set_random_mechanism_state,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

Floats = npt.NDArray[np.float64]


class LagrangianConservedQuantities:
    """Integrals of one mechanism that is a Lagrangian alone; ``quantities`` are those that were found.

    Args:
        mechanism: The Lagrangian.
        free_parameters: Values of the free parameters of the experiment in which they are compared; None: as declared.
    """

    def __init__(self, mechanism: Mechanism, free_parameters: Sequence[float] | None = None) -> None:
        m = self.mechanism = mechanism
        self._free_parameters = free_parameter_values(mechanism) if free_parameters is None else free_parameters
        assert m.lagrangian is not None
        L, forces = m.lagrangian.expression, m.lagrangian.forces
        self._numeric = MechanismEvaluator(m)
        self._symbols = [
            m.t,
            *m.q,
            *m.u,
            *m.z,
            *m.r,
            *m.p,
            *(calculated.symbol for calculated in m.calculated_parameters),
        ]
        momenta = [sm.expand(L.diff(u)) for u in m.u]
        h = sm.expand(sm.Add(*(u * p for u, p in zip(m.u, momenta, strict=True))) - L)
        self._evaluate_values = self._make_sum_function([*momenta, h])
        self._has_input = np.array([not p.free_symbols.isdisjoint(m.r) for p in (*momenta, L)])
        rates = [sm.Add(L.diff(q), force) for q, force in zip(m.q, forces, strict=True)]
        power = sm.Add(*(force * u for force, u in zip(forces, m.u, strict=True))) - L.diff(m.t)
        self._evaluate_rates = self._make_sum_function([sm.expand(expression) for expression in (*rates, power)])
        self.quantities: tuple[ConservedQuantity, ...] = tuple(self._find_conserved())

    def evaluate(
        self, t: float, q: Floats, u: Floats, z: Floats, r: Floats, free_parameters: Floats
    ) -> tuple[Floats, Floats, Floats]:
        """Return values and sizes, as :meth:`.conserved_quantities.ConservedQuantities.evaluate`."""
        values, sizes = self._evaluate_values([t, *q, *u, *z, *r, *self._numeric.parameters(free_parameters)])
        indices = [quantity.candidate_index for quantity in self.quantities]
        return values[indices], sizes[indices], sizes[indices]

    def _make_sum_function(self, expressions: Sequence[sm.Expr]) -> Callable[[Sequence[float]], tuple[Floats, Floats]]:
        """Return a function of numbers: each sum, and the sum of the sizes of its terms."""
        terms = [sm.Add.make_args(term) for term in expressions]
        evaluate = lambdify_for_numpy(self._symbols, [term for sum_terms in terms for term in sum_terms], cse=True)
        ends = np.cumsum([len(sum_terms) for sum_terms in terms])[:-1]

        def evaluate_sums(point: Sequence[float]) -> tuple[Floats, Floats]:
            """Return the sum at one state."""
            parts = np.split(np.array(evaluate(*point), dtype=float), ends)
            return np.array([sum_terms.sum() for sum_terms in parts]), np.array(
                [np.abs(sum_terms).sum() for sum_terms in parts]
            )

        return evaluate_sums

    def _find_conserved(self) -> list[ConservedQuantity]:
        """Return the momenta and Jacobi's integral that keep their value at all random samples."""
        m, samples = self.mechanism, draw_random_states(self._numeric, self._free_parameters)
        conserved = ~self._has_input
        for sample in samples:
            rates, sizes = self._evaluate_rates(self._make_arguments(sample))
            conserved &= np.abs(rates) <= ZERO_TOLERANCE * sizes
            set_random_mechanism_state(self._numeric, sample, on_constraints=True)
            conserved[:-1] &= ~find_coordinates_with_constraint_work(self._numeric, np.eye(len(m.q)))
            conserved[-1] &= not has_working_constraints(self._numeric)
        names = [f"momentum of {coordinate.name}, which is ignorable" for coordinate in m.declared.coordinates]
        units = [derive_momentum_unit(coordinate.unit) for coordinate in m.declared.coordinates]
        names.append("Jacobi's integral Σ q' ∂L/∂q' - L")
        return [
            ConservedQuantity(n, u, i)
            for i, (n, u, k) in enumerate(zip(names, [*units, "J"], conserved, strict=True))
            if k
        ]

    def _make_arguments(self, sample: RandomStateSample) -> list[float]:
        """Return a sample as the arguments of the Lagrangian's functions: t, q, u, z, r, parameters."""
        return [sample.t, *sample.q, *sample.u_constrained, *sample.z, *sample.r, *sample.parameters]
