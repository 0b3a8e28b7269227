"""Every supported function, refusal by name, depth, shared graphs."""

import math

import mpmath
import numpy as np
import pytest
import sympy as sm
from sympy.codegen.cfunctions import exp2, log2, log10
from sympy.physics.biomechanics import (
    FiberForceLengthActiveDeGroote2016,
    FiberForceVelocityDeGroote2016,
    TendonForceLengthDeGroote2016,
)

from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout
from mb2fmu.errors import LoweringError
from mb2fmu.model.supported_functions import SUPPORTED_FUNCTIONS

x, y = sm.symbols("x y", real=True)


def lowered(*expressions):
    builder = ProgramBuilder(ProgramVariableLayout(states=("x", "y")))
    walker = SympyLowering(builder, {x: builder.state(0), y: builder.state(1)})
    results = walker.lower(expressions)
    builder.entry("e", list(map(str, range(len(results)))), results)
    return prune_program(builder.build())


def value(expression, *at):
    return make_evaluator(lowered(expression), "e")(0.0, at)[0]


SMALL = [sm.asin, sm.acos, sm.atanh]
LARGE = [sm.acosh, sm.asec, sm.acsc]
ANY = [
    *(sm.exp, sm.log, sm.sqrt, sm.cbrt, sm.sin, sm.cos, sm.tan, sm.cot, sm.sec, sm.csc, sm.atan, sm.acot, sm.sinh),
    *(sm.cosh, sm.tanh, sm.coth, sm.sech, sm.csch, sm.asinh, sm.Abs, sm.sign, sm.floor, sm.ceiling, sm.erf, sm.erfc),
    *(sm.sinc, sm.Heaviside, sm.frac, exp2, log2, log10, lambda a: a ** sm.Rational(-7, 2), lambda a: a**y),
    *(lambda a: sm.Mod(a, 2), lambda a: sm.atan2(a, -y), lambda a: sm.Max(a, y, 1), lambda a: sm.Min(a, y, 1)),
    *(lambda a: sm.pi * a + sm.E**a - sm.S(1) / 3, lambda a: sm.re(a) + sm.im(a) + sm.conjugate(a)),
]
CURVES = [TendonForceLengthDeGroote2016, FiberForceLengthActiveDeGroote2016, FiberForceVelocityDeGroote2016]


@pytest.mark.parametrize(
    ("function", "at"),
    [
        *((f, 0.37) for f in SMALL),
        *((f, 1.7) for f in LARGE),
        *((f, 1.3) for f in ANY),
    ],
)
def test_each_function_has_the_value_sympy_gives_it(function, at):
    expression = function(x)
    # evalf knows every function; the numbers are handed over as the exact rationals that the doubles are
    exact = expression.subs({x: sm.Rational(at), y: sm.Rational(0.7)}).doit().evalf(30)
    assert value(expression, at, 0.7) == pytest.approx(float(exact), rel=4e-15, abs=1e-16)


@pytest.mark.parametrize("curve", CURVES)
def test_musculotendon_curves(curve):
    """SymPy multiplies out 33.9 (l − 0.995), and the exponential makes 34 roundings of that difference."""
    expression = curve.with_defaults(x)
    for at in (0.9, 0.99, 1.02):
        exact = float(expression.subs(x, sm.Rational(at)).doit().evalf(30))
        assert value(expression, at, 0.0) == pytest.approx(exact, rel=34 * 4e-15)


@pytest.mark.parametrize("at", [-1.5, 0.0, 1.0, 1.5])
def test_selections_at_and_beside_their_edges(at):
    assert value(sm.Heaviside(x, sm.S(1) / 3), at, 0.0) == (1 / 3 if at == 0 else float(at > 0))
    assert value(sm.sinc(x), at, 0.0) == (1.0 if at == 0 else pytest.approx(math.sin(at) / at, rel=1e-15))
    pieces = sm.Piecewise((sm.sqrt(x), x > 1), (1 / x, sm.And(x > 0, sm.Ne(x, 1))), (7, sm.Or(x < -1, sm.Eq(x, 1))))
    expected = math.sqrt(at) if at > 1 else 7.0
    got = value(pieces, at, 0.0)
    assert math.isnan(got) if at == 0 else got == expected
    assert value(sm.Piecewise((1, sm.Not(sm.Or(x >= 1, x < 0))), (2, sm.ITE(x > 1, y > 0, y < 1))), at, 0.5) == (
        1.0 if at == 0 else 2.0
    )


@pytest.mark.parametrize(
    "number",
    [sm.Rational(1, 3), sm.Rational(10**30 + 1, 10**30 - 7), sm.pi, sm.E, sm.sqrt(2) * sm.pi, sm.Float("0.1", 40)],
)
def test_numbers_are_rounded_once(number):
    with mpmath.workdps(60):
        exact = mpmath.mpf(str(number.evalf(60)))
        nearest = float(exact)
    assert value(number, 0.0, 0.0) == nearest
    assert value(number + x - x, 0.0, 0.0) == nearest


def test_all_that_is_not_supported_is_named_at_once():
    f = sm.Function("f")
    with pytest.raises(LoweringError) as caught:
        lowered(sm.gamma(x) + sm.besselj(0, y) * f(x), sm.Symbol("unknown"))
    text = str(caught.value)
    for name in ("gamma", "besselj", "f", "unknown", *SUPPORTED_FUNCTIONS):
        assert name in text


def test_depth_is_no_limit():
    deep = x
    for _ in range(10_000):
        deep = sm.sin(deep, evaluate=False)
    expected = 0.5
    for _ in range(10_000):
        expected = math.sin(expected)
    assert value(deep, 0.5, 0.0) == expected


def test_a_shared_graph_costs_its_size():
    shared = x
    for _ in range(200):  # a tree of 2^200 leaves
        shared = sm.Add(sm.sin(shared, evaluate=False), sm.cos(shared, evaluate=False), evaluate=False)
    program = lowered(shared)
    assert len(program) == 1 + 3 * 200


def test_quotients_are_divided_once():
    from mb2fmu.compiler.program.program_result_dependencies import count_operations

    assert count_operations(lowered(x / (y * (1 + x) ** 2)), "e") == {"ADD": 1, "DIV": 1, "MUL": 2}
    assert count_operations(lowered(-x - y), "e") == {"ADD": 1, "NEG": 1}
    assert count_operations(lowered(x - 2 * y), "e") == {"MUL": 1, "SUB": 1}


def test_matrices_of_symbols_in_any_order_give_the_same_nodes():
    first = lowered(sm.Add(x, y, evaluate=False), sm.Mul(y, x, evaluate=False))
    second = lowered(sm.Add(y, x, evaluate=False), sm.Mul(x, y, evaluate=False))
    np.testing.assert_array_equal(first.op, second.op)
