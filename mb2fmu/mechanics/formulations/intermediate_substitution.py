"""Make quantities readable: short intermediates are substituted, long ones keep their names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import islice

import sympy as sm
from sympy.functions.elementary.trigonometric import TrigonometricFunction
from sympy.simplify.fu import TR8, TR10i

from mb2fmu.mechanics.equations.equations_of_motion import LinearSystemAssignment, SymbolAssignment
from mb2fmu.mechanics.equations.theory_quantities import (
    TheoryQuantities,
    TheoryQuantity,
    TheoryQuantitySection,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    replace_symbols,
    replace_symbols_in_matrix,
)

MAX_INLINE_OPERATIONS = 12
"""Operations up to which an intermediate is written where it is used."""
MAX_INLINE_NODES = 8 * MAX_INLINE_OPERATIONS
"""Nodes beyond which an expression has more operations: an operation has at most 5 (x - y is x + (-1) y)."""
MAX_CONTRACTED_OPERATIONS = 24
"""Operations up to which sin a cos b + cos a sin b becomes sin (a + b)."""
MAX_WRITTEN_OUT_OPERATIONS = 250
"""Operations up to which a scalar is multiplied out with nothing named, to see whether that is shorter."""


def substitute_short_intermediates(
    name: str,
    sections: Sequence[TheoryQuantitySection],
    items: Sequence[SymbolAssignment | LinearSystemAssignment],
    rates: Mapping[sm.Symbol, tuple[sm.Symbol, int]],
    *,
    contracted: bool = True,
) -> TheoryQuantities:
    """Substitute short intermediates, and drop those that nothing uses.

    Args:
        name: Of the model.
        sections: In terms of ``items``.
        items: In order of evaluation.
        rates: See :class:`TheoryQuantities`.
        contracted: Multiply out and contract what is short; False: names are put in place, nothing else, in no time.
    """
    shorter = _contract_angles if contracted else _identity
    short: dict[sm.Basic, sm.Expr] = {}
    whole: dict[sm.Basic, sm.Expr] = {}
    long_items: list[SymbolAssignment | LinearSystemAssignment] = []
    for item in items:
        if isinstance(item, LinearSystemAssignment):
            left, right = (
                replace_symbols_in_matrix(item.matrix, short),
                replace_symbols_in_matrix(item.right_hand_side, short),
            )
            long_items.append(replace(item, matrix=left, right_hand_side=right))
            continue
        expression = shorter(replace_symbols(item.expression, short))
        written_out = shorter(replace_symbols(item.expression, whole)) if contracted else expression
        if contracted and _count_operations(written_out) <= MAX_WRITTEN_OUT_OPERATIONS:
            whole[item.symbol] = written_out
        if _is_short(expression):
            short[item.symbol] = expression
        else:
            long_items.append(SymbolAssignment(item.symbol, expression))
    if contracted:
        long = {
            item.symbol: _count_operations(item.expression) for item in long_items if isinstance(item, SymbolAssignment)
        }
        place = partial(_substitute_in_quantity, short=short, whole=whole, long=long)
    else:
        place = partial(_write_out, short=short)
    shown_sections = tuple(replace(s, quantities=tuple(map(place, s.quantities))) for s in sections)
    needed_symbols: set[sm.Basic] = {
        symbol for s in shown_sections for q in s.quantities for e in q.entries for symbol in e.free_symbols
    }
    used_items: list[SymbolAssignment | LinearSystemAssignment] = []
    for item in reversed(long_items):
        if isinstance(item, LinearSystemAssignment):
            if needed_symbols & set(item.unknowns):
                used_items.append(item)
                needed_symbols |= item.matrix.free_symbols | item.right_hand_side.free_symbols
        elif item.symbol in needed_symbols:
            used_items.append(item)
            needed_symbols |= item.expression.free_symbols
    return TheoryQuantities(name, shown_sections, tuple(reversed(used_items)), dict(rates))


def _substitute_in_quantity(
    quantity: TheoryQuantity,
    short: Mapping[sm.Basic, sm.Expr],
    whole: Mapping[sm.Basic, sm.Expr],
    long: Mapping[sm.Symbol, int],
) -> TheoryQuantity:
    """Return the quantity with short intermediates substituted; with all of them where that is shorter in total."""
    value = quantity.value
    if isinstance(value, sm.MatrixBase):
        return replace(quantity, value=replace_symbols_in_matrix(value, short).applyfunc(_shortest_form))
    substituted, written_out = _contract_angles(replace_symbols(value, short)), replace_symbols(value, whole)
    if _count_operations(written_out) <= MAX_WRITTEN_OUT_OPERATIONS:
        multiplied = expand_trigonometric_products(written_out)
        intermediate_operations = sum(long.get(symbol, 0) for symbol in substituted.free_symbols)
        if _count_operations(multiplied) <= _count_operations(substituted) + intermediate_operations:
            return replace(quantity, value=multiplied)
    return replace(quantity, value=substituted)


def _shortest_form(entry: sm.Expr) -> sm.Expr:
    """Return an entry of a matrix contracted, or multiplied out where that is shorter: what cancels is not shown."""
    contracted_entry = _contract_angles(entry)
    if not contracted_entry.has(sm.sin, sm.cos) or _count_operations(contracted_entry) > MAX_WRITTEN_OUT_OPERATIONS:
        return contracted_entry
    return min(contracted_entry, expand_trigonometric_products(contracted_entry), key=_count_operations)


def _identity(expression: sm.Expr) -> sm.Expr:
    """Return an expression unchanged."""
    return expression


def _write_out(quantity: TheoryQuantity, short: Mapping[sm.Basic, sm.Expr]) -> TheoryQuantity:
    """Return the quantity with short intermediates written out."""
    value = quantity.value
    matrix = isinstance(value, sm.MatrixBase)
    return replace(quantity, value=replace_symbols_in_matrix(value, short) if matrix else replace_symbols(value, short))


@lru_cache(maxsize=4096)
def expand_trigonometric_products(expression: sm.Expr) -> sm.Expr:
    """Return a sum of products, each with at most one sine or cosine: equal things look equal, and 0 is 0."""
    return sm.factor_terms(sm.expand(TR8(sm.expand(expression))))


def _count_operations(expression: sm.Expr) -> int:
    """Count the operations of an expression."""
    return int(expression.count_ops(visual=False))


def _is_short(expression: sm.Expr) -> bool:
    """Return whether an expression is written where it is used; a long one is recognized by its nodes."""
    nodes = islice(sm.preorder_traversal(expression), MAX_INLINE_NODES + 1)
    return sum(1 for _ in nodes) <= MAX_INLINE_NODES and _count_operations(expression) <= MAX_INLINE_OPERATIONS


@lru_cache(maxsize=4096)  # two thirds are asked for again: by the next quantity, and with all names put in place
def _contract_angles(expression: sm.Expr) -> sm.Expr:
    """Return an expression with sums of angles contracted and sin² + cos² as 1, where that is cheap to find."""
    if (
        not expression.has(sm.sin, sm.cos)
        or not MAX_INLINE_OPERATIONS // 4 < _count_operations(expression) <= MAX_CONTRACTED_OPERATIONS
    ):
        return expression
    shorter = TR10i(expression)
    is_reducible = any(count > 1 for count in _count_factors_by_angle(shorter).values())
    if is_reducible and _count_operations(shorter) <= MAX_INLINE_OPERATIONS:
        shorter = sm.trigsimp(shorter, method="fu")  # takes a tenth of a second
    return min(shorter, expression, key=_count_operations)


def _count_factors_by_angle(expression: sm.Basic) -> Counter[sm.Basic]:
    """Return angle → how many sines and cosines of it are multiplied at most; powers and tangents count as two."""
    if isinstance(expression, TrigonometricFunction):
        return Counter({expression.args[0]: 1 if isinstance(expression, sm.sin | sm.cos) else 2})
    counts: Counter[sm.Basic] = Counter()
    for part in map(_count_factors_by_angle, expression.args):
        counts = counts + part if isinstance(expression, sm.Mul) else counts | part
    return counts + counts if isinstance(expression, sm.Pow) else counts
