"""Where closed latches hold one motion twice, each bears its part in whatever FMU its row is written in."""

import numpy as np
import pytest

from mb2fmu.validation.modes.coupled_holding_forces import solve_coupled_holding_forces
from mb2fmu.validation.modes.latch_closing_impulses import solve_latch_closing_impulses


@pytest.mark.parametrize("size", [2.0, 1e-3, 1e6])
def test_two_latches_bear_half_each_whatever_the_unit_of_a_row(size):
    row = np.array([[1.0], [size]])  # x and a multiple of x, of a mass of 1 kg
    W, pull = row @ row.T, row[:, 0] * 9.81
    np.testing.assert_allclose(
        solve_coupled_holding_forces(W, pull, np.zeros(0)) * row[:, 0], [4.905, 4.905], rtol=1e-9
    )
    np.testing.assert_allclose(solve_latch_closing_impulses(W, -pull) * row[:, 0], [4.905, 4.905], rtol=1e-9)


def test_a_row_that_moves_nothing_bears_nothing():
    W = np.diag([2.0, 0.0, 2.0])
    W[0, 2] = W[2, 0] = 2.0
    np.testing.assert_allclose(
        solve_latch_closing_impulses(W, np.array([-1.0, 0.0, -1.0])), [0.25, 0.0, 0.25], rtol=1e-9
    )
