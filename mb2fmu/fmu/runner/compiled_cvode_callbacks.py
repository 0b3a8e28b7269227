"""``CompiledCvodeCallbacks``: functions in C through which CVODE asks a Model Exchange FMU.

Python's own take most of the time of a run: CVODE begins anew at each event, with many short steps.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from fmpy.sundials.libraries import sundials_cvode
from fmpy.sundials.nvector_serial import N_VectorContent_Serial


class _FmuFunctionsStruct(ctypes.Structure):
    """As ``struct fmu_functions`` of ``cvode_callbacks.c``."""

    _fields_ = [
        ("instance", ctypes.c_void_p),
        *((name, ctypes.c_void_p) for name in ("set_time", "set_states", "get_derivatives", "get_indicators")),
        *((name, ctypes.c_size_t) for name in ("states", "indicators", "numbers_offset")),
    ]


_DERIVATIVE_FUNCTIONS = {2: "fmi2GetDerivatives", 3: "fmi3GetContinuousStateDerivatives"}


@cache
def _load_library(file: str) -> ctypes.CDLL:
    """Load the library once a process."""
    return ctypes.CDLL(file)


class CompiledCvodeCallbacks:
    """The functions of one instance.

    Args:
        library: The compiled library's file.
        fmu: fmpy's instance for Model Exchange.
        request: What the driver knows of the FMU.
    """

    def __init__(self, library: str, fmu: Any, request: dict[str, Any]) -> None:
        version = request["version"]
        names = ("SetTime", "SetContinuousStates", "GetEventIndicators")
        set_time, set_states, get_indicators = (_address(getattr(fmu.dll, f"fmi{version}{name}")) for name in names)
        self._functions = _FmuFunctionsStruct(
            instance=fmu.component, set_time=set_time, set_states=set_states, get_indicators=get_indicators,
            get_derivatives=_address(getattr(fmu.dll, _DERIVATIVE_FUNCTIONS[version])),
            states=request["states"], indicators=request["indicators"],
            numbers_offset=N_VectorContent_Serial._type_.data.offset,
        )  # fmt: skip
        loaded = _load_library(library)
        self.addresses = {"f": _address(loaded.cvode_derivatives), "g": _address(loaded.cvode_indicators)}
        """Of the functions, by the names of fmpy's own."""

    def attach(self, solver_memory: Any) -> None:
        """Let CVODE pass the FMU's functions to these; they live as long as this object."""
        set_user_data = sundials_cvode.CVodeSetUserData
        set_user_data.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        set_user_data(solver_memory, ctypes.addressof(self._functions))


def _address(function: Any) -> int:
    """Return the address of a function in C."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
