"""``lower_equations_to_program``: EquationsOfMotion → Program. SymPy expressions end here.

Entry points of a lowered program (labels in brackets):

    prepare           calculated parameters; reads parameters only [their names]
    position          outputs that need q and t [output names]
    velocity          outputs that need u too [output names]
    acceleration      outputs that need u' or constraint forces [output names]
    outputs           all outputs in declared order [output names]
    dependent_speeds  speeds that follow from the velocity constraints [names]
    rhs               x' in the order q, independent u, z [state names]
    accelerations     u' of all speeds [names]
    project           P(x) where the constraints attract the states: the first states, q and u [names]; else nothing
    energy            as far as known [kinetic, potential, power]
    equations         for people and tests [M[i,j] row by row, f[i]]
    forward, inverse  on request: u' for added generalized forces, and forces for given u'
    tangent, adjoint, jacobian, jacobian_time   added by ``add_ensemble_sensitivities``

Constraint diagnostics as nodes: residuals of the states, rank and condition of the Jacobian.

Rank and condition come from S = A Aᵀ, the longest row of unit length: in S = L D Lᵀ a pivot d_i is the squared distance
of row i from the span of the rows before it, 0 where it follows from them or vanishes. Rows are not scaled one by one:
where a linkage lies flat it is a single row that vanishes. No pivot is larger than the largest eigenvalue of S, none
smaller than the smallest, so √(largest / smallest) is an estimate, from below, of the condition of A. Where rows are
known to be redundant as many of the smallest pivots, which are round-off, are left out: what remains is of the rows
that do not follow from those before them. Source: Golub and Van Loan, Matrix Computations, 4th ed. 2013, sec. 4.2.

Dependent coordinates as nodes, by Newton's method from their last values.

phi(q_independent, q_dependent, t, p) = 0 has a solution near the last one as long as the columns of the dependent
coordinates in the Jacobian G span what all columns span: that is the chart. How well they do is seen from
S = D Dᵀ, D the dependent columns of G with rows of unit length (over all columns): its pivots in S = L D Lᵀ are squared
distances, at most 1, of one row from those before it. Where one falls below :data:`MIN_SQUARED_PIVOT` the chart is
left, and no solution is given. Source: Wehage and Haug, Journal of Mechanical Design 104 (1982) 247-255.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Literal

import sympy as sm

from mb2fmu.compiler.lowering.acceleration_solves import ConstrainedDynamicsSolver
from mb2fmu.compiler.lowering.position_projection import PositionProjection
from mb2fmu.compiler.lowering.recursion import LinkRecursionMotion
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem, solve_dense_system
from mb2fmu.compiler.numerics.regularized_constraint_systems import (
    GRAM_REGULARIZATION,
    compute_inverse_row_lengths,
    form_gram_matrix,
    project_speeds_on_constraints,
    scale_constraint_rows,
)
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.scalar_program import Op, ProgramVariableLayout, ScalarProgram
from mb2fmu.errors import Fault, LoweringError
from mb2fmu.mechanics.equations.equations_of_motion import (
    DIAGNOSTIC_SYMBOLS,
    EquationsOfMotion,
    LinearSystemAssignment,
    SymbolAssignment,
)
from mb2fmu.mechanics.equations.link_recursion import ArticulatedBodyStructure

_DEPENDENT_ROW_TOLERANCE = 1e-10
"""A squared distance below it, the longest row being 1: the row counts as one that follows from those before it."""

_MIN_LARGEST_PIVOT = 1e-300  # where all rows vanish


OptionalEntry = Literal["forward", "inverse"]


def _define_constraint_diagnostics(
    walker: SympyLowering, equations: EquationsOfMotion, raw: Mapping[sm.Symbol, sm.Symbol]
) -> None:
    """Define the symbols of ``DIAGNOSTIC_SYMBOLS``; each is computed only if requested.

    Args:
        walker: Takes the definitions.
        equations: Whose constraints they are of.
        raw: Coordinate or speed → symbol of the state itself, where they are its projection.
    """
    c, b = equations.velocity_constraints, walker.builder
    if c is None:
        return
    m, n = c.jacobian.shape
    phi = [row.xreplace(dict(raw)) for _, row in equations.position_rows]
    walker.define([DIAGNOSTIC_SYMBOLS.position_residual], phi, lambda nodes: [_largest_magnitude(b, nodes)])
    speeds = [raw.get(u, u) for u in equations.u]

    def velocity_residual(nodes: Sequence[int]) -> list[int]:
        rows, offset, u = _matrix_rows(nodes, m, n), nodes[m * n : m * n + m], nodes[m * n + m :]
        return [_largest_magnitude(b, [b.add(b.dot(row, u), free) for row, free in zip(rows, offset, strict=True)])]

    walker.define([DIAGNOSTIC_SYMBOLS.velocity_residual], [*c.jacobian, *c.offset, *speeds], velocity_residual)
    walker.define(
        [DIAGNOSTIC_SYMBOLS.rank, DIAGNOSTIC_SYMBOLS.condition],
        c.jacobian,
        lambda nodes: _rank_and_condition(b, _matrix_rows(nodes, m, n), len(equations.redundant_rows)),
    )


def _rank_and_condition(b: ProgramBuilder, A: Sequence[list[int]], redundant: int) -> list[int]:
    """Return the rank of A (rows) by the pivots of its Gram matrix, and its condition without redundant rows."""
    S = form_gram_matrix(b, list(A), list(A))
    longest = b.binary(
        Op.MAX,
        reduce(lambda x, y: b.binary(Op.MAX, x, y), [S[i][i] for i in range(len(S))]),
        b.constant(_MIN_LARGEST_PIVOT),
    )
    pivots = _regularized_pivots(b, [[b.div(entry, longest) for entry in row] for row in S])
    rank = b.sum([b.binary(Op.LT, b.constant(_DEPENDENT_ROW_TOLERANCE), pivot) for pivot in pivots])
    for _ in range(redundant):
        pivots = _drop_smallest(b, pivots)
    ratio = b.div(
        reduce(lambda x, y: b.binary(Op.MAX, x, y), pivots), reduce(lambda x, y: b.binary(Op.MIN, x, y), pivots)
    )
    return [rank, b.unary(Op.SQRT, ratio)]


def _regularized_pivots(b: ProgramBuilder, S: list[list[int]]) -> list[int]:
    """Return D of (S + ε) = L D Lᵀ, none smaller than ε."""
    n, epsilon = len(S), b.constant(GRAM_REGULARIZATION)
    left = [list(row) for row in S]
    pivots = []
    for k in range(n):
        pivot = b.binary(Op.MAX, b.add(left[k][k], epsilon), epsilon)
        pivots.append(pivot)
        for i in range(k + 1, n):
            factor = b.div(left[i][k], pivot)
            for j in range(k + 1, i + 1):
                left[i][j] = b.sub(left[i][j], b.mul(factor, left[j][k]))
    return pivots


def _drop_smallest(b: ProgramBuilder, pivots: Sequence[int]) -> list[int]:
    """Return all pivots but the smallest one, by chains of minimum and maximum (no branch)."""
    smallest, others = pivots[0], []
    for pivot in pivots[1:]:
        others.append(b.binary(Op.MAX, smallest, pivot))
        smallest = b.binary(Op.MIN, smallest, pivot)
    return others


def _largest_magnitude(b: ProgramBuilder, nodes: Sequence[int]) -> int:
    """Return the node of the largest absolute value."""
    return reduce(lambda x, y: b.binary(Op.MAX, x, y), [b.unary(Op.ABS, node) for node in nodes])


def _matrix_rows(nodes: Sequence[int], rows: int, columns: int) -> list[list[int]]:
    """Return nodes as a matrix, row by row."""
    return [list(nodes[i * columns : i * columns + columns]) for i in range(rows)]


MIN_SQUARED_PIVOT = 1e-4
"""Smallest pivot, a squared distance: dependent coordinates then move about 100 times as fast as independent ones."""


class _DependentCoordinateSolver:
    """The solution of phi = 0.

    Args:
        builder: Takes the nodes.
        q: All coordinates.
        dependent: Those that are solved for, as many as rows.
        phi: One expression per row.
        lengths: Typical lengths of the rows of the Jacobian; (): all 1.
    """

    def __init__(
        self,
        builder: ProgramBuilder,
        q: Sequence[sm.Symbol],
        dependent: Sequence[sm.Symbol],
        phi: Sequence[sm.Expr],
        lengths: Sequence[float] = (),
    ) -> None:
        self._lengths = lengths
        self._builder, self._q, self._dependent, self._phi = builder, tuple(q), tuple(dependent), tuple(phi)
        free = set().union(*(row.free_symbols for row in phi)) - set(dependent)
        self.needs: tuple[sm.Symbol, ...] = tuple(sorted(free, key=lambda s: s.name))
        names = ", ".join(map(str, dependent))
        self._name = f"the dependent coordinates {names}: the motion leaves what the independent ones describe"

    def solve(self, nodes: Sequence[int], last: Sequence[int]) -> list[int]:
        """Return the dependent coordinates.

        Args:
            nodes: Of :attr:`needs`.
            last: Where they were last.
        """
        return self._builder.newton(self._body(), nodes, last, self._name)

    def _body(self) -> ScalarProgram:
        """Build the body of Newton's method: scaled residuals of the loops, one step, and the Jacobian."""
        n, q = len(self._dependent), self._q
        b = ProgramBuilder(
            ProgramVariableLayout(states=tuple(map(str, self._dependent)), parameters=tuple(map(str, self.needs)))
        )
        symbols = {symbol: b.state(i) for i, symbol in enumerate(self._dependent)}
        symbols |= {symbol: b.parameter(i) for i, symbol in enumerate(self.needs)}
        walker = SympyLowering(b, symbols)
        phi = walker.lower(self._phi)
        slopes = [[row.diff(s) if s in row.free_symbols else sm.S.Zero for s in q] for row in self._phi]
        entries = walker.lower([slope for row in slopes for slope in row])
        whole = [list(entries[i * len(q) : (i + 1) * len(q)]) for i in range(n)]
        scales = compute_inverse_row_lengths(b, whole, (), self._lengths)
        columns = [q.index(symbol) for symbol in self._dependent]
        D = scale_constraint_rows(b, scales, [[row[j] for j in columns] for row in whole])
        inside = self._inside(b, D)
        residual = [b.mul(inside, b.mul(scale, value)) for scale, value in zip(scales, phi, strict=True)]
        step = FactoredLinearSystem(b, D, self._name).solve([b.neg(value) for value in residual])
        labels = [f"y{i}" for i in range(n)]
        b.entry("residual", labels, residual)
        b.entry("step", labels, step)
        b.entry("jacobian", [f"{a} {c}" for a in labels for c in labels], [e for row in D for e in row])
        return b.build()

    def _inside(self, b: ProgramBuilder, D: list[list[int]]) -> int:
        """Return 1 inside the chart, NaN beyond its edge."""
        left = form_gram_matrix(b, D, D)
        edge, one = b.constant(MIN_SQUARED_PIVOT), b.constant(1.0)
        inside = one
        for k in range(len(left)):
            pivot = left[k][k]
            inside = b.select(b.binary(Op.LT, pivot, edge), b.constant(float("nan")), inside)
            safe = b.binary(Op.MAX, pivot, edge)
            for i in range(k + 1, len(left)):
                if b.is_zero(left[i][k]):
                    continue
                factor = b.div(left[i][k], safe)
                for j in range(k + 1, i + 1):
                    left[i][j] = left[j][i] = b.sub(left[i][j], b.mul(factor, left[j][k]))
        return inside


