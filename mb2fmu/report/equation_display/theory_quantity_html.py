"""Quantities of the theory in a page: a section per kind that unfolds, with long expressions folded inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import sympy as sm
from markupsafe import Markup, escape

from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.mechanics.equations.equations_of_motion import SymbolAssignment
from mb2fmu.mechanics.equations.theory_quantities import (
    TheoryQuantities,
    TheoryQuantity,
    TheoryQuantitySection,
)
from mb2fmu.report.equation_display.equation_html import (
    MAX_FOLDED_CHARACTERS,
    MAX_WRITTEN_OPERATIONS,
    EquationHtmlBlock,
    FormulaLinePrinter,
    format_inline_formulas,
)
from mb2fmu.report.equation_display.mathml import format_mathml_identifier

_LETTER_MATHML = {
    "v": "<mi mathvariant='bold'>v</mi>", "omega": "<mi mathvariant='bold'>ω</mi>", "F": "<mi>F</mi>",
    "F*": "<msup><mi>F</mi><mo>*</mo></msup>", "F~": "<mover><mi>F</mi><mo>~</mo></mover>",
    "F~*": "<msup><mover><mi>F</mi><mo>~</mo></mover><mo>*</mo></msup>", "T": "<mi>T</mi>", "M": "<mi>M</mi>",
    "g": "<mover><mi>g</mi><mo>¯</mo></mover>", "f": "<mi>f</mi>", "Q": "<mi>Q</mi>",
    "Q*": "<msup><mi>T</mi><mo>⊤</mo></msup><mo>(</mo><mi>f</mi><mo>−</mo><mi>M</mi><mi>g</mi><mo>)</mo>",
    "energy T": "<mi>T</mi>", "energy V": "<mi>V</mi>", "L": "<mi>L</mi>", "p": "<mi>p</mi>",
    "dp": "<mover><mi>p</mi><mo>˙</mo></mover>", "dL": "<mi>∂L/∂q</mi>", "dT": "<mi>∂T/∂q</mi>",
    "invariant": "<mi>C</mi>",
}  # fmt: skip
"""How each letter is written."""


class TheoryQuantityHtmlWriter(FormulaLinePrinter):
    """Writes quantities of the theory.

    Args:
        quantities: What is shown.
    """

    def __init__(self, quantities: TheoryQuantities) -> None:
        names = {
            rate: format_mathml_identifier(str(of.name), dots=times) for rate, (of, times) in quantities.rates.items()
        }
        super().__init__(names)
        self._quantities = quantities
        self._most: int | None = None

    def form_blocks(self, room: int, most: int | None) -> list[EquationHtmlBlock]:
        """Return one block per kind in the order requested, and one for named intermediates last.

        Args:
            room: Characters that folded expressions may take in all.
            most: Lines of a block; what is more is counted. None: all.
        """
        self.room, self._most = room, most
        blocks = [self._section(section) for section in self._quantities.sections]
        items = self._quantities.intermediates
        return [*blocks, self._block("With", items, self._intermediate, "")] if items else blocks

    def _section(self, section: TheoryQuantitySection) -> EquationHtmlBlock:
        """Return the block of one kind of quantity; long expressions are folded."""
        return self._block(section.title, section.quantities, self._quantity, section.note)

    def _block(
        self, title: str, items: Sequence[Any], format_line: Callable[[Any], Markup], note: str
    ) -> EquationHtmlBlock:
        """Return as many lines as are allowed, and a note that counts the others."""
        left = 0 if self._most is None else len(items) - self._most
        if left > 0:
            note = f"{note} {left} further lines: mb2fmu equations --show writes them all.".strip()
        return EquationHtmlBlock(title, tuple(map(format_line, items[: self._most])), note)

    def _intermediate(self, item: object) -> Markup:
        """Return the line of an intermediate: an assignment, or a linear system that is solved."""
        if isinstance(item, SymbolAssignment):
            return self.line(self.print.expression(item.symbol), item.expression)
        return self.format_solved_unknowns(item)  # type: ignore[arg-type]

    def _quantity(self, q: TheoryQuantity) -> Markup:
        """Return ``letter(of)_index = value``; a vector as a column."""
        of = f"<mtext>{escape(q.of)}</mtext>" if q.of else ""
        index = "" if q.index is None else self.print.expression(q.index)
        name = f"<msubsup><mrow>{_LETTER_MATHML[q.letter]}</mrow><mrow>{index}</mrow><mrow>{of}</mrow></msubsup>"
        if not isinstance(q.value, sm.MatrixBase):
            return self.line(name, q.value)
        entries = [[self.print.expression(e) for e in q.value.row(i)] for i in range(q.value.rows)]
        whole = self.print.matrix(entries)
        operations = self.count.of(*q.value)
        if operations <= MAX_WRITTEN_OPERATIONS:
            return format_inline_formulas([f"{name}<mo>=</mo>{whole}"])
        head = format_inline_formulas([f"{name}<mo>=</mo><mtext>a matrix of {operations:,} operations</mtext>"])
        return self.format_unfoldable_formula(head, format_inline_formulas([whole]))


@notebook_display_registry.render_record_as_html.register
def _render_quantities_html(quantities: TheoryQuantities) -> str:
    """Return a section per kind, to be unfolded; the first one is open."""
    parts = []
    for number, block in enumerate(TheoryQuantityHtmlWriter(quantities).form_blocks(MAX_FOLDED_CHARACTERS, None)):
        lines = "".join(f"<div style='margin:.3em 0;overflow-x:auto'>{line}</div>" for line in block.lines)
        note = f"<p>{escape(block.note)}</p>" if block.note else ""
        state = " open" if number == 0 else ""
        parts.append(f"<details{state}><summary>{escape(block.title)}</summary>{lines}{note}</details>")
    return f"<h4>{escape(quantities.name)}</h4>{''.join(parts)}"
