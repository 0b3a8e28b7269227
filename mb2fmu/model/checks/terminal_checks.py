"""Checks of the terminals and arrays that a model declares, and the names of their members."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.declarations.declared_terminals import DeclaredArray, DeclaredTerminal, DeclaredTerminalMember
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Input, Output, Parameter, Speed
from mb2fmu.model.variable_naming import is_variable_name, list_output_variable_names

_DERIVATIVE_PREFIX = "der("


def find_terminal_declaration_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of a model's terminals."""
    names = _variable_names(model)
    for name, count in Counter(terminal.name for terminal in model.terminals).items():
        if count > 1:
            yield Fault(f"{count} terminals are called {name!r}", model.where, "rename all but one")
    for terminal in model.terminals:
        if not is_variable_name(terminal.name):
            yield Fault(f"a terminal cannot be called {terminal.name!r}", terminal.where, "use letters, digits and _")
        if not terminal.members:
            yield Fault(f"the terminal {terminal.name} has no members", terminal.where, "name its variables")
        for member in terminal.members:
            yield from _member_faults(terminal, member, names)


def resolve_terminal_members(model: Model) -> tuple[DeclaredTerminal, ...]:
    """Return the terminals of a faultless model, with names of variables in place of symbols."""
    names = _variable_names(model)
    return tuple(
        DeclaredTerminal(
            terminal.name,
            tuple(DeclaredTerminalMember(m.name, names[m.variable], m.kind) for m in terminal.members),
            terminal.description,
            terminal.where,
        )
        for terminal in model.terminals
    )


def _member_faults(
    terminal: DeclaredTerminal, member: DeclaredTerminalMember, names: Mapping[sm.Expr | str, str]
) -> Iterator[Fault]:
    """Yield members of a terminal with a wrong name, or of a variable that the model does not have."""
    where = terminal.where
    if member.variable == "":
        yield Fault(f"{member.name!r} flows, but is no member of the terminal {terminal.name}", where, "add it")
    elif not is_variable_name(member.name):
        yield Fault(f"a member of {terminal.name} cannot be called {member.name!r}", where, "use letters, digits and _")
    elif member.variable not in names:
        remedy = "name an input, coordinate, speed, auxiliary state, parameter or output of the model"
        yield Fault(f"{terminal.name}.{member.name} is {member.variable}, which the model does not have", where, remedy)


def _variable_names(model: Model) -> dict[sm.Expr | str, str]:
    """Return the name of each variable, by its symbol and by itself."""
    names: dict[sm.Expr | str, str] = {}
    for item in model.declared:
        if isinstance(item, OutputRequest):
            names.update((name, name) for name in list_output_variable_names(item))
        elif isinstance(item, Output):
            names[item.name] = item.name
        elif isinstance(item, Parameter | Input | Coordinate | Speed | AuxiliaryState):
            names[item.symbol] = names[item.name] = item.name
    return names


def find_array_declaration_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of a model's arrays."""
    roles = _variable_roles(model)
    own = (item.name for item in model.declared if not isinstance(item, OutputRequest))
    names = {"time", *own, *(name for name in roles if isinstance(name, str))}
    for name, count in Counter(array.name for array in model.arrays).items():
        if count > 1:
            yield Fault(f"{count} arrays are called {name!r}", model.where, "rename all but one")
    held = Counter(roles[each][0] for array in model.arrays for each in array.elements if each in roles)
    for array in model.arrays:
        if not is_variable_name(array.name) or array.name in names:
            remedy = "use letters, digits and _, and no name of a variable"
            yield Fault(f"an array cannot be called {array.name!r}", array.where, remedy)
        if not array.elements or math.prod(array.shape) != len(array.elements) or min(array.shape, default=0) < 1:
            what = f"the array {array.name} has {len(array.elements)} elements, and the shape {array.shape}"
            yield Fault(what, array.where, "name one variable per place")
        yield from _element_faults(array, roles, held)


def _element_faults(
    array: DeclaredArray, roles: Mapping[sm.Expr | str, tuple[str, str]], held: Mapping[str, int]
) -> Iterator[Fault]:
    """Yield faults of an array's elements: unknown ones, ones in two arrays, and mixed roles."""
    for each in array.elements:
        if each not in roles:
            remedy = "name an input, coordinate, speed, auxiliary state, one of their rates as der(name), or an output"
            yield Fault(f"the array {array.name} has {each}, which the model does not have", array.where, remedy)
        elif roles[each][1] != "motion" and held[roles[each][0]] > 1:
            what = f"{roles[each][0]} stands in arrays more than once"
            yield Fault(what, array.where, "an input or output is an element of one array")
    kinds = {roles[each][1] for each in array.elements if each in roles}
    if len(kinds) > 1:
        what = f"the array {array.name} mixes inputs, outputs and the motion"
        yield Fault(what, array.where, "declare one array for each")


def resolve_array_members(model: Model) -> tuple[DeclaredArray, ...]:
    """Return the arrays of a faultless model, with names of variables in place of symbols."""
    roles = _variable_roles(model)
    return tuple(
        DeclaredArray(
            array.name, tuple(roles[each][0] for each in array.elements), array.shape, array.description, array.where
        )
        for array in model.arrays
    )


def _variable_roles(model: Model) -> dict[sm.Expr | str, tuple[str, str]]:
    """Return (name, role) of a variable by its symbol and by its name: ``input``, ``output``, or ``motion``."""
    roles: dict[sm.Expr | str, tuple[str, str]] = {}
    for item in model.declared:
        if isinstance(item, OutputRequest):
            roles.update((name, (name, "output")) for name in list_output_variable_names(item))
        elif isinstance(item, Output):
            roles[item.name] = (item.name, "output")
        elif isinstance(item, Input):
            roles[item.symbol] = roles[item.name] = (item.name, "input")
        elif isinstance(item, Coordinate | Speed | AuxiliaryState):
            roles[item.symbol] = roles[item.name] = (item.name, "motion")
            roles[f"{_DERIVATIVE_PREFIX}{item.name})"] = (f"{_DERIVATIVE_PREFIX}{item.name})", "motion")
    return roles
