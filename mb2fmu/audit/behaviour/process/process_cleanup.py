"""Child processes: find them, measure their time, and end all of them."""

from __future__ import annotations

import ctypes as c
import os
import signal
import time
from contextlib import suppress
from pathlib import Path

MAX_KILL_ROUNDS = 50
"""Most rounds of searching and killing: a process that starts others faster is not found."""


def _map_parents() -> dict[int, int]:
    """Return process → its parent, for all running processes, without zombies."""
    parents = {}
    for entry in Path("/proc").iterdir() if Path("/proc/self/stat").exists() else ():
        if entry.name.isdigit():
            with suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if fields[0] not in {"Z", "X"}:
                    parents[int(entry.name)] = int(fields[1])
    return parents


def list_descendant_processes(ancestor: int) -> list[int]:
    """Return all descendants of a process."""
    parents = _map_parents()
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
    for entry in Path("/proc").iterdir() if Path("/proc/self/stat").exists() else ():
        if entry.name.isdigit() and int(entry.name) != excluded:
            with suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
                if fields[0] == "Z" and int(fields[1]) == os.getpid():
                    os.waitpid(int(entry.name), os.WNOHANG)


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
