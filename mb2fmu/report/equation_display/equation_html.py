"""Equations of motion for people: every part by its name, long entries listed apart, very long ones folded."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import sympy as sm
from markupsafe import Markup, escape

from mb2fmu.mechanics.equations.equations_of_motion import (
    EquationsOfMotion,
    Intermediate,
    LinearSystemAssignment,
    SymbolAssignment,
)
from mb2fmu.mechanics.equations.link_recursion import ArticulatedBodyStructure, LinkRecursion, SpeedLinearVector
from mb2fmu.report.equation_display.mathml import MathMLPrinter, estimate_formula_width, format_mathml_identifier

# A row of a matrix has room for ROW characters, so that it fits on paper: longer entries, and those of over WHOLE
# operations in a matrix that stands alone, stand below it. What has more than LISTED operations is folded; what is
# wider than INLINE may be broken between terms, into pieces of at most WIDEST characters, which fit on paper. Matrices
# over DIMENSION rows and lists over LENGTH lines are folded too; the folded takes at most ROOM characters of a page.
MAX_MATRIX_ROW_WIDTH = 76
MAX_INLINE_WIDTH = 36
MAX_WRITTEN_OPERATIONS = 150
MAX_PIECE_WIDTH = 72
MAX_SCALAR_ENTRY_OPERATIONS = 16
MAX_MATRIX_DIMENSION = 8
MAX_VISIBLE_LINES = 90
MAX_FOLDED_CHARACTERS = 1_500_000

_MATHML_LETTER_PATTERN = re.compile("<mi>([^<&])</mi>")


@dataclass(frozen=True, slots=True)
class EquationHtmlBlock:
    """One paragraph of equations.

    Attributes:
        title: What they say.
        lines: One displayed formula each.
        note: What has been left out, and how large it is; may be empty.
        dense: True: many short lines, which may stand in columns.
        folded_lines: Further lines, which a reader has to unfold.
    """

    title: str
    lines: tuple[Markup, ...]
    note: str = ""
    dense: bool = False
    folded_lines: tuple[Markup, ...] = ()


class ExpressionOperationCounter:
    """Counts operations of expressions as written out; each subexpression is visited once."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}

    def of(self, *expressions: Any) -> int:
        """Return the number of additions, multiplications, powers and function calls in all ``expressions``."""
        return sum(self._one(sm.sympify(e)) for e in expressions)

    def _one(self, expression: Any) -> int:
        """Count the operations of an expression, without recursion; equal parts are remembered."""
        stack = [expression]
        while stack:
            e = stack[-1]
            missing = [a for a in e.args if a not in self._known]
            if missing and e not in self._known:
                stack += missing
                continue
            stack.pop()
            own = 0 if not e.args else max(1, len(e.args) - 1)
            self._known[e] = own + sum(self._known[a] for a in e.args)
        return self._known[expression]


def form_equation_blocks(
    equations: EquationsOfMotion, room: int = MAX_FOLDED_CHARACTERS
) -> tuple[EquationHtmlBlock, ...]:
    """Return :meth:`EquationHtmlWriter.form_blocks` of equations that are shown once."""
    return EquationHtmlWriter(equations).form_blocks(room)


class FormulaLinePrinter:
    """Prints ``left = right`` line by line; long expressions unfold, as far as there is room.

    What was printed before is not printed again: pages in an FMU and beside it differ in room only.

    Args:
        names: MathML of symbols that are not printed by their names.

    Attributes:
        room: Characters that folded formulas may take in all.
    """

    def __init__(self, names: Mapping[Any, str]) -> None:
        self.room = 0
        self.count = ExpressionOperationCounter()
        self.print = MathMLPrinter(dict(names))
        self._lines: dict[tuple[str, Any], Markup] = {}

    def line(self, left: str, right: Any) -> Markup:
        """Return ``left = right``; a long sum is split where narrow pages and screens may break the line."""
        operations = self.count.of(right)
        if operations > MAX_WRITTEN_OPERATIONS:
            return self._long(left, right, operations)
        if (left, right) not in self._lines:
            whole = self.print.expression(right)
            is_short = estimate_formula_width(whole) <= MAX_INLINE_WIDTH
            pieces = [whole] if is_short else ["", *self.print.pieces(right, MAX_PIECE_WIDTH)]
            self._lines[left, right] = format_inline_formulas([f"{left}<mo>=</mo>{pieces[0]}", *pieces[1:]])
        return self._lines[left, right]

    def _long(self, left: str, right: Any, operations: int) -> Markup:
        """Return ``left = an expression of … operations``, unfolded on demand if there is room for it."""
        head = format_inline_formulas([f"{left}<mo>=</mo><mtext>an expression of {operations:,} operations</mtext>"])
        if operations * _CHARACTERS_PER_OPERATION > self.room:
            return head
        whole = format_inline_formulas(self.print.pieces(right, MAX_PIECE_WIDTH))
        return self.format_unfoldable_formula(head, whole)

    def format_unfoldable_formula(self, head: Markup, whole: Markup) -> Markup:
        """Return a visible part, and the whole behind it; only the visible part where there is no room."""
        if len(whole) > self.room:
            return head
        self.room -= len(whole)
        return Markup("<details><summary>{}</summary>{}</details>").format(head, whole)

    def format_solved_unknowns(self, item: LinearSystemAssignment) -> Markup:
        """Return the unknowns of a linear system, and its size."""
        unknowns = [f"{self.print.expression(s)}<mo>,</mo>" for s in item.unknowns[:MAX_VISIBLE_LINES]]
        size = f"<mtext>from {item.matrix.rows} linear equations: {escape(item.name)}</mtext>"
        return format_inline_formulas([*unknowns, size])


