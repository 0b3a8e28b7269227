"""Start the processes that run FMUs by fmpy: forks of a server that has imported it, or new ones.

The server (:mod:`mb2fmu.fmu.runner.fork_server`, on Linux) is started with the first run and ends with this process. A
run whose server is not there, or has just ended, has a new process. A command forks the server at its beginning, which
takes a third of what an interpreter takes that starts and imports NumPy anew.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mb2fmu.errors import ToolError
from mb2fmu.fmu import runner, toolchain
from mb2fmu.fmu.runner import fork_server
from mb2fmu.temporary_files import make_temporary_folder

CAN_FORK = sys.platform == "linux"
"""Elsewhere libraries do not promise to work in a forked process."""

REQUEST_FILE = "request.json"
_END_TIME_LIMIT_S = 5.0
_POLL_INTERVAL_S = 0.001


@dataclass(frozen=True, slots=True)
class CompletedFmuProcess:
    """How a process ended that ran an FMU.

    Attributes:
        code: Exit code, or minus the number of the signal that killed it.
        stdout: What it wrote.
        stderr: Likewise.
    """

    code: int
    stdout: str
    stderr: str


class _ForkServerEndedError(Exception):
    """The server ended before the process of a run did."""


class _ForkedServerProcess:
    """A server that is a fork of this process, with as much of ``subprocess.Popen`` as its client uses."""

    def __init__(self) -> None:
        import numpy  # noqa: F401, ICN001  the fork has it from here, and this process needs it soon

        requests, answers = os.pipe(), os.pipe()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # what waits there would be written twice
        self.pid = os.fork()
        if self.pid == 0:
            fork_server.serve_as_fork(requests, answers)
        os.close(requests[0])
        os.close(answers[1])
        self.stdin, self.stdout = os.fdopen(requests[1], "wb"), os.fdopen(answers[0], "rb")
        self._exit_code: int | None = None

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        if self._exit_code is None:
            with suppress(ChildProcessError):  # another thread asks just now
                ended_process_id, status = os.waitpid(self.pid, os.WNOHANG)
                if ended_process_id:
                    self._exit_code = os.waitstatus_to_exitcode(status)
        return self._exit_code

    def wait(self, timeout: float = float("inf")) -> int:
        """Return the exit code once it has ended.

        Raises:
            subprocess.TimeoutExpired: If that takes longer, in s.
        """
        deadline = time.monotonic() + timeout
        while (exit_code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("the server", timeout)
            time.sleep(_POLL_INTERVAL_S)
        return exit_code

    def kill(self) -> None:
        """Kill it if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def _start_server_interpreter() -> subprocess.Popen[bytes]:
    """Return a server that is a new interpreter."""
    return subprocess.Popen(  # noqa: S603  our own interpreter and server
        [sys.executable, "-P", _script("fork_server")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


class _ForkServerClient:
    """A server's process, and the runs that it was requested."""

    def __init__(self, process: _ForkedServerProcess | None = None) -> None:
        self._process = process or _start_server_interpreter()
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._codes: dict[int, Future[int]] = {}
        self._has_ended = False
        self._count = 0
        threading.Thread(target=self._read_ends, daemon=True).start()
        atexit.register(self.end)

    def is_alive(self) -> bool:
        """Return whether it takes requests of this process (a fork of this process needs a server of its own)."""
        return self._owner == os.getpid() and self._process.poll() is None

    def run(self, folder: Path, time_limit: float) -> int:
        """Run the request of a folder; return the exit code of its process.

        Raises:
            TimeoutError: If it takes longer than the limit, in s.
            _ForkServerEndedError: If the server ends.
        """
        with self._lock:
            if self._has_ended:  # its pipe may still take the request for a moment, and nobody would answer
                raise _ForkServerEndedError
            self._count += 1
            number, code = self._count, Future[int]()
            self._codes[number] = code
        request = {"run": number, "request": str(folder / REQUEST_FILE), "folder": str(folder)}
        try:
            self._send({**request, "environment": dict(os.environ)})
            return code.result(time_limit)
        except BaseException:
            with suppress(_ForkServerEndedError, TimeoutError):  # its folder is not removed before it has ended
                self._send({"stop": number})
                code.result(_END_TIME_LIMIT_S)
            raise

    def _send(self, request: dict[str, object]) -> None:
        """Write a request to the server."""
        assert self._process.stdin is not None
        try:
            with self._lock:
                self._process.stdin.write(json.dumps(request).encode() + b"\n")
                self._process.stdin.flush()
        except (OSError, ValueError) as error:
            raise _ForkServerEndedError from error

    def _read_ends(self) -> None:
        """Hand on the exit codes as they come; when the server ends, notify all that wait."""
        assert self._process.stdout is not None
        with self._process.stdout as end_lines:
            for line in end_lines:
                end = json.loads(line)
                self._codes.pop(end["run"]).set_result(end["code"])
        with self._lock:
            self._has_ended = True
            for code in self._codes.values():
                code.set_exception(_ForkServerEndedError())
            self._codes.clear()

    def end(self) -> None:
        """End the server and all that it runs."""
        if self._owner != os.getpid():
            return
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(_END_TIME_LIMIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_start_lock = threading.Lock()


@functools.cache
def _server_slot() -> list[_ForkServerClient]:
    """Return the list that holds the server, if there is one."""
    return []


def _find_server() -> _ForkServerClient:
    """Return the server of this process; start one if there is none."""
    with _start_lock:
        slot = _server_slot()
        if not slot or not slot[0].is_alive():
            for ended_server in slot:
                ended_server.end()
                atexit.unregister(ended_server.end)
            slot[:] = [_ForkServerClient()]
        return slot[0]


def fork_server_early() -> None:
    """Start the server of this process as its fork; nothing where that is impossible.

    For commands only: the fork ends by an exception that leaves all that the caller does. It is early while this
    process has one thread, and has not imported what no run of an FMU needs.
    """
    with _start_lock:
        if CAN_FORK and threading.active_count() == 1 and not _server_slot():
            _server_slot().append(_ForkServerClient(_ForkedServerProcess()))


def compile_cvode_callbacks(folder: Path) -> str | None:
    """Write the library of CVODE's callbacks (``cvode_callbacks.c``); return its file, None without a compiler."""
    name = "cvode_callbacks"
    source = f"{name}.c"
    content = (resources.files(runner) / source).read_bytes()
    try:
        library = toolchain.compile_library_bytes({source: content}, name, often=True)
    except ToolError:
        return None
    file = folder / f"{name}{toolchain.host_platform().extension}"
    file.write_bytes(library)
    return str(file)


def run_request_in_process(folder: Path, time_limit: float) -> CompletedFmuProcess:
    """Run the request of a folder in a process of its own.

    Args:
        folder: Holds ``request.json``; the process works in it.
        time_limit: In s.

    Raises:
        TimeoutError: If it takes longer.
    """
    if CAN_FORK:
        with suppress(_ForkServerEndedError):
            code = _find_server().run(folder, time_limit)
            return CompletedFmuProcess(code, _read_output(folder / "stdout.txt"), _read_output(folder / "stderr.txt"))
    command = [sys.executable, "-P", _script("fmu_run_process"), str(folder / REQUEST_FILE)]
    try:
        completed_process = subprocess.run(  # noqa: S603  our own interpreter and driver
            command, capture_output=True, timeout=time_limit, check=False, cwd=folder, text=True, errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise TimeoutError from error
    return CompletedFmuProcess(completed_process.returncode, completed_process.stdout, completed_process.stderr)


def run_script_process(script: str, arguments: Sequence[str], time_limit: float) -> subprocess.CompletedProcess[str]:
    """Run a script in a process of its own, as ``python -c`` does, but sooner if it imports fmpy.

    Args:
        script: What it does.
        arguments: Of the script; paths are absolute, as it works in a folder of its own.
        time_limit: In s.

    Raises:
        subprocess.TimeoutExpired: If it takes longer.
    """
    with make_temporary_folder("run a script") as folder:
        request = {"script": script, "arguments": list(arguments)}
        (folder / REQUEST_FILE).write_text(json.dumps(request), encoding="utf-8")
        try:
            end = run_request_in_process(folder, time_limit)
        except TimeoutError as error:
            raise subprocess.TimeoutExpired("the script", time_limit) from error
    return subprocess.CompletedProcess((), end.code, end.stdout, end.stderr)


def _script(name: str) -> str:
    """Return the path of a script of the runner."""
    return str(Path(runner.__file__).with_name(f"{name}.py"))


def _read_output(path: Path) -> str:
    """Return what a process wrote; empty if it did not come to that."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
