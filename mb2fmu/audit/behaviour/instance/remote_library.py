"""A library in another process, called as if ctypes had loaded it here: see ``remote_host/remote_host.c``.

Arguments are those that ``instance.py`` gives to ctypes: numbers, arrays, references, FMI's callbacks. Arrays go there
and come back whole, with the margins by which writing beyond them is seen. When the process dies this one dies in the
same way, so that whoever watches it tells a crash of the FMU as such.
"""

from __future__ import annotations

import ctypes as c
import os
import signal
import struct
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

from mb2fmu.audit.behaviour.instance.fmi_types import LOGGER2, LOGGER3, UPDATE, Callbacks2

_SIGNALS = {
    0xC0000005: "SIGSEGV", 0xC00000FD: "SIGSEGV", 0xC000001D: "SIGILL", 0xC0000094: "SIGFPE", 0xC0000095: "SIGFPE",
    0x80000003: "SIGTRAP",
}  # fmt: skip
"""Exceptions of Windows, and what they are called here."""

_NOTHING = 0xFFFFFFFF
_SIMPLE = (c._SimpleCData,)  # noqa: SLF001  ctypes has no other name for what all its numbers are
_CARGUMENT = type(c.byref(c.c_int()))


def _die(process: subprocess.Popen[bytes], code: int | None) -> None:
    """End this process as the other one ended."""
    if code is None:
        ended = process.wait()
        if ended >= 0:
            os._exit(ended)
        number = -ended
    else:
        number = int(getattr(signal, _SIGNALS.get(code, "SIGABRT")))
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(1)


