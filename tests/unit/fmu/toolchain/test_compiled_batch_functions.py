"""Many instances at once: each row has the bits that it has alone."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from compiled_c import SingularError, compile_explicit_integrator, missing

from mb2fmu import pipeline
from mb2fmu.compiler.derivatives import differentiate_forward
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import (
    LEAF_OPERATIONS,
    EquationSolveBlock,
    Op,
    PiecewisePolynomial,
    ProgramVariableLayout,
    ScalarProgram,
)
from mb2fmu.fmu.toolchain import compile_entry_point
from mb2fmu.fmu.toolchain.compiled_batch_functions import find_widest_vector_variant
from mb2fmu.fmu.toolchain.compilers import Variant
from mb2fmu.model.scalar_operation_table import find_operations_by_attribute

_KNOWN: tuple[Variant, ...] = ("any", "avx2", "avx512")
VARIANTS = _KNOWN[: _KNOWN.index(find_widest_vector_variant()) + 1]
"""That the running machine can."""

FUNCTIONS = sorted(find_operations_by_attribute(lambda row: row.arity == 1) - {Op.NEG, Op.FROZEN, Op.NOT})
PAIRS = sorted(find_operations_by_attribute(lambda row: row.arity == 2) - {Op.AND, Op.OR})


def everything() -> ScalarProgram:
    """Every operation once, a value that depends on parameters only, and a row of turns that becomes a loop."""
    b = ProgramBuilder(ProgramVariableLayout(states=("x", "y"), inputs=("f",), parameters=("p", "k")))
    x, y, f, p, k = b.state(0), b.state(1), b.input(0), b.parameter(0), b.parameter(1)
    table = PiecewisePolynomial("curve", (0.0, 0.5, 1.0), ((1.0, 0.5), (-1.0, 2.0)))
    results = [b.unary(op, x) for op in FUNCTIONS] + [b.binary(op, x, y) for op in PAIRS]
    less, small = b.binary(Op.LT, x, y), b.binary(Op.LE, y, k)
    results += [b.unary(Op.NOT, less), b.binary(Op.AND, less, small), b.binary(Op.OR, less, small)]
    results += [
        b.select(b.binary(Op.LT, x, y), b.mul(p, k), f),
        b.table(table, 0, y),
        b.constant(2.5),
        x,
        b.time(),
        b.neg(x),
    ]
    turned = y
    for _ in range(120):
        turned = b.add(b.mul(b.sub(turned, x), k), b.div(f, b.add(b.mul(turned, turned), b.constant(1.5))))
    b.require(turned, "turns", positive=False)
    results.append(b.div(x, turned))
    b.entry("rhs", [f"result {i}" for i in range(len(results))], results)
    return b.build()


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_have_the_bits_that_they_have_alone(variant: Variant) -> None:
    program = everything()
    f = compile_entry_point(program, variant=variant)
    rng = np.random.default_rng(5)
    n = 11  # no multiple of the lanes
    t, x = rng.normal(size=n), rng.normal(size=(n, 2)) * np.array([0.9, 1.0])
    x[3], x[4] = [4e5, -1e7], [np.nan, np.inf]
    r, p = rng.normal(size=(n, 1)), rng.uniform(0.1, 0.9, (n, 2))
    y = f(t, x, r, p)
    assert y.shape == (n, len(f.labels))
    for i in range(n):
        assert f(t[i], x[i], r[i], p[i]).tobytes() == y[i].tobytes()
    expected = make_evaluator(program, "rhs")(t, x, r, p)
    usual = np.ones(n, dtype=bool)
    usual[[3, 4]] = False
    np.testing.assert_allclose(y[usual], expected[usual], rtol=1e-12, atol=1e-14)


def test_what_is_given_once_holds_for_all_rows() -> None:
    f = compile_entry_point(everything())
    x = np.linspace(0.1, 0.9, 12).reshape(6, 2)
    rows = f(0.5, x, [0.3], [0.2, 0.4])
    assert rows.tobytes() == f(np.full(6, 0.5), x, np.full((6, 1), 0.3), np.tile([0.2, 0.4], (6, 1))).tobytes()
    with pytest.raises(ValueError, match=r"different sizes: \[2, 6\]"):
        f(0.0, x, [[0.1], [0.2]], [0.2, 0.4])


def test_singular_rows_are_nan_and_others_are_not() -> None:
    b = ProgramBuilder(ProgramVariableLayout(states=("a",)))
    pivot = b.sub(b.state(0), b.constant(1.0))
    b.require(pivot, "pivot", positive=True)
    b.entry("rhs", ["a"], [b.div(b.constant(1.0), pivot)])
    y = compile_entry_point(b.build())(0.0, [[0.5], [1.0], [3.0]])[:, 0]
    assert np.isnan(y[:2]).all()
    assert y[2] == 0.5


Kind = Literal["lu_factor", "ldlt_factor", "least_norm_factor"]


def solver(n: int, kind: Kind) -> ScalarProgram:
    """A⁻¹ b and A⁻¹ A⁻¹ b: the states are A row by row (or its lower triangle) and b."""
    entries = n * n if kind == "lu_factor" else n * (n + 1) // 2
    b = ProgramBuilder(ProgramVariableLayout(states=tuple(map(str, range(entries + n)))))
    leaves = [b.state(i) for i in range(entries + n)]
    rank = n - 1 if kind == "least_norm_factor" else -1
    factor = b.block(EquationSolveBlock(kind, n, tuple(leaves[:entries]), name="the matrix", rank=rank))
    once = b.solution(factor, leaves[entries:])
    results = [*once, *b.solution(factor, once)]
    b.entry("rhs", list(map(str, range(2 * n))), results)
    return b.build()


@pytest.mark.parametrize("kind", ["lu_factor", "ldlt_factor", "least_norm_factor"])
def test_each_lane_chooses_its_pivots(kind: Kind) -> None:
    n, count, singular = 5, 13, 6
    rng = np.random.default_rng(2)
    matrices = rng.normal(size=(count, n, n))
    matrices[3] = np.eye(n)[::-1]  # all zeros on the way down the diagonal
    matrices[singular, 2] = matrices[singular, 1]
    if kind == "ldlt_factor":
        matrices = matrices @ matrices.transpose(0, 2, 1)
        matrices[singular] = np.diag([1.0, 1.0, -1.0, 1.0, 1.0])
    elif kind == "least_norm_factor":
        matrices = matrices @ matrices.transpose(0, 2, 1)
        matrices[4] = np.diag([1.0, 2.0, 2.0, 0.0, 0.0])  # nothing to rotate, equal eigenvalues
        matrices[singular, 0, 0] = np.nan
    entries = matrices.reshape(count, -1) if kind == "lu_factor" else matrices[:, *np.tril_indices(n)]
    states = np.hstack([entries, rng.normal(size=(count, n))])
    program = solver(n, kind)
    rows, expected = compile_entry_point(program)(0.0, states), make_evaluator(program, "rhs")(0.0, states)
    assert np.isnan(rows[singular]).all()
    others = np.arange(count) != singular
    assert rows[others].tobytes() == expected[others].tobytes()


@pytest.fixture(scope="module", params=["n_four_bar", "snakeboard"])
def derivation(request: pytest.FixtureRequest) -> pipeline.DerivationResult:
    """Loops closed by Newton's method with linear solves behind them; a constraint on speeds with a pivoted solve."""
    return pipeline.derive(f"models/{request.param}.py")


