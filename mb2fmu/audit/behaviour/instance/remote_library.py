"""A library in another process, called as if ctypes had loaded it here: see ``remote_host/remote_host.c``.

Arguments are those that ``fmu_instance.py`` gives to ctypes: numbers, arrays, references, FMI's callbacks. Arrays are
sent and returned completely, with their guard elements. When the host process dies this one dies in the same way, so
that the supervisor recognizes a crash of the FMU.
"""

from __future__ import annotations

import ctypes as c
import os
import signal
import struct
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from mb2fmu.audit.behaviour.instance.fmi_c_interface import (
    Fmi2CallbackFunctions,
    IntermediateUpdateCallback,
    LoggerCallback2,
    LoggerCallback3,
)

_WINDOWS_EXCEPTION_SIGNALS = {
    0xC0000005: "SIGSEGV", 0xC00000FD: "SIGSEGV", 0xC000001D: "SIGILL", 0xC0000094: "SIGFPE", 0xC0000095: "SIGFPE",
    0x80000003: "SIGTRAP",
}  # fmt: skip
"""Exception codes of Windows → signals."""

_NULL_TEXT = 0xFFFFFFFF
_SIMPLE_C_DATA = (c._SimpleCData,)  # noqa: SLF001  ctypes has no other name for what all its numbers are
_CReference = type(c.byref(c.c_int()))


def _end_like_host(process: subprocess.Popen[bytes], exception_code: int | None) -> None:
    """End this process in the way in which the host process ended."""
    if exception_code is None:
        exit_code = process.wait()
        if exit_code >= 0:
            os._exit(exit_code)
        signal_number = -exit_code
    else:
        signal_number = int(getattr(signal, _WINDOWS_EXCEPTION_SIGNALS.get(exception_code, "SIGABRT")))
    signal.signal(signal_number, signal.SIG_DFL)
    os.kill(os.getpid(), signal_number)
    os._exit(1)


