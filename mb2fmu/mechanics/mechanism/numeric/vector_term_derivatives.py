"""Rates and partial derivatives of the terms of a Mechanism's vectors."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

import sympy as sm

from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import differentiate_along_rates
from mb2fmu.model.expression_traversal import partial_derivative


class TermDerivatives:
    """Rates and partial derivatives of terms, each formed once for all evaluators of mechanisms with the same motion.

    A run makes a dozen evaluators, of the mechanism and of it without some loads. A flexible body's points, each a sum
    over modes, would be differentiated by each of them.

    Args:
        rates: Symbols and their rates.
        speeds: All speeds, in order.
    """

    def __init__(self, rates: tuple[tuple[sm.Symbol, sm.Expr], ...], speeds: tuple[sm.Symbol, ...]) -> None:
        self._rates, self._speed_order = dict(rates), {speed: k for k, speed in enumerate(speeds)}
        self._derivatives: dict[sm.Expr, sm.Expr] = {}
        self._rows: dict[tuple[tuple[sm.Expr, ...], bool], tuple[list[sm.Symbol], list[sm.Expr]]] = {}

    def differentiate(self, expressions: Iterable[sm.Expr]) -> list[sm.Expr]:
        """Return the time derivatives of expressions."""
        return [self._differentiate_one(sm.sympify(expression)) for expression in expressions]

    def _differentiate_one(self, expression: sm.Expr) -> sm.Expr:
        """Return the time derivative of an expression."""
        derivative = self._derivatives.get(expression)
        if derivative is None:
            derivative = self._derivatives[expression] = differentiate_along_rates(expression, self._rates)
        return derivative

    def form_rows(self, components: tuple[sm.Expr, ...], *, is_position: bool) -> tuple[list[sm.Symbol], list[sm.Expr]]:
        """Return the speeds of a term, and its three rows, one behind the other.

        ``is_position``: components are positions, partials are of their rates.
        """
        key = (components, is_position)
        if key not in self._rows:
            rate = self.differentiate(components)
            linear = rate if is_position else [sm.sympify(component) for component in components]
            free = set().union(*(e.free_symbols for e in linear))
            speeds = sorted(free & self._speed_order.keys(), key=self._speed_order.__getitem__)
            second_rate = self.differentiate(rate) if is_position else [sm.S.Zero] * 3
            rows = [
                [*(partial_derivative(linear[i], speed) for speed in speeds), components[i], rate[i], second_rate[i]]
                for i in range(3)
            ]
            self._rows[key] = speeds, [e for row in rows for e in row]
        return self._rows[key]


@lru_cache(maxsize=8)
def make_term_derivatives(
    rates: tuple[tuple[sm.Symbol, sm.Expr], ...], speeds: tuple[sm.Symbol, ...]
) -> TermDerivatives:
    """Return the derivatives of the terms of a mechanism; those that were formed before are used again."""
    return TermDerivatives(rates, speeds)
