"""Checks of what elements declare: unilateral contacts, latches, closed loops and added loads."""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import sympy as sm
from sympy.core.function import AppliedUndef

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.added_loads_and_elements import (
    add_bodies_to_mechanics,
    add_loads_to_mechanics,
    can_add_load,
)
from mb2fmu.model.declarations.declared_content_and_experiment import map_inputs_to_rates
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS, OutputRequest
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import AuxiliaryState, Input, Parameter
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics, RecordedLoad
from mb2fmu.units import are_compatible_units

if TYPE_CHECKING:
    from mb2fmu.model.declarations.contact_and_latch_declaration_records import DeclaredContact

MAX_SIMULTANEOUS_CONTACTS = 3
"""Contacts whose modes are enumerated."""


MAX_POISSON_FRICTION_CONTACTS = 2
"""The same where each has six of them: with friction, by Poisson's law."""


ONE_TANGENT_REMEDY = (
    "give the rate at which what touches slides along one tangent: a rigid contact has friction in a plane; "
    "in space take Contact, which gives way, with kinetic and slip_speed"
)
"""What to do where a slip has two directions."""


def find_contact_declaration_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of a model's contacts."""
    _, speeds = _list_motion_functions(model)
    for contact in model.declared_contacts:
        what = f"the gap of {contact.name}"
        yield from _position_faults(model, contact.gap, what, "touches", contact.where)
        yield from _slip_faults(contact, speeds)
    yield from _restitution_faults(model)
    if model.declared_contacts:
        yield from _reaction_faults(model, "contacts that rest", "impacts")
    yield from _combination_faults(model)


def _list_motion_functions(model: Model) -> tuple[set[sm.Basic], set[sm.Basic]]:
    """Return what expressions of positions may contain and what those of speeds may: a robot's links', too."""
    coordinates: set[sm.Basic] = set(mechanics_source.coordinates(model.mechanics))
    speeds: set[sm.Basic] = set(mechanics_source.speeds(model.mechanics).all)
    if isinstance(model.mechanics, RecordBasedMechanics):
        for (what, _), components in model.mechanics.sensed.items():
            (coordinates if what == "position" else speeds).update(components)
    return coordinates, speeds


def _position_faults(model: Model, position: sm.Expr, what: str, state: str, where: str) -> Iterator[Fault]:
    """Yield the fault of a gap or row that contains speeds, no coordinate, or what moves at a rate that is not known.

    Args:
        model: The model.
        position: The gap or row.
        what: It is, for messages.
        state: Of what it is the position: ``touches`` or ``is held``.
        where: It was declared.
    """
    coordinates, speeds = _list_motion_functions(model)
    functions = position.atoms(AppliedUndef, sm.Derivative)
    yield from _unknown_rate_faults(model, functions, what, where)
    wrong = sorted({f for f in functions if isinstance(f, sm.Derivative) or f in speeds}, key=str)
    if wrong:
        fault = f"{what} contains {', '.join(map(str, wrong))}, and must contain no speeds"
        yield Fault(fault, where, "write it in coordinates, parameters and time")
    elif not coordinates & functions:
        fault = f"{what}, {position}, has no velocity: no coordinate stands in it"
        yield Fault(fault, where, f"write it in the coordinates of what {state}")


def _unknown_rate_faults(model: Model, functions: AbstractSet[sm.Basic], what: str, where: str) -> Iterator[Fault]:
    """Yield the fault of a position that contains a state of the model's own, or an input whose rates are no inputs.

    Impacts and held rows need the position's first and second derivative; those of such a symbol would count as zero.
    """
    inputs = {item.symbol: item for item in model.declared if isinstance(item, Input)}
    rates = map_inputs_to_rates(list(inputs.values()))
    states = {item.symbol for item in model.declared if isinstance(item, AuxiliaryState)}
    for symbol in sorted(functions & (states | inputs.keys()), key=str):
        name = symbol.func.__name__ if isinstance(symbol, AppliedUndef) else str(symbol)
        declaration = f"model.input({name}, …, rates=True)"
        if symbol in states:
            problem = f"{what} contains the state {name}: its second derivative by time is not known"
            yield Fault(
                problem, where, f"write its motion as an expression of time, or set it from outside: {declaration}"
            )
        elif rates.get(inputs[symbol]) not in rates:
            problem = f"{what} contains the input {name}, and its first and second derivatives by time are no inputs"
            yield Fault(problem, where, f"declare them too: {declaration}; set them with {name}")


def _reaction_faults(model: Model, elements: str, missing: str) -> Iterator[Fault]:
    """Yield a fault for each reaction, which does not contain the forces of some elements."""
    for request in model.declared:
        if isinstance(request, OutputRequest) and OUTPUT_KINDS[request.kind].subject == "joint or bodies":
            what = f"{request.name} is a reaction, and forces of {elements} are not in it yet"
            yield Fault(what, request.where, f"leave it out, or request it in a model without {missing}")


