"""``RecordSelection``: frames and points of a mechanism that some of its records need, with new numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    ForceApplication,
    ForceLoad,
    Frame,
    KinematicPoint,
    Load,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.systems.splitting.moving_states import list_load_frames, list_load_points


class RecordSelection:
    """Needed frames and points, with those they refer to; inertial frame and origin are always included.

    Args:
        mechanism: The whole.
        bodies: That are kept.
        loads: That are kept.
        points: Further ones.
        frames: Further ones.
    """

    def __init__(
        self, mechanism: Mechanism, bodies: Iterable[Body], loads: Iterable[Load], points: Iterable[int],
        frames: Iterable[int],
    ) -> None:  # fmt: skip
        self._m = mechanism
        self._frames, self._points = {0}, {0}
        for body in bodies:
            self._add_point(body.masscenter)
            self._add_frame(body.frame)
        for load in loads:
            for point in list_load_points(load):
                self._add_point(point)
            for frame in list_load_frames(load):
                self._add_frame(frame)
        for point in points:
            self._add_point(point)
        for frame in frames:
            self._add_frame(frame)
        self._frame = {-1: -1} | {old: new for new, old in enumerate(sorted(self._frames))}
        self._point = {-1: -1} | {old: new for new, old in enumerate(sorted(self._points))}

    def _add_frame(self, number: int) -> None:
        """Select a frame and all that its orientation and angular velocity refer to."""
        if number < 0 or number in self._frames:
            return
        self._frames.add(number)
        frame = self._m.frames[number]
        for other in (frame.parent, frame.reference, *(k for k, _ in frame.angular_velocity)):
            self._add_frame(other)

    def _add_point(self, number: int) -> None:
        """Select a point, its parents, and the frames of its position and velocity."""
        if number < 0 or number in self._points:
            return
        self._points.add(number)
        point = self._m.points[number]
        self._add_point(point.parent)
        for frame, _ in (*(point.position or ()), *(point.velocity or ())):
            self._add_frame(frame)

    def frames(self) -> tuple[Frame, ...]:
        """Return the selected frames, with new numbers."""
        chosen = [self._m.frames[k] for k in sorted(self._frames)]
        return tuple(
            replace(
                each,
                parent=self._frame[each.parent],
                reference=self._frame[each.reference],
                angular_velocity=self.terms(each.angular_velocity),
            )
            for each in chosen
        )

    def points(self) -> tuple[KinematicPoint, ...]:
        """Return the selected points, with new numbers."""
        return tuple(
            replace(
                each,
                parent=self._point[each.parent],
                position=None if each.position is None else self.terms(each.position),
                velocity=None if each.velocity is None else self.terms(each.velocity),
            )
            for each in (self._m.points[k] for k in sorted(self._points))
        )

    def terms(self, terms: VectorTerms) -> VectorTerms:
        """Return a vector with new frame numbers."""
        return tuple((self._frame[frame], components) for frame, components in terms)

    def point(self, number: int) -> int:
        """Return the new number of a point."""
        return self._point[number]

    def frame(self, number: int) -> int:
        """Return the new number of a frame."""
        return self._frame[number]

    def body(self, body: Body) -> Body:
        """Return a body with new numbers."""
        return replace(body, masscenter=self._point[body.masscenter], frame=self._frame[body.frame])

    def load(self, load: Load) -> Load:
        """Return a load with new numbers."""
        match load:
            case ForceLoad():
                return replace(load, point=self._point[load.point], force=self.terms(load.force))
            case TorqueLoad():
                return replace(load, frame=self._frame[load.frame], torque=self.terms(load.torque))
            case PathwayLoad():
                return replace(load, points=tuple(self._point[k] for k in load.points))
            case TorqueActuatorLoad():
                ends = self._frame[load.frame], self._frame[load.reaction]
                return replace(load, frame=ends[0], reaction=ends[1], axis=self.terms(load.axis))

    def application(self, act: ForceApplication) -> ForceApplication:
        """Return the place where a constraint's force acts, without particles of bodies."""
        at = self._frame[act.at] if act.torque else self._point[act.at]
        return replace(act, at=at, vector=self.terms(act.vector))
