"""Reductions of an output over many runs, when whole trajectories would be too much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.studies.study_plan_words import CROSSING_DIRECTIONS, Direction

Floats = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]


def find_level_crossings(before: Floats, after: Floats, level: float, direction: Direction) -> npt.NDArray[np.bool_]:
    """Return where a value reaches or passes a level in that direction; a start on the level does not count.

    Args:
        before: Values at one time, of any shape.
        after: Values at a later time.
        level: In the same unit.
        direction: ``rising``, ``falling`` or ``either``.
    """
    rises, falls = (before < level) & (after >= level), (before > level) & (after <= level)
    return rises if direction == "rising" else falls if direction == "falling" else rises | falls


class OutputReduction(Protocol):
    """One number per instance, from an output at communication points.

    Attributes:
        output: FMU name.
    """

    @property
    def output(self) -> str:
        """FMU name of the output."""
        ...

    def allocate_memory(self, n: int) -> Floats:
        """Allocate memory for n instances."""
        ...

    def add_samples(self, memory: Floats, instance: IndexArray, t: Floats, y: Floats) -> None:
        """Take the next values of some instances."""
        ...

    def finish(self, memory: Floats) -> Floats:
        """Return the numbers, shape (n,)."""
        ...


@runtime_checkable
class DifferentiableOutputReduction(Protocol):
    """A reduction with derivatives."""

    def differentiate(self, time: Floats, y: Floats, slopes: Floats) -> Floats:
        """Return derivatives of the numbers.

        Args:
            time: Communication points in s, shape (n_t,).
            y: The output there, shape (n, n_t).
            slopes: Its derivatives by k quantities, shape (n, n_t, k).

        Returns:
            Shape (n, k); NaN where there are none.
        """
        ...


@dataclass(frozen=True, slots=True)
class LargestValue:
    """The largest value at a communication point. Its derivative is that of the output there (of several, the first).

    Attributes:
        output: FMU name.
    """

    output: str

    def allocate_memory(self, n: int) -> Floats:
        """Start with no value."""
        return np.full(n, -np.inf)

    def add_samples(self, memory: Floats, instance: IndexArray, t: Floats, y: Floats) -> None:  # noqa: ARG002
        """Keep the larger of the value so far and the new one."""
        memory[instance] = np.maximum(memory[instance], y)

    def finish(self, memory: Floats) -> Floats:
        """Return the largest values."""
        return memory

    def differentiate(self, time: Floats, y: Floats, slopes: Floats) -> Floats:  # noqa: ARG002
        """Return the derivatives of the output at its largest value."""
        return np.asarray(slopes[np.arange(len(y)), np.argmax(y, axis=1)])


@dataclass(frozen=True, slots=True)
class FirstLevelCrossing:
    """The first time in s at which the output passes a level; NaN if it never does.

    Between two communication points it is taken to move on a straight line. Derivatives follow from y(t, θ) = level:
    dt/dθ = -(∂y/∂θ)/(∂y/∂t) on this line.

    Attributes:
        output: FMU name.
        level: In the output's unit.
        direction: ``rising``, ``falling`` or ``either``.
    """

    output: str
    level: float
    direction: Direction = "either"

    def __post_init__(self) -> None:
        """Refuse an unknown direction."""
        if self.direction not in CROSSING_DIRECTIONS:
            msg = f"{self.direction!r} is no direction: one of {', '.join(CROSSING_DIRECTIONS)}"
            raise ValueError(msg)

    def allocate_memory(self, n: int) -> Floats:
        """Begin without a crossing; store time and value of the last point."""
        return np.full((n, 3), np.nan)

    def add_samples(self, memory: Floats, instance: IndexArray, t: Floats, y: Floats) -> None:
        """Look for a change of side."""
        before, was, found = memory[instance].T
        now = np.isnan(found) & find_level_crossings(was, y, self.level, self.direction)
        with np.errstate(divide="ignore", invalid="ignore"):
            time = before + (t - before) * ((self.level - was) / (y - was))
        memory[instance] = np.column_stack([t, y, np.where(now, time, found)])

    def finish(self, memory: Floats) -> Floats:
        """Return the times of the first crossings, s."""
        return memory[:, 2].copy()

    def differentiate(self, time: Floats, y: Floats, slopes: Floats) -> Floats:
        """Return the derivatives of the times; NaN where there is no crossing."""
        found = find_level_crossings(y[:, :-1], y[:, 1:], self.level, self.direction)
        at, each = np.argmax(found, axis=1), np.arange(len(y))
        before, after = y[each, at], y[each, at + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            part = ((self.level - before) / (after - before))[:, None]
            moved = (1.0 - part) * slopes[each, at] + part * slopes[each, at + 1]
            moved *= -((time[at + 1] - time[at]) / (after - before))[:, None]
        return np.where(found.any(axis=1, keepdims=True), moved, np.nan)
