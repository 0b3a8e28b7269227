"""Close loops from guesses, on the assembly branch of the guesses, and explain where that fails.

From guesses q̂ with φ(q̂) ≠ 0 the *Newton path* takes what is left open away evenly, φ(q(s)) = (1 − s) φ(q̂), by the
shortest motion at each of its points, measured in typical magnitudes of the coordinates: q' = −G⁺ φ, G the Jacobian's
columns of the coordinates that may move. It ends where the loops are closed, or in a singular position, where two
branches meet: there the guesses are on none. The branch that guesses are on is the one where their Newton path ends.

The path is followed by Newton's steps, each as long as G changes little along it, ‖G⁺ ΔG‖ < 1 on the rows' span, so
that its rank stays: no step can jump across a singular position. Source: Deuflhard, Newton Methods for Nonlinear
Problems, 2004, section 3.1 (Newton path, theorem 3.6) and 4.4 (fewer conditions than unknowns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

Floats = npt.NDArray[np.float64]

RANK_TOLERANCE = 1e-9
"""Singular values below it, relative to the largest, count as none."""
CLOSURE_TOLERANCE = 1e-9
"""What more is left over of a row, relative to what its coordinates change it by, is open."""

_MAX_STEPS = 200
_STEP_TOLERANCE = 1e-12  # a step below it, relative to the coordinates' sizes, is the last one
_MAX_JACOBIAN_CHANGE = 0.5  # of ‖G⁺ ΔG‖ along one step
_MIN_STEP_FRACTION = 1e-5  # part of Newton's step: the path does not go on
_SEARCH_POINT_COUNT = 24  # around the guesses, from which other branches are looked for
_RANK_SAMPLE_DISTANCE = 0.3  # how far away the rank is counted that rows have everywhere
_SCALE_SAMPLE_COUNT = 5  # places at which the sizes of rows are looked at
_COORDINATE_TOLERANCE = 1e-6  # of sizes of coordinates


class LoopResidual:
    """All rows on positions and their Jacobian in numbers, at the start's time.

    Args:
        mechanism: As read.
        parameters: Free and calculated ones.

    Attributes:
        names: Of the rows.
        typical: Typical magnitude of each coordinate, shape (n,): angles are 1 rad, lengths those of the model.
    """

    def __init__(self, mechanism: Mechanism, parameters: Sequence[float] | Floats) -> None:
        m = mechanism
        self.names = tuple(name for name, _ in m.position_rows)
        natural = estimate_characteristic_units(m.declared)
        self.typical = np.array([natural.typical(item) for item in m.declared.coordinates])
        phi = [row for _, row in m.position_rows]
        arguments = [m.t, *m.q, *m.p, *(a.symbol for a in m.calculated_parameters)]
        self._shape = len(phi), len(m.q)
        self._places = [(i, j) for i, row in enumerate(phi) for j, q in enumerate(m.q) if q in row.free_symbols]
        self._phi = sm.lambdify(arguments, phi, modules=["scipy", "numpy"])
        slopes = [phi[i].diff(m.q[j]) for i, j in self._places]
        self._slopes = sm.lambdify(arguments, slopes, modules=["scipy", "numpy"])
        self._parameters = parameters
        self._least = self._typical_scales(np.array([item.start for item in m.declared.coordinates]))

    def _typical_scales(self, start: Floats) -> Floats:
        """Return each row's largest size at and beside the start, shape (m,); in singular positions rows vanish."""
        generator = np.random.default_rng(17)
        aside = [
            _RANK_SAMPLE_DISTANCE * self.typical * generator.uniform(-1.0, 1.0, start.shape)
            for _ in range(_SCALE_SAMPLE_COUNT)
        ]
        found = np.array([np.abs(self.jacobian(start + step)) @ self.typical for step in (0.0 * start, *aside)])
        return np.asarray(np.max(np.where(np.isfinite(found), found, 0.0), axis=0), dtype=np.float64)

    def residual(self, q: Floats) -> Floats:
        """Return φ, shape (m,)."""
        with np.errstate(all="ignore"):
            return np.array(self._phi(0.0, *q, *self._parameters), dtype=float)

    def jacobian(self, q: Floats) -> Floats:
        """Return ∂φ/∂q, shape (m, n)."""
        G = np.zeros(self._shape)
        if self._places:
            with np.errstate(all="ignore"):
                G[tuple(zip(*self._places, strict=True))] = self._slopes(0.0, *q, *self._parameters)
        return G

    def sizes(self, q: Floats) -> Floats:
        """Return the reference for steps: the larger of each coordinate and its typical magnitude, shape (n,)."""
        return np.asarray(np.maximum(self.typical, np.abs(q)), dtype=np.float64)

    def scales(self, q: Floats) -> Floats:
        """Return Σ_j |∂φ_i/∂q_j| size_j of each row, but at least its typical size; shape (m,)."""
        found: Floats = np.abs(self.jacobian(q)) @ self.sizes(q)
        return np.asarray(np.fmax(found, self._least), dtype=np.float64)

    def open_rows(self, q: Floats) -> list[int]:
        """Return the numbers of the rows that do not vanish."""
        allowed = CLOSURE_TOLERANCE * self.scales(q)
        return [i for i, value in enumerate(self.residual(q)) if not abs(value) <= allowed[i]]

    def describe_open_rows(self, q: Floats) -> str:
        """Return the rows that do not vanish, and by how much."""
        residual = self.residual(q)
        return ", ".join(f"{self.names[i]} by {residual[i]:.3g}" for i in self.open_rows(q))


