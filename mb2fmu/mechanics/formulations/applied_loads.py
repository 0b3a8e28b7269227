"""Loads of a mechanism as vectors in the inertial frame with the partial velocities they are projected by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Components,
    ForceLoad,
    Load,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.symbolic.component_vector_arithmetic import (
    ZERO,
    add_vector_components,
    dot_product,
    multiply_matrix_by_vector,
    scale_components,
)
from mb2fmu.mechanics.mechanism.symbolic.symbolic_kinematics import Partials, SymbolicKinematics


@dataclass(frozen=True, slots=True)
class AppliedLoad:
    """A force on a point, or a torque on a frame.

    Attributes:
        load: Number in ``Mechanism.loads``.
        at: Number of the point or frame.
        torque: True: a torque on a frame.
        vector: N or N·m, components in the inertial frame.
        partials: Partial velocities of the point, partial angular velocities of the frame.
    """

    load: int
    at: int
    torque: bool
    vector: Components
    partials: Partials


def list_applied_loads(kinematics: SymbolicKinematics) -> Iterator[AppliedLoad]:
    """Yield all loads; pathways and actuators are taken apart into their ends.

    Vectors with unknown forces in them stay expressions; all others are named.
    """
    for number, load in enumerate(kinematics.mechanism.loads):
        for at, torque, vector in split_load_into_vectors(load, kinematics):
            partials = kinematics.omega_partials(at) if torque else kinematics.velocity_partials(at)
            unknown = set(kinematics.mechanism.constraint_forces)
            if not any(c.free_symbols & unknown for c in vector):
                vector = kinematics.name_components(vector, f"{'T' if torque else 'F'}_{number + 1}")  # noqa: PLW2901
            yield AppliedLoad(number, at, torque, vector, partials)


def express_in_inertial_frame(terms: VectorTerms, kinematics: SymbolicKinematics) -> Components:
    """Return components in N of a vector written in several frames."""
    total = ZERO
    for frame, components in terms:
        total = add_vector_components(total, multiply_matrix_by_vector(kinematics.rotation(frame), components))
    return total


def form_actuator_magnitude(load: PathwayLoad | TorqueActuatorLoad, kinematics: SymbolicKinematics) -> sm.Expr:
    """Return an actuator's scalar force (expansile positive) or torque."""
    if isinstance(load, TorqueActuatorLoad):
        return kinematics.name(load.torque, f"T_{load.name}")
    kinematics.assign_pathway(load)
    return kinematics.name(load.force, f"F_{load.name}")


def form_load_power(number: int, kinematics: SymbolicKinematics) -> sm.Expr:
    """Return the power in W that load ``number`` delivers to the mechanism."""
    load = kinematics.mechanism.loads[number]
    if isinstance(load, PathwayLoad):
        return form_actuator_magnitude(load, kinematics) * load.rate
    total = sm.S.Zero
    for at, torque, vector in split_load_into_vectors(load, kinematics):
        total += dot_product(kinematics.omega(at) if torque else kinematics.velocity(at), vector)
    return total


def split_load_into_vectors(load: Load, kinematics: SymbolicKinematics) -> Iterator[tuple[int, bool, Components]]:
    """Yield (number of point or frame, whether a torque, vector in N) of each part of a load."""
    match load:
        case ForceLoad():
            yield load.point, False, express_in_inertial_frame(load.force, kinematics)
        case TorqueLoad():
            yield load.frame, True, express_in_inertial_frame(load.torque, kinematics)
        case TorqueActuatorLoad():
            axis = express_in_inertial_frame(load.axis, kinematics)
            torque = form_actuator_magnitude(load, kinematics)
            yield load.frame, True, scale_components(torque, axis)
            if load.reaction >= 0:
                yield load.reaction, True, scale_components(-torque, axis)
        case PathwayLoad():
            directions = kinematics.segment_directions(load)
            force = form_actuator_magnitude(load, kinematics)
            for (a, b), e in zip(zip(load.points, load.points[1:], strict=False), directions, strict=True):
                yield a, False, scale_components(-force, e)
                yield b, False, scale_components(force, e)
