"""A loaded library, and the types, structures and answers of FMI 2 and 3 as ctypes has them."""

from __future__ import annotations

import ctypes as c
from dataclasses import dataclass, field
from typing import Any

from mb2fmu.audit.description.records import Description

OK, WARNING, DISCARD, ERROR, FATAL, PENDING = range(6)
STATUS = ("OK", "Warning", "Discard", "Error", "Fatal", "Pending")

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


class RefusedError(Exception):
    """A call of an ordinary sequence was answered with Discard, Error or Fatal."""

    def __init__(self, function: str, status: int, message: str, mode: str) -> None:
        self.function, self.status, self.message, self.mode = function, status, message, mode
        said = f': "{message}"' if message else ", without a message"
        label = STATUS[status] if 0 <= status < len(STATUS) else str(status)
        super().__init__(f"{function} answers {label} in {mode}{said}")


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
class Events:
    """What updating the discrete states said."""

    needed: bool
    terminate: bool
    nominals_changed: bool
    values_changed: bool
    next_time: float | None


@dataclass(frozen=True, slots=True)
class Step:
    """What a step said; the last four only in FMI 3."""

    status: int
    events: bool = False
    terminate: bool = False
    early: bool = False
    last: float = float("nan")


@dataclass
class Memory:
    """What a unit asked of FMI 2's memory functions."""

    asked: int = 0
    live: set[int] = field(default_factory=set)
    wrong: int = 0


@dataclass(frozen=True)
class Library:
    """A loaded binary with its description.

    Attributes:
        handle: Loaded.
        description: Of the unit.
        resources: Path of the unpacked resources folder.
        traps: Floating-point exceptions that are unmasked while the unit runs, as the C library numbers them.
    """

    handle: c.CDLL
    description: Description
    resources: str
    traps: int = 0

    def function(self, name: str) -> Any:
        """``fmi2GetReal`` for ``GetReal``, or AttributeError."""
        return getattr(self.handle, f"fmi{self.description.version}{name}")
