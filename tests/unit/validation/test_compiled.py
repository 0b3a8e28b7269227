"""The compiled reference against its twin in Python, and against what is known exactly."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import sympy as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from kept_compilations import compile_files
from mechanisms import cart_with_pathways, mechanism_of, random_states
from representatives import examples

import mb2fmu.validation.compiled
from mb2fmu.errors import ToolError, ValidationError
from mb2fmu.fmu.toolchain import compile_library
from mb2fmu.mechanics.equations.equations_of_motion import (
    EquationsOfMotion,
    KinematicEquations,
    MassMatrixDynamics,
    OutputExpression,
    VelocityConstraints,
)
from mb2fmu.mechanics.formulations import formulate
from mb2fmu.model.supported_functions import LookupTable
from mb2fmu.validation import form_experiment_values, make_reference
from mb2fmu.validation.reference.smooth_integration import TIGHTEST_SOLVER_TOLERANCE, integrate_smooth_equations
from mb2fmu.validation.reference.trajectory_integration import TrajectoryIntegrationProblem
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

SOURCES = Path(mb2fmu.validation.compiled.__file__).parent / "sources"
WARNINGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wstrict-prototypes", "-Wmissing-prototypes"]

t, q, u, a = sm.symbols("t q u a")
ONE, NONE = sm.ImmutableMatrix([[1]]), sm.ImmutableMatrix([[0]])


def compiled(equations):
    numeric = NumericEquations(equations)
    assert numeric.compile()
    return numeric


def one_freedom(acceleration, **more):
    """q'' = acceleration."""
    return EquationsOfMotion(
        method="kane",
        t=t,
        q=(q,),
        u=(u,),
        u_independent=(0,),
        u_dot=(a,),
        kinematics=KinematicEquations(ONE, NONE),
        dynamics=MassMatrixDynamics(ONE, sm.ImmutableMatrix([[acceleration]])),
        **more,
    )


FUNCTIONS = [
    *(f(q) for f in (sm.sqrt, sm.exp, sm.log, sm.sin, sm.cos, sm.tan, sm.cot, sm.sec, sm.csc, sm.asin, sm.acos)),
    *(f(q) for f in (sm.atan, sm.acot, sm.sinh, sm.cosh, sm.tanh, sm.coth, sm.sech, sm.csch, sm.asinh, sm.atanh)),
    *(f(q) for f in (sm.sinc, sm.erf, sm.erfc, sm.Abs, sm.sign, sm.floor, sm.ceiling, sm.frac, sm.Heaviside)),
    *(f(q + 1) for f in (sm.acosh, sm.asec, sm.acsc)),
    *(sm.Mod(sign * q, sm.Rational(1, 4)) for sign in (1, -1)),
    sm.atan2(q, -0.3),
    sm.Min(q, 0.3, 2),
    sm.Max(q, 0.3, 0.2),
    sm.Piecewise((q, q < 0.2), (q**2, sm.And(q < 0.9, sm.Not(sm.Eq(q, 0.5)))), (1, True)),
    sm.ITE(sm.Or(q < 0.3, q > 0.7), sm.true, sm.false),
    sm.Heaviside(q - 0.5, 1),
    sm.log(q, 10),
    q ** sm.Rational(7, 3) - q**-3 / 3 + 2 / sm.sqrt(q) - (q + 1) ** 4 * q / (q + 2) ** 2,
    sm.exp(-2 * q) * sm.pi + sm.E,
    sm.re(q) + sm.im(q) + sm.conjugate(q),
]


@pytest.fixture(scope="module")
def functions():
    """Every function as an output."""
    plain = [sm.Piecewise((1, f), (0, True)) if f.is_Boolean else f for f in FUNCTIONS]
    outputs = tuple(OutputExpression(f"y{i}", f, "position") for i, f in enumerate(plain))
    return plain, compiled(one_freedom(sm.S.Zero, outputs=outputs))


@examples(8)
@given(value=st.floats(0.01, 0.99))
def test_functions_have_sympys_values(functions, value):
    plain, numeric = functions
    found = numeric.motion(0.0, np.array([value, 0.0]), [], ()).outputs
    for function, number in zip(plain, found, strict=True):
        exact = float(function.subs(q, sm.Float(value, 30)).evalf(30))
        assert number == pytest.approx(exact, rel=1e-13, abs=1e-13), function


def test_tables_and_their_slopes_have_their_values():
    table = LookupTable("curve", [0, 1, 3], [0, 1, 9], "linear", "linear")
    other = LookupTable("curve", [0, 1], [0, 5])
    expressions = [table(q**2), sm.diff(table(q), q), other(q) + table(2 * q)]
    outputs = tuple(OutputExpression(f"y{i}", f, "position") for i, f in enumerate(expressions))
    numeric = compiled(one_freedom(sm.S.Zero, outputs=outputs))
    assert numeric.motion(0.0, np.array([0.5, 0.0]), [], ()).outputs == pytest.approx([0.25, 1.0, 3.5])
    assert numeric.motion(0.0, np.array([2.0, 0.0]), [], ()).outputs == pytest.approx([13.0, 4.0, 23.0])


def _constrained(random, n, m, rank):
    """Constant M, f, A, b, gamma with ``rank`` of m independent rows; all speeds are states."""
    root = random.normal(size=(n, n))
    A = random.normal(size=(m, rank)) @ random.normal(size=(rank, n))
    speeds, accelerations = random.normal(size=n), random.normal(size=n)
    symbols = {letter: sm.symbols(f"{letter}:{n}") for letter in "qua"}
    multipliers = sm.symbols(f"lambda:{m}")
    return EquationsOfMotion(
        method="kane",
        t=t,
        q=symbols["q"],
        u=symbols["u"],
        u_independent=tuple(range(n)),
        u_dot=symbols["a"],
        kinematics=KinematicEquations(sm.ImmutableMatrix.eye(n), sm.ImmutableMatrix.zeros(n, 1)),
        velocity_constraints=VelocityConstraints(
            tuple(f"row {i}" for i in range(m)),
            sm.ImmutableMatrix(A),
            sm.ImmutableMatrix(m, 1, -A @ speeds),
            sm.ImmutableMatrix(m, 1, -A @ accelerations),
        ),
        multipliers=multipliers,
        treatment="multipliers",
        dynamics=MassMatrixDynamics(
            sm.ImmutableMatrix(root @ root.T + np.eye(n)), sm.ImmutableMatrix(n, 1, random.normal(size=n))
        ),
        outputs=tuple(OutputExpression(str(s), s, "acceleration") for s in (*multipliers, *symbols["a"])),
    )


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**31), n=st.integers(2, 6), m=st.integers(1, 5))
def test_redundant_constraints_are_solved_as_numpy_solves_them(seed, n, m):
    random = np.random.default_rng(seed)
    rank = int(random.integers(1, min(m, n - 1) + 1))
    equations = _constrained(random, n, m, rank)
    plain, fast = NumericEquations(equations), compiled(equations)
    x = random.normal(size=2 * n)
    one, other = plain.motion(0.0, x, [], ()), fast.motion(0.0, x, [], ())
    for name in ("x_dot", "outputs", "residual", "u"):
        expected = getattr(one, name)
        size = 1 + np.max(np.abs(expected))
        assert np.allclose(getattr(other, name), expected, rtol=0, atol=1e-9 * size), name
    assert np.allclose(fast.project(0.0, x, [], ()), plain.project(0.0, x, [], ()), rtol=0, atol=1e-10)
    assert np.max(np.abs(fast.motion(0.0, fast.project(0.0, x, [], ()), [], ()).residual)) < 1e-10


def test_a_mechanism_with_everything_is_its_twin():
    model = cart_with_pathways()
    model.output_total_energy()
    mechanism = mechanism_of(model)
    equations = formulate(mechanism, "kane")
    plain, fast = NumericEquations(equations), compiled(equations)
    for state in random_states(mechanism, 10):
        prepared = plain.prepare(list(state.p))
        one = plain.motion(state.t, state.x, list(state.r), prepared)
        other = fast.motion(state.t, state.x, list(state.r), prepared)
        for name in ("x_dot", "outputs", "residual", "u", "power", "kinetic"):
            assert np.allclose(getattr(other, name), getattr(one, name), rtol=1e-12, atol=1e-12), name


def test_many_instants_are_each_as_alone():
    mechanism = mechanism_of(cart_with_pathways())
    plain, fast = (make(formulate(mechanism, "kane")) for make in (NumericEquations, compiled))
    states = random_states(mechanism, 150)  # more than one call takes
    prepared = fast.prepare(list(states[0].p))
    time, x, r = (np.array([getattr(state, name) for state in states]) for name in ("t", "x", "r"))
    for numeric, count in ((fast, 150), (plain, 2)):
        found = numeric.motions(time[:count], x[:count], r[:count], prepared)
        for k in range(count):
            alone = numeric.motion(states[k].t, states[k].x, list(states[k].r), prepared)
            for name in ("x_dot", "outputs", "residual", "u", "power", "kinetic"):
                assert np.array_equal(getattr(found, name)[k], getattr(alone, name)), (name, k)


def test_a_singular_matrix_is_named():
    numeric = compiled(
        EquationsOfMotion(
            method="kane",
            t=t,
            q=(q,),
            u=(u,),
            u_independent=(0,),
            u_dot=(a,),
            kinematics=KinematicEquations(ONE, NONE),
            dynamics=MassMatrixDynamics(sm.ImmutableMatrix([[q]]), ONE),
        )
    )
    with pytest.raises(ValidationError, match="the matrix of the accelerations is singular"):
        numeric.x_dot(0.0, np.array([0.0, 1.0]), [], ())
    with pytest.raises(ValidationError, match="the matrix of the accelerations is singular"):
        numeric.motions(np.zeros(2), np.array([[1.0, 1.0], [0.0, 1.0]]), np.zeros((2, 0)), ())


def _travelled(numeric, time, start, tolerance, scales, **more):
    inputs = np.zeros((len(time) - 1, len(numeric.equations.r)))
    return TrajectoryIntegrationProblem(numeric, time, inputs, ()).integrate_trajectory(
        np.array(start), tolerance, np.array(scales), **more
    )


def test_the_order_of_the_integrator_is_eight():
    """u' = -q as one step between two points, whatever its error: halving it divides the error by 256."""
    numeric = compiled(one_freedom(-q))
    errors = []
    for count in (16, 32):
        time = np.linspace(0.0, 10.0, count + 1)
        # Scales so large that no step is refused; the first interval begins with small steps.
        found = _travelled(numeric, time, [1.0, 0.0, 0.0], 1.0, [1e9] * 3)
        errors.append(np.max(np.abs(found[:, 0] - np.cos(time))))
    assert 7.5 < np.log2(errors[0] / errors[1]) < 9.0


