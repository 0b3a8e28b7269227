"""Motion under velocity constraints as nodes: accelerations with their multipliers, and speeds put on the constraints.

**Accelerations**. With weights ρ > 0 and M̂ = M + Aᵀ ρ A, which is regular wherever the motion that the constraints
leave free moves mass, massless links or not,

    M̂ u' + Aᵀ μ = f,   A u' + γ = 0,   λ = μ − ρ γ  (Bayo and Ledesma, Nonlinear Dynamics 9 (1996) 113-130).

**Speeds**. Of all with A u + b = 0 those that are nearest to v in kinetic energy, as an impulse of the constraints
would leave them: M̂ (u − v) + Aᵀ μ = 0. It is the same system, factored once for both.

Speeds that a row gives with a constant factor are taken out first (``speed_elimination``), where that is cheaper; what
v is for them does not matter then. M̂ is that of what is left; it is factored with A (``saddle_point_solve``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mb2fmu.compiler.numerics.linear_solve import count_elimination_products
from mb2fmu.compiler.numerics.regularized_constraint_systems import (
    NodeMatrix,
    RegularizedConstraintSystem,
    compute_row_length_regularization,
    form_gram_matrix,
    scale_constraint_rows,
)
from mb2fmu.compiler.numerics.saddle_point_solve import SaddlePointSystem
from mb2fmu.compiler.numerics.speed_elimination import SpeedElimination
from mb2fmu.compiler.program.program_builder import ProgramBuilder

_VANISHING_ROW_RATIO = 1e-12  # part of its typical squared length that a row has which gets no weight
_MIN_WEIGHT = 1e-30  # added to a weight before it divides: its row may vanish
_MIN_MASS_RATIO = 1e-6  # part of the mean mass that every coordinate counts for in the weights, if it moves none


class MultiplierSystem:
    """M u' + Aᵀ λ = f, A u' + γ = 0, factored once for any number of right-hand sides.

    Args:
        builder: Takes the nodes.
        M: Shape (n, n), symmetric, regular on the null space of A; only the lower triangle is read.
        A: Shape (m, n).
        redundant: Numbers of rows of A that follow from the others. Then no speeds are taken out, since λ is the one of
            least norm over all rows.
        lengths: Typical lengths of the rows of A; (): all 1.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        M: NodeMatrix,
        A: NodeMatrix,
        redundant: Collection[int] = (),
        lengths: Sequence[float] = (),
    ) -> None:
        self._builder = builder
        self._whole_M, self._whole_A, self._redundant = M, A, redundant
        reduced = None if redundant else SpeedElimination(builder, A)
        if reduced is not None and reduced.columns:
            smaller = reduced.mass_matrix(M)
            if self._cost(smaller, reduced.A) > self._cost(M, A):
                reduced = None
        self._taken = SpeedElimination(builder, A, none=True) if reduced is None else reduced
        self._A = self._taken.A
        self._lengths = [lengths[i] for i in self._taken.rows] if lengths else ()
        mass = self._taken.mass_matrix(M)
        self._weights = self._row_weights(mass)
        least = builder.constant(_MIN_WEIGHT)
        scales = [builder.add(weight, least) for weight in self._weights]
        self._system = SaddlePointSystem(builder, self._augmented(mass), self._A, scales, redundant)

    def _cost(self, M: NodeMatrix, A: NodeMatrix) -> int:
        """Return the operations of M̂'s factors."""
        b, n = self._builder, len(M)
        near: dict[int, set[int]] = {i: {j for j in range(i) if not b.is_zero(M[i][j])} for i in range(n)}
        for row in A:
            filled = [j for j in range(n) if not b.is_zero(row[j])]
            for j in filled:
                near[j] |= set(filled) - {j}
        for i in range(n):
            for j in near[i]:
                near[j].add(i)
        return count_elimination_products(near)

    def _augmented(self, M: NodeMatrix) -> NodeMatrix:
        """Form the lower triangle of M + Aᵀ W A, the augmented mass matrix; zeros above it."""
        b, n = self._builder, len(M)
        weighted = scale_constraint_rows(b, self._weights, self._A)
        zero = b.constant(0.0)
        return [
            [
                b.sum([M[i][j], *(b.mul(heavy[i], row[j]) for heavy, row in zip(weighted, self._A, strict=True))])
                if j <= i
                else zero
                for j in range(n)
            ]
            for i in range(n)
        ]

    def _row_weights(self, M: NodeMatrix) -> list[int]:
        """Return ρ of each row: the mean mass of its speeds over its squared length."""
        b, n = self._builder, len(M)
        if not n:
            return [b.constant(1.0)] * len(self._A)
        diagonal = [M[i][i] for i in range(n)]
        light = b.mul(b.constant(_MIN_MASS_RATIO / n), b.sum(diagonal))
        masses = [b.add(mass, light) for mass in diagonal]
        weights = []
        rows = [[b.mul(e, e) for e in row] for row in self._A]
        for squares, least in zip(
            rows,
            compute_row_length_regularization(b, rows, self._redundant, self._lengths, _VANISHING_ROW_RATIO),
            strict=True,
        ):
            length = b.sum([*squares, least])
            weights.append(b.div(b.dot(squares, masses), b.mul(length, length)))
        return weights

    def solve(self, forces: Sequence[int], gamma: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return (u', λ)."""
        b, taken = self._builder, self._taken
        bias = taken.remaining_right_side(gamma)
        kept, mu = self._system.solve(taken.forces(self._whole_M, forces, gamma), bias)
        u_dot = taken.restore_all_speeds(kept, gamma)
        found = [b.sub(x, b.mul(weight, g)) for x, weight, g in zip(mu, self._weights, bias, strict=True)]
        n, M = len(u_dot), self._whole_M
        left_over = [b.sum([forces[i]], [b.mul(M[max(i, j)][min(i, j)], u_dot[j]) for j in range(n)]) for i in range(n)]
        multipliers = taken.multipliers(found, left_over)
        return u_dot, self._shared(multipliers) if self._redundant else multipliers

    def project(self, v: Sequence[int], offset: Sequence[int]) -> list[int]:
        """Return the speeds with A u + b = 0 that are nearest to v in kinetic energy."""
        b, taken = self._builder, self._taken
        kept, bias = [v[j] for j in taken.columns], taken.remaining_right_side(offset)
        off = [b.add(b.dot(row, kept), free) for row, free in zip(self._A, bias, strict=True)]
        change, _ = self._system.solve([b.constant(0.0)] * len(kept), off)
        return taken.restore_all_speeds([b.add(x, y) for x, y in zip(kept, change, strict=True)], offset)

    def _shared(self, multipliers: Sequence[int]) -> list[int]:
        """Return the λ of least norm with the same Aᵀ λ: the mechanism does not determine λ further."""
        b, A = self._builder, self._whole_A
        one = [b.constant(1.0)] * len(A)
        force = [b.dot(column, multipliers) for column in zip(*A, strict=True)]
        system = RegularizedConstraintSystem(
            b, form_gram_matrix(b, A, A), one, "redundant constraints' multipliers", self._redundant
        )
        return system.solve([b.dot(row, force) for row in A])
