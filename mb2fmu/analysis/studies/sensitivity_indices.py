"""Sobol' indices: the share of each varied quantity in a result's variance.

Source: Saltelli and others, "Variance based sensitivity analysis of model output", Comput. Phys. Commun. 181 (2010),
estimators (b) and (f) of table 2; the cases are those of ``samples.sample(…, indices=True)``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

BOOTSTRAP_RESAMPLES = 400
_CONFIDENCE_LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class SobolIndices:
    """Sobol' indices of one result.

    Attributes:
        first: Part of the variance that goes away on average where the quantity is known, shape (d,).
        total: Part that stays on average where all others are known, shape (d,).
        first_interval: 95 % of bootstrapped estimates lie between, shape (d, 2).
        total_interval: Likewise.
        used: Rows of the base sample that have results in all their cases.
    """

    first: Floats
    total: Floats
    first_interval: Floats
    total_interval: Floats
    used: int


def estimate_sobol_indices(values: Floats, d: int, seed: int = 0) -> SobolIndices:
    """Estimate the indices from the results of all cases.

    Args:
        values: Shape (n·(d + 2),): those of A, of B, and of A with each column of B. NaN where a case has none.
        d: Number of varied quantities.
        seed: Of the bootstrap.
    """
    parts = values.reshape(d + 2, -1)
    parts = parts[:, np.isfinite(parts).all(axis=0)]
    n = parts.shape[1]
    if n < 2 or float(np.ptp(parts[:2])) == 0.0:
        nothing, bounds = np.full(d, np.nan), np.full((d, 2), np.nan)
        return SobolIndices(nothing, nothing, bounds, bounds, n)
    parts = parts - parts[:2].mean()  # what is common to all only loses digits
    first, total = _index_estimates(parts)
    rng = np.random.default_rng(seed)
    drawn = [_index_estimates(parts[:, rng.integers(0, n, n)]) for _ in range(BOOTSTRAP_RESAMPLES)]
    levels = (0.5 * (1.0 - _CONFIDENCE_LEVEL), 0.5 * (1.0 + _CONFIDENCE_LEVEL))
    between = [np.nanquantile([each[k] for each in drawn], levels, axis=0).T for k in (0, 1)]
    return SobolIndices(first, total, between[0], between[1], n)


def _index_estimates(parts: Floats) -> tuple[Floats, Floats]:
    """Return first-order and total indices."""
    a, b, mixed = parts[0], parts[1], parts[2:]
    variance = float(parts[:2].var())
    with np.errstate(divide="ignore", invalid="ignore"):
        first = (b * (mixed - a)).mean(axis=1) / np.float64(variance)
        total = 0.5 * ((a - mixed) ** 2).mean(axis=1) / np.float64(variance)
    return first, total
