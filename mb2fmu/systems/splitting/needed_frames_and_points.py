"""``FramesAndPointsOfPart``: frames and points of a mechanism that some of its records need, with new numbers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    ConstraintForceApplication,
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
from mb2fmu.systems.splitting.body_motion_states import list_load_frames, list_load_points


class FramesAndPointsOfPart:
    """Needed frames and points, with those they refer to; inertial frame and origin are always included.

    Args:
        mechanism: The whole mechanism.
        bodies: Bodies of the part.
        loads: Loads of the part.
        renumbered_points: Further ones.
        renumbered_frames: Further ones.
    """

    def __init__(
        self, mechanism: Mechanism, bodies: Iterable[Body], loads: Iterable[Load], points: Iterable[int],
        frames: Iterable[int],
    ) -> None:  # fmt: skip
        self._mechanism = mechanism
        self._selected_frames, self._selected_points = {0}, {0}
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
        self._new_frame_numbers = {-1: -1} | {old: new for new, old in enumerate(sorted(self._selected_frames))}
        self._new_point_numbers = {-1: -1} | {old: new for new, old in enumerate(sorted(self._selected_points))}

    def _add_frame(self, number: int) -> None:
        """Select a frame and all that its orientation and angular velocity refer to."""
        if number < 0 or number in self._selected_frames:
            return
        self._selected_frames.add(number)
        frame = self._mechanism.frames[number]
        for referenced_frame in (
            frame.parent,
            frame.reference,
            *(other_frame for other_frame, _ in frame.angular_velocity),
        ):
            self._add_frame(referenced_frame)

    def _add_point(self, number: int) -> None:
        """Select a point, its parents, and the frames of its position and velocity."""
        if number < 0 or number in self._selected_points:
            return
        self._selected_points.add(number)
        point = self._mechanism.points[number]
        self._add_point(point.parent)
        for frame, _ in (*(point.position or ()), *(point.velocity or ())):
            self._add_frame(frame)

    def renumbered_frames(self) -> tuple[Frame, ...]:
        """Return the selected frames, with new numbers."""
        selected_frames = [self._mechanism.frames[number] for number in sorted(self._selected_frames)]
        return tuple(
            replace(
                frame,
                parent=self._new_frame_numbers[frame.parent],
                reference=self._new_frame_numbers[frame.reference],
                angular_velocity=self.renumber_terms(frame.angular_velocity),
            )
            for frame in selected_frames
        )

    def renumbered_points(self) -> tuple[KinematicPoint, ...]:
        """Return the selected points, with new numbers."""
        return tuple(
            replace(
                point,
                parent=self._new_point_numbers[point.parent],
                position=None if point.position is None else self.renumber_terms(point.position),
                velocity=None if point.velocity is None else self.renumber_terms(point.velocity),
            )
            for point in (self._mechanism.points[number] for number in sorted(self._selected_points))
        )

    def renumber_terms(self, terms: VectorTerms) -> VectorTerms:
        """Return a vector with new frame numbers."""
        return tuple((self._new_frame_numbers[frame], components) for frame, components in terms)

    def new_point_number(self, number: int) -> int:
        """Return the new number of a point."""
        return self._new_point_numbers[number]

    def new_frame_number(self, number: int) -> int:
        """Return the new number of a frame."""
        return self._new_frame_numbers[number]

    def renumber_body(self, body: Body) -> Body:
        """Return a body with new numbers."""
        return replace(
            body, masscenter=self._new_point_numbers[body.masscenter], frame=self._new_frame_numbers[body.frame]
        )

    def renumber_load(self, load: Load) -> Load:
        """Return a load with new numbers."""
        match load:
            case ForceLoad():
                return replace(load, point=self._new_point_numbers[load.point], force=self.renumber_terms(load.force))
            case TorqueLoad():
                return replace(load, frame=self._new_frame_numbers[load.frame], torque=self.renumber_terms(load.torque))
            case PathwayLoad():
                return replace(load, points=tuple(self._new_point_numbers[point] for point in load.points))
            case TorqueActuatorLoad():
                new_frames = self._new_frame_numbers[load.frame], self._new_frame_numbers[load.reaction]
                return replace(load, frame=new_frames[0], reaction=new_frames[1], axis=self.renumber_terms(load.axis))

    def renumber_application(self, application: ConstraintForceApplication) -> ConstraintForceApplication:
        """Return the place where a constraint's force acts, without particles of bodies."""
        new_number = (
            self._new_frame_numbers[application.point_or_frame]
            if application.is_torque
            else self._new_point_numbers[application.point_or_frame]
        )
        return replace(application, point_or_frame=new_number, vector=self.renumber_terms(application.vector))
