"""Differences between numbers that an FMU answers with and those expected, with the bound of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class ErrorTable:
    """Differences and bounds of one family of calls; the worst ratio is kept."""

    value: float = 0.0
    bound: float = 0.0
    ratio: float = 0.0
    worst_place: str = ""
    count: int = 0
    left_out_count: int = 0

    def add(self, difference: float, bound: float, where: str) -> None:
        """Count one compared number; keep the worst ratio of difference to bound."""
        self.count += 1
        ratio = np.inf
        if difference == 0.0:
            ratio = 0.0
        elif np.isfinite(difference) and bound > 0:
            ratio = difference / bound
        if ratio > self.ratio or not self.worst_place:
            self.value, self.bound, self.ratio, self.worst_place = float(difference), float(bound), float(ratio), where

    def add_identical(self, found: float, expected: float, where: str) -> None:
        """Count one number that must have the same bits."""
        equal = found == expected or (np.isnan(found) and np.isnan(expected))
        self.add(0.0 if equal else max(abs(found - expected), 5e-324), 0.0, where)

    def add_identical_rows(
        self, found: Sequence[Sequence[float]], expected: Floats, names: Sequence[str], times: Floats
    ) -> None:
        """Count recorded variables that must have the same bits, row by row."""
        for row, wanted, t in zip(found, expected.tolist(), times.tolist(), strict=True):
            for name, a, b in zip(names, row, wanted, strict=True):
                self.add_identical(a, b, f"{name} at {t:.6g} s")
