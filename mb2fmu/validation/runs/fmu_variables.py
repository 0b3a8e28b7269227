"""Variables of an FMU: units, roles, states; enough to set, read and compare them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from lxml import etree

from mb2fmu.fmu.file_tree import FileTree
from mb2fmu.units import BASE_UNITS, UnitOfMeasurement, parse_unit
from mb2fmu.validation.runs.fmu_description import FmuDescription, FmuVariableDescription

VariableRole = Literal["input", "parameter", "state", "result"]
"""``input`` and ``parameter`` are set; a ``state`` is set or compared; a ``result`` is compared."""


@dataclass(frozen=True, slots=True)
class ScalarVariable:
    """A scalar of doubles.

    Attributes:
        name: FMU name.
        reference: Value reference.
        role: What can be done with it.
        unit: As the FMU has it; empty: none.
        settable_before_initialization: Can be set before initialization.
    """

    name: str
    reference: int
    role: VariableRole
    unit: str
    settable_before_initialization: bool


@dataclass(frozen=True, slots=True)
class FmuVariables:
    """The variables of an FMU.

    Attributes:
        scalars: Scalars of doubles, by name; ``der(x)`` also where the derivative of the state x is called otherwise.
        states: Names of the continuous states, in the order of the FMU's functions.
        units: those that the FMU defines by base units, by name.
    """

    scalars: Mapping[str, ScalarVariable]
    states: tuple[str, ...]
    units: Mapping[str, UnitOfMeasurement]

    def unit(self, name: str) -> UnitOfMeasurement | None:
        """Return a unit by its name: defined by the FMU, else in Modelica's notation; None if it is neither."""
        if name in self.units:
            return self.units[name]
        try:
            return parse_unit(name)
        except ValueError:
            return None


def read_fmu_variables(tree: FileTree, description: FmuDescription) -> FmuVariables:
    """Read units and roles of the variables of an unpacked FMU."""
    root = etree.fromstring(tree["modelDescription.xml"], etree.XMLParser(resolve_entities=False, no_network=True))
    second = description.version == 2
    types = _read_units_of_types(root, second=second)
    states = tuple(state for state, _ in description.rates)
    scalars: dict[str, ScalarVariable] = {}
    for element in root.iterfind("ModelVariables/*"):
        name = str(element.get("name"))
        variable = description.variables.get(name)
        real = element.find("Real") if second else element
        if variable is None or real is None or not variable.is_double:
            continue
        unit = str(real.get("unit") or types.get(str(real.get("declaredType")), ""))
        role = "state" if name in states else _find_role(variable)
        scalars[name] = ScalarVariable(name, variable.reference, role, unit, variable.settable or role == "input")
    named = {f"der({state})": scalars[rate] for state, rate in description.rates if f"der({state})" not in scalars}
    return FmuVariables(scalars | named, states, _read_unit_definitions(root))


def _find_role(variable: FmuVariableDescription) -> VariableRole:
    """Return the role of a variable that is no state; a calculated parameter is a result."""
    if variable.causality == "input":
        return "input"
    return "parameter" if variable.causality in {"parameter", "structuralParameter"} else "result"


def _read_units_of_types(root: etree._Element, *, second: bool) -> dict[str, str]:
    """Return declared type → unit."""
    found = {}
    for element in root.iterfind("TypeDefinitions/*"):
        inner = element.find("Real") if second else element
        if inner is not None and inner.get("unit"):
            found[str(element.get("name"))] = str(inner.get("unit"))
    return found


def _read_unit_definitions(root: etree._Element) -> dict[str, UnitOfMeasurement]:
    """Return units by the FMU's own definitions."""
    found = {}
    for element in root.iterfind("UnitDefinitions/Unit"):
        base = element.find("BaseUnit")
        name = str(element.get("name"))
        if base is None:
            continue
        try:
            exponents = tuple(int(base.get(each, "0")) for each in BASE_UNITS)
            found[name] = UnitOfMeasurement(
                name, float(base.get("factor", "1")), float(base.get("offset", "0")), exponents
            )
        except ValueError:  # the checkers tell of it; Modelica's reading is left
            continue
    return found
