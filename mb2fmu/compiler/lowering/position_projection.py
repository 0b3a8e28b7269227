"""PositionProjection: project coordinates onto the holonomic constraints, as nodes.

Coordinates move along the rows of G at x itself, q = x − G(x)ᵀ λ, with λ from φ(q) = 0 by Newton's method that starts
at λ = 0. Its matrix is that of x all along, G(x) G(x)ᵀ: x is as near to the constraints as an integrator errs, and each
step leaves that part of the last one. So λ lies in the space of the eigenvalues of G(x) G(x)ᵀ that count
(``numerics.regularized_constraint_systems``), wherever x is. P(x) depends on x alone. For speeds see
``numerics.multipliers``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache

import sympy as sm

from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.numerics.regularized_constraint_systems import (
    RegularizedConstraintSystem,
    compute_inverse_row_lengths,
    form_gram_matrix,
    scale_constraint_rows,
)
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout, ScalarProgram
from mb2fmu.model.expression_traversal import partial_derivative, rename_symbols
from mb2fmu.model.supported_functions import NoEvent

_RESIDUAL_TOLERANCE = 1e-9
"""Of what the terms of a row are at most: more of it left over is open."""
_COORDINATE_ROUND_OFF = 1e-12
"""In terms of coordinates; as much may be left over in any case."""


class PositionProjection:
    """Coordinates onto φ(q, t, p) = 0.

    Args:
        builder: Takes the nodes.
        q: The coordinates as they stand in ``phi``.
        phi: One expression per row.
        rows: Names of the rows.
        name: What is solved for.
        free: Those of ``q`` that may move, from far away too; None: all, from near by.
        redundant: Numbers of rows that follow from the others. From far away they are rows like all others on the way,
            and known where it ends.
        lengths: Typical lengths of the rows of the Jacobian; (): all 1.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        q: Sequence[sm.Symbol],
        phi: Sequence[sm.Expr],
        rows: Sequence[str],
        name: str,
        free: Collection[sm.Symbol] | None = None,
        redundant: Collection[int] = (),
        lengths: Sequence[float] = (),
    ) -> None:
        self._builder = builder
        self._redundant, self._lengths = redundant, lengths
        self._q = tuple(q)
        self._phi = tuple(phi)
        self._rows = tuple(rows)
        self._far = free is not None
        moving = set(q if free is None else free)
        self._jacobian = [
            [_differentiate(row, symbol) if symbol in moving else sm.S.Zero for symbol in q] for row in phi
        ]
        free = set().union(*(row.free_symbols for row in phi)) - set(q)
        self._others: tuple[sm.Symbol, ...] = tuple(sorted(free, key=lambda s: s.name))
        self._name = name

    def position_projection_expressions(self, x: Sequence[sm.Symbol]) -> list[sm.Basic]:
        """Return expressions that :meth:`project` takes lowered.

        Args:
            x: Symbols of the coordinates that are projected.
        """
        at_x = dict(zip(self._q, x, strict=True))
        sizes = [compute_magnitude_sum_bound(row) for row in self._phi]
        entries = [e for row in self._jacobian for e in row]
        return [*x, *self._others, *rename_symbols((*entries, *sizes), at_x)]

    def project(self, nodes: Sequence[int]) -> list[int]:
        """Return the projected coordinates."""
        b, n, m = self._builder, len(self._q), len(self._phi)
        first = n + len(self._others)
        x, others, entries, sizes = nodes[:n], nodes[n:first], nodes[first : first + m * n], nodes[first + m * n :]
        G = [list(entries[i * n : i * n + n]) for i in range(m)]
        scales = compute_inverse_row_lengths(b, G, self._redundant, self._lengths)
        D = scale_constraint_rows(b, scales, G)
        filled = [(i, j) for i in range(m) for j in range(n) if not b.is_zero(D[i][j])]
        theta = [*x, *scales, *others, *(D[i][j] for i, j in filled)]
        S, held = form_gram_matrix(b, D, D), []
        if not self._far:
            held = [(i, j) for i in range(m) for j in range(i + 1) if not b.is_zero(S[i][j])]
            theta += [S[i][j] for i, j in held]
        theta += self._closing(scales, sizes)
        multipliers = b.newton(self._body(filled, held), theta, [b.constant(0.0)] * m, self._name, self._rows)
        zero = b.constant(0.0)
        return [
            b.sum([x[j]], [b.mul(D[i][j] if (i, j) in filled else zero, multipliers[i]) for i in range(m)])
            for j in range(n)
        ]

    def _closing(self, scales: Sequence[int], sizes: Sequence[int]) -> list[int]:
        """Return the allowed residual of each row (:class:`EquationSolveBlock`): a fraction of its largest terms."""
        b = self._builder
        whole = [b.mul(scale, size) for scale, size in zip(scales, sizes, strict=True)]
        return [
            *scales,
            *(b.add(b.mul(b.constant(_RESIDUAL_TOLERANCE), size), b.constant(_COORDINATE_ROUND_OFF)) for size in whole),
        ]

    def _body(self, filled: Sequence[tuple[int, int]], held: Sequence[tuple[int, int]]) -> ScalarProgram:
        """Return F = s φ(x − Dᵀ y) in terms of y.

        Args:
            filled: Places of D that are given.
            held: Places of D Dᵀ that are.
        """
        n, m, k = len(self._q), len(self._phi), len(self._others)
        names = [*(f"x {s}" for s in self._q), *(f"scale {i}" for i in range(m)), *map(str, self._others)]
        names += [f"D[{i},{j}]" for i, j in filled] + [f"S[{i},{j}]" for i, j in held]
        names += [f"{kind} {row}" for kind in ("unit", "open") for row in self._rows]
        b = ProgramBuilder(ProgramVariableLayout(states=tuple(f"y{i}" for i in range(m)), parameters=tuple(names)))
        y, zero = [b.state(i) for i in range(m)], b.constant(0.0)
        theta = [b.parameter(i) for i in range(len(names))]
        x, scales, others, rest = theta[:n], theta[n : n + m], theta[n + m : n + m + k], theta[n + m + k : -2 * m]
        D = [[zero] * n for _ in range(m)]
        for (i, j), node in zip(filled, rest, strict=False):
            D[i][j] = node
        q = [b.sum([x[j]], [b.mul(D[i][j], y[i]) for i in range(m)]) for j in range(n)]
        symbols = dict(zip((*self._q, *self._others), (*q, *others), strict=True))
        walker = SympyLowering(b, symbols)
        phi = walker.lower(self._phi)
        entries = walker.lower([e for row in self._jacobian for e in row])
        G = scale_constraint_rows(b, scales, [list(entries[i * n : i * n + n]) for i in range(m)])
        residual = [b.mul(scale, value) for scale, value in zip(scales, phi, strict=True)]
        one = b.constant(1.0)
        slopes = form_gram_matrix(b, G, D)
        if self._far:
            # The slopes themselves, which change on the way; by least squares, since they are not symmetric.
            columns = [list(column) for column in zip(*slopes, strict=True)]
            right = [b.dot(column, residual) for column in columns]
            step = RegularizedConstraintSystem(b, form_gram_matrix(b, columns, columns), [one] * m, self._name).solve(
                right
            )
            system = RegularizedConstraintSystem(b, form_gram_matrix(b, G, G), [one] * m, self._name, self._redundant)
        else:
            S = [[zero] * m for _ in range(m)]
            for (i, j), node in zip(held, rest[len(filled) :], strict=True):
                S[i][j] = S[j][i] = node
            system = RegularizedConstraintSystem(b, S, [one] * m, self._name, self._redundant)
            step = system.solve(residual)
        slopes = [
            [b.add(e, added) for e, added in zip(*rows, strict=True)]
            for rows in zip(slopes, system.regularizing_matrix(), strict=True)
        ]
        labels = [f"y{i}" for i in range(m)]
        b.entry("residual", labels, residual)
        b.entry("step", labels, step)
        if self._redundant and not self._far:
            b.entry("turned", labels, system.follow_eigenspace_rotation(y))
        b.entry("jacobian", [f"{a} {c}" for a in labels for c in labels], [b.neg(e) for row in slopes for e in row])
        b.entry("regularization", labels, [b.neg(e) for e in system.regularization()])
        return b.build()


@lru_cache(1024)  # the start values are solved for on the rows on which the states are held
def _differentiate(row: sm.Expr, symbol: sm.Symbol) -> sm.Expr:
    """Return the partial derivative of a row."""
    return partial_derivative(row, symbol)


def compute_magnitude_sum_bound(expression: sm.Expr) -> sm.Expr:
    """Return an upper bound of the sum of the magnitudes of all terms; sin and cos count as 1.

    It is what round-off in the expression is measured by, and does not vanish where the terms cancel each other.
    """
    if isinstance(expression, (sm.sin, sm.cos)):
        return sm.S.One
    if isinstance(expression, (sm.Add, sm.Mul)):
        return expression.func(*map(compute_magnitude_sum_bound, expression.args))
    if isinstance(expression, sm.Pow) and expression.exp.is_Integer and expression.exp.is_positive:
        return compute_magnitude_sum_bound(expression.base) ** expression.exp
    size = sm.Abs(expression)
    return NoEvent(size) if size.has(sm.Abs) else size
