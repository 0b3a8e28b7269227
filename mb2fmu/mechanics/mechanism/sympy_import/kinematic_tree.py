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
from mb2fmu.mechanics.mechanism.records.plain_symbols import SymbolMap

Node = TypeVar("Node")
_ParentMap = dict[Node, Node | None]


class KinematicTree:
    """Frames and points by number, filled by :meth:`read_frames` and :meth:`read_points`.

    Args:
        inertial: The inertial frame N.
        plain: Translation to plain symbols.
        declared: Symbols and functions that the model declares. A frame whose orientation contains others is used by
            nothing (all that is used was checked), and is left out.
    """

    def __init__(self, inertial: ReferenceFrame, plain: SymbolMap, declared: Collection[sm.Basic]) -> None:
        self.N = inertial
        self.plain = plain
        self._declared = frozenset(declared)
        self._rates = {item: sm.S.Zero for item in declared if isinstance(item, sm.Derivative)}
        self.frame_of: dict[ReferenceFrame, int] = {}
        self.point_of: dict[Point, int] = {}
        self._axes_of: dict[ReferenceFrame, ReferenceFrame] = {}  # of frames that are not oriented

    def axes(self, frame: ReferenceFrame) -> ReferenceFrame:
        """Return the frame whose axes stand for those of ``frame``: itself, if it is oriented."""
        return self._axes_of.get(frame, frame)

    def terms(self, vector: Vector) -> VectorTerms:
        """Return a SymPy vector as components in the frames it is written in.

        Raises:
            MechanismError: If one of them is not connected to the inertial frame.
        """
        if vector == 0:
            return ()
        faults = [
            Fault(f"frame {frame.name} is not connected to the inertial frame", str(vector)[:60], "orient it")
            for _, frame in vector.args
            if frame not in self.frame_of or frame in self._axes_of
        ]
        if faults:
            raise MechanismError("a vector cannot be read:", faults)
        return tuple(
            (self.frame_of[frame], (self.plain(m[0]), self.plain(m[1]), self.plain(m[2]))) for m, frame in vector.args
        )

    def read_frames(self, wanted: Mapping[ReferenceFrame, ReferenceFrame | None]) -> tuple[Frame, ...]:
        """Return all frames that are oriented, directly or not, in N; and of ``wanted`` those that only turn.

        A wheel whose angle is no coordinate has an angular velocity and no orientation.

        Args:
            wanted: Frame → the frame whose axes are to stand for its own if it is not oriented; None: of the frame that
                it turns in.
        """
        references = _shortest_path_tree([self.N], lambda frame: frame._ang_vel_dict)
        parents = self._declared_ones(_shortest_path_tree([self.N], lambda frame: frame._dcm_dict), references)
        self.frame_of = {frame: number for number, frame in enumerate(parents)}
        frames = [Frame(self.N.name, -1, sm.ImmutableMatrix.eye(3), 0, ())]
        faults = []
        for frame, parent in parents.items():
            if parent is None:
                continue
            reference = references.get(frame)
            if reference is None or reference not in self.frame_of:
                what = f"frame {frame.name} has no angular velocity in {self.N.name}"
                faults.append(Fault(what, remedy="orient it, or set_ang_vel"))
                continue
            rotation = sm.ImmutableMatrix(3, 3, list(map(self.plain, parent._dcm_dict[frame].flat())))
            omega = self.terms(frame._ang_vel_dict[reference])
            frames.append(Frame(frame.name, self.frame_of[parent], rotation, self.frame_of[reference], omega))
        if faults:
            raise MechanismError("the kinematics are incomplete:", faults)
        self._axes_of = {}
        for frame, axes in wanted.items():
            self._add_turning(frame, axes, references, frames)
        return tuple(frames)

    def _declared_ones(
        self, parents: _ParentMap[ReferenceFrame], references: _ParentMap[ReferenceFrame]
    ) -> _ParentMap[ReferenceFrame]:
        """Return the frames of which all is declared, and that rest on such; parents come first."""
        unknown = {frame for frame, reference in references.items() if not self._is_declared(frame, reference)}
        found: _ParentMap[ReferenceFrame] = {}
        for frame, parent in parents.items():
            rotation = () if parent is None else parent._dcm_dict[frame].flat()
            told = all(self._tells(entry) for entry in rotation)
            if told and frame not in unknown and (parent is None or parent in found):
                found[frame] = parent
        return found

    def _is_declared(self, frame: ReferenceFrame, reference: ReferenceFrame | None) -> bool:
        """Return whether all symbols of a frame's angular velocity are declared."""
        omega = 0 if reference is None else frame._ang_vel_dict[reference]
        return all(self._tells(entry) for components, _ in getattr(omega, "args", ()) for entry in components)

    def _tells(self, expression: sm.Basic) -> bool:
        """Return whether all symbols and functions of time are declared."""
        if not expression.args:
            return not isinstance(expression, sm.Symbol) or expression in self._declared
        left = expression.xreplace(self._rates)  # a rate may be declared where what it is the rate of is not
        return self._declared.issuperset(left.free_symbols | left.atoms(AppliedUndef))

    def _add_turning(
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
        self._add_turning(reference, None, references, frames)
        known = axes is not None and axes in self.frame_of
        self._axes_of[frame] = self.axes(axes if axes is not None and known else reference)
        parent, omega = self.frame_of[self._axes_of[frame]], self.terms(frame._ang_vel_dict[reference])
        number, unturned = self.frame_of[reference], sm.ImmutableMatrix.eye(3)
        self.frame_of[frame] = len(frames)
        frames.append(Frame(frame.name, parent, unturned, number, omega, oriented=False))

    def read_points(
        self, origin: Point, wanted: Sequence[Point], *, pivot: Point | None = None
    ) -> tuple[KinematicPoint, ...]:
        """Return the origin, the wanted points, and those between.

        What no chain of positions joins to the origin hangs on given velocities. A ``pivot`` lies in the origin, and
        has a velocity of its own, of auxiliary speeds.

        Raises:
            MechanismError: Naming every point whose velocity cannot be told.
        """
        places: list[KinematicPoint] = []
        self._number(origin, KinematicPoint(origin.name, -1, None, (), located=True), places)
        if pivot is not None:
            self._number(pivot, KinematicPoint(pivot.name, 0, (), None, located=True), places)
        tree = _shortest_path_tree([pivot or origin], lambda point: point._pos_dict)
        for point in wanted:
            if point in tree:
                self._add_chain(point, tree, places, located=True)
        loose = [point for point in wanted if point not in self.point_of]
        given = [point for point in _shortest_path_tree(loose, lambda p: p._pos_dict) if self.N in point._vel_dict]
        tree = _shortest_path_tree(given, lambda point: point._pos_dict)
        faults = []
        for point in loose:
            if point in tree:
                self._add_chain(point, tree, places, located=False)
            else:
                what = f"the velocity of point {point.name} in {self.N.name} is not known"
                faults.append(Fault(what, remedy=f"locate it from {origin.name}, or give its velocity by set_vel"))
        if faults:
            raise MechanismError("the kinematics are incomplete:", faults)
        return tuple(places)

    def given_velocities(self) -> dict[int, VectorTerms]:
        """Return number of a point → velocity in N as the user or a SymPy joint has set it; the origin's is zero."""
        return {
            number: self.terms(point._vel_dict[self.N])
            for point, number in self.point_of.items()
            if number and self.N in point._vel_dict
        }

    def _add_chain(
        self, point: Point, tree: dict[Point, Point | None], places: list[KinematicPoint], *, located: bool
    ) -> None:
        """Add ``point`` and the points between it and those already there."""
        chain = []
        current: Point | None = point
        while current is not None and current not in self.point_of:
            chain.append(current)
            current = tree[current]
        for node in reversed(chain):
            parent = tree[node]
            if parent is None:
                velocity = self.terms(node._vel_dict[self.N])
                self._number(node, KinematicPoint(node.name, -1, None, velocity, located=False), places)
            else:
                offset = self.terms(node._pos_dict[parent])
                self._number(
                    node, KinematicPoint(node.name, self.point_of[parent], offset, None, located=located), places
                )

    def _number(self, point: Point, place: KinematicPoint, places: list[KinematicPoint]) -> None:
        """Give a point the next number and keep its record at that place."""
        self.point_of[point] = len(places)
        places.append(place)


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
