"""Physical quantities that follow from a unit of measurement alone.

Names are those of Modelica's library of quantities. A unit is recognized by its exponents of the base units, whatever
its prefix: ``mm`` measures a length. Where exponents are not enough (newton metres and joules, ``N.s/m`` and ``kg/s``)
the symbols decide that the unit is written with; where they do not help (``kg.m2/s2``) no quantity is claimed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from mb2fmu.fmu.interface.fmu_types_arrays_terminals import TypeDefinition
from mb2fmu.units import Exponent, parse_unit

_QUANTITIES_BY_UNIT = (
    ("m", "Length"),
    ("m2", "Area"),
    ("m3", "Volume"),
    ("rad", "Angle"),
    ("kg", "Mass"),
    ("s", "Time"),
    ("m/s", "Velocity"),
    ("m/s2", "Acceleration"),
    ("m/s3", "Jerk"),
    ("rad/s", "AngularVelocity"),
    ("rad/s2", "AngularAcceleration"),
    ("rad/s3", "AngularJerk"),
    ("kg.m2", "MomentOfInertia"),
    ("kg/m3", "Density"),
    ("N", "Force"),
    ("N.m/rad", "RotationalSpringConstant"),
    ("N.m.s/rad", "RotationalDampingConstant"),
    ("Pa", "Pressure"),
    ("W", "Power"),
    ("A", "ElectricCurrent"),
    ("V", "ElectricPotential"),
    ("Ohm", "Resistance"),
    ("K", "ThermodynamicTemperature"),
)

_QUANTITIES_BY_EXPONENTS: Mapping[tuple[Exponent, ...], str] = MappingProxyType(
    {parse_unit(unit).exponents: quantity for unit, quantity in _QUANTITIES_BY_UNIT}
)
_QUANTITIES_BY_SYMBOL: Mapping[tuple[Exponent, ...], tuple[tuple[str, str], ...]] = MappingProxyType(
    {
        parse_unit("J").exponents: (("N", "Torque"), ("J", "Energy"), ("Wh", "Energy")),
        parse_unit("N/m").exponents: (("N", "TranslationalSpringConstant"),),
        parse_unit("N.s/m").exponents: (("N", "TranslationalDampingConstant"),),
    }
)
"""Exponents → (ending of a symbol in the unit, quantity), the first that fits."""

_UNIT_SYMBOL_PATTERN = re.compile(r"[A-Za-z]+")


def find_physical_quantity(unit: str) -> str | None:
    """Return the physical quantity of ``unit``, or None if the unit does not determine it.

    Args:
        unit: In Modelica's notation.

    Raises:
        ValueError: If it is no unit.
    """
    exponents = parse_unit(unit).exponents
    symbols = _UNIT_SYMBOL_PATTERN.findall(unit)
    for ending, what in _QUANTITIES_BY_SYMBOL.get(exponents, ()):
        if any(symbol.endswith(ending) for symbol in symbols):
            return what
    return _QUANTITIES_BY_EXPONENTS.get(exponents)


class _VariableWithUnit(Protocol):
    """Protocol: anything with a name and a unit."""

    @property
    def name(self) -> str:
        """Name of the variable."""

    @property
    def unit(self) -> str:
        """Unit of the values."""


def map_units_to_quantity_types(variables: Sequence[_VariableWithUnit]) -> dict[str, TypeDefinition]:
    """Return unit → type, for units that determine their quantity, in the order of first use.

    A type is named as its quantity, with the unit behind it if the quantity is measured in several units; an underscore
    is appended as long as a variable has that name.

    Args:
        variables: All of a unit, for their names and units.
    """
    taken = {variable.name for variable in variables}
    types: dict[str, TypeDefinition] = {}
    for unit in dict.fromkeys(variable.unit for variable in variables):
        what = find_physical_quantity(unit)
        if what is None:
            continue
        several = any(other.quantity == what for other in types.values())
        name = f"{what}_{re.sub('[^A-Za-z0-9]+', '_', unit)}" if several else what
        while name in taken:
            name += "_"
        taken.add(name)
        types[unit] = TypeDefinition(name, what, unit)
    return types
