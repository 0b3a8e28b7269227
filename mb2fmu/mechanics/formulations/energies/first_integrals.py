"""Integrals of motion: momenta of ignorable coordinates, momenta of all bodies in space, energy or Jacobi's integral.

    p_r = ∂T/∂q'_r keeps its value where ∂T/∂q_r + Σ Q_r = 0 and no constraint's force works along q_r
    P   = Σ m v,  H = Σ r × m v + I ω about the origin: where Σ m a, Σ r × m a + (I ω)' are zero along an axis
    h   = Σ q'_r p_r - T + V, whose rate is ∂(V - T)/∂t + Σ (Q_r + ∂V/∂q_r) q'_r; T + V where T is quadratic in q'

Whether a sum is zero is found with numbers, at random states, parameters and inputs near the start, and shown in
symbols where multiplying out makes it 0. Routh's reduction, which takes such coordinates out of the equations, is not
done.

Source: Lanczos, The Variational Principles of Mechanics, ch. V; Goldstein, Classical Mechanics, sect. 2.6 and 2.7.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import SymbolAssignment
from mb2fmu.mechanics.equations.theory_quantities import TheoryQuantity
from mb2fmu.mechanics.formulations.intermediate_substitution import expand_trigonometric_products
from mb2fmu.mechanics.formulations.outputs.output_expressions import angular_momentum, linear_momentum
from mb2fmu.mechanics.mechanism.assembly.conserved_quantities import (
    ZERO_TOLERANCE,
    ConservedQuantities,
    find_coordinates_with_constraint_work,
    has_working_constraints,
)
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import draw_random_states, set_random_mechanism_state
from mb2fmu.mechanics.mechanism.records.mechanism_records import Components, Mechanism
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import replace_symbols
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy


@dataclass(frozen=True, slots=True)
class LagrangeEnergyTerms:
    """Terms of Lagrange's equations of a mechanism.

    Attributes:
        kinetic: T.
        potential: V; None where it is not known.
        momenta: ∂T/∂q'_r.
        kinetic_derivatives: ∂T/∂q_r.
        potential_derivatives: ∂V/∂q_r; empty where V is not known.
        potential_time_derivative: ∂V/∂t.
        kinetic_time_derivative: ∂T/∂t.
        forces: Q_r of each load.
        rates: Symbols of q'.
        intermediates: Assignments that all of them are written in.
    """

    kinetic: sm.Expr
    potential: sm.Expr | None
    momenta: Sequence[sm.Expr]
    kinetic_derivatives: Sequence[sm.Expr]
    potential_derivatives: Sequence[sm.Expr]
    potential_time_derivative: sm.Expr
    kinetic_time_derivative: sm.Expr
    forces: Sequence[Sequence[sm.Expr]]
    rates: Sequence[sm.Symbol]
    intermediates: Sequence[SymbolAssignment]


@dataclass(frozen=True, slots=True)
class _PossiblyZeroSum:
    """Terms that may cancel."""

    terms: tuple[sm.Expr, ...]


class FirstIntegralFinder:
    """Finds the integrals of motion of one mechanism.

    Args:
        kinematics: Takes the names of momenta in space.
        terms: None where Lagrange's equations do not apply: then momenta in space only are looked for.
    """

    def __init__(self, kinematics: SymbolicKinematics, terms: LagrangeEnergyTerms | None) -> None:
        self._k, self._terms = kinematics, terms
        self._m: Mechanism = kinematics.mechanism
        self._numeric = MechanismEvaluator(self._m)
        self._samples = draw_random_states(self._numeric)

    def find_momentum_integrals(self) -> Iterator[TheoryQuantity]:
        """Yield the conserved momenta, each with the reason."""
        terms = self._terms
        if terms is None:
            return
        constrained = self._constrained_coordinates()
        sums = [
            _PossiblyZeroSum((slope, *forces))
            for slope, forces in zip(terms.kinetic_derivatives, terms.forces, strict=True)
        ]
        zero = self._vanish_at_samples(sums)
        for r, q in enumerate(self._m.q):
            if zero[r] and not constrained[r]:
                evidence = "shown in symbols" if self._vanishes_symbolically(sums[r]) else "found with numbers"
                yield TheoryQuantity("invariant", f"momentum of {q}, ignorable ({evidence})", None, terms.momenta[r])

    def find_energy_integral(self) -> Iterator[TheoryQuantity]:
        """Energy, or Jacobi's integral."""
        terms, m = self._terms, self._m
        if terms is None or terms.potential is None or m.inputs_with_rates or self._constraints_do_work():
            return
        V = terms.potential
        each = zip(terms.forces, terms.potential_derivatives, terms.rates, strict=True)
        flow = [force * rate for forces, slope, rate in each for force in (*forces, slope)]
        work = _PossiblyZeroSum((-terms.kinetic_time_derivative, terms.potential_time_derivative, *flow))
        h = sm.Add(*(p * rate for p, rate in zip(terms.momenta, terms.rates, strict=True))) - terms.kinetic + V
        gap = _PossiblyZeroSum((h, -terms.kinetic, -V))
        is_conserved, quadratic = self._vanish_at_samples([work, gap])
        if is_conserved:
            evidence = "shown in symbols" if self._vanishes_symbolically(work) else "found with numbers"
            name = f"energy T + V ({evidence})" if quadratic else f"Jacobi's integral T2 - T0 + V ({evidence})"
            yield TheoryQuantity("invariant", name, None, terms.kinetic + V if quadratic else h)

    def find_momentum_components(self) -> Iterator[TheoryQuantity]:
        """Yield components of momentum and angular momentum of all bodies in the inertial frame; non-zero ones."""
        if not self._m.bodies:
            return
        components = ConservedQuantities(self._m, None).conserved_components
        bodies = list(self._m.bodies)
        if any(components[:3]):
            P = linear_momentum(bodies, self._k)
            names = (f"momentum of all bodies along N.{axis}" for axis in "xyz")
            yield from _select_conserved(names, P, components[:3])
        if any(components[3:]):
            H = angular_momentum(bodies, 0, self._k)
            names = (f"angular momentum of all bodies about N.{axis} through the origin" for axis in "xyz")
            yield from _select_conserved(names, H, components[3:])

    # ------------------------------------------------------------------ numbers

    def _vanish_at_samples(self, sums: Sequence[_PossiblyZeroSum]) -> list[bool]:
        """Return whether each sum is zero at every sample."""
        terms, m = self._terms, self._m
        assert terms is not None
        order = [m.t, *m.q, *terms.rates, *m.z, *m.r, *m.p, *(a.symbol for a in m.calculated_parameters)]
        chain = [(a.symbol, a.expression) for a in terms.intermediates]
        flat = [term for cancelling_sum in sums for term in cancelling_sum.terms]
        evaluate: Callable[..., list[float]] = lambdify_for_numpy(order, flat, named=chain)
        zero = [True] * len(sums)
        for sample in self._samples:
            set_random_mechanism_state(self._numeric, sample, on_constraints=True)
            K, k0 = self._numeric.kinematic_matrices()
            rates = K @ sample.u_constrained + k0
            term_values = evaluate(sample.t, *sample.q, *rates, *sample.z, *sample.r, *sample.parameters)
            numbers = iter(np.asarray(term_values, dtype=float))
            for i, cancelling_sum in enumerate(sums):
                parts = np.array([next(numbers) for _ in cancelling_sum.terms])
                zero[i] &= bool(abs(parts.sum()) <= ZERO_TOLERANCE * np.sum(np.abs(parts)))
        return zero

    def _constrained_coordinates(self) -> list[bool]:
        """Return whether a constraint's force works along each coordinate."""
        is_constrained = np.zeros(len(self._m.q), dtype=bool)
        for sample in self._samples:
            set_random_mechanism_state(self._numeric, sample, on_constraints=True)
            is_constrained |= find_coordinates_with_constraint_work(
                self._numeric, self._numeric.kinematic_matrices()[0]
            )
        return [bool(each) for each in is_constrained]

    def _constraints_do_work(self) -> bool:
        """Return whether constraints do work."""
        for sample in self._samples:
            set_random_mechanism_state(self._numeric, sample, on_constraints=True)
            if has_working_constraints(self._numeric):
                return True
        return False

    def _vanishes_symbolically(self, cancelling_sum: _PossiblyZeroSum) -> bool:
        """Return whether the expanded expression is zero."""
        terms = self._terms
        assert terms is not None
        full_expressions: dict[sm.Basic, sm.Expr] = {}
        for item in terms.intermediates:
            full_expressions[item.symbol] = replace_symbols(item.expression, full_expressions)
        return bool(
            expand_trigonometric_products(replace_symbols(sm.Add(*cancelling_sum.terms), full_expressions)) == 0
        )


def _select_conserved(
    names: Iterable[str], vector: Components, are_conserved: Iterable[bool]
) -> Iterator[TheoryQuantity]:
    """Yield the components that keep their value."""
    for name, component, is_kept in zip(names, vector, are_conserved, strict=True):
        if is_kept:
            yield TheoryQuantity("invariant", f"{name} (found with numbers)", None, component)
