"""Equations of motion for people: every part by its name, long entries listed apart, very long ones counted only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy as sm
from markupsafe import Markup, escape

from mb2fmu.equations.motion import Assignment, EquationsOfMotion, Intermediate
from mb2fmu.equations.recursion import LinearVector, Recursion, RecursiveDynamics
from mb2fmu.report.mathml import MathML, identifier

# A row of a matrix holds entries of INLINE operations on the average, longer ones stand below it; what has more than
# LISTED operations is counted only; sums over WHOLE operations may be broken between their terms. Matrices over
# DIMENSION rows and lists over LENGTH lines are not for reading either.
INLINE = 36
LISTED = 150
WHOLE = 16
DIMENSION = 8
LENGTH = 90


@dataclass(frozen=True, slots=True)
class EquationBlock:
    """One paragraph of equations.

    Attributes:
        title: What they say.
        lines: One displayed formula each.
        note: What has been left out, and how large it is; may be empty.
        dense: True: many short lines, which may stand in columns.
    """

    title: str
    lines: tuple[Markup, ...]
    note: str = ""
    dense: bool = False


class Operations:
    """Counts operations of expressions as written out, each subexpression looked at once however often it occurs."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}

    def of(self, *expressions: Any) -> int:
        """Additions, multiplications, powers and function calls in all ``expressions`` together."""
        return sum(self._one(sm.sympify(e)) for e in expressions)

    def _one(self, expression: Any) -> int:
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


def equation_blocks(equations: EquationsOfMotion) -> tuple[EquationBlock, ...]:
    """All that the equations of motion consist of: what matters first, what it is made of last."""
    writer = _Writer(equations)
    blocks = [
        writer.kinematics(),
        writer.constraints(),
        writer.dynamics(),
        writer.links(),
        writer.auxiliary(),
        writer.energies(),
        writer.calculated_parameters(),
        writer.intermediates(),
    ]
    return tuple(block for block in blocks if block.lines or block.note)


