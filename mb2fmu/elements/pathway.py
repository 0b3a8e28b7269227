"""Elements between two points, or along or about a joint."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

from sympy.physics.mechanics import Point

from mb2fmu.elements.attachment import attachment_fault
from mb2fmu.model import mechanics as mechanics_source

if TYPE_CHECKING:
    from mb2fmu.model import Model


def is_pair(on: object) -> TypeGuard[tuple[Point, Point]]:
    """Return whether it is two points."""
    return isinstance(on, tuple) and len(on) == 2 and all(isinstance(point, Point) for point in on)


def pathway_or_joint_faults(on: Any, model: Model) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) if it is neither two connected points nor a joint with a coordinate."""
    if is_pair(on):
        first, second = on
        if first is second:
            yield f"both ends are {first}", "give two points"
        elif mechanics_source.inertial_frame(model.mechanics) is None:
            yield "the mechanics have no inertial frame", "give LagrangesMethod its frame and bodies"
        else:
            yield from _unconnected(first, second)
    elif isinstance(on, tuple):
        yield f"it acts on {on!r}", "give two points, or a joint"
    else:
        yield from attachment_fault(on, model)


def _unconnected(first: Point, second: Point) -> Iterator[tuple[str, str]]:
    """Yield (what, remedy) if no chain of positions connects two points."""
    try:
        second.pos_from(first)
    except ValueError as error:
        yield f"the way is not known: {' '.join(str(error).split())}", "connect both with the mechanism"
