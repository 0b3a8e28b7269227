"""Leave out velocity constraints that follow from others at every position, such as two wheels rolling on one axle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.linalg
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.equations_of_motion import VelocityConstraints
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import NumericConstraints
from mb2fmu.mechanics.mechanism.numeric.random_states import parameter_values
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.redundant_constraints import Redundancy, find_redundancy

Floats = npt.NDArray[np.float64]

_PLACES = 3
_ASIDE = 0.5  # how far coordinates are moved: no constraint of positions holds them
_CHANGED = 0.1  # part of their values by which parameters are changed
_RANK = 1e-6  # of the largest singular value of rows of unit length


def without_redundant_rows(m: Mechanism) -> Mechanism:
    """Return the mechanism without velocity constraints that follow from others at every position.

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
        start = np.array([item.start for item in m.declared.coordinates])
        A = _unit_rows(m, parameter_values(m), start)[kept][:, dependent]
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
    """Return the numbers of independent rows at other random parameters and coordinates."""
    generator = np.random.default_rng(17)
    nominal = np.array(parameter_values(m))
    start = np.array([item.start for item in m.declared.coordinates])
    ranks = set()
    for _ in range(_PLACES):
        parameters = nominal * (1.0 + _CHANGED * generator.uniform(-1.0, 1.0, nominal.shape))
        A = _unit_rows(m, parameters, start + _ASIDE * generator.uniform(-1.0, 1.0, start.shape))
        sizes = np.linalg.svd(A, compute_uv=False)
        ranks.add(int(np.count_nonzero(sizes > _RANK * sizes[0])))
    return ranks


def _unit_rows(m: Mechanism, parameters: Sequence[float] | Floats, q: Floats) -> Floats:
    """Return the rows of A, each divided by its length."""
    d = m.declared
    z, r = (np.array([item.start for item in items]) for items in (d.auxiliary_states, d.inputs))
    A = NumericConstraints(m).at(0.0, q, z, r, parameters)[0]
    length = np.linalg.norm(A, axis=1)
    return np.asarray(A / np.where(length > 0.0, length, 1.0)[:, None])
