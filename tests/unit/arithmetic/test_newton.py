"""Newton's method stays on the branch of its guess, and says so where only another one has a solution."""

import math

import numpy as np
import pytest

from mb2fmu.arithmetic.python_newton import NoSolutionError, OtherBranchError, newton


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
