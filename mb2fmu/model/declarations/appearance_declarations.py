"""Appearance of a mechanism: shapes on bodies, traced points, arrows for forces, and the calls of ``Model`` for them.

Sizes are numbers in m or expressions of parameters; a shape's own axes are x, y, z of the frame it is fixed in. Nothing
here enters the equations or the interface of an FMU.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame
from sympy.physics.vector import Vector

from mb2fmu.model.source_location import find_user_source_line

ShapeSize: TypeAlias = float | int | sm.Expr

COLOUR_PATTERN = re.compile(r"#[0-9a-fA-F]{6}")


@dataclass(frozen=True, slots=True)
class Cylinder:
    """A cylinder about its y axis, centred at its position.

    Attributes:
        length: m.
        radius: m.
    """

    length: ShapeSize
    radius: ShapeSize

    @property
    def sizes(self) -> tuple[ShapeSize, ...]:
        """Length and radius."""
        return (self.length, self.radius)


@dataclass(frozen=True, slots=True)
class Box:
    """A box, centred at its position; edges along x, y and z, in m."""

    x: ShapeSize
    y: ShapeSize
    z: ShapeSize

    @property
    def sizes(self) -> tuple[ShapeSize, ...]:
        """The three edges."""
        return (self.x, self.y, self.z)


@dataclass(frozen=True, slots=True)
class Sphere:
    """A sphere.

    Attributes:
        radius: m.
    """

    radius: ShapeSize

    @property
    def sizes(self) -> tuple[ShapeSize, ...]:
        """The radius, in m."""
        return (self.radius,)


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """An ellipsoid with half axes along x, y and z, in m."""

    x: ShapeSize
    y: ShapeSize
    z: ShapeSize

    @property
    def sizes(self) -> tuple[ShapeSize, ...]:
        """The three half axes."""
        return (self.x, self.y, self.z)


@dataclass(frozen=True, slots=True)
class Mesh:
    """Triangles from a file (STL, OBJ, PLY, OFF).

    Attributes:
        path: Of the file; relative ones start at the model file's folder.
        scale: m per unit of the file.
    """

    path: str | Path
    scale: ShapeSize = 1.0

    @property
    def sizes(self) -> tuple[ShapeSize, ...]:
        """The scale factor."""
        return (self.scale,)


Shape = Cylinder | Box | Sphere | Ellipsoid | Mesh


@dataclass(frozen=True, slots=True, kw_only=True)
class VisualShape:
    """A shape that moves with a body.

    Attributes:
        body: A body of the mechanics, or a frame.
        shape: What is drawn.
        at: A point, or a vector from the body's mass centre; None: the mass centre.
        along: Vector into whose direction the shape's y axis is turned; None: the frame's y axis.
        color: ``#rrggbb``; empty: the body's own.
        opacity: 0 … 1.
        where: ``file:line``.
    """

    body: Any
    shape: Shape
    at: Point | Vector | None = None
    along: Vector | None = None
    color: str = ""
    opacity: float = 1.0
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedPointDeclaration:
    """A point whose path is drawn; attributes as of :class:`VisualShape`."""

    point: Point
    color: str = ""
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadArrow:
    """An arrow that shows a load.

    Attributes:
        load: A load or actuator of the mechanics, or a pair of a point and a vector.
        scale: Length of the arrow in m per N (per N·m for a torque); None: the largest one is as long as fits.
        color: ``#rrggbb``; empty: chosen.
        where: ``file:line``.
    """

    load: Any
    scale: float | None = None
    color: str = ""
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenBodyDeclaration:
    """A body that is not drawn unless it has a shape."""

    body: Any
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FlexibleMeshShape:
    """Triangles of a body whose vertices move by modes.

    Attributes:
        body: The rigid body whose frame they are fixed in at rest.
        origin: Of this frame.
        carriers: Points whose distances from the origin along the frame's x axis are the modal coordinates, m.
        vertices: Shape (n, 3), m.
        faces: Indices of vertices, shape (f, 3).
        shapes: Displacements of the vertices by each mode, shape (m, n, 3).
        scale: Factor of the displacements.
        color: ``#rrggbb``; empty: the body's own.
        opacity: 0 … 1.
        where: ``file:line``.
    """

    body: Any
    origin: Point
    carriers: tuple[Point, ...]
    vertices: npt.NDArray[np.float64]
    faces: npt.NDArray[np.int_]
    shapes: npt.NDArray[np.float64]
    scale: float = 1.0
    color: str = ""
    opacity: float = 1.0
    where: str = ""


AppearanceItem = VisualShape | TracedPointDeclaration | LoadArrow | HiddenBodyDeclaration | FlexibleMeshShape


def find_appearance_item_faults(item: AppearanceItem, parameters: frozenset[sm.Symbol]) -> Iterator[tuple[str, str]]:
    """Yield (what is wrong, what to do) of a declaration by itself.

    Args:
        item: What was declared.
        parameters: The model's parameters.
    """
    if isinstance(item, HiddenBodyDeclaration):
        if not hasattr(item.body, "masscenter"):
            yield f"{item.body!r} cannot be hidden", "give a body of the mechanics"
        return
    if item.color and not COLOUR_PATTERN.fullmatch(item.color):
        yield f"there is no color {item.color!r}", "write it as #rrggbb, as in #1f77b4"
    if isinstance(item, TracedPointDeclaration) and not isinstance(item.point, Point):
        yield f"a {type(item.point).__name__} cannot be traced", "give a Point"
    if isinstance(item, FlexibleMeshShape) and not (0 < item.opacity <= 1 and 0 < item.scale < math.inf):
        yield f"displacements of {item.body.name} cannot be drawn", "give a scale above 0, an opacity above 0, up to 1"
    if isinstance(item, LoadArrow) and item.scale is not None and not item.scale > 0:
        yield f"an arrow cannot have the scale {item.scale}", "give the m per N, > 0"
    if isinstance(item, VisualShape):
        yield from _visual_shape_faults(item, parameters)


def _visual_shape_faults(item: VisualShape, parameters: frozenset[sm.Symbol]) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) for a shape that cannot be drawn: its kind, place, direction, opacity or sizes."""
    if not isinstance(item.shape, Shape):
        yield f"{item.shape!r} is no shape", "give a Cylinder, Box, Sphere, Ellipsoid or Mesh of mb2fmu"
        return
    if not isinstance(item.body, ReferenceFrame) and not hasattr(item.body, "masscenter"):
        yield f"a shape cannot be fixed in {item.body!r}", "give a body of the mechanics, or a ReferenceFrame"
    if isinstance(item.body, ReferenceFrame) and not isinstance(item.at, Point):
        yield f"a shape in frame {item.body.name} needs a point", "say at=…"
    if item.at is not None and not isinstance(item.at, Point | Vector):
        yield f"a shape cannot be put at {item.at!r}", "give a Point, or a vector from the body's mass centre"
    if item.along is not None and not isinstance(item.along, Vector):
        yield f"a shape cannot point along {item.along!r}", "give a vector"
    if not 0 < item.opacity <= 1:
        yield f"an opacity of {item.opacity} cannot be drawn", "give a number above 0, up to 1"
    for size in item.shape.sizes:
        expression = sm.sympify(size)
        unknown = sorted(str(symbol) for symbol in expression.free_symbols - parameters)
        if unknown:
            yield f"a size uses {', '.join(unknown)}, which is no parameter", "use numbers and declared parameters"
        elif not expression.free_symbols and not (math.isfinite(float(expression)) and float(expression) > 0):
            yield f"a size of {expression} cannot be drawn", "give a length in m, > 0"


