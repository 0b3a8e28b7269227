"""Sums with common factors taken out: a·x + b·x + c → (a + b)·x + c.

SymPy's equations multiply the same sines and speeds into many terms; taking the most frequent factor out again and
again nearly halves the operations of a spatial chain of joints (7,650 → 4,430 at 6 joints with general inertia).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

_LONGEST_SUM = 4_096  # the search is quadratic in the worst case: longer sums are added as they are


class Arithmetic(Protocol):
    """What is needed of a builder."""

    def mul(self, a: int, b: int) -> int:
        """a·b."""
        ...

    def product(self, factors: Iterable[int]) -> int:
        """The product of nodes."""
        ...

    def plain_sum(self, plus: Sequence[int], minus: Sequence[int]) -> int:
        """The sum of nodes less the sum of others."""
        ...

    def factors(self, node: int) -> list[int]:
        """Nodes whose product the node is."""
        ...

    def rank(self, node: int) -> int:
        """0: a number, 1: of parameters only, 2: of anything."""
        ...


@dataclass(frozen=True, slots=True)
class _Term:
    """``sign`` · the product of ``factors``, which is ``node`` if that is known."""

    sign: int
    factors: tuple[int, ...]
    node: int | None = None


def factored_sum(b: Arithmetic, plus: Sequence[int], minus: Sequence[int]) -> int:
    """The sum of nodes less the sum of others, common factors taken out.

    Args:
        b: The builder.
        plus: Nodes that are no negations.
        minus: Likewise.
    """
    if not 2 <= len(plus) + len(minus) <= _LONGEST_SUM:
        return b.plain_sum(plus, minus)
    signed = [*((1, node) for node in plus), *((-1, node) for node in minus)]
    return _collect(b, [_Term(sign, tuple(b.factors(node)), node) for sign, node in signed])


def _collect(b: Arithmetic, terms: list[_Term]) -> int:
    collected: list[int] = []
    counts = Counter(factor for term in terms for factor in set(term.factors) if b.rank(factor) > 0)
    while (shared := _most_frequent(b, counts)) is not None:
        inside = [term for term in terms if shared in term.factors]
        terms = [term for term in terms if shared not in term.factors]
        counts.subtract(factor for term in inside for factor in set(term.factors) if b.rank(factor) > 0)
        collected.append(b.mul(shared, _collect(b, [_without(term, shared) for term in inside])))
    plus = collected
    minus: list[int] = []
    for term in terms:
        node = b.product(term.factors) if term.node is None else term.node
        (plus if term.sign > 0 else minus).append(node)
    return b.plain_sum(plus, minus)


def _most_frequent(b: Arithmetic, counts: Counter[int]) -> int | None:
    """The factor in most terms; of several the one that depends on most: what is left may depend on parameters only."""
    shared = max(((count, b.rank(node), node) for node, count in counts.items()), default=(0, 0, -1))
    return shared[2] if shared[0] > 1 else None


def _without(term: _Term, factor: int) -> _Term:
    factors = list(term.factors)
    factors.remove(factor)
    return _Term(term.sign, tuple(factors))
