"""Latches that elements declare, before the mechanism is read."""

from __future__ import annotations

from dataclasses import dataclass

import sympy as sm


@dataclass(frozen=True, slots=True)
class DeclaredLatchRow:
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
class DeclaredLatch:
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
    rows: tuple[DeclaredLatchRow, ...]
    close: sm.Basic
    open: sm.Basic
    engaged: sm.Expr
    changes: sm.Expr
    stabilization: sm.Expr
    where: str = ""
