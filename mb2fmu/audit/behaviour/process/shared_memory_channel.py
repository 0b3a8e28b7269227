"""Channel between a process that runs an FMU and its supervisor: shared memory, without a descriptor.

An FMU that closes all descriptors, or writes into all of them, does not disturb it. Beside the messages it holds which
function of the FMU is being called, so that reports of crashes and hangs can name it.
"""

from __future__ import annotations

import ctypes as c
import functools
import json
import mmap
import struct
from pathlib import Path
from typing import Any

CHANNEL_BYTES = 16 * 1024**2
_NAME_SLICE = slice(24, 120)
_MESSAGES_START = 128


@functools.cache
def _encode_name(name: str) -> bytes:
    """Return the name of a function in its written form; cached, as names are few and calls thousands."""
    return name.encode()[:96].ljust(96, b"\0")


class SharedMemoryChannel:
    """One side of a channel: messages one after another, a count of calls, and the name of the present one.

    Args:
        path: A file of its own; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            with path.open("wb") as file:
                file.truncate(CHANNEL_BYTES)  # zeros that take no time
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), CHANNEL_BYTES)
        self._counters = memoryview(self._memory)[: _NAME_SLICE.start].cast("Q")
        """End of the messages, calls so far, and whether one is running."""
        self._read_position = _MESSAGES_START

    def clear(self) -> None:
        """Remove all messages, before another process writes."""
        self._memory[:_MESSAGES_START] = bytes(_MESSAGES_START)
        self._read_position = _MESSAGES_START

    # --- the running side

    def write(self, message: dict[str, Any]) -> None:
        """Append a message; messages beyond the space are dropped."""
        data = json.dumps(message).encode() + b"\n"
        end = struct.unpack_from("Q", self._memory)[0] or _MESSAGES_START
        if end + len(data) <= CHANNEL_BYTES:
            self._memory[end : end + len(data)] = data
            struct.pack_into("Q", self._memory, 0, end + len(data))

    def begin_call(self, name: str) -> None:
        """Note that a call of the FMU begins."""
        self._memory[_NAME_SLICE] = _encode_name(name)
        counters = self._counters
        counters[1] += 1
        counters[2] = 1

    def end_call(self) -> None:
        """Note that the call came back."""
        self._counters[2] = 0

    def note_addresses(self) -> tuple[int, int]:
        """Return where compiled code notes calls: the addresses of their number and of the present one's name."""
        address = c.addressof(c.c_char.from_buffer(self._memory))
        return address + 8, address + _NAME_SLICE.start

    # --- the watching side

    def read(self) -> list[dict[str, Any]]:
        """Return messages since the last time, without unreadable ones."""
        end = min(struct.unpack_from("Q", self._memory)[0], CHANNEL_BYTES)
        data, self._read_position = self._memory[self._read_position : end], max(self._read_position, end)
        messages = []
        for line in data.splitlines():
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                messages.append(message)
        return messages

    def activity_counters(self) -> tuple[int, int, int]:
        """Return three counters, of which at least one changes with any activity."""
        cpu_time, calls, is_inside_call = struct.unpack_from("QQQ", self._memory)
        return cpu_time, calls, is_inside_call

    def last_call(self) -> tuple[str, bool]:
        """Return the function called last, and whether it is still running."""
        name = self._memory[_NAME_SLICE].rstrip(b"\0").decode("utf-8", "replace")
        return name, bool(struct.unpack_from("Q", self._memory, 16)[0])
