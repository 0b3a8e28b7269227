"""Operating points: equilibria and steady motions near given start values, by Newton's method.

A steady motion is one whose speeds, and whose coordinates that matter, are constant. A coordinate does not matter
(is ignorable) if nothing but other ignorable coordinates' rates depends on it: the place of a rolling wheel, its
angle, and once the place is ignorable its heading. Ignorable coordinates may grow; those that do are not in the linear
equations.

With F(x) = (x' of all that is not ignorable, residuals of the constraints) the point is found from F = 0 by
Gauss-Newton steps of least norm, damped, that leave the lengths of quaternions as they are: of a family of steady
motions the one near the start is taken.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.analysis.program_derivatives import ProgramDerivatives
from mb2fmu.errors import AnalysisError, Fault

Floats = npt.NDArray[np.float64]
VectorFunction = Callable[[Floats], Floats]
SearchResult = tuple[Floats, Floats]
SteadyMotionKind = Literal["equilibrium", "steady", "instant"]

RESIDUAL_TOLERANCE = 1e-10
"""Of F, relative to 1 and the largest rate at the start."""

_MAX_STEPS = 100
_MAX_ATTEMPTS = 20
_MAX_STEP_CHANGE = 0.3  # that one step changes anything, relative to 1 + its magnitude
_RANK_TOLERANCE = 1e-9
_RANDOM_STATE_COUNT = 3


@dataclass(frozen=True, slots=True, eq=False)
class OperatingPoint:
    """An operating point: states, inputs and parameters at which equations are linearized.

    Attributes:
        t: Time in s.
        x: States, shape (n_x,).
        r: Inputs, shape (n_r,).
        p: Free parameters.
        rates: x' there, shape (n_x,).
        motion: ``equilibrium``: nothing changes; ``steady``: ignorable coordinates grow; ``instant``: none was looked
            for.
        ignored: States that are left out because they grow, or depend on what grows.
        residual: Largest magnitude of what had to vanish.
    """

    t: float
    x: Floats
    r: Floats
    p: Floats
    rates: Floats
    motion: SteadyMotionKind
    ignored: tuple[int, ...]
    residual: float


def find_operating_point(
    slopes: ProgramDerivatives,
    start: OperatingPoint,
    coordinates: Collection[int],
    *,
    names: Sequence[str],
    held: Collection[int] = (),
    trimmed: Collection[int] = (),
) -> OperatingPoint:
    """Return the equilibrium or steady motion near ``start``.

    Args:
        slopes: The equations.
        start: Where to begin; its ``motion`` is not looked at.
        coordinates: Indices of the states that are coordinates.
        names: Of the states, for messages.
        held: Indices of states that keep their values.
        trimmed: Indices of inputs that may be changed.

    Raises:
        AnalysisError: If there is none within reach; says which rates remain.
    """
    ignorable = _find_ignorable_coordinates(slopes, start, coordinates)
    kept = [i for i in range(slopes.n_x) if i not in ignorable]
    free = [i for i in range(slopes.n_x) if i not in held]
    columns = [*free, *(slopes.n_x + i for i in sorted(trimmed))]

    def target(y: Floats) -> Floats:
        x, r = y[: slopes.n_x], y[slopes.n_x :]
        return np.concatenate(
            [slopes.rates(x, r)[kept], slopes.residual(x, r), _quaternion_length_errors(slopes, x, r)]
        )

    def slope(y: Floats) -> Floats:
        x, r = y[: slopes.n_x], y[slopes.n_x :]
        rows = [slopes.rate_slopes(x, r)[kept], slopes.residual_slopes(x, r), slopes.quaternion_length_rows(x, r)]
        return np.concatenate(rows)[:, columns]

    begin = np.concatenate([start.x, start.r])
    scale = 1 + float(np.max(np.abs(slopes.rates(start.x, start.r)), initial=0.0))
    units = _column_units(slope(begin), len(free), scale)

    def newton(guess: Floats) -> SearchResult:
        """Return the end point of Gauss-Newton's method from a guess, and its residual."""
        return _solve_gauss_newton(target, slope, guess, columns, RESIDUAL_TOLERANCE * scale, units)

    y, value = _search_repeatedly(newton, begin, [i for i in free if i in coordinates], RESIDUAL_TOLERANCE * scale)
    worst = float(np.max(np.abs(value), initial=0.0))
    if not worst <= RESIDUAL_TOLERANCE * scale:
        labels = [
            *(f"der({names[i]})" for i in kept),
            *slopes.constraint_names,
            *("length of a quaternion",) * len(names),
        ]
        faults = [_search_fault(labels, value), *_changing_rate_faults(slopes, start, names, kept, coordinates)]
        raise AnalysisError("no equilibrium or steady motion was found:", faults)
    x, r = y[: slopes.n_x], y[slopes.n_x :]
    rates = slopes.rates(x, r)
    ignored = _find_ignored_states(slopes, start, ignorable, rates, scale)
    motion: SteadyMotionKind = "steady" if ignored else "equilibrium"
    return OperatingPoint(start.t, x, r, start.p, rates, motion, ignored, worst)