@dataclass(frozen=True, slots=True)
class NewtonPathEnd:
    """End of a Newton path.

    Attributes:
        q: All coordinates there.
        closed: Whether the rows vanish there.
    """

    q: Floats
    closed: bool


def follow_newton_path(rows: LoopResidual, start: Floats, free: Sequence[int]) -> NewtonPathEnd:
    """Follow the Newton path.

    Args:
        rows: What is to vanish.
        start: All coordinates, where it begins.
        free: Indices of those that move.
    """
    q, moving, part = start.copy(), list(free), 1.0
    # In units of their own: the shortest motion is the same whatever lengths are measured in.
    units, lengths = rows.typical[moving], rows.scales(q)
    lengths = np.where(lengths > 0.0, lengths, 1.0)

    def slopes(at: Floats) -> Floats:
        """Return ∂φ/∂q over the rows' scales, times the typical magnitudes of the coordinates."""
        return np.asarray(rows.jacobian(at)[:, moving] * units / lengths[:, None])

    residual, G = rows.residual(q), slopes(q)
    for _ in range(_MAX_STEPS if moving else 0):
        if not (np.isfinite(residual).all() and np.isfinite(G).all()):
            break
        inverse = np.linalg.pinv(G, rcond=RANK_TOLERANCE)
        step = -inverse @ (residual / lengths) * units
        if np.all(np.abs(step) <= _STEP_TOLERANCE * rows.sizes(q)[moving]):
            q[moving] += step
            break
        onto = inverse @ G
        part = min(1.0, 4.0 * part)
        while part >= _MIN_STEP_FRACTION:
            tried = q.copy()
            tried[moving] += part * step
            found, there = rows.residual(tried), slopes(tried)
            if np.isfinite(found).all() and np.isfinite(there).all():
                turn = np.linalg.norm(inverse @ (there - G) @ onto, 2)
                if turn <= _MAX_JACOBIAN_CHANGE:
                    break
            part *= 0.5
        else:
            break
        q, residual, G = tried, found, there
    return NewtonPathEnd(q, not rows.open_rows(q))


def find_other_branches(
    rows: LoopResidual, guesses: Floats, free: Sequence[int], angles: Sequence[int]
) -> list[Floats]:
    """Return other coordinates that close the loops, where the guesses are on no branch: up to three, nearest first.

    Paths begin at places all around the guesses.

    Args:
        rows: What is to vanish.
        guesses: All coordinates.
        free: Indices of those that move.
        angles: Indices of coordinates that are the same after a whole turn.
    """
    moving = list(free)
    if not moving:
        return []
    generator = np.random.default_rng(11)
    found: list[Floats] = []
    for size in np.linspace(0.2, 3.0, _SEARCH_POINT_COUNT):
        beside = guesses.copy()
        beside[moving] += size * generator.uniform(-1.0, 1.0, len(moving)) * rows.sizes(guesses)[moving]
        reached = follow_newton_path(rows, beside, free)
        if not reached.closed:
            continue
        q = reached.q
        turning = [i for i in angles if i in moving]
        q[turning] = guesses[turning] + np.remainder(q[turning] - guesses[turning] + np.pi, 2 * np.pi) - np.pi
        if not rows.open_rows(q) and all(
            np.any(np.abs(q - other) > _COORDINATE_TOLERANCE * rows.sizes(q)) for other in found
        ):
            found.append(q)
    found.sort(key=lambda q: float(np.linalg.norm((q - guesses) / rows.typical)))
    return found[:3]


def find_contradictory_rows(rows: LoopResidual, q: Floats) -> list[int]:
    """Return the numbers of rows that depend on each other at all positions, but whose residuals contradict."""
    generator = np.random.default_rng(5)
    aside = q + _RANK_SAMPLE_DISTANCE * rows.typical * generator.uniform(-1.0, 1.0, len(q))
    G, lengths = rows.jacobian(aside) * rows.typical, rows.scales(aside)
    if not np.isfinite(G).all():
        return []
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    U, sizes, _ = np.linalg.svd(G / lengths[:, None])
    rank = int(np.count_nonzero(sizes > RANK_TOLERANCE * sizes[0]))
    null = U[:, rank:]
    share = np.max(np.abs(null), axis=1, initial=0.0)
    residual = null.T @ (rows.residual(q) / lengths)
    if not null.size or np.max(np.abs(residual)) <= CLOSURE_TOLERANCE:
        return []
    return [int(i) for i in np.flatnonzero(share > RANK_TOLERANCE)]
