"""Linear systems as nodes: written out where that is cheap and safe, as blocks elsewhere.

A symmetric positive definite system is written out as L D Lᵀ if it is small or sparse: constant zeros cost nothing and
no pivoting is needed. A general one first gives up its rows and columns with a single entry (substitution, nothing is
eliminated); what remains is one block after the other of its block triangular form, pivoted when it is run. So loops
that follow from each other, or share nothing, cost their number. Source: Duff, Erisman and Reid, Direct Methods for
Sparse Matrices, 2nd ed. 2017, ch. 6.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, ScalarizedLinearSystem

NodeMatrix = list[list[int]]

_MAX_WRITTEN_OUT_SIZE = 3  # symmetric systems up to this size are written out
_MAX_WRITTEN_OUT_HALVED_SIZE = 12  # the same where halves are wanted
_MAX_SPARSE_COST_RATIO = 0.6  # larger ones if they need less than this part of the operations of a full one


class FactoredLinearSystem:
    """One matrix, factored once, for any number of right-hand sides.

    Args:
        builder: Takes the nodes.
        matrix: Shape (n, n), nodes; only the lower triangle is read if ``symmetric``.
        name: What is solved for, for messages.
        symmetric: The matrix is symmetric positive definite.
    """

    def __init__(self, builder: ProgramBuilder, matrix: NodeMatrix, name: str, *, symmetric: bool = False) -> None:
        self._builder = builder
        self._n = len(matrix)
        self._solver: _WrittenOutFactors | _SymmetricBlockFactors | _SubstitutionSolver
        if not symmetric:
            self._solver = _SubstitutionSolver(builder, matrix, name)
        elif self._n <= _MAX_WRITTEN_OUT_SIZE or _is_sparse(builder, matrix):
            self._solver = _WrittenOutFactors(builder, matrix, name)
        else:
            self._solver = _SymmetricBlockFactors(builder, matrix, name)

    def solve(self, right: Sequence[int]) -> list[int]:
        """Return the solution for one right-hand side."""
        return self._solver.solve(list(right)) if self._n else []

    def solve_all(self, rights: Sequence[Sequence[int]]) -> NodeMatrix:
        """Return the solutions for several right-hand sides."""
        return [self.solve(right) for right in rights]


def solve_dense_system(
    builder: ProgramBuilder, matrix: NodeMatrix, rights: NodeMatrix, *, name: str, symmetric: bool = False
) -> NodeMatrix:
    """Return one solution for each right side."""
    return FactoredLinearSystem(builder, matrix, name, symmetric=symmetric).solve_all(rights)


class SparselyOrderedSystem:
    """A symmetric positive definite system; its unknowns are eliminated in an order that preserves sparsity.

    Greedily the unknown with the fewest neighbours goes first (minimum degree; George and Liu, SIAM Review 31 (1989)
    1-19). Loops that share nothing are solved each by itself, so many of them cost what one costs, times their number.

    Args:
        builder: Takes the nodes.
        matrix: Shape (n, n), nodes; only the lower triangle is read.
        name: What is solved for, for messages.
    """

    def __init__(self, builder: ProgramBuilder, matrix: NodeMatrix, name: str) -> None:
        self._order = _order_by_minimum_degree(_adjacency(builder, matrix))
        self._system = FactoredLinearSystem(
            builder, _permute_matrix(builder, matrix, self._order), name, symmetric=True
        )

    def solve(self, right: Sequence[int]) -> list[int]:
        """Return the solution for one right-hand side."""
        found = self._system.solve([right[i] for i in self._order])
        return [node for _, node in sorted(zip(self._order, found, strict=True))]

    def solve_all(self, rights: Sequence[Sequence[int]]) -> NodeMatrix:
        """Return the solutions for several right-hand sides."""
        return [self.solve(right) for right in rights]


class FactoredInverseProduct:
    """Products x · S⁻¹ y with a symmetric positive definite S = L D Lᵀ, by halves.

    Of every vector the halves L⁻¹ x and D⁻¹ L⁻¹ x are enough: x · S⁻¹ y is the product of one's left with the other's
    right half, and S⁻¹ y follows from the right half, or from a sum of right halves, by L⁻ᵀ. So with m vectors m
    substitutions are saved. Large full matrices are left to a block, where the halves are x and S⁻¹ x.

    Args:
        builder: Takes the nodes.
        matrix: S, shape (n, n), nodes; only the lower triangle is read.
        name: What is solved for, for messages.
    """

    def __init__(self, builder: ProgramBuilder, matrix: NodeMatrix, name: str) -> None:
        self._order = _order_by_minimum_degree(_adjacency(builder, matrix))
        permuted = _permute_matrix(builder, matrix, self._order)
        self._written: _WrittenOutFactors | None = None
        self._block: _SymmetricBlockFactors | None = None
        if len(matrix) <= _MAX_WRITTEN_OUT_HALVED_SIZE or _is_sparse(builder, permuted):
            self._written = _WrittenOutFactors(builder, permuted, name)
        else:
            self._block = _SymmetricBlockFactors(builder, permuted, name)

    def half_products(self, vector: Sequence[int]) -> tuple[list[int], list[int]]:
        """Return left and right half; their entries are in the order of elimination."""
        right = [vector[i] for i in self._order]
        if self._block is not None:
            return right, self._block.solve(right)
        assert self._written is not None
        left = self._written.forward(right)
        return left, self._written.divide_by_diagonal(left)

    def solve_from_half(self, right: Sequence[int]) -> list[int]:
        """Return S⁻¹ y from the right half of y."""
        found = list(right) if self._written is None else self._written.back(right)
        return [node for _, node in sorted(zip(self._order, found, strict=True))]


def _permute_matrix(b: ProgramBuilder, matrix: NodeMatrix, order: Sequence[int]) -> NodeMatrix:
    """Return a symmetric matrix in another order; its lower triangle only."""
    zero = b.constant(0.0)
    return [
        [matrix[max(i, j)][min(i, j)] if column <= row else zero for column, j in enumerate(order)]
        for row, i in enumerate(order)
    ]


def _adjacency(b: ProgramBuilder, matrix: NodeMatrix) -> dict[int, set[int]]:
    """Return for each row of a symmetric matrix the other rows with which it shares an entry that is not zero."""
    near: dict[int, set[int]] = {i: set() for i in range(len(matrix))}
    for i, row in enumerate(matrix):
        for j in range(i):
            if not b.is_zero(row[j]):
                near[i].add(j)
                near[j].add(i)
    return near


def _order_by_minimum_degree(near: dict[int, set[int]]) -> list[int]:
    """Return an order of elimination with little fill-in; of equal degrees the first. Empties ``near``."""
    order = []
    while near:
        chosen = min(near, key=lambda i: (len(near[i]), i))
        around = near.pop(chosen)
        for i in around:
            near[i] |= around
            near[i] -= {i, chosen}
        order.append(chosen)
    return order


def _is_sparse(b: ProgramBuilder, matrix: NodeMatrix) -> bool:
    """Return whether elimination in the given order, fill-in counted, is much cheaper than that of a full matrix."""
    n = len(matrix)
    return _count_elimination_operations(_adjacency(b, matrix), range(n)) < _MAX_SPARSE_COST_RATIO * sum(
        k * (k + 3) // 2 for k in range(n)
    )


def count_elimination_products(near: dict[int, set[int]]) -> int:
    """Return the number of products of an elimination in a sparse order, fill-in counted.

    Args:
        near: Row of a symmetric matrix → the others that it shares an entry with.
    """
    return _count_elimination_operations(near, _order_by_minimum_degree({i: set(around) for i, around in near.items()}))


def _count_elimination_operations(near: dict[int, set[int]], order: Iterable[int]) -> int:
    """Count the operations of an elimination in this order, fill included; `near` is the pattern off the diagonal."""
    left, cost = {i: set(around) for i, around in near.items()}, 0
    for i in order:
        around = left.pop(i)
        cost += len(around) * (len(around) + 3) // 2
        for j in around:
            left[j] |= around
            left[j] -= {i, j}
    return cost


class _TriangularFactors:
    """L D Lᵀ as scalar nodes.

    Args:
        builder: Takes the nodes.
        rows: Of L, before its diagonal of ones.
        pivots: D.
    """

    def __init__(self, builder: ProgramBuilder, rows: NodeMatrix, pivots: Sequence[int]) -> None:
        self._builder, self._rows, self._pivots = builder, rows, pivots

    def solve(self, right: list[int]) -> list[int]:
        return self.back(self.divide_by_diagonal(self.forward(right)))

    def forward(self, right: Sequence[int]) -> list[int]:
        """Return L⁻¹ r."""
        b, x = self._builder, list(right)
        for i in range(len(x)):
            x[i] = b.sum([x[i]], [b.mul(self._rows[i][j], x[j]) for j in range(i)])
        return x

    def divide_by_diagonal(self, right: Sequence[int]) -> list[int]:
        """Return D⁻¹ r."""
        return [self._builder.div(value, pivot) for value, pivot in zip(right, self._pivots, strict=True)]

    def back(self, right: Sequence[int]) -> list[int]:
        """Return L⁻ᵀ r."""
        b, x = self._builder, list(right)
        for i in reversed(range(len(x))):
            x[i] = b.sum([x[i]], [b.mul(self._rows[k][i], x[k]) for k in range(i + 1, len(x))])
        return x


class _WrittenOutFactors(_TriangularFactors):
    """A matrix factored in nodes."""

    def __init__(self, builder: ProgramBuilder, matrix: NodeMatrix, name: str) -> None:
        b = builder
        pivots: list[int] = []
        rows: NodeMatrix = []
        for i in range(len(matrix)):
            row = matrix[i][: i + 1]
            for j in range(i):
                products = [b.mul(row[k], rows[j][k]) for k in range(j)]
                row[j] = b.sum([row[j]], products)
            scaled = [b.div(value, pivot) for value, pivot in zip(row, pivots, strict=False)]
            pivots.append(b.sum([row[i]], [b.mul(x, y) for x, y in zip(scaled, row[:i], strict=True)]))
            rows.append(scaled)
            b.require(pivots[i], name, positive=True)
        self._lower = tuple(entry for i, row in enumerate(matrix) for entry in row[: i + 1])
        super().__init__(builder, rows, pivots)

    def solve(self, right: list[int]) -> list[int]:
        x = super().solve(right)
        rows = tuple(entry for row in self._rows for entry in row)
        self._builder.record_linear_system(
            ScalarizedLinearSystem(self._lower, tuple(right), tuple(x), rows, tuple(self._pivots))
        )
        return x


def solve_written_out_system(
    builder: ProgramBuilder, system: ScalarizedLinearSystem, right: Sequence[int]
) -> list[int]:
    """Return the solution of a system that is written out, for another right-hand side."""
    rows = [list(system.rows[i * (i - 1) // 2 : i * (i + 1) // 2]) for i in range(len(system.right))]
    return _TriangularFactors(builder, rows, system.pivots).solve(list(right))


class _SymmetricBlockFactors:
    """L D Lᵀ as a block."""

    def __init__(self, builder: ProgramBuilder, matrix: NodeMatrix, name: str) -> None:
        self._builder = builder
        lower = tuple(node for i, row in enumerate(matrix) for node in row[: i + 1])
        self._factor = builder.block(EquationSolveBlock("ldlt_factor", len(matrix), lower, name=name))

    def solve(self, right: list[int]) -> list[int]:
        return self._builder.solution(self._factor, right)


class _SubstitutionSolver:
    """Solves rows and columns with one entry by substitution, the rest by pivoted blocks."""

    def __init__(self, builder: ProgramBuilder, matrix: NodeMatrix, name: str) -> None:
        self._builder = b = builder
        self._matrix = matrix
        n = len(matrix)
        entries = [{j for j in range(n) if not b.is_zero(matrix[i][j])} for i in range(n)]
        rows, columns = set(range(n)), set(range(n))
        self._first: list[tuple[int, int]] = []  # row with one unknown: solved before the rest
        self._last: list[tuple[int, int]] = []  # unknown in one row only: solved after the rest
        while True:
            pair = _find_single_entry(entries, rows, columns)
            if pair is None:
                break
            row, column, is_row = pair
            (self._first if is_row else self._last).append((row, column))
            rows.remove(row)
            columns.remove(column)
        for row, column in (*self._first, *self._last):
            b.require(matrix[row][column], name, positive=False)
        self._blocks: list[tuple[list[int], list[int], int]] = []  # rows, columns, factor
        for part, unknowns in _find_triangular_blocks(entries, rows, columns):
            operands = tuple(matrix[i][j] for i in part for j in unknowns)
            self._blocks.append(
                (part, unknowns, builder.block(EquationSolveBlock("lu_factor", len(part), operands, name=name)))
            )

    def solve(self, right: list[int]) -> list[int]:
        """Return the unknowns, block after block of the triangular form."""
        b = self._builder
        x: dict[int, int] = {}

        def remainder(i: int) -> int:
            """Return row i's right-hand side less the known part of its left side."""
            return b.sum([right[i]], [b.mul(self._matrix[i][j], x[j]) for j in sorted(x)])

        for row, column in self._first:
            x[column] = b.div(remainder(row), self._matrix[row][column])
        for part, unknowns, factor in self._blocks:
            known = [remainder(i) for i in part]
            x.update(zip(unknowns, b.solution(factor, known), strict=True))
        for row, column in reversed(self._last):
            x[column] = b.div(remainder(row), self._matrix[row][column])
        return [x[j] for j in range(len(right))]


