"""Walks through large SymPy expressions that visit each distinct part once, and functions of their values.

What SymPy forms with a solver for dependent speeds has few distinct parts and very many occurrences of them: a script's
rattleback has a thousand parts that occur 57 million times. SymPy's own ``atoms``, ``free_symbols`` and ``cse`` visit
every occurrence; and to look for sums and products that have terms in common, as ``cse`` does, takes most of the time
of ``lambdify`` for functions that are called a few times only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import sympy as sm


def iterate_distinct_subexpressions(
    expressions: Sequence[sm.Basic], whole: Collection[sm.Basic] = ()
) -> Iterator[sm.Basic]:
    """Yield each distinct part once, behind its own parts; not the parts of what is ``whole``: q(t) of its rate."""
    done: set[sm.Basic] = set()
    stack = [(expression, False) for expression in reversed(expressions)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            if node not in whole:
                stack += [(part, False) for part in reversed(node.args) if part not in done]


def extract_repeated_subexpressions(
    expressions: Sequence[sm.Expr], whole: Collection[sm.Basic] = ()
) -> tuple[list[tuple[sm.Symbol, sm.Expr]], list[sm.Expr]]:
    """Return a ``cse`` for ``lambdify``: what stands in several places gets a name; nothing is rearranged.

    Args:
        expressions: The expressions.
        whole: Parts that are left as they are: arguments of the function.
    """
    nodes = list(iterate_distinct_subexpressions(expressions, whole))
    uses = Counter(part for node in nodes if node not in whole for part in node.args)
    uses.update(expressions)
    names = sm.numbered_symbols("_repeated")
    named: list[tuple[sm.Symbol, sm.Expr]] = []
    written: dict[sm.Basic, sm.Basic] = {}
    for node in nodes:
        if node in whole:
            written[node] = node
            continue
        new = _replace_parts(node, tuple(written[part] for part in node.args))
        if uses[node] > 1 and node.args and isinstance(node, sm.Expr):
            symbol = next(names)
            named.append((symbol, new))
            new = symbol
        written[node] = new
    return named, [written[expression] for expression in expressions]


def _replace_parts(node: sm.Basic, parts: tuple[sm.Basic, ...]) -> sm.Basic:
    """Return a node with other parts; sums and products are not sorted or simplified again."""
    if parts == node.args:
        return node
    if isinstance(node, sm.Add | sm.Mul):
        return node._new_rawargs(*parts)  # noqa: SLF001  SymPy's own way; its public one sorts anew
    return node.func(*parts)


def lambdify_with_shared_parts(arguments: Sequence[sm.Expr], results: Any, **options: Any) -> Callable[..., Any]:
    """Return ``sympy.lambdify``, with each repeated part evaluated once.

    Args:
        arguments: Symbols, in the order of the function's arguments.
        results: An expression, a matrix, or lists of them, nested as the function's result will be.
        options: Of ``lambdify``: ``modules``, ``printer``.
    """
    flat = list(_iterate_expressions(results))
    if any(hasattr(part, "_imp_") for part in iterate_distinct_subexpressions(flat)):
        # Only lambdify itself finds functions with a number of their own, and at first.
        function: Callable[..., Any] = sm.lambdify(arguments, results, cse=True, docstring_limit=0, **options)
        return function
    named, written = extract_repeated_subexpressions(flat, frozenset(arguments))
    nested = _restore(results, iter(written))
    # Without a text of all expressions for a docstring, which takes a quarter of the time.
    function = sm.lambdify(arguments, nested, cse=lambda reduced: (named, reduced), docstring_limit=0, **options)
    return function  # noqa: RET504  SymPy has no types


def _iterate_expressions(results: Any) -> Iterator[sm.Expr]:
    """Yield all expressions of nested lists and matrices."""
    if isinstance(results, list | tuple | sm.MatrixBase):
        for part in results:
            yield from _iterate_expressions(part)
    else:
        yield sm.sympify(results)


def _restore(results: Any, expressions: Iterator[sm.Expr]) -> Any:
    """Return nested lists and matrices with other expressions."""
    if isinstance(results, sm.MatrixBase):
        return sm.Matrix(*results.shape, [next(expressions) for _ in results])
    if isinstance(results, list | tuple):
        return type(results)(_restore(part, expressions) for part in results)
    return next(expressions)
