"""Walks through large SymPy expressions that visit each distinct part once, and functions of their values.

What SymPy forms with a solver for dependent speeds has few distinct parts and very many occurrences of them: a script's
rattleback has a thousand parts that occur 57 million times. SymPy's own ``atoms``, ``free_symbols`` and ``cse`` visit
every occurrence; and to look for sums and products that have terms in common, as ``cse`` does, takes most of the time
of ``lambdify`` for functions that are called a few times only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import sympy as sm
from sympy.core.function import ArgumentIndexError

from mb2fmu.model.elementary_lambdify import ElementaryFunctions, lambdify_elementary_expressions


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


def list_free_symbols(expressions: Iterable[sm.Basic | sm.MatrixBase]) -> set[sm.Symbol]:
    """Return the free symbols of expressions and matrices; each distinct part is visited once."""
    flat = [entry for each in expressions for entry in (each if isinstance(each, sm.MatrixBase) else (each,))]
    parts = list(iterate_distinct_subexpressions(flat))
    if any(getattr(part, "bound_symbols", ()) for part in parts):  # an integral, a sum
        return {symbol for each in flat for symbol in each.free_symbols}
    return {part for part in parts if isinstance(part, sm.Symbol)}


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


def rename_symbols(expressions: Sequence[sm.Expr], names: Mapping[sm.Basic, sm.Expr]) -> list[sm.Expr]:
    """Return expressions in other symbols, which are not in them, also for functions; terms and factors stay in place.

    ``xreplace`` forms each sum and product anew, and SymPy asks again what it knew of them.
    """
    renamed: dict[sm.Basic, sm.Basic] = {}
    for node in iterate_distinct_subexpressions(expressions):
        parts = tuple(renamed[part] for part in node.args)
        renamed[node] = names[node] if node in names else _replace_parts(node, parts)
    return [renamed[expression] for expression in expressions]


def drop_terms_with_symbols(expression: sm.Expr, symbols: Collection[sm.Symbol]) -> sm.Expr:
    """Return an expression that is linear in symbols, with all of them zero.

    ``xreplace`` asks of the other factors of each vanishing product whether one of them is infinite.
    """
    kept: dict[sm.Basic, sm.Basic] = {}
    for node in iterate_distinct_subexpressions([expression]):
        parts = tuple(kept[part] for part in node.args)
        if node in symbols or (isinstance(node, sm.Mul) and sm.S.Zero in parts):
            kept[node] = sm.S.Zero
        else:
            kept[node] = node if parts == node.args else node.func(*parts)
    return kept[expression]


def _replace_parts(node: sm.Basic, parts: tuple[sm.Basic, ...]) -> sm.Basic:
    """Return a node with other parts; sums and products are not sorted or simplified again."""
    if parts == node.args:
        return node
    if isinstance(node, sm.Pow | sm.Abs | sm.Max | sm.Min):
        # Else SymPy asks of each term of a sum whether it is infinite, and which of two parts is larger.
        return node.func(*parts, evaluate=False)
    if isinstance(node, sm.Add | sm.Mul):
        return node._new_rawargs(*parts)  # noqa: SLF001  SymPy's own way; its public one sorts anew
    return node.func(*parts)


def lambdify_with_shared_parts(
    arguments: Sequence[sm.Expr], results: Any, *, functions: ElementaryFunctions | None = None, **options: Any
) -> Callable[..., Any]:
    """Return ``sympy.lambdify``, with each repeated part evaluated once.

    Args:
        arguments: Symbols, in the order of the function's arguments.
        results: An expression, a matrix, or lists of them, nested as the function's result will be.
        functions: Elementary functions: what has no others is written without ``lambdify``.
        options: Of ``lambdify``: ``modules``, ``printer``.
    """
    flat = list(_iterate_expressions(results))
    if any(hasattr(part, "_imp_") for part in iterate_distinct_subexpressions(flat)):
        # Only lambdify itself finds functions with a number of their own, and at first.
        function: Callable[..., Any] = sm.lambdify(arguments, results, cse=True, docstring_limit=0, **options)
        return function
    named, written = extract_repeated_subexpressions(flat, frozenset(arguments))
    nested = _restore(results, iter(written))
    if functions and (quick := lambdify_elementary_expressions(arguments, named, nested, functions)):
        return quick
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


def partial_derivative(expression: sm.Expr, symbol: sm.Symbol) -> sm.Expr:
    """Return d(expression)/d(symbol), written as SymPy's ``diff`` writes it.

    By the same rules, but each distinct part is differentiated once; ``diff`` visits every occurrence, and looks there
    for free symbols, for zero and for derivatives that are not evaluated. Functions of time have their rates.
    """
    return _differentiate_part(expression, symbol, {symbol: sm.S.One})


def _differentiate_part(part: sm.Expr, symbol: sm.Symbol, known: dict[sm.Basic, sm.Expr]) -> sm.Expr:
    """Return d(part)/d(symbol).

    Args:
        part: Of an expression.
        symbol: The symbol.
        known: Derivatives of parts that were met before; extended.
    """
    if part in known:
        return known[part]
    if not part.args:
        return sm.S.Zero
    if isinstance(part, sm.Add | sm.Mul | sm.Pow) or _is_plain_function(part):
        slopes = [_differentiate_part(argument, symbol, known) for argument in part.args]
        known[part] = _apply_chain_rule(part, symbol, slopes)
    else:
        known[part] = part.diff(symbol)
    return known[part]


def _is_plain_function(part: sm.Expr) -> bool:
    """Return whether it is a function of one argument with the chain rule for its derivative."""
    rule = getattr(type(part), "_eval_derivative", None)
    return len(part.args) == 1 and rule is sm.Function._eval_derivative  # noqa: SLF001  SymPy's protocol


def _apply_chain_rule(part: sm.Expr, symbol: sm.Symbol, slopes: Sequence[sm.Expr]) -> sm.Expr:
    """Return the derivative of a sum, product, power or plain function from those of its arguments."""
    moving = [i for i, slope in enumerate(slopes) if slope is not sm.S.Zero]
    if not moving:
        return sm.S.Zero
    if isinstance(part, sm.Add):
        return sm.Add(*(slopes[i] for i in moving)) if len(moving) > 1 else slopes[moving[0]]
    if isinstance(part, sm.Mul):
        is_coefficient = len(part.args) == 2 and len(moving) == 1 and slopes[moving[0]] is sm.S.One
        return (
            part.args[1 - moving[0]]
            if is_coefficient
            else sm.Add(*(sm.Mul(*part.args[:i], slopes[i], *part.args[i + 1 :]) for i in moving))
        )
    if isinstance(part, sm.Pow):
        # With the order of operations that SymPy has.
        return part * (slopes[0] * part.exp / part.base) if moving == [0] else part.diff(symbol)
    try:
        return part.fdiff(1) * slopes[0]
    except ArgumentIndexError:
        return part.diff(symbol)


def count_occurrences(expression: sm.Basic) -> int:
    """Return how many parts an expression has, each as often as it occurs: what SymPy visits that shares nothing."""
    counts: dict[sm.Basic, int] = {}
    for part in iterate_distinct_subexpressions([expression]):
        counts[part] = 1 + sum(counts[argument] for argument in part.args)
    return counts[expression]
