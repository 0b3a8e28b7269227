"""A loaded library, with the types, structures and statuses of FMI 2 and 3 for ctypes."""

from __future__ import annotations

import ctypes as c
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mb2fmu.audit.behaviour.instance.grouped_variable_reads import GroupedReadPlan
from mb2fmu.audit.behaviour.process.trial_time_budget import TrialTimeBudget
from mb2fmu.audit.description.description_records import DescribedModel

OK, WARNING, DISCARD, ERROR, FATAL = range(5)
SUCCEEDED = frozenset({OK, WARNING})
"""Statuses of a call that did what was requested."""

STATUS_NAMES = ("OK", "Warning", "Discard", "Error", "Fatal", "Pending")


def format_fmi_status(status: int) -> str:
    """Return the name of a status; its number where the standards have none, since an FMU may answer anything."""
    return STATUS_NAMES[status] if 0 <= status < len(STATUS_NAMES) else str(status)


Value = float | int | bool | bytes | tuple[Any, ...]

LoggerCallback2 = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_int, c.c_char_p, c.c_char_p)
LoggerCallback3 = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p, c.c_char_p)
AllocateCallback = c.CFUNCTYPE(c.c_void_p, c.c_size_t, c.c_size_t)
FreeCallback = c.CFUNCTYPE(None, c.c_void_p)
IntermediateUpdateCallback = c.CFUNCTYPE(
    None, c.c_void_p, c.c_double, c.c_bool, c.c_bool, c.c_bool, c.c_bool, c.POINTER(c.c_bool), c.POINTER(c.c_double)
)
C_TYPES_FMI2: dict[str, tuple[str, Any]] = {
    "Real": ("Real", c.c_double),
    "Integer": ("Integer", c.c_int),
    "Enumeration": ("Integer", c.c_int),
    "Boolean": ("Boolean", c.c_int),
    "String": ("String", c.c_char_p),
}
C_TYPES_FMI3: dict[str, tuple[str, Any]] = {
    **{f"Int{bits}": (f"Int{bits}", getattr(c, f"c_int{bits}")) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": (f"UInt{bits}", getattr(c, f"c_uint{bits}")) for bits in (8, 16, 32, 64)},
    "Float32": ("Float32", c.c_float),
    "Float64": ("Float64", c.c_double),
    "Enumeration": ("Int64", c.c_int64),
    "Boolean": ("Boolean", c.c_bool),
    "String": ("String", c.c_char_p),
}


class RefusedCallError(Exception):
    """An ordinary call returned Discard, Error or Fatal."""

    def __init__(self, function: str, status: int, message: str, mode: str) -> None:
        self.function, self.status, self.message, self.mode = function, status, message, mode
        message_text = f': "{message}"' if message else ", without a message"
        status_text = format_fmi_status(status)
        super().__init__(f"{function} returns {status_text} in {mode}{message_text}")


class MeaninglessFmuValueError(RefusedCallError):
    """An ordinary call returned a meaningless value."""

    def __init__(self, text: str) -> None:
        super().__init__("", ERROR, "", "")
        self.args = (text,)


class Fmi2CallbackFunctions(c.Structure):
    """fmi2CallbackFunctions."""

    _fields_ = (
        ("logger", LoggerCallback2),
        ("allocate", AllocateCallback),
        ("free", FreeCallback),
        ("finished", c.c_void_p),
        ("environment", c.c_void_p),
    )


class Fmi2EventInfo(c.Structure):
    """fmi2EventInfo."""

    _fields_ = (
        ("needed", c.c_int),
        ("terminate", c.c_int),
        ("nominals", c.c_int),
        ("values", c.c_int),
        ("defined", c.c_int),
        ("next", c.c_double),
    )


@dataclass(frozen=True, slots=True)
class UpdateDiscreteStatesResult:
    """Result of updating the discrete states."""

    update_needed: bool
    terminate: bool
    nominals_changed: bool
    values_changed: bool
    next_time: float | None


@dataclass(frozen=True, slots=True)
class DoStepResult:
    """Result of a step; the last four fields only in FMI 3."""

    status: int
    event_needed: bool = False
    terminate: bool = False
    returned_early: bool = False
    last_successful_time: float = float("nan")


@dataclass
class FmuMemoryFunctions:
    """Memory functions of FMI 2, with a record of the blocks that an FMU has allocated."""

    allocation_count: int = 0
    live_blocks: set[int] = field(default_factory=set)
    invalid_free_count: int = 0

    def allocate(self, count: int, size: int) -> int | None:
        """Return zeroed memory (``allocateMemory``)."""
        address = _allocator_library().calloc(count, size)
        self.allocation_count += 1
        self.live_blocks.add(address or 0)
        return int(address) if address else None

    def free(self, address: int | None) -> None:
        """Free memory (``freeMemory``); count blocks that were never allocated."""
        if address is None:
            return
        if address not in self.live_blocks:
            self.invalid_free_count += 1
            return
        self.live_blocks.discard(address)
        _allocator_library().free(address)


def find_libc_function(name: str) -> Any:
    """Return a function of this system's C library; None if it has none of that name (Windows, musl, macOS)."""
    try:
        return getattr(_open_c_library(), name)
    except AttributeError:
        return None


def _open_c_library() -> c.CDLL:
    """Return this system's C library, without declarations."""
    return c.CDLL(None) if os.name == "posix" else c.CDLL("msvcrt")


@cache
def _allocator_library() -> c.CDLL:
    """Return the C library of this system, with its functions of memory declared."""
    library = _open_c_library()
    library.calloc.restype = c.c_void_p
    library.calloc.argtypes = (c.c_size_t, c.c_size_t)
    library.free.argtypes = (c.c_void_p,)
    return library


@dataclass
class LibraryInstantiationState:
    """State of this process that all users of a library share.

    Attributes:
        instances_made: Number of instances made so far.
        single_instance_only: True if the FMU can be instantiated only once per process, even after freeing.
    """

    instances_made: int = 0
    single_instance_only: bool = False


@dataclass(frozen=True)
class FmuLibrary:
    """A loaded binary with its description.

    Attributes:
        handle: Loaded.
        description: Of the FMU.
        resources: Path of the unpacked resources folder.
        traps: Floating-point exceptions that are unmasked while the FMU runs, as the C library numbers them.
        violations: Side effects of calls that break a rule, each once, in order → the rule.
        trial_budget: Checked and informed at every call.
        path: Of the binary.
        process_state: State shared by all users of the library in this process.
        stage_library: Compiled Runge-Kutta stages; None: calls are made one by one.
        read_plans: Identities of a description and of variables → the plan to read these.
    """

    handle: Any
    description: DescribedModel
    resources: str
    traps: int = 0
    violations: dict[str, str] = field(default_factory=dict, compare=False)
    trial_budget: TrialTimeBudget = field(default_factory=TrialTimeBudget, compare=False)
    path: Path = Path()
    process_state: LibraryInstantiationState = field(default_factory=LibraryInstantiationState, compare=False)
    stage_library: c.CDLL | None = None
    read_plans: dict[tuple[int, ...], GroupedReadPlan] = field(default_factory=dict, compare=False, repr=False)
    _status_functions: dict[str, tuple[Any, str]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def resources_uri(self) -> str:
        """The URI of the resources as FMI 2 demands it, also on Windows."""
        path = self.resources
        return "file://" + quote(path if path.startswith("/") else f"/{path}", safe="/:")

    def function(self, name: str) -> Any:
        """Return the function for a name such as ``GetReal`` (``fmi2GetReal``); AttributeError if it is missing."""
        return getattr(self.handle, f"fmi{self.description.version}{name}")

    def status_function(self, name: str) -> tuple[Any, str]:
        """Return a function that returns a status, and its full name; cached, as there are thousands of calls."""
        known = self._status_functions.get(name)
        if known is None:
            function = self.function(name)
            function.restype = c.c_int
            known = self._status_functions[name] = (function, f"fmi{self.description.version}{name}")
        return known


FILL_BYTE = 0xA5
_FILL = bytes([FILL_BYTE])
_UNWRITTEN_BYTES = _FILL * 8
_POINTER_TYPES = frozenset({c.c_char_p, c.c_void_p})
_FLOAT_WIDTHS = {c.c_double: 8, c.c_float: 4}
GUARD_ELEMENTS = 4
"""Guard elements behind each array that an FMU fills: they must stay unchanged."""


@lru_cache(maxsize=128)
def _prepare_guarded_array(element_type: Any, size: int) -> tuple[Any, bytes, bytes]:
    """Return the type of a guarded array, its content before it is filled, and that of its guard."""
    # Pointers begin as null: what is not written must not be followed.
    fill, width = b"\0" if element_type in _POINTER_TYPES else _FILL, c.sizeof(element_type)
    guard = fill * (width * GUARD_ELEMENTS)
    return element_type * (size + GUARD_ELEMENTS), fill * (width * size) + guard, guard


class GuardedArray:
    """An array for an FMU to fill, with a guarded margin behind it.

    Args:
        element_type: C type of the elements.
        size: Number of requested elements.
    """

    def __init__(self, element_type: Any, size: int) -> None:
        self.size, self._kind = size, element_type
        array_type, content, self._guard = _prepare_guarded_array(element_type, size)
        self.array = array_type.from_buffer_copy(content)

    def read(self, *, succeeded: bool) -> tuple[list[Any], str]:
        """Return the values, of which unwritten floating point numbers are NaN, and a fault of the write access.

        Args:
            succeeded: The call returned OK, so all elements must be written.
        """
        content, values = bytes(self.array), self.array[: self.size]
        unwritten = self._unwritten_elements(content)
        for index in unwritten:
            values[index] = float("nan")
        if not content.endswith(self._guard):
            return values, f"writes beyond the {self.size} requested values"
        return values, "returns OK, but leaves values unwritten" if succeeded and unwritten else ""

    def _unwritten_elements(self, content: bytes) -> Sequence[int]:
        """Return positions of floating point numbers that still hold the fill pattern."""
        width = _FLOAT_WIDTHS.get(self._kind)
        if width is None:
            return ()
        unwritten_bytes = _UNWRITTEN_BYTES[:width]
        if content.find(unwritten_bytes, 0, self.size * width) < 0:
            return ()
        return [index for index in range(self.size) if content[index * width : (index + 1) * width] == unwritten_bytes]


class BooleanOutputArguments:
    """Boolean output arguments of a call; unwritten ones are recognized.

    Args:
        version: 2: of the size of int; 3: of one byte.
        names: Of the arguments.
    """

    def __init__(self, version: int, *names: str) -> None:
        self.names = names
        cell_type = c.c_uint32 if version == 2 else c.c_ubyte
        self._unwritten_value = FILL_BYTE * (0x01010101 if version == 2 else 1)
        self._values = [cell_type(self._unwritten_value) for _ in names]
        self.pointers = [c.byref(cell) for cell in self._values]

    def set_values(self, flags: Iterable[int]) -> None:
        """Take values from a structure whose bytes held the pattern before."""
        for cell, value in zip(self._values, flags, strict=True):
            cell.value = value

    def values(self) -> list[bool]:
        """Return the written values; False where nothing was written."""
        return [bool(cell.value) and cell.value != self._unwritten_value for cell in self._values]

    def unwritten_names(self) -> list[str]:
        """Return the names of the flags that the FMU did not write."""
        return [
            name for name, cell in zip(self.names, self._values, strict=True) if cell.value == self._unwritten_value
        ]
