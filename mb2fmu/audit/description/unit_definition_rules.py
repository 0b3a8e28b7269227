"""Unit and type definitions, and how variables use them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from mb2fmu.audit.description.description_records import (
    DESCRIPTION,
    FLOATS,
    DescribedModel,
    DescribedType,
    DescribedUnit,
    DescribedVariable,
    parse_xml_number,
)
from mb2fmu.audit.rules_and_findings import RuleViolation
from mb2fmu.units import BASE_UNITS, Exponent, UnitOfMeasurement, parse_unit

_TRUE_TEXTS = frozenset({"true", "1"})


def check_unit_definitions(description: DescribedModel) -> Iterator[RuleViolation]:
    """Yield violations of the rules about unit and type definitions and their use."""
    names_by_kind = {
        "unit": [type_definition.name for type_definition in description.units],
        "type": [type_definition.name for type_definition in description.types],
    }
    for definition_kind, names in names_by_kind.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield RuleViolation(
                    f"{definition_kind}s.unique", f'{definition_kind} "{name}" is defined {count} times', DESCRIPTION
                )
            elif not name.strip():
                yield RuleViolation(
                    f"{definition_kind}s.unique", f"a {definition_kind} is defined without a name", DESCRIPTION
                )
    for unit in description.units:
        yield from _check_unit(unit)
    for type_definition in description.types:
        yield from _check_type(description, type_definition)
    units = {unit.name: unit for unit in description.units}
    types = {type_definition.name: type_definition for type_definition in description.types}
    for variable in description.variables:
        yield from _check_variable_units(variable, units, types)
    yield from _check_derivative_units(description, units)
    used_units = {variable.get("unit") for variable in description.variables} | {
        type_definition.attributes.get("unit") for type_definition in description.types
    }
    for unit in description.units:
        if unit.name not in used_units:
            yield RuleViolation(
                "units.unused", f'unit "{unit.name}" is used by no variable and no type', f"{DESCRIPTION}:{unit.line}"
            )


def _read_exponents(unit: DescribedUnit) -> tuple[int, ...] | None:
    """Return the exponents of the base units; None if missing or not whole."""
    if unit.base is None:
        return None
    try:
        return tuple(int(unit.base.get(name, "0")) for name in BASE_UNITS)
    except ValueError:
        return None


def _read_factor(attributes: Mapping[str, str]) -> float | None:
    """Return the factor to the base unit, 1 by default; None if it is no number."""
    return parse_xml_number(attributes.get("factor", "1"))


def _check_unit(unit: DescribedUnit) -> Iterator[RuleViolation]:
    """Yield faults of a unit: doubled display units, useless factors, no base, or a name that says otherwise."""
    place = f'{DESCRIPTION}:{unit.line}, unit "{unit.name}"'
    for name, count in Counter(unit.display_names).items():
        if count > 1:
            yield RuleViolation("units.unique", f'display unit "{name}" is defined {count} times', place)
    for element, attributes in (("BaseUnit", unit.base), *unit.display.items()):
        if attributes is not None:
            factor = _read_factor(attributes)
            if attributes.get("inverse") in _TRUE_TEXTS and parse_xml_number(attributes.get("offset", "0")) != 0.0:
                yield RuleViolation("units.factor", f"{element}: inverse, and an offset", place)
            if factor is None or not math.isfinite(factor) or factor == 0.0:
                yield RuleViolation(
                    "units.factor", f"{element}: factor {attributes.get('factor')} converts nothing", place
                )
    if unit.base is None:
        yield RuleViolation("units.base", "no exponents of base units: importers cannot check or convert it", place)
        return
    try:
        named_unit = parse_unit(unit.name)
    except ValueError:
        return
    yield from _compare_with_name(unit, named_unit, place)
    for name, attributes in unit.display.items():
        yield from _compare_display_unit(unit, name, attributes, place)


def _compare_with_name(unit: DescribedUnit, named_unit: UnitOfMeasurement, place: str) -> Iterator[RuleViolation]:
    """Compare the definition of a unit with its name."""
    assert unit.base is not None
    factor, wrong_exponents = _read_factor(unit.base), find_wrong_unit_exponents(unit, named_unit)
    if wrong_exponents:
        yield RuleViolation("units.exponents", wrong_exponents, place)
    elif factor is not None and not math.isclose(factor, named_unit.factor, rel_tol=1e-6):
        yield RuleViolation(
            "units.exponents", f"its name says a factor of {named_unit.factor:g}, its BaseUnit {factor:g}", place
        )
    offset = parse_xml_number(unit.base.get("offset", "0"))
    if offset is not None and not math.isclose(offset, named_unit.offset, rel_tol=1e-6, abs_tol=1e-9):
        yield RuleViolation(
            "units.exponents", f"its name says an offset of {named_unit.offset:g}, its BaseUnit {offset:g}", place
        )


def find_wrong_unit_exponents(unit: DescribedUnit, named_unit: UnitOfMeasurement) -> str:
    """Return how the exponents of a unit's definition differ from those of its name; empty if they do not."""
    exponents = _read_exponents(unit)
    # Who leaves rad out of the exponents counts it as the number 1, as SI does.
    exponents_without_radian = tuple(
        exponent for exponent, base in zip(named_unit.exponents, BASE_UNITS, strict=True) if base != "rad"
    )
    if exponents is None or exponents in {named_unit.exponents, (*exponents_without_radian, 0)}:
        return ""
    named, declared = _format_exponents(named_unit.exponents), _format_exponents(exponents)
    return f"its name says {named}, its exponents say {declared}"


