"""Dependent coordinates as nodes, by Newton's method from their last values.

phi(q_independent, q_dependent, t, p) = 0 has a solution near the last one as long as the columns of the dependent
coordinates in the Jacobian G span what all columns span: that is the chart. How well they do is seen from
S = D Dᵀ, D the dependent columns of G with rows of unit length (over all columns): its pivots in S = L D Lᵀ are squared
distances, at most 1, of one row from those before it. Where one falls below :data:`MIN_SQUARED_PIVOT` the chart is
left, and no solution is given. Source: Wehage and Haug, Journal of Mechanical Design 104 (1982) 247-255.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.compiler.lowering.sympy_walker import SympyLowering
from mb2fmu.compiler.numerics.constraint_systems import compute_row_scales, form_gram_matrix, scale_rows
from mb2fmu.compiler.numerics.linear_solve import LinearSystem
from mb2fmu.compiler.program.program import Layout, Op, Program
from mb2fmu.compiler.program.program_builder import ProgramBuilder

MIN_SQUARED_PIVOT = 1e-4
"""Smallest pivot, a squared distance: dependent coordinates then move about 100 times as fast as independent ones."""


class DependentCoordinateSolver:
    """The solution of phi = 0.

    Args:
        builder: Takes the nodes.
        q: All coordinates.
        dependent: Those that are solved for, as many as rows.
        phi: One expression per row.
        lengths: Typical lengths of the rows of the Jacobian; (): all 1.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        q: Sequence[sm.Symbol],
        dependent: Sequence[sm.Symbol],
        phi: Sequence[sm.Expr],
        lengths: Sequence[float] = (),
    ) -> None:
        self._lengths = lengths
        self._builder, self._q, self._dependent, self._phi = builder, tuple(q), tuple(dependent), tuple(phi)
        free = set().union(*(row.free_symbols for row in phi)) - set(dependent)
        self.needs: tuple[sm.Symbol, ...] = tuple(sorted(free, key=lambda s: s.name))
        names = ", ".join(map(str, dependent))
        self._name = f"the dependent coordinates {names}: the motion leaves what the independent ones describe"

    def solve(self, nodes: Sequence[int], last: Sequence[int]) -> list[int]:
        """Return the dependent coordinates.

        Args:
            nodes: Of :attr:`needs`.
            last: Where they were last.
        """
        return self._builder.newton(self._body(), nodes, last, self._name)

    def _body(self) -> Program:
        """Build the body of Newton's method: scaled residuals of the loops, one step, and the Jacobian."""
        n, q = len(self._dependent), self._q
        b = ProgramBuilder(Layout(states=tuple(map(str, self._dependent)), parameters=tuple(map(str, self.needs))))
        symbols = {symbol: b.state(i) for i, symbol in enumerate(self._dependent)}
        symbols |= {symbol: b.parameter(i) for i, symbol in enumerate(self.needs)}
        walker = SympyLowering(b, symbols)
        phi = walker.lower(self._phi)
        slopes = [[row.diff(s) if s in row.free_symbols else sm.S.Zero for s in q] for row in self._phi]
        entries = walker.lower([slope for row in slopes for slope in row])
        whole = [list(entries[i * len(q) : (i + 1) * len(q)]) for i in range(n)]
        scales = compute_row_scales(b, whole, (), self._lengths)
        columns = [q.index(symbol) for symbol in self._dependent]
        D = scale_rows(b, scales, [[row[j] for j in columns] for row in whole])
        inside = self._inside(b, D)
        residual = [b.mul(inside, b.mul(scale, value)) for scale, value in zip(scales, phi, strict=True)]
        step = LinearSystem(b, D, self._name).solve([b.neg(value) for value in residual])
        labels = [f"y{i}" for i in range(n)]
        b.entry("residual", labels, residual)
        b.entry("step", labels, step)
        b.entry("jacobian", [f"{a} {c}" for a in labels for c in labels], [e for row in D for e in row])
        return b.build()

    def _inside(self, b: ProgramBuilder, D: list[list[int]]) -> int:
        """Return 1 inside the chart, NaN beyond its edge."""
        left = form_gram_matrix(b, D, D)
        edge, one = b.constant(MIN_SQUARED_PIVOT), b.constant(1.0)
        inside = one
        for k in range(len(left)):
            pivot = left[k][k]
            inside = b.select(b.binary(Op.LT, pivot, edge), b.constant(float("nan")), inside)
            safe = b.binary(Op.MAX, pivot, edge)
            for i in range(k + 1, len(left)):
                if b.is_zero(left[i][k]):
                    continue
                factor = b.div(left[i][k], safe)
                for j in range(k + 1, i + 1):
                    left[i][j] = left[j][i] = b.sub(left[i][j], b.mul(factor, left[j][k]))
        return inside
