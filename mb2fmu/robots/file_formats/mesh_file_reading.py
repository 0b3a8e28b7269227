"""Triangles from mesh files: binary STL, the most frequent format of robots, is read here, others by trimesh."""

from __future__ import annotations

import io
import re
import struct
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, ModelError

MESH_FAULT_HEADLINE = "a mesh cannot be used:"


def read_mesh_triangles(content: bytes, name: str, where: str = "") -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return vertices, in the file's unit, shape (n, 3), and the indices of their triangles, shape (m, 3).

    Args:
        content: Of the file.
        name: Its name; the extension names the format.
        where: For messages.

    Raises:
        ModelError: If it is damaged, or holds no triangles.
    """
    kind = PurePath(name).suffix.lstrip(".").lower()
    damage = {"stl": _find_stl_damage, "obj": _find_obj_damage}.get(kind, _find_no_damage)(content)
    if damage:
        raise ModelError(MESH_FAULT_HEADLINE, [Fault(f"{name} is damaged: {damage}", where, "copy or export it anew")])
    if kind == "stl" and not _is_text_stl(content):
        vertices, faces = _read_binary_stl(content)
    else:
        vertices, faces = _read_mesh_by_trimesh(content, kind, name, where)
    if not len(faces) or not np.all(np.isfinite(vertices)):
        raise ModelError(
            MESH_FAULT_HEADLINE, [Fault(f"{name} holds no triangles", where, "export it as a triangle mesh")]
        )
    return vertices, faces


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
        raise ModelError(MESH_FAULT_HEADLINE, [fault]) from error


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
