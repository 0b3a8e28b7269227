"""Each method has the order it claims: its coefficients, in steps, between the ends of steps, where it is stiff."""

import math
import operator
import re
from fractions import Fraction

import numpy as np
import pytest
from native_models.zoo import ADAPTIVE, RUNTIME, Kind, Solver, Unit
from native_models.zoo_solutions import CASES
from scipy.integrate import solve_ivp

from mb2fmu.fmu.integration_method_table import SOLVERS

STEPS = {1: 800, 3: 100, 4: 60, 5: 40}
"""Of 2 s, by the order: errors are small, and above round-off."""


def test_rows_are_those_that_importers_see(library):
    rows = [library.method(row.number) for row in SOLVERS]
    assert [row[0] for row in rows] == [row.name for row in SOLVERS]
    assert library.method(0) is None
    assert library.method(len(SOLVERS) + 1) is None


def without_control(unit, step):
    """Adaptive methods take steps as they are given: the tolerance is loose and a long step is proposed."""
    if unit.solver in ADAPTIVE:
        assert unit.load([1e-2, 0.0, step, 0.0, 0.0, *[0.0] * 4], [unit.solver, 0]) == 0


def error_of(library, case, solver, end, n):
    unit = case.unit(library, solver)
    without_control(unit, 1e3)
    x = unit.march(0.0, end / n, n, case.exact(0.0))
    assert (unit.problem.steps, unit.problem.rejected) == (n, 0)
    return math.dist(x, case.exact(end))


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("name", CASES)
def test_order_in_steps(library, name, solver):
    _, order, _ = library.method(solver)
    n = STEPS[order]
    errors = [error_of(library, CASES[name], solver, 2.0, m) for m in (n, 2 * n, 4 * n)]
    assert errors[2] > 1e-14
    measured = math.log2(errors[1] / errors[2])
    assert measured == pytest.approx(order, abs=0.25)


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("name", ["pendulum", "kepler", "forced"])
def test_order_between_the_ends_of_a_step(library, name, solver):
    """Within one step from an exact state the error of an interpolant of order p is O(h^(p + 1))."""
    case, errors = CASES[name], []
    for h in (0.08, 0.04):
        unit = case.unit(library, solver)
        without_control(unit, 1.0)
        begin = case.exact(0.3)
        end = unit.step(0.3, h, begin)
        assert unit.problem.steps == 1
        assert unit.dense(0.3) == pytest.approx(begin, rel=1e-15, abs=1e-15)
        assert unit.dense(0.3 + h) == pytest.approx(end, rel=1e-15, abs=1e-15)
        assert unit.dense(0.3 - 0.01 * h) is None
        assert unit.dense(0.3 + 1.01 * h) is None
        errors.append(max(math.dist(unit.dense(0.3 + s * h), case.exact(0.3 + s * h)) for s in (0.2, 0.4, 0.6, 0.8)))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(library.method(solver)[2] + 1, abs=0.35)


def table(name):
    """A table of the method."""
    text = "".join((RUNTIME / name).read_text() for name in ("rodasp.h", "solver_rosenbrock.c"))
    body = re.search(rf"mb2fmu_rodasp_{name}(?:\[\w+(?: - 1)?\])+ = ([^;]*);", text).group(1)
    return np.array([float(word) for word in re.findall(r"-?\d+\.\d*", body)])


def test_coefficients_of_the_rosenbrock_method():
    """Conditions of order 4, 3 of the embedded result, and stiff accuracy (Hairer, Wanner II, IV.7, (7.11))."""
    a, c = (np.hstack([table(name).reshape(6, 5), np.zeros((6, 1))]) for name in "ac")
    gamma = np.linalg.inv(np.eye(6) / 0.25 - c)
    alpha = a @ gamma
    beta = alpha + gamma
    sums, weights = alpha.sum(axis=1), beta.sum(axis=1)
    assert sums == pytest.approx(table("alpha"), abs=1e-13)
    assert gamma.sum(axis=1) == pytest.approx(table("d"), abs=1e-13)

    def conditions(b):
        return [
            (b.sum(), 1),
            (b @ weights, 1 / 2),
            (b @ sums**2, 1 / 3),
            (b @ beta @ weights, 1 / 6),
            (b @ sums**3, 1 / 4),
            (b @ (sums * (alpha @ weights)), 1 / 8),
            (b @ beta @ sums**2, 1 / 12),
            (b @ beta @ beta @ weights, 1 / 24),
        ]

    end = np.append(a[5, :5], 1.0) @ gamma
    embedded = np.append(a[5, :5], 0.0) @ gamma
    assert end == pytest.approx(beta[5], abs=1e-13)
    for value, wanted in conditions(end) + conditions(embedded)[:4]:
        assert value == pytest.approx(wanted, abs=1e-13)
    assert abs(conditions(embedded)[4][0] - 1 / 4) > 1e-3


@pytest.mark.parametrize("stiffness", [1e2, 1e4, 1e6, 1e8])
def test_stiff_forcing_costs_no_order(library, stiffness):
    """Prothero and Robinson's problem: the error falls at least with h^3 and does not grow with the stiffness."""

    def error(n):
        unit = Unit(library, Solver.IMPLICIT, Kind.PROTHERO, a=stiffness)
        without_control(unit, 1e3)
        return abs(unit.march(0.0, 1.0 / n, n, [0.0, 0.0, math.sin(1.0), 0.0])[2] - math.sin(2.0))

    coarse, fine = error(10), error(20)
    assert coarse < 1e-5
    assert fine < coarse / 7.0 or fine < 1e-13


