"""Read latches: rows in plain symbols, with their first and second rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.equations_of_motion import VelocityConstraints
from mb2fmu.mechanics.equations.latch_records import Latch, LatchedRow, Latches
from mb2fmu.mechanics.mechanism.records.plain_symbols import SymbolMap
from mb2fmu.mechanics.mechanism.sympy_import.contact_import import (
    SymbolRates,
    differentiate_position_twice,
    evaluate_matrix,
    free_motion_directions,
    is_constrained,
    make_fresh_symbol,
    sample_near_start,
)
from mb2fmu.model.declarations.declared_latches import DeclaredLatch
from mb2fmu.model.quantity_declarations import symbol_word

_RANK_TOLERANCE = 1e-9  # part of a row


def read_latches(
    declared: Sequence[DeclaredLatch], plain: SymbolMap, moving: SymbolRates, u: Sequence[sm.Symbol], taken: set[str]
) -> Latches | None:
    """Return the latches of a definition; None if it has none.

    Args:
        declared: As the model says them.
        plain: Translation to plain symbols.
        moving: What positions may contain and that moves, its rates, and time.
        u: Speeds.
        taken: Names that are taken; grows.

    Raises:
        MechanismError: If no speed changes a row.
    """
    if not declared:
        return None
    each = tuple(_read_latch(latch, plain, moving, u, taken) for latch in declared)
    faults = [
        Fault(f"no speed changes what {row.name} holds", item.where, "write it in coordinates that move")
        for item, latch in zip(declared, each, strict=True)
        for row in latch.rows
        if row.jacobian.is_zero_matrix
    ]
    if faults:
        raise MechanismError("latches cannot be read:", faults)
    return Latches(each, tuple(make_fresh_symbol(f"latched_{speed.name}", taken) for speed in u))


def constrained_latch_faults(
    latches: Latches | None,
    declared: Sequence[DeclaredLatch],
    constraints: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
) -> Iterator[Fault]:
    """Yield latch rows that no free motion at the start changes: the constraints hold them already."""
    if latches is None or constraints is None:
        return
    free = free_motion_directions(constraints, start)
    for latch, item in zip(latches.each, declared, strict=True):
        for row in latch.rows:
            if is_constrained(free, row.jacobian, start):
                yield Fault(f"the constraints hold {row.name} already", item.where, "leave that row out")


def dependent_latch_faults(
    latches: Latches | None,
    declared: Sequence[DeclaredLatch],
    constraints: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
) -> Iterator[Fault]:
    """Yield latch rows that follow from others of their latch, at places about the start."""
    for latch, item in zip(latches.each if latches else (), declared, strict=False):
        try:
            found = [_dependent_rows(latch, constraints, place) for place in sample_near_start(start)]
        except TypeError:  # a slope that is no real number there
            continue
        for j in sorted(set.intersection(*found)):
            others = ", ".join(row.name for row in latch.rows[:j])
            what = f"{latch.rows[j].name} holds what {others} hold{'s' if j == 1 else ''} already"
            yield Fault(f"{what}: how they share a force is not determined", item.where, "leave that row out")


def _dependent_rows(
    latch: Latch, constraints: VelocityConstraints | None, place: Mapping[sm.Symbol, float]
) -> set[int]:
    """Return the numbers of the rows that no free motion changes without those before them."""
    free = free_motion_directions(constraints, place) if constraints else None
    slopes = [evaluate_matrix(row.jacobian, place).ravel() for row in latch.rows]
    G = np.array([slope if free is None else free @ slope for slope in slopes])
    lengths = np.linalg.norm(G, axis=1)
    G /= np.maximum(lengths, np.finfo(float).tiny)[:, None]
    rest = [G[j] - G[:j].T @ np.linalg.lstsq(G[:j].T, G[j], rcond=None)[0] for j in range(1, len(G))]
    # What constraints hold alone is told by ``constrained_latch_faults``.
    moves = lengths > _RANK_TOLERANCE * np.linalg.norm(slopes, axis=1)
    return {j for j, left in enumerate(rest, start=1) if moves[j] and np.linalg.norm(left) <= _RANK_TOLERANCE}


def _read_latch(
    latch: DeclaredLatch, plain: SymbolMap, moving: SymbolRates, u: Sequence[sm.Symbol], taken: set[str]
) -> Latch:
    """Read one latch in plain symbols."""
    rows = []
    for row in latch.rows:
        position = plain(row.position)
        jacobian, offset, bias = differentiate_position_twice(position, moving, u)
        rows.append(
            LatchedRow(
                name=row.name,
                position=position,
                jacobian=jacobian,
                offset=offset,
                bias=bias,
                stabilization=plain(latch.stabilization),
                impulse=plain(row.impulse),
                held_at=plain(row.held_at),
                force=plain(row.force),
                impact_impulse=make_fresh_symbol(f"blow_{symbol_word(row.force)}", taken),
            )
        )
    return Latch(
        name=latch.name,
        rows=tuple(rows),
        close=plain(latch.close),
        open=plain(latch.open),
        engaged=plain(latch.engaged),
        changes=plain(latch.changes),
    )
