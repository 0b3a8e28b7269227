"""Choose the velocity of each point: derived from its position, or given by the user."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np
import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import (
    RandomStateSample,
    differ_beyond_roundoff,
    format_vector_components,
    max_point_speed,
    set_random_mechanism_state,
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
    derived: MechanismEvaluator,
    samples: list[RandomStateSample],
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
        The mechanism with chosen velocities, and contradictions that its equations contain.
    """
    given_velocities = {i: velocity for i, velocity in given_velocities.items() if draft.points[i].located}
    if not given_velocities:
        return draft, []
    return _PointVelocityChooser(draft, derived, samples, given_velocities, origins_found).choose()


class _PointVelocityChooser:
    """Walks through the points, each after the one it is located from; arguments as above."""

    def __init__(
        self,
        draft: Mechanism,
        derived: MechanismEvaluator,
        samples: list[RandomStateSample],
        given_velocities: Mapping[int, VectorTerms],
        origins_found: Collection[int],
    ) -> None:
        trial_points = tuple(
            replace(point_record, velocity=given_velocities.get(i, point_record.velocity))
            for i, point_record in enumerate(draft.points)
        )
        self._draft, self._derived, self._samples, self._given_velocities = draft, derived, samples, given_velocities
        self._trial_mechanism = MechanismEvaluator(replace(draft, points=trial_points))
        self._agreeing_anywhere, self._agreeing_on_constraints = _find_agreeing_points(
            derived, self._trial_mechanism, samples, set(given_velocities)
        )
        self._origins = set(origins_found)
        self._loaded_points = {load.point for load in draft.loads if isinstance(load, ForceLoad)}
        self._loaded_points -= _position_dependent_points(draft)
        self._path_points = _path_points(draft)
        self._points_entered = _entering_points(draft, given_velocities)
        self._points = list(draft.points)
        self._unlocated: set[int] = set()
        self._in_contact: set[int] = set()  # of them, those that move as a found origin's contact makes them
        self._points_using_constraints: list[str] = []
        self._notes: list[str] = []
        self._faults: list[Fault] = []

    def choose(self) -> tuple[Mechanism, list[Fault]]:
        """Return the mechanism with chosen velocities, and contradictions that its equations contain."""
        for i, point in enumerate(self._draft.points):
            if point.parent in self._unlocated:
                self._follow_unlocated_parent(i)
            elif i in self._given_velocities:
                self._compare(i)
        for i in self._origins - {0} if self._in_contact else ():
            self._points[i] = replace(self._points[i], velocity=self._given_velocities[i])
            self._unlocated.add(i)
        for i, point in enumerate(self._points):
            if i in self._unlocated or point.parent in self._unlocated:
                self._points[i] = replace(point, located=False)
                self._unlocated.add(i)
        mechanism = replace(
            self._draft,
            points=tuple(self._points),
            points_using_constraints=tuple(self._points_using_constraints),
            contradicted_positions=tuple(self._notes),
        )
        return mechanism, self._faults

    def _follow_unlocated_parent(self, i: int) -> None:
        """Take the given velocity of a point located from one that moves otherwise than ``derived`` has it."""
        parent = self._draft.points[i].parent
        self._take_given_velocity(i, in_contact=parent in self._in_contact)

    def _take_given_velocity(self, i: int, *, in_contact: bool) -> None:
        """Take a point's velocity as given, if it is, and its position as unknown."""
        self._unlocated.add(i)
        self._in_contact |= {i} if in_contact else set()
        if i in self._given_velocities:
            self._points[i] = replace(self._points[i], velocity=self._given_velocities[i])
            self._points_using_constraints += [self._points[i].name] if in_contact else []

    def _compare(self, i: int) -> None:
        """Choose the velocity of a point whose parent moves as its position says."""
        point, given_velocity = self._points[i], self._given_velocities[i]
        if i in self._agreeing_anywhere:
            if _prefers_given_velocity(self._draft, point, given_velocity):
                self._points[i] = replace(point, velocity=given_velocity)
        elif i in self._agreeing_on_constraints:
            self._points[i] = replace(point, velocity=given_velocity)
            self._points_using_constraints.append(point.name)
        elif self._origins and self._is_fixed_to_origin(point.parent) and self._turns_about_origin(i):
            # what was found as the origin is a contact point of zero velocity, not a point fixed in N
            self._take_given_velocity(i, in_contact=True)
        elif i in self._loaded_points and (
            _is_auxiliary_velocity(self._draft, given_velocity)
            or _is_body_particle(i, self._derived, self._trial_mechanism, self._samples)
        ):
            self._points[i] = replace(point, velocity=given_velocity, is_instantaneous=True)
        elif i in self._points_entered:
            contradiction = self._describe_contradiction(i)
            if i in self._path_points:
                remedy = "correct set_vel, the position, or the kinematic equations"
                self._faults.append(Fault(contradiction, remedy=remedy))
            else:
                self._notes.append(
                    f"{contradiction}: the equations contain the velocity alone, as SymPy's do; where {point.name} is, "
                    "is not known"
                )
                self._take_given_velocity(i, in_contact=False)

    def _is_fixed_to_origin(self, i: int) -> bool:
        """Return whether only points without a chosen velocity lie between point i and a found origin."""
        while i not in self._origins and i > 0 and self._points[i].velocity is None:
            i = self._points[i].parent
        return i in self._origins

    def _turns_about_origin(self, i: int) -> bool:
        """Return whether a given velocity is w × r, r from the origin, with the angular velocity w of some frame.

        So a wheel turns about its contact, whose particle rests for an instant.
        """
        frames = set(range(len(self._draft.frames)))
        for sample in self._samples:
            for numeric in (self._derived, self._trial_mechanism):
                set_random_mechanism_state(numeric, sample, on_constraints=True)
            velocity, fastest = self._trial_mechanism.points[i].velocity, max_point_speed(self._trial_mechanism)
            arm = self._derived.points[i].position - self._derived.points[0].position
            frames -= {
                frame
                for frame in frames
                if differ_beyond_roundoff(velocity, np.cross(self._derived.frames[frame].omega, arm), fastest)
            }
        return bool(frames)

    def _describe_contradiction(self, i: int) -> str:
        """Return a point's given and derived velocity at a random state, in m/s."""
        numbers = []
        for numeric in (self._trial_mechanism, self._derived):
            set_random_mechanism_state(numeric, self._samples[0], on_constraints=True)
            numbers.append(format_vector_components(numeric.points[i].velocity))
        points, frames = self._draft.points, self._draft.frames
        return (
            f"the velocity of point {points[i].name} is given as {numbers[0]} where its position, from point "
            f"{points[points[i].parent].name}, moves with {numbers[1]} (components in {frames[0].name}, at a random "
            "state)"
        )


