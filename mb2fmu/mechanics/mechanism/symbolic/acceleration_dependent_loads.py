"""Move loads that are linear in accelerations into the mass matrix.

A torque -J u' on a rotor, a force -m u' on a hull (added mass) are inertia and no load: with generalized forces -D u',
D belongs to the mass matrix. If D is constant and symmetric, these are the inertia forces of particles that move along
one axis with the velocities u_i, mass D_ii - Σ D_ij, and u_i + u_j, mass D_ij: their kinetic energy is uᵀ D u / 2. So
every formulation takes them as bodies, and nothing else needs to know of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import sympy as sm

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    Components,
    ForceLoad,
    KinematicPoint,
    Load,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import replace_squared_sines
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import SymbolicKinematics
from mb2fmu.model.numpy_lambdify import lambdify_for_numpy

_HEADLINE = "loads with accelerations cannot be used:"
_REMEDY = "what is proportional to acceleration is inertia: give it as a body; outputs may use accelerations"
_SAMPLE_COUNT, _TOLERANCE = 4, 1e-10
"""Random places at which an entry of D must be constant, and to which part of its size."""


@dataclass(frozen=True, slots=True)
class AccelerationProportionalLoad:
    """The part of a load that is proportional to one acceleration.

    Attributes:
        load: Name of the load.
        speed: Number of the speed whose rate it is proportional to.
        at: Number of the point, or of the frame of a torque.
        is_torque: Whether it is a torque.
        vector: Load per acceleration, components by frame.
    """

    load: str
    speed: int
    at: int
    is_torque: bool
    vector: VectorTerms


def split_acceleration_loads(mechanism: Mechanism) -> tuple[Mechanism, tuple[AccelerationProportionalLoad, ...]]:
    """Return the mechanism with loads that contain no accelerations, and what was proportional to these.

    Raises:
        MechanismError: If accelerations stand in an actuator, or not linearly.
    """
    accelerations = set(mechanism.u_dot)
    loads: list[Load] = []
    acceleration_loads: list[AccelerationProportionalLoad] = []
    faults: list[Fault] = []
    for load in mechanism.loads:
        accelerations_in_load = set().union(*(e.free_symbols for e in _list_expressions(load))) & accelerations
        if not accelerations_in_load:
            loads.append(load)
            continue
        names = ", ".join(sorted(map(str, accelerations_in_load)))
        if isinstance(load, ForceLoad | TorqueLoad):
            vector = load.force if isinstance(load, ForceLoad) else load.torque
            parts = [
                _slope_part(load, s, vector, dot)
                for s, dot in enumerate(mechanism.u_dot)
                if dot in accelerations_in_load
            ]
            acceleration_loads += parts
            loads.append(_with_vector(load, _map_terms(vector, dict.fromkeys(mechanism.u_dot, sm.S.Zero))))
            if not any(
                set().union(*(e.free_symbols for e in _list_components(p.vector))) & accelerations for p in parts
            ):
                continue
        faults.append(Fault(f"{load.name} contains {names}, and is not linear in it", remedy=_REMEDY))
    if faults:
        raise MechanismError(_HEADLINE, faults)
    return replace(mechanism, loads=tuple(loads)), tuple(acceleration_loads)


def add_load_inertias(mechanism: Mechanism, loads: Sequence[AccelerationProportionalLoad]) -> Mechanism:
    """Return the mechanism with particles that have the inertia of these loads.

    Raises:
        MechanismError: If their part of the mass matrix is not symmetric, or changes with the motion.
    """
    if not loads:
        return mechanism
    D = _inertia_matrix(mechanism, loads)
    bodies, points = list(mechanism.bodies), list(mechanism.points)
    for speeds, mass in _list_particles(D):
        name = "inertia of loads on " + " and ".join(mechanism.u[i].name for i in speeds)
        speed = sm.Add(*(mechanism.u[i] for i in speeds))
        bodies.append(Body(name, len(points), -1, mass, None))
        points.append(KinematicPoint(name, -1, None, ((0, (speed, sm.S.Zero, sm.S.Zero)),), located=False))
    return replace(mechanism, bodies=tuple(bodies), points=tuple(points))


def kinetic_energy_of_loads(D: sm.MatrixBase, speeds: Sequence[sm.Symbol], moving: Collection[sm.Symbol]) -> sm.Expr:
    """Return the kinetic energy uᵀ D u / 2 of loads with the generalized forces -D u', J.

    Args:
        D: In plain symbols, shape (n_u, n_u).
        speeds: u.
        moving: All symbols that change with the motion.

    Raises:
        MechanismError: If D is not symmetric, or changes with the motion.
    """
    entries = {(i, k): D[i, k] for i in range(D.rows) for k in range(D.cols) if D[i, k] != 0}
    if not entries:
        return sm.S.Zero
    inertia, u = _constant_inertia(entries, len(speeds), moving, "the forcelist"), sm.Matrix(speeds)
    return (u.T * inertia * u)[0] / 2


def _inertia_matrix(mechanism: Mechanism, loads: Sequence[AccelerationProportionalLoad]) -> sm.ImmutableMatrix:
    """Return D of the generalized forces -D u', shape (n_u, n_u)."""
    m, kinematics = mechanism, SymbolicKinematics(mechanism)
    entries: dict[tuple[int, int], sm.Expr] = {}
    for load in loads:
        partials = kinematics.omega_partials(load.at) if load.is_torque else kinematics.velocity_partials(load.at)
        vector = _in_inertial_frame(load.vector, kinematics)
        for row, column in partials.items():
            product = sm.Add(*(-a * b for a, b in zip(column, vector, strict=True)))
            entries[row, load.speed] = entries.get((row, load.speed), sm.S.Zero) + product
    for assignment in reversed(kinematics.assignments):
        entries = {place: e.xreplace({assignment.symbol: assignment.expression}) for place, e in entries.items()}
    names = ", ".join(dict.fromkeys(load.load for load in loads))
    return _constant_inertia(entries, len(m.u), {m.t, *m.q, *m.u_all, *m.z, *m.r}, names)


