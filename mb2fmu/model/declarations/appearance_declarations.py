"""Part of ``Model`` that only pictures use."""

from __future__ import annotations

from typing import Any

from sympy.physics.mechanics import Point, ReferenceFrame
from sympy.physics.vector import Vector

from mb2fmu.model.declarations.shapes import (
    AppearanceItem,
    Cylinder,
    LoadArrow,
    PointTrace,
    Shape,
    ShapeSize,
    VisualShape,
)
from mb2fmu.model.source_location import find_user_line


class AppearanceDeclarations:
    """Shapes, traced points and arrows of a model; without any, pictures show bodies by their inertia.

    Attributes:
        looks: In order of declaration.
        ground: Inertial frame and origin, as :meth:`place_in` was told; None where the mechanics say them.
    """

    def __init__(self) -> None:
        self.looks: list[AppearanceItem] = []
        self.ground: tuple[ReferenceFrame, Point] | None = None

    def visual(
        self,
        body: Any,
        shape: Shape,
        *,
        at: Point | Vector | None = None,
        along: Vector | None = None,
        color: str = "",
        opacity: float = 1.0,
    ) -> None:
        """Draw a body, or a frame, with a shape; several shapes add up.

        Args:
            body: A ``RigidBody``, a ``Particle``, or a ``ReferenceFrame`` (then ``at`` is a point). The inertial frame
                makes scenery that stands still.
            shape: ``Cylinder``, ``Box``, ``Sphere``, ``Ellipsoid`` or ``Mesh``; sizes in m or of parameters.
            at: Where its middle is: a point, or a vector from the mass centre that is fixed in the body. None: the
                mass centre.
            along: Direction of its y axis, fixed in the body; None: the y axis of the body's frame.
            color: ``#rrggbb``.
            opacity: 0 … 1.
        """
        self.looks.append(
            VisualShape(
                body=body, shape=shape, at=at, along=along, color=color, opacity=opacity, where=find_user_line()
            )
        )

    def link(
        self,
        body: Any,
        start: Point,
        end: Point,
        *,
        radius: ShapeSize,
        color: str = "",
        opacity: float = 1.0,
    ) -> None:
        """Draw a rod of a body, or of a frame, from one of its points to another.

        Args:
            body: As of :meth:`visual`.
            start: Where it begins.
            end: Where it ends; the distance of both is written along the axes of the body's frame.
            radius: m, or of parameters.
            color: ``#rrggbb``.
            opacity: 0 … 1.
        """
        reach = end.pos_from(start)
        middle = start.locatenew(f"{start.name}_{end.name}", reach / 2)
        shape = Cylinder(reach.magnitude(), radius)
        self.looks.append(
            VisualShape(
                body=body, shape=shape, at=middle, along=reach, color=color, opacity=opacity, where=find_user_line()
            )
        )

    def trace(self, point: Point, *, color: str = "") -> None:
        """Draw the path of a point."""
        self.looks.append(PointTrace(point=point, color=color, where=find_user_line()))

    def arrow(self, load: Any, *, scale: float | None = None, color: str = "") -> None:
        """Draw a force (or torque, about its arrow) where it acts.

        Args:
            load: One of the given loads or actuators, or a pair (point, vector) of any expressions.
            scale: m per N (or N·m); None: so that the largest fits into the picture.
            color: ``#rrggbb``.
        """
        self.looks.append(LoadArrow(load=load, scale=scale, color=color, where=find_user_line()))

    def place_in(self, frame: ReferenceFrame, origin: Point) -> None:
        """Set the inertial frame and a point fixed in it, for pictures of mechanics that have none.

        A Lagrangian alone knows no bodies; with frames and points of the user's own, shapes can be fixed in those.
        """
        self.ground = (frame, origin)
