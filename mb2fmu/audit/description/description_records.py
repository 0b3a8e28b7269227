"""Content of a ``modelDescription.xml`` as plain records: right or wrong, complete or not."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

FLOATS = frozenset({"Real", "Float32", "Float64"})
INTEGERS = frozenset({"Integer", "Int8", "UInt8", "Int16", "UInt16", "Int32", "UInt32", "Int64", "UInt64"})
RANGES = {
    "Integer": (-(2**31), 2**31 - 1),
    **{f"Int{bits}": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": (0, 2**bits - 1) for bits in (8, 16, 32, 64)},
}
INTERFACE_TYPES = ("ModelExchange", "CoSimulation", "ScheduledExecution")
DESCRIPTION = "modelDescription.xml"
TERMINALS = "terminalsAndIcons/terminalsAndIcons.xml"


@dataclass(frozen=True, slots=True)
class ArrayDimension:
    """One dimension of an FMI 3 array: a number, or the value of a variable."""

    start: str | None
    reference: str | None


@dataclass(frozen=True, eq=False)
class DescribedVariable:
    """One variable. Attributes that are not written are filled in as the standards say.

    Attributes:
        index: Position in the list, from 1.
        name: As written.
        type: ``Real``, ``Float64``, …: name of its element.
        reference: Value reference; None if it is missing or no number.
        causality: With the default.
        variability: With the default.
        initial: With the default; empty where none is allowed.
        start: Start values as written; None if there are none.
        written: All attributes as written, of the variable and of its type element.
        declared: Attributes of the declared type: defaults of ``unit``, ``min`` and so on.
        dimensions: Of an FMI 3 array.
        aliases: Other names, with their attributes (FMI 3).
        annotations: Type of an annotation → its text, or what its children call names (FMI 3).
        line: In the file.
    """

    index: int
    name: str
    type: str
    reference: int | None
    causality: str
    variability: str
    initial: str
    start: tuple[str, ...] | None
    written: Mapping[str, str]
    declared: Mapping[str, str] = field(default_factory=dict)
    dimensions: tuple[ArrayDimension, ...] = ()
    aliases: tuple[Mapping[str, str], ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    line: int = 0

    def get(self, name: str) -> str | None:
        """Return an attribute: the variable's own, or else its type's."""
        return self.written.get(name, self.declared.get(name))

    def number(self, name: str) -> float | None:
        """Return an attribute as a number; None if it is not there or none."""
        return parse_xml_number(self.get(name))

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a Boolean attribute."""
        value = self.written.get(name)
        return default if value is None else value.strip() in {"true", "1"}

    @property
    def is_float(self) -> bool:
        """A floating point variable."""
        return self.type in FLOATS

    @property
    def clocked(self) -> bool:
        """Whether its value exists only while a clock ticks."""
        return bool(self.written.get("clocks", "").strip())

    @property
    def location_in_file(self) -> str:
        """Place in the file, for a message."""
        return f'{DESCRIPTION}:{self.line}, variable "{self.name}"'


@dataclass(frozen=True, slots=True)
class DescribedUnknown:
    """One unknown of the model structure, with its declared dependencies.

    Attributes:
        list: ``OutputDeclarations``, ``Derivatives``, ``InitialUnknowns``, ``EventIndicators`` or ``ClockedStates``.
        number: Reference as written: index (FMI 2) or value reference (FMI 3).
        variable: The variable; None if the reference is invalid.
        dependencies: Declared dependencies, as written; None if not declared.
        targets: The variables of ``dependencies``; None where there is no such one.
        kinds: As written; None if there are none.
        line: In the file.
    """

    list: str
    number: str
    variable: DescribedVariable | None
    dependencies: tuple[str, ...] | None
    targets: tuple[DescribedVariable | None, ...]
    kinds: tuple[str, ...] | None
    line: int

    @property
    def location_in_file(self) -> str:
        """Place in the file, for a message."""
        name = f' of "{self.variable.name}"' if self.variable else ""
        return f"{DESCRIPTION}:{self.line}, ModelStructure/{self.list}{name}"


@dataclass(frozen=True, slots=True)
class DescribedTerminalMember:
    """One variable of a terminal; ``kind`` is ``signal``, ``inflow`` or ``outflow``."""

    name: str
    variable: str
    kind: str


@dataclass(frozen=True, slots=True)
class DescribedUnit:
    """A unit: exponents and factor as written, display units by name."""

    name: str
    base: Mapping[str, str] | None
    display: Mapping[str, Mapping[str, str]]
    display_names: tuple[str, ...]
    line: int


