"""Volume, mass centre and inertia of homogeneous solids: simple shapes by formulas, meshes by their triangles.

The signed tetrahedra between a point and the triangles of a closed surface sum up to what it encloses, with
∫ x xᵀ dV = V/20 (Σ v vᵀ + s sᵀ), s = Σ v, of a tetrahedron with vertices v, and A/12 (…) of a triangle.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from mb2fmu.robots.description.robot_description import Array, LinkInertia, Pose

MeshInertiaRule = Literal["exact", "convex", "legacy", "shell"]
"""As MJCF has it. ``exact``: what a closed surface encloses; ``convex``: its convex hull; ``legacy``: all tetrahedra
between the surface and its centre, each counted as positive; ``shell``: the surface itself."""
_MIN_FILL = 1e-9
"""Part of its bounding box that a solid fills at least: what is less is a surface."""


class SolidInertiaError(Exception):
    """Mass and inertia of a shape cannot be computed; the text says why, and what to do."""


@dataclass(frozen=True, slots=True, eq=False)
class HomogeneousSolid:
    """A solid of density 1.

    Attributes:
        volume: m³; of a shell its area, m².
        center: Mass centre, m, shape (3,).
        inertia: About the mass centre, per mass, m², shape (3, 3).
        open_edges: Of a mesh: edges of its surface that bound no second triangle, where the rule gives it a volume
            all the same (``legacy``).
    """

    volume: float
    center: Array
    inertia: Array
    open_edges: int = 0

    def weigh(self, mass: float, pose: Pose, line: int) -> LinkInertia:
        """Return the inertia of a solid of this mass in kg, whose frame has a pose in its link's."""
        turned = pose.rotation @ (mass * self.inertia) @ pose.rotation.T
        return LinkInertia(mass, pose.position + pose.rotation @ self.center, (turned + turned.T) / 2, line)


def form_primitive_solid_inertia(kind: str, size: Array) -> HomogeneousSolid:
    """Return a solid of a simple shape, with its centre at 0 and its principal axes along x, y, z.

    Args:
        kind: ``sphere``, ``capsule``, ``cylinder``, ``ellipsoid``, ``box``.
        size: Radius; radius and half length; half axes or half edges, m.
    """
    volume, moments = _volume_and_moments(kind, size)
    return HomogeneousSolid(volume, np.zeros(3), np.diag(moments))


def _volume_and_moments(kind: str, size: Array) -> tuple[float, Array]:
    """Return volume in m³ and central moments of inertia per mass in m²."""
    match kind:
        case "sphere":
            r = float(size[0])
            return 4 / 3 * np.pi * r**3, np.full(3, 0.4 * r**2)
        case "ellipsoid":
            squares = size**2
            return 4 / 3 * np.pi * float(np.prod(size)), (np.sum(squares) - squares) / 5
        case "box":
            squares = size**2
            return 8 * float(np.prod(size)), (np.sum(squares) - squares) / 3
    r, half = map(float, size)
    tube, across = np.pi * r**2 * 2 * half, r**2 / 4 + half**2 / 3
    if kind == "cylinder":
        return tube, np.array([across, across, r**2 / 2])
    ball = 4 / 3 * np.pi * r**3  # two half balls, whose mass centres are 3/8 r beyond the ends
    ends = 0.4 * r**2 + half**2 + 0.75 * half * r
    volume = tube + ball
    side = (tube * across + ball * ends) / volume
    return volume, np.array([side, side, (tube * r**2 / 2 + ball * 0.4 * r**2) / volume])


