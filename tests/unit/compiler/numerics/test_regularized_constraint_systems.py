"""Closed loops as nodes: the projection, the multipliers, and their derivatives, on the book's four-bar linkage."""

import dataclasses
import itertools

import numpy as np
import pytest
import sympy as sm
from representatives import by_night
from scipy.integrate import solve_ivp

from mb2fmu import pipeline
from mb2fmu.compiler import derivatives, evaluation, lowering
from mb2fmu.compiler.arithmetic import python_runtime
from mb2fmu.compiler.numerics.linear_solve import SparselyOrderedSystem
from mb2fmu.compiler.program import count_operations
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import ProgramVariableLayout

# J. K. Moore, Learn Multibody Dynamics, chapter "Equations of Motion with Holonomic Constraints"
ANGLES = np.deg2rad([10.0, 6.57526576, -151.3836336])
ACCELERATION = -9.4688079
LENGTHS = {"la": 0.8, "lb": 2.0, "lc": 1.0, "ln": 2.0}


@pytest.fixture(scope="module", params=["tmt", *by_night("kane")])
def derivation(request):
    return pipeline.derive("models/four_bar.py", method=request.param)


def off_the_constraints(f, size):
    return f.x0 + size * np.sin(np.arange(6.0))


def loop(q):
    a, b, c = np.cumsum(q)
    x = LENGTHS["la"] * np.cos(a) + LENGTHS["lb"] * np.cos(b) + LENGTHS["lc"] * np.cos(c) - LENGTHS["ln"]
    y = LENGTHS["la"] * np.sin(a) + LENGTHS["lb"] * np.sin(b) + LENGTHS["lc"] * np.sin(c)
    return np.array([x, y])


def treated(derivation, treatment, **changes):
    equations = dataclasses.replace(derivation.equations, treatment=treatment, **changes)
    return lowering.lower_equations_to_program(equations)


@pytest.mark.parametrize("treatment", ["attractor", "multipliers"])
def test_accelerations_of_the_book(derivation, treatment):
    f = pipeline.right_hand_side(derivation)
    rhs = evaluation.make_evaluator(treated(derivation, treatment), "rhs")
    x = np.concatenate([ANGLES, np.zeros(3)])
    assert rhs(0, x, f.r0, f.p0)[3] == pytest.approx(ACCELERATION, rel=1e-8)


def test_multipliers_balance_the_forces(derivation):
    e = derivation.equations
    program = treated(
        derivation,
        "multipliers",
        outputs=tuple(
            dataclasses.replace(e.outputs[0], name=symbol.name, expression=symbol, level="acceleration")
            for symbol in derivation.mechanism.multipliers
        ),
        multipliers=derivation.mechanism.multipliers,
    )
    f = pipeline.right_hand_side(derivation)
    x = np.concatenate([f.x0[:3], [0.7, -0.2, 0.4]])
    M_and_f, multipliers, u_dot = (
        evaluation.make_evaluator(program, name)(0, x, f.r0, f.p0) for name in ("equations", "outputs", "accelerations")
    )
    step = 1e-6
    G = np.array([(loop(x[:3] + step * d) - loop(x[:3] - step * d)) / (2 * step) for d in np.eye(3)]).T
    assert M_and_f[:9].reshape(3, 3) @ u_dot + G.T @ multipliers == pytest.approx(M_and_f[9:], abs=1e-8)


def test_states_off_the_constraints_are_drawn_back(derivation):
    f = pipeline.right_hand_side(derivation)
    x = off_the_constraints(f, 1e-2)
    solution = solve_ivp(f, (0, 2), x, rtol=1e-9, atol=1e-9)
    distance = [np.abs(loop(q)).max() for q in solution.y[:3].T]
    assert distance[0] > 1e-3
    assert distance[-1] < 1e-6 * distance[0]
    coupler = f.outputs(solution.t, solution.y.T)[:, :2]  # of the projected states: the rocker's length holds at once
    assert np.hypot(coupler[:, 0] - LENGTHS["ln"], coupler[:, 1]) == pytest.approx(LENGTHS["lc"], abs=1e-13)