def test_loops_and_constraints_have_the_bits_of_the_fmu(
    derivation: pipeline.DerivationResult, tmp_path_factory: pytest.TempPathFactory
) -> None:
    reason = missing("gcc")
    if reason:
        pytest.skip(reason)
    kinds = {block.kind for block in derivation.program.blocks}
    assert kinds & {"newton", "lu_factor"}
    x0, r0, p0 = pipeline.start_values(derivation)
    rng = np.random.default_rng(1)
    n = 23
    distances = np.geomspace(1e-3, 3.0, n)[:, None]  # from the closed loop: lanes need other numbers of steps
    x = x0 + distances * rng.normal(size=(n, len(x0)))
    p = p0 * rng.uniform(0.95, 1.05, (n, len(p0)))
    rows = derivation.program.compile()(0.1, x, r0, p)
    unit = compile_explicit_integrator(derivation.program, "gcc", tmp_path_factory.mktemp("unit"))
    failed = 0
    for i in range(n):
        try:
            alone = unit.call("rhs", 0.1, x[i].copy(), r0, p[i].copy())
        except SingularError:
            failed += 1
            assert np.isnan(rows[i]).all()
        else:
            assert alone.tobytes() == rows[i].tobytes()
    assert failed < n - 10
    assert (failed > 0) == ("newton" in kinds)


def test_seeds_and_outputs_are_entries_like_others() -> None:
    program = everything()
    tangent = differentiate_forward(program, "rhs", ["states"])
    x, s = np.random.default_rng(3).uniform(0.2, 0.8, (2, 5, 2))
    f = compile_entry_point(tangent, "jvp_rhs")
    expected = make_evaluator(tangent, "jvp_rhs")(0.0, x, [0.3], [0.2, 0.4], s=s)
    out = np.empty(expected.shape)
    assert f(0.0, x, [0.3], [0.2, 0.4], s=s, out=out) is out
    np.testing.assert_allclose(out, expected, rtol=1e-10, atol=1e-12)
    assert f(0.0, x[1], [0.3], [0.2, 0.4], s=s[1]).tobytes() == out[1].tobytes()


def test_shapes_that_do_not_fit_are_reported() -> None:
    f = compile_entry_point(everything())
    with pytest.raises(ValueError, match=r"x has shape \(3,\): 2 values are needed, or a row"):
        f(0.0, [1.0, 2.0, 3.0], [0.3], [0.2, 0.4])
    with pytest.raises(ValueError, match=r"p has shape \(0,\)"):
        f(0.0, [1.0, 2.0], [0.3])
    with pytest.raises(ValueError, match=rf"out must be doubles of shape \(2, {len(f.labels)}\)"):
        f([0.0, 1.0], [1.0, 2.0], [0.3], [0.2, 0.4], out=np.empty(3))


def test_every_operation_is_there() -> None:
    kinds = {*FUNCTIONS, *PAIRS, Op.NOT, Op.AND, Op.OR, Op.NEG, Op.SELECT, Op.TABLE}
    used = {Op(int(op)) for op in everything().op}
    assert kinds <= used
    computed = set(Op) - LEAF_OPERATIONS - {Op.BLOCK, Op.FROZEN}
    assert computed == kinds