def lower_equations_to_program(
    equations: EquationsOfMotion, optional: Collection[OptionalEntry] = (), *, forces: int = 1
) -> ScalarProgram:
    """Return the equations as one scalar program.

    Entry points: ``prepare``, ``position``, ``velocity``, ``acceleration``, ``dependent_speeds``, ``rhs``,
    ``accelerations``, ``outputs``, ``energy``, ``equations``, ``initialize`` where start values are solved for, and
    ``remember`` and ``read_initial_discrete_memory`` where there is discrete memory (see the stage's docstring).

    Args:
        equations: Of any formulation.
        optional: More entry points, which read one seed per speed: ``forward`` gives u' with the seeds added to f as
            generalized forces (one per row of M); ``inverse`` gives M s − f, the generalized forces that would have to
            be added for u' = s.
        forces: How many sets of generalized forces ``forward`` takes at once: it reads one seed per speed for each,
            set after set, and gives as many sets of u'. Inertias are swept, or M factorized, once for all.

    Returns:
        The program, without nodes that no entry point needs.

    Raises:
        LoweringError: Names every function without a counterpart and every symbol that nothing defines; forward and
            inverse dynamics of equations with contacts or latches.
    """
    if optional and (equations.contacts or equations.latches):
        which = " and ".join(sorted(optional))
        what = f"{which} dynamics leave out the forces of contacts that rest and of closed latches"
        raise LoweringError("entry points cannot be lowered:", [Fault(what, remedy="use a model without them")])
    sets = range(forces if "forward" in optional else 1)
    seeds = [f"s {symbol}" if k == 0 else f"s{k} {symbol}" for k in sets for symbol in equations.u] if optional else []
    lowering = EquationsLowering.start_lowering(equations, seeds)
    lowering.add_motion_entries()
    lowering.add_other_entries()
    for name in sorted(optional):
        lowering.add_optional(name, forces)
    return prune_program(lowering.builder.build())


