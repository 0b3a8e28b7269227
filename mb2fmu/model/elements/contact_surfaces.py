"""Surfaces that spheres and points touch: distance and direction of push."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import sympy as sm
from sympy.physics.mechanics import Particle, Point, ReferenceFrame, RigidBody
from sympy.physics.vector import Vector

SurfaceSize: TypeAlias = float | sm.Expr
ParameterNamer: TypeAlias = Callable[[str, SurfaceSize, str, str], sm.Expr]
"""(part, number or expression, unit, description) → the parameter of that name, or the expression."""

MIN_SQUARED_LENGTH = sm.Float("1e-300")
"""Under a root: lengths have a slope where they are zero, and no other length changes by a bit."""


@dataclass(frozen=True, slots=True)
class PointSurfaceDistance:
    """Distance of a point from a surface.

    Attributes:
        value: m, negative beyond it.
        out: Towards the side that is free, along the normal.
        length: Of ``out``, kept apart so that expressions stay short.
    """

    value: sm.Expr
    out: Vector
    length: sm.Expr


@dataclass(frozen=True)
class ContactSurface(ABC):
    """Protocol of a surface, fixed in a body or in the ground.

    Attributes:
        point: Fixed in it.
        body: That carries it, and on which it pushes back; None: the ground.
    """

    point: Point
    body: RigidBody | Particle | None = field(default=None, kw_only=True)

    @property
    def frames(self) -> list[ReferenceFrame]:
        """Frames in which its shape is written."""
        return []

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield each fault of the shape: what is wrong, and the remedy."""
        if not isinstance(self.point, Point):
            yield f"its surface is at {self.point!r}", "give a point that is fixed in it"
        if self.body is not None and not isinstance(self.body, RigidBody | Particle):
            yield f"its surface is carried by {self.body!r}", "give a RigidBody or a Particle, or nothing: the ground"

    def tangents(self) -> tuple[Sequence[sm.Expr], Sequence[sm.Expr]]:
        """Return two unit vectors along the surface, as components in the axes of its shape.

        Raises:
            ValueError: If no direction along it stays the same, or if it is not known; says what to give.
        """
        raise ValueError("its surface is curved: only along a plane does friction of this kind have fixed directions")

    @abstractmethod
    def distance(self, position: Vector, named: ParameterNamer) -> PointSurfaceDistance:
        """Return the distance of a point from the surface, and the outward direction there.

        Args:
            position: From ``point`` to it, in the inertial frame.
            named: Makes parameters of numbers.
        """


def _direction_faults(what: str, direction: object) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) if a direction is no vector or zero."""
    if not isinstance(direction, Vector) or direction == 0:
        yield f"the {what} of its surface is {direction!r}", "give a vector, such as N.z"


def _radius_faults(what: str, radius: SurfaceSize) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) if a radius is a number and not above zero."""
    given = sm.sympify(radius)
    if given.is_number and not (given.is_finite and given > 0):
        yield f"the radius of its {what} is {given}", "give a length > 0 in m"


@dataclass(frozen=True)
class PlaneSurface(ContactSurface):
    """A plane through ``point``; bodies are on the side to which ``normal`` points.

    Attributes:
        normal: Any length but zero.
    """

    normal: Vector

    @property
    def frames(self) -> list[ReferenceFrame]:
        """The frames of the normal."""
        return [frame for _, frame in self.normal.args] if isinstance(self.normal, Vector) else []

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield faults, those of the normal included."""
        yield from super().faults()
        yield from _direction_faults("normal", self.normal)

    def tangents(self) -> tuple[Sequence[sm.Expr], Sequence[sm.Expr]]:
        """Return t₁ and t₂ = n × t₁; of the normal z these are x and y, and so on in turn."""
        components: Any = self.normal
        if isinstance(self.normal, Vector):
            components = self.normal.args[0][0] if len(self.frames) == 1 else ()
        normal = sm.Matrix([*components])
        if normal.shape != (3, 1) or not all(c.is_number for c in normal):
            raise ValueError("the normal of its plane is not three numbers in one frame")
        normal = normal / normal.norm()
        largest = max(range(3), key=lambda k: abs(float(normal[k])))
        axis = sm.eye(3)[:, (largest + 1) % 3]
        along = axis - axis.dot(normal) * normal
        along = along / along.norm()
        return tuple(along), tuple(normal.cross(along))

    def distance(self, position: Vector, named: ParameterNamer) -> PointSurfaceDistance:  # noqa: ARG002 (it has no numbers)
        """Return the distance along the normal."""
        normal = _express_direction(position, self.normal.normalize())
        return PointSurfaceDistance(position.dot(normal), normal, sm.S.One)


@dataclass(frozen=True)
class SphereSurface(ContactSurface):
    """A sphere about ``point``; bodies are outside of it, or inside.

    Attributes:
        radius: m.
        inside: Bodies are within it.
    """

    radius: SurfaceSize
    inside: bool = False

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield faults, those of the radius included."""
        yield from super().faults()
        yield from _radius_faults("sphere", self.radius)

    def distance(self, position: Vector, named: ParameterNamer) -> PointSurfaceDistance:
        """Return the distance along the line to the centre."""
        return _round_surface_distance(
            position, named("surface_radius", self.radius, "m", "radius of the sphere"), inside=self.inside
        )


