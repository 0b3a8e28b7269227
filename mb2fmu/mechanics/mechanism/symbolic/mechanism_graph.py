"""The graph of a mechanism: bodies, the joints and coordinates between them, loads, loops and sensors.

Input: ``Mechanism``. Output: plain records, by names. A body hangs on the body that its frame, or for a particle its
place, is written from; joints give their names where they are known. A constraint belongs to the bodies at which its
force acts, or, where the model does not say that, to the bodies whose place depends on its coordinates.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    ForceApplication,
    ForceLoad,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.requested_quantities import RequestedOutput
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS

GROUND_NUMBER = -1


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """Connection between two bodies, or between a body and the ground.

    Attributes:
        kind: ``joint``: the way in which ``child`` hangs on ``parent``; ``load``: acts on both; ``loop``: a constraint.
        name: Of the joint, load or constraint; empty where it has none.
        parent: Number of a body; -1: the ground.
        child: Number of a body; -1: the ground.
        coordinates: Names of the coordinates that move the child against the parent.
    """

    kind: str
    name: str
    parent: int
    child: int
    coordinates: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MechanismGraph:
    """A mechanism as a graph.

    Attributes:
        name: Of the model.
        bodies: Names.
        bonds: Joints first, one per body.
        loads: Names of loads on each body alone; the ground's are last.
        sensors: Names of outputs on each body; the ground's are last.
    """

    name: str
    bodies: tuple[str, ...]
    bonds: tuple[GraphEdge, ...]
    loads: tuple[tuple[str, ...], ...]
    sensors: tuple[tuple[str, ...], ...]


def build_mechanism_graph(mechanism: Mechanism) -> MechanismGraph:
    """Return the graph of a mechanism; without bodies (a Lagrangian alone) it has the ground only."""
    return _GraphBuilder(mechanism).graph()


class _GraphBuilder:
    """Finds the body that each point and frame belongs to, and the connections between bodies."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.m = m = mechanism
        self._frame_body = {body.frame: number for number, body in reversed([*enumerate(m.bodies)]) if body.frame > 0}
        self._centre_body = {body.masscenter: number for number, body in reversed([*enumerate(m.bodies)])}
        for number, body in enumerate(m.bodies):
            for frame, components in m.points[body.masscenter].position or () if body.frame < 0 else ():
                if frame > 0 and any(components):
                    self._frame_body.setdefault(frame, number)
        self._moving = {*m.q, m.t, *m.r}
        self._moved: dict[int, AbstractSet[sm.Basic]] = {}
        self._turning: dict[int, AbstractSet[sm.Basic]] = {}
        self._base_body = self._bases()

    def graph(self) -> MechanismGraph:
        """Return the complete graph."""
        m = self.m
        alone: list[list[str]] = [[] for _ in range(len(m.bodies) + 1)]
        seen: list[list[str]] = [[] for _ in range(len(m.bodies) + 1)]
        bonds = [*self._joints(), *self._loops()]
        for name, ends in self._loads():
            met = list(dict.fromkeys(ends))
            if len(met) == 1:
                alone[met[0]].append(name)
            else:
                bonds += [GraphEdge("load", name, a, b) for a, b in itertools.pairwise(met)]
        for item in m.outputs:
            if isinstance(item, RequestedOutput):
                for number in dict.fromkeys(self._looked_at(item)):
                    seen[number].append(item.name)
        names = tuple(body.name for body in m.bodies)
        return MechanismGraph(m.declared.name, names, tuple(bonds), tuple(map(tuple, alone)), tuple(map(tuple, seen)))

    def _joints(self) -> Iterator[GraphEdge]:
        """Yield one joint per body."""
        told = {joint.child: joint for joint in self.m.joints}
        carriers = {number: self._carrier(number, body) for number, body in enumerate(self.m.bodies)}
        carriers |= {number: joint.parent for number, joint in told.items()}
        for number, body in enumerate(self.m.bodies):
            parent = carriers[number]
            if (
                number not in told
                and body.frame > 0
                and self._of_frame(self.m.frames[body.frame].parent) == GROUND_NUMBER
            ):
                # Located from what hangs on it, as a frame from the contact of its wheel: it turns against the ground.
                parent = carriers[number] = GROUND_NUMBER if _is_in_cycle(carriers, number) else parent
            free = self._coordinates_above(number, parent)
            yield GraphEdge("joint", told[number].name if number in told else "", parent, number, free)

    def _carrier(self, number: int, body: Body) -> int:
        """Return the body that a body's frame is oriented from, or that a particle is located from."""
        frame = self.m.frames[body.frame].parent if body.frame > 0 else 0
        found = self._of_frame(frame) if body.frame > 0 else GROUND_NUMBER
        if found not in (GROUND_NUMBER, number):
            return found
        return self._of_place(self.m.points[body.masscenter].parent, without=number)

    def _coordinates_above(self, number: int, parent: int) -> tuple[str, ...]:
        """Return the coordinates that move a body but not its carrier."""
        found = self._movers(number) - (self._movers(parent) if parent >= 0 else set())
        return tuple(q.name for q in self.m.q if q in found)

    def _movers(self, number: int) -> AbstractSet[sm.Basic]:
        """Return the symbols that a body's position and its frame's orientation depend on."""
        if number not in self._moved:
            m, found, frames = self.m, set[sm.Basic](), {self.m.bodies[number].frame}
            point = m.bodies[number].masscenter
            while m.points[point].parent >= 0:
                terms = m.points[point].position or ()
                found |= _vector_symbols(terms)
                frames |= {frame for frame, components in terms if any(components)}
                point = m.points[point].parent
            self._moved[number] = found.union(*(self._turned_by(frame) for frame in frames))
        return self._moved[number]

    def _turned_by(self, frame: int) -> AbstractSet[sm.Basic]:
        """Return the symbols that the orientation of a frame depends on."""
        way = []
        while frame > 0 and frame not in self._turning:
            way.append(frame)
            frame = self.m.frames[frame].parent
        found: AbstractSet[sm.Basic] = self._turning[frame] if frame > 0 else frozenset()
        for node in reversed(way):
            found = self._turning[node] = found | self.m.frames[node].rotation.free_symbols
        return found

    def _loops(self) -> Iterator[GraphEdge]:
        """Yield the constraints between the bodies that they connect."""
        m = self.m
        rows = m.velocity_constraints.names if m.velocity_constraints else ()
        for i, name in enumerate(rows):
            acts = m.acts[i] if i < len(m.acts) else ()
            met = [self._held_at(act) for act in acts] or self._moved_by(i)
            ends = list(dict.fromkeys(met)) or [GROUND_NUMBER]
            if len(ends) == 1:
                ends = [GROUND_NUMBER, *ends] if ends[0] != GROUND_NUMBER else ends * 2
            yield from (GraphEdge("loop", name, a, b) for a, b in itertools.pairwise(ends))

    def _held_at(self, act: ForceApplication) -> int:
        """Return the body on which a constraint's force acts."""
        if act.body >= 0:
            return act.body
        return self._of_frame(act.at) if act.torque else self._of_place(act.at)

    def _moved_by(self, row: int) -> list[int]:
        """Return the outermost bodies that the coordinates or speeds of a constraint move."""
        m, c = self.m, self.m.velocity_constraints
        assert c is not None
        speeds = {j for j in range(len(m.u)) if c.jacobian[row, j] != 0}
        if row < len(m.holonomic):
            moving = set(m.holonomic[row][1].free_symbols & set(m.q))
        else:
            K = m.kinematics.matrix
            moving = {m.q[i] for i in range(len(m.q)) for j in speeds if K[i, j] != 0}
        carried = {number: set(bond.coordinates) for number, bond in enumerate(self._joints())}
        named = {q.name for q in moving}
        moved = [number for number, own in carried.items() if own & named]
        parents = {bond.parent for bond in self._joints() if bond.child in moved}
        return [number for number in moved if number not in parents] or moved

    def _loads(self) -> Iterator[tuple[str, list[int]]]:
        """Yield each load's name and the bodies that it acts on."""
        for load in self.m.loads:
            match load:
                case ForceLoad():
                    yield load.name, [self._of_place(load.point)]
                case TorqueLoad():
                    yield load.name, [self._of_frame(load.frame)]
                case TorqueActuatorLoad():
                    other = [self._of_frame(load.reaction)] if load.reaction >= 0 else []
                    yield load.name, [self._of_frame(load.frame), *other]
                case PathwayLoad():
                    yield load.name, [self._of_place(point) for point in load.points]

    def _looked_at(self, item: RequestedOutput) -> Iterable[int]:
        """Return the bodies that an output is about."""
        if item.of_joint:
            return [self.m.joints[item.subject[0]].child]
        subject = OUTPUT_KINDS[item.kind].subject
        if subject == "body" or item.kind == "reaction_force":
            return item.subject
        if subject in {"frame", "oriented frame"}:
            return [self._of_frame(frame) for frame in item.subject]
        if subject in {"point", "located point"}:
            return [self._of_place(point) for point in item.subject]
        return []

    def _of_frame(self, frame: int) -> int:
        """Return the body that a frame turns with, or the nearest one before it."""
        while frame > 0 and frame not in self._frame_body:
            frame = self.m.frames[frame].parent
        return self._frame_body.get(frame, GROUND_NUMBER)

    def _bases(self) -> dict[int, int]:
        """Return points that coordinates move (a platform's corner) → the body whose mass centre is fixed to them."""
        claims: dict[int, set[int]] = {}
        for number, body in enumerate(self.m.bodies):
            point, terms = body.masscenter, self.m.points[body.masscenter].position or ()
            own = {frame for frame, components in terms if any(components)} <= {body.frame}
            if body.frame > 0 and own and not _vector_symbols(terms) & self._moving:
                base = self.m.points[point].parent
                if base > 0 and _vector_symbols(self.m.points[base].position) & self._moving:
                    claims.setdefault(base, set()).add(number)
        return {point: min(bodies) for point, bodies in claims.items() if len(bodies) == 1}

    def _of_place(self, point: int, without: int = -2) -> int:
        """Return the body that a point is fixed in, or the nearest one before it."""
        while point > 0:
            found = self._of_point_itself(point, without)
            if found is not None:
                return found
            point = self.m.points[point].parent
        return GROUND_NUMBER

    def _of_point_itself(self, point: int, without: int) -> int | None:
        """Return the body of a mass centre, or the body in whose frame a point is fixed; else None."""
        own = self._centre_body.get(point, self._base_body.get(point))
        if own is not None and own != without:
            return own
        terms = self.m.points[point].position or ()
        turning = {self._of_frame(frame) for frame, components in terms if any(components)}
        if own is None and terms and len(turning) == 1 and not _vector_symbols(terms) & self._moving:
            (found,) = turning
            return found if found not in {GROUND_NUMBER, without} else None
        return None


def _is_in_cycle(carriers: Mapping[int, int], number: int) -> bool:
    """Return whether a body is carried by itself, through others."""
    at, met = carriers[number], set[int]()
    while at not in met and at not in {GROUND_NUMBER, number}:
        met.add(at)
        at = carriers[at]
    return at == number


def _vector_symbols(terms: VectorTerms | None) -> set[sm.Basic]:
    """Return symbols in the components of a vector."""
    return set().union(*(c.free_symbols for _, cs in terms or () for c in cs))
