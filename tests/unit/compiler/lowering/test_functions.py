"""Lookup tables: values, derivatives, extrapolation, equality, printing."""

import pickle

import numpy as np
import pytest
import sympy as sm
from scipy.interpolate import CubicSpline, PchipInterpolator

from mb2fmu.compiler.derivatives.forward_derivatives import differentiate_forward
from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout
from mb2fmu.model.supported_functions import LookupTable

v = sm.Symbol("v", real=True)
X, Y = [-1.0, 0.0, 0.5, 2.0, 3.0], [2.0, 0.0, 0.25, 4.0, -1.0]
INSIDE = np.linspace(-0.99, 2.99, 41)


def program(expression):
    builder = ProgramBuilder(ProgramVariableLayout(states=("v",)))
    builder.entry("e", ["y"], SympyLowering(builder, {v: builder.state(0)}).lower([expression]))
    return builder.build()


def values(expression, at):
    return make_evaluator(program(expression), "e")(0.0, np.asarray(at)[:, None])[:, 0]


def interpolant(kind):
    if kind == "linear":
        return lambda a: np.interp(a, X, Y)
    return (CubicSpline if kind == "cubic" else PchipInterpolator)(X, Y)


@pytest.mark.parametrize("kind", ["linear", "cubic", "pchip"])
@pytest.mark.parametrize("extrapolation", ["linear", "constant"])
def test_tables_interpolate_and_go_on(kind, extrapolation):
    table = LookupTable("k", X, Y, kind, extrapolation)
    np.testing.assert_allclose(values(table(v), INSIDE), interpolant(kind)(INSIDE), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(values(table(v), X), Y, rtol=1e-13, atol=1e-13)
    ends, slopes = values(table(v), [-1.0, 3.0]), values(table(v).diff(v), [-1.0 - 1e-9, 3.0])
    for end, slope, start, side in zip(ends, slopes, (-1.0, 3.0), (-1, 1), strict=True):
        outside = values(table(v), [start + side * 0.5, start + side * 50.0])
        expected = [end] * 2 if extrapolation == "constant" else [end + slope * side * h for h in (0.5, 50.0)]
        np.testing.assert_allclose(outside, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", ["linear", "cubic", "pchip"])
def test_one_state_and_a_batch_are_the_same(kind):
    f = make_evaluator(program(LookupTable("k", X, Y, kind)(v)), "e")
    at = np.array([-7.0, *X, *INSIDE, 9.0])
    np.testing.assert_array_equal([f(0.0, [a])[0] for a in at], f(0.0, at[:, None])[:, 0])


@pytest.mark.parametrize("kind", ["linear", "cubic", "pchip"])
def test_tables_differentiate_to_their_derivative(kind):
    expression = LookupTable("k", X, Y, kind)(v**2 / 4) * v
    exact = sm.diff(expression, v)
    at = np.linspace(-2.3, 2.3, 24)
    derivative = make_evaluator(differentiate_forward(program(expression), "e", ["states"]), "jvp_e")
    found = derivative(0.0, at[:, None], s=[1.0])[:, 0]
    np.testing.assert_allclose(found, values(exact, at), rtol=1e-12, atol=1e-12)
    h = 1e-6
    difference = (values(expression, at + h) - values(expression, at - h)) / (2 * h)
    np.testing.assert_allclose(found, difference, rtol=1e-6, atol=1e-6)


def test_sympy_evaluates_rewrites_and_prints_them():
    table = LookupTable("drag", X, Y, "cubic")
    at = [-1.5, 0.2, 2.7, 4.0]
    np.testing.assert_allclose([float(table(sm.Float(a)).evalf()) for a in at], values(table(v), at), rtol=1e-13)
    np.testing.assert_allclose(sm.lambdify(v, table(v))(np.array(at)), values(table(v), at), rtol=1e-13)
    np.testing.assert_allclose([sm.lambdify(v, table(v).diff(v), "math")(a) for a in at], values(table(v).diff(v), at))
    assert str(table(v)) == "drag(v)"
    assert str(table(v).diff(v, 2)) == "drag''(v)"
    assert sm.latex(table(v) ** 2) == r"\left[\operatorname{drag}\left(v\right)\right]^{2}"


def test_equal_content_is_equal():
    assert LookupTable("k", X, Y) == LookupTable("k", list(X), np.array(Y))
    assert hash(LookupTable("k", X, Y)) == hash(LookupTable("k", X, Y))
    assert LookupTable("k", X, Y) != LookupTable("k", X, [*Y[:-1], 0.0])
    assert LookupTable("k", X, Y) != LookupTable("k", X, Y, "cubic")
    table = LookupTable("k", X, Y)
    assert (table(v) + table(v)) == 2 * table(v)
    assert table(v).xreplace({v: sm.Symbol("w")}).table == table
    assert pickle.loads(pickle.dumps(table(v))) == table(v)


@pytest.mark.parametrize(
    ("x", "y", "options"),
    [
        ([0.0], [1.0], {}),
        ([0.0, 0.0], [1.0, 2.0], {}),
        ([0.0, 1.0], [1.0], {}),
        ([0.0, np.nan], [1.0, 2.0], {}),
        ([0.0, 1.0], [1.0, 2.0], {"kind": "quintic"}),
        ([0.0, 1.0], [1.0, 2.0], {"extrapolation": "periodic"}),
    ],
)
def test_bad_data_are_refused(x, y, options):
    with pytest.raises(ValueError, match="table"):
        LookupTable("k", x, y, **options)
