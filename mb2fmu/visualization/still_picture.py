"""One picture of a drawing as SVG, by our own parallel projection: no browser and no graphics card is needed.

Spheres, ellipsoids and cylinders are projected exactly (outlines of ellipses), boxes and meshes by their faces that
look at us; what is farther away is painted first.

Order in which solids are painted: a solid in front is painted over a solid behind it.

The depth of their middles says it where solids are alike. It does not for a ball on a table: the ball's middle may be
farther away than the table's, and the ball is in front all the same, for it lies on the side of the table's top that
the eye sees. So a solid that lies beyond a face of another is in front of it if that face looks at the eye, and behind
it else (the test of Newell, Newell and Sancha 1972). Depth decides about all other pairs.

Source: Newell, Newell, Sancha: A solution to the hidden surface problem, Proc. ACM annual conference 1972, 443-450.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from mb2fmu.visualization.scene.drawing_from_scene import (
    TRAVEL_RATIO,
    compute_anchor_positions,
    is_motion_of_spheres_only,
)
from mb2fmu.visualization.scene.drawing_records import (
    Drawing,
    DrawnArrow,
    DrawnLine,
    DrawnSolid,
    PoseAnchorPoint,
    PoseSeries,
)
from mb2fmu.visualization.scene.flexible_mesh_vertices import compute_flexible_mesh_vertices
from mb2fmu.visualization.scene.scene_rotation_quaternions import quaternion_matrix, quaternion_product
from mb2fmu.visualization.scene.triangle_meshes import TriangleMesh, decimate_mesh, decimate_meshes_to_budget

Floats = npt.NDArray[np.float64]
MAX_COMPARED_SOLIDS = 80
"""Solids up to which pairs are looked at; more are painted by their depth."""
_OVERLAP_TOLERANCE = 1e-3


SIZE, MARGIN, LEAST = 640.0, 26.0, 300.0
"""Of a picture: its longer side, its margin and its shortest side, in its own units."""
_LIGHT_DIRECTION = np.array([-0.45, 0.65, 0.61])  # right, up, towards us
_FACES, _TRACE = 2500, 500
EMBEDDED_PICTURE_TRIANGLES = 6000
"""Triangles of all meshes together in a picture of an FMU: a renderer takes 0.1 ms for each that is seen."""
_TRIAD_AXES = (("x", "#c0392b"), ("y", "#2e8b57"), ("z", "#2f6fb7"))
_STROBE_SOLIDS, _MANY = 60, 250


@dataclass(frozen=True, slots=True)
class OccludingConvexHull:
    """A convex solid, as far as it matters to what hides it.

    Attributes:
        normals: Of its flat faces, outward, shape (n, 3).
        offsets: normal · p of the points p on each face, in m, shape (n,).
        least: Normals, shape (k, 3) → the least normal · p over the solid, in m, shape (k,).
        size: Its extent in m.
    """

    normals: Floats
    offsets: Floats
    least: Callable[[Floats], Floats]
    size: float


def box_hull(centre: Floats, R: Floats, edges: Floats) -> OccludingConvexHull:
    """Return the hull of a box.

    Args:
        centre: In m.
        R: Its axes as columns.
        edges: Lengths along these.
    """
    normals = np.concatenate([R.T, -R.T])
    offsets = normals @ centre + np.concatenate([edges, edges]) / 2
    return OccludingConvexHull(
        normals, offsets, lambda n: n @ centre - np.abs(n @ R) @ (edges / 2), float(np.linalg.norm(edges))
    )


def cylinder_hull(centre: Floats, axis: Floats, length: float, radius: float) -> OccludingConvexHull:
    """Return the hull of a cylinder; its faces are the ends.

    Args:
        centre: In m.
        axis: Unit vector.
        length: In m.
        radius: In m.
    """

    def least(n: Floats) -> Floats:
        """Return how far it reaches against directions."""
        along = n @ axis
        across = np.sqrt(np.maximum((n * n).sum(axis=1) - along**2, 0.0))
        return np.asarray(n @ centre - np.abs(along) * (length / 2) - across * radius)

    normals = np.stack([axis, -axis])
    return OccludingConvexHull(normals, normals @ centre + length / 2, least, float(np.hypot(length, 2 * radius)))


def ellipsoid_hull(centre: Floats, R: Floats, half: Floats) -> OccludingConvexHull:
    """Return the hull of an ellipsoid, which has no faces.

    Args:
        centre: In m.
        R: Its axes as columns.
        half: Half axes.
    """
    return OccludingConvexHull(
        np.zeros((0, 3)),
        np.zeros(0),
        lambda n: n @ centre - np.linalg.norm((n @ R) * half, axis=1),
        float(2 * half.max()),
    )


def point_cloud_hull(points: Floats) -> OccludingConvexHull:
    """Return the hull of points, such as a mesh's, without looking for its faces.

    Args:
        points: Shape (n, 3), in m.
    """
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    return OccludingConvexHull(np.zeros((0, 3)), np.zeros(0), lambda n: np.asarray((points @ n.T).min(axis=0)), size)


def sort_solids_for_painting(
    depths: Sequence[float], boxes: Sequence[Floats], hulls: Sequence[OccludingConvexHull], toward: Floats
) -> list[int]:
    """Return the indices of solids in painting order: the farthest first.

    Args:
        depths: Of their middles along the way to the eye, in m.
        boxes: Points that each covers in the picture, shape (k, 2).
        hulls: Of each.
        toward: Unit vector to the eye.
    """
    everyone = range(len(depths))
    if len(depths) > MAX_COMPARED_SOLIDS:
        return sorted(everyone, key=lambda i: depths[i])
    behind: list[set[int]] = [set() for _ in everyone]  # those that wait for one
    waits = [0 for _ in everyone]
    low, high = (np.array([edge(each, axis=0) for each in boxes]) for edge in (np.min, np.max))
    for i in everyone:
        meets = np.all((low[i] < high) & (low < high[i]), axis=1)
        for j in np.flatnonzero(meets).tolist():
            if j > i and (side := _compare_occlusion(hulls[i], hulls[j], toward)):
                first, then = (i, j) if side > 0 else (j, i)
                behind[first].add(then)
                waits[then] += 1
    return _sort_topologically(depths, behind, waits)


def _compare_occlusion(one: OccludingConvexHull, other: OccludingConvexHull, toward: Floats) -> int:
    """Return 1 if the other is in front of one, -1 if it is behind, 0 if no face of either decides."""
    for sign, has, lies in ((1, one, other), (-1, other, one)):
        beyond = lies.least(has.normals) >= has.offsets - _OVERLAP_TOLERANCE * lies.size
        facing = (has.normals @ toward)[beyond]
        if len(facing) and np.abs(facing).max() > _OVERLAP_TOLERANCE:
            return sign if facing[np.argmax(np.abs(facing))] > 0 else -sign
    return 0


def _sort_topologically(depths: Sequence[float], behind: Sequence[set[int]], waits: list[int]) -> list[int]:
    """Return an order in which nobody comes before what is behind it, by depth otherwise; a circle is cut by depth."""
    ready = [(depths[i], i) for i in range(len(depths)) if waits[i] == 0]
    heapq.heapify(ready)
    order: list[int] = []
    left = set(range(len(depths)))
    while left:
        i = heapq.heappop(ready)[1] if ready else min(left, key=lambda k: depths[k])
        if i not in left:
            continue
        left.remove(i)
        order.append(i)
        for j in behind[i] & left:
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(ready, (depths[j], j))
    return order


@dataclass(frozen=True, slots=True)
class _PaintedShape:
    """A shape to paint.

    Attributes:
        depth: Along the way to the eye; the largest is painted last.
        pieces: (template, points): each point in the template is filled in when the scale is known.
        bounds: Points that must be within the picture, shape (n, 2).
        hull: What it takes up; None for traces and arrows, which lie behind and before all.
    """

    depth: float
    pieces: tuple[_PaintedPath, ...]
    bounds: Floats
    hull: OccludingConvexHull | None = None


@dataclass(frozen=True, slots=True)
class _PaintedPath:
    """A path: commands with points in m, and its paint.

    Attributes:
        commands: (letter, points shape (n, 2)); ``A``: an arc to the second point with half axes and angle in the rest.
        paint: Attributes.
    """

    commands: tuple[tuple[str, Floats], ...]
    paint: str


@dataclass(slots=True)
class _PictureCanvas:
    """Collects shapes of one instant, seen from one side."""

    right: Floats
    up: Floats
    view_direction: Floats
    shapes: list[_PaintedShape] = field(default_factory=list)

    def flat(self, points: Floats) -> Floats:
        """Return points as (right, up), shape (n, 2)."""
        return np.stack([points @ self.right, points @ self.up], axis=-1)

    def add(
        self, depth: float, pieces: Sequence[_PaintedPath], bounds: Floats, hull: OccludingConvexHull | None = None
    ) -> None:
        self.shapes.append(_PaintedShape(depth, tuple(pieces), bounds, hull))


def render_still_picture(
    drawing: Drawing,
    at: float | None = None,
    *,
    strobe: int = 0,
    background: str = "",
    triad: bool = True,
    faces: int | None = None,
) -> bytes:
    """Return the picture of one instant.

    Args:
        drawing: What there is.
        at: Time in s; the nearest that is known is taken; None: the start.
        strobe: How many earlier instants, evenly spaced from the start, stand pale behind.
        background: ``#rrggbb``; empty: none.
        triad: Show the axes of the inertial frame.
        faces: Triangles that all meshes may have together, about; None: each as many as are seen apart.

    Returns:
        An SVG document; equal arguments give equal bytes.
    """
    if faces is not None:
        thin = decimate_meshes_to_budget(dict(enumerate(drawing.meshes)), faces)
        drawing = replace(drawing, meshes=tuple(thin.values()))
    poses = drawing.poses
    row = 0 if at is None else int(np.argmin(np.abs(poses.time - at)))
    right, up = _screen_axes(drawing)
    earlier = np.unique(np.rint(np.linspace(0, row, strobe + 1)).astype(int))[:-1] if strobe and row else np.array([])
    if len(drawing.solids) > _STROBE_SOLIDS:
        earlier = np.array([])
    layers = []
    for k, instant in enumerate([*earlier.tolist(), row]):
        opacity = 1.0 if instant == row else 0.14 + 0.2 * k / max(len(earlier), 1)
        layers.append((opacity, _paint_instant(drawing, int(instant), last=instant == row)))
    view = _visible_rectangle(
        [shape for _, shapes in layers for shape in shapes], ball=is_motion_of_spheres_only(drawing.solids)
    )
    return _format_svg(drawing, layers, (right, up), background, triad=triad, view=view).encode()


def render_video_frames(drawing: Drawing, times: Sequence[float], *, background: str = "") -> list[bytes]:
    """Return the pictures of a film: one scale and one size for all, and one place of the eye, unless it follows.

    Args:
        drawing: What there is.
        times: In s; of each the nearest that is known is taken.
        background: ``#rrggbb``; empty: none.

    Returns:
        SVG documents of equal size, one per time. The eye moves along with a mechanism that travels far.
    """
    rows = [int(np.argmin(np.abs(drawing.poses.time - t))) for t in times]
    painted = [_paint_instant(drawing, row, last=True) for row in rows]
    near = [_bounding_rectangle(_shapes_without_traces(shapes)) for shapes in painted]
    low, high = _bounding_rectangle([shape for shapes in painted for shape in shapes])
    span = np.max([last - first for first, last in near], axis=0)
    screen = _screen_axes(drawing)
    documents = []
    for shapes, (first, last) in zip(painted, near, strict=True):
        middle = (first + last) / 2
        follows = _travels_far(high - low, span) and not is_motion_of_spheres_only(drawing.solids)
        view = (middle - span / 2, middle + span / 2) if follows else (low, high)
        documents.append(_format_svg(drawing, [(1.0, shapes)], screen, background, triad=True, view=view).encode())
    return documents


def _screen_axes(drawing: Drawing) -> tuple[Floats, Floats]:
    """Return unit vectors to the right and up, as the eye sees them, in N."""
    right = np.cross(drawing.up, drawing.view_direction)
    right = right / np.linalg.norm(right)
    return right, np.cross(drawing.view_direction, right)


def _paint_instant(drawing: Drawing, row: int, *, last: bool) -> list[_PaintedShape]:
    """Return all that is seen at a row of the poses, the farthest first."""
    canvas = _PictureCanvas(*_screen_axes(drawing), drawing.view_direction)
    _paint_parts(canvas, drawing, row, last=last)
    between = [(shape, shape.hull) for shape in canvas.shapes if shape.hull]
    order = sort_solids_for_painting(
        [shape.depth for shape, _ in between],
        [shape.bounds for shape, _ in between],
        [hull for _, hull in between],
        drawing.view_direction,
    )
    behind, before = ([s for s in canvas.shapes if s.depth == end] for end in (-np.inf, np.inf))
    return [*behind, *(between[i][0] for i in order), *before]


def _paint_parts(canvas: _PictureCanvas, drawing: Drawing, row: int, *, last: bool) -> None:
    """Put all solids and lines of one instant on the canvas; traces and arrows only for the `last`."""
    poses = drawing.poses
    many = len(drawing.solids) > _MANY
    for solid in drawing.solids:
        if many and solid.role in {"centre", "joint"}:
            continue
        _paint_solid(canvas, solid, poses, row, drawing.meshes)
    for line in drawing.lines:
        _paint_line(canvas, line, poses, row, drawing.unit)
    if not last:
        return
    for trace in drawing.traces:
        rows = np.unique(np.rint(np.linspace(0, len(poses.time) - 1, _TRACE)).astype(int))
        path = compute_anchor_positions(poses, trace.anchor)[rows]
        if len(path) > 1:
            points = canvas.flat(path)
            paint = f'fill="none" stroke="{trace.color}" stroke-width="1.6" stroke-opacity=".75"'
            canvas.add(-np.inf, [_PaintedPath((("M", points[:1]), ("L", points[1:])), paint)], points)
    for arrow in drawing.arrows:
        _paint_arrow(canvas, arrow, poses, row, drawing.unit)


def _anchor_position(anchor: PoseAnchorPoint, poses: PoseSeries, row: int) -> Floats:
    """Return an anchor's place in N at one instant, in m."""
    at = PoseSeries(
        time=poses.time[row : row + 1],
        positions=poses.positions[row : row + 1],
        turns=poses.turns[row : row + 1],
        vectors=poses.vectors[row : row + 1],
    )
    return np.asarray(compute_anchor_positions(at, anchor)[0])