def _constant_inertia(
    entries: Mapping[tuple[int, int], sm.Expr], n: int, moving: Collection[sm.Symbol], names: str
) -> sm.ImmutableMatrix:
    """Return the entries as a constant and symmetric matrix, shape (n, n); rows beyond it must vanish."""
    constants = {place: _as_constant(entry, moving) for place, entry in entries.items()}
    D = {place: entry for place, entry in constants.items() if entry is not None}
    description = ""
    if len(D) < len(constants):
        description = "changes with the motion"
    elif any(not _are_equal(entry, D.get((k, i), sm.S.Zero)) for (i, k), entry in D.items()):
        description = "is not symmetric"
    if description:
        problem = f"{names} contains accelerations, and its part of the mass matrix {description}"
        raise MechanismError(_HEADLINE, [Fault(problem, remedy=_REMEDY)])
    return sm.ImmutableMatrix(n, n, lambda i, k: D.get((i, k), sm.S.Zero))


def _list_particles(D: sm.ImmutableMatrix) -> Iterator[tuple[tuple[int, ...], sm.Expr]]:
    """Yield the speeds that are added to a particle's velocity, and its mass."""
    n = D.rows
    for i in range(n):
        mass = D[i, i] - sm.Add(*(D[i, k] for k in range(n) if k != i))
        if mass != 0:
            yield (i,), mass
        yield from (((i, k), D[i, k]) for k in range(i + 1, n) if D[i, k] != 0)


def _in_inertial_frame(terms: VectorTerms, kinematics: SymbolicKinematics) -> Components:
    """Return components in N of a vector written in several frames."""
    total = sm.zeros(3, 1)
    for frame, components in terms:
        total += kinematics.rotation(frame) * sm.Matrix(components)
    return (total[0], total[1], total[2])


def _as_constant(entry: sm.Expr, moving: Collection[sm.Symbol]) -> sm.Expr | None:
    """Return an entry as an expression of parameters alone; None if it changes with the motion."""
    moving_in_entry = entry.free_symbols & set(moving)
    if not moving_in_entry:
        return entry
    simple = replace_squared_sines(entry)
    if not simple.free_symbols & moving_in_entry:
        return simple
    constant = entry.xreplace(dict.fromkeys(moving_in_entry, sm.S.Zero))
    return constant if _are_equal(entry, constant) else None


def _are_equal(a: sm.Expr, b: sm.Expr) -> bool:
    """Return whether two expressions have the same values at random places."""
    symbols = sorted(a.free_symbols | b.free_symbols, key=str)
    function = lambdify_for_numpy(symbols, sm.ImmutableMatrix([a, b]))
    generator = np.random.default_rng(0)
    for _ in range(_SAMPLE_COUNT):
        x, y = np.ravel(np.asarray(function(*generator.uniform(0.2, 1.0, len(symbols))), dtype=float))
        if not abs(x - y) <= _TOLERANCE * (abs(x) + abs(y)):
            return False
    return True


def _slope_part(
    load: ForceLoad | TorqueLoad, speed: int, vector: VectorTerms, dot: sm.Symbol
) -> AccelerationProportionalLoad:
    """Return the part of a load that is proportional to u'."""
    slopes = tuple((frame, (x.diff(dot), y.diff(dot), z.diff(dot))) for frame, (x, y, z) in vector)
    node = load.frame if isinstance(load, TorqueLoad) else load.point
    return AccelerationProportionalLoad(load.name, speed, node, isinstance(load, TorqueLoad), slopes)


def _with_vector(load: ForceLoad | TorqueLoad, vector: VectorTerms) -> Load:
    """Return a load with another vector."""
    return replace(load, force=vector) if isinstance(load, ForceLoad) else replace(load, torque=vector)


def _map_terms(vector: VectorTerms, values: dict[sm.Symbol, sm.Expr]) -> VectorTerms:
    """Return a vector with symbols replaced."""
    return tuple((frame, (x.xreplace(values), y.xreplace(values), z.xreplace(values))) for frame, (x, y, z) in vector)


def _list_components(vector: VectorTerms) -> list[sm.Expr]:
    """Return all components of a vector."""
    return [component for _, components in vector for component in components]


def _list_expressions(load: Load) -> list[sm.Expr]:
    """Return all expressions that a load's strength contains."""
    match load:
        case ForceLoad():
            return _list_components(load.force)
        case TorqueLoad():
            return _list_components(load.torque)
        case TorqueActuatorLoad():
            return [load.torque, *_list_components(load.axis)]
        case PathwayLoad():
            return [load.force]