def lower_cheapest_equations(
    candidates: Sequence[EquationsOfMotion], estimate_cost: Callable[[ScalarProgram, EquationsOfMotion], float]
) -> tuple[int, ScalarProgram]:
    """Return the number of the candidate that costs least, the first of equals, and its whole program.

    Of the others only the motion is lowered: what happens at events takes as long, and costs nothing between them.

    Args:
        candidates: Equations of one mechanism.
        estimate_cost: Gives the cost of a program with the entry points up to ``rhs``.
    """
    lowerings = [EquationsLowering.start_lowering(one) for one in candidates]
    for lowering in lowerings:
        lowering.add_motion_entries()
    costs = [estimate_cost(one.builder.build(), one.equations) for one in lowerings]
    best = costs.index(min(costs))
    lowerings[best].add_other_entries()
    return best, prune_program(lowerings[best].builder.build())


@dataclass(frozen=True, slots=True)
class EquationsLowering:
    """Equations while they are lowered into a builder.

    Attributes:
        equations: What is lowered.
        builder: Takes the nodes.
        walker: Knows the symbols.
        raw: By the treatment ``attractor``: coordinate or speed → symbol of the state, whose projection it is.
        motion: Evaluates the equations' recursion; None where there is none.
        dynamics: Solves for accelerations with M and f; None where there is no M.
    """

    equations: EquationsOfMotion
    builder: ProgramBuilder
    walker: SympyLowering
    raw: Mapping[sm.Symbol, sm.Symbol]
    motion: LinkRecursionMotion | None = None
    dynamics: ConstrainedDynamicsSolver | None = None

    @classmethod
    def start_lowering(cls, equations: EquationsOfMotion, seeds: Sequence[str] = ()) -> EquationsLowering:
        """Return a builder with the leaves, a walker with all definitions, no entry points yet."""
        layout = ProgramVariableLayout(
            states=tuple(map(str, equations.states)),
            inputs=tuple(map(str, equations.r)),
            parameters=tuple(map(str, equations.p)),
            memory=tuple(f"last {equations.q[i]}" for i in equations.q_dependent) if equations.warm_start else (),
            seeds=tuple(seeds),
        )
        builder = ProgramBuilder(layout)
        symbols = {equations.t: builder.time()}
        symbols |= {symbol: builder.parameter(i) for i, symbol in enumerate(equations.p)}
        raw = _unprojected_states(equations)
        symbols |= {raw.get(symbol, symbol): builder.state(i) for i, symbol in enumerate(equations.states)}
        symbols |= {symbol: builder.input(i) for i, symbol in enumerate(equations.r)}
        walker = SympyLowering(builder, symbols)
        motion = LinkRecursionMotion(builder, walker, equations) if equations.recursion else None
        dynamics = None
        if not isinstance(equations.dynamics, ArticulatedBodyStructure):
            dynamics = ConstrainedDynamicsSolver(builder, equations)
        lowering = cls(equations, builder, walker, raw, motion, dynamics)
        lowering._define_intermediates()
        lowering._define_closed_forms()
        lowering._define_partition()
        lowering._define_projection()
        lowering._define_speeds()
        _define_constraint_diagnostics(walker, equations, raw)
        lowering._add_memory()
        return lowering

    def _define_intermediates(self) -> None:
        """Define all named intermediates, in order; each is lowered where it is first needed."""
        e = self.equations
        for item in (*e.calculated_parameters, *e.intermediates):
            if isinstance(item, SymbolAssignment):
                self.walker.define([item.symbol], [item.expression], lambda nodes: nodes)
            else:
                self._define_solve(item)
        if e.constraint_forces:
            self._define_solve(e.constraint_forces)
        for late in e.late_intermediates:
            self.walker.define([late.symbol], [late.expression], lambda nodes: nodes)

    def _define_solve(self, item: LinearSystemAssignment) -> None:
        """Define the unknowns of a linear system; it is solved where one of them is first needed."""
        n, columns = item.right_hand_side.shape

        def make(nodes: Sequence[int]) -> list[int]:
            """Return the solutions, row by row, of the matrix and the right-hand side."""
            matrix, right = nodes[: n * n], nodes[n * n :]
            solutions = solve_dense_system(
                self.builder,
                [list(matrix[i * n : i * n + n]) for i in range(n)],
                [list(right[j::columns]) for j in range(columns)],
                name=item.name,
                symmetric=item.symmetric,
            )
            return [solution[i] for i in range(n) for solution in solutions]

        self.walker.define(item.unknowns, (*item.matrix, *item.right_hand_side), make)

    def _define_closed_forms(self) -> None:
        """Define dependent coordinates in closed form of the independent ones (treatment ``explicit``)."""
        b = self.builder
        for form in self.equations.closed_forms:
            clause = f"the loop cannot be closed, or comes to where two of its branches meet ({form.name})"

            def make(nodes: Sequence[int], clause: str = clause) -> list[int]:
                """Return the first node, valid where its conditions, the others, are positive."""
                value, *conditions = nodes
                for condition in conditions:
                    b.require_domain(condition, clause)
                    inside = b.binary(Op.LT, b.constant(0.0), condition)
                    value = b.select(inside, value, b.constant(float("nan")))
                b.unmark_switches(value)
                return [value]

            for item in form.assignments:
                conditions = form.conditions if item.symbol in form.unknowns else ()
                self.walker.define([item.symbol], [item.expression, *conditions], make)

    def _define_partition(self) -> None:
        """Define dependent coordinates by Newton's method from their last values (treatment ``partition``)."""
        e, b = self.equations, self.builder
        if not e.warm_start:
            return
        dependent = [e.q[i] for i in e.q_dependent]
        rows = [phi for _, phi in e.holonomic]
        found = _DependentCoordinateSolver(b, e.q, dependent, rows, e.row_lengths[: len(rows)])
        last = [b.memory(i) for i in range(len(dependent))]
        self.walker.define(dependent, found.needs, lambda nodes: found.solve(nodes, last))

    def _add_memory(self) -> None:
        """Add the entry points of discrete memory: its update after an accepted step, and its initial value."""
        e, b = self.equations, self.builder
        if e.warm_start:
            self._entry("remember", b.layout.memory, [e.q[i] for i in e.q_dependent])
            b.entry("first_memory", b.layout.memory, [b.constant(value) for value in e.warm_start])
            place = b.layout.states[: len(e.warm_start_at)]
            b.entry("first_place", place, [b.constant(value) for value in e.warm_start_at])

    def _define_projection(self) -> None:
        """Define q and u as the projected states (treatment ``attractor``)."""
        e = self.equations
        c = e.velocity_constraints
        if not self.raw or c is None:
            return
        names, rows = zip(*e.holonomic, strict=True) if e.holonomic else ((), ())
        closed, lengths = e.redundant_rows & set(range(len(rows))), e.row_lengths[: len(rows)]
        projection = PositionProjection(
            self.builder, e.q, rows, names, "the holonomic constraints", redundant=closed, lengths=lengths
        )
        self.walker.define(
            e.q, projection.position_projection_expressions([self.raw[q] for q in e.q]), projection.project
        )
        assert self.dynamics is not None  # articulated bodies apply to trees only
        needs = self.dynamics.projection_expressions()
        self.walker.define(e.u, [*needs, *(self.raw[u] for u in e.u)], self.dynamics.projected_speeds)

    def _define_speeds(self) -> None:
        """Define dependent speeds and all accelerations."""
        e = self.equations
        if e.contacts or e.latches:
            from mb2fmu.compiler.lowering.contact_accelerations import define_contact_accelerations

            define_contact_accelerations(self.builder, self.walker, e, self.motion, self.dynamics)
            return
        if isinstance(e.dynamics, ArticulatedBodyStructure):
            assert self.motion is not None
            motion = self.motion
            self.walker.define(e.u_dot, (), lambda _: motion.accelerations())
            return
        dynamics = self.dynamics
        assert dynamics is not None
        if e.u_dependent:
            self.walker.define([e.u[i] for i in e.u_dependent], dynamics.speed_expressions(), dynamics.dependent_speeds)
        if e.u:
            needs = dynamics.acceleration_expressions()
            if dynamics.requires_multipliers:
                both = dynamics.accelerations_and_multipliers
                self.walker.define((*e.u_dot, *e.multipliers), needs, both)
            else:
                self.walker.define(e.u_dot, needs, dynamics.accelerations)
                self.walker.define(e.multipliers, dynamics.multiplier_expressions(), dynamics.multipliers)

    # --- entry points ------------------------------------------------------------------------------------------------

    def add_motion_entries(self) -> None:
        """Declare the entry points of parameters, outputs, speeds, accelerations and x'."""
        e = self.equations
        calculated = [item.symbol for item in e.calculated_parameters]
        self._entry("prepare", map(str, calculated), calculated)
        for level in ("position", "velocity", "acceleration"):
            outputs = [output for output in e.outputs if output.level == level]
            placed = [e.q[i] for i in e.q_dependent] if level == "position" else []
            names = [*(output.name for output in outputs), *(f"q {symbol}" for symbol in placed)]
            self._entry(level, names, [*(output.expression for output in outputs), *placed])
        self._entry("outputs", [output.name for output in e.outputs], [output.expression for output in e.outputs])
        for node in self.walker.lower([output.expression for output in e.outputs if not output.events]):
            self.builder.unmark_switches(node)
        dependent = [e.u[i] for i in e.u_dependent]
        self._entry("dependent_speeds", map(str, dependent), dependent)
        self._entry("accelerations", map(str, e.u), e.u_dot)
        self._add_rhs()

    def add_other_entries(self) -> None:
        """Declare all other entry points: behind :meth:`add_motion_entries`."""
        e, b = self.equations, self.builder
        b.entry("project", b.layout.states[: len(self.raw)], self.walker.lower(self.raw))
        if e.solved_start_states:
            b.entry("initialize", b.layout.states, _solve_start_states(self.walker, e))
        self._add_energy()
        self._add_equations()
        self._add_events()
        self._name_switches()

    def _name_switches(self) -> None:
        """Name the switches of contacts, whose expressions say little; nodes that are new are not read by anything."""
        contacts = self.equations.contacts
        for condition, holds, otherwise in contacts.describe_conditions(self.equations.u) if contacts else ():
            self.builder.name_switch(partial(self._node, condition), holds, otherwise)

    def _node(self, expression: sm.Basic) -> int:
        """Return the node of an expression."""
        return self.walker.lower([expression])[0]

    def _add_events(self) -> None:
        """Add conditions of the model's own events, the values that each sets (``number:state``), and what may hold."""
        e = self.equations
        events = e.all_events
        if not events:
            return
        states = [*map(str, e.states)]
        faults = [
            Fault(f"{event.name} sets {target}, which follows from constraints", remedy="set independent ones")
            for event in events
            for target, _ in event.settings
            if str(target) not in states
        ]
        if faults:
            raise LoweringError("events cannot be lowered:", faults)
        labels = [f"{'late ' * v.is_contact_or_latch_event}{v.kind}:{v.name}" for v in events]
        self._entry("conditions", labels, [v.condition for v in events])
        holding = [c.resting for c in e.contacts.each] if e.contacts else []
        holding += [latch.engaged for latch in e.latches.each] if e.latches else []
        self._entry("holding", map(str, holding), holding)
        settings = [(f"{i}:{target}", value) for i, v in enumerate(events) for target, value in v.settings]
        self._entry("resets", [label for label, _ in settings], [value for _, value in settings])

    def add_optional(self, name: OptionalEntry, forces: int = 1) -> None:
        """Declare ``forward``, of so many sets of generalized forces, or ``inverse``."""
        e, b = self.equations, self.builder
        n = len(e.u)
        if name == "inverse":
            found = self._inverse([b.seed(i) for i in range(n)])
            b.entry(name, [f"f[{i}]" for i in range(len(found))], found)
            return
        sets = [[b.seed(k * n + i) for i in range(n)] for k in range(forces)]
        labels = [f"{symbol}" if k == 0 else f"{symbol} {k}" for k in range(forces) for symbol in e.u]
        b.entry(name, labels, [node for u_dot in self._forward(sets) for node in u_dot])

    def _forward(self, sets: list[list[int]]) -> list[list[int]]:
        """Return accelerations u' for several sets of generalized forces at once, by matrix or recursion."""
        if isinstance(self.equations.dynamics, ArticulatedBodyStructure):
            assert self.motion is not None
            return self.motion.forward(sets)
        dynamics, rows = self.dynamics, self.equations.mass_and_forcing.mass_matrix.rows
        assert dynamics is not None
        return dynamics.forward(self.walker.lower(dynamics.acceleration_expressions()), [each[:rows] for each in sets])

    def _inverse(self, u_dot: list[int]) -> list[int]:
        """Return generalized forces that the given u' need, by matrix or recursion."""
        if isinstance(self.equations.dynamics, ArticulatedBodyStructure):
            assert self.motion is not None
            return self.motion.inverse(u_dot)
        dynamics = self.dynamics
        assert dynamics is not None
        return dynamics.inverse(self.walker.lower(dynamics.acceleration_expressions()), u_dot)

    def _entry(self, name: str, labels: Sequence[str] | map[str], expressions: Sequence[sm.Expr]) -> None:
        """Lower expressions and add them to the program as an entry point."""
        self.builder.entry(name, list(labels), self.walker.lower(expressions))

    def _add_rhs(self) -> None:
        """Add the entry point ``rhs``: q' = K u + k0 and u', stabilized on the constraints, then z'."""
        e, b = self.equations, self.builder
        terms: list[list[int]] = [[node] for node in self.walker.lower(e.kinematics.offset)]
        entries = e.kinematics.matrix.todok()
        factors = self.walker.lower(entries.values())
        speeds = self.walker.lower(e.u)
        for (i, j), factor in zip(entries, factors, strict=True):
            terms[i].append(b.mul(factor, speeds[j]))
        q_dot = [b.sum(row) for row in terms]
        q_dot = [q_dot[i] for i in e.q_independent]
        u_dot = self.walker.lower([e.u_dot[i] for i in e.u_independent])
        b.entry("rhs", b.layout.states, [*self._attracted([*q_dot, *u_dot]), *self.walker.lower(e.z_dot)])

    def _attracted(self, rates: list[int]) -> list[int]:
        """Return f(P(x)) − rate (x − P(x))."""
        b = self.builder
        if not self.raw:
            return rates
        (rate,) = self.walker.lower([self.equations.attractor_rate])
        states, projected = self.walker.lower(self.raw.values()), self.walker.lower(self.raw)
        return [b.sub(f, b.mul(rate, b.sub(x, on))) for f, x, on in zip(rates, states, projected, strict=True)]

    def _add_energy(self) -> None:
        """Add the entry point ``energy``: kinetic and potential energy, and the power of loads."""
        energy = self.equations.energy
        known = {"kinetic": energy.kinetic, "potential": energy.potential}
        if energy.powers:
            known["power"] = sm.Add(*(power for _, power in energy.powers))
        known = {name: expression for name, expression in known.items() if expression is not None}
        self._entry("energy", list(known), list(known.values()))

    def _add_equations(self) -> None:
        """Add the entry point ``equations``: M and f, entry by entry; recursions have none."""
        if isinstance(self.equations.dynamics, ArticulatedBodyStructure):
            return
        d = self.equations.mass_and_forcing
        rows, columns = d.mass_matrix.shape
        labels = [f"M[{i},{j}]" for i in range(rows) for j in range(columns)] + [f"f[{i}]" for i in range(rows)]
        self._entry("equations", labels, [*d.mass_matrix, *d.forcing])


