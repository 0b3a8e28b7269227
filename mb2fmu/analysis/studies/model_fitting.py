"""``fit_unknowns``: estimate unknowns from measurements, by least squares with exact derivatives, with uncertainty.

Every measured column counts in units of its noise, which is found from what is left over: first all columns count by
how much they vary, then by what the first fit leaves. With J the derivatives in these units, the covariance of the
unknowns is (JᵀJ)⁻¹; directions in which nothing that was measured changes show as small singular values of J, columns
scaled by the unknowns themselves.

Source: G. A. F. Seber, C. J. Wild, Nonlinear Regression, Wiley 1989, sect. 2.1 and 3.3; L. Ljung, System
Identification, 2nd ed. 1999, sect. 7.4 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.optimize import least_squares
from scipy.special import stdtrit

from mb2fmu.analysis.measured_and_fitted_curve import MeasuredAndFittedCurve
from mb2fmu.errors import AnalysisError, Fault, Mb2FmuError

Floats = npt.NDArray[np.float64]

PredictFunction = Callable[[Floats], tuple[Floats, Floats]]
"""Unknowns (n,) → what was measured as it would be, (n_data,), and its derivatives, (n_data, n)."""

UNOBSERVABLE_RATIO = 1e-7
"""Of the largest singular value: below it a direction changes nothing that was measured."""

HIGH_CORRELATION = 0.95
"""Correlation above which two unknowns are said to be hard to distinguish."""

NUMERICAL_NOISE_RATIO = 1e-8
"""Of a column's variation: where no more is left over, it is what the integration errs by."""

INTEGRATION_ERROR_RATIO = 1e-5
"""Of a column's variation: smaller errors are those of an integration at a usual tolerance, and no other model."""

NO_NOISE_NOTE = "no noise is left over: intervals are those of the integration's own errors, if these were random"

SYSTEMATIC_ERROR_CORRELATION = 0.5
"""Correlation of neighbouring errors of a column above which they are no noise, if that is no chance."""

NONLINEARITY_RATIO = 1.5
"""How many times more, or less, than on a straight line the squares grow before an interval is called rough."""


@dataclass(frozen=True, slots=True)
class FitUnknown:
    """An unknown quantity.

    Attributes:
        name: FMU name, with the number of the experiment where it has a value in each.
        start: Where the search begins.
        low: Lower bound; may be −∞.
        high: Upper bound.
        unit: Of all three.
    """

    name: str
    start: float
    low: float
    high: float
    unit: str


@dataclass(frozen=True, slots=True)
class FitResult:
    """Result of a fit.

    Attributes:
        unknowns: As given.
        values: Of each, shape (n,).
        deviations: Standard deviation of each; infinite where it cannot be found at all.
        intervals: Half widths of the intervals that hold the true value with 95 %, if errors are normal.
        correlation: Of the unknowns, shape (n, n).
        rank: How many directions of the unknowns the measurements see.
        noise: Of each measured column: root mean square of what is left over, in its unit.
        words: What a reader must know, in sentences.
        evaluations: How often the motion was integrated.
        curves: What was measured, beside what the model gives with the values.
    """

    unknowns: tuple[FitUnknown, ...]
    values: Floats
    deviations: Floats
    intervals: Floats
    correlation: Floats
    rank: int
    noise: dict[str, float]
    words: tuple[str, ...]
    evaluations: int
    curves: tuple[MeasuredAndFittedCurve, ...] = ()


def fit_unknowns(
    unknowns: Sequence[FitUnknown],
    predict: PredictFunction,
    measured: Floats,
    columns: Sequence[str],
    *,
    precision: float = 1e-10,
) -> FitResult:
    """Find the unknowns.

    Args:
        unknowns: What is looked for.
        predict: The model.
        measured: Shape (n_data,).
        columns: Name of the column of each number, shape (n_data,).
        precision: Relative, of predictions: the search ends where a step is smaller.

    Raises:
        AnalysisError: If there are fewer numbers than unknowns, or the search ends without an answer.
    """
    if len(measured) <= len(unknowns):
        what = f"{len(measured)} measured numbers for {len(unknowns)} unknowns"
        raise AnalysisError("nothing can be fitted:", [Fault(what, remedy="measure more, or free less")])
    names = np.array(columns)
    spread = {name: float(np.std(measured[names == name])) or 1.0 for name in dict.fromkeys(columns)}
    search = _LeastSquaresSearch(unknowns, predict, measured, precision)
    found = search.run(np.array([spread[name] for name in columns]), np.array([each.start for each in unknowns]))
    left = search.residuals(found)
    noise = {name: float(np.sqrt(np.mean(left[names == name] ** 2))) for name in spread}
    floor = {name: max(noise[name], 1e-9 * spread[name]) for name in spread}
    weights = np.array([floor[name] for name in columns])
    found = search.run(weights, found)
    left = search.residuals(found)
    noise = {name: float(np.sqrt(np.mean(left[names == name] ** 2))) for name in spread}
    clean = all(noise[name] <= NUMERICAL_NOISE_RATIO * spread[name] for name in spread)
    fit_result = _estimate_uncertainty(search, found, weights, noise, clean=clean)
    if clean:
        return fit_result
    coarse = np.array([noise[name] > INTEGRATION_ERROR_RATIO * spread[name] for name in names])
    return replace(fit_result, words=(*fit_result.words, *_systematic_error_notes(left[coarse], names[coarse])))


