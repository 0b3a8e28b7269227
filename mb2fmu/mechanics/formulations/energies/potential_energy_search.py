"""Potentials of generalized forces, in closed form where that is cheap, and validated by numbers.

Forces F(q) have a potential V with F = -∂V/∂q where ∂F_i/∂q_j = ∂F_j/∂q_i. V is integrated coordinate by coordinate,
term by term: powers of a coordinate, sines, cosines and exponentials of linear arguments, and what springs that act on
one side only are written with (Max, Min, Abs, sign). What is found is differentiated and compared with F at random
places; what is not found is None, never an approximation.

Source: C. Lanczos, The Variational Principles of Mechanics, ch. I.7 (work function, conservative forces).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

import numpy as np
import sympy as sm
from sympy.simplify.fu import TR8

from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

GeneralizedForces = Mapping[sm.Symbol, sm.Expr]
"""Coordinate → generalized force along it, 0 of coordinates that only stand in the others."""

MAX_OPERATIONS = 400
"""Operations of forces that are integrated at most."""

_CACHE_SIZE = 256
_POINT_COUNT = 4
_POTENTIAL_TOLERANCE = 1e-9  # relative; both sides are a few hundred operations
_DIFFERENCE_STEP = 1e-6
_CURL_TOLERANCE = 1e-6  # central differences with _STEP are good to 1e-9 and better


def find_potential_energy(forces: GeneralizedForces) -> sm.Expr | None:
    """Find V with F = -∂V/∂q; None if the forces have no potential, or if it was not found.

    Args:
        forces: Expressions of coordinates and constants.
    """
    return _find_potential_energy(tuple((q, sm.sympify(force)) for q, force in forces.items()))


@lru_cache(_CACHE_SIZE)
def _find_potential_energy(forces: tuple[tuple[sm.Symbol, sm.Expr], ...]) -> sm.Expr | None:
    """Find V as :func:`find_potential_energy` does; each formulation of a mechanism has the same forces."""
    exact_forces = dict(forces)
    if not any(force != 0 for force in exact_forces.values()):
        return sm.S.Zero
    if has_more_operations_than(exact_forces.values()):
        return None
    exact_forces = {
        q: force.xreplace({number: _make_rational(number) for number in force.atoms(sm.Float)})
        for q, force in exact_forces.items()
    }  # else round-off would not cancel
    if any(
        force.has(sm.Abs, sm.sign) for force in exact_forces.values()
    ):  # whose derivatives SymPy knows of reals alone
        symbols = set().union(exact_forces, *(force.free_symbols for force in exact_forces.values()))
        real = {s: sm.Dummy(s.name, real=True) for s in sorted(symbols, key=str)}
        potential = _find_rational_potential({real[q]: force.xreplace(real) for q, force in exact_forces.items()})
        return None if potential is None else potential.xreplace({dummy: s for s, dummy in real.items()})
    return _find_rational_potential(exact_forces)


@lru_cache(_CACHE_SIZE)  # SymPy searches for 1/3 in 0.333…, for milliseconds; a mechanism has few different numbers
def _make_rational(number: sm.Float) -> sm.Rational:
    """Return the simple fraction that a number stands for."""
    return sm.nsimplify(number, rational=True)


def _find_rational_potential(forces: GeneralizedForces) -> sm.Expr | None:
    """Find V as :func:`find_potential_energy` does, for rational numbers."""
    potential: sm.Expr = sm.S.Zero
    integrated: set[sm.Symbol] = set()
    for q, force in forces.items():
        rest = sm.expand(-force - potential.diff(q))
        if rest.free_symbols & integrated:
            rest = sm.expand(TR8(rest))
        if rest.free_symbols & integrated:
            return None
        part = integrate_expression(rest, q)
        if part is None:
            return None
        potential += part
        integrated.add(q)
    return potential if _is_potential(potential, forces) else None


def has_more_operations_than(expressions: Iterable[sm.Expr], max_operations: int = MAX_OPERATIONS) -> bool:
    """Return whether expressions have more operations than that; counts no further."""
    remaining = max_operations
    for expression in expressions:
        for node in sm.preorder_traversal(expression):
            remaining -= len(node.args) > 0
            if remaining < 0:
                return True
    return False


def is_conservative(forces: GeneralizedForces) -> bool:
    """Return whether ∂F_i/∂q_j = ∂F_j/∂q_i at random places, by central differences.

    Args:
        forces: Of all coordinates that stand in them, those along which there is no force as zeros.
    """
    return _is_conservative(tuple((q, sm.sympify(force)) for q, force in forces.items()))


@lru_cache(_CACHE_SIZE)
@np.errstate(all="ignore")  # random places may be where a force has no value
def _is_conservative(forces: tuple[tuple[sm.Symbol, sm.Expr], ...]) -> bool:
    """Return what :func:`is_conservative` does."""
    exact_forces = dict(forces)
    symbols = sorted(set().union(*(f.free_symbols for f in exact_forces.values())) | exact_forces.keys(), key=str)
    evaluate = lambdify_for_numpy(symbols, list(exact_forces.values()), cse=True)
    coordinate_columns = [symbols.index(q) for q in exact_forces]
    for point in _random_points(len(symbols)):
        slopes = np.zeros((len(coordinate_columns), len(coordinate_columns)))
        for column, k in enumerate(coordinate_columns):
            sides = []
            for sign in (1.0, -1.0):
                place = point.copy()
                place[k] += sign * _DIFFERENCE_STEP
                sides.append(np.array(evaluate(*place), dtype=float))
            slopes[:, column] = (sides[0] - sides[1]) / (2 * _DIFFERENCE_STEP)
        scale = np.max(np.abs(slopes), initial=0.0)
        if not np.isfinite(scale) or np.max(np.abs(slopes - slopes.T), initial=0.0) > _CURL_TOLERANCE * max(
            scale, 1e-300
        ):
            return False
    return True


def integrate_expression(expression: sm.Expr, symbol: sm.Symbol) -> sm.Expr | None:
    """Return ∫ expression d(symbol), term by term; None where a term is of an unknown kind."""
    total = sm.S.Zero
    for term in sm.Add.make_args(sm.expand(expression)):
        if term == 0:
            continue
        factor, core = term.as_independent(symbol, as_Add=False)
        integral = _integrate_product(core, symbol)
        if integral is None and core.has(sm.sin, sm.cos):
            harmonic_sum = sm.expand(TR8(core))  # products and powers of sines and cosines become sums
            integral = integrate_expression(harmonic_sum, symbol) if harmonic_sum != core else None
        if integral is None:
            return None
        total += factor * integral
    return total


def _integrate_product(core: sm.Expr, x: sm.Symbol) -> sm.Expr | None:
    """∫ of a product in which every factor contains x."""
    if core == 1:
        return x
    power, rest = sm.S.Zero, []
    for factor in sm.Mul.make_args(core):
        base, exponent = factor.as_base_exp()
        if base == x and exponent.is_Rational and not exponent.has(x):
            power += exponent
        else:
            rest.append(factor)
    if not rest:
        return None if power == -1 else x ** (power + 1) / (power + 1)
    if len(rest) > 1:
        return None
    return _integrate_function(rest[0], power, x)


def _integrate_function(function: sm.Expr, power: sm.Expr, x: sm.Symbol) -> sm.Expr | None:
    """∫ x^power f(a x + b), a a number."""
    base, exponent = function.as_base_exp() if function.is_Pow else (function, sm.S.One)
    if isinstance(base, (sm.Max, sm.Min)) and len(base.args) == 2 and sm.S.Zero in base.args:
        slope = _linear_slope(sm.Add(*base.args), x)
        is_integrable = power == 0 and slope is not None and exponent.is_Integer and exponent > 0
        return base ** (exponent + 1) / ((exponent + 1) * slope) if is_integrable else None
    if exponent != 1 or not function.args or not isinstance(function.args[0], sm.Expr):  # a Piecewise has pairs
        return None
    slope = _linear_slope(function.args[0], x)
    if slope is None:
        return None
    if isinstance(function, (sm.sign, sm.Abs)):
        return _integrate_absolute(function, power, slope, x)
    return _integrate_by_parts(function, int(power), slope, x) if power.is_Integer and power >= 0 else None


def _integrate_absolute(function: sm.Expr, power: sm.Expr, slope: sm.Expr, x: sm.Symbol) -> sm.Expr | None:
    """∫ x^n sign(a x + b) and ∫ |a x + b|."""
    if isinstance(function, sm.sign):
        return sm.Abs(function.args[0]) / slope if power == 0 else _integrate_sign(function, power, x)
    return function.args[0] * function / (2 * slope) if power == 0 else None


def _integrate_sign(function: sm.Expr, power: sm.Expr, x: sm.Symbol) -> sm.Expr | None:
    """∫ x^n sign(a x): continuous where x changes its sign, as x^n vanishes there."""
    if function.args[0].xreplace({x: sm.S.Zero}) != 0 or not (power.is_Integer and power > 0):
        return None
    return function * x ** (power + 1) / (power + 1)


def _integrate_by_parts(function: sm.Expr, power: int, slope: sm.Expr, x: sm.Symbol) -> sm.Expr | None:
    """∫ x^n f(a x + b) for f = sin, cos, exp."""
    argument = function.args[0]
    if isinstance(function, sm.sin):
        integrated_function = -sm.cos(argument) / slope
    elif isinstance(function, sm.cos):
        integrated_function = sm.sin(argument) / slope
    elif isinstance(function, sm.exp):
        integrated_function = function / slope
    else:
        return None
    if power == 0:
        return integrated_function
    factor, rest = integrated_function.as_independent(x, as_Add=False)
    remaining_integral = _integrate_by_parts(rest, power - 1, slope, x)
    return None if remaining_integral is None else x**power * integrated_function - power * factor * remaining_integral


def _linear_slope(argument: sm.Expr, x: sm.Symbol) -> sm.Expr | None:
    """Return the number a of a x + b; None where it is no number: a parameter may become zero."""
    slope = sm.expand(argument.diff(x))
    return slope if slope.is_number and slope != 0 else None


@np.errstate(all="ignore")
def _is_potential(potential: sm.Expr, forces: GeneralizedForces) -> bool:
    """Return whether F = -∂V/∂q at random places."""
    symbols = sorted(potential.free_symbols.union(forces, *(f.free_symbols for f in forces.values())), key=str)
    pairs = [e for q, force in forces.items() for e in (-potential.diff(q), force)]
    evaluate = lambdify_for_numpy(symbols, pairs, cse=True)
    for point in _random_points(len(symbols)):
        values = np.array(evaluate(*point), dtype=float).reshape(-1, 2)
        if not np.isfinite(values).all():
            return False
        if np.max(np.abs(values[:, 0] - values[:, 1])) > _POTENTIAL_TOLERANCE * np.max(np.abs(values)):
            return False
    return True


def _random_points(count: int) -> Sequence[np.ndarray]:
    """Return fixed random points, away from zero, at which a potential is compared with its forces."""
    generator = np.random.default_rng(29)
    return [generator.uniform(-1.3, 1.3, count) + 0.01 for _ in range(_POINT_COUNT)]
