"""Records for pictures: shapes, traced points, arrows and joints, by numbers of frames and points."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
import sympy as sm

from mb2fmu.mechanics.mechanism.records.frame_and_point_records import Components, Frame, KinematicPoint, VectorTerms

ShapeKind = Literal["cylinder", "box", "sphere", "ellipsoid", "mesh"]
JointKind = Literal["pin", "slide", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnShape:
    """A shape that moves with a point and a frame.

    Attributes:
        body: Name of the body (or frame) that it represents.
        point: Number of the point that ``offset`` starts from.
        frame: Number of the frame it turns with; 0 stands still.
        kind: Kind of the shape.
        sizes: m; expressions of parameters; of a mesh its scale.
        mesh: Path of the mesh's file as given, or empty.
        offset: From the point, in ``frame``'s components, m.
        along: Direction of the shape's y axis in ``frame``'s components.
        color: ``#rrggbb`` or empty.
        opacity: 0 … 1.
        where: ``file:line``.
    """

    body: str
    point: int
    frame: int
    kind: ShapeKind
    sizes: tuple[sm.Expr, ...]
    mesh: str
    offset: Components
    along: Components
    color: str
    opacity: float
    where: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DrawnFlexibleMesh:
    """Triangles whose vertices move by modes.

    Attributes:
        body: Name of the body.
        point: Number of its frame's origin.
        frame: Number of the frame.
        carriers: Numbers of the points whose distances from the origin along x are the modal coordinates.
        vertices: Shape (n, 3), m.
        faces: Shape (f, 3).
        shapes: Displacements of the vertices by each mode, shape (m, n, 3).
        scale: Factor of the displacements.
        color: ``#rrggbb`` or empty.
        opacity: 0 … 1.
    """

    body: str
    point: int
    frame: int
    carriers: tuple[int, ...]
    vertices: npt.NDArray[np.float64]
    faces: npt.NDArray[np.int_]
    shapes: npt.NDArray[np.float64]
    scale: float
    color: str
    opacity: float


@dataclass(frozen=True, slots=True)
class TracedPoint:
    """A point whose path is drawn."""

    name: str
    point: int
    color: str


@dataclass(frozen=True, slots=True)
class DrawnLoad:
    """A load drawn as an arrow.

    Attributes:
        name: Name in the legend.
        load: Number in ``Mechanism.loads``; -1: ``vector`` at ``point``.
        point: See ``load``.
        vector: See ``load``.
        scale: m per N or N·m; None: chosen.
        color: ``#rrggbb`` or empty.
    """

    name: str
    load: int
    point: int
    vector: VectorTerms
    scale: float | None
    color: str


@dataclass(frozen=True, slots=True)
class DrawnJoint:
    """A joint of SymPy's mechanics: a point and an axis in one frame (zero where there is none)."""

    name: str
    kind: JointKind
    point: int
    frame: int
    axis: Components


@dataclass(frozen=True, slots=True)
class MeshPlacement:
    """A mesh file to read, rotate and scale; it is left out if it cannot be read.

    Attributes:
        key: Value of ``DrawnShape.mesh``.
        path: Path of the file.
        matrix: Transformation from the mesh's axes and unit to the shape's frame, m, row by row.
    """

    key: str
    path: Path
    matrix: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AppearanceRecords:
    """Drawn items that the other records of the mechanism do not contain.

    Attributes:
        shapes: In order of declaration.
        traces: In order of declaration.
        arrows: In order of declaration.
        joints: In the order of the mechanics.
        meshes: Files of those shapes whose mesh is no path.
        frames, points: Where the mechanism has none of its own (a Lagrangian alone); otherwise empty.
        notes: What cannot be drawn, one sentence each.
        hidden_bodies: Names of bodies that are not shown by their mass centre and inertia.
        bendings: Surfaces of flexible bodies.
    """

    shapes: tuple[DrawnShape, ...] = ()
    traces: tuple[TracedPoint, ...] = ()
    arrows: tuple[DrawnLoad, ...] = ()
    joints: tuple[DrawnJoint, ...] = ()
    meshes: tuple[MeshPlacement, ...] = ()
    frames: tuple[Frame, ...] = ()
    points: tuple[KinematicPoint, ...] = ()
    notes: tuple[str, ...] = ()
    hidden_bodies: tuple[str, ...] = ()
    bendings: tuple[DrawnFlexibleMesh, ...] = ()
