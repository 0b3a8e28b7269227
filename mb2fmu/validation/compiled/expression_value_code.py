"""``ExpressionValueCode``: many expressions as C; those that differ only in symbols share one loop.

A chain of 300 joints has 300 sines and as many cosines; what is compiled for it is one of each.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.validation.compiled import c_structures
from mb2fmu.validation.compiled.c_expressions import CExpressionWriter, LookupTableDefinitions

IndexArray = npt.NDArray[np.int64]

MIN_LOOP_EXPRESSIONS = 6
"""Expressions of one kind that are worth a loop."""

MAX_LOOP_NODES = 16
"""Nodes of an expression above which nothing like it is looked for."""


@dataclass(frozen=True, slots=True)
class _GroupedExpressionFunction:
    """One function: its number, the places of the symbols of each member, where the results go."""

    number: int
    places: IndexArray
    count: int
    first: int


class ExpressionValueCode:
    """Collects expressions, and gives each a place in an array w of values.

    Args:
        given: Symbols that the array begins with.
        tables: Lookup tables that were printed before; those that are met are added.
    """

    def __init__(self, given: Sequence[sm.Symbol], tables: LookupTableDefinitions) -> None:
        self._places: dict[sm.Expr, int] = {symbol: i for i, symbol in enumerate(given)}
        self._size = len(given)
        self._constants: dict[int, float] = {}
        self._functions: list[str] = []
        self._tables = tables
        self._kept: list[Any] = []

    def write(self, expressions: Sequence[sm.Expr]) -> list[_GroupedExpressionFunction]:
        """Return functions that evaluate expressions, those before them being known; then :meth:`place` knows them all.

        Raises:
            CannotWriteError: If there is no C for one.
        """
        alike: dict[Any, list[tuple[sm.Expr, list[sm.Symbol]]]] = {}
        new = []
        for expression in dict.fromkeys(map(sm.sympify, expressions)):
            if expression in self._places:
                continue
            if expression.is_Float or expression.is_Rational:
                self._places[expression] = self._reserve_places(1)
                self._constants[self._places[expression]] = float(expression)
                continue
            symbols: dict[sm.Symbol, int] = {}
            kind = _expression_structure(expression, symbols, [MAX_LOOP_NODES])
            alike.setdefault((expression,) if kind is None else kind, []).append((expression, list(symbols)))
        loops = []
        for members in alike.values():
            if len(members) < MIN_LOOP_EXPRESSIONS:
                new += [expression for expression, _ in members]
            else:
                loops.append(self._loop(members))
        return [*loops, *([self._write_common_function(new)] if new else [])]

    def place(self, expression: sm.Expr) -> int:
        """Return where the value of a written expression is."""
        return self._places[sm.sympify(expression)]

    def places(self, expressions: Sequence[sm.Expr]) -> list[int]:
        """Return where the values of written expressions are."""
        return [self.place(expression) for expression in expressions]

    def values(self) -> npt.NDArray[np.float64]:
        """Return the array w with its constants."""
        w = np.zeros(self._size)
        w[list(self._constants)] = list(self._constants.values())
        return w

    def text(self) -> str:
        """Return the source text; it needs the prelude of ``c_expressions`` and the tables."""
        return "\n".join(self._functions)

    def groups(
        self, loops: Sequence[_GroupedExpressionFunction], library: ctypes.CDLL
    ) -> c_structures.ExpressionGroupsStructure:
        """Return the table of functions, which are in ``library``; it lives as long as this object."""
        table = (c_structures.ExpressionGroupStructure * max(len(loops), 1))()
        for row, loop in zip(table, loops, strict=False):
            row.function = ctypes.cast(getattr(library, f"values_{loop.number}"), ctypes.c_void_p).value
            row.places, row.count, row.first = c_structures.array_address(loop.places), loop.count, loop.first
            self._kept.append(loop)
        self._kept += [table, library]
        return c_structures.ExpressionGroupsStructure(ctypes.addressof(table), len(loops))

    def _reserve_places(self, count: int) -> int:
        """Reserve places for values and return the first."""
        self._size += count
        return self._size - count

    def _loop(self, members: Sequence[tuple[sm.Expr, list[sm.Symbol]]]) -> _GroupedExpressionFunction:
        """Return a loop over expressions that differ only in symbols, made from the first."""
        first, symbols = members[0]
        places = np.array([[self._places[s] for s in those] for _, those in members], dtype=np.int64)
        writer = CExpressionWriter({s: f"w[at[{i}]]" for i, s in enumerate(symbols)}, self._tables)
        writer.lines.append(f"results[i] = {writer.write_atom(first)};")
        body = "\n        ".join(writer.lines)
        number = self._function(
            f"    for (int64_t i = 0; i < count; i++) {{\n        const int64_t *at = places + {len(symbols)} * i;\n"
            f"        (void)at;\n        {body}\n    }}\n"
        )
        begin = self._reserve_places(len(members))
        self._places.update((expression, begin + i) for i, (expression, _) in enumerate(members))
        return _GroupedExpressionFunction(number, places, len(members), begin)

    def _write_common_function(self, expressions: Sequence[sm.Expr]) -> _GroupedExpressionFunction:
        """Write one function for all expressions without a common structure."""
        names: Mapping[sm.Symbol, str] = {s: f"w[{i}]" for s, i in self._places.items() if s.is_Symbol}
        writer = CExpressionWriter(names, self._tables)
        for i, expression in enumerate(expressions):
            writer.lines.append(f"results[{i}] = {writer.write_atom(expression)};")
        body = "\n    ".join(writer.lines)
        number = self._function(f"    (void)w;\n    (void)places;\n    (void)count;\n    {body}\n")
        begin = self._reserve_places(len(expressions))
        self._places.update((expression, begin + i) for i, expression in enumerate(expressions))
        return _GroupedExpressionFunction(number, np.zeros(1, dtype=np.int64), 1, begin)

    def _function(self, body: str) -> int:
        """Add a C function with this body and return its number."""
        number = len(self._functions)
        head = f"void values_{number}(const double w[], const int64_t places[], int64_t count, double results[])"
        self._functions.append(f"EXPORTED {head};\n{head}\n{{\n{body}}}\n")
        return number


def _expression_structure(node: sm.Basic, symbols: dict[sm.Symbol, int], left: list[int]) -> Any:
    """Return an expression's structure with its symbols numbered; None if it is too long."""
    left[0] -= 1
    if left[0] < 0:
        return None
    if node.is_Symbol:
        return symbols.setdefault(node, len(symbols))
    if not node.args:
        return node.func, node
    parts = [_expression_structure(argument, symbols, left) for argument in node.args]
    return None if None in parts else (node.func, *parts)
