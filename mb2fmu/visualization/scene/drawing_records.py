"""Records of a drawing: what is seen, fixed in poses, and the poses over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.visualization.scene.mechanism_scene import ShapeKind
from mb2fmu.visualization.scene.scene_contacts import SceneContact
from mb2fmu.visualization.scene.triangle_meshes import TriangleMesh

Floats = npt.NDArray[np.float64]
SolidRole = Literal["shape", "inertia", "centre", "rod", "joint"]

WORLD_POSE = -1
"""The pose that never moves."""


@dataclass(frozen=True, slots=True)
class PoseAnchorPoint:
    """A point fixed in a pose: its index (or ``WORLD_LINK``) and the point's components in it, m."""

    pose: int
    local: tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class DrawnSolid:
    """A shape fixed in a pose.

    Attributes:
        kind: Of the shape.
        sizes: Cylinder: length, radius. Box: edges. Sphere: radius. Ellipsoid: half axes. Mesh: scale.
        anchor: Where its middle is.
        turn: Quaternion (w, x, y, z) from the shape's axes to the pose's.
        color: ``#rrggbb``.
        opacity: 0 … 1.
        role: Why it is drawn.
        mesh: Index among the meshes, or -1.
        modes: Of a surface that bends: poses that are its modal coordinates away from the anchor's, along its x axis.
        bend: Factor of the displacements.
    """

    kind: ShapeKind
    sizes: tuple[float, ...]
    anchor: PoseAnchorPoint
    turn: tuple[float, float, float, float]
    color: str
    opacity: float
    role: SolidRole
    mesh: int = -1
    modes: tuple[int, ...] = ()
    bend: float = 1.0


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A thin line through anchors: a rail that a body slides along, a spring, a cable round obstacles."""

    anchors: tuple[PoseAnchorPoint, ...]
    color: str
    kind: Literal["rail", "pathway", "cable"]


@dataclass(frozen=True, slots=True)
class DrawnTrace:
    """The path of an anchor."""

    name: str
    anchor: PoseAnchorPoint
    color: str


@dataclass(frozen=True, slots=True)
class DrawnArrow:
    """An arrow from an anchor: index of its vector, which is already in m of the picture."""

    name: str
    anchor: PoseAnchorPoint
    vector: int
    torque: bool
    color: str


@dataclass(frozen=True, slots=True, eq=False)
class ContactForceLocation:
    """Where a contact or latch pushes.

    Attributes:
        touch: Index among the drawing's touches.
        effort: Which of its efforts.
        anchor: What it pushes.
        directions: Unit vectors along which a positive effort acts, shape (n_t, 3).
    """

    touch: int
    effort: int
    anchor: PoseAnchorPoint
    directions: Floats


@dataclass(frozen=True, slots=True)
class CameraTarget:
    """A body that a camera can follow, by its pose."""

    name: str
    pose: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseSeries:
    """Poses over time.

    Attributes:
        time: s, shape (n_t,).
        positions: m, shape (n_t, n_poses, 3).
        turns: Unit quaternions (w, x, y, z) without jumps, shape (n_t, n_poses, 4).
        vectors: Arrows in m of the picture, shape (n_t, n_vectors, 3).
    """

    time: Floats
    positions: Floats
    turns: Floats
    vectors: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Everything that a viewer or a still picture shows.

    Attributes:
        name: Of the model.
        poses: Over time.
        solids, lines, traces, arrows, bodies: What is seen.
        meshes: Of the solids.
        unit: Radius of a joint's ball in m: the measure of all that has no size of its own.
        centre: Middle of all that is ever seen, m.
        span: Edges of a box about it, to the right, up and towards the eye, m.
        up: Unit vector.
        view_direction: Unit vector from the centre to the eye.
        flat: True: all happens in a plane, and ``view_direction`` is its normal.
        near: Largest extent of what moves at one instant, m.
        travels_far: What moves goes many times its own extent; a ball alone does not count, for seen from near it shows
            nothing.
        floor: Of the lowest point that is ever seen, its component along ``up``, m.
        reference_poses: The reference's poses; None if there is none.
        keys: (point, frame) of the scene that each pose is.
        arrow_scales: m of the picture per unit, of each vector.
        touches: Contacts, latches and frictions.
        pushed: Where they push, as far as that is known.
        notes: What is simplified or not drawn, one sentence each.
    """

    name: str
    poses: PoseSeries
    solids: tuple[DrawnSolid, ...]
    lines: tuple[DrawnLine, ...]
    traces: tuple[DrawnTrace, ...]
    arrows: tuple[DrawnArrow, ...]
    bodies: tuple[CameraTarget, ...]
    meshes: tuple[TriangleMesh, ...]
    unit: float
    centre: Floats
    span: tuple[float, float, float]
    up: Floats
    view_direction: Floats
    flat: bool
    near: float
    travels_far: bool
    floor: float
    reference_poses: PoseSeries | None = None
    keys: tuple[tuple[int, int], ...] = ()
    arrow_scales: tuple[float, ...] = ()
    touches: tuple[SceneContact, ...] = ()
    pushed: tuple[ContactForceLocation, ...] = ()
    notes: tuple[str, ...] = ()
