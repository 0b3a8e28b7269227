"""Solves of the equations of motion, as nodes: dependent speeds, accelerations, and linear systems in general.

With m velocity constraints A u + b = 0, A u' + γ = 0 and the dynamics M u' = f there are two cases:

- M square, over all speeds: u' = S u_i' + s, where S spans what the constraints leave free
  (A_d S_d = −A_i, identity in the independent rows) and s_d solves A_d s_d = −γ, so that
  (Sᵀ M S) u_i' = Sᵀ (f − M s), symmetric positive definite.
- M with n_u − m rows (Kane's equations with dependent speeds): stacked over A u' = −γ, solved by pivoted LU.

Where all speeds are states (treatments ``attractor`` and ``multipliers``) u' and λ come together, see ``multipliers``.
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy as sm

from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem
from mb2fmu.compiler.numerics.multiplier_solve import MultiplierSystem
from mb2fmu.compiler.numerics.regularized_constraint_systems import solve_least_norm_multipliers
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, VelocityConstraints

NodeMatrix = list[list[int]]


class ConstrainedDynamicsSolver:
    """Accelerations of constrained and unconstrained equations.

    Args:
        builder: Takes the nodes.
        equations: Whose dynamics are solved.
    """

    def __init__(self, builder: ProgramBuilder, equations: EquationsOfMotion) -> None:
        self._builder = builder
        self._equations = equations
        self._m = len(equations.velocity_constraints.names) if equations.velocity_constraints else 0
        self._system: MultiplierSystem | None = None

    @property
    def _reducing(self) -> VelocityConstraints | None:
        """The rows that determine the dependent speeds."""
        return self._equations.reduction or self._equations.velocity_constraints

    # --- speeds ------------------------------------------------------------------------------------------------------

    def speed_expressions(self) -> list[sm.Basic]:
        """Return expressions that :meth:`dependent_speeds` takes lowered: A, b and the independent u."""
        e = self._equations
        c = self._reducing
        assert c is not None
        return [*c.jacobian, *c.offset, *(e.u[i] for i in e.u_independent)]

    def dependent_speeds(self, nodes: Sequence[int]) -> list[int]:
        """A_d u_d = −(A_i u_i + b)."""
        e, b, m = self._equations, self._builder, self._m
        n = len(e.u)
        A = _matrix_rows(nodes, m, n)
        offset, independent = nodes[m * n : m * n + m], nodes[m * n + m :]
        right = [
            b.neg(b.sum([*(b.mul(row[j], u) for j, u in zip(e.u_independent, independent, strict=True)), offset[i]]))
            for i, row in enumerate(A)
        ]
        return self._constraints(A).solve(right)

    def _constraints(self, A: NodeMatrix) -> FactoredLinearSystem:
        """Return the system that gives dependent speeds: the columns of A that belong to them."""
        dependent = self._equations.u_dependent
        names = ", ".join(str(self._equations.u[i]) for i in dependent)
        return FactoredLinearSystem(
            self._builder, [[row[j] for j in dependent] for row in A], f"the dependent speeds {names}"
        )

    # --- accelerations -----------------------------------------------------------------------------------------------

    def acceleration_expressions(self) -> list[sm.Basic]:
        """Return expressions that :meth:`accelerations` takes lowered: M, f, A and γ."""
        d, c = self._equations.mass_and_forcing, self._reducing
        return [*d.mass_matrix, *d.forcing, *((*c.jacobian, *self._bias()) if c else ())]

    def _bias(self) -> list[sm.Expr]:
        """Return γ, with Baumgarte's terms if requested."""
        e = self._equations
        c = self._reducing
        assert c is not None
        if e.baumgarte is None:
            return list(c.bias)
        a, b = e.baumgarte
        rates = c.jacobian * sm.Matrix(e.u) + c.offset
        phi = [row for _, row in e.holonomic] + [sm.S.Zero] * (self._m - len(e.holonomic))
        return [g + 2 * a * rate + b**2 * row for g, rate, row in zip(c.bias, rates, phi, strict=True)]

    def accelerations(self, nodes: Sequence[int]) -> list[int]:
        """Return u' of all speeds."""
        return self.forward(nodes, [()])[0]

    def accelerations_and_multipliers(self, nodes: Sequence[int]) -> list[int]:
        """Return u', then λ if the equations have symbols for it and all speeds are states."""
        u_dot, multipliers = self._with_multipliers(nodes)
        return [*u_dot, *multipliers] if self._equations.multipliers else u_dot

    @property
    def requires_multipliers(self) -> bool:
        """Whether all speeds are states, so that λ is needed to know u'."""
        return self._m > 0 and not self._equations.u_dependent

    def _with_multipliers(self, nodes: Sequence[int], force: Sequence[int] = ()) -> tuple[list[int], list[int]]:
        """Solve M u' + Aᵀλ = f + force, A u' + γ = 0; `nodes` are M, f, A and γ in this order."""
        b, n, m = self._builder, len(self._equations.u), self._m
        f, rest = nodes[n * n : n * n + n], nodes[n * n + n :]
        load = [b.add(x, y) for x, y in zip(f, force, strict=True)] if force else list(f)
        return self._multiplier_system(nodes[: n * n], rest[: m * n]).solve(load, rest[m * n :])

    def _multiplier_system(self, M: Sequence[int], A: Sequence[int]) -> MultiplierSystem:
        """Return the multiplier system, shared by all requests: M and A are the same nodes each time."""
        n, m = len(self._equations.u), self._m
        if self._system is None:
            redundant = self._equations.redundant_rows
            self._system = MultiplierSystem(
                self._builder, _matrix_rows(M, n, n), _matrix_rows(A, m, n), redundant, self._equations.row_lengths
            )
        return self._system

    def projection_expressions(self) -> list[sm.Basic]:
        """Return expressions that :meth:`projected_speeds` takes lowered before the speeds: M, A and b."""
        e = self._equations
        c = e.velocity_constraints
        assert c is not None
        return [*e.mass_and_forcing.mass_matrix, *c.jacobian, *c.offset]

    def projected_speeds(self, nodes: Sequence[int]) -> list[int]:
        """Return the speeds on the constraints that are nearest to given ones, where all are states."""
        n, m = len(self._equations.u), self._m
        A, rest = nodes[n * n : n * n + m * n], nodes[n * n + m * n :]
        return self._multiplier_system(nodes[: n * n], A).project(rest[m:], rest[:m])

    def forward(self, nodes: Sequence[int], forces: Sequence[Sequence[int]]) -> NodeMatrix:
        """Return u' for several sets of generalized forces added to f; factorized once.

        Args:
            nodes: Of :meth:`acceleration_expressions`.
            forces: Each one node per row of M, or nothing for no added forces.
        """
        b, e, m = self._builder, self._equations, self._m
        if self.requires_multipliers:
            return [self._with_multipliers(nodes, force)[0] for force in forces]
        n = len(e.u)
        rows = e.mass_and_forcing.mass_matrix.rows
        M = _matrix_rows(nodes, rows, n)
        f = list(nodes[rows * n : rows * n + rows])
        loads = [[b.add(x, y) for x, y in zip(f, force, strict=True)] if force else f for force in forces]
        if m == 0:
            return FactoredLinearSystem(b, M, "the mass matrix", symmetric=True).solve_all(loads)
        rest = nodes[rows * n + rows :]
        A, gamma = _matrix_rows(rest, m, n), list(rest[m * n :])
        if rows == n:
            return self._reduced(M, A, gamma, loads)
        bias = [b.neg(node) for node in gamma]
        stacked = FactoredLinearSystem(b, M + A, "the mass matrix with the velocity constraints")
        return stacked.solve_all([[*load, *bias] for load in loads])

    def response(self, nodes: Sequence[int], columns: NodeMatrix) -> tuple[NodeMatrix, NodeMatrix]:
        """Return u' of generalized forces alone, without other forces and bias; and λ where all speeds are states.

        Args:
            nodes: Of :meth:`acceleration_expressions`.
            columns: Generalized forces, one node per speed, for each set.
        """
        b, e, m = self._builder, self._equations, self._m
        n, zero = len(e.u), self._builder.constant(0.0)
        rows = e.mass_and_forcing.mass_matrix.rows
        rest = nodes[rows * n + rows :]
        if self.requires_multipliers:
            system = self._multiplier_system(nodes[: n * n], rest[: m * n])
            both = [system.solve(column, [zero] * m) for column in columns]
            return [found[0] for found in both], [found[1] for found in both]
        M = _matrix_rows(nodes, rows, n)
        if m == 0:
            return FactoredLinearSystem(b, M, "the mass matrix", symmetric=True).solve_all(columns), []
        A = _matrix_rows(rest, m, n)
        if rows == n:
            return self._reduced(M, A, [zero] * m, columns), []
        stacked = FactoredLinearSystem(b, M + A, "the mass matrix with the velocity constraints")
        return stacked.solve_all([[*self._along(A, column), *([zero] * m)] for column in columns]), []

    def _along(self, A: NodeMatrix, force: Sequence[int]) -> list[int]:
        """Return generalized forces of the independent speeds; those of dependent ones follow by A."""
        b, e = self._builder, self._equations
        constraints = self._constraints(A)
        taken = []
        for j in e.u_independent:
            column = constraints.solve([b.neg(row[j]) for row in A])
            along = b.dot([force[i] for i in e.u_dependent], column)
            taken.append(b.add(force[j], along))
        return taken

    def inverse(self, nodes: Sequence[int], u_dot: Sequence[int]) -> list[int]:
        """Return M u' − f, the generalized forces that must be added for the given u', one per row of M."""
        b, n = self._builder, len(self._equations.u)
        rows = self._equations.mass_and_forcing.mass_matrix.rows
        M, f = _matrix_rows(nodes, rows, n), nodes[rows * n : rows * n + rows]
        return [b.sub(b.dot(row, u_dot), load) for row, load in zip(M, f, strict=True)]

    def multiplier_expressions(self, pushes: Sequence[sm.Expr] = ()) -> list[sm.Basic]:
        """Return expressions that :meth:`multipliers` takes lowered: M, f with added forces, A and u'."""
        e = self._equations
        d, c = e.mass_and_forcing, e.velocity_constraints
        forcing = [sm.Add(f, push) for f, push in zip(d.forcing, pushes, strict=True)] if pushes else d.forcing
        return [*d.mass_matrix, *forcing, *(c.jacobian if c else ()), *e.u_dot]

    def multipliers(self, nodes: Sequence[int]) -> list[int]:
        """Return λ from the dependent speeds' rows of Aᵀλ = f - M u'; the other rows are then satisfied.

        Where A loses rank on the way, so that other rows stand in for it, λ is that of least norm.

        Args:
            nodes: Of :meth:`multiplier_expressions`.
        """
        b, e, m = self._builder, self._equations, self._m
        n = len(e.u)
        M, f = _matrix_rows(nodes, n, n), nodes[n * n : n * n + n]
        A, u_dot = _matrix_rows(nodes[n * n + n :], m, n), nodes[-n:]
        M = [[M[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
        if e.reduction is not None:
            return solve_least_norm_multipliers(
                b, A, [b.sub(f[i], b.dot(M[i], u_dot)) for i in range(n)], e.row_lengths
            )
        left = [b.sub(f[i], b.dot(M[i], u_dot)) for i in e.u_dependent]
        transposed = [[A[row][i] for row in range(m)] for i in e.u_dependent]
        return FactoredLinearSystem(b, transposed, "the multipliers").solve(left)

    def _reduced(self, M: NodeMatrix, A: NodeMatrix, gamma: list[int], loads: NodeMatrix) -> NodeMatrix:
        """Reduce the equations to the independent speeds, by the null space of the velocity constraints."""
        b, e = self._builder, self._equations
        n, independent, dependent = len(e.u), e.u_independent, e.u_dependent
        zero, one = b.constant(0.0), b.constant(1.0)
        constraints = self._constraints(A)
        columns = constraints.solve_all([[b.neg(row[j]) for row in A] for j in independent])
        s_dependent = constraints.solve([b.neg(node) for node in gamma])
        S = [[zero] * len(independent) for _ in range(n)]  # rows: all speeds
        s = [zero] * n
        for k, i in enumerate(independent):
            S[i][k] = one
        for row, i in enumerate(dependent):
            S[i] = [column[row] for column in columns]
            s[i] = s_dependent[row]
        span = [[row[k] for row in S] for k in range(len(independent))]  # columns of S
        M = [[M[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
        MS = [[b.dot(row, column) for row in M] for column in span]  # columns of M S
        Ms = [b.dot(row, s) for row in M]
        reduced = [
            [b.dot(column, MS[k]) if k <= i else zero for k in range(len(span))] for i, column in enumerate(span)
        ]
        right = [
            [b.dot(column, [b.sub(x, y) for x, y in zip(load, Ms, strict=True)]) for column in span] for load in loads
        ]
        system = FactoredLinearSystem(b, reduced, "the mass matrix of the independent speeds", symmetric=True)
        return [[b.add(b.dot(S[i], u_i), s[i]) for i in range(n)] for u_i in system.solve_all(right)]


def _matrix_rows(nodes: Sequence[int], rows: int, columns: int) -> NodeMatrix:
    """Return nodes as a matrix, row by row."""
    return [list(nodes[i * columns : i * columns + columns]) for i in range(rows)]
