"""Derivatives of sums and of systems that are written out: right, and no longer than they must be."""

from __future__ import annotations

import numpy as np
import pytest

from mb2fmu.compiler.derivatives import forward_derivatives as differentiation
from mb2fmu.compiler.derivatives.forward_derivatives import differentiate_forward, form_jacobian
from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.numerics.linear_solve import solve_dense_system
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_result_dependencies import count_operations
from mb2fmu.compiler.program.program_serialization import convert_program_to_record, restore_program_from_record
from mb2fmu.compiler.program.scalar_program import Op, ProgramVariableLayout, ScalarProgram

X = np.array([0.4, -1.1, 0.7, 1.3, 0.2, -0.5, 2.1, 0.9, -0.3])


def turned() -> ScalarProgram:
    """(c x − s y, s x + c y) with c, s of the first state."""
    b = ProgramBuilder(ProgramVariableLayout(states=("angle", "x", "y")))
    c, s, x, y = b.unary(Op.COS, b.state(0)), b.unary(Op.SIN, b.state(0)), b.state(1), b.state(2)
    first, second = b.sum([b.mul(c, x)], [b.mul(s, y)]), b.sum([b.mul(s, x), b.mul(c, y)])
    b.entry("e", ["first", "second"], [first, second])
    return b.build()


def system(n: int) -> ScalarProgram:
    """A x = b, A = 1 + v vᵀ without some entries, written out."""
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(f"v{i}" for i in range(9))))
    v = [b.state(i) for i in range(n)]
    one, zero = b.constant(1.0), b.constant(0.0)
    A = [[b.mul(v[i], v[j]) if abs(i - j) < 2 else zero for j in range(n)] for i in range(n)]
    A = [[b.add(entry, one) if i == j else entry for j, entry in enumerate(row)] for i, row in enumerate(A)]
    right = [b.sum([b.state(8 - i), b.mul(b.state(7 - i), v[0])]) for i in range(n)]
    (x,) = solve_dense_system(b, A, [right], name="x", symmetric=True)
    b.entry("e", [f"x{i}" for i in range(n)], x)
    return b.build()


def difference(program: ScalarProgram, direction: np.ndarray) -> np.ndarray:
    f, size, h = make_evaluator(program, "e"), len(program.layout.states), 1e-6
    return (f(0.0, X[:size] + h * direction) - f(0.0, X[:size] - h * direction)) / (2 * h)


def test_a_rotation_turns_what_it_turned() -> None:
    """d(R v) = R dv + dθ × R v: 2 + 8 + 2 operations beyond R v, of which the second bracket is known; not 14 + 2."""
    derivative = differentiate_forward(turned(), "e", ["states"])
    assert count_operations(derivative, "jvp_e").total() - count_operations(turned(), "e").total() == 10


@pytest.mark.parametrize("program", [turned(), system(2), system(3), system(5)], ids=["turned", "2", "3", "5"])
@pytest.mark.parametrize("largest", [0, differentiation.MAX_NODES_FOR_SUM_SEARCH], ids=["quick", "thorough"])
def test_derivatives_are_those_of_differences(program: ScalarProgram, largest: int, monkeypatch) -> None:
    monkeypatch.setattr(differentiation, "MAX_NODES_FOR_SUM_SEARCH", largest)
    size = len(program.layout.states)
    direction = np.random.default_rng(1).uniform(-1, 1, size)
    found = make_evaluator(differentiate_forward(program, "e", ["states"]), "jvp_e")(0.0, X[:size], s=direction)
    assert np.allclose(found, difference(program, direction), rtol=1e-7, atol=1e-8)
    whole = form_jacobian(program, "e", ["states"])
    dense = np.zeros(whole.shape)
    dense[whole.rows, whole.columns] = make_evaluator(whole.program, whole.entry)(0.0, X[:size])
    assert np.allclose(dense @ direction, found, rtol=1e-12, atol=1e-13)


def test_written_out_systems_are_solved_again_not_differentiated_through() -> None:
    """One more solution and A' x: fewer operations than the derivative of every step of the elimination."""
    program = system(5)
    assert program.systems
    assert restore_program_from_record(convert_program_to_record(program)).systems == program.systems
    through = differentiate_forward(unknown := forgetful(program), "e", ["states"])
    again = differentiate_forward(program, "e", ["states"])
    assert unknown.systems == ()
    assert count_operations(again, "jvp_e").total() < 0.9 * count_operations(through, "jvp_e").total()


def forgetful(program: ScalarProgram) -> ScalarProgram:
    return restore_program_from_record(
        {name: value for name, value in convert_program_to_record(program).items() if name != "systems"}
    )
