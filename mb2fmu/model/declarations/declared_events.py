"""Events that a model declares: when a condition becomes true, at an instant, or periodically."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal

import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.quantity_declarations import AuxiliaryState, format_symbol_as_word
from mb2fmu.model.source_location import find_user_source_line
from mb2fmu.model.supported_functions import no_event

if TYPE_CHECKING:
    from mb2fmu.model.declarations.contact_and_latch_declaration_records import (
        DeclaredContact,
        DeclaredMechanicalLatch,
    )


@dataclass(frozen=True, slots=True)
class DeclaredEvent:
    """One event; see :class:`EventDeclarations`.

    Attributes:
        kind: ``when``: as the condition becomes true; ``ticks``: whenever the number of instants so far grows.
        condition: Truth, or that number.
        settings: Coordinate, speed or state → its value after the event; read with the values before it.
        name: For messages and reports.
        where: ``file:line`` of the declaration.
        period: Of an event that repeats, in s.
        offset: Of its first instant, or its only one, in s.
        is_named: Whether the model gave the name; else the name says what the event waits for.
    """

    kind: Literal["when", "ticks"]
    condition: sm.Basic
    settings: Mapping[sm.Expr, sm.Expr]
    name: str
    where: str = ""
    period: float = math.inf
    offset: float = 0.0
    is_named: bool = False


class EventDeclarations:
    """Part of ``Model``: events.

    Attributes:
        declared_events: In order of declaration.
        declared_contacts: Unilateral ones, in order of declaration.
        declared_latches: In order of declaration.
    """

    def __init__(self) -> None:
        self.declared_events: list[DeclaredEvent] = []
        self.declared_contacts: list[DeclaredContact] = []
        self.declared_latches: list[DeclaredMechanicalLatch] = []
        super().__init__()

    def when(self, condition: sm.Basic, settings: Mapping[sm.Expr, sm.Expr], *, name: str = "") -> None:
        """Set values at the instant at which a condition becomes true.

        Example:
            A ball of restitution e on the ground.

            >>> model.when(h <= 0, {v: -e * pre(v)})  # doctest: +SKIP

        Args:
            condition: Comparisons and logic of coordinates, speeds, states, inputs, parameters and time. Where it is
                true at the start, nothing happens until it has become false and true again.
            settings: Coordinate, speed or state → its new value. All are read with the values just before the event,
                as ``pre`` says too. Speeds are set as they are given: what momentum becomes is the model's business.
            name: For messages and reports; the condition as it is written if empty.
        """
        self._add("when", sm.sympify(condition), settings, name, str(condition))

    def once(self, time: float, settings: Mapping[sm.Expr, sm.Expr], *, name: str = "") -> None:
        """Set values once, at an instant in s; ``settings`` as for :meth:`when`."""
        now = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
        at = _to_number(time)
        passed = sm.Piecewise((1, now >= sm.Float(at)), (0, True)) if math.isfinite(at) else sm.S.Zero
        self._add("ticks", passed, settings, name, f"t = {_format_number(at, time)} s", offset=at)

    def every(self, period: float, settings: Mapping[sm.Expr, sm.Expr], *, offset: float = 0.0, name: str = "") -> None:
        """Set values periodically: at ``offset``, ``offset`` + ``period``, and so on, in s.

        A controller that samples: its outputs are ``discrete`` values that only such events change.

        Args:
            period: In s, > 0.
            settings: As for :meth:`when`.
            offset: Of the first instant, in s, >= 0.
            name: For messages and reports.
        """
        now = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
        ticks, length, first = sm.Integer(0), _to_number(period), _to_number(offset)
        if length > 0.0 and math.isfinite(first):
            ticks = sm.Max(0, 1 + sm.floor((now - sm.Float(first)) / sm.Float(length)))
        self._add("ticks", ticks, settings, name, f"every {_format_number(length, period)} s", length, first)

    @staticmethod
    def no_event(expression: sm.Expr) -> sm.Expr:
        """Return an expression of which no switch is an event: integrators step across its jumps and kinks."""
        return no_event(sm.sympify(expression))

    def discrete(
        self,
        symbol: sm.Expr,
        start: float = 0.0,
        unit: str = "1",
        *,
        name: str | None = None,
        min: float | None = None,
        max: float | None = None,
        description: str = "",
    ) -> None:
        """Declare a value that only events change; it is a state whose rate is zero.

        Args:
            symbol: A function of time.
            start: In ``unit``.
            unit: Of measure.
            name: In the FMU; as the symbol's, if none is given.
            min: Smallest start value that makes sense, in ``unit``: 0 of a number of events.
            max: Largest one.
            description: For people.
        """
        self.declared.append(  # type: ignore[attr-defined]
            AuxiliaryState(
                symbol=symbol,
                derivative=sm.S.Zero,
                start=float(start),
                name=format_symbol_as_word(symbol) if name is None else name,
                unit=unit,
                minimum=min,
                maximum=max,
                description=description,
                where=find_user_source_line(),
            )
        )

    def _add(
        self,
        kind: Literal["when", "ticks"],
        condition: sm.Basic,
        settings: Mapping[sm.Expr, sm.Expr],
        name: str,
        waits_for: str,
        period: float = math.inf,
        offset: float = 0.0,
    ) -> None:
        """Record an event with the line of the model file that declares it; period and offset in s.

        Where no name is given, what the event waits for is its name.
        """
        assigned = settings if isinstance(settings, Mapping) else {}  # which ``find_event_declaration_faults`` reports
        known = {symbol: sm.sympify(value) for symbol, value in assigned.items()}
        event = DeclaredEvent(
            kind, condition, known, name or waits_for, find_user_source_line(), period, offset, bool(name)
        )
        self.declared_events.append(event)


def _to_number(value: float | sm.Expr) -> float:
    """Convert to a number; NaN if it is none, which ``find_event_declaration_faults`` reports."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return math.nan


