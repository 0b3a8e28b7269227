"""Checks of the terminals that a model declares, and the names of their members."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.declared_terminals import DeclaredTerminal, DeclaredTerminalMember
from mb2fmu.model.declarations.output_requests import OutputRequest
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import AuxiliaryState, Coordinate, Input, Output, Parameter, Speed
from mb2fmu.model.variable_naming import is_variable_name, output_variable_names


def terminal_faults(model: Model) -> Iterator[Fault]:
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


def resolve_terminals(model: Model) -> tuple[DeclaredTerminal, ...]:
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
            names.update((name, name) for name in output_variable_names(item))
        elif isinstance(item, Output):
            names[item.name] = item.name
        elif isinstance(item, Parameter | Input | Coordinate | Speed | AuxiliaryState):
            names[item.symbol] = names[item.name] = item.name
    return names
