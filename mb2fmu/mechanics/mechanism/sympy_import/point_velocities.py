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
    given: Mapping[int, VectorTerms],
    *,
    origins_found: Collection[int],
) -> tuple[Mechanism, list[Fault]]:
    """Decide for each located point with a given velocity which one is used.

    Args:
        draft: Velocities derived from positions.
        derived: The same in numbers.
        samples: Random states.
        given: Point number → velocity in N as the user gave it.
        origins_found: The origin, if nobody named it (it was found as a point of zero velocity), and the pivot that
            lies in it and has auxiliary speeds: these may be contact points.

    Returns:
        The mechanism with settled velocities, and contradictions.
    """
    given = {i: velocity for i, velocity in given.items() if draft.points[i].located}
    if not given:
        return draft, []
    trial = tuple(replace(p, velocity=given.get(i, p.velocity)) for i, p in enumerate(draft.points))
    taken = NumericMechanism(replace(draft, points=trial))
    anywhere, on_constraints = _find_agreeing_points(derived, taken, samples, set(given))
    points, faults, by_constraint = list(draft.points), [], []
    lost: set[int] = set()
    matters = _dynamic_points(draft)
    only_loaded = {load.point for load in draft.loads if isinstance(load, ForceLoad)} - _position_dependent_points(
        draft
    )
    for i in sorted(given):
        place = points[i]
        if i in anywhere:
            if _prefers_given_velocity(draft, place, given[i]):
                points[i] = replace(place, velocity=given[i])
        elif i in on_constraints:
            points[i] = replace(place, velocity=given[i])
            by_constraint.append(place.name)
        elif origins_found and place.parent in {*origins_found, *lost}:
            # what was found as the origin is a contact point of zero velocity, not a point fixed in N
            points[i] = replace(place, velocity=given[i], located=False)
            lost.add(i)
            by_constraint.append(place.name)
        elif i in only_loaded and (
            _is_auxiliary_velocity(draft, given[i]) or _is_body_particle(i, derived, taken, samples)
        ):
            points[i] = replace(place, velocity=given[i], is_instantaneous=True)
        elif i in matters:
            faults.append(_velocity_fault(i, derived, taken, samples[0]))
    for i in {*origins_found} - {0} if lost else ():
        points[i] = replace(points[i], velocity=given[i], located=False)
        lost.add(i)
    _mark_unlocated(points, lost)
    return replace(draft, points=tuple(points), given_by_constraint=tuple(by_constraint)), faults


def _mark_unlocated(points: list[KinematicPoint], lost: set[int]) -> None:
    """Mark points as not located that hang on points without a known position; ``points`` change, ``lost`` grows."""
    for i, place in enumerate(points):
        if place.parent in lost and place.located:
            points[i] = replace(place, located=False)
            lost.add(i)


def _find_agreeing_points(
    derived: NumericMechanism, taken: NumericMechanism, samples: list[StateSample], points: set[int]
) -> tuple[set[int], set[int]]:
    """Return points whose velocities agree everywhere, and those that agree on the velocity constraints."""
    anywhere, on_constraints = set(points), set(points)
    for sample in samples:
        for on, agreeing in ((False, anywhere), (True, on_constraints)):
            set_random_state(derived, sample, on_constraints=on)
            set_random_state(taken, sample, on_constraints=on)
            fastest = max_point_speed(derived)
            agreeing -= {
                i for i in agreeing if vectors_differ(taken.points[i].velocity, derived.points[i].velocity, fastest)
            }
    return anywhere, on_constraints


def _position_dependent_points(m: Mechanism) -> set[int]:
    """Return points whose position matters for more than a load: mass centres, and ends of pathways."""
    ends = (load.points for load in m.loads if isinstance(load, PathwayLoad))
    return {body.masscenter for body in m.bodies}.union(*ends)


def _is_auxiliary_velocity(m: Mechanism, given: VectorTerms) -> bool:
    """Return whether a velocity contains auxiliary speeds only: these measure a force and move nothing."""
    components = [c for _, cs in given for c in cs]
    zero = dict.fromkeys(m.u_auxiliary, sm.S.Zero)
    return any(c != 0 for c in components) and all(c.xreplace(zero) == 0 for c in components)


def _is_body_particle(i: int, derived: NumericMechanism, taken: NumericMechanism, samples: list[StateSample]) -> bool:
    """Return whether a given velocity is that of the body's particle at the point: v_G + w_B × (r - r_G).

    So ``v2pt_theory`` from the centre of a wheel gives the velocity of what touches the ground, while the point where
    it touches moves along the ground. Everywhere, or where the velocity constraints hold.
    """
    m = derived.mechanism
    bodies = {
        (body.masscenter, body.frame) for body in m.bodies if body.frame >= 0 and m.points[body.masscenter].located
    }
    agreeing = {False: set(bodies), True: set(bodies)}
    for sample in samples:
        for on, left in agreeing.items():
            set_random_state(derived, sample, on_constraints=on)
            set_random_state(taken, sample, on_constraints=on)
            position, velocity = derived.points[i].position, taken.points[i].velocity
            for centre, frame in sorted(left):
                arm = position - derived.points[centre].position
                particle = derived.points[centre].velocity + np.cross(derived.frames[frame].omega, arm)
                if vectors_differ(velocity, particle, max_point_speed(derived)):
                    left.discard((centre, frame))
    return any(agreeing.values())


def _velocity_fault(i: int, derived: NumericMechanism, taken: NumericMechanism, sample: StateSample) -> Fault:
    """Return the fault that shows a point's given and derived velocity at a random state, in m/s."""
    set_random_state(derived, sample, on_constraints=True)
    set_random_state(taken, sample, on_constraints=True)
    m = derived.mechanism
    what = (
        f"the velocity of point {m.points[i].name} is given as {format_vector(taken.points[i].velocity)} "
        "where its position "
        f"moves with {format_vector(derived.points[i].velocity)} (components in {m.frames[0].name}, at a random state)"
    )
    return Fault(what, remedy="correct set_vel, the position, or the kinematic equations")


def _dynamic_points(m: Mechanism) -> set[int]:
    """Return the points whose velocity enters the dynamics."""
    numbers = {body.masscenter for body in m.bodies}
    for load in m.loads:
        numbers |= set(getattr(load, "points", ())) | {getattr(load, "point", 0)}
    return numbers


def _prefers_given_velocity(m: Mechanism, place: KinematicPoint, given: VectorTerms) -> bool:
    """Return True where the given velocity contains auxiliary speeds, or is the simpler of two equal expressions."""
    components = [c for _, cs in given for c in cs]
    if any(c.free_symbols & set(m.u_auxiliary) for c in components):
        return True
    offsets = [c for _, cs in place.position or () for c in cs]
    constant = not any(c.free_symbols & {*m.q, *m.r, m.t} for c in offsets)
    frames = {frame for frame, _ in place.position or ()}
    if constant and frames != {0}:
        return False
    return bool(sum(sm.count_ops(c) for c in components) <= sum(sm.count_ops(c) for c in offsets))
