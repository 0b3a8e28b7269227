"""Reduce triangles for a still picture or a small page, by merging vertices within a cell of a grid."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from mb2fmu.visualization.scene.mesh_files import TriangleMesh

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
        result = TriangleMesh(mesh.vertices[first], kept[once].astype(np.uint32))
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
    """Return the sentence that tells a reader of thinned surfaces."""
    return f"Surfaces are drawn with {kept:,} of their {given:,} triangles in {where}."


def decimate_meshes_together(meshes: Mapping[MeshKey, TriangleMesh], budget: int) -> dict[MeshKey, TriangleMesh]:
    """Return meshes with about ``budget`` triangles in total, shared by the square roots of their sizes."""
    if sum(len(mesh.faces) for mesh in meshes.values()) <= budget:
        return dict(meshes)
    weights = {key: float(np.sqrt(len(mesh.faces))) for key, mesh in meshes.items()}
    share = budget / sum(weights.values())
    return {key: decimate_mesh(mesh, int(share * weights[key])) for key, mesh in meshes.items()}
