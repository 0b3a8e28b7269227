"""Choose the viewpoint: across the mechanism's plane if it has one, else past the parts that stand still."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.visualization.scene.poses import Places

Floats = npt.NDArray[np.float64]

_FLAT = 1e-6
_BEFORE = 0.6  # widths of what moves


def viewpoint(where: Places, mechanism: Sequence[int], moving: Floats, standing: Floats) -> tuple[Floats, Floats, bool]:
    """Return up, the direction to the eye, and whether all motion is in one plane.

    Args:
        where: All points over time.
        mechanism: Indices of the points that tell whether there is a plane.
        moving: Middles of what moves, at the start, shape (n, 3).
        standing: Middles of the shapes that do not, shape (m, 3).
    """
    points = where.points[:, mechanism].reshape(-1, 3)
    spread = points - points.mean(axis=0)
    values, axes = np.linalg.eigh(spread.T @ spread / len(points))
    size = float(np.sqrt(max(values[-1], 0.0)))
    flat = size > 0 and np.sqrt(max(values[0], 0.0)) <= _FLAT * size and np.sqrt(max(values[1], 0.0)) > _FLAT * size
    normal = axes[:, 0] * np.where(axes[np.argmax(np.abs(axes[:, 0])), 0] < 0, -1.0, 1.0)
    thin = size > 0 and not flat and np.sqrt(max(values[1], 0.0)) <= _FLAT * size  # all on one straight line
    up = where.up
    if up is None:
        vertical = np.array([0.0, 0.0, 1.0])
        up = np.array([0.0, 1.0, 0.0]) if (flat and abs(normal @ vertical) > 0.99) or thin else vertical
    if flat and abs(float(normal @ up)) < 1e-6:
        return up, _towards_us(normal, up), True
    z = np.array([0.0, 0.0, 1.0])
    if thin and abs(float(z @ up)) < 1e-6:
        return up, z, True
    side = np.cross(up, [1.0, 0.0, 0.0]) if abs(up[0]) < 0.9 else np.cross(up, [0.0, 1.0, 0.0])
    side /= np.linalg.norm(side)
    front = np.cross(side, up)
    eye = -side if abs(up[2]) > 0.9 else side
    if _stands_before(standing, moving, eye, up):
        eye = -eye
    toward = 0.8 * eye + 0.55 * front + 0.4 * up
    return up, toward / np.linalg.norm(toward), False


def _towards_us(normal: Floats, up: Floats) -> Floats:
    """Return the side of a plane from which its first axis points to the right."""
    right = np.cross(up, normal)
    return normal if right[int(np.argmax(np.abs(right)))] > 0 else -normal


def _stands_before(standing: Floats, moving: Floats, eye: Floats, up: Floats) -> bool:
    """Return whether still shapes hide moving ones: they are nearer to the eye by 0.6 of these' width."""
    if not len(standing) or not len(moving):
        return False
    level = moving - np.outer(moving @ up, up)
    width = float(np.linalg.norm(np.ptp(level, axis=0)))
    return float((standing.mean(axis=0) - moving.mean(axis=0)) @ eye) > _BEFORE * width > 0
