"""Evaluate many expressions at once: expressions that differ only in symbols share one NumPy function of arrays.

A chain of 300 joints has 300 sines and cosines of angles, and as many rates of them. ``lambdify`` takes a third of a
millisecond for each expression that it prints; here it prints each kind once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

Array = npt.NDArray[np.float64]
IndexArray = npt.NDArray[np.intp]

MIN_GROUP_SIZE = 8
"""Smallest number of expressions of one structure that get a function of their own."""

MAX_GROUPED_NODES = 16
"""Largest number of nodes of a grouped expression; longer ones may share subexpressions with others (``cse``)."""

_ELEMENTARY_FUNCTIONS = (sm.Add, sm.Mul, sm.Pow, sm.sin, sm.cos, sm.tan)


@dataclass(frozen=True, slots=True)
class _SameFormExpressions:
    """Expressions that differ only in symbols.

    Attributes:
        function: Function of one array for each symbol.
        symbol_positions: Positions of their symbols among the arguments, shape (n_symbols, n_expressions).
        result_positions: Positions of the expressions among the results.
    """

    function: Any
    symbol_positions: IndexArray
    result_positions: IndexArray


@lru_cache(maxsize=64)
def make_same_form_expression_evaluator(
    arguments: tuple[sm.Symbol, ...], expressions: tuple[sm.Expr, ...]
) -> GroupedExpressionEvaluator:
    """Return the values of some expressions as a function of their symbols; what was compiled before is used again.

    A mechanism is evaluated by each of the checks and references of a run, mostly by the same expressions.
    """
    return GroupedExpressionEvaluator(arguments, expressions)


class GroupedExpressionEvaluator:
    """The values of some expressions as a function of their symbols.

    Args:
        arguments: Symbols, in the order of the values at a call.
        expressions: Expressions of them.
    """

    def __init__(self, arguments: Sequence[sm.Symbol], expressions: Sequence[sm.Expr]) -> None:
        argument_position = {symbol: i for i, symbol in enumerate(arguments)}
        self._values = np.zeros(len(expressions))  # of numbers, which stay
        copied_pairs: list[tuple[int, int]] = []
        members_by_structure: dict[Any, list[tuple[int, list[sm.Symbol]]]] = {}
        single_positions: list[int] = []
        for position, expression in enumerate(expressions):
            if expression in argument_position:
                copied_pairs.append((position, argument_position[expression]))
            elif expression.is_Float or expression.is_Rational:
                self._values[position] = float(expression)
            else:
                symbols: dict[sm.Symbol, int] = {}
                structure = _expression_structure(expression, symbols, [MAX_GROUPED_NODES])
                if structure is None or not symbols.keys() <= argument_position.keys():
                    single_positions.append(position)
                else:
                    members_by_structure.setdefault(structure, []).append((position, list(symbols)))
        self._groups: list[_SameFormExpressions] = []
        for members in members_by_structure.values():
            if len(members) < MIN_GROUP_SIZE:
                single_positions += [position for position, _ in members]
            else:
                self._groups.append(_compile_group(expressions, members, argument_position))
        self._copied_positions, self._copied_arguments = np.array(copied_pairs, dtype=np.intp).reshape(-1, 2).T
        self._single_positions = np.array(sorted(single_positions), dtype=np.intp)
        single_expressions = [expressions[position] for position in self._single_positions]
        self._function = lambdify_for_numpy(arguments, single_expressions, cse=True) if single_expressions else None

    def __call__(self, *values: float) -> Array:
        """Return the values of the expressions, in their order; NaN or infinite where one has none."""
        result = self._values.copy()
        if self._function is not None:
            with np.errstate(all="ignore"):
                result[self._single_positions] = self._function(*values)
        if len(self._copied_positions) or self._groups:
            arguments = np.array(values, dtype=float)
            result[self._copied_positions] = arguments[self._copied_arguments]
            for group in self._groups:
                result[group.result_positions] = group.function(*arguments[group.symbol_positions])
        return result


def _expression_structure(node: sm.Basic, symbols: dict[sm.Symbol, int], remaining_nodes: list[int]) -> Any:
    """Return an expression's structure with its symbols numbered; None if it is too long or not elementary."""
    remaining_nodes[0] -= 1
    if remaining_nodes[0] < 0:
        return None
    if node.is_Symbol:
        return symbols.setdefault(node, len(symbols))
    if node.is_Float or node.is_Rational:
        return node.func, node
    if not isinstance(node, _ELEMENTARY_FUNCTIONS):
        return None
    argument_structures = [_expression_structure(argument, symbols, remaining_nodes) for argument in node.args]
    return None if None in argument_structures else (node.func, *argument_structures)


def _compile_group(
    expressions: Sequence[sm.Expr],
    members: Sequence[tuple[int, list[sm.Symbol]]],
    argument_position: Mapping[sm.Symbol, int],
) -> _SameFormExpressions:
    """Return one function for all expressions of a group, made from the first."""
    first_position, symbols = members[0]
    return _SameFormExpressions(
        function=lambdify_for_numpy(symbols, expressions[first_position]),
        symbol_positions=np.array(
            [[argument_position[symbol] for symbol in member_symbols] for _, member_symbols in members], dtype=np.intp
        ).T,
        result_positions=np.array([position for position, _ in members], dtype=np.intp),
    )
