"""Linear systems of constraints as nodes, regular where constraints lose rank; projection of speeds.

**Regular where the constraints are not.** Where rows of the Jacobian G are redundant, or G loses rank on the way (a
four-bar that lies flat), the solution of least norm is wanted, and a right-hand side that jumps from one rank to the
other is not: an integrator would stop there. So no rank is decided. Every system S y = r with S = G Gᵀ, rows scaled to
unit length, is solved by

    y = (1 + E − 2 E²) (S + ε)⁻¹ r,      E = (S + ε)⁻¹ ε,

so that in a direction of singular value σ, where E is e = ε / (σ² + ε), the part 3 e² − 2 e³ of the solution is
missing: nothing but round-off where σ > 1e-4, everything where σ < 1e-7, a smooth way in between. It is the polynomial
of least degree of which nothing of first order in e is missing where rows are independent, and which does not magnify
round-off in r along redundant ones, (1 − e)² (1 + 2 e): what comes out for these is the solution of least norm.
Source: Hansen, Rank-Deficient and Discrete Ill-Posed Problems, 1998, ch. 5 (filter factors, iterated Tikhonov).

**Redundant rows** follow from others wherever the constraints hold, but not beside them: there they are independent by
as much as the loops have drifted apart, and would take the mechanism its freedom (a Bricard mechanism's five closing
conditions of rank four; four hinges in space). Where such rows are known, the rank of S is too: only as many of
its eigenvalues count, the largest (block ``least_norm_factor``). That changes with S as smoothly as S does, since
the others are as small as the square of the drift. Nothing is chosen, neither rows nor pivots, that would have to be
remembered.

Vectors of the space of a symmetric matrix's largest eigenvalues, with its rotation as derivatives.

With S = Σ λ vvᵀ, kept eigenvalues λ_k, left out ones λ_d, and P, Q = I - P the projections onto the spaces of either,

    dP y = Σ_k,d v_d (v_dᵀ dS v_k) (v_kᵀ y) / (λ_k - λ_d)        for y = P y

(Kato, Perturbation Theory for Linear Operators, 2nd ed. 1976, ch. II, sec. 2.1). No eigenvector is needed for it: with
p(t) = Π_d (t - λ_d) = Σ p_i tⁱ, whose coefficients follow from the traces of (Q S)ⁱ by Newton's identities,

    1 / (λ_k - λ_d) = (p(λ_k) - p(λ_d)) / ((λ_k - λ_d) p(λ_k)) = Σ_j λ_dʲ b_j(λ_k) / p(λ_k),
    b_j(t) = p_{j+1} + t b_{j+1}(t),   b_{e-1} = 1,

a sum of as many terms as eigenvalues are left out, so that dP y = Q Σ_j Sʲ dS b_j(S) p(S)⁻¹ y.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem, SparselyOrderedSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op

NodeMatrix = list[list[int]]


GRAM_REGULARIZATION = 1e-14
"""Added to the diagonal of systems whose rows are scaled to unit length."""
_VANISHING_LENGTH_RATIO = (
    1e-8  # part of a row's typical squared length that counts as none: it is not scaled up further, nor
)
# round-off in its φ
SHORT_ROW_RATIO = (
    0.01  # of the mean squared length, each over its typical one: below it rows are not scaled up further where some
)


def add_eigenspace_rotation_derivative(
    b: ProgramBuilder, matrix: NodeMatrix, left_out: NodeMatrix, count: int, y: Sequence[int], name: str
) -> list[int]:
    """Return numbers y of the kept space, with the derivatives of staying in it.

    Args:
        b: Takes the nodes.
        matrix: S, shape (m, m), symmetric; nodes.
        left_out: Q, shape (m, m).
        count: How many eigenvalues are left out.
        y: Of the space that is kept, shape (m,).
        name: What is solved for.

    Returns:
        P y: the value of y, and of derivatives those only that the change of S makes.
    """
    m = len(y)
    number = [[b.unary(Op.FROZEN, e) for e in row] for row in matrix]
    Q = [[b.unary(Op.FROZEN, e) for e in row] for row in left_out]
    change = [[b.sub(e, held) for e, held in zip(*rows, strict=True)] for rows in zip(matrix, number, strict=True)]
    held = [b.unary(Op.FROZEN, e) for e in y]
    p = _characteristic_polynomial(b, _multiply_matrices(b, Q, number), count)
    value = [[p[-1] if i == j else b.constant(0.0) for j in range(m)] for i in range(m)]
    for coefficient in p[-2::-1]:
        value = _multiply_matrices(b, number, value)
        for i in range(m):
            value[i][i] = b.add(value[i][i], coefficient)
    # p(S) vanishes where eigenvalues are left out
    regular = [[b.add(e, q) for e, q in zip(*rows, strict=True)] for rows in zip(value, Q, strict=True)]
    z = FactoredLinearSystem(b, regular, name, symmetric=True).solve(held)
    found = [b.constant(0.0)] * m
    along = z
    for j in range(count - 1, -1, -1):
        if j < count - 1:
            along = [b.add(b.mul(p[j + 1], e), s) for e, s in zip(z, _multiply_vector(b, number, along), strict=True)]
        both = zip(_multiply_vector(b, change, along), _multiply_vector(b, number, found), strict=True)
        found = _multiply_vector(b, Q, [b.add(x, s) for x, s in both])
    return [b.add(x, w) for x, w in zip(held, found, strict=True)]


def _characteristic_polynomial(b: ProgramBuilder, part: NodeMatrix, count: int) -> list[int]:
    """Return p_0, …, p_e of the eigenvalues of Q S that are left out, by Newton's identities."""
    traces, power = [], part
    for i in range(count):
        power = _multiply_matrices(b, power, part) if i else power
        traces.append(b.sum(power[j][j] for j in range(len(part))))
    p = [b.constant(1.0)]  # from the highest power
    for k in range(1, count + 1):
        total = b.dot(p[::-1], traces[:k])
        p.append(b.mul(b.constant(-1.0 / k), total))
    return p[::-1]


