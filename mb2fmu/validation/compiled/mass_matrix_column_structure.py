"""``MassMatrixColumnStructure``: which bodies, frames and points each column of the mass matrix comes from.

A speed that turns or shifts everything behind it as one rigid whole needs the resultant of that whole only, which acts
on one frame and one point. What a speed moves otherwise (a speed of two joints, angles that are all measured from the
ground) is summed body by body; particles that are displaced from one point, those of a flexible body, are summed once
for all speeds.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import sympy as sm

from mb2fmu.mechanics.mechanism import Mechanism


@dataclass(frozen=True, slots=True)
class FrameVectorTerm:
    """A vector in a frame: indices of its speeds, and its numbers: partials, vector, rate, second rate (3 each)."""

    frame: int
    speeds: tuple[int, ...]
    numbers: tuple[sm.Expr, ...]


@dataclass(frozen=True)
class FrameOrPointTree:
    """Frames or points: the terms of each, its parent (-1: none), and an order with parents first."""

    terms: tuple[tuple[FrameVectorTerm, ...], ...]
    parents: tuple[int, ...]

    @cached_property
    def ordered_nodes(self) -> list[int]:
        """Nodes, parents first."""
        ordered: dict[int, None] = {}
        for node in range(len(self.parents)):
            path = [node]
            while path[-1] not in ordered and self.parents[path[-1]] >= 0:
                path.append(self.parents[path[-1]])
            ordered.update(dict.fromkeys(reversed(path)))
        return list(ordered)

    def with_ancestors(self, nodes: Iterable[int]) -> list[int]:
        """Return the nodes and all their ancestors, in order."""
        nodes_and_ancestors: set[int] = set()
        for start in nodes:
            node = start
            while node >= 0 and node not in nodes_and_ancestors:
                nodes_and_ancestors.add(node)
                node = self.parents[node]
        return [node for node in self.ordered_nodes if node in nodes_and_ancestors]

    def ancestors_between(self, node: int, end: int) -> list[int] | None:
        """Return the nodes from one up to another, without the latter (-1: beyond the last one); None if not above."""
        path = []
        while node not in (end, -1):
            path.append(node)
            node = self.parents[node]
        return path if node == end else None

    @cached_property
    def nodes_of_speed(self) -> dict[int, set[int]]:
        """Of each speed, the nodes whose own terms have it."""
        nodes: dict[int, set[int]] = defaultdict(set)
        for node, terms in enumerate(self.terms):
            for speed in (speed for term in terms for speed in term.speeds):
                nodes[speed].add(node)
        return nodes

    def nodes_with_speed(self, speed: int, nodes: Iterable[int]) -> list[int]:
        """Return those whose own terms have a speed."""
        return [node for node in nodes if node in self.nodes_of_speed[speed]]


@dataclass(frozen=True, slots=True)
class NodesMovedBySpeed:
    """What a speed moves: frames, points and bodies; and all nodes on the paths of these bodies to the origin."""

    turned_frames: frozenset[int]
    points: frozenset[int]
    bodies: tuple[int, ...]
    frame_path: tuple[int, ...]
    point_path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ResultantLocation:
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


@dataclass(frozen=True, slots=True)
class DisplacedParticleGroup:
    """Particles that are displaced from one point in one frame, as those of a flexible body are.

    Attributes:
        point: From which they are displaced.
        frame: In which their displacements are written.
        bodies: The particles, each on a point that nothing hangs on.
        speeds: Of the displacements, ascending.
    """

    point: int
    frame: int
    bodies: tuple[int, ...]
    speeds: tuple[int, ...]


class MassMatrixColumnStructure:
    """Columns of the mass matrix over the speeds of a mechanism.

    Attributes:
        particle_groups: Particles that are moved together; no column moves them one by one.
        dependencies: Of each speed.
        branches: Of each speed; None: it moves no rigid whole.
        composites: Of all branches, each after its pieces.
        numbers: Of each speed, the number of its composite; -1: none.
        rows: Of each speed, the rows that its column gives.
    """

    def __init__(self, mechanism: Mechanism, frames: FrameOrPointTree, points: FrameOrPointTree) -> None:
        self._mechanism, self._frames, self._points = mechanism, frames, points
        speeds = range(len(mechanism.u))
        self._frames_of_position = [self._frames_of([point]) for point in range(len(points.parents))]
        self.dependencies = [self._find_dependencies(speed) for speed in speeds]
        self._moved_bodies = [frozenset(dependencies.bodies) for dependencies in self.dependencies]
        self.branches = [self._find_branch(speed) for speed in speeds]
        self._drop_crossing_branches()
        self.particle_groups = self._find_particle_groups()
        self._grouped_bodies = {k for group in self.particle_groups for k in group.bodies}
        self._grouped_points = {mechanism.bodies[k].masscenter for k in self._grouped_bodies}
        self.composites = self._composites()
        composite_numbers = {(c.bodies, c.point): k for k, c in enumerate(self.composites)}
        self.numbers = [
            composite_numbers[bodies, branch.point] if branch else -1
            for bodies, branch in zip(self._moved_bodies, self.branches, strict=True)
        ]
        self.rows = [
            [i for i in speeds if branch is None or self._moves_composite_of(i, j)]
            for j, branch in enumerate(self.branches)
        ]

    def paths(self, speed: int) -> tuple[Sequence[int], Sequence[int]]:
        """Return frames and points along which the forces of a column go back to the origin, those above first."""
        branch, dependencies = self.branches[speed], self.dependencies[speed]
        if branch is None:
            single_points = [point for point in dependencies.point_path if point not in self._grouped_points]
            return dependencies.frame_path, single_points
        points = self._points.with_ancestors([branch.point])
        return self._frames.with_ancestors([branch.frame, *self._frames_of(points)]), points

    def single_bodies(self, speed: int) -> list[int]:
        """Return the bodies that a column moves one by one."""
        return [k for k in self.dependencies[speed].bodies if k not in self._grouped_bodies]

    def groups_moved(self, speed: int) -> list[int]:
        """Return the numbers of the groups of particles that a column moves; none where it moves one rigid whole."""
        if self.branches[speed] is not None:
            return []
        moved = self._moved_bodies[speed]
        return [number for number, group in enumerate(self.particle_groups) if not moved.isdisjoint(group.bodies)]

    def _find_particle_groups(self) -> list[DisplacedParticleGroup]:
        """Return the groups of at least two particles that some column does not move with a rigid whole."""
        bodies, points = self._mechanism.bodies, self._points
        dependencies = zip(self.dependencies, self.branches, strict=True)
        moved_singly = {k for moved, branch in dependencies if branch is None for k in moved.bodies}
        inner = set(points.parents)
        used = Counter(body.masscenter for body in bodies)
        members: dict[tuple[int, int], list[int]] = {}
        for k, body in enumerate(bodies):
            terms, point = points.terms[body.masscenter], body.masscenter
            is_leaf = point not in inner and used[point] == 1 and points.parents[point] >= 0
            if body.inertia is None and is_leaf and len(terms) == 1 and k in moved_singly:
                members.setdefault((points.parents[point], terms[0].frame), []).append(k)
        return [
            DisplacedParticleGroup(
                point,
                frame,
                tuple(group),
                tuple(sorted({speed for k in group for speed in points.terms[bodies[k].masscenter][0].speeds})),
            )
            for (point, frame), group in members.items()
            if len(group) > 1
        ]

    def _frames_of(self, points: Iterable[int]) -> list[int]:
        """Return the frames in which the positions of points are written."""
        points_with_position = [point for point in points if not self._has_given_velocity(point)]
        return [term.frame for point in points_with_position for term in self._points.terms[point]]

    def _has_given_velocity(self, point: int) -> bool:
        """Return True for a point whose velocity is given, and not the position from the point above."""
        return self._mechanism.points[point].velocity is not None

    def _find_dependencies(self, speed: int) -> NodesMovedBySpeed:
        """Return frames, points and bodies that a speed moves, with the paths of these bodies."""
        frames, points, bodies = self._frames, self._points, self._mechanism.bodies
        turned_frames = set(frames.nodes_of_speed[speed])
        for node in frames.ordered_nodes:
            if frames.parents[node] in turned_frames:
                turned_frames.add(node)
        moved_points = set(points.nodes_of_speed[speed])
        for node in points.ordered_nodes:
            if points.parents[node] in moved_points or not turned_frames.isdisjoint(self._frames_of_position[node]):
                moved_points.add(node)
        moved_bodies = [
            k
            for k, body in enumerate(bodies)
            if body.masscenter in moved_points or (body.inertia is not None and body.frame in turned_frames)
        ]
        point_path = points.with_ancestors(bodies[k].masscenter for k in moved_bodies)
        frames_of_bodies = [bodies[k].frame for k in moved_bodies if bodies[k].inertia is not None]
        frame_path = frames.with_ancestors([*frames_of_bodies, *self._frames_of(point_path)])
        return NodesMovedBySpeed(
            frozenset(turned_frames), frozenset(moved_points), tuple(moved_bodies), tuple(frame_path), tuple(point_path)
        )

    def _find_branch(self, speed: int) -> ResultantLocation | None:
        """Return where the resultant acts; None if a speed does not move one rigid whole."""
        dependencies = self.dependencies[speed]
        turning_frames = self._frames.nodes_with_speed(speed, dependencies.frame_path)
        shifting_points = self._points.nodes_with_speed(speed, dependencies.point_path)
        if len(turning_frames) + len(shifting_points) != 1:
            return None
        return (
            self._find_turning_branch(turning_frames[0], dependencies)
            if turning_frames
            else self._find_shifting_branch(shifting_points[0], dependencies)
        )

    def _find_turning_branch(self, node: int, dependencies: NodesMovedBySpeed) -> ResultantLocation | None:
        """Return the branch of all that turns with a frame about one point."""
        roots: set[int] = set()
        visited: set[int] = set()
        for k in dependencies.bodies:
            body = self._mechanism.bodies[k]
            if body.inertia is not None and body.frame not in dependencies.turned_frames:
                return None
            point = body.masscenter
            while point in dependencies.points and point not in visited:
                if self._has_given_velocity(point) or any(
                    term.frame not in dependencies.turned_frames for term in self._points.terms[point]
                ):
                    return None
                visited.add(point)
                point = self._points.parents[point]
            if point not in dependencies.points:
                roots.add(point)
        return ResultantLocation(node, turns=True, point=roots.pop(), frame=node) if len(roots) == 1 else None

    def _find_shifting_branch(self, node: int, dependencies: NodesMovedBySpeed) -> ResultantLocation | None:
        """Return the branch of all that is shifted with a point."""
        points_between: set[int] = set()
        for k in dependencies.bodies:
            path = self._points.ancestors_between(self._mechanism.bodies[k].masscenter, node)
            if path is None or any(self._has_given_velocity(point) for point in path):
                return None
            points_between.update(path)
        frames = self._frames_of(points_between)
        return ResultantLocation(
            node, turns=False, point=node, frame=self._find_common_ancestor(frames) if frames else -1
        )

    def _find_common_ancestor(self, frames: Sequence[int]) -> int:
        """Return the last frame that is above all of some frames, or one of them."""
        shared = set.intersection(*(set(self._frames.with_ancestors([frame])) for frame in frames))
        return max(shared, key=lambda frame: len(self._frames.with_ancestors([frame])))

    def _moves_composite_of(self, i: int, j: int) -> bool:
        """Return whether speed i moves the rigid whole of speed j, so that j's resultant gives M_ij."""
        first, second = self.branches[i], self.branches[j]
        if first is None or second is None or not self._moved_bodies[i] >= self._moved_bodies[j]:
            return False
        point_is_moved = second.point == first.point or second.point in self.dependencies[i].points
        return point_is_moved and (
            not first.turns or second.frame < 0 or second.frame in self.dependencies[i].turned_frames
        )

    def _drop_crossing_branches(self) -> None:
        """Make no branch of speeds that move some of the same bodies, neither all that the other one moves."""
        crossing = {
            speed
            for j, branch in enumerate(self.branches)
            if branch
            for i in range(j)
            if self.branches[i]
            and not self._moved_bodies[i].isdisjoint(self._moved_bodies[j])
            and not (self._moves_composite_of(i, j) or self._moves_composite_of(j, i))
            for speed in (i, j)
        }
        for speed in crossing:
            self.branches[speed] = None

    def _composites(self) -> list[CompositeBody]:
        """Return the wholes of all branches, smaller ones first, each made of the largest ones before it."""
        branches = zip(self._moved_bodies, self.branches, strict=True)
        keys = {(bodies, branch.point) for bodies, branch in branches if branch}

        def depth(point: int) -> int:
            return len(self._points.with_ancestors([point]))

        composites: list[CompositeBody] = []
        for bodies, point in sorted(keys, key=lambda key: (len(key[0]), -depth(key[1]), sorted(key[0]), key[1])):
            remaining_bodies, pieces = set(bodies), []
            for k in reversed(range(len(composites))):
                path = (
                    self._points.ancestors_between(composites[k].point, point)
                    if composites[k].bodies <= remaining_bodies
                    else None
                )
                if path is not None and not any(self._has_given_velocity(node) for node in path):
                    pieces.append((-1 - k, tuple(path)))
                    remaining_bodies -= composites[k].bodies
            for k in sorted(remaining_bodies):
                path = self._points.ancestors_between(self._mechanism.bodies[k].masscenter, point)
                assert path is not None, "a branch's bodies hang below its point"
                pieces.append((k, tuple(path)))
            composites.append(CompositeBody(bodies, point, tuple(pieces)))
        return composites