def relaxation(stiffness, end):
    """q of van der Pol's oscillator, by a method of another family."""

    def f(_t, y):
        return [y[1], stiffness * ((1 - y[0] ** 2) * y[1] - y[0])]

    def jacobian(_t, y):
        return [[0.0, 1.0], [stiffness * (-2 * y[0] * y[1] - 1), stiffness * (1 - y[0] ** 2)]]

    return solve_ivp(f, (0, end), [2.0, -2.0 / 3.0], "Radau", jac=jacobian, rtol=1e-11, atol=1e-12).y[0, -1]


RELAXED = 1e4, 1.6, -1.1491786407590883
"""Stiffness, end, and q there by :func:`relaxation`, which takes seconds."""


@pytest.mark.repeats
def test_what_is_known_of_the_relaxation_is_computed_again():
    assert relaxation(*RELAXED[:2]) == pytest.approx(RELAXED[2], abs=1e-9)


@pytest.mark.parametrize("tolerance", [1e-4, 1e-6, 1e-8])
def test_van_der_pol(library, tolerance):
    """Through fast transitions of a relaxation oscillation, in few steps."""
    stiffness, end = RELAXED[:2]
    unit = Unit(library, Solver.IMPLICIT, Kind.VAN_DER_POL, stiffness, tolerance=tolerance)
    x = unit.step(0.0, end, [2.0, 0.0, -2.0 / 3.0, 0.0])
    assert abs(x[0] - RELAXED[2]) < 100 * tolerance
    assert unit.problem.steps < 2500
    assert unit.problem.rejected < 0.2 * unit.problem.steps


def test_stiff_linear_system_in_few_steps(library):
    """What has died out does not limit the step: L-stability."""
    unit = Unit(library, Solver.IMPLICIT, Kind.STIFF_DRIVEN, a=1e9, r0=0.25)
    x = unit.step(0.0, 100.0, [0.0, 0.0, 7.0, 0.0])
    assert x[2] == pytest.approx(0.25, abs=1e-12)
    assert unit.problem.steps < 100


def test_symplectic_euler_keeps_the_energy(library):
    """Over 1000 periods the energy of a pendulum stays in a band of width O(h)."""
    unit = CASES["pendulum"].unit(library, Solver.EULER)
    x = [2.0, 0.0, 0.0, 0.0]
    energies = []
    for i in range(40):
        x = unit.march(i * 200.0, 0.01, 20000, x)
        energies.append(0.5 * x[2] ** 2 - math.cos(x[0]))
    assert max(energies) - min(energies) < 0.03


def terms(text, pattern):
    """Weights of the stages in a sum of the C code, exactly."""
    weights = [Fraction(0)] * 7
    for sign, stage, minus, over, under in re.findall(pattern, text):
        value = Fraction(int(over), int(under))
        weights[int(stage)] += -value if (sign == "-") != (minus == "-") else value
    return weights


def test_coefficients_of_dormand_and_prince():
    """Conditions of order 5, 4 of the error estimate and 4 of the interpolant (Hairer, Norsett, Wanner I, II.1)."""
    text = "".join((RUNTIME / name).read_text() for name in ("dopri5.h", "solver_dopri5.c"))
    fraction = r"\[i\] \* \((-?)(\d+)\.0 / (\d+)\.0\)"
    sums = re.findall(r"#define MB2FMU_DOPRI5_(\d|RESULT|ERROR)\(k, i\)(.*?)\n(?=[#\n])", text, re.DOTALL)
    rows = {name: terms(row, r"([+-]?)[\s\\]*\(k\)\[(\d)\]" + fraction) for name, row in sums}
    assert tuple(rows) == ("2", "3", "4", "5", "6", "RESULT", "ERROR")
    error = rows.pop("ERROR")
    a = [[Fraction(0)] * 7, *rows.values()]
    inner = terms(re.search(r"inner =(.*?);", text, re.DOTALL)[1], r"([+-]?)\s*work->k\[(\d)\]" + fraction)
    nodes = [sum(row) for row in a]
    assert nodes == [0, Fraction(1, 5), Fraction(3, 10), Fraction(4, 5), Fraction(8, 9), 1, 1]

    def times(vector):
        return [sum(map(operator.mul, row, vector)) for row in a]

    def conditions(b):
        """Sums for all trees of order 1 to 4, and one of order 5."""
        slopes, squares = times(nodes), [c * c for c in nodes]
        products = list(map(operator.mul, nodes, slopes))
        cubes, fourth = list(map(operator.mul, squares, nodes)), list(map(operator.mul, squares, squares))
        trees = ([1] * 7, nodes, squares, slopes, cubes, products, times(squares), times(slopes), fourth)
        return [sum(map(operator.mul, b, tree)) for tree in trees]

    def wanted(s):
        return [s, s**2 / 2, s**3 / 3, s**3 / 6, s**4 / 4, s**4 / 8, s**4 / 12, s**4 / 24, s**5 / 5]

    end = a[6]
    assert conditions(end) == wanted(Fraction(1))
    assert conditions(error)[:8] == [0] * 8
    assert conditions(error)[8] != 0
    for s in (Fraction(1, 2), Fraction(2, 7)):
        first = [(i == 0) - b for i, b in enumerate(end)]
        last = [b - (i == 6) - f for i, (b, f) in enumerate(zip(end, first, strict=True))]
        weights = [
            s * (b + (1 - s) * (f + s * (g + (1 - s) * d))) for b, f, g, d in zip(end, first, last, inner, strict=True)
        ]
        assert conditions(weights)[:8] == wanted(s)[:8]
