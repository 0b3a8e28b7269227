"""Cuts: forces and torques of joints and contacts, by the Newton-Euler equations of the bodies beyond the cut.

The reference's own way: which body a load acts on is told by numbers. A point is fixed in a body if it moves as a
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
from mb2fmu.mechanics.mechanism.numeric.numeric_mechanism import NumericMechanism
from mb2fmu.mechanics.mechanism.numeric.random_states import append_auxiliary_speeds, draw_random_states
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, PathwayLoad, TorqueActuatorLoad, TorqueLoad
from mb2fmu.mechanics.mechanism.records.requested_quantities import RequestedOutput
from mb2fmu.validation.evaluation_plans.kinematic_quantities import KinematicQuantities

Floats = npt.NDArray[np.float64]
GROUND_BODY = -1
_SAME_MOTION_TOLERANCE = 1e-9  # of the largest partial velocity


@dataclass(frozen=True, slots=True)
class _CutForce:
    """A force on a point or a torque on a frame, in N; ``body``: the body that it acts on, if given."""

    at: int
    vector: sm.Matrix
    torque: bool = False
    body: int = GROUND_BODY


class JointWrenches:
    """Forces in the cuts of one mechanism, written in sights."""

    def __init__(self, mechanism: Mechanism, sights: KinematicQuantities) -> None:
        self.m, self.kinematic_quantities = mechanism, sights

    def form_requested_wrench(self, request: RequestedOutput) -> sm.Matrix:
        """Return the requested force or torque, in N."""
        subject = request.subject
        at = request.relative_to
        if request.of_joint:
            joint = self.m.joints[subject[0]]
            bodies = self._beyond(joint.child)
            at = joint.point if at is None else at
        else:
            bodies = {*subject}
        if request.kind == "reaction_force":
            return self._force(bodies)
        assert at is not None, "the formulation has refused it"
        return self._torque(bodies, at)

    def form_joint_wrench(self, number: int, *, force: bool) -> sm.Matrix:
        """Return the force through a joint, or the torque about its point, in N."""
        joint = self.m.joints[number]
        bodies = self._beyond(joint.child)
        return self._force(bodies) if force else self._torque(bodies, joint.point)

    def _beyond(self, body: int) -> set[int]:
        """Return a body, the bodies that follow it by joints, and those fixed in any of them."""
        held = {joint.child for joint in self.m.joints}
        found: set[int] = set()
        waiting = [body]
        while waiting:
            number = waiting.pop()
            found.add(number)
            waiting += [joint.child for joint in self.m.joints if joint.parent == number]
        for other, each in enumerate(self.m.bodies):
            if other not in held and self._fixed.of_point(each.masscenter, among=sorted(held)) in found:
                found.add(other)
        return found

    def _force(self, bodies: set[int]) -> sm.Matrix:
        """Return R = sum m a - sum F."""
        total = sm.zeros(3, 1)
        for number in sorted(bodies):
            body = self.m.bodies[number]
            total += body.mass * self.kinematic_quantities.vector("acceleration", body.masscenter)
        for piece in self._iterate_loads_on_bodies(bodies):
            total -= sm.zeros(3, 1) if piece.torque else piece.vector
        return total

    def _torque(self, bodies: set[int], at: int) -> sm.Matrix:
        """Return S = sum (r x m a + H') - sum (r x F + T) about a point."""
        total, here = sm.zeros(3, 1), self.kinematic_quantities.vector("position", at)
        for number in sorted(bodies):
            body = self.m.bodies[number]
            arm = self.kinematic_quantities.vector("position", body.masscenter) - here
            total += body.mass * arm.cross(self.kinematic_quantities.vector("acceleration", body.masscenter))
            if body.inertia is not None and not body.inertia.is_zero_matrix:
                R = self.kinematic_quantities.rotation(body.frame)
                w = R.T * self.kinematic_quantities.vector("omega", body.frame)
                alpha = R.T * self.kinematic_quantities.vector("alpha", body.frame)
                total += R * (body.inertia * alpha + w.cross(body.inertia * w))
        for piece in self._iterate_loads_on_bodies(bodies):
            if piece.torque:
                total -= piece.vector
            else:
                total -= (self.kinematic_quantities.vector("position", piece.at) - here).cross(piece.vector)
        return total

    def _iterate_loads_on_bodies(self, bodies: set[int]) -> Iterator[_CutForce]:
        """Yield the loads on some bodies."""
        for piece in (*self._loads(), *self._constraint_forces()):
            number = piece.body
            if number == GROUND_BODY:
                fixed = self._fixed.of_frame if piece.torque else self._fixed.of_point
                number = fixed(piece.at, among=range(len(self.m.bodies)))
            if number in bodies:
                yield piece

    def _loads(self) -> Iterator[_CutForce]:
        """Yield each load as forces on points and torques on frames, in inertial components, with reactions."""
        for load in self.m.loads:
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
                yield from self._along(load)

    def _along(self, load: PathwayLoad) -> Iterator[_CutForce]:
        """Yield the forces of each segment, which push its ends apart."""
        for a, b in zip(load.points, load.points[1:], strict=False):
            d = self.kinematic_quantities.vector("position", b) - self.kinematic_quantities.vector("position", a)
            push = load.force * d / sm.sqrt(d.dot(d))
            yield from (_CutForce(a, -push), _CutForce(b, push))

    def _constraint_forces(self) -> Iterator[_CutForce]:
        """Yield constraint forces: minus the multiplier times the vectors at their places of application."""
        for symbol, acts in zip(self.m.multipliers, self.m.acts, strict=True):
            for act in acts:
                vector = -symbol * self.kinematic_quantities.in_inertial_frame(act.vector)
                yield _CutForce(act.at, vector, act.torque, act.body)

    @cached_property
    def _fixed(self) -> _BodyOfPointFinder:
        """Finder of frames and points that are fixed to each other."""
        return _BodyOfPointFinder(self.m)


class _BodyOfPointFinder:
    """Finds the body in which points and frames are fixed, by their motion at random states."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._bodies = mechanism.bodies
        numeric = NumericMechanism(mechanism)
        self._frames: list[Floats] = []
        self._points: list[tuple[Floats, Floats]] = []  # positions and partial velocities of all points
        for s in draw_random_states(numeric)[:2]:
            numeric.set(s.t, s.q, append_auxiliary_speeds(mechanism, s.u), s.z, s.r, s.parameters)
            self._frames.append(np.array([frame.partials for frame in numeric.frames]))
            places = np.array([point.position for point in numeric.points])
            self._points.append((places, np.array([point.partials for point in numeric.points])))

    def of_frame(self, frame: int, among: Sequence[int]) -> int:
        """Return the body that a frame turns with, or the ground."""
        turning = [W[frame] for W in self._frames]
        if all(_is_equal_to_round_off(W, 0 * W, W) for W in turning):
            return GROUND_BODY
        for number in among:
            own = self._bodies[number].frame
            if own >= 0 and all(_is_equal_to_round_off(W[own], W[frame], W[frame]) for W in self._frames):
                return number
        return GROUND_BODY

    def of_point(self, point: int, among: Sequence[int]) -> int:
        """Return the body that a point is a particle of, or the ground."""
        for number in among:
            if self._bodies[number].masscenter == point:
                return number
        if all(not np.any(J[point]) for _, J in self._points):
            return GROUND_BODY
        for number in among:
            if self._moves_with(number, point):
                return number
        return GROUND_BODY

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
