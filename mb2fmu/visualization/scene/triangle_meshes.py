"""Triangles of mesh files as surfaces to draw.

Reduce triangles for a still picture or a small page, by merging vertices within a cell of a grid.
"""

from __future__ import annotations

import base64
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ModelError
from mb2fmu.robots.file_formats.mesh_file_reading import MESH_FAULT_HEADLINE, read_mesh_triangles

MAX_MESH_TRIANGLES = 60_000
"""Triangles of one mesh: more would not be seen, and would not fit into a page."""


@dataclass(frozen=True, slots=True, eq=False)
class TriangleMesh:
    """A surface.

    Attributes:
        vertices: In the file's unit, shape (n, 3).
        faces: Indices of vertices, counter-clockwise seen from outside, shape (m, 3).
        shapes: Displacements of the vertices by modes, shape (k, n, 3); None of a surface that does not bend.
    """

    vertices: npt.NDArray[np.float32]
    faces: npt.NDArray[np.uint32]
    shapes: npt.NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        if self.vertices.ndim != 2 or self.vertices.shape[1:] != (3,) or self.faces.shape[1:] != (3,):
            raise ValueError(f"vertices {self.vertices.shape}, faces {self.faces.shape}")
        if self.faces.size and int(self.faces.max()) >= len(self.vertices):
            raise ValueError("a face has a vertex that is not there")
        if self.shapes is not None and self.shapes.shape[1:] != self.vertices.shape:
            raise ValueError(f"vertices {self.vertices.shape}, shapes {self.shapes.shape}")

    def to_record(self) -> dict[str, str]:
        """Return a record for JSON: base64 of little-endian float32 and uint32."""
        record = {
            "vertices": base64.b64encode(self.vertices.astype("<f4").tobytes()).decode(),
            "faces": base64.b64encode(self.faces.astype("<u4").tobytes()).decode(),
        }
        if self.shapes is not None:
            record["shapes"] = base64.b64encode(self.shapes.astype("<f4").tobytes()).decode()
        return record

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> TriangleMesh:
        """Return the triangles of :meth:`to_record`."""
        vertices = np.frombuffer(base64.b64decode(record["vertices"]), dtype="<f4").reshape(-1, 3)
        faces = np.frombuffer(base64.b64decode(record["faces"]), dtype="<u4").reshape(-1, 3)
        if "shapes" not in record:
            return cls(vertices, faces)
        shapes = np.frombuffer(base64.b64decode(record["shapes"]), dtype="<f4").reshape(-1, *vertices.shape)
        return cls(vertices, faces, shapes)


def read_triangle_mesh(
    content: bytes, name: str, where: str = "", most: int | None = MAX_MESH_TRIANGLES
) -> TriangleMesh:
    """Read a mesh file.

    Args:
        content: Of the file.
        name: Its name; the extension names the format.
        where: For messages.
        most: Triangles that it may have; None: any number.

    Raises:
        ModelError: If it holds no triangles, or too many.
    """
    vertices, faces = read_mesh_triangles(content, name, where)
    if most is not None and len(faces) > most:
        remedy = f"thin it out to {most:,} or fewer"
        raise ModelError(MESH_FAULT_HEADLINE, [Fault(f"{name} has {len(faces):,} triangles", where, remedy)])
    return TriangleMesh(vertices.astype(np.float32), faces.astype(np.uint32))


MeshKey = TypeVar("MeshKey", bound=Hashable)
_GRID_CELLS = (96, 64, 48, 36, 26, 18, 12, 8)


def decimate_mesh(mesh: TriangleMesh, most: int) -> TriangleMesh:
    """Return at most ``most`` faces; the same mesh if it has no more (Rossignac and Borrel 1993: vertex clustering)."""
    if len(mesh.faces) <= most:
        return mesh
    low = mesh.vertices.min(axis=0)
    size = float((mesh.vertices.max(axis=0) - low).max())
    result = mesh
    for cells in _GRID_CELLS:
        keys = np.floor((mesh.vertices - low) / size * cells).astype(np.int64)
        _, first, index = np.unique(_number_rows(keys, cells + 1), return_index=True, return_inverse=True)
        faces = index.reshape(-1)[mesh.faces]
        whole = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
        kept = faces[whole]
        _, once = np.unique(_number_rows(kept, len(first)), return_index=True)
        shapes = None if mesh.shapes is None else mesh.shapes[:, first]
        result = TriangleMesh(mesh.vertices[first], kept[once].astype(np.uint32), shapes)
        if len(result.faces) <= most:
            break
    return result


def _number_rows(rows: npt.NDArray[np.int64], base: int) -> npt.NDArray[np.int64]:
    """Return one number per row of three digits, in the rows' order: sorts ten times as fast as rows.

    The base is at most the cells of a grid, 97³, whose third power an int64 holds.
    """
    numbers: npt.NDArray[np.int64] = (rows[:, 0] * base + rows[:, 1]) * base + rows[:, 2]
    return numbers


def decimate_meshes_to_size(meshes: tuple[TriangleMesh, ...], most: int) -> tuple[TriangleMesh, ...]:
    """Return meshes thinned alike to at most ``most`` characters in a page, as far as the coarsest grid allows."""
    kept, faces = meshes, max((len(mesh.faces) for mesh in meshes), default=0)
    while faces > 1 and sum(len(text) for mesh in kept for text in mesh.to_record().values()) > most:
        faces //= 2
        kept = tuple(decimate_mesh(mesh, faces) for mesh in meshes)
    return kept


def describe_mesh_decimation(kept: int, given: int, where: str) -> str:
    """Return the sentence that informs a reader of thinned surfaces."""
    return f"Surfaces are drawn with {kept:,} of their {given:,} triangles in {where}."


def decimate_meshes_to_budget(meshes: Mapping[MeshKey, TriangleMesh], budget: int) -> dict[MeshKey, TriangleMesh]:
    """Return meshes with about ``budget`` triangles in total, shared by the square roots of their sizes."""
    if sum(len(mesh.faces) for mesh in meshes.values()) <= budget:
        return dict(meshes)
    weights = {key: float(np.sqrt(len(mesh.faces))) for key, mesh in meshes.items()}
    share = budget / sum(weights.values())
    return {key: decimate_mesh(mesh, int(share * weights[key])) for key, mesh in meshes.items()}
