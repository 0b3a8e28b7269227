"""SympyWalker: turn SymPy expressions into nodes of a ProgramBuilder.

Each object in memory is visited once, without recursion: a shared graph costs its size, not that of the tree it
unfolds to, and depth costs nothing. Definitions (named intermediates, linear solves) are made when they are first
asked for, so that nothing is computed that nothing needs.

All symbols are real numbers. Numbers stay exact as long as SymPy keeps them, and are rounded once, to the nearest
double.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sm

from mb2fmu.compiler.lowering.sympy_rules import LOWERING_RULES, LoweringRule
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.errors import Fault, LoweringError
from mb2fmu.model.functions import SUPPORTED_FUNCTIONS

_CONSTANT_DIGITS = 25  # of exact numbers before they are rounded to a double's 17


@dataclass(frozen=True, slots=True)
class SymbolDefinition:
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
        self._definitions: dict[sm.Symbol, SymbolDefinition] = {}
        self._memo: dict[int, int] = {}  # id of an expression → node
        self._steps: dict[int, tuple[LoweringRule, tuple[sm.Basic, ...], sm.Basic]] = {}  # keeps the expressions alive
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
        definition = SymbolDefinition(tuple(symbols), tuple(needs), make)
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

    def _open(self, expression: sm.Basic) -> tuple[LoweringRule, tuple[sm.Basic, ...]]:
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

    def _close(self, expression: sm.Basic, rule: LoweringRule, children: tuple[sm.Basic, ...]) -> int:
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


_SYMBOL_RULE = LoweringRule(lambda _: (), _nan_node)
_UNSUPPORTED_RULE = LoweringRule(lambda _: (), _nan_node)