def _paint_solid(
    canvas: _PictureCanvas, solid: DrawnSolid, poses: PoseSeries, row: int, meshes: Sequence[TriangleMesh]
) -> None:
    """Put a solid on the canvas, turned with its pose."""
    centre = _anchor_position(solid.anchor, poses, row)
    turn = np.array(solid.turn)
    if solid.anchor.pose >= 0:
        turn = quaternion_product(poses.turns[row, solid.anchor.pose], turn)
    R = quaternion_matrix(turn)
    match solid.kind:
        case "sphere" | "ellipsoid":
            half = np.array(solid.sizes * 3 if solid.kind == "sphere" else solid.sizes)
            _paint_ellipsoid(canvas, solid, centre, R, half)
        case "cylinder":
            _paint_cylinder(canvas, solid, centre, R[:, 1])
        case "box":
            _paint_box(canvas, solid, centre, R)
        case _:
            mesh = decimate_mesh(meshes[solid.mesh], _FACES)
            vertices = centre + compute_flexible_mesh_vertices(solid, mesh, poses, row) @ R.T
            _paint_mesh(canvas, solid, centre, vertices, mesh.faces.astype(np.intp))


def _paint_ellipsoid(canvas: _PictureCanvas, solid: DrawnSolid, centre: Floats, R: Floats, half: Floats) -> None:
    """Put an ellipsoid on the canvas: its outline is the ellipse with P A Pᵀ, A = R diag(a²) Rᵀ."""
    P = np.stack([canvas.right, canvas.up])
    squares, axes = np.linalg.eigh(P @ (R * half**2) @ R.T @ P.T)
    minor, major = np.sqrt(np.maximum(squares, 0.0))
    angle = float(np.degrees(np.arctan2(axes[1, 1], axes[0, 1])))
    middle = canvas.flat(centre[None, :])[0]
    reach = np.sqrt(np.maximum(np.diag(P @ (R * half**2) @ R.T @ P.T), 0.0))
    ellipse = _PaintedPath((("E", np.array([middle, [major, minor], [angle, 0.0]])),), _format_fill(solid, 0.9))
    canvas.add(float(centre @ canvas.view_direction), [ellipse], np.array([middle - reach, middle + reach]),
               ellipsoid_hull(centre, R, half))  # fmt: skip


