"""Drawing: a scene with numbers: solids in poses, poses over time, lines, traces, arrows, and the viewpoint.

What does not move relative to a body is fixed in that body's pose once, so that only poses travel with time.

Where contacts and latches are, and along which directions they push: found in the motion of all points.

A model gives the gap g of a contact, and no place. Of a point P that moves with the coordinates q by dP/dq, the unit
vector n with n · dP/dq = dg/dq is the direction in which a force at P drives the gap up; where one exists at all
states that are tried, the contact is drawn there. Else two points P and Q are looked for, with n · (dP/dq − dQ/dq).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler import evaluation
from mb2fmu.visualization.scene.drawing_records import (
    WORLD_POSE,
    CameraTarget,
    ContactForceLocation,
    Drawing,
    DrawnArrow,
    DrawnLine,
    DrawnSolid,
    DrawnTrace,
    PoseAnchorPoint,
    PoseSeries,
)
from mb2fmu.visualization.scene.mechanism_scene import Scene, SceneBodyInertia, SceneLine
from mb2fmu.visualization.scene.scene_pose_trajectories import (
    PoseTrajectory,
    StateTrajectory,
    evaluate_scene_poses,
    make_single_instant_trajectory,
)
from mb2fmu.visualization.scene.scene_rotation_quaternions import (
    Quaternion,
    align_quaternion_signs,
    quaternions_from_matrices,
    rotate_vector,
    rotation_from_y_axis,
)
from mb2fmu.visualization.scene.triangle_meshes import TriangleMesh

Floats = npt.NDArray[np.float64]

_SEARCH_INSTANTS = 4  # instants at which places are looked for
_MAX_DIRECTION_ROWS = 500  # at which directions are computed; between them they turn evenly
_MAX_PAIRED_POINTS = 40  # points of which pairs are tried
_RELATIVE_DIFFERENCE_STEP = 1e-5  # of a state's magnitude, for differences
_SLOPE_TOLERANCE = 1e-4  # of dg/dq
_UNIT_LENGTH_TOLERANCE = 1e-2  # that n may be longer or shorter than 1: gaps that are no lengths have no place


BODY_COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#3d9a94", "#c9a227", "#9d755d")
NEUTRAL_COLOUR, SPRING_COLOUR, FORCE_COLOUR, TORQUE_COLOUR = "#8a94a3", "#c4620f", "#d62728", "#9467bd"
TRAVEL_RATIO = 5.0
"""Times its extent that a mechanism goes if it travels."""
_RIGIDITY_TOLERANCE = 1e-7  # of the extent: what moves less than this relative to a body is fixed in it


@dataclass(frozen=True, slots=True)
class ContactArrow:
    """An arrow of a touch.

    Attributes:
        touch: Index among the scene's touches.
        gap: Which of its gaps.
        point: Index among the scene's points.
        directions: Unit vectors along which a positive effort acts on the point, shape (n_t, 3).
    """

    touch: int
    gap: int
    point: int
    directions: Floats


def locate_scene_contacts(scene: Scene, motion: StateTrajectory) -> tuple[ContactArrow, ...]:
    """Return where the touches of a scene are along a motion; nothing for those that are at none of its points."""
    wanted = [
        (t, k, gap)
        for t, touch in enumerate(scene.touches)
        for k, gap in enumerate(touch.gaps)
        if touch.units[k] != "N.m"  # torques are no arrows at a point, even where a lever of 1 m would fit
    ]
    if not wanted or not scene.program.entries["points"].results:
        return ()
    n = len(motion.time)
    tried = np.unique(np.linspace(0, n - 1, _SEARCH_INSTANTS).round().astype(np.intp))
    points, gaps = _differentiate_points_and_gaps(scene, motion, tried)
    at = evaluation.make_evaluator(scene.program, "points")
    first = motion.at([0])
    where = np.reshape(at(first.time[0], first.states[0], first.inputs[0], first.parameters), (-1, 3))
    chosen = [(t, k, gap, _find_contact_points(points, gaps[:, :, gap], where)) for t, k, gap in wanted]
    if not any(pair for *_, pair in chosen):
        return ()
    rows = np.unique(np.linspace(0, n - 1, min(n, _MAX_DIRECTION_ROWS)).round().astype(np.intp))
    points, gaps = _differentiate_points_and_gaps(scene, motion, rows)
    return tuple(
        ContactArrow(
            t,
            k,
            point,
            sense
            * _normalize_vectors(
                _interpolate_directions(motion.time, rows, _contact_normals(points, gaps[:, :, gap], pair))
            ),
        )
        for t, k, gap, pair in chosen
        for point, sense in zip(pair, (1.0, -1.0), strict=False)
    )


def _differentiate_points_and_gaps(
    scene: Scene, motion: StateTrajectory, rows: npt.NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """Return dP/dx, shape (n_rows, n_x, n_points, 3), and dg/dx, shape (n_rows, n_x, n_gaps), by differences."""
    here = motion.at(rows)
    functions = [evaluation.make_evaluator(scene.program, entry) for entry in ("points", "gaps")]
    scale = np.maximum(np.abs(motion.states).max(axis=0), np.ptp(motion.states, axis=0))
    steps = _RELATIVE_DIFFERENCE_STEP * np.where(scale > 0.0, scale, 1.0)
    found: list[list[Floats]] = [[], []]
    for k, step in enumerate(steps):
        sides = []
        for sign in (1.0, -1.0):
            states = here.states.copy()
            states[:, k] += sign * step
            there = replace(here, states=states)
            sides.append([f(there.time, there.states, there.inputs, there.parameters) for f in functions])
        for each, high, low in zip(found, *sides, strict=True):
            each.append((np.asarray(high) - np.asarray(low)) / (2.0 * step))
    points, gaps = (np.nan_to_num(np.stack(each, axis=1)) for each in found)
    return points.reshape(*points.shape[:2], -1, 3), gaps


def _find_contact_points(points: Floats, gaps: Floats, where: Floats) -> tuple[int, ...]:
    """Return the point, or both points, whose motion is the gap's; none if there are none.

    Of several points that move alike the one farthest in is taken: what touches is there and not in the middle.

    Args:
        points: dP/dx, shape (n_rows, n_x, n_points, 3).
        gaps: dg/dx of one gap, shape (n_rows, n_x).
        where: Places of the points at the first row, shape (n_points, 3).
    """
    if not np.abs(gaps).max():
        return ()
    count = points.shape[2]
    single = [(p,) for p in range(count) if _matches_gap_slopes(points[:, :, p], gaps)]
    if single:
        inward = [float(where[p] @ _contact_normals(points, gaps, (p,))[0]) for (p,) in single]
        return single[int(np.argmin(inward))]
    pairs = combinations(range(min(count, _MAX_PAIRED_POINTS)), 2)
    both = [pair for pair in pairs if _matches_gap_slopes(points[:, :, pair[0]] - points[:, :, pair[1]], gaps)]
    return min(both, key=lambda pair: float(np.linalg.norm(where[pair[0]] - where[pair[1]])), default=())


def _matches_gap_slopes(moves: Floats, gaps: Floats) -> bool:
    """Return whether one unit vector at each row makes the gap's slopes of a point's."""
    for slope, wanted in zip(moves, gaps, strict=True):
        n = np.linalg.lstsq(slope, wanted, rcond=None)[0]
        if (
            np.abs(slope @ n - wanted).max() > _SLOPE_TOLERANCE * np.abs(wanted).max()
            or abs(np.linalg.norm(n) - 1.0) > _UNIT_LENGTH_TOLERANCE
        ):
            return False
    return True


def _contact_normals(points: Floats, gaps: Floats, pair: tuple[int, ...]) -> Floats:
    """Return n at each row, shape (n_rows, 3)."""
    if not pair:
        return np.zeros((len(gaps), 3))
    moves = points[:, :, pair[0]] - (points[:, :, pair[1]] if len(pair) > 1 else 0.0)
    return np.array([np.linalg.lstsq(a, b, rcond=None)[0] for a, b in zip(moves, gaps, strict=True)])


def _interpolate_directions(time: Floats, rows: npt.NDArray[np.intp], directions: Floats) -> Floats:
    """Return directions at all times from those at some rows."""
    return np.stack([np.interp(time, time[rows], column) for column in directions.T], axis=1)


def _normalize_vectors(vectors: Floats) -> Floats:
    """Return vectors of length one; zero stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0.0, lengths, 1.0))


