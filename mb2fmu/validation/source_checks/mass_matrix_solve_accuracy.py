"""Digits that solving for x' may lose, beyond those that the data themselves do not determine.

x' is left of terms: u' solves M u' = f in sixteen digits, and what the solution is the small rest of has fewer. With
|M^-1| (|f| + |M| |u'|) as the size of the terms this is estimated within two or three digits for every formulation and
method of elimination, though the data may determine all sixteen: a mass of 1e6 kg at the end of a link of 1 mg.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mb2fmu.validation.reference.derivative_conditioning import DOUBLE_DIGITS, FEW_DIGITS, count_remaining_digits


class StateDerivativeSample(Protocol):
    """Derivatives at one point, by FMU name of the state."""

    @property
    def rates(self) -> Mapping[str, Mapping[str, float]]:
        """Derivatives, by the method that found them."""

    @property
    def terms(self) -> Mapping[str, float]:
        """The sum of the magnitudes of the terms that each derivative is the difference of."""

    @property
    def states(self) -> Mapping[str, float]:
        """The states."""


@dataclass(frozen=True, slots=True)
class LeastAccurateDerivative:
    """The derivative that has the fewest digits.

    Attributes:
        name: Of the state.
        known: Decimal digits that are left, about, 0 to 16; of a derivative that hardly moves its state: of one that
            would.
    """

    name: str
    known: float

    @property
    def text(self) -> str:
        """A sentence for people if few digits are left, else an empty text."""
        if self.known >= FEW_DIGITS:
            return ""
        return (
            f"solving for x' may lose digits, by any formulation: of der({self.name}) {self.known:.0f} may be left, "
            f"for its terms are 1e{DOUBLE_DIGITS - self.known:.0f} times as large"
        )


def find_least_accurate_derivative(
    points: Sequence[StateDerivativeSample], typical: Mapping[str, float], stop: float
) -> LeastAccurateDerivative | None:
    """Return the worst derivative over all points; None without points.

    Args:
        points: Where x' is known.
        typical: FMU name → typical magnitude, of the states that are looked at: a rate that would not move its state by
            that in the whole experiment is as good as zero.
        stop: Length of the experiment in s.
    """
    accuracies: list[LeastAccurateDerivative] = []
    for name, magnitude in typical.items():
        sizes = [max(abs(rates[name]) for rates in point.rates.values()) for point in points]
        if sizes:
            size = max(*sizes, *(abs(point.states[name]) / stop for point in points), magnitude / stop)
            ratio = max(point.terms[name] for point in points) / size
            accuracies.append(LeastAccurateDerivative(name, count_remaining_digits(ratio)))
    return min(accuracies, key=lambda each: each.known, default=None)
