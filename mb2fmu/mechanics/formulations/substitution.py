"""Make quantities readable: short intermediates are substituted, long ones keep their names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import sympy as sm
from sympy.simplify.fu import TR8, TR10i

from mb2fmu.mechanics.equations.equations_of_motion import Assignment, LinearSolve
from mb2fmu.mechanics.equations.named_quantities import NamedQuantities, NamedQuantity, QuantitySection
from mb2fmu.mechanics.mechanism.records.plain_symbols import translate, translate_matrix

INLINE = 12
"""Operations up to which an intermediate is written where it is used."""
CONTRACTED = 24
"""Operations up to which sin a cos b + cos a sin b becomes sin (a + b)."""
WHOLE = 250
"""Operations up to which a scalar is multiplied out with nothing named, to see whether that is shorter."""


def readable(
    name: str,
    sections: Sequence[QuantitySection],
    items: Sequence[Assignment | LinearSolve],
    rates: Mapping[sm.Symbol, tuple[sm.Symbol, int]],
    *,
    contracted: bool = True,
) -> NamedQuantities:
    """Substitute short intermediates, and drop those that nothing uses.

    Args:
        name: Of the model.
        sections: In terms of ``items``.
        items: In order of evaluation.
        rates: See :class:`NamedQuantities`.
        contracted: Multiply out and contract what is short; False: names are put in place, nothing else, in no time.
    """
    shorter = _contracted if contracted else _as_it_is
    short: dict[sm.Basic, sm.Expr] = {}
    whole: dict[sm.Basic, sm.Expr] = {}
    kept: list[Assignment | LinearSolve] = []
    for item in items:
        if isinstance(item, LinearSolve):
            left, right = translate_matrix(item.matrix, short), translate_matrix(item.right_hand_side, short)
            kept.append(replace(item, matrix=left, right_hand_side=right))
            continue
        expression = shorter(translate(item.expression, short))
        in_full = shorter(translate(item.expression, whole)) if contracted else expression
        if contracted and _operations(in_full) <= WHOLE:
            whole[item.symbol] = in_full
        if _operations(expression) <= INLINE:
            short[item.symbol] = expression
        else:
            kept.append(Assignment(item.symbol, expression))
    long = {item.symbol: _operations(item.expression) for item in kept if isinstance(item, Assignment)}

    def placed(q: NamedQuantity) -> NamedQuantity:
        """Return an expression with short names written out."""
        return _in_place(q, short, whole, long) if contracted else _put(q, short)

    shown = tuple(replace(s, quantities=tuple(placed(q) for q in s.quantities)) for s in sections)
    needed: set[sm.Basic] = {
        symbol for s in shown for q in s.quantities for e in q.entries for symbol in e.free_symbols
    }
    used: list[Assignment | LinearSolve] = []
    for item in reversed(kept):
        if isinstance(item, LinearSolve):
            if needed & set(item.unknowns):
                used.append(item)
                needed |= item.matrix.free_symbols | item.right_hand_side.free_symbols
        elif item.symbol in needed:
            used.append(item)
            needed |= item.expression.free_symbols
    return NamedQuantities(name, shown, tuple(reversed(used)), dict(rates))


def _in_place(
    quantity: NamedQuantity,
    short: Mapping[sm.Basic, sm.Expr],
    whole: Mapping[sm.Basic, sm.Expr],
    long: Mapping[sm.Symbol, int],
) -> NamedQuantity:
    """Return the quantity with short intermediates substituted; with all of them where that is shorter in total."""
    value = quantity.value
    if isinstance(value, sm.MatrixBase):
        return replace(quantity, value=translate_matrix(value, short).applyfunc(_shortest))
    in_place, written = _contracted(translate(value, short)), translate(value, whole)
    if _operations(written) <= WHOLE:
        multiplied = multiplied_out(written)
        beside = sum(long.get(symbol, 0) for symbol in in_place.free_symbols)
        if _operations(multiplied) <= _operations(in_place) + beside:
            return replace(quantity, value=multiplied)
    return replace(quantity, value=in_place)


def _shortest(entry: sm.Expr) -> sm.Expr:
    """Return an entry of a matrix contracted, or multiplied out where that is shorter: what cancels is not shown."""
    contracted = _contracted(entry)
    if not contracted.has(sm.sin, sm.cos) or _operations(contracted) > WHOLE:
        return contracted
    return min(contracted, multiplied_out(contracted), key=_operations)


def _as_it_is(expression: sm.Expr) -> sm.Expr:
    """Return an expression unchanged."""
    return expression


def _put(quantity: NamedQuantity, short: Mapping[sm.Basic, sm.Expr]) -> NamedQuantity:
    """Return the quantity with short intermediates written out."""
    value = quantity.value
    matrix = isinstance(value, sm.MatrixBase)
    return replace(quantity, value=translate_matrix(value, short) if matrix else translate(value, short))


def multiplied_out(expression: sm.Expr) -> sm.Expr:
    """Return a sum of products, each with at most one sine or cosine: equal things look equal, and 0 is 0."""
    return sm.factor_terms(sm.expand(TR8(sm.expand(expression))))


def _operations(expression: sm.Expr) -> int:
    """Count the operations of an expression."""
    return int(expression.count_ops(visual=False))


def _contracted(expression: sm.Expr) -> sm.Expr:
    """Return an expression with sums of angles contracted and sin² + cos² as 1, where that is cheap to find."""
    if not expression.has(sm.sin, sm.cos) or not INLINE // 4 < _operations(expression) <= CONTRACTED:
        return expression
    shorter = TR10i(expression)
    if _operations(shorter) <= INLINE:
        shorter = sm.trigsimp(shorter, method="fu")
    return min(shorter, expression, key=_operations)
