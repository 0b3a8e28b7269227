"""Many instances at once: each row has the bits that it has alone."""

from __future__ import annotations

import numpy as np
import pytest

from mb2fmu.errors import EmitError
from mb2fmu.lowering import evaluator
from mb2fmu.lowering.builder import ProgramBuilder
from mb2fmu.lowering.program import LEAVES, Block, Layout, Op, Program, Table
from mb2fmu.toolchain import compile_program

FUNCTIONS = (
    *(Op.SQRT, Op.EXP, Op.LOG, Op.SIN, Op.COS, Op.TAN, Op.ASIN, Op.ACOS, Op.ATAN, Op.SINH, Op.COSH, Op.TANH, Op.ASINH),
    *(Op.ACOSH, Op.ATANH, Op.ABS, Op.SIGN, Op.FLOOR, Op.CEIL, Op.ERF),
)
PAIRS = (Op.ADD, Op.SUB, Op.MUL, Op.DIV, Op.POW, Op.ATAN2, Op.MIN, Op.MAX, Op.LT, Op.LE, Op.EQ)


def everything() -> Program:
    """Every operation once, a value that depends on parameters only, and a row of turns that becomes a loop."""
    b = ProgramBuilder(Layout(states=("x", "y"), inputs=("f",), parameters=("p", "k")))
    x, y, f, p, k = b.state(0), b.state(1), b.input(0), b.parameter(0), b.parameter(1)
    table = Table("curve", (0.0, 0.5, 1.0), ((1.0, 0.5), (-1.0, 2.0)))
    results = [b.unary(op, x) for op in FUNCTIONS] + [b.binary(op, x, y) for op in PAIRS]
    less, small = b.binary(Op.LT, x, y), b.binary(Op.LE, y, k)
    results += [b.unary(Op.NOT, less), b.binary(Op.AND, less, small), b.binary(Op.OR, less, small)]
    results += [
        b.select(b.binary(Op.LT, x, y), b.mul(p, k), f),
        b.table(table, 0, y),
        b.constant(2.5),
        x,
        b.time(),
        b.neg(x),
    ]
    turned = y
    for _ in range(120):
        turned = b.add(b.mul(b.sub(turned, x), k), b.div(f, b.add(b.mul(turned, turned), b.constant(1.5))))
    b.require(turned, "turns", positive=False)
    results.append(b.div(x, turned))
    b.entry("rhs", [f"result {i}" for i in range(len(results))], results)
    return b.build()


def test_rows_have_the_bits_that_they_have_alone() -> None:
    program = everything()
    f = compile_program(program)
    rng = np.random.default_rng(5)
    n = 11  # no multiple of the lanes
    t, x = rng.normal(size=n), rng.normal(size=(n, 2)) * np.array([0.9, 1.0])
    x[3], x[4] = [4e5, -1e7], [np.nan, np.inf]
    r, p = rng.normal(size=(n, 1)), rng.uniform(0.1, 0.9, (n, 2))
    y = f(t, x, r, p)
    assert y.shape == (n, len(f.labels))
    for i in range(n):
        assert f(t[i], x[i], r[i], p[i]).tobytes() == y[i].tobytes()
    expected = evaluator(program, "rhs")(t, x, r, p)
    usual = np.ones(n, dtype=bool)
    usual[[3, 4]] = False
    np.testing.assert_allclose(y[usual], expected[usual], rtol=1e-12, atol=1e-14)


def test_what_is_given_once_holds_for_all_rows() -> None:
    f = compile_program(everything())
    x = np.linspace(0.1, 0.9, 12).reshape(6, 2)
    rows = f(0.5, x, [0.3], [0.2, 0.4])
    assert rows.tobytes() == f(np.full(6, 0.5), x, np.full((6, 1), 0.3), np.tile([0.2, 0.4], (6, 1))).tobytes()
    with pytest.raises(ValueError, match=r"different sizes: \[2, 6\]"):
        f(0.0, x, [[0.1], [0.2]], [0.2, 0.4])


def test_singular_rows_are_nan_and_others_are_not() -> None:
    b = ProgramBuilder(Layout(states=("a",)))
    pivot = b.sub(b.state(0), b.constant(1.0))
    b.require(pivot, "pivot", positive=True)
    b.entry("rhs", ["a"], [b.div(b.constant(1.0), pivot)])
    y = compile_program(b.build())(0.0, [[0.5], [1.0], [3.0]])[:, 0]
    assert np.isnan(y[:2]).all()
    assert y[2] == 0.5


def test_blocks_are_refused_by_name() -> None:
    b = ProgramBuilder(Layout(states=("a",)))
    a = b.state(0)
    factor = b.block(Block("lu_factor", 2, (a, b.constant(1.0), b.constant(2.0), a), name="the mass matrix"))
    b.entry("rhs", ["a"], b.solution(factor, [a, a])[:1])
    with pytest.raises(EmitError, match="the mass matrix"):
        compile_program(b.build())


def test_every_operation_is_there() -> None:
    kinds = {*FUNCTIONS, *PAIRS, Op.NOT, Op.AND, Op.OR, Op.NEG, Op.SELECT, Op.TABLE}
    used = {Op(int(op)) for op in everything().op}
    assert kinds <= used
    computed = set(Op) - LEAVES - {Op.BLOCK, Op.FROZEN}
    assert computed == kinds