def test_the_integrator_makes_scipys_steps():
    """Equal slopes, tolerances and rules give equal trajectories, far below the tolerance."""
    equations = one_freedom(-sm.sin(q) - q**3 + sm.cos(3 * t))
    plain, fast = NumericEquations(equations), compiled(equations)
    time = np.linspace(0.0, 20.0, 41)
    start, scales = np.array([1.0, 0.2, 0.0]), np.array([1.0, 1.0, 1.0])
    for tolerance in (1e-5, 1e-9):
        inputs = np.zeros((40, 0))
        slope = TrajectoryIntegrationProblem(plain, time, inputs, ()).slope
        expected = integrate_smooth_equations(slope, time, start, tolerance, scales, 10**6, 2)
        found = _travelled(fast, time, start, tolerance, scales, parts=2)
        assert np.max(np.abs(found - expected)) < 1e-3 * tolerance


def test_energy_is_kept_to_all_digits(cases):
    case = cases["double_pendulum"]((2.0, 1.0), stop=5.0)
    reference = make_reference(case.definition, case.equations)
    assert reference.numeric.compiled_equations
    assert {balance.name: balance.worst for balance in reference.balances}["energy"] < 1e-12


def test_stiff_equations_vanish_and_singular_ones_say_when():
    numeric = compiled(one_freedom(1 / sm.sqrt(1 - q) - 3))
    with pytest.raises(ValidationError, match=r"at t = .* Required step size is less than spacing between numbers"):
        _travelled(numeric, np.array([0.0, 5.0]), [0.0, 5.0, 0.0], 1e-9, [1.0] * 3)


