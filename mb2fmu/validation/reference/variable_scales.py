"""Scales: the size of each quantity, so that the validation can distinguish small errors from large ones.

Everything here follows from the mechanism's own numbers. With all lengths, masses or times a million times larger or
smaller, every scale is, and no verdict changes. No quantity gets the scale of another unit.

**Typical magnitude** of a variable: its ``nominal``, or the natural magnitude of its unit
(:mod:`mb2fmu.model.scales.characteristic_units`).

**Moving or standing still.** A variable v of the reference moves if at some time

    |v(t) − v(0)| > max(100 · uncertainty_v(t), 1e-12 · typical_v)

Less is what round-off leaves of larger numbers that cancel, or of nothing.

**Scale** of a coordinate, speed or auxiliary state x_j, by which starts are perturbed:

    scale_j = min(max |x_j|, 10 · range_j)      if x_j moves
    scale_j = typical_j                          if it stands still

**Size** of a variable v, of which every bound is a part that is at most 5 %:

    size_v = range_v                             if v moves
    size_v = S_v, what the scales above change it by, if that is above 1e-6 · typical_v and v has no nominal;
             at the start, of outputs also later: energy is stationary at an equilibrium
    size_v = max(typical_v, 1e-6 · the largest value among variables of the same unit)      otherwise

(``motion_comparison`` says what stands still besides: what moves by round-off of a file's constants.) Magnitudes and
ranges, here and above, are those at the communication points, within the first step, and within the steps where inputs
jump most: there a stiff spring may vibrate and come to rest again.

**Round-off** of v: 64 units in the last place of the largest value among variables of the same unit; of the typical
magnitude where all of these stand still. While dry friction holds, efforts cancel that may be as large as its limit:
64 units in the last place of these, too.

**Error scales** of the reference's integrators: the local error of x_j is kept below

    tolerance · |x_j| + max(tolerance · max |x_j|, ε · typical_j)

with ε the machine's precision. The last term is the round-off of typical numbers; without it the noise of a state that
stands still would have to be integrated, and every step size would be too long.

**Constraint rows** φ_i(q, t) and A_i u + b_i: the sum over the coordinates (or speeds) of what row i changes by, at
most, when that coordinate alone moves by up to its scale: Σ_j max_δ |φ_i(q + δ e_j) − φ_i(q)|, |δ| ≤ scale_j. An angle
that has turned 1e4 rad changes a loop by no more than the lengths that it turns.

**Energies**: the larger of the largest kinetic energy and the range of the work; the natural energy where both are
below 1e-24 of that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from mb2fmu.units import parse_unit

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

EPSILON = float(np.finfo(float).eps)
ROUND_OFF_ALLOWANCE = 64 * EPSILON
REFERENCE_ACCURACY_FACTOR = 100.0
"""How much better than what is judged by it the reference must know a value."""
ERROR_BOUND_FACTOR = 50.0
"""Times the tolerance, that an error of a right FMU may be, see ``motion_comparison``."""
STEP_CONTROL_FACTOR = 10.0
"""Times tolerance and magnitude, that a right FMU's state may be off: see ``motion_comparison``."""
MAX_INFORMATIVE_FRACTION = 0.05
"""The largest part of a variable's size that its bound may be."""
STANDSTILL_FRACTION = 1e-12
"""Part of the typical magnitude below which nothing moves."""
NEGLIGIBLE_FRACTION = 1e-6
"""Part of what is there for comparison, below which a sensitivity or a typical magnitude says nothing."""
_ZERO_FRACTION = 1e-9  # of others of the same unit, or of energies: less is round-off of terms that cancel
_SIZE_IN_RANGES = 10.0  # of a state that is far from zero and hardly moves
_ROW_SCALE_POINTS = 6  # points of a motion at which constraint rows are moved aside
_ROW_EVALUATIONS = 2400  # of constraint rows, about, for their scales; never fewer than two points
_DISPLACEMENT_FRACTIONS = (1.0, -0.62, 0.29, -0.11)  # parts of a scale that have no period of an angle in common


