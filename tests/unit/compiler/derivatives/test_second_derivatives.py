"""Second derivatives through Newton's method, against differences of the first ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mb2fmu import pipeline
from mb2fmu.compiler.derivatives import second_derivatives
from mb2fmu.compiler.derivatives.newton_solution_derivatives import make_newton_solutions_differentiable
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.scalar_program import ScalarProgram, read_initial_discrete_memory

MODELS = Path(__file__).parents[4] / "models"


def errors(program: ScalarProgram, x: np.ndarray, r: np.ndarray, p: np.ndarray) -> float:
    """Largest error of the Hessian of a weighted sum of x', in parts of its largest entry."""
    twice = second_derivatives.form_second_derivatives(program, "rhs", ("states", "parameters"))
    n, n_x = sum(twice.variables.values()), len(x)
    weights = np.random.default_rng(3).uniform(-1.0, 1.0, len(program.entries["rhs"].results))
    seeds = np.concatenate([weights, np.zeros(len(twice.program.layout.seeds) - len(weights))])
    gradient, memory = make_evaluator(twice.program, "adjoint"), read_initial_discrete_memory(program)
    v, h = np.concatenate([x, p]), 2e-3

    def at(point: np.ndarray) -> np.ndarray:
        return gradient(0.0, point[:n_x], r, point[n_x:], memory, seeds)

    dense = np.zeros(twice.hessian.shape)
    values = make_evaluator(twice.program, "hessian")(0.0, x, r, p, memory, seeds)
    dense[twice.hessian.rows, twice.hessian.columns] = values
    differences = np.empty((n, n))
    for j, unit in enumerate(np.eye(n)):  # of sixth order
        d = [at(v + k * h * unit) - at(v - k * h * unit) for k in (1, 2, 3)]
        differences[:, j] = (45.0 * d[0] - 9.0 * d[1] + d[2]) / (60.0 * h)
    return float(np.max(np.abs(dense[:, :n] - differences)) / np.max(np.abs(differences)))


def test_loops_have_exact_second_derivatives(monkeypatch: pytest.MonkeyPatch) -> None:
    derivation = pipeline.derive(MODELS / "four_bar.py", constraints="partition")
    x, r, p = pipeline.start_values(derivation)
    assert errors(derivation.program, x, r, p) < 1e-8
    monkeypatch.setattr(
        second_derivatives,
        "make_newton_solutions_differentiable",
        lambda program, entry, order: make_newton_solutions_differentiable(program, entry, order - 1),
    )
    assert errors(derivation.program, x, r, p) > 1e-3
