"""Derivatives where a branch that is not taken, or a result without weight, has an infinite derivative: 0 · ∞."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import sympy as sm

from mb2fmu.compiler.derivatives import differentiate_forward, differentiate_reverse
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.program import count_operations
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout, ScalarProgram

q, u, m = sm.symbols("q u m", real=True)
KNOWNS = (q, u, m)
AT_ZERO = {q: 0.0, u: 0.75, m: 1.5}

# expression, and its derivatives by q, u, m at q = 0 in the branch that is taken there
GUARDED = {
    "sinc": (u * sm.sinc(q) * m, (0.0, 1.5, 0.75)),
    "sinc of a product": (sm.sinc(q * u) + m, (0.0, 0.0, 1.0)),
    "quotient": (sm.Piecewise((m, sm.Eq(q, 0)), (m * sm.sin(q) / q, True)), (0.0, 0.0, 1.0)),
    "logarithm": (sm.Piecewise((0, q <= 0), (q * sm.log(q) * u, True)) + m * q, (1.5, 0.0, 0.0)),
    "square root": (sm.Piecewise((m * q, q <= 0), (u * sm.sqrt(q), True)), (1.5, 0.0, 0.0)),
    "root of a negative": (sm.Piecewise((u, q < 1), (sm.sqrt(q - 1) * sm.sin(m), True)), (0.0, 1.0, 0.0)),
    "power": (sm.Piecewise((u, q <= 0), (sm.Pow(q, m) / q, True)), (0.0, 1.0, 0.0)),
    "power of a parameter": (sm.Pow(sm.Abs(q), m) + u, (0.0, 1.0, 0.0)),
    "step": (sm.Heaviside(q, sm.Rational(1, 2)) * u + m * q, (1.5, 0.5, 0.0)),
    "step times a pole": (sm.Piecewise((0, sm.Eq(q, 0)), (sm.Heaviside(q) / q, True)) + u * m, (0.0, 1.5, 0.75)),
    "magnitude": (sm.Abs(q) * u + m, (0.0, 0.0, 1.0)),
    "least": (sm.Min(1 / q, u) * m, (0.0, 1.5, 0.75)),
    "one in the other": (
        sm.Piecewise((u, sm.Eq(q, 0)), (sm.Piecewise((sm.cos(1 / q), q > 0), (sm.log(-q), True)) * m, True)),
        (0.0, 1.0, 0.0),
    ),
    "of another condition": (sm.Piecewise((sm.exp(1000 * u + q) ** 2, m < 1), (q * u, True)), (0.75, 0.0, 0.0)),
}
WITHOUT = {
    "root": sm.sqrt(q),
    "arc": sm.asin(1 - q),
    "pole": sm.sin(u / q) * m,
    "power": sm.Pow(sm.Abs(q), sm.Rational(1, 3)),
    "angle": sm.atan2(q, sm.sin(q)),
}


def _program(*expressions: sm.Expr) -> ScalarProgram:
    builder = ProgramBuilder(ProgramVariableLayout(states=("q", "u"), parameters=("m",)))
    leaves = {q: builder.state(0), u: builder.state(1), m: builder.parameter(0)}
    nodes = SympyLowering(builder, leaves).lower([sm.sympify(e) for e in expressions])
    builder.entry("e", [f"y{i}" for i in range(len(nodes))], nodes)
    return builder.build()


def _gradients(program: ScalarProgram, at: dict[sm.Symbol, float], *, batch: bool) -> np.ndarray:
    """Rows: results; columns: q, u, m. One result at a time has a weight."""
    f = make_evaluator(differentiate_reverse(program, "e", ("states", "parameters")), "vjp_e")
    rows = []
    for weights in np.eye(len(program.entries["e"].results)):
        if batch:
            found = f(np.zeros(2), [[at[q], at[u]]] * 2, (), [at[m]], (), weights)
            np.testing.assert_array_equal(found[0], found[1])
            rows.append(found[0])
        else:
            rows.append(f(0.0, [at[q], at[u]], (), [at[m]], (), weights))
    return np.array(rows)


def _directions(program: ScalarProgram, at: dict[sm.Symbol, float], *, batch: bool) -> np.ndarray:
    """The same by directions of one variable each."""
    f = make_evaluator(differentiate_forward(program, "e", ("states", "parameters")), "jvp_e")
    columns = []
    for direction in np.eye(3):
        x = [[at[q], at[u]]] * 2 if batch else [at[q], at[u]]
        found = f(np.zeros(2) if batch else 0.0, x, (), [at[m]], (), direction)
        columns.append(found[0] if batch else found)
    return np.array(columns).T


WAYS = (_gradients, _directions)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", GUARDED)
def test_a_branch_that_is_not_taken_has_no_part_in_a_derivative(name, way, batch):
    expression, expected = GUARDED[name]
    np.testing.assert_allclose(way(_program(expression), AT_ZERO, batch=batch), [expected], rtol=1e-15, atol=0.0)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_all_of_them_at_once(way, batch):
    program = _program(*(expression for expression, _ in GUARDED.values()))
    expected = [row for _, row in GUARDED.values()]
    np.testing.assert_allclose(way(program, AT_ZERO, batch=batch), expected, rtol=1e-15, atol=0.0)


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("name", WITHOUT)
def test_a_result_without_weight_has_no_part_in_a_derivative(name, batch):
    program = _program(u * m + q, WITHOUT[name] + u)
    np.testing.assert_array_equal(_gradients(program, AT_ZERO, batch=batch)[0], [1.0, 1.5, 0.75])


@pytest.mark.parametrize("batch", [False, True])
@pytest.mark.parametrize("name", ["root", "arc", "power", "angle"])
def test_a_variable_that_does_not_move_has_no_part_in_a_derivative(name, batch):
    found = _directions(_program(WITHOUT[name] + u), AT_ZERO, batch=batch)
    assert not np.isfinite(found[0, 0])
    np.testing.assert_array_equal(found[0, 1:], [1.0, 0.0])


@pytest.mark.parametrize("way", WAYS)
def test_an_adjoint_that_is_zero_by_chance_is_not_taken_for_none(way):
    """√q √(q + m) at q = m = 0 has the slope 1 in q: 0 would be wrong, and not defined is what is known."""
    expression = sm.sqrt(q) * sm.sqrt(q + m) + u
    found = way(_program(expression), {q: 0.0, u: 0.5, m: 0.0}, batch=False)
    assert np.isnan(found[0, 0])
    assert found[0, 1] == 1.0


@pytest.mark.parametrize("name", GUARDED)
def test_forward_and_reverse_agree_beside_the_point(name):
    program = _program(GUARDED[name][0], q * u * m)
    for at in itertools.product((-0.4, 0.3, 1.2), (0.02, 0.2), (0.5, 2.5)):
        point = dict(zip(KNOWNS, at, strict=True))
        found = [way(program, point, batch=False) for way in WAYS]
        np.testing.assert_allclose(*found, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("way", [differentiate_forward, differentiate_reverse])
def test_what_cannot_be_infinite_costs_nothing(way):
    smooth = sm.sqrt(q**2 + u**2 + 1) * sm.sin(q) / (2 + sm.cosh(u)) + sm.Max(q, u) * m
    derivative = way(_program(smooth, q * m, sm.atan(u)), "e", ("states", "parameters"))
    count = count_operations(derivative, next(name for name in derivative.entries if name != "e"))
    assert count.get("EQ", 0) == 0
