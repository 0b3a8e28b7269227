"""Folding: each law, and that equal nodes are one node."""

import math

import numpy as np
import pytest

from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import (
    EquationSolveBlock,
    Op,
    PiecewisePolynomial,
    ProgramEntryPoint,
    ProgramVariableLayout,
    ScalarProgram,
)


@pytest.fixture
def b():
    return ProgramBuilder(ProgramVariableLayout(states=("x", "y"), inputs=("r",), parameters=("p",)))


def test_neutral_and_absorbing_elements_vanish(b):
    x, zero, one = b.state(0), b.constant(0.0), b.constant(1.0)
    assert b.add(x, zero) == b.sub(x, zero) == b.mul(one, x) == b.div(x, one) == b.neg(b.neg(x)) == x
    assert b.sub(x, x) == b.mul(zero, x) == b.div(zero, x) == zero
    assert b.div(x, x) == b.power(x, zero) == one
    assert b.power(x, one) == x


def test_zero_has_no_sign(b):
    assert b.constant(-0.0) == b.constant(0.0)
    assert math.copysign(1.0, b.value(b.neg(b.constant(0.0)))) == 1.0


def test_signs_move_out_until_a_sum_takes_them(b):
    x, y = b.state(0), b.state(1)
    assert b.add(x, b.neg(y)) == b.sub(x, y)
    assert b.sub(x, b.neg(y)) == b.add(x, y)
    assert b.mul(b.neg(x), b.neg(y)) == b.mul(x, y)
    assert b.mul(b.neg(x), y) == b.neg(b.mul(x, y))
    assert b.div(x, b.neg(y)) == b.neg(b.div(x, y))
    assert b.sub(y, x) == b.neg(b.sub(x, y))
    assert b.sum([b.neg(x), b.neg(y)]) == b.neg(b.add(x, y))


def test_operand_order_does_not_matter(b):
    x, y = b.state(0), b.state(1)
    assert b.add(x, y) == b.add(y, x)
    assert b.mul(x, y) == b.mul(y, x)
    assert b.binary(Op.MAX, x, y) == b.binary(Op.MAX, y, x)
    assert b.sub(x, y) != b.sub(y, x)


def test_one_sine_and_cosine_per_angle(b):
    x = b.state(0)
    assert b.unary(Op.SIN, b.neg(x)) == b.neg(b.unary(Op.SIN, x))
    assert b.unary(Op.COS, b.neg(x)) == b.unary(Op.COS, x)
    assert b.unary(Op.ABS, b.neg(x)) == b.unary(Op.ABS, x)


def test_powers_become_products_and_roots(b):
    x = b.state(0)
    square = b.mul(x, x)
    assert b.power(x, b.constant(4.0)) == b.mul(square, square)
    assert b.power(x, b.constant(0.5)) == b.unary(Op.SQRT, x)
    assert b.power(x, b.constant(-1.0)) == b.div(b.constant(1.0), x)
    assert b.power(x, b.constant(-0.5)) == b.div(b.constant(1.0), b.unary(Op.SQRT, x))
    assert b.power(x, b.constant(1.5)) == b.mul(x, b.unary(Op.SQRT, x))
    b.entry("e", ["cube root"], [b.power(x, b.constant(1 / 3))])
    assert Op.POW in set(b.build().op)


def test_common_factors_leave_sums(b):
    x, y, r, p = b.state(0), b.state(1), b.input(0), b.parameter(0)
    total = b.sum([b.mul(x, y), b.mul(x, r)], [b.mul(x, p)])
    inner = b.sum([y, r], [p])
    assert total == b.mul(x, inner)


def test_common_divisors_leave_sums(b):
    x, y, p = b.state(0), b.state(1), b.parameter(0)
    assert b.sum([b.div(x, p), y], [b.div(y, p)]) == b.sum([b.div(b.sub(x, y), p), y])
    assert b.sum([b.div(x, p), b.div(y, x)]) == b.add(b.div(x, p), b.div(y, x))


def test_factors_that_all_terms_have_leave_as_one_product(b):
    x, y, r, p = b.state(0), b.state(1), b.input(0), b.parameter(0)
    square = b.mul(p, p)
    found = b.sum([b.mul(b.mul(x, r), square), b.mul(b.mul(y, r), square)])
    assert found == b.mul(b.product([p, p, r]), b.add(x, y))


def test_the_order_of_factors_does_not_matter_once_a_product_is_known(b):
    x, y, r = b.state(0), b.state(1), b.input(0)
    inner, known = b.mul(x, y), b.mul(b.mul(y, r), x)
    count = len(b)
    assert b.mul(r, inner) == known
    assert len(b) == count


def test_the_shortest_of_several_ways_leaves_no_trace_of_the_others(b):
    x, y = b.state(0), b.state(1)
    square = b.mul(x, x)
    count = len(b)

    def long() -> int:
        return b.sub(b.mul(b.add(x, y), b.constant(7.0)), b.unary(Op.SQRT, b.constant(5.0)))

    assert b.build_smallest_alternative([long, lambda: b.add(square, y)]) == count
    assert len(b) == count + 1
    assert b.value(b.constant(7.0)) == 7.0
    assert evaluated(b, long()) == 7.0 * (2.0 + 3.0) - math.sqrt(5.0)


