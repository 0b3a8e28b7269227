"""Vectors, rotations and symmetric matrices as nodes; the builder lets constant zeros and ones vanish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mb2fmu.compiler.program.program_builder import ProgramBuilder

Vector = tuple[int, int, int]
Matrix = tuple[Vector, Vector, Vector]
"""Rows."""


@dataclass(frozen=True, slots=True)
class CoordinateAxisRotation:
    """A rotation about coordinate axis k: with i, j the next two axes, [[c, -s], [s, c]] in their plane."""

    k: int
    c: int
    s: int


class NodeVectorArithmetic:
    """Arithmetic of three components in one builder.

    Args:
        builder: Takes the nodes.
    """

    def __init__(self, builder: ProgramBuilder) -> None:
        self.b = builder
        self.zero = builder.constant(0.0)
        self.one = builder.constant(1.0)
        self.null: Vector = (self.zero, self.zero, self.zero)
        self.identity: Matrix = (
            (self.one, self.zero, self.zero),
            (self.zero, self.one, self.zero),
            (self.zero, self.zero, self.one),
        )
        self._axes: dict[Matrix, CoordinateAxisRotation | None] = {}

    # --- vectors -----------------------------------------------------------------------------------------------------

    def add(self, x: Sequence[int], y: Sequence[int]) -> Vector:
        """Return x + y."""
        add = self.b.add
        return add(x[0], y[0]), add(x[1], y[1]), add(x[2], y[2])

    def sub(self, x: Sequence[int], y: Sequence[int]) -> Vector:
        """Return x − y."""
        sub = self.b.sub
        return sub(x[0], y[0]), sub(x[1], y[1]), sub(x[2], y[2])

    def neg(self, x: Sequence[int]) -> Vector:
        """Return −x."""
        neg = self.b.neg
        return neg(x[0]), neg(x[1]), neg(x[2])

    def scale(self, a: int, x: Sequence[int]) -> Vector:
        """Return a x."""
        mul = self.b.mul
        return mul(a, x[0]), mul(a, x[1]), mul(a, x[2])

    def dot(self, x: Sequence[int], y: Sequence[int]) -> int:
        """Return x · y, for rows of any length, zeros skipped."""
        b = self.b
        total = self.zero
        for one, other in zip(x, y, strict=True):
            total = b.add(total, b.mul(one, other))
        return total

    def cross(self, x: Sequence[int], y: Sequence[int]) -> Vector:
        """Return x × y."""
        mul, sub = self.b.mul, self.b.sub
        return (
            sub(mul(x[1], y[2]), mul(x[2], y[1])),
            sub(mul(x[2], y[0]), mul(x[0], y[2])),
            sub(mul(x[0], y[1]), mul(x[1], y[0])),
        )

    def is_zero_vector(self, x: Sequence[int]) -> bool:
        """True if all components are the number 0."""
        return all(node == self.zero for node in x)

    def depends_on_parameters_only(self, x: Sequence[int]) -> bool:
        """True if all components depend on parameters only."""
        return all(self.b.variability_rank(node) <= 1 for node in x)

    # --- matrices ----------------------------------------------------------------------------------------------------

    def apply(self, C: Matrix, x: Sequence[int]) -> Vector:
        """Return C x."""
        if C is self.identity:
            return (x[0], x[1], x[2])
        return self.dot(C[0], x), self.dot(C[1], x), self.dot(C[2], x)

    def apply_transposed(self, C: Matrix, x: Sequence[int]) -> Vector:
        """Return Cᵀ x."""
        if C is self.identity:
            return (x[0], x[1], x[2])
        return self.apply(self.transpose(C), x)

    def transpose(self, C: Matrix) -> Matrix:
        """Return Cᵀ."""
        x, y, z = zip(*C, strict=True)
        return (x, y, z)

    def product(self, A: Matrix, B: Matrix) -> Matrix:
        """Return A B."""
        if A is self.identity:
            return B
        if B is self.identity:
            return A
        columns = self.transpose(B)
        x, y, z = (self.apply(columns, row) for row in A)  # a row of A B is Bᵀ times the row of A
        return (x, y, z)

    def add_matrices(self, A: Matrix, B: Matrix) -> Matrix:
        """Return A + B."""
        return (self.add(A[0], B[0]), self.add(A[1], B[1]), self.add(A[2], B[2]))

    def as_coordinate_axis_rotation(self, C: Matrix) -> CoordinateAxisRotation | None:
        """Return C as a rotation about a coordinate axis by an angle that is no number, or None."""
        if C not in self._axes:
            self._axes[C] = self._find_axis(C)
        return self._axes[C]

    def _find_axis(self, C: Matrix) -> CoordinateAxisRotation | None:
        """Recognize a rotation about one of the three axes, by its entries."""
        for k in range(3):
            i, j = (k + 1) % 3, (k + 2) % 3
            plain = C[k][k] == self.one and {C[k][i], C[k][j], C[i][k], C[j][k]} == {self.zero}
            turns = C[i][i] == C[j][j] and C[i][j] == self.b.neg(C[j][i])
            if plain and turns and self.b.variability_rank(C[i][i]) > 0:
                return CoordinateAxisRotation(k, C[i][i], C[j][i])
        return None

    # --- congruences -------------------------------------------------------------------------------------------------

    def rotate_symmetric(self, C: Matrix, S: Matrix) -> Matrix:
        """Return C S Cᵀ for a symmetric S.

        About an axis with w = s (a − d) + 2 c b, the block [[a, b], [b, d]] becomes [[a − s w, c w − b], [·, d + s w]].
        """
        b, about = self.b, self.as_coordinate_axis_rotation(C)
        if C is self.identity:
            return S
        if about is None:
            T = self.product(C, S)
            return self._symmetric({(i, j): self.dot(T[i], C[j]) for i in range(3) for j in range(i, 3)})
        k, c, s = about.k, about.c, about.s
        i, j = (k + 1) % 3, (k + 2) % 3
        half = S[i][j]
        w = b.add(b.mul(s, b.sub(S[i][i], S[j][j])), b.mul(c, b.add(half, half)))
        sw, cw = b.mul(s, w), b.mul(c, w)
        x, y = S[i][k], S[j][k]
        entries = {
            (i, i): b.sub(S[i][i], sw),
            (j, j): b.add(S[j][j], sw),
            (i, j): b.sub(cw, half),
            (i, k): b.sub(b.mul(c, x), b.mul(s, y)),
            (j, k): b.add(b.mul(s, x), b.mul(c, y)),
            (k, k): S[k][k],
        }
        return self._symmetric(entries)

    def rotate(self, C: Matrix, H: Matrix) -> Matrix:
        """Return C H Cᵀ."""
        b, about = self.b, self.as_coordinate_axis_rotation(C)
        if C is self.identity:
            return H
        if about is None:
            return self.product(self.product(C, H), self.transpose(C))
        k, c, s = about.k, about.c, about.s
        i, j = (k + 1) % 3, (k + 2) % 3
        w = b.add(b.mul(s, b.sub(H[i][i], H[j][j])), b.mul(c, b.add(H[i][j], H[j][i])))
        sw, cw = b.mul(s, w), b.mul(c, w)
        rows = [[self.zero] * 3 for _ in range(3)]
        rows[i][i], rows[j][j] = b.sub(H[i][i], sw), b.add(H[j][j], sw)
        rows[i][j], rows[j][i] = b.sub(cw, H[j][i]), b.sub(cw, H[i][j])
        rows[i][k] = b.sub(b.mul(c, H[i][k]), b.mul(s, H[j][k]))
        rows[j][k] = b.add(b.mul(s, H[i][k]), b.mul(c, H[j][k]))
        rows[k][i] = b.sub(b.mul(c, H[k][i]), b.mul(s, H[k][j]))
        rows[k][j] = b.add(b.mul(s, H[k][i]), b.mul(c, H[k][j]))
        rows[k][k] = H[k][k]
        x, y, z = ((row[0], row[1], row[2]) for row in rows)
        return (x, y, z)

    def cross_left(self, r: Vector, M: Matrix) -> Matrix:
        """r̂ M: every column of M crossed."""
        x, y, z = zip(*M, strict=True)
        return self.transpose((self.cross(r, x), self.cross(r, y), self.cross(r, z)))

    def _symmetric(self, entries: dict[tuple[int, int], int]) -> Matrix:
        """Return a full 3 × 3 matrix from the entries of one triangle."""
        full = entries | {(j, i): node for (i, j), node in entries.items()}
        x, y, z = ((full[i, 0], full[i, 1], full[i, 2]) for i in range(3))
        return (x, y, z)