def _paint_cylinder(canvas: _PictureCanvas, solid: DrawnSolid, centre: Floats, axis: Floats) -> None:
    """Put a cylinder on the canvas: two ellipses and their tangents; the visible end on top."""
    length, radius = solid.sizes
    facing = float(axis @ canvas.view_direction)
    if facing < 0:
        axis, facing = -axis, -facing
    near, far = centre + axis * length / 2, centre - axis * length / 2
    a, b = canvas.flat(far[None, :])[0], canvas.flat(near[None, :])[0]
    direction = canvas.flat(axis[None, :])[0]
    size = float(np.hypot(*direction))
    along = direction / size if size > 1e-9 else np.array([1.0, 0.0])
    across = np.array([-along[1], along[0]]) * radius
    angle = float(np.degrees(np.arctan2(across[1], across[0])))
    half = np.array([radius, radius * facing])
    side = _PaintedPath(
        (
            ("M", np.array([a + across])),
            ("A", np.array([half, [angle, 1.0], a - across])),
            ("L", np.array([b - across])),
            ("A", np.array([half, [angle, 1.0], b + across])),
            ("Z", np.zeros((0, 2))),
        ),
        _format_fill(solid, 0.72 + 0.2 * max(0.0, float(np.array([-along[1], along[0]]) @ _LIGHT_DIRECTION[:2]))),
    )
    cap = _PaintedPath((("E", np.array([b, half, [angle, 0.0]])),), _format_fill(solid, 1.0))
    pieces = [side, cap] if facing > 1e-3 else [side]
    reach = np.array([radius, radius])
    canvas.add(float(centre @ canvas.view_direction), pieces, np.array([a - reach, a + reach, b - reach, b + reach]),
               cylinder_hull(centre, axis, length, radius))  # fmt: skip