def _entering_points(m: Mechanism, given_points: Collection[int]) -> set[int]:
    """Return points whose velocity enters the dynamics, itself or as what another point's velocity is derived from."""
    entering: set[int] = set()
    for number in _dynamic_points(m):
        i = number
        entering.add(i)
        while i not in given_points and m.points[i].parent >= 0:
            i = m.points[i].parent
            entering.add(i)
    return entering


def _path_points(m: Mechanism) -> set[int]:
    """Return points whose position enters the dynamics: ends of pathways, and what they are located from."""
    points: set[int] = set()
    for load in m.loads:
        for end in load.points if isinstance(load, PathwayLoad) else ():
            i = end
            while i >= 0:
                points.add(i)
                i = m.points[i].parent
    return points


def _find_agreeing_points(
    derived: MechanismEvaluator, with_given: MechanismEvaluator, samples: list[RandomStateSample], points: set[int]
) -> tuple[set[int], set[int]]:
    """Return points whose velocities agree everywhere, and those that agree on the velocity constraints."""
    agreeing_anywhere, agreeing_on_constraints = set(points), set(points)
    for sample in samples:
        for on_constraint_surface, agreeing in ((False, agreeing_anywhere), (True, agreeing_on_constraints)):
            set_random_mechanism_state(derived, sample, on_constraints=on_constraint_surface)
            set_random_mechanism_state(with_given, sample, on_constraints=on_constraint_surface)
            fastest = max_point_speed(derived)
            agreeing -= {
                i
                for i in agreeing
                if differ_beyond_roundoff(with_given.points[i].velocity, derived.points[i].velocity, fastest)
            }
    return agreeing_anywhere, agreeing_on_constraints


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
    i: int, derived: MechanismEvaluator, with_given: MechanismEvaluator, samples: list[RandomStateSample]
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
            set_random_mechanism_state(derived, sample, on_constraints=on_constraints)
            set_random_mechanism_state(with_given, sample, on_constraints=on_constraints)
            position, velocity = derived.points[i].position, with_given.points[i].velocity
            for centre, frame in sorted(candidates):
                arm = position - derived.points[centre].position
                particle = derived.points[centre].velocity + np.cross(derived.frames[frame].omega, arm)
                if differ_beyond_roundoff(velocity, particle, max_point_speed(derived)):
                    candidates.discard((centre, frame))
    return any(agreeing.values())


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
