"""Volume and moments of the collision shapes of an SDF file, without ``mb2fmu.robots``.

Bodies of revolution are integrated along their axis by Gauss's rule, which is exact for the polynomials that occur;
meshes are read and integrated by trimesh (D. Eberly, Polyhedral mass properties).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast
from xml.etree import ElementTree as ET

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)


def integrate_shape_moments(shape: ET.Element) -> tuple[float, Array, Array]:
    """Return volume V, centre c, and ∫ (x − c)(x − c)ᵀ dV of a shape, in its own frame; m³, m, m⁵.

    Raises:
        ValueError: If the shape is none that is known here.
    """

    def numbers(tag: str, default: float = 1.0, count: int = 3) -> Array:
        """Return the numbers of a child."""
        return np.array([float(part) for part in (shape.findtext(tag) or "").split()] or [default] * count)

    r, length = numbers("radius", count=1)[0], numbers("length", count=1)[0]
    match shape.tag:
        case "box":
            edges = numbers("size")
            return float(np.prod(edges)), np.zeros(3), np.prod(edges) * np.diag(edges**2) / 12
        case "sphere":
            return _integrate_revolution([(-r, r, lambda z: r**2 - z**2)])
        case "cylinder":
            return _integrate_revolution([(-length / 2, length / 2, lambda z: r**2 + 0 * z)])
        case "capsule":
            h = length / 2
            ends = [(-h - r, -h, lambda z: r**2 - (z + h) ** 2), (h, h + r, lambda z: r**2 - (z - h) ** 2)]
            return _integrate_revolution([*ends, (-h, h, lambda z: r**2 + 0 * z)])
        case "ellipsoid":
            stretch = np.diag(numbers("radii"))
            volume, center, moment = _integrate_revolution([(-1.0, 1.0, lambda z: 1 - z**2)])
            ratio = float(np.linalg.det(stretch))
            return ratio * volume, center, ratio * stretch @ moment @ stretch
        case "mesh":
            return _integrate_mesh((shape.findtext("uri") or "").strip(), numbers("scale"))
    raise ValueError(f"the shape <{shape.tag}> is not known to the independent import")


def _integrate_revolution(parts: Sequence[tuple[float, float, Callable[[Array], Array]]]) -> tuple[float, Array, Array]:
    """Return the integrals of discs about z.

    Args:
        parts: First and last z, and the square of the radius as a function of z, a polynomial of degree 2 at most.
    """
    volume, across, along = 0.0, 0.0, 0.0
    for first, last, square in parts:
        z = (first + last) / 2 + (last - first) / 2 * _NODES
        areas = np.pi * square(z) * (last - first) / 2 * _WEIGHTS
        volume, along = volume + float(np.sum(areas)), along + float(areas @ z**2)
        across += float(areas @ square(z)) / 4
    return volume, np.zeros(3), np.diag([across, across, along])


def _integrate_mesh(file: str, scale: Array) -> tuple[float, Array, Array]:
    """Return the integrals of what a mesh bounds; they stretch with it, mirrored or not."""
    import trimesh

    mesh = cast("trimesh.Trimesh", trimesh.load(file, force="mesh"))
    solid, stretch = mesh.mass_properties, np.diag(scale)
    inertia = np.asarray(solid["inertia"])
    moment = np.trace(inertia) / 2 * np.eye(3) - inertia
    ratio = abs(float(np.prod(scale)))
    return ratio * float(solid["volume"]), stretch @ solid["center_mass"], ratio * stretch @ moment @ stretch
