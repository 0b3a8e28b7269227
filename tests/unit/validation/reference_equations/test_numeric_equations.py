"""Equations as functions of numbers: the linear algebra and the order of evaluation."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sm
import sympy.physics.mechanics as me
from event_models import reference_of
from hypothesis import given
from hypothesis import strategies as st
from representatives import examples

from mb2fmu import Impact, Model
from mb2fmu.mechanics.equations.equations_of_motion import (
    EquationsOfMotion,
    KinematicEquations,
    LinearSystemAssignment,
    MassMatrixDynamics,
    OutputExpression,
    SymbolAssignment,
    VelocityConstraints,
)
from mb2fmu.model.supported_functions import SUPPORTED_FUNCTIONS, LookupTable
from mb2fmu.validation.evaluation_plans.lambdified_scalar_functions import compile_scalar_function
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations


def constrained(M, f, A, b, gamma, rows=None):
    """Constant matrices, n_u = n_q, the last m speeds dependent; ``rows``: M and f already reduced."""
    n, m = len(f), len(b)
    q, u, a = (sm.symbols(f"{letter}:{n}") for letter in "qua")
    zero = sm.ImmutableMatrix.zeros
    matrix, forcing = rows or (M, f)
    return EquationsOfMotion(
        method="kane",
        t=sm.Symbol("t"),
        q=q,
        u=u,
        u_independent=tuple(range(n - m)),
        u_dot=a,
        kinematics=KinematicEquations(sm.ImmutableMatrix.eye(n), zero(n, 1)),
        velocity_constraints=VelocityConstraints(
            tuple(f"row {i}" for i in range(m)),
            sm.ImmutableMatrix(A),
            sm.ImmutableMatrix(m, 1, b),
            sm.ImmutableMatrix(m, 1, gamma),
        ),
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix(matrix), sm.ImmutableMatrix(len(forcing), 1, forcing)),
        outputs=tuple(OutputExpression(str(s), s, "acceleration") for s in a),
    )


@examples(10)
@given(seed=st.integers(0, 2**31), n=st.integers(2, 5), m=st.integers(1, 3))
def test_constrained_accelerations_solve_the_kkt_system(seed, n, m):
    m = min(m, n - 1)
    random = np.random.default_rng(seed)
    root = random.normal(size=(n, n))
    M, f = root @ root.T + np.eye(n), random.normal(size=n)
    A = random.normal(size=(m, n))
    A[:, n - m :] += 4 * np.eye(m)
    b, gamma = random.normal(size=m), random.normal(size=m)
    kkt = np.linalg.solve(np.block([[M, A.T], [A, np.zeros((m, m))]]), np.concatenate([f, -gamma]))[:n]
    # Speeds u = [1; -A_d^-1 A_i] u_i + const: its transpose reduces the rows.
    T = np.vstack([np.eye(n - m), -np.linalg.solve(A[:, n - m :], A[:, : n - m])])
    x = random.normal(size=2 * n - m)
    for rows in (None, (T.T @ M, T.T @ f)):
        motion = NumericEquations(constrained(M, f, A, b, gamma, rows)).motion(0.0, x, [], ())
        assert motion.outputs == pytest.approx(kkt, rel=1e-9, abs=1e-9)
        assert np.max(np.abs(A @ motion.u + b)) < 1e-12 * (1 + np.max(np.abs(motion.u)))
        assert np.max(np.abs(motion.residual)) < 1e-12 * (1 + np.max(np.abs(motion.u)))
        assert motion.x_dot[:n] == pytest.approx(motion.u)


def test_intermediates_are_evaluated_in_order_and_equal_what_they_stand_for():
    """An assignment, a solve of it, assignments on its result; used by kinematics, dynamics, z' and outputs alike."""
    t, q, u, z, a, p, r, c = sm.symbols("t q u z a p r c")
    s, x0, x1, v, w = sm.symbols("s x0 x1 v w")
    matrix = sm.ImmutableMatrix([[2 + s**2, c], [0, 3 + s]])
    rhs = sm.ImmutableMatrix([[q + s], [u * s]])
    equations = EquationsOfMotion(
        method="tmt",
        t=t,
        q=(q,),
        u=(u,),
        u_independent=(0,),
        u_dot=(a,),
        z=(z,),
        p=(p,),
        calculated_parameters=(SymbolAssignment(c, sm.exp(p)),),
        r=(r,),
        intermediates=(
            SymbolAssignment(s, sm.sin(q * t)),
            LinearSystemAssignment((x0, x1), matrix, rhs, "x"),
            SymbolAssignment(v, x0 * sm.cos(q * t) + x1),
            SymbolAssignment(w, v**2 + sm.cos(q * t)),
        ),
        kinematics=KinematicEquations(sm.ImmutableMatrix([[1 + w]]), sm.ImmutableMatrix([[s]])),
        z_dot=(a * w + z,),
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix([[1 + v**2]]), sm.ImmutableMatrix([[r * w + c]])),
        outputs=(OutputExpression("y", a + x0 + w, "acceleration"), OutputExpression("x1", x1, "velocity")),
    )
    numbers = {t: 0.7, q: 0.4, u: -1.1, z: 0.3, p: 0.2, r: 1.7}
    numbers[c] = sm.exp(0.2)
    numbers[s] = sm.sin(0.28)
    solution = matrix.subs(numbers).LUsolve(rhs.subs(numbers))
    numbers |= {x0: solution[0], x1: solution[1]}
    numbers[v] = (x0 * sm.cos(q * t) + x1).subs(numbers)
    numbers[w] = (v**2 + sm.cos(q * t)).subs(numbers)
    acceleration = (r * w + c).subs(numbers) / (1 + v**2).subs(numbers)
    numeric = NumericEquations(equations)
    motion = numeric.motion(0.7, np.array([0.4, -1.1, 0.3]), [1.7], numeric.prepare([0.2]))
    expected = [((1 + w) * u + s).subs(numbers), acceleration, (acceleration * w + z).subs(numbers)]
    assert motion.x_dot == pytest.approx(np.array(expected, dtype=float), rel=1e-13)
    outputs = [acceleration + (x0 + w).subs(numbers), numbers[x1]]
    assert motion.outputs == pytest.approx(np.array(outputs, dtype=float), rel=1e-13)


