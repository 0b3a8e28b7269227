"""Typical magnitudes of variables, by which they are moved and compared: in any units of measure.

A model of micrometres and nanograms has moments of inertia of 1e-22, which are no round-off, and lengths of zero that
must not become half a metre.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from mb2fmu.audit.description.described_model import Variable

ROUND_OFF = 1e-12
"""Part of what has the same unit, below which a start value stands where zero is meant."""

_PURE = frozenset({"", "1", "-", "rad", "deg", "%"})
"""Units whose magnitude is about 1 by nature; nothing is known of variables without one."""


class Magnitudes:
    """Typical magnitude of each variable.

    Args:
        starts: Variable → its start value, where that is a finite number.
    """

    def __init__(self, starts: Mapping[Variable, float]) -> None:
        self._starts = starts
        self._alike: dict[str, list[float]] = {}
        for variable, start in starts.items():
            self._alike.setdefault(variable.get("unit") or "", []).extend(_sizes(variable, start))
        self._known: dict[Variable, float] = {}

    def of(self, variable: Variable) -> float:
        """Return the larger of nominal and start value; where these say nothing, 1 or what is nearest of its unit."""
        if variable not in self._known:
            self._known[variable] = self._found(variable)
        return self._known[variable]

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


def _sizes(variable: Variable, start: float) -> Iterable[float]:
    """Return what a variable says of its own magnitude."""
    nominal = variable.number("nominal")
    told = [abs(start)] if start else []
    return [*told, nominal] if nominal is not None and 0.0 < nominal < math.inf else told