class ConstraintResidualFunction(Protocol):
    """Constraint rows as functions of numbers."""

    def residuals(self, points: Floats, prepared: Sequence[float]) -> Floats:
        """Return φ(q, t), then A u + b, at points (t, q, u, z, r), one in each row; shape (n, n_phi + m)."""


def find_moving_variables(values: Floats, uncertainty: Floats, typical: Floats) -> Flags:
    """Return which variables move.

    Args:
        values: Shape (n_t, n).
        uncertainty: Of them, same shape.
        typical: Typical magnitudes, shape (n,).

    Returns:
        Shape (n,).
    """
    # At the start all runs that an uncertainty comes from have the same digits.
    known_uncertainty = np.maximum(uncertainty, uncertainty[:2].max(axis=0))
    noise = np.maximum(REFERENCE_ACCURACY_FACTOR * known_uncertainty, STANDSTILL_FRACTION * typical)
    return np.asarray(np.any(np.abs(values - values[0]) > noise, axis=0))


def compute_motion_scales(values: Floats, is_moving: Flags, typical: Floats) -> Floats:
    """Return the scale of each variable by its own motion, shape (n,); see :func:`find_moving_variables`."""
    largest = np.max(np.abs(values), axis=0)
    return np.where(is_moving, np.minimum(largest, _SIZE_IN_RANGES * np.ptp(values, axis=0)), typical)


def compute_variable_sizes_of_motion(
    values: Floats, is_moving: Flags, typical: Floats, largest_of_unit: Floats, start_sensitivity: Floats
) -> Floats:
    """Return the size of each variable, to which its bounds are relative, shape (n,).

    Args:
        values: Shape (n_t, n).
        is_moving: Shape (n,).
        typical: Typical magnitudes, shape (n,).
        largest_of_unit: Largest value among those of the same unit, shape (n,).
        start_sensitivity: What a variable that has no ``nominal`` changes by at the start for perturbations of all
            states by their scales; 0 where it has one.
    """
    size_at_rest = np.where(
        start_sensitivity > NEGLIGIBLE_FRACTION * typical,
        start_sensitivity,
        np.maximum(typical, NEGLIGIBLE_FRACTION * largest_of_unit),
    )
    return np.where(is_moving, np.ptp(values, axis=0), size_at_rest)


def find_largest_value_per_unit(units: Sequence[str], values: Floats, is_moving: Flags, typical: Floats) -> Floats:
    """Return for each variable the largest magnitude of its unit; the typical one if all of them are at rest.

    Returns:
        Shape (n,), > 0.
    """
    largest = np.max(np.abs(values), axis=0)
    groups = {unit: [i for i, each in enumerate(units) if each == unit] for unit in units}
    return np.array(
        [
            max(largest[groups[unit]]) if is_moving[groups[unit]].any() else max(*largest[groups[unit]], typical[i])
            for i, unit in enumerate(units)
        ]
    )


def enlarge_sizes_of_zeros(sizes: Floats, largest: Floats, units: Sequence[str], energy: float) -> Floats:
    """Return sizes for round-off; a quantity that is zero gets the size of the terms that cancel in it.

    The torque of a hinge about its own axis is zero, of terms as large as the energies of the motion, whatever a
    typical torque is.

    Args:
        sizes: Of each quantity, > 0, shape (n,).
        largest: Largest magnitude of each quantity along the motion, shape (n,).
        units: Their units.
        energy: Scale of energies, J: of torques, too.
    """
    joule = parse_unit("J").exponents
    terms = find_largest_value_per_unit(units, largest[None, :], np.ones(len(sizes), dtype=bool), sizes)
    for i, parsed in enumerate(map(parse_unit, units)):
        if parsed.exponents == joule:
            terms[i] = max(terms[i], energy / parsed.factor)
    return np.where(largest < _ZERO_FRACTION * terms, np.maximum(sizes, terms), sizes)


