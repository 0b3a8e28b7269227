"""Triangles from mesh files: binary STL, the most frequent format of robots, is read here, others by trimesh.

Reduce triangles for a still picture or a small page, by merging vertices within a cell of a grid.
"""

from __future__ import annotations

import base64
import io
import re
import struct
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, ModelError

MAX_MESH_TRIANGLES = 60_000
"""Triangles of one mesh: more would not be seen, and would not fit into a page."""

_MESH_FAULT_HEADLINE = "a mesh cannot be used:"


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
    kind = PurePath(name).suffix.lstrip(".").lower()
    damage = {"stl": _find_stl_damage, "obj": _find_obj_damage}.get(kind, _find_no_damage)(content)
    if damage:
        raise ModelError(_MESH_FAULT_HEADLINE, [Fault(f"{name} is damaged: {damage}", where, "copy or export it anew")])
    if kind == "stl" and not _is_text_stl(content):
        vertices, faces = _read_binary_stl(content)
    else:
        vertices, faces = _read_mesh_by_trimesh(content, kind, name, where)
    if not len(faces) or not np.all(np.isfinite(vertices)):
        raise ModelError(
            _MESH_FAULT_HEADLINE, [Fault(f"{name} holds no triangles", where, "export it as a triangle mesh")]
        )
    if most is not None and len(faces) > most:
        remedy = f"thin it out to {most:,} or fewer"
        raise ModelError(_MESH_FAULT_HEADLINE, [Fault(f"{name} has {len(faces):,} triangles", where, remedy)])
    return TriangleMesh(vertices.astype(np.float32), faces.astype(np.uint32))


def _read_mesh_by_trimesh(
    content: bytes, kind: str, name: str, where: str
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return vertices and faces of any format; its import takes half a second."""
    require_packages("reading a mesh", "trimesh")
    import trimesh

    try:
        mesh: Any = trimesh.load(io.BytesIO(content), file_type=kind, force="mesh")
        return np.asarray(mesh.vertices), np.asarray(mesh.faces)
    except Exception as error:  # a file by anyone; trimesh's loaders raise whatever they stumble over (struct.error,
        # UnicodeDecodeError, IndexError, …), and name no common class
        fault = Fault(f"{name} cannot be read: {error}", where, "export it anew, as STL, OBJ, PLY or OFF")
        raise ModelError(_MESH_FAULT_HEADLINE, [fault]) from error


_STL_TRIANGLE_DTYPE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])


def _read_binary_stl(content: bytes) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return vertices, each position once, and faces."""
    (count,) = struct.unpack("<I", content[80:84])
    corners = np.frombuffer(content, _STL_TRIANGLE_DTYPE, count, 84)["corners"].reshape(-1, 3) + np.float32(
        0.0
    )  # no zero below zero
    _, first, index = np.unique(corners.view("V12").reshape(-1), return_index=True, return_inverse=True)
    return corners[first], index.reshape(-1, 3)


def _is_text_stl(content: bytes) -> bool:
    """Return whether an STL file is text; some binary ones begin with ``solid`` too."""
    return content[:80].lstrip().lower().startswith(b"solid") and b"facet" in content[:1000].lower()


def _find_no_damage(content: bytes) -> str:  # noqa: ARG001  (as its siblings)
    """Return no fault: for formats that need no check here."""
    return ""


def _find_stl_damage(content: bytes) -> str:
    """Return damage of an STL file that its reader would not report; empty if there is none.

    Text begins with ``solid`` and ends with ``endsolid``; a binary file has 80 bytes of anything, the number of its
    triangles, and 50 bytes for each.
    """
    if _is_text_stl(content):
        return "" if b"endsolid" in content[-1000:].lower() else "its text ends before endsolid"
    if len(content) < 84:
        return f"it has {len(content)} bytes, an STL file at least 84"
    (count,) = struct.unpack("<I", content[80:84])
    if len(content) < 84 + 50 * count:
        return f"it announces {count:,} triangles, which take {84 + 50 * count:,} bytes, and has {len(content):,}"
    return ""


def _find_obj_damage(content: bytes) -> str:
    """Return the first invalid number or vertex of an OBJ file; vertices count from 1, or back from -1."""
    known, largest = 0, (0, 0)
    text = re.sub(r"\\\r?\n", " ", content.decode("utf-8", errors="replace"))  # lines that go on
    for number, line in enumerate(text.splitlines(), 1):
        kind, *words = line.split() or [""]
        if kind == "v":
            known += 1
            try:
                place = [float(word) for word in words[:3]]
            except ValueError:
                place = []
            if len(place) < 3 or not np.all(np.isfinite(place)):
                return f"line {number} holds no place of a vertex: {line.strip()[:60]}"
        elif kind == "f":
            for index in (word.partition("/")[0] for word in words):
                if not re.fullmatch(r"-?[0-9]{1,9}", index) or int(index) == 0 or int(index) < -known:
                    return f"line {number} names the vertex {index[:20]}, where {known:,} are known"
                largest = max(largest, (int(index), -number))
    if largest[0] > known:
        return f"line {-largest[1]} names the vertex {largest[0]:,}, and there are {known:,}"
    return ""


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


def describe_decimation(kept: int, given: int, where: str) -> str:
    """Return the sentence that informs a reader of thinned surfaces."""
    return f"Surfaces are drawn with {kept:,} of their {given:,} triangles in {where}."


def decimate_meshes_to_budget(meshes: Mapping[MeshKey, TriangleMesh], budget: int) -> dict[MeshKey, TriangleMesh]:
    """Return meshes with about ``budget`` triangles in total, shared by the square roots of their sizes."""
    if sum(len(mesh.faces) for mesh in meshes.values()) <= budget:
        return dict(meshes)
    weights = {key: float(np.sqrt(len(mesh.faces))) for key, mesh in meshes.items()}
    share = budget / sum(weights.values())
    return {key: decimate_mesh(mesh, int(share * weights[key])) for key, mesh in meshes.items()}
