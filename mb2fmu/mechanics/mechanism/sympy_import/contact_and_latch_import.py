"""Read contacts and latches: rows in plain symbols, with their first and second rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypedDict

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.contact_equations import ContactEquations, ContactFriction, UnilateralContact
from mb2fmu.mechanics.equations.equations_of_motion import VelocityConstraints
from mb2fmu.mechanics.equations.latch_equations import LatchedConstraintRow, LatchEquations, MechanicalLatch
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    DynamicsymbolMap,
    differentiate_along_rates,
    replace_symbols,
    replace_symbols_in_matrix,
    time_derivative,
)
from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.declarations.contact_and_latch_declaration_records import (
    DeclaredContact,
    DeclaredFriction,
    DeclaredLatchConstraintRow,
    DeclaredMechanicalLatch,
)
from mb2fmu.model.expression_traversal import count_occurrences
from mb2fmu.model.quantity_declarations import format_symbol_as_word

_RANK_TOLERANCE = 1e-9  # relative size below which a singular value counts as zero

_MAX_RATE_OCCURRENCES = 60_000
"""Of the parts of a row's rate, as often as they occur: conditions of events are sorted by SymPy, which visits each."""

_COSINE_TOLERANCE = 1e-12  # 1 - cosine of the gaps over the samples
_SAMPLE_DISTANCE = 0.1  # relative distance of samples from the start

Floats = npt.NDArray[np.float64]
SymbolRates = tuple[tuple[sm.Symbol, ...], tuple[sm.Expr, ...], sm.Symbol]


def read_contacts_and_latches(
    definition: CheckedModel,
    plain: DynamicsymbolMap,
    moving: SymbolRates,
    u: Sequence[sm.Symbol],
    taken_names: set[str],
    constraints: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
    written: Mapping[sm.Symbol, sm.Expr] | None = None,
) -> tuple[ContactEquations | None, LatchEquations | None]:
    """Return contacts and latches of a definition in plain symbols; None where it has none.

    Args:
        definition: The model definition.
        plain: Translation to plain symbols.
        moving: Time-varying symbols of positions, their rates, and time.
        u: Speeds.
        taken_names: Names in use; extended.
        constraints: Rows that hold always.
        start: Plain symbols of coordinates and parameters → their values at the start.
        written: Plain symbols that stand for positions and velocities of links → what they are in coordinates and
            speeds: what is held needs its slopes.

    Raises:
        MechanismError: If no speed, or no motion that constraints and other rows leave free, changes a gap, a slip or a
            row of a latch, or two gaps are the same.
    """
    reader = _ContactAndLatchRowReader(plain, moving, tuple(u), taken_names, written or {})
    contacts = reader.read_contacts(definition.contacts, has_latches=bool(definition.latches))
    latches = reader.read_latches(definition.latches)
    faults = [
        *_constrained_contact_faults(contacts, definition.contacts, constraints, start),
        *_coupled_slip_faults(contacts, definition.contacts, constraints, start),
        *_duplicate_contact_faults(contacts, definition.contacts, start),
    ]
    if faults:
        raise MechanismError("contacts cannot be read:", faults)
    faults = [
        *_constrained_latch_faults(latches, definition.latches, constraints, start),
        *_dependent_latch_faults(latches, definition.latches, constraints, start),
    ]
    if faults:
        raise MechanismError("latches cannot be read:", faults)
    return contacts, latches


class _UnilateralRowFields(TypedDict):
    """Fields of :class:`UnilateralRow`."""

    jacobian: sm.ImmutableMatrix
    offset: sm.Expr
    bias: sm.Expr
    force: sm.Symbol
    impulse: sm.Symbol
    impact_impulse: sm.Symbol


