"""Random expressions: the program computes what SymPy means, in every way of evaluating it."""

import math

import mpmath
import numpy as np
import sympy as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from representatives import examples

from mb2fmu.compiler.derivatives.forward_derivatives import differentiate_forward, form_jacobian
from mb2fmu.compiler.evaluation.numpy_evaluator import make_evaluator
from mb2fmu.compiler.evaluation.numpy_printer import format_python_literal
from mb2fmu.compiler.lowering.sympy_lowering import SympyLowering
from mb2fmu.compiler.program.program_builder import ProgramBuilder
from mb2fmu.compiler.program.program_pruning import prune_program
from mb2fmu.compiler.program.program_result_dependencies import DependencyKind, find_result_dependencies
from mb2fmu.compiler.program.scalar_program import Op, ProgramVariableLayout

t = sm.Symbol("t", real=True)
x, y = sm.symbols("x y", real=True)
r = sm.Symbol("r", real=True)
p, s = sm.symbols("p s", positive=True)
LEAVES = [t, x, y, r, p, s]
SMOOTH = [sm.sin, sm.cos, sm.tanh, sm.atan, sm.asinh, sm.erf, lambda a: sm.exp(sm.sin(a)), lambda a: sm.sqrt(1 + a**2)]
KINKED = [sm.Abs, lambda a: sm.Max(a, x), lambda a: sm.Min(a, y), lambda a: sm.Piecewise((a, x > y), (r, True))]
values = st.floats(0.1, 2.0)
some = examples(10)


def _expressions(functions):
    leaves = st.sampled_from(LEAVES) | st.builds(sm.Rational, st.integers(-9, 9), st.integers(1, 9))

    def extend(children):
        return st.one_of(
            st.builds(lambda a, b: a + b, children, children),
            st.builds(lambda a, b: a * b, children, children),
            st.builds(lambda a, b: a / (1 + b**2), children, children),
            st.builds(lambda a, n: a**n, children, st.integers(1, 3)),
            st.builds(lambda f, a: f(a), st.sampled_from(functions), children),
        )

    return st.recursive(leaves, extend, max_leaves=12)


smooth, any_kind = _expressions(SMOOTH), _expressions(SMOOTH + KINKED)


def _walker():
    builder = ProgramBuilder(ProgramVariableLayout(states=("x", "y"), inputs=("r",), parameters=("p", "s")))
    nodes = [builder.time(), builder.state(0), builder.state(1), builder.input(0)]
    nodes += [builder.parameter(0), builder.parameter(1)]
    return builder, SympyLowering(builder, dict(zip(LEAVES, nodes, strict=True)))


def _program(*expressions):
    builder, walker = _walker()
    results = walker.lower(expressions)
    builder.entry("e", [str(i) for i in range(len(results))], results)
    return prune_program(builder.build())


def _arguments(at):
    return at[0], at[1:3], at[3:4], at[4:6]


def _exact(expression, at):
    """The value to 40 digits, and a bound of what rounding every operation may change."""
    with mpmath.workdps(40):
        f = sm.lambdify(LEAVES, expression, "mpmath")
        value = mpmath.mpf(f(*map(mpmath.mpf, at)))
        assume(abs(value) < 1e6)
    return float(value)


@some
@given(any_kind, st.lists(values, min_size=6, max_size=6))
def test_evaluates_as_sympy_means_it(expression, at):
    exact = _exact(expression, at)
    condition = _condition(expression, at)
    program = _program(expression)
    for hoist in (True, False):
        result = make_evaluator(program, "e", hoist=hoist)(*_arguments(at))
        assert abs(result[0] - exact) <= 1e-13 * condition


def _condition(expression, at):
    """Sum of the magnitudes of all intermediate values: what absolute rounding errors scale with."""
    total = 1.0
    for part in sm.preorder_traversal(expression):
        if isinstance(part, sm.Expr) and part.free_symbols:
            total = max(total, abs(float(sm.lambdify(LEAVES, part, "mpmath")(*at))))
    return total**2


@some
@given(any_kind, st.lists(st.lists(values, min_size=6, max_size=6), min_size=1, max_size=4))
def test_a_batch_is_its_instances(expression, points):
    program = _program(expression)
    f = make_evaluator(program, "e")
    batch = np.array(points)
    together = f(batch[:, 0], batch[:, 1:3], batch[:, 3:4], batch[:, 4:6])
    for row, at in zip(together, points, strict=True):
        one = f(*_arguments(at))
        assert abs(row[0] - one[0]) <= 1e-13 * _condition(expression, at)


