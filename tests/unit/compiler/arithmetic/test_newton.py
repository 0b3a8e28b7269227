"""Newton's method stays on the branch of its guess, and says so where only another one has a solution."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from representatives import examples

from mb2fmu.compiler.arithmetic.python_newton import NoSolutionError, OtherBranchError, newton


def solve(function, slope, guess):
    return newton(1, "y: of a test", lambda y, _: (function(y[0]), -function(y[0]) / slope(y[0])), (), [guess])[0]


@pytest.mark.parametrize("guess", np.linspace(-1.5, 1.5, 7))
def test_the_nearest_zero_on_the_same_side_of_all_singular_positions_is_found(guess):
    """The steps of sin(y) = 0.3 from near ±π/2, where its slope vanishes, lead far away."""
    assert solve(lambda y: math.sin(y) - 0.3, math.cos, guess) == pytest.approx(math.asin(0.3), abs=1e-12)


def test_a_zero_beyond_a_singular_position_is_another_branch():
    """y³ − 3 y + 3 is positive between its extremes at ±1, and left of them it has a zero."""
    with pytest.raises(OtherBranchError, match="found for y on another branch of the assembly only: of a test"):
        solve(lambda y: y**3 - 3 * y + 3, lambda y: 3 * y**2 - 3, -0.5)
    with pytest.raises(NoSolutionError, match="no solution is found for y: of a test: 1 is left over"):
        solve(lambda y: y**2 + 1, lambda y: 2 * y, 0.4)


def loop(y, lengths_and_crank):
    """Closing error of a four-bar linkage and Newton's steps; y: angles of coupler and rocker from the link before."""
    crank, la, lb, lc, ln = lengths_and_crank
    b, c = crank + y[0], crank + y[0] + y[1]
    open_x = la * math.cos(crank) + lb * math.cos(b) + lc * math.cos(c) - ln
    open_y = la * math.sin(crank) + lb * math.sin(b) + lc * math.sin(c)
    slopes = np.array([
        [-lb * math.sin(b) - lc * math.sin(c), -lc * math.sin(c)],
        [lb * math.cos(b) + lc * math.cos(c), lc * math.cos(c)],
    ])  # fmt: skip
    return open_x, open_y, *np.linalg.solve(slopes, [-open_x, -open_y])


CRANK = (0.17453292519943295, 0.8, 2.0, 1.0, 2.0)
FAR = [
    (-0.93, 1.0, 2.204, 1.27, 2.282),
    (-0.301, 0.765, 1.963, 1.157, 1.529),
    (-0.529, 0.711, 2.305, 0.708, 2.343),
    (-1.209, 0.776, 1.865, 1.032, 2.467),
]


@given(st.floats(-1.5, 1.5), st.lists(st.floats(0.65, 1.35), min_size=4, max_size=4))
@examples(15)
def test_a_far_start_of_a_loop_keeps_its_assembly(moved, factors):
    """The determinant of the loop's equations is lb lc sin(y₂): its sign tells the two assemblies apart."""
    keeps_its_assembly((CRANK[0] + moved, *(a * b for a, b in zip(CRANK[1:], factors, strict=True))))


@pytest.mark.parametrize("far", FAR)
def test_smooth_steps_across_a_singular_position_are_seen(far):
    """Steps here do not bend where the determinant vanishes: only its sign shows that they crossed."""
    keeps_its_assembly(far)


def keeps_its_assembly(far):
    start = newton(2, "loop", loop, CRANK, (0.3, -2.4))
    try:
        found = newton(2, "loop", loop, far, start)
    except NoSolutionError:
        return
    assert math.sin(found[1]) * math.sin(start[1]) > 0