@dataclass(frozen=True, slots=True)
class _ContactAndLatchRowReader:
    """Translates declarations to rows.

    Attributes:
        plain: Translation to plain symbols.
        moving: Time-varying symbols of positions, their rates, and time.
        u: Speeds.
        taken_names: Names in use; extended.
        written: Symbols of motions of links → what they are in coordinates and speeds.
    """

    plain: DynamicsymbolMap
    moving: SymbolRates
    u: tuple[sm.Symbol, ...]
    taken_names: set[str]
    written: Mapping[sm.Symbol, sm.Expr]

    def read_contacts(self, declared: Sequence[DeclaredContact], *, has_latches: bool) -> ContactEquations | None:
        """Return the contacts; ``has_latches``: there are latches, too.

        Raises:
            MechanismError: If no speed changes a gap or a slip.
        """
        if not declared:
            return None
        has_friction = any(contact.friction for contact in declared)
        contacts = tuple(self._read_contact(contact, has_friction=has_friction) for contact in declared)
        if has_latches:
            contacts = tuple(self._add_latch_symbols(contact) for contact in contacts)
        declared_contacts = [*zip(declared, contacts, strict=True)]
        faults = [
            Fault(f"no speed changes the gap of {row.name}", declaration.where, "write it in coordinates that move")
            for declaration, row in declared_contacts
            if row.jacobian.is_zero_matrix
        ] or [
            Fault(f"no speed changes the slip of {row.name}", declaration.where, "write it in speeds that move")
            for declaration, row in declared_contacts
            if row.friction and row.friction.jacobian.is_zero_matrix
        ]
        if faults:
            raise MechanismError("contacts cannot be read:", faults)
        jumps = self._make_speed_symbols("jump")
        if not has_friction:
            return ContactEquations(contacts, declared[0].order, jumps)
        shifts = self._make_speed_symbols("shift")
        first_friction = next(contact.friction for contact in declared if contact.friction)
        assert first_friction.changes is not None  # the first with friction counts for all
        changes = self.plain(first_friction.changes)
        return ContactEquations(
            contacts, declared[0].order, jumps, shifts, changes, self._make_symbol("contacts_change")
        )

    def read_latches(self, declared: Sequence[DeclaredMechanicalLatch]) -> LatchEquations | None:
        """Return the latches.

        Raises:
            MechanismError: If no speed changes a row.
        """
        if not declared:
            return None
        latches = tuple(self._read_latch(latch) for latch in declared)
        faults = [
            Fault(f"no speed changes what {row.name} holds", declaration.where, "write it in coordinates that move")
            for declaration, latch in zip(declared, latches, strict=True)
            for row in latch.rows
            if row.jacobian.is_zero_matrix
        ]
        if faults:
            raise MechanismError("latches cannot be read:", faults)
        return LatchEquations(latches, self._make_speed_symbols("latched"))

    def _read_contact(self, contact: DeclaredContact, *, has_friction: bool) -> UnilateralContact:
        """Return one contact; ``has_friction``: one of them has friction."""
        gap, identifier = self._write_out(contact.gap), format_symbol_as_word(contact.force)
        return UnilateralContact(
            **self._differentiate_position(gap, contact),
            name=contact.name,
            position=gap,
            stabilization=self.plain(contact.stabilization),
            restitution=self.plain(contact.restitution),
            resting_speed=self.plain(contact.rest_below),
            law=contact.law,
            resting=self.plain(contact.resting),
            impact_count=self.plain(contact.count),
            resting_after_impact=self._make_symbol(f"rests_{identifier}"),
            friction=self._read_friction(contact.friction) if contact.friction else None,
            resting_after_change=self._make_symbol(f"stays_{identifier}") if has_friction else None,
        )

    def _read_friction(self, friction: DeclaredFriction) -> ContactFriction:
        """Return a contact's friction."""
        slip, identifier = self._write_out(friction.slip), format_symbol_as_word(friction.force)
        symbols, rates, t = self.moving
        rate_of_symbol = {**dict(zip(symbols, rates, strict=True)), t: sm.S.One}
        derivatives = [differentiate_along_rates(slip, {speed: sm.S.One}) for speed in self.u]
        offset, bias = self._set_speeds_to_zero(slip), differentiate_along_rates(slip, rate_of_symbol)
        return ContactFriction(
            **self._make_row_fields(derivatives, offset, bias, friction),
            coefficient=self.plain(friction.coefficient),
            sliding=self.plain(friction.sliding),
            sliding_after_impact=self._make_symbol(f"slides_{identifier}"),
            sliding_after_change=self._make_symbol(f"turns_{identifier}"),
        )

    def _read_latch(self, latch: DeclaredMechanicalLatch) -> MechanicalLatch:
        """Return one latch."""
        positions = [self._write_out(row.position) for row in latch.rows]
        return MechanicalLatch(
            name=latch.name,
            rows=tuple(
                LatchedConstraintRow(
                    **self._differentiate_position(position, row),
                    name=row.name,
                    position=position,
                    stabilization=self.plain(latch.stabilization),
                    held_at=self.plain(row.held_at),
                )
                for position, row in zip(positions, latch.rows, strict=True)
            ),
            close=self._write_out(latch.close),
            open=self._write_out(latch.open),
            engaged=self.plain(latch.engaged),
            change_count=self.plain(latch.changes),
        )

    def _write_out(self, expression: sm.Basic) -> sm.Expr:
        """Return a gap, a slip, a held position or a condition in plain symbols of coordinates and speeds."""
        plain = self.plain(expression)
        return replace_symbols(plain, self.written) if self.written else plain

    def _differentiate_position(
        self, position: sm.Expr, declaration: DeclaredContact | DeclaredLatchConstraintRow
    ) -> _UnilateralRowFields:
        """Return G, b and c of a position in plain symbols, whose second rate is G u' + c, and the row's symbols."""
        symbols, rates, t = self.moving
        rate_of_symbol = {**dict(zip(symbols, rates, strict=True)), t: sm.S.One}
        if self.written:
            rate = differentiate_along_rates(position, rate_of_symbol)
            _refuse_long_rate(rate, declaration.name)
        else:
            rate = time_derivative(position, symbols, rates, t)
        derivatives = [differentiate_along_rates(rate, {speed: sm.S.One}) for speed in self.u]
        bias, offset = differentiate_along_rates(rate, rate_of_symbol), self._set_speeds_to_zero(rate)
        return self._make_row_fields(derivatives, offset, bias, declaration)

    def _set_speeds_to_zero(self, rate: sm.Expr) -> sm.Expr:
        """Return what is left of a rate where nothing moves but what is prescribed."""
        return replace_symbols(rate, dict.fromkeys(self.u, sm.S.Zero))

    def _make_row_fields(
        self,
        derivatives: Sequence[sm.Expr],
        offset: sm.Expr,
        bias: sm.Expr,
        declaration: DeclaredContact | DeclaredFriction | DeclaredLatchConstraintRow,
    ) -> _UnilateralRowFields:
        """Return the fields that all rows have."""
        return {
            "jacobian": sm.ImmutableMatrix(1, len(self.u), derivatives),
            "offset": offset,
            "bias": bias,
            "force": self.plain(declaration.force),
            "impulse": self.plain(declaration.impulse),
            "impact_impulse": self._make_symbol(f"blow_{format_symbol_as_word(declaration.force)}"),
        }

    def _add_latch_symbols(self, contact: UnilateralContact) -> UnilateralContact:
        """Return a contact with symbols that say which of its rows latches hold."""
        friction = contact.friction
        if friction is not None:
            friction = replace(friction, held_by_latches=self._make_symbol(f"pinned_{friction.force.name}"))
        return replace(contact, friction=friction, held_by_latches=self._make_symbol(f"pinned_{contact.force.name}"))

    def _make_speed_symbols(self, prefix: str) -> tuple[sm.Symbol, ...]:
        """Return a new symbol for each speed."""
        return tuple(self._make_symbol(f"{prefix}_{speed.name}") for speed in self.u)

    def _make_symbol(self, name: str) -> sm.Symbol:
        """Return a symbol whose name nothing has yet."""
        while name in self.taken_names:
            name += "_"
        self.taken_names.add(name)
        return sm.Symbol(name)


