"""Rules that turn SymPy expressions into nodes: one ``Rule`` per class."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sympy as sm
from sympy.codegen import cfunctions
from sympy.physics.biomechanics.curve import CharacteristicCurveFunction

from mb2fmu.compiler.program.program import Op, Table
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.model.functions import NoEvent, Pre, StickingSign, TableValue
from mb2fmu.model.scalar_operations import OPERATIONS, Operation

Nodes = Sequence[int]


@dataclass(frozen=True, slots=True)
class Rule:
    """Lowering of one class.

    Attributes:
        children: Expressions that are lowered first.
        combine: The builder, the expression and the nodes of its children → its node.
    """

    children: Callable[[sm.Basic], tuple[sm.Basic, ...]]
    combine: Callable[[ProgramBuilder, sm.Basic, Nodes], int]


def _arguments(expression: sm.Basic) -> tuple[sm.Basic, ...]:
    """Return the arguments of an expression: the children that are lowered first."""
    arguments: tuple[sm.Basic, ...] = expression.args
    return arguments


def _rule(combine: Callable[[ProgramBuilder, sm.Basic, Nodes], int]) -> Rule:
    """Return the rule of a class whose children are its arguments."""
    return Rule(_arguments, combine)


def _function(row: Operation) -> Rule:
    """Return the rule of a class of SymPy that is an operation."""
    if row.arity == 1:
        return _rule(lambda b, _, n: b.unary(row.op, n[0]))
    return _rule(lambda b, _, n: b.binary(row.op, n[0], n[1]))


def _sympy_class(name: str) -> type:
    """Return a class of SymPy, or of its functions of C."""
    found: type = getattr(sm, name, None) or getattr(cfunctions, name)
    return found


def _switching(op: Op) -> Rule:
    """Return the rule of a one-argument operation that jumps, marked as a switch for event detection."""
    return _rule(lambda b, _, n: b.switch(b.unary(op, n[0])))


def _reciprocal(op: Op) -> Rule:
    """Return the rule of 1/f(x), as sec is of cos."""
    return _rule(lambda b, _, n: b.div(b.constant(1.0), b.unary(op, n[0])))


def _of_reciprocal(op: Op) -> Rule:
    """Return the rule of f(1/x), as acot is of atan."""
    return _rule(lambda b, _, n: b.unary(op, b.div(b.constant(1.0), n[0])))


def _nested(op: Op) -> Rule:
    """Return a function of any number of arguments."""

    def combine(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
        """Combine the operands pairwise in the order of their node numbers, so that equal sets share nodes."""
        ordered = sorted(n)
        result = ordered[0]
        for node in ordered[1:]:
            result = b.switch(b.binary(op, result, node))
        return result

    return _rule(combine)


def _same(_b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return the child's node: a wrapper that changes nothing."""
    return n[0]


# --- sums and products -----------------------------------------------------------------------------------------------


