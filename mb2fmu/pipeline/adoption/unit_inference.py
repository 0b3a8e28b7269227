"""Infer units of measurement of a mechanism's symbols from where they stand.

A mass is in kg, a coordinate beside a unit vector in m, an entry of a direction cosine matrix has no unit, a force at a
point is in N and a torque on a frame in N.m, time is in s. All else follows from equal units of summands. Names
(``g``, ``m``, ``l``) count only where that leaves a unit free.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import LagrangesMethod
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.checks.expression_symbols import collect_expression_symbols
from mb2fmu.model.checks.mechanics_expressions import MechanicsExpression, collect_mechanics_expressions
from mb2fmu.model.checks.mechanics_units import (
    ACCELERATION,
    FORCE,
    INERTIA,
    LENGTH,
    MASS,
    RATE,
    TORQUE,
    format_unit_exponents,
    require_expression_units,
)
from mb2fmu.model.checks.unit_exponent_equations import (
    ZERO,
    Exponents,
    ExpressionUnitWithUnknowns,
    UnitExponentEquations,
    make_unit_exponents,
)
from mb2fmu.model.quantity_declarations import format_symbol_as_word
from mb2fmu.model.sources import mechanics_source

_WISHES_OF_BODIES: tuple[tuple[str, Exponents], ...] = (
    (r"g", ACCELERATION),
    (r"m[_a-z0-9]*|M[_a-z0-9]*", MASS),
    (r"[lLrRdhabx][_a-z0-9]*", LENGTH),
    (r"I[_a-z0-9]*|J[_a-z0-9]*", INERTIA),
)
_WISHES_OF_LOADS: tuple[tuple[str, Exponents], ...] = (
    (r"k[_a-z0-9]*", make_unit_exponents(1, 0, -2)),
    (r"c[_a-z0-9]*", make_unit_exponents(1, 0, -1)),
    (r"F[_a-z0-9]*", FORCE),
    (r"(theta|phi|psi|alpha|beta|gamma)[_a-z0-9]*", ZERO),
    (r"(T|tau)[_a-z0-9]*", TORQUE),
)
"""Names of symbols → units that break ties; between them come the factors 0.5."""


@dataclass(frozen=True, slots=True)
class InferredUnits:
    """Units of a mechanism's symbols.

    Attributes:
        names: Symbol, function of time or its derivative → unit in Modelica's notation.
        free: Symbols whose unit nothing says; they have the unit 1.
        contradictions: One sentence each.
    """

    names: Mapping[sm.Expr, str]
    free: frozenset[sm.Expr]
    contradictions: tuple[str, ...]


def infer_units(mechanics: Any, symbols: Iterable[sm.Expr]) -> InferredUnits:
    """Infer the units of symbols, functions of time, and derivatives of functions.

    Args:
        mechanics: A ``System``, ``KanesMethod``, ``LagrangesMethod`` or ``Parts``.
        symbols: Of the mechanics.
    """
    uses = collect_mechanics_expressions(mechanics)
    equations = UnitExponentEquations()
    require_expression_units(equations, mechanics, uses)
    equations.wish_pure_integers()
    symbols = list(symbols)
    for symbol in symbols:
        _wish_by_name(equations, symbol, _WISHES_OF_BODIES)
    equations.wish_pure_fractions()
    for symbol in symbols:
        _wish_by_name(equations, symbol, _WISHES_OF_LOADS)
    angles = _find_angular_symbols(mechanics, uses, equations, symbols)
    names, free = {}, set()
    for symbol in symbols:
        found = equations.unit_of_expression(symbol)
        if found is None:
            free.add(symbol)
        names[symbol] = "1" if found is None else format_inferred_unit(found, angular=symbol in angles)
    contradictions = tuple(
        f"{each.place}: the terms of {each.expression} differ in units by {format_inferred_unit(each.difference)}"
        + (f" (units from {each.earlier})" if each.earlier else "")
        for each in equations.contradictions
    )
    return InferredUnits(names, frozenset(free), tuple(dict.fromkeys(contradictions)))


def format_inferred_unit(unit: Exponents, *, angular: bool = False) -> str:
    """Return exponents in Modelica's notation; ``angular``: an angle, or per angle, for people and importers."""
    if angular and unit in {ZERO, RATE, make_unit_exponents(s=-2)}:
        return {ZERO: "rad", RATE: "rad/s"}.get(unit, "rad/s2")
    if angular and unit in {TORQUE, make_unit_exponents(1, 2, -1)}:
        return "N.m/rad" if unit == TORQUE else "N.m.s/rad"
    return "1" if any(each.denominator != 1 for each in unit) else format_unit_exponents(unit)


def _wish_by_name(equations: UnitExponentEquations, symbol: sm.Expr, wishes: Iterable[tuple[str, Exponents]]) -> None:
    """Let a symbol's name say its unit where nothing else does."""
    if equations.unit_of(symbol) is not None or not isinstance(symbol, sm.Symbol | AppliedUndef):
        return
    word = format_symbol_as_word(symbol)
    for pattern, unit in wishes:
        if re.fullmatch(pattern, word):
            equations.require_equal(
                ExpressionUnitWithUnknowns(ZERO, {symbol: Fraction(1)}), ExpressionUnitWithUnknowns(unit)
            )
            return


def _find_angular_symbols(
    mechanics: Any, uses: Iterable[MechanicsExpression], equations: UnitExponentEquations, symbols: Iterable[sm.Expr]
) -> set[sm.Expr]:
    """Return what is an angle, the rate of one, or a stiffness or damping per angle."""
    uses = list(uses)
    angles: set[sm.Expr] = set()
    for use in uses:
        for function in use.expression.atoms(sm.sin, sm.cos, sm.tan):
            inside = collect_expression_symbols(function.args[0])
            angles |= {
                each for each in (*inside.constants, *inside.functions_of_time) if equations.unit_of(each) == ZERO
            }
            time = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
            if inside.time:
                angles |= {each for each in inside.constants if equations.unit_of(each) == RATE} - {time}
        if use.place.startswith("the angular velocity of"):
            inside = collect_expression_symbols(use.expression)
            angles |= {each for each in (*inside.constants, *inside.functions) if equations.unit_of(each) == RATE}
            angles |= {each for each, _ in inside.derivatives if equations.unit_of(each) == ZERO}
    for equation in mechanics_source.kinematic_equations(mechanics):
        inside = collect_expression_symbols(equation)
        if {each for each, _ in inside.derivatives} & angles:
            angles |= {each for each in inside.functions if equations.unit_of(each) == RATE}
    angles |= _per_angle(uses, angles)
    if isinstance(mechanics, LagrangesMethod):
        angles |= {q for q in mechanics.q if equations.unit_of(q) == ZERO}
    return angles | {s for s in symbols if isinstance(s, sm.Derivative) and s.expr in angles}


def _per_angle(uses: Iterable[MechanicsExpression], angles: set[sm.Expr]) -> set[sm.Expr]:
    """Return factors of angles and their rates in loads: torsional stiffness and damping."""
    found: set[sm.Expr] = set()
    for use in uses:
        if use.role != "load" or not isinstance(use.expression, sm.Expr):
            continue
        for term in sm.Add.make_args(use.expression):
            factors = sm.Mul.make_args(term)
            linear = [f for f in factors if all(isinstance(each, AppliedUndef) for each in f.atoms(sm.Function))]
            moving = {a for factor in linear for a in collect_expression_symbols(factor).functions_of_time} & angles
            if moving:
                found |= {each for each in factors if isinstance(each, sm.Symbol)}
    return found
