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
_SIGKILL = 9

MAX_FILE_BYTES = 256 * 1024**2
MAX_DESCRIPTORS = 512

# System calls by number (x86_64, aarch64); None: the processor has none of this name.
_SECCOMP_CALL_NUMBERS = {"x86_64": 317, "aarch64": 277}
_AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
MONITORED_CALLS: dict[str, tuple[int | None, int | None]] = {
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
_BPF_LOAD, _BPF_JUMP_EQUAL, _BPF_JUMP_SET, _BPF_RETURN = 0x20, 0x15, 0x45, 0x06
_SECCOMP_ALLOW, _SECCOMP_NOTIFY, _SECCOMP_ERRNO = 0x7FFF0000, 0x7FC00000, 0x00050000
_ENOSYS = 38
_CLONE_THREAD = 0x00010000
_WRITE_FLAGS = 0o1 | 0o2 | 0o100 | 0o1000
_LOCAL_SOCKET_FAMILIES = (1, 16)
"""Unix and netlink: the C library asks services of the machine by them."""


def _load_libc() -> c.CDLL:
    """Return the C library, with errno kept."""
    return c.CDLL(None, use_errno=True)


def become_parent_of_orphans() -> bool:
    """Make this process the parent of orphaned descendants; return whether the system can do that."""
    return LINUX and _load_libc().prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def end_process_with_parent(parent: int) -> None:
    """Let the system kill this process when its parent ends."""
    if LINUX:
        _load_libc().prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # it ended before this request


def limit_process_resources(memory: int | None) -> Iterator[str]:
    """Limit memory, files and descriptors of this process.

    Args:
        memory: Address space, in bytes; None: not limited.

    Yields:
        Messages on limits that this system lacks.
    """
    try:
        import resource
    except ImportError:
        yield "memory, files and descriptors of the FMU are not limited: this system has no limits of processes"
        return
    limits = {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": MAX_FILE_BYTES, "RLIMIT_NOFILE": MAX_DESCRIPTORS}
    if memory is not None:
        limits["RLIMIT_AS"] = memory
    else:
        yield "memory of the FMU is not limited: what runs it in the auditor's place needs much of it"
    for name, limit in limits.items():
        try:
            resource_number = getattr(resource, name)
            hard_limit = resource.getrlimit(resource_number)[1]
            new_limit = limit if hard_limit == resource.RLIM_INFINITY else min(limit, hard_limit)
            resource.setrlimit(resource_number, (new_limit, new_limit))
        except (AttributeError, OSError, ValueError):
            yield f"{name.removeprefix('RLIMIT_')} cannot be limited on this system"
    with suppress(OSError):  # if memory runs out all the same, it is this process that has to go
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


# --- Landlock


class _LandlockPathBeneathAttribute(c.Structure):
    """struct landlock_path_beneath_attr."""

    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", c.c_uint64), ("folder", c.c_int32))


_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _LANDLOCK_RESTRICT_SELF = 444, 445, 446
_WRITE_FILE, _MAKE_AND_REMOVE, _REFER, _TRUNCATE = 1 << 1, sum(1 << k for k in range(4, 13)), 1 << 13, 1 << 14


def confine_writes(folder: Path) -> str:
    """Let this process write only below a folder, and signal nobody outside.

    Returns:
        Message on a missing protection; empty if it is active.
    """
    if not LINUX:
        return "files that the FMU writes elsewhere are not prevented: this system has no Landlock"
    libc = _load_libc()
    version = libc.syscall(_LANDLOCK_CREATE_RULESET, None, c.c_size_t(0), c.c_uint(1))
    if version < 1:
        return "files that the FMU writes elsewhere are not prevented: this kernel has no Landlock"
    write_rights = _WRITE_FILE | _MAKE_AND_REMOVE | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    ruleset = struct.pack("QQQ", write_rights, 0, 3 if version >= 6 else 0)
    ruleset_handle = libc.syscall(
        _LANDLOCK_CREATE_RULESET, ruleset, c.c_size_t(len(ruleset) if version >= 6 else 8), c.c_uint(0)
    )
    if ruleset_handle < 0:
        return "files that the FMU writes elsewhere are not prevented: Landlock refuses"
    try:
        for path, rights in (
            (folder, write_rights),
            (Path("/dev/null"), _WRITE_FILE),
            (Path("/dev/zero"), _WRITE_FILE),
        ):
            descriptor = os.open(path, getattr(os, "O_PATH", 0))
            attribute = _LandlockPathBeneathAttribute(rights, descriptor)
            libc.syscall(_LANDLOCK_ADD_RULE, ruleset_handle, 1, c.byref(attribute), c.c_uint(0))
            os.close(descriptor)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if libc.syscall(_LANDLOCK_RESTRICT_SELF, ruleset_handle, c.c_uint(0)):
            return "files that the FMU writes elsewhere are not prevented: Landlock refuses"
    finally:
        os.close(ruleset_handle)
    return ""


# --- seccomp


def find_system_call_number(name: str) -> int | None:
    """Return the number of a system call on this machine; None if it has none."""
    column = {"x86_64": 0, "aarch64": 1}.get(platform.machine())
    return None if column is None else MONITORED_CALLS[name][column]


def _bpf_instruction(code: int, value: int, jump_if_true: int = 0, jump_if_false: int = 0) -> bytes:
    """Return one instruction of a BPF filter as bytes; `jump_if_true` and `jump_if_false` are jumps."""
    return struct.pack("HBBI", code, jump_if_true, jump_if_false, value)


def _build_filter(process: int) -> bytes:
    """Return the filter: calls listed in ``MONITORED_CALLS`` go to the watching process, others proceed."""
    instructions = [
        _bpf_instruction(_BPF_LOAD, 4),
        _bpf_instruction(_BPF_JUMP_EQUAL, _AUDIT_ARCHITECTURES[platform.machine()], 1, 0),
        _bpf_instruction(_BPF_RETURN, _SECCOMP_ALLOW),
    ]
    for name in MONITORED_CALLS:
        number = find_system_call_number(name)
        if number is None:
            continue
        call_filter = _build_call_filter(name, process)
        instructions += [
            _bpf_instruction(_BPF_LOAD, 0),
            _bpf_instruction(_BPF_JUMP_EQUAL, number, 0, len(call_filter)),
            *call_filter,
        ]
    return b"".join([*instructions, _bpf_instruction(_BPF_RETURN, _SECCOMP_ALLOW)])


def _build_call_filter(name: str, process: int) -> list[bytes]:
    """Return the filter of one system call, which decides by its arguments."""
    allow_call, notify_monitor = (
        _bpf_instruction(_BPF_RETURN, _SECCOMP_ALLOW),
        _bpf_instruction(_BPF_RETURN, _SECCOMP_NOTIFY),
    )
    if name == "clone3":  # its flags cannot be seen here; the C library falls back to clone
        return [_bpf_instruction(_BPF_RETURN, _SECCOMP_ERRNO | _ENOSYS)]
    if name == "clone":
        return [
            _bpf_instruction(_BPF_LOAD, 16),
            _bpf_instruction(_BPF_JUMP_SET, _CLONE_THREAD, 0, 1),
            allow_call,
            notify_monitor,
        ]
    if name in {"kill", "tgkill"}:
        return [
            _bpf_instruction(_BPF_LOAD, 16),
            _bpf_instruction(_BPF_JUMP_EQUAL, process, 0, 1),
            allow_call,
            notify_monitor,
        ]
    if name in {"open", "openat"}:
        return [
            _bpf_instruction(_BPF_LOAD, 24 if name == "open" else 32),
            _bpf_instruction(_BPF_JUMP_SET, _WRITE_FLAGS, 1, 0),
            allow_call,
            notify_monitor,
        ]
    if name == "socket":
        local_family, netlink_family = _LOCAL_SOCKET_FAMILIES
        return [
            _bpf_instruction(_BPF_LOAD, 16),
            _bpf_instruction(_BPF_JUMP_EQUAL, local_family, 1, 0),
            _bpf_instruction(_BPF_JUMP_EQUAL, netlink_family, 0, 1),
            allow_call,
            notify_monitor,
        ]
    return [notify_monitor]


def install_seccomp_filter(connection: socket.socket | None, *, is_remote: bool) -> str:
    """Send system calls of this process to the one at the other end of a socket.

    Args:
        connection: The socket; None where there is none.
        is_remote: The FMU runs in a host process, which needs calls that FMUs may not use.

    Returns:
        Message on a missing protection; empty if it is active.
    """
    message = "processes, connections and signals of the FMU are not watched"
    if connection is None or not LINUX or platform.machine() not in _SECCOMP_CALL_NUMBERS:
        return f"{message}: this system cannot do it"
    if is_remote:
        connection.sendall(b"-")
        return f"{message}: it is not run in the auditor's own process"
    libc = _load_libc()
    program = _build_filter(os.getpid())
    buffer = c.create_string_buffer(program, len(program))
    filter_header = struct.pack("HxxxxxxP", len(program) // 8, c.addressof(buffer))
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    new_listener = 1 << 3
    listener = libc.syscall(
        _SECCOMP_CALL_NUMBERS[platform.machine()], c.c_uint(1), c.c_uint(new_listener), filter_header
    )
    if listener < 0:
        connection.sendall(b"-")
        return f"{message}: seccomp is not available here"
    socket.send_fds(connection, [b"+"], [listener])
    os.close(listener)
    return ""