class _Writer:
    def __init__(self, equations: EquationsOfMotion) -> None:
        self.equations = equations
        self.count = Operations()
        pairs = zip(equations.u, equations.u_dot, strict=True)
        self.print = MathML({derivative: _derivative(speed) for speed, derivative in pairs})

    def kinematics(self) -> EquationBlock:
        """q' of q and u."""
        k = self.equations.kinematics
        u = sm.Matrix(self.equations.u)
        lines, note = self._rows(
            (_derivative(q), row) for q, row in zip(self.equations.q, k.matrix * u + k.offset, strict=True)
        )
        return EquationBlock("Kinematics", lines, note)

    def calculated_parameters(self) -> EquationBlock:
        """Parameters that follow from others."""
        rows = ((self.print.expression(a.symbol), a.expression) for a in self.equations.calculated_parameters)
        return EquationBlock("Calculated parameters", *self._rows(rows))

    def intermediates(self) -> EquationBlock:
        """Assignments by their expressions, linear solves by what is solved for."""
        items = self.equations.intermediates
        lines = [line for item in items[:LENGTH] for line in self._intermediate(item)]
        hidden = len(items) - len(items[:LENGTH])
        note = f"{hidden} further intermediates are not shown." if hidden else ""
        return EquationBlock("Intermediates, in order of evaluation", tuple(lines), note, dense=True)

    def dynamics(self) -> EquationBlock:
        """M and f entry by entry where they are short enough to read; the relations of its links for a recursion."""
        d = self.equations.dynamics
        if isinstance(d, RecursiveDynamics):
            return self._articulated(d)
        M, f = self.equations.mass_and_forcing.mass_matrix, self.equations.mass_and_forcing.forcing
        speeds = [self.print.expression(s) for s in self.equations.u_dot]
        entries = M.rows * M.cols
        total = self.count.of(*M, *f)
        size = f"M has {M.rows} × {M.cols} entries; M and f written out have {total:,} operations."
        if max(M.shape) > DIMENSION:
            return EquationBlock("Dynamics: M u̇ = f", (), f"{size} Too many to be read here.")
        alone = entries == 1
        symmetric = M.rows == M.cols and M == M.T
        matrix, listed = self._entries(M, "M", alone=alone, symmetric=symmetric)
        vector, forces = self._entries(f, "f", alone=alone, symmetric=False)
        whole = _pieces(
            [
                self.print.matrix(matrix) + self.print.matrix([[s] for s in speeds]),
                "<mo>=</mo>" + self.print.matrix(vector),
            ]
        )
        lines, note = self._rows([*listed, *forces])
        return EquationBlock("Dynamics: M u̇ = f", (whole, *lines), f"{size} {note}".strip())

    def _articulated(self, dynamics: RecursiveDynamics) -> EquationBlock:
        """Who has no mass matrix says how the links follow one another."""
        recursion = self.equations.recursion
        links = [link for link in recursion.links[1:] if link.massive] if recursion else []
        note = f"{len(links)} links, articulated bodies: u̇ follows by one sweep over them; there is no mass matrix."
        return EquationBlock("Dynamics", (), note if dynamics.joints else "")

    def links(self) -> EquationBlock:
        """Angular velocity and velocity of each link's origin, in its own axes, where a recursion evaluates them."""
        recursion = self.equations.recursion
        if recursion is None:
            return EquationBlock("Links", ())
        numbers = [number for number, link in enumerate(recursion.links) if link.massive and number > 0]
        lines = tuple(self._link(recursion, number) for number in numbers[:LENGTH])
        hidden = len(numbers) - len(lines)
        note = "Index p: of the link before it. Components of vectors are in the frame named below them."
        title = "Links: angular velocity ω and velocity v of the origin, r from the origin before"
        return EquationBlock(title, lines, f"{note} {hidden} further links are not shown." if hidden else note)

    def _link(self, recursion: Recursion, number: int) -> Markup:
        link = recursion.links[number]
        chain, spins = recursion.chain(number)
        slips = link.velocity or tuple(d.rate for d in link.offset if d.rate is not None)
        omega = [*(["<msub><mi>ω</mi><mi>p</mi></msub>"] if spins else []), *self._products(recursion, chain)]
        moved = "<msub><mi>v</mi><mi>p</mi></msub><mo>+</mo><msub><mi>ω</mi><mi>p</mi></msub><mo>×</mo><mi>r</mi>"
        v = [*([] if link.velocity else [moved]), *self._products(recursion, slips)]
        r = [self._column(recursion, d.frame, d.components) for d in link.offset if any(c != 0 for c in d.components)]
        pieces = [f"<mtext>{escape(link.name)} on {escape(recursion.links[link.parent].name)}:</mtext>"]
        for name, terms in (("ω", omega), ("v", v), ("r", r)):
            pieces.append(f"<mi>{name}</mi><mo>=</mo>{'<mo>+</mo>'.join(terms) or '<mn>0</mn>'}<mo>,</mo>")
        return _pieces(pieces)

    def _products(self, recursion: Recursion, vectors: Iterable[LinearVector]) -> list[str]:
        """Speeds times their columns, and what is there without them."""
        terms = []
        for vector in vectors:
            for j, column in vector.columns:
                speed = self.print.expression(self.equations.u[j])
                terms.append(f"{speed}<mspace width='0.2em'/>{self._column(recursion, vector.frame, column)}")
            if any(c != 0 for c in vector.offset):
                terms.append(self._column(recursion, vector.frame, vector.offset))
        return terms

    def _column(self, recursion: Recursion, frame: int, components: Sequence[Any]) -> str:
        long = self.count.of(*components) > INLINE
        entries = [["<mo>⋯</mo>" if long else self.print.expression(c)] for c in components]
        return f"<msub>{self.print.matrix(entries)}<mtext>{escape(recursion.frames[frame].name)}</mtext></msub>"

    def constraints(self) -> EquationBlock:
        """Holonomic rows, then velocity rows, each equal to zero."""
        zero = "<mn>0</mn>"
        rows = [(zero, phi) for _, phi in self.equations.holonomic]
        c = self.equations.velocity_constraints
        if c:
            rows += [(zero, row) for row in c.jacobian * sm.Matrix(self.equations.u) + c.offset]
        return EquationBlock("Constraints", *self._rows(rows))

    def auxiliary(self) -> EquationBlock:
        """z' of the auxiliary states."""
        rows = ((_derivative(z), e) for z, e in zip(self.equations.z, self.equations.z_dot, strict=True))
        return EquationBlock("Auxiliary states", *self._rows(rows))

    def energies(self) -> EquationBlock:
        """T and V; by a recursion T has no expression of its own."""
        energy = self.equations.energy
        by_links = self.equations.recursion is not None
        rows = [("<mi>T</mi>", None if by_links else energy.kinetic), ("<mi>V</mi>", energy.potential)]
        lines, note = self._rows((n, e) for n, e in rows if e is not None)
        note = f"T is summed up over the links. {note}".strip() if by_links else note
        return EquationBlock("Kinetic and potential energy", lines, note)

    def _intermediate(self, item: Intermediate) -> Iterator[Markup]:
        if isinstance(item, Assignment):
            yield self._line(self.print.expression(item.symbol), item.expression)
            return
        unknowns = [f"{self.print.expression(s)}<mo>,</mo>" for s in item.unknowns[:LENGTH]]
        size = f"<mtext>from {item.matrix.rows} linear equations: {escape(item.name)}</mtext>"
        yield _pieces([*unknowns, size])

    def _entries(
        self, matrix: Any, name: str, *, alone: bool, symmetric: bool
    ) -> tuple[list[list[str]], list[tuple[str, Any]]]:
        """The matrix with short entries in place and names for the others, and the others as (name, expression)."""
        table, listed = [], []
        for i in range(matrix.rows):
            row = []
            for j in range(matrix.cols):
                entry = matrix[i, j]
                if self.count.of(entry) <= (WHOLE if alone else INLINE // matrix.cols):
                    row.append(self.print.expression(entry))
                    continue
                a, b = (min(i, j), max(i, j)) if symmetric else (i, j)
                index = f"{a + 1}" if matrix.cols == 1 else f"{a + 1}{b + 1}"
                label = f"<mi>{name}</mi>" if alone else f"<msub><mi>{name}</mi><mn>{index}</mn></msub>"
                row.append(label)
                if (a, b) == (i, j):
                    listed.append((label, entry))
            table.append(row)
        return table, listed

    def _rows(self, rows: Iterable[tuple[str, Any]]) -> tuple[tuple[Markup, ...], str]:
        listed = list(rows)
        lines = tuple(self._line(left, right) for left, right in listed[:LENGTH])
        hidden = len(listed) - len(lines)
        return lines, f"{hidden} further lines are not shown." if hidden else ""

    def _line(self, left: str, right: Any) -> Markup:
        """``left = right``; a long sum in pieces, between which a narrow page or screen breaks the line."""
        operations = self.count.of(right)
        if operations > LISTED:
            return _pieces([f"{left}<mo>=</mo><mtext>an expression of {operations:,} operations</mtext>"])
        if operations <= WHOLE or not right.is_Add:
            return _pieces([f"{left}<mo>=</mo>{self.print.expression(right)}"])
        return _pieces([f"{left}<mo>=</mo>", *self.print.terms(right)])


def _pieces(texts: Iterable[str]) -> Markup:
    """Formulas side by side, between which the line may be broken. Names in them went through escape in mathml.py."""
    pieces = (f'<math displaystyle="true"><mrow>{text}</mrow></math>' for text in texts)
    return Markup(" ".join(pieces))  # noqa: S704


def _derivative(symbol: Any) -> str:
    return identifier(str(symbol.name), dots=1)
