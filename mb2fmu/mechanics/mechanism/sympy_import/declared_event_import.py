"""Read the events that a model declares (``when``, ``once``, ``every``), in plain symbols."""

from __future__ import annotations

from collections.abc import Collection

import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.equations_of_motion import EventDefinition
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import DynamicsymbolMap
from mb2fmu.model.checked_model import CheckedModel


def read_declared_events(
    definition: CheckedModel, plain: DynamicsymbolMap, states: Collection[sm.Symbol]
) -> tuple[EventDefinition, ...]:
    """Return the model's own events.

    Args:
        definition: The model.
        plain: Translates the user's symbols.
        states: Plain symbols that an event may set.

    Raises:
        MechanismError: If one sets a quantity that is no coordinate, speed or state.
    """
    events, faults = [], []
    for event in definition.events:
        settings = tuple((plain(symbol), plain(value)) for symbol, value in event.settings.items())
        faults += [
            Fault(f"the event {event.name} sets {target}", event.where, "set a coordinate, speed or state")
            for target, _ in settings
            if target not in states
        ]
        condition = plain(event.condition)
        events.append(
            EventDefinition(event.name, event.kind, condition, settings, period=event.period, offset=event.offset)
        )
    if faults:
        raise MechanismError("events cannot be read:", faults)
    return tuple(events)
