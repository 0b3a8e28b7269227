"""Order in which solids are painted: a solid in front is painted over a solid behind it.

The depth of their middles says it where solids are alike. It does not for a ball on a table: the ball's middle may be
farther away than the table's, and the ball is in front all the same, for it lies on the side of the table's top that
the eye sees. So a solid that lies beyond a face of another is in front of it if that face looks at the eye, and behind
it else (the test of Newell, Newell and Sancha 1972). Depth decides about all other pairs.

Source: Newell, Newell, Sancha: A solution to the hidden surface problem, Proc. ACM annual conference 1972, 443-450.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
MAX_COMPARED_SOLIDS = 80
"""Solids up to which pairs are looked at; more are painted by their depth."""
_OVERLAP_TOLERANCE = 1e-3


@dataclass(frozen=True, slots=True)
class ConvexHull:
    """A convex solid, as far as it matters to what hides it.

    Attributes:
        normals: Of its flat faces, outward, shape (n, 3).
        offsets: normal · p of the points p on each face, in m, shape (n,).
        least: Normals, shape (k, 3) → the least normal · p over the solid, in m, shape (k,).
        size: Its extent in m.
    """

    normals: Floats
    offsets: Floats
    least: Callable[[Floats], Floats]
    size: float


def box_hull(centre: Floats, R: Floats, edges: Floats) -> ConvexHull:
    """Return the hull of a box.

    Args:
        centre: In m.
        R: Its axes as columns.
        edges: Lengths along these.
    """
    normals = np.concatenate([R.T, -R.T])
    offsets = normals @ centre + np.concatenate([edges, edges]) / 2
    return ConvexHull(
        normals, offsets, lambda n: n @ centre - np.abs(n @ R) @ (edges / 2), float(np.linalg.norm(edges))
    )


def cylinder_hull(centre: Floats, axis: Floats, length: float, radius: float) -> ConvexHull:
    """Return the hull of a cylinder; its faces are the ends.

    Args:
        centre: In m.
        axis: Unit vector.
        length: In m.
        radius: In m.
    """

    def least(n: Floats) -> Floats:
        """Return how far it reaches against directions."""
        along = n @ axis
        across = np.sqrt(np.maximum((n * n).sum(axis=1) - along**2, 0.0))
        return np.asarray(n @ centre - np.abs(along) * (length / 2) - across * radius)

    normals = np.stack([axis, -axis])
    return ConvexHull(normals, normals @ centre + length / 2, least, float(np.hypot(length, 2 * radius)))


def ellipsoid_hull(centre: Floats, R: Floats, half: Floats) -> ConvexHull:
    """Return the hull of an ellipsoid, which has no faces.

    Args:
        centre: In m.
        R: Its axes as columns.
        half: Half axes.
    """
    return ConvexHull(
        np.zeros((0, 3)),
        np.zeros(0),
        lambda n: n @ centre - np.linalg.norm((n @ R) * half, axis=1),
        float(2 * half.max()),
    )


def point_cloud_hull(points: Floats) -> ConvexHull:
    """Return the hull of points, such as a mesh's, without looking for its faces.

    Args:
        points: Shape (n, 3), in m.
    """
    size = float(np.linalg.norm(np.ptp(points, axis=0)))
    return ConvexHull(np.zeros((0, 3)), np.zeros(0), lambda n: np.asarray((points @ n.T).min(axis=0)), size)


def sort_for_painting(
    depths: Sequence[float], boxes: Sequence[Floats], hulls: Sequence[ConvexHull], toward: Floats
) -> list[int]:
    """Return the indices of solids in painting order: the farthest first.

    Args:
        depths: Of their middles along the way to the eye, in m.
        boxes: Points that each covers in the picture, shape (k, 2).
        hulls: Of each.
        toward: Unit vector to the eye.
    """
    everyone = range(len(depths))
    if len(depths) > MAX_COMPARED_SOLIDS:
        return sorted(everyone, key=lambda i: depths[i])
    behind: list[set[int]] = [set() for _ in everyone]  # those that wait for one
    waits = [0 for _ in everyone]
    low, high = (np.array([edge(each, axis=0) for each in boxes]) for edge in (np.min, np.max))
    for i in everyone:
        meets = np.all((low[i] < high) & (low < high[i]), axis=1)
        for j in np.flatnonzero(meets).tolist():
            if j > i and (side := _compare_occlusion(hulls[i], hulls[j], toward)):
                first, then = (i, j) if side > 0 else (j, i)
                behind[first].add(then)
                waits[then] += 1
    return _sort_topologically(depths, behind, waits)


def _compare_occlusion(one: ConvexHull, other: ConvexHull, toward: Floats) -> int:
    """Return 1 if the other is in front of one, -1 if it is behind, 0 if no face of either tells."""
    for sign, has, lies in ((1, one, other), (-1, other, one)):
        beyond = lies.least(has.normals) >= has.offsets - _OVERLAP_TOLERANCE * lies.size
        facing = (has.normals @ toward)[beyond]
        if len(facing) and np.abs(facing).max() > _OVERLAP_TOLERANCE:
            return sign if facing[np.argmax(np.abs(facing))] > 0 else -sign
    return 0


def _sort_topologically(depths: Sequence[float], behind: Sequence[set[int]], waits: list[int]) -> list[int]:
    """Return an order in which nobody comes before what is behind it, by depth otherwise; a circle is cut by depth."""
    ready = [(depths[i], i) for i in range(len(depths)) if waits[i] == 0]
    heapq.heapify(ready)
    order: list[int] = []
    left = set(range(len(depths)))
    while left:
        i = heapq.heappop(ready)[1] if ready else min(left, key=lambda k: depths[k])
        if i not in left:
            continue
        left.remove(i)
        order.append(i)
        for j in behind[i] & left:
            waits[j] -= 1
            if waits[j] == 0:
                heapq.heappush(ready, (depths[j], j))
    return order
