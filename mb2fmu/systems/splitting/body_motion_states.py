"""``MechanismStateDependencies``: the states that move each frame, point, body and load of a mechanism."""

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
    list_load_components,
)
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import coordinate_rates

Symbols = frozenset[sm.Symbol]
NO_STATES: Symbols = frozenset()


class MechanismStateDependencies:
    """The states (q, u, z) in each record of a mechanism, directly or through what it refers to.

    Args:
        mechanism: Any.

    Attributes:
        states: All of them.
        frame_states: States of each frame, by its number.
        point_states: States of each point, by its number.
    """

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        self.states: Symbols = frozenset((*mechanism.q, *mechanism.u, *mechanism.z))
        self.frame_states: list[Symbols] = []
        self.point_states: list[Symbols] = []
        for frame in mechanism.frames:
            direct_states = self.states_in(
                frame.rotation, *(component for _, components in frame.angular_velocity for component in components)
            )
            referenced_states = [
                self.frame_states[index]
                for index in (frame.parent, frame.reference)
                if 0 <= index < len(self.frame_states)
            ]
            referenced_states += [
                self.frame_states[index] for index, _ in frame.angular_velocity if index < len(self.frame_states)
            ]
            self.frame_states.append(direct_states.union(*referenced_states))
        for point in mechanism.points:
            parent_states = self.point_states[point.parent] if point.parent >= 0 else NO_STATES
            self.point_states.append(
                parent_states | self.states_in_terms(point.position) | self.states_in_terms(point.velocity)
            )
        rates = coordinate_rates(mechanism.kinematics, mechanism.u)
        self.coordinate_groups = [
            frozenset({coordinate}) | self.states_in(rate) for coordinate, rate in zip(mechanism.q, rates, strict=True)
        ]

    def states_in(self, *expressions: sm.Basic) -> Symbols:
        """Return the states in expressions."""
        return NO_STATES.union(*(expression.free_symbols for expression in expressions)) & self.states

    def states_in_terms(self, terms: VectorTerms | None) -> Symbols:
        """Return the states in a vector's components and in the frames it is written in."""
        state_sets = [
            self.states_in(*components) | self.frame_states[frame]
            for frame, components in terms or ()
            if any(components)
        ]
        return NO_STATES.union(*state_sets)

    def body_states(self, body: Body) -> Symbols:
        """Return the states on which the motion of a body depends."""
        return self.point_states[body.masscenter] | (self.frame_states[body.frame] if body.frame >= 0 else NO_STATES)

    def magnitude_states(self, load: Load) -> Symbols:
        """Return the states that the magnitude of a load depends on."""
        return self.states_in(*list_load_components(load))

    def location_states(self, load: Load) -> Symbols:
        """Return the states on which points, frames and direction of a load depend."""
        state_sets = [self.point_states[index] for index in list_load_points(load)] + [
            self.frame_states[index] for index in list_load_frames(load)
        ]
        return NO_STATES.union(*state_sets)

    def ancestors(self, point: int) -> Iterator[int]:
        """Yield a point and those it is located from, up to the root."""
        while point >= 0:
            yield point
            point = self._mechanism.points[point].parent


def list_load_points(load: Load) -> tuple[int, ...]:
    """Return the points where a load acts."""
    if isinstance(load, ForceLoad):
        return (load.point,)
    return load.points if isinstance(load, PathwayLoad) else ()


def list_frames_turned_by_load(load: Load) -> tuple[int, ...]:
    """Return the frames that a load turns."""
    if isinstance(load, TorqueLoad):
        return (load.frame,)
    if isinstance(load, TorqueActuatorLoad):
        return (load.frame, *((load.reaction,) if load.reaction >= 0 else ()))
    return ()


def list_load_frames(load: Load) -> tuple[int, ...]:
    """Return the frames that a load turns or is written in."""
    vector_terms: VectorTerms = ()
    if isinstance(load, ForceLoad):
        vector_terms = load.force
    elif isinstance(load, TorqueLoad):
        vector_terms = load.torque
    elif isinstance(load, TorqueActuatorLoad):
        vector_terms = load.axis
    return (*list_frames_turned_by_load(load), *_list_frame_numbers(vector_terms))


def _list_frame_numbers(terms: Iterable[tuple[int, object]]) -> Iterator[int]:
    """Return the frame numbers of vector terms."""
    return (frame for frame, _ in terms)
