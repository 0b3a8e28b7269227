"""The exponential of a matrix, against SciPy's."""

import numpy as np
import pytest
from scipy.linalg import expm

from mb2fmu.validation.experiment.matrix_exponential import exponentiate_matrix


@pytest.mark.parametrize("size", [1, 4, 12])
@pytest.mark.parametrize("norm", [0.0, 1e-6, 0.4, 3.0, 40.0])
def test_the_exponential_of_a_matrix_is_that_of_scipy(size: int, norm: float) -> None:
    matrix = np.random.default_rng(size).normal(size=(size, size))
    matrix *= norm / np.linalg.norm(matrix, 1)
    wanted = expm(matrix)
    assert np.abs(exponentiate_matrix(matrix) - wanted).max() <= 1e-12 * np.abs(wanted).max()


@pytest.mark.parametrize("factor", [0.1, 4.0, 300.0])
def test_that_of_a_stiff_matrix_is_too(factor: float) -> None:
    """One of its rates is fifty times the others."""
    A = factor * (np.random.default_rng(5).normal(size=(6, 6)) - np.diag([0.0, 1.0, 1.0, 2.0, 50.0, 3.0]))
    wanted = expm(A)
    assert exponentiate_matrix(A) == pytest.approx(wanted, rel=1e-9, abs=1e-11 * np.max(np.abs(wanted)))
