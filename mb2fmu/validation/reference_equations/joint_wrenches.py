"""Joint wrenches: forces and torques of joints and contacts, by the Newton-Euler equations of the bodies beyond.

The body that a load acts on is found by numbers. A point is fixed in a body if it moves as a
particle of that body would, v_P = v_B + w_B x r_BP, at random states and for every speed alone. The sums run over all
bodies beyond the cut at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism_evaluation import MechanismEvaluator
from mb2fmu.mechanics.mechanism.numeric.random_states import append_auxiliary_speeds, draw_random_states
from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    FlexibleBodyRecord,
    ForceLoad,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
)
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import RequestedOutput
from mb2fmu.validation.evaluation_plans.kinematic_quantities import KinematicQuantities

Floats = npt.NDArray[np.float64]
GROUND_BODY = -1
_SAME_MOTION_TOLERANCE = 1e-9  # of the largest partial velocity


@dataclass(frozen=True, slots=True)
class _CutForce:
    """A force on a point or a torque on a frame, in N; ``body``: the body that it acts on, if given."""

    node: int
    vector: sm.Matrix
    torque: bool = False
    body: int = GROUND_BODY


class JointWrenches:
    """Wrenches of joints and contacts of one mechanism, written in kinematic quantities."""

    def __init__(self, mechanism: Mechanism, kinematic_quantities: KinematicQuantities) -> None:
        self.mechanism, self.kinematic_quantities = mechanism, kinematic_quantities

    def form_requested_wrench(self, request: RequestedOutput) -> sm.Matrix:
        """Return the requested force or torque, in N."""
        subject = request.subject
        point = request.relative_to
        if request.of_joint:
            joint = self.mechanism.joints[subject[0]]
            bodies = self._list_bodies_beyond(joint.child)
            point = joint.point if point is None else point
        else:
            bodies = {*subject}
        if request.kind == "reaction_force":
            return self._form_force(bodies)
        assert point is not None, "the formulation has refused it"
        return self._form_torque(bodies, point)

    def form_joint_wrench(self, number: int, *, force: bool) -> sm.Matrix:
        """Return the force through a joint, or the torque about its point, in N."""
        joint = self.mechanism.joints[number]
        bodies = self._list_bodies_beyond(joint.child)
        return self._form_force(bodies) if force else self._form_torque(bodies, joint.point)

    def _list_bodies_beyond(self, body: int) -> set[int]:
        """Return a body, the bodies that follow it by joints, and those fixed in any of them."""
        joint_children = {joint.child for joint in self.mechanism.joints}
        bodies: set[int] = set()
        queue = [body]
        carriers = {
            other: self._body_finder.find_body_of_point(each.masscenter, candidates=sorted(joint_children))
            for other, each in enumerate(self.mechanism.bodies)
            if other not in joint_children
        }
        while queue:
            number = queue.pop()
            bodies.add(number)
            queue += [joint.child for joint in self.mechanism.joints if joint.parent == number]
            queue += [other for other, carrier in carriers.items() if carrier == number]
        return bodies

    def _form_force(self, bodies: set[int]) -> sm.Matrix:
        """Return R = sum m a - sum F."""
        force = sm.zeros(3, 1)
        for number in sorted(bodies):
            body = self.mechanism.bodies[number]
            force += body.mass * self.kinematic_quantities.vector("acceleration", body.masscenter)
        for load in self._iterate_loads_on_bodies(bodies):
            force -= sm.zeros(3, 1) if load.torque else load.vector
        return force

    def _form_torque(self, bodies: set[int], point: int) -> sm.Matrix:
        """Return S = sum (r x m a + H') - sum (r x F + T) about a point."""
        total, origin = sm.zeros(3, 1), self.kinematic_quantities.vector("position", point)
        for number in sorted(bodies):
            body = self.mechanism.bodies[number]
            arm = self.kinematic_quantities.vector("position", body.masscenter) - origin
            total += body.mass * arm.cross(self.kinematic_quantities.vector("acceleration", body.masscenter))
            if body.inertia is not None and not body.inertia.is_zero_matrix:
                R = self.kinematic_quantities.rotation(body.frame)
                w = R.T * self.kinematic_quantities.vector("omega", body.frame)
                alpha = R.T * self.kinematic_quantities.vector("alpha", body.frame)
                total += R * (body.inertia * alpha + w.cross(body.inertia * w))
        for load in self._iterate_loads_on_bodies(bodies):
            if load.torque:
                total -= load.vector
            else:
                total -= (self.kinematic_quantities.vector("position", load.node) - origin).cross(load.vector)
        return total

    def _iterate_loads_on_bodies(self, bodies: set[int]) -> Iterator[_CutForce]:
        """Yield the loads on some bodies."""
        for load in (*self._iterate_loads(), *self._iterate_constraint_forces()):
            number = load.body
            if number == GROUND_BODY:
                find_body = (
                    self._body_finder.find_body_of_frame if load.torque else self._body_finder.find_body_of_point
                )
                number = find_body(load.node, candidates=range(len(self.mechanism.bodies)))
            if number in bodies:
                yield load

    def _iterate_loads(self) -> Iterator[_CutForce]:
        """Yield each load as forces on points and torques on frames, in inertial components, with reactions."""
        for load in self.mechanism.loads:
            if isinstance(load, ForceLoad):
                yield _CutForce(load.point, self.kinematic_quantities.in_inertial_frame(load.force), body=load.body)
            elif isinstance(load, TorqueLoad):
                yield _CutForce(
                    load.frame, self.kinematic_quantities.in_inertial_frame(load.torque), torque=True, body=load.body
                )
            elif isinstance(load, TorqueActuatorLoad):
                vector = load.torque * self.kinematic_quantities.in_inertial_frame(load.axis)
                yield _CutForce(load.frame, vector, torque=True)
                if load.reaction >= 0:
                    yield _CutForce(load.reaction, -vector, torque=True)
            else:
                yield from self._iterate_pathway_forces(load)

    def _iterate_pathway_forces(self, load: PathwayLoad) -> Iterator[_CutForce]:
        """Yield the forces of each segment, which push its ends apart."""
        for a, b in zip(load.points, load.points[1:], strict=False):
            d = self.kinematic_quantities.vector("position", b) - self.kinematic_quantities.vector("position", a)
            force = load.force * d / sm.sqrt(d.dot(d))
            yield from (_CutForce(a, -force), _CutForce(b, force))

    def _iterate_constraint_forces(self) -> Iterator[_CutForce]:
        """Yield constraint forces: minus the multiplier times the vectors at their places of application."""
        for symbol, applications in zip(self.mechanism.multipliers, self.mechanism.force_applications, strict=True):
            for application in applications:
                vector = -symbol * self.kinematic_quantities.in_inertial_frame(application.vector)
                yield _CutForce(application.point_or_frame, vector, application.is_torque, application.body)

    @cached_property
    def _body_finder(self) -> _BodyOfPointFinder:
        """Finder of frames and points that are fixed to each other."""
        return _BodyOfPointFinder(self.mechanism)


class _BodyOfPointFinder:
    """Finds the body in which points and frames are fixed, by their motion at random states.

    What moves with a section of a flexible body belongs to a body with mass that is fixed there, else to the flexible
    one.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._bodies, self._flexible = mechanism.bodies, mechanism.flexible_bodies
        numeric = MechanismEvaluator(mechanism)
        self._frames: list[Floats] = []
        self._points: list[tuple[Floats, Floats]] = []  # positions and partial velocities of all points
        for s in draw_random_states(numeric)[:2]:
            numeric.set_state(s.t, s.q, append_auxiliary_speeds(mechanism, s.u), s.z, s.r, s.parameters)
            self._frames.append(np.array([frame.partials for frame in numeric.frames]))
            places = np.array([point.position for point in numeric.points])
            self._points.append((places, np.array([point.partials for point in numeric.points])))

    def find_body_of_frame(self, frame: int, candidates: Sequence[int]) -> int:
        """Return the body that a frame turns with, or the ground."""
        partials = [W[frame] for W in self._frames]
        if all(_is_equal_to_round_off(W, 0 * W, W) for W in partials):
            return GROUND_BODY
        bodies_turning_alike = [number for number in candidates if self._turn_alike(frame, self._bodies[number].frame)]
        if not self._flexible:
            return next(iter(bodies_turning_alike), GROUND_BODY)
        heavy = [number for number in bodies_turning_alike if self._bodies[number].mass != 0]
        sections = [
            record.body
            for record in self._flexible
            if record.body in candidates and any(self._turn_alike(frame, section) for section in record.points.values())
        ]
        return next(iter((*heavy, *sections, *bodies_turning_alike)), GROUND_BODY)

    def find_body_of_point(self, point: int, candidates: Sequence[int]) -> int:
        """Return the body that a point is a particle of, or the ground."""
        bodies_at_point = [number for number in candidates if self._bodies[number].masscenter == point]
        bodies_at_point = [number for number in bodies_at_point if self._bodies[number].mass != 0 or not self._flexible]
        if bodies_at_point:
            return bodies_at_point[0]
        for record in self._flexible:
            if record.body in candidates and self._belongs_to_flexible_body(record, point):
                return record.body
        if all(not np.any(J[point]) for _, J in self._points):
            return GROUND_BODY
        for number in candidates:
            if self._moves_with(number, point):
                return number
        return GROUND_BODY

    def _belongs_to_flexible_body(self, record: FlexibleBodyRecord, point: int) -> bool:
        """Return whether a point is one of a flexible body's, or moves with one of its sections."""
        centres = {self._bodies[number].masscenter for number in record.particles}
        if point in record.points or point in centres:
            return True
        sections = [(node, frame) for node, frame in record.points.items() if frame >= 0]
        return any(self._is_fixed_to(node, frame, point) for node, frame in sections)

    def _is_fixed_to(self, node: int, frame: int, point: int) -> bool:
        """Return whether a point moves as a particle of a node's section does, and not as one of a rigid body."""
        for W, (r, J) in zip(self._frames, self._points, strict=True):
            rigid = J[node] + np.cross(W[frame], (r[point] - r[node])[:, None], axis=0)
            if not _is_equal_to_round_off(rigid, J[point], J[point]):
                return False
        return True

    def _turn_alike(self, frame: int, other: int) -> bool:
        """Return whether two frames turn alike; a particle and a point without section have none (-1)."""
        return other >= 0 and all(_is_equal_to_round_off(W[frame], W[other], W[frame]) for W in self._frames)

    def _moves_with(self, number: int, point: int) -> bool:
        """Return whether v_P = v_B + w_B x r_BP for every speed alone."""
        body = self._bodies[number]
        for W, (r, J) in zip(self._frames, self._points, strict=True):
            rigid = J[body.masscenter].copy()
            if body.frame >= 0:
                rigid += np.cross(W[body.frame], (r[point] - r[body.masscenter])[:, None], axis=0)
            if not _is_equal_to_round_off(rigid, J[point], J[point]):
                return False
        return True


def _is_equal_to_round_off(a: Any, b: Any, scale: Any) -> bool:
    """Return whether two arrays are equal but for round-off of the largest number of a third."""
    return bool(
        np.max(np.abs(a - b), initial=0.0)
        <= _SAME_MOTION_TOLERANCE * max(float(np.max(np.abs(scale), initial=0.0)), 1e-300)
    )
