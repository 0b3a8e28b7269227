"""``FmuBatchIntegrator``: many instances one after the other by their native FMU's Co-Simulation, in a C loop."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ToolError
from mb2fmu.fmu.toolchain.batch_run_arguments_and_result import (
    BatchRunArguments,
    BatchRunResult,
    BatchRunStruct,
    BatchRunTimeGrid,
)

Floats = npt.NDArray[np.float64]

_FMI_FUNCTIONS = (
    *("fmi2Reset", "fmi2SetupExperiment", "fmi2EnterInitializationMode", "fmi2ExitInitializationMode"),
    *("fmi2SetReal", "fmi2GetReal", "fmi2DoStep"),
)
_CO_SIMULATION = 1  # of fmi2Type
_REFERENCE_LISTS = ("states", "parameters", "inputs", "outputs", "selected")

_LOGGER_TYPE = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p
)  # messages of our FMUs are complete: nothing follows them
_ALLOCATE_TYPE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
_FREE_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Fmi2CallbackFunctions(ctypes.Structure):
    """``fmi2CallbackFunctions``; mb2fmu's FMUs allocate their own memory."""

    _fields_ = (
        *(("logger", _LOGGER_TYPE), ("allocate", _ALLOCATE_TYPE), ("free", _FREE_TYPE)),
        *(("finished", ctypes.c_void_p), ("environment", ctypes.c_void_p)),
    )


class _BatchFmuStruct(ctypes.Structure):
    """``mb2fmu_run_unit`` of ``batch_unit.c``."""

    _fields_ = (
        *((name, ctypes.c_void_p) for name in ("component", *_FMI_FUNCTIONS, *_REFERENCE_LISTS)),
        *((f"n_{name}", ctypes.c_long) for name in _REFERENCE_LISTS[:-1]),
        ("instance", ctypes.c_long),
    )


@dataclass(frozen=True, slots=True)
class FmuValueReferences:
    """The FMU's names of its variables.

    Attributes:
        token: With braces.
        states: Value references, in the order of x.
        parameters: Likewise of p.
        inputs: Likewise of r.
        outputs: Likewise of y.
    """

    token: str
    states: tuple[int, ...]
    parameters: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


class FmuBatchIntegrator:
    """Integrates instances by their FMU, with its bits, also through events; releases Python's lock.

    Args:
        fmu: The FMU's library, of FMI 2.
        loop: ``mb2fmu_unit_runs``, compiled.
        places: What its variables are called.

    Raises:
        ToolError: If the FMU makes no instance.
    """

    def __init__(self, fmu: ctypes.CDLL, loop: ctypes.CDLL, places: FmuValueReferences) -> None:
        self._fmu, self._places = fmu, places
        self._run = loop.mb2fmu_unit_runs
        self._run.restype = None
        self._run.argtypes = [
            ctypes.POINTER(_BatchFmuStruct),
            ctypes.POINTER(BatchRunStruct),
            ctypes.c_long,
            ctypes.c_long,
        ]
        self._messages: dict[int, str] = {}
        self._record = _BatchFmuStruct(
            **{name: ctypes.cast(getattr(fmu, name), ctypes.c_void_p).value for name in _FMI_FUNCTIONS}
        )
        self._lists = {name: np.array(getattr(places, name), dtype=np.uint32) for name in _REFERENCE_LISTS[:-1]}
        for name, references in self._lists.items():
            setattr(self._record, name, references.ctypes.data)
            setattr(self._record, f"n_{name}", len(references))
        self._callbacks = _Fmi2CallbackFunctions(_LOGGER_TYPE(self._hear), _ALLOCATE_TYPE(), _FREE_TYPE(), None, None)
        fmu.fmi2Instantiate.restype = ctypes.c_void_p
        self._record.component = fmu.fmi2Instantiate(
            b"instance", _CO_SIMULATION, places.token.encode(), None, ctypes.byref(self._callbacks), 0, 1
        )
        if not self._record.component:
            raise ToolError(f"the FMU makes no instance: {self._messages.get(0, 'it does not say why')}")

    def __del__(self) -> None:
        """Free the instance."""
        if self._record.component:
            self._fmu.fmi2FreeInstance(ctypes.c_void_p(self._record.component))

    def __call__(
        self, x0: Floats, p: Floats, time_grid: BatchRunTimeGrid, *, states: bool = False, outputs: Sequence[int] = ()
    ) -> BatchRunResult:
        """Move instances to their last communication points; arguments as of ``CompiledIntegrator``."""
        places = self._places
        widths = (len(places.states), len(places.inputs), len(places.parameters))
        arguments = BatchRunArguments(x0, p, time_grid, widths, len(places.outputs), states=states, outputs=outputs)
        selected = np.array([places.outputs[place] for place in outputs], dtype=np.uint32)
        self._record.selected = selected.ctypes.data
        self._messages.clear()
        self._run(ctypes.byref(self._record), ctypes.byref(arguments.record), 0, len(x0))
        return arguments.read_batch_result(self._messages)

    def _hear(self, _environment: object, _name: bytes, status: int, _category: bytes, message: bytes) -> None:
        """Keep an instance's last message, unless it only warns."""
        if status > 1:
            text = message.decode(errors="replace").replace("##", "#").replace("%%", "%")
            self._messages[int(self._record.instance)] = text


def find_value_references(
    token: str, references: Mapping[str, int], names: Mapping[str, Sequence[str]]
) -> FmuValueReferences:
    """Return value references by the names of variables.

    Args:
        token: Of the FMU, without braces.
        references: FMU name → value reference.
        names: ``states``, ``parameters``, ``inputs`` and ``outputs`` → FMU names in order.
    """
    found = {each: tuple(references[name] for name in names[each]) for each in _REFERENCE_LISTS[:-1]}
    return FmuValueReferences(f"{{{token}}}", **found)
