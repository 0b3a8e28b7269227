"""Groups of variables: shared types, arrays, and terminals at which FMUs are connected.

Sources: FMI 3.0.2, sections 2.4.5 (type definitions), 2.4.7.6 (dimensions) and 2.4.9 (terminals and icons).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Literal

MemberKind = Literal["signal", "inflow", "outflow"]


@dataclass(frozen=True, slots=True)
class EnumerationItem:
    """One value of an enumeration type, and its meaning."""

    name: str
    value: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class TypeDefinition:
    """A type that several variables share.

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
        variable: In the FMU.
        kind: ``signal``: equal on both sides; ``inflow``, ``outflow``: sums to zero, positive into or out of the FMU.
    """

    name: str
    variable: str
    kind: MemberKind = "signal"


@dataclass(frozen=True, slots=True)
class Terminal:
    """Variables that are connected together to another FMU."""

    name: str
    members: tuple[TerminalMember, ...]
    description: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FmuArray:
    """An array variable of FMI 3.0, and the scalars that it holds.

    Attributes:
        name: FMI structured naming.
        value_reference: Beyond those of all scalars; as many follow it as the array has elements.
        causality: As in FMI.
        dimensions: Sizes.
        elements: Names of scalars, the last index running fastest.
        replaces: The scalars are in the array only; else they are variables too.
        start: Of inputs, one per element; else empty.
        unit: Of all elements; None where they differ.
        display_unit: See ``unit``.
        declared_type: See ``unit``.
        minimum: The lowest of the elements'; None where one has none.
        maximum: The highest of the elements'; None where one has none.
        nominal: The smallest of the elements'.
        description: One line.
    """

    name: str
    value_reference: int
    causality: Literal["input", "output"]
    dimensions: tuple[int, ...]
    elements: tuple[str, ...]
    replaces: bool
    start: tuple[float, ...] = ()
    unit: str | None = None
    display_unit: str | None = None
    declared_type: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    nominal: float | None = None
    description: str = ""

    @property
    def element_names(self) -> tuple[str, ...]:
        """Names of the elements as parts of the array: ``q[1]``, ``M[2,1]``."""
        places = itertools.product(*(range(1, size + 1) for size in self.dimensions))
        return tuple(f"{self.name}[{','.join(map(str, place))}]" for place in places)
