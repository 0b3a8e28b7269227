"""Functions written without ``lambdify`` have its values; what is not elementary is left to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sm

from mb2fmu.model.elementary_lambdify import lambdify_elementary_expressions
from mb2fmu.model.numpy_lambdify import NUMPY_FUNCTIONS, lambdify_for_numpy
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function

x, y, z = sm.symbols("x y z")
EXPRESSIONS = [
    x + y - z, -x * y / 3, x / (y * z), sm.sqrt(x) / y**2, 1 / sm.sqrt(x + y), x ** sm.Rational(3, 2), x**y, -x - y,
    sm.Abs(x) * sm.atan2(x, y) * sm.pi, -2 * x, sm.Float(1e-30) * x, sm.exp(-x) * sm.log(y), sm.Rational(-1, 3),
    sm.Integer(-7), 1 / (x + y), 2 / x, -1 / x, sm.sin(x) ** 2 * sm.cos(y) ** -3, sm.E * x, x ** (-2),
    x * y / 2, sm.Mul(-1, x + y, evaluate=False) ** 2, sm.asin(x) - sm.acos(x / 2) * sm.tanh(z),
    sm.Float(-2.5) * x ** (-y), sm.Mul(x, -1, evaluate=False), sm.Mul(-1, -1, y, evaluate=False),
    sm.Mul(2, sm.Pow(x, -1, evaluate=False), -1, evaluate=False), sm.Pow(y, 0, evaluate=False),
]  # fmt: skip


def written_by(function: object) -> str:
    return function.__code__.co_name


@pytest.mark.parametrize("cse", [False, True])
def test_values_are_those_of_lambdify(cse: bool) -> None:
    quick, known = lambdify_for_numpy([x, y, z], EXPRESSIONS, cse=cse), sm.lambdify([x, y, z], EXPRESSIONS, "numpy")
    assert written_by(quick) == "elementary"
    np.testing.assert_allclose(quick(0.3, 0.7, 1.1), known(0.3, 0.7, 1.1), rtol=1e-14)
    many = np.array([0.1, 0.4, 0.8])
    for value, expected in zip(quick(many, 0.7, 1.1), known(many, 0.7, 1.1), strict=True):
        np.testing.assert_allclose(value, expected, rtol=1e-14)
    on_floats = compile_scalar_function([x, y, z], EXPRESSIONS)
    assert on_floats(0.3, 0.7, 1.1) == pytest.approx(known(0.3, 0.7, 1.1), rel=1e-14)


def test_results_keep_their_nesting() -> None:
    matrix = lambdify_for_numpy([x, y], sm.Matrix([[x, 1], [0, y]]), cse=True)
    np.testing.assert_array_equal(matrix(2.0, 3.0), [[2.0, 1.0], [0.0, 3.0]])
    assert lambdify_for_numpy([x, y], (x, [y, [x * y]]))(2, 3) == (2, [3, [6]])
    assert lambdify_for_numpy([x, y], sm.zeros(0, 2))(2.0, 3.0).shape == (0, 2)


def test_functions_of_time_are_arguments() -> None:
    q = sm.Function("q")(sm.Symbol("t"))
    assert lambdify_for_numpy([q, q.diff()], [q * q.diff() ** 2], cse=True)(0.3, 0.7) == [pytest.approx(0.3 * 0.49)]


@pytest.mark.parametrize("function", [sm.sin, sm.floor])
def test_names_stand_for_expressions(function) -> None:
    evaluate = lambdify_for_numpy([x], [y * z, x], named=[(y, function(x)), (z, y + x)])
    assert evaluate(2.5) == [pytest.approx(float(function(2.5) * (function(2.5) + 2.5))), 2.5]


def test_what_is_not_elementary_is_left_to_lambdify() -> None:
    cases = [sm.Piecewise((x, x > 0), (y, True)), sm.Heaviside(x), sm.floor(x), x * sm.I, sm.oo, sm.nan]
    for expression in cases:
        assert lambdify_elementary_expressions([x, y], (), [expression], NUMPY_FUNCTIONS) is None
    assert lambdify_for_numpy([x, y], cases[0])(-1.0, 5.0) == 5.0
    deep = x
    for _ in range(105):
        deep = sm.Add(sm.sin(deep, evaluate=False), 1, evaluate=False)
    function = lambdify_for_numpy([x], deep)  # more brackets than Python reads
    assert written_by(function) != "elementary"
    assert function(0.2) == pytest.approx(compile_scalar_function([x], [deep, sm.cos(deep, evaluate=False)])(0.2)[0])
    assert math.isnan(lambdify_for_numpy([x], sm.log(x))(np.float64("nan")))
