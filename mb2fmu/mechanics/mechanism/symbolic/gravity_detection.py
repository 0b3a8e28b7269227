"""Find gravity once per mechanism, for recursions (as an acceleration) and for pictures.

It enters as loads: of SymPy's objects by ``sympy_import/load_import.py``, of robots by
``robots/tree/mechanism_from_robot.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.mechanism.records.frame_and_point_records import Components
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, Mechanism

ROUND_OFF = 4 * 2.0**-52
"""Relative: a mass in double precision times an acceleration, divided by that mass, is off by two units at most."""


@dataclass(frozen=True, slots=True)
class DetectedGravity:
    """Acceleration of gravity, and the loads that are weights.

    Attributes:
        acceleration: The acceleration that pulls at every body alike, components in N, m/s²; it may contain time and
            inputs. None where there is none, or where the pulls differ.
        weight_loads: Numbers of the loads that ``acceleration`` stands for; empty where it is None.
        constant_force: Sum of the constant forces on mass centres, components in N, N: the way down; None where there
            are none.
    """

    acceleration: Components | None = None
    weight_loads: frozenset[int] = frozenset()
    constant_force: Components | None = None


def find_gravity(mechanism: Mechanism) -> DetectedGravity:
    """Find gravity among the forces on mass centres that are written in N."""
    acceleration, weights = _common_acceleration(mechanism)
    return DetectedGravity(acceleration, frozenset(weights), _constant_force_sum(mechanism))


def _common_acceleration(mechanism: Mechanism) -> tuple[Components | None, set[int]]:
    """Divide each body's weight by its mass; return the common quotient, and the numbers of the weights."""
    no_gravity: tuple[None, set[int]] = None, set()
    force_at_point: dict[int, tuple[int, Components]] = {}
    for number, load in enumerate(mechanism.loads):
        if isinstance(load, ForceLoad) and [frame for frame, _ in load.force] == [0]:
            force_at_point.setdefault(load.point, (number, load.force[0][1]))
    gravity: Components | None = None
    weights: set[int] = set()
    for body in mechanism.bodies:
        if body.mass == 0:  # a rotor: gravity does not pull at it
            continue
        if body.masscenter not in force_at_point:
            return no_gravity
        number, force = force_at_point[body.masscenter]
        if number in weights:  # two bodies share a mass centre
            return no_gravity
        weights.add(number)
        acceleration = _divide_force(force, body.mass)
        if gravity is not None and not all(map(_is_equal_to_round_off, gravity, acceleration)):
            return no_gravity
        if gravity is None or len(_list_floats(acceleration)) < len(_list_floats(gravity)):
            gravity = acceleration  # an exact quotient says it best
    if gravity is None or any(
        component.free_symbols - {*_parameter_symbols(mechanism), mechanism.t, *mechanism.r} for component in gravity
    ):
        return no_gravity
    return gravity, weights


def _is_equal_to_round_off(first: sm.Expr, second: sm.Expr) -> bool:
    """Return whether two expressions have the same terms, with coefficients that differ by round-off at most."""
    if first == second:
        return True
    first_terms, second_terms = first.as_coefficients_dict(), second.as_coefficients_dict()
    return first_terms.keys() == second_terms.keys() and all(
        abs(float(first_terms[term]) - float(second_terms[term])) <= ROUND_OFF * abs(float(second_terms[term]))
        for term in first_terms
    )


def _list_floats(components: Components) -> set[sm.Float]:
    """Return the floating-point numbers in components."""
    return set().union(*(component.atoms(sm.Float) for component in components))


def _constant_force_sum(mechanism: Mechanism) -> Components | None:
    """Return the sum of the forces on mass centres that are constant in N."""
    constants, centres = _parameter_symbols(mechanism), {body.masscenter for body in mechanism.bodies}
    total: list[sm.Expr] | None = None
    for load in mechanism.loads:
        if isinstance(load, ForceLoad) and load.point in centres and len(load.force) == 1:
            frame, components = load.force[0]
            if frame == 0 and all(component.free_symbols <= constants for component in components):
                total = [first + second for first, second in zip(total or [sm.S.Zero] * 3, components, strict=True)]
    return None if total is None else (total[0], total[1], total[2])


def _parameter_symbols(mechanism: Mechanism) -> set[sm.Symbol]:
    """Return free and calculated parameters."""
    return {*mechanism.p, *(calculated.symbol for calculated in mechanism.calculated_parameters)}


def _divide_force(force: Iterable[sm.Expr], mass: sm.Expr) -> Components:
    """Return force over mass, coefficients that are whole numbers but for round-off as these."""
    x, y, z = (_with_whole_numbers(component / mass) for component in force)
    return (x, y, z)


def _with_whole_numbers(quotient: sm.Expr) -> sm.Expr:
    """Return a sum whose coefficients are whole numbers where they are so but for round-off."""
    if not quotient.has(sm.Float):
        return quotient
    return sm.Add(*(_round_to_integer(factor) * term for term, factor in quotient.as_coefficients_dict().items()))


def _round_to_integer(factor: sm.Expr) -> sm.Expr:
    """Return a number, or the whole number that it is but for round-off."""
    integer = round(float(factor)) if factor.is_Float else 0
    return sm.Integer(integer) if integer and abs(float(factor) - integer) <= ROUND_OFF * abs(integer) else factor
