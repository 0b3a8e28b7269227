"""Find constraints that follow from others: everywhere, or only at a singular start.

The rank of the rows is counted at the start and a little beside it, along motions that the constraints allow. Rows that
are redundant wherever the constraints hold stay so, but for the square of the distance; in a position that is singular
(a parallelogram that lies flat) the rank grows with the distance itself. Between the two is room for a threshold.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import ConstraintEvaluator
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import free_parameter_values
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

Floats = npt.NDArray[np.float64]

_RANK_TOLERANCE = 1e-6  # largest residual of a redundant row of unit length at the start. A singular position
# that start values were solved for is known to the root of their round-off only.
_MIN_ROW_LENGTH = 1e-6  # of a row's typical length: a shorter one counts as none
_SAMPLE_COUNT = 5  # samples near the start at which lengths of rows are evaluated
_SAMPLE_DISTANCE = 0.3  # distance of samples, relative to typical magnitudes
_PERTURBATION = 1e-4  # distance by which the mechanism is moved
_PERTURBED_RANK_TOLERANCE = 1e-6  # the same there: between the distance and its square
_DIRECTION_COUNT = 3
_MIN_SHARE = 1e-3  # smallest share of a row in a combination of unit length: far above the effect of the perturbation


@dataclass(frozen=True, slots=True)
class RedundantConstraints:
    """Redundant rows of A.

    Attributes:
        redundant_rows: Names of those that follow from the others wherever the constraints hold.
        undetermined_rows: Names of all rows whose forces are not determined for that reason: the redundant ones, and
            those that they follow from.
        redundant_at_start: Names of further rows that follow from the others at the start only.
    """

    redundant_rows: tuple[str, ...] = ()
    undetermined_rows: tuple[str, ...] = ()
    redundant_at_start: tuple[str, ...] = ()


def find_redundant_constraints(mechanism: Mechanism) -> RedundantConstraints:
    """Return the redundant rows of velocity constraints; the start values must satisfy the constraints.

    Rows are compared per typical speed, so that no choice of units makes one of them follow from others.
    """
    m, declared = mechanism, mechanism.declared
    constraints = m.velocity_constraints
    if constraints is None:
        return RedundantConstraints()
    numeric = MechanismEvaluator(m)
    parameters = numeric.parameters(free_parameter_values(m))
    units = typical_speeds(m)
    typical_lengths = typical_row_lengths(m, units=units)
    characteristic = estimate_characteristic_units(declared)
    sizes = np.array([characteristic.typical(item) for item in declared.coordinates])
    z, r = (np.array([item.start for item in items]) for items in (declared.auxiliary_states, declared.inputs))

    def rows(q: Floats) -> Floats:
        """Return the velocity rows at a place, over typical speeds and of unit length."""
        numeric.set_state(0.0, q, np.zeros(len(m.u_all)), z, r, parameters)
        A = numeric.velocity_constraint_terms()[0] * units
        return A / compute_row_norm_divisors(A, typical_lengths)[:, None]

    start = np.array([item.start for item in declared.coordinates])
    start_rows = rows(start)
    holonomic_count = len(m.holonomic)
    singular = _dependent_rows(start_rows, holonomic_count, _RANK_TOLERANCE)
    if not singular:
        return RedundantConstraints()
    import scipy.linalg  # takes long to import

    K = numeric.kinematic_matrices()[0]
    free = scipy.linalg.null_space(start_rows, rcond=_RANK_TOLERANCE)
    generator = np.random.default_rng(3)
    redundant, regular_rows = set(singular), start_rows
    for _ in range(_DIRECTION_COUNT):
        step = K @ (units[:, None] * free) @ generator.normal(size=free.shape[1])
        size = float(np.linalg.norm(step / sizes))
        moved_rows = rows(start + _PERTURBATION / size * step) if size > 0.0 else start_rows
        dependent_rows = _dependent_rows(moved_rows, holonomic_count, _PERTURBED_RANK_TOLERANCE)
        if len(dependent_rows) < len(redundant):
            redundant, regular_rows = set(dependent_rows), moved_rows
    row_numbers = (
        sorted(redundant),
        _find_combined_rows(regular_rows, len(redundant)),
        sorted(set(singular) - redundant),
    )
    return RedundantConstraints(*(tuple(constraints.names[i] for i in numbers) for numbers in row_numbers))


def _find_combined_rows(rows: Floats, redundant: int) -> list[int]:
    """Return the numbers of the rows in vanishing combinations of rows, of which ``redundant`` exist."""
    if not redundant:
        return []
    combinations = np.linalg.svd(rows)[0][:, len(rows) - redundant :]
    share = np.linalg.norm(combinations, axis=1)
    return [int(i) for i in np.flatnonzero(share > _MIN_SHARE)]


def compute_row_norm_divisors(rows: Floats, typical: Floats) -> Floats:
    """Return the divisors that give rows unit length; next to nothing for rows that vanish but for round-off.

    Args:
        rows: Shape (m, n).
        typical: Their typical lengths, shape (m,).

    Returns:
        Shape (m,).
    """
    length = np.asarray(np.linalg.norm(rows, axis=1))
    return np.where(length > _MIN_ROW_LENGTH * typical, length, typical)


def typical_speeds(mechanism: Mechanism) -> Floats:
    """Return the typical magnitude of each speed, shape (n_u,)."""
    natural_units = estimate_characteristic_units(mechanism.declared)
    return np.array([natural_units.typical(item) for item in mechanism.declared.speeds])


def typical_row_lengths(
    mechanism: Mechanism, numeric: ConstraintEvaluator | None = None, units: Floats | None = None
) -> Floats:
    """Return typical length of each row of A, over the speeds: the largest at the start and beside it, shape (m,), > 0.

    Coordinates are moved by up to 0.3 of their typical magnitudes; 1 where a row vanishes everywhere.

    Args:
        mechanism: With velocity constraints.
        numeric: Its constraints in numbers, if they exist already.
        units: Units of the speeds, shape (n_u,); None: SI units.
    """
    m, declared = mechanism, mechanism.declared
    numeric, characteristic = numeric or ConstraintEvaluator(m), estimate_characteristic_units(declared)
    z, r = (np.array([item.start for item in items]) for items in (declared.auxiliary_states, declared.inputs))
    start = np.array([item.start for item in declared.coordinates])
    sizes = np.array([characteristic.typical(item) for item in declared.coordinates])
    generator = np.random.default_rng(17)
    samples = [
        start,
        *(start + _SAMPLE_DISTANCE * sizes * generator.uniform(-1, 1, start.shape) for _ in range(_SAMPLE_COUNT)),
    ]
    with np.errstate(all="ignore"):
        rows = [numeric.evaluate(0.0, q, z, r, free_parameter_values(m))[0] for q in samples]
    lengths = np.array([np.linalg.norm(A if units is None else A * units, axis=1) for A in rows])
    max_lengths = np.max(np.where(np.isfinite(lengths), lengths, 0.0), axis=0)
    return np.where(max_lengths > 0.0, max_lengths, 1.0)


def _dependent_rows(rows: Floats, first_count: int, threshold: float) -> list[int]:
    """Return the numbers of rows that lie within ``threshold`` of the span of others, earlier rows first.

    QR with column pivoting of the transposed rows: of the ``first_count`` ones, then of what they leave of the rest.
    """
    if len(rows) <= rows.shape[1] and np.linalg.svd(rows, compute_uv=False).min(initial=np.inf) > threshold:
        return []  # a row's distance from the span of others is no less than the smallest singular value
    import scipy.linalg

    dependent: list[int] = []
    span = np.zeros((rows.shape[1], 0))
    for numbers in (range(first_count), range(first_count, len(rows))):
        remaining_columns = rows[list(numbers)].T
        remaining_columns = remaining_columns - span @ (span.T @ remaining_columns)
        if not remaining_columns.size:
            continue
        Q, R, order = scipy.linalg.qr(remaining_columns, mode="economic", pivoting=True)
        rank = int(np.count_nonzero(np.abs(np.diag(R)) > threshold))
        dependent += [numbers[int(i)] for i in order[rank:]]
        span = np.concatenate([span, Q[:, :rank]], axis=1)
    return sorted(dependent)
