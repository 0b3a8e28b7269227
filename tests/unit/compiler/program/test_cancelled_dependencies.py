"""What the graph reads and what matters: linear systems, Newton's method, branches, jumps, tables."""

import numpy as np
import pytest

from mb2fmu.compiler.numerics.linear_solve import solve_dense_system
from mb2fmu.compiler.program import program_result_dependencies as vanishing
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_result_dependencies import find_result_dependencies
from mb2fmu.compiler.program.scalar_program import Op, PiecewisePolynomial, ProgramVariableLayout


def builder():
    return ProgramBuilder(ProgramVariableLayout(states=("x", "y"), parameters=("m", "k")))


def influences(b, *nodes):
    b.entry("e", [str(node) for node in nodes], nodes)
    return [{(d.group[0], d.index) for d in found} for found in find_result_dependencies(b.build(), "e")]


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_mass_that_divides_out_of_a_linear_system(symmetric):
    """m S a = m g: a depends on S and g, not on m; of two systems in one matrix each on its own."""
    b = builder()
    x, y, m, k, zero = b.state(0), b.state(1), b.parameter(0), b.parameter(1), b.constant(0.0)
    two = b.constant(2.0)
    shape = [[b.add(two, b.mul(x, x)), x, zero], [x, two, zero], [zero, zero, k]]
    matrix = [[b.mul(m, entry) for entry in row] for row in shape]
    right = [b.mul(m, entry) for entry in (x, b.constant(1.0), y)]
    ((first, second, third),) = solve_dense_system(b, matrix, [right], name="a", symmetric=symmetric)
    on_x = {("s", 0)}
    assert influences(b, first, second, third) == [on_x, on_x, {("s", 1), ("p", 1)}]


def test_solutions_of_newton_depend_on_what_they_are_solved_from():
    """y0³ + y0 = x, y1 = m y0, whatever the guesses."""
    body = ProgramBuilder(ProgramVariableLayout(states=("y0", "y1"), parameters=("x", "m")))
    y0, y1, x, m = body.state(0), body.state(1), body.parameter(0), body.parameter(1)
    slope = body.add(body.constant(1.0), body.mul(body.constant(3.0), body.mul(y0, y0)))
    first = body.sub(body.add(body.mul(y0, body.mul(y0, y0)), y0), x)
    second = body.sub(y1, body.mul(m, y0))
    step = body.div(first, slope)
    body.entry("residual", ("a", "b"), (first, second))
    body.entry("step", ("a", "b"), (step, body.add(second, body.mul(m, step))))
    jacobian = (slope, body.constant(0.0), body.neg(m), body.constant(1.0))
    body.entry("jacobian", ("aa", "ab", "ba", "bb"), jacobian)
    b = builder()
    one, other = b.newton(body.build(), [b.state(0), b.parameter(0)], [b.state(1), b.state(1)], "y")
    assert influences(b, one, other) == [{("s", 0)}, {("s", 0), ("p", 0)}]


def test_branches_and_jumps_count():
    b = builder()
    x, y, m = b.state(0), b.state(1), b.parameter(0)
    switch = b.binary(Op.LT, x, y)
    both = {("s", 0), ("s", 1)}
    alike = b.div(b.mul(m, b.select(switch, y, b.constant(1.0))), m)
    assert influences(b, b.unary(Op.SIGN, x), b.select(switch, m, b.constant(1.0)), alike) == [
        {("s", 0)},
        both | {("p", 0)},
        both,
    ]


def test_a_table_is_a_function_of_its_argument():
    b = builder()
    table = PiecewisePolynomial("t", (0.0, 1.0), ((1.0,), (2.0,)))
    x, m = b.state(0), b.parameter(0)
    value = b.table(table, 0, x)
    assert influences(b, b.div(b.mul(value, m), m), b.table(table, 1, b.mul(x, m))) == [
        {("s", 0)},
        {("s", 0), ("p", 0)},
    ]


def test_nothing_is_proven_of_what_is_too_large_or_singular(monkeypatch):
    b = builder()
    x, m = b.state(0), b.parameter(0)
    cancelled = b.div(b.mul(b.unary(Op.SIN, x), m), m)
    zero = b.sub(b.add(b.mul(x, m), m), b.mul(m, b.add(x, b.constant(1.0))))
    singular = b.div(x, zero)
    b.entry("e", ("cancelled",), (cancelled,))
    b.entry("singular", ("singular",), (singular,))
    program = b.build()
    variables = [(Op.STATE, 0), (Op.PARAMETER, 0)]
    np.testing.assert_array_equal(
        vanishing.find_dependencies_by_modular_arithmetic(program, [cancelled], variables), [[True, False]]
    )
    np.testing.assert_array_equal(
        vanishing.find_dependencies_by_modular_arithmetic(program, [singular], variables), [[True, True]]
    )
    np.testing.assert_array_equal(
        vanishing.find_dependencies_by_modular_arithmetic(program, [zero], variables), [[True, True]]
    )  # seen as round-off
    monkeypatch.setattr(vanishing, "MAX_PARTIAL_DERIVATIVES", 1)
    np.testing.assert_array_equal(
        vanishing.find_dependencies_by_modular_arithmetic(program, [cancelled], variables), [[True, True]]
    )
