"""Choose the velocity of each point: derived from its position, or given by the user."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism import NumericMechanism
from mb2fmu.mechanics.mechanism.numeric.random_states import (
    StateSample,
    format_vector,
    max_point_speed,
    set_random_state,
    vectors_differ,
)
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    ForceLoad,
    KinematicPoint,
    Mechanism,
    PathwayLoad,
    VectorTerms,
)


def choose_point_velocities(
    draft: Mechanism,
    derived: NumericMechanism,
    samples: list[StateSample],
    given_velocities: Mapping[int, VectorTerms],
    *,
    origins_found: Collection[int],
) -> tuple[Mechanism, list[Fault]]:
    """Decide for each located point with a given velocity which one is used.

    Args:
        draft: Velocities derived from positions.
        derived: The same mechanism in numbers.
        samples: Random states.
        given_velocities: Point number → velocity in N as the user gave it.
        origins_found: The origin, if nobody named it (it was found as a point of zero velocity), and the pivot that
            lies in it and has auxiliary speeds: these may be contact points.

    Returns:
        The mechanism with chosen velocities, and contradictions.
    """
    given_velocities = {i: velocity for i, velocity in given_velocities.items() if draft.points[i].located}
    if not given_velocities:
        return draft, []
    trial_points = tuple(
        replace(point_record, velocity=given_velocities.get(i, point_record.velocity))
        for i, point_record in enumerate(draft.points)
    )
    with_given = NumericMechanism(replace(draft, points=trial_points))
    anywhere, on_constraints = _find_agreeing_points(derived, with_given, samples, set(given_velocities))
    points, faults, points_using_constraints = list(draft.points), [], []
    unlocated: set[int] = set()
    dynamic_points = _dynamic_points(draft)
    loaded_points = {load.point for load in draft.loads if isinstance(load, ForceLoad)} - _position_dependent_points(
        draft
    )
    for i, point in enumerate(draft.points):
        given = given_velocities.get(i)
        follows = (
            point.parent in unlocated
        )  # its position's rate would be added to another velocity than in ``derived``
        if given is None:
            unlocated |= {i} if follows else set()
        elif i in anywhere and not follows:
            if _prefers_given_velocity(draft, point, given):
                points[i] = replace(point, velocity=given)
        elif i in on_constraints and not follows:
            points[i] = replace(point, velocity=given)
            points_using_constraints.append(point.name)
        elif origins_found and (follows or _is_fixed_to(points, point.parent, origins_found)):
            # what was found as the origin is a contact point of zero velocity, not a point fixed in N
            points[i] = replace(point, velocity=given, located=False)
            unlocated.add(i)
            points_using_constraints.append(point.name)
        elif i in loaded_points and (
            _is_auxiliary_velocity(draft, given) or _is_body_particle(i, derived, with_given, samples)
        ):
            points[i] = replace(point, velocity=given, is_instantaneous=True)
        elif i in dynamic_points:
            faults.append(_velocity_fault(i, derived, with_given, samples[0]))
    for i in {*origins_found} - {0} if unlocated else ():
        points[i] = replace(points[i], velocity=given_velocities[i], located=False)
        unlocated.add(i)
    _mark_unlocated(points, unlocated)
    return replace(draft, points=tuple(points), points_using_constraints=tuple(points_using_constraints)), faults


def _mark_unlocated(points: list[KinematicPoint], unlocated: set[int]) -> None:
    """Mark points as not located that are in ``unlocated``, or whose parent is; change ``points``, extend ``unlocated``."""
    for i, point in enumerate(points):
        if i in unlocated or point.parent in unlocated:
            points[i] = replace(point, located=False)
            unlocated.add(i)


def _is_fixed_to(points: list[KinematicPoint], i: int, origins: Collection[int]) -> bool:
    """Return whether only points without a chosen velocity lie between point i and one of ``origins``."""
    while i not in origins and i > 0 and points[i].velocity is None:
        i = points[i].parent
    return i in origins


def _find_agreeing_points(
    derived: NumericMechanism, with_given: NumericMechanism, samples: list[StateSample], points: set[int]
) -> tuple[set[int], set[int]]:
    """Return points whose velocities agree everywhere, and those that agree on the velocity constraints."""
    anywhere, on_constraints = set(points), set(points)
    for sample in samples:
        for on_constraint_surface, agreeing in ((False, anywhere), (True, on_constraints)):
            set_random_state(derived, sample, on_constraints=on_constraint_surface)
            set_random_state(with_given, sample, on_constraints=on_constraint_surface)
            fastest = max_point_speed(derived)
            agreeing -= {
                i
                for i in agreeing
                if vectors_differ(with_given.points[i].velocity, derived.points[i].velocity, fastest)
            }
    return anywhere, on_constraints


def _position_dependent_points(m: Mechanism) -> set[int]:
    """Return points whose position matters for more than a load: mass centres, and ends of pathways."""
    ends = (load.points for load in m.loads if isinstance(load, PathwayLoad))
    return {body.masscenter for body in m.bodies}.union(*ends)


def _is_auxiliary_velocity(m: Mechanism, velocity: VectorTerms) -> bool:
    """Return whether a velocity contains auxiliary speeds only: these measure a force and move nothing."""
    components = [component for _, components_in_frame in velocity for component in components_in_frame]
    zero = dict.fromkeys(m.u_auxiliary, sm.S.Zero)
    return any(component != 0 for component in components) and all(
        component.xreplace(zero) == 0 for component in components
    )


def _is_body_particle(
    i: int, derived: NumericMechanism, with_given: NumericMechanism, samples: list[StateSample]
) -> bool:
    """Return whether a given velocity is that of the body's particle at the point: v_G + w_B × (r - r_G).

    So ``v2pt_theory`` from the centre of a wheel gives the velocity of the particle in contact, while the contact point
    moves along the ground. The velocities agree everywhere, or where the velocity constraints hold.
    """
    m = derived.mechanism
    bodies = {
        (body.masscenter, body.frame) for body in m.bodies if body.frame >= 0 and m.points[body.masscenter].located
    }
    agreeing = {False: set(bodies), True: set(bodies)}
    for sample in samples:
        for on_constraints, candidates in agreeing.items():
            set_random_state(derived, sample, on_constraints=on_constraints)
            set_random_state(with_given, sample, on_constraints=on_constraints)
            position, velocity = derived.points[i].position, with_given.points[i].velocity
            for centre, frame in sorted(candidates):
                arm = position - derived.points[centre].position
                particle = derived.points[centre].velocity + np.cross(derived.frames[frame].omega, arm)
                if vectors_differ(velocity, particle, max_point_speed(derived)):
                    candidates.discard((centre, frame))
    return any(agreeing.values())


def _velocity_fault(i: int, derived: NumericMechanism, with_given: NumericMechanism, sample: StateSample) -> Fault:
    """Return the fault that shows a point's given and derived velocity at a random state, in m/s."""
    set_random_state(derived, sample, on_constraints=True)
    set_random_state(with_given, sample, on_constraints=True)
    m = derived.mechanism
    problem = (
        f"the velocity of point {m.points[i].name} is given as {format_vector(with_given.points[i].velocity)} "
        "where its position "
        f"moves with {format_vector(derived.points[i].velocity)} (components in {m.frames[0].name}, at a random state)"
    )
    return Fault(problem, remedy="correct set_vel, the position, or the kinematic equations")


def _dynamic_points(m: Mechanism) -> set[int]:
    """Return the points whose velocity enters the dynamics."""
    numbers = {body.masscenter for body in m.bodies}
    for load in m.loads:
        numbers |= set(getattr(load, "points", ())) | {getattr(load, "point", 0)}
    return numbers


def _prefers_given_velocity(m: Mechanism, point: KinematicPoint, velocity: VectorTerms) -> bool:
    """Return True where the given velocity contains auxiliary speeds, or is the simpler of two equal expressions."""
    components = [component for _, components_in_frame in velocity for component in components_in_frame]
    if any(component.free_symbols & set(m.u_auxiliary) for component in components):
        return True
    offsets = [component for _, components_in_frame in point.position or () for component in components_in_frame]
    constant = not any(component.free_symbols & {*m.q, *m.r, m.t} for component in offsets)
    frames = {frame for frame, _ in point.position or ()}
    if constant and frames != {0}:
        return False
    return bool(
        sum(sm.count_ops(component) for component in components)
        <= sum(sm.count_ops(component) for component in offsets)
    )
