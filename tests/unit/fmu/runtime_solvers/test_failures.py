"""Steps that cannot be made: refused with a reason and numbers, everything as before; a smaller step may follow."""

import ctypes
import math
import re

import pytest
from native_models.zoo import ADAPTIVE, Kind, Library, Outcome, Solver, Unit, built, reals

START = [0.25, 0.0, 1.0, 0.5]


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize(
    ("kind", "outcomes", "words"),
    [
        (Kind.UNDEFINED, {Outcome.NOT_FINITE}, "'?u1'? or its derivative is not finite"),
        (Kind.SINGULAR, {Outcome.SINGULAR}, "the mass matrix is singular"),
    ],
)
def test_undefined_from_some_time_on(library, solver, kind, outcomes, words):
    """The failed step changes nothing: going on with smaller ones gives the bits of an FMU that never failed."""
    tried, untried = (Unit(library, solver, kind, a=0.5, fixed_step=0.01) for _ in range(2))
    x = tried.step(0.0, 0.25, START)
    error = tried.refused(0.25, 0.5, x)
    assert error.outcome in outcomes
    assert re.search(words, str(error))
    assert "step from 0.25 s by 0.5 s" in str(error)
    assert float(re.search(r": at ([\d.]+) s", str(error)).group(1)) == pytest.approx(0.5, abs=0.011)
    assert untried.step(0.0, 0.25, START) == x
    assert tried.step(0.25, 0.125, x) == untried.step(0.25, 0.125, x)
    assert tried.lasting() == untried.lasting()


@pytest.mark.parametrize("solver", Solver)
def test_undefined_from_the_start(library, solver):
    for kind, outcome in ((Kind.UNDEFINED, Outcome.NOT_FINITE), (Kind.SINGULAR, Outcome.SINGULAR)):
        unit = Unit(library, solver, kind, a=-1.0)
        assert unit.refused(0.0, 0.1, START).outcome == outcome
        assert unit.problem.failed == (1 if outcome == Outcome.SINGULAR else 0)


@pytest.mark.parametrize("solver", ADAPTIVE)
def test_a_pole_is_not_passed(library, solver):
    """u' = u^2 from 1 has its pole at 1 s."""
    unit = Unit(library, solver, Kind.EXPLODING, tolerance=1e-6)
    x = unit.step(0.0, 0.5, START)
    assert x[2] == pytest.approx(2.0, rel=1e-4)
    error = unit.refused(0.5, 1.0, x)
    assert error.outcome in {Outcome.TOO_SMALL, Outcome.NOT_FINITE}
    assert "u1" in str(error)
    assert unit.step(0.5, 0.25, x)[2] == pytest.approx(4.0, rel=1e-4)


@pytest.mark.parametrize("solver", ADAPTIVE)
@pytest.mark.parametrize("speed", [1e20, 1e100, 1e150, 1e153, 1e155, 1e300])
def test_poles_close_by_are_found_quickly(library, solver, speed):
    """Also where x' is so large that no step size seems small enough, or infinite."""
    unit = Unit(library, solver, Kind.EXPLODING)
    error = unit.refused(0.0, 1.0, [0.0, 0.0, speed, 0.0])
    assert error.outcome in {Outcome.TOO_SMALL, Outcome.NOT_FINITE}
    assert unit.problem.calls < 1000


@pytest.mark.parametrize("solver", [Solver.RK4, Solver.EULER])
def test_overflow(library, solver):
    unit = Unit(library, solver, Kind.EXPLODING, fixed_step=0.1)
    error = unit.refused(0.0, 50.0, START)
    assert error.outcome == Outcome.NOT_FINITE
    assert "u1" in str(error)


def test_steps_below_the_resolution_of_time_are_not_tried(library):
    """Nothing can be met at 1e12 s whose time scale is a nanosecond."""
    unit = Unit(library, Solver.EXPLICIT, Kind.OSCILLATOR, a=1e9, b=1.0, tolerance=1e-9)
    error = unit.refused(1e12, 1.0, START)
    assert error.outcome == Outcome.TOO_SMALL
    assert re.search(r"at 1000000000000 s the internal step has shrunk to \S+ s and the error of [qu]1", str(error))


