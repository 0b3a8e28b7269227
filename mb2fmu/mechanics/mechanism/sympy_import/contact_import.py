"""Read unilateral contacts: gaps in plain symbols, with their first and second rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.contact_records import ContactFriction, Contacts, UnilateralContact
from mb2fmu.mechanics.equations.equations_of_motion import VelocityConstraints
from mb2fmu.mechanics.mechanism.records.plain_symbols import SymbolMap, directional_derivative, time_derivative
from mb2fmu.model.declarations.declared_contacts import DeclaredContact, DeclaredFriction
from mb2fmu.model.quantity_declarations import symbol_word

_RANK_TOLERANCE = 1e-9  # what is smaller than this part counts as none

_COSINE_TOLERANCE = 1e-12  # 1 - cosine of the gaps at some places
_SAMPLE_DISTANCE = 0.1  # of magnitudes, or of 1: how far places lie about the start

Floats = npt.NDArray[np.float64]
SymbolRates = tuple[tuple[sm.Symbol, ...], tuple[sm.Expr, ...], sm.Symbol]


def read_contacts(
    declared: Sequence[DeclaredContact],
    plain: SymbolMap,
    moving: SymbolRates,
    u: Sequence[sm.Symbol],
    taken: set[str],
    *,
    latched: bool,
) -> Contacts | None:
    """Return the contacts of a definition; None if it has none.

    Args:
        declared: As the model says them.
        plain: Translation to plain symbols.
        moving: What positions may contain and that moves, its rates, and time.
        u: Speeds.
        taken: Names that are taken; grows.
        latched: Whether there are latches.

    Raises:
        MechanismError: If no speed changes a gap.
    """
    if not declared:
        return None
    rough = any(contact.friction for contact in declared)
    each = tuple(_read_contact(contact, plain, moving, u, taken, rough=rough) for contact in declared)
    if latched:
        each = tuple(_add_latch_symbols(contact, taken) for contact in each)
    faults = [
        Fault(f"no speed changes the gap of {contact.name}", contact.where, "write it in coordinates that move")
        for contact, row in zip(declared, each, strict=True)
        if row.jacobian.is_zero_matrix
    ]
    if faults:
        raise MechanismError("contacts cannot be read:", faults)
    faults = [
        Fault(f"no speed changes the slip of {contact.name}", contact.where, "write it in speeds that move")
        for contact, row in zip(declared, each, strict=True)
        if row.friction and row.friction.jacobian.is_zero_matrix
    ]
    if faults:
        raise MechanismError("contacts cannot be read:", faults)
    jumps = tuple(make_fresh_symbol(f"jump_{speed.name}", taken) for speed in u)
    if not rough:
        return Contacts(each, declared[0].order, jumps)
    shifts = tuple(make_fresh_symbol(f"shift_{speed.name}", taken) for speed in u)
    counted = next(contact.friction for contact in declared if contact.friction)
    assert counted.changes is not None  # the first with friction counts for all
    return Contacts(
        each, declared[0].order, jumps, shifts, plain(counted.changes), make_fresh_symbol("contacts_change", taken)
    )


def constrained_contact_faults(
    contacts: Contacts | None,
    declared: Sequence[DeclaredContact],
    constraints: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
) -> Iterator[Fault]:
    """Yield contacts whose gap no free motion at the start changes: an impact could not act there."""
    if contacts is None or constraints is None:
        return
    free = free_motion_directions(constraints, start)
    for contact, item in zip(contacts.each, declared, strict=True):
        if is_constrained(free, contact.jacobian, start):
            what = f"the constraints hold the gap of {contact.name}: no impact could change its rate"
            yield Fault(what, item.where, "leave it out, or take away what is redundant")
        if contact.friction and is_constrained(free, contact.friction.jacobian, start):
            what = f"the constraints hold the slip of {contact.name}: no friction could change it"
            yield Fault(what, item.where, "leave the friction out, or take away what is redundant")


def coupled_slip_faults(
    contacts: Contacts | None,
    declared: Sequence[DeclaredContact],
    constraints: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
) -> Iterator[Fault]:
    """Yield contacts with friction that slide as fast as they open, times a number: the tip of a lever at a wall.

    Their normal force and their friction act on one and the same motion, so how they share it is not determined.
    """
    for contact, item in zip(contacts.each if contacts else (), declared, strict=True):
        if contact.friction is None:
            continue
        rows = sm.ImmutableMatrix.vstack(contact.jacobian, contact.friction.jacobian)
        for place in (start, *sample_near_start(start)):
            found = evaluate_matrix(rows, place)
            if constraints is not None:
                found = found @ free_motion_directions(constraints, place).T
            sizes = np.linalg.norm(found, axis=1)
            if (
                not np.all(sizes > 0.0)
                or np.linalg.svd(found / sizes[:, None])[1][1:].max(initial=0.0) > _RANK_TOLERANCE
            ):
                break
        else:
            what = f"the slip of {contact.name} is a multiple of the rate of its gap: friction and normal force are one"
            remedy = "leave slip and friction out, or take a compliant Contact"
            yield Fault(what, item.where, remedy)


def duplicate_contact_faults(
    contacts: Contacts | None, declared: Sequence[DeclaredContact], start: Mapping[sm.Symbol, float]
) -> Iterator[Fault]:
    """Yield contacts whose gap is a multiple of another's: their forces would not be determined.

    Where the number is negative there is nowhere to move: that is a constraint, and impacts would follow without end.

    Gaps are compared at places about the start, with other parameters too: what is alike for one length only is two
    contacts. Legs of a table, whose forces are not determined either, keep different gaps.
    """
    if contacts is None or len(contacts.each) < 2:
        return
    gaps = sm.ImmutableMatrix([[contact.gap for contact in contacts.each]])
    try:
        found = np.array([evaluate_matrix(gaps, place).ravel() for place in sample_near_start(start)])
    except TypeError:  # a gap that is no real number there
        return
    found /= np.maximum(np.linalg.norm(found, axis=0), np.finfo(float).tiny)
    for j, item in enumerate(declared):
        cosines = found[:, :j].T @ found[:, j]
        if np.any(cosines > 1.0 - _COSINE_TOLERANCE):
            other = declared[int(np.argmax(cosines))].name
            what = f"{item.name} has the gap of {other}, or a multiple of it: how they share a force is not determined"
            yield Fault(what, item.where, "leave one of the two out")
        if np.any(cosines < _COSINE_TOLERANCE - 1.0):
            other = declared[int(np.argmin(cosines))].name
            what = f"{item.name} has the gap of {other} with the other sign: both are >= 0 only where both are 0"
            remedy = "give what is between them room, or hold it there by a constraint or a Latch"
            yield Fault(what, item.where, remedy)


def sample_near_start(start: Mapping[sm.Symbol, float]) -> list[dict[sm.Symbol, float]]:
    """Return some places about the start, with other parameters too."""
    generator = np.random.default_rng(5)
    return [
        {s: v + max(abs(v), 1.0) * generator.uniform(-_SAMPLE_DISTANCE, _SAMPLE_DISTANCE) for s, v in start.items()}
        for _ in range(4)
    ]


def free_motion_directions(constraints: VelocityConstraints, start: Mapping[sm.Symbol, float]) -> Floats:
    """Return the motions that the constraints leave free at the start, one per row."""
    _, sizes, directions = np.linalg.svd(evaluate_matrix(constraints.jacobian, start))
    return np.asarray(directions[np.count_nonzero(sizes > _RANK_TOLERANCE * sizes[0]) :])


def is_constrained(free: Floats, jacobian: sm.ImmutableMatrix, start: Mapping[sm.Symbol, float]) -> bool:
    """Return whether none of these motions changes a quantity with this gradient."""
    G = evaluate_matrix(jacobian, start).ravel()
    return bool(np.linalg.norm(free @ G) <= _RANK_TOLERANCE * np.linalg.norm(G))


def evaluate_matrix(matrix: sm.ImmutableMatrix, start: Mapping[sm.Symbol, float]) -> Floats:
    """Return a matrix of expressions as numbers."""
    values = {symbol: sm.Float(value, 17) for symbol, value in start.items()}
    return np.array(matrix.xreplace(values).evalf(17), dtype=float)


def differentiate_position_twice(
    position: sm.Expr, moving: SymbolRates, u: Sequence[sm.Symbol]
) -> tuple[sm.ImmutableMatrix, sm.Expr, sm.Expr]:
    """Return G, b and c of a position in plain symbols: its rate is G u + b, its second rate G u' + c."""
    symbols, rates, t = moving
    rate = time_derivative(position, symbols, rates, t)
    free = rate.free_symbols
    slopes = [directional_derivative(rate, {s: sm.S.One}) if s in free else sm.S.Zero for s in u]
    bias = directional_derivative(rate, {**dict(zip(symbols, rates, strict=True)), t: sm.S.One})
    return sm.ImmutableMatrix(1, len(u), slopes), rate.xreplace(dict.fromkeys(u, sm.S.Zero)), bias


