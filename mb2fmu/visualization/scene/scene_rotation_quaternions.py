"""Rotations as unit quaternions (w, x, y, z), many at once."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Quaternion = tuple[float, float, float, float]


def quaternions_from_matrices(matrices: Floats) -> Floats:
    """Return quaternions (n, 4), w ≥ 0, of rotation matrices (n, 3, 3), by the largest component (Shepperd 1978)."""
    m = matrices
    trace = m[:, 0, 0] + m[:, 1, 1] + m[:, 2, 2]
    squares = np.stack([trace, m[:, 0, 0], m[:, 1, 1], m[:, 2, 2]], axis=1)
    largest = np.argmax(squares, axis=1)
    q = np.empty((len(m), 4))
    for k in range(4):
        rows = np.flatnonzero(largest == k)
        if not rows.size:
            continue
        a = m[rows]
        if k == 0:
            q[rows, 0] = 1 + trace[rows]
            q[rows, 1], q[rows, 2] = a[:, 2, 1] - a[:, 1, 2], a[:, 0, 2] - a[:, 2, 0]
            q[rows, 3] = a[:, 1, 0] - a[:, 0, 1]
            continue
        i, j, l = k - 1, k % 3, (k + 1) % 3
        q[rows, 0] = a[:, l, j] - a[:, j, l]
        q[rows, 1 + i] = 1 + a[:, i, i] - a[:, j, j] - a[:, l, l]
        q[rows, 1 + j], q[rows, 1 + l] = a[:, i, j] + a[:, j, i], a[:, i, l] + a[:, l, i]
    sizes = np.linalg.norm(q, axis=1, keepdims=True)
    q = np.where(sizes > 0, q / np.where(sizes > 0, sizes, 1.0), np.array([1.0, 0.0, 0.0, 0.0]))
    return np.asarray(np.where(q[:, :1] < 0, -q, q))


def align_quaternion_signs(turns: Floats) -> Floats:
    """Return the rotations with signs chosen so that no quaternion jumps, shape (n, 4)."""
    steps = np.sum(turns[1:] * turns[:-1], axis=1)
    signs = np.concatenate([[1.0], np.cumprod(np.where(steps < 0, -1.0, 1.0))])
    return np.asarray(turns * signs[:, None])


def rotate_vector(turns: Floats, vector: Floats) -> Floats:
    """Return a vector, or one each, turned by each rotation, shape (n, 4) and (3,) or (n, 3) → (n, 3)."""
    w, v = turns[:, :1], turns[:, 1:]
    cross = 2.0 * _cross_product(v, vector)
    return np.asarray(vector + w * cross + _cross_product(v, cross))


def _cross_product(a: Floats, b: Floats) -> Floats:
    """Return a × b of last axes: ``np.cross`` takes longer to choose axes than to multiply a few vectors."""
    left, right = a[..., [1, 2, 0]] * b[..., [2, 0, 1]], a[..., [2, 0, 1]] * b[..., [1, 2, 0]]
    return np.asarray(left - right)


def quaternion_product(a: Floats, b: Floats) -> Floats:
    """Return first b, then a: shape (4,) each."""
    w, v = a[0] * b[0] - a[1:] @ b[1:], a[0] * b[1:] + b[0] * a[1:] + _cross_product(a[1:], b[1:])
    return np.concatenate([[w], v])


def quaternion_matrix(turn: Floats) -> Floats:
    """Return the direction cosine matrix of one quaternion, shape (4,) → (3, 3)."""
    return rotate_vector(turn[None, :], np.eye(3)).T


def rotation_from_y_axis(direction: Floats) -> Quaternion:
    """Return the shortest rotation of the y axis into a direction."""
    size = float(np.linalg.norm(direction))
    if size == 0:
        return (1.0, 0.0, 0.0, 0.0)
    x, y, z = (float(c) for c in direction / size)
    if y < -1 + 1e-12:
        return (0.0, 1.0, 0.0, 0.0)
    q = np.array([1 + y, z, 0.0, -x])
    w, a, b, c = (float(v) for v in q / np.linalg.norm(q))
    return (w, a, b, c)
