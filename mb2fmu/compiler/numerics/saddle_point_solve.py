"""M̂ x + Aᵀ μ = f, A x + right = 0 as nodes, regular where A is not: by halves, or as one sparse system.

M̂ is positive definite. Both give, with S = A M̂⁻¹ Aᵀ (see ``constraints`` for why),

    μ = (1 + E − 2 E²) (S + ε)⁻¹ (A M̂⁻¹ f + right),   x = M̂⁻¹ (f − Aᵀ μ).

S is small, but full wherever the speeds are connected: in a chain of loops its factors cost the cube of their number.
There

    [ M̂   Aᵀ ] [ x ]   [ f      ]
    [ A   −ε ] [ μ ] = [ −right ]

is factored as it is, L D Lᵀ without pivoting, in an order that follows the loops. The matrix is quasidefinite, so that
the factors exist in every order; a multiplier is eliminated after all speeds of its row, so that its pivot is as far
from zero as its row is from those before it, and a chain of loops costs their number. Source: Vanderbei, Symmetric
quasidefinite matrices, SIAM Journal on Optimization 5 (1995) 100-113.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mb2fmu.compiler.numerics.linear_solve import FactoredInverseProduct
from mb2fmu.compiler.numerics.regularized_constraint_systems import (
    GRAM_REGULARIZATION,
    NodeMatrix,
    RegularizedConstraintSystem,
)
from mb2fmu.compiler.program.program_builder import ProgramBuilder

_MASS, _ROWS = "the mass matrix with the constraints", "the constraints' multipliers"
_EXPECTED_SOLVES = 2  # of accelerations and of speeds


class SaddlePointSystem:
    """Chooses the cheaper of both ways.

    Args:
        builder: Takes the nodes.
        M: M̂, shape (n, n); only the lower triangle is read.
        A: Shape (m, n).
        weights: Of each row: ε over its weight is added.
        redundant: Numbers of rows that follow from the others: by halves.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        M: NodeMatrix,
        A: NodeMatrix,
        weights: Sequence[int],
        redundant: Collection[int] = (),
    ) -> None:
        self._way: _SchurComplementSolver | _SparseSaddlePointSolver
        pattern = _EliminationFillPattern(builder, M, A)
        if redundant or pattern.cost_of_halves() <= pattern.cost_in_order():
            self._way = _SchurComplementSolver(builder, M, A, weights, redundant)
        else:
            self._way = _SparseSaddlePointSolver(builder, M, A, weights, pattern.order)

    def solve(self, forces: Sequence[int], right: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return (x, μ)."""
        return self._way.solve(forces, right)


class _SchurComplementSolver:
    """Solves by the factors of M̂ and of S."""

    def __init__(
        self, builder: ProgramBuilder, M: NodeMatrix, A: NodeMatrix, weights: Sequence[int], redundant: Collection[int]
    ) -> None:
        self._builder = b = builder
        self._mass = FactoredInverseProduct(b, M, _MASS)
        halves = [self._mass.half_products(row) for row in A]
        self._left, self._right = [left for left, _ in halves], [right for _, right in halves]
        m, zero = len(A), b.constant(0.0)
        S = [[b.dot(self._left[i], self._right[j]) if j <= i else zero for j in range(m)] for i in range(m)]
        self._system = RegularizedConstraintSystem(b, S, weights, _ROWS, redundant)

    def solve(self, forces: Sequence[int], right: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return (x, μ)."""
        b = self._builder
        _, load = self._mass.half_products(forces)
        mu = self._system.solve([b.add(b.dot(row, load), g) for row, g in zip(self._left, right, strict=True)])
        rest = [
            b.sum([value], [b.mul(row[j], x) for row, x in zip(self._right, mu, strict=True)])
            for j, value in enumerate(load)
        ]
        return self._mass.solve_from_half(rest), mu


class _SparseSaddlePointSolver:
    """Solves as one system in a given order: unknown i < n is x_i, others are μ."""

    def __init__(
        self, builder: ProgramBuilder, M: NodeMatrix, A: NodeMatrix, weights: Sequence[int], order: Sequence[int]
    ) -> None:
        self._builder = b = builder
        self._n, self._order = len(M), order
        epsilon = b.constant(GRAM_REGULARIZATION)
        self._added = [b.div(epsilon, weight) for weight in weights]
        self._pivots: list[int] = []
        self._rows: list[dict[int, int]] = []  # of L, below the diagonal, what is not zero
        for i, unknown in enumerate(order):
            row = self._entries(M, A, order[:i], unknown)
            for j in range(i):
                products = [b.mul(row[k], e) for k, e in self._rows[j].items() if k in row]
                if products:
                    row[j] = b.sum([row.get(j, b.constant(0.0))], products)
            row = {j: row[j] for j in sorted(row)}
            scaled = {j: b.div(value, self._pivots[j]) for j, value in row.items()}
            own = M[unknown][unknown] if unknown < self._n else b.neg(self._added[unknown - self._n])
            pivot = b.sum([own], [b.mul(scaled[j], row[j]) for j in row])
            is_mass = unknown < self._n
            b.require(pivot if is_mass else b.neg(pivot), _MASS if is_mass else _ROWS, positive=True)
            self._pivots.append(pivot)
            self._rows.append(scaled)

    def _entries(self, M: NodeMatrix, A: NodeMatrix, before: Iterable[int], unknown: int) -> dict[int, int]:
        """Return a row of the matrix left of the diagonal."""
        b, n = self._builder, self._n
        found = {}
        for j, other in enumerate(before):
            low, high = min(unknown, other), max(unknown, other)
            if low >= n:
                continue
            entry = M[high][low] if high < n else A[high - n][low]
            if not b.is_zero(entry):
                found[j] = entry
        return found

    def solve(self, forces: Sequence[int], right: Sequence[int]) -> tuple[list[int], list[int]]:
        """Solve three times: the μ of each answer corrects the right side for the filter."""
        b, n = self._builder, self._n
        none, two = [b.constant(0.0)] * n, b.constant(2.0)
        z = self._once(forces, right)
        once = self._once(none, [b.mul(e, x) for e, x in zip(self._added, z[n:], strict=True)])
        twice = self._once(none, [b.mul(e, x) for e, x in zip(self._added, once[n:], strict=True)])
        found = [b.sum([x, y], [b.mul(two, w)]) for x, y, w in zip(z, once, twice, strict=True)]
        return found[:n], found[n:]

    def _once(self, forces: Sequence[int], right: Sequence[int]) -> list[int]:
        """Solve by forward substitution, pivots and back substitution; unknowns in their original order."""
        b, order = self._builder, self._order
        load = [*forces, *(b.neg(value) for value in right)]
        x = [load[unknown] for unknown in order]
        for i, row in enumerate(self._rows):
            x[i] = b.sum([x[i]], [b.mul(e, x[j]) for j, e in row.items()])
        x = [b.div(value, pivot) for value, pivot in zip(x, self._pivots, strict=True)]
        below: list[list[int]] = [[] for _ in order]
        for i, row in enumerate(self._rows):
            for j in row:
                below[j].append(i)
        for i in reversed(range(len(x))):
            x[i] = b.sum([x[i]], [b.mul(self._rows[k][i], x[k]) for k in below[i]])
        return [node for _, node in sorted(zip(order, x, strict=True))]


class _EliminationFillPattern:
    """Sparsity pattern, and its fill-in.

    Attributes:
        order: Of all unknowns: the fewest neighbours first, a multiplier after all speeds of its row.
    """

    def __init__(self, b: ProgramBuilder, M: NodeMatrix, A: NodeMatrix) -> None:
        n = self._n = len(M)
        self._rows = [{j for j in range(n) if not b.is_zero(row[j])} for row in A]
        self._mass: dict[int, set[int]] = {i: set() for i in range(n)}
        for i in range(n):
            for j in range(i):
                if not b.is_zero(M[i][j]):
                    self._mass[i].add(j)
                    self._mass[j].add(i)
        near = {i: set(around) for i, around in self._mass.items()}
        for k, row in enumerate(self._rows):
            near[n + k] = set(row)
            for j in row:
                near[j].add(n + k)
        waiting = {n + k: set(row) for k, row in enumerate(self._rows)}
        self.order, self._filled = _order_elimination(near, waiting)

    def cost_in_order(self) -> int:
        """Return the number of products of the factors and of the solutions with them."""
        return _count_factor_operations(self._filled) + _EXPECTED_SOLVES * 3 * 2 * sum(self._filled)

    def cost_of_halves(self) -> int:
        """Return the operations of both halves, with all rows and products."""
        order, filled, parts = self._factored_mass()
        place = {i: k for k, i in enumerate(order)}
        lefts = [self._reach({place[j] for j in row}, parts) for row in self._rows]
        m = len(lefts)
        cost = _count_factor_operations(filled) + sum(len(parts[k]) for left in lefts for k in left)
        S: dict[int, set[int]] = {i: set() for i in range(m)}
        for i in range(m):
            for j in range(i):
                shared = len(lefts[i] & lefts[j])
                cost += shared
                if shared:
                    S[i].add(j)
                    S[j].add(i)
        own = _order_elimination(S, {})[1]
        return (
            cost
            + _count_factor_operations(own)
            + _EXPECTED_SOLVES * 2 * (3 * sum(own) + sum(filled) + sum(map(len, lefts)))
        )

    def _factored_mass(self) -> tuple[list[int], list[int], list[set[int]]]:
        """Return the order, the entries per column of L, and the rows of L that they are in."""
        near = {i: set(around) for i, around in self._mass.items()}
        order, filled = _order_elimination({i: set(around) for i, around in near.items()}, {})
        place = {i: k for k, i in enumerate(order)}
        parts = []
        for i in order:
            around = near.pop(i)
            parts.append({place[j] for j in around})
            for j in around:
                near[j] |= around
                near[j] -= {i, j}
        return order, filled, parts

    @staticmethod
    def _reach(start: set[int], parts: Sequence[set[int]]) -> set[int]:
        """Return the non-zero entries of L⁻¹ r."""
        reached = set(start)
        for k in range(len(parts)):
            if k in reached:
                reached |= parts[k]
        return reached


def _order_elimination(near: dict[int, set[int]], waiting: dict[int, set[int]]) -> tuple[list[int], list[int]]:
    """Return an order of elimination with little fill-in, and the entries of each column of L. Empties both.

    Args:
        near: Of each unknown those that share an entry with it.
        waiting: Of some unknowns those that have to be eliminated before.
    """
    order, filled = [], []
    while near:
        chosen = min((i for i in near if not waiting.get(i)), key=lambda i: (len(near[i]), i))
        around = near.pop(chosen)
        for i in around:
            near[i] |= around
            near[i] -= {i, chosen}
        for left in waiting.values():
            left.discard(chosen)
        order.append(chosen)
        filled.append(len(around))
    return order, filled


def _count_factor_operations(filled: Iterable[int]) -> int:
    """Count the operations of a symmetric factorization from the entries below each pivot."""
    return sum(k * (k + 3) // 2 for k in filled)
