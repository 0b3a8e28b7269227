"""Integrals of motion of a Lagrangian alone, in numbers.

    p_r = ∂L/∂q'_r           kept where ∂L/∂q_r + Q_r = 0 and no constraint's force works along q_r
    h   = Σ q'_r p_r - L     kept where Σ Q_r q'_r - ∂L/∂t = 0 and no constraint does work

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
    constraints_do_work,
    find_worked_coordinates,
    momentum_unit,
)
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism import NumericMechanism
from mb2fmu.mechanics.mechanism.numeric.random_states import (
    StateSample,
    draw_random_states,
    free_parameter_values,
    set_random_state,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism

Floats = npt.NDArray[np.float64]


class LagrangianConservedQuantities:
    """Integrals of one mechanism that is a Lagrangian alone; ``kept`` are those that were found.

    Args:
        mechanism: The Lagrangian.
        free: Values of the free parameters of the experiment in which they are compared; None: as declared.
    """

    def __init__(self, mechanism: Mechanism, free: Sequence[float] | None = None) -> None:
        m = self.m = mechanism
        self._free = free_parameter_values(mechanism) if free is None else free
        assert m.lagrangian is not None
        L, forces = m.lagrangian.expression, m.lagrangian.forces
        self._numeric = NumericMechanism(m)
        self._symbols = [m.t, *m.q, *m.u, *m.z, *m.r, *m.p, *(a.symbol for a in m.calculated_parameters)]
        momenta = [sm.expand(L.diff(u)) for u in m.u]
        h = sm.expand(sm.Add(*(u * p for u, p in zip(m.u, momenta, strict=True))) - L)
        self._values = self._sums([*momenta, h])
        rates = [sm.Add(L.diff(q), force) for q, force in zip(m.q, forces, strict=True)]
        power = sm.Add(*(force * u for force, u in zip(forces, m.u, strict=True))) - L.diff(m.t)
        self._rates = self._sums([sm.expand(e) for e in (*rates, power)])
        self.kept: tuple[ConservedQuantity, ...] = tuple(self._found())

    def at(self, t: float, q: Floats, u: Floats, z: Floats, r: Floats, free: Floats) -> tuple[Floats, Floats]:
        """Return values and sizes, as :meth:`.conserved_quantities.ConservedQuantities.at`."""
        values, sizes = self._values([t, *q, *u, *z, *r, *self._numeric.parameters(free)])
        places = [kept.place for kept in self.kept]
        return values[places], sizes[places]

    def _sums(self, expressions: Sequence[sm.Expr]) -> Callable[[Sequence[float]], tuple[Floats, Floats]]:
        """Return a function of numbers: each sum, and the sum of the sizes of its terms."""
        terms = [sm.Add.make_args(e) for e in expressions]
        evaluate = sm.lambdify(self._symbols, [e for each in terms for e in each], cse=True)
        ends = np.cumsum([len(each) for each in terms])[:-1]

        def summed(point: Sequence[float]) -> tuple[Floats, Floats]:
            """Return the sum at one state."""
            parts = np.split(np.array(evaluate(*point), dtype=float), ends)
            return np.array([each.sum() for each in parts]), np.array([np.abs(each).sum() for each in parts])

        return summed

    def _found(self) -> list[ConservedQuantity]:
        """Return the momenta and Jacobi's integral that keep their value at all random samples."""
        m, samples = self.m, draw_random_states(self._numeric, self._free)
        kept = np.ones(len(m.q) + 1, dtype=bool)
        for sample in samples:
            rates, sizes = self._rates(self._point(sample))
            kept &= np.abs(rates) <= ZERO_TOLERANCE * sizes
            set_random_state(self._numeric, sample, on_constraints=True)
            kept[:-1] &= ~find_worked_coordinates(self._numeric, np.eye(len(m.q)))
            kept[-1] &= not constraints_do_work(self._numeric)
        names = [f"momentum of {c.name}, which is ignorable" for c in m.declared.coordinates]
        units = [momentum_unit(c.unit) for c in m.declared.coordinates]
        names.append("Jacobi's integral Σ q' ∂L/∂q' - L")
        return [
            ConservedQuantity(n, u, i) for i, (n, u, k) in enumerate(zip(names, [*units, "J"], kept, strict=True)) if k
        ]

    def _point(self, sample: StateSample) -> list[float]:
        """Return a sample as the arguments of the Lagrangian's functions: t, q, u, z, r, parameters."""
        return [sample.t, *sample.q, *sample.u_constrained, *sample.z, *sample.r, *sample.parameters]