@some
@given(smooth, smooth, st.lists(values, min_size=6, max_size=6), st.lists(values, min_size=6, max_size=6))
def test_forward_derivative_is_sympys(first, second, at, direction):
    program = _program(first, second)
    derivative = differentiate_forward(program, "e")
    # order of seeds: states, inputs, parameters, time
    seeds = [*direction[1:], direction[0]]
    found = make_evaluator(derivative, "jvp_e")(*_arguments(at), s=seeds)
    for expression, value in zip((first, second), found, strict=True):
        exact_expression = sum(
            (sm.diff(expression, leaf) * d for leaf, d in zip(LEAVES, direction, strict=True)), sm.S.Zero
        )
        exact = _exact(sm.S(exact_expression), at)
        assert abs(value - exact) <= 1e-11 * _condition(expression, at) * (1 + abs(exact))


@some
@given(smooth, st.lists(values, min_size=6, max_size=6))
def test_jacobian_holds_all_that_is_not_zero(expression, at):
    sparse = form_jacobian(_program(expression), "e", ("states", "parameters"))
    full = np.zeros(sparse.shape)
    full[sparse.rows, sparse.columns] = make_evaluator(sparse.program, sparse.entry)(*_arguments(at))
    for value, leaf in zip(full[0], (x, y, p, s), strict=True):
        exact = _exact(sm.diff(expression, leaf), at)
        assert abs(value - exact) <= 1e-11 * _condition(expression, at) * (1 + abs(exact))


@some
@given(any_kind, st.lists(values, min_size=6, max_size=6), st.integers(0, 5))
def test_what_is_not_named_has_no_influence(expression, at, moved):
    program = _program(expression)
    places = [("time", 0), ("states", 0), ("states", 1), ("inputs", 0), ("parameters", 0), ("parameters", 1)]
    known = {(d.group, d.index): d.kind for d in find_result_dependencies(program, "e", fixed_parameters=[0])[0]}
    f = make_evaluator(program, "e")

    def at_moved(step):
        there = list(at)
        there[moved] += step
        return f(*_arguments(there))[0]

    kind = known.get(places[moved])
    if kind is None:  # what cancels leaves its round-off
        assert abs(at_moved(0.5) - at_moved(0.0)) <= 1e-13 * _condition(expression, at)
    elif kind < DependencyKind.DEPENDENT:  # linear: equal steps give equal changes
        changes = at_moved(0.5) - at_moved(0.0), at_moved(1.0) - at_moved(0.5)
        assert abs(changes[0] - changes[1]) <= 1e-12 * (1 + abs(at_moved(0.0)) + abs(at_moved(1.0)))


@some
@given(any_kind)
def test_what_cancels_has_no_influence(expression):
    """A factor that divides out, sin² + cos², e^a e^(-a), tan² - 1/cos², whatever the expression a is."""
    builder, walker = _walker()
    (e,) = walker.lower([expression])
    scale, one = builder.parameter(1), builder.constant(1.0)
    divided = builder.div(builder.add(builder.mul(e, scale), e), builder.add(one, scale))
    sine, cosine, tangent = (builder.unary(op, e) for op in (Op.SIN, Op.COS, Op.TAN))
    circle = builder.add(builder.mul(sine, sine), builder.mul(cosine, cosine))
    back = builder.mul(builder.unary(Op.EXP, e), builder.unary(Op.EXP, builder.neg(e)))
    secant = builder.sub(builder.mul(tangent, tangent), builder.div(one, builder.mul(cosine, cosine)))
    results = (e, divided, circle, back, builder.mul(e, secant))
    builder.entry("e", [str(i) for i in range(len(results))], results)
    found = [
        {(d.group, d.index) for d in each} for each in find_result_dependencies(prune_program(builder.build()), "e")
    ]
    assert found[1:] == [found[0], set(), set(), found[0]]


@some
@given(st.integers(0, 5))
def test_a_small_influence_is_one(moved):
    """No number is too small: 1e-300 times a variable is not zero."""
    expression = sum(LEAVES) + sm.Float(1e-300) * LEAVES[moved] ** 2 - LEAVES[moved]
    (found,) = find_result_dependencies(_program(expression), "e")
    assert len(found) == len(LEAVES)


@some
@given(st.floats())
def test_literals_read_back_to_the_same_bits(value):
    text = format_python_literal(value)
    back = eval(text, {"inf": math.inf, "nan": math.nan})
    assert np.float64(back).tobytes() == np.float64(value).tobytes() or (math.isnan(back) and math.isnan(value))