def _sum(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return the node of a sum of all arguments."""
    return b.sum(n)


def _is_divisor(factor: sm.Basic) -> bool:
    """True for x**−n."""
    return bool(factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative)


def _product_children(expression: sm.Basic) -> tuple[sm.Basic, ...]:
    """Return the factors of a product; a divisor 1/x gives x, which `combine` divides by."""
    return tuple(factor.base if _is_divisor(factor) else factor for factor in expression.args)


def _product(b: ProgramBuilder, expression: sm.Basic, n: Nodes) -> int:
    """Return all divisors in one division."""
    factors, divisors = [], []
    for factor, node in zip(expression.args, n, strict=True):
        if _is_divisor(factor):
            divisors.append(b.power(node, b.constant(float(-factor.exp))))
        else:
            factors.append(node)
    return b.div(b.product(factors), b.product(divisors))


def _power(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return the node of base to the exponent."""
    return b.power(n[0], n[1])


# --- selections ------------------------------------------------------------------------------------------------------


def _piecewise_children(expression: sm.Basic) -> tuple[sm.Basic, ...]:
    """Return expression, condition, expression, condition, … of a Piecewise."""
    return tuple(part for pair in expression.args for part in pair.args)


def _piecewise(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return the chosen expression; NaN where no condition holds."""
    result = b.constant(float("nan"))
    for value, condition in reversed(list(zip(n[::2], n[1::2], strict=True))):
        result = b.select(condition, value, result)
    return result


def _heaviside(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return nodes for 0 below zero, the given value at zero, and 1 above (NaN stays with the last)."""
    x, at_zero = n
    zero, one = b.constant(0.0), b.constant(1.0)
    below, here = b.switch(b.binary(Op.LT, x, zero)), b.switch(b.binary(Op.EQ, x, zero))
    return b.select(below, zero, b.select(here, at_zero, one))


def _sinc(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return sin(x)/x, selected as 1 at x = 0."""
    is_zero = b.binary(Op.EQ, n[0], b.constant(0.0))
    return b.select(is_zero, b.constant(1.0), b.div(b.unary(Op.SIN, n[0]), n[0]))


def _compare(op: Op, *, swapped: bool = False, negated: bool = False) -> Rule:
    """Return the rule of a comparison: operands may be exchanged, the answer negated."""

    def combine(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
        left, right = (n[1], n[0]) if swapped else (n[0], n[1])
        result = b.switch(b.binary(op, left, right))
        return b.unary(Op.NOT, result) if negated else result

    return _rule(combine)


def _truth(value: float) -> Rule:
    """Return the rule of a constant truth value: 0.0 or 1.0."""
    return Rule(lambda _: (), lambda b, _e, _n: b.constant(value))


# --- functions made of others ----------------------------------------------------------------------------------------


def _modulo(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return a − b·floor(a/b); the jump of floor is a switch."""
    return b.sub(n[0], b.mul(n[1], b.switch(b.unary(Op.FLOOR, b.div(n[0], n[1])))))


def _table(b: ProgramBuilder, expression: sm.Basic, n: Nodes) -> int:
    """Return the node of a table function, or of its derivative of the expression's order.

    Where a table has kinks, which of its straight pieces holds is a switch, and what it is on that piece has none.
    """
    data = expression.table
    whole = Table(data.name, data.breaks, data.coefficients)
    if len(data.coefficients) > 2 or expression.order > 1:
        return b.table(whole, expression.order, n[0])
    (y, slopes), breaks = data.coefficients, data.breaks
    kinks = [i for i in range(1, len(slopes)) if slopes[i] != slopes[i - 1]]
    if not kinks:
        return b.table(whole, expression.order, n[0])
    first = [0, *kinks]  # piece with which each straight line begins
    origins = [kinks[0], *kinks]  # kink at which its value is known: the first line has only its end
    number = _numbering(data.name, [breaks[i] for i in kinks], breaks[-1] - breaks[0])
    line = b.switch(b.unary(Op.FLOOR, b.table(number, 0, n[0])))

    def on_line(word: str, values: list[float]) -> int:
        """Return what is constant on each line, by the line's number."""
        return b.table(
            Table(f"{data.name}_{word}", tuple(map(float, range(len(values) + 1))), (tuple(values),)), 0, line
        )

    slope = on_line("slope", [slopes[i] for i in first])
    if expression.order:
        return slope
    begin, value = on_line("begin", [breaks[i] for i in origins]), on_line("value", [y[i] for i in origins])
    return b.add(value, b.mul(slope, b.sub(n[0], begin)))


def _numbering(name: str, kinks: list[float], width: float) -> Table:
    """Return the table that is j at the j-th kink, straight in between, and half a number more and less far out."""
    xs = [kinks[0] - width, *kinks, kinks[-1] + width]
    ys = [0.5, *map(float, range(1, len(kinks) + 1)), len(kinks) + 0.5]
    rises = [
        (after - before) / (end - begin) for begin, end, before, after in zip(xs, xs[1:], ys, ys[1:], strict=False)
    ]
    flat = (xs[0] - width, *xs, xs[-1] + width)
    return Table(f"{name}_line", flat, ((ys[0], *ys), (0.0, *rises, 0.0)))


def _sign(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return sign(a); with the break-away ratio where it has one."""
    return b.sign_that_sticks(n[0], n[1] if len(n) > 1 else b.constant(1.0))


def _expanded(expression: sm.Basic) -> tuple[sm.Basic, ...]:
    """Return the formula of a named curve, its arguments unchanged."""
    return (expression.doit(deep=False),)


def _number(b: ProgramBuilder, expression: sm.Basic, _n: Nodes) -> int:
    """Return numbers without a finite real value: ∞ and NaN; finite ones are handled before."""
    return b.constant(float(expression))


RULES: dict[type, Rule] = {
    **{_sympy_class(row.sympy): _function(row) for row in OPERATIONS.values() if row.sympy},
    sm.Number: Rule(lambda _: (), _number),
    sm.NumberSymbol: Rule(lambda _: (), _number),
    sm.Add: _rule(_sum),
    sm.Mul: Rule(_product_children, _product),
    sm.Pow: _rule(_power),
    sm.Abs: _switching(Op.ABS),
    sm.sign: _rule(_sign),
    StickingSign: _rule(_sign),
    NoEvent: _rule(lambda b, _, n: b.without_events(n[0])),
    Pre: _rule(_same),
    sm.floor: _switching(Op.FLOOR),
    sm.ceiling: _switching(Op.CEIL),
    sm.erfc: _rule(lambda b, _, n: b.sub(b.constant(1.0), b.unary(Op.ERF, n[0]))),
    sm.cot: _reciprocal(Op.TAN),
    sm.sec: _reciprocal(Op.COS),
    sm.csc: _reciprocal(Op.SIN),
    sm.coth: _reciprocal(Op.TANH),
    sm.sech: _reciprocal(Op.COSH),
    sm.csch: _reciprocal(Op.SINH),
    sm.acot: _of_reciprocal(Op.ATAN),
    sm.asec: _of_reciprocal(Op.ACOS),
    sm.acsc: _of_reciprocal(Op.ASIN),
    sm.sinc: _rule(_sinc),
    sm.Mod: _rule(_modulo),
    sm.frac: _rule(lambda b, _, n: b.sub(n[0], b.switch(b.unary(Op.FLOOR, n[0])))),
    sm.Min: _nested(Op.MIN),
    sm.Max: _nested(Op.MAX),
    sm.Piecewise: Rule(_piecewise_children, _piecewise),
    sm.ITE: _rule(lambda b, _, n: b.select(n[0], n[1], n[2])),
    sm.Heaviside: _rule(_heaviside),
    sm.StrictLessThan: _compare(Op.LT),
    sm.LessThan: _compare(Op.LE),
    sm.StrictGreaterThan: _compare(Op.LT, swapped=True),
    sm.GreaterThan: _compare(Op.LE, swapped=True),
    sm.Equality: _compare(Op.EQ),
    sm.Unequality: _compare(Op.EQ, negated=True),
    sm.And: _nested(Op.AND),
    sm.Or: _nested(Op.OR),
    type(sm.true): _truth(1.0),
    type(sm.false): _truth(0.0),
    # every symbol is real
    sm.re: _rule(_same),
    sm.conjugate: _rule(_same),
    sm.im: _truth(0.0),
    sm.UnevaluatedExpr: _rule(_same),
    cfunctions.log2: _rule(lambda b, _, n: b.div(b.unary(Op.LOG, n[0]), b.constant(float(sm.log(2).evalf(25))))),
    cfunctions.log10: _rule(lambda b, _, n: b.div(b.unary(Op.LOG, n[0]), b.constant(float(sm.log(10).evalf(25))))),
    cfunctions.exp2: _rule(lambda b, _, n: b.power(b.constant(2.0), n[0])),
    CharacteristicCurveFunction: Rule(_expanded, _same),
    TableValue: Rule(lambda e: (e.args[0],), _table),
}
