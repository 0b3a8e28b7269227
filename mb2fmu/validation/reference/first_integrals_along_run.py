"""Integrals of motion along the FMU's run: momenta of ignorable coordinates, momenta in space, Jacobi's integral.

Which there are is found from the mechanism in numbers (``mechanism.assembly.conserved_quantities``), and their values
from the FMU's own q and u, so neither the reference's motion nor the FMU's equations have a say. For each of them

    |C(t) - C(0)|  ≤  min(FACTOR · tolerance · (1 + N(t)), 5 %) · S + round-off of S*

S is the largest sum of the sizes of C's terms, S* that of all components of a momentum in space, and N(t) how often the
fastest state has gone through its range (``range_traversal_count``), all by the reference: errors of a right FMU add up
with what moves. A slow loss that stays below every step's defect is found so, however chaotic the motion is. Between
events only: a step with an event, and any step over which the reference's own C changes (something touches, sticks or
is latched), is left out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.assembly.conserved_quantities import ConservedQuantities, PotentialFunction
from mb2fmu.mechanics.mechanism.assembly.lagrangian_conserved_quantities import LagrangianConservedQuantities
from mb2fmu.validation.evaluation_plans.expression_evaluation_plan import EvaluationPlanner
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference.variable_scales import MAX_INFORMATIVE_FRACTION, ROUND_OFF_ALLOWANCE

Floats = npt.NDArray[np.float64]
CONSERVATION_FORMULA = "|C(t) − C(0)|, at times between events"
_SAMPLED_POINTS = 50
_CONSERVED_FRACTION = 1e-8
"""Of S: what the reference's own C may change by over a step where no event changes it."""


ConservedQuantitySet = ConservedQuantities | LagrangianConservedQuantities


def find_first_integrals(
    mechanism: Mechanism, equations: EquationsOfMotion, free: Sequence[float] | None = None
) -> ConservedQuantitySet:
    """Return the integrals of a mechanism in one experiment.

    Args:
        mechanism: As imported.
        equations: Of it; the closed form of the potential energy is taken from them.
        free: Values of the free parameters in the experiment; None: as declared.
    """
    if mechanism.is_lagrangian_only:
        return LagrangianConservedQuantities(mechanism, free)
    return ConservedQuantities(mechanism, make_potential_energy_evaluator(equations), free)


def make_potential_energy_evaluator(equations: EquationsOfMotion) -> PotentialFunction | None:
    """Return V of t, q and all parameters; None where it is unknown or depends on more."""
    e = equations
    if e.energy.potential is None:
        return None
    given_symbols = [e.t, *e.q, *e.p, *(c.symbol for c in e.calculated_parameters)]
    planner = EvaluationPlanner(e.intermediates, {symbol: i for i, symbol in enumerate(given_symbols)})
    try:
        plan = planner.plan([e.energy.potential])
    except KeyError:  # a speed, an input, an auxiliary state
        return None
    blank_values = [0.0] * (planner.size - len(given_symbols))

    def potential(t: float, q: Floats, parameters: Floats) -> float:
        """Return V in J."""
        return float(plan([t, *q.tolist(), *np.asarray(parameters).tolist(), *blank_values])[-1])

    return potential


class FirstIntegralsAlongRun:
    """Values of the integrals along the reference of one experiment, and the bounds for an FMU.

    Args:
        reference: Of the experiment.
        conserved: Of the mechanism.
        traversals: How often the motion has gone through its range by each communication point, shape (n_t,).
        points_near_events: Points that may be on either side of an event.
    """

    def __init__(
        self,
        reference: ReferenceRun,
        conserved: ConservedQuantitySet,
        traversals: Floats,
        points_near_events: Collection[int] = (),
    ) -> None:
        self._reference, self._conserved = reference, conserved
        self.first_integrals = conserved.quantities
        run = reference.experiment
        last, hybrid = len(run.time) - 1, is_hybrid(reference.numeric)
        rows = np.arange(last + 1) if hybrid else np.unique(np.linspace(0, last, _SAMPLED_POINTS).astype(np.int64))
        self.points = rows.tolist()
        self.time = run.time[self.points]
        values, sizes, rounded_sizes = self.evaluate_integrals(reference.trajectory.values)
        self._size, self._rounded_size = np.max(sizes, axis=0), np.max(rounded_sizes, axis=0)
        changes = np.abs(np.diff(values, axis=0))
        self.is_judged = changes <= _CONSERVED_FRACTION * self._size if hybrid else np.isfinite(changes)
        for k in {
            *(event.step for event in reference.events),
            *points_near_events,
            *(k - 1 for k in points_near_events),
        }:
            self.is_judged[max(k, 0) : k + 1] = False
        self._traversals = traversals[self.points]

    def evaluate_integrals(self, values: Floats, points: Sequence[int] | None = None) -> Floats:
        """Return C, the sizes of its terms, and what is rounded, shape (3, n_points, n).

        Args:
            values: Of the compared variables, shape (n_t, n).
            points: Communication points; None: :attr:`points`.
        """
        run, numeric = self._reference.experiment, self._reference.numeric
        part_ends = np.cumsum([numeric.n_q, numeric.n_u, numeric.n_z]).tolist()
        integrals_and_sizes = []
        free = np.array(run.parameters, dtype=float)
        for k in self.points if points is None else points:
            q, u, z, _ = np.split(values[k], part_ends)
            integrals_and_sizes.append(self._conserved.evaluate(float(run.time[k]), q, u, z, run.inputs_at(k), free))
        return np.array(integrals_and_sizes).swapaxes(0, 1)

    def compute_deviations(self, values: Floats) -> Floats:
        """Return |C(t) - C(0)| of each, shape (n, n_points); skipped steps count as no change.

        C is evaluated where a step that is judged begins or ends: of models with events at half of the points.
        """
        is_needed, is_judged = np.zeros(len(self.points), dtype=np.bool_), self.is_judged.any(axis=1)
        is_needed[:-1] |= is_judged
        is_needed[1:] |= is_judged
        integrals = np.full((len(self.points), len(self.first_integrals)), np.nan)
        if is_judged.any():
            needed_points = [self.points[i] for i in np.flatnonzero(is_needed).tolist()]
            integrals[is_needed] = self.evaluate_integrals(values, needed_points)[0]
        change = np.where(self.is_judged, np.diff(integrals, axis=0), 0.0)
        deviations = np.concatenate([np.zeros((1, len(self.first_integrals))), np.cumsum(change, axis=0)])
        return np.asarray(np.abs(deviations).T)

    def compute_bounds(self, allowed: float) -> Floats:
        """Return bounds, shape (n, n_points); ``allowed``: fraction of S allowed by then where nothing has moved."""
        relative_bounds = np.minimum(allowed * (1.0 + self._traversals), MAX_INFORMATIVE_FRACTION)
        round_off = ROUND_OFF_ALLOWANCE * np.sqrt(len(self.points)) * self._rounded_size
        return np.asarray(self._size[:, None] * relative_bounds + round_off[:, None])

    def has_judged_steps(self, row: int) -> bool:
        """Return whether any step is judged."""
        return bool(np.any(self.is_judged[:, row]))
