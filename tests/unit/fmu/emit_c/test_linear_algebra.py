"""Factorizations in C: the Python runtime's bits, and what happens to matrices that have no inverse."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from compiled_c import ARCHITECTURE, compile_library, missing

from mb2fmu.compiler.arithmetic import python_runtime

TEXT = """
#include "linear_algebra.c"
int ldlt(int n, double a[], double x[]);
int ldlt(int n, double a[], double x[])
{
    const int failed = mb2fmu_ldlt_factor(n, a);
    if (failed == 0) {
        mb2fmu_ldlt_solve(n, a, x);
    }
    return failed;
}
int lu(int n, double a[], double x[]);
int lu(int n, double a[], double x[])
{
    const int failed = mb2fmu_lu_factor(n, a);
    if (failed == 0) {
        mb2fmu_lu_solve(n, a, x);
    }
    return failed;
}
int least_norm(int n, int rank, double a[], double x[]);
int least_norm(int n, int rank, double a[], double x[])
{
    const int failed = mb2fmu_least_norm_factor(n, rank, a);
    if (failed == 0) {
        mb2fmu_least_norm_solve(n, a, x);
    }
    return failed;
}
"""


@pytest.fixture(scope="module", params=["gcc", "zig"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    reason = missing(request.param)
    if reason:
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("linear")
    return ctypes.CDLL(str(compile_library(request.param, folder, TEXT, ARCHITECTURE[request.param])))


def solve(library: ctypes.CDLL, kind: str, matrix: np.ndarray, right: np.ndarray) -> tuple[int, np.ndarray]:
    n = len(right)
    entries = matrix[np.tril_indices(n)] if kind == "ldlt" else np.concatenate([matrix.ravel(), np.zeros(n)])
    a, x = np.ascontiguousarray(entries, dtype=np.float64), right.astype(np.float64)
    function = getattr(library, kind)
    failed = function(n, ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(x.ctypes.data))
    return failed, x


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7, 20])
@pytest.mark.parametrize("kind", ["ldlt", "lu"])
def test_solutions_have_the_bits_of_the_python_runtime(library: ctypes.CDLL, kind: str, n: int) -> None:
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n))
    matrix = root @ root.T + 0.1 * np.eye(n) if kind == "ldlt" else root
    right = rng.standard_normal(n)
    entries = (matrix[np.tril_indices(n)] if kind == "ldlt" else matrix.ravel()).tolist()
    factors = python_runtime.FAST[f"{kind}_factor"](n, "", entries)
    failed, x = solve(library, kind, matrix, right)
    assert failed == 0
    assert x.tolist() == python_runtime.FAST[f"{kind}_solve"](factors, right.tolist())
    residual = np.max(np.abs(matrix @ x - right))
    assert residual < 1e-13 * np.linalg.cond(matrix) * (1.0 + np.max(np.abs(right)))


@pytest.mark.parametrize(
    ("kind", "matrix", "pivot"),
    [
        ("ldlt", [[1.0, 1.0], [1.0, 1.0]], 2),
        ("ldlt", [[-1.0, 0.0], [0.0, 1.0]], 1),
        ("ldlt", [[np.inf, 0.0], [0.0, 1.0]], 1),
        ("ldlt", [[1.0, 0.0], [0.0, np.nan]], 2),
        ("lu", [[0.0, 0.0], [1.0, 0.0]], 2),
        ("lu", [[1.0, 2.0], [2.0, 4.0]], 2),
        ("lu", [[np.nan, 1.0], [1.0, 1.0]], 1),
        ("lu", [[np.inf, 1.0], [1.0, 1.0]], 1),
    ],
)
def test_the_failing_pivot_is_named(library: ctypes.CDLL, kind: str, matrix: list[list[float]], pivot: int) -> None:
    assert solve(library, kind, np.array(matrix), np.ones(2))[0] == pivot


def test_rows_are_exchanged_where_a_pivot_is_zero(library: ctypes.CDLL) -> None:
    failed, x = solve(library, "lu", np.array([[0.0, 2.0], [4.0, 0.0]]), np.array([2.0, 8.0]))
    assert failed == 0
    assert x.tolist() == [2.0, 1.0]


@pytest.mark.parametrize(("n", "rank"), [(1, 0), (1, 1), (2, 1), (5, 3), (6, 6), (12, 9)])
def test_solutions_of_least_norm(library: ctypes.CDLL, n: int, rank: int) -> None:
    """The Python runtime's bits, and numpy's pseudo-inverse; what lies beyond the rank is left out, small or not."""
    rng = np.random.default_rng(n)
    directions = np.linalg.qr(rng.standard_normal((n, n)))[0]
    values = np.concatenate([rng.uniform(0.2, 2.0, rank), np.full(n - rank, 1e-9)])
    matrix = directions @ np.diag(values) @ directions.T
    right = rng.standard_normal(n)
    lower = matrix[np.tril_indices(n)]
    a, x = np.concatenate([lower, np.zeros(2 * n * n + n)]), right.copy()
    assert library.least_norm(n, rank, ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(x.ctypes.data)) == 0
    factors = python_runtime.FAST["least_norm_factor"](n, "", lower.tolist(), rank)
    assert x.tolist() == python_runtime.FAST["least_norm_solve"](factors, right.tolist())
    kept = directions[:, :rank]
    np.testing.assert_allclose(x, kept @ ((kept.T @ right) / values[:rank]), rtol=0, atol=1e-12)


def test_a_matrix_that_is_not_finite_has_no_solution_of_least_norm(library: ctypes.CDLL) -> None:
    a, x = np.array([1.0, np.nan, 1.0, *np.zeros(7)]), np.ones(2)
    assert library.least_norm(2, 2, ctypes.c_void_p(a.ctypes.data), ctypes.c_void_p(x.ctypes.data)) == 2
