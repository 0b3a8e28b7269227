"""Sums of products of derivatives, each written in the shortest of several ways.

What a sum of products needs beyond its value, d(Σ a b) = Σ a db + Σ b da, is built as one sum. Three ways are tried:
factors that terms have in common taken out, terms of one derivative collected (of c x − s y with c = cos θ, s = sin θ:
c dx − s dy − (s x + c y) dθ, where s x + c y is there already if both components of the vector are), or all as it
stands. The way is taken that needs the fewest new nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal

from mb2fmu.compiler.program.program import Op
from mb2fmu.compiler.program.program_builder import ProgramBuilder

DerivativeTerm = tuple[int, int]
"""Nodes of a factor and of a derivative that it multiplies."""

SumStrategy = Literal["shortest", "collected", "factored", "plain"]
"""All tried; terms of one derivative collected, which is most of what can be saved, in a third of the time; factors
that terms have in common taken out; as it stands."""

_MUL, _NEG = int(Op.MUL), int(Op.NEG)


class TangentSumBuilder:
    """Builds sums of derivatives.

    Args:
        builder: Takes the nodes.
        first: What comes before this node is no derivative.
        way: How sums are written.
    """

    def __init__(self, builder: ProgramBuilder, first: int, way: SumStrategy) -> None:
        self._builder = builder
        self._first = first
        self._way = way
        self._innermost: dict[int, int] = {}
        self._factors: dict[int, frozenset[int]] = {}

    def of(self, plus: Sequence[DerivativeTerm], minus: Sequence[DerivativeTerm] = ()) -> int:
        """Return the sum of some terms less the sum of others."""
        terms = (*plus, *minus)
        if len(terms) == 1 or self._way == "plain":
            return self._as_it_stands(plus, minus)
        if self._way == "factored":
            return self._factored(plus, minus)
        again = len({self._derivative_in(term) for term in terms}) < len(terms)
        if self._way == "collected":
            return self._by_derivative(plus, minus) if again else self._as_it_stands(plus, minus)
        ways = [self._factored] if self._have_factors_in_common(terms) else []
        if again:
            ways.append(self._by_derivative)
        ways.append(self._as_it_stands)
        return self._builder.shortest([partial(way, plus, minus) for way in ways])

    def _derivative_in(self, term: DerivativeTerm) -> int:
        """Return the terms that the product rule does not produce."""
        known = self._innermost.get(term[1])
        if known is None:
            known = self._innermost[term[1]] = self._taken_apart(term)[1]
        return known

    def _have_factors_in_common(self, terms: Sequence[DerivativeTerm]) -> bool:
        """Return whether any factor occurs in more than one term, so that factoring can pay."""
        every: set[int] = set()
        count = 0
        for term in terms:
            factors = self._factors_of(term[0]) | self._factors_of(term[1])
            count += len(factors)
            every |= factors
        return len(every) < count

    def _factors_of(self, node: int) -> frozenset[int]:
        """Return the factors of a node that are no numbers."""
        known = self._factors.get(node)
        if known is None:
            b = self._builder
            known = self._factors[node] = frozenset(factor for factor in b.factors(node) if b.rank(factor) > 0)
        return known

    def _as_it_stands(self, plus: Iterable[DerivativeTerm], minus: Iterable[DerivativeTerm]) -> int:
        """Return the sum of products without taking factors out."""
        return self._builder.plain_sum(self._products(plus), self._products(minus))

    def _factored(self, plus: Iterable[DerivativeTerm], minus: Iterable[DerivativeTerm]) -> int:
        """Return the sum of products with common factors taken out."""
        return self._builder.sum(self._products(plus), self._products(minus))

    def _products(self, terms: Iterable[DerivativeTerm]) -> list[int]:
        """Return the node of each factor times its derivative."""
        return [self._builder.mul(factor, derivative) for factor, derivative in terms]

    def _by_derivative(self, plus: Iterable[DerivativeTerm], minus: Iterable[DerivativeTerm]) -> int:
        """Add up terms that share a derivative first and multiplies by the derivative once."""
        b = self._builder
        collected: dict[int, list[tuple[int, DerivativeTerm, list[int], bool]]] = {}
        for side, terms in enumerate((plus, minus)):
            for term in terms:
                factors, derivative, turned = self._taken_apart(term)
                collected.setdefault(derivative, []).append((side, term, factors, turned))
        sums: tuple[list[int], list[int]] = ([], [])
        for derivative, members in collected.items():
            if len(members) == 1:
                side, term, _, _ = members[0]
                sums[side].append(b.mul(*term))
                continue
            sides: tuple[list[int], list[int]] = ([], [])
            for side, _, factors, turned in members:
                sides[side ^ turned].append(b.product(factors))
            sums[0].append(b.mul(derivative, b.plain_sum(*sides)))
        return b.plain_sum(*sums)

    def _taken_apart(self, term: DerivativeTerm) -> tuple[list[int], int, bool]:
        """Return the factors that are no derivatives, the derivative that they multiply, and whether all is negated."""
        b, first = self._builder, self._first
        factor, derivative = term
        factors, turned = [factor], False
        while True:
            if b.operation(derivative) == _NEG:
                (derivative,) = b.operands(derivative)
                turned = not turned
            elif b.operation(derivative) == _MUL and b.operands(derivative)[0] < first <= b.operands(derivative)[1]:
                one, derivative = b.operands(derivative)
                factors.append(one)
            else:
                return factors, derivative, turned
