"""Unit and type definitions, and how variables use them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping

from mb2fmu.audit.description.description_records import (
    DESCRIPTION,
    FLOATS,
    DescribedModel,
    DescribedVariable,
    TypeDefinition,
    UnitDefinition,
    parse_number,
)
from mb2fmu.audit.findings import Observation
from mb2fmu.units import BASE_UNITS, UnitOfMeasurement, parse_unit

_TRUE = frozenset({"true", "1"})


def check_unit_definitions(description: DescribedModel) -> Iterator[Observation]:
    """Yield all rules of this file."""
    named = {"unit": [each.name for each in description.units], "type": [each.name for each in description.types]}
    for kind, names in named.items():
        for name, count in Counter(names).items():
            if count > 1:
                yield Observation(f"{kind}s.unique", f'{kind} "{name}" is defined {count} times', DESCRIPTION)
            elif not name.strip():
                yield Observation(f"{kind}s.unique", f"a {kind} is defined without a name", DESCRIPTION)
    for unit in description.units:
        yield from _unit(unit)
    for each in description.types:
        yield from _type(description, each)
    units = {unit.name: unit for unit in description.units}
    types = {each.name: each for each in description.types}
    for variable in description.variables:
        yield from _used(variable, units, types)
    yield from _derivative_units(description, units)
    used = {variable.get("unit") for variable in description.variables} | {
        each.attributes.get("unit") for each in description.types
    }
    for unit in description.units:
        if unit.name not in used:
            yield Observation(
                "units.unused", f'unit "{unit.name}" is used by no variable and no type', f"{DESCRIPTION}:{unit.line}"
            )


def _exponents(unit: UnitDefinition) -> tuple[int, ...] | None:
    """Return the exponents of the base units; None if missing or not whole."""
    if unit.base is None:
        return None
    try:
        return tuple(int(unit.base.get(name, "0")) for name in BASE_UNITS)
    except ValueError:
        return None


def _factor(attributes: Mapping[str, str]) -> float | None:
    """Return the factor to the base unit, 1 by default; None if it is no number."""
    return parse_number(attributes.get("factor", "1"))


def _unit(unit: UnitDefinition) -> Iterator[Observation]:
    """Yield faults of a unit: doubled display units, useless factors, no base, or a name that says otherwise."""
    where = f'{DESCRIPTION}:{unit.line}, unit "{unit.name}"'
    for name, count in Counter(unit.display_names).items():
        if count > 1:
            yield Observation("units.unique", f'display unit "{name}" is defined {count} times', where)
    for what, attributes in (("BaseUnit", unit.base), *unit.display.items()):
        if attributes is not None:
            factor = _factor(attributes)
            if attributes.get("inverse") in _TRUE and parse_number(attributes.get("offset", "0")) != 0.0:
                yield Observation("units.factor", f"{what}: inverse, and an offset", where)
            if factor is None or not math.isfinite(factor) or factor == 0.0:
                yield Observation("units.factor", f"{what}: factor {attributes.get('factor')} converts nothing", where)
    if unit.base is None:
        yield Observation("units.base", "no exponents of base units: importers cannot check or convert it", where)
        return
    try:
        known = parse_unit(unit.name)
    except ValueError:
        return
    yield from _named(unit, known, where)
    for name, attributes in unit.display.items():
        yield from _shown(unit, name, attributes, where)


def _named(unit: UnitDefinition, known: UnitOfMeasurement, where: str) -> Iterator[Observation]:
    """Compare the definition of a unit with its name."""
    assert unit.base is not None
    exponents, factor = _exponents(unit), _factor(unit.base)
    # Who leaves rad out of the exponents counts it as the number 1, as SI does.
    loose = tuple(e for e, base in zip(known.exponents, BASE_UNITS, strict=True) if base != "rad")
    if exponents is not None and exponents not in {known.exponents, (*loose, 0)}:
        yield Observation(
            "units.exponents",
            f"its name says {_product(known.exponents)}, its exponents say {_product(exponents)}",
            where,
        )
    elif factor is not None and not math.isclose(factor, known.factor, rel_tol=1e-6):
        yield Observation(
            "units.exponents", f"its name says a factor of {known.factor:g}, its BaseUnit {factor:g}", where
        )
    offset = parse_number(unit.base.get("offset", "0"))
    if offset is not None and not math.isclose(offset, known.offset, rel_tol=1e-6, abs_tol=1e-9):
        yield Observation(
            "units.exponents", f"its name says an offset of {known.offset:g}, its BaseUnit {offset:g}", where
        )


def _shown(unit: UnitDefinition, name: str, attributes: Mapping[str, str], where: str) -> Iterator[Observation]:
    """Compare the conversion to a display unit with both names: shown = factor · value + offset."""
    try:
        own, other = parse_unit(unit.name), parse_unit(name)
    except ValueError:
        return
    factor, offset = _factor(attributes), parse_number(attributes.get("offset", "0"))
    loose = [
        tuple(e for e, base in zip(each.exponents, BASE_UNITS, strict=True) if base != "rad") for each in (own, other)
    ]
    if attributes.get("inverse") in _TRUE or factor is None or offset is None or loose[0] != loose[1]:
        return
    right = own.factor / other.factor, (own.offset - other.offset) / other.factor
    for what, said, wanted in (("factor", factor, right[0]), ("offset", offset, right[1])):
        if not math.isclose(said, wanted, rel_tol=1e-4, abs_tol=1e-9 if what == "factor" else 1e-3):
            text = f'display unit "{name}": its name says a {what} of {wanted:g}, DisplayUnit {said:g}'
            yield Observation("units.exponents", text, where)


def _product(exponents: tuple[int, ...]) -> str:
    """Return exponents as a unit in base units, such as kg.m2.s-2; 1 if all are zero."""
    parts = [f"{base}{power if power != 1 else ''}" for base, power in zip(BASE_UNITS, exponents, strict=True) if power]
    return ".".join(parts) or "1"


def _type(description: DescribedModel, each: TypeDefinition) -> Iterator[Observation]:
    """Yield faults of a type: its unit, bounds, items and name."""
    where = f'{DESCRIPTION}:{each.line}, type "{each.name}"'
    unit = each.attributes.get("unit")
    if unit is not None and unit not in {known.name for known in description.units}:
        yield Observation("units.declared", f'unit "{unit}" is not defined', where)
    low, high = parse_number(each.attributes.get("min")), parse_number(each.attributes.get("max"))
    if low is not None and high is not None and low > high:
        yield Observation("variables.bounds", f"min {low:g} is above max {high:g}", where)
    for what in ("name", "value"):
        for value, count in Counter(item.get(what, "") for item in each.items).items():
            if count > 1:
                yield Observation("types.items", f'{what} "{value}" is given to {count} items', where)
    if each.type == "Enumeration" and not each.items:
        yield Observation("types.items", "an enumeration without items", where)
    if any(variable.name == each.name for variable in description.variables) and description.version == 2:
        yield Observation("types.unique", "a variable has the same name", where)


def _used(
    variable: DescribedVariable, units: Mapping[str, UnitDefinition], types: Mapping[str, TypeDefinition]
) -> Iterator[Observation]:
    """Yield units, display units and types that a variable uses and that do not fit."""
    yield from _declared(variable, types)
    unit, shown = variable.get("unit"), variable.get("displayUnit")
    if unit is not None and unit not in units:
        if variable.written.get("unit") is not None:
            yield Observation("units.declared", f'unit "{unit}" is not defined', variable.place)
    elif shown is not None and unit is None:
        yield Observation("units.display", f'displayUnit "{shown}" without a unit', variable.place)
    elif shown is not None and unit is not None and shown not in units[unit].display and shown != unit:
        text = f'displayUnit "{shown}" is not defined for unit "{unit}"'
        yield Observation("units.display", text, variable.place)
    for alias in variable.aliases:
        other = alias.get("displayUnit")
        if (
            other is not None
            and other != unit
            and (unit is None or unit not in units or other not in units[unit].display)
        ):
            text = f'displayUnit "{other}" of the alias "{alias.get("name")}" is not defined for unit "{unit or ""}"'
            yield Observation("units.display", text, variable.place)
    if variable.written.get("relativeQuantity") and variable.type not in FLOATS:
        yield Observation("types.declared", f"relativeQuantity on a variable of {variable.type}", variable.place)


def _declared(variable: DescribedVariable, types: Mapping[str, TypeDefinition]) -> Iterator[Observation]:
    """Yield a declared type that is missing, unknown, or of another kind."""
    declared = variable.written.get("declaredType")
    if declared is None:
        if variable.type == "Enumeration":
            text = "an Enumeration without declaredType has no items"
            yield Observation("types.declared", text, variable.place)
    elif declared not in types:
        yield Observation("types.declared", f'declaredType "{declared}" is not defined', variable.place)
    elif types[declared].type != variable.type:
        text = f'declaredType "{declared}" is of {types[declared].type}, the variable of {variable.type}'
        yield Observation("types.declared", text, variable.place)


def _derivative_units(description: DescribedModel, units: dict[str, UnitDefinition]) -> Iterator[Observation]:
    """Check units of derivatives: unit of the variable per unit of the independent variable (else seconds)."""
    independent = description.independent
    measured = independent.get("unit") if independent else None
    time = units.get(measured) if measured else None
    for variable in description.variables:
        state = description.target(variable.written.get("derivative"))
        if state is None:
            continue
        names = [each.get("unit") for each in (state, variable)]
        if None in names:
            continue
        found = [_exponents(units[name]) for name in names if name in units]
        per = _exponents(time) if time else tuple(int(base == "s") for base in BASE_UNITS)
        if len(found) < 2 or found[0] is None or found[1] is None or per is None:
            continue
        wanted = tuple(a - b for a, b in zip(found[0], per, strict=True))
        bare = [
            tuple(e for e, base in zip(each, BASE_UNITS, strict=True) if base != "rad") for each in (wanted, found[1])
        ]
        if bare[0] != bare[1]:
            text = f'unit "{names[1]}" is not that of "{state.name}" ("{names[0]}") per unit of time'
            yield Observation("units.derivative", text, variable.place)
