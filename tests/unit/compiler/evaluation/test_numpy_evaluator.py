"""Printed functions: chunks, hoisting, IEEE where Python raises, singular matrices, batches."""

import math

import numpy as np
import pytest
import sympy as sm
from hypothesis import given, settings
from hypothesis import strategies as st

from mb2fmu.compiler.arithmetic import python_runtime
from mb2fmu.compiler.arithmetic.python_runtime import SingularMatrixError
from mb2fmu.compiler.derivatives.forward_derivatives import differentiate_forward, form_jacobian
from mb2fmu.compiler.evaluation.numpy_evaluator import EntryPointEvaluator, make_evaluator
from mb2fmu.compiler.evaluation.numpy_printer import print_numpy_function
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import EquationSolveBlock, Op, ProgramVariableLayout
from mb2fmu.model.scalar_operation_table import OPERATIONS

x, y, p = sm.symbols("x y p", real=True)


def lowered(*expressions):
    builder = ProgramBuilder(ProgramVariableLayout(states=("x", "y"), parameters=("p",)))
    walker = SympyLowering(builder, {x: builder.state(0), y: builder.state(1), p: builder.parameter(0)})
    results = walker.lower(expressions)
    builder.entry("e", list(map(str, range(len(results)))), results)
    return builder.build()


def solver(n, *, kind, parameters_only=False):
    """x = A⁻¹ b: the states are A row by row (or its lower triangle) and b."""
    entries = n * n if kind == "lu_factor" else n * (n + 1) // 2
    names = tuple(map(str, range(entries + n)))
    layout = ProgramVariableLayout(parameters=names) if parameters_only else ProgramVariableLayout(states=names)
    b = ProgramBuilder(layout)
    leaves = [(b.parameter if parameters_only else b.state)(i) for i in range(entries + n)]
    factor = b.block(EquationSolveBlock(kind, n, tuple(leaves[:entries]), name="the matrix"))
    b.entry("e", names[:n], b.solution(factor, leaves[entries:]))
    return b.build()


def flat(A, b, kind):
    return [*(A.ravel() if kind == "lu_factor" else A[np.tril_indices(len(A))]), *b]


def matrices(n, seed, kind, count=1):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(count, n, n))
    A = root if kind == "lu_factor" else root @ root.transpose(0, 2, 1) + np.eye(n)
    return A, rng.normal(size=(count, n))


@settings(max_examples=30)
@given(st.integers(1, 8), st.integers(0, 10**6), st.sampled_from(["lu_factor", "ldlt_factor"]))
def test_blocks_solve_and_batches_have_the_bits_of_their_instances(n, seed, kind):
    A, b = matrices(n, seed, kind, count=3)
    f = make_evaluator(solver(n, kind=kind), "e")
    states = np.array([flat(*pair, kind) for pair in zip(A, b, strict=True)])
    batch = f(0.0, states)
    for i in range(3):
        one = f(0.0, states[i])
        np.testing.assert_array_equal(one, batch[i])
        error = np.abs(A[i] @ one - b[i]).max()
        assert error <= 1e-13 * n**2 * np.abs(A[i]).max() * (1 + np.abs(one).max())


@settings(max_examples=20)
@given(st.integers(1, 5), st.integers(0, 10**6), st.sampled_from(["lu_factor", "ldlt_factor"]))
def test_derivatives_of_solves_follow_from_the_implicit_function_theorem(n, seed, kind):
    A, b = matrices(n, seed, kind)
    dA, db = matrices(n, seed + 1, kind)
    program = differentiate_forward(solver(n, kind=kind), "e", ["states"])
    found = make_evaluator(program, "jvp_e")(0.0, flat(A[0], b[0], kind), s=flat(dA[0], db[0], kind))
    solution = np.linalg.solve(A[0], b[0])
    exact = np.linalg.solve(A[0], db[0] - dA[0] @ solution)
    tolerance = 1e-13 * np.linalg.cond(A[0]) ** 2 * (1 + np.abs(exact).max() + np.abs(solution).max())
    np.testing.assert_allclose(found, exact, rtol=0, atol=tolerance)
    factors = [block for block in program.blocks if block.kind != "solve"]
    assert len(factors) == 1
    sparse = form_jacobian(solver(n, kind=kind), "e", ["states"])
    full = np.zeros(sparse.shape)
    full[sparse.rows, sparse.columns] = make_evaluator(sparse.program, sparse.entry)(0.0, flat(A[0], b[0], kind))
    np.testing.assert_allclose(full @ flat(dA[0], db[0], kind), exact, rtol=0, atol=tolerance)


