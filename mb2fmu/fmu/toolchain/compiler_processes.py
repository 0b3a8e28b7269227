"""``CompilerProcesses``: compilers that run side by side and can be stopped together."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from mb2fmu.errors import Fault, ToolError, describe_process_end

COMPILER_TIME_LIMIT_S = 1800.0
"""In s, for one call; the first time for Windows takes minutes, any other time less than ten seconds."""
_DISK_FULL_MESSAGES = ("No space left on device", "NoSpaceLeft", "DiskQuota", "Disk quota exceeded", "not enough space")
"""What compilers say when there is no room for their files."""
_OUT_OF_MEMORY_MESSAGES = ("OutOfMemory", "out of memory", "Cannot allocate memory", "killed by SIGKILL")
"""What they say, and how they end, when the machine has no memory left."""


class CompilerProcesses:
    """Runs commands, from any thread, until it is stopped."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, command: Sequence[str], work: Path, variables: Mapping[str, str], what: str) -> str:
        """Run a command to its end.

        Args:
            command: Our compiler on our sources.
            work: Its folder.
            variables: Its environment.
            what: It is about, for messages.

        Returns:
            What it said.

        Raises:
            ToolError: If it cannot be started, fails, takes too long, or was stopped.
        """
        try:
            process = self._started(command, work, variables)
        except OSError as error:
            raise make_command_failure_error(what, command, f"cannot be started: {error}", "") from error
        if process is None:
            raise make_command_failure_error(what, command, "was not begun any more", "")
        try:
            printed, _ = process.communicate(timeout=COMPILER_TIME_LIMIT_S)
        except subprocess.TimeoutExpired as late:
            raise make_command_failure_error(
                what, command, f"did not finish within {COMPILER_TIME_LIMIT_S:g} s", ""
            ) from late
        finally:
            self._ended(process)
        output = printed.decode(errors="replace").strip()
        if process.returncode != 0:
            raise make_command_failure_error(what, command, describe_process_end(process.returncode), output)
        return output

    def stop(self) -> None:
        """End all running commands and begin no more; callers that wait for one get an error."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill_process_group(process)

    def _started(
        self, command: Sequence[str], work: Path, variables: Mapping[str, str]
    ) -> subprocess.Popen[bytes] | None:
        """Return the process; None after the end."""
        with self._lock:
            if self._stopped:
                return None
            process = subprocess.Popen(  # noqa: S603 (our compiler, our sources)
                command,
                cwd=work,
                env=dict(variables),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # what it starts itself ends with it
            )
            self._running.add(process)
            return process

    def _ended(self, process: subprocess.Popen[bytes]) -> None:
        """Remove a process from the running ones: it has ended, or is ended now."""
        with self._lock:
            self._running.discard(process)
            if process.poll() is None:
                _kill_process_group(process)
        process.communicate()


def _kill_process_group(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children; the caller must still wait for it."""
    if os.name == "nt":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def make_command_failure_error(what: str, command: Sequence[str], how: str, output: str) -> ToolError:
    """Return the error of a failed command: platform, command, and its output."""
    text = f"{how} from {shlex.join(command)}"
    remedy = ""
    if any(words in output for words in _DISK_FULL_MESSAGES):
        remedy = "free some space, or name other folders by the variables TMPDIR and MB2FMU_CACHE_DIR"
    elif any(words in f"{text}\n{output}" for words in _OUT_OF_MEMORY_MESSAGES):
        remedy = "the machine has no memory left, probably: end other programs and run it again"
    elif " error: " in output:
        remedy = "the sources are those of mb2fmu: try the other compiler (--compiler), and report it"
    return ToolError(f"{what}:", [Fault(f"{text}\n{output}" if output else text, what, remedy)])
