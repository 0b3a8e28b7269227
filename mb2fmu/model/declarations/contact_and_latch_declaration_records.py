"""Unilateral contacts and latches that elements declare, before the mechanism is read."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sm

from mb2fmu.model.quantity_declarations import ImpactOrder, RestitutionLaw


@dataclass(frozen=True, slots=True)
class DeclaredFriction:
    """Coulomb's friction of a contact, in the user's symbols.

    Attributes:
        slip: Speed of sliding, linear in speeds.
        coefficient: mu, a number or an expression of parameters.
        sliding, impulse: States: the sense of slip, the tangential impulse of the last impact.
        changes: State of the first contact with friction: how often modes have changed; None of others.
        force: Function of time that outputs may contain.
    """

    slip: sm.Expr
    coefficient: sm.Expr
    sliding: sm.Expr
    impulse: sm.Expr
    changes: sm.Expr | None
    force: sm.Expr


@dataclass(frozen=True, slots=True)
class DeclaredContact:
    """A gap that never becomes negative, in the user's symbols.

    Attributes:
        name: In front of the names of its variables.
        gap: g(q, t) >= 0.
        restitution: Coefficient of restitution, a number or an expression of parameters.
        rest_below: Speed after an impact below which the contact rests.
        stabilization: In 1/s, while it rests.
        law: What the coefficient is a ratio of.
        order: Of impacts at the same instant.
        resting, impulse, count: States: whether it rests, the impulse of its last impact, the number of its impacts.
        force: Function of time that outputs may contain: what the contact exerts while it rests.
        friction: None where there is none.
        where: ``file:line`` of the declaration.
    """

    name: str
    gap: sm.Expr
    restitution: sm.Expr
    rest_below: sm.Expr
    stabilization: sm.Expr
    law: RestitutionLaw
    order: ImpactOrder
    resting: sm.Expr
    impulse: sm.Expr
    count: sm.Expr
    force: sm.Expr
    friction: DeclaredFriction | None = None
    where: str = ""

    @property
    def expressions(self) -> tuple[sm.Expr, ...]:
        """All expressions of the declaration."""
        rough = (self.friction.slip, self.friction.coefficient) if self.friction else ()
        return (self.gap, self.restitution, self.rest_below, self.stabilization, *rough)

    @property
    def forces(self) -> tuple[sm.Expr, ...]:
        """Symbols of the contact forces, which outputs may contain."""
        return (self.force, *((self.friction.force,) if self.friction else ()))


@dataclass(frozen=True, slots=True)
class DeclaredLatchConstraintRow:
    """A row of position that a latch holds, in the user's symbols.

    Attributes:
        name: For messages.
        position: phi(q, t).
        impulse, held_at: States: of the last closing, and where it is held.
        force: Function of time that outputs may contain: what holds it.
    """

    name: str
    position: sm.Expr
    impulse: sm.Expr
    held_at: sm.Expr
    force: sm.Expr


@dataclass(frozen=True, slots=True)
class DeclaredMechanicalLatch:
    """Position rows that are held together from one condition until another, in the user's symbols.

    Attributes:
        name: In front of the names of its variables.
        rows: At least one.
        close, open: Conditions.
        engaged, changes: States: whether it is closed, how often it has changed.
        stabilization: In 1/s.
        where: ``file:line`` of the declaration.
    """

    name: str
    rows: tuple[DeclaredLatchConstraintRow, ...]
    close: sm.Basic
    open: sm.Basic
    engaged: sm.Expr
    changes: sm.Expr
    stabilization: sm.Expr
    where: str = ""

    @property
    def expressions(self) -> tuple[sm.Basic, ...]:
        """All expressions of the declaration."""
        return (self.close, self.open, self.stabilization, *(row.position for row in self.rows))

    @property
    def forces(self) -> tuple[sm.Expr, ...]:
        """Symbols of the forces that hold the rows, which outputs may contain."""
        return tuple(row.force for row in self.rows)
