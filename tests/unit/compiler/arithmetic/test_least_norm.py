"""Solutions of least norm in a Program: pseudo-inverse, batches, derivatives forward and in reverse."""

import numpy as np
import pytest

from mb2fmu.compiler.arithmetic.python_runtime import SingularMatrixError
from mb2fmu.compiler.derivatives.forward_derivatives import differentiate_forward
from mb2fmu.compiler.derivatives.reverse_derivatives import differentiate_reverse
from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, ProgramVariableLayout


def program_of(n, rank):
    """x = S⁺ b: the states are S's lower triangle row by row, then b."""
    entries = n * (n + 1) // 2
    names = tuple(map(str, range(entries + n)))
    b = ProgramBuilder(ProgramVariableLayout(states=names))
    leaves = [b.state(i) for i in range(len(names))]
    factor = b.block(EquationSolveBlock("least_norm_factor", n, tuple(leaves[:entries]), name="the matrix", rank=rank))
    b.entry("e", names[:n], b.solution(factor, leaves[entries:]))
    return b.build()


def state_of(root, right):
    S = root @ root.T
    return np.concatenate([S[np.tril_indices(len(S))], right])


def exact(root, right):
    return np.linalg.pinv(root @ root.T, rcond=1e-10, hermitian=True) @ right


@pytest.mark.parametrize(("n", "rank"), [(1, 1), (4, 2), (5, 4), (5, 5)])
def test_values_batches_and_derivatives(n, rank):
    rng = np.random.default_rng(n + rank)
    root, slope = rng.normal(size=(2, n, rank))
    right, change = rng.normal(size=(2, n))
    program, x = program_of(n, rank), state_of(root, right)
    f = make_evaluator(program, "e")
    np.testing.assert_allclose(f(0.0, x), exact(root, right), rtol=1e-10, atol=1e-11)
    batch = f(0.0, [x, 2.0 * x])
    np.testing.assert_array_equal(batch[0], f(0.0, x))
    h = 1e-4

    def beside(k):
        return exact(root + k * h * slope, right + k * h * change)

    # a direction along which the rank stays what it is; central differences of order four
    wanted = (8.0 * (beside(1) - beside(-1)) - (beside(2) - beside(-2))) / (12.0 * h)
    dS = root @ slope.T + slope @ root.T
    direction = np.concatenate([dS[np.tril_indices(n)], change])
    found = make_evaluator(differentiate_forward(program, "e", ["states"]), "jvp_e")(0.0, x, s=direction)
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7 * np.abs(wanted).max())
    weights = rng.normal(size=n)
    gradient = make_evaluator(differentiate_reverse(program, "e", ["states"]), "vjp_e")(0.0, x, s=weights)
    assert gradient @ direction == pytest.approx(weights @ found, rel=1e-9)


def test_a_matrix_of_zeros_gives_zero_and_one_that_is_not_finite_nothing():
    f = make_evaluator(program_of(2, 2), "e")
    np.testing.assert_array_equal(f(0.0, [0.0, 0.0, 0.0, 1.0, 2.0]), [0.0, 0.0])
    with pytest.raises(SingularMatrixError, match="the matrix"):
        f(0.0, [np.inf, 0.0, 1.0, 1.0, 2.0])
    batch = f(0.0, [[np.inf, 0.0, 1.0, 1.0, 2.0], [1.0, 0.0, 1.0, 1.0, 2.0]])
    assert np.isnan(batch[0]).all()
    np.testing.assert_allclose(batch[1], [1.0, 2.0])
