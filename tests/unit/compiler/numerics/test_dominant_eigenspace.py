"""Turning of the space of the largest eigenvalues, against differences of projections found by NumPy."""

import numpy as np
import pytest

from mb2fmu.compiler.derivatives.forward_derivatives import differentiate_forward
from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.numerics.regularized_constraint_systems import add_eigenspace_rotation_derivative
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout


def projection(S, count):
    vectors = np.linalg.eigh(S)[1][:, count:]
    return vectors @ vectors.T


@pytest.mark.parametrize(("n", "count"), [(2, 1), (5, 1), (5, 2), (5, 3), (3, 3)])
def test_numbers_stay_in_the_space_as_it_turns(n, count):
    rng = np.random.default_rng(10 * n + count)
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    S = basis @ np.diag(np.r_[np.linspace(0.0, 0.3, count), np.linspace(0.7, 2.0, n - count)]) @ basis.T
    slope = rng.normal(size=(n, n))
    slope = slope + slope.T
    P = projection(S, count)
    y = P @ rng.normal(size=n)
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(map(str, range(n * n)))))
    matrix = [[b.state(max(i, j) * n + min(i, j)) for j in range(n)] for i in range(n)]
    left_out = [[b.constant(float(e)) for e in row] for row in np.eye(n) - P]
    found = add_eigenspace_rotation_derivative(
        b, matrix, left_out, count, [b.constant(float(e)) for e in y], "the matrix"
    )
    b.entry("e", [str(i) for i in range(n)], found)
    program = b.build()
    np.testing.assert_array_equal(make_evaluator(program, "e")(0.0, S.ravel()), y)
    h = 1e-4
    beside = {k: projection(S + k * h * slope, count) @ y for k in (-2, -1, 1, 2)}
    wanted = (8.0 * (beside[1] - beside[-1]) - (beside[2] - beside[-2])) / (12.0 * h)
    forward = make_evaluator(differentiate_forward(program, "e", ["states"]), "jvp_e")
    np.testing.assert_allclose(forward(0.0, S.ravel(), s=slope.ravel()), wanted, atol=1e-8 * np.abs(slope).max())
