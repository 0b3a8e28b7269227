"""CVODE solves many equations without matrices, and stiff ones with them from where it has come to."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from fmpy.sundials.libraries import sundials_cvode

from mb2fmu.fmu.runner.cvode_iterations import FIXED_POINT_STEPS, LARGE_STATE_COUNT
from mb2fmu.fmu.runner.fmpy_instances import _ConstantInputs, _FailureAwareCvodeSolver


class Relaxation:
    """x' = -rate (x - cos t) for all states, from 1: cos t after a while."""

    def __init__(self, rate: float, states: int) -> None:
        self.rate, self.n = rate, states
        self.x, self.time, self.evaluations = np.ones(states), 0.0, 0
        self.solver = _FailureAwareCvodeSolver(
            nx=states, nz=0, get_x=self.get_x, set_x=self.set_x, get_dx=self.get_dx, get_z=lambda *_: None,
            get_nominals=lambda values, n: np.ctypeslib.as_array(values, (n,)).fill(1.0), set_time=self.set_time,
            input=_ConstantInputs(), startTime=0.0, relativeTolerance=1e-8, maxNumSteps=1_000_000,
        )  # fmt: skip

    def get_x(self, values: Any, n: int) -> None:
        np.ctypeslib.as_array(values, (n,))[:] = self.x

    def set_x(self, values: Any, n: int) -> None:
        self.x = np.ctypeslib.as_array(values, (n,)).copy()

    def get_dx(self, values: Any, n: int) -> None:
        self.evaluations += 1
        np.ctypeslib.as_array(values, (n,))[:] = -self.rate * (self.x - np.cos(self.time))

    def set_time(self, time: float) -> None:
        self.time = time

    def value(self, t: float) -> float:
        """Solution of one state."""
        a = self.rate**2 / (1 + self.rate**2)
        return float(a * (np.cos(t) + np.sin(t) / self.rate) + (1 - a) * np.exp(-self.rate * t))


def factorizations(solver: _FailureAwareCvodeSolver) -> int:
    number = ctypes.c_long()
    ask = sundials_cvode.CVodeGetNumLinSolvSetups
    ask.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    ask(solver.cvode_mem, ctypes.byref(number))
    return number.value


@pytest.mark.parametrize("rate", [2.0, 1e5])
def test_many_states_need_matrices_only_where_they_are_stiff(rate: float) -> None:
    many, few = Relaxation(rate, LARGE_STATE_COUNT), Relaxation(rate, 3)
    for begin, end in [(0.0, 0.4), (0.4, 1.0)]:
        many.solver.step(begin, end)
        few.solver.step(begin, end)
        assert many.x == pytest.approx(many.value(end), rel=1e-6)
        assert few.x == pytest.approx(few.value(end), rel=1e-6)
    assert factorizations(few.solver) > 0
    is_stiff = rate > 100
    assert (factorizations(many.solver) > 0) == is_stiff
    assert many.evaluations < (3 * FIXED_POINT_STEPS + 200 * LARGE_STATE_COUNT if is_stiff else FIXED_POINT_STEPS)
