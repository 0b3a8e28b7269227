"""What is kept of an output over many runs, when whole trajectories would be too much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


class Reduction(Protocol):
    """One number per instance, from an output at communication points.

    Attributes:
        output: FMU name.
    """

    @property
    def output(self) -> str:
        """FMU name of the output."""
        ...

    def begin(self, n: int) -> Floats:
        """Memory of n instances."""
        ...

    def take(self, memory: Floats, instance: Indices, t: Floats, y: Floats) -> None:
        """The next values of some instances."""
        ...

    def finish(self, memory: Floats) -> Floats:
        """The numbers, shape (n,)."""
        ...


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest value at a communication point.

    Attributes:
        output: FMU name.
    """

    output: str

    def begin(self, n: int) -> Floats:
        """Start with no value."""
        return np.full(n, -np.inf)

    def take(self, memory: Floats, instance: Indices, t: Floats, y: Floats) -> None:  # noqa: ARG002
        """Keep the larger of the value so far and the new one."""
        memory[instance] = np.maximum(memory[instance], y)

    def finish(self, memory: Floats) -> Floats:
        """Return the largest values."""
        return memory


@dataclass(frozen=True, slots=True)
class FirstCrossing:
    """The first time in s at which the output passes a level, upward or downward; NaN if it never does.

    Between two communication points it is taken to move on a straight line.

    Attributes:
        output: FMU name.
        level: In the output's unit.
    """

    output: str
    level: float

    def begin(self, n: int) -> Floats:
        """Time and value of the last point, and the crossing; none yet."""
        return np.full((n, 3), np.nan)

    def take(self, memory: Floats, instance: Indices, t: Floats, y: Floats) -> None:
        """Looks for a change of side."""
        before, was, found = memory[instance].T
        crosses = np.isnan(found) & ((was < self.level) & (y >= self.level) | (was > self.level) & (y <= self.level))
        with np.errstate(divide="ignore", invalid="ignore"):
            time = before + (t - before) * ((self.level - was) / (y - was))
        memory[instance] = np.column_stack([t, y, np.where(crosses, time, found)])

    def finish(self, memory: Floats) -> Floats:
        """Return the times of the first crossings, s."""
        return memory[:, 2].copy()
