"""System calls of a running FMU: the supervisor reports, allows or refuses them.

A refused call comes back as not permitted; the FMU has to live with that, as on a machine that is locked down.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from mb2fmu.audit.behaviour.process.sandbox import MONITORED_CALLS, find_system_call_number

_IOCTL_RECEIVE, _IOCTL_SEND = 0xC0502100, 0xC0182101
_CONTINUE_FLAG = 1
_CLONE_CALLS = frozenset({"clone", "fork", "vfork"})
_EXECUTE_CALLS = frozenset({"execve", "execveat"})
_SIGNAL_CALLS = frozenset({"kill", "tkill", "tgkill", "rt_sigqueueinfo", "pidfd_send_signal"})
_FILE_CALLS = frozenset({
    "open", "openat", "creat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir",
    "symlink", "symlinkat", "link", "linkat", "chmod", "fchmodat", "truncate",
})  # fmt: skip
_FILE_VERBS = {"unlink": "removes", "unlinkat": "removes", "rmdir": "removes", "mkdir": "makes", "mkdirat": "makes",
          "rename": "renames", "renameat": "renames", "renameat2": "renames", "chmod": "changes the mode of",
          "fchmodat": "changes the mode of"}  # fmt: skip
AT_FDCWD = -100
"""The descriptor that stands for the working folder."""

_UNIX_FAMILY = struct.pack("=H", 1)
_SERVICE_PATHS = (
    "/var/run/nscd/",
    "/run/nscd/",
    "/var/run/nslcd/",
    "/run/nslcd/",
    "/run/systemd/userdb/",
    "/var/lib/sss/",
)
"""Where the C library requests names of users and machines."""

_ALLOWED_PATHS = ("/dev/null", "/dev/zero", "/dev/tty", "/proc/self/")


class SystemCallMonitor:
    """Answers the system calls that a running process sends to this one.

    Args:
        listener: Descriptor of its notifications.
        worker: Process id of the worker.
        folder: Where it may write.
        needs_tool: The FMU declares needsExecutionTool: processes and connections are allowed.
        report: Called with a rule and a message for each refused call.
    """

    def __init__(
        self, listener: int, worker: int, folder: Path, *, needs_tool: bool, report: Callable[[str, str], None]
    ) -> None:
        self.listener, self._worker, self._folder, self._needs_tool, self._report = (
            listener,
            worker,
            folder,
            needs_tool,
            report,
        )
        self._call_names = {
            number: name for name in MONITORED_CALLS if (number := find_system_call_number(name)) is not None
        }

    def close(self) -> None:
        """Stop watching."""
        os.close(self.listener)

    def handle_notification(self) -> None:
        """Receive one notification and send the decision."""
        import fcntl

        notification = bytearray(80)
        try:
            fcntl.ioctl(self.listener, _IOCTL_RECEIVE, notification)
        except OSError:
            return  # the process is gone
        notification_id, process, _, number, _, _, *arguments = struct.unpack("QIIiIQ6Q", notification)
        error_number = self._decide_system_call(process, self._call_names.get(number, str(number)), arguments)
        response = struct.pack("QqiI", notification_id, 0, -error_number, 0 if error_number else _CONTINUE_FLAG)
        with suppress(OSError):
            fcntl.ioctl(self.listener, _IOCTL_SEND, bytearray(response))

    def _decide_system_call(self, process: int, name: str, arguments: list[int]) -> int:
        """Return the error number for a call; 0: it proceeds."""
        if name in _FILE_CALLS:
            return self._decide_file_access(process, name, arguments)
        if name in _SIGNAL_CALLS:
            return self._decide_signal(process, name, arguments)
        if name == "connect":
            return self._decide_connection(process, arguments)
        if name in _CLONE_CALLS | _EXECUTE_CALLS or name == "socket":
            if self._needs_tool:
                return 0
            if name == "socket":
                family = {2: "IPv4", 10: "IPv6"}.get(arguments[0], f"family {arguments[0]}")
                self._report("host.network", f"opens a network connection ({family})")
            elif name in _EXECUTE_CALLS:
                self._report("host.processes", f"runs {_read_string(process, arguments[name == 'execveat'])}")
            else:
                self._report("host.processes", "starts a process of its own")
            return errno.EPERM
        self._report("host.system", f"calls {name}, which is not allowed to an FMU")
        return errno.EPERM

    def _decide_connection(self, process: int, arguments: list[int]) -> int:
        """Allow services that the C library uses; report and refuse (EACCES) other local services."""
        address = _read_memory(process, arguments[1], min(arguments[2], 128))
        socket_path = address[2:].strip(b"\0").decode("utf-8", "backslashreplace")
        if self._needs_tool or address[:2] != _UNIX_FAMILY or not socket_path or socket_path.startswith(_SERVICE_PATHS):
            return 0
        self._report("host.network", f"connects to another program by {socket_path}")
        return errno.EACCES

    def _decide_signal(self, process: int, name: str, arguments: list[int]) -> int:
        """Allow signals to the trial's own process and threads; report and refuse (EPERM) all others."""
        target = struct.unpack("i", struct.pack("I", arguments[0] & 0xFFFFFFFF))[0]
        if name == "pidfd_send_signal":
            target = _find_descriptor_process(process, target)
        if target in {0, self._worker, -self._worker} or (
            name == "tkill" and Path(f"/proc/{self._worker}/task/{target}").exists()
        ):
            return 0
        signal_number = arguments[2] if name == "tgkill" else arguments[1]
        if signal_number == 0:
            return 0  # asks whether somebody is there
        target_text = {os.getpid(): "the process that hosts it", -1: "all processes"}.get(target, f"process {target}")
        try:
            signal_text = signal.Signals(signal_number).name
        except ValueError:
            signal_text = f"signal {signal_number}"
        self._report("host.system", f"sends {signal_text} to {target_text}")
        return errno.EPERM

    def _decide_file_access(self, process: int, name: str, arguments: list[int]) -> int:
        """Allow writing inside the trial's folders; report and refuse (EACCES) paths outside."""
        folder, position = _read_link(f"/proc/{process}/cwd"), 0
        if name.endswith(("at", "at2")):
            directory = struct.unpack("i", struct.pack("I", arguments[0] & 0xFFFFFFFF))[0]
            if directory != AT_FDCWD:
                folder = _read_link(f"/proc/{process}/fd/{directory}")
            position = 1
        if name in {"symlink", "symlinkat"}:
            position += 1
        given_path = _read_string(process, arguments[position])
        path = os.path.normpath(os.path.join(folder, given_path))  # noqa: PTH118  nothing of it is followed
        if path.startswith((f"{self._folder}/", *_ALLOWED_PATHS)) or not given_path:
            return 0
        self._report("host.files", f"{_FILE_VERBS.get(name, 'writes')} {path}, which is outside its folders")
        return errno.EACCES