_BOX_CORNERS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) / 2
_BOX_SIDES = ((0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3))


def _paint_box(canvas: _PictureCanvas, solid: DrawnSolid, centre: Floats, R: Floats) -> None:
    """Put the sides of a box on the canvas that face the viewer."""
    corners = centre + (_BOX_CORNERS * np.array(solid.sizes)) @ R.T
    pieces = []
    for side in _BOX_SIDES:
        square = corners[list(side)]
        normal = np.cross(square[1] - square[0], square[2] - square[1])
        if normal @ canvas.view_direction > 1e-9 * np.linalg.norm(normal):
            points = canvas.flat(square)
            outline = (("M", points[:1]), ("L", points[1:]), ("Z", np.zeros((0, 2))))
            brightness = float(_face_brightness(canvas, normal[None])[0])
            pieces.append(_PaintedPath(outline, _format_fill(solid, brightness)))
    hull = box_hull(centre, R, np.array(solid.sizes))
    canvas.add(float(centre @ canvas.view_direction), pieces, canvas.flat(corners), hull)


def _paint_mesh(
    canvas: _PictureCanvas, solid: DrawnSolid, centre: Floats, vertices: Floats, faces: npt.NDArray[np.intp]
) -> None:
    """Put the triangles of a mesh on the canvas that face the viewer, the farthest first."""
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    seen = np.flatnonzero(normals @ canvas.view_direction > 0)
    seen = seen[np.argsort(corners[seen].mean(axis=1) @ canvas.view_direction, kind="stable")]
    brightness = _face_brightness(canvas, normals[seen])
    end, pieces = np.zeros((0, 2)), []
    for points, color in zip(canvas.flat(corners[seen]), _scale_brightness(solid.color, brightness), strict=True):
        paint = f'fill="{color}" stroke="{color}" stroke-width=".4" fill-opacity="{solid.opacity:g}"'
        pieces.append(_PaintedPath((("M", points[:1]), ("L", points[1:]), ("Z", end)), paint))
    canvas.add(float(centre @ canvas.view_direction), pieces, canvas.flat(vertices), point_cloud_hull(vertices))


