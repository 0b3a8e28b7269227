"""Log messages of one instance, recorded and checked by the rules for loggers.

The logger of FMI 2 as units call it: a printf format and its arguments.
"""

from __future__ import annotations

import ctypes as c
import os
import platform
from collections.abc import Callable, MutableMapping, Sequence
from functools import cache
from typing import Any

from mb2fmu.audit.behaviour.instance.fmi_c_interface import ERROR, STATUS_NAMES, WARNING, LoggerCallback2

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


MAX_KEPT_MESSAGES = 10_000
"""Most messages of one instance that are kept."""
MAX_QUOTED_MESSAGES = 5
"""Most messages of one call that an error quotes."""


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
        """Fill in the arguments of a message, and pass it on."""
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


class LoggedMessages:
    """Messages of an instance through its logger.

    Args:
        violations: What is wrong with a message → the rule that it breaks.
        name: The instance's, which FMI 2 passes to the logger.
    """

    def __init__(self, violations: MutableMapping[str, str], name: bytes) -> None:
        self.messages: list[tuple[int, str, str]] = []
        self._violations, self._name = violations, name
        self._environment_buffer = c.create_string_buffer(8)

    @property
    def environment(self) -> int:
        """The address that the FMU gets as the importer's environment, and must return."""
        return c.addressof(self._environment_buffer)

    def record(
        self, environment: int | None, name: bytes | None, status: int, category: bytes | None, text: bytes | None
    ) -> None:
        """Record a message and its faults.

        Args:
            environment: As passed to the logger.
            name: Of the instance; None in FMI 3, which has none there.
            status: As numbered by the standard.
            category: Of the message.
            text: Of the message.
        """
        if category is None or text is None:
            self._violations["a message has a null pointer as its category or text"] = "log.null"
        if environment != self.environment:
            self._violations["a message comes with another environment than that of its instance"] = "log.arguments"
        if name is not None and name != self._name:
            shown_name = name.decode("utf-8", "backslashreplace")[:40]
            violation = f'a message comes as that of "{shown_name}"; its instance is "{self._name.decode()}"'
            self._violations[violation] = "log.arguments"
        if not 0 <= status < len(STATUS_NAMES):
            self._violations[f"a message has status {status}, which the standard does not know"] = "log.arguments"
        for part, content in (("category", category), ("text", text)):
            if content is not None and not _is_utf8(content):
                shown_text = content[:40].decode("utf-8", "backslashreplace")
                self._violations[f'the {part} of a message is not UTF-8: "{shown_text}"'] = "value.text"
        if len(self.messages) < MAX_KEPT_MESSAGES:
            self.messages.append(
                (status, (category or b"").decode("utf-8", "replace"), (text or b"").decode("utf-8", "replace"))
            )

    def messages_since(self, count: int) -> str:
        """Return the last messages after the first ``count`` ones: the very last alone often lacks the cause."""
        return "; ".join(dict.fromkeys(text for _, _, text in self.messages[count:][-MAX_QUOTED_MESSAGES:]))

    def check_text(self, content: bytes | None, variable_name: str) -> bytes:
        """Return a text that was read with the variable of that name, and perhaps with others."""
        if content is None:
            self._violations[f'reading "{variable_name}": the FMU returns OK and a null pointer as text'] = "value.text"
        elif not _is_utf8(content):
            shown_text = content[:40].decode("utf-8", "backslashreplace")
            self._violations[f'reading "{variable_name}": a text is not UTF-8: "{shown_text}"'] = "value.text"
        return content or b""


def find_messages_without_logging(messages: Sequence[tuple[int, str, str]], version: int) -> list[tuple[int, str, str]]:
    """Return messages sent although logging is off.

    Errors are always logged. So are Warning and Discard in FMI 2, whose statuses themselves mean that the
    logger was called (2.1.3); FMI 3 excepts errors only (2.3.1, fmi3SetDebugLogging).
    """
    return [message for message in messages if message[0] < (WARNING if version == 2 else ERROR)]


def _is_utf8(content: bytes) -> bool:
    """Return whether bytes are UTF-8, as the standards want all texts."""
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
