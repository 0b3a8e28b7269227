"""Check that a speed which is q' itself is in the unit of q per second: right numbers would mean something else."""

from __future__ import annotations

import math
from collections.abc import Iterator

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.model.checks.expression_contents import differentiate_by_time
from mb2fmu.model.model import Model
from mb2fmu.model.quantity_declarations import Coordinate, Speed
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.record_mechanics import RecordedMechanics
from mb2fmu.units import BASE_UNITS, derivative_unit, parse_unit

_ANGLE_INDEX = BASE_UNITS.index("rad")


def speed_unit_faults(model: Model) -> Iterator[Fault]:
    """Yield speeds that a kinematic equation (or their symbol) says to be q', in another unit than q per second.

    Radians count as pure numbers here, and where q or u is in 1, as what is not told, nothing is compared. Where a
    number stands between q' and u, it may convert: then only the kind of quantity is compared.
    """
    if isinstance(model.mechanics, RecordedMechanics):  # its units are those of its joints
        return
    coordinates = set(mechanics_source.coordinates(model.mechanics))
    places = {
        item.symbol: item for item in model.declared if isinstance(item, Coordinate) and item.symbol in coordinates
    }
    speeds = {item.symbol: item for item in model.declared if isinstance(item, Speed)}
    for q, place in places.items():
        if (speed := speeds.get(differentiate_by_time(q))) is not None:
            yield from _compare_rate_units(place, speed, factor=1)
    rates = {differentiate_by_time(q): place for q, place in places.items()}
    for row in mechanics_source.kinematic_equations(model.mechanics):
        terms = dict(term.as_coeff_Mul()[::-1] for term in sm.Add.make_args(sm.sympify(row)))
        rate, u = (next((t for t in terms if t in known), None) for known in (rates, speeds))
        if len(terms) == 2 and rate is not None and u is not None and rate != u:
            yield from _compare_rate_units(rates[rate], speeds[u], factor=-terms[u] / terms[rate])


def _compare_rate_units(place: Coordinate, speed: Speed, *, factor: sm.Expr | int) -> Iterator[Fault]:
    """Yield a fault if q' = factor · u cannot be in the units of both."""
    if "1" in {place.unit, speed.unit}:
        return
    try:
        wanted, given = parse_unit(derivative_unit(place.unit)), parse_unit(speed.unit)
    except ValueError:  # told where units are judged by themselves
        return
    kinds = [tuple(p for i, p in enumerate(unit.exponents) if i != _ANGLE_INDEX) for unit in (wanted, given)]
    if kinds[0] == kinds[1] and (abs(factor) != 1 or math.isclose(wanted.factor, given.factor, rel_tol=1e-12)):
        return
    what = f"{speed.name} is {place.name}' by the kinematic equations, and is in {given.name}"
    what += f", though {place.name} is in {place.unit}"
    yield Fault(what, speed.where, f"give {speed.name} the unit {wanted.name}, or {place.name} another one")
