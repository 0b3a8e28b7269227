"""Eliminate speeds that constraints determine with constant factors, before anything is solved.

Where a row of A u + b = 0 has a number a as its entry for u_j (the velocity of a contact point in a rolling condition,
the coordinate of a point in a closing condition), u_j = −(the rest of the row) / a holds wherever the mechanism is:
this pivot cannot vanish, so neither rank nor motion is decided by it. The row and the speed are gone from the system
that is left, u = S w + s, with M_w = Sᵀ M S; forces along the rows come back by substitution.

Source: Amirouche, Fundamentals of Multibody Dynamics, 2006, ch. 8 (elimination of dependent speeds); the choice of
pivots is Markowitz's, Management Science 3 (1957) 255-269.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mb2fmu.compiler.program.program_builder import ProgramBuilder

NodeMatrix = list[list[int]]

_ROUND_OFF_RATIO = 1e-6
"""Part of the largest number among the entries: what is smaller may be round-off that other pivots have left."""


@dataclass(frozen=True, slots=True)
class _SpeedEliminationPivot:
    """One eliminated row and speed.

    Attributes:
        row, column: Which.
        entries: The row when it was taken; zero at the speeds that had been taken before.
        factors: (other row, what of this row was taken from it).
    """

    row: int
    column: int
    entries: list[int]
    factors: list[tuple[int, int]]


class SpeedElimination:
    """Eliminates as many speeds as there are constant pivots.

    Args:
        builder: Takes the nodes.
        A: Shape (m, n), nodes.
        none: Take none.

    Attributes:
        rows: Numbers of the rows that are left.
        columns: Numbers of the speeds that are left.
        A: The rows that are left, over the speeds that are left.
    """

    def __init__(self, builder: ProgramBuilder, A: NodeMatrix, *, none: bool = False) -> None:
        self._b = builder
        self._n = len(A[0]) if A else 0
        self.rows, self.columns = list(range(len(A))), list(range(self._n))
        work = [list(row) for row in A]
        numbers = [abs(value) for row in A for e in row if (value := builder.value(e)) is not None]
        self._least = _ROUND_OFF_RATIO * max(numbers, default=0.0)
        self._pivots: list[_SpeedEliminationPivot] = []
        while not none and (found := self._constant_pivot(work)) is not None:
            self._take(work, *found)
        self.A = [[work[i][j] for j in self.columns] for i in self.rows]
        self._spans = self._span()

    def _constant_pivot(self, work: NodeMatrix) -> tuple[int, int] | None:
        """Return the constant entry whose elimination fills least; the first of equal ones."""
        b = self._b
        filled = {i: [j for j in self.columns if not b.is_zero(work[i][j])] for i in self.rows}
        holders = {j: sum(j in filled[i] for i in self.rows) for j in self.columns}
        constant = [
            ((len(filled[i]) - 1) * (holders[j] - 1), i, j)
            for i in self.rows
            for j in filled[i]
            if abs(b.value(work[i][j]) or 0.0) > self._least
        ]
        return min(constant)[1:] if constant else None

    def _take(self, work: NodeMatrix, row: int, column: int) -> None:
        """Eliminate a column from all other rows by the pivot at (row, column), and record the factors."""
        b, pivot = self._b, work[row]
        self.rows.remove(row)
        self.columns.remove(column)
        factors = []
        for i in self.rows:
            if b.is_zero(work[i][column]):
                continue
            factor = b.div(work[i][column], pivot[column])
            factors.append((i, factor))
            for j in self.columns:
                work[i][j] = b.sum([work[i][j]], [b.mul(factor, pivot[j])])
            work[i][column] = b.constant(0.0)
        self._pivots.append(_SpeedEliminationPivot(row, column, list(pivot), factors))

    def _span(self) -> NodeMatrix:
        """Return S without the identity rows of the remaining speeds: row by row of the pivots."""
        b = self._b
        spans: dict[int, list[int]] = {}
        for pivot in reversed(self._pivots):
            later = [(pivot.entries[j], spans[j]) for j in spans]
            spans[pivot.column] = [
                b.neg(
                    b.div(
                        b.sum([pivot.entries[j], *(b.mul(e, span[k]) for e, span in later)]),
                        pivot.entries[pivot.column],
                    )
                )
                for k, j in enumerate(self.columns)
            ]
        return [spans[pivot.column] for pivot in self._pivots]

    # --- right-hand sides, one number per row ------------------------------------------------------------------------

    def remaining_right_side(self, right: Sequence[int]) -> list[int]:
        """Return A's right-hand side after the elimination, for the remaining rows."""
        reduced = self._reduced(right)
        return [reduced[i] for i in self.rows]

    def _reduced(self, right: Sequence[int]) -> list[int]:
        """Apply the constant row operations of all pivots, in order, to a right side."""
        b, reduced = self._b, list(right)
        for pivot in self._pivots:
            for i, factor in pivot.factors:
                reduced[i] = b.sub(reduced[i], b.mul(factor, reduced[pivot.row]))
        return reduced

    def restore_all_speeds(self, w: Sequence[int], right: Sequence[int]) -> list[int]:
        """Return all speeds, or their rates, with A u + right = 0 from the remaining ones."""
        b = self._b
        reduced = self._reduced(right)
        u = [b.constant(0.0)] * self._n
        for j, node in zip(self.columns, w, strict=True):
            u[j] = node
        for pivot in reversed(self._pivots):
            others = [b.mul(e, u[j]) for j, e in enumerate(pivot.entries) if j != pivot.column]
            u[pivot.column] = b.neg(b.div(b.sum([*others, reduced[pivot.row]]), pivot.entries[pivot.column]))
        return u

    # --- dynamics ----------------------------------------------------------------------------------------------------

    def mass_matrix(self, M: NodeMatrix) -> NodeMatrix:
        """Return Sᵀ M S; only the lower triangles count."""
        b, taken = self._b, [pivot.column for pivot in self._pivots]
        zero = b.constant(0.0)

        def entry(i: int, j: int) -> int:
            return M[max(i, j)][min(i, j)]

        n = len(self.columns)
        rows = [[zero] * n for _ in range(n)]
        # (M_rest,taken + its like)·S: S's other rows are those of the identity
        moved = [
            [
                b.sum([entry(i, j), *(b.mul(entry(i, k), span[c]) for k, span in zip(taken, self._spans, strict=True))])
                for c, j in enumerate(self.columns)
            ]
            for i in taken
        ]
        for r, i in enumerate(self.columns):
            for c in range(r + 1):
                j = self.columns[c]
                own = [b.mul(entry(i, k), span[c]) for k, span in zip(taken, self._spans, strict=True)]
                others = [b.mul(span[r], row[c]) for span, row in zip(self._spans, moved, strict=True)]
                rows[r][c] = b.sum([entry(i, j), *own, *others])
        return rows

    def forces(self, M: NodeMatrix, forces: Sequence[int], gamma: Sequence[int]) -> list[int]:
        """Return Sᵀ (f − M s), with s = u' for zero accelerations of the remaining speeds."""
        b = self._b
        s = self.restore_all_speeds([b.constant(0.0)] * len(self.columns), gamma)
        rest = [
            b.sum([force], [b.mul(M[max(i, j)][min(i, j)], s[j]) for j in range(self._n)])
            for i, force in enumerate(forces)
        ]
        taken = [rest[pivot.column] for pivot in self._pivots]
        return [
            b.sum([rest[j], *(b.mul(span[c], force) for span, force in zip(self._spans, taken, strict=True))])
            for c, j in enumerate(self.columns)
        ]

    def multipliers(self, found: Sequence[int], left_over: Sequence[int]) -> list[int]:
        """Return λ of all rows with Aᵀ λ = f − M u'.

        Args:
            found: λ of the rows that are left.
            left_over: f − M u', one per speed.
        """
        b = self._b
        known = dict(zip(self.rows, found, strict=True))
        along: dict[int, int] = {}  # of the rows as they were taken
        for pivot in self._pivots:
            column = pivot.column
            earlier = [b.mul(other.entries[column], along[other.row]) for other in self._pivots if other.row in along]
            along[pivot.row] = b.div(b.sum([left_over[column]], earlier), pivot.entries[column])
        for pivot in reversed(self._pivots):
            taken = [b.mul(factor, known[i]) for i, factor in pivot.factors]
            known[pivot.row] = b.sum([along[pivot.row]], taken)
        return [known[i] for i in range(len(known))]
