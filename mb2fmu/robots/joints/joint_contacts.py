"""Rigid contacts and latches of a robot, whose gaps and rows are written in its joints' coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sympy as sm

from mb2fmu.errors import MechanismError
from mb2fmu.mechanics.equations.contact_records import Contacts
from mb2fmu.mechanics.equations.equations_of_motion import VelocityConstraints
from mb2fmu.mechanics.equations.latch_records import Latches
from mb2fmu.mechanics.mechanism.records.plain_symbols import SymbolMap
from mb2fmu.mechanics.mechanism.sympy_import.contact_import import (
    SymbolRates,
    constrained_contact_faults,
    coupled_slip_faults,
    duplicate_contact_faults,
    read_contacts,
)
from mb2fmu.mechanics.mechanism.sympy_import.latch_import import (
    constrained_latch_faults,
    dependent_latch_faults,
    read_latches,
)
from mb2fmu.model.model_definition import ModelDefinition


def contact_force_symbols(definition: ModelDefinition) -> list[sm.Expr]:
    """Return the functions of time that stand for forces of contacts and latches."""
    forces = [force for contact in definition.contacts for force in contact.forces]
    return forces + [row.force for latch in definition.latches for row in latch.rows]


def read_joint_contacts(
    definition: ModelDefinition,
    plain: SymbolMap,
    moving: SymbolRates,
    u: Sequence[sm.Symbol],
    velocity: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
) -> tuple[Contacts | None, Latches | None]:
    """Return contacts and latches in plain symbols.

    Args:
        definition: Declares them.
        plain: Translates the user's symbols.
        moving: What positions may contain and that moves, its rates, and time.
        u: Speeds.
        velocity: Rows of closed loops.
        start: Plain symbols of coordinates and parameters → their values at the start.

    Raises:
        MechanismError: If no motion changes a gap or row, or two are the same.
    """
    taken = {str(symbol) for symbol in (*plain.to_plain.values(), *start)}
    contacts = read_contacts(definition.contacts, plain, moving, u, taken, latched=bool(definition.latches))
    latches = read_latches(definition.latches, plain, moving, u, taken)
    for what, faults in (
        ("contacts", [*constrained_contact_faults(contacts, definition.contacts, velocity, start)]),
        ("contacts", [*coupled_slip_faults(contacts, definition.contacts, velocity, start)]),
        ("contacts", [*duplicate_contact_faults(contacts, definition.contacts, start)]),
        ("latches", [*constrained_latch_faults(latches, definition.latches, velocity, start)]),
        ("latches", [*dependent_latch_faults(latches, definition.latches, velocity, start)]),
    ):
        if faults:
            raise MechanismError(f"{what} cannot be read:", faults)
    return contacts, latches
