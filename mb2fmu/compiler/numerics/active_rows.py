"""Rows that are held or released, as nodes: W z = r over the held ones, z = 0 at the others."""

from __future__ import annotations

from collections.abc import Sequence

from mb2fmu.compiler.numerics.constraint_systems import RegularizedConstraintSystem
from mb2fmu.compiler.program.program import Op
from mb2fmu.compiler.program.program_builder import ProgramBuilder

NodeMatrix = list[list[int]]


class ActiveRowSystem:
    """W z = r over the rows that are held.

    Where rows are redundant (the legs of a table) z is the one of least norm, each entry over the square root of its
    own W.

    Args:
        builder: Takes the nodes.
        W: Shape (k, k), symmetric.
        held: Truth.
        name: What is solved for.
    """

    def __init__(self, builder: ProgramBuilder, W: NodeMatrix, held: Sequence[int], name: str) -> None:
        b, n = builder, len(held)
        zero, one = b.constant(0.0), b.constant(1.0)
        self._builder, self._W, self._held = b, W, held
        if n == 1:
            return
        self._scales = scales = [b.div(one, b.unary(Op.SQRT, W[k][k])) for k in range(n)]
        scaled = [
            [
                one
                if i == j
                else b.select(held[i], b.select(held[j], b.mul(b.mul(scales[i], scales[j]), W[i][j]), zero), zero)
                for j in range(n)
            ]
            for i in range(n)
        ]
        self._system = RegularizedConstraintSystem(b, scaled, [one] * n, name)

    def solve(self, right: Sequence[int]) -> list[int]:
        """Return z for right-hand sides; those of released rows do not count."""
        b, zero = self._builder, self._builder.constant(0.0)
        if len(right) == 1:
            return [b.select(self._held[0], b.div(right[0], self._W[0][0]), zero)]
        both = zip(self._held, self._scales, right, strict=True)
        found = self._system.solve([b.select(held, b.mul(scale, value), zero) for held, scale, value in both])
        # a released row that nothing can move has W = 0, perhaps less by round-off: no scale, and no number
        each = zip(self._held, self._scales, found, strict=True)
        return [b.select(held, b.mul(scale, value), zero) for held, scale, value in each]