def test_the_budget_ends_what_takes_too_long():
    numeric = compiled(one_freedom(-(10**12) * q))
    journey = TrajectoryIntegrationProblem(numeric, np.array([0.0, 10.0]), np.zeros((1, 0)), ())
    with pytest.raises(ValidationError, match="5000000 evaluations are spent"):
        journey.integrate_trajectory(np.array([1.0, 0.0, 0.0]), 1e-9, np.array([1.0, 1e6, 1.0]))


def test_a_state_that_is_round_off_alone_does_not_stop_the_others():
    """Its scale is that of nothing: no step would be small enough."""
    q2, u2, a2 = sm.symbols("q2 u2 a2")
    nothing = sm.cos(3 * q) ** 2 + sm.sin(3 * q) ** 2 - 1
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(q, q2),
        u=(u, u2),
        u_independent=(0, 1),
        u_dot=(a, a2),
        kinematics=KinematicEquations(sm.ImmutableMatrix.eye(2), sm.ImmutableMatrix.zeros(2, 1)),
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix.eye(2), sm.ImmutableMatrix([[-q], [nothing]])),
    )
    numeric = compiled(equations)
    found = _travelled(
        numeric, np.linspace(0, 1, 11), [1.0, 0.1, 0.0, 0.0, 0.0], TIGHTEST_SOLVER_TOLERANCE, [1, 1, 1, 1e-9, 1]
    )
    assert found[-1, 0] == pytest.approx(np.cos(1.0), abs=1e-15)


