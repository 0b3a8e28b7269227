"""Typical magnitudes of variables, by which they are moved and compared: in any units of measure.

A model of micrometres and nanograms has moments of inertia of 1e-22, which are no round-off, and lengths of zero that
must not become half a metre.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

from mb2fmu.audit.description.described_model import UnitDefinition, Variable, number

ROUND_OFF = 1e-12
"""Part of what has the same unit, below which a start value stands where zero is meant."""

MARGIN = 1e2
"""What the magnitude of a unit of measure is known to: within it two of them count as alike."""

_BASES = ("kg", "m", "s", "A", "K", "mol", "cd")
_PRIOR = 0.1
"""Weight of a magnitude of 1 SI unit beside that of each variable."""

_FAR = 600.0
"""Logarithm of what nothing is larger than."""

_PURE = frozenset({"", "1", "-", "rad", "deg", "%"})
"""Units whose magnitude is about 1 by nature; nothing is known of variables without one."""


class Magnitudes:
    """Typical magnitude of each variable.

    Args:
        starts: Variable → its start value, where that is a finite number.
        units: Definitions of units of measure.
    """

    def __init__(self, starts: Mapping[Variable, float], units: Iterable[UnitDefinition] = ()) -> None:
        self._starts = starts
        self._units = {unit.name: unit.base for unit in units if unit.base is not None}
        self._alike: dict[str, list[float]] = {}
        for variable, start in starts.items():
            self._alike.setdefault(variable.get("unit") or "", []).extend(_sizes(variable, start))
        self._known: dict[Variable, float] = {}

    def of(self, variable: Variable) -> float:
        """Return the larger of nominal and start value; where these say nothing, 1 or what is nearest of its unit."""
        if variable not in self._known:
            self._known[variable] = self._found(variable)
        return self._known[variable]

    def natural(self, variable: Variable) -> float:
        """Return the magnitude that a variable of this unit has by those of all others, roughly; 1 without a unit.

        Of a mechanism of micrometres, nanograms and microseconds an energy is about 1e-12 J, though none is declared.
        """
        powers, factor = self._powers(variable)
        power = sum(map(math.prod, zip(powers, self._bases, strict=True))) - math.log(factor)
        return math.exp(min(max(power, -_FAR), _FAR))

    @cached_property
    def _bases(self) -> list[float]:
        """Logarithms of the typical mass, length, time …, by least squares over all variables whose size is told."""
        n = len(_BASES)
        rows = [[_PRIOR if i == j else 0.0 for j in range(n)] + [0.0] for i in range(n)]
        for variable, start in self._starts.items():
            powers, factor = self._powers(variable)
            size = max(_sizes(variable, start), default=0.0)
            if not any(powers) or not ROUND_OFF * self.of(variable) < size:
                continue
            for i, each in enumerate(powers):
                for j, other in enumerate((*powers, math.log(size) + math.log(factor))):
                    rows[i][j] += each * other
        for i in range(n):  # positive definite: no pivots are needed
            for k in range(n):
                if k != i:
                    part = rows[k][i] / rows[i][i]
                    rows[k] = [a - part * b for a, b in zip(rows[k], rows[i], strict=True)]
        return [rows[i][n] / rows[i][i] for i in range(n)]

    def _powers(self, variable: Variable) -> tuple[list[float], float]:
        """Return the exponents of the variable's unit, and how many of SI's it is; zeros where it is not defined."""
        base = self._units.get(variable.get("unit") or "", {})
        read = [number(base.get(each, "0")) for each in _BASES]
        factor = number(base.get("factor", "1"))
        powers = [each for each in read if each is not None and abs(each) < 100.0]
        if len(powers) < len(read) or factor is None or not 0.0 < factor < math.inf:
            return [0.0] * len(_BASES), 1.0
        return powers, factor

    def _found(self, variable: Variable) -> float:
        """Return the magnitude."""
        unit, start = variable.get("unit") or "", self._starts.get(variable, 0.0)
        alike = [] if unit in _PURE else self._alike.get(unit, [])
        largest = max(alike, default=1.0)
        if len(alike) < 2 and variable.causality != "parameter":  # nothing but itself
            largest = max(largest, 1.0)
        sizes = _sizes(variable, start if abs(start) > ROUND_OFF * largest else 0.0)
        if sizes:
            return max(sizes)
        others = [size for size in alike if size > ROUND_OFF * largest]
        return min(max(1.0, min(others)), max(others)) if others else 1.0


def part(one: float, other: float) -> float:
    """Return what a number counts beside those of magnitude one, if its own is the other: 1, unless these are far."""
    ratio = one / other
    return ratio if ratio > MARGIN else min(1.0, MARGIN * ratio)


def shared(sizes: Sequence[float], magnitudes: Sequence[float]) -> list[float]:
    """Return for each of several numbers the largest of them, those of far other magnitudes brought to its own."""
    decades = [round(math.log10(min(max(each, 1e-300), 1e300))) for each in magnitudes]
    largest: dict[int, float] = {}
    for size, decade in zip(sizes, decades, strict=True):
        largest[decade] = max(largest.get(decade, 0.0), size)
    found = {
        own: max(size * part(10.0 ** max(min(own - other, 300), -300), 1.0) for other, size in largest.items())
        for own in largest
    }
    return [found[own] for own in decades]


def _sizes(variable: Variable, start: float) -> Iterable[float]:
    """Return what a variable says of its own magnitude."""
    nominal = variable.number("nominal")
    told = [abs(start)] if start else []
    return [*told, nominal] if nominal is not None and 0.0 < nominal < math.inf else told