def _multiply_matrices(b: ProgramBuilder, left: NodeMatrix, right: NodeMatrix) -> NodeMatrix:
    """Return the matrix product of nodes."""
    columns = list(zip(*right, strict=True))
    return [[b.dot(row, column) for column in columns] for row in left]


def _multiply_vector(b: ProgramBuilder, matrix: NodeMatrix, x: Sequence[int]) -> list[int]:
    """Return matrix · x as nodes."""
    return [b.dot(row, x) for row in matrix]


# are redundant


class RegularizedConstraintSystem:
    """G Gᵀ y = r for rows G of unit length, or S y = r for any S of that size: see the module's docstring.

    Args:
        builder: Takes the nodes.
        matrix: S, shape (m, m), symmetric positive semidefinite; nodes.
        weights: s² of each row, whose scale s is positive: ε / s² is added to its diagonal.
        name: What is solved for.
        redundant: Numbers of rows that follow from the others.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        matrix: NodeMatrix,
        weights: Sequence[int],
        name: str,
        redundant: Collection[int] = (),
    ) -> None:
        self._builder = builder
        self._parts: list[tuple[list[int], _RegularizedConstraintSystem | _LeastNormSystem]] = []
        groups = _find_coupled_row_groups(builder, matrix) if redundant else [list(range(len(matrix)))]
        ranked = [group for group in groups if set(group) & set(redundant)]
        others = sorted({i for group in groups for i in group if group not in ranked})
        for group in [*ranked, *([others] if others else [])]:
            part = [[matrix[i][j] for j in group] for i in group]
            some = [weights[i] for i in group]
            rank = len(group) - len(set(group) & set(redundant))
            system = _LeastNormSystem(builder, part, some, name, rank) if group in ranked else None
            self._parts.append((group, system or _RegularizedConstraintSystem(builder, part, some, name)))

    def solve(self, right: Sequence[int]) -> list[int]:
        """Return the solution for a right side."""
        found: dict[int, int] = {}
        for group, system in self._parts:
            found.update(zip(group, system.solve([right[i] for i in group]), strict=True))
        return [found[i] for i in range(len(right))]

    def regularizing_matrix(self) -> NodeMatrix:
        """Return the matrix to add to one near S to make it regular; the rank of S counts.

        Where rows are redundant this is the projection I - S⁺ S: the solution for anything that the matrix spans is
        then the one without a part along the eigenvectors that are left out. ε elsewhere.
        """
        zero = self._builder.constant(0.0)
        n = sum(len(group) for group, _ in self._parts)
        found = [[zero] * n for _ in range(n)]
        for group, system in self._parts:
            for i, row in zip(group, system.regularizing_matrix(), strict=True):
                for j, entry in zip(group, row, strict=True):
                    found[i][j] = entry
        return found

    def regularization(self) -> list[int]:
        """Return the small part of :meth:`regularizing_matrix`, a diagonal: ε, and 0 where the rank of S counts."""
        found: dict[int, int] = {}
        for group, system in self._parts:
            found.update(zip(group, system.regularization(), strict=True))
        return [found[i] for i in range(len(found))]

    def follow_eigenspace_rotation(self, y: Sequence[int]) -> list[int]:
        """Return a solution as a number, that follows its space (:func:`add_eigenspace_rotation_derivative`)."""
        b = self._builder
        found = {i: b.unary(Op.FROZEN, node) for i, node in enumerate(y)}
        for group, system in self._parts:
            if isinstance(system, _LeastNormSystem):
                found.update(zip(group, system.follow_eigenspace_rotation([y[i] for i in group]), strict=True))
        return [found[i] for i in range(len(y))]


class _RegularizedConstraintSystem:
    """A system without known redundant rows."""

    def __init__(self, builder: ProgramBuilder, matrix: NodeMatrix, weights: Sequence[int], name: str) -> None:
        self._builder = b = builder
        epsilon = b.constant(GRAM_REGULARIZATION)
        self._added = [b.div(epsilon, weight) for weight in weights]
        regular = [list(row) for row in matrix]
        for i, added in enumerate(self._added):
            regular[i][i] = b.add(matrix[i][i], added)
        self._system = SparselyOrderedSystem(b, regular, name)

    def solve(self, right: Sequence[int]) -> list[int]:
        """See the module's docstring."""
        b = self._builder
        z = self._system.solve(right)
        once = self._weak(z)
        twice = self._weak(once)
        return [b.sum([x, y], [b.mul(b.constant(2.0), w)]) for x, y, w in zip(z, once, twice, strict=True)]

    def regularizing_matrix(self) -> NodeMatrix:
        """Return ε over each weight."""
        zero = self._builder.constant(0.0)
        return [[e if i == j else zero for j in range(len(self._added))] for i, e in enumerate(self._added)]

    def regularization(self) -> list[int]:
        """Return the diagonal of :meth:`regularizing_matrix`."""
        return self._added

    def _weak(self, right: Sequence[int]) -> list[int]:
        """Return E r."""
        return self._system.solve([self._builder.mul(e, x) for e, x in zip(self._added, right, strict=True)])


