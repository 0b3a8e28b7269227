"""Latches that elements declare, before the mechanism is read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm
from sympy.core.function import AppliedUndef

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.output_requests import OutputRequest
from mb2fmu.model.sources import mechanics_source

if TYPE_CHECKING:
    from mb2fmu.model.model import Model


@dataclass(frozen=True, slots=True)
class DeclaredRow:
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
    rows: tuple[DeclaredRow, ...]
    close: sm.Basic
    open: sm.Basic
    engaged: sm.Expr
    changes: sm.Expr
    stabilization: sm.Expr
    where: str = ""


def latch_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of a model's latches."""
    coordinates = set(mechanics_source.coordinates(model.mechanics))
    speeds = set(mechanics_source.speeds(model.mechanics).all)
    for latch in model.own_latches:
        for row in latch.rows:
            functions = row.position.atoms(AppliedUndef, sm.Derivative)
            wrong = sorted({f for f in functions if isinstance(f, sm.Derivative) or f in speeds}, key=str)
            if wrong:
                what = f"what {row.name} holds contains {', '.join(map(str, wrong))}, and must contain no speeds"
                yield Fault(what, latch.where, "write it in coordinates, parameters and time")
            elif not coordinates & functions:
                what = f"what {row.name} holds, {row.position}, has no velocity: no coordinate stands in it"
                yield Fault(what, latch.where, "write it in the coordinates of what is held")
    for request in model.declared if model.own_latches else ():
        if isinstance(request, OutputRequest) and request.kind in {"reaction_force", "reaction_torque"}:
            what = f"{request.name} is a reaction, and forces of latches that are closed are not in it yet"
            yield Fault(what, request.where, "leave it out, or ask for it in a model without latches")


def latch_expressions(latch: DeclaredLatch) -> list[sm.Basic]:
    """Return all expressions of a latch."""
    return [latch.close, latch.open, latch.stabilization, *(row.position for row in latch.rows)]
