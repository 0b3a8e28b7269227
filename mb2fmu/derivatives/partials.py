"""Partial derivatives of the elementary operations, as nodes.

Where an operation has a kink (Abs) the derivative is that of the branch taken; jumps (sign, floor) have derivative 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from mb2fmu.program.builder import ProgramBuilder
from mb2fmu.program.program import Op

FLAT = frozenset({Op.SIGN, Op.FLOOR, Op.CEIL, Op.LT, Op.LE, Op.EQ, Op.NOT, Op.AND, Op.OR, Op.FROZEN})
"""Operations whose derivative is 0 wherever it exists."""

_WITH_SQUARE = frozenset({Op.ASIN, Op.ACOS, Op.ATAN, Op.ASINH, Op.ACOSH, Op.ATANH, Op.ERF})


def partial(b: ProgramBuilder, op: Op, nodes: Sequence[int], value: int, k: int) -> int:
    """The derivative of an operation with respect to its operand ``k``.

    Args:
        b: Takes the nodes.
        op: One or two operands; sums, quotients and selections have rules of their own in either mode.
        nodes: The operands.
        value: What the operation gives.
        k: 0 or 1.
    """
    x = nodes[0]
    if op is Op.MUL:
        return nodes[1 - k]
    if op is Op.POW:
        if k == 1:
            slope = b.mul(value, b.unary(Op.LOG, x))
            zero = b.constant(0.0)
            return b.select(b.binary(Op.EQ, value, zero), zero, slope)  # a**b ln a goes to 0 with a**b
        return b.mul(nodes[1], b.power(x, b.sub(nodes[1], b.constant(1.0))))
    if op is Op.ATAN2:
        squares = b.add(b.mul(nodes[0], nodes[0]), b.mul(nodes[1], nodes[1]))
        return b.div(nodes[1], squares) if k == 0 else b.neg(b.div(nodes[0], squares))
    return _slope(b, op, x, value)


def _slope(b: ProgramBuilder, op: Op, x: int, value: int) -> int:
    """The derivative of a function of one argument."""
    one = b.constant(1.0)
    square = b.mul(x, x) if op in _WITH_SQUARE else -1
    value_square = b.mul(value, value) if op in {Op.TAN, Op.TANH} else -1
    slopes = {
        Op.NEG: lambda: b.constant(-1.0),
        Op.SQRT: lambda: b.div(b.constant(0.5), value),
        Op.EXP: lambda: value,
        Op.LOG: lambda: b.div(one, x),
        Op.SIN: lambda: b.unary(Op.COS, x),
        Op.COS: lambda: b.neg(b.unary(Op.SIN, x)),
        Op.TAN: lambda: b.add(one, value_square),
        Op.ASIN: lambda: b.div(one, b.unary(Op.SQRT, b.sub(one, square))),
        Op.ACOS: lambda: b.neg(b.div(one, b.unary(Op.SQRT, b.sub(one, square)))),
        Op.ATAN: lambda: b.div(one, b.add(one, square)),
        Op.SINH: lambda: b.unary(Op.COSH, x),
        Op.COSH: lambda: b.unary(Op.SINH, x),
        Op.TANH: lambda: b.sub(one, value_square),
        Op.ASINH: lambda: b.div(one, b.unary(Op.SQRT, b.add(square, one))),
        Op.ACOSH: lambda: b.div(one, b.unary(Op.SQRT, b.sub(square, one))),
        Op.ATANH: lambda: b.div(one, b.sub(one, square)),
        Op.ABS: lambda: b.unary(Op.SIGN, x),
        Op.ERF: lambda: b.mul(b.constant(2.0 / math.sqrt(math.pi)), b.unary(Op.EXP, b.neg(square))),
    }
    return slopes[op]()
