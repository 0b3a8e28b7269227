"""A loaded library, with the types, structures and statuses of FMI 2 and 3 for ctypes."""

from __future__ import annotations

import ctypes as c
import os
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from mb2fmu.audit.behaviour.process.time_budget import TimeBudget
from mb2fmu.audit.description.description_records import DescribedModel

OK, WARNING, DISCARD, ERROR, FATAL = range(5)
STATUS = ("OK", "Warning", "Discard", "Error", "Fatal", "Pending")


def status_name(status: int) -> str:
    """Return the name of a status; its number where the standards have none, since an FMU may answer anything."""
    return STATUS[status] if 0 <= status < len(STATUS) else str(status)


Value = float | int | bool | bytes | tuple[Any, ...]

LOGGER2 = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p, c.c_int, c.c_char_p, c.c_char_p)
LOGGER3 = c.CFUNCTYPE(None, c.c_void_p, c.c_int, c.c_char_p, c.c_char_p)
ALLOCATE = c.CFUNCTYPE(c.c_void_p, c.c_size_t, c.c_size_t)
FREE = c.CFUNCTYPE(None, c.c_void_p)
UPDATE = c.CFUNCTYPE(
    None, c.c_void_p, c.c_double, c.c_bool, c.c_bool, c.c_bool, c.c_bool, c.POINTER(c.c_bool), c.POINTER(c.c_double)
)
TYPES2 = {"Real": ("Real", c.c_double), "Integer": ("Integer", c.c_int), "Enumeration": ("Integer", c.c_int),
           "Boolean": ("Boolean", c.c_int), "String": ("String", c.c_char_p)}  # fmt: skip
TYPES3 = {
    **{f"Int{bits}": (f"Int{bits}", getattr(c, f"c_int{bits}")) for bits in (8, 16, 32, 64)},
    **{f"UInt{bits}": (f"UInt{bits}", getattr(c, f"c_uint{bits}")) for bits in (8, 16, 32, 64)},
    "Float32": ("Float32", c.c_float),
    "Float64": ("Float64", c.c_double),
    "Enumeration": ("Int64", c.c_int64),
    "Boolean": ("Boolean", c.c_bool),
    "String": ("String", c.c_char_p),
}


class RefusedCallError(Exception):
    """An ordinary call was answered with Discard, Error or Fatal."""

    def __init__(self, function: str, status: int, message: str, mode: str) -> None:
        self.function, self.status, self.message, self.mode = function, status, message, mode
        said = f': "{message}"' if message else ", without a message"
        label = status_name(status)
        super().__init__(f"{function} answers {label} in {mode}{said}")


class MeaninglessValueError(RefusedCallError):
    """An ordinary call was answered with a meaningless value."""

    def __init__(self, text: str) -> None:
        super().__init__("", ERROR, "", "")
        self.args = (text,)


class Callbacks2(c.Structure):
    """fmi2CallbackFunctions."""

    _fields_ = (
        ("logger", LOGGER2),
        ("allocate", ALLOCATE),
        ("free", FREE),
        ("finished", c.c_void_p),
        ("environment", c.c_void_p),
    )


class EventInfo2(c.Structure):
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
class DiscreteStateUpdate:
    """Result of updating the discrete states."""

    needed: bool
    terminate: bool
    nominals_changed: bool
    values_changed: bool
    next_time: float | None


@dataclass(frozen=True, slots=True)
class StepResult:
    """Result of a step; the last four fields only in FMI 3."""

    status: int
    events: bool = False
    terminate: bool = False
    early: bool = False
    last: float = float("nan")


@dataclass
class FmuMemoryFunctions:
    """FMI 2's memory functions, and what an FMU has allocated by them."""

    asked: int = 0
    live: set[int] = field(default_factory=set)
    wrong: int = 0

    def allocate(self, count: int, size: int) -> int | None:
        """Return zeroed memory (``allocateMemory``)."""
        address = _c_library().calloc(count, size)
        self.asked += 1
        self.live.add(address or 0)
        return int(address) if address else None

    def free(self, address: int | None) -> None:
        """Free memory (``freeMemory``); count blocks that were never allocated."""
        if address is None:
            return
        if address not in self.live:
            self.wrong += 1
            return
        self.live.discard(address)
        _c_library().free(address)


def find_c_function(name: str) -> Any:
    """Return a function of this system's C library; None if it has none of that name (Windows, musl, macOS)."""
    try:
        return getattr(_opened(), name)
    except AttributeError:
        return None


def _opened() -> c.CDLL:
    """Return this system's C library, without declarations."""
    return c.CDLL(None) if os.name == "posix" else c.CDLL("msvcrt")


@cache
def _c_library() -> c.CDLL:
    """Return the C library of this system, with its functions of memory declared."""
    found = _opened()
    found.calloc.restype = c.c_void_p
    found.calloc.argtypes = (c.c_size_t, c.c_size_t)
    found.free.argtypes = (c.c_void_p,)
    return found


