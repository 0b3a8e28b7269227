"""Remove velocity constraints that follow from others at every position, such as two wheels rolling on one axle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.equations.equations_of_motion import VelocityConstraints
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import ConstraintEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import free_parameter_values, row_lengths_above_round_off
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.redundant_constraint_search import (
    RedundantConstraints,
    find_redundant_constraints,
)

Floats = npt.NDArray[np.float64]

_SAMPLE_COUNT = 3
_COORDINATE_CHANGE = 0.5  # change of coordinates: no constraint of positions holds them
_PARAMETER_CHANGE = 0.1  # part of their values by which parameters are changed
_RANK_TOLERANCE = 1e-6  # of the largest singular value of rows of unit length


def remove_redundant_constraints(m: Mechanism) -> Mechanism:
    """Return the mechanism without velocity constraints that follow from others at every position.

    Of dependent speeds as many are left as there are rows left, those that these determine best at the start. Where
    loops are closed all rows stay: their treatment knows of redundant ones.

    Raises:
        MechanismError: If there are fewer dependent speeds than rows, or forces are requested of rows that share them
            with redundant ones.
    """
    constraints = m.velocity_constraints
    if constraints is None or m.holonomic or m.lagrangian is not None:
        return m
    redundancy = find_redundant_constraints(m)
    if redundancy.redundant_rows and _sample_ranks(m) != {len(constraints.names) - len(redundancy.redundant_rows)}:
        redundancy = RedundantConstraints()  # they follow with these parameters only, which may be changed
    kept_rows = [i for i, name in enumerate(constraints.names) if name not in redundancy.redundant_rows]
    dependent = [i for i in range(len(m.u)) if i not in m.u_independent]
    faults = []
    if len(dependent) < len(kept_rows):
        problem = f"there are {len(constraints.names)} velocity constraints, {len(kept_rows)} of them independent of "
        problem += f"each other, and {len(dependent)} dependent speeds"
        faults.append(Fault(problem, remedy=f"name {len(kept_rows)} dependent speeds (u_dep, u_dependent)"))
    if redundancy.redundant_rows and m.needs_multipliers:
        problem = f"how {', '.join(redundancy.undetermined_rows)} share their forces is not determined: "
        problem += f"{', '.join(redundancy.redundant_rows)} follows "
        problem += "from the others wherever these hold"
        faults.append(
            Fault(problem, remedy="leave redundant constraints out, or do not request multipliers and reactions")
        )
    if faults:
        raise MechanismError("the constraints cannot be used:", faults)
    if not redundancy.redundant_rows:
        return m
    rows = VelocityConstraints(
        tuple(constraints.names[i] for i in kept_rows),
        *(
            sm.ImmutableMatrix(matrix.extract(kept_rows, list(range(matrix.cols))))
            for matrix in (constraints.jacobian, constraints.offset, constraints.bias)
        ),
    )
    if len(dependent) > len(kept_rows):
        start = np.array([item.start for item in m.declared.coordinates])
        A = _normalize_rows(m, free_parameter_values(m), start)[kept_rows][:, dependent]
        from scipy.linalg import qr  # takes long to import

        order = qr(A, mode="r", pivoting=True)[1]
        dependent = sorted(dependent[int(k)] for k in order[: len(kept_rows)])
    return replace(
        m,
        velocity_constraints=rows,
        u_independent=tuple(i for i in range(len(m.u)) if i not in dependent),
        multipliers=tuple(m.multipliers[i] for i in kept_rows),
        force_applications=tuple(m.force_applications[i] for i in kept_rows),
        redundant_constraints=redundancy.redundant_rows,
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
    declared = m.declared
    z, r = (np.array([item.start for item in items]) for items in (declared.auxiliary_states, declared.inputs))
    A = ConstraintEvaluator(m).evaluate(0.0, q, z, r, parameters)[0]
    return np.asarray(A / row_lengths_above_round_off(A)[:, None])
