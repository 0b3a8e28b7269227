"""Evaluate many expressions at once: those that differ only in symbols share one NumPy function of arrays.

A chain of 300 joints has 300 sines and cosines of angles, and as many rates of them. ``lambdify`` takes a third of a
millisecond for each expression that it prints; here it prints each kind once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm

Array = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

MIN_GROUP_SIZE = 8
"""Expressions of one kind that are worth a function of their own."""

MAX_GROUPED_NODES = 16
"""Nodes of an expression above which nothing like it is looked for: it may share much with others (``cse``)."""

_LAMBDIFY_MODULES = ("scipy", "numpy")
_ELEMENTARY_FUNCTIONS = (sm.Add, sm.Mul, sm.Pow, sm.sin, sm.cos, sm.tan)


@dataclass(frozen=True, slots=True)
class _ExpressionGroup:
    """Expressions that differ only in symbols.

    Attributes:
        function: Of one array for each symbol.
        symbols: Where their symbols are among the arguments, shape (n_symbols, n_expressions).
        places: Of the expressions.
    """

    function: Any
    symbols: IndexArray
    places: IndexArray


class GroupedEvaluation:
    """The values of some expressions as a function of their symbols.

    Args:
        arguments: Symbols, in the order of the values that are given later.
        expressions: Expressions of them.
    """

    def __init__(self, arguments: Sequence[sm.Symbol], expressions: Sequence[sm.Expr]) -> None:
        where = {symbol: i for i, symbol in enumerate(arguments)}
        self._values = np.zeros(len(expressions))  # of numbers, which stay
        copied: list[tuple[int, int]] = []
        alike: dict[Any, list[tuple[int, list[sm.Symbol]]]] = {}
        others: list[int] = []
        for place, expression in enumerate(expressions):
            if expression in where:
                copied.append((place, where[expression]))
            elif expression.is_Float or expression.is_Rational:
                self._values[place] = float(expression)
            else:
                symbols: dict[sm.Symbol, int] = {}
                kind = _expression_structure(expression, symbols, [MAX_GROUPED_NODES])
                if kind is None or not symbols.keys() <= where.keys():
                    others.append(place)
                else:
                    alike.setdefault(kind, []).append((place, list(symbols)))
        self._kinds: list[_ExpressionGroup] = []
        for members in alike.values():
            if len(members) < MIN_GROUP_SIZE:
                others += [place for place, _ in members]
            else:
                self._kinds.append(_compile_group(expressions, members, where))
        self._places, self._from = np.array(copied, dtype=np.intp).reshape(-1, 2).T
        self._others = np.array(sorted(others), dtype=np.intp)
        rest = [expressions[place] for place in self._others]
        self._function = sm.lambdify(arguments, rest, modules=_LAMBDIFY_MODULES, cse=True) if rest else None

    def __call__(self, *values: float) -> Array:
        """Return the values of the expressions, in their order; NaN or infinite where one has none."""
        result = self._values.copy()
        if self._function is not None:
            with np.errstate(all="ignore"):
                result[self._others] = self._function(*values)
        if len(self._places) or self._kinds:
            given = np.array(values, dtype=float)
            result[self._places] = given[self._from]
            for kind in self._kinds:
                result[kind.places] = kind.function(*given[kind.symbols])
        return result


def _expression_structure(node: sm.Basic, symbols: dict[sm.Symbol, int], left: list[int]) -> Any:
    """Return an expression's structure with its symbols numbered; None if it is too long or not elementary."""
    left[0] -= 1
    if left[0] < 0:
        return None
    if node.is_Symbol:
        return symbols.setdefault(node, len(symbols))
    if node.is_Float or node.is_Rational:
        return node.func, node
    if not isinstance(node, _ELEMENTARY_FUNCTIONS):
        return None
    parts = [_expression_structure(argument, symbols, left) for argument in node.args]
    return None if None in parts else (node.func, *parts)


def _compile_group(
    expressions: Sequence[sm.Expr],
    members: Sequence[tuple[int, list[sm.Symbol]]],
    where: Mapping[sm.Symbol, int],
) -> _ExpressionGroup:
    """Return one function for all expressions that are alike, made from the first."""
    first, symbols = members[0]
    return _ExpressionGroup(
        function=sm.lambdify(symbols, expressions[first], modules=_LAMBDIFY_MODULES),
        symbols=np.array([[where[symbol] for symbol in those] for _, those in members], dtype=np.intp).T,
        places=np.array([place for place, _ in members], dtype=np.intp),
    )
