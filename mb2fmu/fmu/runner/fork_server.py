"""Fork a process for each run from one that has imported fmpy: ``python fork_server.py``, or a fork itself (Linux).

Importing fmpy and NumPy takes longer than most runs. Each line of standard input is JSON, one of

- ``{"run": number, "request": file, "folder": folder, "environment": {…}}``: a process is forked that works in
  ``folder`` as ``fmu_run_process`` does with the request; its output goes to ``stdout.txt`` and ``stderr.txt`` there;
- ``{"stop": number}``: its process is killed.

As each process ends, standard output gets ``{"run": number, "code": …}``: its exit code, or minus the signal that ended
it. When standard input closes, all processes are killed and the server ends; it also ends by itself after a while
without any request.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

IDLE_TIME_S = 120.0
"""Time without requests and processes after which the server ends, in s."""
_PR_SET_PDEATHSIG = 1


class _ForkServer:
    """Forks processes for requests until standard input closes."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._unread = b""
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_writer, False)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group: the client decides
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake_writer)

    def serve(self) -> dict[str, Any] | None:
        """Serve requests; return one in each forked process, and None in the server at its end."""
        while True:
            limit = None if self._numbers else IDLE_TIME_S
            ready = select.select([0, self._wake_reader], [], [], limit)[0]
            if self._wake_reader in ready:
                os.read(self._wake_reader, 4096)
                self._report_ended_processes()
            if 0 in ready:
                for request in self._read_requests():
                    if request is None:
                        self._kill(*self._numbers.values())
                        return None
                    if "stop" in request:
                        self._kill(request["stop"])
                    elif self._is_forked(request):
                        return request
            if not ready:
                return None

    def _read_requests(self) -> Iterator[dict[str, Any] | None]:
        """Yield what standard input holds, and None if it is closed."""
        block = os.read(0, 1 << 16)
        *lines, self._unread = (self._unread + block).split(b"\n")
        yield from map(json.loads, lines)
        if not block:
            yield None

    def _is_forked(self, request: dict[str, Any]) -> bool:
        """Fork a process for a request; return whether this is it."""
        server = os.getpid()
        process_id = os.fork()
        if process_id:
            self._numbers[process_id] = request["run"]
            return False
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # it does not outlive a server that is killed
        if os.getppid() != server:  # which may have been killed before
            os._exit(1)
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(self._wake_reader)
        os.close(self._wake_writer)
        return True

    def _report_ended_processes(self) -> None:
        """Write a line for each process that has ended."""
        with suppress(ChildProcessError):
            while True:
                process_id, status = os.waitpid(-1, os.WNOHANG)
                if not process_id:
                    return
                number = self._numbers.pop(process_id, None)
                if number is not None:
                    code = os.waitstatus_to_exitcode(status)
                    sys.stdout.write(json.dumps({"run": number, "code": code}) + "\n")
                    sys.stdout.flush()

    def _kill(self, *numbers: int) -> None:
        """Kill the processes of some requests, if they still run."""
        for process_id, number in self._numbers.items():
            if number in numbers:
                os.kill(process_id, signal.SIGKILL)


def _enter_request_folder(request: dict[str, Any]) -> None:
    """Take the request's environment and folder, and write output into files there."""
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    for descriptor, name, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, "stdout.txt", os.O_WRONLY | os.O_CREAT),
        (2, "stderr.txt", os.O_WRONLY | os.O_CREAT),
    ):
        file = os.open(name, flags, 0o600)
        os.dup2(file, descriptor)
        os.close(file)


def _keep_imported_modules(names: tuple[str, ...]) -> None:
    """Leave modules as they are when the interpreter ends; what a run has brought is freed as in any process.

    To free the server's objects, a fork would copy its memory page by page, which takes half as long as a short run.
    The system takes back all memory anyway.
    """
    gc.freeze()  # nor does anybody look through them for cycles
    kept_modules = [sys.modules.pop(name, None) for name in names if name not in {"sys", "builtins", "__main__"}]
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept_modules))


def _run_fork_server() -> NoReturn:
    """Serve; a forked process works on its request and ends as any process does, with all that runs at an exit."""
    gc.set_threshold(50_000, 20, 20)  # what is imported stays: nobody looks through it often for cycles
    from mb2fmu.fmu.runner.fmu_run_process import run_fmu_process_request

    gc.freeze()  # nor any fork
    atexit.register(_keep_imported_modules, tuple(sys.modules))  # before all that a run registers: called last
    request = _ForkServer().serve()
    if request is not None:
        _enter_request_folder(request)
        run_fmu_process_request(Path(request["request"]))
    sys.exit(0)


def serve_as_fork(requests: tuple[int, int], answers: tuple[int, int]) -> NoReturn:
    """Serve in a fork of the client, and end as the script does; what the client has set for itself is undone.

    Args:
        requests: Pipe, both ends, that becomes the standard input.
        answers: Pipe that becomes the standard output.
    """
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    sys.excepthook = sys.__excepthook__
    if not sys.flags.safe_path:
        del sys.path[0]  # the folder of the client's script, or where it works
    no_output = os.open(os.devnull, os.O_WRONLY)
    for descriptor, target in ((requests[0], 0), (answers[1], 1), (no_output, 2)):
        os.dup2(descriptor, target)
    for descriptor in (*requests, *answers, no_output):
        os.close(descriptor)
    try:
        _run_fork_server()
    except Exception:  # noqa: BLE001  of a run: the client's commands would report it as theirs
        traceback.print_exc()
        sys.exit(1)


if __name__ == "__main__":
    _run_fork_server()