class _LeastSquaresSearch:
    """Least squares over the unknowns; the last motion is kept, since values and derivatives come together."""

    def __init__(
        self, unknowns: Sequence[FitUnknown], predict: PredictFunction, measured: Floats, precision: float
    ) -> None:
        self.unknowns, self._predict, self._measured = tuple(unknowns), predict, measured
        self._last: tuple[bytes, Floats, Floats] = (b"", measured, measured)
        self.evaluations, self.begun, self._precision = 0, False, max(precision, 1e-10)
        # A start value of zero says nothing of its size.
        self.sizes = np.array([abs(each.start) or 1.0 for each in unknowns])

    def at(self, values: Floats) -> tuple[Floats, Floats]:
        """Return predictions and their derivatives."""
        key = values.tobytes()
        if self._last[0] != key:
            self.evaluations += 1
            self._last = (key, *self._predict(values))
            self.begun = True
        return self._last[1], self._last[2]

    def residuals(self, values: Floats) -> Floats:
        """Return the residuals: predicted minus measured."""
        return self.at(values)[0] - self._measured

    def run(self, weights: Floats, start: Floats) -> Floats:
        """Return the unknowns with the least weighted squares."""
        bounds = np.array([each.low for each in self.unknowns]), np.array([each.high for each in self.unknowns])

        def left(scaled: Floats) -> Floats:
            """Return weighted residuals at scaled unknowns; infinite where the model has no motion."""
            try:
                return np.asarray(self.residuals(scaled * self.sizes) / weights)
            except Mb2FmuError:  # there is no motion there: the search takes a shorter step from where it is
                if not self.begun:
                    raise
                return np.full(len(weights), np.inf)

        def slopes(scaled: Floats) -> Floats:
            return np.asarray(self.at(scaled * self.sizes)[1] * self.sizes / weights[:, None])

        answer = least_squares(
            left,
            start / self.sizes,
            jac=slopes,
            bounds=(bounds[0] / self.sizes, bounds[1] / self.sizes),
            method="trf",
            xtol=self._precision,
            ftol=1e-10,
            gtol=1e-10,
            max_nfev=200,
        )
        if not answer.success:
            raise AnalysisError(
                "the search found no answer:", [Fault(str(answer.message), remedy="start nearer to the solution")]
            )
        return np.asarray(answer.x * self.sizes)