def _unprojected_states(equations: EquationsOfMotion) -> dict[sm.Symbol, sm.Symbol]:
    """Return coordinate or speed → symbol of its state, where both differ; in the order of the states."""
    if equations.treatment != "attractor":
        return {}
    return {symbol: sm.Dummy(f"x_{symbol}") for symbol in (*equations.q, *equations.u)}


def _solve_start_states(walker: SympyLowering, equations: EquationsOfMotion) -> list[int]:
    """Return start values of all states; the states' symbols stand for the declared or set values.

    Args:
        walker: Knows the symbols; the builder's states are the start values as set.
        equations: With guesses among its states.
    """
    e, b, c = equations, walker.builder, equations.velocity_constraints
    placed = [e.q[i] for i in e.q_independent]
    n_q, n_u = len(placed), len(e.u)
    given = [b.state(i) for i in range(len(e.states))]
    q, u = given[:n_q], given[n_q : n_q + n_u]
    guesses = [symbol for symbol in placed if symbol in e.solved_start_states]
    if guesses:
        declared = [sm.Dummy(f"declared_{symbol}") for symbol in placed]
        walker.define(declared, [], _constant_nodes(q))
        names, phi = zip(*(e.kinematic_invariants if e.q_dependent else e.position_rows), strict=True)
        name = f"the start values of {_format_some_names(guesses)} on the holonomic constraints"
        redundant, lengths = ((), ()) if e.q_dependent else (e.redundant_positions, e.position_lengths)
        closing = PositionProjection(b, placed, phi, names, name, set(guesses), redundant, lengths)
        q = closing.project(walker.lower(closing.position_projection_expressions(declared)))
        q = _normalize_guessed_quaternions(b, q, e)
    if c is None or not any(symbol in e.solved_start_states for symbol in e.u):
        return [*q, *given[n_q:]]
    closed = [sm.Dummy(f"start_{symbol}") for symbol in e.q]
    walker.define(closed, [], _constant_nodes(q))
    there = dict(zip(e.q, closed, strict=True))
    m = len(c.names)
    entries = walker.lower([entry.xreplace(there) for entry in (*c.jacobian, *c.offset)])
    A, offset = [entries[i * n_u : i * n_u + n_u] for i in range(m)], entries[m * n_u :]
    zero = b.constant(0.0)
    is_free = [symbol in e.solved_start_states for symbol in e.u]
    free = [[entry if f else zero for entry, f in zip(row, is_free, strict=True)] for row in A]
    kept = [[zero if f else entry for entry, f in zip(row, is_free, strict=True)] for row in A]
    given_by = [b.add(o, b.dot(row, u)) for o, row in zip(offset, kept, strict=True)]
    u = project_speeds_on_constraints(b, free, given_by, u, e.redundant_rows, e.row_lengths)
    return [*q, *u, *given[n_q + n_u :]]


def _normalize_guessed_quaternions(b: ProgramBuilder, q: list[int], equations: EquationsOfMotion) -> list[int]:
    """Return start values of the coordinates that are states, with all quaternions that were solved for at length 1.

    Constraints say nothing of the length, so that the way to them may have changed it.
    """
    e, q = equations, list(q)
    placed = [e.q[i] for i in e.q_independent]
    for group in e.solved_start_quaternions:
        places = [placed.index(e.q[i]) for i in group]
        length = b.unary(Op.SQRT, b.dot([q[k] for k in places], [q[k] for k in places]))
        for k in places:
            q[k] = b.div(q[k], length)
    return q


def _format_some_names(symbols: Sequence[sm.Symbol]) -> str:
    """Return some names for a message."""
    shown = ", ".join(map(str, symbols[:_MAX_LISTED_NAMES]))
    return f"{shown} and {len(symbols) - _MAX_LISTED_NAMES} more" if len(symbols) > _MAX_LISTED_NAMES else shown


_MAX_LISTED_NAMES = 6


def _constant_nodes(nodes: Sequence[int]) -> Callable[[Sequence[int]], Sequence[int]]:
    """Return an evaluation that gives the same nodes for any argument."""
    return lambda _: nodes