def _paint_line(canvas: _PictureCanvas, line: DrawnLine, poses: PoseSeries, row: int, unit: float) -> None:
    """Put a line on the canvas: a coil for a pathway, dashes for a rail."""
    ends = np.array([_anchor_position(anchor, poses, row) for anchor in line.anchors])
    points = canvas.flat(ends)
    if line.kind == "pathway":
        points = np.concatenate([_coil_points(a, b, unit) for a, b in pairwise(points)])
    dashes = "" if line.kind != "rail" else ' stroke-dasharray="6 4"'
    paint = f'fill="none" stroke="{line.color}" stroke-width="1.8" stroke-linejoin="round"{dashes}'
    depth = float(ends.mean(axis=0) @ canvas.view_direction)
    canvas.add(
        depth,
        [_PaintedPath((("M", points[:1]), ("L", points[1:])), paint)],
        points,
        point_cloud_hull(ends),
    )


def _coil_points(a: Floats, b: Floats, unit: float) -> Floats:
    """Return a zigzag from a to b."""
    length = float(np.linalg.norm(b - a))
    if length < 8 * unit:
        return np.array([a, b])
    along = (b - a) / length
    across = np.array([-along[1], along[0]]) * 1.6 * unit
    places = np.linspace(0.15, 0.85, 15)
    signs = np.array([0, *([1, -1] * 6), 1, 0])
    middle = a + places[:, None] * (b - a) + signs[:, None] * across
    return np.concatenate([[a], middle, [b]])


