"""Unilateral contacts that elements declare, before the mechanism is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm
from sympy.core.function import AppliedUndef

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.output_requests import OutputRequest
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.variables import ImpactOrder, Parameter, Restitution

if TYPE_CHECKING:
    from mb2fmu.model.model import Model

MOST_AT_ONCE = 3
"""Contacts whose modes are enumerated."""

MOST_PUSHED = 2
"""The same where each has six of them: with friction, by Poisson's law."""

ONE_TANGENT = (
    "give the rate at which what touches slides along one tangent: a rigid contact has friction in a plane; "
    "in space take Contact, which gives way, with kinetic and slip_speed"
)
"""What to do where a slip has two directions."""


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
    law: Restitution
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


def contact_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of a model's contacts."""
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
        yield from _slip_faults(contact, speeds)
    yield from _restitutions(model)
    for request in model.declared if model.own_contacts else ():
        if isinstance(request, OutputRequest) and request.kind in {"reaction_force", "reaction_torque"}:
            what = f"{request.name} is a reaction, and forces of contacts that rest are not in it yet"
            yield Fault(what, request.where, "leave it out, or ask for it in a model without impacts")
    yield from _crowd_faults(model)


def _crowd_faults(model: Model) -> Iterator[Fault]:
    """Yield faults of contacts that cannot stand together."""
    orders = {contact.order for contact in model.own_contacts}
    if len(orders) > 1:
        last = model.own_contacts[-1]
        what = f"{last.name} wants impacts {last.order}, and others want another order"
        yield Fault(what, last.where, "say the same of all contacts of a model")
    if orders == {"at once"} and len({contact.law for contact in model.own_contacts}) > 1:
        last = model.own_contacts[-1]
        what = f"impacts at once follow one law, and {last.name} says {last.law} where another says otherwise"
        yield Fault(what, last.where, "say the same law of all contacts of a model, or order='in turn'")
    rough = [contact for contact in model.own_contacts if contact.friction]
    if rough and len(model.own_contacts) > MOST_AT_ONCE:
        what = f"{len(model.own_contacts)} contacts are too many where one has friction: modes are enumerated"
        yield Fault(what, model.own_contacts[-1].where, f"take at most {MOST_AT_ONCE}, or leave out the friction")
    pushed = orders == {"at once"} and {contact.law for contact in rough} == {"poisson"}
    if pushed and len(model.own_contacts) > MOST_PUSHED:
        what = f"{len(model.own_contacts)} contacts at once with friction and Poisson's law are too many"
        yield Fault(what, rough[-1].where, f"take at most {MOST_PUSHED}, order='in turn' or law='newton'")
    if orders == {"at once"} and not rough and len(model.own_contacts) > MOST_AT_ONCE:
        what = f"{len(model.own_contacts)} contacts at once are too many: modes are enumerated"
        yield Fault(what, model.own_contacts[-1].where, f"take at most {MOST_AT_ONCE}, or order='in turn'")


def _restitutions(model: Model) -> Iterator[Fault]:
    """Yield restitution coefficients outside of [0, 1] at the values of the user's parameters."""
    values = {item.symbol: sm.sympify(item.value) for item in model.declared if isinstance(item, Parameter)}
    for contact in model.own_contacts:
        e = contact.restitution
        for _ in values:
            e = e.xreplace(values) if e.free_symbols & values.keys() else e
        if e.is_number and not 0 <= e <= 1:
            what = f"the restitution of {contact.name}, {contact.restitution}, is {float(e):g}"
            yield Fault(what, contact.where, "let parameters make it a number from 0 (plastic) to 1 (elastic)")


def _slip_faults(contact: DeclaredContact, speeds: Collection[sm.Basic]) -> Iterator[Fault]:
    """Yield faults of the slip of a contact with friction."""
    if contact.friction is None:
        return
    slip = contact.friction.slip
    rates = sorted(slip.atoms(sm.Derivative), key=str)
    if rates:
        what = f"the slip of {contact.name} contains {', '.join(map(str, rates))}"
        yield Fault(what, contact.where, "write it in the speeds of the model")
        return
    moving = sorted((each for each in slip.atoms(AppliedUndef) if each in speeds), key=str)
    if not moving:
        what = f"the slip of {contact.name}, {slip}, contains no speed"
        yield Fault(what, contact.where, "give the rate at which what touches slides along the surface")
    elif any(sm.diff(slip, first, second) != 0 for first in moving for second in moving):
        what = f"the slip of {contact.name}, {slip}, is not linear in the speeds"
        yield Fault(what, contact.where, ONE_TANGENT)
