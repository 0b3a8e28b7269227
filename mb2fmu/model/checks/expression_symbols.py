"""Contents of an expression: parameters, functions of time, derivatives, and nodes that no Program can compute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.functions.elementary.piecewise import ExprCondPair
from sympy.logic.boolalg import Boolean
from sympy.physics.biomechanics.curve import CharacteristicCurveFunction
from sympy.physics.vector import dynamicsymbols

from mb2fmu.model.supported_functions import (
    SUPPORTED_FUNCTIONS,
    LookupTable,
    LookupTableDerivative,
    NoEvent,
    Pre,
    StickingSign,
)

_STRUCTURAL_NODES = (
    sm.Add,
    sm.Mul,
    sm.Pow,
    sm.Number,
    sm.NumberSymbol,
    sm.UnevaluatedExpr,
    sm.Tuple,
    Boolean,
    ExprCondPair,
    CharacteristicCurveFunction,
    LookupTable,
    LookupTableDerivative,
    Pre,
    NoEvent,
    StickingSign,
)
"""Nodes that are no named functions; conditions are ``Boolean``."""


def differentiate_by_time(function: sm.Expr, order: int = 1) -> sm.Expr:
    """Return d/dt of a function of time; results are cached, since each is requested many times."""
    return _cached_derivative(function, order, dynamicsymbols._t)  # noqa: SLF001 - SymPy keeps its symbol of time there


@lru_cache(maxsize=4096)
def _cached_derivative(function: sm.Expr, order: int, t: sm.Symbol) -> sm.Expr:
    """Return the derivative by ``t``, which is part of the cache key: users replace SymPy's symbol of time.

    A function that nothing else is known of has its derivative written down as ``diff`` would, in a hundredth of the
    time.
    """
    if _is_function_of_time(function):
        return sm.Expr.__new__(sm.Derivative, function, sm.Tuple(t, sm.Integer(order)))
    return function.diff(t, order)


@dataclass(frozen=True, slots=True)
class ExpressionSymbols:
    """Atoms of an expression, by kind.

    Attributes:
        constants: Symbols, without time.
        functions: Functions of time.
        derivatives: (function of time, order ≥ 1); the function itself is not among ``functions`` for that.
        time: Whether time stands in it.
        unsupported: Names of the functions that no Program can compute.
        defined: False if NaN or an infinite number stands in it.
    """

    constants: frozenset[sm.Symbol]
    functions: frozenset[sm.Expr]
    derivatives: frozenset[tuple[sm.Expr, int]]
    time: bool
    unsupported: frozenset[str]
    defined: bool

    @property
    def functions_of_time(self) -> frozenset[sm.Expr]:
        """Functions of time in the expression, those included that occur only in derivatives."""
        return self.functions | {function for function, _ in self.derivatives}


def collect_expression_symbols(expression: sm.Basic) -> ExpressionSymbols:
    """Collect the contents of an expression; equal subexpressions are visited once."""
    t = dynamicsymbols._t  # noqa: SLF001 - SymPy has no public name for it
    constants: set[sm.Symbol] = set()
    functions: set[sm.Expr] = set()
    derivatives: set[tuple[sm.Expr, int]] = set()
    unsupported: set[str] = set()
    seen: set[sm.Basic] = set()
    defined = True
    stack = [expression]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if isinstance(node, sm.Symbol):
            constants.add(node)
        elif (
            isinstance(node, sm.Derivative)
            and node.variables == (t,) * node.derivative_count
            and _is_function_of_time(node.expr)
        ):
            derivatives.add((node.expr, node.derivative_count))
        elif _is_function_of_time(node):
            functions.add(node)
        elif isinstance(node, LookupTableDerivative):
            stack.append(node.args[0])
        else:
            defined = defined and node not in {sm.nan, sm.zoo, sm.oo, -sm.oo}
            name = type(node).__name__
            if not isinstance(node, _STRUCTURAL_NODES) and name.lower() not in _supported_names():
                unsupported.add(str(node.func) if isinstance(node, AppliedUndef) else name)
            stack.extend(node.args)
    return ExpressionSymbols(
        frozenset(constants - {t}),
        frozenset(functions),
        frozenset(derivatives),
        t in constants,
        frozenset(unsupported),
        defined,
    )


def _is_function_of_time(node: sm.Basic) -> bool:
    """Return whether a node is an undefined function of time, as dynamicsymbols makes them."""
    return isinstance(node, AppliedUndef) and node.args == (dynamicsymbols._t,)  # noqa: SLF001 - as above


@cache
def _supported_names() -> frozenset[str]:
    """Return the names of all supported functions, in lower case."""
    return frozenset(name.lower() for names in SUPPORTED_FUNCTIONS for name in names.split())
