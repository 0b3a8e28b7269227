"""Random states of a mechanism near its start, and a comparison of vectors of numbers there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

Array = npt.NDArray[np.float64]
SAMPLE_COUNT = 3
MAX_ATTEMPTS = 20
COMPARISON_TOLERANCE = 1e-8
"""Largest difference of vectors that are equal but for round-off, relative to them."""
ROUND_OFF_TOLERANCE = 1e-12
"""Largest round-off where larger quantities of the same unit cancel, relative to these."""
_VANISHING_ROW_FRACTION = 1e-13
"""A row of constraints over typical speeds that is shorter than this part of the longest is round-off."""
_RANK_TOLERANCE = 1e-10
"""Singular values of rows of unit length below it count as none."""


@dataclass(frozen=True, slots=True)
class RandomStateSample:
    """One random state: any speeds (``u``), and speeds on the velocity constraints (``u_constrained``)."""

    t: float
    q: Array
    u: Array
    u_constrained: Array
    z: Array
    r: Array
    parameters: Array


def free_parameter_values(mechanism: Mechanism) -> list[float]:
    """Return the values of the free parameters as declared."""
    return [float(parameter.value) for parameter in mechanism.declared.parameters if not parameter.calculated]


def draw_random_states(
    numeric: MechanismEvaluator, free_parameters: Sequence[float] | None = None, *, without_zeros: bool = False
) -> list[RandomStateSample]:
    """Return random states near the start, where everything is finite; scaled by the mechanism's magnitudes.

    Args:
        numeric: The mechanism.
        free_parameters: Values of the free parameters, such as those of an experiment; None: as declared. What is zero
            stays zero, so what is found holds there.
        without_zeros: Results must hold for all values: a parameter that is zero has its typical magnitude
            instead, if the mechanism can be evaluated there.

    Raises:
        MechanismError: If it cannot be evaluated at any of the states tried.
    """
    m, units = numeric.mechanism, estimate_characteristic_units(numeric.mechanism.declared)
    q_sizes, u_sizes, r_sizes, z_sizes = (
        np.array([units.typical(item) for item in items])
        for items in (m.declared.coordinates, m.declared.speeds, m.declared.inputs, m.declared.auxiliary_states)
    )
    generator = np.random.default_rng(20090)
    start = np.array([coordinate.start for coordinate in m.declared.coordinates])
    z_start = np.array([state.start for state in m.declared.auxiliary_states])
    nominal = np.array(free_parameter_values(m) if free_parameters is None else free_parameters, dtype=float)
    nonzero = np.where(nominal == 0.0, _typical_parameters(m), nominal) if without_zeros else nominal
    samples: list[RandomStateSample] = []
    for attempt in range(MAX_ATTEMPTS):
        values = nonzero if 2 * attempt < MAX_ATTEMPTS else nominal
        free_values = values * (1 + 0.1 * generator.uniform(-1, 1, nominal.shape))
        q = start + q_sizes * generator.uniform(-0.7, 0.7, start.shape)
        u = u_sizes * generator.uniform(-1, 1, len(m.u))
        offsets = generator.uniform(-1, 1, len(m.z))
        # States that start from zero (a deflection) move loads too: there it would seem that nothing acts.
        z = np.where(z_start == 0.0, z_sizes * (0.4 + 0.3 * offsets), z_start * (1 + 0.1 * offsets))
        r = np.array([i.start for i in m.declared.inputs]) + r_sizes * generator.uniform(-0.1, 0.1, len(m.r))
        t = float(units.magnitude("s") * generator.uniform(0.1, 1))
        with np.errstate(all="ignore"):
            parameters = numeric.parameters(free_values)
            numeric.set_state(t, q, append_auxiliary_speeds(m, u), z, r, parameters)
            A, b, _ = numeric.velocity_constraint_terms()
            finite = np.isfinite(A).all() and all(np.isfinite(point.velocity).all() for point in numeric.points)
        if finite:
            u_constrained = u
            if len(A):
                lengths = row_lengths_above_round_off(A * u_sizes)
                inverse = np.linalg.pinv(A * u_sizes / lengths[:, None], rcond=_RANK_TOLERANCE)
                u_constrained = u - u_sizes * (inverse @ ((A @ u + b) / lengths))
            samples.append(RandomStateSample(t, q, u, u_constrained, z, r, parameters))
        if len(samples) == SAMPLE_COUNT:
            return samples
    problem = "positions and velocities are not finite at any of the states tried near the start values"
    raise MechanismError(
        "the mechanism cannot be evaluated:", [Fault(problem, remedy="check parameter and start values")]
    )


def _typical_parameters(m: Mechanism) -> Array:
    """Return the typical magnitudes of the free parameters, within their bounds."""
    units, magnitudes = estimate_characteristic_units(m.declared), []
    for parameter in m.declared.parameters:
        if not parameter.calculated:
            lowest = -np.inf if parameter.minimum is None else parameter.minimum
            highest = np.inf if parameter.maximum is None else parameter.maximum
            magnitudes.append(float(np.clip(units.typical(parameter), lowest, highest)))
    return np.array(magnitudes)


def append_auxiliary_speeds(m: Mechanism, u: Array) -> Array:
    """Return all speeds: auxiliary ones, last, are zero."""
    return np.concatenate([u, np.zeros(len(m.u_auxiliary))])


def set_random_mechanism_state(numeric: MechanismEvaluator, sample: RandomStateSample, *, on_constraints: bool) -> None:
    """Move the mechanism to a sample; its speeds are arbitrary or satisfy the velocity constraints."""
    u = sample.u_constrained if on_constraints else sample.u
    numeric.set_state(
        sample.t, sample.q, append_auxiliary_speeds(numeric.mechanism, u), sample.z, sample.r, sample.parameters
    )


def row_lengths_above_round_off(rows: Array) -> Array:
    """Return the lengths of rows; for a row that is round-off beside the others, the length of the longest.

    So a row that vanishes stays next to nothing when it is divided by its length, be it an exact zero or not.
    """
    length = np.linalg.norm(rows, axis=1)
    longest = np.max(length, initial=0.0) or 1.0
    return np.asarray(np.where(length > _VANISHING_ROW_FRACTION * longest, length, longest))


def count_independent_rows(rows: Array) -> int:
    """Return the rank of rows, each taken by its direction alone.

    Args:
        rows: Shape (m, n), in units in which typical columns are alike.
    """
    if not rows.size:
        return 0
    return int(np.linalg.matrix_rank(rows / row_lengths_above_round_off(rows)[:, None], tol=_RANK_TOLERANCE))


def differ_beyond_roundoff(a: Array, b: Array, largest_magnitude: float) -> bool:
    """Return whether two vectors differ by more than round-off.

    Args:
        a: One.
        b: The other, of the same unit.
        largest_magnitude: Largest magnitude of quantities from which they may be computed, of the same unit.
    """
    return bool(
        np.max(np.abs(a - b))
        > COMPARISON_TOLERANCE * (np.max(np.abs(a)) + np.max(np.abs(b))) + ROUND_OFF_TOLERANCE * largest_magnitude
    )


def max_point_speed(numeric: MechanismEvaluator) -> float:
    """Return the largest component of all velocities of points, m/s, at the present state."""
    return max(float(np.max(np.abs(point.velocity))) for point in numeric.points)


def max_angular_velocity(numeric: MechanismEvaluator) -> float:
    """Return the largest component of all angular velocities, rad/s, at the present state."""
    return max(float(np.max(np.abs(frame.omega))) for frame in numeric.frames)


def format_vector_components(vector: Array) -> str:
    """Return the components for a message."""
    return "(" + ", ".join(f"{value:.4g}" for value in vector) + ")"
