"""Variables of an FMU: units, roles, states; enough to set, read and compare them by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from mb2fmu.audit.description.description_records import DescribedModel
from mb2fmu.units import BASE_UNITS, UnitOfMeasurement, parse_unit
from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription, FmuVariableDescription

VariableRole = Literal["input", "parameter", "state", "result"]
"""``input`` and ``parameter`` are set; a ``state`` is set or compared; a ``result`` is compared."""


@dataclass(frozen=True, slots=True)
class FmuScalarVariable:
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

    scalars: Mapping[str, FmuScalarVariable]
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


def read_fmu_variables(description: FmuDescription) -> FmuVariables:
    """Return units and roles of the variables of an FMU."""
    states = tuple(state for state, _ in description.state_derivative_pairs)
    scalars: dict[str, FmuScalarVariable] = {}
    for declared in description.model.variables:
        name, variable = declared.name, description.variables[declared.name]
        if not variable.is_double:
            continue
        role = "state" if name in states else _find_role(variable)
        settable = variable.settable or role == "input"
        scalars[name] = FmuScalarVariable(name, variable.reference, role, declared.get("unit") or "", settable)
    named = {
        f"der({state})": scalars[rate]
        for state, rate in description.state_derivative_pairs
        if f"der({state})" not in scalars
    }
    return FmuVariables(scalars | named, states, _read_unit_definitions(description.model))


def _find_role(variable: FmuVariableDescription) -> VariableRole:
    """Return the role of a variable that is no state; a calculated parameter is a result."""
    if variable.causality == "input":
        return "input"
    return "parameter" if variable.causality in {"parameter", "structuralParameter"} else "result"


def _read_unit_definitions(model: DescribedModel) -> dict[str, UnitOfMeasurement]:
    """Return units by the FMU's own definitions."""
    units = {}
    for definition in model.units:
        base = definition.base
        if base is None:
            continue
        try:
            exponents = tuple(int(base.get(unit, "0")) for unit in BASE_UNITS)
            units[definition.name] = UnitOfMeasurement(
                definition.name, float(base.get("factor", "1")), float(base.get("offset", "0")), exponents
            )
        except ValueError:  # the checkers report it; Modelica's notation is left
            continue
    return units
