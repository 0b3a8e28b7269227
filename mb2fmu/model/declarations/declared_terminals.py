"""Terminals and arrays that a model declares for connections between units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.model.declarations.declared_arrays import DeclaredArray, shape_of
from mb2fmu.model.declarations.output_requests import OutputRequest
from mb2fmu.model.naming import is_variable_name, requested_names
from mb2fmu.model.source_location import caller
from mb2fmu.model.variables import AuxiliaryState, Coordinate, Input, Output, Parameter, Speed

if TYPE_CHECKING:
    from mb2fmu.model.model import Model

Connected = Literal["signal", "inflow", "outflow"]


@dataclass(frozen=True, slots=True)
class DeclaredMember:
    """One variable of a terminal: ``variable`` is a symbol of the model or the name of a variable."""

    name: str
    variable: sm.Expr | str
    kind: Connected = "signal"


@dataclass(frozen=True, slots=True)
class DeclaredTerminal:
    """A terminal as the user wrote it; see :meth:`Connections.terminal`."""

    name: str
    members: tuple[DeclaredMember, ...]
    description: str = ""
    where: str = ""


class Connections:
    """Part of ``Model``: how its unit is connected.

    Attributes:
        terminals: Those declared, in order.
        arrays: Those declared, in order.
    """

    terminals: list[DeclaredTerminal]
    arrays: list[DeclaredArray]

    def terminal(
        self,
        name: str,
        members: Mapping[str, sm.Expr | str],
        *,
        inflow: Iterable[str] = (),
        outflow: Iterable[str] = (),
        description: str = "",
    ) -> None:
        """Declare a terminal: variables that are connected together, like a flange of Modelica.

        An input that does work on one coordinate gets its terminal by itself; this is for all others.

        Example:
            >>> model.terminal("hand", {"f": push, "s": "hand.x", "v": "hand_speed.x"}, inflow=["f"])  # doctest: +SKIP

        Args:
            name: Of the terminal.
            members: Name in the terminal → symbol of an input, coordinate, speed, auxiliary state or parameter; or the
                name of such a variable or of an output, with its component (``tip.x``).
            inflow: Members that flow into the unit where positive (forces and torques on it); all connected ones sum to
                zero. The others are equal on both sides.
            outflow: Members that flow out of the unit where positive.
            description: One line.
        """
        flows: dict[str, Connected] = {**dict.fromkeys(outflow, "outflow"), **dict.fromkeys(inflow, "inflow")}
        strays = [flow for flow in flows if flow not in members]
        made = [DeclaredMember(member, variable, flows.get(member, "signal")) for member, variable in members.items()]
        made += [DeclaredMember(stray, "", flows[stray]) for stray in strays]
        self.terminals.append(DeclaredTerminal(name, tuple(made), description, caller()))

    def array(
        self,
        name: str,
        elements: Sequence[sm.Expr | str],
        *,
        shape: Sequence[int] | None = None,
        description: str = "",
    ) -> None:
        """Declare an array: one variable of a unit of FMI 3.0; units of FMI 2.0 have its scalars.

        Inputs and outputs stand in the array instead of by themselves. Coordinates, speeds, auxiliary states and their
        rates stand there beside: as an output that repeats them. Value references of scalars stay what they are.

        Example:
            >>> model.array("tau", [shoulder, elbow])  # doctest: +SKIP
            >>> model.array("q", ["shoulder.angle", "elbow.angle"])  # doctest: +SKIP

        Args:
            name: Of the array.
            elements: Symbols or names of inputs; or names of outputs with their component (``tip.x``); or coordinates,
                speeds and auxiliary states, and their rates as ``der(name)``. The last index runs fastest.
            shape: Sizes of its dimensions; one dimension unless given.
            description: One line.
        """
        made = DeclaredArray(name, tuple(elements), shape_of(elements, shape), description, caller())
        self.arrays.append(made)


def terminal_faults(model: Model) -> Iterator[Fault]:
    """Yield the faults of a model's terminals."""
    names = _names(model)
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


def resolved(model: Model) -> tuple[DeclaredTerminal, ...]:
    """Return the terminals of a faultless model, with names of variables in place of symbols."""
    names = _names(model)
    return tuple(
        DeclaredTerminal(
            terminal.name,
            tuple(DeclaredMember(m.name, names[m.variable], m.kind) for m in terminal.members),
            terminal.description,
            terminal.where,
        )
        for terminal in model.terminals
    )


def _member_faults(
    terminal: DeclaredTerminal, member: DeclaredMember, names: Mapping[sm.Expr | str, str]
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


def _names(model: Model) -> dict[sm.Expr | str, str]:
    """Return the name of each variable, by its symbol and by itself."""
    names: dict[sm.Expr | str, str] = {}
    for item in model.declared:
        if isinstance(item, OutputRequest):
            names.update((name, name) for name in requested_names(item))
        elif isinstance(item, Output):
            names[item.name] = item.name
        elif isinstance(item, Parameter | Input | Coordinate | Speed | AuxiliaryState):
            names[item.symbol] = names[item.name] = item.name
    return names
