"""Checks of numbers against the bounds of their declarations."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mb2fmu.errors import Fault
from mb2fmu.model.quantity_declarations import (
    DeclaredVariable,
)


def find_declared_value_bound_faults(item: DeclaredVariable, value: float) -> Iterator[Fault]:
    """Yield a fault if a value, in the quantity's unit, lies outside of its bounds."""
    low, high = item.minimum, item.maximum
    if not _is_within_bounds(value, low, high):
        span = f"[{'-∞' if low is None else low}, {'∞' if high is None else high}]"
        remedy = "change the value or the bounds; all are in the unit, not in the display unit"
        yield Fault(f"{item.name} = {value} lies outside of its bounds {span}", item.where, remedy)


def _is_within_bounds(number: float, low: float | None, high: float | None) -> bool:
    """Return whether a number keeps its bounds; values that are not numbers have faults elsewhere."""
    return not (math.isfinite(number) and ((low is not None and number < low) or (high is not None and number > high)))
