"""SympyLowering: turn SymPy expressions into nodes of a ProgramBuilder.

Each object in memory is visited once, without recursion: a shared graph costs its size, not that of the tree it
unfolds to, and depth costs nothing. Definitions (named intermediates, linear solves) are made when they are first
requested, so that nothing is computed that nothing needs.

All symbols are real numbers. Numbers stay exact as long as SymPy keeps them, and are rounded once, to the nearest
double.

Rules that turn SymPy expressions into nodes: one ``_LoweringRule`` per class.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sm
from sympy.codegen import cfunctions
from sympy.physics.biomechanics.curve import CharacteristicCurveFunction

from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, PiecewisePolynomial
from mb2fmu.errors import Fault, LoweringError
from mb2fmu.model.scalar_operation_table import OPERATIONS, ScalarOperation
from mb2fmu.model.supported_functions import SUPPORTED_FUNCTIONS, LookupTableDerivative, NoEvent, Pre, StickingSign

Nodes = Sequence[int]


_CONSTANT_DIGITS = 25  # of exact numbers before they are rounded to a double's 17


@dataclass(frozen=True, slots=True)
class _LoweringRule:
    """Lowering of one class.

    Attributes:
        children: Expressions that are lowered first.
        combine: The builder, the expression and the nodes of its children → its node.
    """

    children: Callable[[sm.Basic], tuple[sm.Basic, ...]]
    combine: Callable[[ProgramBuilder, sm.Basic, Nodes], int]


def _expression_arguments(expression: sm.Basic) -> tuple[sm.Basic, ...]:
    """Return the arguments of an expression: the children that are lowered first."""
    arguments: tuple[sm.Basic, ...] = expression.args
    return arguments


def _make_argument_rule(combine: Callable[[ProgramBuilder, sm.Basic, Nodes], int]) -> _LoweringRule:
    """Return the rule of a class whose children are its arguments."""
    return _LoweringRule(_expression_arguments, combine)


def _make_operation_rule(row: ScalarOperation) -> _LoweringRule:
    """Return the rule of a class of SymPy that is an operation."""
    if row.arity == 1:
        return _make_argument_rule(lambda b, _, n: b.unary(row.op, n[0]))
    return _make_argument_rule(lambda b, _, n: b.binary(row.op, n[0], n[1]))


def _find_sympy_class(name: str) -> type:
    """Return a class of SymPy, or of its functions of C."""
    found: type = getattr(sm, name, None) or getattr(cfunctions, name)
    return found


def _make_switching_rule(op: Op) -> _LoweringRule:
    """Return the rule of a one-argument operation that jumps, marked as a switch for event detection."""
    return _make_argument_rule(lambda b, _, n: b.mark_switch(b.unary(op, n[0])))


def _make_reciprocal_rule(op: Op) -> _LoweringRule:
    """Return the rule of 1/f(x), as sec is of cos."""
    return _make_argument_rule(lambda b, _, n: b.div(b.constant(1.0), b.unary(op, n[0])))


def _make_reciprocal_argument_rule(op: Op) -> _LoweringRule:
    """Return the rule of f(1/x), as acot is of atan."""
    return _make_argument_rule(lambda b, _, n: b.unary(op, b.div(b.constant(1.0), n[0])))


def _make_nested_rule(op: Op) -> _LoweringRule:
    """Return a function of any number of arguments."""

    def combine(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
        """Combine the operands pairwise in the order of their node numbers, so that equal sets share nodes."""
        ordered = sorted(n)
        result = ordered[0]
        for node in ordered[1:]:
            result = b.mark_switch(b.binary(op, result, node))
        return result

    return _make_argument_rule(combine)


def _lower_wrapper(_b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return the child's node: a wrapper that changes nothing."""
    return n[0]


# --- sums and products -----------------------------------------------------------------------------------------------


