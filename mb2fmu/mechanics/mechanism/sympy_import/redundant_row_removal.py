"""Leave out velocity constraints that follow from others at every position, such as two wheels rolling on one axle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.equations_of_motion import VelocityConstraints
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import NumericConstraints
from mb2fmu.mechanics.mechanism.numeric.random_states import free_parameter_values
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.redundant_constraints import (
    RedundantConstraints,
    find_redundant_constraints,
)

Floats = npt.NDArray[np.float64]

_SAMPLE_COUNT = 3
_COORDINATE_CHANGE = 0.5  # how far coordinates are moved: no constraint of positions holds them
_PARAMETER_CHANGE = 0.1  # part of their values by which parameters are changed
_RANK_TOLERANCE = 1e-6  # of the largest singular value of rows of unit length


def remove_redundant_rows(m: Mechanism) -> Mechanism:
    """Return the mechanism without velocity constraints that follow from others at every position.

    Of dependent speeds as many are left as there are rows left, those that these determine best at the start. Where
    loops are closed all rows stay: their treatment knows of redundant ones.

    Raises:
        MechanismError: If there are fewer dependent speeds than rows, or somebody asks for the forces of rows that
            share them with redundant ones.
    """
    import scipy.linalg

    c = m.velocity_constraints
    if c is None or m.holonomic or m.lagrangian is not None:
        return m
    found = find_redundant_constraints(m)
    if found.redundant_rows and _sample_ranks(m) != {len(c.names) - len(found.redundant_rows)}:
        found = RedundantConstraints()  # they follow with these parameters only, which may be changed
    kept = [i for i, name in enumerate(c.names) if name not in found.redundant_rows]
    dependent = [i for i in range(len(m.u)) if i not in m.u_independent]
    faults = []
    if len(dependent) < len(kept):
        what = f"there are {len(c.names)} velocity constraints, {len(kept)} of them independent of each other, "
        what += f"and {len(dependent)} dependent speeds"
        faults.append(Fault(what, remedy=f"name {len(kept)} dependent speeds (u_dep, u_dependent)"))
    if found.redundant_rows and m.needs_multipliers:
        what = f"how {', '.join(found.undetermined_rows)} share their forces is not determined: "
        what += f"{', '.join(found.redundant_rows)} follows "
        what += "from the others wherever these hold"
        faults.append(
            Fault(what, remedy="leave redundant constraints out, or do not ask for multipliers and reactions")
        )
    if faults:
        raise MechanismError("the constraints cannot be used:", faults)
    if not found.redundant_rows:
        return m
    rows = VelocityConstraints(
        tuple(c.names[i] for i in kept),
        *(sm.ImmutableMatrix(part.extract(kept, list(range(part.cols)))) for part in (c.jacobian, c.offset, c.bias)),
    )
    if len(dependent) > len(kept):
        start = np.array([item.start for item in m.declared.coordinates])
        A = _normalize_rows(m, free_parameter_values(m), start)[kept][:, dependent]
        order = scipy.linalg.qr(A, mode="r", pivoting=True)[1]
        dependent = sorted(dependent[int(k)] for k in order[: len(kept)])
    return replace(
        m,
        velocity_constraints=rows,
        u_independent=tuple(i for i in range(len(m.u)) if i not in dependent),
        multipliers=tuple(m.multipliers[i] for i in kept),
        acts=tuple(m.acts[i] for i in kept),
        redundant=found.redundant_rows,
    )


def _sample_ranks(m: Mechanism) -> set[int]:
    """Return the numbers of independent rows at other random parameters and coordinates."""
    generator = np.random.default_rng(17)
    nominal = np.array(free_parameter_values(m))
    start = np.array([item.start for item in m.declared.coordinates])
    ranks = set()
    for _ in range(_SAMPLE_COUNT):
        parameters = nominal * (1.0 + _PARAMETER_CHANGE * generator.uniform(-1.0, 1.0, nominal.shape))
        A = _normalize_rows(m, parameters, start + _COORDINATE_CHANGE * generator.uniform(-1.0, 1.0, start.shape))
        sizes = np.linalg.svd(A, compute_uv=False)
        ranks.add(int(np.count_nonzero(sizes > _RANK_TOLERANCE * sizes[0])))
    return ranks


def _normalize_rows(m: Mechanism, parameters: Sequence[float] | Floats, q: Floats) -> Floats:
    """Return the rows of A, each divided by its length."""
    d = m.declared
    z, r = (np.array([item.start for item in items]) for items in (d.auxiliary_states, d.inputs))
    A = NumericConstraints(m).at(0.0, q, z, r, parameters)[0]
    length = np.linalg.norm(A, axis=1)
    return np.asarray(A / np.where(length > 0.0, length, 1.0)[:, None])
