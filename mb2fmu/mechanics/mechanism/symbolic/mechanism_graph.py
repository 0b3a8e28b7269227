"""The graph of a mechanism: bodies, the joints and coordinates between them, loads, loops and sensors.

Input: ``Mechanism``. Output: plain records, by names. The parent of a body is the body relative to which its
frame (for a particle, its position) is written; joints give their names where they are known. A constraint belongs to
the bodies on which its force acts, or, if that is unknown, to the bodies whose position depends on its coordinates.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.mechanism.records.mechanism_records import (
    Body,
    ConstraintForceApplication,
    ForceLoad,
    Mechanism,
    PathwayLoad,
    TorqueActuatorLoad,
    TorqueLoad,
    VectorTerms,
)
from mb2fmu.mechanics.mechanism.records.output_and_joint_records import RequestedOutput
from mb2fmu.model.declarations.declared_outputs import OUTPUT_KINDS

GROUND_NUMBER = -1


@dataclass(frozen=True, slots=True)
class MechanismGraphEdge:
    """Connection between two bodies, or between a body and the ground.

    Attributes:
        kind: ``joint``: connects ``child`` to its ``parent``; ``load``: acts on both; ``loop``: a constraint.
        name: Name of the joint, load or constraint; empty where it has none.
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
        name: Name of the model.
        bodies: Names of the bodies.
        edges: Joints first, one per body.
        loads_of_body: Names of loads on each body alone; the ground's are last.
        outputs_of_body: Names of outputs on each body; the ground's are last.
    """

    name: str
    bodies: tuple[str, ...]
    edges: tuple[MechanismGraphEdge, ...]
    loads_of_body: tuple[tuple[str, ...], ...]
    outputs_of_body: tuple[tuple[str, ...], ...]


def build_mechanism_graph(mechanism: Mechanism) -> MechanismGraph:
    """Return the graph of a mechanism; without bodies (a Lagrangian alone) it has the ground only."""
    return _MechanismGraphBuilder(mechanism).build()


class _MechanismGraphBuilder:
    """Finds the body that each point and frame belongs to, and the connections between bodies."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = m = mechanism
        self._frame_body = {body.frame: number for number, body in reversed([*enumerate(m.bodies)]) if body.frame > 0}
        self._centre_body = {body.masscenter: number for number, body in reversed([*enumerate(m.bodies)])}
        for number, body in enumerate(m.bodies):
            for frame, components in m.points[body.masscenter].position or () if body.frame < 0 else ():
                if frame > 0 and any(components):
                    self._frame_body.setdefault(frame, number)
        self._moving_symbols = {*m.q, m.t, *m.r}
        self._symbols_of_body: dict[int, AbstractSet[sm.Basic]] = {}
        self._symbols_of_frame: dict[int, AbstractSet[sm.Basic]] = {}
        self._base_body = self._find_base_points()

    def build(self) -> MechanismGraph:
        """Return the complete graph."""
        m = self.mechanism
        loads_of_body: list[list[str]] = [[] for _ in range(len(m.bodies) + 1)]
        outputs_of_body: list[list[str]] = [[] for _ in range(len(m.bodies) + 1)]
        bonds = [*self._list_joints(), *self._list_loops()]
        for name, loaded_bodies in self._list_loads():
            bodies = list(dict.fromkeys(loaded_bodies))
            if len(bodies) == 1:
                loads_of_body[bodies[0]].append(name)
            else:
                bonds += [MechanismGraphEdge("load", name, a, b) for a, b in itertools.pairwise(bodies)]
        for item in m.outputs:
            if isinstance(item, RequestedOutput):
                for number in dict.fromkeys(self._find_observed_bodies(item)):
                    outputs_of_body[number].append(item.name)
        names = tuple(body.name for body in m.bodies)
        return MechanismGraph(
            m.declared.name, names, tuple(bonds), tuple(map(tuple, loads_of_body)), tuple(map(tuple, outputs_of_body))
        )

    def _list_joints(self) -> Iterator[MechanismGraphEdge]:
        """Yield one joint per body."""
        declared_joints = {joint.child: joint for joint in self.mechanism.joints}
        carriers = {number: self._find_carrier(number, body) for number, body in enumerate(self.mechanism.bodies)}
        carriers |= {number: joint.parent for number, joint in declared_joints.items()}
        for number, body in enumerate(self.mechanism.bodies):
            parent = carriers[number]
            if (
                number not in declared_joints
                and body.frame > 0
                and self._find_body_of_frame(self.mechanism.frames[body.frame].parent) == GROUND_NUMBER
            ):
                # Located from what hangs on it, as a frame from the contact of its wheel: it turns against the ground.
                parent = carriers[number] = GROUND_NUMBER if _is_in_cycle(carriers, number) else parent
            free = self._find_joint_coordinates(number, parent)
            yield MechanismGraphEdge(
                "joint", declared_joints[number].name if number in declared_joints else "", parent, number, free
            )

    def _find_carrier(self, number: int, body: Body) -> int:
        """Return the body relative to which a body's frame is oriented, or a particle is located."""
        frame = self.mechanism.frames[body.frame].parent if body.frame > 0 else 0
        carrier = self._find_body_of_frame(frame) if body.frame > 0 else GROUND_NUMBER
        if carrier not in (GROUND_NUMBER, number):
            return carrier
        return self._find_body_of_point(self.mechanism.points[body.masscenter].parent, excluded_body=number)

    def _find_joint_coordinates(self, number: int, parent: int) -> tuple[str, ...]:
        """Return the coordinates that move a body but not its carrier."""
        symbols = self._find_body_symbols(number) - (self._find_body_symbols(parent) if parent >= 0 else set())
        return tuple(q.name for q in self.mechanism.q if q in symbols)

    def _find_body_symbols(self, number: int) -> AbstractSet[sm.Basic]:
        """Return the symbols that a body's position and its frame's orientation depend on."""
        if number not in self._symbols_of_body:
            m, symbols, frames = self.mechanism, set[sm.Basic](), {self.mechanism.bodies[number].frame}
            point = m.bodies[number].masscenter
            while m.points[point].parent >= 0:
                terms = m.points[point].position or ()
                symbols |= _vector_symbols(terms)
                frames |= {frame for frame, components in terms if any(components)}
                point = m.points[point].parent
            self._symbols_of_body[number] = symbols.union(*(self._find_frame_symbols(frame) for frame in frames))
        return self._symbols_of_body[number]

    def _find_frame_symbols(self, frame: int) -> AbstractSet[sm.Basic]:
        """Return the symbols that the orientation of a frame depends on."""
        chain = []
        while frame > 0 and frame not in self._symbols_of_frame:
            chain.append(frame)
            frame = self.mechanism.frames[frame].parent
        symbols: AbstractSet[sm.Basic] = self._symbols_of_frame[frame] if frame > 0 else frozenset()
        for node in reversed(chain):
            symbols = self._symbols_of_frame[node] = symbols | self.mechanism.frames[node].rotation.free_symbols
        return symbols

    def _list_loops(self) -> Iterator[MechanismGraphEdge]:
        """Yield the constraints between the bodies that they connect."""
        m = self.mechanism
        rows = m.velocity_constraints.names if m.velocity_constraints else ()
        for i, name in enumerate(rows):
            applications = m.force_applications[i] if i < len(m.force_applications) else ()
            bodies = [
                self._find_application_body(application) for application in applications
            ] or self._find_constrained_bodies(i)
            loop_bodies = list(dict.fromkeys(bodies)) or [GROUND_NUMBER]
            if len(loop_bodies) == 1:
                loop_bodies = [GROUND_NUMBER, *loop_bodies] if loop_bodies[0] != GROUND_NUMBER else loop_bodies * 2
            yield from (MechanismGraphEdge("loop", name, a, b) for a, b in itertools.pairwise(loop_bodies))

    def _find_application_body(self, application: ConstraintForceApplication) -> int:
        """Return the body on which a constraint's force acts."""
        if application.body >= 0:
            return application.body
        return (
            self._find_body_of_frame(application.point_or_frame)
            if application.is_torque
            else self._find_body_of_point(application.point_or_frame)
        )

    def _find_constrained_bodies(self, row: int) -> list[int]:
        """Return the outermost bodies that the coordinates or speeds of a constraint move."""
        m, constraints = self.mechanism, self.mechanism.velocity_constraints
        assert constraints is not None
        speeds = {j for j in range(len(m.u)) if constraints.jacobian[row, j] != 0}
        if row < len(m.holonomic):
            coordinates = set(m.holonomic[row][1].free_symbols & set(m.q))
        else:
            K = m.kinematics.matrix
            coordinates = {m.q[i] for i in range(len(m.q)) for j in speeds if K[i, j] != 0}
        coordinates_of_body = {number: set(bond.coordinates) for number, bond in enumerate(self._list_joints())}
        coordinate_names = {q.name for q in coordinates}
        bodies = [number for number, own_names in coordinates_of_body.items() if own_names & coordinate_names]
        parents = {bond.parent for bond in self._list_joints() if bond.child in bodies}
        return [number for number in bodies if number not in parents] or bodies

    def _list_loads(self) -> Iterator[tuple[str, list[int]]]:
        """Yield each load's name and the bodies that it acts on."""
        for load in self.mechanism.loads:
            match load:
                case ForceLoad():
                    yield load.name, [self._find_body_of_point(load.point)]
                case TorqueLoad():
                    yield load.name, [self._find_body_of_frame(load.frame)]
                case TorqueActuatorLoad():
                    reaction_bodies = [self._find_body_of_frame(load.reaction)] if load.reaction >= 0 else []
                    yield load.name, [self._find_body_of_frame(load.frame), *reaction_bodies]
                case PathwayLoad():
                    yield load.name, [self._find_body_of_point(point) for point in load.points]

    def _find_observed_bodies(self, item: RequestedOutput) -> Iterable[int]:
        """Return the bodies that an output observes."""
        if item.of_joint:
            return [self.mechanism.joints[item.subject[0]].child]
        subject = OUTPUT_KINDS[item.kind].subject
        if subject == "body" or item.kind == "reaction_force":
            return item.subject
        if subject in {"frame", "oriented frame"}:
            return [self._find_body_of_frame(frame) for frame in item.subject]
        if subject in {"point", "located point"}:
            return [self._find_body_of_point(point) for point in item.subject]
        return []

    def _find_body_of_frame(self, frame: int) -> int:
        """Return the body that a frame turns with, or the nearest one before it."""
        while frame > 0 and frame not in self._frame_body:
            frame = self.mechanism.frames[frame].parent
        return self._frame_body.get(frame, GROUND_NUMBER)

    def _find_base_points(self) -> dict[int, int]:
        """Return points that coordinates move (a platform's corner) → the body whose mass centre is fixed to them."""
        bodies_of_base: dict[int, set[int]] = {}
        for number, body in enumerate(self.mechanism.bodies):
            point, terms = body.masscenter, self.mechanism.points[body.masscenter].position or ()
            is_body_fixed = {frame for frame, components in terms if any(components)} <= {body.frame}
            if body.frame > 0 and is_body_fixed and not _vector_symbols(terms) & self._moving_symbols:
                base = self.mechanism.points[point].parent
                if base > 0 and _vector_symbols(self.mechanism.points[base].position) & self._moving_symbols:
                    bodies_of_base.setdefault(base, set()).add(number)
        return {point: min(bodies) for point, bodies in bodies_of_base.items() if len(bodies) == 1}

    def _find_body_of_point(self, point: int, excluded_body: int = -2) -> int:
        """Return the body that a point is fixed in, or the nearest one before it."""
        while point > 0:
            body = self._find_body_at_point(point, excluded_body)
            if body is not None:
                return body
            point = self.mechanism.points[point].parent
        return GROUND_NUMBER

    def _find_body_at_point(self, point: int, excluded_body: int) -> int | None:
        """Return the body of a mass centre, or the body in whose frame a point is fixed; else None."""
        known_body = self._centre_body.get(point, self._base_body.get(point))
        if known_body is not None and known_body != excluded_body:
            return known_body
        terms = self.mechanism.points[point].position or ()
        bodies = {self._find_body_of_frame(frame) for frame, components in terms if any(components)}
        if known_body is None and terms and len(bodies) == 1 and not _vector_symbols(terms) & self._moving_symbols:
            (body,) = bodies
            return body if body not in {GROUND_NUMBER, excluded_body} else None
        return None


def _is_in_cycle(carriers: Mapping[int, int], number: int) -> bool:
    """Return whether a body is carried by itself, through others."""
    carrier, visited = carriers[number], set[int]()
    while carrier not in visited and carrier not in {GROUND_NUMBER, number}:
        visited.add(carrier)
        carrier = carriers[carrier]
    return carrier == number


def _vector_symbols(terms: VectorTerms | None) -> set[sm.Basic]:
    """Return symbols in the components of a vector."""
    return set().union(*(component.free_symbols for _, components in terms or () for component in components))