def _find_triangular_blocks(
    entries: list[set[int]], rows: set[int], columns: set[int]
) -> list[tuple[list[int], list[int]]]:
    """Return blocks (rows, columns); each contains only its own columns and those of earlier blocks.

    A matrix that is singular by its structure is left in one piece, for its pivots to say so.
    """
    if not rows:
        return []
    order, unknowns = sorted(rows), sorted(columns)
    if all(columns <= entries[row] for row in order):
        return [(order, unknowns)]
    holder = _match_rows_to_columns([entries[row] & columns for row in order])
    if holder is None:
        return [(order, unknowns)]
    places = {column: 1 << k for k, column in enumerate(unknowns)}  # sets of columns, one bit each
    needed = [sum(places[other] for other in entries[order[holder[column]]] & columns) for column in unknowns]
    for k in range(len(unknowns)):  # what a column needs needs others (Warshall, A theorem on Boolean matrices, 1962)
        needed = [mask | needed[k] if mask >> k & 1 else mask for mask in needed]
    members: dict[int, list[int]] = {}  # columns that need each other need the same
    for column, mask in zip(unknowns, needed, strict=True):
        members.setdefault(mask, []).append(column)
    blocks, done = [], 0
    while members:
        mask = next(m for m, part in members.items() if not m & ~done & ~sum(map(places.__getitem__, part)))
        done, part = done | mask, members.pop(mask)
        blocks.append((sorted(order[holder[column]] for column in part), part))
    return blocks