def draw_motion(scene: Scene, motion: StateTrajectory, overlay: StateTrajectory | None = None) -> Drawing:
    """Evaluate a scene along a motion.

    Args:
        scene: What there is.
        motion: How it moves.
        overlay: The same mechanism, as the reference moves.
    """
    artist = _DrawingBuilder(scene, evaluate_scene_poses(scene, motion))
    drawing = artist.drawing(locate_scene_contacts(scene, motion))
    if overlay is None:
        return drawing
    return replace(drawing, reference_poses=artist.poses(evaluate_scene_poses(scene, overlay)))


def draw_start_position(scene: Scene) -> Drawing:
    """Return the mechanism at its start values."""
    return draw_motion(scene, make_single_instant_trajectory(scene))


class _DrawingBuilder:
    """Fixes drawn parts in poses."""

    def __init__(self, scene: Scene, where: PoseTrajectory) -> None:
        self.scene = scene
        self.where = where
        points = where.points.reshape(-1, 3)
        low, high = points.min(axis=0), points.max(axis=0)
        self.extent = float(np.linalg.norm(high - low))
        self.keys: list[tuple[int, int]] = []  # (point, frame) of each pose
        self.bodies = tuple(scene.bodies)
        for body in self.bodies:
            self._pose(body.point, body.frame)
        self.unit = self._unit()
        self.named_bodies = {body.name for body in self.bodies}
        named = [*dict.fromkeys([body.name for body in self.bodies] + _dressed_bodies(scene))]
        self.colors = {name: BODY_COLOURS[i % len(BODY_COLOURS)] for i, name in enumerate(named)}
        self.scales = self._arrow_scales()

    def drawing(self, touching: Sequence[ContactArrow] = ()) -> Drawing:
        """Return solids and lines of all bodies in drawing order, and the poses that move them.

        Args:
            touching: Where contacts and latches push.
        """
        solids, lines = self._solids_and_lines()
        traces, arrows = self._draw_traces_and_arrows()
        pushed = tuple(ContactForceLocation(p.touch, p.gap, self._anchor(p.point), p.directions) for p in touching)
        followed = tuple(CameraTarget(b.name, self.keys.index((b.point, b.frame))) for b in self.bodies)
        poses = self.poses(self.where)
        near = _moving_parts_extent(poses, solids, self.scene.meshes)
        standing = np.array([s.anchor.local for s in solids if s.anchor.pose == WORLD_POSE and s.role == "shape"])
        moving = np.array([compute_anchor_positions(poses, s.anchor)[0] for s in solids if s.anchor.pose != WORLD_POSE])
        up, toward, flat = choose_viewpoint(
            self.where, self._mechanism(), moving.reshape(-1, 3), standing.reshape(-1, 3)
        )
        right = np.cross(up, toward)
        right = right / np.linalg.norm(right)
        centre, span = self._box(poses, solids, np.stack([right, np.cross(toward, right), toward]))
        return Drawing(
            name=self.scene.name,
            poses=poses,
            solids=tuple(solids),
            lines=tuple(lines),
            traces=traces,
            arrows=arrows,
            bodies=followed,
            meshes=self.scene.meshes,
            notes=self.scene.notes,
            unit=self.unit,
            centre=centre,
            span=_to_triple(span),
            up=up,
            view_direction=toward,
            flat=flat,
            near=near,
            travels_far=near > 0
            and not is_motion_of_spheres_only(solids)
            and _motion_extent(poses) > TRAVEL_RATIO * near,
            floor=float((self.where.points @ up).min()),
            keys=tuple(self.keys),
            arrow_scales=tuple(self.scales),
            touches=self.scene.touches,
            pushed=pushed,
        )

    def _draw_traces_and_arrows(self) -> tuple[tuple[DrawnTrace, ...], tuple[DrawnArrow, ...]]:
        """Return the paths of points and the arrows of forces and torques that the scene requests."""
        traces = tuple(
            DrawnTrace(t.name, self._anchor(t.point), t.color or BODY_COLOURS[(i + 4) % len(BODY_COLOURS)])
            for i, t in enumerate(self.scene.traces)
        )
        arrows = tuple(
            DrawnArrow(
                a.name,
                self._anchor(a.point),
                a.vector,
                a.torque,
                a.color or (TORQUE_COLOUR if a.torque else FORCE_COLOUR),
            )
            for a in self.scene.arrows
        )
        return traces, arrows

    def _solids_and_lines(self) -> tuple[list[DrawnSolid], list[DrawnLine]]:
        """Return shapes, bodies and rods as solids, and the links that change their length as lines."""
        dressed = set(_dressed_bodies(self.scene))
        solids = [*self._shapes(), *self._bendings(), *self._bodies(dressed)]
        lines: list[DrawnLine] = []
        dressed_frames = {body.frame for body in self.bodies if body.name in dressed and body.frame}
        dressed_frames |= {shape.frame for shape in self.scene.shapes if shape.body not in self.named_bodies}
        for link in self.scene.links:
            if link.kind == "rod" and link.frame in dressed_frames:
                continue
            solid = self._rod(link) if link.kind == "rod" else None
            if solid is not None:
                solids.append(solid)
            elif link.kind != "rod" or self._length(link) > _RIGIDITY_TOLERANCE * max(self.extent, 1e-12):
                lines.append(self._line(link))
        return [*solids, *self._joints()], lines

    def _mechanism(self) -> list[int]:
        """Return the points of the mechanism itself (not of shapes), by which its plane is found."""
        own = {body.point for body in self.bodies} | {joint.point for joint in self.scene.joints}
        own |= {trace.point for trace in self.scene.traces} | {arrow.point for arrow in self.scene.arrows}
        worn = {shape.point for shape in self.scene.shapes} - own
        points = [i for i in range(self.where.points.shape[1]) if i not in worn]
        return points if len(points) > 2 else list(range(self.where.points.shape[1]))

    def poses(self, where: PoseTrajectory) -> PoseSeries:
        """Return the poses found so far, wherever the mechanism goes."""
        points = [point for point, _ in self.keys]
        frames = [frame for _, frame in self.keys]
        turned = {
            f: align_quaternion_signs(quaternions_from_matrices(where.rotations[:, f])) for f in dict.fromkeys(frames)
        }
        n = len(where.time)
        turns = np.stack([turned[f] for f in frames], axis=1) if frames else np.zeros((n, 0, 4))
        scales = np.array(self.scales)[:, None] if self.scales else np.zeros((0, 1))
        return PoseSeries(
            time=where.time, positions=where.points[:, points], turns=turns, vectors=where.vectors * scales
        )

    def _pose(self, point: int, frame: int) -> int:
        """Return the number of the pose of a point and frame, a new one if there is none yet."""
        if (point, frame) not in self.keys:
            self.keys.append((point, frame))
        return self.keys.index((point, frame))

    def _anchor(self, point: int, frame: int | None = None) -> PoseAnchorPoint:
        """Return a pose in which the point is fixed; of ``frame`` if that matters; a new one if there is none."""
        track = self.where.points[:, point]
        close = _RIGIDITY_TOLERANCE * max(self.extent, 1e-12)
        if frame in (None, 0) and np.abs(track - track[0]).max() <= close:
            return PoseAnchorPoint(WORLD_POSE, _to_triple(track[0]))
        for index in self._near(track, close):
            at, turning = self.keys[index]
            if frame is not None and turning != frame:
                continue
            R = self.where.rotations[:, turning]
            local = np.einsum("nji,nj->ni", R, track - self.where.points[:, at])
            if np.abs(local - local[0]).max() <= close:
                return PoseAnchorPoint(index, _to_triple(local[0]))
        return PoseAnchorPoint(self._pose(point, frame or 0), (0.0, 0.0, 0.0))

    def _near(self, track: Floats, close: float) -> list[int]:
        """Return poses from whose point a track keeps its distance, judged at three instants."""
        instants = np.array([0, len(track) // 2, len(track) - 1])
        others = self.where.points[instants][:, [point for point, _ in self.keys]]
        distances = np.linalg.norm(track[instants][:, None] - others, axis=2)
        return np.flatnonzero(np.ptp(distances, axis=0) <= 2 * close).tolist() if self.keys else []

    def _shapes(self) -> Iterator[DrawnSolid]:
        """Draw the shapes that the model declares, each in its own colour or its body's."""
        for shape in self.scene.shapes:
            anchor = self._anchor(shape.point, shape.frame)
            sizes = tuple(abs(float(self.where.sizes[i])) for i in shape.sizes)
            turn = rotation_from_y_axis(self._vector(shape.along))
            color = shape.color or (
                self.colors[shape.body] if shape.frame or shape.body in self.named_bodies else NEUTRAL_COLOUR
            )
            place = PoseAnchorPoint(anchor.pose, _to_triple(np.array(anchor.local) + self._vector(shape.offset)))
            yield DrawnSolid(shape.kind, sizes, place, turn, color, shape.opacity, "shape", shape.mesh)

    def _bendings(self) -> Iterator[DrawnSolid]:
        """Draw the surfaces of flexible bodies, each with the poses that are its modal coordinates away."""
        for bending in self.scene.bendings:
            pose = self._pose(bending.point, bending.frame)
            yield DrawnSolid(
                kind="mesh",
                sizes=(1.0,),
                anchor=PoseAnchorPoint(pose, (0.0, 0.0, 0.0)),
                turn=(1.0, 0.0, 0.0, 0.0),
                color=bending.color or self.colors[bending.body],
                opacity=bending.opacity,
                role="shape",
                mesh=bending.mesh,
                modes=tuple(self._pose(carrier, bending.frame) for carrier in bending.carriers),
                bend=bending.scale,
            )

    def _bodies(self, dressed: set[str]) -> Iterator[DrawnSolid]:
        """Draw mass centre and inertia of each body that has no shape."""
        for index, body in enumerate(self.bodies):
            if body.name in dressed:
                continue
            color = self.colors[body.name]
            anchor = PoseAnchorPoint(self.keys.index((body.point, body.frame)), (0.0, 0.0, 0.0))
            axes = self._axes(body)
            if axes is not None:
                half, turn = axes
                half = np.clip(half, 0.8 * self.unit, max(self.extent, 10 * self.unit))
                yield DrawnSolid("ellipsoid", _to_triple(half), anchor, turn, color, 0.25, "inertia")
            size = 1.3 * self.unit if axes is not None else 2.2 * self.unit
            yield DrawnSolid("sphere", (size,), anchor, (1.0, 0.0, 0.0, 0.0), color, 1.0, "centre")
            assert index >= 0

    def _axes(self, body: SceneBodyInertia) -> tuple[Floats, tuple[float, float, float, float]] | None:
        """Return half axes in m and the turn of the ellipsoid with a body's mass and inertia; None for a particle."""
        if body.inertia < 0:
            return None
        return inertia_ellipsoid(float(self.where.sizes[body.mass]), self.where.sizes[body.inertia : body.inertia + 6])

    def _rod(self, link: SceneLine) -> DrawnSolid | None:
        """Return a thin cylinder between two points of a frame; None if they are one point, or not fixed in a pose."""
        ends = [self._fixed(point, link.frame) for point in link.points]
        if ends[0] is None or ends[1] is None or ends[0].pose != ends[1].pose:
            return None
        a, b = (np.array(end.local) for end in ends if end is not None)
        length = float(np.linalg.norm(b - a))
        if length <= 1e-9 * max(self.extent, 1e-12):
            return None
        color = next((self.colors[body.name] for body in self.bodies if body.frame == link.frame), NEUTRAL_COLOUR)
        color = color if link.frame else NEUTRAL_COLOUR
        place = PoseAnchorPoint(ends[0].pose, _to_triple((a + b) / 2))
        return DrawnSolid("cylinder", (length, 0.55 * self.unit), place, rotation_from_y_axis(b - a), color, 1.0, "rod")

    def _fixed(self, point: int, frame: int) -> PoseAnchorPoint | None:
        """Return an anchor; None if it would need a second pose for a frame that has one."""
        before = len(self.keys)
        anchor = self._anchor(point, frame)
        if len(self.keys) > before and frame and any(turning == frame for _, turning in self.keys[:before]):
            del self.keys[before:]
            return None
        return anchor

    def _length(self, link: SceneLine) -> float:
        """Return the largest length of a link over time, in m."""
        track = self.where.points[:, list(link.points)]
        return float(np.linalg.norm(np.diff(track, axis=1), axis=2).sum(axis=1).max())

    def _line(self, link: SceneLine) -> DrawnLine:
        """Draw a link as a rail, a pathway between two points, or a cable over several."""
        anchors = tuple(self._anchor(point) for point in link.points)
        if link.kind != "pathway":
            return DrawnLine(anchors, NEUTRAL_COLOUR, "rail")
        return DrawnLine(anchors, SPRING_COLOUR, "pathway" if len(anchors) == 2 else "cable")

    def _joints(self) -> Iterator[DrawnSolid]:
        """Draw joints: pins along their axes, balls for all others; without declared joints, where rods meet."""
        shown = [(joint.point, joint.kind, joint.frame, self._vector(joint.axis)) for joint in self.scene.joints]
        if not shown:
            hinges = dict.fromkeys(link.points[0] for link in self.scene.links if link.kind == "rod")
            centres = {body.point for body in self.bodies}
            shown = [(point, "other", 0, np.zeros(3)) for point in hinges if point not in centres]
        for point, kind, frame, axis in shown:
            along = float(np.linalg.norm(axis)) > 0 and kind == "pin"
            anchor = self._fixed(point, frame) if along else None
            if anchor is not None:
                sizes = (3.6 * self.unit, 1.05 * self.unit)
                yield DrawnSolid("cylinder", sizes, anchor, rotation_from_y_axis(axis), NEUTRAL_COLOUR, 1.0, "joint")
            elif kind != "slide":
                yield DrawnSolid(
                    "sphere", (self.unit,), self._anchor(point), (1.0, 0.0, 0.0, 0.0), NEUTRAL_COLOUR, 1.0, "joint"
                )

    def _vector(self, first: int) -> Floats:
        """Return three numbers of the scene's sizes, from ``first`` on; shape (3,)."""
        return np.asarray(self.where.sizes[first : first + 3])

    def _unit(self) -> float:
        """Return the size unit: from typical rod lengths, else body sizes; never too small to see."""
        first = self.where.points[0]
        rods = [
            float(np.linalg.norm(first[link.points[1]] - first[link.points[0]]))
            for link in self.scene.links
            if link.kind == "rod"
        ]
        typical = [length for length in rods if length > 1e-9 * self.extent]
        if not typical:
            axes = [self._axes(body) for body in self.bodies]
            typical = [2 * float(np.mean(half)) for half, _ in (a for a in axes if a is not None)]
        if not typical:
            typical = [abs(float(self.where.sizes[s.sizes[0]])) for s in self.scene.shapes if s.kind != "mesh"]
        size = float(np.median(typical)) if typical else 0.0
        start = float(np.linalg.norm(np.ptp(first, axis=0))) if len(first) else 0.0
        whole = max(min(self.extent, 3 * start) or self.extent, size) or 1.0  # what travels is as large as at its start
        return float(np.clip(0.045 * size, 0.003 * whole, 0.02 * whole))

    def _arrow_scales(self) -> list[float]:
        """Return scales that draw the largest force and torque without an own scale as a quarter of the picture."""
        largest = {True: 0.0, False: 0.0}
        sizes = np.linalg.norm(self.where.vectors, axis=2).max(axis=0, initial=0.0)
        for arrow in self.scene.arrows:
            if arrow.scale is None:
                largest[arrow.torque] = max(largest[arrow.torque], float(sizes[arrow.vector]))
        length = 0.25 * max(self.extent, 20 * self.unit)
        return [
            arrow.scale if arrow.scale is not None else length / (largest[arrow.torque] or 1.0)
            for arrow in self.scene.arrows
        ]

    def _box(self, poses: PoseSeries, solids: Sequence[DrawnSolid], axes: Floats) -> tuple[Floats, Floats]:
        """Return middle and edges, along ``axes`` (rows), of a box around everything ever visible."""
        points = self.where.points.reshape(-1, 3) @ axes.T
        low, high = points.min(axis=0), points.max(axis=0)
        for solid in solids:
            reach = _surface_distance(solid, self.scene.meshes)
            track = compute_anchor_positions(poses, solid.anchor) @ axes.T
            low, high = np.minimum(low, track.min(axis=0) - reach), np.maximum(high, track.max(axis=0) + reach)
        return (low + high) / 2 @ axes, np.maximum(high - low, 1e-9)


def _dressed_bodies(scene: Scene) -> list[str]:
    """Return the names of bodies that have shapes or surfaces of their own, in order of declaration."""
    return [shape.body for shape in scene.shapes] + [bending.body for bending in scene.bendings]


def compute_anchor_positions(poses: PoseSeries, anchor: PoseAnchorPoint) -> Floats:
    """Return an anchor's position over time, shape (n_t, 3)."""
    local = np.array(anchor.local)
    if anchor.pose == WORLD_POSE:
        return np.broadcast_to(local, (len(poses.time), 3))
    return poses.positions[:, anchor.pose] + rotate_vector(poses.turns[:, anchor.pose], local)


def _surface_distance(solid: DrawnSolid, meshes: Sequence[TriangleMesh]) -> float:
    """Return the largest distance of a solid's surface from its anchor, in m."""
    if solid.kind == "mesh":
        return solid.sizes[0] * float(np.linalg.norm(meshes[solid.mesh].vertices, axis=1).max())
    if solid.kind == "cylinder":
        return float(np.hypot(solid.sizes[0] / 2, solid.sizes[1]))
    return float(np.linalg.norm(solid.sizes) / 2) if solid.kind == "box" else max(solid.sizes)


def _motion_extent(poses: PoseSeries) -> float:
    """Return the extent of all places that moving parts come to, m."""
    return float(np.linalg.norm(np.ptp(poses.positions, axis=(0, 1))))


def is_motion_of_spheres_only(solids: Sequence[DrawnSolid]) -> bool:
    """Return whether all that moves is a ball, or several about one point: seen from near, it shows no motion.

    Args:
        solids: All that there are.
    """
    moving = [solid for solid in solids if solid.anchor.pose != WORLD_POSE]
    return all(solid.kind == "sphere" for solid in moving) and len({solid.anchor for solid in moving}) == 1


def _moving_parts_extent(poses: PoseSeries, solids: Sequence[DrawnSolid], meshes: Sequence[TriangleMesh]) -> float:
    """Return the largest extent of the moving parts at one instant, m; 0 if nothing moves."""
    if not poses.positions.shape[1]:
        return 0.0
    extent = float(np.linalg.norm(np.ptp(poses.positions, axis=1), axis=1).max())
    reach = [
        _surface_distance(solid, meshes) + float(np.linalg.norm(solid.anchor.local))
        for solid in solids
        if solid.anchor.pose != WORLD_POSE
    ]
    return extent + 2 * max(reach, default=0.0)


def _to_triple(values: Floats) -> tuple[float, float, float]:
    """Return the first three numbers of an array."""
    return (float(values[0]), float(values[1]), float(values[2]))


_DIAGONAL_TOLERANCE = 1e-9


def inertia_ellipsoid(mass: float, inertia: Floats) -> tuple[Floats, Quaternion] | None:
    """Return half axes, and the rotation from the ellipsoid's axes to the body's frame.

    I_a = m/5 (b² + c²) about half axis a, and so on; hence a² = 5/(2 m) (I_b + I_c - I_a). A thin rod has no thickness:
    half axes may be 0, and one that no real body could have counts as 0.

    Args:
        mass: kg.
        inertia: Central: xx, yy, zz, xy, yz, xz, kg·m².

    Returns:
        None where there is no inertia, or no mass.
    """
    xx, yy, zz, xy, yz, xz = (float(c) for c in inertia)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    largest = float(np.abs(tensor).max(initial=0.0))
    if not (np.isfinite(tensor).all() and mass > 0 and largest > 0):
        return None
    if max(abs(xy), abs(yz), abs(xz)) <= _DIAGONAL_TOLERANCE * largest:
        values, axes = np.diag(tensor), np.eye(3)
    else:
        values, axes = np.linalg.eigh(tensor)
        # the same signs whatever the library chose: the largest component of each axis is positive
        axes = axes * np.sign(axes[np.argmax(np.abs(axes), axis=0), range(3)])
        axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    squares = 2.5 / mass * (values.sum() - 2 * values)
    w, x, y, z = (float(c) for c in quaternions_from_matrices(axes[None])[0])
    return np.sqrt(np.maximum(squares, 0.0)), (w, x, y, z)


_PLANARITY_TOLERANCE = 1e-6
_OCCLUSION_WIDTHS = 0.6  # widths of what moves


def choose_viewpoint(
    where: PoseTrajectory, mechanism: Sequence[int], moving: Floats, standing: Floats
) -> tuple[Floats, Floats, bool]:
    """Return up, the direction to the eye, and whether all motion is in one plane.

    Args:
        where: All points over time.
        mechanism: Indices of the points that show whether there is a plane.
        moving: Middles of what moves, at the start, shape (n, 3).
        standing: Middles of the shapes that do not, shape (m, 3).
    """
    points = where.points[:, mechanism].reshape(-1, 3)
    spread = points - points.mean(axis=0)
    values, axes = np.linalg.eigh(spread.T @ spread / len(points))
    size = float(np.sqrt(max(values[-1], 0.0)))
    flat = (
        size > 0
        and np.sqrt(max(values[0], 0.0)) <= _PLANARITY_TOLERANCE * size
        and np.sqrt(max(values[1], 0.0)) > _PLANARITY_TOLERANCE * size
    )
    normal = axes[:, 0] * np.where(axes[np.argmax(np.abs(axes[:, 0])), 0] < 0, -1.0, 1.0)
    thin = (
        size > 0 and not flat and np.sqrt(max(values[1], 0.0)) <= _PLANARITY_TOLERANCE * size
    )  # all on one straight line
    up = where.up
    if up is None:
        vertical = np.array([0.0, 0.0, 1.0])
        up = np.array([0.0, 1.0, 0.0]) if (flat and abs(normal @ vertical) > 0.99) or thin else vertical
    if flat and abs(float(normal @ up)) < 1e-6:
        return up, _orient_plane_normal(normal, up), True
    z = np.array([0.0, 0.0, 1.0])
    if thin and abs(float(z @ up)) < 1e-6:
        return up, z, True
    side = np.cross(up, [1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.cross(up, [0.0, 1.0, 0.0])
    side /= np.linalg.norm(side)
    front = np.cross(side, up)
    eye = -side if abs(up[2]) > 0.9 else side
    if _hides_moving_parts(standing, moving, eye, up):
        eye = -eye
    toward = 0.8 * eye + 0.55 * front + 0.4 * up
    return up, toward / np.linalg.norm(toward), False


def _orient_plane_normal(normal: Floats, up: Floats) -> Floats:
    """Return the side of a plane from which its first axis points to the right."""
    right = np.cross(up, normal)
    return normal if right[int(np.argmax(np.abs(right)))] > 0 else -normal


def _hides_moving_parts(standing: Floats, moving: Floats, eye: Floats, up: Floats) -> bool:
    """Return whether still shapes hide moving ones: they are nearer to the eye by 0.6 of these' width."""
    if not len(standing) or not len(moving):
        return False
    level = moving - np.outer(moving @ up, up)
    width = float(np.linalg.norm(np.ptp(level, axis=0)))
    return float((standing.mean(axis=0) - moving.mean(axis=0)) @ eye) > _OCCLUSION_WIDTHS * width > 0
