"""Watch the processes that run an FMU: ``python -m mb2fmu.audit.behaviour.runner.supervisor request.json``.

One process after another runs the probes; what kills one is a finding, and the next goes on behind it. However a
process ends, its whole session and all its descendants end with it. If the auditor itself ends, its end of standard
input closes: then everything ends, and the folder is removed. What is found goes to standard output, as lines of JSON.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mb2fmu.audit.behaviour.fixture.trial_registry import AGAIN
from mb2fmu.audit.behaviour.fixture.work_folders import FolderSnapshot, make_work_folders
from mb2fmu.audit.behaviour.process.process_cleanup import (
    count_process_threads,
    is_process_waiting,
    kill_process_session,
    list_descendant_processes,
    process_cpu_time,
    remove_shared_memory,
)
from mb2fmu.audit.behaviour.process.sandbox import adopt_orphans
from mb2fmu.audit.behaviour.process.shared_memory import SharedMemoryChannel
from mb2fmu.audit.behaviour.process.syscall_monitor import SystemCallMonitor, receive_listener

TICK = 0.01
START_LIMIT = 60.0
"""For a process to come to its first probe, in s."""

MOST_CRASHES = 12
"""Processes that an FMU of one kind may take with it."""

MOST_HANGS = 2
"""Calls that do not come back, after which the rest of that kind is not tried."""

GRACE = 1.0
"""By how much a probe may outlive the budget, in s: it ends by itself at its next call."""

TRAPS = "host.traps"
IDLE = 0.002
"""Part of a processor below which a process only waits."""

MOST_SLOWNESS = 20.0
"""By how much a busy machine may slow a process down."""


@dataclass
class Supervisor:
    """One FMU under guard.

    Attributes:
        request: What is to be tried: see ``trial.py``.
        channel: To the running process.
        tried: Titles of the probes that were begun.
        ended: Kinds that are not gone on with.
        suspects: Probes in which a process died that had tried others before: they are tried again, alone.
    """

    request: dict[str, Any]
    channel: SharedMemoryChannel
    tried: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    crashes: Counter[str] = field(default_factory=Counter)
    hangs: Counter[str] = field(default_factory=Counter)
    told: set[tuple[str, str]] = field(default_factory=set)
    last: dict[str, Any] | None = None
    suspects: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    known: set[tuple[str, str, str]] = field(default_factory=set)
    begun: int = 0
    threads: int = 1
    fresh: bool = False
    done: bool = False

    def say(self, **line: Any) -> None:
        """Write one line to the auditor."""
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()

    def deed(self, rule: str, message: str) -> None:
        """Report an action of the FMU outside of its calls; each once."""
        kind = (self.last or {}).get("begin", ": ").partition(": ")[0]
        if (rule, message) not in self.told and rule in self.request["rules"]:
            self.told.add((rule, message))
            self.say(found=[rule, message, kind])

    # --- one process

    def round(self) -> None:
        """Run one process until it ends, or until it has to be ended."""
        self.channel.clear()
        self.last, self.begun, self.fresh = None, 0, False
        watched = FolderSnapshot(Path(self.request["root"]))
        ours, theirs = socket.socketpair()
        process = _started(self.request, self.channel, self.tried, self.ended, ours, theirs)
        theirs.close()
        listener = receive_listener(ours) if hasattr(os, "fork") else None
        folder, tool = Path(self.request["root"]), bool(self.request["tool"])
        deeds = (
            SystemCallMonitor(listener, process.number, folder, tool=tool, tell=self.deed)
            if listener is not None
            else None
        )
        try:
            ending, late = self._watch(process, deeds)
        finally:
            left = [each for each in list_descendant_processes(os.getpid()) if each != process.number]
            kill_process_session(process.number)
            process.wait()
            ours.close()
            if deeds:
                deeds.close()
        self._take()
        if self.request["far"] or (not self.done and self.last is None):
            left = []
        segments = remove_shared_memory(process.number)
        if segments:
            self.deed("host.files", f"leaves {segments} segment{'s' * (segments > 1)} of shared memory behind")
        if left:
            self.deed("host.processes", f"leaves {len(left)} process{'es' * (len(left) > 1)} running")
        for what in watched.changes():
            self.deed("host.files", what)
        if self.done or self.fresh:
            return
        if late in {"", "call"} and self.last and self.last["begin"].endswith(f": {AGAIN}"):
            self.request["once"] = True  # its right, as its description says
            return
        self._ended(ending, late)

    def _watch(self, process: _WorkerProcess, deeds: SystemCallMonitor | None) -> tuple[str, str]:
        """Return how a process ended; if it was killed, the limit it broke: ``call``, ``budget`` or ``auditor``."""
        since, worked, progress = time.monotonic(), 0.0, (0, 0, 0)
        while True:
            waited = [sys.stdin] + ([deeds.listener] if deeds else [])
            ready = select.select(waited, [], [], TICK)[0] if os.name == "posix" else []
            if sys.stdin in ready and not os.read(sys.stdin.fileno(), 1):
                raise EOFError  # the auditor is gone
            if deeds and deeds.listener in ready:
                deeds.answer()
            self._take()
            code = process.poll()
            if code is not None:
                return _told(code), ""
            now = self.channel.progress()
            if now != progress:
                progress, since, worked = now, time.monotonic(), self._worked(process.number)
            passed = time.monotonic() - since
            if time.monotonic() > self.request["deadline"] + GRACE:
                return "did not end with the budget", "budget"
            limit = self._limit()
            waiting = passed > limit and is_process_waiting(process.number)
            if passed > limit and _hangs(passed, self._worked(process.number) - worked, limit, waiting=waiting):
                self.threads = count_process_threads(process.number)
                return f"is not back after {limit:g} s", "call" if self.channel.calling()[1] else "auditor"

    def _worked(self, process: int) -> float:
        """Return the processor time so far, in s, with processes that run the FMU in place of the child."""
        others = list_descendant_processes(process) if self.request["far"] else []
        return sum(map(process_cpu_time, (process, *others)))

    def _limit(self) -> float:
        """Return the time limit of one call now, in s."""
        if self.last is None:
            return float(max(START_LIMIT, self.request["limit"]))
        return float(min(self.request["limit"], self.last.get("limit") or self.request["limit"]))

    def _take(self) -> None:
        """Pass on what the process has written."""
        for line in self.channel.read():
            if "begin" in line:
                self._acquit()
                self.last = line
                self.begun += 1
                self.tried.append(line["begin"])
            elif "at" in line and self.last is not None:
                self.last["at"] = line["at"]
                continue
            elif "ended" in line:
                self.ended.append(line["ended"])
            elif "once" in line:
                self.request["once"] = True
                continue
            elif "done" in line or "fresh" in line:
                self._acquit()
                self.done, self.fresh = "done" in line, "fresh" in line
                continue
            self.say(**line)

    def _acquit(self) -> None:
        """Clear the last probe of suspicion: it came to its end, so the process had been damaged before."""
        found = self.suspects.pop(self.last["begin"], None) if self.last else None
        if found:
            rule, text, kind = found
            text += "; tried alone it does not: something tried before has done the damage"
            self.say(found=[rule, text, kind], killed=True)

    def _ended(self, ending: str, late: str) -> None:
        """Report a process that did not come to its end."""
        if self.last is None:
            self.say(fault=f"the trying process ended before the first probe: {ending}")
            self.done = True
            return
        kind, _, title = self.last["begin"].partition(": ")
        name, inside = self.channel.calling()
        at = f": {self.last['at']}" if self.last.get("at") else ""
        if late == "budget":
            self.say(skipped=f"{kind}: {title}: the time is spent{f', in {name}' if inside else ''}")
            self.done = True
            return
        if late == "auditor":
            self._own_loop(kind, title, name, at)
            return
        where = f"in {name}" if inside else f"after {name}" if name else ""
        if late:
            self.hangs[kind] += 1
            text = f"{name} {ending} while trying {title}{at}"
        else:
            self.crashes[kind] += 1
            text = f"the process {ending}{where and f' {where}'} while trying {title}{at}"
            if self.begun > 1 and self.last["begin"] not in self.suspects:
                self.suspects[self.last["begin"]] = self._suspected(ending), text, kind
                self.tried = [each for each in self.tried if each != self.last["begin"]]
                return
            self.suspects.pop(self.last["begin"], None)
        self.say(found=[self._broken(late, ending, name, kind), text, kind], killed=True)
        why = ""
        if title == "instantiating it":
            why = "no instance can be had"
        elif self.hangs[kind] >= MOST_HANGS:
            why = f"calls did not come back {MOST_HANGS} times, the last one was {name}"
        elif self.crashes[kind] > MOST_CRASHES:
            why = f"it took {MOST_CRASHES} processes with it"
        if why:
            self.ended.append(kind)
            self.say(ended=kind, why=why)

    def _suspected(self, ending: str) -> str:
        """Return the rule of a death that may be due to what was tried before: traps end a process by themselves."""
        assert self.last is not None
        trapped = self.last["crash"] == TRAPS and "SIGFPE" in ending
        return TRAPS if trapped else "life.crash"

    def _own_loop(self, kind: str, title: str, name: str, at: str) -> None:
        """Report a standstill outside of the FMU's calls: its threads block the process, or the auditor is wrong."""
        if self.threads > 1:
            text = f"{self.threads - 1} threads that it left running keep the processor busy while trying {title}{at}"
            self.say(found=["life.leak", text, kind], killed=True)
        else:
            self.say(fault=f"{kind}: {title}: the auditor itself came to no end after {name}{at}")

    def _broken(self, late: str, ending: str, name: str, kind: str) -> str:
        """Return the rule broken by a crash or hang: the probe's own, unless it also happens without the probe."""
        assert self.last is not None
        seen = (kind, ending, name)
        if seen in self.known:
            return "life.crash"
        rule = str(self.last["slow"] if late else self.last["crash"])
        if rule == "life.crash":
            self.known.add(seen)
        return rule


