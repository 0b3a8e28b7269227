"""Quantities of the theory in a terminal and in notebooks: as text, or as LaTeX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import sympy as sm
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from mb2fmu.mechanics.equations import notebook_display_registry
from mb2fmu.mechanics.equations.equations_of_motion import LinearSystemAssignment, SymbolAssignment
from mb2fmu.mechanics.equations.theory_quantities import TheoryQuantities, TheoryQuantity

_LATEX_LETTERS = {
    "v": r"{}^{N}\mathbf{v}", "omega": r"{}^{N}\boldsymbol{\omega}", "F": "F", "F*": r"F^{*}", "F~": r"\tilde{F}",
    "F~*": r"\tilde{F}^{*}", "T": "T", "M": "M", "g": r"\bar{g}", "f": "f", "Q": "Q", "Q*": r"T^{T}(f - M \bar{g})",
    "energy T": "T", "energy V": "V", "L": "L", "p": "p", "dL": r"\partial L/\partial", "dT": r"\partial T/\partial",
    "dp": r"\dot{p}", "invariant": "C",
}  # fmt: skip
_PLAIN_LETTERS = {
    "energy T": "T",
    "energy V": "V",
    "Q*": "T'(f - M g)",
    "dp": "p'",
    "dL": "dL/d",
    "dT": "dT/d",
    "invariant": "constant",
}


def format_theory_quantities(quantities: TheoryQuantities, form: Literal["text", "latex"] = "text") -> str:
    """Return all sections, named intermediates last; ends in a line break.

    Args:
        quantities: What is printed.
        form: ``text`` or ``latex`` (an ``align*`` per section).
    """
    return _format_plain_text(quantities) if form == "text" else _format_latex(quantities)


def format_theory_quantity_sections(quantities: TheoryQuantities) -> list[dict[str, Any]]:
    """Return all sections: title, rows (both sides as text), note; then the names that occur in them."""
    dots = {rate: sm.Symbol(f"{of}{chr(39) * times}") for rate, (of, times) in quantities.rates.items()}
    printer = StrPrinter({"order": "none"})

    def shown(value: sm.Basic) -> str:
        """Return a scalar, a column in parentheses, a matrix by its rows."""
        if not isinstance(value, sm.MatrixBase):
            return str(printer.doprint(value.xreplace(dots)))
        rows = [", ".join(shown(e) for e in value.row(i)) for i in range(value.rows)]
        return f"({', '.join(rows)})" if value.cols == 1 else f"[{'; '.join(rows)}]"

    found: list[dict[str, Any]] = [
        {
            "title": section.title,
            "rows": [[_plain_quantity_name(q), shown(q.value)] for q in section.quantities],
            "note": section.note,
        }
        for section in quantities.sections
    ]
    rows: list[list[str]] = []
    for item in quantities.intermediates:
        if isinstance(item, SymbolAssignment):
            rows.append([str(item.symbol), shown(item.expression)])
        else:
            rows.append([", ".join(map(str, item.unknowns)), f"X of A X = B ({item.name})"])
            rows += [["  A", shown(item.matrix)], ["  B", shown(item.right_hand_side)]]
    return [*found, {"title": "With", "rows": rows, "note": ""}] if rows else found


def _format_plain_text(quantities: TheoryQuantities) -> str:
    """Print the quantities as plain text, section by section."""
    lines = [f"{quantities.name}: quantities of the theory"]
    for section in format_theory_quantity_sections(quantities):
        lines += ["", section["title"]]
        joints = (": " if right.startswith("X of A") else " = " for _, right in section["rows"])
        lines += [f"  {left}{joint}{right}" for joint, (left, right) in zip(joints, section["rows"], strict=True)]
        lines += [f"  {section['note']}"] if section["note"] else []
    return "\n".join(lines) + "\n"


def _plain_quantity_name(q: TheoryQuantity) -> str:
    """Name a quantity in plain text: its letter, then in brackets the body or load, and the speed."""
    letter = _PLAIN_LETTERS.get(q.letter, q.letter)
    if q.letter in {"dL", "dT"}:
        return f"{letter}{q.index}"
    places = ", ".join(part for part in (q.of, "" if q.index is None else str(q.index)) if part)
    return f"{letter}[{places}]" if places else letter


def _format_latex(quantities: TheoryQuantities) -> str:
    """Return all quantities as LaTeX, a paragraph for each kind."""
    lines = [f"% {quantities.name}: quantities of the theory"]
    for title, rows in _list_latex_sections(quantities):
        lines += [rf"\paragraph{{{title}}}", r"\begin{align*}", *(rf"  {row} \\" for row in rows), r"\end{align*}"]
    return "\n".join(lines) + "\n"


def _list_latex_sections(quantities: TheoryQuantities) -> Iterator[tuple[str, list[str]]]:
    """Yield the title and the aligned rows of each section, in LaTeX."""
    dots = {}
    for rate, (of, times) in quantities.rates.items():
        dots[rate] = rf"\{'d' * times}ot{{{sm.latex(of)}}}"
    printer = LatexPrinter({"symbol_names": dots, "order": "none", "mat_str": "matrix", "mat_delim": "["})
    for section in quantities.sections:
        if section.quantities:
            rows = [f"{_latex_quantity_name(q)} &= {printer.doprint(q.value)}" for q in section.quantities]
            yield section.title, rows
    rows = []
    for item in quantities.intermediates:
        if isinstance(item, LinearSystemAssignment):
            unknown = printer.doprint(sm.Matrix(*item.right_hand_side.shape, list(item.unknowns)))
            rows.append(f"{printer.doprint(item.matrix)} {unknown} &= {printer.doprint(item.right_hand_side)}")
        else:
            rows.append(f"{printer.doprint(item.symbol)} &= {printer.doprint(item.expression)}")
    if rows:
        yield "With", rows


def _latex_quantity_name(q: TheoryQuantity) -> str:
    """Name a quantity in LaTeX: its letter, the body or load as superscript, the speed as subscript."""
    letter = _LATEX_LETTERS[q.letter]
    index = "" if q.index is None else sm.latex(q.index)
    if q.letter in {"dL", "dT"}:
        return rf"\frac{{\partial {q.letter[1]}}}{{\partial {index}}}"
    of = q.of
    for character in "_&%#$":
        of = of.replace(character, rf"\{character}")
    name = rf"\left({letter}\right)" if of and ("^{*}" in letter or "(" in letter) else letter
    return name + (rf"^{{\text{{{of}}}}}" if of else "") + (f"_{{{index}}}" if index else "")


@notebook_display_registry.render_record_as_latex.register
def _format_notebook_formula(quantities: TheoryQuantities) -> str:
    r"""Return ``$\displaystyle \begin{aligned} … \end{aligned}$`` for notebooks."""
    lines = []
    for title, rows in _list_latex_sections(quantities):
        lines += [rf"&\text{{{title}}}", *rows]
    return r"$\displaystyle \begin{aligned} " + r" \\ ".join(lines) + r" \end{aligned}$"
