"""Checks of the events that a model declares."""

# ruff: noqa: SLF001 - the time symbol of SymPy is private

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator

import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.declared_events import (
    DeclaredEvent,
    event_instants,
    find_first_common_instant,
    has_valid_instants,
)
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import AuxiliaryState
from mb2fmu.model.sources import mechanics_source


def event_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of events that a model declares."""
    states = {item.symbol for item in model.declared if isinstance(item, AuxiliaryState)}
    settable = (
        states | set(mechanics_source.coordinates(model.mechanics)) | set(mechanics_source.speeds(model.mechanics).all)
    )
    moving = settable - _discrete_states(model)
    for event in model.declared_events:
        if not event.settings:
            yield Fault(f"the event {event.name} sets nothing", event.where, "give a dict {symbol: expression}")
        if math.isnan(event.period) or math.isnan(event.offset):
            what = f"the event {event.name} has instants that are no numbers"
            remedy = "give them in s; what shall vary from unit to unit can be an argument of the model function"
            yield Fault(what, event.where, remedy)
            continue
        if not event.period > 0.0:
            what = f"the event {event.name} has a period of {event.period:g} s"
            yield Fault(what, event.where, "take a positive one")
        if not 0.0 <= event.offset < math.inf:
            what = f"the event {event.name} begins at {event.offset:g} s"
            yield Fault(what, event.where, "take an instant of 0 s or more")
        if event.kind == "when" and not isinstance(event.condition, sm.logic.boolalg.Boolean):
            what = f"{event.condition} is no condition"
            yield Fault(what, event.where, "compare: h <= 0, sm.And(a > b, c < d)")
        elif event.condition in (sm.true, sm.false):
            truth = str(event.condition).lower()
            what = f"the condition of the event {event.name} is always {truth}: it never becomes true"
            yield Fault(what, event.where, "compare what moves; an instant is said by model.once")
        yield from _equality_faults(event, moving)
        for symbol in sorted(set(event.settings) - settable, key=str):
            what = f"the event {event.name} sets {symbol}, which is no coordinate, speed or state"
            remedy = "declare it by model.discrete, or set one of those"
            yield Fault(what, event.where, remedy)
    yield from _duplicate_event_name_faults(model)
    yield from _conflicting_event_faults(model)


def _discrete_states(model: Model) -> set[sm.Expr]:
    """Return the states that only events change."""
    return {item.symbol for item in model.declared if isinstance(item, AuxiliaryState) and item.derivative == 0}


def _equality_faults(event: DeclaredEvent, moving: set[sm.Expr]) -> Iterator[Fault]:
    """Yield equalities of what moves: they hold for an instant, between two looks."""
    moving = moving | {dynamicsymbols._t}
    for each in sorted(event.condition.atoms(sm.Eq, sm.Ne), key=str):
        if any(_changes_between_events(side, moving) for side in each.args):
            what = f"{event.name}: {each.lhs} and {each.rhs} are equal for an instant at most, which no one sees"
            yield Fault(what, event.where, "compare by <= or >=, which stays true behind that instant")


def _changes_between_events(expression: sm.Basic, moving: set[sm.Expr]) -> bool:
    """Return whether a value changes between events."""
    if isinstance(expression, (sm.floor, sm.ceiling, sm.sign, sm.Heaviside, sm.logic.boolalg.Boolean)):
        return False
    return expression in moving or any(_changes_between_events(part, moving) for part in expression.args)


def _duplicate_event_name_faults(model: Model) -> Iterator[Fault]:
    """Yield names that two events share: reports and messages could not tell which of them happened."""
    first: dict[str, DeclaredEvent] = {}
    for event in model.declared_events:
        if event.is_named and event.name in first:
            what = f"two events are called {event.name}: one is said at {first[event.name].where}, and another"
            yield Fault(what, event.where, "give one of them another name (name=…)")
        elif event.is_named:
            first[event.name] = event


def _conflicting_event_faults(model: Model) -> Iterator[Fault]:
    """Yield pairs of events that may coincide and set one value differently.

    What cannot be seen here, conditions that become true together by the motion, is told as it happens.
    """
    timed = [event for event in model.declared_events if not math.isnan(event.period + event.offset)]
    for one, other in itertools.combinations(timed, 2):
        both = [symbol for symbol in one.settings if symbol in other.settings]
        torn = [str(symbol) for symbol in both if one.settings[symbol] != other.settings[symbol]]
        instant = _describe_shared_instant(one, other, model.default_experiment.stop) if torn else None
        if instant is not None:
            what = f"{', '.join(torn)} is set by {one.name} and {other.name} {instant}, to different values"
            remedy = "let one of them set it, or give them conditions or offsets that never come together"
            yield Fault(what, other.where, remedy)


def _describe_shared_instant(one: DeclaredEvent, other: DeclaredEvent, stop: float) -> str | None:
    """Return words for an instant, up to ``stop``, that two events surely share; None if no such instant is known."""
    if one.kind == other.kind == "when":
        return "at the same instants" if _normal_form(one.condition) == _normal_form(other.condition) else None
    if one.kind != other.kind or not all(has_valid_instants(event) for event in (one, other)):
        return None
    first = find_first_common_instant(*(event_instants(event) for event in (one, other)))
    return f"at t = {float(first):g} s" if first is not None and first <= stop else None


def _normal_form(condition: sm.Basic) -> Hashable:
    """Return a normal form of a condition: h <= 0 and 0 >= 2*h become the same."""
    if isinstance(condition, sm.Lt | sm.Le | sm.Gt | sm.Ge):
        over = sm.nsimplify(condition.gts - condition.lts, rational=True)  # 2.0*h is no multiple of h
        return isinstance(condition, sm.Lt | sm.Gt), sm.expand(over).primitive()[1]
    if isinstance(condition, sm.And | sm.Or | sm.Not):
        return condition.func, frozenset(map(_normal_form, condition.args))
    return (condition,)
