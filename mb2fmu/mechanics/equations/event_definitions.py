"""Events of equations of motion: declared in the model, or made by latches and contacts."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import sympy as sm

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.contact_equations import ContactEquations, UnilateralContact
    from mb2fmu.mechanics.equations.latch_equations import LatchEquations


@dataclass(frozen=True, slots=True)
class EventDefinition:
    """An event that is declared in the model.

    Attributes:
        name: For messages.
        kind: ``when``: as the condition becomes true; ``ticks``: whenever this number grows.
        condition: Truth, or the number of instants so far; of a contact or latch the number of this time, 0 where
            nothing is due.
        settings: (state, its value after the event, read with the values before it).
        period: Period of a repeated event, in s.
        offset: Time of its first or only instant, in s.
        is_contact_or_latch_event: Whether a contact or latch causes it. Impacts and closings follow the model's own
            events of the same instant.
    """

    name: str
    kind: Literal["when", "ticks"]
    condition: sm.Basic
    settings: tuple[tuple[sm.Symbol, sm.Expr], ...]
    is_contact_or_latch_event: bool = False
    period: float = math.inf
    offset: float = 0.0

    @property
    def is_deferred(self) -> bool:
        """Whether it is processed after the model's own events of the same instant."""
        return self.is_contact_or_latch_event and self.kind == "ticks"


_form_once = functools.lru_cache(maxsize=32)
"""Keeps what is requested again for each formulation, treatment and program, and takes SymPy long."""


@_form_once
def form_contact_and_latch_events(
    latches: LatchEquations | None,
    contacts: ContactEquations | None,
    u: tuple[sm.Symbol, ...],
    independent: tuple[int, ...],
) -> tuple[EventDefinition, ...]:
    """Return the events of latches, then those of contacts; ``u``: all speeds, of which ``independent`` are states."""
    latch_events = _latch_events(latches, u, independent) if latches else ()
    contact_events = _form_contact_events(contacts, latches, u, independent) if contacts else ()
    return (*latch_events, *contact_events)


def _latch_events(
    latches: LatchEquations, u: Sequence[sm.Symbol], independent: Sequence[int]
) -> Iterator[EventDefinition]:
    """Yield one event in which latches close and open; all that do so at an instant do it together, counted once."""
    number = sm.Piecewise(
        (sm.Add(1, *(latch.change_count for latch in latches.each)), latches.pending_condition), (0, True)
    )
    after = latches.values_after_events([(u[i], latches.jumps[i]) for i in independent])
    yield EventDefinition(
        "latch of " + ", ".join(latch.name for latch in latches.each),
        "ticks",
        number,
        tuple(after),
        is_contact_or_latch_event=True,
    )


def _impact_indicator(contacts: ContactEquations, latches: LatchEquations | None, u: tuple[sm.Symbol, ...]) -> sm.Expr:
    """Return 1 where an impact happens at this instant, else 0.

    What is lifted is released first, and latches close. What rests and approaches slowly waits for changes of modes,
    which put it at rest: it may have drifted.
    """
    first, preceding = _impact_before_mode_change(contacts, latches, u), _preceding_condition(contacts, latches, u)
    approaches_at_rest = sm.And(sm.Or(*(c.approach_rate_at_rest(u) for c in contacts.each)), sm.Not(preceding))
    impact_at_rest = (1 - contacts.mode_change_flag(u)) * sm.Piecewise((1, approaches_at_rest), (0, True))
    return first + (1 - first) * impact_at_rest


@_form_once
def _impact_before_mode_change(
    contacts: ContactEquations, latches: LatchEquations | None, u: tuple[sm.Symbol, ...]
) -> sm.Expr:
    """Return 1 where an impact happens before contact modes change, else 0."""
    return sm.Piecewise((1, _impact_condition(contacts, latches, u)), (0, True))


@_form_once
def _impact_condition(contacts: ContactEquations, latches: LatchEquations | None, u: tuple[sm.Symbol, ...]) -> sm.Basic:
    """Return the condition that closed bodies approach each other, before contact modes change."""
    return sm.And(
        sm.Or(*(c.impact_condition(u) for c in contacts.each)), sm.Not(_preceding_condition(contacts, latches, u))
    )


@_form_once
def _preceding_condition(
    contacts: ContactEquations, latches: LatchEquations | None, u: tuple[sm.Symbol, ...]
) -> sm.Basic:
    """Return the condition that goes first: a contact is lifted, or a latch closes or opens."""
    return sm.Or(contacts.lift_off_condition(u), latches.pending_condition if latches else sm.false)


