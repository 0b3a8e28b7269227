"""How variables are grouped: types that they share, and terminals where units are connected.

Sources: FMI 3.0.2, sections 2.4.5 (type definitions) and 2.4.9 (terminals and icons).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MemberKind = Literal["signal", "inflow", "outflow"]


@dataclass(frozen=True, slots=True)
class EnumerationItem:
    """One value of an enumeration type, and what it means."""

    name: str
    value: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class TypeDefinition:
    """A type that variables share.

    Attributes:
        name: Unlike that of every other type and of every variable.
        quantity: Physical quantity, e.g. ``Torque``; empty for enumerations.
        unit: Of the quantity; None for enumerations.
        items: Of an enumeration, by ascending value; empty for real numbers.
        description: One line.
    """

    name: str
    quantity: str = ""
    unit: str | None = None
    items: tuple[EnumerationItem, ...] = ()
    description: str = ""


@dataclass(frozen=True, slots=True)
class TerminalMember:
    """One variable of a terminal.

    Attributes:
        name: In the terminal.
        variable: In the unit.
        kind: ``signal``: equal on both sides; ``inflow``, ``outflow``: sums to zero, positive into or out of the unit.
    """

    name: str
    variable: str
    kind: MemberKind = "signal"


@dataclass(frozen=True, slots=True)
class Terminal:
    """Variables that belong together where units are connected."""

    name: str
    members: tuple[TerminalMember, ...]
    description: str = ""