def test_constraint_forces_are_solved_for_with_the_accelerations():
    t, q, u, a, force = sm.symbols("t q u a force")
    one = sm.ImmutableMatrix([[1]])
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(q,),
        u=(u,),
        u_independent=(0,),
        u_dot=(a,),
        kinematics=KinematicEquations(one, sm.ImmutableMatrix([[0]])),
        dynamics=MassMatrixDynamics(one, sm.ImmutableMatrix([[-4 * q]])),
        constraint_forces=LinearSystemAssignment(
            (force,), sm.ImmutableMatrix([[2]]), sm.ImmutableMatrix([[a + u**2]]), "forces"
        ),
        outputs=(OutputExpression("force", force, "acceleration", "N"),),
    )
    motion = NumericEquations(equations).motion(0.0, np.array([0.5, 3.0]), [], ())
    assert motion.outputs == pytest.approx([(-2.0 + 9.0) / 2])


@pytest.mark.parametrize("fast", [False, True], ids=["numpy", "compiled"])
@pytest.mark.parametrize("size", [1.0, 1e-6, 1e6])
@pytest.mark.parametrize("off", [0.0, 1e-17, 1e-6])
def test_round_off_about_zero_is_on_the_constraints(fast, size, off):
    """Crank and slider: closed at q = 0, where nothing but typical magnitudes says how large round-off may be.

    The third coordinate is a length, in any unit.
    """
    t = sm.Symbol("t")
    q, u, a = (sm.symbols(f"{name}:3") for name in "qua")
    bar, crank = 0.3 * size, 0.1 * size
    phi = (
        bar * sm.cos(q[1]) - crank * sm.sin(q[0]) - bar - q[2],
        crank * sm.cos(q[0]) + bar * sm.sin(q[1]) - crank,
    )
    rows = sm.Matrix(phi).jacobian(q)
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=q,
        u=u,
        u_independent=(0, 1, 2),
        u_dot=a,
        kinematics=KinematicEquations(sm.ImmutableMatrix.eye(3), sm.ImmutableMatrix.zeros(3, 1)),
        holonomic=tuple(zip(("x", "y"), phi, strict=True)),
        velocity_constraints=VelocityConstraints(
            ("x", "y"), sm.ImmutableMatrix(rows), sm.ImmutableMatrix.zeros(2, 1), sm.ImmutableMatrix.zeros(2, 1)
        ),
        treatment="multipliers",
        dynamics=MassMatrixDynamics(sm.ImmutableMatrix.eye(3), sm.ImmutableMatrix.zeros(3, 1)),
    )
    numeric = NumericEquations(equations, (1.0, 1.0, size, 1.0, 1.0, size))
    assert numeric.compile() if fast else not numeric.compiled_equations
    start = np.array([off, -2.6 * off, -0.4 * off * size, 0.0, 0.0, 0.0])
    found = numeric.project(0.0, start, (), ())
    assert np.max(np.abs(found[:3] / [1.0, 1.0, size])) <= 5 * off
    residual = numeric.residuals(np.array([[0.0, *found]]), ())
    assert np.max(np.abs(residual)) <= 2e-16 * size


