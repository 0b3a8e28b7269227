"""Starts of perturbed experiments with contacts: no overlaps, and modes are not moved like numbers.

A contact is there for gaps g(q, t) >= 0. Coordinates and lengths that are moved each by themselves would begin it with
a pin outside of its hole, and what an FMU does there does not matter. So the start is moved once more, by the
shortest way: gaps that would be negative, and those of contacts that rest at the start, become what they are by
default. Whether a contact rests, the sense in which it slides, and whether a latch is closed follow from where bodies
are: to start one of them at 0.4 says nothing.

A contact that rests at the start and has no impact by default would never show its restitution, nor the speed below
which it rests: it starts a little open and strikes soon, so fast that it bounces, and that it then leaves an impact
with a speed between the two below which it rests by default and in the experiment.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.model.quantity_declarations import MODE_THRESHOLD
from mb2fmu.validation.evaluation_plans.expression_evaluation_plan import EvaluationPlanner
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

if TYPE_CHECKING:
    from mb2fmu.validation.modes.impact_impulses import ContactsAtInstant

Floats = npt.NDArray[np.float64]

_MAX_NEWTON_ITERATIONS = 40
_DIFFERENCE_STEP = 1e-6  # of a coordinate's typical magnitude: for differences
_CLOSURE_TOLERANCE = 1e-13  # of the gap's slopes times the coordinates' magnitudes
_SPEED_RATIO_WITHOUT_MOVE, _LOWEST_RESTITUTION = 3.0, 0.1  # of a speed behind an impact over the speed of rest
_TIME_TO_STRIKE = 1.0 / 32.0  # of the experiment
_DEFAULT_STABILIZATION_RATE = 10.0  # 1/s: in place of a stabilization that is zero


def find_switch_mode_state_indices(numeric: NumericEquations) -> tuple[int, ...]:
    """Return places in x of modes: contacts that rest and slide, latches that are closed."""
    if not is_hybrid(numeric):
        return ()
    places = {symbol: i for i, symbol in enumerate(numeric.frozen.equations.states)}
    contacts, latches = numeric.frozen.contacts, numeric.frozen.latches
    mode_symbols = (
        [each.resting for each in contacts.each] + [f.sliding for f in contacts.frictions] if contacts else []
    )
    mode_symbols += list(latches.engaged_states) if latches else []
    return tuple(places[symbol] for symbol in mode_symbols)


def _choose_striking_speeds(restitution: Floats, rest_below: Floats, default_rest_below: Floats) -> Floats:
    """Return speeds of first impacts, behind which one or two bounces end between both speeds of rest.

    Where the speed of rest has become larger a contact would rest at once: there it bounces once before.
    """
    behind = np.where(
        rest_below == default_rest_below,
        _SPEED_RATIO_WITHOUT_MOVE * rest_below,
        np.sqrt(rest_below * default_rest_below),
    )
    bounces = np.where(rest_below > default_rest_below, 2, 1)
    return np.asarray(behind / np.maximum(restitution, _LOWEST_RESTITUTION) ** bounces)


def find_resting_contacts_without_impact(numeric: NumericEquations, states: Floats) -> tuple[int, ...]:
    """Return contacts that rest at the start of a run and have no impact in it; ``states`` of shape (n_t, n_x)."""
    contacts = numeric.frozen.contacts if is_hybrid(numeric) else None
    if contacts is None:
        return ()
    places = {symbol: i for i, symbol in enumerate(numeric.equations.states)}
    return tuple(
        k
        for k, each in enumerate(contacts.each)
        if states[0, places[each.resting]] > MODE_THRESHOLD
        and states[-1, places[each.impact_count]] == states[0, places[each.impact_count]]
    )


class ContactGaps:
    """The gaps of a mechanism's contacts, from their own expressions.

    Args:
        numeric: The equations as functions of numbers.
    """

    def __init__(self, numeric: NumericEquations) -> None:
        self._numeric = numeric
        contacts = numeric.frozen.contacts if is_hybrid(numeric) else None
        self._contacts = contacts.each if contacts else ()
        e = numeric.equations
        # Inputs last: behind the model's own are those of modes and impacts, which no gap contains.
        known_symbols = [e.t, *e.q, *e.z, *e.p, *(c.symbol for c in e.calculated_parameters), *e.r]
        planner = EvaluationPlanner(e.intermediates, {symbol: i for i, symbol in enumerate(known_symbols)})
        expressions = [
            expression for each in self._contacts for expression in (each.gap, each.resting_speed, each.stabilization)
        ]
        self._plan = planner.plan(expressions) if self._contacts else None
        self._size = planner.size
        states = {symbol: i for i, symbol in enumerate(e.states)}
        self._resting_states = [states[each.resting] for each in self._contacts]
        self._sliding_states = [states[each.friction.sliding] if each.friction else -1 for each in self._contacts]

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
        is_resting = default[self._resting_states] > MODE_THRESHOLD
        return self._move_to_gaps(x, r, prepared, self.evaluate_gaps(default, r, before), is_resting)

    def let_contacts_strike(
        self,
        x: Floats,
        r: Sequence[float] | Floats,
        prepared_pair: tuple[Sequence[float], Sequence[float]],
        opened_contacts: Sequence[int],
        duration: float,
    ) -> Floats:
        """Return the state at t = 0 with contacts open that rested, so that they strike soon and bounce.

        Args:
            x: The state, shape (n_x,); these contacts rest.
            r: Inputs.
            prepared_pair: Parameters by default, and of the experiment.
            opened_contacts: Numbers of the contacts.
            duration: Of the experiment, s.

        Raises:
            ValidationError: If there is no such start.
        """
        if not opened_contacts:
            return x
        numeric, chosen, prepared = self._numeric, list(opened_contacts), prepared_pair[1]
        assert is_hybrid(numeric)
        x = x.copy()
        x[[self._resting_states[k] for k in chosen]] = 0.0
        x[[self._sliding_states[k] for k in chosen if self._sliding_states[k] >= 0]] = 0.0
        modes = numeric.find_modes(0.0, x, list(r), prepared)

        def rows_at(state: Floats, values: Sequence[float] = prepared) -> ContactsAtInstant:
            """Return rates and laws of all contacts."""
            return numeric.evaluate_in_modes(0.0, state, list(r), values, modes.values).contact_rows

        rows, default_rest_below = rows_at(x), rows_at(x, prepared_pair[0]).rest_below[chosen]
        speeds = _choose_striking_speeds(rows.restitution[chosen], rows.rest_below[chosen], default_rest_below)
        motion, _ = numeric.evaluate_with_holding_values(0.0, x, list(r), prepared, modes)
        accelerations = motion.contact_rows.accelerations[chosen]
        # What the way adds to the speed is no more than a part of it, and is left out at the start.
        least = np.abs(accelerations) * duration * _TIME_TO_STRIKE
        ways = speeds**2 / np.maximum(speeds, 8.0 * least) * duration * _TIME_TO_STRIKE
        speeds = np.sqrt(speeds**2 + 2.0 * accelerations * ways)
        gaps, is_moved = self.evaluate_gaps(x, r, prepared), np.zeros(len(self._contacts), dtype=np.bool_)
        gaps[chosen] += ways
        is_moved[chosen] = True
        x = self._move_to_gaps(x, r, prepared, gaps, is_moved)
        n_q, n_u, before = numeric.n_q, len(numeric.equations.u_independent), rows_at(x).rates[chosen]
        sizes, columns = numeric.typical[n_q : n_q + n_u], []
        for i in range(n_u):
            faster = x.copy()
            faster[n_q + i] += sizes[i]
            columns.append(rows_at(numeric.project(0.0, faster, r, prepared)).rates[chosen] - before)
        change = np.linalg.lstsq(np.array(columns).T, -speeds - before, rcond=None)[0]
        x[n_q : n_q + n_u] += sizes * change
        x = numeric.project(0.0, x, r, prepared)
        if np.any(rows_at(x).rates[chosen] > -0.5 * speeds):
            raise ValidationError("the perturbed experiment cannot be started:", [Fault("a contact cannot strike")])
        return x

    def _move_to_gaps(
        self,
        x: Floats,
        r: Sequence[float] | Floats,
        prepared: Sequence[float],
        target_gaps: Floats,
        is_set: npt.NDArray[np.bool_],
    ) -> Floats:
        """Return the state moved by the shortest way to some gaps; others become no more negative than their target."""
        n_q, typical_coordinates = self._numeric.n_q, self._numeric.typical[: self._numeric.n_q]
        open_state = self._numeric.project(0.0, x, r, prepared)
        for _ in range(_MAX_NEWTON_ITERATIONS):
            gap_errors = self.evaluate_gaps(open_state, r, prepared) - target_gaps
            rows_to_close = [
                k for k, gap in enumerate(gap_errors + target_gaps) if gap < min(target_gaps[k], 0.0) or is_set[k]
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
