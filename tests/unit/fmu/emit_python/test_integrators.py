"""The integrators of Python-hosted units: measured order, error control, stiffness, memory, failure."""

import math

import numpy as np
import pytest

from mb2fmu.fmu.emit_python.runtime import integrator_base, rosenbrock_method
from mb2fmu.fmu.emit_python.runtime.dense_lu_solve import make_linear_solver
from mb2fmu.fmu.emit_python.runtime.dormand_prince import DormandPrince
from mb2fmu.fmu.emit_python.runtime.failures import StepError, UndefinedValueError
from mb2fmu.fmu.emit_python.runtime.integrator_base import IntegratorMemory, Tolerance
from mb2fmu.fmu.emit_python.runtime.rosenbrock_method import Rodas
from mb2fmu.fmu.emit_python.runtime.runge_kutta import RungeKutta4


def kepler(_t, y):
    """Circular orbit with period 2 π."""
    r3 = math.hypot(y[0], y[1]) ** 3
    return y[2], y[3], -y[0] / r3, -y[1] / r3


def rheonomic(t, y):
    """y' = −y² cos t with y(0) = 1: y = 1/(1 + sin t)."""
    return (-(y[0] ** 2) * math.cos(t),)


def logistic(_t, y):
    """y' = y (1 − y) with y(0) = 1/2: y = 1/(1 + exp(−t))."""
    return (y[0] * (1.0 - y[0]),)


PROBLEMS = {
    "kepler": (kepler, (1.0, 0.0, 0.0, 1.0), 2.0, (math.cos(2.0), math.sin(2.0), -math.sin(2.0), math.cos(2.0))),
    "rheonomic": (rheonomic, (1.0,), 1.5, (1.0 / (1.0 + math.sin(1.5)),)),
    "logistic": (logistic, (0.5,), 2.0, (1.0 / (1.0 + math.exp(-2.0)),)),
}


def linearized(f):
    """Exact enough: central differences with Richardson's correction."""

    def column(g, at):
        h = 1e-3
        near, far = ((g(at + k * h) - g(at - k * h)) / (2 * k * h) for k in (1, 2))
        return (4 * near - far) / 3

    def linearize(t, x):
        n = len(x)

        def moved(i):
            return lambda value: np.array(f(t, [value if j == i else x[j] for j in range(n)]))

        columns = [column(moved(i), x[i]) for i in range(n)]
        return [[float(columns[j][i]) for j in range(n)] for i in range(n)], list(
            column(lambda time: np.array(f(time, x)), t)
        )

    return linearize


def methods(f, tolerance, n):
    weights = Tolerance(tolerance, (1.0,) * n)
    return {"explicit": DormandPrince(weights), "implicit": Rodas(weights, linearized(f), make_linear_solver)}


def measured_order(step, f, start, end, exact):
    """Order from two step sizes, small enough for the leading term of the error and large enough for round-off."""
    errors = []
    for n in (64, 128):
        x, h = list(start), end / n
        for i in range(n):
            x = step(f, i * h, x, h)
        errors.append(math.dist(x, exact))
    return math.log2(errors[0] / errors[1])


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(("name", "order"), [("explicit", 5), ("implicit", 4)])
def test_order_of_adaptive_methods(problem, name, order):
    f, start, end, exact = PROBLEMS[problem]
    method = methods(f, 1e-6, len(start))[name]

    def step(f, t, x, h):
        return method.attempt(f, t, x, h, f(t, x)).x

    assert measured_order(step, f, start, end, exact) == pytest.approx(order, abs=0.45)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_order_of_the_fixed_step_method(problem):
    f, start, end, exact = PROBLEMS[problem]

    def step(f, t, x, h):
        return RungeKutta4(0.0).advance(f, t, x, h, IntegratorMemory())[0]

    assert measured_order(step, f, start, end, exact) == pytest.approx(4, abs=0.15)


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("name", ["explicit", "implicit"])
@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8, 1e-10])
def test_error_follows_the_tolerance(problem, name, tolerance):
    """The error of these mild problems stays within 100 times the tolerance, and the work is not absurd."""
    f, start, end, exact = PROBLEMS[problem]
    calls = []

    def counted(t, x):
        calls.append(t)
        return f(t, x)

    method = methods(f, tolerance, len(start))[name]
    x, _ = method.advance(counted, 0.0, start, end, IntegratorMemory())
    assert math.dist(x, exact) < 100 * tolerance
    assert len(calls) < 60 * tolerance ** (-1 / 4)


