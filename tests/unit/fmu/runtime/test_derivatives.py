"""Directional derivatives against differences, adjoint derivatives against them, and what there is no derivative of."""

import ctypes as c
import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native.fmi import CS, DISCARD, ERROR, ME, OK, Unit

UNKNOWNS = ["der(x)", "der(v)", "tip", "loss", "load", "twice", "speedup", "omega", "x"]
TUNABLE = ["x", "v", "force", "mass", "stiffness"]
STARTS = [*TUNABLE, "damping", "wall"]


def initialized(library, kind, values):
    unit = Unit(library[0], library[1], kind).instantiate()
    assert unit.enter(start=values.get("time", 0.0)) == OK
    for name, value in values.items():
        if name != "time":
            assert unit.set(name, value) == OK
    return unit


point = st.fixed_dictionaries(
    {
        "time": st.floats(-2.0, 2.0),
        "x": st.floats(-2.0, 2.0),
        "v": st.floats(-2.0, 2.0),
        "force": st.floats(-2.0, 2.0),
        "mass": st.floats(0.5, 2.0),
        "stiffness": st.floats(0.5, 2.0),
        "damping": st.floats(0.0, 2.0),
    }
)


@settings(max_examples=25)
@given(values=point, kind=st.sampled_from([ME, CS]))
def test_in_initialization_mode_by_everything_that_can_be_set(library, values, kind):
    unit = initialized(library, kind, values)
    h = 1e-6
    for known in ["time", *STARTS[:-1]]:
        ends = []
        for side in (-h, h):
            moved = initialized(library, kind, {**values, known: values[known] + side})
            ends.append(np.array(moved.get(*UNKNOWNS)[1]))
            moved.free()
        status, found = unit.directional(UNKNOWNS, [known], [1.0])
        assert status == OK
        assert found == pytest.approx((ends[1] - ends[0]) / (2.0 * h), rel=1e-6, abs=1e-6)
    unit.free()


def matrix(unit, knowns):
    columns = [unit.directional(UNKNOWNS, [known], [1.0]) for known in knowns]
    assert all(status == OK for status, _ in columns)
    return np.array([column for _, column in columns]).T


@pytest.mark.parametrize("mode", ["event", "continuous", "step", "terminated"])
def test_linear_in_the_seed_and_transposed_by_the_adjoint(fresh, mode):
    unit = fresh(CS if mode == "step" else ME)
    assert unit.enter() == OK
    assert unit.set("x", 0.3, "v", -0.7, "force", 0.2) == OK
    assert unit.call("ExitInitializationMode") == OK
    if mode == "continuous":
        assert unit.call("EnterContinuousTimeMode") == OK
    if mode == "terminated":
        assert unit.call("Terminate") == OK
    knowns = ["time", *TUNABLE]
    jacobian = matrix(unit, knowns)
    seed = [0.5, -1.0, 2.0, 0.25, -3.0, 1.5]
    status, found = unit.directional(UNKNOWNS, knowns, seed)
    assert status == OK
    assert found == pytest.approx(jacobian @ seed, rel=1e-13, abs=1e-13)
    twice = unit.directional(UNKNOWNS, [*knowns, "x"], [*seed, 1.0])[1]
    assert twice == pytest.approx(jacobian @ seed + jacobian[:, 1], rel=1e-13, abs=1e-13)
    if unit.fmi == 3:
        bar = [1.0, -2.0, 0.5, 3.0, -0.25, 0.75, 1.25, -1.5, 2.0]
        status, found = unit.directional(UNKNOWNS, knowns, bar, adjoint=True)
        assert status == OK
        assert found == pytest.approx(bar @ jacobian, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("adjoint", [False, True], ids=["directional", "adjoint"])
@pytest.mark.parametrize(
    ("unknown", "known", "reason"),
    [
        ("load", "damping", "fixed parameter"),
        ("load", "tip", "computed by the FMU"),
        ("load", "solver", "value reference 16"),
        ("load", "solver_step", "no quantity of the model"),
        ("load", 99, "value reference 99"),
        ("force", "x", "is not computed"),
        ("v", "x", "is not computed"),
        ("mass", "x", "is not computed"),
        ("time", "x", "is not computed"),
        (99, "x", "value reference 99"),
    ],
)
def test_what_there_is_no_derivative_of_or_by(fresh, kind, unknown, known, reason, adjoint):
    if adjoint and fresh.fmi == 2:
        return
    unit = fresh(kind).start()
    assert unit.directional([unknown], [known], [1.0], adjoint=adjoint)[0] == ERROR
    assert reason in unit.log[-1].text


@pytest.mark.parametrize("seed", [math.nan, math.inf])
def test_seeds_must_be_numbers(fresh, kind, seed):
    unit = fresh(kind).start()
    assert unit.directional(["load"], ["x"], [seed])[0] == ERROR
    assert "seed number 1" in unit.log[-1].text


def test_nothing_asked_is_all_right(fresh, kind):
    unit = fresh(kind).start()
    n = c.c_size_t(0)
    if unit.fmi == 2:
        assert unit.call("GetDirectionalDerivative", None, n, None, n, None, None) == OK
        return
    for name in ("GetDirectionalDerivative", "GetAdjointDerivative"):
        assert unit.call(name, None, n, None, n, None, n, None, n) == OK


def test_sizes_must_agree(fresh, kind):
    if fresh.fmi == 2:
        return
    for seeds, results in itertools.product((0, 1, 2), repeat=2):
        unit = fresh(kind).start()
        from native.fmi import doubles, references

        pair = (references(["load"]), c.c_size_t(1), references(["x"]), c.c_size_t(1))
        room = (doubles([1.0] * 2), c.c_size_t(seeds), doubles([0.0] * 2), c.c_size_t(results))
        assert (unit.call("GetDirectionalDerivative", *pair, *room) == OK) == (seeds == results == 1)


@pytest.mark.parametrize("adjoint", [False, True], ids=["directional", "adjoint"])
def test_derivatives_that_are_no_numbers_are_not_handed_out(fresh, kind, adjoint):
    """tip = x² + t: 2 x times the seed is too large for a double. None of the call's derivatives is given then."""
    if adjoint and fresh.fmi == 2:
        return
    unit = fresh(kind)
    assert unit.enter() == OK
    assert unit.set("x", 3.0) == OK
    unknowns, knowns, seeds = (["tip"], ["v", "x"], [1e308]) if adjoint else (["twice", "tip"], ["x"], [1e308])
    status, found = unit.directional(unknowns, knowns, seeds, adjoint=adjoint)
    assert status == (ERROR if unit.fmi == 2 and kind == CS else DISCARD)
    assert np.isnan(found).all()
    assert f"of or by {'x' if adjoint else 'tip'} is infinity" in unit.log[-1].text


def test_no_derivative_where_the_solve_fails(fresh, kind):
    unit = fresh(kind)
    assert unit.enter() == OK
    assert unit.set("x", 20.0) == OK
    status, _ = unit.directional(["load"], ["x"], [1.0])
    assert status == (ERROR if unit.fmi == 2 and kind == CS else 2)
    assert "the wall is singular" in unit.log[-1].text