@pytest.mark.parametrize("size", [1e-2, *by_night(0.0)])
def test_derivatives(derivation, size):
    f = pipeline.right_hand_side(derivation)
    x = off_the_constraints(f, size)
    native = derivatives.add_fmu_derivatives(derivation.program)
    values = evaluation.make_evaluator(native.program, "jacobian")(0.0, x, f.r0, f.p0)
    J = np.zeros((6, 6))
    J[native.rows, native.columns] = values
    step = 1e-5
    columns = [(f(0, x + step * d) - f(0, x - step * d)) / (2 * step) for d in np.eye(6)]
    assert pytest.approx(np.array(columns).T, abs=1e-6) == J

    tangent, adjoint = (evaluation.make_evaluator(native.program, name) for name in ("tangent", "adjoint"))
    random = np.random.default_rng(7)
    n, m = (len(native.program.entries[name].results) for name in ("tangent", "adjoint"))
    seeds = len(native.program.layout.seeds)
    forward, backward = random.standard_normal(m), random.standard_normal(n)
    along = tangent(0.3, x, f.r0, f.p0, (), np.pad(forward, (0, seeds - m)))
    across = adjoint(0.3, x, f.r0, f.p0, (), np.pad(backward, (0, seeds - n)))
    assert backward @ along == pytest.approx(forward @ across, rel=1e-12)


def test_a_redundant_constraint_changes_no_motion(derivation):
    e = derivation.equations
    c = e.velocity_constraints
    twice = dataclasses.replace(
        c,
        names=(*c.names, "again"),
        jacobian=sm.ImmutableMatrix(c.jacobian.col_join(2 * c.jacobian[0, :])),
        offset=sm.ImmutableMatrix(c.offset.col_join(2 * c.offset[0, :])),
        bias=sm.ImmutableMatrix(c.bias.col_join(2 * c.bias[0, :])),
    )
    holonomic = (*e.holonomic, ("again", 2 * e.holonomic[0][1]))
    more = (*e.multipliers, sm.Symbol("lambda_again"))
    changed = dataclasses.replace(
        e, velocity_constraints=twice, holonomic=holonomic, multipliers=more, row_lengths=(*e.row_lengths, 1.0)
    )
    f = pipeline.right_hand_side(derivation)
    x = off_the_constraints(f, 1e-4)
    rhs = evaluation.make_evaluator(lowering.lower_equations_to_program(changed), "rhs")
    assert rhs(0, x, f.r0, f.p0) == pytest.approx(f(0, x), rel=1e-9)


def test_a_loop_that_cannot_close_says_so(derivation):
    f = pipeline.right_hand_side(derivation)
    parameters = f.p0.copy()
    parameters[f.parameters.index("lb")] = 9.0
    with pytest.raises(python_runtime.NoSolutionError, match="no solution is found for the holonomic constraints"):
        f(0, f.x0, p=parameters)
    batch = f(0, np.array([f.x0, f.x0]), p=np.array([f.p0, parameters]))
    assert np.isfinite(batch[0]).all()
    assert np.isnan(batch[1]).any()


def test_operations_grow_with_the_treatment(derivation):
    counts = [
        count_operations(treated(derivation, treatment), "rhs").total() for treatment in ("multipliers", "attractor")
    ]
    assert all(a < b for a, b in itertools.pairwise(counts))
    assert counts[-1] < 600


def test_loops_that_share_nothing_cost_their_number():
    """Operations of a Gram matrix of pairs, in an order that mixes them, grow as the pairs do."""
    counts = []
    for pairs in (2, 4, 8):
        n = 2 * pairs
        names = tuple(f"x{i}" for i in range(n))
        builder = ProgramBuilder(ProgramVariableLayout(states=names))
        x = [builder.state(i) for i in range(n)]
        zero = builder.constant(0.0)
        matrix = [[zero] * n for _ in range(n)]
        for k in range(pairs):
            for i, j in ((k, k), (k + pairs, k), (k, k + pairs), (k + pairs, k + pairs)):
                matrix[i][j] = builder.add(builder.constant(10.0 if i == j else 1.0), builder.mul(x[i], x[j]))
        solution = SparselyOrderedSystem(builder, matrix, "pairs").solve(x)
        builder.entry("solution", names, solution)
        program = builder.build()
        values = np.linspace(0.1, 0.9, n)
        A = np.zeros((n, n))
        for k in range(pairs):
            for i, j in ((k, k), (k + pairs, k), (k, k + pairs), (k + pairs, k + pairs)):
                A[i, j] = (10.0 if i == j else 1.0) + values[i] * values[j]
        assert evaluation.make_evaluator(program, "solution")(0.0, values) == pytest.approx(np.linalg.solve(A, values))
        counts.append(count_operations(program, "solution").total())
    assert counts[1] == pytest.approx(2 * counts[0], rel=0.1)
    assert counts[2] == pytest.approx(2 * counts[1], rel=0.1)
