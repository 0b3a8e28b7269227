"""Give events at set times that coincide one common clock, so that round-off cannot order them.

0.3 s is the third instant of a period of 0.1 s and the first of one of 0.3 s. But 3 * 0.1 and 0.3 are two numbers, and
an FMU that finds instants by their sign meets one before the other. All events of an instant read what is there before
any of them; so they must be found at once. With the largest step g that divides all periods of such events and the
distances of their first instants, the number of steps so far

    B = floor((t - o) / g)

is the only thing that looks at time. An event of the period r g that begins at o + k g has happened
max(0, 1 + floor((B - k + 1/2) / r)) times: that is exact, since B is a whole number, and a half step off its jumps.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Sequence
from fractions import Fraction

import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.declarations.declared_events import (
    DeclaredEvent,
    find_first_common_instant,
    find_first_instant_and_period,
    has_valid_declared_event_instants,
)

_MAX_CLOCK_STEPS = 16
"""Steps of a common clock in the shortest period: each is an event of the FMU, though nothing happens at most."""


def share_event_clocks(events: Sequence[DeclaredEvent]) -> tuple[DeclaredEvent, ...]:
    """Return the same events; those that coincide at some time share a clock.

    Args:
        events: Without faults; instants are taken as they are written, in decimals.

    Returns:
        In the same order. Conditions alone differ from what was declared, and those of a clock that is its own
        group's do not. Clocks whose common step is shorter than a sixteenth of the shortest period keep their own.
    """
    found = list(events)
    for group in _coinciding_groups(events):
        clock = _common_clock([find_first_instant_and_period(events[i]) for i in group])
        if clock is None:
            continue
        for i in group:
            found[i] = _move_to_clock(events[i], *clock)
    return tuple(found)


def _coinciding_groups(events: Sequence[DeclaredEvent]) -> list[list[int]]:
    """Return groups of indices of events at set times that coincide, directly or through others."""
    groups: list[list[int]] = []
    for i, event in enumerate(events):
        if event.kind != "ticks" or not has_valid_declared_event_instants(event):
            continue
        mine = [
            group
            for group in groups
            if any(
                find_first_common_instant(
                    find_first_instant_and_period(events[j]), find_first_instant_and_period(event)
                )
                is not None
                for j in group
            )
        ]
        groups = [*(group for group in groups if group not in mine), sorted([i, *itertools.chain(*mine)])]
    return groups


def _common_clock(instants: Sequence[tuple[Fraction, Fraction | None]]) -> tuple[Fraction, Fraction] | None:
    """Return first instant and step of a common clock; None where separate clocks do (alike, or too far apart)."""
    periods = [period for _, period in instants if period is not None]
    if len(set(instants)) < 2 or not periods:
        return None
    first = min(begin for begin, _ in instants)
    step = _common_divisor([*periods, *(begin - first for begin, _ in instants)])
    return (first, step) if step * _MAX_CLOCK_STEPS >= min(periods) else None


def _common_divisor(numbers: Sequence[Fraction]) -> Fraction:
    """Return the largest number of which all are whole multiples."""
    below = math.lcm(*[number.denominator for number in numbers])
    return Fraction(math.gcd(*[int(number * below) for number in numbers]), below)


def _move_to_clock(event: DeclaredEvent, first: Fraction, step: Fraction) -> DeclaredEvent:
    """Return the event, due at counts of the common clock."""
    begin, period = find_first_instant_and_period(event)
    if (begin, period) == (first, step):
        return event
    now = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
    steps = sm.floor((now - sm.Float(float(first))) / sm.Float(float(step)))
    passed = steps - int((begin - first) / step) + sm.Rational(1, 2)
    if period is None:
        counted = sm.Piecewise((1, passed > 0), (0, True))
    elif period == step:
        counted = sm.Max(0, passed + sm.Rational(1, 2))
    else:
        counted = sm.Max(0, 1 + sm.floor(passed / int(period / step)))
    return dataclasses.replace(event, condition=counted)
