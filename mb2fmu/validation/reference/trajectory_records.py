"""Trajectory: variables over time, with their uncertainty and provenance."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """Values of named variables at given times.

    Attributes:
        names: FMU variable names.
        time: In s, growing, shape (n_t,).
        values: In the variables' units, shape (n_t, n).
        uncertainty: Of the values, same shape, ≥ 0, never decreasing in time; zeros where none is claimed.
        provenance: What made it: no dates, no paths.
    """

    names: tuple[str, ...]
    time: Floats
    values: Floats
    uncertainty: Floats
    provenance: Mapping[str, object]

    def __post_init__(self) -> None:
        shape = (len(self.time), len(self.names))
        if self.values.shape != shape or self.uncertainty.shape != shape:
            raise ValueError(f"values {self.values.shape}, uncertainty {self.uncertainty.shape}, expected {shape}")
        if len(set(self.names)) != len(self.names):
            raise ValueError("a variable stands in the trajectory twice")
        if np.any(np.diff(self.time) <= 0):
            raise ValueError("time does not grow")
        object.__setattr__(self, "provenance", MappingProxyType(dict(self.provenance)))

    def __getitem__(self, name: str) -> Floats:
        """Return the values of one variable, shape (n_t,)."""
        return np.asarray(self.values[:, self.names.index(name)])

    def column(self, name: str) -> int:
        """Return the index of a variable."""
        return self.names.index(name)
