"""Number frames and points, and read their local relations.

Breadth first from the inertial frame over direct orientations, and from the origin over given positions. Angular
velocities go the way SymPy's ``ang_vel_in`` goes, the shortest chain of given ones.
"""
# ruff: noqa: SLF001 - local relations stand in private attributes; the public methods compose and write caches

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

import sympy as sm
from sympy.core.function import AppliedUndef
from sympy.physics.mechanics import Point, ReferenceFrame
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault, MechanismError
from mb2fmu.mechanics.mechanism.records.mechanism_records import Frame, KinematicPoint, VectorTerms
from mb2fmu.mechanics.mechanism.records.symbol_replacement_and_derivatives import DynamicsymbolMap

Node = TypeVar("Node")
_ParentMap = dict[Node, Node | None]


class SympyFrameAndPointTree:
    """Frames and points by number, filled by :meth:`read_frames` and :meth:`read_points`.

    Args:
        inertial: The inertial frame N.
        plain: Translation to plain symbols.
        declared: Symbols and functions that the model declares. A frame whose orientation contains others is
            unused (all used frames were checked), and is left out.
    """

    def __init__(self, inertial: ReferenceFrame, plain: DynamicsymbolMap, declared: Collection[sm.Basic]) -> None:
        self.N = inertial
        self.plain = plain
        self._declared = frozenset(declared)
        self._rates = {item: sm.S.Zero for item in declared if isinstance(item, sm.Derivative)}
        self.frame_of: dict[ReferenceFrame, int] = {}
        self._parents: _ParentMap[ReferenceFrame] = {}
        self.point_of: dict[Point, int] = {}
        self._axes_of: dict[ReferenceFrame, ReferenceFrame] = {}  # of frames that are not oriented

    def find_axes_frame(self, frame: ReferenceFrame) -> ReferenceFrame:
        """Return the frame whose axes stand for those of ``frame``: itself, if it is oriented."""
        return self._axes_of.get(frame, frame)

    def read_vector(self, vector: Vector) -> VectorTerms:
        """Return a SymPy vector as components in the frames it is written in.

        Raises:
            MechanismError: If one of them is not connected to the inertial frame.
        """
        if vector == 0:
            return ()
        vector = self._express_in_read_frames(vector)
        faults = [
            Fault(f"frame {frame.name} is not connected to the inertial frame", str(vector)[:60], "orient it")
            for _, frame in vector.args
            if frame not in self.frame_of or frame in self._axes_of
        ]
        if faults:
            raise MechanismError("a vector cannot be read:", faults)
        return tuple(
            (self.frame_of[frame], (self.plain(components[0]), self.plain(components[1]), self.plain(components[2])))
            for components, frame in vector.args
        )

    def _express_in_read_frames(self, vector: Vector) -> Vector:
        """Return the vector without frames that only give directions: their angular velocity need not be declared."""
        while any(frame not in self.frame_of and frame in self._parents for _, frame in vector.args):
            expressed = Vector(0)
            for components, frame in vector.args:
                parent = None if frame in self.frame_of else self._parents.get(frame)
                expressed += Vector(
                    [(components, frame) if parent is None else (parent._dcm_dict[frame] * components, parent)]
                )
            vector = expressed
        return vector

    def read_frames(self, requested_frames: Mapping[ReferenceFrame, ReferenceFrame | None]) -> tuple[Frame, ...]:
        """Return all frames that are oriented, directly or not, in N; and of ``requested_frames`` those that only turn.

        A wheel whose angle is no coordinate has an angular velocity and no orientation.

        Args:
            requested_frames: Frame → the frame whose axes are to stand for its own if it is not oriented; None: of the
                frame that it turns in.
        """
        references = _shortest_path_tree([self.N], lambda frame: frame._ang_vel_dict)
        self._parents = _shortest_path_tree([self.N], lambda frame: frame._dcm_dict)
        parents = self._select_declared_frames(self._parents, references)
        self.frame_of = {frame: number for number, frame in enumerate(parents)}
        frames = [Frame(self.N.name, -1, sm.ImmutableMatrix.eye(3), 0, ())]
        faults = []
        for frame, parent in parents.items():
            if parent is None:
                continue
            reference = references.get(frame)
            if reference is None or reference not in self.frame_of:
                problem = f"frame {frame.name} has no angular velocity in {self.N.name}"
                faults.append(Fault(problem, remedy="orient it, or set_ang_vel"))
                continue
            rotation = sm.ImmutableMatrix(3, 3, list(map(self.plain, parent._dcm_dict[frame].flat())))
            omega = self.read_vector(frame._ang_vel_dict[reference])
            frames.append(Frame(frame.name, self.frame_of[parent], rotation, self.frame_of[reference], omega))
        if faults:
            raise MechanismError("the kinematics are incomplete:", faults)
        self._axes_of = {}
        for frame, axes in requested_frames.items():
            self._add_unoriented_frame(frame, axes, references, frames)
        return tuple(frames)

    def _select_declared_frames(
        self, parents: _ParentMap[ReferenceFrame], references: _ParentMap[ReferenceFrame]
    ) -> _ParentMap[ReferenceFrame]:
        """Return the frames whose symbols, and those of their parents, are all declared; parents come first."""
        undeclared_frames = {
            frame for frame, reference in references.items() if not self._is_declared(frame, reference)
        }
        declared_parents: _ParentMap[ReferenceFrame] = {}
        for frame, parent in parents.items():
            rotation = () if parent is None else parent._dcm_dict[frame].flat()
            is_declared = all(self._is_declared_expression(entry) for entry in rotation)
            if is_declared and frame not in undeclared_frames and (parent is None or parent in declared_parents):
                declared_parents[frame] = parent
        return declared_parents

    def _is_declared(self, frame: ReferenceFrame, reference: ReferenceFrame | None) -> bool:
        """Return whether all symbols of a frame's angular velocity are declared."""
        omega = 0 if reference is None else frame._ang_vel_dict[reference]
        return all(
            self._is_declared_expression(entry) for components, _ in getattr(omega, "args", ()) for entry in components
        )

    def _is_declared_expression(self, expression: sm.Basic) -> bool:
        """Return whether all symbols and functions of time are declared."""
        if not expression.args:
            return not isinstance(expression, sm.Symbol) or expression in self._declared
        remaining = expression.xreplace(self._rates)  # a rate may be declared where what it is the rate of is not
        return self._declared.issuperset(remaining.free_symbols | remaining.atoms(AppliedUndef))

    def _add_unoriented_frame(
        self,
        frame: ReferenceFrame,
        axes: ReferenceFrame | None,
        references: dict[ReferenceFrame, ReferenceFrame | None],
        frames: list[Frame],
    ) -> None:
        """Add a frame of which only the angular velocity is given."""
        reference = references.get(frame)
        if frame in self.frame_of or reference is None:
            return
        self._add_unoriented_frame(reference, None, references, frames)
        axes_known = axes is not None and axes in self.frame_of
        self._axes_of[frame] = self.find_axes_frame(axes if axes is not None and axes_known else reference)
        parent, omega = self.frame_of[self._axes_of[frame]], self.read_vector(frame._ang_vel_dict[reference])
        number, identity = self.frame_of[reference], sm.ImmutableMatrix.eye(3)
        self.frame_of[frame] = len(frames)
        frames.append(Frame(frame.name, parent, identity, number, omega, oriented=False))

    def read_points(
        self, origin: Point, requested_points: Sequence[Point], *, pivot: Point | None = None
    ) -> tuple[KinematicPoint, ...]:
        """Return the origin, the requested points, and those between.

        Points without a chain of positions to the origin need given velocities. A ``pivot`` lies in the origin, and
        has a velocity of its own, of auxiliary speeds.

        Raises:
            MechanismError: Naming every point whose velocity is unknown.
        """
        records: list[KinematicPoint] = []
        self._add_point(origin, KinematicPoint(origin.name, -1, None, (), located=True), records)
        if pivot is not None:
            self._add_point(pivot, KinematicPoint(pivot.name, 0, (), None, located=True), records)
        tree = _shortest_path_tree([pivot or origin], lambda point: point._pos_dict)
        for point in requested_points:
            if point in tree:
                self._add_chain(point, tree, records, located=True)
        unlocated_points = [point for point in requested_points if point not in self.point_of]
        points_with_velocity = [
            point for point in _shortest_path_tree(unlocated_points, lambda p: p._pos_dict) if self.N in point._vel_dict
        ]
        tree = _shortest_path_tree(points_with_velocity, lambda point: point._pos_dict)
        faults = []
        for point in unlocated_points:
            if point in tree:
                self._add_chain(point, tree, records, located=False)
            else:
                problem = f"the velocity of point {point.name} in {self.N.name} is not known"
                faults.append(Fault(problem, remedy=f"locate it from {origin.name}, or give its velocity by set_vel"))
        if faults:
            raise MechanismError("the kinematics are incomplete:", faults)
        return tuple(records)

    def read_given_velocities(self) -> dict[int, VectorTerms]:
        """Return number of a point → velocity in N as the user or a SymPy joint has set it; the origin's is zero."""
        return {
            number: self.read_vector(point._vel_dict[self.N])
            for point, number in self.point_of.items()
            if number and self.N in point._vel_dict
        }

    def _add_chain(
        self, point: Point, tree: dict[Point, Point | None], records: list[KinematicPoint], *, located: bool
    ) -> None:
        """Add ``point`` and the points between it and those already there."""
        chain = []
        chain_point: Point | None = point
        while chain_point is not None and chain_point not in self.point_of:
            chain.append(chain_point)
            chain_point = tree[chain_point]
        for node in reversed(chain):
            parent = tree[node]
            if parent is None:
                velocity = self.read_vector(node._vel_dict[self.N])
                self._add_point(node, KinematicPoint(node.name, -1, None, velocity, located=False), records)
            else:
                offset = self.read_vector(node._pos_dict[parent])
                self._add_point(
                    node, KinematicPoint(node.name, self.point_of[parent], offset, None, located=located), records
                )

    def _add_point(self, point: Point, record: KinematicPoint, records: list[KinematicPoint]) -> None:
        """Give a point the next number and keep its record at that place."""
        self.point_of[point] = len(records)
        records.append(record)


def collect_direction_cosines(inertial: ReferenceFrame) -> list[sm.MatrixBase]:
    """Return the direction cosines of each frame connected with the inertial frame, in the frame it is oriented in."""
    parents = _shortest_path_tree([inertial], lambda frame: frame._dcm_dict)
    return [parent._dcm_dict[frame] for frame, parent in parents.items() if parent is not None]


def _shortest_path_tree(roots: Iterable[Node], neighbours: Callable[[Node], Iterable[Node]]) -> dict[Node, Node | None]:
    """Return node → previous node on a shortest path from one of ``roots``; parents come first."""
    tree: dict[Node, Node | None] = dict.fromkeys(roots)
    queue = deque(tree)
    while queue:
        parent = queue.popleft()
        for child in neighbours(parent):
            if child not in tree:
                tree[child] = parent
                queue.append(child)
    return tree
