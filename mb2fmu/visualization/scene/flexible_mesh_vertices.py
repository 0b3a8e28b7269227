"""Meshes that bend: where modal coordinates put their vertices."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mb2fmu.visualization.scene.drawing_records import DrawnSolid, PoseSeries
from mb2fmu.visualization.scene.scene_rotation_quaternions import rotate_vector
from mb2fmu.visualization.scene.triangle_meshes import TriangleMesh


def compute_flexible_mesh_vertices(
    solid: DrawnSolid, mesh: TriangleMesh, poses: PoseSeries, row: int
) -> npt.NDArray[np.float64]:
    """Return the vertices of a mesh at one instant, in its own axes, shape (n, 3), m."""
    rest = solid.sizes[0] * mesh.vertices.astype(np.float64)
    if mesh.shapes is None or not solid.modes:
        return rest
    pose = solid.anchor.pose
    axis = rotate_vector(poses.turns[row, pose][None], np.array([1.0, 0.0, 0.0]))[0]
    amplitudes = (poses.positions[row, list(solid.modes)] - poses.positions[row, pose]) @ axis
    return np.asarray(rest + solid.bend * np.einsum("k,knj->nj", amplitudes, mesh.shapes))