@dataclass(frozen=True)
class CylinderSurface(ContactSurface):
    """An infinite cylinder about an axis through ``point``; bodies are outside of it, or inside.

    Attributes:
        axis: Any length but zero.
        radius: m.
        inside: Bodies are within it.
    """

    axis: Vector
    radius: SurfaceSize
    inside: bool = False

    @property
    def frames(self) -> list[ReferenceFrame]:
        """The frames of the axis."""
        return [frame for _, frame in self.axis.args] if isinstance(self.axis, Vector) else []

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield faults, those of axis and radius included."""
        yield from super().faults()
        yield from _direction_faults("axis", self.axis)
        yield from _radius_faults("cylinder", self.radius)

    def distance(self, position: Vector, named: ParameterNamer) -> PointSurfaceDistance:
        """Return the distance along the perpendicular to the axis."""
        axis = _express_direction(position, self.axis.normalize())
        across = position - position.dot(axis) * axis
        return _round_surface_distance(
            across, named("surface_radius", self.radius, "m", "radius of the cylinder"), inside=self.inside
        )


def _express_direction(position: Vector, direction: Vector) -> Vector:
    """Return the direction in the frame that the vector is written in."""
    return direction.express(position.args[0][1]) if position.args else direction


def _round_surface_distance(position: Vector, radius: sm.Expr, *, inside: bool) -> PointSurfaceDistance:
    """Return the distance from a round surface about the start of a vector."""
    length = sm.sqrt(position.dot(position) + MIN_SQUARED_LENGTH)
    return (
        PointSurfaceDistance(radius - length, -position, length)
        if inside
        else PointSurfaceDistance(length - radius, position, length)
    )


@dataclass(frozen=True)
class HeightSurface(ContactSurface):
    """Ground of the height z = h(x, y) over the plane x, y of a frame at ``point``; bodies are above it.

    The distance is that from the tangent plane at the foot F of the perpendicular, with F by one step from the tangent
    plane straight below. Of a plane that is exact. Of a point that touches it is exact too; of a sphere of radius r
    on ground of curvature κ and slope α it errs by about κ (κ r² tan α)² / 2, and the normal by κ² r² tan² α.

    Attributes:
        frame: Whose x, y, z these are.
        height: Function of x and y in m, with a slope: ``lambda x, y: 0.1 * sm.sin(x)``.
    """

    frame: ReferenceFrame
    height: Callable[[sm.Expr, sm.Expr], sm.Expr]

    @property
    def frames(self) -> list[ReferenceFrame]:
        """Frames whose axes are used."""
        return [self.frame] if isinstance(self.frame, ReferenceFrame) else []

    def faults(self) -> Iterator[tuple[str, str]]:
        """Yield faults, those of frame and height included."""
        yield from super().faults()
        if not isinstance(self.frame, ReferenceFrame):
            yield f"the frame of its surface is {self.frame!r}", "give a ReferenceFrame whose z points upwards"
        if not callable(self.height):
            yield f"the height of its surface is {self.height!r}", "give a function: lambda x, y: 0.1 * sm.sin(x)"

    def distance(self, position: Vector, named: ParameterNamer) -> PointSurfaceDistance:  # noqa: ARG002 (expressions are the user's)
        """Return the distance from the tangent plane at the foot of the perpendicular, an approximation."""
        x, y, z = (position.dot(axis) for axis in self.frame)
        above, slopes, stretch = self._tangent(x, y)
        along = (z - above) / stretch**2
        x_foot, y_foot = (at + along * slope for at, slope in zip((x, y), slopes, strict=True))
        above, (a, b), stretch = self._tangent(x_foot, y_foot)
        out = _express_direction(position, -a * self.frame.x - b * self.frame.y + self.frame.z)
        return PointSurfaceDistance(((z - above) - a * (x - x_foot) - b * (y - y_foot)) / stretch, out, stretch)

    def _tangent(self, x: sm.Expr, y: sm.Expr) -> tuple[sm.Expr, tuple[sm.Expr, sm.Expr], sm.Expr]:
        """Return height and slopes at a place, and √(1 + slope²)."""
        u, v = sm.symbols("u v", cls=sm.Dummy, real=True)
        height = sm.sympify(self.height(u, v))
        here = {u: x, v: y}
        above, a, b = (each.xreplace(here) for each in (height, height.diff(u), height.diff(v)))
        return above, (a, b), sm.sqrt(1 + a**2 + b**2)