@pytest.mark.parametrize("fast", [False, True])
def test_rows_of_a_model_with_events_are_evaluated_at_its_points(fast: bool) -> None:
    """Modes follow the inputs among the variables: a bob that strikes a wall keeps its distance from the pivot."""
    t = me.dynamicsymbols._t
    x, y, push = me.dynamicsymbols("x y push")
    m, length = sm.symbols("m l")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x + y * N.y)
    P.set_vel(N, x.diff(t) * N.x + y.diff(t) * N.y)
    bob = me.Particle("bob", P, m)
    row = (x**2 + y**2) / length - length
    loads = [(P, push * N.x - 9.81 * m * N.y)]
    lagrange = me.LagrangesMethod(
        me.Lagrangian(N, bob), [x, y], hol_coneqs=[row], bodies=[bob], frame=N, forcelist=loads
    )
    model = Model("Bob", lagrange)
    model.parameter(m, 2.0, "kg")
    model.parameter(length, 2.0, "m")
    model.input(push, 1.0, "N")
    for q, start in ((x, 1.2), (y, -1.6)):
        model.coordinate(q, start, "m")
        model.speed(q.diff(t), 0.0, "m/s")
    model.add(Impact("wall", x + 0.6, restitution=0.5))
    model.experiment(stop=1.0, step=0.1)
    reference = reference_of(model)
    numeric, run = reference.numeric, reference.experiment
    assert numeric.compile() or not fast
    if not fast:
        numeric.compiled_equations = None
    points = run.form_points(reference.trajectory.values[:, : numeric.n_q + numeric.n_u + numeric.n_z])
    points[:, 1] += 0.1
    expected = (0.2 * points[:, 1] - 0.01) / 2.0  # ((x + 0.1)² − x²) / l, on rows that are kept at x
    prepared = numeric.prepare(run.parameters)
    assert numeric.residuals(points, prepared)[:, 0] == pytest.approx(expected, abs=1e-7)
    q, inputs = np.array([1.0, -1.7]), run.inputs_at(0)
    assert numeric.holonomic_slopes(0.0, q, np.zeros(numeric.n_z), inputs, prepared) == pytest.approx(np.array([q]))
    state = np.array([*q, 0.1, 0.2, *np.zeros(numeric.n_z)])
    assert numeric.independent_rows(0.0, state, inputs, prepared) == 1
    assert np.linalg.norm(numeric.project(0.0, state, inputs, prepared)[:2]) == pytest.approx(2.0, rel=1e-12)