def test_weights_of_the_embedded_pair_are_consistent():
    """The error estimate of x' = 1 is nothing, and stages add up to their times."""
    method = DormandPrince(Tolerance(1e-6, (1.0,)))
    trial = method.attempt(lambda _t, _x: (1.0,), 0.0, (0.0,), 0.5, (1.0,))
    assert trial.x == [pytest.approx(0.5, rel=1e-15)]
    assert trial.error < 1e-9
    for alpha, d, row in zip(rosenbrock_method.ALPHA, rosenbrock_method.D, rosenbrock_method.A, strict=True):
        assert len(row) == rosenbrock_method.A.index(row)
        assert abs(alpha) <= 1.0
        assert abs(d) < 1.0


def test_implicit_method_is_not_held_up_by_stiffness():
    """Prothero and Robinson's problem with lambda = 1e6: y = sin t."""

    def f(t, y):
        return (-1e6 * (y[0] - math.sin(t)) + math.cos(t),)

    calls = []

    def counted(t, y):
        calls.append(t)
        return f(t, y)

    def linearize(t, _y):
        return [[-1e6]], [1e6 * math.cos(t) - math.sin(t)]

    method = Rodas(Tolerance(1e-6, (1.0,)), linearize, make_linear_solver)
    x, _ = method.advance(counted, 0.0, (0.0,), 10.0, IntegratorMemory())
    assert abs(x[0] - math.sin(10.0)) < 1e-5
    assert len(calls) < 5000


def test_steps_in_one_go_and_in_pieces_agree():
    """Memory carries the slope over: six evaluations a step, and a few more for the first, which feels its way."""
    f, start, end, exact = PROBLEMS["kepler"]
    calls = []

    def counted(t, x):
        calls.append(t)
        return f(t, x)

    method = methods(f, 1e-8, 4)["explicit"]
    x, memory, t = list(start), IntegratorMemory(), 0.0
    for i in range(1, 101):
        x, memory = method.advance(counted, t, x, end / 100, memory)
        t = end * i / 100
    assert math.dist(x, exact) < 1e-6
    assert len(calls) <= 2 + 6 * 105
    assert memory.slope == tuple(f(t, x))


def test_memory_makes_the_same_bits():
    f, start, _, _ = PROBLEMS["kepler"]
    method = methods(f, 1e-8, 4)["explicit"]
    x, memory = method.advance(f, 0.0, start, 0.7, IntegratorMemory())
    assert method.advance(f, 0.7, x, 0.7, memory) == methods(f, 1e-8, 4)["explicit"].advance(f, 0.7, x, 0.7, memory)


@pytest.mark.parametrize("start", [0.0, -3.0, 1e6])
@pytest.mark.parametrize("step", [1e-7, 1e-3, 100.0])
@pytest.mark.parametrize("name", ["explicit", "implicit", "fixed"])
def test_any_start_time_and_step_size(start, step, name):
    """x' = 1 is exact for all; time neither drifts nor stalls."""

    def f(_t, x):
        return (1.0,) * len(x)

    methods = {
        "explicit": DormandPrince(Tolerance(1e-6, (1.0,))),
        "implicit": Rodas(Tolerance(1e-6, (1.0,)), lambda _t, _x: ([[0.0]], [0.0]), make_linear_solver),
        "fixed": RungeKutta4(0.01),
    }
    if step < 1e-5 and start == 1e6:
        step = 1e-7
    x, _ = methods[name].advance(f, start, (0.0,), step, IntegratorMemory())
    assert x[0] == pytest.approx(step, rel=1e-12)


def test_no_states_is_no_trouble():
    for method in (DormandPrince(Tolerance(1e-6, ())), RungeKutta4(0.0)):
        assert method.advance(lambda _t, _x: (), 0.0, (), 1.0, IntegratorMemory())[0] == []


