"""Differences between recorded and expected numbers, with the bound of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class BoundedDifferences:
    """Collect differences and bounds of one family of calls; keep the worst ratio.

    ``instant_ratio``: the worst ratio of the numbers that have no integrator's error.
    """

    value: float = 0.0
    bound: float = 0.0
    ratio: float = 0.0
    instant_ratio: float = 0.0
    worst_place: str = ""
    count: int = 0
    left_out_count: int = 0

    def add(self, difference: float, bound: float, place: str, *, is_integrated: bool = False) -> None:
        """Count one compared number; keep the worst ratio of difference to bound.

        ``is_integrated``: the number stands at the end of a step, so that it has the integrator's error.
        """
        self.count += 1
        ratio = np.inf
        if difference == 0.0:
            ratio = 0.0
        elif np.isfinite(difference) and bound > 0:
            ratio = difference / bound
        if not is_integrated:
            self.instant_ratio = max(self.instant_ratio, float(ratio))
        if ratio > self.ratio or not self.worst_place:
            self.value, self.bound, self.ratio, self.worst_place = float(difference), float(bound), float(ratio), place

    def add_identical(self, recorded: float, expected: float, place: str) -> None:
        """Count one number that must have the same bits."""
        is_equal = recorded == expected or (np.isnan(recorded) and np.isnan(expected))
        self.add(0.0 if is_equal else max(abs(recorded - expected), 5e-324), 0.0, place)

    def add_identical_rows(
        self, recorded: Sequence[Sequence[float]], expected: Floats, names: Sequence[str], times: Floats
    ) -> None:
        """Count recorded variables that must have the same bits, row by row."""
        for row, expected_row, t in zip(recorded, expected.tolist(), times.tolist(), strict=True):
            for name, value, expected_value in zip(names, row, expected_row, strict=True):
                self.add_identical(value, expected_value, f"{name} at {t:.6g} s")