def _read_contact(
    contact: DeclaredContact,
    plain: SymbolMap,
    moving: SymbolRates,
    u: Sequence[sm.Symbol],
    taken: set[str],
    *,
    rough: bool,
) -> UnilateralContact:
    """Read one contact in plain symbols; ``rough``: one of them has friction."""
    gap = plain(contact.gap)
    jacobian, offset, bias = differentiate_position_twice(gap, moving, u)
    word = symbol_word(contact.force)
    return UnilateralContact(
        name=contact.name,
        gap=gap,
        jacobian=jacobian,
        offset=offset,
        bias=bias,
        restitution=plain(contact.restitution),
        rest_below=plain(contact.rest_below),
        stabilization=plain(contact.stabilization),
        law=contact.law,
        resting=plain(contact.resting),
        impulse=plain(contact.impulse),
        count=plain(contact.count),
        force=plain(contact.force),
        impact_impulse=make_fresh_symbol(f"blow_{word}", taken),
        rests=make_fresh_symbol(f"rests_{word}", taken),
        friction=_read_contact_friction(contact.friction, plain, moving, u, taken) if contact.friction else None,
        resting_after_change=make_fresh_symbol(f"stays_{word}", taken) if rough else None,
    )


def _read_contact_friction(
    friction: DeclaredFriction, plain: SymbolMap, moving: SymbolRates, u: Sequence[sm.Symbol], taken: set[str]
) -> ContactFriction:
    """Return a contact's friction in plain symbols."""
    slip = plain(friction.slip)
    symbols, rates, t = moving
    known = {**dict(zip(symbols, rates, strict=True)), t: sm.S.One}
    word = symbol_word(friction.force)
    return ContactFriction(
        coefficient=plain(friction.coefficient),
        jacobian=sm.ImmutableMatrix(1, len(u), [directional_derivative(slip, {s: sm.S.One}) for s in u]),
        offset=slip.xreplace(dict.fromkeys(u, sm.S.Zero)),
        bias=directional_derivative(slip, known),
        sliding=plain(friction.sliding),
        impulse=plain(friction.impulse),
        force=plain(friction.force),
        impact_impulse=make_fresh_symbol(f"blow_{word}", taken),
        slides=make_fresh_symbol(f"slides_{word}", taken),
        turns=make_fresh_symbol(f"turns_{word}", taken),
    )


def _add_latch_symbols(contact: UnilateralContact, taken: set[str]) -> UnilateralContact:
    """Return a contact with symbols that say which of its rows latches hold."""
    f = contact.friction
    if f is not None:
        f = replace(f, held_by_latches=make_fresh_symbol(f"pinned_{symbol_word(f.force)}", taken))
    return replace(
        contact, friction=f, held_by_latches=make_fresh_symbol(f"pinned_{symbol_word(contact.force)}", taken)
    )


def make_fresh_symbol(name: str, taken: set[str]) -> sm.Symbol:
    """Return a symbol whose name nothing has yet."""
    while name in taken:
        name += "_"
    taken.add(name)
    return sm.Symbol(name)
