"""Latches of equations of motion: position rows that one event engages and another event releases.

Of a row with the position phi(q, t) and G = dphi'/du, held from an instant at which phi was phi_0:

    phi'  = G u + b
    phi'' = G u' + c = -2 s phi' - s^2 (phi - phi_0)          by the force lambda, of any sign
    M u' + A^T mu = f + sum G^T lambda
    M (u+ - u-) + A^T Gamma = sum G^T Lambda,    A (u+ - u-) = 0,    G u+ + b = 0       where a latch closes

The last line is over all rows that are held then, of this latch and of others. ``docs/explanation/latches.md``
derives it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.equations.contact_equations import is_discrete_state_on
from mb2fmu.mechanics.equations.unilateral_constraint_rows import UnilateralPositionRow


@dataclass(frozen=True, slots=True, kw_only=True)
class LatchedConstraintRow(UnilateralPositionRow):
    """One position row of a latch; ``force`` is lambda while it is held, else 0.

    Attributes:
        held_at: State: phi_0.
    """

    held_at: sm.Symbol

    @property
    def held_position(self) -> sm.Expr:
        """Value of phi where the latch closed."""
        return self.held_at


@dataclass(frozen=True, slots=True)
class MechanicalLatch:
    """A latch: position rows that are engaged and released together.

    Attributes:
        name: For messages.
        rows: At least one.
        close: Whether it closes, where it is open.
        open: Whether it opens, where it is closed; goes before ``close``.
        engaged: State: 1 while it is closed, else 0.
        change_count: State: how often it has closed or opened.
    """

    name: str
    rows: tuple[LatchedConstraintRow, ...]
    close: sm.Basic
    open: sm.Basic
    engaged: sm.Symbol
    change_count: sm.Symbol

    @property
    def closing_condition(self) -> sm.Basic:
        """The condition that the latch closes at this instant, the initial instant included."""
        begins = sm.And(is_discrete_state_on(self.engaged), sm.Not(is_discrete_state_on(self.change_count)))
        return sm.Or(sm.And(self.close, sm.Not(self.open), sm.Not(is_discrete_state_on(self.engaged))), begins)

    @property
    def opening_condition(self) -> sm.Basic:
        """The condition that the latch opens at this instant."""
        return sm.And(self.open, is_discrete_state_on(self.engaged), is_discrete_state_on(self.change_count))


@dataclass(frozen=True, slots=True)
class LatchEquations:
    """All latches of a mechanism.

    Attributes:
        each: Latches in order of declaration.
        jumps: Symbols of u+ - u- where latches close at this instant, one per speed.
    """

    each: tuple[MechanicalLatch, ...]
    jumps: tuple[sm.Symbol, ...]

    @property
    def rows(self) -> tuple[LatchedConstraintRow, ...]:
        """All rows of all latches, in the order of the latches."""
        return tuple(row for latch in self.each for row in latch.rows)

    @property
    def engaged_states(self) -> tuple[sm.Symbol, ...]:
        """For each row, the symbol of its latch's state (1 engaged, 0 released)."""
        return tuple(latch.engaged for latch in self.each for _ in latch.rows)

    @property
    def closing_flags(self) -> tuple[sm.Expr, ...]:
        """For each row, 1 where its latch closes at this instant, else 0."""
        return tuple(sm.Piecewise((1, latch.closing_condition), (0, True)) for latch in self.each for _ in latch.rows)

    @property
    def holding_flags(self) -> tuple[sm.Expr, ...]:
        """For each row, 1 where it is held after this instant, else 0."""
        holding_conditions = (
            sm.Or(item.closing_condition, sm.And(is_discrete_state_on(item.engaged), sm.Not(item.opening_condition)))
            for item in self.each
        )
        flags = (sm.Piecewise((1, each), (0, True)) for each in holding_conditions)
        return tuple(each for each, latch in zip(flags, self.each, strict=True) for _ in latch.rows)

    @property
    def forces(self) -> tuple[sm.Symbol, ...]:
        """Symbols of the force (lambda) of each row."""
        return tuple(row.force for row in self.rows)

    @property
    def impact_unknowns(self) -> tuple[sm.Symbol, ...]:
        """Symbols solved for where latches close: impulses, then jumps of speeds."""
        return (*(row.impact_impulse for row in self.rows), *self.jumps)

    @property
    def pending_condition(self) -> sm.Basic:
        """The condition that any latch closes or opens at this instant."""
        return sm.Or(*(sm.Or(latch.closing_condition, latch.opening_condition) for latch in self.each))

    def values_after_events(self, u: Sequence[tuple[sm.Symbol, sm.Symbol]]) -> list[tuple[sm.Symbol, sm.Expr]]:
        """Return the values that events set where latches close or open: speeds, and states of latches.

        Args:
            u: Of each speed that is a state: itself, and its symbol in ``jumps``.
        """
        values_after: list[tuple[sm.Symbol, sm.Expr]] = [(speed, speed + jump) for speed, jump in u]
        for latch in self.each:
            changed = sm.Piecewise((1, sm.Or(latch.closing_condition, latch.opening_condition)), (0, True))
            engaged = sm.Piecewise((1, latch.closing_condition), (0, latch.opening_condition), (latch.engaged, True))
            values_after += [(latch.engaged, engaged), (latch.change_count, latch.change_count + changed)]
            for row in latch.rows:
                values_after.append(
                    (row.impulse, sm.Piecewise((row.impact_impulse, latch.closing_condition), (row.impulse, True)))
                )
                values_after.append(
                    (row.held_at, sm.Piecewise((row.position, latch.closing_condition), (row.held_at, True)))
                )
        return values_after
