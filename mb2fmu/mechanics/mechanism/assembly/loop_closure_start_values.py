"""``solve_loop_closure_start_values``: solve guesses for the holonomic constraints; fixed start values stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.assembly.assembly_branches import (
    CLOSURE_TOLERANCE,
    NewtonPathEnd,
    PositionConstraintResidual,
    find_contradictory_constraints,
    find_other_branches,
    follow_newton_path,
)
from mb2fmu.mechanics.mechanism.assembly.initial_speeds import solve_start_speeds
from mb2fmu.mechanics.mechanism.numeric.numeric_constraints import (
    ConstraintEvaluator,
    make_parameter_completion_function,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import Mechanism
from mb2fmu.mechanics.mechanism.records.quaternion_coordinates import find_quaternion_coordinates
from mb2fmu.mechanics.mechanism.sympy_import.kinematic_consistency_checks import (
    find_start_speed_faults,
    free_parameter_values,
)

Floats = npt.NDArray[np.float64]

_REMEDY = 'correct lengths and start values, or say kind="guess" for those that may move'


def solve_loop_closure_start_values(mechanism: Mechanism) -> Mechanism:
    """Return the mechanism with start values on its constraints; itself if it has none on positions.

    Coordinates follow the Newton path from their guesses, so that they stay on their branch; then guessed
    speeds become the nearest ones with A u + b = 0.

    Raises:
        MechanismError: If the loops do not close near the start values, or on another branch of the assembly only; if
            constraints contradict each other, leave nothing to move, or are contradicted by fixed values.
    """
    if not mechanism.position_rows:
        return mechanism
    q = _solve_coordinates(mechanism, make_parameter_completion_function(mechanism)(free_parameter_values(mechanism)))
    for group in find_quaternion_coordinates((frame.rotation for frame in mechanism.frames), mechanism.q):
        if all(mechanism.declared.coordinates[index].kind == "guess" for index in group):
            q[list(group)] /= np.linalg.norm(q[list(group)])
    declared = mechanism.declared
    coordinates = tuple(
        replace(coordinate, start=_round_digits(value) if coordinate.kind == "guess" else coordinate.start)
        for coordinate, value in zip(declared.coordinates, q, strict=True)
    )
    closed = replace(mechanism, declared=replace(declared, coordinates=coordinates))
    if not mechanism.holonomic:
        faults = find_start_speed_faults(closed)
        if faults:
            raise MechanismError("the mechanism contradicts itself:", faults)
        return closed
    u = solve_start_speeds(mechanism, ConstraintEvaluator(mechanism), q)
    speeds = tuple(
        replace(speed, start=_round_digits(value) if speed.kind == "guess" else speed.start)
        for speed, value in zip(declared.speeds, u, strict=True)
    )
    return replace(closed, declared=replace(closed.declared, speeds=speeds))


def _solve_coordinates(m: Mechanism, parameters: Floats) -> Floats:
    """Move the guessed coordinates until all holonomic constraints hold; raise if they cannot."""
    rows = PositionConstraintResidual(m, parameters)
    declared = m.declared.coordinates
    guesses = np.array([coordinate.start for coordinate in declared])
    free = [i for i, coordinate in enumerate(declared) if coordinate.kind == "guess"]
    end = follow_newton_path(rows, guesses, free)
    if end.closed:
        return end.q
    faults = [*_contradiction_faults(rows, end), *_fixed_start_faults(rows, end, m, free)]
    faults = faults or [_open_loop_fault(rows, end, m, guesses, free)]
    raise MechanismError("the mechanism cannot be assembled:", faults)


def _contradiction_faults(rows: PositionConstraintResidual, end: NewtonPathEnd) -> list[Fault]:
    """Return rows that contradict each other for any start values."""
    contradictory_rows = find_contradictory_constraints(rows, end.q)
    if not contradictory_rows:
        return []
    names = ", ".join(rows.names[i] for i in contradictory_rows)
    problem = f"the constraints {names} contradict each other: each follows from the"
    problem += f" others but for what is left of them, {rows.describe_open_rows(end.q)}"
    return [Fault(problem, remedy="take the wrong one away, or correct what its constants come from")]


def _fixed_start_faults(
    rows: PositionConstraintResidual, end: NewtonPathEnd, m: Mechanism, free: Sequence[int]
) -> list[Fault]:
    """Return rows in which every coordinate has a fixed start value."""
    G = rows.jacobian(end.q)
    faults = []
    for i in rows.open_rows(end.q):
        row_coordinates = [j for j in range(len(m.q)) if m.q[j] in m.position_rows[i][1].free_symbols]
        if row_coordinates and not set(row_coordinates) & set(free) and np.isfinite(G[i]).all():
            problem = f"the fixed start values of {_list_coordinates(m, row_coordinates)} contradict {rows.names[i]}, "
            problem += f"which is {rows.residual(end.q)[i]:.3g} off"
            location = m.declared.coordinates[row_coordinates[0]].where
            faults.append(Fault(problem, location, 'say kind="guess" for one of them, or correct their values'))
    return faults


def _open_loop_fault(
    rows: PositionConstraintResidual, end: NewtonPathEnd, m: Mechanism, guesses: Floats, free: Sequence[int]
) -> Fault:
    """Return the fault of a loop that closes only on another branch, or not at all."""
    fixed_coordinates = _list_coordinates(m, [i for i in range(len(m.q)) if i not in free])
    angles = [i for i, coordinate in enumerate(m.declared.coordinates) if coordinate.unit == "rad"]
    other_branches = find_other_branches(rows, guesses, free, angles)
    if other_branches:
        problem = f"the guesses {_list_coordinates(m, free, guesses)} are on no branch of the assembly: "
        problem += "with what is left open made "
        problem += f"less and less they come to a singular position, {_list_coordinates(m, free, end.q)}, "
        problem += "where branches meet, "
        problem += f"{rows.describe_open_rows(end.q)} from closed. Beyond it the loops close where "
        problem += ", and where ".join(_list_coordinates(m, free, q) for q in other_branches)
        remedy = "give one of these as guesses if it is meant, or guesses nearer to what is"
        return Fault(
            problem,
            m.declared.coordinates[free[0]].where,
            f"{remedy}{f'; or correct {fixed_coordinates}' if fixed_coordinates else ''}",
        )
    problem = f"no coordinates near the start values close the loops: {rows.describe_open_rows(end.q)} from closed"
    problem += f", with {fixed_coordinates} kept as they are" if fixed_coordinates else ""
    end_with_all_free = follow_newton_path(rows, guesses, range(len(guesses))) if fixed_coordinates and free else end
    changed_coordinates = [
        i
        for i in range(len(m.q))
        if i not in free and abs(end_with_all_free.q[i] - guesses[i]) > CLOSURE_TOLERANCE * rows.typical_magnitudes[i]
    ]
    problem += (
        f"; they would close with {_list_coordinates(m, changed_coordinates, end_with_all_free.q)}"
        if end_with_all_free.closed
        else ""
    )
    return Fault(problem, remedy=_REMEDY)


def _list_coordinates(m: Mechanism, indices: Sequence[int], values: Floats | None = None) -> str:
    """Return the names of coordinates, with values if given."""
    names = [m.declared.coordinates[i].name for i in indices]
    if values is None:
        return ", ".join(names)
    return ", ".join(f"{name} = {round(float(values[i]), 9) + 0.0:.6g}" for name, i in zip(names, indices, strict=True))


def _round_digits(value: float) -> float:
    """Round to digits that do not depend on the machine's linear algebra, so that FMUs are reproducible."""
    return float(f"{value:.14g}") + 0.0