@pytest.mark.parametrize("name", ["explicit", "implicit"])
def test_a_wall_is_reported(name):
    """y' = y² from 1 has a pole at t = 1."""

    def f(_t, y):
        value = y[0] ** 2 if y[0] < 1e150 else math.nan
        if not math.isfinite(value):
            raise UndefinedValueError("too large")
        return (value,)

    weights = Tolerance(1e-6, (1.0,))
    method = {
        "explicit": DormandPrince(weights),
        "implicit": Rodas(weights, lambda _t, y: ([[2.0 * y[0]]], [0.0]), make_linear_solver),
    }[name]
    with pytest.raises(StepError):
        method.advance(f, 0.0, (1.0,), 2.0, IntegratorMemory())


def test_an_undefined_start_is_reported():
    def f(_t, _y):
        raise UndefinedValueError("the mass matrix is singular")

    for method in (DormandPrince(Tolerance(1e-6, (1.0,))), RungeKutta4(0.0)):
        with pytest.raises(StepError, match="mass matrix is singular"):
            method.advance(f, 0.0, (1.0,), 1.0, IntegratorMemory())


def test_a_hole_inside_a_trial_step_is_stepped_around():
    """Stages that look beyond where x' is defined make the step smaller, not fail."""

    def f(t, _y):
        if t > 1.0:
            raise UndefinedValueError("later than 1 s nothing is defined")
        return (1.0,)

    method = DormandPrince(Tolerance(1e-6, (1.0,)))
    x, memory = method.advance(f, 0.0, (0.0,), 0.9, IntegratorMemory())
    assert x[0] == pytest.approx(0.9, rel=1e-12)
    with pytest.raises(StepError, match="nothing is defined"):
        method.advance(f, 0.9, x, 0.2, memory)


def test_too_many_steps_are_foreseen(monkeypatch):
    """Tens of times the limit: given up long before it. Few times: worked at, for a motion may calm down."""
    monkeypatch.setattr(integrator_base, "LONGEST_WALK", 1000)
    monkeypatch.setattr(integrator_base, "PACE", 15)
    calls = 0

    def stiff(rate):
        def f(t, y):
            nonlocal calls
            calls += 1
            return (-rate * (y[0] - math.cos(t)),)

        return f

    method = DormandPrince(Tolerance(1e-6, (1.0,)))
    with pytest.raises(StepError, match="would take more than 1000 internal steps"):
        method.advance(stiff(1e6), 0.0, (1.0,), 1.0, IntegratorMemory())
    assert calls < 700
    with pytest.raises(StepError, match=r"^more than 1000 internal steps"):
        method.advance(stiff(4e3), 0.0, (1.0,), 1.0, IntegratorMemory())
    assert calls > 6000


def test_fixed_steps_that_blow_up_are_reported():
    with pytest.raises(StepError, match="not finite"):
        RungeKutta4(0.0).advance(lambda _t, y: (y[0] ** 8 * 1e300,), 0.0, (1e3,), 1.0, IntegratorMemory())


def test_fixed_steps_divide_the_communication_step():
    """0.1 s is ten times 0.01 s though not in binary; 0.095 s needs ten steps as well."""
    for span in (0.1, 0.095):
        calls = []

        def f(t, _y, calls=calls):
            calls.append(t)
            return (0.0,)

        RungeKutta4(0.01).advance(f, 0.0, (0.0,), span, IntegratorMemory())
        assert len(calls) == 4 * 10


@pytest.mark.parametrize("n", [1, 2, 5, 20])
def test_linear_solves(n):
    matrix = np.random.default_rng(n).standard_normal((n, n))
    right = np.arange(1.0, n + 1.0)
    solution = make_linear_solver(matrix.tolist())(right.tolist())
    np.testing.assert_allclose(solution, np.linalg.solve(matrix, right), rtol=1e-10)


@pytest.mark.parametrize("matrix", [[[0.0]], [[1.0, 2.0], [2.0, 4.0]], [[math.nan]], [[math.inf]]])
def test_singular_matrices_are_reported(matrix):
    with pytest.raises(UndefinedValueError, match="singular"):
        make_linear_solver(matrix)
