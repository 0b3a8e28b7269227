"""Child processes: find them, measure their time, and end all of them."""

from __future__ import annotations

import ctypes as c
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MAX_KILL_ROUNDS = 50
"""Most rounds of searching and killing: a process that starts others faster is not found."""


def _list_processes() -> Iterator[tuple[int, bytes, int]]:
    """Yield number, state and parent of each process: all of a system, for each FMU that is tried."""
    for name in os.listdir("/proc") if os.path.exists("/proc/self/stat") else ():  # noqa: PTH110, PTH208  half the time
        if name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                with open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123
                    state, parent = file.read().rpartition(b")")[2].split(maxsplit=2)[:2]
                yield int(name), state, int(parent)


def list_descendant_processes(ancestor: int) -> list[int]:
    """Return all descendants of a process, without zombies."""
    parents = {process: parent for process, state, parent in _list_processes() if state not in {b"Z", b"X"}}
    descendants: list[int] = []
    pending_processes = [ancestor]
    while pending_processes:
        parent = pending_processes.pop()
        children = [process for process, parent_of_process in parents.items() if parent_of_process == parent]
        descendants += children
        pending_processes += children
    return descendants


def kill_process_session(session_leader: int) -> None:
    """Kill a process with its session, and all that has become a child of this process since.

    Args:
        session_leader: Began the session that the others belong to, unless they left it.
    """
    if os.name != "posix":
        return
    for _ in range(MAX_KILL_ROUNDS):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(session_leader, signal.SIGKILL)
        descendants = list_descendant_processes(os.getpid())
        for process in descendants:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)
        if not descendants:
            return
        _reap_orphans(session_leader)
        time.sleep(0.002)


def _reap_orphans(excluded: int) -> None:
    """Collect ended orphans of this process, so that none stays as a zombie; not the first one."""
    for process, state, parent in _list_processes():
        if process != excluded and state == b"Z" and parent == os.getpid():
            with suppress(ChildProcessError):
                os.waitpid(process, os.WNOHANG)


def list_processes_with_token(token: str) -> list[int]:
    """Return processes with a token in their environment: those of a trial, also without its guard."""
    processes = []
    for entry in Path("/proc").iterdir() if Path("/proc/self/environ").exists() else ():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with suppress(OSError):
                if token.encode() in (entry / "environ").read_bytes():
                    processes.append(int(entry.name))
    return processes


def remove_shared_memory(creator: int) -> int:
    """Remove segments of shared memory that a process has left behind, and return how many."""
    removed_count = 0
    segments = Path("/proc/sysvipc/shm")
    for line in segments.read_text(encoding="ascii").splitlines()[1:] if segments.exists() else ():
        fields = line.split()
        if int(fields[4]) == creator:
            removed_count += c.CDLL(None).shmctl(int(fields[1]), 0, None) == 0
    return removed_count


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


def read_process_cpu_time(process: int) -> float:
    """Return user and system time of a process so far, in s; 0 where that is unknown."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
