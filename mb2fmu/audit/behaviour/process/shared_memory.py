"""Channel between a process that runs a unit and its watcher: shared memory, without a descriptor.

An FMU that closes all descriptors, or writes into all of them, does not disturb it. Beside the messages it holds which
function of the FMU is being called, so that a crash and a hang can be told with its name.
"""

from __future__ import annotations

import functools
import json
import mmap
import struct
from pathlib import Path
from typing import Any

SIZE = 16 * 1024**2
_NAME = slice(24, 120)
_FIRST = 128
_COUNT_AND_INSIDE, _INSIDE = struct.Struct("QQ"), struct.Struct("Q")


@functools.cache
def _field(name: str) -> bytes:
    """Return the name of a function in its written form; cached, as names are few and calls thousands."""
    return name.encode()[:96].ljust(96, b"\0")


class SharedMemoryChannel:
    """One side of a channel: messages one after another, a count of calls, and the name of the present one.

    Args:
        path: A file of its own; made if it is not there.
    """

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(bytes(SIZE))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)
        self._read = _FIRST
        self.calls = 0

    def clear(self) -> None:
        """Remove all messages, before another process writes."""
        self._memory[:_FIRST] = bytes(_FIRST)
        self._read = _FIRST
        self.calls = 0

    # --- the running side

    def write(self, message: dict[str, Any]) -> None:
        """Append a message; messages beyond the space are dropped."""
        data = json.dumps(message).encode() + b"\n"
        end = struct.unpack_from("Q", self._memory)[0] or _FIRST
        if end + len(data) <= SIZE:
            self._memory[end : end + len(data)] = data
            struct.pack_into("Q", self._memory, 0, end + len(data))

    def enter(self, name: str) -> None:
        """Note that a call of the FMU begins."""
        self.calls += 1
        self._memory[_NAME] = _field(name)
        _COUNT_AND_INSIDE.pack_into(self._memory, 8, self.calls, 1)

    def leave(self) -> None:
        """Note that the call came back."""
        _INSIDE.pack_into(self._memory, 16, 0)

    # --- the watching side

    def read(self) -> list[dict[str, Any]]:
        """Return messages since the last time, without unreadable ones."""
        end = min(struct.unpack_from("Q", self._memory)[0], SIZE)
        data, self._read = self._memory[self._read : end], max(self._read, end)
        found = []
        for line in data.splitlines():
            try:
                message = json.loads(line)
            except ValueError:
                continue
            if isinstance(message, dict):
                found.append(message)
        return found

    def progress(self) -> tuple[int, int, int]:
        """Return three numbers of which one changes as long as something happens."""
        used, calls, inside = struct.unpack_from("QQQ", self._memory)
        return used, calls, inside

    def calling(self) -> tuple[str, bool]:
        """Return the function called last, and whether it is still running."""
        name = self._memory[_NAME].rstrip(b"\0").decode("utf-8", "replace")
        return name, bool(struct.unpack_from("Q", self._memory, 16)[0])
