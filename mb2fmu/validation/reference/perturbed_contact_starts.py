"""Starts of perturbed experiments with contacts: no overlaps, and modes are not moved like numbers.

A contact is there for gaps g(q, t) >= 0. Coordinates and lengths that are moved each by themselves would begin it with
a pin outside of its hole, and what an FMU does there does not matter. So the start is moved once more, by the
shortest way: gaps that would be negative, and those of contacts that rest at the start, become what they are by
default. Whether a contact rests, the sense in which it slides, and whether a latch is closed follow from where bodies
are: to start one of them at 0.4 says nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.model.declarations.declared_contacts_and_latches import MODE_THRESHOLD
from mb2fmu.validation.evaluation_plans.expression_plan import ExpressionPlanner
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

Floats = npt.NDArray[np.float64]

_MAX_NEWTON_ITERATIONS = 40
_DIFFERENCE_STEP = 1e-6  # of a coordinate's typical magnitude: for differences
_CLOSURE_TOLERANCE = 1e-13  # of the gap's slopes times the coordinates' magnitudes
_DEFAULT_STABILIZATION_RATE = 10.0  # 1/s: in place of a stabilization that is zero


def find_switch_mode_state_indices(numeric: NumericEquations) -> tuple[int, ...]:
    """Return places in x of modes: contacts that rest and slide, latches that are closed."""
    if not isinstance(numeric, HybridEquations):
        return ()
    places = {symbol: i for i, symbol in enumerate(numeric.frozen.equations.states)}
    contacts, latches = numeric.frozen.contacts, numeric.frozen.latches
    mode_symbols = (
        [each.resting for each in contacts.each] + [f.sliding for f in contacts.frictions] if contacts else []
    )
    mode_symbols += list(latches.engaged_states) if latches else []
    return tuple(places[symbol] for symbol in mode_symbols)


class ContactGaps:
    """The gaps of a mechanism's contacts, from their own expressions.

    Args:
        numeric: The equations as functions of numbers.
    """

    def __init__(self, numeric: NumericEquations) -> None:
        self._numeric = numeric
        contacts = numeric.frozen.contacts if isinstance(numeric, HybridEquations) else None
        self._contacts = contacts.each if contacts else ()
        e = numeric.equations
        # Inputs last: behind the model's own are those of modes and impacts, which no gap contains.
        known_symbols = [e.t, *e.q, *e.z, *e.p, *(c.symbol for c in e.calculated_parameters), *e.r]
        planner = ExpressionPlanner(e.intermediates, {symbol: i for i, symbol in enumerate(known_symbols)})
        expressions = [
            expression for each in self._contacts for expression in (each.gap, each.resting_speed, each.stabilization)
        ]
        self._plan = planner.plan(expressions) if self._contacts else None
        self._size = planner.size
        states = {symbol: i for i, symbol in enumerate(e.states)}
        self._resting_states = [states[each.resting] for each in self._contacts]

    def evaluate_gaps(self, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]) -> Floats:
        """Return all gaps at t = 0, at a state and inputs, in their own units, shape (k,)."""
        return self._evaluate_rows(x, r, prepared)[:, 0]

    def _evaluate_rows(self, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]) -> Floats:
        """Return for each contact its gap, the rest speed and its stabilization at t = 0, shape (k, 3)."""
        if self._plan is None:
            return np.zeros((0, 3))
        q, z = x[: self._numeric.n_q], x[len(x) - len(self._numeric.equations.z) :]
        values = [0.0, *q.tolist(), *z.tolist(), *prepared, *map(float, r)]
        row_values = self._plan(values + [0.0] * (self._size - len(values)))
        return np.array(row_values, dtype=np.float64).reshape(-1, 3)

    def check_overlaps(self, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]) -> None:
        """Refuse a start with overlapping bodies.

        What lies less deep than the stabilization pushes out with the speed of rest is taken for round-off.

        Args:
            x: The state at t = 0, shape (n_x,).
            r: Inputs.
            prepared: Parameters.

        Raises:
            ValidationError: Names every such contact, with its gap.
        """
        faults = []
        for each, (gap, rest_speed, rate) in zip(self._contacts, self._evaluate_rows(x, r, prepared), strict=True):
            if gap < -rest_speed / (rate or _DEFAULT_STABILIZATION_RATE):
                message = f"the gap of {each.name} is {gap:.6g} at the start: it must not be negative"
                faults.append(
                    Fault(message, remedy="start where bodies are not inside each other, or turn its sign round")
                )
        if faults:
            raise ValidationError("the reference cannot be integrated:", faults)

    def open_gaps(
        self,
        x: Floats,
        r: Sequence[float] | Floats,
        prepared: Sequence[float],
        default: Floats,
        before: Sequence[float],
    ) -> Floats:
        """Return the state at t = 0 moved by the shortest way to gaps >= 0, with resting contacts closed.

        Args:
            x: The state, shape (n_x,).
            r: Inputs.
            prepared: Parameters.
            default: The default start, shape (n_x,).
            before: Its parameters.

        Raises:
            ValidationError: If that is not found, or constraints and gaps do not agree.
        """
        if self._plan is None:
            return x
        n_q, typical_coordinates = self._numeric.n_q, self._numeric.typical[: self._numeric.n_q]
        target_gaps = self.evaluate_gaps(default, r, before)
        open_state = self._numeric.project(0.0, x, r, prepared)
        for _ in range(_MAX_NEWTON_ITERATIONS):
            gap_errors = self.evaluate_gaps(open_state, r, prepared) - target_gaps
            rows_to_close = [
                k
                for k, gap in enumerate(gap_errors + target_gaps)
                if gap < min(target_gaps[k], 0.0) or default[self._resting_states[k]] > MODE_THRESHOLD
            ]
            slopes = self._differentiate_gaps(open_state, r, prepared)[rows_to_close] * typical_coordinates
            if not rows_to_close or np.all(
                np.abs(gap_errors[rows_to_close]) <= _CLOSURE_TOLERANCE * np.abs(slopes).sum(axis=1)
            ):
                return open_state
            open_state = open_state.copy()
            open_state[:n_q] -= typical_coordinates * np.linalg.lstsq(slopes, gap_errors[rows_to_close], rcond=None)[0]
            open_state = self._numeric.project(0.0, open_state, r, prepared)
        message = "no start is found at which nothing lies inside of what it touches"
        raise ValidationError("the perturbed experiment cannot be started:", [Fault(message, remedy="move less")])

    def _differentiate_gaps(self, x: Floats, r: Sequence[float] | Floats, prepared: Sequence[float]) -> Floats:
        """Return slopes of the gaps by the coordinates, by central differences, shape (k, n_q)."""
        columns = []
        for coordinate, size in enumerate(self._numeric.typical[: self._numeric.n_q].tolist()):
            forward, backward = x.copy(), x.copy()
            forward[coordinate] += _DIFFERENCE_STEP * size
            backward[coordinate] -= _DIFFERENCE_STEP * size
            columns.append(
                (self.evaluate_gaps(forward, r, prepared) - self.evaluate_gaps(backward, r, prepared))
                / (2 * _DIFFERENCE_STEP * size)
            )
        return np.array(columns).T.reshape(len(self._contacts), self._numeric.n_q)
