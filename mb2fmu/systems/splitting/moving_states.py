"""``MovingStates``: the states that move each frame, point, body and load of a mechanism."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    ForceLoad,
    Load,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.plain_symbols import coordinate_rates

Symbols = frozenset[sm.Symbol]
NONE: Symbols = frozenset()


class MovingStates:
    """The states (q, u, z) in each record of a mechanism, directly or through what it refers to.

    Args:
        mechanism: Any.

    Attributes:
        states: All of them.
        frames: By number of the frame.
        points: By number of the point.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._m = mechanism
        self.states: Symbols = frozenset((*mechanism.q, *mechanism.u, *mechanism.z))
        self.frames: list[Symbols] = []
        self.points: list[Symbols] = []
        for frame in mechanism.frames:
            own = self.of(frame.rotation, *(c for _, cs in frame.angular_velocity for c in cs))
            above = [self.frames[k] for k in (frame.parent, frame.reference) if 0 <= k < len(self.frames)]
            above += [self.frames[k] for k, _ in frame.angular_velocity if k < len(self.frames)]
            self.frames.append(own.union(*above))
        for point in mechanism.points:
            up = self.points[point.parent] if point.parent >= 0 else NONE
            self.points.append(up | self.of_terms(point.position) | self.of_terms(point.velocity))
        rates = coordinate_rates(mechanism.kinematics, mechanism.u)
        self.linked = [frozenset({q}) | self.of(rate) for q, rate in zip(mechanism.q, rates, strict=True)]

    def of(self, *expressions: sm.Basic) -> Symbols:
        """Return the states in expressions."""
        return NONE.union(*(expression.free_symbols for expression in expressions)) & self.states

    def of_terms(self, terms: VectorTerms | None) -> Symbols:
        """Return the states in a vector's components and in the frames it is written in."""
        found = [self.of(*components) | self.frames[frame] for frame, components in terms or () if any(components)]
        return NONE.union(*found)

    def of_body(self, body: Body) -> Symbols:
        """Return the states that a body moves with."""
        return self.points[body.masscenter] | (self.frames[body.frame] if body.frame >= 0 else NONE)

    def of_magnitude(self, load: Load) -> Symbols:
        """Return the states that the magnitude of a load depends on."""
        match load:
            case ForceLoad():
                return self.of(*(c for _, cs in load.force for c in cs))
            case TorqueLoad():
                return self.of(*(c for _, cs in load.torque for c in cs))
            case PathwayLoad():
                return self.of(load.force)
        return self.of(load.torque)

    def of_place(self, load: Load) -> Symbols:
        """Return the states that move the points and frames of a load, and its direction."""
        found = [self.points[k] for k in list_load_points(load)] + [self.frames[k] for k in list_load_frames(load)]
        return NONE.union(*found)

    def above(self, point: int) -> Iterator[int]:
        """Yield a point and those it is located from, up to the root."""
        while point >= 0:
            yield point
            point = self._m.points[point].parent


def list_load_points(load: Load) -> tuple[int, ...]:
    """Return the points where a load acts."""
    if isinstance(load, ForceLoad):
        return (load.point,)
    return load.points if isinstance(load, PathwayLoad) else ()


def list_turned_frames(load: Load) -> tuple[int, ...]:
    """Return the frames that a load turns."""
    if isinstance(load, TorqueLoad):
        return (load.frame,)
    if isinstance(load, TorqueActuatorLoad):
        return (load.frame, *((load.reaction,) if load.reaction >= 0 else ()))
    return ()


def list_load_frames(load: Load) -> tuple[int, ...]:
    """Return the frames that a load turns or is written in."""
    written: VectorTerms = ()
    if isinstance(load, ForceLoad):
        written = load.force
    elif isinstance(load, TorqueLoad):
        written = load.torque
    elif isinstance(load, TorqueActuatorLoad):
        written = load.axis
    return (*list_turned_frames(load), *_numbers(written))


def _numbers(terms: Iterable[tuple[int, object]]) -> Iterator[int]:
    """Return the frame numbers of vector terms."""
    return (number for number, _ in terms)
