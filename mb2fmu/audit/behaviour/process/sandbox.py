"""Confinement of the process that runs an FMU: limits, own folders, Landlock, watched system calls.

Each bound is taken where the system has it; what is lacking is named. Nothing here is needed to import it elsewhere.

Sources: landlock(7), seccomp_unotify(2), prctl(2), setrlimit(2) of the Linux manual pages.
"""

from __future__ import annotations

import ctypes as c
import os
import platform
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_CHILD_SUBREAPER = 1, 38, 36
_KILL = 9

LARGEST_FILE = 256 * 1024**2
MOST_DESCRIPTORS = 512

# System calls by number (x86_64, aarch64); None: the processor has none of this name.
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
CALLS: dict[str, tuple[int | None, int | None]] = {
    "socket": (41, 198), "clone": (56, 220), "clone3": (435, 435), "fork": (57, None), "vfork": (58, None),
    "execve": (59, 221), "execveat": (322, 281), "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138), "pidfd_send_signal": (424, 424), "ptrace": (101, 117),
    "process_vm_writev": (311, 271), "open": (2, None), "openat": (257, 56), "creat": (85, None),
    "unlink": (87, None), "unlinkat": (263, 35), "rename": (82, None), "renameat": (264, 38), "renameat2": (316, 276),
    "mkdir": (83, None), "mkdirat": (258, 34), "rmdir": (84, None), "symlink": (88, None), "symlinkat": (266, 36),
    "link": (86, None), "linkat": (265, 37), "chmod": (90, None), "fchmodat": (268, 53), "truncate": (76, 45),
    "mount": (165, 40), "umount2": (166, 39), "chroot": (161, 51), "reboot": (169, 142), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "sethostname": (170, 161), "init_module": (175, 105), "swapoff": (168, 225),
    "io_uring_setup": (425, 425), "unshare": (272, 97), "setns": (308, 268),
    "connect": (42, 203),
}  # fmt: skip
_LD, _JEQ, _JSET, _RET = 0x20, 0x15, 0x45, 0x06
_ALLOW, _NOTIFY, _ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_ENOSYS = 38
_THREAD = 0x00010000
_WRITES = 0o1 | 0o2 | 0o100 | 0o1000
_LOCAL_SOCKETS = (1, 16)
"""Unix and netlink: the C library asks services of the machine by them."""


def _libc() -> c.CDLL:
    """Return the C library, with errno kept."""
    return c.CDLL(None, use_errno=True)