def _compare_display_unit(
    unit: DescribedUnit, name: str, attributes: Mapping[str, str], place: str
) -> Iterator[RuleViolation]:
    """Compare the conversion to a display unit with both names: shown = factor · value + offset."""
    try:
        named_unit, named_display_unit = parse_unit(unit.name), parse_unit(name)
    except ValueError:
        return
    factor, offset = _read_factor(attributes), parse_xml_number(attributes.get("offset", "0"))
    exponents_without_radian = [
        tuple(exponent for exponent, base in zip(named.exponents, BASE_UNITS, strict=True) if base != "rad")
        for named in (named_unit, named_display_unit)
    ]
    if (
        attributes.get("inverse") in _TRUE_TEXTS
        or factor is None
        or offset is None
        or exponents_without_radian[0] != exponents_without_radian[1]
    ):
        return
    expected_values = (
        named_unit.factor / named_display_unit.factor,
        (named_unit.offset - named_display_unit.offset) / named_display_unit.factor,
    )
    for quantity, declared, expected in (
        ("factor", factor, expected_values[0]),
        ("offset", offset, expected_values[1]),
    ):
        if not math.isclose(declared, expected, rel_tol=1e-4, abs_tol=1e-9 if quantity == "factor" else 1e-3):
            message = f'display unit "{name}": its name says a {quantity} of {expected:g}, DisplayUnit {declared:g}'
            yield RuleViolation("units.exponents", message, place)


def _format_exponents(exponents: tuple[Exponent, ...]) -> str:
    """Return exponents as a unit in base units, such as kg.m2.s-2; 1 if all are zero."""
    parts = [f"{base}{power if power != 1 else ''}" for base, power in zip(BASE_UNITS, exponents, strict=True) if power]
    return ".".join(parts) or "1"


def _check_type(description: DescribedModel, type_definition: DescribedType) -> Iterator[RuleViolation]:
    """Yield faults of a type: its unit, bounds, items and name."""
    place = f'{DESCRIPTION}:{type_definition.line}, type "{type_definition.name}"'
    unit = type_definition.attributes.get("unit")
    if unit is not None and unit not in {defined_unit.name for defined_unit in description.units}:
        yield RuleViolation("units.declared", f'unit "{unit}" is not defined', place)
    minimum, maximum = (
        parse_xml_number(type_definition.attributes.get("min")),
        parse_xml_number(type_definition.attributes.get("max")),
    )
    if minimum is not None and maximum is not None and minimum > maximum:
        yield RuleViolation("variables.bounds", f"min {minimum:g} is above max {maximum:g}", place)
    for attribute in ("name", "value"):
        for value, count in Counter(item.get(attribute, "") for item in type_definition.items).items():
            if count > 1:
                yield RuleViolation("types.items", f'{attribute} "{value}" is given to {count} items', place)
    if type_definition.type == "Enumeration" and not type_definition.items:
        yield RuleViolation("types.items", "an enumeration without items", place)
    if any(variable.name == type_definition.name for variable in description.variables) and description.version == 2:
        yield RuleViolation("types.unique", "a variable has the same name", place)


