"""Expressions whose few parts stand in very many places."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sm

from mb2fmu.model.expression_traversal import (
    extract_repeated_subexpressions,
    iterate_distinct_subexpressions,
    lambdify_with_shared_parts,
)
from mb2fmu.model.supported_functions import LookupTable
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function

x, y = sm.symbols("x y")


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
