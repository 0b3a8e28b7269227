"""Unilateral contacts that a model has: what elements declare, to be read with the mechanism."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm
from sympy.core.function import AppliedUndef

from mb2fmu.errors import Fault
from mb2fmu.model import mechanics as mechanics_source
from mb2fmu.model.requests import OutputRequest
from mb2fmu.variables import ImpactOrder, Parameter, Restitution

if TYPE_CHECKING:
    from mb2fmu.model.definition import Model

MOST_AT_ONCE = 3
"""Contacts whose modes are enumerated."""


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
        where: ``file:line`` of the declaration.
    """

    name: str
    gap: sm.Expr
    restitution: sm.Expr
    rest_below: sm.Expr
    stabilization: sm.Expr
    law: Restitution
    order: ImpactOrder
    resting: sm.Expr
    impulse: sm.Expr
    count: sm.Expr
    force: sm.Expr
    where: str = ""


def contact_faults(model: Model) -> Iterator[Fault]:
    """What is wrong with the contacts of a model."""
    coordinates = set(mechanics_source.coordinates(model.mechanics))
    speeds = set(mechanics_source.speeds(model.mechanics).all)
    for contact in model.own_contacts:
        functions = contact.gap.atoms(AppliedUndef, sm.Derivative)
        wrong = sorted({f for f in functions if isinstance(f, sm.Derivative) or f in speeds}, key=str)
        if wrong:
            what = f"the gap of {contact.name} contains {', '.join(map(str, wrong))}, and must contain no speeds"
            yield Fault(what, contact.where, "write it in coordinates, parameters and time")
        elif not coordinates & functions:
            what = f"the gap of {contact.name}, {contact.gap}, has no velocity: no coordinate stands in it"
            yield Fault(what, contact.where, "write it in the coordinates of what touches")
    yield from _restitutions(model)
    for request in model.declared if model.own_contacts else ():
        if isinstance(request, OutputRequest) and request.kind in {"reaction_force", "reaction_torque"}:
            what = f"{request.name} is a reaction, and forces of contacts that rest are not in it yet"
            yield Fault(what, request.where, "leave it out, or ask for it in a model without impacts")
    orders = {contact.order for contact in model.own_contacts}
    if len(orders) > 1:
        last = model.own_contacts[-1]
        what = f"{last.name} wants impacts {last.order}, and others do not"
        yield Fault(what, last.where, "say the same of all contacts of a model")
    if orders == {"at once"} and len({contact.law for contact in model.own_contacts}) > 1:
        last = model.own_contacts[-1]
        what = f"impacts at once follow one law, and {last.name} says {last.law} where another says otherwise"
        yield Fault(what, last.where, "say the same law of all contacts of a model, or order='in turn'")
    if orders == {"at once"} and len(model.own_contacts) > MOST_AT_ONCE:
        what = f"{len(model.own_contacts)} contacts at once are too many: modes are enumerated"
        yield Fault(what, model.own_contacts[-1].where, f"take at most {MOST_AT_ONCE}, or order='in turn'")


def _restitutions(model: Model) -> Iterator[Fault]:
    """Coefficients that parameters of the user's make more than elastic, or less than plastic."""
    values = {item.symbol: sm.sympify(item.value) for item in model.declared if isinstance(item, Parameter)}
    for contact in model.own_contacts:
        e = contact.restitution
        for _ in values:
            e = e.xreplace(values) if e.free_symbols & values.keys() else e
        if e.is_number and not 0 <= e <= 1:
            what = f"the restitution of {contact.name}, {contact.restitution}, is {float(e):g}"
            yield Fault(what, contact.where, "let parameters make it a number from 0 (plastic) to 1 (elastic)")
