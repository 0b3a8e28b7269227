"""Declared units that contradict each other or the mechanics: numbers enter the equations as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import sympy as sm

from mb2fmu.model.checked_model import CheckedModel
from mb2fmu.model.checks.mechanics_expressions import collect_mechanics_expressions
from mb2fmu.model.checks.mechanics_units import ENERGY, format_unit_exponents, require_expression_units
from mb2fmu.model.checks.unit_exponent_equations import (
    Exponents,
    ExpressionUnitWithUnknowns,
    UnitContradiction,
    UnitExponentEquations,
    are_commensurable_units,
    make_unit_exponents,
    read_unit_exponents,
)
from mb2fmu.model.declarations.declared_outputs import OutputRequest
from mb2fmu.model.quantity_declarations import Output
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.mechanics_source import Mechanics
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics
from mb2fmu.units import format_base_units, parse_unit


def describe_unit_contradictions(definition: CheckedModel) -> tuple[str, ...]:
    """Return one sentence for each contradiction of declared units that follows from no other.

    A bare number may have any unit, also a 1 that nobody writes. What is in ``1`` counts as not declared: one sentence
    names all of it that the mechanics give a unit.

    Args:
        definition: A checked model.
    """
    declared = {item.symbol: item for item in (*definition.quantities, *definition.constraint_forces)}
    units = {symbol: _read_unit(item.unit) for symbol, item in declared.items() if item.unit != "1"}
    has_mass, has_length = (any(unit[base] for unit in units.values()) for base in (0, 1))
    if not (has_mass or has_length):
        return ()
    equations = UnitExponentEquations()
    for symbol, unit in sorted(units.items(), key=lambda item: isinstance(item[0], sm.Derivative)):
        place = f"{declared[symbol].name} in {declared[symbol].unit}" if isinstance(symbol, sm.Derivative) else ""
        equations.require_unit(symbol, unit, place)
    if not isinstance(definition.mechanics, RecordBasedMechanics):
        requests = [item for item in definition.outputs if isinstance(item, OutputRequest)]
        uses = collect_mechanics_expressions(definition.mechanics, requests)
        usable_uses = uses if has_mass else [use for use in uses if use.role in {"position", "velocity"}]
        require_expression_units(equations, definition.mechanics, usable_uses)
    for place, expression, unit in _list_declared_expressions(definition):
        equations.require_unit(expression, unit, place)
    unwritten = _list_bases_of_unwritten_ones(definition.mechanics)
    found = [each for each in equations.contradictions if not _is_explained(each.difference, unwritten)]
    without = {symbol: item for symbol, item in declared.items() if item.unit == "1"}
    return (*dict.fromkeys(_describe(each, declared) for each in found), *_describe_missing_units(equations, without))


def _list_bases_of_unwritten_ones(mechanics: Mechanics) -> frozenset[int]:
    """Return the indices of base units that a factor 1 may have which no expression shows: a mass or a length of 1."""
    if isinstance(mechanics, RecordBasedMechanics):
        return frozenset()
    bases: set[int] = set()
    bodies = mechanics_source.bodies(mechanics)
    if any(body.mass == 1 for body in bodies):
        bases.add(0)
    starts = [*(body.masscenter for body in bodies), *filter(None, (mechanics_source.origin(mechanics),))]
    for point in {each for start in starts for each in mechanics_source.list_points_joined_by_positions(start)}:
        for position in point._pos_dict.values():  # noqa: SLF001 - the local relations stand nowhere else
            if any(abs(part) == 1 for parts, _ in position.args for part in parts if part.is_number):
                bases.add(1)
    return frozenset(bases)


def _is_explained(difference: Exponents, bases: frozenset[int]) -> bool:
    """Return whether a difference is a power of units that an unwritten 1 may have."""
    dimensions = difference[:-1]
    return any(dimensions) and all(index in bases for index, power in enumerate(dimensions) if power)


def _describe_missing_units(equations: UnitExponentEquations, without: Mapping[Any, Any]) -> Iterator[str]:
    """Yield a sentence where quantities are in ``1`` that the mechanics give another unit."""
    found = []
    for symbol, item in without.items():
        unit = equations.unit_of(symbol)
        if unit is not None and any(unit[:-1]) and all(power.denominator == 1 for power in unit[:-1]):
            found.append(f"{item.name} (in {format_unit_exponents(unit)})")
    if found:
        yield f"declared in 1, though the mechanics give a unit: {', '.join(found)} → declare it"


def _list_declared_expressions(definition: CheckedModel) -> Iterator[tuple[str, sm.Expr, Exponents]]:
    """Yield (place in words, expression, unit) of what the declarations say by expressions."""
    for parameter in definition.parameters:
        if parameter.calculated:
            yield f"parameter {parameter.name}", sm.sympify(parameter.value), _read_unit(parameter.unit)
    for state in definition.auxiliary_states:
        rate = (
            ExpressionUnitWithUnknowns(_read_unit(state.unit)) + ExpressionUnitWithUnknowns(make_unit_exponents(s=-1))
        ).known
        yield f"the derivative of {state.name}", sm.sympify(state.derivative), rate
    if definition.potential_energy is not None:
        yield "the potential energy", definition.potential_energy, ENERGY
    for output in definition.outputs:
        if isinstance(output, Output):
            yield f"output {output.name}", sm.sympify(output.expression), _read_unit(output.unit)


def _read_unit(text: str) -> Exponents:
    return read_unit_exponents(parse_unit(text))


def _describe(found: UnitContradiction, declared: Mapping[Any, Any]) -> str:
    """Return a sentence: what does not fit, where, and what to write."""
    items = sorted((declared[s] for s in found.symbols if s in declared), key=lambda item: item.name)
    member_list = ", ".join(f"{item.name} in {item.unit}" for item in items)
    what = f"{found.place}: {found.expression}"
    one, other = (format_unit_exponents(side.known) for side in found.sides)
    if are_commensurable_units(found.difference):
        scaled = (item for item in items if _read_unit(item.unit)[-1])
        remedies = [
            f"{item.name} in {format_base_units(item.unit)}, with its value as '… {item.unit}'" for item in scaled
        ]
        remedy = f"declare {', '.join(remedies)}" if remedies else "convert it there"
        return f"{what} is taken in {other} as it stands ({member_list}) → {remedy}"
    if any(side.unknowns for side in found.sides):
        return f"{what}: the units of the terms differ by {format_unit_exponents(found.difference)} ({member_list})"
    if found.of_terms:
        return f"{what}: {one} and {other} are added or compared ({member_list})"
    return f"{what} is in {one}, where {other} is needed ({member_list})"