def _search_repeatedly(
    newton: Callable[[Floats], SearchResult], begin: Floats, movable: Sequence[int], tolerance: float
) -> SearchResult:
    """Search from the start, then from other coordinates, until the residual is small enough.

    Args:
        newton: Guess → where the search from it ends, and what is left over there.
        begin: States, then inputs.
        movable: Indices of the coordinates that may start elsewhere.
        tolerance: Largest entry that may be left over.

    Returns:
        The end with the least left over, and what that is.
    """
    y, value = newton(begin)
    generator = np.random.default_rng(5)
    for attempt in range(_MAX_ATTEMPTS):  # the first may have ended where the norm is least and not zero
        if np.max(np.abs(value), initial=0.0) <= tolerance:
            break
        moved = begin.copy()
        moved[movable] += 0.1 * (attempt + 1) * generator.uniform(-1, 1, len(movable))
        found, left = newton(moved)
        if np.linalg.norm(left) < np.linalg.norm(value):
            y, value = found, left
    return y, value


def _changing_rate_faults(
    slopes: ProgramDerivatives,
    start: OperatingPoint,
    names: Sequence[str],
    kept: Sequence[int],
    coordinates: Collection[int],
) -> list[Fault]:
    """Return why the coordinate that moves most at the start cannot grow steadily, as a top's angle does."""
    rates = np.abs(slopes.rates(start.x, start.r))
    moving = [(rates[i], i) for i in kept if i in coordinates and rates[i] > 0]
    if not moving:
        return []
    most = max(moving)[1]
    influence, held = _dependency_masks(slopes, start)
    dependent = ", ".join(f"der({names[i]})" for i in kept if i != most and influence[i, most])
    if not dependent or held[most]:
        return []
    what = f"{names[most]} would have to stand still, since {dependent} depend on it"
    remedy = f"if it should grow, take speeds along axes that do not turn with {names[most]}, or rates of angles"
    return [Fault(what, remedy=remedy)]


def _column_units(slopes: Floats, n_free: int, scale: float) -> Floats:
    """Return a unit for each column: 1 of a state; of an input, the change that changes a rate by ``scale``.

    A jack has 1e5 N where a servo has 1 N.m: neither is near or far by its number.
    """
    units = np.ones(slopes.shape[1])
    lengths = np.linalg.norm(slopes[:, n_free:], axis=0)
    usable = np.isfinite(lengths) & (lengths > 0)
    units[n_free:][usable] = scale / lengths[usable]
    return units


def _quaternion_length_errors(slopes: ProgramDerivatives, x: Floats, r: Floats) -> Floats:
    """Return how far each quaternion is from its length; 0 where no rate corrects the length."""
    rows = slopes.quaternion_length_rows(x, r)[:, : slopes.n_x]
    if not len(rows):
        return np.zeros(0)
    pull = rows @ slopes.rate_slopes(x, r)[:, : slopes.n_x] @ rows.T
    if not np.isfinite(pull).all() or np.linalg.matrix_rank(pull, tol=1e-6) < len(rows):
        return np.zeros(len(rows))
    return np.asarray(np.linalg.solve(pull, rows @ slopes.rates(x, r)))


def project_onto_constraints(
    slopes: ProgramDerivatives,
    start: OperatingPoint,
    guesses: Collection[int],
    held: Collection[int],
    names: Sequence[str],
) -> OperatingPoint:
    """Return the instant at ``start``, moved onto the constraints: by guesses, or else by all values that are free.

    Args:
        slopes: The equations.
        start: Where to begin.
        guesses: Indices of the states that are moved first.
        held: Indices of those that keep their values.
        names: Of the states, for messages.

    Raises:
        AnalysisError: If the constraints cannot be met.
    """
    y = np.concatenate([start.x, start.r])
    n = slopes.n_x
    value = slopes.residual(start.x, start.r)
    generator = np.random.default_rng(7)
    movable = [i for i in range(n) if i not in held]
    for attempt in range(_MAX_ATTEMPTS + 2):
        if np.max(np.abs(value), initial=0.0) <= RESIDUAL_TOLERANCE:
            break
        columns = sorted(guesses) if attempt == 0 else movable
        if not columns:
            continue
        begin = np.concatenate([start.x, start.r])
        if attempt > 1:  # from elsewhere: where the loops are least open they need not be closed
            begin[columns] += 0.3 * (attempt - 1) * generator.uniform(-1, 1, len(columns))
        found, left = _solve_gauss_newton(
            lambda y: slopes.residual(y[:n], y[n:]),
            lambda y, columns=columns: slopes.residual_slopes(y[:n], y[n:])[:, columns],  # type: ignore[misc]
            begin,
            columns,
            RESIDUAL_TOLERANCE,
        )
        if not np.linalg.norm(left) >= np.linalg.norm(value):
            y, value = found, left
    worst = float(np.max(np.abs(value), initial=0.0))
    if not worst <= RESIDUAL_TOLERANCE:
        kept = f", with {', '.join(names[i] for i in sorted(held))} kept as given" if held else ""
        raise AnalysisError(
            "the start values cannot meet the constraints:", [_search_fault(slopes.constraint_names, value, kept)]
        )
    x = y[:n]
    return OperatingPoint(start.t, x, start.r, start.p, slopes.rates(x, start.r), "instant", (), worst)


