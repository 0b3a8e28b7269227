"""Cases of a study: the values of each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.studies.study_plan import Method

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class VariedAxis:
    """Values of one varied quantity, as numbers in its unit.

    Attributes:
        law: See ``study_plan.VariedQuantity``.
        numbers: Likewise.
        count: Likewise.
    """

    law: str
    numbers: tuple[float, ...]
    count: int = 0

    def fault(self) -> str:
        """Return what is wrong with the numbers; empty if nothing is."""
        first, last = self.numbers[0], self.numbers[-1]
        if self.law in {"uniform", "log"} and not first < last:
            return f"there is nothing between {first:g} and {last:g}" + (": it goes downward" if last < first else "")
        if self.law == "log" and first <= 0.0:
            return f"a logarithmic scale cannot begin at {first:g}"
        if self.law == "normal" and last <= 0.0:
            return f"the standard deviation {last:g} is not positive"
        return ""

    def grid_values(self) -> Floats:
        """Return its values on a grid."""
        if self.law == "values":
            return np.array(self.numbers)
        spread = np.geomspace if self.law == "log" else np.linspace
        return np.asarray(spread(self.numbers[0], self.numbers[1], self.count))

    def values_at_probabilities(self, u: Floats) -> Floats:
        """Return values with cumulative probabilities ``u``, of any shape, between 0 and 1."""
        first, last = self.numbers
        if self.law == "normal":
            from scipy.special import ndtri

            # 0 is a point of Sobol's sequence; its quantile is not finite.
            return first + last * np.asarray(ndtri(np.clip(u, 2.0**-32, 1.0 - 2.0**-32)))
        if self.law == "log":
            return np.asarray(np.exp(math.log(first) + u * (math.log(last) - math.log(first))))
        return first + u * (last - first)


def sample_cases(method: Method, axes: Sequence[VariedAxis], count: int, seed: int, *, indices: bool = False) -> Floats:
    """Return the cases, one row each, shape (n, n_axes).

    With ``indices`` the rows are those of ``sensitivity_indices``: two samples A and B of ``count`` rows, then for each
    axis A with this column from B (Saltelli and others, Comput. Phys. Commun. 181 (2010), table 1).

    Args:
        method: ``grid`` (the last axis changes fastest), ``latin-hypercube`` or ``sobol`` (scrambled).
        axes: What varies.
        count: Rows; of a grid it does not matter.
        seed: Equal seeds give equal cases.
        indices: Of ``sobol`` only.
    """
    from scipy.stats import qmc

    if method == "grid":
        grids = np.meshgrid(*(axis.grid_values() for axis in axes), indexing="ij")
        return np.stack([grid.ravel() for grid in grids], axis=1)
    d = len(axes)
    rng = np.random.default_rng(seed)
    if method == "latin-hypercube":
        u = qmc.LatinHypercube(d, rng=rng).random(count)
    else:
        u = qmc.Sobol(2 * d if indices else d, rng=rng).random(count)
    if indices:
        A, B = u[:, :d], u[:, d:]
        mixed = [np.where(np.arange(d) == i, B, A) for i in range(d)]
        u = np.concatenate([A, B, *mixed])
    return np.stack([axis.values_at_probabilities(u[:, i]) for i, axis in enumerate(axes)], axis=1)
