"""Child processes: find them, measure their time, and end all of them."""

from __future__ import annotations

import ctypes as c
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

ROUNDS = 50
"""How often is looked for more of them: a process that starts others faster than that is not seen."""


def _parents() -> dict[int, int]:
    """Return process → its parent, for all running processes, without zombies."""
    found = {}
    for entry in Path("/proc").iterdir() if Path("/proc/self/stat").exists() else ():
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if fields[0] not in {"Z", "X"}:
                    found[int(entry.name)] = int(fields[1])
    return found


def list_descendant_processes(of: int) -> list[int]:
    """Return all processes below one."""
    parents = _parents()
    found: list[int] = []
    wanted = [of]
    while wanted:
        parent = wanted.pop()
        below = [number for number, its in parents.items() if its == parent]
        found += below
        wanted += below
    return found


def kill_process_session(first: int) -> None:
    """Kill a process with its session, and all that has become a child of this process since.

    Args:
        first: Began the session that the others belong to, unless they left it.
    """
    if os.name != "posix":
        return
    for _ in range(ROUNDS):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(first, signal.SIGKILL)
        left = list_descendant_processes(os.getpid())
        for number in left:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(number, signal.SIGKILL)
        if not left:
            return
        _collect(first)
        time.sleep(0.002)


def _collect(spared: int) -> None:
    """Collect ended orphans of this process, so that none stays as a zombie; not the first one."""
    for entry in Path("/proc").iterdir() if Path("/proc/self/stat").exists() else ():
        if entry.name.isdigit() and int(entry.name) != spared:
            with suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if fields[0] == "Z" and int(fields[1]) == os.getpid():
                    os.waitpid(int(entry.name), os.WNOHANG)


def list_marked_processes(token: str) -> list[int]:
    """Return processes with a token in their environment: those of a trial, also without its guard."""
    found = []
    for entry in Path("/proc").iterdir() if Path("/proc/self/environ").exists() else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if token.encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
    return found


def remove_shared_memory(of: int) -> int:
    """Remove segments of shared memory that a process has left behind, and return how many."""
    removed = 0
    listed = Path("/proc/sysvipc/shm")
    for line in listed.read_text(encoding="ascii").splitlines()[1:] if listed.exists() else ():
        fields = line.split()
        if int(fields[4]) == of:
            removed += c.CDLL(None).shmctl(int(fields[1]), 0, None) == 0
    return removed


def is_process_waiting(process: int) -> bool:
    """Return whether a process waits for anything but a processor; True where this is not known."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "R"
    except (OSError, IndexError):
        return True


def count_process_threads(process: int) -> int:
    """Return the number of threads of a process; 1 where that is unknown."""
    try:
        return len(list(Path(f"/proc/{process}/task").iterdir()))
    except OSError:
        return 1


def process_cpu_time(process: int) -> float:
    """Return user and system time of a process so far, in s; 0 where that is unknown."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
