"""Names of events in the validation: from effects on contacts and latches, or from the model.

The switch that came first is an expression, which says little of a contact to who reads a report.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.model.quantity_declarations import MODE_THRESHOLD

if TYPE_CHECKING:
    from mb2fmu.validation.modes.equations_between_events import EquationsBetweenEvents

Floats = npt.NDArray[np.float64]


def format_event_name(frozen: EquationsBetweenEvents, sides: Iterable[Floats], fired: str, switch: str) -> str:
    """Return the name of an event.

    Args:
        frozen: The equations.
        sides: States before and after it, shapes (n_x,).
        fired: The first of the model's events that happened; empty: none.
        switch: Of what came first.
    """
    if not (frozen.contacts or frozen.latches):
        return fired or switch
    before, after = (dict(zip(frozen.equations.states, side.tolist(), strict=True)) for side in sides)
    changed = [*_name_contact_changes(frozen, before, after), *_name_latch_changes(frozen, before, after)]
    return ", ".join(changed) or fired or switch


def list_switch_names(frozen: EquationsBetweenEvents) -> list[str]:
    """Return names of switching functions: a quantity of a contact, or else the expression of the model."""
    return [_name_contact_quantity(frozen, each.surface) or each.name for each in frozen.switches]


def _name_contact_quantity(frozen: EquationsBetweenEvents, surface: sm.Expr) -> str:
    """Return the quantity of a contact in a switching function; empty if there is none."""
    symbols = surface.free_symbols
    for c in frozen.contacts.each if frozen.contacts else ():
        if c.resting not in symbols:
            continue
        if c.friction and {c.friction.force, c.friction.sliding} & symbols:
            return f"friction of {c.name}"
        if c.force in symbols:
            return f"force of {c.name}"
        return f"rate of the gap of {c.name}" if symbols & set(frozen.equations.u) else f"gap of {c.name}"
    return ""


def _name_contact_changes(
    frozen: EquationsBetweenEvents, before: Mapping[sm.Symbol, float], after: Mapping[sm.Symbol, float]
) -> Iterator[str]:
    """Yield the changes of contacts."""
    for c in frozen.contacts.each if frozen.contacts else ():
        rested_before, rests_after = before[c.resting] > MODE_THRESHOLD, after[c.resting] > MODE_THRESHOLD
        if after[c.impact_count] > before[c.impact_count]:
            yield f"impact of {c.name}"
        elif rested_before and not rests_after:
            yield f"{c.name} opens"
        elif before[c.resting] > 0.0 and after[c.resting] == 0.0:
            yield f"{c.name} has parted"
        elif c.friction and rests_after and after[c.friction.sliding] != before[c.friction.sliding]:
            yield f"{c.name} {'slides' if abs(after[c.friction.sliding]) > MODE_THRESHOLD else 'sticks'}"


def _name_latch_changes(
    frozen: EquationsBetweenEvents, before: Mapping[sm.Symbol, float], after: Mapping[sm.Symbol, float]
) -> Iterator[str]:
    """Yield the changes of latches."""
    for latch in frozen.latches.each if frozen.latches else ():
        closed_before, closed_after = before[latch.engaged], after[latch.engaged]
        if closed_before != closed_after:
            yield f"{latch.name} {'closes' if closed_after > closed_before else 'opens'}"
