"""``recognise``: which rows make which kind of loop, in an order in which each is solved from what is known by then."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import sympy as sm

from mb2fmu.equations.motion import ClosedForm
from mb2fmu.errors import Fault, FormulationError
from mb2fmu.formulation.loops.kind import LoopKind, LoopRows, Start
from mb2fmu.formulation.loops.transmission import Transmission
from mb2fmu.mechanism.consistency import parameter_values
from mb2fmu.mechanism.numeric import NumericMechanism
from mb2fmu.mechanism.records import Mechanism
from mb2fmu.model import mechanics as door

KINDS: tuple[LoopKind, ...] = (Transmission(),)
"""In the order in which they are tried."""

HEADLINE = "the loops have no closed form:"
_REMEDY = "name other dependent coordinates (q_dependent), say a closed form by model.loop, or use attractor"


@dataclass(frozen=True, slots=True)
class ExplicitLoops:
    """What a mechanism's holonomic constraints are in closed form.

    Attributes:
        closed_forms: In an order in which each uses coordinates that are known by then.
        q_dependent: Indices of the coordinates that they give.
        u_dependent: Indices of as many speeds as there are constraints, which follow from the velocity constraints.
    """

    closed_forms: tuple[ClosedForm, ...]
    q_dependent: tuple[int, ...]
    u_dependent: tuple[int, ...]


def recognise(mechanism: Mechanism) -> ExplicitLoops:
    """Closed forms of all holonomic constraints.

    Args:
        mechanism: Its start values are on the constraints (``close_loops``): they say which branch is meant.

    Raises:
        FormulationError: With the rows that no kind of loop fits, and why each does not.
    """
    m = mechanism
    known = {s for _, phi in m.holonomic for s in phi.free_symbols & set(m.q)}
    wanted = dependent_coordinates(m, known)
    start = start_of(m)
    forms = _in_order(m, wanted, start)
    solved = {s for form in forms for s in form.unknowns}
    q_dependent = tuple(i for i, q in enumerate(m.q) if q in solved)
    return ExplicitLoops(tuple(forms), q_dependent, dependent_speeds(m, q_dependent))


def dependent_coordinates(m: Mechanism, appearing: set[sm.Symbol]) -> tuple[sm.Symbol, ...]:
    """Those that the model names as dependent; else those that it guesses.

    Raises:
        FormulationError: If they are not as many as the constraints.
    """
    named = {str(s) for s in door.dependent_coordinates(m.definition.mechanics)}
    users = {q for q in m.q if str(m.dynamic[q]) in named}
    guesses = {q for q, c in zip(m.q, m.definition.coordinates, strict=True) if c.kind == "guess"} & appearing
    for chosen in (users, guesses):
        if len(chosen) == len(m.holonomic):
            return tuple(q for q in m.q if q in chosen)
    what = f"{len(m.holonomic)} holonomic constraints want as many dependent coordinates, and {len(users)} are named"
    raise FormulationError(HEADLINE, [Fault(f"{what}, {len(guesses)} start from guesses", remedy=_REMEDY)])


def start_of(m: Mechanism) -> Start:
    """The numbers that rows are judged by."""
    numeric = NumericMechanism(m).parameters(parameter_values(m))
    symbols = (*m.p, *(item.symbol for item in m.calculated_parameters))
    values = dict(zip(symbols, map(float, numeric), strict=True))
    values |= {q: float(c.start) for q, c in zip(m.q, m.definition.coordinates, strict=True)}
    values |= {r: float(i.start) for r, i in zip(m.r, m.definition.inputs, strict=True)}
    values[m.t] = 0.0
    every = {str(s) for s in (*values, *m.u_all, *m.u_dot, *m.z, *m.multipliers, *m.constraint_forces)}
    return Start(values, frozenset({m.t, *m.q, *m.r}), every)


def _in_order(m: Mechanism, wanted: Sequence[sm.Symbol], start: Start) -> list[ClosedForm]:
    """Takes one loop after the other out of the rows."""
    names = [name for name, _ in m.holonomic]
    rows = [phi for _, phi in m.holonomic]
    left, unknown = list(range(len(rows))), set(wanted)
    found: list[ClosedForm] = []
    while left:
        reasons: list[str] = []
        for taken in _groups(rows, left, unknown):
            those = tuple(q for q in wanted if q in unknown and any(q in rows[i].free_symbols for i in taken))
            group = LoopRows(tuple(names[i] for i in taken), tuple(rows[i] for i in taken), those)
            answers = [(kind, kind.solve(group, start)) for kind in KINDS if kind.size == len(taken)]
            form = next((answer for _, answer in answers if isinstance(answer, ClosedForm)), None)
            if form is not None:
                found.append(form)
                left = [i for i in left if i not in taken]
                unknown -= set(those)
                break
            reasons += [f"{kind.name}: {answer}" for kind, answer in answers]
        else:
            raise FormulationError(HEADLINE, _left_over([names[i] for i in left], unknown, reasons))
    return found


def _groups(rows: Sequence[sm.Expr], left: Sequence[int], unknown: set[sm.Symbol]) -> Iterator[tuple[int, ...]]:
    """Sets of rows that have as many unknowns as there are rows, small ones first."""
    within = {i: rows[i].free_symbols & unknown for i in left}
    for size in sorted({kind.size for kind in KINDS}):
        few = [i for i in left if 0 < len(within[i]) <= size]
        for taken in itertools.combinations(few, size):
            if len(set().union(*(within[i] for i in taken))) == size:
                yield taken


def _left_over(names: Sequence[str], unknown: set[sm.Symbol], reasons: Sequence[str]) -> list[Fault]:
    which = ", ".join(sorted(map(str, unknown)))
    what = f"no kind of loop gives {which} from {', '.join(names)}"
    reasons = reasons or [f"no {' or '.join(str(k.size) for k in KINDS)} of these rows have as many unknowns"]
    return [Fault(f"{what} ({'; '.join(reasons)})", remedy=_REMEDY)]


def dependent_speeds(m: Mechanism, q_dependent: Sequence[int]) -> tuple[int, ...]:
    """Speeds that follow from A u + b = 0 when those coordinates follow from φ = 0.

    Named ones first; else the rates of the dependent coordinates, and beside them what the rest of the rows
    determines best at the start, by a factorization with pivoting.

    Raises:
        FormulationError: If the constraints do not determine them at the start.
    """
    c, d = m.velocity_constraints, m.definition
    assert c is not None
    numeric = NumericMechanism(m)
    numeric.set(
        0.0,
        np.array([x.start for x in d.coordinates]),
        np.zeros(len(m.u_all)),
        np.array([s.start for s in d.auxiliary_states]),
        np.array([i.start for i in d.inputs]),
        numeric.parameters(parameter_values(m)),
    )
    A, K = numeric.constraints()[0], numeric.kinematics()[0]
    chosen = [i for i in range(len(m.u)) if i not in m.u_independent]
    if len(chosen) != len(A):
        first = np.flatnonzero(np.any(K[list(q_dependent)] != 0.0, axis=0)) if q_dependent else np.zeros(0, dtype=int)
        # What these columns explain is taken out before the others are looked at.
        Q = scipy.linalg.qr(A[:, first])[0]
        rest = Q[:, len(first) :].T @ A
        others = scipy.linalg.qr(rest, pivoting=True, mode="r")[1][: len(rest)] if len(rest) else first
        chosen = sorted({*map(int, first), *map(int, others)})
    square = A[:, chosen]
    if len(chosen) != len(A) or np.linalg.cond(square) > _SINGULAR:
        which = ", ".join(str(m.u[i]) for i in chosen)
        what = f"at the start the constraints do not determine the speeds {which}"
        raise FormulationError(HEADLINE, [Fault(what, remedy=_REMEDY)])
    return tuple(chosen)


_SINGULAR = 1e10
