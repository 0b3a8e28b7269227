"""System calls of a running FMU: the watching process reports, allows or refuses them.

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

from mb2fmu.audit.behaviour.process.sandbox import CALLS, system_call_number

_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_CLONES = frozenset({"clone", "fork", "vfork"})
_EXECUTES = frozenset({"execve", "execveat"})
_SIGNALS = frozenset({"kill", "tkill", "tgkill", "rt_sigqueueinfo", "pidfd_send_signal"})
_FILES = frozenset({
    "open", "openat", "creat", "unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir",
    "symlink", "symlinkat", "link", "linkat", "chmod", "fchmodat", "truncate",
})  # fmt: skip
_VERBS = {"unlink": "removes", "unlinkat": "removes", "rmdir": "removes", "mkdir": "makes", "mkdirat": "makes",
          "rename": "renames", "renameat": "renames", "renameat2": "renames", "chmod": "changes the mode of",
          "fchmodat": "changes the mode of"}  # fmt: skip
HERE = -100
"""The descriptor that stands for the working folder."""

_UNIX = struct.pack("=H", 1)
_SERVICES = ("/var/run/nscd/", "/run/nscd/", "/var/run/nslcd/", "/run/nslcd/", "/run/systemd/userdb/", "/var/lib/sss/")
"""Where the C library asks for names of users and machines."""

_SPARE = ("/dev/null", "/dev/zero", "/dev/tty", "/proc/self/")


class SystemCallMonitor:
    """Answers the system calls that a running process sends to this one.

    Args:
        listener: Descriptor of its notifications.
        child: Its number.
        folder: Where it may write.
        tool: It says that it needs a tool: processes and connections are its right.
        tell: Is told each deed: a rule, and a message.
    """

    def __init__(
        self, listener: int, child: int, folder: Path, *, tool: bool, tell: Callable[[str, str], None]
    ) -> None:
        self.listener, self._child, self._folder, self._tool, self._tell = listener, child, folder, tool, tell
        self._names = {number: name for name in CALLS if (number := system_call_number(name)) is not None}

    def close(self) -> None:
        """Stop watching."""
        os.close(self.listener)

    def answer(self) -> None:
        """Take one notification and answer it."""
        import fcntl

        notice = bytearray(80)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, notice)
        except OSError:
            return  # the process is gone
        key, process, _, number, _, _, *arguments = struct.unpack("QIIiIQ6Q", notice)
        refused = self._judge(process, self._names.get(number, str(number)), arguments)
        reply = struct.pack("QqiI", key, 0, -refused, 0 if refused else _CONTINUE)
        with suppress(OSError):
            fcntl.ioctl(self.listener, _SEND, bytearray(reply))

    def _judge(self, process: int, name: str, arguments: list[int]) -> int:
        """Return the error number for a call; 0: it proceeds."""
        if name in _FILES:
            return self._file(process, name, arguments)
        if name in _SIGNALS:
            return self._signal(process, name, arguments)
        if name == "connect":
            return self._connect(process, arguments)
        if name in _CLONES | _EXECUTES or name == "socket":
            if self._tool:
                return 0
            if name == "socket":
                family = {2: "IPv4", 10: "IPv6"}.get(arguments[0], f"family {arguments[0]}")
                self._tell("host.network", f"opens a network connection ({family})")
            elif name in _EXECUTES:
                self._tell("host.processes", f"runs {_text(process, arguments[name == 'execveat'])}")
            else:
                self._tell("host.processes", "starts a process of its own")
            return errno.EPERM
        self._tell("host.system", f"calls {name}, which is not an FMU's business")
        return errno.EPERM

    def _connect(self, process: int, arguments: list[int]) -> int:
        """Allow services that the C library itself asks; report and refuse (EACCES) other ones of this machine."""
        address = _bytes(process, arguments[1], min(arguments[2], 128))
        name = address[2:].strip(b"\0").decode("utf-8", "backslashreplace")
        if self._tool or address[:2] != _UNIX or not name or name.startswith(_SERVICES):
            return 0
        self._tell("host.network", f"connects to another program by {name}")
        return errno.EACCES

    def _signal(self, process: int, name: str, arguments: list[int]) -> int:
        """Allow signals to the trial's own process and threads; report and refuse (EPERM) all others."""
        target = struct.unpack("i", struct.pack("I", arguments[0] & 0xFFFFFFFF))[0]
        if name == "pidfd_send_signal":
            target = _behind(process, target)
        if target in {0, self._child, -self._child} or (
            name == "tkill" and Path(f"/proc/{self._child}/task/{target}").exists()
        ):
            return 0
        sent = arguments[2] if name == "tgkill" else arguments[1]
        if sent == 0:
            return 0  # asks whether somebody is there
        whom = {os.getpid(): "the process that hosts it", -1: "all processes"}.get(target, f"process {target}")
        try:
            what = signal.Signals(sent).name
        except ValueError:
            what = f"signal {sent}"
        self._tell("host.system", f"sends {what} to {whom}")
        return errno.EPERM

    def _file(self, process: int, name: str, arguments: list[int]) -> int:
        """Allow writing inside the trial's folders; report and refuse (EACCES) paths outside."""
        base, place = _link(f"/proc/{process}/cwd"), 0
        if name.endswith(("at", "at2")):
            directory = struct.unpack("i", struct.pack("I", arguments[0] & 0xFFFFFFFF))[0]
            if directory != HERE:
                base = _link(f"/proc/{process}/fd/{directory}")
            place = 1
        if name in {"symlink", "symlinkat"}:
            place += 1
        written = _text(process, arguments[place])
        path = os.path.normpath(os.path.join(base, written))  # noqa: PTH118  nothing of it is followed
        if path.startswith((f"{self._folder}/", *_SPARE)) or not written:
            return 0
        self._tell("host.files", f"{_VERBS.get(name, 'writes')} {path}, which is outside its folders")
        return errno.EACCES


def _behind(process: int, descriptor: int) -> int:
    """Return the process that a descriptor of a process stands for; that descriptor, where it is none."""
    with suppress(OSError, ValueError, StopIteration):
        lines = Path(f"/proc/{process}/fdinfo/{descriptor}").read_text(encoding="ascii").splitlines()
        return max(0, int(next(line.split()[1] for line in lines if line.startswith("Pid:")))) or descriptor
    return descriptor


def _link(path: str) -> str:
    """Return the target of a symbolic link; empty if there is none."""
    try:
        return str(Path(path).readlink())
    except OSError:
        return ""


def _bytes(process: int, address: int, size: int) -> bytes:
    """Return memory of another process; less than asked for, or nothing, where it cannot be read."""
    try:
        with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            return memory.read(size) or b""
    except (OSError, OverflowError, ValueError):
        return b""


def _text(process: int, address: int) -> str:
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


def receive_listener(end: socket.socket) -> int | None:
    """Return the descriptor of notifications that the running process hands over; None if it has none."""
    end.settimeout(10.0)
    try:
        _, handles, _, _ = socket.recv_fds(end, 1, 1)
    except OSError:
        return None
    return handles[0] if handles else None
