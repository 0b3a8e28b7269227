"""The blocks of a sparse linear system: those that SciPy's graphs give, each behind what it needs."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from mb2fmu.compiler.numerics.linear_solve import _find_triangular_blocks


@pytest.mark.parametrize("seed", range(20))
def test_each_block_needs_itself_and_what_comes_before(seed):
    draw = random.Random(seed)
    n = draw.randint(2, 14)
    filled = np.array([[i == j or draw.random() < 0.15 for j in range(n)] for i in range(n)])
    filled = filled[draw.sample(range(n), n)]
    blocks = _find_triangular_blocks(
        [set(np.flatnonzero(row).tolist()) for row in filled], set(range(n)), set(range(n))
    )
    matched_rows = maximum_bipartite_matching(csr_array(filled), perm_type="row")
    assert len(blocks) == connected_components(csr_array(filled[matched_rows]), connection="strong")[0]
    assert sorted(row for rows, _ in blocks for row in rows) == list(range(n))
    known = set()
    for rows, columns in blocks:
        assert len(rows) == len(columns)
        known |= set(columns)
        assert not filled[rows][:, sorted(set(range(n)) - known)].any()
    assert known == set(range(n))


def test_a_matrix_that_is_singular_by_its_structure_stays_in_one_piece():
    assert _find_triangular_blocks([{0}, {0}, {1, 2}], {0, 1, 2}, {0, 1, 2}) == [([0, 1, 2], [0, 1, 2])]