def _match_rows_to_columns(entries: Sequence[Collection[int]]) -> dict[int, int] | None:
    """Return column → a row with an entry in it, each row once; None if the matrix is singular by its structure.

    Each row takes a free column, or one whose row can take another (Kuhn, The Hungarian method, 1955).
    """
    holder: dict[int, int] = {}
    held: dict[int, int] = {}
    for start in range(len(entries)):
        reached_from: dict[int, int] = {}
        waiting, free = [start], -1
        while waiting and free < 0:
            row = waiting.pop()
            for column in sorted(set(entries[row]) - reached_from.keys()):
                reached_from[column] = row
                if column not in holder:
                    free = column
                    break
                waiting.append(holder[column])
        if free < 0:
            return None
        while free >= 0:  # along the path back, each row leaves its column to the one before
            row = reached_from[free]
            holder[free], held[row], free = row, free, held.get(row, -1)
    return holder


def _find_single_entry(entries: list[set[int]], rows: set[int], columns: set[int]) -> tuple[int, int, bool] | None:
    """Return a row with one entry in the remaining columns, else a column with one entry in the remaining rows."""
    for i in sorted(rows):
        left = entries[i] & columns
        if len(left) == 1:
            return i, left.pop(), True
    for j in sorted(columns):
        holders = [i for i in sorted(rows) if j in entries[i]]
        if len(holders) == 1:
            return holders[0], j, False
    return None
