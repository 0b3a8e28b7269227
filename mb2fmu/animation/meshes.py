"""Triangles from mesh files, by trimesh."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ModelError

MOST = 60_000
"""Triangles of one mesh: more would not be seen, and would not fit into a page."""


@dataclass(frozen=True, slots=True, eq=False)
class Triangles:
    """A surface.

    Attributes:
        vertices: In the file's unit, shape (n, 3).
        faces: Indices of vertices, counter-clockwise seen from outside, shape (m, 3).
    """

    vertices: npt.NDArray[np.float32]
    faces: npt.NDArray[np.uint32]

    def __post_init__(self) -> None:
        if self.vertices.ndim != 2 or self.vertices.shape[1:] != (3,) or self.faces.shape[1:] != (3,):
            raise ValueError(f"vertices {self.vertices.shape}, faces {self.faces.shape}")
        if self.faces.size and int(self.faces.max()) >= len(self.vertices):
            raise ValueError("a face has a vertex that is not there")

    def to_record(self) -> dict[str, str]:
        """For JSON: base64 of little-endian float32 and uint32."""
        return {
            "vertices": base64.b64encode(self.vertices.astype("<f4").tobytes()).decode(),
            "faces": base64.b64encode(self.faces.astype("<u4").tobytes()).decode(),
        }

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Triangles:
        """The triangles of :meth:`to_record`."""
        vertices = np.frombuffer(base64.b64decode(record["vertices"]), dtype="<f4").reshape(-1, 3)
        faces = np.frombuffer(base64.b64decode(record["faces"]), dtype="<u4").reshape(-1, 3)
        return cls(vertices, faces)


def triangles(content: bytes, name: str, where: str = "") -> Triangles:
    """Reads a mesh file.

    Args:
        content: Of the file.
        name: Its name; the extension tells the format.
        where: For messages.

    Raises:
        ModelError: If it holds no triangles, or too many.
    """
    import trimesh

    kind = PurePath(name).suffix.lstrip(".").lower()
    headline = "a mesh cannot be used:"
    try:
        mesh: Any = trimesh.load(io.BytesIO(content), file_type=kind, force="mesh")
        vertices, faces = np.asarray(mesh.vertices), np.asarray(mesh.faces)
    except Exception as error:  # a file by anyone; trimesh's loaders raise whatever they stumble over (struct.error,
        # UnicodeDecodeError, IndexError, …), and name no common class
        fault = Fault(f"{name} cannot be read: {error}", where, "give an STL, OBJ, PLY or OFF file")
        raise ModelError(headline, [fault]) from error
    if not len(faces) or not np.all(np.isfinite(vertices)):
        raise ModelError(headline, [Fault(f"{name} holds no triangles", where, "export it as a triangle mesh")])
    if len(faces) > MOST:
        remedy = f"thin it out to {MOST:,} or fewer"
        raise ModelError(headline, [Fault(f"{name} has {len(faces):,} triangles", where, remedy)])
    return Triangles(vertices.astype(np.float32), faces.astype(np.uint32))
