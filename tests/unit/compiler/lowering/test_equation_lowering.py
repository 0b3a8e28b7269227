"""Equations of motion as programs: entry points, constraints both ways, laziness, the same program every time."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from hypothesis import given
from hypothesis import strategies as st
from representatives import examples

from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.lowering import lower_equations_to_program
from mb2fmu.compiler.program.program_pruning import find_needed_nodes
from mb2fmu.compiler.program.program_result_dependencies import count_operations, find_result_dependencies
from mb2fmu.errors import LoweringError
from mb2fmu.mechanics.equations.equations_of_motion import (
    EquationsOfMotion,
    KinematicEquations,
    LinearSystemAssignment,
    MassMatrixDynamics,
    OutputExpression,
    SymbolAssignment,
    VelocityConstraints,
)

t = sm.Symbol("t")
MATRIX, COLUMN = sm.ImmutableMatrix, lambda *rows: sm.ImmutableMatrix([[row] for row in rows])


def sleigh(*, reduced):
    """Chaplygin's sleigh: a knife edge at distance a behind the mass centre; speeds of the centre and the yaw rate."""
    x, y, theta, v_x, v_y, w = sm.symbols("x y theta v_x v_y w")
    m, inertia, a, force = sm.symbols("m I a F")
    s, c = sm.sin(theta), sm.cos(theta)
    mass, f = sm.diag(m, m, inertia), sm.Matrix([force * c, force * s, 0])
    if reduced:
        span = sm.Matrix([[1, 0], [s / c, a / c], [0, 1]])
        mass, f = span.T * mass, span.T * f
    return EquationsOfMotion(
        method="kane",
        t=t,
        q=(x, y, theta),
        u=(v_x, v_y, w),
        u_independent=(0, 2),
        u_dot=sm.symbols("v_x' v_y' w'"),
        p=(m, inertia, a),
        r=(force,),
        kinematics=KinematicEquations(MATRIX(sm.eye(3)), COLUMN(0, 0, 0)),
        velocity_constraints=VelocityConstraints(
            names=("knife edge",),
            jacobian=MATRIX([[-s, c, -a]]),
            offset=COLUMN(0),
            bias=COLUMN(-w * (c * v_x + s * v_y)),
        ),
        dynamics=MassMatrixDynamics(MATRIX(mass), MATRIX(f)),
        outputs=(
            OutputExpression("x", x, "position"),
            OutputExpression("v_lateral", -s * v_x + c * v_y - a * w, "velocity"),
            OutputExpression("a_y", sm.Symbol("v_y'"), "acceleration"),
        ),
    )


@pytest.mark.parametrize("reduced", [False, True])
def test_sleigh_moves_as_its_closed_form(reduced):
    """v' = a w² + F/m, (I + m a²) w' = −m a v w, v along the sleigh."""
    program = lower_equations_to_program(sleigh(reduced=reduced))
    m, inertia, a, theta, v_x, w, force = 2.0, 0.3, 0.4, 0.7, 1.1, -0.6, 0.9
    arguments = (0.0, [0.0, 0.0, theta, v_x, w], [force], [m, inertia, a])
    (v_y,) = make_evaluator(program, "dependent_speeds")(*arguments)
    v = np.cos(theta) * v_x + np.sin(theta) * v_y
    a_x, a_y, w_dot = make_evaluator(program, "accelerations")(*arguments)
    along = np.cos(theta) * a_x + np.sin(theta) * a_y + w * (np.cos(theta) * v_y - np.sin(theta) * v_x)
    assert along == pytest.approx(a * w**2 + force / m, rel=1e-14)
    assert w_dot == pytest.approx(-m * a * v * w / (inertia + m * a**2), rel=1e-14)
    rhs = make_evaluator(program, "rhs")(*arguments)
    np.testing.assert_allclose(rhs, [v_x, v_y, w, a_x, w_dot], rtol=1e-14)
    outputs = make_evaluator(program, "outputs")(*arguments)
    np.testing.assert_allclose(outputs, [0.0, 0.0, a_y], rtol=1e-14, atol=1e-15)
    assert program.layout.states == ("x", "y", "theta", "v_x", "w")
    assert program.entries["velocity"].labels == ("v_lateral",)