@settings(max_examples=30)
@given(st.integers(1, 7), st.integers(0, 10**6), st.booleans())
def test_written_out_and_substituted_systems_solve(n, seed, symmetric):
    """Sparse systems, in which constant zeros cost nothing."""
    rng = np.random.default_rng(seed)
    A = np.where(rng.random((n, n)) < 0.4, rng.normal(size=(n, n)), 0.0) + np.diag(rng.uniform(1, 2, n) * n)
    if symmetric:
        A = A + A.T
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(map(str, range(n * n + n)))))
    node = [[b.state(i * n + j) if A[i, j] else b.constant(0.0) for j in range(n)] for i in range(n)]
    system = FactoredLinearSystem(b, node, "a sparse matrix", symmetric=symmetric)
    b.entry("e", list(map(str, range(n))), system.solve([b.state(n * n + i) for i in range(n)]))
    right = rng.normal(size=n)
    found = make_evaluator(b.build(), "e")(0.0, [*A.ravel(), *right])
    np.testing.assert_allclose(found, np.linalg.solve(A, right), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize(
    ("kind", "A"),
    [
        ("lu_factor", np.array([[1.0, 2.0], [2.0, 4.0]])),
        ("ldlt_factor", np.array([[1.0, 2.0], [2.0, 1.0]])),
        ("ldlt_factor", np.array([[math.nan, 0.0], [0.0, 1.0]])),
    ],
)
def test_singular_matrices_are_named_and_spoil_only_their_instance(kind, A):
    f = make_evaluator(solver(2, kind=kind), "e")
    bad = flat(A, [1.0, 1.0], kind)
    with pytest.raises(SingularMatrixError, match="the matrix"):
        f(0.0, bad)
    batch = f(0.0, [bad, flat(np.eye(2), [3.0, 4.0], kind)])
    assert np.isnan(batch[0]).any()
    np.testing.assert_array_equal(batch[1], [3.0, 4.0])


@pytest.mark.parametrize("kind", ["lu_factor", "ldlt_factor"])
def test_solves_of_parameters_only_are_hoisted(kind):
    A, b = matrices(3, 5, kind)
    f = make_evaluator(solver(3, kind=kind, parameters_only=True), "e")
    assert "factor(" not in f.source.split("def evaluate(")[1]
    np.testing.assert_allclose(f(0.0, (), (), flat(A[0], b[0], kind)), np.linalg.solve(A[0], b[0]), rtol=1e-12)


def test_functions_of_bounded_size_have_the_same_bits():
    expression = [sm.sin(x * k) / (p + k) + sm.cos(y) ** k * sm.sqrt(p) for k in range(1, 60)]
    program = lowered(*expression, p**2, x, sm.S(3))
    arguments = (0.0, [0.3, 0.8], (), [1.7])
    whole = make_evaluator(program, "e")(*arguments)
    for hoist in (True, False):
        for chunk in (1, 7, 50):
            source = print_numpy_function(program, "e", "evaluate", hoist=hoist, chunk=chunk)
            np.testing.assert_array_equal(EntryPointEvaluator(source, hoist=hoist)(*arguments), whole)
            parts = source.split("def evaluate_part_")[1:]
            assert max(len(part.split("def ")[0].splitlines()) for part in parts) <= 5 * chunk + 3


def test_results_can_be_chosen_and_entries_joined():
    program = lowered(x, x + y, x * y)
    assert make_evaluator(program, "e", results=[2, 0])(0.0, [2.0, 3.0], (), [0.0]).tolist() == [6.0, 2.0]
    assert make_evaluator(program, ["e", "e"], results=[1, 5])(0.0, [2.0, 3.0], (), [0.0]).tolist() == [5.0, 6.0]
    assert "*" not in print_numpy_function(program, "e", "f", results=[1])


def test_parameters_are_prepared_once_per_set():
    program = lowered(sm.exp(p) * x)
    f = make_evaluator(program, "e")
    assert "exp" not in f.source.split("def evaluate(")[1]
    for value in (1.0, 2.0, 1.0):
        assert f(0.0, [1.0, 0.0], (), [value])[0] == pytest.approx(math.exp(value))
    batch = f(0.0, [1.0, 0.0], (), [[1.0], [2.0]])
    np.testing.assert_allclose(batch[:, 0], np.exp([1.0, 2.0]))


@pytest.mark.parametrize("at", [-2.0, 0.0, 3.0])
def test_branches_not_taken_may_be_undefined(at):
    f = make_evaluator(lowered(sm.Piecewise((sm.sqrt(x) + 1 / x + sm.log(x), x > 0), (y, True))), "e")
    expected = math.sqrt(at) + 1 / at + math.log(at) if at > 0 else 5.0
    assert f(0.0, [at, 5.0], (), [0.0])[0] == pytest.approx(expected, rel=1e-15)
    np.testing.assert_allclose(f(0.0, [[at, 5.0]], (), [0.0])[0, 0], expected, rtol=1e-15)


EDGES = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.5, -2.5, 1e-300, 1e5, 800.0, -800.0, math.inf, -math.inf, math.nan]


