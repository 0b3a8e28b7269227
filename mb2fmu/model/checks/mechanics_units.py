"""Units that a mechanism's expressions have by where they stand.

A mass is in kg, a coordinate beside a unit vector in m, an entry of a direction cosine matrix has no unit, a force at a
point is in N and a torque on a frame in N.m, time is in s.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame
from sympy.physics.mechanics.actuator import TorqueActuator

from mb2fmu.model.checks.mechanics_expressions import MechanicsExpression
from mb2fmu.model.checks.unit_exponent_equations import ZERO, Exponents, UnitExponentEquations, make_unit_exponents
from mb2fmu.model.sources import mechanics_source

MASS, LENGTH, ENERGY = make_unit_exponents(kg=1), make_unit_exponents(m=1), make_unit_exponents(1, 2, -2)
FORCE, TORQUE, VELOCITY, RATE = (
    make_unit_exponents(1, 1, -2),
    make_unit_exponents(1, 2, -2),
    make_unit_exponents(m=1, s=-1),
    make_unit_exponents(s=-1),
)
INERTIA, ACCELERATION = make_unit_exponents(1, 2), make_unit_exponents(m=1, s=-2)
_NAMED_BASES = ("kg", "m", "s", "A", "K", "mol", "cd")

_UNIT_NAMES: Mapping[Exponents, str] = {
    ZERO: "1",
    MASS: "kg",
    LENGTH: "m",
    make_unit_exponents(s=1): "s",
    RATE: "1/s",
    make_unit_exponents(s=-2): "1/s2",
    VELOCITY: "m/s",
    ACCELERATION: "m/s2",
    FORCE: "N",
    TORQUE: "N.m",
    INERTIA: "kg.m2",
    make_unit_exponents(1, 2, -3): "W",
    make_unit_exponents(1, 0, -2): "N/m",
    make_unit_exponents(1, 0, -1): "N.s/m",
    make_unit_exponents(1, 2, -1): "N.m.s",
    make_unit_exponents(1, 1, -1): "N.s",
    make_unit_exponents(1, -1): "kg/m",
    make_unit_exponents(m=2): "m2",
    make_unit_exponents(m=-1): "1/m",
}


def format_unit_exponents(unit: Exponents) -> str:
    """Return exponents in Modelica's notation, without their factor: ``kg.m1.5/s2``."""
    unit = (*unit[:-1], 0)
    if unit in _UNIT_NAMES:
        return _UNIT_NAMES[unit]
    powers = list(zip(_NAMED_BASES, map(float, unit), strict=False))
    above = ".".join(f"{base}{'' if power == 1 else f'{power:g}'}" for base, power in powers if power > 0) or "1"
    below = [f"{base}{'' if power == -1 else f'{-power:g}'}" for base, power in powers if power < 0]
    if not below:
        return above
    return f"{above}/{below[0]}" if len(below) == 1 else f"{above}/({'.'.join(below)})"


def require_expression_units(
    equations: UnitExponentEquations, mechanics: Any, uses: Iterable[MechanicsExpression]
) -> None:
    """Require of each expression the unit that its place gives it, and of its sums that their terms have one unit.

    Args:
        equations: Take the equations.
        mechanics: The source of the expressions.
        uses: The expressions.
    """
    for use, unit in sorted(_expected_units(mechanics, uses), key=lambda item: _order(item[0])):
        if unit is None:
            equations.form_unit(use.expression, use.place)
        else:
            equations.require_unit(use.expression, unit, use.place)


def _expected_units(
    mechanics: Any, uses: Iterable[MechanicsExpression]
) -> Iterator[tuple[MechanicsExpression, Exponents | None]]:
    """Yield expressions with the unit that their place gives them; None: only their sums give information."""
    loaded = [load[0] for load in mechanics_source.loads(mechanics)]
    forces = {f"the load on {item.name}" for item in loaded if isinstance(item, Point)}
    torques = {f"the load on {item.name}" for item in loaded if isinstance(item, ReferenceFrame)}
    units = dict.fromkeys(forces - torques, FORCE) | dict.fromkeys(torques - forces, TORQUE)
    units |= {
        f"actuator {getattr(each, 'name', None) or type(each).__name__}": TORQUE
        for each in mechanics_source.actuators(mechanics)
        if isinstance(each, TorqueActuator)
    }
    for use in uses:
        if not isinstance(use.expression, sm.MatrixBase):
            yield use, units.get(use.place) or _unit_of_place(use)


def _unit_of_place(use: MechanicsExpression) -> Exponents | None:
    """Return the unit of an expression of geometry, inertia or energy by its place."""
    if use.role == "inertia":
        return MASS if use.place.startswith("the mass") else INERTIA
    if use.role in {"energy", "lagrangian"}:
        return ENERGY
    for beginning, unit in (
        ("the orientation of", ZERO),
        ("the angular velocity of", RATE),
        ("the position of", LENGTH),
        ("the velocity of", VELOCITY),
    ):
        if use.place.startswith(beginning):
            return unit
    return None


def _order(use: MechanicsExpression) -> tuple[bool, int]:
    """Geometry and masses come before loads and constraints: where they contradict, these are reported."""
    ranks = ("inertia", "position", "velocity", "energy", "lagrangian", "load")
    return use.place.startswith(("holonomic", "velocity constraint")), ranks.index(use.role)
