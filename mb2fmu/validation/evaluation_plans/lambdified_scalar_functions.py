"""Scalar functions by SymPy's ``lambdify`` on Python's ``math``, with further names and rules of printing."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

import sympy as sm
from sympy.printing.pycode import PythonCodePrinter

from mb2fmu.model.elementary_lambdify import ElementaryFunctions, lambdify_elementary_expressions
from mb2fmu.model.expression_traversal import lambdify_with_shared_parts
from mb2fmu.model.supported_functions import LookupTableDerivative


def _sinc(x: float) -> float:
    """Return sin(x)/x, 1 at zero."""
    return math.sin(x) / x if x else 1.0


def _heaviside(x: float, at_zero: float = 0.5) -> float:
    """Return 0 below zero, 1 above, and the given value at zero."""
    return at_zero if x == 0 else float(x > 0)


def _identity(x: float) -> float:
    """Return x: the value of a function that changes nothing for real numbers."""
    return x


def _zero(_: float) -> float:
    """Return 0: the value of a function that is zero for real numbers."""
    return 0.0


SCALAR_FUNCTIONS: dict[str, Callable[..., float]] = {
    "cot": lambda x: 1 / math.tan(x),
    "sec": lambda x: 1 / math.cos(x),
    "csc": lambda x: 1 / math.sin(x),
    "acot": lambda x: math.atan(1 / x) if x else math.pi / 2,
    "asec": lambda x: math.acos(1 / x),
    "acsc": lambda x: math.asin(1 / x),
    "coth": lambda x: 1 / math.tanh(x),
    "sech": lambda x: 1 / math.cosh(x),
    "csch": lambda x: 1 / math.sinh(x),
    "acoth": lambda x: math.atanh(1 / x),
    "sinc": _sinc,
    "frac": lambda x: x - math.floor(x),
    "exp2": lambda x: 2.0**x,
    "Heaviside": _heaviside,
    "re": _identity,
    "im": _zero,
    "conjugate": _identity,
}
"""Functions that ``math`` lacks, by the names that SymPy's printer gives them; every symbol is real."""


_MATH_FUNCTIONS: ElementaryFunctions = {
    sm.Pow: math.sqrt, sm.sin: math.sin, sm.cos: math.cos, sm.tan: math.tan, sm.asin: math.asin, sm.acos: math.acos,
    sm.atan: math.atan, sm.atan2: math.atan2, sm.exp: math.exp, sm.log: math.log, sm.sinh: math.sinh,
    sm.cosh: math.cosh, sm.tanh: math.tanh, sm.Abs: abs,
}  # fmt: skip
"""SymPy's class → function of ``math``; ``Pow`` → square root."""


class _LookupTableCodePrinter(PythonCodePrinter):  # type: ignore[misc]  # SymPy has no types
    """Prints lookup tables as calls of functions, and collects these."""

    def __init__(self, tables: dict[str, Callable[[float], float]]) -> None:
        super().__init__(
            {"fully_qualified_modules": False, "inline": True, "allow_unknown_functions": True, "order": "none"}
        )
        self._tables = tables

    def _print_TableValue(self, value: LookupTableDerivative) -> str:  # noqa: N802  SymPy's way to find the method
        """Print a call of the table's own interpolation, which joins the names the code may use."""
        function = _make_interpolation(value.table.breaks, value.table.coefficients, value.order)
        name = f"_table_{len(self._tables)}"
        self._tables[name] = function
        return f"{name}({self._print(value.args[0])})"


def _make_interpolation(
    breaks: Sequence[float], coefficients: Sequence[Sequence[float]], order: int
) -> Callable[[float], float]:
    """Return the derivative of some order of a piecewise polynomial, by the definition of ``LookupTable``."""
    pieces = [
        [math.perm(k, order) * row[i] for k, row in enumerate(coefficients)][order:] for i in range(len(breaks) - 1)
    ]

    def value(x: float) -> float:
        """Evaluate the piecewise polynomial by Horner's scheme; the outer pieces go on beyond the data."""
        i = min(max(bisect_right(breaks, x) - 1, 0), len(pieces) - 1)
        total = 0.0
        for coefficient in reversed(pieces[i]):
            total = total * (x - breaks[i]) + coefficient
        return total

    return value


def compile_scalar_function(
    arguments: Sequence[sm.Symbol], results: Sequence[sm.Expr], cse: Callable[..., Any] | None = None
) -> Callable[..., list[float]]:
    """Return ``lambdify`` for floats: a function of ``arguments`` that returns the list of ``results``."""
    tables: dict[str, Callable[[float], float]] = {}
    printer = _LookupTableCodePrinter(tables)
    namespace: dict[str, Callable[..., float]] = dict(SCALAR_FUNCTIONS)
    options = {"modules": [namespace, "math"], "printer": printer}
    function: Callable[..., list[float]] | None
    if cse is None:
        function = lambdify_with_shared_parts(arguments, list(results), functions=_MATH_FUNCTIONS, **options)
    else:
        named, reduced = cse(list(results))
        function = lambdify_elementary_expressions(arguments, named, list(reduced), _MATH_FUNCTIONS) or sm.lambdify(
            arguments, list(reduced), cse=lambda written: (named, written), docstring_limit=0, **options
        )
    function.__globals__.update(tables)
    return function
