"""Close loops from guesses, on the assembly branch of the guesses, and explain where that fails.

From guesses q̂ with φ(q̂) ≠ 0 the *Newton path* reduces the residual evenly, φ(q(s)) = (1 − s) φ(q̂), by the shortest
motion at each of its points, measured in typical magnitudes of the coordinates: q' = −G⁺ φ, G the Jacobian's columns of
the coordinates that may move. It ends where the loops are closed, or in a singular position, where two branches meet:
then the guesses are on no branch. The branch of the guesses is the one on which their Newton path ends.

The path is followed by Newton's steps, each as long as G changes little along it, ‖G⁺ ΔG‖ < 1 on the rows' span, so
that its rank stays: no step can jump across a singular position. Source: Deuflhard, Newton Methods for Nonlinear
Problems, 2004, section 3.1 (Newton path, theorem 3.6) and 4.4 (fewer conditions than unknowns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.model.expression_traversal import partial_derivative
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

Floats = npt.NDArray[np.float64]

RANK_TOLERANCE = 1e-9
"""Singular values below it, relative to the largest, count as none."""
CLOSURE_TOLERANCE = 1e-9
"""Largest residual of a closed row, relative to the row's change over typical changes of its coordinates."""

_MAX_STEPS = 200
_STEP_TOLERANCE = 1e-12  # a step below it, relative to the coordinates' sizes, is the last one
_MAX_JACOBIAN_CHANGE = 0.5  # largest ‖G⁺ ΔG‖ along one step
_MIN_STEP_FRACTION = 1e-5  # smallest part of Newton's step: below it the path ends
_SEARCH_POINT_COUNT = 24  # points around the guesses at which the search for other branches begins
_RANK_SAMPLE_DISTANCE = 0.3  # distance at which the generic rank of the rows is counted
_SCALE_SAMPLE_COUNT = 5  # points at which the scales of rows are evaluated
_COORDINATE_TOLERANCE = 1e-6  # of sizes of coordinates


class PositionConstraintResidual:
    """All rows on positions and their Jacobian in numbers, at the start's time.

    Args:
        mechanism: Imported mechanism.
        parameters: Free and calculated parameters.

    Attributes:
        names: Names of the rows.
        typical_magnitudes: Typical magnitude of each coordinate, shape (n,): angles are 1 rad, lengths those of the
            model.
    """

    def __init__(self, mechanism: Mechanism, parameters: Sequence[float] | Floats) -> None:
        m = mechanism
        self.names = tuple(name for name, _ in m.position_rows)
        units = estimate_characteristic_units(m.declared)
        self.typical_magnitudes = np.array([units.typical(item) for item in m.declared.coordinates])
        phi = [row for _, row in m.position_rows]
        arguments = [m.t, *m.q, *m.p, *(calculated.symbol for calculated in m.calculated_parameters)]
        self._shape = len(phi), len(m.q)
        self._entry_positions = [
            (i, j) for i, row in enumerate(phi) for j, q in enumerate(m.q) if q in row.free_symbols
        ]
        self._residual_function = lambdify_for_numpy(arguments, phi)
        derivatives = [partial_derivative(phi[i], m.q[j]) for i, j in self._entry_positions]
        self._derivative_function = lambdify_for_numpy(arguments, derivatives)
        self._parameters = parameters
        self._min_scales = self._typical_scales(np.array([item.start for item in m.declared.coordinates]))

    def _typical_scales(self, start: Floats) -> Floats:
        """Return each row's largest size at and beside the start, shape (m,); in singular positions rows vanish."""
        generator = np.random.default_rng(17)
        steps = [
            _RANK_SAMPLE_DISTANCE * self.typical_magnitudes * generator.uniform(-1.0, 1.0, start.shape)
            for _ in range(_SCALE_SAMPLE_COUNT)
        ]
        scales = np.array(
            [np.abs(self.jacobian(start + step)) @ self.typical_magnitudes for step in (0.0 * start, *steps)]
        )
        return np.asarray(np.max(np.where(np.isfinite(scales), scales, 0.0), axis=0), dtype=np.float64)

    def residual(self, q: Floats) -> Floats:
        """Return φ, shape (m,)."""
        with np.errstate(all="ignore"):
            return np.array(self._residual_function(0.0, *q, *self._parameters), dtype=float)

    def jacobian(self, q: Floats) -> Floats:
        """Return ∂φ/∂q, shape (m, n)."""
        G = np.zeros(self._shape)
        if self._entry_positions:
            with np.errstate(all="ignore"):
                G[tuple(zip(*self._entry_positions, strict=True))] = self._derivative_function(
                    0.0, *q, *self._parameters
                )
        return G

    def coordinate_scales(self, q: Floats) -> Floats:
        """Return the reference for steps: the larger of each coordinate and its typical magnitude, shape (n,)."""
        return np.asarray(np.maximum(self.typical_magnitudes, np.abs(q)), dtype=np.float64)

    def row_scales(self, q: Floats) -> Floats:
        """Return Σ_j |∂φ_i/∂q_j| size_j of each row, but at least its typical size; shape (m,)."""
        scales: Floats = np.abs(self.jacobian(q)) @ self.coordinate_scales(q)
        return np.asarray(np.fmax(scales, self._min_scales), dtype=np.float64)

    def open_rows(self, q: Floats) -> list[int]:
        """Return the numbers of the rows that do not vanish."""
        allowed = CLOSURE_TOLERANCE * self.row_scales(q)
        return [i for i, value in enumerate(self.residual(q)) if not abs(value) <= allowed[i]]

    def describe_open_rows(self, q: Floats) -> str:
        """Return the names and residuals of the rows that do not vanish."""
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


