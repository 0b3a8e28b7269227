"""Attachment of an element: to a joint, between two points along a direction, or between two frames about an axis."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import sympy as sm
from sympy.physics.mechanics import PinJoint, Point, PrismaticJoint, ReferenceFrame
from sympy.physics.mechanics.joint import Joint
from sympy.physics.vector import Vector

from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.frame_and_point_restoration import list_vector_frames, restore_frames_and_points
from mb2fmu.model.sources.parts_mechanics_source import Parts
from mb2fmu.model.sources.record_based_mechanics import RecordBasedMechanics

if TYPE_CHECKING:
    from mb2fmu.model import Model

AttachmentPlace: TypeAlias = (
    PinJoint
    | PrismaticJoint
    | str
    | tuple[Point | None, Point, Vector]
    | tuple[ReferenceFrame | None, ReferenceFrame, Vector]
)
"""A pin or prismatic joint; a robot's joint by its name; (point, point, direction); (frame, frame, axis). A first point
or frame that is None is the ground's. Motion counts positive where the second moves along the direction."""


@dataclass(frozen=True, slots=True)
class ElementAttachment:
    """Geometry of the place where an element acts.

    Attributes:
        turns: True: about an axis, efforts in N.m; else along a direction, efforts in N.
        speed: Of the second against the first, rad/s or m/s; efforts times it is their power.
        position: The angle or distance that has this speed; None where only the speed is known.
        places: (first, second, unit vector); None of a robot.
        joint: Of a robot.
    """

    turns: bool
    speed: sm.Expr
    position: sm.Expr | None
    places: tuple[Any, Any, Vector] | None = None
    joint: str = ""

    @property
    def effort(self) -> str:
        """``torque`` or ``force``."""
        return "torque" if self.turns else "force"

    @property
    def effort_unit(self) -> str:
        """The unit of the torque or force."""
        return "N.m" if self.turns else "N"

    @property
    def speed_unit(self) -> str:
        """The unit of the speed."""
        return "rad/s" if self.turns else "m/s"

    @property
    def position_unit(self) -> str:
        """The unit of the angle or distance."""
        return "rad" if self.turns else "m"

    def load(self, model: Model, effort: sm.Expr) -> None:
        """Add an effort on the second side and the opposite one on the first; forces on the ground are left out."""
        if self.places is None:
            model.add_loads((self.joint, effort))
            return
        first, second, along = self.places
        ground = (mechanics_source.inertial_frame(model.mechanics), mechanics_source.origin(model.mechanics))
        for place, sense in ((first, -1), (second, 1)):
            if place is not None and place not in ground:
                model.add_loads((place, sense * effort * along))


def find_attachment_faults(on: Any, model: Model) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) if there is nothing that an element could act on."""
    remedy = "give a PinJoint or PrismaticJoint, (point, point, direction) or (frame, frame, axis)"
    if isinstance(model.mechanics, RecordBasedMechanics):
        if on not in model.mechanics.speed:
            joints = ", ".join(model.mechanics.speed)
            yield f"it acts on {on!r}, which is no joint with a coordinate of its own", f"take one of {joints}"
        return
    if isinstance(on, Joint):
        if not isinstance(on, PinJoint | PrismaticJoint):
            yield f"it acts on joint {on.name}, a {type(on).__name__}", "take one that turns or slides in one way"
        return
    if not isinstance(on, tuple) or len(on) != 3 or not isinstance(on[2], Vector):
        yield f"it acts on {on!r}", remedy
        return
    kinds = [kind for kind in (Point, ReferenceFrame) if isinstance(on[1], kind) and isinstance(on[0], kind | None)]
    if not kinds:
        yield f"it acts between {on[0]} and {on[1]}, which are not two points or two frames", remedy
    elif mechanics_source.inertial_frame(model.mechanics) is None:
        yield "the mechanics have no inertial frame", "give it: LagrangesMethod(…, forcelist=[…], frame=N)"
    elif on[2] == 0:
        yield "its direction is zero", "give a unit vector, such as N.x"
    else:
        try:
            make_element_attachment(on, model)
        except (ValueError, TypeError) as error:
            yield f"the speed is not known: {' '.join(str(error).split())}", "connect both with the mechanism"


def make_element_attachment(on: AttachmentPlace, model: Model) -> ElementAttachment:
    """Return the attachment of an element without :func:`find_attachment_faults`."""
    if isinstance(on, str):
        robot = model.mechanics
        assert isinstance(robot, RecordBasedMechanics)
        position = robot.position[on]
        turns = any(item.unit == "rad" for item in model.declared if getattr(item, "symbol", None) == position)
        return ElementAttachment(turns, robot.speed[on], position, joint=on)
    if isinstance(on, PinJoint):
        places = (on.parent.frame, on.child.frame, on.joint_axis.normalize())
        return ElementAttachment(turns=True, speed=on.speeds[0], position=on.coordinates[0], places=places)
    if isinstance(on, PrismaticJoint):
        places = (on.parent_point, on.child_point, on.joint_axis.normalize())
        return ElementAttachment(turns=False, speed=on.speeds[0], position=on.coordinates[0], places=places)
    first, second, along = on
    frame, origin = mechanics_source.inertial_frame(model.mechanics), mechanics_source.origin(model.mechanics)
    assert isinstance(frame, ReferenceFrame)
    along = along.normalize()
    with restore_frames_and_points([frame, origin, first, second, *list_vector_frames(along)]):
        if isinstance(second, ReferenceFrame):
            speed = second.ang_vel_in(first or frame).dot(along)
            return ElementAttachment(turns=True, speed=speed, position=None, places=(first, second, along))
        if isinstance(model.mechanics, Parts) and isinstance(origin, Point):
            origin.set_vel(frame, 0)  # it is fixed in the inertial frame, by its definition
        start = first or origin
        rates = [second.vel(frame), *([] if first is None else [first.vel(frame)])]
        speed = rates[0].dot(along) - (rates[1].dot(along) if first is not None else 0)
        position = second.pos_from(start).dot(along) if start is not None else None
    return ElementAttachment(turns=False, speed=speed, position=position, places=(first, second, along))
