"""A box of trilinear bricks with 8 nodes: stiffness and mass matrices, assembled by hand."""

from __future__ import annotations

import itertools

import numpy as np
import scipy.sparse


def brick_matrices(size: tuple[float, float, float], E: float, nu: float, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """K and M of one brick, shape (24, 24), by 2 x 2 x 2 Gauss points."""
    corners = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    h = np.array(size) / 2.0
    lame, mu = E * nu / ((1 + nu) * (1 - 2 * nu)), E / (2 * (1 + nu))
    C = np.diag([2 * mu] * 3 + [mu] * 3)
    C[:3, :3] += lame
    K, M = np.zeros((24, 24)), np.zeros((24, 24))
    for xi in itertools.product((-1 / np.sqrt(3), 1 / np.sqrt(3)), repeat=3):
        terms = 1.0 + corners * np.array(xi)
        N = np.prod(terms, axis=1) / 8.0
        B, shape = np.zeros((6, 24)), np.zeros((3, 24))
        for a in range(8):
            g = [corners[a, i] * np.prod(np.delete(terms[a], i)) / 8.0 / h[i] for i in range(3)]
            B[[0, 1, 2], [3 * a, 3 * a + 1, 3 * a + 2]] = g
            B[3, [3 * a, 3 * a + 1]] = g[1], g[0]
            B[4, [3 * a + 1, 3 * a + 2]] = g[2], g[1]
            B[5, [3 * a, 3 * a + 2]] = g[2], g[0]
            shape[[0, 1, 2], [3 * a, 3 * a + 1, 3 * a + 2]] = N[a]
        K += B.T @ C @ B * np.prod(h)
        M += rho * shape.T @ shape * np.prod(h)
    return K, M


def box_model(
    size: tuple[float, float, float], cells: tuple[int, int, int], E: float = 70e9, nu: float = 0.3, rho: float = 2700.0
) -> tuple[scipy.sparse.csr_array, scipy.sparse.csr_array, np.ndarray]:
    """K, M and nodes of a box from x = 0 to its length, y and z about the axis."""
    axes = [np.linspace(0.0, size[0], cells[0] + 1)]
    axes += [np.linspace(-size[i] / 2.0, size[i] / 2.0, cells[i] + 1) for i in (1, 2)]
    nodes = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 3)
    shape = tuple(c + 1 for c in cells)
    first = np.array([np.ravel_multi_index(i, shape) for i in itertools.product(*map(range, cells))])
    offsets = np.array([np.ravel_multi_index(i, shape) for i in itertools.product((0, 1), repeat=3)])
    elements = first[:, None] + offsets
    dofs = (3 * elements[:, :, None] + np.arange(3)).reshape(len(elements), 24)
    K_e, M_e = brick_matrices(tuple(s / c for s, c in zip(size, cells, strict=True)), E, nu, rho)
    rows, columns = np.repeat(dofs, 24, axis=1).ravel(), np.tile(dofs, (1, 24)).ravel()
    count = 3 * len(nodes)
    K, M = (
        scipy.sparse.coo_array((np.tile(e.ravel(), len(elements)), (rows, columns)), shape=(count, count)).tocsr()
        for e in (K_e, M_e)
    )
    return K, M, nodes
