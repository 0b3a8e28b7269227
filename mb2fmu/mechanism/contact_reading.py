"""Reads unilateral contacts: gaps in plain symbols, with their rates of first and second order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import sympy as sm

from mb2fmu.equations.motion import VelocityConstraints
from mb2fmu.equations.unilateral import Contacts, UnilateralContact
from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanism.symbols import SymbolMap, directional_derivative, time_derivative
from mb2fmu.model.own_contacts import DeclaredContact
from mb2fmu.variables import plain_name

_RANK = 1e-9  # what is smaller than this part counts as none

Rates = tuple[tuple[sm.Symbol, ...], tuple[sm.Expr, ...], sm.Symbol]


def read_contacts(
    declared: Sequence[DeclaredContact], plain: SymbolMap, moving: Rates, u: Sequence[sm.Symbol], taken: set[str]
) -> Contacts | None:
    """The contacts of a definition; None if it has none.

    Args:
        declared: As the model says them.
        plain: Translation to plain symbols.
        moving: What positions may contain and that moves, its rates, and time.
        u: Speeds.
        taken: Names that are taken; grows.

    Raises:
        MechanismError: If no speed changes a gap.
    """
    if not declared:
        return None
    each = tuple(_read(contact, plain, moving, u, taken) for contact in declared)
    faults = [
        Fault(f"no speed changes the gap of {contact.name}", contact.where, "write it in coordinates that move")
        for contact, row in zip(declared, each, strict=True)
        if row.jacobian.is_zero_matrix
    ]
    if faults:
        raise MechanismError("contacts cannot be read:", faults)
    return Contacts(each, declared[0].order, tuple(_fresh(f"jump_{speed.name}", taken) for speed in u))


def held_by_constraints(
    contacts: Contacts | None,
    declared: Sequence[DeclaredContact],
    constraints: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
) -> Iterator[Fault]:
    """Contacts whose gap no motion changes that the constraints leave free, at the start: an impact could not act."""
    if contacts is None or constraints is None:
        return
    values = {symbol: sm.Float(value, 17) for symbol, value in start.items()}
    A = np.array(constraints.jacobian.xreplace(values).evalf(17), dtype=float)
    _, sizes, directions = np.linalg.svd(A)
    free = directions[np.count_nonzero(sizes > _RANK * sizes[0]) :]
    for contact, item in zip(contacts.each, declared, strict=True):
        G = np.array(contact.jacobian.xreplace(values).evalf(17), dtype=float).ravel()
        if np.linalg.norm(free @ G) <= _RANK * np.linalg.norm(G):
            what = f"the constraints hold the gap of {contact.name}: no impact could change its rate"
            yield Fault(what, item.where, "leave it out, or take away what is redundant")


def _read(
    contact: DeclaredContact, plain: SymbolMap, moving: Rates, u: Sequence[sm.Symbol], taken: set[str]
) -> UnilateralContact:
    """One contact in plain symbols."""
    symbols, rates, t = moving
    gap = plain(contact.gap)
    rate = time_derivative(gap, symbols, rates, t)
    free = rate.free_symbols
    slopes = [directional_derivative(rate, {s: sm.S.One}) if s in free else sm.S.Zero for s in u]
    word = plain_name(contact.force)
    return UnilateralContact(
        name=contact.name,
        gap=gap,
        jacobian=sm.ImmutableMatrix(1, len(u), slopes),
        offset=rate.xreplace(dict.fromkeys(u, sm.S.Zero)),
        bias=directional_derivative(rate, {**dict(zip(symbols, rates, strict=True)), t: sm.S.One}),
        restitution=plain(contact.restitution),
        rest_below=plain(contact.rest_below),
        law=contact.law,
        resting=plain(contact.resting),
        impulse=plain(contact.impulse),
        count=plain(contact.count),
        force=plain(contact.force),
        blow=_fresh(f"blow_{word}", taken),
        rests=_fresh(f"rests_{word}", taken),
    )


def _fresh(name: str, taken: set[str]) -> sm.Symbol:
    """A symbol whose name nothing has yet."""
    while name in taken:
        name += "_"
    taken.add(name)
    return sm.Symbol(name)
