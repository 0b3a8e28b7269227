"""Nested dissection: solutions of meshes and of graphs without geometry, growth of the factors, singular matrices."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from finite_elements import box_model

from mb2fmu.model.flexible.mesh_multifrontal_cholesky import SparseCholesky


def shifted_box(cells: int) -> tuple[scipy.sparse.csr_array, np.ndarray]:
    """A positive definite matrix of a cube of bricks, and the place of each unknown."""
    K, M, nodes = box_model((1.0, 1.0, 1.0), (cells, cells, cells))
    return K + 1e6 * M, np.repeat(nodes, 3, axis=0)


@pytest.mark.parametrize("columns", [(), (3,)])
def test_a_mesh_is_solved(columns):
    A, places = shifted_box(6)
    right = np.random.default_rng(1).normal(size=(A.shape[0], *columns))
    found = SparseCholesky(A, places).solve(right)
    assert found.shape == right.shape
    assert np.max(np.abs(A @ found - right)) < 1e-9


@pytest.mark.parametrize("spread", [1.0, 0.0])
def test_any_coupling_is_solved_wherever_its_unknowns_are(spread):
    """Places decide the order only: unknowns that are coupled across the body, or are all at one place."""
    rng = np.random.default_rng(2)
    B = scipy.sparse.random_array((700, 700), density=0.002, rng=rng)
    A = (B @ B.T + scipy.sparse.eye_array(700)).tocsr()
    right = rng.normal(size=700)
    found = SparseCholesky(A, spread * rng.normal(size=(700, 3))).solve(right)
    assert found == pytest.approx(np.linalg.solve(A.toarray(), right), abs=1e-10)


def test_entries_of_cubes_are_of_the_least_order_there_is():
    """At most 25 n^(4/3) for n unknowns: 19, 21 and 22 with 1,536, 12,288 and 98,304."""
    for cells in (7, 11):
        A, places = shifted_box(cells)
        assert SparseCholesky(A, places).entries <= 25.0 * A.shape[0] ** (4 / 3)


def test_parts_that_hang_together_nowhere_are_singular():
    K, _, nodes = box_model((1.0, 1.0, 1.0), (4, 4, 4))
    with pytest.raises(np.linalg.LinAlgError):
        SparseCholesky(K, np.repeat(nodes, 3, axis=0))
