"""A tree of rigid links, each with one speed, for the articulated-body algorithm of ``articulated.c``.

A long chain's mass matrix is ill conditioned: of 300 links, M u' = f loses seven digits of u'. Link after link nothing
is lost, and the work grows with the number of links instead of its cube. A link is what a speed moves and no speed
behind it; several speeds of one body make links without mass.

Source: R. Featherstone, Rigid Body Dynamics Algorithms, Springer 2008, ch. 7.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from mb2fmu.mechanics.mechanism import Mechanism
from mb2fmu.mechanics.mechanism.records.mechanism_records import ForceLoad, PathwayLoad, TorqueActuatorLoad, TorqueLoad
from mb2fmu.validation.compiled.mass_matrix_column_structure import FrameOrPointTree, MassMatrixColumnStructure

MIN_SPEEDS_FOR_TREE = 24
"""Speeds from which on it is worth it: below that M u' = f is faster, and loses no digits to speak of."""


class _NoArticulatedTreeError(Exception):
    """The mechanism is no tree of rigid links with one speed each."""


@dataclass(frozen=True, slots=True)
class LinkMemberPath:
    """A body, point or frame on a link: its number, the speed of the link, and the points on the path to the link's."""

    node: int
    speed: int
    path: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SingleSpeedLinkTree:
    """Tree of links with one speed each: order, parents, and the paths between their points.

    Attributes:
        order: Speeds, those nearer to the ground first.
        parents: Of each speed, the speed of the link before; -1: the ground.
        link_offset_paths: Of each speed, the points on the path between its own point and that of the link before.
        signs: Of each speed: 1: that path leads from the link before to it; -1: the other way.
        bodies: With the paths from the links' points to their mass centres.
        points: On which forces act, or inertia.
        frames: On which torques act, or inertia.
    """

    order: tuple[int, ...]
    parents: tuple[int, ...]
    link_offset_paths: tuple[tuple[int, ...], ...]
    signs: tuple[int, ...]
    bodies: tuple[LinkMemberPath, ...]
    points: tuple[LinkMemberPath, ...]
    frames: tuple[LinkMemberPath, ...]


def find_articulated_tree(
    mechanism: Mechanism, columns: MassMatrixColumnStructure, frames: FrameOrPointTree, points: FrameOrPointTree
) -> SingleSpeedLinkTree | None:
    """Return the tree of a mechanism; None if it is none, has few speeds, or constraints.

    Args:
        mechanism: With bodies.
        columns: What each of its speeds moves.
        frames: Its frames.
        points: Its points.
    """
    free = not mechanism.velocity_constraints and not mechanism.u_auxiliary
    if len(mechanism.u) < MIN_SPEEDS_FOR_TREE or not free or not all(columns.branches):
        return None
    try:
        return _LinkTreeFinder(mechanism, columns, frames, points).form_tree()
    except _NoArticulatedTreeError:
        return None


