"""Python functions written straight from elementary SymPy expressions.

``sympy.lambdify`` takes half a millisecond for each part that it prints: it looks for a printer, orders factors and
weighs brackets. Sums, products, powers and elementary functions need none of that; all else is left to ``lambdify``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy as sm

ElementaryFunctions = Mapping[type, Callable[..., Any]]
"""SymPy's class → function of numbers; ``Pow`` → square root."""


class _NonElementaryExpressionError(Exception):
    """A part that is written by ``lambdify``."""


def lambdify_elementary_expressions(
    arguments: Sequence[sm.Expr],
    named: Sequence[tuple[sm.Symbol, sm.Expr]],
    results: Any,
    functions: ElementaryFunctions,
) -> Callable[..., Any] | None:
    """Return a function of ``arguments`` that gives the results; None if a part is not elementary.

    Args:
        arguments: Symbols, or functions of time and their rates.
        named: Parts with names, in order of evaluation; results and later parts use the names.
        results: An expression, a matrix, or lists of them, nested as the function's result will be.
        functions: Elementary functions, of floats or of arrays.
    """
    writer = _ElementaryExpressionWriter(arguments, functions)
    try:
        lines = [writer.assign(symbol, expression) for symbol, expression in named]
        lines.append(f"return {writer.nested(results)}")
        text = f"def elementary({', '.join(writer.parameters)}):\n    " + "\n    ".join(lines)
        exec(compile(text, "<elementary function>", "exec"), writer.namespace)  # noqa: S102  numbers and our own names
    except (_NonElementaryExpressionError, RecursionError, SyntaxError, MemoryError):  # the last three: nested too deep
        return None
    function: Callable[..., Any] = writer.namespace["elementary"]
    return function


class _ElementaryExpressionWriter:
    """Text of expressions; every sum, product and power stands in brackets.

    Args:
        arguments: As above.
        functions: As above.
    """

    def __init__(self, arguments: Sequence[sm.Expr], functions: ElementaryFunctions) -> None:
        self.parameters = [f"x{k}" for k in range(len(arguments))]
        self._written: dict[sm.Basic, str] = dict(zip(arguments, self.parameters, strict=True))
        self._functions = {kind: f"f{k}" for k, kind in enumerate(functions)}
        self.namespace: dict[str, Any] = {f"f{k}": function for k, function in enumerate(functions.values())}
        self.namespace["array"] = np.array

    def assign(self, symbol: sm.Symbol, expression: sm.Expr) -> str:
        """Return the line that gives a part its name."""
        name, text = f"p{len(self._written)}", self.expression(expression)
        self._written[symbol] = name
        return f"{name} = {text}"

    def nested(self, results: Any) -> str:
        """Return lists, tuples and matrices of expressions."""
        if isinstance(results, sm.MatrixBase):
            if not results.rows * results.cols:
                raise _NonElementaryExpressionError
            rows = (self.nested(list(results.row(i))) for i in range(results.rows))
            return f"array([{', '.join(rows)}])"
        if isinstance(results, list):
            return f"[{', '.join(map(self.nested, results))}]"
        if isinstance(results, tuple):
            return f"({''.join(f'{self.nested(result)}, ' for result in results)})"
        return self.expression(sm.sympify(results))

    def expression(self, e: sm.Basic) -> str:
        """Return one expression."""
        known = self._written.get(e)
        if known is not None:
            return known
        if e.is_Mul:
            return self._product(e)
        if e.is_Pow:
            return self._power(e.base, e.exp)
        if e.is_Add:
            return f"({'+'.join(map(self.expression, e.args))})"
        if not e.args and e.is_real and e.is_number:  # no infinity, nor the imaginary unit
            return _write_rational(e) if e.is_Rational else f"({float(e)!r})"
        name = self._functions.get(type(e))
        if name is None:
            raise _NonElementaryExpressionError
        return f"{name}({', '.join(map(self.expression, e.args))})"

    def _product(self, product: sm.Mul) -> str:
        """Return a product; -1 is a sign, and reciprocals are divisors."""
        factors = [factor for factor in product.args if factor is not sm.S.NegativeOne]
        sign = "-" * ((len(product.args) - len(factors)) % 2)  # unevaluated products may have several, anywhere
        under = [f.base for f in factors if f.is_Pow and f.exp is sm.S.NegativeOne and f not in self._written]
        over = [f for f in factors if f in self._written or not (f.is_Pow and f.exp is sm.S.NegativeOne)]
        above = "*".join(map(self.expression, over)) or "1"
        return f"({sign}{'/'.join([above, *map(self.expression, under)])})"

    def _power(self, base: sm.Expr, exponent: sm.Expr) -> str:
        """Return a power: roots by their function, negative exponents as floats, since integers have no such powers."""
        text = self.expression(base)
        if exponent is sm.S.NegativeOne:
            return f"(1/{text})"
        if abs(exponent) == sm.S.Half:
            root = f"{self._functions[sm.Pow]}({text})"
            return root if exponent.is_positive else f"(1/{root})"
        if exponent.is_Integer:
            return f"({text}**{int(exponent) if exponent.is_positive else f'({float(exponent)!r})'})"
        return f"({text}**{self.expression(exponent)})"


def _write_rational(number: sm.Rational) -> str:
    """Return a rational number; an integer stays one."""
    return f"({number.p}/{number.q})" if number.q != 1 else f"({number.p})"
