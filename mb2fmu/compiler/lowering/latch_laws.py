"""Latches as nodes: forces of held rows, impulses where latches close, and their effect on contacts.

With W = G M^-1 G^T over the rows L of latches, of which those that are held count, and J = M^-1 G^T:

    lambda = lambda_0 + sum lambda_c N_c      W_LL lambda_0 = -phi''_free,  W_LL lambda_c = -W_Lc
    u'     = u'_free + J_L lambda_0           without contacts
    J_c    + J_L lambda_c                     what a contact's force or impulse changes u' or u by
    Lambda = -W_LL^-1 phi'                    over the rows that are held behind a closing

A contact's row that held rows hold still already is pinned: W_cc + W_cL lambda_c is nothing but round-off.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.compiler.lowering.contact_mobility import define_contact_response_sums, split_nodes_into_matrix_rows
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.numerics.frictionless_impacts_and_resting_forces import ActiveRowSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion
from mb2fmu.model.quantity_declarations import MODE_THRESHOLD

_HELD_ROW_TOLERANCE = 1e-9
"""Part of its own W_cc that a contact's row still moves with, below which latches hold it still."""


class LatchForceLowering:
    """The latches of equations.

    Args:
        builder: Takes the nodes.
        equations: With latches.
        free: Symbols of u' without the forces of latches and contacts.
        response: Symbols of M^-1 G^T, a column for each row of latches, then one for each contact.

    Attributes:
        free: Symbols of u' without the forces of contacts.
        response: Symbols of what the force of each contact changes u' by.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        equations: EquationsOfMotion,
        free: Sequence[sm.Symbol],
        response: Sequence[Sequence[sm.Symbol]],
    ) -> None:
        assert equations.latches is not None
        self._builder, self._equations, self._latches = builder, equations, equations.latches
        self._rows = equations.latches.rows
        self._contact_rows = equations.contacts.rows if equations.contacts else ()
        self._pinned = equations.contacts.held_by_latches if equations.contacts else ()
        self._bare, self._columns = free, response
        r, n, k = len(self._rows), len(equations.u), len(self._contact_rows)
        self._W = [[sm.Dummy(f"held_{i}_{j}") for j in range(r)] for i in range(r + k)]
        self._alone = [sm.Dummy(f"alone_{i}") for i in range(r)]
        self._answers = [[sm.Dummy(f"answer_{c}_{i}") for i in range(r)] for c in range(k)]
        self.free = [sm.Dummy(f"latched_{i}") for i in range(n)]
        self.response = [[sm.Dummy(f"latched_{c}_{i}") for i in range(n)] for c in range(k)]

    def define(self, walker: SympyLowering) -> None:
        """Define forces, impulses, jumps, ``free``, ``response`` and what is pinned."""
        self._define_mobility(walker)
        self._define_forces(walker)
        self._define_pinned(walker)
        self._define_motion(walker)
        self._define_closing(walker)

    def _held(self) -> list[sm.Symbol]:
        """Return W over the rows of latches."""
        return [entry for row in self._W[: len(self._rows)] for entry in row]

    def _define_mobility(self, walker: SympyLowering) -> None:
        """Define W = G J: rows of latches and of contacts, columns of latches."""
        b, r, n = self._builder, len(self._rows), len(self._equations.u)
        jacobians = [row.jacobian for row in (*self._rows, *self._contact_rows)]
        entries = [entry for jacobian in jacobians for entry in jacobian]
        columns = [symbol for column in self._columns[:r] for symbol in column]

        def mobility(nodes: Sequence[int]) -> list[int]:
            """Return W row by row; the same node on both sides of the diagonal."""
            G = split_nodes_into_matrix_rows(nodes[: n * len(jacobians)], n)
            J = split_nodes_into_matrix_rows(nodes[n * len(jacobians) :], n)
            return [b.dot(G[max(i, j)], J[min(i, j)]) for i in range(len(G)) for j in range(r)]

        walker.define([symbol for row in self._W for symbol in row], [*entries, *columns], mobility)

    def _define_forces(self, walker: SympyLowering) -> None:
        """Define the forces that hold the rows without contacts, each contact's addition, and the sum of both."""
        b, r, e = self._builder, len(self._rows), self._equations
        accelerations = [row.stabilized_acceleration(e.u, self._bare) for row in self._rows]
        beside = [entry for row in self._W[r:] for entry in row]
        needs = [*self._held(), *self._latches.engaged_states, *accelerations, *beside]

        def forces(nodes: Sequence[int]) -> list[int]:
            """Return the forces of the rows alone, then what each contact adds."""
            W, rest = split_nodes_into_matrix_rows(nodes[: r * r], r), nodes[r * r :]
            half = b.constant(MODE_THRESHOLD)
            held = [b.binary(Op.LT, half, node) for node in rest[:r]]
            system = ActiveRowSystem(b, W, held, "the forces of latches")
            return [
                force
                for right in split_nodes_into_matrix_rows(rest[r:], r)
                for force in system.solve([b.neg(x) for x in right])
            ]

        answers = [symbol for answer in self._answers for symbol in answer]
        walker.define([*self._alone, *answers], needs, forces)
        for i, row in enumerate(self._rows):
            parts = (answer[i] * c.force for answer, c in zip(self._answers, self._contact_rows, strict=True))
            walker.define([row.force], [sm.Add(self._alone[i], *parts)], lambda nodes: nodes)

    def _define_pinned(self, walker: SympyLowering) -> None:
        """Define which rows of contacts closed latches hold still."""
        b, r, n = self._builder, len(self._rows), len(self._equations.u)

        def pinned(nodes: Sequence[int]) -> list[int]:
            """Return 1 or 0 from G_c, J_c, W_cL and lambda_c."""
            (G, J), (W, answers) = (
                split_nodes_into_matrix_rows(nodes[: 2 * n], n),
                split_nodes_into_matrix_rows(nodes[2 * n :], r),
            )
            alone = b.dot(G, J)
            left = b.add(alone, b.dot(W, answers))
            still = b.binary(Op.LT, left, b.mul(b.constant(_HELD_ROW_TOLERANCE), alone))
            return [b.select(still, b.constant(1.0), b.constant(0.0))]

        for c, (contact_row, symbol) in enumerate(zip(self._contact_rows, self._pinned, strict=True)):
            needs = [*contact_row.jacobian, *self._columns[r + c], *self._W[r + c], *self._answers[c]]
            walker.define([symbol], needs, pinned)

    def _define_motion(self, walker: SympyLowering) -> None:
        """Define u' without contacts, and the change of u' by contacts."""
        before = (self._bare, *self._columns[len(self._rows) :])
        after, weights = (self.free, *self.response), (self._alone, *self._answers)
        for column, found, forces in zip(before, after, weights, strict=True):
            define_contact_response_sums(self._builder, walker, found, column, self._columns[: len(self._rows)], forces)

    def _define_closing(self, walker: SympyLowering) -> None:
        """Define impulses of latches that close at this instant, and the jumps of speeds."""
        b, r, e, latches = self._builder, len(self._rows), self._equations, self._latches
        impulse_symbols = [row.impact_impulse for row in self._rows]
        needs = [*self._held(), *latches.holding_flags, *latches.closing_flags, *(row.rate(e.u) for row in self._rows)]

        def form_closing_impulses(nodes: Sequence[int]) -> list[int]:
            """Return one impulse per row; 0 where nothing closes."""
            W, rest = split_nodes_into_matrix_rows(nodes[: r * r], r), nodes[r * r :]
            half, zero = b.constant(MODE_THRESHOLD), b.constant(0.0)
            held = [b.binary(Op.LT, half, node) for node in rest[:r]]
            some = b.binary(Op.LT, half, b.sum(list(rest[r : 2 * r])))
            system = ActiveRowSystem(b, W, held, "the impulses of latches")
            return [b.select(some, impulse, zero) for impulse in system.solve([b.neg(x) for x in rest[2 * r :]])]

        walker.define(impulse_symbols, needs, form_closing_impulses)
        define_contact_response_sums(
            b, walker, latches.jumps, [sm.S.Zero] * len(e.u), self._columns[:r], impulse_symbols
        )