class EquationHtmlWriter(FormulaLinePrinter):
    """Writes equations of motion.

    Args:
        equations: Of the FMU.
    """

    def __init__(self, equations: EquationsOfMotion) -> None:
        self.equations = equations
        pairs = zip(equations.u, equations.u_dot, strict=True)
        super().__init__({derivative: _dotted_symbol(speed) for speed, derivative in pairs})

    def form_blocks(self, room: int) -> tuple[EquationHtmlBlock, ...]:
        """Return the parts of the equations of motion: the most important first, their intermediates last.

        Args:
            room: Characters that folded lines may take in all; what goes beyond is counted in a note.
        """
        self.room = room
        blocks = [
            self.kinematics(),
            self.constraints(),
            self.dynamics(),
            self.links(),
            self.auxiliary_state_derivatives(),
            self.energies(),
            self.calculated_parameters(),
            self.intermediates(),
        ]
        return tuple(block for block in blocks if block.lines or block.note)

    def kinematics(self) -> EquationHtmlBlock:
        """Return q' in terms of q and u."""
        k = self.equations.kinematics
        u = sm.Matrix(len(self.equations.u), 1, self.equations.u)
        rows = ((_dotted_symbol(q), row) for q, row in zip(self.equations.q, k.matrix * u + k.offset, strict=True))
        return self._block("Kinematics", rows)

    def calculated_parameters(self) -> EquationHtmlBlock:
        """Return parameters that follow from others."""
        rows = ((self.print.expression(a.symbol), a.expression) for a in self.equations.calculated_parameters)
        return self._block("Calculated parameters", rows)

    def intermediates(self) -> EquationHtmlBlock:
        """Return assignments with their expressions, linear solves with their unknowns."""
        items = self.equations.intermediates
        lines = (line for item in items for line in self._intermediate(item))
        shown, folded, note = self._parted(lines, len(items), "intermediates")
        return EquationHtmlBlock("Intermediates, in order of evaluation", shown, note, dense=True, folded_lines=folded)

    def dynamics(self) -> EquationHtmlBlock:
        """Return M and f entry by entry if short enough to read; for a recursion, the relations of its links."""
        d = self.equations.dynamics
        if not self.equations.u:
            return EquationHtmlBlock(
                "Dynamics", (), "All motion is prescribed: there are no speeds, and no equations for them."
            )
        if isinstance(d, ArticulatedBodyStructure):
            return self._articulated(d)
        M, f = self.equations.mass_and_forcing.mass_matrix, self.equations.mass_and_forcing.forcing
        speeds = [self.print.expression(s) for s in self.equations.u_dot]
        total = self.count.of(*M, *f)
        size = f"M has {M.rows} × {M.cols} entries; M and f written out have {total:,} operations."
        if max(M.shape) > MAX_MATRIX_DIMENSION:
            entries = [(_matrix_entry_name("M", i, j), M[i, j]) for i in range(M.rows) for j in range(i + 1)]
            entries += [(_matrix_entry_name("f", i), f[i]) for i in range(f.rows)]
            # Zeros, and what is an intermediate of its own, say nothing here.
            named = [(name, entry) for name, entry in entries if not (entry == 0 or entry.is_Symbol)]
            folded, note = self._folded((self.line(*row) for row in named), len(named), "entries")
            return EquationHtmlBlock("Dynamics: M u̇ = f", (), f"{size} {note}".strip(), folded_lines=folded)
        alone = M.rows * M.cols == 1
        symmetric = M.rows == M.cols and M == M.T
        matrix, listed = self._entries(M, "M", alone=alone, symmetric=symmetric)
        vector, forces = self._entries(f, "f", alone=alone, symmetric=False)
        whole = format_inline_formulas(
            [
                self.print.matrix(matrix) + self.print.matrix([[s] for s in speeds]),
                "<mo>=</mo>" + self.print.matrix(vector),
            ]
        )
        block = self._block("Dynamics: M u̇ = f", [*listed, *forces])
        return replace(block, lines=(whole, *block.lines), note=f"{size} {block.note}".strip())

    def _articulated(self, dynamics: ArticulatedBodyStructure) -> EquationHtmlBlock:
        """Return the relations of links for dynamics without a mass matrix."""
        recursion = self.equations.recursion
        links = [link for link in recursion.links[1:] if link.carries_mass_or_load] if recursion else []
        note = f"{len(links)} links, articulated bodies: u̇ follows by one sweep over them; there is no mass matrix."
        return EquationHtmlBlock("Dynamics", (), note if dynamics.joints else "")

    def links(self) -> EquationHtmlBlock:
        """Return angular velocity and velocity of each link's origin, in its own axes, for recursions."""
        recursion = self.equations.recursion
        if recursion is None:
            return EquationHtmlBlock("Links", ())
        numbers = [number for number, link in enumerate(recursion.links) if link.carries_mass_or_load and number > 0]
        links = (self._link(recursion, number) for number in numbers)
        lines, folded, hidden = self._parted(links, len(numbers), "links")
        note = "Index p: of the link before it. Components of vectors are in the frame named below them."
        title = "Links: angular velocity ω and velocity v of the origin, r from the origin before"
        return EquationHtmlBlock(title, lines, f"{note} {hidden}".strip(), folded_lines=folded)

    def _link(self, recursion: LinkRecursion, number: int) -> Markup:
        """Write how a link moves against its parent: ω, v and r, term by term."""
        link = recursion.links[number]
        chain, spins = recursion.list_angular_velocity_terms(number)
        slips = link.velocity or tuple(d.rate for d in link.offset if d.rate is not None)
        omega = [*(["<msub><mi>ω</mi><mi>p</mi></msub>"] if spins else []), *self._products(recursion, chain)]
        moved = "<msub><mi>v</mi><mi>p</mi></msub><mo>+</mo><msub><mi>ω</mi><mi>p</mi></msub><mo>×</mo><mi>r</mi>"
        v = [*([] if link.velocity else [moved]), *self._products(recursion, slips)]
        r = [self._column(recursion, d.frame, d.components) for d in link.offset if any(c != 0 for c in d.components)]
        parts = [f"<mtext>{escape(link.name)} on {escape(recursion.links[link.parent].name)}:</mtext>"]
        for name, terms in (("ω", omega), ("v", v), ("r", r)):
            parts.append(f"<mi>{name}</mi><mo>=</mo>{'<mo>+</mo>'.join(terms) or '<mn>0</mn>'}<mo>,</mo>")
        return format_inline_formulas(parts)

    def _products(self, recursion: LinkRecursion, vectors: Iterable[SpeedLinearVector]) -> list[str]:
        """Return speeds times their columns, and the terms without speeds."""
        terms = []
        for vector in vectors:
            for j, column in vector.columns:
                speed = self.print.expression(self.equations.u[j])
                terms.append(f"{speed}<mspace width='0.2em'/>{self._column(recursion, vector.frame, column)}")
            if any(c != 0 for c in vector.offset):
                terms.append(self._column(recursion, vector.frame, vector.offset))
        return terms

    def _column(self, recursion: LinkRecursion, frame: int, components: Sequence[Any]) -> str:
        """Return a vector in a frame's components as MathML; ⋯ stands for a long one."""
        long = self.count.of(*components) > MAX_INLINE_WIDTH
        entries = [["<mo>⋯</mo>" if long else self.print.expression(c)] for c in components]
        return f"<msub>{self.print.matrix(entries)}<mtext>{escape(recursion.frames[frame].name)}</mtext></msub>"

    def constraints(self) -> EquationHtmlBlock:
        """Return holonomic rows, then velocity rows, each equal to zero."""
        zero = "<mn>0</mn>"
        rows = [(zero, phi) for _, phi in self.equations.holonomic]
        c = self.equations.velocity_constraints
        if c:
            rows += [(zero, row) for row in c.jacobian * sm.Matrix(self.equations.u) + c.offset]
        return self._block("Constraints", rows)

    def auxiliary_state_derivatives(self) -> EquationHtmlBlock:
        """Return z' of the auxiliary states."""
        rows = ((_dotted_symbol(z), e) for z, e in zip(self.equations.z, self.equations.z_dot, strict=True))
        return self._block("Auxiliary states", rows)

    def energies(self) -> EquationHtmlBlock:
        """Return T and V; recursions have no expression of T."""
        energy = self.equations.energy
        by_links = self.equations.recursion is not None
        rows = [("<mi>T</mi>", None if by_links else energy.kinetic), ("<mi>V</mi>", energy.potential)]
        block = self._block("Kinetic and potential energy", [(n, e) for n, e in rows if e is not None])
        return replace(block, note=f"T is summed up over the links. {block.note}".strip()) if by_links else block

    def _intermediate(self, item: Intermediate) -> Iterator[Markup]:
        """Yield the line of an intermediate: an assignment, or a linear system that is solved."""
        if isinstance(item, SymbolAssignment):
            yield self.line(self.print.expression(item.symbol), item.expression)
            return
        yield self.format_solved_unknowns(item)

    def _entries(
        self, matrix: Any, name: str, *, alone: bool, symmetric: bool
    ) -> tuple[list[list[str]], list[tuple[str, Any]]]:
        """Return a matrix with short entries in place and names for others, and the others as (name, expression)."""
        table, listed = [], []
        for i in range(matrix.rows):
            row = []
            for j in range(matrix.cols):
                entry = matrix[i, j]
                if self.count.of(entry) <= (MAX_SCALAR_ENTRY_OPERATIONS if alone else MAX_INLINE_WIDTH):
                    printed = self.print.expression(entry)
                    if estimate_formula_width(printed) <= MAX_MATRIX_ROW_WIDTH // matrix.cols:
                        row.append(printed)
                        continue
                a, b = (min(i, j), max(i, j)) if symmetric else (i, j)
                label = f"<mi>{name}</mi>" if alone else _matrix_entry_name(name, a, None if matrix.cols == 1 else b)
                row.append(label)
                if (a, b) == (i, j):
                    listed.append((label, entry))
            table.append(row)
        return table, listed

    def _block(self, title: str, rows: Iterable[tuple[str, Any]]) -> EquationHtmlBlock:
        """Return ``left = right`` line by line; the first ``MAX_VISIBLE_LINES`` of them are visible."""
        listed = list(rows)
        lines, folded, note = self._parted((self.line(*row) for row in listed), len(listed), "lines")
        return EquationHtmlBlock(title, lines, note, folded_lines=folded)

    def _parted(
        self, lines: Iterable[Markup], total: int, what: str
    ) -> tuple[tuple[Markup, ...], tuple[Markup, ...], str]:
        """Return (visible lines, folded lines, note on what is left out)."""
        made = iter(lines)
        shown = tuple(islice(made, MAX_VISIBLE_LINES))
        return shown, *self._folded(made, total - len(shown), what)

    def _folded(self, lines: Iterable[Markup], total: int, what: str) -> tuple[tuple[Markup, ...], str]:
        """Return as many lines as there is room for, and a note that counts the others."""
        kept = []
        for line in lines:
            if len(line) > self.room:
                break
            self.room -= len(line)
            kept.append(line)
        left = total - len(kept)
        return tuple(kept), f"{left:,} further {what}: mb2fmu equations writes them all." if left > 0 else ""


_CHARACTERS_PER_OPERATION = 20
"""Characters of MathML that an operation takes at least."""


def _matrix_entry_name(name: str, row: int, column: int | None = None) -> str:
    """Return the name of an entry of a matrix, counted from 1."""
    comma = "," if max(row, column or 0) > 8 else ""
    index = f"{row + 1}" if column is None else f"{row + 1}{comma}{column + 1}"
    return f"<msub><mi>{name}</mi><mn>{index}</mn></msub>"


def format_inline_formulas(texts: Iterable[str]) -> Markup:
    """Return formulas side by side with possible line breaks between them; names are escaped in mathml.py.

    Names of one letter are marked: browsers set them in letters that only fonts for mathematics have, pages in italics.
    """
    marked = (_MATHML_LETTER_PATTERN.sub(r'<mi class="letter">\1</mi>', text) for text in texts)
    pieces = (f'<math displaystyle="true"><mrow>{text}</mrow></math>' for text in marked)
    return Markup(" ".join(pieces))  # noqa: S704


def _dotted_symbol(symbol: Any) -> str:
    """Return a symbol with one dot, as MathML."""
    return format_mathml_identifier(str(symbol.name), dots=1)
