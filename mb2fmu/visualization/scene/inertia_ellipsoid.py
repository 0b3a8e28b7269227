"""The homogeneous ellipsoid with a body's mass and inertia: the picture of a body without a shape."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from mb2fmu.visualization.scene.unit_quaternions import Turn, quaternions

Floats = npt.NDArray[np.float64]

_DIAGONAL = 1e-9


def ellipsoid(mass: float, inertia: Floats) -> tuple[Floats, Turn] | None:
    """Return half axes, and the rotation from the ellipsoid's axes to the body's frame.

    I_a = m/5 (b² + c²) about half axis a, and so on; hence a² = 5/(2 m) (I_b + I_c - I_a). A thin rod has no thickness:
    half axes may be 0, and one that no real body could have counts as 0.

    Args:
        mass: kg.
        inertia: Central: xx, yy, zz, xy, yz, xz, kg·m².

    Returns:
        None where there is no inertia, or no mass.
    """
    xx, yy, zz, xy, yz, xz = (float(c) for c in inertia)
    tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    largest = float(np.abs(tensor).max(initial=0.0))
    if not (np.isfinite(tensor).all() and mass > 0 and largest > 0):
        return None
    if max(abs(xy), abs(yz), abs(xz)) <= _DIAGONAL * largest:
        values, axes = np.diag(tensor), np.eye(3)
    else:
        values, axes = np.linalg.eigh(tensor)
        # the same signs whatever the library chose: the largest component of each axis is positive
        axes = axes * np.sign(axes[np.argmax(np.abs(axes), axis=0), range(3)])
        axes[:, 2] = np.cross(axes[:, 0], axes[:, 1])
    squares = 2.5 / mass * (values.sum() - 2 * values)
    w, x, y, z = (float(c) for c in quaternions(axes[None])[0])
    return np.sqrt(np.maximum(squares, 0.0)), (w, x, y, z)
