"""Surfaces that bend with a flexible body: triangles at rest, and what each mode does to their vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ModelError
from mb2fmu.model.flexible.modal_data import FlexibleBodyModalData

Array = npt.NDArray[np.float64]
Triangles = tuple[Array, npt.NDArray[np.int_], Array]
"""Vertices (n, 3), indices of the faces' vertices (f, 3), displacement of the vertices by each mode (m, n, 3)."""

MOST_RINGS = 60
"""Of a tube: more would not be seen."""


def make_node_surface(data: FlexibleBodyModalData, faces: Any, where: str) -> Triangles:
    """Return the triangles of some nodes, seen from both sides.

    Args:
        data: Of the flexible body.
        faces: Numbers of the nodes of each triangle, shape (f, 3).
        where: ``file:line`` for messages.

    Raises:
        ModelError: If these are no triangles of nodes.
    """
    given = np.asarray(faces)
    count = len(data.nodes)
    if given.ndim != 2 or given.shape[1:] != (3,) or not np.issubdtype(given.dtype, np.integer) or not len(given):
        fault = Fault(f"faces have the shape {given.shape}", where, "give numbers of nodes, (f, 3)")
        raise ModelError("the flexible body cannot be drawn:", [fault])
    if given.min() < 0 or given.max() >= count:
        fault = Fault(f"faces name node {int(given.max())}", where, f"its nodes are 0 to {count - 1}")
        raise ModelError("the flexible body cannot be drawn:", [fault])
    used, index = np.unique(given, return_inverse=True)
    triangles = index.reshape(-1, 3)
    return data.nodes[used], np.vstack([triangles, triangles[:, ::-1]]), data.modes[:, used]


def make_tube_surface(data: FlexibleBodyModalData, outline: Any) -> Triangles:
    """Return a tube along nodes that lie on a line: an outline at each, turned with its section.

    Args:
        data: Of a beam.
        outline: Corners of the section, shape (c, 2), m; its axes are those that follow the tube's axis cyclically.
    """
    corners = np.asarray(outline, dtype=float)
    axis = int(np.argmax(np.ptp(data.nodes, axis=0)))
    order = np.argsort(data.nodes[:, axis], kind="stable")
    order = order[np.unique(np.rint(np.linspace(0, len(order) - 1, MOST_RINGS)).astype(int))]
    arms = np.zeros((len(corners), 3))
    arms[:, (axis + 1) % 3], arms[:, (axis + 2) % 3] = corners.T
    turns = np.zeros_like(data.modes) if data.rotations is None else np.nan_to_num(data.rotations)
    shapes = data.modes[:, order, None] + np.cross(turns[:, order, None], arms)
    vertices = data.nodes[order][:, None] + arms
    c, rings = len(corners), len(order)
    side = np.arange(c)
    following = (side + 1) % c
    faces = []
    for k in range(rings - 1):
        a, b, d, e = k * c + side, k * c + following, (k + 1) * c + side, (k + 1) * c + following
        faces += [np.column_stack([a, b, e]), np.column_stack([a, e, d])]
    inner = np.arange(1, c - 1)
    first = np.column_stack([np.zeros_like(inner), inner + 1, inner])
    faces += [first, (rings - 1) * c + first[:, ::-1]]
    wound = np.vstack(faces)
    m = data.mode_count
    return vertices.reshape(-1, 3), wound, shapes.reshape(m, -1, 3)


def make_section_outline(radius: float | None, box: tuple[float, float] | None) -> Array:
    """Return the corners of a circle or rectangle, shape (c, 2), counter-clockwise."""
    if box is not None:
        return np.asarray(np.array([[1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [-1.0, -1.0]]) * np.array(box) / 2.0)
    angles = np.linspace(0.0, 2.0 * np.pi, 16, endpoint=False)
    return np.asarray((radius or 0.0) * np.column_stack([np.cos(angles), np.sin(angles)]))