def form_mesh_solid(vertices: Array, faces: npt.NDArray[np.int64], rule: MeshInertiaRule) -> HomogeneousSolid:
    """Return the solid that a mesh bounds, or its shell.

    Args:
        vertices: m, shape (n, 3).
        faces: Indices of vertices, counter-clockwise seen from outside, shape (m, 3); none: the convex hull.
        rule: What of it has mass.

    Raises:
        SolidInertiaError: If the surface is open or faces inward (``exact``), or encloses nothing.
    """
    open_edges = _count_open_edges(vertices, faces) if rule in {"exact", "legacy"} else 0
    if rule == "exact" and open_edges:
        what = f"it is not watertight: {open_edges:,} edges have no neighbour, or one that faces the other way"
        raise SolidInertiaError(f"{what}: close it (fill holes, merge vertices), or write the inertia out")
    if rule == "convex" or not len(faces):
        faces = _find_hull_triangles(vertices)
    triangles = vertices[faces]
    middle = _integrate_surface(triangles)[1]
    if rule == "shell":
        return _compose_solid(*_integrate_surface(triangles - middle), middle)
    volume, center, _ = _integrate_tetrahedra(triangles - middle, signed=rule == "exact")
    size = float(np.prod(np.ptp(vertices, axis=0)))
    if volume < -_MIN_FILL * size:
        raise SolidInertiaError("its triangles face inward: turn them (flip the normals)")
    if not volume > _MIN_FILL * size:
        raise SolidInertiaError("it encloses no volume: write the inertia out, or give it thickness")
    center = center + middle
    volume, _, products = _integrate_tetrahedra(triangles - center, signed=rule == "exact")  # legacy: another volume
    return replace(_compose_solid(volume, np.zeros(3), products, center), open_edges=open_edges)


def _compose_solid(size: float, center: Array, products: Array, origin: Array) -> HomogeneousSolid:
    """Return the solid of a volume (area), its centre and ∫ x xᵀ about it, both from an origin."""
    if not size > 0.0:
        raise SolidInertiaError("its triangles have no area: export it anew")
    per_mass = products / size
    return HomogeneousSolid(size, origin + center, np.trace(per_mass) * np.eye(3) - per_mass)


def _integrate_tetrahedra(triangles: Array, *, signed: bool) -> tuple[float, Array, Array]:
    """Return volume, centre and ∫ x xᵀ dV of the tetrahedra between the origin and triangles, shape (m, 3, 3)."""
    volumes = np.linalg.det(triangles) / 6
    volumes = volumes if signed else np.abs(volumes)
    total, sums = float(np.sum(volumes)), np.sum(triangles, axis=1)
    center = volumes @ sums / 4 / (total or 1.0)
    products = np.einsum("i,ikx,iky->xy", volumes, triangles, triangles) + np.einsum("i,ix,iy->xy", volumes, sums, sums)
    return total, center, products / 20


def _integrate_surface(triangles: Array) -> tuple[float, Array, Array]:
    """Return area, centre and ∫ x xᵀ dA of triangles, shape (m, 3, 3)."""
    normals = np.cross(triangles[:, 1] - triangles[:, 0], triangles[:, 2] - triangles[:, 0])
    areas, sums = np.linalg.norm(normals, axis=1) / 2, np.sum(triangles, axis=1)
    total = float(np.sum(areas))
    center = areas @ sums / 3 / (total or 1.0)
    products = np.einsum("i,ikx,iky->xy", areas, triangles, triangles) + np.einsum("i,ix,iy->xy", areas, sums, sums)
    return total, center, products / 12


def _count_open_edges(vertices: Array, faces: npt.NDArray[np.int64]) -> int:
    """Return how many edges are not passed as often in one direction as in the other; none: there is no border."""
    _, merged = np.unique(vertices + 0.0, axis=0, return_inverse=True)  # a position that stands twice is one vertex
    corners = merged.reshape(-1)[faces]
    edges = np.concatenate([corners[:, [0, 1]], corners[:, [1, 2]], corners[:, [2, 0]]])
    _, place = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True)
    directions = np.sign(edges[:, 1] - edges[:, 0]).astype(float)
    return int(np.count_nonzero(np.bincount(place.reshape(-1), weights=directions)))


def _find_hull_triangles(vertices: Array) -> npt.NDArray[np.int64]:
    """Return the triangles of the convex hull; on which side they face is not said."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        return np.asarray(ConvexHull(vertices).simplices, dtype=np.int64)
    except (QhullError, ValueError) as error:
        raise SolidInertiaError("its vertices lie in a plane: give it thickness, or write the inertia out") from error
