"""Supervisors forked from a process that has imported their modules: for the many FMUs of one fault each.

Starting Python and importing takes two thirds of what such an FMU costs. All else is the auditor's own: a supervisor
has its session, its environment and its pipes, and runs as it does where it is started (``test_correct_fmus.py``).
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import IO, Any

MODULE = "mb2fmu.audit.behaviour.runner.fmu_process_supervisor"
HIGHEST_DESCRIPTOR = 256


class ForkedSupervisor:
    """What :mod:`supervised_trial_runs` needs of a ``Popen``."""

    def __init__(
        self, server: socket.socket, command: Sequence[str], *, stderr: IO[bytes], env: Mapping[str, str], **_: Any
    ) -> None:
        assert MODULE in command
        given, inwards = os.pipe()
        outwards, written = os.pipe()
        reported, report = os.pipe()
        request = {"request": command[-1], "environment": dict(env), "folder": str(Path.cwd())}
        passed = [given, written, stderr.fileno(), report]
        socket.send_fds(server, [json.dumps(request).encode()], passed)
        for descriptor in (given, written, report):
            os.close(descriptor)
        self._reported = os.fdopen(reported)
        self.stdin = os.fdopen(inwards, "w")
        self.stdout = os.fdopen(outwards, encoding="utf-8")
        self.pid = int(self._reported.readline())
        self.returncode: int | None = None

    def wait(self) -> int:
        """Return its exit code once it has ended."""
        if self.returncode is None:
            self.returncode = int(self._reported.readline())
            self._reported.close()
        return self.returncode

    def kill(self) -> None:
        """End it."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)


@contextmanager
def supervisor_server() -> Iterator[SimpleNamespace]:
    """Yield what takes the place of :mod:`subprocess` where the auditor starts its supervisors."""
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # These are read where a program starts; the others are each supervisor's own.
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    command = [sys.executable, "-P", __file__, str(other.fileno())]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, pass_fds=[other.fileno()], env=environment)
    other.close()
    with process, own:
        yield SimpleNamespace(Popen=partial(ForkedSupervisor, own), PIPE=subprocess.PIPE)


def serve(connection: socket.socket) -> None:
    """Fork a supervisor for each request, until there is nobody to ask for one."""
    from mb2fmu.audit.behaviour.runner import fmu_process_supervisor, trial_worker_process

    assert trial_worker_process  # supervisors import it when they start their first process
    gc.freeze()
    while True:
        message, descriptors, _, _ = socket.recv_fds(connection, 1 << 20, 4)
        if not message:
            return
        if os.fork() == 0:
            connection.close()
            watch(json.loads(message), descriptors, fmu_process_supervisor._run_supervisor_process)
        for descriptor in descriptors:
            os.close(descriptor)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def watch(request: dict[str, Any], descriptors: Sequence[int], run: Any) -> None:
    """Fork the supervisor, report its process and its exit code, and end."""
    *streams, report = descriptors
    process = os.fork()
    if process == 0:
        os.setsid()
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
        os.closerange(3, HIGHEST_DESCRIPTOR)
        os.environ.clear()
        os.environ.update(request["environment"])
        os.chdir(request["folder"])
        sys.argv[1:] = [request["request"]]
        try:
            run()
            sys.stdout.flush()
        except BaseException:  # noqa: BLE001  a fork must not go on as its parent would
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    for descriptor in streams:
        os.close(descriptor)
    os.write(report, f"{process}\n".encode())
    _, status = os.waitpid(process, 0)
    os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
