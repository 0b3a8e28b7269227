"""``find_closed_form_loops``: groups constraint rows into loops of known kinds, each solvable after those before it.

Loops whose closed form the model gives: take the branch of the start, and check the constraint rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import ClosedFormLoopSolution, SymbolAssignment, VelocityConstraints
from mb2fmu.mechanics.formulations.loops.closed_form_loop_protocol import (
    AssemblyBranchStartValues,
    LoopClosedFormSolver,
    LoopClosureEquations,
    LoopKindMismatchError,
)
from mb2fmu.mechanics.formulations.loops.planar_loop_closed_forms import (
    CrankSliderLoopSolver,
    FourBarLoopSolver,
    SlidingLinkLoopSolver,
)
from mb2fmu.mechanics.formulations.loops.rod_and_hexapod_leg_closed_forms import HexapodLegLoopSolver, RodLoopSolver
from mb2fmu.mechanics.formulations.loops.transmission_loop_closed_form import TransmissionLoopSolver
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import (
    ConstraintEvaluator,
    make_parameter_completion_function,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import coordinate_rates, time_derivative
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import free_parameter_values
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

GIVEN_FORM_HEADLINE = "a closed form that the model says cannot be used:"
_BRANCH_TOLERANCE = 1e-6  # between the start and a branch, relative
_ROW_TOLERANCE = 1e-8  # what a row may leave over, relative
_SAMPLE_DISTANCE = 0.05
_SAMPLE_COUNT = 6


CLOSED_FORM_LOOP_SOLVERS: tuple[LoopClosedFormSolver, ...] = (
    TransmissionLoopSolver(),
    FourBarLoopSolver(),
    CrankSliderLoopSolver(),
    SlidingLinkLoopSolver(),
    RodLoopSolver(),
    HexapodLegLoopSolver(),
)
"""In the order in which they are tried."""
NO_CLOSED_FORM_HEADLINE = "the loops have no closed form:"
_REMEDY = "name other dependent coordinates (q_dependent), say a closed form by model.loop, or use attractor"


@dataclass(frozen=True, slots=True)
class _UserLoopClosedForm:
    """A loop of the model's own, in plain symbols.

    Attributes:
        name: As the model calls it.
        rows: Names of the holonomic constraints.
        phi: The constraints.
        unknowns: Coordinates that it gives.
        branches: Each unknown's value, per way of assembly.
        positive: What must be positive.
        relation: Rows whose rates stand in for those of ``phi``.
        where: In the model file.
    """

    name: str
    rows: tuple[str, ...]
    phi: tuple[sm.Expr, ...]
    unknowns: tuple[sm.Symbol, ...]
    branches: tuple[Mapping[sm.Symbol, sm.Expr], ...]
    positive: tuple[sm.Expr, ...]
    relation: tuple[sm.Expr, ...]
    where: str

    def closed_form(self, start: AssemblyBranchStartValues, angles: frozenset[sm.Symbol]) -> ClosedFormLoopSolution:
        """Return the solution on the branch of the start.

        Args:
            start: Numbers of the start.
            angles: Coordinates that may be whole turns off.

        Raises:
            FormulationError: If the start is on none of the branches, or on several; if the branch does not solve
                the rows near the start.
        """
        start_branches = [
            branch_solution
            for branch in self.branches
            if (branch_solution := _shift_full_turns(branch, start, angles)) is not None
        ]
        if len(start_branches) != 1:
            start_text = ", ".join(f"{q} = {start.evaluate(q):.6g}" for q in self.unknowns)
            count = "more than one" if start_branches else "none"
            problem = f"{count} of the {len(self.branches)} branches of {self.name} is that"
            remedy = (
                "start where the branches differ" if start_branches else "give the closed form of each way of assembly"
            )
            raise FormulationError(
                GIVEN_FORM_HEADLINE, [Fault(f"{problem} of the start, {start_text}", self.where, remedy)]
            )
        self._check(start_branches[0], start)
        assignments = tuple(SymbolAssignment(q, start_branches[0][q]) for q in self.unknowns)
        return ClosedFormLoopSolution(self.name, self.rows, self.unknowns, assignments, self.positive, self.relation)

    def _check(self, branch: Mapping[sm.Symbol, sm.Expr], start: AssemblyBranchStartValues) -> None:
        """Check that the rows vanish near the start, wherever the loop closes."""
        free = sorted(start.values, key=str)
        known = [s for s in free if s not in self.unknowns]
        values = [branch[q] for q in self.unknowns]
        solve = lambdify_for_numpy(known, [*values, *self.positive])
        rows = lambdify_for_numpy([*known, *self.unknowns], [*self.phi, *self.relation])
        generator = np.random.default_rng(11)
        for _ in range(_SAMPLE_COUNT):
            shift = {
                s: _SAMPLE_DISTANCE * generator.uniform(-1, 1) if s in start.moving_symbols else 0.0 for s in known
            }
            sample = [start.values[s] + shift[s] for s in known]
            with np.errstate(all="ignore"):
                solution = np.array(solve(*sample), dtype=complex)
                residual = np.array(rows(*sample, *solution[: len(values)].real), dtype=complex)
            has_solution = (
                np.isfinite(solution).all() and not solution.imag.any() and (solution[len(values) :].real > 0).all()
            )
            if has_solution and not np.max(np.abs(residual)) <= _ROW_TOLERANCE * (1 + np.max(np.abs(solution))):
                largest = np.max(np.abs(residual))
                problem = f"the closed form of {self.name} does not solve its rows: {largest:.3g} is left over"
                raise FormulationError(
                    GIVEN_FORM_HEADLINE, [Fault(problem, self.where, "correct it: near the start rows must vanish")]
                )


def _shift_full_turns(
    branch: Mapping[sm.Symbol, sm.Expr], start: AssemblyBranchStartValues, angles: frozenset[sm.Symbol]
) -> dict[sm.Symbol, sm.Expr] | None:
    """Return the solution shifted by full turns to match the start; None if the start is on another branch."""
    shifted_branch = {}
    for q, expression in branch.items():
        try:
            start_error = start.evaluate(q) - start.evaluate(expression)
        except TypeError:  # not real there
            return None
        turns = round(start_error / (2 * math.pi)) if q in angles and math.isfinite(start_error) else 0
        if not abs(start_error - 2 * math.pi * turns) <= _BRANCH_TOLERANCE * (1 + abs(start.evaluate(q))):
            return None
        shifted_branch[q] = expression + 2 * sm.pi * turns
    return shifted_branch


def _read_user_closed_forms(m: Mechanism, start: AssemblyBranchStartValues) -> Iterator[_UserLoopClosedForm]:
    """Yield the model's own solutions of loops, in plain symbols.

    Raises:
        FormulationError: If a row is no holonomic constraint, or something undeclared stands in a closed form.
    """
    phis = [phi for _, phi in m.holonomic]
    known = set(start.values)
    for loop in m.loop_closed_forms:
        if loop.unknown_row:
            problem = f"{loop.unknown_row} is not among the mechanics' holonomic constraints"
            raise FormulationError(
                GIVEN_FORM_HEADLINE, [Fault(problem, loop.where, "give the expression that the mechanics have")]
            )
        rest = (loop.positive, loop.relation)
        expressions = [*(value for branch in loop.branches for value in branch.values()), *rest[0], *rest[1]]
        unknown = set().union(*(e.free_symbols for e in expressions)) - known
        if unknown:
            problem = f"{', '.join(sorted(map(str, unknown)))} in {loop.name} is no coordinate, parameter, or time"
            raise FormulationError(GIVEN_FORM_HEADLINE, [Fault(problem, loop.where, "use those only")])
        yield _UserLoopClosedForm(
            loop.name,
            tuple(m.holonomic[i][0] for i in loop.rows),
            tuple(phis[i] for i in loop.rows),
            tuple(loop.branches[0]),
            loop.branches,
            *rest,
            loop.where,
        )


@dataclass(frozen=True, slots=True)
class ClosedFormLoops:
    """A mechanism's holonomic constraints in closed form.

    Attributes:
        closed_forms: In an order in which each uses coordinates that are known by then.
        q_dependent: Indices of the coordinates that they give.
        u_dependent: Indices of as many speeds as there are constraints, which follow from the velocity constraints.
        reduction: Rows that they follow from instead, where these lose rank on the way.
    """

    closed_forms: tuple[ClosedFormLoopSolution, ...]
    q_dependent: tuple[int, ...]
    u_dependent: tuple[int, ...]
    reduction: VelocityConstraints | None


def find_closed_form_loops(
    mechanism: Mechanism,
    kinds: Sequence[LoopClosedFormSolver] = CLOSED_FORM_LOOP_SOLVERS,
    dependent: Sequence[int] = (),
) -> ClosedFormLoops:
    """Find closed forms of all holonomic constraints.

    Args:
        mechanism: Its start values are on the constraints (``solve_loop_closure_start_values``): they say which branch
            is meant.
        kinds: Those that may be used, beside what the model says itself.
        dependent: Indices of the coordinates that are wanted in closed form, one per row; () for a choice.

    Raises:
        FormulationError: With the rows that no kind of loop fits, and why each does not.
    """
    m = mechanism
    start = _collect_loop_start_values(m)
    user_forms = tuple(_read_user_closed_forms(m, start))
    first: FormulationError | None = None
    named_coordinates = tuple(m.q[i] for i in dependent)
    for unknowns in (named_coordinates,) if named_coordinates else _propose_dependent_coordinates(m, user_forms):
        try:
            forms = _solve_in_order(m, unknowns, start, user_forms, kinds)
            solved = {s for form in forms for s in form.unknowns}
            q_dependent = tuple(i for i, q in enumerate(m.q) if q in solved)
            u_dependent = _select_dependent_speeds(m, q_dependent, named=not named_coordinates)
            return ClosedFormLoops(tuple(forms), q_dependent, u_dependent, _replace_loop_velocity_rows(m, forms))
        except FormulationError as error:
            first = first or error
    assert first is not None
    raise first


def _propose_dependent_coordinates(
    m: Mechanism, user_forms: Sequence[_UserLoopClosedForm]
) -> Iterator[tuple[sm.Symbol, ...]]:
    """Yield choices of dependent coordinates, one per row: named by the model; else its guesses; else any.

    Raises:
        FormulationError: If there are not as many.
    """
    count = len(m.holonomic)
    named = {q for q, c in zip(m.q, m.declared.coordinates, strict=True) if c.name in m.declared.dependent}
    candidates = {s for _, phi in m.holonomic for s in phi.free_symbols & set(m.q)}
    guesses = {q for q, c in zip(m.q, m.declared.coordinates, strict=True) if c.kind == "guess"} & candidates
    unknowns_of_forms = {q for loop in user_forms for q in loop.unknowns}
    for proposal in (named, guesses):
        if len(proposal) == count and unknowns_of_forms <= proposal:
            yield tuple(q for q in m.q if q in proposal)
            return
    # Those that must be, then those that may: guesses, then late ones, which stand further from the ground.
    required = unknowns_of_forms | named
    optional = sorted(candidates - required, key=lambda q: (q not in guesses, -m.q.index(q)))
    if not len(required) <= count <= len(required) + len(optional):
        problem = f"{count} holonomic constraints want as many dependent coordinates, of the {len(candidates)} in them"
        raise FormulationError(NO_CLOSED_FORM_HEADLINE, [Fault(problem, remedy=_REMEDY)])
    for added_coordinates in itertools.islice(itertools.combinations(optional, count - len(required)), _MAX_CHOICES):
        yield tuple(q for q in m.q if q in required.union(added_coordinates))


_MAX_CHOICES = 200
"""Sets of dependent coordinates that are tried."""


def _collect_loop_start_values(m: Mechanism) -> AssemblyBranchStartValues:
    """Return the numbers that rows are judged by."""
    numeric = make_parameter_completion_function(m)(free_parameter_values(m))
    symbols = (*m.p, *(item.symbol for item in m.calculated_parameters))
    values = dict(zip(symbols, map(float, numeric), strict=True))
    values |= {q: float(c.start) for q, c in zip(m.q, m.declared.coordinates, strict=True)}
    values |= {r: float(i.start) for r, i in zip(m.r, m.declared.inputs, strict=True)}
    values[m.t] = 0.0
    names = {str(s) for s in (*values, *m.u_all, *m.u_dot, *m.z, *m.multipliers, *m.constraint_forces)}
    return AssemblyBranchStartValues(values, frozenset({m.t, *m.q, *m.r}), names)


def _solve_in_order(
    m: Mechanism,
    unknowns: Sequence[sm.Symbol],
    start: AssemblyBranchStartValues,
    user_forms: Sequence[_UserLoopClosedForm],
    kinds: Sequence[LoopClosedFormSolver],
) -> list[ClosedFormLoopSolution]:
    """Remove one solvable loop after the other from the rows."""
    rows = [_LoopClosureRow(name, phi, phi.free_symbols & set(unknowns)) for name, phi in m.holonomic]
    rows_of_forms = {name for loop in user_forms for name in loop.rows}
    solutions: list[ClosedFormLoopSolution] = []
    reasons: list[str] = []
    while rows:
        reasons = []
        remaining_rows = [row for row in rows if row.name not in rows_of_forms]
        form = _solve_by_given_form(rows, user_forms, start, m) or _solve_by_first_kind(
            remaining_rows, unknowns, start, kinds, reasons
        )
        if form is None:
            break
        solutions.append(form)
        rows = [
            _LoopClosureRow(r.name, r.phi, r.unknowns - set(form.unknowns)) for r in rows if r.name not in form.rows
        ]
    if rows:
        unsolved_names = [str(q) for q in unknowns if any(q in row.unknowns for row in rows)]
        problem = f"no kind of loop gives {', '.join(unsolved_names)} from {', '.join(row.name for row in rows)}"
        reasons = reasons or ["no one or two of these rows have one or two unknowns"]
        raise FormulationError(NO_CLOSED_FORM_HEADLINE, [Fault(f"{problem} ({'; '.join(reasons)})", remedy=_REMEDY)])
    return solutions


@dataclass(frozen=True, slots=True)
class _LoopClosureRow:
    """A row that closes a loop, and the coordinates in it that are still to be solved for."""

    name: str
    phi: sm.Expr
    unknowns: set[sm.Symbol]


def _solve_by_given_form(
    rows: Sequence[_LoopClosureRow],
    user_forms: Sequence[_UserLoopClosedForm],
    start: AssemblyBranchStartValues,
    m: Mechanism,
) -> ClosedFormLoopSolution | None:
    """Return the closed form of a declared loop, once its rows contain no other unknowns."""
    row_by_name = {row.name: row for row in rows}
    angles = frozenset(q for q, c in zip(m.q, m.declared.coordinates, strict=True) if c.unit == "rad")
    for loop in user_forms:
        if all(name in row_by_name and row_by_name[name].unknowns <= set(loop.unknowns) for name in loop.rows):
            return loop.closed_form(start, angles)
    return None


def _solve_by_first_kind(
    rows: Sequence[_LoopClosureRow],
    unknowns: Sequence[sm.Symbol],
    start: AssemblyBranchStartValues,
    kinds: Sequence[LoopClosedFormSolver],
    reasons: list[str],
) -> ClosedFormLoopSolution | None:
    """Return the first loop of the first kind that fits; append to ``reasons`` why other kinds do not."""
    for kind in kinds:
        for group in _group_rows(rows, unknowns, kind.size):
            try:
                return kind.solve(group, start)
            except LoopKindMismatchError as misfit:
                reasons.append(f"{', '.join(group.names)} as {kind.name}: {misfit}")
    return None


def _group_rows(
    rows: Sequence[_LoopClosureRow], unknowns: Sequence[sm.Symbol], size: int
) -> Iterator[LoopClosureEquations]:
    """Yield single rows, pairs and triples that have as many unknowns as rows."""

    def group(*taken: _LoopClosureRow) -> LoopClosureEquations:
        """Return these rows, and the wanted coordinates that occur in them."""
        unknowns_together = set().union(*(row.unknowns for row in taken))
        return LoopClosureEquations(
            tuple(row.name for row in taken),
            tuple(row.phi for row in taken),
            tuple(q for q in unknowns if q in unknowns_together),
        )

    if size == 1:
        yield from (group(row) for row in rows if len(row.unknowns) == 1)
        return
    if size == 3:
        candidate_rows = [row for row in rows if 2 <= len(row.unknowns) <= 3]
        for three in itertools.combinations(candidate_rows, 3):
            if len(set().union(*(row.unknowns for row in three))) == 3:
                yield group(*three)
        return
    pairs = [row for row in rows if len(row.unknowns) == 2]
    for first in pairs:
        after = rows[rows.index(first) + 1 :]
        dependent_rows = [r for r in after if r.unknowns and r.unknowns <= first.unknowns]
        dependent_rows += [
            r for r in rows if len(r.unknowns) == 1 and r.unknowns < first.unknowns and r not in dependent_rows
        ]
        yield from (group(*sorted((first, other), key=rows.index)) for other in dependent_rows)


def _select_dependent_speeds(m: Mechanism, q_dependent: Sequence[int], *, named: bool = True) -> tuple[int, ...]:
    """Return the dependent speeds that follow from A u + b = 0 for these dependent coordinates.

    Those that the mechanics name, if ``named``; else the rates of the dependent coordinates, and beside them what the
    rest of the rows determines best at the start, by a factorization with pivoting.

    Raises:
        FormulationError: If the constraints do not determine them at the start.
    """
    import scipy.linalg

    c, d = m.velocity_constraints, m.declared
    assert c is not None
    q, z, r = (np.array([x.start for x in items]) for items in (d.coordinates, d.auxiliary_states, d.inputs))
    A, _, K = ConstraintEvaluator(m).evaluate(0.0, q, z, r, free_parameter_values(m))
    dependent_speeds = [i for i in range(len(m.u)) if i not in m.u_independent]
    if len(dependent_speeds) != len(A) or not named:
        first = np.flatnonzero(np.any(K[list(q_dependent)] != 0.0, axis=0)) if q_dependent else np.zeros(0, dtype=int)
        # What these columns explain is taken out before the others are looked at.
        Q = scipy.linalg.qr(A[:, first])[0]
        rest = Q[:, len(first) :].T @ A
        others = scipy.linalg.qr(rest, pivoting=True, mode="r")[1][: len(rest)] if len(rest) else first
        dependent_speeds = sorted({*map(int, first), *map(int, others)})
    dependent_block = A[:, dependent_speeds]
    if len(dependent_speeds) != len(A) or np.linalg.cond(dependent_block) > _MAX_CONDITION_NUMBER:
        speed_names = ", ".join(str(m.u[i]) for i in dependent_speeds)
        problem = f"at the start the constraints do not determine the speeds {speed_names}"
        raise FormulationError(NO_CLOSED_FORM_HEADLINE, [Fault(problem, remedy=_REMEDY)])
    return tuple(dependent_speeds)


_MAX_CONDITION_NUMBER = 1e10


def _replace_loop_velocity_rows(
    mechanism: Mechanism, forms: Sequence[ClosedFormLoopSolution]
) -> VelocityConstraints | None:
    """Return the rows that determine the dependent speeds; None where the mechanism's own rows do."""
    m, c = mechanism, mechanism.velocity_constraints
    relations = {name: row for form in forms for name, row in zip(form.rows, form.relation, strict=False)}
    if c is None or not relations:
        return None
    q_dot = coordinate_rates(m.kinematics, m.u)
    zero_speeds = dict.fromkeys(m.u, sm.S.Zero)
    A, b, gamma = c.jacobian.as_mutable(), c.offset.as_mutable(), c.bias.as_mutable()
    for i, name in enumerate(c.names):
        if name in relations:
            rate = time_derivative(relations[name], m.q, q_dot, m.t)
            A[i, :] = sm.Matrix([[rate.diff(u) for u in m.u]])
            b[i] = rate.xreplace(zero_speeds)
            gamma[i] = time_derivative(rate, m.q, q_dot, m.t)
    return VelocityConstraints(c.names, *(sm.ImmutableMatrix(part) for part in (A, b, gamma)))