class AppearanceDeclarations:
    """Shapes, traced points and arrows of a model; without any, pictures show bodies by their inertia.

    Attributes:
        appearance_items: In order of declaration.
        ground: Inertial frame and origin, as :meth:`place_in` was given; None where the mechanics say them.
    """

    def __init__(self) -> None:
        self.appearance_items: list[AppearanceItem] = []
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
        self.appearance_items.append(
            VisualShape(
                body=body, shape=shape, at=at, along=along, color=color, opacity=opacity, where=find_user_source_line()
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
        reach = _find_position(end, start)
        middle = start.locatenew(f"{start.name}_{end.name}", reach / 2)
        shape = Cylinder(_form_length(reach), radius)
        self.appearance_items.append(
            VisualShape(
                body=body,
                shape=shape,
                at=middle,
                along=reach,
                color=color,
                opacity=opacity,
                where=find_user_source_line(),
            )
        )

    def trace(self, point: Point, *, color: str = "") -> None:
        """Draw the path of a point."""
        self.appearance_items.append(TracedPointDeclaration(point=point, color=color, where=find_user_source_line()))

    def hide(self, *bodies: Any) -> None:
        """Leave bodies out of pictures that would show them by their mass centre and inertia.

        Args:
            bodies: ``RigidBody`` and ``Particle`` objects of the mechanics; shapes of theirs are drawn all the same.
        """
        self.appearance_items += [HiddenBodyDeclaration(body=body, where=find_user_source_line()) for body in bodies]

    def arrow(self, load: Any, *, scale: float | None = None, color: str = "") -> None:
        """Draw a force (or torque, about its arrow) where it acts.

        Args:
            load: One of the given loads or actuators, or a pair (point, vector) of any expressions.
            scale: m per N (or N·m); None: so that the largest fits into the picture.
            color: ``#rrggbb``.
        """
        self.appearance_items.append(LoadArrow(load=load, scale=scale, color=color, where=find_user_source_line()))

    def place_in(self, frame: ReferenceFrame, origin: Point) -> None:
        """Set the inertial frame and a point fixed in it, for pictures of mechanics that have none.

        A Lagrangian alone knows no bodies; with frames and points of the user's own, shapes can be fixed in those.
        """
        self.ground = (frame, origin)


def _find_position(point: Point, origin: Point) -> Vector:
    """Return a point's position from another; that of a neighbour is known, and SymPy tries all paths to find it."""
    neighbours = point._pos_dict  # noqa: SLF001 - the local relations stand nowhere else
    return neighbours[origin] if origin in neighbours else point.pos_from(origin)


def _form_length(vector: Vector) -> sm.Expr:
    """Return SymPy's ``magnitude``; of components in one frame without its matrices and questions about sums."""
    if len(vector.args) != 1:
        return vector.magnitude()
    square = sm.Add(*(component**2 for component in vector.args[0][0]))
    return sm.sqrt(square, evaluate=not (square.is_Add and square.free_symbols))
