"""Elements between two points, or along or about a joint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

import sympy as sm
from sympy.physics.mechanics import Point

from mb2fmu.model.elements.element_attachment import find_attachment_faults
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.record_based_mechanics import NamedFramePoint, RecordBasedMechanics, RecordedLoad

if TYPE_CHECKING:
    from mb2fmu.model import Model


def is_point_pair(on: object) -> TypeGuard[tuple[Point, Point]]:
    """Return whether it is two points."""
    return isinstance(on, tuple) and len(on) == 2 and all(isinstance(point, Point) for point in on)


def is_link_point_pair(on: object) -> TypeGuard[tuple[NamedFramePoint, NamedFramePoint]]:
    """Return whether it is two points of a robot's links, or of its ground."""
    return isinstance(on, tuple) and len(on) == 2 and all(isinstance(point, NamedFramePoint) for point in on)


def form_link_point_distance(
    on: tuple[NamedFramePoint, NamedFramePoint], mechanics: RecordBasedMechanics
) -> tuple[sm.Expr, sm.Expr]:
    """Return the distance of two points of links, and its rate."""
    way, speed = _relative_motion(on, mechanics)
    length = sm.sqrt(sm.Add(*(x**2 for x in way)))
    return length, sm.Add(*(x * v for x, v in zip(way, speed, strict=True))) / length


def make_link_point_pair_forces(
    on: tuple[NamedFramePoint, NamedFramePoint], mechanics: RecordBasedMechanics, pull: sm.Expr
) -> list[RecordedLoad]:
    """Return the forces that draw two points of links together; none on what stands still."""
    length, way = form_link_point_distance(on, mechanics)[0], _relative_motion(on, mechanics)[0]
    return [
        mechanics.force(point.frame, [sign * pull * x / length for x in way], offset=point.offset)
        for point, sign in zip(on, (1, -1), strict=True)
        if not mechanics.is_fixed_in_ground(point.frame)
    ]


def _relative_motion(
    on: tuple[NamedFramePoint, NamedFramePoint], mechanics: RecordBasedMechanics
) -> tuple[list[sm.Expr], list[sm.Expr]]:
    """Return position and velocity of the second point against the first."""
    places, speeds = [], []
    for point in on:
        still = point.frame == mechanics.ground
        places.append(point.offset if still else mechanics.position_of(point.frame, point.offset))
        speeds.append((0, 0, 0) if still else mechanics.velocity_of(point.frame, point.offset))
    return tuple([b - a for a, b in zip(*each, strict=True)] for each in (places, speeds))  # type: ignore[return-value]


def _link_pair_faults(
    on: tuple[NamedFramePoint, NamedFramePoint], mechanics: RecordBasedMechanics
) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) for points of links that are none, are one, or both stand still."""
    strange = [point.frame for point in on if point.frame not in mechanics.frames]
    if strange:
        yield (
            f"it acts at a point of {', '.join(strange)}, which is no link",
            f"there are {', '.join(mechanics.frames)}",
        )
    elif on[0] == on[1]:
        yield f"both ends are {on[0].name}", "give two points"
    elif all(mechanics.is_fixed_in_ground(point.frame) for point in on):
        yield "both ends stand still", "give a point of a link that moves"


def find_pathway_or_joint_faults(on: Any, model: Model) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) if it is neither two connected points nor a joint with a coordinate."""
    if isinstance(model.mechanics, RecordBasedMechanics) and is_link_point_pair(on):
        yield from _link_pair_faults(on, model.mechanics)
        return
    if is_point_pair(on):
        first, second = on
        if first is second:
            yield f"both ends are {first}", "give two points"
        elif mechanics_source.inertial_frame(model.mechanics) is None:
            yield "the mechanics have no inertial frame", "give LagrangesMethod its frame and bodies"
        else:
            yield from _unconnected_faults(first, second)
    elif isinstance(on, tuple):
        yield f"it acts on {on!r}", "give two points, or a joint"
    else:
        yield from find_attachment_faults(on, model)


def _unconnected_faults(first: Point, second: Point) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) if no chain of positions connects two points."""
    try:
        second.pos_from(first)
    except ValueError as error:
        yield f"the way is not known: {' '.join(str(error).split())}", "connect both with the mechanism"