def _hangs(passed: float, worked: float, limit: float, *, waiting: bool) -> bool:
    """Return whether a process is given up: it has used its time, or has waited without working.

    On a busy machine the clock tells little: a process that gets a tenth of a processor is slow through no fault of its
    own.

    Args:
        passed: By the clock since it last did something, in s.
        worked: Time of the processor in between, in s.
        limit: What it may take, in s.
        waiting: It does not want a processor now: who wants one and gets none is not to blame.
    """
    return worked > limit or (waiting and worked < IDLE * passed) or passed > MOST_SLOWNESS * limit


def _told(code: int) -> str:
    """Return how a process ended, in words; a negative code is minus the signal's number."""
    if code >= 0:
        return f"ends with exit code {code}"
    with suppress(ValueError):
        return f"dies by {signal.Signals(-code).name}"
    return f"dies by signal {-code}"


# --- processes


class _WorkerProcess:
    """A forked process, or, where fork is missing, a new one."""

    def __init__(self, number: int, started: subprocess.Popen[bytes] | None) -> None:
        self.number, self._started, self._code = number, started, None

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        if self._started is not None:
            return self._started.poll()
        if self._code is None:
            with suppress(ChildProcessError):
                found, status = os.waitpid(self.number, os.WNOHANG)
                if found:
                    self._code = os.waitstatus_to_exitcode(status)  # type: ignore[assignment]
        return self._code

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._started is not None:
            self._started.kill()
            self._started.wait()
        while self.poll() is None:
            time.sleep(TICK / 10)


