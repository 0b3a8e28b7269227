"""``MassMatrixColumns``: which bodies, frames and points each column of the mass matrix comes from.

A speed that turns or shifts everything behind it as one rigid whole needs the resultant of that whole only, which acts
on one frame and one point. What a speed moves otherwise (a speed of two joints, angles that are all measured from the
ground) is summed body by body.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import sympy as sm

from mb2fmu.mechanics.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class FrameVectorTerm:
    """A vector in a frame: indices of its speeds, and its numbers: partials, vector, rate, second rate (3 each)."""

    frame: int
    speeds: tuple[int, ...]
    numbers: tuple[sm.Expr, ...]


@dataclass(frozen=True, slots=True)
class FrameAndPointTerms:
    """Frames or points: the terms of each, its parent (-1: none), and an order with parents first."""

    terms: tuple[tuple[FrameVectorTerm, ...], ...]
    parents: tuple[int, ...]

    def order(self) -> list[int]:
        """Nodes, parents first."""
        placed: dict[int, None] = {}
        for node in range(len(self.parents)):
            way = [node]
            while way[-1] not in placed and self.parents[way[-1]] >= 0:
                way.append(self.parents[way[-1]])
            placed.update(dict.fromkeys(reversed(way)))
        return list(placed)

    def with_ancestors(self, nodes: Iterable[int]) -> list[int]:
        """Return the nodes and all their ancestors, in order."""
        found: set[int] = set()
        for start in nodes:
            node = start
            while node >= 0 and node not in found:
                found.add(node)
                node = self.parents[node]
        return [node for node in self.order() if node in found]

    def ancestors_between(self, node: int, end: int) -> list[int] | None:
        """Return the nodes from one up to another, without the latter (-1: beyond the last one); None if not above."""
        way = []
        while node not in (end, -1):
            way.append(node)
            node = self.parents[node]
        return way if node == end else None

    def nodes_with_speed(self, speed: int, nodes: Iterable[int]) -> list[int]:
        """Return those whose own terms have a speed."""
        return [node for node in nodes if any(speed in term.speeds for term in self.terms[node])]


@dataclass(frozen=True, slots=True)
class ColumnDependencies:
    """What a speed moves: frames, points and bodies; and all nodes on the paths of these bodies to the origin."""

    turned_frames: frozenset[int]
    points: frozenset[int]
    bodies: tuple[int, ...]
    frame_path: tuple[int, ...]
    point_path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KinematicBranch:
    """Where the resultant of a rigid whole acts: on a point (-1: the origin) and a frame (-1: it has no moment).

    Attributes:
        node: The frame (``turns``) or point whose own terms have the speed.
        turns: The whole turns about the point; else it is shifted with it.
        point: Its point.
        frame: Its frame.
    """

    node: int
    turns: bool
    point: int
    frame: int


@dataclass(frozen=True, slots=True)
class CompositeBody:
    """Bodies as one rigid whole about a point, and of what: bodies, or -1 - number of an earlier composite."""

    bodies: frozenset[int]
    point: int
    pieces: tuple[tuple[int, tuple[int, ...]], ...] = ()
    """Number of the piece, and the points on the path to it, whose terms lead there."""


class MassMatrixColumns:
    """Columns of the mass matrix over the speeds of a mechanism.

    Attributes:
        dependencies: Of each speed.
        branches: Of each speed; None: it moves no rigid whole.
        composites: Of all stems, each after its pieces.
        numbers: Of each speed, the number of its composite; -1: none.
        rows: Of each speed, the rows that its column gives.
    """

    def __init__(self, mechanism: Mechanism, frames: FrameAndPointTerms, points: FrameAndPointTerms) -> None:
        self._m, self._frames, self._points = mechanism, frames, points
        speeds = range(len(mechanism.u))
        self.dependencies = [self._moved(speed) for speed in speeds]
        self.branches = [self._find_branch(speed) for speed in speeds]
        self._drop_crossing_branches()
        self.composites = self._composites()
        at = {(c.bodies, c.point): k for k, c in enumerate(self.composites)}
        self.numbers = [
            at[frozenset(moved.bodies), stem.point] if stem else -1
            for moved, stem in zip(self.dependencies, self.branches, strict=True)
        ]
        self.rows = [
            [i for i in speeds if stem is None or self._moves_composite_of(i, j)]
            for j, stem in enumerate(self.branches)
        ]

    def paths(self, speed: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return frames and points along which the forces of a column go back to the origin, those above first."""
        stem, moved = self.branches[speed], self.dependencies[speed]
        if stem is None:
            return moved.frame_path, moved.point_path
        points = self._points.with_ancestors([stem.point])
        return self._frames.with_ancestors([stem.frame, *self._frames_of(points)]), points

    def _frames_of(self, points: Iterable[int]) -> list[int]:
        """Return the frames in which the positions of points are written."""
        own = [point for point in points if not self._given(point)]
        return [term.frame for point in own for term in self._points.terms[point]]

    def _given(self, point: int) -> bool:
        """Return True for a point whose velocity is given, and not the position from the point above."""
        return self._m.points[point].velocity is not None

    def _moved(self, speed: int) -> ColumnDependencies:
        """Return frames, points and bodies that a speed moves, with the paths of these bodies."""
        frames, points, bodies = self._frames, self._points, self._m.bodies
        turned: set[int] = set()
        for node in frames.order():
            if frames.parents[node] in turned or frames.nodes_with_speed(speed, [node]):
                turned.add(node)
        moved: set[int] = set()
        for node in points.order():
            carried = not self._given(node) and any(term.frame in turned for term in points.terms[node])
            if carried or points.parents[node] in moved or points.nodes_with_speed(speed, [node]):
                moved.add(node)
        own = [
            k
            for k, body in enumerate(bodies)
            if body.masscenter in moved or (body.inertia is not None and body.frame in turned)
        ]
        path = points.with_ancestors(bodies[k].masscenter for k in own)
        framed = [bodies[k].frame for k in own if bodies[k].inertia is not None]
        frame_path = frames.with_ancestors([*framed, *self._frames_of(path)])
        return ColumnDependencies(frozenset(turned), frozenset(moved), tuple(own), tuple(frame_path), tuple(path))

    def _find_branch(self, speed: int) -> KinematicBranch | None:
        """Return where the resultant acts; None if a speed does not move one rigid whole."""
        moved = self.dependencies[speed]
        turning = self._frames.nodes_with_speed(speed, moved.frame_path)
        shifting = self._points.nodes_with_speed(speed, moved.point_path)
        if len(turning) + len(shifting) != 1:
            return None
        return (
            self._find_turning_branch(turning[0], moved) if turning else self._find_shifting_branch(shifting[0], moved)
        )

    def _find_turning_branch(self, node: int, moved: ColumnDependencies) -> KinematicBranch | None:
        """Return the stem of all that turns with a frame about one point."""
        roots: set[int] = set()
        met: set[int] = set()
        for k in moved.bodies:
            body = self._m.bodies[k]
            if body.inertia is not None and body.frame not in moved.turned_frames:
                return None
            point = body.masscenter
            while point in moved.points and point not in met:
                if self._given(point) or any(
                    term.frame not in moved.turned_frames for term in self._points.terms[point]
                ):
                    return None
                met.add(point)
                point = self._points.parents[point]
            if point not in moved.points:
                roots.add(point)
        return KinematicBranch(node, turns=True, point=roots.pop(), frame=node) if len(roots) == 1 else None

    def _find_shifting_branch(self, node: int, moved: ColumnDependencies) -> KinematicBranch | None:
        """Return the stem of all that is shifted with a point."""
        between: set[int] = set()
        for k in moved.bodies:
            way = self._points.ancestors_between(self._m.bodies[k].masscenter, node)
            if way is None or any(self._given(point) for point in way):
                return None
            between.update(way)
        frames = self._frames_of(between)
        return KinematicBranch(node, turns=False, point=node, frame=self._common(frames) if frames else -1)

    def _common(self, frames: Sequence[int]) -> int:
        """Return the last frame that is above all of some frames, or one of them."""
        shared = set.intersection(*(set(self._frames.with_ancestors([frame])) for frame in frames))
        return max(shared, key=lambda frame: len(self._frames.with_ancestors([frame])))

    def _moves_composite_of(self, i: int, j: int) -> bool:
        """Return whether speed i moves the rigid whole of speed j, so that j's resultant tells M_ij."""
        one, other = self.branches[i], self.branches[j]
        if one is None or other is None or not set(self.dependencies[i].bodies) >= set(self.dependencies[j].bodies):
            return False
        at = other.point == one.point or other.point in self.dependencies[i].points
        return at and (not one.turns or other.frame < 0 or other.frame in self.dependencies[i].turned_frames)

    def _drop_crossing_branches(self) -> None:
        """Make no stem of speeds that move some of the same bodies, neither all that the other one moves."""
        bodies = [set(moved.bodies) for moved in self.dependencies]
        crossing = {
            speed
            for j, stem in enumerate(self.branches)
            if stem
            for i in range(j)
            if self.branches[i]
            and bodies[i] & bodies[j]
            and not (self._moves_composite_of(i, j) or self._moves_composite_of(j, i))
            for speed in (i, j)
        }
        for speed in crossing:
            self.branches[speed] = None

    def _composites(self) -> list[CompositeBody]:
        """Return the wholes of all stems, smaller ones first, each made of the largest ones before it."""
        stems = zip(self.dependencies, self.branches, strict=True)
        wanted = {(frozenset(moved.bodies), stem.point) for moved, stem in stems if stem}

        def depth(point: int) -> int:
            return len(self._points.with_ancestors([point]))

        found: list[CompositeBody] = []
        for bodies, point in sorted(wanted, key=lambda key: (len(key[0]), -depth(key[1]), sorted(key[0]), key[1])):
            left, pieces = set(bodies), []
            for k in reversed(range(len(found))):
                way = self._points.ancestors_between(found[k].point, point) if found[k].bodies <= left else None
                if way is not None and not any(self._given(node) for node in way):
                    pieces.append((-1 - k, tuple(way)))
                    left -= found[k].bodies
            for k in sorted(left):
                way = self._points.ancestors_between(self._m.bodies[k].masscenter, point)
                assert way is not None, "a stem's bodies hang below its point"
                pieces.append((k, tuple(way)))
            found.append(CompositeBody(bodies, point, tuple(pieces)))
        return found