x = sm.Symbol("x")
FUNCTIONS = [
    *(f(x) for f in (sm.sqrt, sm.exp, sm.log, sm.sin, sm.cos, sm.tan, sm.cot, sm.sec, sm.csc, sm.asin, sm.acos)),
    *(f(x) for f in (sm.atan, sm.acot, sm.sinh, sm.cosh, sm.tanh, sm.coth, sm.sech, sm.csch, sm.asinh, sm.atanh)),
    *(f(x) for f in (sm.sinc, sm.erf, sm.erfc, sm.Abs, sm.sign, sm.floor, sm.ceiling, sm.frac, sm.Heaviside)),
    *(f(x + 1) for f in (sm.acosh, sm.asec, sm.acsc)),
    sm.atan2(x, -0.3),
    sm.Mod(x, sm.Rational(1, 4)),
    sm.Min(x, 0.3, 2),
    sm.Max(x, 0.3, 0.2),
    sm.Piecewise((x, x < 0.2), (x**2, x < 0.9), (1, True)),
    sm.log(x, 10),
    x ** sm.Rational(7, 3),
    sm.Rational(1, 3) * x,
]


@examples(8)
@given(value=st.floats(0.01, 0.99))
def test_supported_functions_have_sympys_values(value):
    assert SUPPORTED_FUNCTIONS
    found = compile_scalar_function([x], FUNCTIONS)(value)
    for function, number in zip(FUNCTIONS, found, strict=True):
        exact = float(function.subs(x, sm.Float(value, 30)).evalf(30))
        assert number == pytest.approx(exact, rel=1e-13, abs=1e-13), function


def test_tables_and_their_slopes_have_their_values():
    table = LookupTable("curve", [0, 1, 3], [0, 1, 9], "linear", "linear")
    function = compile_scalar_function([x], [table(x**2), sm.diff(table(x), x)])
    assert function(0.5) == pytest.approx([0.25, 1.0])
    assert function(2.0) == pytest.approx([9.0 + 4.0, 4.0])


def test_tables_of_one_name_keep_their_own_data():
    one = LookupTable("curve", [0, 1], [0, 1])
    two = LookupTable("curve", [0, 1], [0, 5])
    assert compile_scalar_function([x], [one(x), two(x), one(x) + two(2 * x)])(0.5) == pytest.approx([0.5, 2.5, 5.5])


@pytest.mark.parametrize("name", ["lambda", "sin", "pi", "e", "load[1]", "_common0", "_value0", "Piecewise", "None"])
def test_any_name_is_a_good_name(name):
    """Models name their quantities; Python's words and functions are no worse than others."""
    t, q, u, a = sm.symbols("t q u a")
    symbol = sm.Symbol(name)
    equations = EquationsOfMotion(
        method="kane",
        t=t,
        q=(q,),
        u=(u,),
        u_independent=(0,),
        u_dot=(a,),
        p=(symbol,),
        intermediates=(SymbolAssignment(sm.Symbol(name + "'"), sm.sin(symbol) * sm.pi),),
        kinematics=KinematicEquations(sm.ImmutableMatrix([[1]]), sm.ImmutableMatrix([[0]])),
        dynamics=MassMatrixDynamics(
            sm.ImmutableMatrix([[1]]), sm.ImmutableMatrix([[sm.Symbol(name + "'") + sm.sin(symbol) + sm.E * q]])
        ),
    )
    motion = NumericEquations(equations).motion(0.0, np.array([1.0, 0.0]), [], (0.3,))
    assert motion.x_dot[1] == pytest.approx(np.sin(0.3) * (1 + np.pi) + np.e, rel=1e-14)