def _check_variable_units(
    variable: DescribedVariable, units: Mapping[str, DescribedUnit], types: Mapping[str, DescribedType]
) -> Iterator[RuleViolation]:
    """Yield units, display units and types that a variable uses and that do not fit."""
    yield from _check_declared_type(variable, types)
    unit, display_unit = variable.get("unit"), variable.get("displayUnit")
    if unit is not None and unit not in units:
        if variable.written.get("unit") is not None:
            yield RuleViolation("units.declared", f'unit "{unit}" is not defined', variable.location_in_file)
    elif display_unit is not None and unit is None:
        yield RuleViolation("units.display", f'displayUnit "{display_unit}" without a unit', variable.location_in_file)
    elif (
        display_unit is not None
        and unit is not None
        and display_unit not in units[unit].display
        and display_unit != unit
    ):
        message = f'displayUnit "{display_unit}" is not defined for unit "{unit}"'
        yield RuleViolation("units.display", message, variable.location_in_file)
    for alias in variable.aliases:
        alias_display_unit = alias.get("displayUnit")
        if (
            alias_display_unit is not None
            and alias_display_unit != unit
            and (unit is None or unit not in units or alias_display_unit not in units[unit].display)
        ):
            message = (
                f'displayUnit "{alias_display_unit}" of the alias "{alias.get("name")}" is not defined '
                f'for unit "{unit or ""}"'
            )
            yield RuleViolation("units.display", message, variable.location_in_file)
    if variable.written.get("relativeQuantity") and variable.type not in FLOATS:
        yield RuleViolation(
            "types.declared", f"relativeQuantity on a variable of {variable.type}", variable.location_in_file
        )


def _check_declared_type(variable: DescribedVariable, types: Mapping[str, DescribedType]) -> Iterator[RuleViolation]:
    """Yield a declared type that is missing, unknown, or of another kind."""
    type_name = variable.written.get("declaredType")
    if type_name is None:
        if variable.type == "Enumeration":
            message = "an Enumeration without declaredType has no items"
            yield RuleViolation("types.declared", message, variable.location_in_file)
    elif type_name not in types:
        yield RuleViolation("types.declared", f'declaredType "{type_name}" is not defined', variable.location_in_file)
    elif types[type_name].type != variable.type:
        message = f'declaredType "{type_name}" is of {types[type_name].type}, the variable of {variable.type}'
        yield RuleViolation("types.declared", message, variable.location_in_file)


def _check_derivative_units(description: DescribedModel, units: dict[str, DescribedUnit]) -> Iterator[RuleViolation]:
    """Check units of derivatives: unit of the variable per unit of the independent variable (else seconds)."""
    independent = description.independent
    time_unit_name = independent.get("unit") if independent else None
    time_unit = units.get(time_unit_name) if time_unit_name else None
    for variable in description.variables:
        state = description.find_referenced_variable(variable.written.get("derivative"))
        if state is None:
            continue
        unit_names = [quantity.get("unit") for quantity in (state, variable)]
        if None in unit_names:
            continue
        exponents = [_read_exponents(units[name]) for name in unit_names if name in units]
        time_exponents = _read_exponents(time_unit) if time_unit else tuple(int(base == "s") for base in BASE_UNITS)
        if len(exponents) < 2 or exponents[0] is None or exponents[1] is None or time_exponents is None:
            continue
        expected = tuple(
            numerator - denominator for numerator, denominator in zip(exponents[0], time_exponents, strict=True)
        )
        without_radian = [
            tuple(exponent for exponent, base in zip(quantity, BASE_UNITS, strict=True) if base != "rad")
            for quantity in (expected, exponents[1])
        ]
        if without_radian[0] != without_radian[1]:
            message = f'unit "{unit_names[1]}" is not that of "{state.name}" ("{unit_names[0]}") per unit of time'
            yield RuleViolation("units.derivative", message, variable.location_in_file)
