"""Random programs as C functions: the evaluator's values, however they are cut into parts."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_c import SingularError
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from representatives import examples

from mb2fmu.compiler.derivatives.derivative_entry_points import DIFFERENTIATED_ENTRIES
from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.numerics.linear_solve import FactoredLinearSystem
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.scalar_program import Op, PiecewisePolynomial, ProgramVariableLayout, ScalarProgram
from mb2fmu.compiler.program.statement_schedule import StatementScheduleGraph
from mb2fmu.fmu.emit_c.c_function_printing_records import CNameRegistry, PrintedCFunctionSignature
from mb2fmu.fmu.emit_c.long_function_splitting import print_c_function

SMOOTH = (Op.EXP, Op.SIN, Op.COS, Op.TANH, Op.ATAN, Op.ASINH, Op.ERF, Op.COSH, Op.SINH)
KINKED = (Op.ABS, Op.SIGN, Op.FLOOR, Op.CEIL, Op.NOT)
BOTH = (Op.ADD, Op.SUB, Op.MUL, Op.MIN, Op.MAX, Op.LT, Op.LE, Op.EQ, Op.AND, Op.OR, Op.ATAN2)
GENERATE = (Phase.explicit, Phase.generate)
"""Every example is compiled: making a failing one smaller takes too long."""

TABLE = PiecewisePolynomial("curve", (0.0, 0.5, 1.0), ((1.0, 0.5), (-1.0, 2.0), (0.25, -3.0)))


def build(steps: list[tuple[int, int, int, int]], n_results: int = 4) -> ScalarProgram:
    """A program from numbers: (operation, operand, operand, operand), counted modulo what there is."""
    b = ProgramBuilder(ProgramVariableLayout(states=("q", "u", "z"), inputs=("f",), parameters=("m", "k")))
    nodes = [b.time(), *(b.state(i) for i in range(3)), b.input(0), b.parameter(0), b.parameter(1)]
    nodes += [b.constant(0.75), b.constant(-1.5)]
    kinds = (*SMOOTH, *KINKED, *BOTH, *(["neg", "div", "select", "table", "power", "ldlt", "lu"] * 2))
    for kind, *chosen in steps:
        x, y, z = (nodes[-1 - i % len(nodes)] for i in chosen)
        op = kinds[kind % len(kinds)]
        if isinstance(op, str):
            nodes += special(b, op, x, y, z)
        elif op in BOTH:
            nodes.append(b.binary(op, x, y))
        else:
            nodes.append(b.unary(op, b.unary(Op.TANH, x)))  # else sin(exp(30)) makes an ulp the whole result
    bounded = [b.unary(Op.TANH, node) for node in nodes[-n_results:]]
    labels = [f"result {i}" for i in range(len(bounded))]
    for name in DIFFERENTIATED_ENTRIES:
        b.entry(name, [], [])
    b.entry("position", labels, bounded)
    b.entry("rhs", ["q", "u", "z"], [*bounded, *bounded, *bounded][:3])
    return b.build()


def special(b: ProgramBuilder, kind: str, x: int, y: int, z: int) -> list[int]:
    if kind == "neg":
        return [b.neg(x)]
    if kind == "div":
        return [b.div(x, b.add(b.constant(1.0), b.mul(y, y)))]
    if kind == "select":
        return [b.select(b.binary(Op.LT, x, y), y, z)]
    if kind == "table":
        return [b.table(TABLE, 0, b.unary(Op.TANH, x)), b.table(TABLE, 1, b.unary(Op.SIN, y))]
    if kind == "power":
        return [b.power(b.add(b.constant(1.0), b.unary(Op.ABS, b.unary(Op.SIN, x))), b.unary(Op.COS, y))]
    bounded = [b.unary(Op.SIN, node) for node in (x, y, z)]
    n = 4
    matrix = [[bounded[(i * j) % 3] if i != j else b.constant(5.0 + i) for j in range(n)] for i in range(n)]
    matrix = [[matrix[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]
    system = FactoredLinearSystem(b, matrix, f"the {kind} system", symmetric=kind == "ldlt")
    return system.solve([*bounded, b.constant(1.0)])


steps = st.lists(st.tuples(*[st.integers(0, 10**6)] * 4), min_size=12, max_size=90)


def check(program: ScalarProgram, compile_model, part: int) -> None:
    unit = compile_model(program, "gcc", part)
    rng = np.random.default_rng(len(program))
    for _ in range(3):
        t, x = float(rng.normal()), rng.normal(size=3)
        r, p = rng.normal(size=1), rng.normal(size=2)
        for entry in ("position", "rhs"):
            expected = make_evaluator(program, entry)(t, x, r, p)
            np.testing.assert_allclose(unit.call(entry, t, x, r, p), expected, rtol=1e-9, atol=1e-9)


@settings(examples(3), phases=GENERATE)
@given(steps=steps, part=st.sampled_from([3, 10, 3_000]))
def test_random_programs(compile_model, steps: list[tuple[int, int, int, int]], part: int) -> None:
    check(build(steps), compile_model, part)


@pytest.mark.repeats
@settings(max_examples=150, phases=GENERATE)
@given(steps=steps, part=st.sampled_from([1, 3, 10, 3_000]))
def test_many_random_programs(compile_model, steps: list[tuple[int, int, int, int]], part: int) -> None:
    check(build(steps), compile_model, part)


def test_every_way_of_cutting_gives_the_same_bits(compile_model) -> None:
    rng = np.random.default_rng(3)
    program = build([tuple(rng.integers(0, 10**6, 4).tolist()) for _ in range(40)])
    arguments = (0.5, np.array([0.1, -0.7, 2.0]), np.array([1.0]), np.array([0.3, 4.0]))
    values = [compile_model(program, "gcc", part).call("rhs", *arguments) for part in (1, 7, 3_000)]
    assert len({value.tobytes() for value in values}) == 1


def test_parts_are_of_bounded_size() -> None:
    b = ProgramBuilder(ProgramVariableLayout(states=("x",)))
    node = b.state(0)
    for i in range(2_000):
        node = b.add(b.mul(node, node), b.constant(float(i)))
    b.entry("rhs", ["x"], [node])
    signature = PrintedCFunctionSignature("rhs", ("const double x[]", "double work[]", "double dx[]"), {Op.STATE: "x"})
    printed = print_c_function(
        StatementScheduleGraph(b.build()), signature, [("dx[0]", node)], CNameRegistry(), part=100
    )
    lengths = [len(part.text.splitlines()) for part in printed.parts]
    assert len(lengths) > 30
    assert max(lengths) < 150
    assert printed.work == 1  # one value is handed on from part to part, always in the same place


def test_a_failing_solve_says_which(compile_model) -> None:
    b = ProgramBuilder(ProgramVariableLayout(states=("a", "b"), parameters=("p",)))
    a, c, p = b.state(0), b.state(1), b.parameter(0)
    matrix = [[a, c, p, a], [c, a, c, p], [a, p, a, c], [p, c, p, a]]
    x = FactoredLinearSystem(b, matrix, "the test's matrix").solve([a, c, p, a])
    for name in DIFFERENTIATED_ENTRIES:
        b.entry(name, [], [])
    b.entry("rhs", ["a", "b"], x[:2])
    unit = compile_model(b.build())
    arguments = (0.0, np.array([1.0, 0.3]), np.array([]), np.array([0.2]))
    assert np.all(np.isfinite(unit.call("rhs", *arguments)))
    with pytest.raises(SingularError, match="the test's matrix"):
        unit.call("rhs", 0.0, np.array([1.0, 1.0]), np.array([]), np.array([1.0]))
    with pytest.raises(SingularError, match="the test's matrix"):
        unit.call("rhs", 0.0, np.array([np.nan, 1.0]), np.array([]), np.array([1.0]))


def test_systems_written_out_in_nodes_say_when_they_are_singular(compile_model):
    """A symmetric system of two unknowns, and the single entries of a general one."""
    b = ProgramBuilder(ProgramVariableLayout(states=("q", "u"), parameters=("m",)))
    two, one, zero, q, u = b.constant(2.0), b.constant(1.0), b.constant(0.0), b.state(0), b.state(1)
    mass = FactoredLinearSystem(b, [[b.constant(4.0), two], [two, q]], "the mass matrix", symmetric=True)
    speeds = FactoredLinearSystem(b, [[u, zero], [one, b.parameter(0)]], "the dependent speeds")
    for name in DIFFERENTIATED_ENTRIES:
        b.entry(name, [], [])
    b.entry("rhs", ["q", "u"], mass.solve([one, u]))
    b.entry("position", ["a", "b"], speeds.solve([one, q]))
    program = b.build()
    assert program.entries["pivots"].labels == ("the mass matrix",)
    assert program.entries["divisors"].labels == ("the dependent speeds",) * 2
    unit = compile_model(program, "gcc")
    r, p = np.zeros(1), np.array([0.5])

    def call(name, *x, seeds=()):
        return unit.call(name, 0.0, np.array(x), r, p, *seeds)

    assert call("rhs", 2.0, 3.0) == pytest.approx(np.linalg.solve([[4.0, 2.0], [2.0, 2.0]], [1.0, 3.0]))
    assert call("position", 2.0, -4.0) == pytest.approx([-0.25, (2.0 + 0.25) / 0.5])
    for q in (1.0, 0.5, np.inf, np.nan):  # pivots 0, negative and none
        with pytest.raises(SingularError, match="the mass matrix"):
            call("rhs", q, 3.0)
        with pytest.raises(SingularError, match="the mass matrix"):
            call("tangent", q, 3.0, seeds=(np.ones(4),))
    for u in (0.0, np.inf, np.nan):
        with pytest.raises(SingularError, match="the dependent speeds"):
            call("position", 2.0, u)
    p[0] = 0.0
    with pytest.raises(SingularError, match="the dependent speeds"):
        call("position", 2.0, -4.0)