def _refuse_long_rate(rate: sm.Expr, name: str) -> None:
    """Refuse a gap or row whose rate, written out along a chain of joints, takes SymPy minutes.

    Raises:
        MechanismError: If it does.
    """
    count = count_occurrences(rate)
    if count > _MAX_RATE_OCCURRENCES:
        problem = f"the rate of {name} has {count} parts, written out from joint to joint, and at most "
        problem += f"{_MAX_RATE_OCCURRENCES} can be used: axes at odd angles to each other make them many"
        remedy = "take a compliant Contact, or a point of a link with fewer joints before it"
        raise MechanismError("contacts and latches cannot be read:", [Fault(problem, remedy=remedy)])


def _constrained_contact_faults(
    contacts: ContactEquations | None,
    declared: Sequence[DeclaredContact],
    constraints: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
) -> Iterator[Fault]:
    """Yield contacts whose gap no free motion at the start changes: an impact could not act there."""
    if contacts is None or constraints is None:
        return
    free = _free_motion_directions(constraints, start)
    for contact, item in zip(contacts.each, declared, strict=True):
        if _is_constrained(free, contact.jacobian, start):
            problem = f"the constraints hold the gap of {contact.name}: no impact could change its rate"
            yield Fault(problem, item.where, "leave it out, or take away what is redundant")
        if contact.friction and _is_constrained(free, contact.friction.jacobian, start):
            problem = f"the constraints hold the slip of {contact.name}: no friction could change it"
            yield Fault(problem, item.where, "leave the friction out, or take away what is redundant")


