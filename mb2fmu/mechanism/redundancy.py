"""Which constraints follow from others: wherever they hold, or at the start only, where the mechanism is singular.

The rank of the rows is counted at the start and a little beside it, along motions that the constraints allow. Rows that
are redundant wherever the constraints hold stay so, but for the square of the distance; in a position that is singular
(a parallelogram that lies flat) the rank grows with the distance itself. Between the two is room for a threshold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import scipy.linalg
import sympy as sm

from mb2fmu.equations.motion import VelocityConstraints
from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanism.consistency import parameter_values
from mb2fmu.mechanism.numeric import NumericMechanism
from mb2fmu.mechanism.records import Mechanism

Floats = npt.NDArray[np.float64]

_RANK = 1e-6  # of rows of unit length: what is left of one that follows from others, at the start. A singular position
# that start values were solved for is known to the root of their round-off only.
_SHORT = 1e-6  # of the longest row, and of 1: a shorter one counts as none
_ASIDE = 1e-4  # how far the mechanism is moved
_RANK_ASIDE = 1e-6  # the same there: between the distance and its square
_DIRECTIONS = 3
_ASIDE_FAR = 0.5  # how far coordinates are moved where no constraint of positions holds them
_CHANGED = 0.1  # part of their values by which parameters are changed
_SHARE = 1e-3  # of a row in a combination of unit length: far above what moving aside mixes in


@dataclass(frozen=True, slots=True)
class Redundancy:
    """Rows of A that say nothing new.

    Attributes:
        always: Names of those that follow from the others wherever the constraints hold.
        sharing: Names of all rows whose forces are not determined for that reason: the redundant ones, and those that
            they follow from.
        at_start: Names of further ones that follow from the others at the start only.
    """

    always: tuple[str, ...] = ()
    sharing: tuple[str, ...] = ()
    at_start: tuple[str, ...] = ()


def find_redundancy(mechanism: Mechanism) -> Redundancy:
    """The redundant rows of a mechanism with velocity constraints; its start values are on the constraints."""
    m, d = mechanism, mechanism.definition
    c = m.velocity_constraints
    if c is None:
        return Redundancy()
    here, numeric, rows = _rows_at_start(m)
    start = np.array([item.start for item in d.coordinates])
    first = len(m.holonomic)
    singular = _dependent(here, first, _RANK)
    if not singular:
        return Redundancy()
    K = numeric.kinematics()[0]
    free = scipy.linalg.null_space(here, rcond=_RANK)
    generator = np.random.default_rng(3)
    always, regular = set(singular), here
    for _ in range(_DIRECTIONS):
        step = K @ free @ generator.normal(size=free.shape[1])
        size = float(np.linalg.norm(step))
        moved = rows(start + _ASIDE / size * step) if size > 0.0 else here
        beside = _dependent(moved, first, _RANK_ASIDE)
        if len(beside) < len(always):
            always, regular = set(beside), moved
    named = (sorted(always), _combined(regular, len(always)), sorted(set(singular) - always))
    return Redundancy(*(tuple(c.names[i] for i in numbers) for numbers in named))


def without_redundant_rows(m: Mechanism) -> Mechanism:
    """The mechanism without the velocity constraints that follow from others: two wheels that roll on one axle.

    Of dependent speeds as many are left as there are rows left, those that these determine best at the start. Where
    loops are closed all rows stay: their treatment knows of redundant ones.

    Raises:
        MechanismError: If there are fewer dependent speeds than rows, or somebody asks for the forces of rows that
            share them with redundant ones.
    """
    c = m.velocity_constraints
    if c is None or m.holonomic or m.lagrangian is not None:
        return m
    found = find_redundancy(m)
    if found.always and _ranks_elsewhere(m) != {len(c.names) - len(found.always)}:
        found = Redundancy()  # they follow with these parameters only, which may be changed
    kept = [i for i, name in enumerate(c.names) if name not in found.always]
    dependent = [i for i in range(len(m.u)) if i not in m.u_independent]
    faults = []
    if len(dependent) < len(kept):
        what = f"there are {len(c.names)} velocity constraints, {len(kept)} of them independent of each other, "
        what += f"and {len(dependent)} dependent speeds"
        faults.append(Fault(what, remedy=f"name {len(kept)} dependent speeds (u_dep, u_dependent)"))
    if found.always and m.asks_for_multipliers:
        what = (
            f"how {', '.join(found.sharing)} share their forces is not determined: {', '.join(found.always)} follows "
        )
        what += "from the others wherever these hold"
        faults.append(
            Fault(what, remedy="leave redundant constraints out, or do not ask for multipliers and reactions")
        )
    if faults:
        raise MechanismError("the constraints cannot be used:", faults)
    if not found.always:
        return m
    rows = VelocityConstraints(
        tuple(c.names[i] for i in kept),
        *(sm.ImmutableMatrix(part.extract(kept, list(range(part.cols)))) for part in (c.jacobian, c.offset, c.bias)),
    )
    if len(dependent) > len(kept):
        A = _rows_at_start(m)[0][kept][:, dependent]
        order = scipy.linalg.qr(A, mode="r", pivoting=True)[1]
        dependent = sorted(dependent[int(k)] for k in order[: len(kept)])
    return replace(
        m,
        velocity_constraints=rows,
        u_independent=tuple(i for i in range(len(m.u)) if i not in dependent),
        multipliers=tuple(m.multipliers[i] for i in kept),
        acts=tuple(m.acts[i] for i in kept),
        redundant=found.always,
    )


def _ranks_elsewhere(m: Mechanism) -> set[int]:
    """How many rows are independent with other parameters and coordinates, wherever they are."""
    generator = np.random.default_rng(17)
    nominal, d = np.array(parameter_values(m)), m.definition
    start = np.array([item.start for item in d.coordinates])
    ranks = set()
    for _ in range(_DIRECTIONS):
        parameters = nominal * (1.0 + _CHANGED * generator.uniform(-1.0, 1.0, nominal.shape))
        rows = _rows_at_start(m, parameters)[2](start + _ASIDE_FAR * generator.uniform(-1.0, 1.0, start.shape))
        ranks.add(len(rows) - len(_dependent(rows, 0, _RANK)))
    return ranks


def _rows_at_start(
    m: Mechanism, values: Sequence[float] | Floats | None = None
) -> tuple[Floats, NumericMechanism, Callable[[Floats], Floats]]:
    """A of unit rows at the start, what evaluates it, and A of unit rows at other coordinates."""
    d = m.definition
    numeric = NumericMechanism(m)
    parameters = numeric.parameters(parameter_values(m) if values is None else values)
    z, r = (np.array([item.start for item in items]) for items in (d.auxiliary_states, d.inputs))

    def rows(q: Floats) -> Floats:
        numeric.set(0.0, q, np.zeros(len(m.u_all)), z, r, parameters)
        A = numeric.constraints()[0]
        return A / row_lengths(A)[:, None]

    return rows(np.array([item.start for item in d.coordinates])), numeric, rows


def _combined(rows: Floats, redundant: int) -> list[int]:
    """Numbers of the rows that take part in the combinations of rows that vanish, ``redundant`` of them."""
    if not redundant:
        return []
    combinations = np.linalg.svd(rows)[0][:, len(rows) - redundant :]
    share = np.linalg.norm(combinations, axis=1)
    return [int(i) for i in np.flatnonzero(share > _SHARE)]


def row_lengths(rows: Floats) -> Floats:
    """What rows are divided by to be of unit length, or next to nothing where they vanish but for round-off.

    Shape (m,).
    """
    length = np.asarray(np.linalg.norm(rows, axis=1))
    longest = max(1.0, float(length.max(initial=0.0)))
    return np.where(length > _SHORT * longest, length, longest)


def _dependent(rows: Floats, first: int, threshold: float) -> list[int]:
    """Numbers of rows of which no more than ``threshold`` is beside the span of others, those of the first ones first.

    QR with column pivoting of the transposed rows: of the ``first`` ones, then of what they leave of the rest.
    """
    dependent: list[int] = []
    span = np.zeros((rows.shape[1], 0))
    for numbers in (range(first), range(first, len(rows))):
        left = rows[list(numbers)].T
        left = left - span @ (span.T @ left)
        if not left.size:
            continue
        Q, R, order = scipy.linalg.qr(left, mode="economic", pivoting=True)
        rank = int(np.count_nonzero(np.abs(np.diag(R)) > threshold))
        dependent += [numbers[int(i)] for i in order[rank:]]
        span = np.concatenate([span, Q[:, :rank]], axis=1)
    return sorted(dependent)