@dataclass(frozen=True)
class FmuLibrary:
    """A loaded binary with its description.

    Attributes:
        handle: Loaded.
        description: Of the FMU.
        resources: Path of the unpacked resources folder.
        traps: Floating-point exceptions that are unmasked while the FMU runs, as the C library numbers them.
        misdeeds: What calls did against what they were asked for, each once, in order → the rule that it breaks.
        pace: Every call passes there.
        path: Of the binary.
        process: What holds for the process, whoever uses the library: how many instances were ``made``, and whether
            there may be one ``once`` only.
    """

    handle: Any
    description: DescribedModel
    resources: str
    traps: int = 0
    misdeeds: dict[str, str] = field(default_factory=dict, compare=False)
    pace: TimeBudget = field(default_factory=TimeBudget, compare=False)
    path: Path = Path()
    process: Counter[str] = field(default_factory=Counter, compare=False)
    _called: dict[str, tuple[Any, str]] = field(default_factory=dict, compare=False, repr=False)

    @property
    def address(self) -> str:
        """The URI of the resources as FMI 2 demands it, also on Windows."""
        path = self.resources
        return "file://" + quote(path if path.startswith("/") else f"/{path}", safe="/:")

    def function(self, name: str) -> Any:
        """Return the function for a name such as ``GetReal`` (``fmi2GetReal``); AttributeError if it is missing."""
        return getattr(self.handle, f"fmi{self.description.version}{name}")

    def called(self, name: str) -> tuple[Any, str]:
        """Return a function that returns a status, and its full name; cached, as there are thousands of calls."""
        if name not in self._called:
            function = self.function(name)
            function.restype = c.c_int
            self._called[name] = (function, f"fmi{self.description.version}{name}")
        return self._called[name]


PATTERN = 0xA5
_BLANK = bytes([PATTERN]) * 8
_FLOATS = frozenset({c.c_double, c.c_float})
MARGIN = 4
"""Elements behind each array that an FMU fills: they must stay as they are."""


class MemoryBlock:
    """An array for an FMU to fill, with a guarded margin behind it.

    Args:
        kind: Type of the elements.
        size: How many it is asked for.
    """

    def __init__(self, kind: Any, size: int) -> None:
        self.size, self._kind = size, kind
        self.array = (kind * (size + MARGIN))()
        # Pointers begin as null: what is not written must not be followed.
        self._byte = 0 if kind in {c.c_char_p, c.c_void_p} else PATTERN
        self._width, self._bytes = c.sizeof(kind), c.sizeof(self.array)
        c.memset(self.array, self._byte, self._bytes)

    def values(self) -> list[Any]:
        """Return the values; a floating point number that was not written is NaN."""
        found = list(self.array)[: self.size]
        blank = self._unwritten()
        return [float("nan") if k in blank else value for k, value in enumerate(found)] if blank else found

    def misdeed(self, *, answered: bool) -> str:
        """Return what the FMU did wrong; empty if nothing.

        Args:
            answered: The call was answered with OK, so that everything has to be there.
        """
        margin = c.string_at(self.array, self._bytes)[self.size * self._width :]
        if margin.count(self._byte) != len(margin):
            return f"writes beyond the {self.size} values that it is asked for"
        if answered and self._unwritten():
            return "answers OK, but leaves values unwritten"
        return ""

    def _unwritten(self) -> set[int]:
        """Return places of floating point numbers that still hold the pattern; other types are too short to tell."""
        if self._kind not in _FLOATS:
            return set()
        width = self._width
        whole, blank = c.string_at(self.array, self.size * width), _BLANK[:width]
        if blank not in whole:
            return set()
        return {k for k in range(self.size) if whole[k * width : (k + 1) * width] == blank}


class BooleanOutputs:
    """Booleans for an FMU to write; unwritten ones can be told.

    Args:
        version: 2: of the size of int; 3: of one byte.
        names: Of the arguments.
    """

    def __init__(self, version: int, *names: str) -> None:
        self.names = names
        kind = c.c_uint32 if version == 2 else c.c_ubyte
        self._blank = PATTERN * (0x01010101 if version == 2 else 1)
        self._cells = [kind(self._blank) for _ in names]
        self.pointers = [c.byref(each) for each in self._cells]

    def take(self, found: Iterable[int]) -> None:
        """Take values from a structure whose bytes held the pattern before."""
        for cell, value in zip(self._cells, found, strict=True):
            cell.value = value

    def values(self) -> list[bool]:
        """Return the written values; False where nothing was written."""
        return [bool(each.value) and each.value != self._blank for each in self._cells]

    def unwritten(self) -> list[str]:
        """Return the names of the flags that the FMU did not write."""
        return [name for name, each in zip(self.names, self._cells, strict=True) if each.value == self._blank]