def _random(n, m, seed, *, reduced):
    rng = np.random.default_rng(seed)
    root, A, f, gamma = rng.normal(size=(n, n)), rng.normal(size=(m, n)), rng.normal(size=n), rng.normal(size=m)
    M = root @ root.T + np.eye(n)
    b = rng.normal(size=m)
    rows, forcing = M, f
    if reduced:
        free = n - m
        span = np.vstack([np.eye(free), -np.linalg.solve(A[:, free:], A[:, :free])])
        rows, forcing = span.T @ M, span.T @ f
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(),
        u=sm.symbols(f"u:{n}"),
        u_independent=tuple(range(n - m)),
        u_dot=sm.symbols(f"w:{n}"),
        kinematics=KinematicEquations(MATRIX(0, n, []), MATRIX(0, 1, [])),
        velocity_constraints=VelocityConstraints(
            tuple(map(str, range(m))), MATRIX(A), MATRIX(b.reshape(-1, 1)), MATRIX(gamma.reshape(-1, 1))
        )
        if m
        else None,
        dynamics=MassMatrixDynamics(MATRIX(rows), MATRIX(forcing.reshape(-1, 1))),
    )
    return equations, M, f, A, b, gamma


@examples(10)
@given(st.integers(1, 6), st.integers(0, 3), st.integers(0, 10**6), st.booleans())
def test_constraints_reduced_both_ways_solve_the_saddle_point_system(free, m, seed, reduced):
    n = free + m
    equations, M, f, A, b, gamma = _random(n, m, seed, reduced=reduced)
    program = lower_equations_to_program(equations, optional={"forward", "inverse"})
    u = np.linspace(-1.0, 1.0, free)
    exact = np.linalg.solve(np.block([[M, A.T], [A, np.zeros((m, m))]]), np.concatenate([f, -gamma]))[:n]
    tolerance = 1e-13 * np.linalg.cond(M) * (np.linalg.cond(A[:, free:]) ** 2 if m else 1.0)
    found = make_evaluator(program, "accelerations")(0.0, u, s=np.zeros(n))
    np.testing.assert_allclose(found, exact, rtol=0, atol=tolerance * (1 + np.abs(exact).max()))
    if m:
        dependent = make_evaluator(program, "dependent_speeds")(0.0, u, s=np.zeros(n))
        np.testing.assert_allclose(A @ [*u, *dependent] + b, 0.0, atol=tolerance * (1 + np.abs(dependent).max()))
    rows = equations.dynamics.mass_matrix.rows
    force = np.zeros(n)
    force[:rows] = np.linspace(0.5, 2.0, rows)
    pushed = make_evaluator(program, "forward")(0.0, u, s=force)
    needed_force = make_evaluator(program, "inverse")(0.0, u, s=pushed)
    difference = needed_force - force[:rows]
    if rows == n and m:  # constraint forces may make up the difference, which does no work on allowed motions
        span = np.vstack([np.eye(free), -np.linalg.solve(A[:, free:], A[:, :free])])
        difference = span.T @ difference
    np.testing.assert_allclose(difference, 0.0, atol=tolerance * 10 * (1 + np.abs(M).max() * np.abs(pushed).max()))


def test_a_position_costs_no_linear_solve_and_has_no_false_feedthrough():
    program = lower_equations_to_program(_chain(5))
    _, blocks = find_needed_nodes(program, program.entries["position"].results)
    assert not blocks.any()
    _, blocks = find_needed_nodes(program, program.entries["rhs"].results)
    assert blocks.any()
    (reads,) = find_result_dependencies(program, "position")
    assert {(d.group, d.index) for d in reads} == {("states", 0), ("parameters", 0)}
    assert count_operations(program, "position") == {"MUL": 1, "SIN": 1}