def estimate_start_scales(start: Floats, typical: Floats) -> Floats:
    """Return scales of states before integration: from start values where these are not zero, shape (n,)."""
    size = np.abs(start)
    return np.where(size > NEGLIGIBLE_FRACTION * typical, np.minimum(size, typical), typical)


def compute_tolerance_scales(largest: Floats, typical: Floats, tolerance: float) -> Floats:
    """Return the scale of an integrator's relative ``tolerance`` besides present values, shape (n,), > 0.

    Args:
        largest: Largest magnitude of each state, shape (n,).
        typical: Typical magnitudes, shape (n,).
        tolerance: Of the integration.
    """
    return np.maximum(largest, EPSILON / tolerance * typical)


def compute_energy_scale(kinetic: Floats, work: Floats, natural_energy: float) -> float:
    """Return the scale of energies in J, > 0, by this module's docstring; NaN stands for unknown energies.

    Args:
        kinetic: T in J, shape (n,).
        work: Integrated power in J, shape (m,).
        natural_energy: Natural energy in J.
    """
    finite_energies = kinetic[np.isfinite(kinetic)]
    largest = max(float(np.max(np.abs(finite_energies), initial=0.0)), float(np.ptp(work)) if len(work) else 0.0)
    return largest if largest > STANDSTILL_FRACTION**2 * natural_energy else natural_energy


def compute_residual_scales_and_round_off(
    rows: ConstraintResidualFunction,
    counts: tuple[int, int],
    points: Floats,
    scales: Floats,
    prepared: Sequence[float],
) -> tuple[Floats, Floats]:
    """Return scale and round-off of each constraint row.

    Args:
        rows: The constraints.
        counts: Number of rows φ(q, t), which come first, and of coordinates.
        points: A motion: rows (t, q, u, z, r), shape (n_t, 1 + n_q + n_u + n_z + n_r).
        scales: Of q, then of u, shape (n_q + n_u,).
        prepared: Parameter values.

    Returns:
        Scales, > 0, and sums of the terms' magnitudes, of which round-off is a part; shapes (n_phi + m,).
    """
    holonomic, n_q = counts
    displacements = [
        (j, fraction * scale)
        for j, scale in enumerate(scales.tolist())
        for fraction in (_DISPLACEMENT_FRACTIONS if j < n_q else _DISPLACEMENT_FRACTIONS[:1])
    ]
    columns, sizes = (
        np.array([j for j, _ in displacements], dtype=np.intp),
        np.array([size for _, size in displacements]),
    )
    last = np.flatnonzero(np.diff(columns, append=-1))  # of each column
    count = min(_ROW_SCALE_POINTS, max(2, _ROW_EVALUATIONS // max(1, len(displacements))))
    effects, terms = [], []
    for k in np.unique(np.linspace(0, len(points) - 1, count).astype(np.int64)).tolist():
        displaced_points = np.repeat(points[k : k + 1], 1 + len(displacements), axis=0)
        displaced_points[1 + np.arange(len(displacements)), 1 + columns] += sizes
        residuals = rows.residuals(displaced_points, prepared)
        changes = np.abs(residuals[1:] - residuals[:1])
        effects_of_row = np.zeros((len(scales), changes.shape[1]))
        np.fmax.at(effects_of_row, columns, changes)
        # The shortest displacement says how steep a row is there.
        terms_of_row = changes[last] / np.abs(sizes[last, None]) * np.abs(points[k, 1 + columns[last], None])
        # Of velocity rows the speeds alone are moved.
        effects_of_row[:n_q, holonomic:] = 0.0
        terms_of_row[:n_q, holonomic:] = 0.0
        effects.append(effects_of_row)
        terms.append(terms_of_row.sum(axis=0))
    scale = np.max(effects, axis=0).sum(axis=0)
    return np.maximum(scale, np.finfo(float).tiny), np.max(terms, axis=0)
