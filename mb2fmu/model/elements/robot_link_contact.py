"""Links of robots against surfaces of the ground or of other links: geometry by what expressions name of the motion."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import sympy as sm
from sympy.physics.mechanics import Point, ReferenceFrame
from sympy.physics.vector import Vector

from mb2fmu.model.elements.contact_surfaces import ContactSurface, CylinderSurface, HeightSurface, PlaneSurface
from mb2fmu.model.sources.record_based_mechanics import (
    FrameReference,
    NamedFramePoint,
    RecordBasedMechanics,
    RecordedLoad,
)

_GROUND = ReferenceFrame("ground")
_ORIGIN = Point("ground")
"""Stand for the robot's ground, so that surfaces find distances as they do between SymPy's points."""


def resolve_link_contact_points(body: str, at: Any) -> list[NamedFramePoint]:
    """Return the points of a link that touch: its origin, or those given."""
    if at is None:
        return [NamedFramePoint(body)]
    return [at] if isinstance(at, NamedFramePoint) else [*at]


def find_link_contact_faults(
    body: Any, at: Any, surface: Any, mechanics: RecordBasedMechanics
) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) for a link, points and a surface that cannot touch."""
    links = [name for name in mechanics.frames if not mechanics.is_fixed_in_ground(name)]
    if body not in links:
        yield f"what touches is {body!r}", f"give the name of a link that moves: {', '.join(links)}"
    elif not (points := _readable_points(body, at)):
        yield f"it touches with {at!r}", f"give points of the link: .point({body!r}, (0, 0, 0.1))"
    else:
        odd = [point for point in points if point.frame != body]
        yield from ((f"it touches with {point.name}, a point of another link", "name its link") for point in odd)
    if not isinstance(surface, ContactSurface):
        yield f"its surface is {surface!r}", "give a PlaneSurface, SphereSurface, CylinderSurface or HeightSurface"
        return
    if surface.body is not None:
        yield "its surface is carried by a body", "leave body out: the link of the surface's point carries it"
    if not isinstance(surface.point, NamedFramePoint) or surface.point.frame not in {
        mechanics.ground,
        *mechanics.frames,
    }:
        remedy = f"give one of the ground or of a link: .point({mechanics.ground!r}, (0, 0, 0))"
        yield f"its surface is at {surface.point!r}, which is no point of the ground or of a link", remedy
        return
    carrier = find_surface_carrier(mechanics, surface)
    if carrier == body:
        yield f"its surface is carried by {body} itself", "give a point of another link, or of the ground"
    if carrier and isinstance(surface, HeightSurface):
        yield f"heights are carried by the link {carrier}", "give a PlaneSurface, SphereSurface or CylinderSurface"
        return
    yield from express_surface_in_ground(mechanics, replace(surface, body=None)).faults()


def find_surface_carrier(mechanics: RecordBasedMechanics, surface: ContactSurface) -> str:
    """Return the link that carries a surface, by its point; empty: it stands in the ground."""
    frame: str = surface.point.frame
    return "" if mechanics.is_fixed_in_ground(frame) else frame


def _readable_points(body: str, at: Any) -> list[NamedFramePoint]:
    """Return the points that touch; none where one is no point."""
    found = resolve_link_contact_points(body, at) if at is None or isinstance(at, NamedFramePoint | Sequence) else []
    return found if all(isinstance(point, NamedFramePoint) for point in found) else []


def express_surface_in_ground(mechanics: RecordBasedMechanics, surface: ContactSurface) -> ContactSurface:
    """Return a surface whose directions, given as three numbers along the axes of what carries it, are vectors."""
    given, surface = surface, replace(surface, point=_ORIGIN)
    if isinstance(surface, PlaneSurface):
        return replace(surface, normal=express_direction_in_ground(mechanics, given, surface.normal))
    if isinstance(surface, CylinderSurface):
        return replace(surface, axis=express_direction_in_ground(mechanics, given, surface.axis))
    if isinstance(surface, HeightSurface) and isinstance(surface.frame, FrameReference):
        return replace(surface, frame=_GROUND)
    return surface


def express_direction_in_ground(mechanics: RecordBasedMechanics, surface: ContactSurface, direction: Any) -> Any:
    """Return a direction, three numbers along the axes of what carries a surface, as a vector; others unchanged."""
    carrier = find_surface_carrier(mechanics, surface)
    try:
        components = [sm.sympify(c) for c in direction]
        return _express_link_direction(mechanics, carrier, components) if carrier else _vector_in_ground(components)
    except (TypeError, ValueError):
        return direction


def _express_link_direction(mechanics: RecordBasedMechanics, link: str, components: Sequence[sm.Expr]) -> Vector:
    """Return the unit vector of a direction fixed in a link: from the link's origin to the point one metre along it.

    Raises:
        TypeError: If the components are no numbers.
    """
    x, y, z = (float(c) for c in components)
    length = math.hypot(x, y, z) or 1.0
    tip, start = mechanics.position_of(link, (x / length, y / length, z / length)), mechanics.position_of(link)
    return _vector_in_ground([a - b for a, b in zip(tip, start, strict=True)]) if (x, y, z) != (0, 0, 0) else Vector(0)


def _vector_in_ground(components: Sequence[sm.Expr]) -> Vector:
    """Return the vector in the ground with three components."""
    x, y, z = components
    return x * _GROUND.x + y * _GROUND.y + z * _GROUND.z


def form_relative_contact_motion(
    mechanics: RecordBasedMechanics, point: NamedFramePoint, surface: ContactSurface
) -> tuple[Vector, Vector, Vector, Vector]:
    """Return position and velocity of a point against the surface's, and the angular velocities of both links.

    Args:
        mechanics: Of the robot.
        point: Of a link.
        surface: As it was given.
    """
    place = mechanics.position_of(point.frame, point.offset)
    start = mechanics.position_of(surface.point.frame, surface.point.offset)
    if surface.point.frame == mechanics.ground:
        start = tuple(map(sm.sympify, surface.point.offset))
    position = _vector_in_ground([a - b for a, b in zip(place, start, strict=True)])
    velocity = _vector_in_ground(mechanics.velocity_of(point.frame, point.offset))
    turning, carried = _vector_in_ground(mechanics.angular_velocity_of(point.frame)), Vector(0)
    if carrier := find_surface_carrier(mechanics, surface):
        velocity -= _vector_in_ground(mechanics.velocity_of(carrier, surface.point.offset))
        carried = _vector_in_ground(mechanics.angular_velocity_of(carrier))
    return position, velocity, turning, carried


def make_link_load(mechanics: RecordBasedMechanics, at: NamedFramePoint | str, vector: Vector) -> RecordedLoad:
    """Return a force at a point of a link, or a torque on a link, given in the ground."""
    components = [vector.dot(axis) for axis in _GROUND]
    if isinstance(at, NamedFramePoint):
        return mechanics.force(at.frame, components, offset=at.offset)
    return mechanics.torque(at, components)