def _estimate_uncertainty(
    search: _LeastSquaresSearch, values: Floats, weights: Floats, noise: dict[str, float], *, clean: bool
) -> FitResult:
    """Return the uncertainty of the fitted values."""
    unknowns, n = search.unknowns, len(values)
    J = search.at(values)[1] / weights[:, None]
    size = np.where(values != 0.0, np.abs(values), search.sizes)
    _, singular, Vt = np.linalg.svd(J * size, full_matrices=False)
    seen = singular > UNOBSERVABLE_RATIO * max(float(singular[0]), 1e-300)
    rank = int(seen.sum())
    spread = (Vt[seen].T / singular[seen]) if rank else np.zeros((n, 0))
    covariance = (spread @ spread.T) * np.outer(size, size)
    # What the weights leave is one per number where noise was found from the same fit; few numbers leave less.
    degrees = max(len(weights) - rank, 1)
    left = search.residuals(values) / weights
    covariance *= float(left @ left) / degrees
    deviations = np.sqrt(np.diag(covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlation = np.nan_to_num(covariance / np.outer(deviations, deviations))
    unseen = Vt[~seen]
    blind = (np.abs(unseen) > 1e-3).any(axis=0) if len(unseen) else np.zeros(n, dtype=bool)
    deviations = np.where(blind, np.inf, deviations)
    words = [
        *_unobservable_notes(unknowns, unseen),
        *_correlation_notes(unknowns, correlation, blind),
        *_bound_notes(unknowns, values),
    ]
    words += [NO_NOISE_NOTE] if clean else _nonlinearity_notes(search, values, weights, covariance, blind)
    intervals = deviations * float(stdtrit(degrees, 0.975))
    return FitResult(
        unknowns, values, deviations, intervals, correlation, rank, noise, tuple(words), search.evaluations
    )


def _nonlinearity_notes(
    search: _LeastSquaresSearch, values: Floats, weights: Floats, covariance: Floats, blind: npt.NDArray[np.bool_]
) -> list[str]:
    """Say whose linearized intervals are inaccurate because the motion is nonlinear.

    Two deviations from its value, all others as they then fit best, the weighted squares would have grown by 4.
    """
    low, high = (np.array([getattr(each, side) for each in search.unknowns]) for side in ("low", "high"))
    deviations = np.sqrt(np.diag(covariance))
    left = search.residuals(values) / weights
    least, degrees = float(left @ left), max(len(left) - len(values), 1)
    rough = []
    for i in np.flatnonzero(~blind & (deviations > 0.0)).tolist():
        way = 2.0 * covariance[i] / deviations[i]
        for sign in (1.0, -1.0):
            at = values + sign * way
            if (at < low).any() or (at > high).any():
                continue
            try:
                moved = search.residuals(at) / weights
            except Mb2FmuError:  # there is no motion there
                moved = np.full_like(left, np.inf)
            growth = (float(moved @ moved) - least) / (least / degrees) if least else 4.0
            if not 4.0 / NONLINEARITY_RATIO < growth < 4.0 * NONLINEARITY_RATIO:
                rough.append(search.unknowns[i].name)
                break
    if not rough:
        return []
    whose = f"the interval of {rough[0]} is" if len(rough) == 1 else f"the intervals of {', '.join(rough)} are"
    return [f"{whose} rough: so far from the value the motion does not change in proportion; measure more, or longer"]


def _systematic_error_notes(left: Floats, names: npt.NDArray[np.str_]) -> list[str]:
    """Say which columns' errors follow a trend instead of being noise: the model is another one than was measured."""
    found = []
    for name in dict.fromkeys(names.tolist()):
        errors = left[names == name]
        errors = errors - errors.mean()
        squares, n = float(errors @ errors), len(errors)
        if (
            squares > 0.0
            and float(errors[1:] @ errors[:-1]) > max(SYSTEMATIC_ERROR_CORRELATION, 3.0 / np.sqrt(n)) * squares
        ):
            found.append(name)
    if not found:
        return []
    why = "model, inputs or what is not free differ from what was measured, and intervals are too narrow"
    return [f"the residual of {', '.join(found)} follows a trend, where noise would not: {why}; see --report"]


def _unobservable_notes(unknowns: Sequence[FitUnknown], directions: Floats) -> list[str]:
    """Say which joint changes leave all measured values unchanged."""
    words = []
    for direction in directions:
        parts = direction / direction[np.argmax(np.abs(direction))]
        moved = [(each.name, part) for each, part in zip(unknowns, parts, strict=True) if abs(part) > 1e-3]
        if len(moved) == 1:
            words.append(f"{moved[0][0]} changes nothing that was measured: fix it, or measure something else")
            continue
        together = " and ".join(f"{name} by {part:+.3g} %" for name, part in moved)
        words.append(
            f"{', '.join(name for name, _ in moved)} cannot be distinguished: {together} together change nothing that "
            "was measured; fix one of them, or measure something else"
        )
    return words


def _correlation_notes(unknowns: Sequence[FitUnknown], correlation: Floats, blind: npt.NDArray[np.bool_]) -> list[str]:
    """Say which unknowns are hard to distinguish."""
    n = len(unknowns)
    pairs = [(i, j) for i in range(n) for j in range(i) if not (blind[i] or blind[j])]
    return [
        f"{unknowns[j].name} and {unknowns[i].name} are hard to distinguish (correlation {correlation[i, j]:+.3f}): an "
        "error of one is made up for by the other"
        for i, j in pairs
        if abs(correlation[i, j]) > HIGH_CORRELATION
    ]


def _bound_notes(unknowns: Sequence[FitUnknown], values: Floats) -> list[str]:
    """Say which unknowns ended at a bound."""
    return [
        f"{each.name} ended at its bound {bound:g}: the best value may lie beyond"
        for each, value in zip(unknowns, values.tolist(), strict=True)
        for bound in (each.low, each.high)
        if np.isfinite(bound) and abs(value - bound) <= 1e-6 * max(abs(bound), abs(each.start), 1e-12)
    ]