def _started(
    request: dict[str, Any], channel: SharedMemoryChannel, tried: list[str], ended: list[str], ours: socket.socket,
    theirs: socket.socket,
) -> _WorkerProcess:  # fmt: skip
    """Start a process that tries the FMU: a fork where the system has it, a new interpreter elsewhere."""
    from mb2fmu.audit.behaviour.runner import worker_process

    now = {**request, "tried": tried, "ended": ended}
    if hasattr(os, "fork"):
        worker_process.read_cached_description(request["folder"])
        parent = os.getpid()
        number = os.fork()
        if number == 0:
            ours.close()
            worker_process.run_confined(now, channel, theirs, parent)
        return _WorkerProcess(number, None)
    asked = Path(request["root"]) / "now.json"
    asked.write_text(json.dumps(now), encoding="utf-8")
    command = [sys.executable, "-P", "-m", "mb2fmu.audit.behaviour.runner.worker_process", str(asked)]
    return _WorkerProcess(0, subprocess.Popen(command, stdin=subprocess.DEVNULL))  # noqa: S603  our own module


def main() -> None:
    """Read the request and try everything."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    root = Path(request["root"])
    adopt_orphans()
    make_work_folders(root)
    guard = Supervisor(request, SharedMemoryChannel(root.parent / f"{root.name}.channel"))
    try:
        while not guard.done and time.monotonic() < request["deadline"]:
            guard.round()
        guard.say(end=True)
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        shutil.rmtree(request["scratch"], ignore_errors=True)
        os._exit(1)


if __name__ == "__main__":
    main()
