"""The logger of FMI 2 as units call it: a printf format and its arguments."""

from __future__ import annotations

import ctypes as c
import os
import platform
from collections.abc import Callable
from functools import cache
from typing import Any

from mb2fmu.audit.behaviour.instance.fmi_types import LOGGER2

REGISTERS = 8
"""Floating-point arguments that System V's calling convention of x86-64 hands over in registers."""

WORDS = 24
"""Arguments on the stack that are taken along; what asks for more gets zeros."""

LONGEST = 8192
"""Bytes of a message."""

_HEAD = (c.c_void_p, c.c_char_p, c.c_int, c.c_char_p, c.c_void_p)
_WIDE = c.CFUNCTYPE(None, *_HEAD, c.c_uint64, *[c.c_double] * REGISTERS, *[c.c_uint64] * WORDS)

Take = Callable[[int | None, bytes | None, int, bytes | None, bytes | None], None]


class _Arguments(c.Structure):
    """``va_list`` of this convention after five named arguments: one register is left, then the stack."""

    _fields_ = (("next_word", c.c_uint), ("next_number", c.c_uint), ("stack", c.c_void_p), ("registers", c.c_void_p))


@cache
def _printf() -> Any:
    """Return ``vsnprintf`` where the convention is known; None elsewhere: formats are then shown unfilled."""
    known = os.name == "posix" and platform.machine() in {"x86_64", "AMD64"} and c.sizeof(c.c_void_p) == 8
    if not known:
        return None
    function = c.CDLL(None).vsnprintf
    function.argtypes = (c.c_char_p, c.c_size_t, c.c_void_p, c.POINTER(_Arguments))
    return function


def make_printf_logger(take: Take) -> tuple[Any, Any]:
    """Make a logger that an FMU in this process can call.

    Args:
        take: Gets environment, name of the instance, status, category and the text with its arguments put in.

    Returns:
        The pointer for the table of callbacks, and what has to live as long as it.
    """
    printf = _printf()
    if printf is None:
        plain = LOGGER2(take)
        return plain, plain

    def called(*given: Any) -> None:
        environment, name, status, category, text = given[:5]
        take(environment, name, status, category, _written(printf, text, given[5], given[6:14], given[14:]))

    wide = _WIDE(called)
    return c.cast(wide, LOGGER2), wide


def _written(
    printf: Any, text: int | None, word: int, numbers: tuple[float, ...], stack: tuple[int, ...]
) -> bytes | None:
    """Return a text with its arguments filled in, as the C library would."""
    if text is None:
        return None
    plain = c.string_at(text)
    if b"%" not in plain:
        return plain
    registers = (c.c_uint64 * (6 + 2 * REGISTERS))()
    registers[5] = word
    for k, number in enumerate(numbers):
        c.memmove(c.byref(registers, 48 + 16 * k), c.byref(c.c_double(number)), 8)
    words = (c.c_uint64 * (2 * WORDS))(*stack)
    arguments = _Arguments(40, 48, c.addressof(words), c.addressof(registers))
    room = c.create_string_buffer(LONGEST)
    return room.value if printf(room, LONGEST, text, c.byref(arguments)) >= 0 else plain