def _find_descriptor_process(process: int, descriptor: int) -> int:
    """Return the process that a descriptor of a process stands for; that descriptor, where it is none."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{process}/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
        return max(0, int(next(line.split()[1] for line in lines if line.startswith("Pid:")))) or descriptor
    return descriptor


def _read_link(path: str) -> str:
    """Return the target of a symbolic link; empty if there is none."""
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def _read_memory(process: int, address: int, size: int) -> bytes:
    """Return memory of another process; less than requested, or nothing, where it cannot be read."""
    try:
        with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size) or b""
    except (OSError, OverflowError, ValueError):
        return b""


def _read_string(process: int, address: int) -> str:
    """Return a string of another process, as far as the end of its page."""
    try:
        with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            data = memory.read(4096 - address % 4096) or b""
            if b"\0" not in data:
                data += memory.read(4096) or b""
    except (OSError, OverflowError, ValueError):
        return ""
    return data.partition(b"\0")[0].decode("utf-8", "replace")


def receive_seccomp_descriptor(connection: socket.socket) -> int | None:
    """Return the descriptor of notifications that the running process hands over; None if it has none."""
    connection.settimeout(10.0)
    try:
        _, descriptors, _, _ = socket.recv_fds(connection, 1, 1)
    except OSError:
        return None
    return descriptors[0] if descriptors else None