def _constrained_latch_faults(
    latches: LatchEquations | None,
    declared: Sequence[DeclaredMechanicalLatch],
    constraints: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
) -> Iterator[Fault]:
    """Yield latch rows that no free motion at the start changes: the constraints hold them already."""
    if latches is None or constraints is None:
        return
    free = _free_motion_directions(constraints, start)
    for latch, item in zip(latches.each, declared, strict=True):
        for row in latch.rows:
            if _is_constrained(free, row.jacobian, start):
                yield Fault(f"the constraints hold {row.name} already", item.where, "leave that row out")


def _coupled_slip_faults(
    contacts: ContactEquations | None,
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
        for sample in (start, *_sample_near_start(start)):
            values = _evaluate_matrix(rows, sample)
            if constraints is not None:
                values = values @ _free_motion_directions(constraints, sample).T
            sizes = np.linalg.norm(values, axis=1)
            if (
                not np.all(sizes > 0.0)
                or np.linalg.svd(values / sizes[:, None])[1][1:].max(initial=0.0) > _RANK_TOLERANCE
            ):
                break
        else:
            problem = (
                f"the slip of {contact.name} is a multiple of the rate of its gap: friction and normal force are one"
            )
            remedy = "leave slip and friction out, or take a compliant Contact"
            yield Fault(problem, item.where, remedy)


def _duplicate_contact_faults(
    contacts: ContactEquations | None, declared: Sequence[DeclaredContact], start: Mapping[sm.Symbol, float]
) -> Iterator[Fault]:
    """Yield contacts whose gap is a multiple of another's: their forces would not be determined.

    If the multiple is negative, both gaps are zero always: that is a constraint, and impacts would follow without end.

    Gaps are compared at samples near the start, with other parameters too: gaps that are equal for one length only are
    two contacts. Legs of a table, whose forces are not determined either, keep different gaps.
    """
    if contacts is None or len(contacts.each) < 2:
        return
    gaps = sm.ImmutableMatrix([[contact.gap for contact in contacts.each]])
    try:
        values = np.array([_evaluate_matrix(gaps, sample).ravel() for sample in _sample_near_start(start)])
    except TypeError:  # a gap that is no real number there
        return
    values /= np.maximum(np.linalg.norm(values, axis=0), np.finfo(float).tiny)
    for j, item in enumerate(declared):
        cosines = values[:, :j].T @ values[:, j]
        if np.any(cosines > 1.0 - _COSINE_TOLERANCE):
            other_name = declared[int(np.argmax(cosines))].name
            problem = f"{item.name} has the gap of {other_name}, or a multiple of it: "
            problem += "how they share a force is not determined"
            yield Fault(problem, item.where, "leave one of the two out")
        if np.any(cosines < _COSINE_TOLERANCE - 1.0):
            other_name = declared[int(np.argmin(cosines))].name
            problem = (
                f"{item.name} has the gap of {other_name} with the other sign: both are >= 0 only where both are 0"
            )
            remedy = "give what is between them room, or hold it there by a constraint or a Latch"
            yield Fault(problem, item.where, remedy)


def _dependent_latch_faults(
    latches: LatchEquations | None,
    declared: Sequence[DeclaredMechanicalLatch],
    constraints: VelocityConstraints | None,
    start: Mapping[sm.Symbol, float],
) -> Iterator[Fault]:
    """Yield latch rows that follow from others of their latch, at samples near the start."""
    for latch, item in zip(latches.each if latches else (), declared, strict=False):
        try:
            dependent_sets = [_dependent_rows(latch, constraints, sample) for sample in _sample_near_start(start)]
        except TypeError:  # a slope that is no real number there
            continue
        for j in sorted(set.intersection(*dependent_sets)):
            other_names = ", ".join(row.name for row in latch.rows[:j])
            problem = f"{latch.rows[j].name} holds what {other_names} hold{'s' if j == 1 else ''} already"
            yield Fault(f"{problem}: how they share a force is not determined", item.where, "leave that row out")


def _dependent_rows(
    latch: MechanicalLatch, constraints: VelocityConstraints | None, sample: Mapping[sm.Symbol, float]
) -> set[int]:
    """Return the numbers of the rows that no free motion changes without those before them."""
    free = _free_motion_directions(constraints, sample) if constraints else None
    derivatives = [_evaluate_matrix(row.jacobian, sample).ravel() for row in latch.rows]
    G = np.array([derivative if free is None else free @ derivative for derivative in derivatives])
    lengths = np.linalg.norm(G, axis=1)
    G /= np.maximum(lengths, np.finfo(float).tiny)[:, None]
    residuals = [G[j] - G[:j].T @ np.linalg.lstsq(G[:j].T, G[j], rcond=None)[0] for j in range(1, len(G))]
    # Rows that constraints alone hold are reported by ``_constrained_latch_faults``.
    is_movable = lengths > _RANK_TOLERANCE * np.linalg.norm(derivatives, axis=1)
    return {
        j
        for j, residual in enumerate(residuals, start=1)
        if is_movable[j] and np.linalg.norm(residual) <= _RANK_TOLERANCE
    }


def _sample_near_start(start: Mapping[sm.Symbol, float]) -> list[dict[sm.Symbol, float]]:
    """Return samples near the start, with other parameters too."""
    generator = np.random.default_rng(5)
    return [
        {
            symbol: value + max(abs(value), 1.0) * generator.uniform(-_SAMPLE_DISTANCE, _SAMPLE_DISTANCE)
            for symbol, value in start.items()
        }
        for _ in range(4)
    ]


def _free_motion_directions(constraints: VelocityConstraints, start: Mapping[sm.Symbol, float]) -> Floats:
    """Return the motions that the constraints leave free at the start, one per row."""
    _, sizes, directions = np.linalg.svd(_evaluate_matrix(constraints.jacobian, start))
    return np.asarray(directions[np.count_nonzero(sizes > _RANK_TOLERANCE * sizes[0]) :])


def _is_constrained(free: Floats, jacobian: sm.ImmutableMatrix, start: Mapping[sm.Symbol, float]) -> bool:
    """Return whether none of these motions changes a quantity with this gradient."""
    G = _evaluate_matrix(jacobian, start).ravel()
    return bool(np.linalg.norm(free @ G) <= _RANK_TOLERANCE * np.linalg.norm(G))


def _evaluate_matrix(matrix: sm.ImmutableMatrix, start: Mapping[sm.Symbol, float]) -> Floats:
    """Return a matrix of expressions as numbers, with 17 digits; each distinct subexpression is evaluated once."""
    values = {symbol: sm.Float(value, 17) for symbol, value in start.items()}
    return np.array(replace_symbols_in_matrix(matrix, values).evalf(17), dtype=float)