def _chain(n):
    """n speeds, a full mass matrix of parameters and coordinates, intermediates of both kinds."""
    q, u, u_dot = sm.symbols(f"q:{n}"), sm.symbols(f"u:{n}"), sm.symbols(f"w:{n}")
    length, twice, k, g = sm.symbols("l twice k g")
    h0, h1 = sm.symbols("h0 h1")
    mass = sm.Matrix(n, n, lambda i, j: sm.cos(q[i] - q[j]) * length**2 + (4 * k if i == j else 0))
    forcing = sm.Matrix(n, 1, lambda i, _: -g * twice * sm.sin(q[i]) - h0 * u[i] + h1)
    return EquationsOfMotion(
        method="tmt",
        t=t,
        q=q,
        u=u,
        u_independent=tuple(range(n)),
        u_dot=u_dot,
        p=(length, g),
        calculated_parameters=(SymbolAssignment(twice, 2 * length), SymbolAssignment(k, twice**2 + 1)),
        intermediates=(
            LinearSystemAssignment((h0, h1), MATRIX([[2, q[0]], [1, 3 + q[0]]]), COLUMN(u[0], g), "h"),
            SymbolAssignment(sm.Symbol("never used"), sm.sin(q[0]) ** 7),
        ),
        kinematics=KinematicEquations(MATRIX(sm.eye(n)), MATRIX(sm.zeros(n, 1))),
        dynamics=MassMatrixDynamics(MATRIX(mass), MATRIX(forcing)),
        outputs=(OutputExpression("x0", length * sm.sin(q[0]), "position"),),
    )


def test_intermediates_and_calculated_parameters():
    n = 4
    program = lower_equations_to_program(_chain(n))
    x, p = np.linspace(-1.0, 1.5, 2 * n), [0.7, 9.81]
    q, u, length, g = x[:n], x[n:], *p
    h = np.linalg.solve([[2, q[0]], [1, 3 + q[0]]], [u[0], g])
    M = np.cos(q[:, None] - q) * length**2 + 4 * (4 * length**2 + 1) * np.eye(n)
    f = -g * 2 * length * np.sin(q) - h[0] * u + h[1]
    found = make_evaluator(program, "rhs")(0.0, x, (), p)
    np.testing.assert_allclose(found, [*u, *np.linalg.solve(M, f)], rtol=1e-13)
    np.testing.assert_allclose(make_evaluator(program, "prepare")(0.0, x, (), p), [2 * length, 4 * length**2 + 1])
    equations = make_evaluator(program, "equations")(0.0, x, (), p)
    np.testing.assert_allclose(equations, [*M.ravel(), *f], rtol=1e-13)


def test_a_diagonal_mass_matrix_costs_divisions_only():
    n = 12
    masses = sm.symbols(f"m:{n}")
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(),
        u=sm.symbols(f"u:{n}"),
        u_independent=tuple(range(n)),
        u_dot=sm.symbols(f"w:{n}"),
        p=masses,
        kinematics=KinematicEquations(MATRIX(0, n, []), MATRIX(0, 1, [])),
        dynamics=MassMatrixDynamics(MATRIX(sm.diag(*masses)), MATRIX([[i + 2] for i in range(n)])),
    )
    assert count_operations(lower_equations_to_program(equations), "rhs") == {"DIV": n}


def test_definitions_that_need_themselves_are_refused():
    equations = _chain(2)
    object.__setattr__(equations, "z_dot", ())
    bad = SymbolAssignment(sm.Symbol("twice"), sm.Symbol("k"))
    object.__setattr__(equations, "calculated_parameters", (bad, equations.calculated_parameters[1]))
    with pytest.raises(LoweringError, match="defined by itself"):
        lower_equations_to_program(equations)


_DIGEST = """
import hashlib
from tests_lower import _chain, sleigh
from mb2fmu.compiler.lowering import lower_equations_to_program
digest = hashlib.sha256()
for program in map(lower_equations_to_program, (_chain(5), sleigh(reduced=False), sleigh(reduced=True))):
    for array in (program.op, program.a, program.b, program.c, program.constants):
        digest.update(array.tobytes())
    digest.update(repr((program.layout, program.blocks, program.tables, sorted(program.entries.items()))).encode())
print(digest.hexdigest())
"""


@pytest.mark.repeats  # by day of the C code, which is printed from it, in test_fmu_c_sources
def test_the_same_program_whatever_the_hash_seed(tmp_path):
    (tmp_path / "tests_lower.py").write_text(_source(), encoding="utf-8")
    digests = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
        done = subprocess.run(
            [sys.executable, "-c", _DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1


def _source():
    return Path(__file__).read_text(encoding="utf-8")
