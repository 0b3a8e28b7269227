"""Read the constraints: holonomic rows, velocity rows in the same order, names, and places of their forces."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import sympy as sm
from sympy.physics.mechanics import Point
from sympy.physics.mechanics.body_base import BodyBase

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.equations_of_motion import VelocityConstraints
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceApplication
from mb2fmu.mechanics.mechanism.records.plain_symbols import SymbolMap, directional_derivative, time_derivative
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import (
    QuaternionGroup,
    normalize_quaternions,
    vanishes_at_unit_length,
)
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_tree import KinematicTree
from mb2fmu.model.quantity_declarations import Constraint
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.mechanics_source import Mechanics

CONSTRAINT_HEADLINE = "the constraints cannot be used:"


@dataclass(frozen=True, slots=True)
class ConstraintSymbols:
    """Symbols and rates in which constraints are written."""

    t: sm.Symbol
    q: Sequence[sm.Symbol]
    q_dot: Sequence[sm.Expr]
    u: Sequence[sm.Symbol]
    late: frozenset[sm.Symbol]
    auxiliary: Sequence[sm.Symbol] = ()
    inputs: frozenset[sm.Symbol] = frozenset()
    quaternions: tuple[QuaternionGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedConstraints:
    """The constraints of a mechanism.

    Attributes:
        holonomic: (name, phi).
        velocity: A u + b = 0, those of ``holonomic`` first and in their order; None where there are none.
        said: What the model says of each row of ``velocity``; None where it says nothing.
        auxiliary: What auxiliary speeds do in the rows, shape (m, n_aux); None where they stand in none.
        kinematic_invariants: (name, phi) of declared constraints on positions that no motion can leave, whatever the
            speeds: they are rows of neither kind, and hold if they hold at the start.
    """

    holonomic: tuple[tuple[str, sm.Expr], ...]
    velocity: VelocityConstraints | None
    said: tuple[Constraint | None, ...]
    auxiliary: sm.ImmutableMatrix | None = None
    kinematic_invariants: tuple[tuple[str, sm.Expr], ...] = ()


def read_constraints(
    mechanics: Mechanics, plain: SymbolMap, motion: ConstraintSymbols, said: Sequence[Constraint]
) -> ImportedConstraints:
    """Read all constraints.

    Args:
        mechanics: As handed over.
        plain: Translation to plain symbols.
        motion: Symbols and rates.
        said: Names, multipliers and acts, to be found a row for.

    Raises:
        MechanismError: For rows that are not linear in the speeds or contain accelerations, holonomic rows with speeds
            or inputs in them or without their rate among the velocity constraints, and what is said of no row.
    """
    phis = [plain(row) for row in mechanics_source.holonomic_constraints(mechanics)]
    rows = [plain(row) for row in mechanics_source.velocity_constraints(mechanics)]
    places, phis, rows, invariants = _without_invariants(*_normalize_rows(phis, rows, motion), motion)
    faults = _row_faults(phis, rows, motion)
    if faults:
        raise MechanismError(CONSTRAINT_HEADLINE, faults)
    hidden = [_auxiliary_part(row, motion) for row in rows]
    rows = [sm.expand(row - part) if part != 0 else row for row, part in zip(rows, hidden, strict=True)]
    order, rows, faults = _order_rate_rows(phis, rows, motion)
    names = [f"holonomic[{i + 1}]" for i in places]
    names += [f"nonholonomic[{i + 1}]" for i in range(len(rows) - len(phis))]
    found, more = _assign_declarations(said, plain, phis, rows, motion)
    faults += more
    names = [item.name if item and item.name else name for item, name in zip(found, names, strict=True)]
    faults += [Fault(f"two constraints are called {n}", remedy="rename one") for n in _duplicate_names(names)]
    if faults:
        raise MechanismError(CONSTRAINT_HEADLINE, faults)
    holonomic = tuple(zip(names, phis, strict=False))
    if not rows:
        return ImportedConstraints(holonomic, None, (), kinematic_invariants=invariants)
    vector = sm.Matrix(rows)
    jacobian = sm.SparseMatrix(
        len(rows),
        len(motion.u),
        {(i, j): slope for i, row in enumerate(rows) for j, slope in _row_slopes(row, motion.u)},
    )
    offset = vector.xreplace(dict.fromkeys(motion.u, sm.S.Zero))
    rates = {motion.t: sm.S.One, **dict(zip(motion.q, motion.q_dot, strict=True))}
    bias = sm.Matrix([directional_derivative(row, rates) for row in rows])
    matrices = (sm.ImmutableMatrix(part) for part in (jacobian, offset, bias))
    auxiliary = _auxiliary_jacobian([factor * hidden[k] for k, factor in order], motion)
    velocity = VelocityConstraints(tuple(names), *matrices)
    return ImportedConstraints(holonomic, velocity, tuple(found), auxiliary, invariants)


def _auxiliary_part(row: sm.Expr, motion: ConstraintSymbols) -> sm.Expr:
    """Return the part of a row in auxiliary speeds, which are zero in the motion."""
    parts = [speed * directional_derivative(row, {speed: sm.S.One}) for speed in motion.auxiliary]
    return sm.Add(*(part for speed, part in zip(motion.auxiliary, parts, strict=True) if speed in row.free_symbols))


def _auxiliary_jacobian(parts: Sequence[sm.Expr], motion: ConstraintSymbols) -> sm.ImmutableMatrix | None:
    """Return the derivatives of these parts with respect to the auxiliary speeds; None where all vanish."""
    if not any(part != 0 for part in parts):
        return None
    slopes = [directional_derivative(sm.sympify(part), {u: sm.S.One}) for part in parts for u in motion.auxiliary]
    return sm.ImmutableMatrix(len(parts), len(motion.auxiliary), slopes)


def read_force_applications(
    said: Sequence[Constraint | None], trees: KinematicTree, bodies: Sequence[Any]
) -> tuple[tuple[ForceApplication, ...], ...]:
    """Return the places where the force of each row acts; an empty tuple where none is given.

    Raises:
        MechanismError: If a place is no point or frame of the mechanism.
    """
    faults: list[Fault] = []
    acts = []
    for item in said:
        row = []
        for place, vector, *particle_of in item.acts if item else ():
            centre = getattr(place, "masscenter", place)
            numbers = trees.point_of if isinstance(centre, Point) else trees.frame_of
            if centre not in numbers:
                what = f"the force of constraint {item.name if item else ''} acts on {place}, which is not connected"
                faults.append(Fault(what, item.where if item else "", "give a point or a frame of the mechanism"))
                continue
            body = next((i for i, body in enumerate(bodies) for of in particle_of if body is of), -1)
            if particle_of and body < 0:
                what = f"{particle_of[0]} is no moving body of the mechanics"
                faults.append(Fault(what, item.where if item else "", "give one that was handed over"))
            row.append(ForceApplication(numbers[centre], not isinstance(centre, Point), trees.terms(vector), body))
        acts.append(tuple(row))
    if faults:
        raise MechanismError(CONSTRAINT_HEADLINE, faults)
    return tuple(acts)


def choose_dependent_speeds(
    constraints: VelocityConstraints, start: Mapping[sm.Symbol, float], guessed: Collection[int]
) -> list[int]:
    """Choose as many dependent speeds as constraints: guesses if the start determines them, then the best conditioned.

    Args:
        constraints: Of the velocities, A u + b = 0.
        start: Values of all symbols in A.
        guessed: Indices of the speeds that may follow from others: their start value is a guess.
    """
    from scipy.linalg import qr

    A = np.array(constraints.jacobian.xreplace({s: sm.Float(v, 17) for s, v in start.items()}).evalf(17), dtype=float)
    chosen: list[int] = []
    others = [i for i in range(A.shape[1]) if i not in guessed]
    for least, some in ((_MIN_PIVOT_RATIO, sorted(guessed)), (-1.0, others)):
        rest = A
        if chosen:  # what the chosen columns explain is taken out before others are looked at
            rest = qr(A[:, chosen])[0][:, len(chosen) :].T @ A
        if not some or not len(rest):
            continue
        R, order = qr(rest[:, some], pivoting=True, mode="r")
        sizes = np.abs(np.diag(R))
        chosen += [some[k] for k, size in zip(order, sizes, strict=False) if size > least * np.abs(A).max()]
    return sorted(chosen)


_MIN_PIVOT_RATIO = 1e-3
"""Least part of the largest entry of A with which a constraint determines a guessed speed."""


def list_application_places(said: Iterable[Constraint]) -> list[object]:
    """Return the points and frames at which constraint forces act."""
    return [place.masscenter if isinstance(place, BodyBase) else place for item in said for place, *_ in item.acts]


def _row_faults(phis: Sequence[sm.Expr], rows: Sequence[sm.Expr], motion: ConstraintSymbols) -> list[Fault]:
    """Return symbols that may not stand in constraints."""
    faults = []
    for i, phi in enumerate(phis):
        wrong = phi.free_symbols & {*motion.u, *motion.late}
        if wrong:
            what = f"holonomic constraint {i + 1} contains {_format_symbol_names(wrong)}, "
            what += "and must contain coordinates and time only"
            faults.append(Fault(what, remedy="give it as a velocity constraint"))
        given = phi.free_symbols & motion.inputs
        if given:
            what = f"holonomic constraint {i + 1} contains the input {_format_symbol_names(given)}: "
            what += "coordinates would jump with it"
            remedy = (
                "prescribe an expression of time, or its rate by a velocity constraint; or solve the loop in closed "
            )
            faults.append(Fault(what, remedy=remedy + "form, as models/driven_crank.py does"))
    speeds = list(motion.u)
    for i, row in enumerate(rows):
        late = row.free_symbols & motion.late
        if late:
            what = f"velocity constraint {i + 1} contains {_format_symbol_names(late)}: it depends on accelerations"
            faults.append(Fault(what, remedy="a constraint relates coordinates, speeds and time only"))
        elif any(slope.free_symbols & set(speeds) for _, slope in _row_slopes(row, speeds)):
            what = f"velocity constraint {i + 1} is not linear in the speeds"
            faults.append(Fault(what, str(row)[:80], "write it linear in the speeds"))
    return faults


def _normalize_rows(
    phis: Sequence[sm.Expr], rows: Sequence[sm.Expr], motion: ConstraintSymbols
) -> tuple[list[sm.Expr], list[sm.Expr]]:
    """Return rows with quaternions scaled to unit length, but for those that only say that the length is 1."""
    groups, q = motion.quaternions, motion.q
    units = [normalize_quaternions(phi, groups, q) for phi in phis]
    kept = [phi if vanishes_at_unit_length(unit, groups, q) else unit for phi, unit in zip(phis, units, strict=True)]
    return kept, [normalize_quaternions(row, groups, q) for row in rows]


def _without_invariants(
    phis: Sequence[sm.Expr], rows: Sequence[sm.Expr], motion: ConstraintSymbols
) -> tuple[list[int], list[sm.Expr], list[sm.Expr], tuple[tuple[str, sm.Expr], ...]]:
    """Take out constraints on positions whose rates the kinematic equations make zero, and these rates.

    So the length of a quaternion, or of a director d with d' = ω × d. As rows they would say 0 u' = 0; where the rates
    are speeds of their own, they stay.

    Returns:
        Numbers of the holonomic rows that are left, these rows, the velocity rows that are left, (name, phi) of those
        taken out.
    """
    kept, invariants = [], []
    for i, phi in enumerate(phis):
        moves = bool(phi.free_symbols & set(motion.q))
        if moves and _is_zero(time_derivative(phi, motion.q, motion.q_dot, motion.t)):
            invariants.append((f"holonomic[{i + 1}]", phi))
        else:
            kept.append(i)
    left = [row for row in rows if not (invariants and _is_zero(row))]
    return kept, [phis[i] for i in kept], left, tuple(invariants)


def _is_zero(expression: sm.Expr) -> bool:
    """Return whether an expression is zero whatever its symbols are, but for round-off."""
    if not expression.free_symbols:
        return bool(expression == 0)
    values = _sample_expression(expression)
    return bool(np.all(np.abs(values) <= _NOTHING))


def _row_slopes(row: sm.Expr, symbols: Sequence[sm.Symbol]) -> list[tuple[int, sm.Expr]]:
    """Return number and derivative for each of the symbols that stand in the row."""
    free = row.free_symbols
    return [(j, directional_derivative(row, {s: sm.S.One})) for j, s in enumerate(symbols) if s in free]


def _order_rate_rows(
    phis: Sequence[sm.Expr], rows: Sequence[sm.Expr], motion: ConstraintSymbols
) -> tuple[list[tuple[int, sm.Expr]], list[sm.Expr], list[Fault]]:
    """Return velocity rows so that row i is the rate of holonomic row i; KanesMethod may reorder and scale them.

    Returns:
        Of each row (number among ``rows``, factor that it was multiplied by), the rows, faults.
    """
    left, first, faults = dict(enumerate(rows)), [], []
    order: list[tuple[int, sm.Expr]] = []
    for i, phi in enumerate(phis):
        rate = time_derivative(phi, motion.q, motion.q_dot, motion.t)
        wanted = normalize_quaternions(rate, motion.quaternions, motion.q)
        match = next((k for k, row in left.items() if row == wanted or are_proportional(row, wanted)), None)
        if match is None:
            what = f"no velocity constraint is the rate of holonomic constraint {i + 1}"
            faults.append(Fault(what, remedy="add its time derivative to velocity_constraints of the KanesMethod"))
            continue
        order.append((match, _proportionality_factor(wanted, left.pop(match))))
        first.append(rate)
    return [*order, *((k, sm.S.One) for k in left)], [*first, *left.values()], faults


def _assign_declarations(
    said: Sequence[Constraint],
    plain: SymbolMap,
    phis: Sequence[sm.Expr],
    rows: Sequence[sm.Expr],
    motion: ConstraintSymbols,
) -> tuple[list[Constraint | None], list[Fault]]:
    """Return for each row the user's declarations of it."""
    found: list[Constraint | None] = [None] * len(rows)
    faults = []
    for item in said:
        index = find_constraint_row(normalize_quaternions(plain(item.row), motion.quaternions, motion.q), phis, rows)
        if index is None:
            what = f"{str(item.row)[:80]} is not among the mechanics' constraints"
            faults.append(Fault(what, item.where, "give the expression that was given to the mechanics"))
        elif found[index] is not None:
            faults.append(Fault("a constraint is described twice", item.where, "say all in one call"))
        else:
            found[index] = item
    return found, faults


