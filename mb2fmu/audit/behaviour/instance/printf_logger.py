"""The logger of FMI 2 as units call it: a printf format and its arguments."""

from __future__ import annotations

import ctypes as c
import os
import platform
from collections.abc import Callable
from functools import cache
from typing import Any

from mb2fmu.audit.behaviour.instance.fmi_types import LoggerCallback2

REGISTER_ARGUMENTS = 8
"""Floating-point arguments that System V's calling convention of x86-64 hands over in registers."""

STACK_ARGUMENTS = 24
"""Stack arguments that are passed on; formats with more arguments get zeros."""

MAX_MESSAGE_BYTES = 8192
"""Bytes of a message."""

_NAMED_ARGUMENT_TYPES = (c.c_void_p, c.c_char_p, c.c_int, c.c_char_p, c.c_void_p)
_VariadicLogger = c.CFUNCTYPE(
    None, *_NAMED_ARGUMENT_TYPES, c.c_uint64, *[c.c_double] * REGISTER_ARGUMENTS, *[c.c_uint64] * STACK_ARGUMENTS
)

MessageReceiver = Callable[[int | None, bytes | None, int, bytes | None, bytes | None], None]


class _VaList(c.Structure):
    """``va_list`` of this convention after five named arguments: one register is left, then the stack."""

    _fields_ = (("next_word", c.c_uint), ("next_number", c.c_uint), ("stack", c.c_void_p), ("registers", c.c_void_p))


@cache
def _load_vsnprintf() -> Any:
    """Return ``vsnprintf`` where the convention is known; None elsewhere: formats are then shown unfilled."""
    supported = os.name == "posix" and platform.machine() in {"x86_64", "AMD64"} and c.sizeof(c.c_void_p) == 8
    if not supported:
        return None
    function = c.CDLL(None).vsnprintf
    function.argtypes = (c.c_char_p, c.c_size_t, c.c_void_p, c.POINTER(_VaList))
    return function


def make_printf_logger(receive: MessageReceiver) -> tuple[Any, Any]:
    """Make a logger that an FMU in this process can call.

    Args:
        receive: Called with environment, instance name, status, category and the formatted text.

    Returns:
        The function pointer, and an object that must live as long as the pointer is used.
    """
    printf = _load_vsnprintf()
    if printf is None:
        plain_callback = LoggerCallback2(receive)
        return plain_callback, plain_callback

    def log_message(*arguments: Any) -> None:
        environment, name, status, category, text = arguments[:5]
        receive(
            environment,
            name,
            status,
            category,
            _format_message(printf, text, arguments[5], arguments[6:14], arguments[14:]),
        )

    callback = _VariadicLogger(log_message)
    return c.cast(callback, LoggerCallback2), callback


def _format_message(
    vsnprintf: Any, text: int | None, register_word: int, numbers: tuple[float, ...], stack_words: tuple[int, ...]
) -> bytes | None:
    """Return a text with its arguments filled in, as the C library would."""
    if text is None:
        return None
    template = c.string_at(text)
    if b"%" not in template:
        return template
    registers = (c.c_uint64 * (6 + 2 * REGISTER_ARGUMENTS))()
    registers[5] = register_word
    for index, number in enumerate(numbers):
        c.memmove(c.byref(registers, 48 + 16 * index), c.byref(c.c_double(number)), 8)
    stack_buffer = (c.c_uint64 * (2 * STACK_ARGUMENTS))(*stack_words)
    va_list = _VaList(40, 48, c.addressof(stack_buffer), c.addressof(registers))
    buffer = c.create_string_buffer(MAX_MESSAGE_BYTES)
    return buffer.value if vsnprintf(buffer, MAX_MESSAGE_BYTES, text, c.byref(va_list)) >= 0 else template