def follow_newton_path(rows: PositionConstraintResidual, start: Floats, free: Sequence[int]) -> NewtonPathEnd:
    """Follow the Newton path.

    Args:
        rows: Rows that must vanish.
        start: All coordinates at the beginning of the path.
        free: Indices of the coordinates that may change.
    """
    q, moving, step_fraction = start.copy(), list(free), 1.0
    # In units of their own: the shortest motion is the same whatever lengths are measured in.
    units, row_lengths = rows.typical_magnitudes[moving], rows.row_scales(q)
    row_lengths = np.where(row_lengths > 0.0, row_lengths, 1.0)

    def scale_jacobian(q: Floats) -> Floats:
        """Return ∂φ/∂q over the rows' scales, times the typical magnitudes of the coordinates."""
        return np.asarray(rows.jacobian(q)[:, moving] * units / row_lengths[:, None])

    residual, G = rows.residual(q), scale_jacobian(q)
    for _ in range(_MAX_STEPS if moving else 0):
        if not (np.isfinite(residual).all() and np.isfinite(G).all()):
            break
        inverse = np.linalg.pinv(G, rcond=RANK_TOLERANCE)
        step = -inverse @ (residual / row_lengths) * units
        if np.all(np.abs(step) <= _STEP_TOLERANCE * rows.coordinate_scales(q)[moving]):
            q[moving] += step
            break
        row_space_projector = inverse @ G
        step_fraction = min(1.0, 4.0 * step_fraction)
        while step_fraction >= _MIN_STEP_FRACTION:
            next_q = q.copy()
            next_q[moving] += step_fraction * step
            next_residual, next_G = rows.residual(next_q), scale_jacobian(next_q)
            if np.isfinite(next_residual).all() and np.isfinite(next_G).all():
                jacobian_change = np.linalg.norm(inverse @ (next_G - G) @ row_space_projector, 2)
                if jacobian_change <= _MAX_JACOBIAN_CHANGE:
                    break
            step_fraction *= 0.5
        else:
            break
        q, residual, G = next_q, next_residual, next_G
    return NewtonPathEnd(q, not rows.open_rows(q))


def find_other_branches(
    rows: PositionConstraintResidual, guesses: Floats, free: Sequence[int], angles: Sequence[int]
) -> list[Floats]:
    """Return other coordinates that close the loops, where the guesses are on no branch: up to three, nearest first.

    Paths begin at places all around the guesses.

    Args:
        rows: Rows that must vanish.
        guesses: All coordinates.
        free: Indices of the coordinates that may change.
        angles: Indices of coordinates that are the same after a whole turn.
    """
    moving = list(free)
    if not moving:
        return []
    generator = np.random.default_rng(11)
    branches: list[Floats] = []
    for size in np.linspace(0.2, 3.0, _SEARCH_POINT_COUNT):
        start_point = guesses.copy()
        start_point[moving] += (
            size * generator.uniform(-1.0, 1.0, len(moving)) * rows.coordinate_scales(guesses)[moving]
        )
        path_end = follow_newton_path(rows, start_point, free)
        if not path_end.closed:
            continue
        q = path_end.q
        free_angles = [i for i in angles if i in moving]
        q[free_angles] = (
            guesses[free_angles] + np.remainder(q[free_angles] - guesses[free_angles] + np.pi, 2 * np.pi) - np.pi
        )
        if not rows.open_rows(q) and all(
            np.any(np.abs(q - branch) > _COORDINATE_TOLERANCE * rows.coordinate_scales(q)) for branch in branches
        ):
            branches.append(q)
    branches.sort(key=lambda q: float(np.linalg.norm((q - guesses) / rows.typical_magnitudes)))
    return branches[:3]


def find_contradictory_constraints(rows: PositionConstraintResidual, q: Floats) -> list[int]:
    """Return the numbers of rows that depend on each other at all positions, but whose residuals contradict."""
    generator = np.random.default_rng(5)
    shifted_q = q + _RANK_SAMPLE_DISTANCE * rows.typical_magnitudes * generator.uniform(-1.0, 1.0, len(q))
    G, row_lengths = rows.jacobian(shifted_q) * rows.typical_magnitudes, rows.row_scales(shifted_q)
    if not np.isfinite(G).all():
        return []
    row_lengths = np.where(row_lengths > 0.0, row_lengths, 1.0)
    U, sizes, _ = np.linalg.svd(G / row_lengths[:, None])
    rank = int(np.count_nonzero(sizes > RANK_TOLERANCE * sizes[0]))
    left_null_space = U[:, rank:]
    share = np.max(np.abs(left_null_space), axis=1, initial=0.0)
    residual = left_null_space.T @ (rows.residual(q) / row_lengths)
    if not left_null_space.size or np.max(np.abs(residual)) <= CLOSURE_TOLERANCE:
        return []
    return [int(i) for i in np.flatnonzero(share > RANK_TOLERANCE)]