@dataclass(frozen=True, slots=True)
class DescribedType:
    """A declared type: its element's name, attributes, and the items of an enumeration."""

    name: str
    type: str
    attributes: Mapping[str, str]
    items: tuple[Mapping[str, str], ...]
    line: int


@dataclass(frozen=True)
class DescribedModel:
    """A whole description.

    Attributes:
        version: 2 or 3.
        attributes: Of the root element.
        interfaces: Kind → its attributes.
        sources: Kind → source files that FMI 2 lists there.
        units: As they come.
        types: As they come.
        categories: Names of the log categories.
        experiment: Attributes of the default experiment.
        variables: As they come.
        unknowns: Entries of the model structure, all lists.
        lists: Which lists of the model structure are there (FMI 2 leaves empty ones out).
    """

    version: int
    attributes: Mapping[str, str]
    interfaces: Mapping[str, Mapping[str, str]]
    sources: Mapping[str, tuple[str, ...]]
    units: tuple[DescribedUnit, ...]
    types: tuple[DescribedType, ...]
    categories: tuple[str, ...]
    experiment: Mapping[str, str]
    variables: tuple[DescribedVariable, ...]
    unknowns: tuple[DescribedUnknown, ...]
    lists: frozenset[str]

    def model_structure_entries(self, name: str) -> tuple[DescribedUnknown, ...]:
        """Return entries of one list."""
        return tuple(unknown for unknown in self.unknowns if unknown.list == name)

    def experiment_number(self, name: str, otherwise: float) -> float:
        """Return a number of the default experiment; ``otherwise`` where it is absent or no number."""
        number = parse_xml_number(self.experiment.get(name))
        return otherwise if number is None else number

    def flag(self, interface: str, name: str) -> bool:
        """Return a capability flag."""
        return self.interfaces.get(interface, {}).get(name, "false").strip() in {"true", "1"}

    def find_referenced_variable(self, reference: str | None) -> DescribedVariable | None:
        """Return the variable that a derivative or dependency refers to: index in FMI 2, value reference in FMI 3."""
        try:
            position = int(reference or "")
        except ValueError:
            return None
        if self.version == 2:
            return self.variables[position - 1] if 1 <= position <= len(self.variables) else None
        return self.variables_by_reference.get(position)

    @cached_property
    def variables_by_reference(self) -> Mapping[int, DescribedVariable]:
        """Value reference → first variable that has it."""
        variables: dict[int, DescribedVariable] = {}
        for variable in self.variables:
            if variable.reference is not None:
                variables.setdefault(variable.reference, variable)
        return variables

    @cached_property
    def states(self) -> tuple[DescribedVariable, ...]:
        """Continuous states in the order of the derivatives; ambiguous ones are left out."""
        derivatives = (unknown.variable for unknown in self.model_structure_entries("Derivatives"))
        targets = (
            self.find_referenced_variable(variable.written.get("derivative")) for variable in derivatives if variable
        )
        return tuple(state for state in targets if state)

    @cached_property
    def state_set(self) -> frozenset[DescribedVariable]:
        """The continuous states as a set, for quick membership tests."""
        return frozenset(self.states)

    @cached_property
    def independent(self) -> DescribedVariable | None:
        """The independent variable, usually time."""
        return next((variable for variable in self.variables if variable.causality == "independent"), None)

    def size(self, variable: DescribedVariable) -> int:
        """Return the number of values of a variable, with the start values of its dimensions."""
        product = 1
        for dimension in variable.dimensions:
            length = dimension.start
            if length is None:
                source = self.find_referenced_variable(dimension.reference)
                length = source.start[0] if source and source.start else "1"
            product *= int(parse_xml_number(length) or 0)
        return product

    def enumeration_values(self, variable: DescribedVariable) -> tuple[int, ...]:
        """Return values of an enumeration; none for other types."""
        type_name = variable.written.get("declaredType")
        declared_items = next((item.items for item in self.types if item.name == type_name), ())
        values = (parse_xml_number(item.get("value")) for item in declared_items)
        return tuple(int(item) for item in values if item is not None)

    def identifier(self, interface: str) -> str:
        """Name of the library."""
        return self.interfaces[interface].get("modelIdentifier", "")

    @property
    def token(self) -> str:
        """GUID or instantiation token."""
        return self.attributes.get("guid" if self.version == 2 else "instantiationToken", "")


def parse_xml_number(text: str | None) -> float | None:
    """Return a number as XML Schema writes it; None if the text is none."""
    if text is None:
        return None
    text = text.strip()
    special = {"INF": math.inf, "+INF": math.inf, "-INF": -math.inf, "NaN": math.nan}
    if text in special:
        return special[text]
    try:
        return float(text)
    except ValueError:
        return None
