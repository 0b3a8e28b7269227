"""Time: neither drifts nor stalls."""

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native_models.zoo import Kind, Solver, Unit
from representatives import by_night


@pytest.mark.parametrize("start", [0.0, 1.0, -17.3, 1e6])
def test_ten_million_steps(library, start):
    """The exact sum, rounded once."""
    time, _, steps = library.clock(start, 0.1, 10_000_000)
    assert time == float(Fraction(start) + 10_000_000 * Fraction(0.1))
    assert steps == 10_000_000


def test_steps_that_time_cannot_show_are_not_lost(library):
    assert library.clock(1e9, 1e-8, 10_000_000)[0] == pytest.approx(1e9 + 0.1, abs=2e-7)
    assert library.clock(1e9, 1e-8, 1)[:2] == (1e9, 1e-8)


@settings(max_examples=50, deadline=None)
@given(start=st.floats(-1e6, 1e6), h=st.floats(1e-12, 1e3), n=st.integers(0, 3000))
def test_sums_are_exact_up_to_one_rounding(zig_library, start, h, n):
    time, rest, _ = zig_library.clock(start, h, n)
    exact = Fraction(start) + n * Fraction(h)
    size = abs(Fraction(start)) + n * Fraction(h)
    assert abs(Fraction(time) - exact) <= Fraction(math.ulp(time)) / 2 + size / 2**90
    assert abs(Fraction(time) + Fraction(rest) - exact) <= (n + 1) * size / 2**104


def test_hosts_that_add_up_are_believed(library):
    """A host's naive sum of ten million steps is 1.6e-4 s away and is accepted; a step beside is not."""
    naive = 0.0
    for _ in range(1_000_000):
        naive += 0.1
    assert naive != 100_000.0
    assert library.agrees(0.0, 0.1, 1_000_000, naive)
    assert library.agrees(0.0, 0.1, 1_000_000, 100_000.0)
    for wrong in (100_000.1, 99_999.9, 100_000.001, math.nan, math.inf):
        assert not library.agrees(0.0, 0.1, 1_000_000, wrong)


def test_stop_times_are_met_but_not_passed(library):
    for n in (9, 99_999):
        stop = (n + 1) * 0.1
        assert not library.passes(0.0, 0.1, n, stop)
        assert not library.passes(0.0, 0.1, n, stop + 1.0)
        assert library.passes(0.0, 0.1, n, stop - 0.001)
        assert library.passes(0.0, 0.1, n + 1, stop)


@pytest.mark.parametrize("count", [1_000_000, *by_night(10_000_000)])
def test_millions_of_communication_steps(zig_library, count):
    """u follows sin(t + 1), so what time the model was given shows in u; a late start gives the same."""
    whole = Unit(zig_library, Solver.EULER, Kind.PROTHERO, a=1.0)
    x = whole.march(0.0, 0.1, count, [0.0, 0.0, math.sin(1.0), 0.0])
    late = Unit(zig_library, Solver.EULER, Kind.PROTHERO, a=1.0)
    begin = count / 10 - 100.0
    y = late.march(begin, 0.1, 1_000, [0.0, 0.0, math.sin(begin + 1.0), 0.0])
    assert x[2] == pytest.approx(y[2], abs=1e-8)
    assert x[2] == pytest.approx(math.sin(count / 10 + 1.0), abs=0.1)