def _paint_arrow(canvas: _PictureCanvas, arrow: DrawnArrow, poses: PoseSeries, row: int, unit: float) -> None:
    """Draw a force that points away from its point of application; a torque has two heads."""
    start = _anchor_position(arrow.anchor, poses, row)
    vector = poses.vectors[row, arrow.vector]
    a, b = canvas.flat(np.stack([start, start + vector]))
    length = float(np.linalg.norm(b - a))
    if length < 1e-3 * unit:
        return
    along, head = (b - a) / length, min(3.2 * unit, 0.5 * length)
    across = np.array([-along[1], along[0]])
    pieces = [
        _PaintedPath((("M", a[None]), ("L", (b - along * head)[None])), f'stroke="{arrow.color}" stroke-width="2.4"')
    ]
    for tip in [b, b - along * 0.8 * head] if arrow.torque else [b]:
        foot = tip - along * head
        points = np.array([tip, foot + 0.45 * head * across, foot - 0.45 * head * across])
        outline = (("M", points[:1]), ("L", points[1:]), ("Z", np.zeros((0, 2))))
        pieces.append(_PaintedPath(outline, f'fill="{arrow.color}"'))
    canvas.add(np.inf, pieces, np.array([a, b]))


def _face_brightness(canvas: _PictureCanvas, normals: Floats) -> Floats:
    """Return the brightness of faces, 0.55 to 1, by the light that comes from the viewer's side, shape (n,)."""
    n = normals / np.linalg.norm(normals, axis=1)[:, None]
    seen = np.stack([n @ canvas.right, n @ canvas.up, n @ canvas.view_direction], axis=1)
    return np.asarray(0.55 + 0.45 * np.maximum(0.0, seen @ _LIGHT_DIRECTION))


def _format_fill(solid: DrawnSolid, brightness: float) -> str:
    """Return the paint of a filled shape: colour, edge and opacity."""
    see_through = "" if solid.opacity >= 1 else f' fill-opacity="{solid.opacity:g}" stroke-opacity="{solid.opacity:g}"'
    color, edge = _scale_brightness(solid.color, np.array([brightness, 0.55]))
    return f'fill="{color}" stroke="{edge}" stroke-width="1"{see_through}'


def _scale_brightness(color: str, brightness: Floats) -> list[str]:
    """Return a colour made darker (below 1) or lighter, once for each brightness."""
    parts = np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)])
    scaled = np.minimum(255, np.rint(brightness[:, None] * parts)).astype(int)
    return [f"#{red:02x}{green:02x}{blue:02x}" for red, green, blue in scaled.tolist()]


@dataclass(frozen=True, slots=True)
class _PictureScale:
    """Scale from m to the picture's units: x to the right, y down."""

    factor: float
    left: float
    top: float

    def place(self, points: Floats) -> str:
        """Return the places of points, shape (n, 2)."""
        factor, left, top = self.factor, self.left, self.top  # most paths have three points: floats are faster
        return " ".join(
            f"{_format_coordinate((x - left) * factor)} {_format_coordinate((top - y) * factor)}"
            for x, y in points.tolist()
        )


def _format_coordinate(value: float) -> str:
    """Return a number with one decimal, without a trailing .0."""
    text = f"{value:.1f}"
    return text.removesuffix(".0")


