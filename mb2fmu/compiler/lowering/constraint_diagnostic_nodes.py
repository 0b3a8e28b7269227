"""Constraint diagnostics as nodes: residuals of the states, rank and condition of the Jacobian.

Rank and condition come from S = A Aᵀ, the longest row of unit length: in S = L D Lᵀ a pivot d_i is the squared distance
of row i from the span of the rows before it, 0 where it follows from them or vanishes. Rows are not scaled one by one:
where a linkage lies flat it is a single row that vanishes. No pivot is larger than the largest eigenvalue of S, none
smaller than the smallest, so √(largest / smallest) is an estimate, from below, of the condition of A. Where rows are
known to be redundant as many of the smallest pivots, which are round-off, are left out: what remains is of the rows
that do not follow from those before them. Source: Golub and Van Loan, Matrix Computations, 4th ed. 2013, sec. 4.2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import sympy as sm

from mb2fmu.compiler.lowering.sympy_walker import SympyLowering
from mb2fmu.compiler.numerics.constraint_systems import GRAM_REGULARIZATION, form_gram_matrix
from mb2fmu.compiler.program.program import Op
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.mechanics.equations.equations_of_motion import DIAGNOSTIC_SYMBOLS, EquationsOfMotion

_DEPENDENT_ROW_TOLERANCE = 1e-10
"""A squared distance below it, the longest row being 1: the row counts as one that follows from those before it."""

_MIN_LARGEST_PIVOT = 1e-300  # where all rows vanish


def define_constraint_diagnostics(
    walker: SympyLowering, equations: EquationsOfMotion, raw: Mapping[sm.Symbol, sm.Symbol]
) -> None:
    """Define the symbols of ``DIAGNOSTIC_SYMBOLS``; each is computed only if requested.

    Args:
        walker: Takes the definitions.
        equations: Whose constraints they are of.
        raw: Coordinate or speed → symbol of the state itself, where they are its projection.
    """
    c, b = equations.velocity_constraints, walker.builder
    if c is None:
        return
    m, n = c.jacobian.shape
    phi = [row.xreplace(dict(raw)) for _, row in equations.position_rows]
    walker.define([DIAGNOSTIC_SYMBOLS.position_residual], phi, lambda nodes: [_largest_magnitude(b, nodes)])
    speeds = [raw.get(u, u) for u in equations.u]

    def velocity_residual(nodes: Sequence[int]) -> list[int]:
        rows, offset, u = _matrix_rows(nodes, m, n), nodes[m * n : m * n + m], nodes[m * n + m :]
        return [_largest_magnitude(b, [b.add(b.dot(row, u), free) for row, free in zip(rows, offset, strict=True)])]

    walker.define([DIAGNOSTIC_SYMBOLS.velocity_residual], [*c.jacobian, *c.offset, *speeds], velocity_residual)
    walker.define(
        [DIAGNOSTIC_SYMBOLS.rank, DIAGNOSTIC_SYMBOLS.condition],
        c.jacobian,
        lambda nodes: _rank_and_condition(b, _matrix_rows(nodes, m, n), len(equations.redundant_rows)),
    )


def _rank_and_condition(b: ProgramBuilder, A: Sequence[list[int]], redundant: int) -> list[int]:
    """Return the rank of A (rows) by the pivots of its Gram matrix, and its condition without redundant rows."""
    S = form_gram_matrix(b, list(A), list(A))
    longest = b.binary(
        Op.MAX,
        reduce(lambda x, y: b.binary(Op.MAX, x, y), [S[i][i] for i in range(len(S))]),
        b.constant(_MIN_LARGEST_PIVOT),
    )
    pivots = _regularized_pivots(b, [[b.div(entry, longest) for entry in row] for row in S])
    rank = b.sum([b.binary(Op.LT, b.constant(_DEPENDENT_ROW_TOLERANCE), pivot) for pivot in pivots])
    for _ in range(redundant):
        pivots = _drop_smallest(b, pivots)
    ratio = b.div(
        reduce(lambda x, y: b.binary(Op.MAX, x, y), pivots), reduce(lambda x, y: b.binary(Op.MIN, x, y), pivots)
    )
    return [rank, b.unary(Op.SQRT, ratio)]


def _regularized_pivots(b: ProgramBuilder, S: list[list[int]]) -> list[int]:
    """Return D of (S + ε) = L D Lᵀ, none smaller than ε."""
    n, epsilon = len(S), b.constant(GRAM_REGULARIZATION)
    left = [list(row) for row in S]
    pivots = []
    for k in range(n):
        pivot = b.binary(Op.MAX, b.add(left[k][k], epsilon), epsilon)
        pivots.append(pivot)
        for i in range(k + 1, n):
            factor = b.div(left[i][k], pivot)
            for j in range(k + 1, i + 1):
                left[i][j] = b.sub(left[i][j], b.mul(factor, left[j][k]))
    return pivots


def _drop_smallest(b: ProgramBuilder, pivots: Sequence[int]) -> list[int]:
    """Return all pivots but the smallest one, by chains of minimum and maximum (no branch)."""
    smallest, others = pivots[0], []
    for pivot in pivots[1:]:
        others.append(b.binary(Op.MAX, smallest, pivot))
        smallest = b.binary(Op.MIN, smallest, pivot)
    return others


def _largest_magnitude(b: ProgramBuilder, nodes: Sequence[int]) -> int:
    """Return the node of the largest absolute value."""
    return reduce(lambda x, y: b.binary(Op.MAX, x, y), [b.unary(Op.ABS, node) for node in nodes])


def _matrix_rows(nodes: Sequence[int], rows: int, columns: int) -> list[list[int]]:
    """Return nodes as a matrix, row by row."""
    return [list(nodes[i * columns : i * columns + columns]) for i in range(rows)]
