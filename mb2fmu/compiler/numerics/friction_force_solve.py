"""Forces or impulses of contacts with friction whose modes are known, as nodes.

Of each contact y_n = 0 where it is pressed, else N is given; of each with friction y_t = 0 where it sticks, else
T + mu sense N = 0. That is one linear system, whose matrix is not symmetric where something slides. Rows may say the
same (two feet of one body that stick): the system is made regular by a little on its diagonal, and refined by what that
leaves of the right-hand side, so that nothing is missing of what moves, and of the rest nearly the least norm is taken.

Rows that say the same may want what no force gives: two ends of a rod that stick while it still turns by drift. Divided
by the little on the diagonal that would be forces without measure. So the system is solved twice: what the first
solution gives is what can be had, and the second one gives that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op

NodeMatrix = list[list[int]]

_DIAGONAL_REGULARIZATION = 1e-7  # rows are scaled to unit length
_REFINEMENTS = 3


@dataclass(frozen=True, slots=True)
class FrictionContactMatrix:
    """Quantities of contacts, as nodes.

    Attributes:
        W: Shape (k + f, k + f): normals of all contacts, then tangents of those with friction.
        tangents: Of each contact the number of its tangent among the rows, or -1.
        coefficients: mu of those with friction.
    """

    W: NodeMatrix
    tangents: Sequence[int]
    coefficients: Sequence[int]


class FrictionForceSolver:
    """Solves for N and T of contacts.

    Args:
        builder: Takes the nodes.
        frictions: The contacts.
        held: Truth of each row: y = 0.
        senses: Of those with friction: of slip; 0 where there is none.
        name: What is solved for.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        frictions: FrictionContactMatrix,
        held: Sequence[int],
        senses: Sequence[int],
        name: str,
    ) -> None:
        b, n = builder, len(held)
        zero, one = b.constant(0.0), b.constant(1.0)
        W = frictions.W
        self._builder, self._held = b, held
        contact_of_tangent = {tangent: k for k, tangent in enumerate(frictions.tangents) if tangent >= 0}
        # The row of an open contact may vanish, as where a pendulum stands upright above its floor: it has no length.
        # All other rows have: scaled entries of at most 1 let each open row be its own pivot, so that its force is 0.
        acts = [
            b.binary(Op.OR, held[i], held[contact_of_tangent[i]]) if i in contact_of_tangent else held[i]
            for i in range(n)
        ]
        self._scales = scales = [
            b.div(one, b.unary(Op.SQRT, b.select(b.binary(Op.OR, each, b.binary(Op.LT, zero, W[i][i])), W[i][i], one)))
            for i, each in enumerate(acts)
        ]
        ratio = {
            tangent: b.div(b.mul(b.mul(mu, sense), scales[k]), scales[tangent])
            for (tangent, k), mu, sense in zip(contact_of_tangent.items(), frictions.coefficients, senses, strict=True)
        }
        self._matrix = [
            [
                b.select(
                    held[i],
                    one if i == j else b.mul(b.mul(scales[i], scales[j]), W[i][j]),
                    one if i == j else ratio[i] if contact_of_tangent.get(i) == j else zero,
                )
                for j in range(n)
            ]
            for i in range(n)
        ]
        self._refined = _REFINEMENTS if len(frictions.tangents) > 1 else 0
        regular = [list(row) for row in self._matrix]
        for i in range(n) if self._refined else ():
            regular[i][i] = b.select(held[i], b.constant(1.0 + _DIAGONAL_REGULARIZATION), one)
        self._system = FactoredLinearSystem(b, regular, name)

    def solve(self, right: Sequence[int], given: Sequence[int] | None = None) -> list[int]:
        """Return N and T.

        Args:
            right: What y has to change by, of each row.
            given: N of contacts that are not pressed; None: 0.
        """
        b, zero = self._builder, self._builder.constant(0.0)
        free = [zero] * len(right)
        if given is not None:
            free = [*given, *free[len(given) :]]
        wanted = [
            b.select(held, b.mul(scale, value), b.div(other, scale))
            for held, scale, value, other in zip(self._held, self._scales, right, free, strict=True)
        ]
        z = self._solve_refined(wanted)
        if self._refined:
            z = self._solve_refined([b.dot(row, z) for row in self._matrix])
        return [b.mul(scale, value) for scale, value in zip(self._scales, z, strict=True)]

    def _solve_refined(self, wanted: Sequence[int]) -> list[int]:
        """Return a solution of the scaled system, nearly of least norm."""
        b = self._builder
        z = self._system.solve(wanted)
        for _ in range(self._refined):
            left = [b.sub(want, b.dot(row, z)) for want, row in zip(wanted, self._matrix, strict=True)]
            z = [b.add(x, y) for x, y in zip(z, self._system.solve(left), strict=True)]
        return z