class _LinkTreeFinder:
    """Finds which link each node is on."""

    def __init__(
        self,
        mechanism: Mechanism,
        columns: MassMatrixColumnStructure,
        frames: FrameOrPointTree,
        points: FrameOrPointTree,
    ) -> None:
        self._mechanism, self._columns, self._frames, self._points = mechanism, columns, frames, points
        branches = [branch for branch in columns.branches if branch is not None]
        self._branches, speeds = branches, range(len(branches))
        depth = [len(points.with_ancestors([branch.point])) for branch in branches]
        self._order = sorted(
            speeds, key=lambda j: (-len(columns.dependencies[j].bodies), depth[j], branches[j].turns, j)
        )
        self._chains = self._list_chains([columns.dependencies[j].bodies for j in speeds], range(len(mechanism.bodies)))
        self._parents = [-1] * len(branches)
        for chain in self._chains.values():
            for before, after in itertools.pairwise(chain):
                if self._parents[after] not in (-1, before):
                    raise _NoArticulatedTreeError
                self._parents[after] = before
        if any(self._parents[chain[0]] != -1 for chain in self._chains.values() if chain):
            raise _NoArticulatedTreeError
        self._lineages = {self._list_speeds_to_ground(j): j for j in speeds}

    def form_tree(self) -> SingleSpeedLinkTree:
        """Return the tree."""
        m = self._mechanism
        bodies = tuple(
            self._place_on_link(body.masscenter, self._chains[k][-1], number=k)
            for k, body in enumerate(m.bodies)
            if self._chains[k]
        )
        for place in bodies:
            body = m.bodies[place.node]
            if body.inertia is not None and self._list_speeds_turning_frame(body.frame) != self._list_turning_speeds(
                place.speed
            ):
                raise _NoArticulatedTreeError
        shifts, signs = zip(*(self._find_offset_path(j) for j in range(len(self._branches))), strict=True)
        return SingleSpeedLinkTree(
            tuple(self._order), tuple(self._parents), shifts, signs, bodies,
            tuple(self._iterate_point_placements()), tuple(self._iterate_frame_placements()),
        )  # fmt: skip

    def _list_chains(self, moved_bodies: list[tuple[int, ...]], bodies: Iterable[int]) -> dict[int, list[int]]:
        """Return for each body the speeds that move it, those nearer to the ground first."""
        chains: dict[int, list[int]] = {body: [] for body in bodies}
        for j in self._order:
            for body in moved_bodies[j]:
                chains[body].append(j)
        return chains

    def _list_speeds_to_ground(self, speed: int) -> frozenset[int]:
        """Return a speed and those of all links before."""
        speeds = []
        while speed >= 0:
            speeds.append(speed)
            speed = self._parents[speed]
        return frozenset(speeds)

    def _list_turning_speeds(self, speed: int) -> frozenset[int]:
        """Return the speeds that turn a link."""
        return frozenset(j for j in self._list_speeds_to_ground(speed) if self._branches[j].turns)

    def _list_speeds_turning_frame(self, frame: int) -> frozenset[int]:
        """Return the speeds that turn a frame."""
        return frozenset(
            j for j, dependencies in enumerate(self._columns.dependencies) if frame in dependencies.turned_frames
        )

    def _place_on_link(self, point: int, speed: int, number: int | None = None) -> LinkMemberPath:
        """Return the place of a point that goes with a link as one rigid whole."""
        path = self._points.ancestors_between(point, self._branches[speed].point)
        if path is None or not self._is_rigid(path, speed):
            raise _NoArticulatedTreeError
        return LinkMemberPath(point if number is None else number, speed, tuple(path))

    def _is_rigid(self, path: list[int], speed: int) -> bool:
        """Return whether the points of a path are fixed to each other on a link: its frames are, and nothing moves."""
        turning = self._list_turning_speeds(speed)
        terms = [term for point in path for term in self._points.terms[point]]
        has_given_velocity = any(self._mechanism.points[point].velocity is not None for point in path)
        return not has_given_velocity and all(
            not term.speeds and self._list_speeds_turning_frame(term.frame) == turning for term in terms
        )

    def _is_plain(self, node: int, *, turns: bool) -> bool:
        """Return whether a frame turns, or a point moves, by speeds as the links before it do, and by nothing else."""
        nodes = self._frames if turns else self._points
        return all(
            self._branches[speed].turns == turns and self._branches[speed].node == ancestor
            for ancestor in nodes.with_ancestors([node])
            for term in nodes.terms[ancestor]
            for speed in term.speeds
        )

    def _find_offset_path(self, speed: int) -> tuple[tuple[int, ...], int]:
        """Return the path between a link's point and that of the link before, and its sign."""
        parent, branches = self._parents[speed], self._branches
        if parent < 0 or branches[speed].point == branches[parent].point:
            return (), 1
        for start, end, sign in ((speed, parent, 1), (parent, speed, -1)):
            path = self._points.ancestors_between(branches[start].point, branches[end].point)
            if path is not None and not any(self._mechanism.points[point].velocity is not None for point in path):
                return tuple(path), sign
        raise _NoArticulatedTreeError

    def _iterate_point_placements(self) -> Iterable[LinkMemberPath]:
        """Yield the places of all points on which forces act, or inertia."""
        loads = self._mechanism.loads
        nodes = [load.point for load in loads if isinstance(load, ForceLoad)]
        nodes += [point for load in loads if isinstance(load, PathwayLoad) for point in load.points]
        nodes += [body.masscenter for body in self._mechanism.bodies]
        for node in dict.fromkeys(nodes):
            moving_speeds = frozenset(
                j for j, dependencies in enumerate(self._columns.dependencies) if node in dependencies.points
            )
            # A point about which a whole turns is not moved by that speed, and yet on its link or on the one before.
            if not self._is_plain(node, turns=False) or (moving_speeds and moving_speeds not in self._lineages):
                raise _NoArticulatedTreeError
            if moving_speeds:
                yield self._place_on_link(node, self._lineages[moving_speeds])

    def _iterate_frame_placements(self) -> Iterable[LinkMemberPath]:
        """Yield the places of all frames on which torques act, or inertia."""
        links = {self._list_turning_speeds(j): j for j in reversed(self._order)}
        nodes = [body.frame for body in self._mechanism.bodies if body.inertia is not None]
        for load in self._mechanism.loads:
            if isinstance(load, TorqueLoad):
                nodes.append(load.frame)
            elif isinstance(load, TorqueActuatorLoad):
                nodes += [frame for frame in (load.frame, load.reaction) if frame >= 0]
        for node in dict.fromkeys(nodes):
            turning_speeds = self._list_speeds_turning_frame(node)
            if not self._is_plain(node, turns=True) or (turning_speeds and turning_speeds not in links):
                raise _NoArticulatedTreeError
            if turning_speeds:
                yield LinkMemberPath(node, links[turning_speeds])
