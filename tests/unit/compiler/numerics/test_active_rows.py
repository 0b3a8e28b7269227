"""Forces over the rows that are held: exact where rows are independent, of least norm where they are redundant."""

from __future__ import annotations

import numpy as np
import pytest

from mb2fmu.compiler import evaluation
from mb2fmu.compiler.numerics.frictionless_impacts_and_resting_forces import ActiveRowSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, ProgramVariableLayout


def forces(W: np.ndarray, right: np.ndarray, held: np.ndarray | None = None) -> np.ndarray:
    """What the nodes give."""
    n = len(right)
    names = tuple(map(str, range(n * n + 2 * n)))
    b = ProgramBuilder(ProgramVariableLayout(states=names))
    x = [b.state(k) for k in range(len(names))]
    W_nodes = [x[n * i : n * i + n] for i in range(n)]
    truths, rights = x[n * n : n * n + n], x[n * n + n :]
    system = ActiveRowSystem(b, W_nodes, [b.binary(Op.LT, b.constant(0.5), t) for t in truths], "forces")
    b.entry("forces", tuple(map(str, range(n))), system.solve(rights))
    values = np.concatenate([W.ravel(), np.ones(n) if held is None else held, right])
    return np.asarray(evaluation.make_evaluator(b.build(), "forces")(0.0, values))


@pytest.mark.parametrize(("angle", "error"), [(1.0, 1e-13), (0.1, 1e-11), (0.03, 1e-9), (0.01, 1e-6)])
def test_independent_rows_are_solved_exactly(angle, error):
    G = np.array([[3.0, 0.0], [0.02 * np.cos(angle), 0.02 * np.sin(angle)]])  # of different units
    right = np.array([2.0, -0.7])
    W = G @ G.T
    found = forces(W, right)
    np.testing.assert_allclose(W @ found, right, rtol=error, atol=error)


@pytest.mark.parametrize("factor", [2.0, 1e-3, 1e6, -0.37])
def test_redundant_rows_share_by_least_norm_and_ignore_what_they_contradict_each_other_in(factor):
    G = np.array([[0.3, 1.1], [0.3 * factor, 1.1 * factor], [1.0, -0.2]])
    W = G @ G.T
    scale = 1.0 / np.sqrt(np.diag(W))
    exact = scale[:, None] * np.linalg.pinv(W * np.outer(scale, scale), rcond=1e-10) * scale
    consistent = G @ np.array([7.0, -3.0])
    contradiction = np.array([1.0, 0.0, 0.0])
    np.testing.assert_allclose(forces(W, consistent), exact @ consistent, rtol=1e-8)
    np.testing.assert_allclose(forces(W, contradiction), exact @ contradiction, rtol=1e-8, atol=1e-8)


def test_released_rows_bear_nothing():
    G = np.array([[0.3, 1.1], [0.6, 2.2], [1.0, -0.2]])
    found = forces(G @ G.T, np.array([5.0, 9.0, 1.0]), np.array([0.0, 1.0, 0.0]))
    np.testing.assert_allclose(found, [0.0, 9.0 / (G[1] @ G[1]), 0.0], rtol=1e-14)
