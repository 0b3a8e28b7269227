"""Vectors of the space of a symmetric matrix's largest eigenvalues, with its rotation as derivatives.

With S = Σ λ vvᵀ, kept eigenvalues λ_k, left out ones λ_d, and P, Q = I - P the projections onto the spaces of either,

    dP y = Σ_k,d v_d (v_dᵀ dS v_k) (v_kᵀ y) / (λ_k - λ_d)        for y = P y

(Kato, Perturbation Theory for Linear Operators, 2nd ed. 1976, ch. II, sec. 2.1). No eigenvector is needed for it: with
p(t) = Π_d (t - λ_d) = Σ p_i tⁱ, whose coefficients follow from the traces of (Q S)ⁱ by Newton's identities,

    1 / (λ_k - λ_d) = (p(λ_k) - p(λ_d)) / ((λ_k - λ_d) p(λ_k)) = Σ_j λ_dʲ b_j(λ_k) / p(λ_k),
    b_j(t) = p_{j+1} + t b_{j+1}(t),   b_{e-1} = 1,

a sum of as many terms as eigenvalues are left out, so that dP y = Q Σ_j Sʲ dS b_j(S) p(S)⁻¹ y.
"""

from __future__ import annotations

from collections.abc import Sequence

from mb2fmu.compiler.numerics.linear_solve import LinearSystem
from mb2fmu.compiler.program.program import Op
from mb2fmu.compiler.program.program_builder import ProgramBuilder

NodeMatrix = list[list[int]]


def add_eigenspace_rotation(
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
    z = LinearSystem(b, regular, name, symmetric=True).solve(held)
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
