"""Accelerations, multipliers and projected speeds as nodes, against dense linear algebra in NumPy."""

import numpy as np
import pytest

from mb2fmu.compiler import evaluation
from mb2fmu.compiler.numerics.linear_solve import FactoredInverseProduct
from mb2fmu.compiler.numerics.multiplier_solve import MultiplierSystem
from mb2fmu.compiler.numerics.speed_elimination import SpeedElimination
from mb2fmu.compiler.program import count_operations
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout


def program(A, n, redundant=(), band=None):
    """Entry points ``solve`` (u', λ) and ``project`` (u) for the states M (lower triangle), f, γ, v, b and A's others.

    Args:
        A: Numbers, and NaN for entries that are states.
        n: Of speeds.
        redundant: Rows that follow from others.
        band: Entries of M farther from its diagonal are zero; None: none are.
    """
    band = n if band is None else band
    m = len(A)
    names = [f"M{i},{j}" for i in range(n) for j in range(i + 1)]
    names += [f"{letter}{i}" for letter, count in (("f", n), ("g", m), ("v", n), ("b", m)) for i in range(count)]
    names += [f"A{i}{j}" for i in range(m) for j in range(n) if np.isnan(A[i][j])]
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(names)))
    node = {name: b.state(i) for i, name in enumerate(names)}
    zero = b.constant(0.0)
    M = [[node[f"M{i},{j}"] if i - band <= j <= i else zero for j in range(n)] for i in range(n)]
    rows = [[node[f"A{i}{j}"] if np.isnan(A[i][j]) else b.constant(A[i][j]) for j in range(n)] for i in range(m)]
    system = MultiplierSystem(b, M, rows, redundant)
    f, g, v, free = (
        [node[f"{letter}{i}"] for i in range(count)] for letter, count in (("f", n), ("g", m), ("v", n), ("b", m))
    )
    u_dot, multipliers = system.solve(f, g)
    b.entry("solve", [str(i) for i in range(n + m)], [*u_dot, *multipliers])
    b.entry("project", [str(i) for i in range(n)], system.project(v, free))
    return b.build()


def values(given, A, M, f, g, v, free):
    """Of the states."""
    return np.concatenate([M[np.tril_indices(len(M))], f, g, v, free, A[np.isnan(given)]])


def known(M, A, f, g):
    """(u', λ) of the extended system."""
    n, m = len(M), len(A)
    extended = np.block([[M, A.T], [A, np.zeros((m, m))]])
    return np.linalg.solve(extended, np.concatenate([f, -g]))[: n + m]


ROLLING = [  # a wheel's contact (its velocities are given by numbers), then a row that moves with the machine
    [np.nan, np.nan, 1.0, 0.0, 0.3, np.nan],
    [np.nan, 0.0, np.nan, -2.0, np.nan, 0.0],
    [0.0, np.nan, 1.0, np.nan, np.nan, np.nan],
]
MOVING = [[np.nan] * 5] * 2
GIVEN = [[1.0, 0.0, 0.5, -1.0], [0.0, 4.0, 1.0, 1.0], [1.0, 4.0, 0.0, 1.0]]


@pytest.mark.parametrize("shape", [ROLLING, MOVING, GIVEN], ids=["rolling", "moving", "given"])
@pytest.mark.parametrize("massless", [False, True])
def test_both_answers_are_those_of_the_extended_system(shape, massless):
    given = np.array(shape)
    m, n = given.shape
    made = program(given.tolist(), n)
    solve, project = (evaluation.make_evaluator(made, name) for name in ("solve", "project"))
    random = np.random.default_rng(3)
    for _ in range(5):
        A = np.where(np.isnan(given), random.standard_normal((m, n)), given)
        root = random.standard_normal((n, n))
        if massless:
            root[0] = 0.0  # the first speed moves no mass
        M = root @ root.T
        f, g, v, free = (random.standard_normal(k) for k in (n, m, n, m))
        x = values(given, A, M, f, g, v, free)
        assert solve(0, x) == pytest.approx(known(M, A, f, g), rel=1e-8, abs=1e-8)
        u = project(0, x)
        assert A @ u + free == pytest.approx(np.zeros(m), abs=1e-10)
        if np.isnan(given).all():  # nothing is taken out: nearest in kinetic energy
            assert M @ (u - v) == pytest.approx(A.T @ np.linalg.lstsq(A.T, M @ (u - v))[0], abs=1e-9)


def loops_in_a_chain(count):
    """Rows of two per loop over three speeds, of which the next loop shares one."""
    A = np.zeros((2 * count, 2 * count + 1))
    for k in range(count):
        A[2 * k : 2 * k + 2, 2 * k : 2 * k + 3] = np.nan
    return A


