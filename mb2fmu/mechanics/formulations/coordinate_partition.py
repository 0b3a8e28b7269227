"""``partition_coordinates``: which coordinates and speeds of a mechanism with loops are independent (Wehage and Haug).

Those that the user names as dependent, or those that the constraints determine best at the start: QR factorization of
their Jacobian with column pivoting. The choice is made once; it holds as long as the motion stays in its chart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.linalg

from mb2fmu.errors import Fault, FormulationError
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import NumericConstraints
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.kinematics_check import free_parameter_values
from mb2fmu.mechanics.mechanism.sympy_import.redundant_constraints import row_normalization_lengths, typical_row_lengths

Floats = npt.NDArray[np.float64]

_MIN_SINGULAR_VALUE = 1e-6  # smallest singular value of the dependent columns, as a part of the largest of all
_PARTITION_HEADLINE = "the coordinates cannot be partitioned:"


@dataclass(frozen=True, slots=True)
class CoordinatePartition:
    """The dependent coordinates and speeds.

    Attributes:
        q_dependent: Indices of coordinates, one per holonomic constraint.
        u_dependent: Indices of speeds, one per velocity constraint.
        last: Start values of those coordinates.
        place: Start values of the other coordinates.
    """

    q_dependent: tuple[int, ...]
    u_dependent: tuple[int, ...]
    last: tuple[float, ...]
    place: tuple[float, ...]


def partition_coordinates(mechanism: Mechanism, dependent: tuple[int, ...] = ()) -> CoordinatePartition:
    """Choose dependent coordinates and speeds.

    Args:
        mechanism: Its loops closed at the start; no constraint follows from others wherever these hold.
        dependent: Indices of the dependent coordinates; () for those that the mechanics name.

    Raises:
        FormulationError: If constraints depend on each other at the start, or the named coordinates do not follow from
            the others there.
    """
    m, d = mechanism, mechanism.declared
    q = np.array([c.start for c in d.coordinates])
    z, r = (np.array([item.start for item in items]) for items in (d.auxiliary_states, d.inputs))
    A, _, K = NumericConstraints(m).at(0.0, q, z, r, free_parameter_values(m))
    if K.shape[0] != K.shape[1] or np.linalg.matrix_rank(K) < len(K):
        what = f"there are {K.shape[0]} coordinates and {K.shape[1]} speeds, which must determine each other"
        raise FormulationError(_PARTITION_HEADLINE, [Fault(what, remedy="let the constraints be treated by attractor")])
    G = A[: len(m.holonomic)] @ np.linalg.inv(K)
    chosen = dependent or tuple(i for i, c in enumerate(d.coordinates) if c.name in d.dependent)
    lengths = typical_row_lengths(m)
    names = [c.name for c in d.coordinates]
    q_dependent = _choose_dependent_columns(G, lengths[: len(G)], chosen, names, "coordinates")
    moved = tuple(i for i in range(len(m.u)) if i not in m.u_independent)
    if len(moved) != len(A) or dependent:
        moved = tuple(i for i in range(len(m.u)) if any(abs(K[j, i]) > 0.0 for j in q_dependent))
    u_dependent = _choose_dependent_columns(A, lengths, moved, [s.name for s in d.speeds], "speeds")
    place = tuple(float(q[i]) for i in range(len(q)) if i not in q_dependent)
    return CoordinatePartition(q_dependent, u_dependent, tuple(float(q[i]) for i in q_dependent), place)


def _choose_dependent_columns(
    rows: Floats, lengths: Floats, named: tuple[int, ...], names: list[str], what: str
) -> tuple[int, ...]:
    """Return the dependent columns, as many as rows; named ones if complete; ``lengths``: typical, of rows."""
    rows = rows / row_normalization_lengths(rows, lengths)[:, None]
    if len(named) == len(rows):
        chosen = sorted(named)
    else:
        chosen = sorted(int(i) for i in scipy.linalg.qr(rows, mode="r", pivoting=True)[1][: len(rows)])
    weakest = float(np.linalg.svd(rows[:, chosen])[1].min(initial=np.inf))
    if weakest > _MIN_SINGULAR_VALUE:
        return tuple(chosen)
    if np.linalg.matrix_rank(rows, tol=_MIN_SINGULAR_VALUE) < len(rows):
        text = f"the {len(rows)} constraints are not independent at the start, a singular position"
        remedy = "start elsewhere, or let the constraints be treated by attractor"
        raise FormulationError(_PARTITION_HEADLINE, [Fault(text, remedy=remedy)])
    which = ", ".join(names[i] for i in chosen)
    text = f"the {what} {which} do not follow from the others at the start"
    raise FormulationError(_PARTITION_HEADLINE, [Fault(text, remedy="name others as dependent, or none")])