def _format_svg(
    drawing: Drawing,
    layers: Sequence[tuple[float, list[_PaintedShape]]],
    screen: tuple[Floats, Floats],
    background: str,
    *,
    triad: bool,
    view: tuple[Floats, Floats],
) -> str:
    """Return the SVG of all layers, scaled so that the view fits in, with its title and triad."""
    low, high = view
    span = np.maximum(high - low, 1e-9)
    factor = float((SIZE - 2 * MARGIN) / span.max())
    width, height = (max(LEAST, float(s) * factor + 2 * MARGIN) for s in span)
    middle = (low + high) / 2
    scale = _PictureScale(factor, float(middle[0]) - width / 2 / factor, float(middle[1]) + height / 2 / factor)
    size = f'width="{_format_coordinate(width)}" height="{_format_coordinate(height)}"'
    view_box = f"0 0 {_format_coordinate(width)} {_format_coordinate(height)}"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="still" viewBox="{view_box}" {size}>',
        f"<title>{escape(drawing.name)}</title>",
    ]
    if background:
        parts.append(
            f'<rect width="{_format_coordinate(width)}" height="{_format_coordinate(height)}" fill="{background}"/>'
        )
    for opacity, shapes in layers:
        faint = "" if opacity >= 1 else f' opacity="{opacity:.2f}"'
        parts.append(f"<g{faint}>")
        parts += [_format_svg_path(piece, scale) for shape in shapes for piece in shape.pieces]
        parts.append("</g>")
    if triad:
        parts += _draw_triad(screen, height)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _visible_rectangle(shapes: Sequence[_PaintedShape], *, ball: bool) -> tuple[Floats, Floats]:
    """Return lower left and upper right corner; paths that lead far away are ignored, except those of a ball alone."""
    (low, high), (first, last) = _bounding_rectangle(shapes), _bounding_rectangle(_shapes_without_traces(shapes))
    return (first, last) if not ball and _travels_far(high - low, last - first) else (low, high)


def _shapes_without_traces(shapes: Sequence[_PaintedShape]) -> list[_PaintedShape]:
    """Return all shapes except traces."""
    return [shape for shape in shapes if shape.depth > -np.inf]


def _bounding_rectangle(shapes: Sequence[_PaintedShape]) -> tuple[Floats, Floats]:
    """Return lower left and upper right corner of the shapes, m."""
    points = np.concatenate([shape.bounds for shape in shapes] or [np.zeros((1, 2))])
    return points.min(axis=0), points.max(axis=0)


def _travels_far(whole: Floats, near: Floats) -> bool:
    """Return whether a mechanism of extent ``near`` travels so far that the whole would show it too small."""
    return bool(whole.max() > TRAVEL_RATIO * near.max() > 0)


def _format_svg_path(piece: _PaintedPath, scale: _PictureScale) -> str:
    """Return a piece as an SVG ellipse or path."""
    letter, numbers = piece.commands[0]
    if letter == "E":
        x, y = scale.place(numbers[:1]).split()
        half = [_format_coordinate(max(float(h) * scale.factor, 0.3)) for h in numbers[1]]
        angle = -float(numbers[2, 0])
        turn = f' transform="rotate({_format_coordinate(angle)} {x} {y})"' if half[0] != half[1] else ""
        return f'<ellipse cx="{x}" cy="{y}" rx="{half[0]}" ry="{half[1]}"{turn} {piece.paint}/>'
    text = []
    for letter, numbers in piece.commands:
        if letter == "A":
            half = [_format_coordinate(float(h) * scale.factor) for h in numbers[0]]
            text.append(
                f"A{half[0]} {half[1]} {_format_coordinate(-float(numbers[1, 0]))} 0 0 {scale.place(numbers[2:3])}"
            )
        else:
            text.append(letter + scale.place(numbers))
    return f'<path d="{"".join(text)}" {piece.paint}/>'


def _draw_triad(screen: tuple[Floats, Floats], height: float) -> Iterator[str]:
    """Yield the inertial frame's axes in the lower left corner; those that point at us are left out."""
    x0, y0, size = 34.0, height - 30.0, 24.0
    for i, (name, color) in enumerate(_TRIAD_AXES):
        dx, dy = float(screen[0][i]) * size, -float(screen[1][i]) * size
        if np.hypot(dx, dy) < 0.15 * size:
            continue
        x, y = x0 + dx, y0 + dy
        start, end = (f"{_format_coordinate(a)} {_format_coordinate(b)}" for a, b in ((x0, y0), (x, y)))
        yield f'<path d="M{start}L{end}" stroke="{color}" stroke-width="2"/>'
        yield (
            f'<text x="{_format_coordinate(x0 + 1.32 * dx)}" y="{_format_coordinate(y0 + 1.32 * dy + 4)}" '
            f'font-size="12" font-family="sans-serif" text-anchor="middle" fill="{color}">{name}</text>'
        )