class RemoteFmuLibrary:
    """A library loaded by another process; its functions are attributes, as of ``ctypes.CDLL``.

    Args:
        command: Runs ``remote_host``.
        path: Of the library, as that process names it.
        environment: Of that process.

    Raises:
        OSError: If its loader refuses the library.
    """

    def __init__(self, command: Sequence[str], path: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(  # noqa: S603  our own program
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        self._functions: dict[str, _RemoteLibraryFunction] = {}
        self._loggers: dict[int, tuple[Any, Any]] = {}
        self._update: Any = None
        self._send(b"O", _prefix_length(path.encode()))
        load_result = self._await_result()
        error_code, reason = self._read_number("I"), self._read_text()
        if not load_result:
            raise OSError((reason or b"").decode("utf-8", "replace") or f"Windows refuses it with error {error_code}")

    def close(self) -> None:
        """End the other process; tools that watch it then write their reports."""
        self._input.close()
        self._process.wait()
        self._output.close()

    def __getattr__(self, name: str) -> _RemoteLibraryFunction:
        """Return a function of the library by its name.

        Raises:
            AttributeError: If the library has no such symbol.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._functions:
            self._send(b"F", _prefix_length(name.encode()))
            address = self._await_result()
            if not address:
                raise AttributeError(f"the library has no symbol: {name}")
            self._functions[name] = _RemoteLibraryFunction(self, address)
        return self._functions[name]

    # --- the wire

    def _send(self, *parts: bytes) -> None:
        """Write to the host; a broken pipe ends this process as the host has ended."""
        try:
            self._input.write(b"".join(parts))
            self._input.flush()
        except OSError:
            _end_like_host(self._process, None)

    def _receive(self, size: int) -> bytes:
        """Read exactly so many bytes from the host; end this process if it has ended."""
        data = self._output.read(size) if size else b""
        if len(data) != size:
            _end_like_host(self._process, None)
        return data

    def _read_number(self, number_format: str) -> Any:
        """Read one little-endian number of a struct format."""
        return struct.unpack(f"<{number_format}", self._receive(struct.calcsize(f"<{number_format}")))[0]

    def _read_text(self) -> bytes | None:
        """Read a text with its length in front; None for a null pointer."""
        size = self._read_number("I")
        return None if size == _NULL_TEXT else self._receive(size)

    def _await_result(self) -> int:
        """Return the answer to a command; messages and requests of the FMU in between are passed on."""
        while True:
            kind = self._receive(1)
            if kind == b"R":
                return int(self._read_number("Q"))
            if kind == b"M":
                self._forward_message()
            elif kind == b"U":
                self._forward_update()
            else:
                _end_like_host(self._process, self._read_number("I"))

    def _forward_message(self) -> None:
        """Hand a log message of the FMU to the logger of its environment, or to any if that is unknown."""
        environment, status = self._read_number("Q"), self._read_number("i")
        name, category, text = self._read_text(), self._read_text(), self._read_text()
        # Another environment than any that was given is still a message: any logger reports it.
        logger, _ = self._loggers.get(environment) or next(reversed(self._loggers.values()), (None, None))
        if isinstance(logger, LoggerCallback2):
            logger(environment, name, status, category, text)
        elif logger is not None:
            logger(environment, status, category, text)

    def _forward_update(self) -> None:
        """Call the intermediate update of this process and send back its answer."""
        time, flags = self._read_number("d"), self._receive(4)
        early_return, return_time = c.c_bool(), c.c_double(time)
        if self._update:
            self._update(None, time, *map(bool, flags), c.pointer(early_return), c.pointer(return_time))
        self._send(b"A", struct.pack("<?d", early_return.value, return_time.value))

    def call(self, address: int, result_kind: bytes, arguments: Sequence[Any]) -> Any:
        """Call a function: ``i``: it returns an int; ``p``: a pointer; ``s``: a text; ``v``: nothing."""
        request = [b"C", struct.pack("<Q", address), result_kind, bytes([len(arguments)])]
        result_readers: list[Callable[[], None] | None] = []
        self._keep_callbacks(arguments)
        for position, argument in enumerate(arguments):
            data, read_back = self._encode(argument, arguments, position)
            request.append(data)
            result_readers.append(read_back)
        self._send(*request)
        result: Any = self._await_result()
        if result_kind == b"s":
            result = self._read_text()
        for read_back in result_readers:
            if read_back:
                read_back()
        if result_kind == b"i":
            return c.c_int(result & 0xFFFFFFFF).value
        return result if result_kind in {b"p", b"s"} else None

    def _keep_callbacks(self, arguments: Sequence[Any]) -> None:
        """Keep callbacks among the arguments of an instantiation."""
        for position, argument in enumerate(arguments):
            if isinstance(argument, LoggerCallback3):
                self._loggers[int(arguments[position - 1].value or 0)] = argument, None
            elif isinstance(argument, IntermediateUpdateCallback):
                self._update = argument
            elif isinstance(_dereference(argument), Fmi2CallbackFunctions):
                callbacks = _dereference(argument)
                self._loggers[int(callbacks.environment or 0)] = (
                    callbacks.logger,
                    callbacks,
                )  # which holds what is called

    def _encode(
        self, argument: Any, arguments: Sequence[Any], position: int
    ) -> tuple[bytes, Callable[[], None] | None]:
        """Return an argument for transmission, and a function that copies written memory back."""
        target = _dereference(argument)
        if isinstance(target, c.Array) and target._type_ in {c.c_char_p, c.c_void_p}:
            return self._encode_pointers(target, arguments, position)
        if not isinstance(target, Fmi2CallbackFunctions) and (
            isinstance(target, c.Array) or isinstance(argument, _CReference)
        ):
            return self._encode_buffer(target)
        return _encode_argument(target), None

    def _encode_buffer(self, target: Any) -> tuple[bytes, Callable[[], None]]:
        """Return memory that the FMU may write to."""
        address, size = c.addressof(target), c.sizeof(target)

        def read_back() -> None:
            """Copy the memory that the FMU has written."""
            c.memmove(address, self._receive(size), size)

        return b"b" + _prefix_length(c.string_at(address, size)), read_back

    def _encode_pointers(
        self, array: Any, arguments: Sequence[Any], position: int
    ) -> tuple[bytes, Callable[[], None] | None]:
        """Return an array of pointers: to existing data, or for the FMU to fill."""
        count = len(array)
        if array._type_ is c.c_void_p and any(array):
            sizes = arguments[position - 1] if isinstance(arguments[position - 1], c.Array) else None
            contents = [c.string_at(array[index], sizes[index] if sizes else -1) for index in range(count)]
            return b"n" + struct.pack("<I", count) + b"".join(map(_prefix_length, contents)), None
        is_text = array._type_ is c.c_char_p

        def read_back() -> None:
            """Copy the contents that the FMU has written; they live as long as the array."""
            received = [self._read_text() if is_text else self._receive(self._read_number("I")) for _ in range(count)]
            array.kept = [c.create_string_buffer(data or b"") for data in received]
            for index, (data, buffer) in enumerate(zip(received, array.kept, strict=True)):
                array[index] = data if is_text else c.addressof(buffer) if data else None

        return (b"g" if is_text else b"G") + struct.pack("<I", count), read_back


class _RemoteLibraryFunction:
    """A function of the library, with ``restype`` as ctypes has it."""

    def __init__(self, library: RemoteFmuLibrary, address: int) -> None:
        self._library, self._address = library, address
        self.restype: Any = c.c_int

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        result_kinds = {c.c_void_p: b"p", c.c_char_p: b"s", None: b"v"}
        return self._library.call(self._address, result_kinds.get(self.restype, b"i"), arguments)


def _dereference(argument: Any) -> Any:
    """Return the object that a reference points to."""
    return argument._obj if isinstance(argument, _CReference) else argument  # type: ignore[attr-defined]  # noqa: SLF001


def _encode_argument(argument: Any) -> bytes:
    """Return a read-only argument for transmission."""
    encoded = b"i" + bytes(8)
    if isinstance(argument, Fmi2CallbackFunctions):
        encoded = b"k" + struct.pack("<Q?", argument.environment or 0, not argument.allocate)
    elif isinstance(argument, LoggerCallback3):
        encoded = b"l"
    elif isinstance(argument, IntermediateUpdateCallback):
        encoded = b"u" if argument else encoded
    elif isinstance(argument, c.c_char_p):
        encoded = encoded if argument.value is None else b"q" + _prefix_length(argument.value)
    elif isinstance(argument, c.c_double):
        encoded = b"d" + struct.pack("<d", argument.value)
    else:
        value = argument.value if isinstance(argument, _SIMPLE_C_DATA) else argument
        encoded = b"i" + struct.pack("<Q", int(value or 0) & 0xFFFFFFFFFFFFFFFF)
    return encoded


def _prefix_length(data: bytes) -> bytes:
    """Return bytes with their length in front."""
    return struct.pack("<I", len(data)) + data