def adopt_orphans() -> bool:
    """Make this process the parent of orphaned descendants; return whether the system can do that."""
    return LINUX and _libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def end_with_parent(parent: int) -> None:
    """Let the system kill this process when its parent ends."""
    if LINUX:
        _libc().prctl(_PR_SET_PDEATHSIG, _KILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # it ended before this was asked


def limit_resources(memory: int | None) -> Iterator[str]:
    """Limit memory, files and descriptors of this process.

    Args:
        memory: Address space, in bytes; None: not limited.

    Yields:
        What cannot be limited here.
    """
    try:
        import resource
    except ImportError:
        yield "memory, files and descriptors of the FMU are not limited: this system has no limits of processes"
        return
    wanted = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": LARGEST_FILE, "RLIMIT_NOFILE": MOST_DESCRIPTORS}
    if memory is not None:
        wanted["RLIMIT_AS"] = memory
    else:
        yield "memory of the FMU is not limited: what runs it in the auditor's place needs much of it"
    for name, most in wanted.items():
        try:
            number = getattr(resource, name)
            hard = resource.getrlimit(number)[1]
            kept = most if hard == resource.RLIM_INFINITY else min(most, hard)
            resource.setrlimit(number, (kept, kept))
        except (AttributeError, OSError, ValueError):
            yield f"{name.removeprefix('RLIMIT_')} cannot be limited on this system"
    with suppress(OSError):  # if memory runs out all the same, it is this process that has to go
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


# --- Landlock


class _Beneath(c.Structure):
    """struct landlock_path_beneath_attr."""

    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", c.c_uint64), ("folder", c.c_int32))


_CREATE, _ADD, _RESTRICT = 444, 445, 446
_WRITE_FILE, _MAKE_AND_REMOVE, _REFER, _TRUNCATE = 1 << 1, sum(1 << k for k in range(4, 13)), 1 << 13, 1 << 14


def confine_writes(folder: Path) -> str:
    """Let this process write only below a folder, and signal nobody outside.

    Returns:
        What is lacking; empty if it holds.
    """
    if not LINUX:
        return "files that the FMU writes elsewhere are not prevented: this system has no Landlock"
    libc = _libc()
    version = libc.syscall(_CREATE, None, c.c_size_t(0), c.c_uint(1))
    if version < 1:
        return "files that the FMU writes elsewhere are not prevented: this kernel has no Landlock"
    writes = _WRITE_FILE | _MAKE_AND_REMOVE | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    rules = struct.pack("QQQ", writes, 0, 3 if version >= 6 else 0)
    handle = libc.syscall(_CREATE, rules, c.c_size_t(len(rules) if version >= 6 else 8), c.c_uint(0))
    if handle < 0:
        return "files that the FMU writes elsewhere are not prevented: Landlock refuses"
    try:
        for path, allowed in ((folder, writes), (Path("/dev/null"), _WRITE_FILE), (Path("/dev/zero"), _WRITE_FILE)):
            place = os.open(path, getattr(os, "O_PATH", 0))
            attribute = _Beneath(allowed, place)
            libc.syscall(_ADD, handle, 1, c.byref(attribute), c.c_uint(0))
            os.close(place)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.syscall(_RESTRICT, handle, c.c_uint(0)):
            return "files that the FMU writes elsewhere are not prevented: Landlock refuses"
    finally:
        os.close(handle)
    return ""


# --- seccomp


def system_call_number(name: str) -> int | None:
    """Return the number of a system call on this machine; None if it has none."""
    place = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
    return None if place is None else CALLS[name][place]


def _statement(code: int, value: int, yes: int = 0, no: int = 0) -> bytes:
    """Return one instruction of a BPF filter as bytes; `yes` and `no` are jumps."""
    return struct.pack("HBBI", code, yes, no, value)


def _program(own: int) -> bytes:
    """Return the filter: calls listed in ``CALLS`` go to the watching process, others proceed."""
    parts = [_statement(_LD, 4), _statement(_JEQ, _ARCHITECTURE[platform.machine()], 1, 0), _statement(_RET, _ALLOW)]
    for name in CALLS:
        number = system_call_number(name)
        if number is None:
            continue
        body = _judgement(name, own)
        parts += [_statement(_LD, 0), _statement(_JEQ, number, 0, len(body)), *body]
    return b"".join([*parts, _statement(_RET, _ALLOW)])


def _judgement(name: str, own: int) -> list[bytes]:
    """Return what is done with one system call, by its arguments."""
    allow, ask = _statement(_RET, _ALLOW), _statement(_RET, _NOTIFY)
    if name == "clone3":  # its flags cannot be seen here; the C library falls back to clone
        return [_statement(_RET, _ERRNO | _ENOSYS)]
    if name == "clone":
        return [_statement(_LD, 16), _statement(_JSET, _THREAD, 0, 1), allow, ask]
    if name in {"kill", "tgkill"}:
        return [_statement(_LD, 16), _statement(_JEQ, own, 0, 1), allow, ask]
    if name in {"open", "openat"}:
        return [_statement(_LD, 24 if name == "open" else 32), _statement(_JSET, _WRITES, 1, 0), allow, ask]
    if name == "socket":
        local, netlink = _LOCAL_SOCKETS
        return [_statement(_LD, 16), _statement(_JEQ, local, 1, 0), _statement(_JEQ, netlink, 0, 1), allow, ask]
    return [ask]


def monitor_system_calls(to: socket.socket | None, *, far: bool) -> str:
    """Send system calls of this process to the one at the other end of a socket.

    Args:
        to: The socket; None where there is none.
        far: The FMU runs in a process that this one starts, which has to do much that FMUs may not.

    Returns:
        What is lacking; empty if it holds.
    """
    lacking = "processes, connections and signals of the FMU are not watched"
    if to is None or not LINUX or platform.machine() not in _SECCOMP:
        return f"{lacking}: this system cannot do it"
    if far:
        to.sendall(b"-")
        return f"{lacking}: it is not run in the auditor's own process"
    libc = _libc()
    program = _program(os.getpid())
    buffer = c.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, c.addressof(buffer))
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    new_listener = 1 << 3
    handle = libc.syscall(_SECCOMP[platform.machine()], c.c_uint(1), c.c_uint(new_listener), head)
    if handle < 0:
        to.sendall(b"-")
        return f"{lacking}: seccomp is not available here"
    socket.send_fds(to, [b"+"], [handle])
    os.close(handle)
    return ""