@_form_once
def form_mode_change_indicator(
    contacts: ContactEquations, latches: LatchEquations | None, u: tuple[sm.Symbol, ...]
) -> sm.Expr:
    """Return 1 where contacts must begin to stick, slide or open, else 0; lifting, impacts and latches go first."""
    nothing_precedes = sm.Piecewise((0, _preceding_condition(contacts, latches, u)), (1, True))
    return contacts.mode_change_flag(u) * (1 - _impact_before_mode_change(contacts, latches, u)) * nothing_precedes


def _form_contact_events(
    contacts: ContactEquations, latches: LatchEquations | None, u: tuple[sm.Symbol, ...], independent: Sequence[int]
) -> Iterator[EventDefinition]:
    """Yield the events of contacts: impacts (after latches of the same instant), opening, sticking and sliding."""
    each = contacts.each
    impact_indicator = _impact_indicator(contacts, latches, u)
    number = impact_indicator * sm.Add(1, *(c.impact_count for c in each))
    after: list[tuple[sm.Symbol, sm.Expr]] = [(u[i], u[i] + contacts.jumps[i]) for i in independent]
    for c in each:
        is_without_impulse = sm.Eq(c.impact_impulse, 0)  # an equality is no switch
        after += [
            (c.resting, c.resting_after_impact),
            (c.impulse, sm.Piecewise((c.impulse, is_without_impulse), (c.impact_impulse, True))),
            (c.impact_count, c.impact_count + sm.Piecewise((0, is_without_impulse), (1, True))),
        ]
    for c, f in zip(contacts.contacts_with_friction, contacts.frictions, strict=True):
        is_without_impulse = sm.Eq(c.impact_impulse, 0)
        after += [
            (f.sliding, f.sliding_after_impact),
            (f.impulse, sm.Piecewise((f.impulse, is_without_impulse), (f.impact_impulse, True))),
        ]
    names = ", ".join(c.name for c in each)
    yield EventDefinition(f"impact of {names}", "ticks", number, tuple(after), is_contact_or_latch_event=True)
    if contacts.frictions:
        yield _mode_change_event(contacts, u, independent)
    for c in each:
        yield _opening_event(c, u, _impact_condition(contacts, latches, u), rough=bool(contacts.frictions))
    for c in each:
        yield EventDefinition(
            f"{c.name} is open",
            "when",
            c.separation_condition(u),
            ((c.resting, sm.S.Zero),),
            is_contact_or_latch_event=True,
        )


def _opening_event(
    contact: UnilateralContact, u: Sequence[sm.Symbol], has_impact: sm.Basic, *, rough: bool
) -> EventDefinition:
    """Return the event in which a resting contact opens: its force would have to pull, or it was lifted.

    It happens at the start, too, where a contact is said to rest and does not.
    An impact at the same instant (``has_impact``) goes first, and says what rests then: both set ``resting``.
    With friction (``rough``) pulling is left to the event that changes the modes of all contacts together.
    """
    from mb2fmu.mechanics.equations.contact_equations import OPENING_STATE

    name, is_lifted = f"{contact.name} opens", contact.lift_off_condition(u)
    if not rough:
        resting_after = sm.Piecewise((0, is_lifted), (OPENING_STATE, True))
        opens = sm.Or(sm.And(contact.normal_force_margin < 0, sm.Not(has_impact)), is_lifted)
        return EventDefinition(
            name,
            "ticks",
            sm.Piecewise((1, opens), (0, True)),
            ((contact.resting, resting_after),),
            is_contact_or_latch_event=True,
        )
    along = ((contact.friction.sliding, sm.S.Zero),) if contact.friction else ()
    number = sm.Piecewise((1, is_lifted), (0, True))
    return EventDefinition(
        name, "ticks", number, ((contact.resting, sm.S.Zero), *along), is_contact_or_latch_event=True
    )


def _mode_change_event(
    contacts: ContactEquations, u: Sequence[sm.Symbol], independent: Sequence[int]
) -> EventDefinition:
    """Return the event in which contacts with friction change mode together; it repeats until all modes are right."""
    changes, is_due = contacts.mode_change_count, contacts.mode_change_due
    assert changes is not None
    assert is_due is not None
    after = [(u[i], u[i] + is_due * contacts.mode_change_jumps[i]) for i in independent]
    after.append((changes, changes + is_due))
    after += [
        (c.resting, c.resting + is_due * (c.resting_after_change - c.resting))
        for c in contacts.each
        if c.resting_after_change
    ]
    after += [(f.sliding, f.sliding + is_due * (f.sliding_after_change - f.sliding)) for f in contacts.frictions]
    names = ", ".join(c.name for c in contacts.each)
    return EventDefinition(
        f"friction of {names}", "ticks", is_due * (1 + changes), tuple(after), is_contact_or_latch_event=True
    )