def test_jacobian_that_is_no_number(library):
    error = Unit(library, Solver.IMPLICIT, Kind.BAD_JACOBIAN).refused(0.0, 1.0, START)
    assert error.outcome == Outcome.NOT_FINITE
    assert Unit(library, Solver.EXPLICIT, Kind.BAD_JACOBIAN).step(0.0, 1.0, START)[2] == pytest.approx(2.0, rel=1e-14)


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("h", [0.0, -0.1, math.nan, math.inf, -math.inf])
def test_no_step(library, solver, h):
    error = Unit(library, solver, Kind.PENDULUM).refused(1.0, h, START)
    assert error.outcome == Outcome.TOO_SMALL
    assert "not a step" in str(error)


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("t", [math.nan, math.inf, -math.inf])
def test_no_time(library, solver, t):
    assert Unit(library, solver, Kind.PENDULUM).refused(t, 0.1, START).outcome == Outcome.TOO_SMALL


@pytest.mark.parametrize("solver", Solver)
@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize(("index", "name"), list(enumerate(["q1", "q2", "u1", "u2"])))
def test_no_state(library, solver, bad, index, name):
    x = list(START)
    x[index] = bad
    error = Unit(library, solver, Kind.PENDULUM).refused(0.0, 0.1, x)
    assert error.outcome == Outcome.NOT_FINITE
    assert name in str(error)


@pytest.mark.parametrize("solver", Solver)
def test_inputs_that_are_no_numbers(library, solver):
    for r0, r1 in ((math.nan, None), (math.inf, None), (1.0, math.nan)):
        error = Unit(library, solver, Kind.STIFF_DRIVEN, a=3.0, r0=r0, r1=r1).refused(0.0, 0.1, START)
        assert error.outcome == Outcome.NOT_FINITE


@pytest.mark.parametrize(("solver", "fixed_step"), [(Solver.EXPLICIT, 0.0), (Solver.RK4, 1e-4), (Solver.EULER, 1e-4)])
def test_too_many_internal_steps(impatient_library, solver, fixed_step):
    """The explicit method on a stiff model says so instead of working for hours."""
    unit = Unit(impatient_library, solver, Kind.PROTHERO, a=1e5, fixed_step=fixed_step)
    error = unit.refused(0.0, 1.0, START)
    assert error.outcome == Outcome.TOO_MANY
    assert "more than 1000 internal steps" in str(error)
    unit.step(0.0, 1e-4, START)


def test_too_many_are_foreseen(impatient_library):
    """Tens of times the limit: given up long before it. Few times: worked at, for a motion may calm down."""
    hopeless = Unit(impatient_library, Solver.EXPLICIT, Kind.PROTHERO, a=1e6)
    assert "would take more than 1000 internal steps" in str(hopeless.refused(0.0, 1.0, START))
    assert hopeless.problem.calls < 7 * 100
    long = Unit(impatient_library, Solver.EXPLICIT, Kind.PROTHERO, a=4e3)
    assert ": more than 1000 internal steps" in str(long.refused(0.0, 1.0, START))
    assert long.problem.calls > 6 * 1000
    Unit(impatient_library, Solver.IMPLICIT, Kind.PROTHERO, a=1e6).step(0.0, 1.0, START)


def test_far_too_many_are_foreseen_in_a_moment(library):
    """A thousand times the limit of ten million, as before a singular position: given up after thousands."""
    hopeless = Unit(library, Solver.EXPLICIT, Kind.PROTHERO, a=1e11)
    assert "would take more than 10000000 internal steps" in str(hopeless.refused(0.0, 1.0, START))
    assert hopeless.problem.calls < 7 * 10_000


@pytest.mark.parametrize("size", [1, 2, 20, 60])
def test_messages_fit_into_what_they_are_given(library, size):
    unit = Unit(library, Solver.EXPLICIT, Kind.UNDEFINED, a=-1.0)
    whole = str(unit.refused(0.0, 0.1, START))
    unit.message = ctypes.create_string_buffer(b"\xff" * 80, 80)
    assert unit.raw_step(0.0, 0.1, reals(START), size) == Outcome.NOT_FINITE
    assert unit.message.raw[:size] == whole.encode()[: size - 1] + b"\0"
    assert set(unit.message.raw[size:]) == {0xFF}


def test_messages_have_decimal_points_in_every_locale(tmp_path):
    """The library's printing is replaced by one that writes 0,5 and, as some locales do, two bytes for the comma."""
    for separator in (",", "\\331\\253"):
        library = Library(built("zig", tmp_path, f'-DZOO_SEPARATOR="{separator}"'))
        error = Unit(library, Solver.RK4, Kind.UNDEFINED, a=0.5, fixed_step=0.125).refused(0.0625, 1.5, START)
        assert "step from 0.0625 s by 1.5 s: at 0.5" in str(error)