def _combination_faults(model: Model) -> Iterator[Fault]:
    """Yield faults of contacts that cannot stand together."""
    orders = {contact.order for contact in model.declared_contacts}
    if len(orders) > 1:
        last = model.declared_contacts[-1]
        what = f"{last.name} wants {last.order} impacts, and others want another order"
        yield Fault(what, last.where, "say the same of all contacts of a model")
    if orders == {"simultaneous"} and len({contact.law for contact in model.declared_contacts}) > 1:
        last = model.declared_contacts[-1]
        what = f"simultaneous impacts follow one law, and {last.name} says {last.law} where another says otherwise"
        yield Fault(what, last.where, "say the same law of all contacts of a model, or order='sequential'")
    rough = [contact for contact in model.declared_contacts if contact.friction]
    if rough and len(model.declared_contacts) > MAX_SIMULTANEOUS_CONTACTS:
        what = f"{len(model.declared_contacts)} contacts are too many where one has friction: modes are enumerated"
        yield Fault(
            what,
            model.declared_contacts[-1].where,
            f"take at most {MAX_SIMULTANEOUS_CONTACTS}, or leave out the friction",
        )
    pushed = orders == {"simultaneous"} and {contact.law for contact in rough} == {"poisson"}
    if pushed and len(model.declared_contacts) > MAX_POISSON_FRICTION_CONTACTS:
        what = f"{len(model.declared_contacts)} simultaneous contacts with friction and Poisson's law are too many"
        yield Fault(
            what, rough[-1].where, f"take at most {MAX_POISSON_FRICTION_CONTACTS}, order='sequential' or law='newton'"
        )
    if orders == {"simultaneous"} and not rough and len(model.declared_contacts) > MAX_SIMULTANEOUS_CONTACTS:
        what = f"{len(model.declared_contacts)} simultaneous contacts are too many: modes are enumerated"
        yield Fault(
            what, model.declared_contacts[-1].where, f"take at most {MAX_SIMULTANEOUS_CONTACTS}, or order='sequential'"
        )


def _restitution_faults(model: Model) -> Iterator[Fault]:
    """Yield restitution coefficients outside of [0, 1] at the values of the user's parameters."""
    values = {item.symbol: sm.sympify(item.value) for item in model.declared if isinstance(item, Parameter)}
    for contact in model.declared_contacts:
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
        yield Fault(what, contact.where, ONE_TANGENT_REMEDY)


def find_latch_declaration_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of a model's latches."""
    for latch in model.declared_latches:
        for row in latch.rows:
            what = f"what {row.name} holds"
            yield from _position_faults(model, row.position, what, "is held", latch.where)
    if model.declared_latches:
        yield from _reaction_faults(model, "latches that are closed", "latches")


def find_loop_declaration_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of declared closed forms."""
    q = set(mechanics_source.coordinates(model.mechanics))
    for loop in model.loops:
        given = [set(branch) for branch in loop.branches]
        if not given:
            yield Fault(f"{loop.name} has no closed form", loop.where, "give a dict {coordinate: expression}")
            continue
        if any(keys != given[0] for keys in given) or len(given[0]) != len(loop.rows):
            what = f"each branch of {loop.name} must give the same {len(loop.rows)} coordinates, one per row"
            yield Fault(what, loop.where, "give one expression per dependent coordinate")
        for key in sorted(given[0] - q, key=str):
            yield Fault(
                f"{key}, which {loop.name} gives, is no coordinate of the mechanics", loop.where, "give one of q"
            )
        if len(loop.relation) not in (0, len(loop.rows)):
            what = f"{loop.name} has {len(loop.relation)} rows of its relation for {len(loop.rows)} constraints"
            yield Fault(what, loop.where, "give one per dependent coordinate, or none")


def find_added_load_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of what was added."""
    yield from model.element_faults
    remedy = "give (point or frame, vector), or an actuator of SymPy"
    if isinstance(model.mechanics, RecordBasedMechanics):
        loads = [added.load for added in model.added_loads if isinstance(added.load, RecordedLoad)]
        loads += model.mechanics.loads
        yield from model.mechanics.load_faults(loads)
        yield from _unit_faults(model, loads)
        remedy = "give (joint, effort), or what the mechanics' force and torque return"
    for added in model.added_loads:
        if not can_add_load(added.load, model.mechanics):
            yield Fault(f"{added.load!r} cannot be added as a load", added.where, remedy)


def _unit_faults(model: Model, loads: Iterable[RecordedLoad]) -> Iterator[Fault]:
    """Yield each component that is a declared quantity of another dimension than a force or torque."""
    declared = {item.symbol: item for item in model.declared if isinstance(item, Input | Parameter | AuxiliaryState)}
    for load in loads:
        wanted = "N" if load.load_kind == "force" else "N.m"
        for component in load.components if isinstance(load.components, tuple) else ():
            item = declared.get(component) or declared.get(-component if isinstance(component, sm.Expr) else component)
            if item is not None and not _has_dimension(item.unit, wanted):
                what = f"a component of {load} is {item.name}, which is in {item.unit}, not in {wanted}"
                yield Fault(what, load.where, f"declare {item.name} in {wanted}, or multiply it by what makes it one")


def _has_dimension(unit: str, wanted: str) -> bool:
    """Return whether a unit is of a dimension; one that cannot be read has a fault elsewhere."""
    try:
        return are_compatible_units(unit, wanted)
    except ValueError:
        return True


def add_elements_to_mechanics(model: Model) -> Model:
    """Return the model with all loads and bodies in its mechanics; the same model where nothing can be added."""
    loads = [added.load for added in model.added_loads if can_add_load(added.load, model.mechanics)]
    if not loads and not model.added_bodies:
        return model
    whole = copy.copy(model)
    whole.mechanics = add_loads_to_mechanics(add_bodies_to_mechanics(model.mechanics, model.added_bodies), loads)
    return whole
