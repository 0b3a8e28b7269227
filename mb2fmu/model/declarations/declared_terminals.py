"""Terminals and arrays that a model declares for connections between FMUs.

An array is one variable in FMUs of FMI 3.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import sympy as sm

from mb2fmu.model.source_location import find_user_source_line

ConnectionKind = Literal["signal", "inflow", "outflow"]


@dataclass(frozen=True, slots=True)
class DeclaredArray:
    """An array as the user wrote it; see :meth:`mb2fmu.Model.array`.

    Attributes:
        name: Of the array.
        elements: Symbols or names of variables, the last index running fastest.
        shape: Sizes of its dimensions.
        description: One line.
        where: ``file:line``.
    """

    name: str
    elements: tuple[sm.Expr | str, ...]
    shape: tuple[int, ...]
    description: str = ""
    where: str = ""


def _array_shape(elements: Sequence[object], shape: Sequence[int] | None) -> tuple[int, ...]:
    """Return the shape as declared, or that of a list."""
    return (len(elements),) if shape is None else tuple(int(size) for size in shape)


@dataclass(frozen=True, slots=True)
class DeclaredTerminalMember:
    """One variable of a terminal: ``variable`` is a symbol of the model or the name of a variable."""

    name: str
    variable: sm.Expr | str
    kind: ConnectionKind = "signal"


@dataclass(frozen=True, slots=True)
class DeclaredTerminal:
    """A terminal as the user wrote it; see :meth:`TerminalAndArrayDeclarations.terminal`."""

    name: str
    members: tuple[DeclaredTerminalMember, ...]
    description: str = ""
    where: str = ""


class TerminalAndArrayDeclarations:
    """Part of ``Model``: how its FMU is connected.

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
            inflow: Members that flow into the FMU where positive (forces and torques on it); all connected ones sum to
                zero. The others are equal on both sides.
            outflow: Members that flow out of the FMU where positive.
            description: One line.
        """
        flows: dict[str, ConnectionKind] = {**dict.fromkeys(outflow, "outflow"), **dict.fromkeys(inflow, "inflow")}
        strays = [flow for flow in flows if flow not in members]
        made = [
            DeclaredTerminalMember(member, variable, flows.get(member, "signal"))
            for member, variable in members.items()
        ]
        made += [DeclaredTerminalMember(stray, "", flows[stray]) for stray in strays]
        self.terminals.append(DeclaredTerminal(name, tuple(made), description, find_user_source_line()))

    def array(
        self,
        name: str,
        elements: Sequence[sm.Expr | str],
        *,
        shape: Sequence[int] | None = None,
        description: str = "",
    ) -> None:
        """Declare an array: one variable of an FMU of FMI 3.0; FMUs of FMI 2.0 have its scalars.

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
        made = DeclaredArray(name, tuple(elements), _array_shape(elements, shape), description, find_user_source_line())
        self.arrays.append(made)