def _solve_gauss_newton(
    target: VectorFunction,
    slope: VectorFunction,
    y: Floats,
    columns: Sequence[int],
    goal: float,
    units: Floats | None = None,
) -> SearchResult:
    """Return the end of steps of least norm, halved until the norm falls; ends where it cannot fall or the goal is met.

    Args:
        target: What shall vanish.
        slope: Its derivatives by y[columns].
        y: Where to begin.
        columns: What may change.
        goal: Of the largest magnitude.
        units: In which the norm of a step counts each of ``columns``; ones unless given.
    """
    value, units = target(y), np.ones(len(columns)) if units is None else units
    for _ in range(_MAX_STEPS):
        if not np.isfinite(value).all() or np.max(np.abs(value), initial=0.0) <= goal * 1e-3:
            break
        step = units * np.linalg.lstsq(slope(y) * units, -value, rcond=_RANK_TOLERANCE)[0]
        step /= max(1.0, float(np.max(np.abs(step) / (units + np.abs(y[list(columns)])))) / _MAX_STEP_CHANGE)
        part, before = 1.0, float(np.linalg.norm(value))
        while part > 1e-6:
            trial = y.copy()
            trial[list(columns)] += part * step
            with np.errstate(all="ignore"):
                after = target(trial)
            if np.isfinite(after).all() and np.linalg.norm(after) < (1 - 1e-4 * part) * before:
                break
            part /= 2
        else:
            break
        y, value = trial, after
    return y, value


def _find_ignorable_coordinates(
    slopes: ProgramDerivatives, start: OperatingPoint, coordinates: Collection[int]
) -> set[int]:
    """Return coordinates on which only rates of ignorable coordinates depend, judged at random states nearby."""
    influence, held = _dependency_masks(slopes, start)
    found: set[int] = set()
    while True:
        rows = [i for i in range(slopes.n_x) if i not in found]
        more = {c for c in coordinates if c not in found and not held[c] and not influence[rows, c].any()}
        if not more:
            return found
        found |= more


def _find_ignored_states(
    slopes: ProgramDerivatives, start: OperatingPoint, ignorable: set[int], rates: Floats, scale: float
) -> tuple[int, ...]:
    """Return the states that grow steadily, and those whose rates depend on one of them."""
    influence, _ = _dependency_masks(slopes, start)
    ignored = {c for c in ignorable if abs(rates[c]) > 1e-8 * scale}
    while True:
        more = {c for c in ignorable - ignored if influence[c, sorted(ignored)].any()}
        if not more:
            return tuple(sorted(ignored))
        ignored |= more


def _dependency_masks(
    slopes: ProgramDerivatives, start: OperatingPoint
) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Return two masks: x' row depends on x column, shape (n_x, n_x); x stands in a constraint, shape (n_x,)."""
    generator = np.random.default_rng(11)
    n = slopes.n_x
    influence, held = np.zeros((n, n), dtype=bool), np.zeros(n, dtype=bool)
    found = 0
    for _ in range(10 * _RANDOM_STATE_COUNT):
        x = start.x + 0.05 * generator.uniform(-1, 1, n) * (1 + np.abs(start.x))
        x, _ = _solve_gauss_newton(
            lambda x: slopes.residual(x, start.r),
            lambda x: slopes.residual_slopes(x, start.r)[:, :n],
            x,
            range(n),
            RESIDUAL_TOLERANCE,
        )
        with np.errstate(all="ignore"):
            J, G = slopes.rate_slopes(x, start.r)[:, :n], slopes.constraint_rows(x, start.r)
        if not (np.isfinite(J).all() and np.isfinite(G).all()):
            continue
        influence |= np.abs(J) > 1e-11 * (1 + np.max(np.abs(J)))
        held |= np.max(np.abs(G), axis=0, initial=0.0) > 1e-11 * (1 + np.max(np.abs(G), initial=0.0))
        found += 1
        if found == _RANDOM_STATE_COUNT:
            break
    return influence, held


def _search_fault(labels: Sequence[str], value: Floats, kept: str = "") -> Fault:
    """Return the fault of a search that failed: the three largest residuals, or that there are no numbers at all."""
    if not np.isfinite(value).all():
        why = "a singular position, or one that the constraints forbid"
        what = f"the equations give no numbers at the start values{kept}: {why}"
        return Fault(what, remedy="start elsewhere: give more states by --at, or other start values in the model")
    order = np.argsort(-np.abs(value))[:3]
    rest = ", ".join(f"{labels[i]} = {value[i]:.3g}" for i in order if value[i] != 0)
    return Fault(f"residuals remain: {rest}{kept}", remedy="start nearer, hold less, or trim an input")