def find_constraint_row(expression: sm.Expr, phis: Sequence[sm.Expr], rows: Sequence[sm.Expr]) -> int | None:
    """Number of the velocity row whose constraint ``expression`` is; phi(q, t) of a holonomic one will do."""
    for candidates in (phis, rows):
        for i, candidate in enumerate(candidates):
            if expression == candidate:
                return i
    for candidates in (phis, rows):
        for i, candidate in enumerate(candidates):
            if _are_equal(expression, candidate):
                return i
    return None


_SAMPLE_COUNT = 4  # at which two expressions are compared
_NOTHING = 1e-12  # of expressions of symbols between 0.2 and 1
_CACHE_SIZE = 1024  # expressions whose values are remembered


def _sample_both(a: sm.Expr, b: sm.Expr) -> tuple[np.ndarray, np.ndarray]:
    """Return the values of two expressions at the same random places."""
    return _sample_expression(a), _sample_expression(b)


@lru_cache(maxsize=_CACHE_SIZE)
def _sample_expression(expression: sm.Expr) -> np.ndarray:
    """Return an expression's values at random places that depend on its symbols alone; each row is evaluated once."""
    symbols = sorted(expression.free_symbols, key=str)
    function = sm.lambdify(symbols, expression, modules=["scipy", "numpy"], cse=True)
    places = np.array([_random_values(symbol) for symbol in symbols]).reshape(len(symbols), _SAMPLE_COUNT)
    with np.errstate(all="ignore"):
        return np.array([function(*places[:, k]) for k in range(_SAMPLE_COUNT)], dtype=float)