def _format_number(number: float, given: float | sm.Expr) -> str:
    """Write a number for people; a value that is none is written as it was given."""
    return str(given) if math.isnan(number) else f"{number:g}"


def has_valid_declared_event_instants(event: DeclaredEvent) -> bool:
    """Return whether an event's instants are valid for :func:`find_event_declaration_faults`."""
    return event.period > 0.0 and 0.0 <= event.offset < math.inf


def find_first_instant_and_period(event: DeclaredEvent) -> tuple[Fraction, Fraction | None]:
    """Return first instant and period as exact decimals; period None: it happens once."""
    return Fraction(repr(event.offset)), Fraction(repr(event.period)) if math.isfinite(event.period) else None


def find_first_common_instant(
    one: tuple[Fraction, Fraction | None], other: tuple[Fraction, Fraction | None]
) -> Fraction | None:
    """Return the first number that two arithmetic sequences (first, step) share; a step of None: one number."""
    (begin, step), (start, stride) = one, other
    if step is None:
        fits = begin == start if stride is None else begin >= start and (begin - start) % stride == 0
        return begin if fits else None
    if stride is None:
        return find_first_common_instant(other, one)
    unit = Fraction(1, math.lcm(step.denominator, stride.denominator))
    p, q, ahead = int(step / unit), int(stride / unit), (start - begin) / unit
    common = math.gcd(p, q)
    if ahead.denominator != 1 or ahead.numerator % common:
        return None
    count = ahead.numerator // common * pow(p // common, -1, q // common) % (q // common)
    cycle = step * (q // common)  # of what both have in common
    at = begin + count * step
    return at if at >= start else at + cycle * math.ceil((start - at) / cycle)


def list_event_expressions(event: DeclaredEvent) -> list[sm.Basic]:
    """Return all expressions of an event; conditions as the comparisons in them."""
    return [event.condition, *event.settings.values()]