class _LeastNormSystem:
    """A system of known rank: s S s with eigenvalues of order 1."""

    def __init__(
        self, builder: ProgramBuilder, matrix: NodeMatrix, weights: Sequence[int], name: str, rank: int
    ) -> None:
        b, n = builder, len(matrix)
        scales = [b.unary(Op.SQRT, weight) for weight in weights]
        self._builder, self._scales = builder, scales
        lower = [b.mul(b.mul(scales[i], scales[j]), matrix[i][j]) for i in range(n) for j in range(i + 1)]
        self._factor = b.block(EquationSolveBlock("least_norm_factor", n, tuple(lower), name=name, rank=rank))
        self._matrix = [[lower[max(i, j) * (max(i, j) + 1) // 2 + min(i, j)] for j in range(n)] for i in range(n)]
        self._left_out, self._name = n - rank, name

    def solve(self, right: Sequence[int]) -> list[int]:
        b = self._builder
        found = b.solution(self._factor, [b.mul(s, value) for s, value in zip(self._scales, right, strict=True)])
        return [b.mul(s, value) for s, value in zip(self._scales, found, strict=True)]

    def regularizing_matrix(self) -> NodeMatrix:
        """Return I - S⁺ S of the scaled matrix."""
        b, one, zero = self._builder, self._builder.constant(1.0), self._builder.constant(0.0)
        columns = [b.solution(self._factor, row) for row in self._matrix]
        return [
            [b.sub(one if i == j else zero, entry) for j, entry in enumerate(row)]
            for i, row in enumerate(zip(*columns, strict=True))
        ]

    def regularization(self) -> list[int]:
        """Return zeros: nothing is added to eigenvalues that count."""
        return [self._builder.constant(0.0)] * len(self._scales)

    def follow_eigenspace_rotation(self, y: Sequence[int]) -> list[int]:
        """Return vectors of the left-out space turned with the scaled matrix."""
        return add_eigenspace_rotation_derivative(
            self._builder, self._matrix, self.regularizing_matrix(), self._left_out, y, self._name
        )


def _find_coupled_row_groups(b: ProgramBuilder, matrix: NodeMatrix) -> list[list[int]]:
    """Return rows of a symmetric matrix in groups that share only constant zeros."""
    left, groups = set(range(len(matrix))), []
    while left:
        group, found = set(), {min(left)}
        while found:
            group |= found
            found = {j for i in found for j in left - group if not b.is_zero(matrix[max(i, j)][min(i, j)])}
        groups.append(sorted(group))
        left -= group
    return groups


def compute_inverse_row_lengths(
    b: ProgramBuilder, rows: NodeMatrix, redundant: Collection[int] = (), lengths: Sequence[float] = ()
) -> list[int]:
    """Return 1 / length of each row; ``lengths``: their typical ones, (): all 1.

    Among redundant rows one may vanish on the way while others say the same: it is not followed down to nothing, since
    its direction there is as wrong as the states have drifted.
    """
    one, squares = b.constant(1.0), [[b.mul(e, e) for e in row] for row in rows]
    small = compute_row_length_regularization(b, squares, redundant, lengths, _VANISHING_LENGTH_RATIO)
    return [b.div(one, b.unary(Op.SQRT, b.sum([*row, least]))) for row, least in zip(squares, small, strict=True)]


def compute_row_length_regularization(
    b: ProgramBuilder, squares: NodeMatrix, redundant: Collection[int], lengths: Sequence[float], part: float
) -> list[int]:
    """Return the amount added to each row's squared length, so that a vanishing row is ignored.

    Args:
        b: Takes the nodes.
        squares: The rows' entries squared.
        redundant: Numbers of rows that follow from the others.
        lengths: Typical lengths of the rows; (): all 1.
        part: Of the squared typical length.
    """
    typical = [length * length for length in lengths] or [1.0] * len(squares)
    small = b.constant(part)
    if redundant:
        inverse = [b.constant(1.0 / square) for square in typical]
        mean = b.sum([b.mul(i, e) for i, row in zip(inverse, squares, strict=True) for e in row])
        small = b.add(small, b.mul(b.constant(SHORT_ROW_RATIO / len(squares)), mean))
    return [b.mul(b.constant(square), small) for square in typical]


def scale_constraint_rows(b: ProgramBuilder, scales: Sequence[int], rows: NodeMatrix) -> NodeMatrix:
    """Return each row times its scale."""
    return [[b.mul(scale, e) for e in row] for scale, row in zip(scales, rows, strict=True)]


def form_gram_matrix(b: ProgramBuilder, left: NodeMatrix, right: NodeMatrix) -> NodeMatrix:
    """Return left rightᵀ; rows without common columns cost nothing."""
    zero = b.constant(0.0)
    columns = [{j for j, node in enumerate(row) if not b.is_zero(node)} for row in right]
    product = []
    for row in left:
        own = [j for j, node in enumerate(row) if not b.is_zero(node)]
        shared = [[j for j in own if j in others] for others in columns]
        product.append(
            [
                b.dot([row[j] for j in both], [y[j] for j in both]) if both else zero
                for both, y in zip(shared, right, strict=True)
            ]
        )
    return product


def project_speeds_on_constraints(
    b: ProgramBuilder,
    A: NodeMatrix,
    offset: Sequence[int],
    v: Sequence[int],
    redundant: Collection[int] = (),
    lengths: Sequence[float] = (),
) -> list[int]:
    """Return the speeds with A u + b = 0 that are nearest to v.

    Args:
        b: Takes the nodes.
        A: The rows.
        offset: b.
        v: Speeds off the constraints.
        redundant: Numbers of rows that follow from the others.
        lengths: Typical lengths of the rows; (): all 1.
    """
    name, ones = "the speeds on the constraints", [b.constant(1.0)] * len(A)
    scales = compute_inverse_row_lengths(b, A, redundant, lengths)
    rows = scale_constraint_rows(b, scales, A)
    right = [b.add(b.dot(row, v), b.mul(scale, free)) for row, scale, free in zip(rows, scales, offset, strict=True)]
    weights = RegularizedConstraintSystem(b, form_gram_matrix(b, rows, rows), ones, name, redundant).solve(right)
    return [
        b.sum([speed], [b.mul(row[j], weight) for row, weight in zip(rows, weights, strict=True)])
        for j, speed in enumerate(v)
    ]


def solve_least_norm_multipliers(
    b: ProgramBuilder, A: NodeMatrix, forces: Sequence[int], lengths: Sequence[float] = ()
) -> list[int]:
    """Return the λ of least norm with Aᵀλ = forces (in the span of A's rows); regular where A loses rank.

    ``lengths`` are typical ones of the rows; (): all 1.
    """
    scales = compute_inverse_row_lengths(b, A, (), lengths)
    rows = scale_constraint_rows(b, scales, A)
    system = RegularizedConstraintSystem(
        b, form_gram_matrix(b, rows, rows), [b.constant(1.0)] * len(rows), "the constraints' multipliers"
    )
    found = system.solve([b.dot(row, forces) for row in rows])
    return [b.mul(scale, value) for scale, value in zip(scales, found, strict=True)]
