"""Mass of what mesh files bound: ``HomogeneousSolid`` of a mesh that a robot's file names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ModelError
from mb2fmu.robots.description.robot_description import Array, Pose
from mb2fmu.robots.description.solid_inertia import (
    HomogeneousSolid,
    MeshInertiaRule,
    SolidInertiaError,
    form_mesh_solid,
)
from mb2fmu.robots.file_formats.mesh_file_reading import read_mesh_triangles
from mb2fmu.robots.file_formats.mesh_file_search import MeshNotFoundError, find_mesh_file


@dataclass(frozen=True, slots=True, eq=False)
class MeshVertexTransformation:
    """How the vertices of a mesh file become those of a geometry: v ↦ scale · turnᵀ (v − offset).

    Attributes:
        scale: Along each axis; a negative one mirrors.
        reference: Pose of the geometry's frame in the file's.
        single_precision: Whether the file's numbers are rounded first, as MuJoCo holds them.
    """

    scale: tuple[float, ...] = (1.0, 1.0, 1.0)
    reference: Pose = field(default_factory=Pose)
    single_precision: bool = False

    def place(self, vertices: Array) -> Array:
        """Return vertices, shape (n, 3), in m and in the frame of their geometry."""
        if self.single_precision:
            vertices = vertices.astype(np.float32).astype(float)
        placed: Array = (vertices - self.reference.position) @ self.reference.rotation * np.array(self.scale)
        return placed


@dataclass(frozen=True, slots=True)
class MeshFileAccess:
    """What finds and reads the meshes that a robot's file names.

    Attributes:
        source: The robot's file.
        packages: As :func:`find_mesh_file` has them.
        content_of: Returns the content of a file; None where there is none.
    """

    source: Path
    packages: Mapping[str, str]
    content_of: Callable[[Path], bytes | None]


def form_mesh_file_solid(
    name: str, files: MeshFileAccess, rule: MeshInertiaRule, placement: MeshVertexTransformation
) -> HomogeneousSolid:
    """Return the solid that the mesh of a file bounds.

    Args:
        name: Of the mesh, as the robot's file has it.
        files: Find and read it.
        rule: What of the mesh has mass.
        placement: Of its vertices.

    Raises:
        SolidInertiaError: If the file is not there, cannot be read, or bounds nothing.
    """
    try:
        path = find_mesh_file(name, files.source, files.packages)
        vertices, faces = read_mesh_triangles(files.content_of(path) or b"", path.name)
    except MeshNotFoundError as error:
        raise SolidInertiaError(str(error)) from error
    except ModelError as error:
        raise SolidInertiaError("; ".join(fault.what for fault in error.faults)) from error
    return form_file_triangle_solid(
        np.asarray(vertices, dtype=float), np.asarray(faces, dtype=np.int64), rule, placement
    )


def form_file_triangle_solid(
    vertices: Array, faces: npt.NDArray[np.int64], rule: MeshInertiaRule, placement: MeshVertexTransformation
) -> HomogeneousSolid:
    """Return the solid of vertices and triangles of a file, which a mirroring turns over.

    Raises:
        SolidInertiaError: If they bound nothing.
    """
    mirrored = np.prod(placement.scale) < 0
    return form_mesh_solid(placement.place(vertices), faces[:, ::-1] if mirrored else faces, rule)
