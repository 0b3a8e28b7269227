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
from mb2fmu.mechanics.mechanism.records.mechanism_records import ConstraintForceApplication
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import (
    QuaternionGroup,
    substitute_unit_quaternions,
    vanishes_for_unit_quaternion,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import (
    DynamicsymbolMap,
    differentiate_along_rates,
    time_derivative,
)
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_tree import SympyFrameAndPointTree
from mb2fmu.model.expression_traversal import drop_terms_with_symbols
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy
from mb2fmu.model.quantity_declarations import DeclaredConstraint
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.mechanics_source import Mechanics

CONSTRAINT_HEADLINE = "the constraints cannot be used:"


@dataclass(frozen=True, slots=True)
class ConstraintSymbols:
    """Symbols and rates that constraints may contain."""

    t: sm.Symbol
    q: Sequence[sm.Symbol]
    q_dot: Sequence[sm.Expr]
    u: Sequence[sm.Symbol]
    auxiliary: Sequence[sm.Symbol] = ()
    inputs: frozenset[sm.Symbol] = frozenset()
    quaternions: tuple[QuaternionGroup, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportedConstraints:
    """The constraints of a mechanism.

    Attributes:
        holonomic: (name, phi).
        velocity: A u + b = 0, those of ``holonomic`` first and in their order; None where there are none.
        declarations: The model's declaration of each row of ``velocity``; None where there is none.
        auxiliary: Coefficients of auxiliary speeds in the rows, shape (m, n_aux); None where no row contains them.
        kinematic_invariants: (name, phi) of declared constraints on positions that no motion can leave, whatever the
            speeds: they are rows of neither kind, and hold if they hold at the start.
    """

    holonomic: tuple[tuple[str, sm.Expr], ...]
    velocity: VelocityConstraints | None
    declarations: tuple[DeclaredConstraint | None, ...]
    auxiliary: sm.ImmutableMatrix | None = None
    kinematic_invariants: tuple[tuple[str, sm.Expr], ...] = ()


def read_sympy_constraints(
    mechanics: Mechanics, plain: DynamicsymbolMap, motion: ConstraintSymbols, declarations: Sequence[DeclaredConstraint]
) -> ImportedConstraints:
    """Read all constraints.

    Args:
        mechanics: The user's mechanics.
        plain: Translation to plain symbols.
        motion: Symbols and rates.
        declarations: Names, multipliers and force applications of rows.

    Raises:
        MechanismError: For rows that are not linear in the speeds, holonomic rows with inputs in them or without their
            rate among the velocity constraints, and declarations of no row.
    """
    phis = [plain(row) for row in mechanics_source.holonomic_constraints(mechanics)]
    rows = [plain(row) for row in mechanics_source.velocity_constraints(mechanics)]
    kept_numbers, phis, rows, invariants = _without_invariants(*_normalize_rows(phis, rows, motion), motion)
    faults = _row_faults(phis, rows, motion)
    if faults:
        raise MechanismError(CONSTRAINT_HEADLINE, faults)
    auxiliary_parts = [_auxiliary_part(row, motion) for row in rows]
    rows = [sm.expand(row - matrix) if matrix != 0 else row for row, matrix in zip(rows, auxiliary_parts, strict=True)]
    order, rows, faults = _order_rate_rows(phis, rows, motion)
    names = [f"holonomic[{i + 1}]" for i in kept_numbers]
    names += [f"nonholonomic[{i + 1}]" for i in range(len(rows) - len(phis))]
    row_declarations, declaration_faults = _assign_declarations(declarations, plain, phis, rows, motion)
    faults += declaration_faults
    names = [item.name if item and item.name else name for item, name in zip(row_declarations, names, strict=True)]
    faults += [Fault(f"two constraints are called {n}", remedy="rename one") for n in _duplicate_names(names)]
    if faults:
        raise MechanismError(CONSTRAINT_HEADLINE, faults)
    holonomic = tuple(zip(names, phis, strict=False))
    if not rows:
        return ImportedConstraints(holonomic, None, (), kinematic_invariants=invariants)
    jacobian = sm.SparseMatrix(
        len(rows),
        len(motion.u),
        {(i, j): derivative for i, row in enumerate(rows) for j, derivative in _row_slopes(row, motion.u)},
    )
    offset = sm.Matrix([drop_terms_with_symbols(row, frozenset(motion.u)) for row in rows])
    rates = {motion.t: sm.S.One, **dict(zip(motion.q, motion.q_dot, strict=True))}
    bias = sm.Matrix([differentiate_along_rates(row, rates) for row in rows])
    matrices = (sm.ImmutableMatrix(matrix) for matrix in (jacobian, offset, bias))
    auxiliary = _auxiliary_jacobian([factor * auxiliary_parts[k] for k, factor in order], motion)
    velocity = VelocityConstraints(tuple(names), *matrices)
    return ImportedConstraints(holonomic, velocity, tuple(row_declarations), auxiliary, invariants)


def _auxiliary_part(row: sm.Expr, motion: ConstraintSymbols) -> sm.Expr:
    """Return the part of a row in auxiliary speeds, which are zero in the motion."""
    terms = [speed * differentiate_along_rates(row, {speed: sm.S.One}) for speed in motion.auxiliary]
    return sm.Add(*(term for speed, term in zip(motion.auxiliary, terms, strict=True) if speed in row.free_symbols))


def _auxiliary_jacobian(parts: Sequence[sm.Expr], motion: ConstraintSymbols) -> sm.ImmutableMatrix | None:
    """Return the derivatives of these parts with respect to the auxiliary speeds; None where all vanish."""
    if not any(part != 0 for part in parts):
        return None
    derivatives = [
        differentiate_along_rates(sm.sympify(part), {u: sm.S.One}) for part in parts for u in motion.auxiliary
    ]
    return sm.ImmutableMatrix(len(parts), len(motion.auxiliary), derivatives)


def read_constraint_force_locations(
    declarations: Sequence[DeclaredConstraint | None], trees: SympyFrameAndPointTree, bodies: Sequence[Any]
) -> tuple[tuple[ConstraintForceApplication, ...], ...]:
    """Return the places where the force of each row acts; an empty tuple where none is given.

    Raises:
        MechanismError: If a place is no point or frame of the mechanism.
    """
    faults: list[Fault] = []
    applications = []
    for item in declarations:
        row_applications = []
        for point_or_frame, vector, *particle_of in item.acts if item else ():
            node = getattr(point_or_frame, "masscenter", point_or_frame)
            numbers = trees.point_of if isinstance(node, Point) else trees.frame_of
            if node not in numbers:
                name = item.name if item else ""
                problem = f"the force of constraint {name} acts on {point_or_frame}, which is not connected"
                faults.append(Fault(problem, item.where if item else "", "give a point or a frame of the mechanism"))
                continue
            body = next(
                (i for i, body in enumerate(bodies) for particle_body in particle_of if body is particle_body), -1
            )
            if particle_of and body < 0:
                problem = f"{particle_of[0]} is no moving body of the mechanics"
                faults.append(Fault(problem, item.where if item else "", "give one of the mechanics' own"))
            row_applications.append(
                ConstraintForceApplication(numbers[node], not isinstance(node, Point), trees.read_vector(vector), body)
            )
        applications.append(tuple(row_applications))
    if faults:
        raise MechanismError(CONSTRAINT_HEADLINE, faults)
    return tuple(applications)


def choose_dependent_speeds(
    constraints: VelocityConstraints, start: Mapping[sm.Symbol, float], guessed_speeds: Collection[int]
) -> list[int]:
    """Choose as many dependent speeds as constraints: guesses if the start determines them, then the best conditioned.

    Args:
        constraints: Velocity constraints A u + b = 0.
        start: Values of all symbols in A.
        guessed_speeds: Indices of the speeds that may follow from others: their start value is a guess.
    """
    from scipy.linalg import qr

    A = _evaluate_jacobian(constraints, start)
    dependent_speeds: list[int] = []
    other_speeds = [i for i in range(A.shape[1]) if i not in guessed_speeds]
    for min_ratio, candidates in ((_MIN_PIVOT_RATIO, sorted(guessed_speeds)), (-1.0, other_speeds)):
        remainder = A
        if dependent_speeds:  # project out the chosen columns before others are considered
            remainder = qr(A[:, dependent_speeds])[0][:, len(dependent_speeds) :].T @ A
        if not candidates or not len(remainder):
            continue
        R, order = qr(remainder[:, candidates], pivoting=True, mode="r")
        sizes = np.abs(np.diag(R))
        dependent_speeds += [
            candidates[k] for k, size in zip(order, sizes, strict=False) if size > min_ratio * np.abs(A).max()
        ]
    return sorted(dependent_speeds)


def constraints_determine_speeds(
    constraints: VelocityConstraints, start: Mapping[sm.Symbol, float], dependent: Sequence[int]
) -> bool:
    """Return whether the constraints determine these speeds, as many as rows, at the start; arguments as above."""
    A = _evaluate_jacobian(constraints, start)
    lengths = np.linalg.norm(A, axis=1, keepdims=True)
    if A.shape[0] != len(dependent) or not np.all(np.isfinite(A)) or not np.all(lengths):
        return True  # other checks speak of such rows
    return bool(np.linalg.svd(A[:, list(dependent)] / lengths, compute_uv=False)[-1] > _MIN_SINGULAR_VALUE)


def _evaluate_jacobian(constraints: VelocityConstraints, start: Mapping[sm.Symbol, float]) -> np.ndarray:
    """Return A at the start, shape (m, n_u)."""
    numbers = {symbol: sm.Float(value, 17) for symbol, value in start.items()}
    return np.array(constraints.jacobian.xreplace(numbers).evalf(17), dtype=float)


_MIN_SINGULAR_VALUE = 1e-9
"""Of rows of unit length over the dependent speeds: below it others are chosen."""
_MIN_PIVOT_RATIO = 1e-3
"""Least part of the largest entry of A with which a constraint determines a guessed speed."""


def list_constraint_force_locations(declarations: Iterable[DeclaredConstraint]) -> list[object]:
    """Return the points and frames at which constraint forces act."""
    return [
        point_or_frame.masscenter if isinstance(point_or_frame, BodyBase) else point_or_frame
        for item in declarations
        for point_or_frame, *_ in item.acts
    ]


def _row_faults(phis: Sequence[sm.Expr], rows: Sequence[sm.Expr], motion: ConstraintSymbols) -> list[Fault]:
    """Return faults for symbols that constraints may not contain."""
    faults = []
    for i, phi in enumerate(phis):
        inputs = phi.free_symbols & motion.inputs
        if inputs:
            problem = f"holonomic constraint {i + 1} contains the input {_format_symbol_names(inputs)}: "
            problem += "coordinates would jump with it"
            remedy = (
                "prescribe an expression of time, or its rate by a velocity constraint; or solve the loop in closed "
            )
            faults.append(Fault(problem, remedy=remedy + "form, as models/driven_crank.py does"))
    speeds = list(motion.u)
    for i, row in enumerate(rows):
        if any(derivative.free_symbols & set(speeds) for _, derivative in _row_slopes(row, speeds)):
            problem = f"velocity constraint {i + 1} is not linear in the speeds"
            faults.append(Fault(problem, str(row)[:80], "write it linear in the speeds"))
    return faults


def _normalize_rows(
    phis: Sequence[sm.Expr], rows: Sequence[sm.Expr], motion: ConstraintSymbols
) -> tuple[list[sm.Expr], list[sm.Expr]]:
    """Return rows with quaternions scaled to unit length, except rows that only require that length."""
    groups, q = motion.quaternions, motion.q
    normalized_rows = [substitute_unit_quaternions(phi, groups, q) for phi in phis]
    normalized_phis = [
        phi if vanishes_for_unit_quaternion(normalized_phi, groups, q) else normalized_phi
        for phi, normalized_phi in zip(phis, normalized_rows, strict=True)
    ]
    return normalized_phis, [substitute_unit_quaternions(row, groups, q) for row in rows]


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
    kept_numbers, invariants = [], []
    for i, phi in enumerate(phis):
        has_coordinates = bool(phi.free_symbols & set(motion.q))
        if has_coordinates and _is_zero(time_derivative(phi, motion.q, motion.q_dot, motion.t)):
            invariants.append((f"holonomic[{i + 1}]", phi))
        else:
            kept_numbers.append(i)
    kept_rows = [row for row in rows if not (invariants and _is_zero(row))]
    return kept_numbers, [phis[i] for i in kept_numbers], kept_rows, tuple(invariants)


def _is_zero(expression: sm.Expr) -> bool:
    """Return whether an expression is zero whatever its symbols are, but for round-off."""
    if not expression.free_symbols:
        return bool(expression == 0)
    values = _sample_expression(expression)
    return bool(np.all(np.abs(values) <= _NOTHING))


def _row_slopes(row: sm.Expr, symbols: Sequence[sm.Symbol]) -> list[tuple[int, sm.Expr]]:
    """Return number and derivative for each of the symbols that stand in the row."""
    free = row.free_symbols
    return [
        (j, differentiate_along_rates(row, {symbol: sm.S.One})) for j, symbol in enumerate(symbols) if symbol in free
    ]


def _order_rate_rows(
    phis: Sequence[sm.Expr], rows: Sequence[sm.Expr], motion: ConstraintSymbols
) -> tuple[list[tuple[int, sm.Expr]], list[sm.Expr], list[Fault]]:
    """Return velocity rows so that row i is the rate of holonomic row i; KanesMethod may reorder and scale them.

    Returns:
        Of each row (number among ``rows``, factor that it was multiplied by), the rows, faults.
    """
    remaining_rows, rate_rows, faults = dict(enumerate(rows)), [], []
    order: list[tuple[int, sm.Expr]] = []
    for i, phi in enumerate(phis):
        rate = time_derivative(phi, motion.q, motion.q_dot, motion.t)
        normalized_rate = substitute_unit_quaternions(rate, motion.quaternions, motion.q)
        match = next(
            (
                k
                for k, row in remaining_rows.items()
                if row == normalized_rate or _are_rows_proportional(row, normalized_rate)
            ),
            None,
        )
        if match is None:
            problem = f"no velocity constraint is the rate of holonomic constraint {i + 1}"
            faults.append(Fault(problem, remedy="add its time derivative to velocity_constraints of the KanesMethod"))
            continue
        order.append((match, _proportionality_factor(normalized_rate, remaining_rows.pop(match))))
        rate_rows.append(rate)
    return [*order, *((k, sm.S.One) for k in remaining_rows)], [*rate_rows, *remaining_rows.values()], faults


def _assign_declarations(
    declarations: Sequence[DeclaredConstraint],
    plain: DynamicsymbolMap,
    phis: Sequence[sm.Expr],
    rows: Sequence[sm.Expr],
    motion: ConstraintSymbols,
) -> tuple[list[DeclaredConstraint | None], list[Fault]]:
    """Return for each row the user's declarations of it."""
    row_declarations: list[DeclaredConstraint | None] = [None] * len(rows)
    faults = []
    for item in declarations:
        index = find_constraint_row(
            substitute_unit_quaternions(plain(item.row), motion.quaternions, motion.q), phis, rows
        )
        if index is None:
            problem = f"{str(item.row)[:80]} is not among the mechanics' constraints"
            faults.append(Fault(problem, item.where, "give the expression that was given to the mechanics"))
        elif row_declarations[index] is not None:
            faults.append(Fault("a constraint is described twice", item.where, "say all in one call"))
        else:
            row_declarations[index] = item
    return row_declarations, faults


def find_constraint_row(expression: sm.Expr, phis: Sequence[sm.Expr], rows: Sequence[sm.Expr]) -> int | None:
    """Return the number of the velocity row that an expression is; phi(q, t) of a holonomic row also matches."""
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
    function = lambdify_for_numpy(symbols, expression, cse=True)
    samples = np.array([_random_values(symbol) for symbol in symbols]).reshape(len(symbols), _SAMPLE_COUNT)
    with np.errstate(all="ignore"):
        return np.array([function(*samples[:, k]) for k in range(_SAMPLE_COUNT)], dtype=float)


@lru_cache(maxsize=_CACHE_SIZE)
def _random_values(symbol: sm.Basic) -> np.ndarray:
    """Return random values of a symbol: always the same for it, different for every other symbol."""
    seed = zlib.crc32(repr(symbol.sort_key()).encode())
    return np.random.default_rng(seed).uniform(0.2, 1.0, _SAMPLE_COUNT)


def _are_equal(a: sm.Expr, b: sm.Expr) -> bool:
    """Return whether two expressions have the same values at random points, to a relative 1e-10."""
    x, y = _sample_both(a, b)
    return bool(np.all(np.abs(x - y) <= 1e-10 * (np.abs(x) + np.abs(y) + 1e-300)))


def _are_rows_proportional(a: sm.Expr, b: sm.Expr) -> bool:
    """Return whether a = c b with a constant c, at random places."""
    x, y = _sample_both(a, b)
    is_finite = np.isfinite(x) & np.isfinite(y)
    x, y = x[is_finite], y[is_finite]
    return bool(len(x) > 1 and np.linalg.norm(x) > 0 and abs(x @ y) >= (1 - 1e-12) * np.sqrt((x @ x) * (y @ y)))


def _proportionality_factor(a: sm.Expr, b: sm.Expr) -> sm.Expr:
    """Return the constant c of a = c b, for ``_are_rows_proportional`` expressions."""
    if a == b:
        return sm.S.One
    x, y = _sample_both(a, b)
    is_finite = np.isfinite(x) & np.isfinite(y)
    factor = float(x[is_finite] @ y[is_finite] / (y[is_finite] @ y[is_finite]))
    return sm.Integer(round(factor)) if abs(factor - round(factor)) < 1e-12 else sm.Float(factor, 17)


def _format_symbol_names(symbols: Iterable[sm.Basic]) -> str:
    """Return the names of symbols, sorted, for a message."""
    return ", ".join(sorted(map(str, symbols)))


def _duplicate_names(names: Sequence[str]) -> list[str]:
    """Return the names that occur more than once, sorted."""
    return sorted({name for name in names if names.count(name) > 1})
