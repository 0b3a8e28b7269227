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
from mb2fmu.validation.reference.variable_scales import ROUND_OFF_ALLOWANCE, compute_row_scales
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
_DiagnosticIntervals = dict[sm.Symbol, tuple[float, float]]
"""Symbol of ``DIAGNOSTIC_SYMBOLS`` → interval in which the number at one state must lie."""


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
    intervals = [diagnostics.evaluate_diagnostics(k, simulation) for k in range(len(simulation.time))]
    results = []
    for name, symbol in reference.diagnostic_outputs:
        reported = simulation[name]
        low, high = np.array([interval[symbol] for interval in intervals]).T
        error = np.abs(reported - (low + high) / 2)
        allowed = (high - low) / 2 + ROUND_OFF_ALLOWANCE * np.abs(high)
        results.append(form_invariant_result(simulation.time, name, _DIAGNOSTIC_FORMULAS[symbol], "1", error, allowed))
    return results


class _DiagnosticsAtFmuStates:
    """Computes the diagnostics at an FMU's states.

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
        self._speed_scales = reference.scales[numeric.n_q : numeric.n_q + numeric.n_u]
        states = np.split(
            reference.trajectory.values[:, : len(self._names)], [numeric.n_q, numeric.n_q + numeric.n_u], 1
        )
        # Moved by their typical magnitudes too: terms of 0.3 m cancel in a row that stays at 1e-3 m of its motion.
        magnitudes = np.maximum(reference.scales[: len(numeric.typical)], numeric.typical)
        scales, terms = compute_row_scales(
            numeric, self._n_phi, run.time, (states[0], states[1], states[2]),
            [run.inputs_at(k) for k in range(len(run.time))], magnitudes, self._prepared,
        )  # fmt: skip
        self._rounding = ROUND_OFF_ALLOWANCE * (scales + terms)

    def evaluate_diagnostics(self, k: int, simulation: FmuSimulationResult) -> _DiagnosticIntervals:
        """Return the diagnostics at a communication point."""
        n_phi, n_q, n_u = self._n_phi, self._numeric.n_q, self._numeric.n_u
        t, r = float(self._experiment.time[k]), self._experiment.inputs_at(k)
        q, u, z = np.split(np.array([simulation[name][k] for name in self._names]), [n_q, n_q + n_u])
        diagnostic_values = self._numeric.residual(t, q, u, z, r, self._prepared)
        places = [q]
        if n_phi:
            slopes = self._numeric.holonomic_slopes(t, q, z, r, self._prepared)
            places.append(q - np.linalg.lstsq(slopes, diagnostic_values[:n_phi], rcond=_SINGULAR_VALUE_LIMIT)[0])
        intervals: dict[sm.Symbol, tuple[float, float]] = {}
        if n_phi:
            intervals[DIAGNOSTIC_SYMBOLS.position_residual] = _compute_value_interval(
                [_largest_absolute_value(diagnostic_values[:n_phi])], _largest_absolute_value(self._rounding[:n_phi])
            )
        velocity_residuals = [
            _largest_absolute_value(self._numeric.residual(t, place, u, z, r, self._prepared)[n_phi:])
            for place in places
        ]
        intervals[DIAGNOSTIC_SYMBOLS.velocity_residual] = _compute_value_interval(
            velocity_residuals, _largest_absolute_value(self._rounding[n_phi:])
        )
        distances = [_squared_distances(self._measure_jacobian(t, place, z, r)) for place in places]
        intervals[DIAGNOSTIC_SYMBOLS.rank] = _bound_rank(distances)
        intervals[DIAGNOSTIC_SYMBOLS.condition] = _bound_condition(
            [np.sort(each)[self._redundant :] for each in distances]
        )
        return intervals

    def _measure_jacobian(self, t: float, q: Floats, z: Floats, r: Floats) -> Floats:
        """Return A, shape (m, n_u), from residuals at speeds there and back."""
        columns = []
        for j, speed in enumerate(self._speed_scales.tolist()):
            u = np.zeros(len(self._speed_scales))
            u[j] = speed
            forward, backward = (self._numeric.residual(t, q, sign * u, z, r, self._prepared) for sign in (1.0, -1.0))
            columns.append((forward - backward)[self._n_phi :] / (2 * speed))
        return np.array(columns).T


def _squared_distances(A: Floats) -> Floats:
    """Return the squared distance of each row of A from the span of those before it, the longest row being 1."""
    longest = max(float(np.max(np.linalg.norm(A, axis=1))), 1e-150)
    extended_rows = np.concatenate([A.T / longest, np.sqrt(_SQUARED_DISTANCE_FLOOR) * np.eye(len(A))])
    return np.asarray(np.maximum(np.diag(np.linalg.qr(extended_rows, mode="r")) ** 2, _SQUARED_DISTANCE_FLOOR))


def _bound_rank(distances: Sequence[Floats]) -> tuple[float, float]:
    """Return between which numbers the number of independent rows lies."""
    certain_ranks = [
        int(np.count_nonzero(squared > _DEPENDENT_ROW_LIMIT * _CLEAR_DECISION_FACTOR)) for squared in distances
    ]
    possible = [int(np.count_nonzero(squared > _DEPENDENT_ROW_LIMIT / _CLEAR_DECISION_FACTOR)) for squared in distances]
    return min(certain_ranks), max(possible)


def _bound_condition(distances: Sequence[Floats]) -> tuple[float, float]:
    """Return between which numbers the condition lies: eliminating in A A⊤ takes digits from small distances."""
    conditions = [float(np.sqrt(squared[-1] / squared[0])) for squared in distances]
    lost_digits = max(_ROUND_OFF_ALLOWANCE * len(squared) ** 2 / float(squared[0]) for squared in distances)
    return _compute_value_interval(conditions, min(lost_digits, 1.0) * max(conditions))


def _compute_value_interval(values: Sequence[float], rounding: float) -> tuple[float, float]:
    """Return the interval of values of several projections, wide enough for further ones, and round-off."""
    low, high = min(values), max(values)
    margin = _OTHER_NORM_FACTOR * (high - low) + rounding
    return low - margin, high + margin


def _largest_absolute_value(values: Floats) -> float:
    """Return the largest absolute value."""
    return float(np.max(np.abs(values)))
