"""Walks through large SymPy expressions that visit each distinct part once.

What SymPy forms with a solver for dependent speeds has few distinct parts and very many occurrences of them: a script's
rattleback has a thousand parts that occur 57 million times. SymPy's own ``atoms``, ``free_symbols`` and ``cse`` visit
every occurrence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import sympy as sm

MAX_CSE_OCCURRENCES = 100_000
"""Occurrences from which on SymPy's ``cse`` is too slow."""


def iterate_distinct_subexpressions(expressions: Sequence[sm.Basic]) -> Iterator[sm.Basic]:
    """Yield each distinct part once, behind its own parts."""
    done: set[sm.Basic] = set()
    stack = [(expression, False) for expression in reversed(expressions)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node not in done:
            done.add(node)
            stack.append((node, True))
            stack += [(part, False) for part in reversed(node.args) if part not in done]


def count_all_subexpressions(expressions: Sequence[sm.Basic]) -> int:
    """Return how many parts there are, each counted as often as it stands there."""
    sizes: dict[sm.Basic, int] = {}
    for node in iterate_distinct_subexpressions(expressions):
        sizes[node] = 1 + sum(sizes[part] for part in node.args)
    return sum(sizes[expression] for expression in expressions)


def extract_repeated_subexpressions(
    expressions: Sequence[sm.Expr],
) -> tuple[list[tuple[sm.Symbol, sm.Expr]], list[sm.Expr]]:
    """Return a ``cse`` for ``lambdify``: what stands in several places gets a name; nothing is rearranged."""
    nodes = list(iterate_distinct_subexpressions(expressions))
    uses = Counter(part for node in nodes for part in node.args)
    uses.update(expressions)
    names = sm.numbered_symbols("_repeated")
    named: list[tuple[sm.Symbol, sm.Expr]] = []
    written: dict[sm.Basic, sm.Basic] = {}
    for node in nodes:
        parts = tuple(written[part] for part in node.args)
        new = node if parts == node.args else node.func(*parts)
        if uses[node] > 1 and node.args and isinstance(node, sm.Expr):
            symbol = next(names)
            named.append((symbol, new))
            new = symbol
        written[node] = new
    return named, [written[expression] for expression in expressions]
