"""Evaluation of many expressions gives what each of them gives alone."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from representatives import examples
from sympy.physics.vector import dynamicsymbols

from mb2fmu.mechanics.mechanism.numeric.same_form_expression_evaluation import (
    MIN_GROUP_SIZE,
    GroupedExpressionEvaluator,
)
from mb2fmu.model.checks.expression_symbols import differentiate_by_time

x = sm.symbols("x:12")
a, b = sm.symbols("a b")
KINDS = (
    sm.sin(a),
    -sm.sin(a) * b,
    a - b,
    a**2 / 3 + sm.cos(b) * 0.1,
    sm.Max(a, b),
    sm.Piecewise((a, a < b), (b**3, True)),
    sm.Integer(2),
    sm.pi,
    sm.Rational(1, 3),
    a,
    sum((sm.sin(a + k * b) for k in range(12)), sm.S.Zero),
)


@examples(6)
@given(st.lists(st.tuples(st.sampled_from(KINDS), st.integers(0, 11), st.integers(0, 11)), max_size=60), st.integers())
def test_expressions_of_a_kind_together_as_each_alone(picked, seed) -> None:
    expressions = [kind.xreplace({a: x[i], b: x[j]}) for kind, i, j in picked]
    expressions += [sm.cos(symbol) * x[0] for symbol in x[:MIN_GROUP_SIZE]]
    values = np.random.default_rng(abs(seed)).uniform(-2, 2, len(x))
    wanted = [float(expression.subs(dict(zip(x, values, strict=True)))) for expression in expressions]
    np.testing.assert_allclose(GroupedExpressionEvaluator(x, expressions)(*values), wanted, rtol=1e-12, atol=1e-12)


def test_nothing_to_evaluate() -> None:
    assert GroupedExpressionEvaluator(x, [])(*range(12)).shape == (0,)


@pytest.mark.parametrize("order", [1, 2])
def test_rates_in_time_are_what_sympy_writes(order) -> None:
    function, t = dynamicsymbols("f"), dynamicsymbols._t
    assert differentiate_by_time(function, order) == function.diff(t, order)
    assert differentiate_by_time(function, order).doit() == function.diff(t, order)
    assert differentiate_by_time(function.diff(t), order) == function.diff(t, order + 1)