def evaluated(b: ProgramBuilder, node: int) -> float:
    b.entry("e", ["e"], [node])
    return float(make_evaluator(b.build(), "e")(0.0, np.array([2.0, 3.0]), np.zeros(1), np.zeros(1))[0])


def test_a_product_of_products_does_not_unfold(b):
    x, y = b.state(0), b.state(1)
    power = x
    for _ in range(60):
        power = b.mul(power, power)
    before = len(b)
    b.sum([b.mul(power, y), y])
    assert len(b) - before < 5


def test_selection_with_a_known_condition(b):
    x, y = b.state(0), b.state(1)
    condition = b.binary(Op.LT, x, y)
    assert b.select(b.constant(1.0), x, y) == x
    assert b.select(b.constant(0.0), x, y) == y
    assert b.select(condition, x, x) == x
    assert b.select(b.unary(Op.NOT, condition), x, y) == b.select(condition, y, x)
    assert b.binary(Op.AND, condition, b.constant(1.0)) == condition
    one, late = b.constant(1.0), b.binary(Op.LT, b.state(1), b.state(0))
    assert one < late == b.binary(Op.AND, late, one) == b.binary(Op.AND, one, late)
    assert b.is_zero(b.binary(Op.AND, condition, b.constant(0.0)))
    assert b.value(b.binary(Op.OR, condition, b.constant(1.0))) == 1.0


def test_numbers_are_folded_as_ieee_has_them(b):
    one, zero = b.constant(1.0), b.constant(0.0)
    assert b.value(b.div(one, zero)) == math.inf
    assert b.value(b.div(b.constant(-1.0), zero)) == -math.inf
    assert math.isnan(b.value(b.unary(Op.SQRT, b.constant(-1.0))))
    assert b.value(b.unary(Op.EXP, b.constant(1.0))) == math.e
    assert b.value(b.unary(Op.EXP, b.constant(1e4))) == math.inf
    assert b.value(b.unary(Op.LOG, zero)) == -math.inf
    assert b.value(b.add(b.constant(0.1), b.constant(0.2))) == 0.1 + 0.2


def test_tables_of_equal_content_are_one(b):
    table = PiecewisePolynomial("t", (0.0, 1.0), ((0.0,), (2.0,)))
    same = PiecewisePolynomial("t", (0.0, 1.0), ((0.0,), (2.0,)))
    x = b.state(0)
    assert b.table(table, 0, x) == b.table(same, 0, x)
    assert b.is_zero(b.table(table, 2, x))


def test_forty_thousand_nodes(b):
    x, node = b.state(0), b.state(1)
    for i in range(20_000):
        node = b.add(b.mul(x, node), b.constant(float(i % 7 + 1)))
    b.entry("e", ["y"], [node])
    program = b.build()
    assert len(program) > 40_000
    value = 1.0
    for i in range(20_000):
        value = 0.5 * value + (i % 7 + 1)
    assert make_evaluator(program, "e")(0.0, [0.5, 1.0], [0.0], [0.0])[0] == pytest.approx(value, rel=1e-14)


def _program(op, a, b, entries=None, blocks=()):
    arrays = [np.array(column, dtype=np.int32) for column in (a, b, [-1] * len(a))]
    return ScalarProgram(
        ProgramVariableLayout(states=("x",)),
        np.array(op, dtype=np.uint8),
        *arrays,
        np.array([]),
        blocks,
        (),
        entries or {},
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {"op": [Op.STATE], "a": [1], "b": [-1]},
        {"op": [Op.NEG, Op.STATE], "a": [1, 0], "b": [-1, -1]},
        {"op": [Op.CONSTANT], "a": [0], "b": [-1]},
        {"op": [Op.STATE, Op.ADD], "a": [0, 0], "b": [-1, -1]},
        {"op": [Op.STATE], "a": [0], "b": [-1], "entries": {"e": ProgramEntryPoint("e", ("y",), (1,))}},
        {"op": [Op.STATE], "a": [0], "b": [-1], "entries": {"e": ProgramEntryPoint("f", ("y",), (0,))}},
        {"op": [Op.STATE, Op.BLOCK], "a": [0, 0], "b": [-1, 0], "blocks": (EquationSolveBlock("lu_factor", 1, (0,)),)},
        {"op": [Op.STATE], "a": [0], "b": [-1], "blocks": (EquationSolveBlock("solve", 1, (0,), 0),)},
    ],
)
def test_programs_that_break_their_laws_are_refused(arguments):
    with pytest.raises(AssertionError):
        _program(**arguments)


def test_blocks_and_tables_that_break_their_laws_are_refused():
    with pytest.raises(AssertionError):
        EquationSolveBlock("ldlt_factor", 2, (0, 1))
    with pytest.raises(AssertionError):
        EquationSolveBlock("solve", 1, (0,))
    with pytest.raises(AssertionError):
        PiecewisePolynomial("t", (0.0, 0.0), ((1.0,),))
    with pytest.raises(AssertionError):
        ProgramEntryPoint("e", ("a", "b"), (0,))