def test_a_chain_of_loops_costs_their_number():
    counts = []
    for count in (4, 8, 16):
        given = loops_in_a_chain(count)
        m, n = given.shape
        made = program(given.tolist(), n, band=1)
        counts.append(sum(sum(count_operations(made, name).values()) for name in ("solve", "project")))
    assert counts[2] - counts[1] < 2.1 * (counts[1] - counts[0])
    random = np.random.default_rng(9)
    A = np.where(np.isnan(given), random.standard_normal((m, n)), given)
    M = np.diag(random.uniform(2.0, 3.0, n)) + np.diag(random.uniform(-1, 1, n - 1), 1)
    M = (M + M.T) / 2
    f, g, v, free = (random.standard_normal(k) for k in (n, m, n, m))
    x = values(given, A, M, f, g, v, free)
    wanted = known(M, A, f, g)
    assert evaluation.make_evaluator(made, "solve")(0, x) == pytest.approx(wanted, abs=1e-7 * np.abs(wanted).max())
    assert A @ evaluation.make_evaluator(made, "project")(0, x) + free == pytest.approx(np.zeros(m), abs=1e-8)


def test_redundant_rows_share_their_forces_with_least_norm():
    given = np.array([[np.nan] * 4, [np.nan] * 4, [np.nan] * 4])
    solve = evaluation.make_evaluator(program(given.tolist(), 4, redundant={2}), "solve")
    random = np.random.default_rng(5)
    A = random.standard_normal((3, 4))
    A[2] = A[0] - 2 * A[1]
    root = random.standard_normal((4, 4))
    M, f, g = root @ root.T, random.standard_normal(4), random.standard_normal(3)
    g[2] = g[0] - 2 * g[1]
    found = solve(0, values(given, A, M, f, g, np.zeros(4), np.zeros(3)))
    wanted = known(M, A[:2], f, g[:2])
    assert found[:4] == pytest.approx(wanted[:4], rel=1e-8)
    assert found[4:] == pytest.approx(np.linalg.pinv(A.T) @ (A[:2].T @ wanted[4:]), rel=1e-7)


def test_a_row_that_vanishes_pulls_at_nothing():
    """On the way a row may become zero: the others are followed, and everything stays finite."""
    given = np.full((2, 3), np.nan)
    made = program(given.tolist(), 3)
    M, f, g, v = np.diag([1.0, 2.0, 3.0]), np.array([1.0, 2.0, -1.0]), np.array([0.5, 0.0]), np.array([1.0, -1.0, 0.3])
    A = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
    x = values(given, A, M, f, g, v, np.zeros(2))
    found = evaluation.make_evaluator(made, "solve")(0, x)
    assert found[:4] == pytest.approx(known(M, A[:1], f, g[:1]), rel=1e-9)
    assert found[4] == pytest.approx(0.0, abs=1e-9)
    assert A[0] @ evaluation.make_evaluator(made, "project")(0, x) == pytest.approx(0.0, abs=1e-12)


def test_numbers_are_pivots_and_round_off_is_none():
    b = ProgramBuilder(ProgramVariableLayout(states=("s",)))
    s, one, two, tiny = b.state(0), b.constant(1.0), b.constant(2.0), b.constant(1e-17)
    taken = SpeedElimination(b, [[one, s, two], [one, s, b.add(two, tiny)]])
    assert len(taken.rows) == 1  # the second row is the first
    assert all(b.is_zero(node) for node in taken.A[0])
    assert SpeedElimination(b, [[one, two]], none=True).columns == [0, 1]


@pytest.mark.parametrize("n", [5, 14])
def test_halves_of_small_and_large_systems(n):
    """Written out, and as a block."""
    names = [f"S{i},{j}" for i in range(n) for j in range(i + 1)] + [f"{c}{i}" for c in "xy" for i in range(n)]
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(names)))
    node = {name: b.state(i) for i, name in enumerate(names)}
    zero = b.constant(0.0)
    system = FactoredInverseProduct(
        b, [[node[f"S{i},{j}"] if j <= i else zero for j in range(n)] for i in range(n)], "S"
    )
    x, y = (system.half_products([node[f"{c}{i}"] for i in range(n)]) for c in "xy")
    b.entry("found", [str(i) for i in range(n + 1)], [b.dot(x[0], y[1]), *system.solve_from_half(y[1])])
    made = b.build()
    assert bool(made.blocks) == (n > 12)
    random = np.random.default_rng(1)
    root = random.standard_normal((n, n))
    S, x, y = root @ root.T + np.eye(n), random.standard_normal(n), random.standard_normal(n)
    found = evaluation.make_evaluator(made, "found")(0, np.concatenate([S[np.tril_indices(n)], x, y]))
    assert found == pytest.approx(np.concatenate([[x @ np.linalg.solve(S, y)], np.linalg.solve(S, y)]), rel=1e-10)
