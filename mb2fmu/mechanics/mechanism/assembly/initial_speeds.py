"""Start values of speeds on closed loops: fixed ones kept, nearest to guesses, on one branch in singular positions.

In a singular position (a linkage that lies flat) rows l with lᵀA = 0 leave more speeds free than there are freedoms:
the tangents of all branches that meet there, and what is between them. A motion exists where the rates of the rows can
vanish too, A u' + γ(u) = 0, so where lᵀγ(u) = 0, a condition of second degree in the speeds whose solutions are the
branches.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.assembly.assembly_branches import CLOSURE_TOLERANCE, RANK_TOLERANCE
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import ConstraintEvaluator
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import free_parameter_values
from mb2fmu.mechanics.mechanism.sympy_import.redundant_constraint_search import (
    compute_row_norm_divisors,
    typical_row_lengths,
    typical_speeds,
)
from mb2fmu.model.scales.characteristic_units import estimate_characteristic_units

Floats = npt.NDArray[np.float64]

_SINGULAR_TOLERANCE = 1e-6  # of a singular value of rows of unit length: the start is a singular position
_ROW_TOLERANCE = float(np.sqrt(np.finfo(float).eps))  # of rows over speeds: singular positions are known to that only
_MAX_STEPS = 60
_BRANCH_SEARCH_OFFSETS = (
    0.0,
    1.0,
    -1.0,
    3.0,
    -3.0,
)  # offsets from the guesses at which the search for branches begins, relative to the speeds
_ConstraintFunction = Callable[[Floats], tuple[Floats, Floats, Floats]]
"""(A, b, γ) of the speeds."""

_REMEDY = 'correct start values, or say kind="guess" for speeds that may change'


def solve_start_speeds(m: Mechanism, numeric: ConstraintEvaluator, q: Floats) -> Floats:
    """Return all speeds at the start.

    Args:
        m: Imported mechanism.
        numeric: Its constraints in numbers.
        q: Coordinates that satisfy the constraints.

    Raises:
        MechanismError: If nothing is left to move, if fixed speeds contradict the constraints, or if the start is a
            singular position and the speeds are on none of the branches that meet there.
    """
    velocity_constraints, declared = m.velocity_constraints, m.declared
    assert velocity_constraints is not None
    constraints = _make_constraint_function(m, numeric, q)
    A, b, _ = constraints(np.zeros(len(m.u)))
    units = typical_speeds(m)
    typical_lengths = typical_row_lengths(m, numeric, units)
    scaled = A * units
    if int(
        np.linalg.matrix_rank(scaled / compute_row_norm_divisors(scaled, typical_lengths)[:, None], tol=RANK_TOLERANCE)
    ) == len(m.u):
        names = velocity_constraints.names
        problem = f"the {len(names)} constraints leave the {len(m.u)} speeds nothing to move: {', '.join(names)}"
        raise MechanismError("the mechanism cannot move:", [Fault(problem, remedy="take constraints away")])
    u = np.array([speed.start for speed in declared.speeds])
    free = [i for i, speed in enumerate(declared.speeds) if speed.kind == "guess"]
    if free:
        length = compute_row_norm_divisors(scaled[:, free], typical_lengths)
        change = np.linalg.lstsq(scaled[:, free] / length[:, None], (A @ u + b) / length, rcond=_SINGULAR_TOLERANCE)[0]
        u[free] -= units[free] * change
    residual = A @ u + b
    allowed = _ROW_TOLERANCE * np.maximum(
        typical_lengths * max(1.0, float(np.max(np.abs(u) / units))), np.abs(A) @ np.abs(u)
    )
    open_rows = [i for i, value in enumerate(residual) if not abs(value) <= allowed[i]]
    if open_rows:
        fixed_names = [
            speed.name for i, speed in enumerate(declared.speeds) if i not in free and np.any(A[open_rows, i] != 0.0)
        ]
        residual_list = ", ".join(f"{velocity_constraints.names[i]} by {residual[i]:.3g}" for i in open_rows)
        problem = f"the fixed start values of {', '.join(fixed_names)} contradict the velocity constraints: "
        problem += f"{residual_list} off"
        raise MechanismError("the mechanism cannot be started:", [Fault(problem, remedy=_REMEDY)])
    return _move_onto_branch(m, constraints, u, free, units, typical_lengths)


def _make_constraint_function(m: Mechanism, numeric: ConstraintEvaluator, q: Floats) -> _ConstraintFunction:
    """Return a function of u that gives A, b and γ at the start; A and b are evaluated once."""
    declared = m.declared
    z, r = (np.array([item.start for item in items]) for items in (declared.auxiliary_states, declared.inputs))
    parameters = free_parameter_values(m)
    A, b, _ = numeric.evaluate(0.0, q, z, r, parameters)

    def evaluate(u: Floats) -> tuple[Floats, Floats, Floats]:
        """Return A, b and γ at speeds u."""
        return A, b, numeric.evaluate_bias(0.0, q, u, z, r, parameters)

    return evaluate


def _move_onto_branch(
    m: Mechanism, constraints: _ConstraintFunction, u: Floats, free: list[int], units: Floats, typical_lengths: Floats
) -> Floats:
    """Return the speeds unchanged; in a singular position the nearest speeds that one of the branches allows.

    Args:
        m: Imported mechanism.
        constraints: A, b and γ as functions of the speeds.
        u: All speeds, shape (n_u,).
        free: Indices of the speeds that may change.
        units: Typical magnitudes of all speeds, shape (n_u,).
        typical_lengths: Typical lengths of the rows over the speeds in these units, shape (m,).
    """
    A = constraints(u)[0] * units
    length = compute_row_norm_divisors(A, typical_lengths)
    U, sizes, _ = np.linalg.svd(A / length[:, None])
    left_null_space = U[:, np.count_nonzero(sizes > _SINGULAR_TOLERANCE * sizes.max(initial=0.0)) :]
    if not left_null_space.size:
        return u
    import scipy.linalg  # takes long to import

    rate = estimate_characteristic_units(m.declared).magnitude("1/s")

    def evaluate_branch_condition(speeds: Floats) -> Floats:
        """Return lᵀγ with rows of unit length, relative to natural magnitudes where it is a rate."""
        return np.asarray(left_null_space.T @ (constraints(speeds)[2] / length)) / rate

    if _condition_vanishes(evaluate_branch_condition(u), u, units):
        return u
    tangent = scipy.linalg.null_space(A[:, free], rcond=_SINGULAR_TOLERANCE) if free else np.zeros((0, 0))
    size = float(np.max(np.abs(u) / units))
    directions = np.zeros((len(u), tangent.shape[1]))
    directions[free] = units[free][:, None] * tangent
    solutions = (
        [
            _solve_branch_condition(evaluate_branch_condition, u, directions, units, offset * size)
            for offset in _BRANCH_SEARCH_OFFSETS
        ]
        if tangent.size
        else []
    )
    branches: list[Floats] = []
    for v in (v for v in solutions if v is not None):
        if all(np.any(np.abs(v - w) > 1e-6 * np.maximum(units, np.abs(v))) for w in branches):
            branches.append(v)
    return _choose_nearest_branch(m, branches, u, free, units)


def _condition_vanishes(condition: Floats, speeds: Floats, units: Floats) -> bool:
    """Return whether lᵀγ vanishes; it is quadratic in the speeds."""
    return bool(np.max(np.abs(condition)) <= CLOSURE_TOLERANCE * max(1.0, float(np.max(np.abs(speeds) / units))) ** 2)


def _solve_branch_condition(
    branch_condition: Callable[[Floats], Floats], u: Floats, directions: Floats, units: Floats, offset: float
) -> Floats | None:
    """Solve lᵀγ = 0 for speeds by Gauss-Newton steps along ``directions``, shape (n_u, n), starting ``offset`` of u.

    Central differences are exact, since γ is of second degree.
    """
    direction_count = directions.shape[1]
    v = u + offset * directions @ np.ones(direction_count) / np.sqrt(direction_count)
    for _ in range(_MAX_STEPS):
        condition = branch_condition(v)
        derivatives = np.array(
            [(branch_condition(v + column) - branch_condition(v - column)) / 2.0 for column in directions.T]
        ).T
        if np.max(np.abs(derivatives)) <= RANK_TOLERANCE:
            break  # between two branches: no direction is preferred
        step = directions @ np.linalg.lstsq(derivatives, condition, rcond=RANK_TOLERANCE)[0]
        v = v - step
        if np.all(np.abs(step) <= 1e-13 * np.maximum(units, np.abs(v))):
            break
    return v if _condition_vanishes(branch_condition(v), v, units) else None


def _choose_nearest_branch(m: Mechanism, branches: list[Floats], u: Floats, free: list[int], units: Floats) -> Floats:
    """Return the branch of the guesses if it is clearly the nearest, with speeds measured in ``units``."""
    speeds = m.declared.speeds
    declared = np.array([speed.start for speed in speeds])
    distances = [round(float(np.linalg.norm((v - declared) / units)), 9) for v in branches]
    order = sorted(range(len(branches)), key=lambda i: (distances[i], (branches[i] / units).round(9).tolist()))
    if len(branches) == 1 or (branches and distances[order[0]] < 0.9 * distances[order[1]]):
        return branches[order[0]]

    def format_speeds(values: Floats) -> str:
        """Return the free speeds with their values, for the message."""
        return ", ".join(
            f"{speeds[i].name} = {round(float(values[i] / units[i]), 9) * units[i] + 0.0:.6g}" for i in free
        )

    problem = (
        "the start is a singular position, where branches of the motion meet, and the speeds are on none of them: "
    )
    problem += f"with {format_speeds(u)} the rates of the constraints cannot vanish"
    if branches:
        problem += f"; the branches have {', and '.join(format_speeds(branches[i]) for i in order)}"
        remedy = "give those of the branch that is meant as guesses"
    else:
        remedy = "start elsewhere, or at rest"
    raise MechanismError("the mechanism cannot be started:", [Fault(problem, remedy=remedy)])
