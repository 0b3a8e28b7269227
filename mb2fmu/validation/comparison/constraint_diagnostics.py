"""Judge what an FMU reports of its own constraints: residuals, rank and condition, at the FMU's own states.

No reference can know these numbers: each is of the states that the FMU has come to. So they are computed again from
the states that the FMU shows, by other means than the program's: A column by column from the residuals of given
speeds, and the pivots from an orthogonal decomposition of A⊤, where the program eliminates in A A⊤.

Coordinates may be states that the FMU projects before it evaluates A. They are evaluated both as shown and as
projected here; as far as the two differ is allowed, beside round-off.

The verdict on a quantity over time by its bounds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.equations.equations_of_motion import DIAGNOSTIC_SYMBOLS
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.reference.variable_scales import ROUND_OFF_ALLOWANCE, compute_residual_scales_and_round_off
from mb2fmu.validation.runs.fmu_run import FmuSimulationResult
from mb2fmu.validation.validation_result import InvariantResult

Floats = npt.NDArray[np.float64]


_SQUARED_DISTANCE_FLOOR = 1e-14
"""Squared distance, the longest row being 1, that is added to all: what follows from other rows has this."""
_DEPENDENT_ROW_LIMIT = 1e-10
"""A squared distance below it: the row counts as one that follows from those before it."""
_CLEAR_DECISION_FACTOR = 1e3
"""So many times above or below ``_DEPENDENT_ROW_LIMIT``, round-off and another projection do not decide how a row is
counted."""
_SINGULAR_VALUE_LIMIT = 1e-9  # of the largest singular value: smaller ones say nothing of where the constraints are
_ROUND_OFF_ALLOWANCE = 64 * float(np.finfo(float).eps)
_OTHER_NORM_FACTOR = (
    4.0  # the FMU projects in another norm: the difference between both places may be so many times larger
)
_DIAGNOSTIC_FORMULAS = {
    DIAGNOSTIC_SYMBOLS.position_residual: "against the largest |φ| at the FMU's own coordinates",
    DIAGNOSTIC_SYMBOLS.velocity_residual: "against the largest |A u + b| at the FMU's own coordinates and speeds",
    DIAGNOSTIC_SYMBOLS.rank: "against the independent rows of A, at the FMU's own coordinates",
    DIAGNOSTIC_SYMBOLS.condition: "against the distances of A's rows from those before, at the FMU's own coordinates",
}
_DiagnosticIntervals = dict[sm.Symbol, tuple[Floats, Floats]]
"""Symbol of ``DIAGNOSTIC_SYMBOLS`` → interval in which the number at each communication point must lie."""


def form_invariant_result(
    time: Floats, name: str, formula: str, unit: str, values: Floats, bounds: Floats
) -> InvariantResult:
    """Return the result of values and their bounds, shapes as ``time``: the worst ratio, and when it was.

    A value that is no number fails.
    """
    ratios = np.where(values <= 0, 0.0, values / np.where(bounds > 0, bounds, np.finfo(float).tiny))
    worst = int(np.argmax(ratios))
    return InvariantResult(
        name=name,
        formula=formula,
        unit=unit,
        value=float(values[worst]),
        at=float(time[worst]),
        bound=float(bounds[worst]),
        ratio=float(ratios[worst]),
        verdict="passed" if bool(np.all(ratios <= 1.0)) else "failed",
        values=values,
        bounds=bounds,
    )


def compare_constraint_diagnostics(reference: ReferenceRun, simulation: FmuSimulationResult) -> list[InvariantResult]:
    """Return one result per diagnostic of constraints that the FMU has as an output."""
    if not reference.diagnostic_outputs:
        return []
    diagnostics = _DiagnosticsAtFmuStates(reference)
    intervals = diagnostics.evaluate_diagnostics(simulation)
    results = []
    for name, symbol in reference.diagnostic_outputs:
        reported = simulation[name]
        low, high = intervals[symbol]
        error = np.abs(reported - (low + high) / 2)
        allowed = (high - low) / 2 + ROUND_OFF_ALLOWANCE * np.abs(high)
        results.append(form_invariant_result(simulation.time, name, _DIAGNOSTIC_FORMULAS[symbol], "1", error, allowed))
    return results


class _DiagnosticsAtFmuStates:
    """Computes the diagnostics at an FMU's states, of all communication points at once.

    Args:
        reference: Whose equations, parameters and scales they are.
    """

    def __init__(self, reference: ReferenceRun) -> None:
        run, numeric = reference.experiment, reference.numeric
        self._experiment, self._numeric = run, numeric
        self._names = reference.trajectory.names[: numeric.n_q + numeric.n_u + numeric.n_z]
        self._prepared = numeric.prepare(run.parameters)
        self._n_phi = len(numeric.equations.position_rows)
        self._redundant = len(numeric.equations.redundant_rows)
        self._coordinates = slice(1, 1 + numeric.n_q)
        self._speeds = slice(1 + numeric.n_q, 1 + numeric.n_q + numeric.n_u)
        self._speed_scales = reference.scales[numeric.n_q : numeric.n_q + numeric.n_u]
        points = run.form_points(reference.trajectory.values[:, : len(self._names)])
        # Moved by their typical magnitudes too: terms of 0.3 m cancel in a row that stays at 1e-3 m of its motion.
        magnitudes = np.maximum(reference.scales[: len(numeric.typical)], numeric.typical)
        scales, terms = compute_residual_scales_and_round_off(
            numeric, (self._n_phi, numeric.n_q), points, magnitudes, self._prepared
        )
        self._rounding = ROUND_OFF_ALLOWANCE * (scales + terms)

    def evaluate_diagnostics(self, simulation: FmuSimulationResult) -> _DiagnosticIntervals:
        """Return the diagnostics at all communication points."""
        n_phi = self._n_phi
        points = self._experiment.form_points(np.column_stack([simulation[name] for name in self._names]))
        residuals = self._numeric.residuals(points, self._prepared)
        intervals: _DiagnosticIntervals = {}
        places, residuals_at_places = [points], [residuals]
        if n_phi:
            places.append(self._project_points(points, residuals[:, :n_phi]))
            residuals_at_places.append(self._numeric.residuals(places[1], self._prepared))
            intervals[DIAGNOSTIC_SYMBOLS.position_residual] = _compute_value_interval(
                [_largest_absolute_values(residuals[:, :n_phi])], _largest_absolute_values(self._rounding[:n_phi])
            )
        intervals[DIAGNOSTIC_SYMBOLS.velocity_residual] = _compute_value_interval(
            [_largest_absolute_values(each[:, n_phi:]) for each in residuals_at_places],
            _largest_absolute_values(self._rounding[n_phi:]),
        )
        distances = [_squared_distances(self._measure_jacobians(place)) for place in places]
        intervals[DIAGNOSTIC_SYMBOLS.rank] = _bound_rank(distances)
        intervals[DIAGNOSTIC_SYMBOLS.condition] = _bound_condition(
            [np.sort(each, axis=1)[:, self._redundant :] for each in distances]
        )
        return intervals

    def _project_points(self, points: Floats, phi: Floats) -> Floats:
        """Return the points with coordinates one step of least norm nearer to the holonomic constraints."""
        n_q, after_speeds = self._numeric.n_q, self._speeds.stop
        inputs = 1 + len(self._names)
        slopes = np.array(
            [
                self._numeric.holonomic_slopes(
                    float(point[0]),
                    point[self._coordinates],
                    point[after_speeds:inputs],
                    point[inputs:],
                    self._prepared,
                )
                for point in points
            ]
        ).reshape(len(points), -1, n_q)
        projected_points = points.copy()
        steps = np.linalg.pinv(slopes, rcond=_SINGULAR_VALUE_LIMIT) @ phi[:, :, None]
        projected_points[:, self._coordinates] -= steps[:, :, 0]
        return projected_points

    def _measure_jacobians(self, points: Floats) -> Floats:
        """Return A at all points, shape (n_t, m, n_u), from residuals at speeds there and back."""
        columns, still = [], points.copy()
        still[:, self._speeds] = 0.0
        for j, speed in enumerate(self._speed_scales.tolist()):
            sides = []
            for sign in (1.0, -1.0):
                moving = still.copy()
                moving[:, self._speeds.start + j] = sign * speed
                sides.append(self._numeric.residuals(moving, self._prepared)[:, self._n_phi :])
            columns.append((sides[0] - sides[1]) / (2 * speed))
        return np.stack(columns, axis=2)


def _squared_distances(A: Floats) -> Floats:
    """Return the squared distance of each row from the span of those before it, the longest row being 1.

    Args:
        A: Of all points, shape (n_t, m, n_u).

    Returns:
        Shape (n_t, m).
    """
    longest = np.maximum(np.max(np.linalg.norm(A, axis=2), axis=1), 1e-150)[:, None, None]
    count = A.shape[1]
    floor = np.broadcast_to(np.sqrt(_SQUARED_DISTANCE_FLOOR) * np.eye(count), (len(A), count, count))
    triangles = np.linalg.qr(np.concatenate([A.transpose(0, 2, 1) / longest, floor], axis=1), mode="r")
    return np.asarray(np.maximum(np.diagonal(triangles, axis1=1, axis2=2) ** 2, _SQUARED_DISTANCE_FLOOR))


def _bound_rank(distances: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return between which numbers the number of independent rows lies, at each point."""
    low, high = _DEPENDENT_ROW_LIMIT * _CLEAR_DECISION_FACTOR, _DEPENDENT_ROW_LIMIT / _CLEAR_DECISION_FACTOR
    certain_ranks = [np.count_nonzero(squared > low, axis=1) for squared in distances]
    possible_ranks = [np.count_nonzero(squared > high, axis=1) for squared in distances]
    return np.min(certain_ranks, axis=0), np.max(possible_ranks, axis=0)


def _bound_condition(distances: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Return between which numbers the condition lies: eliminating in A A⊤ takes digits from small distances."""
    conditions = [np.sqrt(squared[:, -1] / squared[:, 0]) for squared in distances]
    lost_digits = np.max(
        [_ROUND_OFF_ALLOWANCE * squared.shape[1] ** 2 / squared[:, 0] for squared in distances], axis=0
    )
    return _compute_value_interval(conditions, np.minimum(lost_digits, 1.0) * np.max(conditions, axis=0))


def _compute_value_interval(values: Sequence[Floats], rounding: Floats) -> tuple[Floats, Floats]:
    """Return the intervals of values of several projections, wide enough for further ones, and round-off."""
    low, high = np.min(values, axis=0), np.max(values, axis=0)
    margin = _OTHER_NORM_FACTOR * (high - low) + rounding
    return low - margin, high + margin


def _largest_absolute_values(values: Floats) -> Floats:
    """Return the largest absolute value of each row."""
    return np.asarray(np.max(np.abs(values), axis=-1))