def test_without_a_compiler_the_reference_is_the_same(cases, monkeypatch):
    case = cases["oscillator"](stop=1.0, signal=sm.sin(3 * sm.Symbol("t")))
    fast = make_reference(case.definition, case.equations)

    def missing(*_):
        raise ToolError("there is no C compiler:", [])

    monkeypatch.setattr("mb2fmu.validation.compiled.compiled_equations.compile_library", missing)
    plain = make_reference(case.definition, case.equations)
    assert fast.numeric.compiled_equations
    assert plain.numeric.compiled_equations is None
    uncertainty = fast.trajectory.uncertainty + plain.trajectory.uncertainty
    assert np.all(np.abs(fast.trajectory.values - plain.trajectory.values) <= uncertainty)
    assert form_experiment_values(case.definition).inputs.std() > 0


def test_the_sources_have_no_warnings(tmp_path):
    for source in sorted(SOURCES.glob("*.c")):
        folder = tmp_path / source.stem
        folder.mkdir()
        command = [sys.executable, "-m", "ziglang", "cc", "-std=c99", *WARNINGS, "-Werror", "-c", str(source)]
        compile_files(folder, [*command, "-o", "object.o"])


def test_compiled_libraries_are_kept(tmp_path, monkeypatch):
    monkeypatch.setenv("MB2FMU_CACHE_DIR", str(tmp_path))
    sources = {"one.c": b'double one(void);\n__attribute__((visibility("default"))) double one(void) { return 1.0; }\n'}
    compile_library(sources, "one")
    kept = list((tmp_path / "binaries").iterdir())
    library = compile_library(sources, "one")
    assert len(kept) == 1
    assert hasattr(library, "one")
    with pytest.raises(ToolError, match="exit code"):
        compile_library({"one.c": b"double one(void) { return two; }"}, "one")


def test_the_stiff_integrator_tells_of_a_singular_matrix():
    dynamics = MassMatrixDynamics(ONE * q, ONE * (sm.cos(u) - t))
    numeric = compiled(replace(one_freedom(sm.cos(u) - t), dynamics=dynamics))
    problem = TrajectoryIntegrationProblem(numeric, np.array([0.5, 1.0]), np.empty((1, 0)), (), stiff=True)
    with pytest.raises(ValidationError, match="accelerations is singular"):
        problem.integrate_trajectory(np.array([0.0, 2.0, 0.0]), 1e-10, np.ones(3))


def _wall_before_a_singularity():
    """u' = -200 exp(200 (q - 0.9)), with a mass that is zero from q = 1 on, where no motion comes."""
    mass = sm.Max(1 - q, 0)
    force = -200 * mass * sm.exp(200 * (q - sm.Rational(9, 10)))
    return replace(one_freedom(0), dynamics=MassMatrixDynamics(ONE * mass, ONE * force))


@pytest.mark.parametrize("stiff", [False, True])
@pytest.mark.parametrize("form", [compiled, NumericEquations])
def test_a_singular_matrix_at_a_trial_makes_the_step_shorter(form, stiff):
    """Seen: a rattleback's flow over a long step ended the whole validation, though its motion goes on."""
    time = np.array([0.0, 2.0])
    problem = TrajectoryIntegrationProblem(form(_wall_before_a_singularity()), time, np.zeros((1, 0)), (), stiff=stiff)
    position, speed, _ = problem.integrate_trajectory(np.array([0.0, 1.0, 0.0]), 1e-9, np.ones(3))[1]
    assert speed == pytest.approx(-1.0, abs=1e-7)  # thrown back with all its energy
    assert position < 0.0


@pytest.mark.parametrize("form", [compiled, NumericEquations])
def test_a_singular_matrix_on_the_way_ends_the_motion(form):
    """The mass vanishes at q = 1, which a constant speed reaches at t = 1 s."""
    equations = replace(one_freedom(0), dynamics=MassMatrixDynamics(ONE * sm.Max(1 - q, 0), ONE * 0))
    for start in (0.0, 1.0):
        with pytest.raises(ValidationError, match=r"at t = |accelerations is singular"):
            _travelled(form(equations), np.array([0.0, 2.0]), [start, 1.0, 0.0], 1e-9, [1.0] * 3)
