"""``recognise_loops``: groups constraint rows into loops of known kinds, each solvable after those before it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import sympy as sm

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.equations.equations_of_motion import ClosedForm, VelocityConstraints
from mb2fmu.mechanics.formulations.loops.given_closed_forms import GivenClosedForm, read_given_closed_forms
from mb2fmu.mechanics.formulations.loops.loop_kind import LoopEquations, LoopKind, LoopMismatch, LoopStart
from mb2fmu.mechanics.formulations.loops.planar_loops import CrankSliderLoop, FourBarLoop, SlidingLinkLoop
from mb2fmu.mechanics.formulations.loops.rod_and_leg_loops import HexapodLegLoop, RodLoop
from mb2fmu.mechanics.formulations.loops.transmission_loop import TransmissionLoop
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import NumericConstraints
from mb2fmu.mechanics.mechanism.numeric.parameter_evaluation import make_parameter_function
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.plain_symbols import coordinate_rates, time_derivative
from mb2fmu.mechanics.mechanism.sympy_import.kinematics_check import free_parameter_values

LOOP_KINDS: tuple[LoopKind, ...] = (
    TransmissionLoop(),
    FourBarLoop(),
    CrankSliderLoop(),
    SlidingLinkLoop(),
    RodLoop(),
    HexapodLegLoop(),
)
"""In the order in which they are tried."""

NO_CLOSED_FORM_HEADLINE = "the loops have no closed form:"
_REMEDY = "name other dependent coordinates (q_dependent), say a closed form by model.loop, or use attractor"


@dataclass(frozen=True, slots=True)
class ExplicitLoops:
    """A mechanism's holonomic constraints in closed form.

    Attributes:
        closed_forms: In an order in which each uses coordinates that are known by then.
        q_dependent: Indices of the coordinates that they give.
        u_dependent: Indices of as many speeds as there are constraints, which follow from the velocity constraints.
        reduction: Rows that they follow from instead, where these lose rank on the way.
    """

    closed_forms: tuple[ClosedForm, ...]
    q_dependent: tuple[int, ...]
    u_dependent: tuple[int, ...]
    reduction: VelocityConstraints | None


def recognise_loops(
    mechanism: Mechanism, kinds: Sequence[LoopKind] = LOOP_KINDS, dependent: Sequence[int] = ()
) -> ExplicitLoops:
    """Find closed forms of all holonomic constraints.

    Args:
        mechanism: Its start values are on the constraints (``close_loops``): they say which branch is meant.
        kinds: Those that may be used, beside what the model says itself.
        dependent: Indices of the coordinates that are wanted in closed form, one per row; () for a choice.

    Raises:
        FormulationError: With the rows that no kind of loop fits, and why each does not.
    """
    m = mechanism
    start = make_loop_start(m)
    given = tuple(read_given_closed_forms(m, start))
    first: FormulationError | None = None
    chosen = tuple(m.q[i] for i in dependent)
    for wanted in (chosen,) if chosen else propose_dependent_coordinates(m, given):
        try:
            forms = _solve_in_order(m, wanted, start, given, kinds)
            solved = {s for form in forms for s in form.unknowns}
            q_dependent = tuple(i for i, q in enumerate(m.q) if q in solved)
            u_dependent = select_dependent_speeds(m, q_dependent, named=not chosen)
            return ExplicitLoops(tuple(forms), q_dependent, u_dependent, form_reduced_constraints(m, forms))
        except FormulationError as error:
            first = first or error
    assert first is not None
    raise first


def propose_dependent_coordinates(m: Mechanism, given: Sequence[GivenClosedForm]) -> Iterator[tuple[sm.Symbol, ...]]:
    """Yield choices of dependent coordinates, one per row: named by the model; else its guesses; else any.

    Raises:
        FormulationError: If there are not as many.
    """
    count = len(m.holonomic)
    named = {q for q, c in zip(m.q, m.declared.coordinates, strict=True) if c.name in m.declared.dependent}
    appearing = {s for _, phi in m.holonomic for s in phi.free_symbols & set(m.q)}
    guesses = {q for q, c in zip(m.q, m.declared.coordinates, strict=True) if c.kind == "guess"} & appearing
    needed = {q for loop in given for q in loop.unknowns}
    for chosen in (named, guesses):
        if len(chosen) == count and needed <= chosen:
            yield tuple(q for q in m.q if q in chosen)
            return
    # Those that must be, then those that may: guesses, then late ones, which stand further from the ground.
    must = needed | named
    may = sorted(appearing - must, key=lambda q: (q not in guesses, -m.q.index(q)))
    if not len(must) <= count <= len(must) + len(may):
        what = f"{count} holonomic constraints want as many dependent coordinates, of the {len(appearing)} in them"
        raise FormulationError(NO_CLOSED_FORM_HEADLINE, [Fault(what, remedy=_REMEDY)])
    for more in itertools.islice(itertools.combinations(may, count - len(must)), _MAX_CHOICES):
        yield tuple(q for q in m.q if q in must.union(more))


_MAX_CHOICES = 200
"""Sets of dependent coordinates that are tried."""


def make_loop_start(m: Mechanism) -> LoopStart:
    """Return the numbers that rows are judged by."""
    numeric = make_parameter_function(m)(free_parameter_values(m))
    symbols = (*m.p, *(item.symbol for item in m.calculated_parameters))
    values = dict(zip(symbols, map(float, numeric), strict=True))
    values |= {q: float(c.start) for q, c in zip(m.q, m.declared.coordinates, strict=True)}
    values |= {r: float(i.start) for r, i in zip(m.r, m.declared.inputs, strict=True)}
    values[m.t] = 0.0
    every = {str(s) for s in (*values, *m.u_all, *m.u_dot, *m.z, *m.multipliers, *m.constraint_forces)}
    return LoopStart(values, frozenset({m.t, *m.q, *m.r}), every)


def _solve_in_order(
    m: Mechanism,
    wanted: Sequence[sm.Symbol],
    start: LoopStart,
    given: Sequence[GivenClosedForm],
    kinds: Sequence[LoopKind],
) -> list[ClosedForm]:
    """Remove one solvable loop after the other from the rows."""
    rows = [_LoopRow(name, phi, phi.free_symbols & set(wanted)) for name, phi in m.holonomic]
    own = {name for loop in given for name in loop.rows}
    found: list[ClosedForm] = []
    reasons: list[str] = []
    while rows:
        reasons = []
        others = [row for row in rows if row.name not in own]
        form = _solve_by_given_form(rows, given, start, m) or _solve_by_first_kind(
            others, wanted, start, kinds, reasons
        )
        if form is None:
            break
        found.append(form)
        rows = [_LoopRow(r.name, r.phi, r.unknowns - set(form.unknowns)) for r in rows if r.name not in form.rows]
    if rows:
        which = [str(q) for q in wanted if any(q in row.unknowns for row in rows)]
        what = f"no kind of loop gives {', '.join(which)} from {', '.join(row.name for row in rows)}"
        reasons = reasons or ["no one or two of these rows have one or two unknowns"]
        raise FormulationError(NO_CLOSED_FORM_HEADLINE, [Fault(f"{what} ({'; '.join(reasons)})", remedy=_REMEDY)])
    return found


@dataclass(frozen=True, slots=True)
class _LoopRow:
    name: str
    phi: sm.Expr
    unknowns: set[sm.Symbol]


def _solve_by_given_form(
    rows: Sequence[_LoopRow], given: Sequence[GivenClosedForm], start: LoopStart, m: Mechanism
) -> ClosedForm | None:
    """Return the closed form of a declared loop, once its rows contain no other unknowns."""
    left = {row.name: row for row in rows}
    angles = frozenset(q for q, c in zip(m.q, m.declared.coordinates, strict=True) if c.unit == "rad")
    for loop in given:
        if all(name in left and left[name].unknowns <= set(loop.unknowns) for name in loop.rows):
            return loop.closed_form(start, angles)
    return None


def _solve_by_first_kind(
    rows: Sequence[_LoopRow],
    wanted: Sequence[sm.Symbol],
    start: LoopStart,
    kinds: Sequence[LoopKind],
    reasons: list[str],
) -> ClosedForm | None:
    """Return the first loop of the first kind that fits; append to ``reasons`` why other kinds do not."""
    for kind in kinds:
        for group in _group_rows(rows, wanted, kind.size):
            try:
                return kind.solve(group, start)
            except LoopMismatch as misfit:
                reasons.append(f"{', '.join(group.names)} as {kind.name}: {misfit}")
    return None


def _group_rows(rows: Sequence[_LoopRow], wanted: Sequence[sm.Symbol], size: int) -> Iterator[LoopEquations]:
    """Yield single rows, pairs and triples that have as many unknowns as rows."""

    def group(*taken: _LoopRow) -> LoopEquations:
        """Return these rows, and the wanted coordinates that occur in them."""
        together = set().union(*(row.unknowns for row in taken))
        return LoopEquations(
            tuple(row.name for row in taken),
            tuple(row.phi for row in taken),
            tuple(q for q in wanted if q in together),
        )

    if size == 1:
        yield from (group(row) for row in rows if len(row.unknowns) == 1)
        return
    if size == 3:
        alike = [row for row in rows if 2 <= len(row.unknowns) <= 3]
        for three in itertools.combinations(alike, 3):
            if len(set().union(*(row.unknowns for row in three))) == 3:
                yield group(*three)
        return
    pairs = [row for row in rows if len(row.unknowns) == 2]
    for first in pairs:
        after = rows[rows.index(first) + 1 :]
        others = [r for r in after if r.unknowns and r.unknowns <= first.unknowns]
        others += [r for r in rows if len(r.unknowns) == 1 and r.unknowns < first.unknowns and r not in others]
        yield from (group(*sorted((first, other), key=rows.index)) for other in others)


def select_dependent_speeds(m: Mechanism, q_dependent: Sequence[int], *, named: bool = True) -> tuple[int, ...]:
    """Return the dependent speeds that follow from A u + b = 0 for these dependent coordinates.

    Those that the mechanics name, if ``named``; else the rates of the dependent coordinates, and beside them what the
    rest of the rows determines best at the start, by a factorization with pivoting.

    Raises:
        FormulationError: If the constraints do not determine them at the start.
    """
    c, d = m.velocity_constraints, m.declared
    assert c is not None
    q, z, r = (np.array([x.start for x in items]) for items in (d.coordinates, d.auxiliary_states, d.inputs))
    A, _, K = NumericConstraints(m).at(0.0, q, z, r, free_parameter_values(m))
    chosen = [i for i in range(len(m.u)) if i not in m.u_independent]
    if len(chosen) != len(A) or not named:
        first = np.flatnonzero(np.any(K[list(q_dependent)] != 0.0, axis=0)) if q_dependent else np.zeros(0, dtype=int)
        # What these columns explain is taken out before the others are looked at.
        Q = scipy.linalg.qr(A[:, first])[0]
        rest = Q[:, len(first) :].T @ A
        others = scipy.linalg.qr(rest, pivoting=True, mode="r")[1][: len(rest)] if len(rest) else first
        chosen = sorted({*map(int, first), *map(int, others)})
    square = A[:, chosen]
    if len(chosen) != len(A) or np.linalg.cond(square) > _MAX_CONDITION_NUMBER:
        which = ", ".join(str(m.u[i]) for i in chosen)
        what = f"at the start the constraints do not determine the speeds {which}"
        raise FormulationError(NO_CLOSED_FORM_HEADLINE, [Fault(what, remedy=_REMEDY)])
    return tuple(chosen)


_MAX_CONDITION_NUMBER = 1e10


def form_reduced_constraints(mechanism: Mechanism, forms: Sequence[ClosedForm]) -> VelocityConstraints | None:
    """Return the rows that determine the dependent speeds; None where the mechanism's own rows do."""
    m, c = mechanism, mechanism.velocity_constraints
    relations = {name: row for form in forms for name, row in zip(form.rows, form.relation, strict=False)}
    if c is None or not relations:
        return None
    q_dot = coordinate_rates(m.kinematics, m.u)
    without = dict.fromkeys(m.u, sm.S.Zero)
    A, b, gamma = c.jacobian.as_mutable(), c.offset.as_mutable(), c.bias.as_mutable()
    for i, name in enumerate(c.names):
        if name in relations:
            rate = time_derivative(relations[name], m.q, q_dot, m.t)
            A[i, :] = sm.Matrix([[rate.diff(u) for u in m.u]])
            b[i] = rate.xreplace(without)
            gamma[i] = time_derivative(rate, m.q, q_dot, m.t)
    return VelocityConstraints(c.names, *(sm.ImmutableMatrix(part) for part in (A, b, gamma)))