@lru_cache(maxsize=_CACHE_SIZE)
def _random_values(symbol: sm.Basic) -> np.ndarray:
    """Return random values of a symbol: always the same for it, different for every other symbol."""
    seed = zlib.crc32(repr(symbol.sort_key()).encode())
    return np.random.default_rng(seed).uniform(0.2, 1.0, _SAMPLE_COUNT)


def _are_equal(a: sm.Expr, b: sm.Expr) -> bool:
    """Return whether two expressions have the same values at random points, to a relative 1e-10."""
    x, y = _sample_both(a, b)
    return bool(np.all(np.abs(x - y) <= 1e-10 * (np.abs(x) + np.abs(y) + 1e-300)))


def are_proportional(a: sm.Expr, b: sm.Expr) -> bool:
    """Return whether a = c b with a constant c, at random places."""
    x, y = _sample_both(a, b)
    good = np.isfinite(x) & np.isfinite(y)
    x, y = x[good], y[good]
    return bool(len(x) > 1 and np.linalg.norm(x) > 0 and abs(x @ y) >= (1 - 1e-12) * np.sqrt((x @ x) * (y @ y)))


def _proportionality_factor(a: sm.Expr, b: sm.Expr) -> sm.Expr:
    """Return the constant c of a = c b, for ``are_proportional`` expressions."""
    if a == b:
        return sm.S.One
    x, y = _sample_both(a, b)
    good = np.isfinite(x) & np.isfinite(y)
    factor = float(x[good] @ y[good] / (y[good] @ y[good]))
    return sm.Integer(round(factor)) if abs(factor - round(factor)) < 1e-12 else sm.Float(factor, 17)


def _format_symbol_names(symbols: Iterable[sm.Basic]) -> str:
    """Return the names of symbols, sorted, for a message."""
    return ", ".join(sorted(map(str, symbols)))


def _duplicate_names(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    return sorted({name for name in names if names.count(name) > 1})
