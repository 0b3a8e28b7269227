"""CVODE learns where an FMU gives no derivatives: a shorter step after Discard, the end after Error."""

from __future__ import annotations

import ctypes
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from fmpy.fmi1 import FMICallException

from mb2fmu.fmu.runner.compiled_cvode_callbacks import CompiledCvodeCallbacks
from mb2fmu.fmu.runner.fmpy_instances import _ConstantInputs, _FailureAwareCvodeSolver
from mb2fmu.validation.runs.fmu_process_start import compile_cvode_callbacks

POINTER = ctypes.POINTER(ctypes.c_double)
VECTOR_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, POINTER, ctypes.c_size_t)
TIME_CALL = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_double)


class Decay:
    """x' = -x, which gives no derivative the first few times that it is asked after t = 0.5 s; an event at x = 0.4."""

    component = 1

    def __init__(self, status: int = 2, times: float = 0) -> None:
        self.status, self.left = status, times
        self.time, self.x = 0.0, 1.0
        status_of = {
            "SetTime": TIME_CALL(lambda _, time: self.set_time(time)),
            "SetContinuousStates": VECTOR_CALL(lambda _, x, n: self.set_x(x, n)),
            "GetDerivatives": VECTOR_CALL(lambda _, dx, n: self.find_derivatives(dx, n)),
            "GetContinuousStateDerivatives": VECTOR_CALL(lambda _, dx, n: self.find_derivatives(dx, n)),
            "GetEventIndicators": VECTOR_CALL(lambda _, z, n: self.get_z(z, n)),
        }
        self.dll = SimpleNamespace(**{f"fmi{v}{name}": call for name, call in status_of.items() for v in (2, 3)})

    def get_x(self, x: ctypes.Array, _n: int) -> None:
        x[0] = self.x

    def set_x(self, x: ctypes.Array, _n: int) -> int:
        self.x = x[0]
        return 0

    def find_derivatives(self, dx: ctypes.Array, _n: int) -> int:
        """Return FMI's status, as an FMU does."""
        if self.time > 0.5 and self.left > 0:
            self.left -= 1
            return self.status
        dx[0] = -self.x
        return 0

    def get_dx(self, dx: ctypes.Array, n: int) -> None:
        status = self.find_derivatives(dx, n)
        if status:
            raise FMICallException(function="fmi3GetContinuousStateDerivatives", status=status)

    def get_z(self, z: ctypes.Array, _n: int) -> int:
        z[0] = self.x - 0.4
        return 0

    def set_time(self, time: float) -> int:
        self.time = time
        return 0

    def stepper(self, library: str | None = None, version: int = 2) -> _FailureAwareCvodeSolver:
        nominals = lambda values, _n: values.__setitem__(0, 1.0)  # noqa: E731
        request = {"version": version, "states": 1, "indicators": 1}
        return _FailureAwareCvodeSolver(
            compiled=CompiledCvodeCallbacks(library, self, request) if library else None,
            nx=1, nz=1, get_x=self.get_x, set_x=self.set_x, get_dx=self.get_dx, get_z=self.get_z,
            get_nominals=nominals, set_time=self.set_time, input=_ConstantInputs(), startTime=0.0,
            relativeTolerance=1e-9,
            maxNumSteps=10_000,
        )  # fmt: skip


@pytest.fixture(scope="module", params=["Python", "C"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str | None:
    """The compiled callbacks' file; None: those in Python."""
    return compile_cvode_callbacks(tmp_path_factory.mktemp("callbacks")) if request.param == "C" else None


def test_after_discard_a_shorter_step_is_tried(library: str | None) -> None:
    decay = Decay(2, 3)
    decay.stepper(library).step(0.0, 0.8)
    assert decay.left == 0
    assert decay.x == pytest.approx(np.exp(-0.8), rel=1e-6)


@pytest.mark.parametrize(("status", "times"), [(2, np.inf), (3, 1), (4, 1)])
def test_after_error_and_without_end_the_run_fails(library: str | None, status: int, times: float) -> None:
    with pytest.raises(RuntimeError, match="CVode error"):
        Decay(status, times).stepper(library).step(0.0, 0.8)


@pytest.mark.parametrize("version", [2, 3])
def test_an_event_is_found_where_python_finds_it(tmp_path: Path, version: int) -> None:
    in_python, in_c = Decay(), Decay()
    expected = in_python.stepper().step(0.0, 2.0)
    found = in_c.stepper(compile_cvode_callbacks(tmp_path), version).step(0.0, 2.0)
    assert (expected[0], expected[2]) == (found[0], found[2])
    assert in_c.x == in_python.x == pytest.approx(0.4)
