"""The channel between a process that runs a unit and the one that watches it: memory that both see, and no descriptor.

A unit that closes all descriptors, or writes into all of them, does not disturb it. Beside the messages it holds which
function of the unit is being called, so that a crash and a hang can be told with its name.
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
    """Return the name of a function as it is written: there are few, and they are called thousands of times."""
    return name.encode()[:96].ljust(96, b"\0")


class Channel:
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
        """Forgets all messages: before another process writes."""
        self._memory[:_FIRST] = bytes(_FIRST)
        self._read = _FIRST
        self.calls = 0

    # --- the running side

    def write(self, message: dict[str, Any]) -> None:
        """Appends a message; what does not fit any more is left out."""
        data = json.dumps(message).encode() + b"\n"
        end = struct.unpack_from("Q", self._memory)[0] or _FIRST
        if end + len(data) <= SIZE:
            self._memory[end : end + len(data)] = data
            struct.pack_into("Q", self._memory, 0, end + len(data))

    def enter(self, name: str) -> None:
        """A call of the unit begins."""
        self.calls += 1
        self._memory[_NAME] = _field(name)
        _COUNT_AND_INSIDE.pack_into(self._memory, 8, self.calls, 1)

    def leave(self) -> None:
        """Note that the call came back."""
        _INSIDE.pack_into(self._memory, 16, 0)

    # --- the watching side

    def read(self) -> list[dict[str, Any]]:
        """Messages since the last time; those that cannot be read are left out."""
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
        """Three numbers of which one changes as long as something happens."""
        used, calls, inside = struct.unpack_from("QQQ", self._memory)
        return used, calls, inside

    def calling(self) -> tuple[str, bool]:
        """Return the function called last; whether it has not come back."""
        name = self._memory[_NAME].rstrip(b"\0").decode("utf-8", "replace")
        return name, bool(struct.unpack_from("Q", self._memory, 16)[0])
