"""CVODE learns where an FMU gives no derivatives: a shorter step after Discard, the end after Error."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from fmpy.fmi1 import FMICallException

from mb2fmu.fmu.runner.fmpy_instances import _ConstantInputs, _CvodeWithFailures


class Decay:
    """x' = -x, which gives no derivative the first few times that it is asked after t = 0.5 s."""

    def __init__(self, status: int, times: float) -> None:
        self.status, self.left = status, times
        self.time, self.x = 0.0, 1.0

    def get_x(self, x: ctypes.Array, _n: int) -> None:
        x[0] = self.x

    def set_x(self, x: ctypes.Array, _n: int) -> None:
        self.x = x[0]

    def get_dx(self, dx: ctypes.Array, _n: int) -> None:
        if self.time > 0.5 and self.left > 0:
            self.left -= 1
            raise FMICallException(function="fmi3GetContinuousStateDerivatives", status=self.status)
        dx[0] = -self.x

    def set_time(self, time: float) -> None:
        self.time = time

    def stepper(self) -> _CvodeWithFailures:
        nominals = lambda values, _n: values.__setitem__(0, 1.0)  # noqa: E731
        return _CvodeWithFailures(
            nx=1, nz=0, get_x=self.get_x, set_x=self.set_x, get_dx=self.get_dx, get_z=lambda *_: None,
            get_nominals=nominals, set_time=self.set_time, input=_ConstantInputs(), startTime=0.0,
            relativeTolerance=1e-9,
            maxNumSteps=10_000,
        )  # fmt: skip


def test_after_discard_a_shorter_step_is_tried() -> None:
    decay = Decay(2, 3)
    decay.stepper().step(0.0, 1.0)
    assert decay.left == 0
    assert decay.x == pytest.approx(np.exp(-1.0), rel=1e-6)


@pytest.mark.parametrize(("status", "times"), [(2, np.inf), (3, 1), (4, 1)])
def test_after_error_and_without_end_the_run_fails(status: int, times: float) -> None:
    with pytest.raises(RuntimeError, match="CVode error"):
        Decay(status, times).stepper().step(0.0, 1.0)
