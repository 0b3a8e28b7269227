"""Choose among the numbers that a script gives to a symbol."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import sympy as sm
from sympy.core.function import AppliedUndef

from mb2fmu.model.quantity_declarations import format_symbol_as_word
from mb2fmu.model.script_import.observed_script_values import (
    ORIGINS,
    Origin,
    ScriptSymbolValue,
    read_number_or_expression,
)

_MAX_DEPTH = 8
"""Expressions of expressions that are followed until a number comes."""


@dataclass
class ScriptNumbersBySymbol:
    """Numbers of a script by symbol.

    Attributes:
        notes: Symbol → its notes, the most reliable origin first.
        by_name: Symbol's name → its notes: scripts make symbols of one name twice, with other assumptions.
    """

    notes: dict[sm.Expr, list[ScriptSymbolValue]] = field(default_factory=dict)
    by_name: dict[str, list[ScriptSymbolValue]] = field(default_factory=dict)

    @classmethod
    def of(cls, found: Iterable[ScriptSymbolValue]) -> ScriptNumbersBySymbol:
        """Sort notes by symbol and origin; of one origin the latest counts, of the integration the first."""
        values = cls()
        for note in found:
            values.notes.setdefault(note.symbol, []).append(note)
            if isinstance(note.symbol, sm.Symbol) and not isinstance(note.symbol, sm.Dummy):
                values.by_name.setdefault(note.symbol.name, []).append(note)
        for notes in (*values.notes.values(), *values.by_name.values()):
            first = [note for note in notes if note.origin == "integration"]
            rest = [note for note in notes if note.origin != "integration"][::-1]
            notes[:] = first + sorted(rest, key=lambda note: ORIGINS.index(note.origin))
        return values

    def number(self, symbol: sm.Expr, allowed: Sequence[Origin] = ORIGINS) -> float | None:
        """Return the number of a symbol; None if the script says none."""
        for note in self._candidates(symbol, allowed):
            number = self._evaluate(note.value, allowed, 0)
            if number is not None:
                return number
        return None

    def expression(self, symbol: sm.Expr, known: frozenset[sm.Expr]) -> sm.Expr | None:
        """Return the expression of known symbols that a script gives to a symbol; None if it gives a number or none."""
        for note in self._candidates(symbol, ORIGINS):
            if isinstance(note.value, float):
                return None
            inside = note.value.free_symbols | note.value.atoms(AppliedUndef)
            if inside and inside <= known - {symbol}:
                return note.value
        return None

    def _candidates(self, symbol: sm.Expr, allowed: Sequence[Origin]) -> list[ScriptSymbolValue]:
        """Return the notes of a symbol, or else of one of the same name."""
        notes = [note for note in self.notes.get(symbol, ()) if note.origin in allowed]
        if not notes and isinstance(symbol, sm.Symbol | AppliedUndef):
            notes = [note for note in self.by_name.get(format_symbol_as_word(symbol), ()) if note.origin in allowed]
        return notes

    def _evaluate(self, value: float | sm.Expr, allowed: Sequence[Origin], depth: int) -> float | None:
        """Return the number of an expression of other symbols that have numbers."""
        if isinstance(value, float):
            return value
        if depth > _MAX_DEPTH:
            return None
        numbers: dict[sm.Expr, float] = {}
        atoms = value.atoms(AppliedUndef) | {s for s in value.free_symbols if isinstance(s, sm.Symbol)}
        functions = {argument for each in value.atoms(AppliedUndef) for argument in each.args}
        for atom in atoms - functions:
            candidates = [self._evaluate(n.value, allowed, depth + 1) for n in self._candidates(atom, allowed)[:1]]
            if not candidates or candidates[0] is None:
                return None
            numbers[atom] = candidates[0]
        result = read_number_or_expression(
            value.xreplace({key: sm.Float(number, 17) for key, number in numbers.items()})
        )
        return result if isinstance(result, float) else None
