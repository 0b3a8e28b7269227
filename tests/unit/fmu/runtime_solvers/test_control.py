"""Step size control: what the tolerance promises, however the way is divided; no effort lost on short ways."""

import functools
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_models.zoo import ADAPTIVE, Kind, Solver, Unit
from native_models.zoo_solutions import CASES

LONG = {"oscillator": 30.0, "pendulum": 30.0, "kepler": 40.0, "forced": 30.0, "speeds that are not q'": 2.0}


@functools.cache
def sensitivity(library, name, end):
    """How much a perturbed start moves the end: the largest of perturbations in each state; at least 1."""
    case, step = CASES[name], 1e-6

    def moved(i, change):
        x = case.exact(0.0)
        x[i] += change
        return case.unit(library, Solver.EXPLICIT, tolerance=1e-12).step(0.0, end, x)

    return max(1.0, *(math.dist(moved(i, step), moved(i, -step)) / (2 * step) for i in range(4)))


@pytest.mark.parametrize("solver", ADAPTIVE)
@pytest.mark.parametrize("name", LONG)
def test_global_error_follows_the_tolerance(library, name, solver):
    case, end = CASES[name], LONG[name]
    errors = []
    for tolerance in (1e-3, 1e-5, 1e-7, 1e-9):
        unit = case.unit(library, solver, tolerance=tolerance)
        x = unit.step(0.0, end, case.exact(0.0))
        errors.append(math.dist(x, case.exact(end)))
        assert errors[-1] <= 100 * tolerance * sensitivity(library, name, end)
        assert unit.problem.rejected <= 3 + 0.25 * unit.problem.steps
    assert errors[0] > errors[1] > errors[2] > errors[3]


@settings(max_examples=40, deadline=None)
@given(
    steps=st.lists(st.floats(1e-9, 3.0), min_size=1, max_size=12),
    solver=st.sampled_from(ADAPTIVE),
    name=st.sampled_from(["pendulum", "forced", "driven by a ramp"]),
)
def test_any_division_of_the_way_keeps_the_tolerance(zig_library, steps, solver, name):
    """Communication steps from 1 ns to 3 s in any order."""
    case = CASES[name]
    unit = case.unit(zig_library, solver, tolerance=1e-6)
    x, t, limit = case.exact(0.0), 0.0, 1.8 if name == "driven by a ramp" else math.inf
    for h in steps:
        if t + h > limit:
            break
        x = unit.step(t, h, x)
        t += h
    assert math.dist(x, case.exact(t)) <= 1e-4 * max(1.0, *map(abs, case.exact(t))) * (1.0 + t)


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_short_communication_steps_do_not_shorten_later_ones(library, solver):
    """After 2000 steps of a microsecond the next long step begins with the step size that was found before them."""
    case = CASES["pendulum"]
    effort = []
    for count in (0, 2000):
        unit = case.unit(library, solver, tolerance=1e-6)
        x = unit.step(0.0, 3.0, case.exact(0.0))
        for i in range(count):
            x = unit.step(3.0 + i * 1e-6, 1e-6, x)
        before = unit.problem.calls
        unit.step(3.0 + count * 1e-6, 3.0, x)
        effort.append(unit.problem.calls - before)
    assert effort[1] <= effort[0] + 14


def test_a_short_communication_step_costs_one_internal_step(library):
    """Six evaluations of x': the seventh is the first of the next step."""
    unit = CASES["pendulum"].unit(library, Solver.EXPLICIT)
    x = unit.step(0.0, 0.001, [2.0, 0.0, 0.0, 0.0])
    unit.problem.calls = 0
    unit.march(0.001, 0.001, 100, x)
    assert unit.problem.calls == 600
    unit.invalidate()
    unit.step(0.101, 0.001, x)
    assert unit.problem.calls == 607


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_a_jump_is_met_to_the_tolerance(library, solver):
    """x' jumps at 1/3: 100 times the tolerance is the bound here, too."""
    unit = Unit(library, solver, Kind.SWITCHED, a=1.0 / 3.0, tolerance=1e-7)
    assert unit.step(0.0, 1.0, [0.0, 0.0, 1.0, 0.0])[2] == pytest.approx(5.0 / 3.0, abs=1e-5)


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_rest_costs_nothing_and_spoils_nothing(library, solver):
    """A model at rest takes one internal step however far; afterwards a moving one is still solved to the tolerance."""
    unit = Unit(library, solver, Kind.RESTING)
    assert unit.march(0.0, 1e9, 1000, [1.0, 2.0, 3.0, 4.0]) == [1.0, 2.0, 3.0, 4.0]
    assert unit.problem.steps < 1100
    assert all(map(math.isfinite, unit.save()[0]))
    unit.p[:] = [float(Kind.FORCED), 4.0, 0.5]
    unit.invalidate()
    x = unit.step(0.0, 2.0, [0.0, 0.0, 1.0, 0.0])
    assert x[0] == pytest.approx(math.sin(4.0), abs=1e-4)


@pytest.mark.parametrize(
    ("given_tolerance", "used"),
    [(1e-6, 1e-6), (1e-300, 1e-12), (1.0, 1e-2), (0.0, 1e-6), (-1.0, 1e-6), (math.nan, 1e-6), (math.inf, 1e-2)],
)
def test_tolerance_is_brought_into_range(library, given_tolerance, used):
    assert Unit(library, Solver.EXPLICIT, Kind.RESTING, tolerance=given_tolerance).save()[0][0] == used


def test_unknown_solvers_and_steps_are_the_defaults(library):
    for number in (0, len(Solver) + 1, -1):
        assert Unit(library, number, Kind.RESTING).save()[1][0] == Solver.EXPLICIT
    for step in (-1.0, math.nan, math.inf):
        assert Unit(library, Solver.RK4, Kind.RESTING, fixed_step=step).save()[0][1] == 0.0


@pytest.mark.parametrize("solver", [Solver.RK4, Solver.EULER])
@pytest.mark.parametrize(
    ("h", "fixed_step", "pieces"),
    [(1.0, 0.0, 1), (1.0, 0.1, 10), (0.3, 0.1, 3), (0.1 + 0.2, 0.1, 3), (0.31, 0.1, 4), (0.05, 0.1, 1), (1.0, 0.3, 4)],
)
def test_fixed_steps_divide_the_communication_step(library, solver, h, fixed_step, pieces):
    unit = Unit(library, solver, Kind.SINGULAR, a=1e9, fixed_step=fixed_step)
    assert unit.step(0.0, h, [0.0] * 4)[2] == pytest.approx(h, rel=1e-15)
    assert unit.problem.steps == pieces


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_late_starts_cost_no_accuracy(library, solver):
    """What does not depend on time moves at 1e9 s as at 0, in steps that time can hardly tell apart."""
    early, late = (CASES["pendulum"].unit(library, solver, tolerance=1e-9) for _ in range(2))
    x = early.march(0.0, 1e-6, 300, [2.0, 0.0, 0.0, 0.0])
    assert late.march(1e9, 1e-6, 300, [2.0, 0.0, 0.0, 0.0]) == x