NOT_ELEMENTWISE = {"inf", "nan", "table", "select", "power", "newton", "inside"}
NOT_ELEMENTWISE |= {f"{kind}_{part}" for kind in ("ldlt", "lu", "least_norm") for part in ("factor", "solve")}


@pytest.mark.parametrize("name", sorted(python_runtime.ARRAY.keys() - NOT_ELEMENTWISE))
def test_scalars_as_ieee_has_them_agree_with_arrays(name):
    function = python_runtime.IEEE[name]
    pairs = name in {row.function for row in OPERATIONS.values() if row.arity == 2}
    edges = [0.0, 1.0] if name.startswith("logical") else EDGES
    if name in {"sin", "cos", "tan"}:
        edges = [edge for edge in edges if abs(edge) <= 1e5]
    for a in edges:
        for arguments in [(a, b) for b in edges] if pairs else [(a,)]:
            with np.errstate(all="ignore"):
                array = float(python_runtime.ARRAY[name](*map(np.array, arguments)))
                scalar = float(function(*arguments))
            assert math.isnan(array) == math.isnan(scalar), arguments
            assert math.isnan(array) or array == scalar or abs(array - scalar) <= 1e-15 * abs(scalar), arguments


@pytest.mark.parametrize("name", ["FAST", "IEEE"])
def test_where_fast_does_not_raise_it_has_the_bits_of_ieee(name):
    space = getattr(python_runtime, name)
    assert space.keys() == python_runtime.ARRAY.keys()
    for function in ("sin", "exp", "log", "sqrt", "tanh", "floor", "sign", "erf"):
        assert float(space[function](0.7)) == float(python_runtime.IEEE[function](0.7))


def test_the_power_of_a_negative_number():
    f = make_evaluator(lowered(x**y), "e")
    assert math.isnan(f(0.0, [-8.0, 1 / 3], (), [0.0])[0])
    assert f(0.0, [0.0, -1.0], (), [0.0])[0] == math.inf
    assert f(0.0, [-2.0, 3.0], (), [0.0])[0] == -8.0


def test_batches_of_different_sizes_are_refused():
    with pytest.raises(ValueError, match="different sizes"):
        make_evaluator(lowered(x), "e")(np.zeros(2), np.zeros((3, 2)), (), [0.0])


def test_discrete_memory_and_seeds_are_read():
    b = ProgramBuilder(ProgramVariableLayout(memory=("m",), seeds=("s",)))
    b.entry("e", ["y"], [b.binary(Op.SUB, b.memory(0), b.seed(0))])
    assert make_evaluator(b.build(), "e")(0.0, (), m=[5.0], s=[3.0]).tolist() == [2.0]