class RemoteLibrary:
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
        self._to, self._from = self._process.stdin, self._process.stdout
        self._functions: dict[str, RemoteFunction] = {}
        self._loggers: dict[int, tuple[Any, Any]] = {}
        self._update: Any = None
        self._send(b"O", _block(path.encode()))
        found = self._answer()
        code, why = self._number("I"), self._text()
        if not found:
            raise OSError((why or b"").decode("utf-8", "replace") or f"Windows refuses it with error {code}")

    def close(self) -> None:
        """End the other process; tools that watch it then write their reports."""
        self._to.close()
        self._process.wait()
        self._from.close()

    def __getattr__(self, name: str) -> RemoteFunction:
        """Return a function of the library by its name.

        Raises:
            AttributeError: If the library has no such symbol.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        if name not in self._functions:
            self._send(b"F", _block(name.encode()))
            address = self._answer()
            if not address:
                raise AttributeError(f"the library has no symbol: {name}")
            self._functions[name] = RemoteFunction(self, address)
        return self._functions[name]

    # --- the wire

    def _send(self, *parts: bytes) -> None:
        """Write to the host; a broken pipe ends this process as the host has ended."""
        try:
            self._to.write(b"".join(parts))
            self._to.flush()
        except OSError:
            _die(self._process, None)

    def _take(self, size: int) -> bytes:
        """Read exactly so many bytes from the host; end this process if it has ended."""
        found = self._from.read(size) if size else b""
        if len(found) != size:
            _die(self._process, None)
        return found

    def _number(self, form: str) -> Any:
        """Read one little-endian number of a struct format."""
        return struct.unpack(f"<{form}", self._take(struct.calcsize(f"<{form}")))[0]

    def _text(self) -> bytes | None:
        """Read a text with its length in front; None for a null pointer."""
        size = self._number("I")
        return None if size == _NOTHING else self._take(size)

    def _answer(self) -> int:
        """Return the answer to a command; messages and requests of the FMU in between are passed on."""
        while True:
            kind = self._take(1)
            if kind == b"R":
                return int(self._number("Q"))
            if kind == b"M":
                self._message()
            elif kind == b"U":
                self._updated()
            else:
                _die(self._process, self._number("I"))

    def _message(self) -> None:
        """Hand a log message of the FMU to the logger of its environment, or to any if that is unknown."""
        environment, status = self._number("Q"), self._number("i")
        name, category, text = self._text(), self._text(), self._text()
        # Another environment than any that was given is still a message: any logger tells so.
        logger, _ = self._loggers.get(environment) or next(reversed(self._loggers.values()), (None, None))
        if isinstance(logger, LOGGER2):
            logger(environment, name, status, category, text)
        elif logger is not None:
            logger(environment, status, category, text)

    def _updated(self) -> None:
        """Call the intermediate update of this process and send back its answer."""
        time, flags = self._number("d"), self._take(4)
        asked, at = c.c_bool(), c.c_double(time)
        if self._update:
            self._update(None, time, *map(bool, flags), c.pointer(asked), c.pointer(at))
        self._send(b"A", struct.pack("<?d", asked.value, at.value))

    def call(self, address: int, kind: bytes, arguments: Sequence[Any]) -> Any:
        """Call a function: ``i``: it returns an int; ``p``: a pointer; ``s``: a text; ``v``: nothing."""
        sent = [b"C", struct.pack("<Q", address), kind, bytes([len(arguments)])]
        taken: list[Callable[[], None] | None] = []
        self._remember(arguments)
        for place, each in enumerate(arguments):
            data, take = self._packed(each, arguments, place)
            sent.append(data)
            taken.append(take)
        self._send(*sent)
        found: Any = self._answer()
        if kind == b"s":
            found = self._text()
        for take in taken:
            if take:
                take()
        if kind == b"i":
            return c.c_int(found & 0xFFFFFFFF).value
        return found if kind in {b"p", b"s"} else None

    def _remember(self, arguments: Sequence[Any]) -> None:
        """Keep callbacks among the arguments of an instantiation."""
        for place, each in enumerate(arguments):
            if isinstance(each, LOGGER3):
                self._loggers[int(arguments[place - 1].value or 0)] = each, None
            elif isinstance(each, UPDATE):
                self._update = each
            elif isinstance(_behind(each), Callbacks2):
                table = _behind(each)
                self._loggers[int(table.environment or 0)] = table.logger, table  # which holds what is called

    def _packed(self, given: Any, among: Sequence[Any], place: int) -> tuple[bytes, Callable[[], None] | None]:
        """Return one argument for transmission, and a function that takes back what was written there."""
        each = _behind(given)
        if isinstance(each, c.Array) and each._type_ in {c.c_char_p, c.c_void_p}:
            return self._pointers(each, among, place)
        if not isinstance(each, Callbacks2) and (isinstance(each, c.Array) or isinstance(given, _CARGUMENT)):
            return self._buffer(each)
        return _given(each), None

    def _buffer(self, each: Any) -> tuple[bytes, Callable[[], None]]:
        """Return memory that the FMU may write to."""
        place, size = c.addressof(each), c.sizeof(each)

        def take() -> None:
            """Copy back what it has written."""
            c.memmove(place, self._take(size), size)

        return b"b" + _block(c.string_at(place, size)), take

    def _pointers(self, each: Any, among: Sequence[Any], place: int) -> tuple[bytes, Callable[[], None] | None]:
        """Return an array of pointers: to existing data, or for the FMU to fill."""
        count = len(each)
        if each._type_ is c.c_void_p and any(each):
            sizes = among[place - 1] if isinstance(among[place - 1], c.Array) else None
            read = [c.string_at(each[k], sizes[k] if sizes else -1) for k in range(count)]
            return b"n" + struct.pack("<I", count) + b"".join(map(_block, read)), None
        texts = each._type_ is c.c_char_p

        def take() -> None:
            """Copy back what the FMU has written; it is kept as long as the array."""
            found = [self._text() if texts else self._take(self._number("I")) for _ in range(count)]
            each.kept = [c.create_string_buffer(data or b"") for data in found]
            for k, (data, buffer) in enumerate(zip(found, each.kept, strict=True)):
                each[k] = data if texts else c.addressof(buffer) if data else None

        return (b"g" if texts else b"G") + struct.pack("<I", count), take


class RemoteFunction:
    """A function of the library, with ``restype`` as ctypes has it."""

    def __init__(self, library: RemoteLibrary, address: int) -> None:
        self._library, self._address = library, address
        self.restype: Any = c.c_int

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        kinds = {c.c_void_p: b"p", c.c_char_p: b"s", None: b"v"}
        return self._library.call(self._address, kinds.get(self.restype, b"i"), arguments)


def _behind(given: Any) -> Any:
    """Return the object that a reference points to."""
    return given._obj if isinstance(given, _CARGUMENT) else given  # type: ignore[attr-defined]  # noqa: SLF001


def _given(each: Any) -> bytes:
    """Return a read-only argument for transmission."""
    word = b"i" + bytes(8)
    if isinstance(each, Callbacks2):
        word = b"k" + struct.pack("<Q?", each.environment or 0, not each.allocate)
    elif isinstance(each, LOGGER3):
        word = b"l"
    elif isinstance(each, UPDATE):
        word = b"u" if each else word
    elif isinstance(each, c.c_char_p):
        word = word if each.value is None else b"q" + _block(each.value)
    elif isinstance(each, c.c_double):
        word = b"d" + struct.pack("<d", each.value)
    else:
        value = each.value if isinstance(each, _SIMPLE) else each
        word = b"i" + struct.pack("<Q", int(value or 0) & 0xFFFFFFFFFFFFFFFF)
    return word


def _block(data: bytes) -> bytes:
    """Return bytes with their length in front."""
    return struct.pack("<I", len(data)) + data
