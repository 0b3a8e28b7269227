"""Common part of the laws of contacts with and without friction: rows G, responses M⁻¹ Gᵀ, and W = G M⁻¹ Gᵀ."""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.mechanics.equations.contact_equations import ContactEquations
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion

NodeMatrix = list[list[int]]


class ContactMobility:
    """The contacts of equations, and the effects of their forces.

    Args:
        builder: Takes the nodes.
        equations: With contacts.
        free: Symbols of u' without the forces of contacts.
        response: Symbols of M⁻¹ Gᵀ, row by row of G: what a unit of each force changes u' by.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        equations: EquationsOfMotion,
        free: Sequence[sm.Symbol],
        response: Sequence[Sequence[sm.Symbol]],
    ) -> None:
        assert equations.contacts is not None
        self._builder, self._equations = builder, equations
        self._contacts: ContactEquations = equations.contacts
        self._free, self._response = free, response
        self._pinned = self._contacts.held_by_latches
        n = len(response)
        self._W = [[sm.Dummy(f"W_{i}_{j}") for j in range(n)] for i in range(n)]

    def _define_mobility(self, walker: SympyLowering) -> list[sm.Symbol]:
        """Define W from G, row by row, and the responses, and return its symbols; pinned rows stand alone in it."""
        b, n, size = self._builder, len(self._equations.u), len(self._response)
        rows = [entry for row in self._contacts.rows for entry in row.jacobian]
        flat = [symbol for column in self._response for symbol in column]
        W = [symbol for row in self._W for symbol in row]

        def mobility(nodes: Sequence[int]) -> list[int]:
            """Return W row by row; the same node on both sides of the diagonal."""
            parts, pinned = split_nodes_into_matrix_rows(nodes[: 2 * n * size], n), nodes[2 * n * size :]
            found = []
            for i in range(size):
                for j in range(size):
                    entry = b.dot(parts[max(i, j)], parts[size + min(i, j)])
                    for k in {i, j} if pinned else ():
                        entry = b.select(pinned[k], b.constant(float(i == j)), entry)
                    found.append(entry)
            return found

        walker.define(W, [*rows, *flat, *self._pinned], mobility)
        return W

    def _where_free(self, walker: SympyLowering, accelerations: Sequence[sm.Expr]) -> list[sm.Expr]:
        """Return the accelerations of rows, without any contact's force; zeros at pinned rows."""
        if not self._pinned:
            return [*accelerations]
        b, size = self._builder, len(accelerations)
        found = [sm.Dummy(f"level_{i}") for i in range(size)]

        def moving(nodes: Sequence[int]) -> list[int]:
            """Return the values, 0 at pinned rows."""
            return [b.select(pinned, b.constant(0.0), x) for x, pinned in zip(nodes[:size], nodes[size:], strict=True)]

        walker.define(found, [*accelerations, *self._pinned], moving)
        return [*found]

    def _define_sums(
        self, walker: SympyLowering, after: Sequence[sm.Symbol], before: Sequence[sm.Expr], forces: Sequence[sm.Symbol]
    ) -> None:
        """Define a vector as another one plus what the given forces or impulses of all rows change it by."""
        define_contact_response_sums(self._builder, walker, after, before, self._response, forces)


def define_contact_response_sums(
    b: ProgramBuilder,
    walker: SympyLowering,
    after: Sequence[sm.Symbol],
    before: Sequence[sm.Expr],
    responses: Sequence[Sequence[sm.Symbol]],
    forces: Sequence[sm.Symbol],
) -> None:
    """Define after := before + sum of responses times forces.

    Args:
        b: Takes the nodes.
        walker: Knows the symbols.
        after: One symbol per speed.
        before: One expression per speed.
        responses: M⁻¹ Gᵀ, a column for each force.
        forces: Or impulses.
    """
    n = len(after)

    def sums(nodes: Sequence[int]) -> list[int]:
        """Return one sum per speed."""
        start, factors, columns = (
            nodes[:n],
            nodes[n : n + len(forces)],
            split_nodes_into_matrix_rows(nodes[n + len(forces) :], n),
        )
        return [
            b.sum([start[i], *(b.mul(column[i], factor) for column, factor in zip(columns, factors, strict=True))])
            for i in range(n)
        ]

    walker.define(after, [*before, *forces, *(symbol for column in responses for symbol in column)], sums)


def split_nodes_into_matrix_rows(nodes: Sequence[int], size: int) -> NodeMatrix:
    """Return nodes in groups of one size."""
    return [list(nodes[i : i + size]) for i in range(0, len(nodes), size)]