def _lower_sum(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return the node of a sum of all arguments."""
    return b.sum(n)


def _is_divisor(factor: sm.Basic) -> bool:
    """True for x**−n."""
    return bool(factor.is_Pow and factor.exp.is_Number and factor.exp.is_negative)


def _product_children(expression: sm.Basic) -> tuple[sm.Basic, ...]:
    """Return the factors of a product; a divisor 1/x gives x, which `combine` divides by."""
    return tuple(factor.base if _is_divisor(factor) else factor for factor in expression.args)


def _lower_product(b: ProgramBuilder, expression: sm.Basic, n: Nodes) -> int:
    """Return all divisors in one division."""
    factors, divisors = [], []
    for factor, node in zip(expression.args, n, strict=True):
        if _is_divisor(factor):
            divisors.append(b.power(node, b.constant(float(-factor.exp))))
        else:
            factors.append(node)
    return b.div(b.product(factors), b.product(divisors))


def _lower_power(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return the node of base to the exponent."""
    return b.power(n[0], n[1])


# --- selections ------------------------------------------------------------------------------------------------------


def _piecewise_children(expression: sm.Basic) -> tuple[sm.Basic, ...]:
    """Return expression, condition, expression, condition, … of a Piecewise."""
    return tuple(part for pair in expression.args for part in pair.args)


def _lower_piecewise(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return the chosen expression; NaN where no condition holds."""
    result = b.constant(float("nan"))
    for value, condition in reversed(list(zip(n[::2], n[1::2], strict=True))):
        result = b.select(condition, value, result)
    return result


def _lower_heaviside(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return nodes for 0 below zero, the given value at zero, and 1 above (NaN stays with the last)."""
    x, at_zero = n
    zero, one = b.constant(0.0), b.constant(1.0)
    below, here = b.mark_switch(b.binary(Op.LT, x, zero)), b.mark_switch(b.binary(Op.EQ, x, zero))
    return b.select(below, zero, b.select(here, at_zero, one))


def _lower_sinc(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return sin(x)/x, selected as 1 at x = 0."""
    is_zero = b.binary(Op.EQ, n[0], b.constant(0.0))
    return b.select(is_zero, b.constant(1.0), b.div(b.unary(Op.SIN, n[0]), n[0]))


def _make_comparison_rule(op: Op, *, swapped: bool = False, negated: bool = False) -> _LoweringRule:
    """Return the rule of a comparison: operands may be exchanged, the answer negated."""

    def combine(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
        left, right = (n[1], n[0]) if swapped else (n[0], n[1])
        result = b.mark_switch(b.binary(op, left, right))
        return b.unary(Op.NOT, result) if negated else result

    return _make_argument_rule(combine)


def _make_truth_rule(value: float) -> _LoweringRule:
    """Return the rule of a constant truth value: 0.0 or 1.0."""
    return _LoweringRule(lambda _: (), lambda b, _e, _n: b.constant(value))


# --- functions made of others ----------------------------------------------------------------------------------------


def _lower_modulo(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return a − b·floor(a/b); the jump of floor is a switch."""
    return b.sub(n[0], b.mul(n[1], b.mark_switch(b.unary(Op.FLOOR, b.div(n[0], n[1])))))


def _lower_table(b: ProgramBuilder, expression: sm.Basic, n: Nodes) -> int:
    """Return the node of a table function, or of its derivative of the expression's order.

    Where a table has kinks, which of its pieces between them holds is a switch, and what it is on that piece has none.
    """
    data = expression.table
    whole = PiecewisePolynomial(data.name, data.breaks, data.coefficients)
    if len(data.coefficients) > 2:
        return _lower_smooth_table(b, expression, n[0])
    if expression.order > 1:
        return b.table(whole, expression.order, n[0])
    (y, slopes), breaks = data.coefficients, data.breaks
    kinks = [i for i in range(1, len(slopes)) if slopes[i] != slopes[i - 1]]
    if not kinks:
        return b.table(whole, expression.order, n[0])
    first = [0, *kinks]  # piece with which each straight line begins
    origins = [kinks[0], *kinks]  # kink at which its value is known: the first line has only its end
    number = _make_kink_number_table(data.name, [breaks[i] for i in kinks], breaks[-1] - breaks[0])
    line = b.mark_switch(b.unary(Op.FLOOR, b.table(number, 0, n[0])))

    def on_line(word: str, values: list[float]) -> int:
        """Return what is constant on each line, by the line's number."""
        return b.table(
            PiecewisePolynomial(f"{data.name}_{word}", tuple(map(float, range(len(values) + 1))), (tuple(values),)),
            0,
            line,
        )

    slope = on_line("slope", [slopes[i] for i in first])
    if expression.order:
        return slope
    begin, value = on_line("begin", [breaks[i] for i in origins]), on_line("value", [y[i] for i in origins])
    return b.add(value, b.mul(slope, b.sub(n[0], begin)))


def _lower_smooth_table(b: ProgramBuilder, expression: sm.Basic, x: int) -> int:
    """Return the node of a table of cubics, whose slope can jump at its two ends only, where it goes on otherwise.

    There a switch says which of both holds; the cubic goes on beyond the end.
    """
    data, order = expression.table, expression.order
    breaks, columns = data.breaks, data.coefficients
    last = breaks[-2] - breaks[-3]
    jumps = (
        columns[1][1] - columns[1][0],
        sum(k * row[-2] * last ** (k - 1) for k, row in enumerate(columns) if k) - columns[1][-1],
    )
    round_off = _TABLE_ROUND_OFF * max(map(abs, columns[1]))
    bent = [abs(jump) > round_off for jump in jumps]
    if not any(bent):
        return b.table(PiecewisePolynomial(data.name, breaks, columns), order, x)
    first, end = int(bent[0]), len(breaks) - 1 - int(bent[1])
    inner = PiecewisePolynomial(data.name, breaks[first : end + 1], tuple(row[first:end] for row in columns))
    number = _make_kink_number_table(
        data.name, [place for place, is_bent in zip((breaks[1], breaks[-2]), bent, strict=True) if is_bent],
        breaks[-1] - breaks[0],
    )  # fmt: skip
    piece = b.mark_switch(b.unary(Op.FLOOR, b.table(number, 0, x)))
    result = b.table(inner, order, x)
    for number_of_piece, column in ((0, 0),) * bent[0] + ((sum(bent), -1),) * bent[1]:
        outside = PiecewisePolynomial(
            f"{data.name}_end", breaks[:2] if column == 0 else breaks[-2:], tuple((row[column],) for row in columns[:2])
        )
        holds = b.binary(Op.EQ, piece, b.constant(float(number_of_piece)))
        result = b.select(holds, b.table(outside, order, x), result)
    return result


_TABLE_ROUND_OFF = 1e-12  # jump of a slope that is none, as a part of the largest slope at a knot


def _make_kink_number_table(name: str, kinks: list[float], width: float) -> PiecewisePolynomial:
    """Return the table that is j at the j-th kink, straight in between, and half a number more and less far out."""
    xs = [kinks[0] - width, *kinks, kinks[-1] + width]
    ys = [0.5, *map(float, range(1, len(kinks) + 1)), len(kinks) + 0.5]
    rises = [
        (after - before) / (end - begin) for begin, end, before, after in zip(xs, xs[1:], ys, ys[1:], strict=False)
    ]
    flat = (xs[0] - width, *xs, xs[-1] + width)
    return PiecewisePolynomial(f"{name}_line", flat, ((ys[0], *ys), (0.0, *rises, 0.0)))


def _lower_sign(b: ProgramBuilder, _expression: sm.Basic, n: Nodes) -> int:
    """Return sign(a); with the break-away ratio where it has one, at least 1: less would stick, and slip at once."""
    one = b.constant(1.0)
    return b.sticking_sign_node(n[0], b.binary(Op.MAX, n[1], one) if len(n) > 1 else one)


def _expand_curve(expression: sm.Basic) -> tuple[sm.Basic, ...]:
    """Return the formula of a named curve, its arguments unchanged."""
    return (expression.doit(deep=False),)


def _lower_number(b: ProgramBuilder, expression: sm.Basic, _n: Nodes) -> int:
    """Return numbers without a finite real value: ∞ and NaN; finite ones are handled before."""
    return b.constant(float(expression))


LOWERING_RULES: dict[type, _LoweringRule] = {
    **{_find_sympy_class(row.sympy): _make_operation_rule(row) for row in OPERATIONS.values() if row.sympy},
    sm.Number: _LoweringRule(lambda _: (), _lower_number),
    sm.NumberSymbol: _LoweringRule(lambda _: (), _lower_number),
    sm.Add: _make_argument_rule(_lower_sum),
    sm.Mul: _LoweringRule(_product_children, _lower_product),
    sm.Pow: _make_argument_rule(_lower_power),
    sm.Abs: _make_switching_rule(Op.ABS),
    sm.sign: _make_argument_rule(_lower_sign),
    StickingSign: _make_argument_rule(_lower_sign),
    NoEvent: _make_argument_rule(lambda b, _, n: b.unmark_switches(n[0])),
    Pre: _make_argument_rule(_lower_wrapper),
    sm.floor: _make_switching_rule(Op.FLOOR),
    sm.ceiling: _make_switching_rule(Op.CEIL),
    sm.erfc: _make_argument_rule(lambda b, _, n: b.sub(b.constant(1.0), b.unary(Op.ERF, n[0]))),
    sm.cot: _make_reciprocal_rule(Op.TAN),
    sm.sec: _make_reciprocal_rule(Op.COS),
    sm.csc: _make_reciprocal_rule(Op.SIN),
    sm.coth: _make_reciprocal_rule(Op.TANH),
    sm.sech: _make_reciprocal_rule(Op.COSH),
    sm.csch: _make_reciprocal_rule(Op.SINH),
    sm.acot: _make_reciprocal_argument_rule(Op.ATAN),
    sm.asec: _make_reciprocal_argument_rule(Op.ACOS),
    sm.acsc: _make_reciprocal_argument_rule(Op.ASIN),
    sm.sinc: _make_argument_rule(_lower_sinc),
    sm.Mod: _make_argument_rule(_lower_modulo),
    sm.frac: _make_argument_rule(lambda b, _, n: b.sub(n[0], b.mark_switch(b.unary(Op.FLOOR, n[0])))),
    sm.Min: _make_nested_rule(Op.MIN),
    sm.Max: _make_nested_rule(Op.MAX),
    sm.Piecewise: _LoweringRule(_piecewise_children, _lower_piecewise),
    sm.ITE: _make_argument_rule(lambda b, _, n: b.select(n[0], n[1], n[2])),
    sm.Heaviside: _make_argument_rule(_lower_heaviside),
    sm.StrictLessThan: _make_comparison_rule(Op.LT),
    sm.LessThan: _make_comparison_rule(Op.LE),
    sm.StrictGreaterThan: _make_comparison_rule(Op.LT, swapped=True),
    sm.GreaterThan: _make_comparison_rule(Op.LE, swapped=True),
    sm.Equality: _make_comparison_rule(Op.EQ),
    sm.Unequality: _make_comparison_rule(Op.EQ, negated=True),
    sm.And: _make_nested_rule(Op.AND),
    sm.Or: _make_nested_rule(Op.OR),
    type(sm.true): _make_truth_rule(1.0),
    type(sm.false): _make_truth_rule(0.0),
    # every symbol is real
    sm.re: _make_argument_rule(_lower_wrapper),
    sm.conjugate: _make_argument_rule(_lower_wrapper),
    sm.im: _make_truth_rule(0.0),
    sm.UnevaluatedExpr: _make_argument_rule(_lower_wrapper),
    cfunctions.log2: _make_argument_rule(
        lambda b, _, n: b.div(b.unary(Op.LOG, n[0]), b.constant(float(sm.log(2).evalf(25))))
    ),
    cfunctions.log10: _make_argument_rule(
        lambda b, _, n: b.div(b.unary(Op.LOG, n[0]), b.constant(float(sm.log(10).evalf(25))))
    ),
    cfunctions.exp2: _make_argument_rule(lambda b, _, n: b.power(b.constant(2.0), n[0])),
    CharacteristicCurveFunction: _LoweringRule(_expand_curve, _lower_wrapper),
    LookupTableDerivative: _LoweringRule(lambda e: (e.args[0],), _lower_table),
}


@dataclass(frozen=True, slots=True)
class _SymbolNodeRecipe:
    """Meaning of a symbol.

    Attributes:
        symbols: Made together.
        needs: Expressions that are lowered first.
        make: Nodes of ``needs`` → nodes of ``symbols``.
    """

    symbols: tuple[sm.Symbol, ...]
    needs: tuple[sm.Basic, ...]
    make: Callable[[Sequence[int]], Sequence[int]]


class SympyLowering:
    """Lowers expressions into one builder.

    Args:
        builder: Takes the nodes.
        symbols: Nodes of the symbols that are known from the start.
    """

    def __init__(self, builder: ProgramBuilder, symbols: Mapping[sm.Symbol, int]) -> None:
        self.builder = builder
        self._symbols = dict(symbols)
        self._definitions: dict[sm.Symbol, _SymbolNodeRecipe] = {}
        self._memo: dict[int, int] = {}  # id of an expression → node
        self._steps: dict[int, tuple[_LoweringRule, tuple[sm.Basic, ...], sm.Basic]] = {}  # keeps the expressions alive
        self._numeric: set[int] = set()  # ids of expressions without symbols
        self._unsupported: dict[str, None] = {}
        self._unknown: dict[str, None] = {}

    def define(
        self,
        symbols: Iterable[sm.Symbol],
        needs: Iterable[sm.Basic],
        make: Callable[[Sequence[int]], Sequence[int]],
    ) -> None:
        """Define symbols; ``make`` is called at most once, when one of them is first needed."""
        definition = _SymbolNodeRecipe(tuple(symbols), tuple(needs), make)
        for symbol in definition.symbols:
            self._definitions[symbol] = definition

    def lower(self, expressions: Iterable[Any]) -> list[int]:
        """Return the nodes of expressions.

        Raises:
            LoweringError: Names every function that is not supported and every symbol that nothing defines.
        """
        roots = [sm.sympify(expression) for expression in expressions]
        stack = list(reversed(roots))
        while stack:
            expression = stack[-1]
            key = id(expression)
            if key in self._memo:
                stack.pop()
                continue
            step = self._steps.get(key)
            if step is None:
                rule, children = self._open(expression)
                self._steps[key] = (rule, children, expression)
                missing = [child for child in children if id(child) not in self._memo]
                if missing:
                    stack.extend(reversed(missing))
                    continue
            else:
                rule, children, _ = step
                if any(id(child) not in self._memo for child in children):
                    raise LoweringError(f"{expression} is defined by itself")
            stack.pop()
            self._memo[key] = self._close(expression, rule, children)
        self._complain()
        return [self._memo[id(root)] for root in roots]

    def _open(self, expression: sm.Basic) -> tuple[_LoweringRule, tuple[sm.Basic, ...]]:
        """Return the rule of an expression, and the expressions to lower before it."""
        if isinstance(expression, sm.Symbol):
            definition = self._definitions.get(expression)
            if expression in self._symbols or definition is None:
                return _SYMBOL_RULE, ()
            return _SYMBOL_RULE, definition.needs
        for kind in type(expression).__mro__:
            rule = LOWERING_RULES.get(kind)
            if rule is not None:
                return rule, rule.children(expression)
        name = type(expression).__name__
        self._unsupported[f"{expression}" if name in {"Derivative", "Integral"} else name] = None
        return _UNSUPPORTED_RULE, ()

    def _close(self, expression: sm.Basic, rule: _LoweringRule, children: tuple[sm.Basic, ...]) -> int:
        """Make the node of an expression from those of its children; a constant if all of it is numbers."""
        nodes = [self._memo[id(child)] for child in children]
        if rule is _SYMBOL_RULE:
            return self._symbol(expression, nodes)
        numeric = rule is not _UNSUPPORTED_RULE and all(id(child) in self._numeric for child in children)
        if numeric:
            self._numeric.add(id(expression))
            value = _evaluate_constant(expression)
            if value is not None:
                return self.builder.constant(value)
        return rule.combine(self.builder, expression, nodes)

    def _symbol(self, symbol: sm.Symbol, nodes: list[int]) -> int:
        """Return the node of a symbol; its definition is lowered at its first use."""
        if symbol not in self._symbols:
            definition = self._definitions.get(symbol)
            if definition is None:
                self._unknown[str(symbol)] = None
                return self.builder.constant(float("nan"))
            self._symbols.update(zip(definition.symbols, definition.make(nodes), strict=True))
        node: int = self._symbols[symbol]
        return node

    def _complain(self) -> None:
        """Raise once with all unsupported functions and all undefined names."""
        faults = []
        if self._unsupported:
            names = ", ".join(sorted(self._unsupported))
            remedy = "supported are " + ", ".join(sorted(SUPPORTED_FUNCTIONS))
            faults.append(Fault(f"not supported: {names}", remedy=remedy))
        if self._unknown:
            faults.append(Fault(f"nothing defines {', '.join(sorted(self._unknown))}", remedy="declare it"))
        if faults:
            raise LoweringError("the equations cannot be made a program:", faults)


def _evaluate_constant(expression: sm.Basic) -> float | None:
    """Return the nearest double of an expression without symbols; None if it is no finite real number."""
    if expression.is_Integer or expression.is_Rational:
        return expression.p / expression.q if expression.q != 1 else float(expression.p)
    if not isinstance(expression, sm.Expr):
        return None
    value = expression if expression.is_Float else expression.evalf(_CONSTANT_DIGITS)
    return float(value) if value.is_Float or value.is_Integer else None


def _nan_node(builder: ProgramBuilder, _expression: sm.Basic, _nodes: Sequence[int]) -> int:
    """Return NaN in place of an expression that has no rule; the walker raises its fault at the end."""
    return builder.constant(float("nan"))


_SYMBOL_RULE = _LoweringRule(lambda _: (), _nan_node)
_UNSUPPORTED_RULE = _LoweringRule(lambda _: (), _nan_node)
