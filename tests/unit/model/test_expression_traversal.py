"""Expressions whose few parts stand in very many places."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sm
from sympy.physics.mechanics import dynamicsymbols

from mb2fmu.model.expression_traversal import (
    drop_terms_with_symbols,
    extract_repeated_subexpressions,
    iterate_distinct_subexpressions,
    lambdify_with_shared_parts,
    partial_derivative,
)
from mb2fmu.model.supported_functions import LookupTable, NoEvent
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function

x, y = sm.symbols("x y")
t = dynamicsymbols._t
a, b = dynamicsymbols("a b")
MOVING = (x + 2 * y) * sm.sin(x * y) / (1 + x**2)
WHOLE = (
    [MOVING, 3, y, x, 2 * x - y, x**y, y**x, sm.sqrt(x**2 + y**2) * (x - y) * sm.Rational(2, 3), 2 * (x + y) * (x - 1)]
    + [f(MOVING) for f in (sm.exp, sm.log, sm.tan, sm.acos, sm.tanh, sm.Abs, sm.sign, sm.floor, sm.Heaviside, NoEvent)]
    + [
        sm.atan2(MOVING, x),
        sm.Max(x, y),
        sm.Piecewise((MOVING, x > y), (y, True)),
        sm.Integral(sm.sin(x * y), (y, 0, x)),
    ]
    + [LookupTable("slope", [0.0, 1.0, 2.0], [0.0, 1.0, 4.0], kind="linear")(MOVING), sm.Function("f")(x * y)]
)


@pytest.mark.parametrize("expression", [sm.sympify(whole) for whole in WHOLE], ids=str)
@pytest.mark.parametrize("symbol", [x, y])
def test_partial_derivatives_are_written_as_sympy_writes_them(expression, symbol):
    assert partial_derivative(expression, symbol) == expression.diff(symbol)
    assert partial_derivative(expression**2 - 3 * x * expression, symbol) == (expression**2 - 3 * x * expression).diff(
        symbol
    )


def test_functions_of_time_have_rates():
    row = a * sm.cos(b) - t * a.diff(t) + sm.sqrt(a**2 + b.diff(t) ** 2)
    assert partial_derivative(row, t) == row.diff(t)
    assert partial_derivative(row, t).has(a.diff(t, 2))


def test_shared_parts_are_differentiated_once():
    """SymPy's ``diff`` comes to no end: it visits 2**60 places."""
    slope = compile_scalar_function([x, y], [partial_derivative(folded(x, 60), x)])(0.3, 0.7)[0]
    changes = [folded_number(0.3 + side, 0.7, 60) for side in (1e-6, -1e-6)]
    assert slope == pytest.approx((changes[0] - changes[1]) / 2e-6, rel=1e-6)


def folded(expression: sm.Expr, times: int) -> sm.Expr:
    """Each time what was there stands in two places more."""
    for _ in range(times):
        expression = sm.sin(expression) + y * sm.cos(expression)
    return expression


def folded_number(value: float, other: float, times: int) -> float:
    for _ in range(times):
        value = math.sin(value) + other * math.cos(value)
    return value


def test_parts_are_visited_once():
    small = sm.Add(sm.sin(x), sm.Mul(x, sm.sin(x), evaluate=False), evaluate=False)
    assert sorted(map(str, iterate_distinct_subexpressions([small]))) == sorted(
        map(str, {small, *small.args, x, sm.sin(x)})
    )
    assert len(list(iterate_distinct_subexpressions([folded(x, 100)]))) < 500


@pytest.mark.parametrize("times", [3, 60])
def test_values_are_those_of_the_expression(times):
    """57 million occurrences of a thousand parts took 195 s; 2**60 of them had come to no end."""
    results = [folded(x, times), sm.Piecewise((folded(x, times), x > 0), (y, True)), x]
    number = folded_number(0.3, 0.7, times)
    assert compile_scalar_function([x, y], results)(0.3, 0.7) == pytest.approx([number, number, 0.3], rel=1e-13)
    assert compile_scalar_function([x, y], results)(-0.3, 0.7)[1] == 0.7


def test_tables_and_functions_with_numbers_of_their_own():
    table = LookupTable("drag", [0.0, 1.0, 2.0], [0.0, 1.0, 4.0])
    known = compile_scalar_function([x], [table(x)])(1.5)[0]
    assert compile_scalar_function([x, y], [folded(table(x), 30)])(1.5, 0.4)[0] == pytest.approx(
        folded_number(known, 0.4, 30)
    )
    twice = sm.Function("twice")
    assert len(extract_repeated_subexpressions([twice(x) + twice(x) ** 2])[0]) == 1


def test_an_argument_that_is_a_rate_is_not_taken_apart():
    q = sm.Function("q")(sm.Symbol("t"))
    rate, result = q.diff(), sm.sin(q) + q * q.diff() ** 2
    for nested in ([result, [q]], sm.Matrix([[result, q]]), (result, rate)):
        function = lambdify_with_shared_parts([q, rate], nested, modules=["numpy"])
        assert np.ravel(np.hstack(function(0.3, 0.7)))[0] == pytest.approx(math.sin(0.3) + 0.3 * 0.7**2)


def test_terms_with_symbols_are_dropped_as_by_zeros():
    q, u, v, w = sm.symbols("q u v w")
    row = u * (sm.cos(q) + q**2) * (w + sm.sin(q)) + (v * q + 2 * (u + w)) / sm.sqrt(1 + q**2) + q * w
    expected = row.xreplace({u: sm.S.Zero, v: sm.S.Zero})
    assert drop_terms_with_symbols(row, {u, v}) == expected
    assert drop_terms_with_symbols(u * q, {u}) == 0
    assert drop_terms_with_symbols(q + w, {u}) == q + w
