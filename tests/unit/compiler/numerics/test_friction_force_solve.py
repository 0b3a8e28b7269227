"""Forces of contacts with friction: a contact that is open bears exactly nothing, whatever the units of its row."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest

from mb2fmu.compiler import evaluation
from mb2fmu.compiler.numerics.friction_force_solve import FrictionContactMatrix, FrictionForceSolver
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, ProgramVariableLayout

NORMALS, TANGENTS = 3, 3


@cache
def make_force_solver(n: int) -> Callable[..., Any]:
    """Return the function of W, of which contacts are held and of the right-hand side: N and T where none slides."""
    names = tuple(map(str, range(n * n + 2 * n)))
    b = ProgramBuilder(ProgramVariableLayout(states=names))
    x = [b.state(k) for k in range(len(names))]
    contacts = FrictionContactMatrix([x[n * i : n * i + n] for i in range(n)], (3, 4, 5), [b.constant(0.3)] * TANGENTS)
    truths = [b.binary(Op.LT, b.constant(0.5), truth) for truth in x[n * n : n * n + n]]
    solver = FrictionForceSolver(b, contacts, truths, [b.constant(0.0)] * TANGENTS, "forces")
    b.entry("forces", names[:n], solver.solve(x[n * n + n :]))
    return evaluation.make_evaluator(b.build(), "forces")


def solve_forces(W: np.ndarray, right: np.ndarray, held: np.ndarray) -> np.ndarray:
    """Return N and T of three contacts with friction that do not slide."""
    return np.array(make_force_solver(len(right))(0.0, np.concatenate([W.ravel(), held, right])))


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e3, 1e6])
def test_an_open_contact_bears_exactly_nothing(size: float) -> None:
    """Not round-off: an impulse other than 0 counts as an impact."""
    rng = np.random.default_rng(3)
    held = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
    for _ in range(20):
        G = rng.normal(size=(NORMALS + TANGENTS, 6)) * np.where(held > 0.5, 1.0, size)[:, None]
        W, right = G @ G.T, rng.normal(size=NORMALS + TANGENTS)
        found, rows = solve_forces(W, right, held), np.flatnonzero(held)
        assert found[1] == found[4] == 0.0
        np.testing.assert_allclose(found[rows], np.linalg.solve(W[np.ix_(rows, rows)], right[rows]), rtol=1e-7)


def test_an_open_contact_whose_rows_vanish_bears_nothing() -> None:
    held = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 1.0])
    G = np.random.default_rng(5).normal(size=(NORMALS + TANGENTS, 6)) * held[:, None]
    found = solve_forces(G @ G.T, np.ones(NORMALS + TANGENTS), held)
    assert np.all(np.isfinite(found))
    assert found[1] == found[4] == 0.0


@pytest.mark.parametrize("apart", [0.0, 1e-9])
def test_rows_that_say_the_same_get_no_force_for_what_none_gives(apart: float) -> None:
    """Two feet of one body are wanted to slide apart by 0.02: seen as forces of 6e4 on a rod that still turned."""
    held = np.array([1.0, 1.0, 0.0, 1.0, 1.0, 0.0])
    rng = np.random.default_rng(7)
    G, right = rng.normal(size=(NORMALS + TANGENTS, 6)), rng.normal(size=NORMALS + TANGENTS)
    G[4] = G[3] + apart * rng.normal(size=6)
    right[4] = right[3] - 0.02
    found, rows = solve_forces(G @ G.T, right, held), np.flatnonzero(held)
    lengths = np.linalg.norm(G[rows], axis=1)
    unit = G[rows] / lengths[:, None]
    expected = np.linalg.pinv(unit @ unit.T, rcond=1e-10) @ (right[rows] / lengths) / lengths
    np.testing.assert_allclose(found[rows], expected, atol=2e-4)
