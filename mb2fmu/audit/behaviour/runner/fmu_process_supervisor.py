"""Supervise the processes that run an FMU: ``python -m (this module) request.json``.

One process after another runs the trials; a crash is a finding, and the next process continues after it. However a
process ends, its whole session and all its descendants end with it. If the auditor itself ends, its end of standard
input closes: then everything ends, and the folder is removed. What is found goes to standard output, as lines of JSON.
"""

from __future__ import annotations

import gc
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

from mb2fmu.audit.behaviour.fixture.trial_folders import FolderSnapshot, make_work_folders
from mb2fmu.audit.behaviour.fixture.trial_registry import REINSTANTIATION_TITLE
from mb2fmu.audit.behaviour.process.process_cleanup import (
    count_process_threads,
    is_process_waiting,
    kill_process_session,
    list_descendant_processes,
    read_process_cpu_time,
    remove_shared_memory,
)
from mb2fmu.audit.behaviour.process.sandbox import become_parent_of_orphans
from mb2fmu.audit.behaviour.process.shared_memory_channel import SharedMemoryChannel
from mb2fmu.audit.behaviour.process.syscall_monitor import SystemCallMonitor, receive_seccomp_descriptor

POLL_INTERVAL, REPORTED_END_POLL_INTERVAL = 0.01, 0.1
"""How often a worker is looked at, in s; where the system reports its end, only what hangs waits for the next look."""

MAX_LOOK_INTERVAL = 0.5
"""Longest time between two looks at a worker that counts as time in which it could run, s."""

START_TIME_LIMIT = 60.0
"""Time limit until a process begins its first trial, s."""

MAX_CRASHES = 12
"""Most crashes of one interface type."""

MAX_HANGS = 2
"""Calls without an end after which an interface type is not tried further."""

GRACE_TIME = 1.0
"""By how much a trial may outlive the budget, in s: it ends by itself at its next call."""

TRAPS_RULE = "host.traps"
IDLE_CPU_SHARE = 0.002
"""Share of a processor below which a process counts as waiting."""

MAX_SLOWDOWN = 20.0
"""By how much a busy machine may slow a process down."""


@dataclass
class _FmuProcessSupervisor:
    """Supervision of the processes that run one FMU.

    Attributes:
        request: Requested trials and their limits: see ``supervised_trial_runs.py``.
        channel: To the running process.
        tried: Titles of the trials that were begun.
        ended_interfaces: Interface types that are not tried further.
        suspected_trials: Trials in which a process died that had tried others before: they are tried again, alone.
    """

    request: dict[str, Any]
    channel: SharedMemoryChannel
    tried: list[str] = field(default_factory=list)
    ended_interfaces: list[str] = field(default_factory=list)
    crashes: Counter[str] = field(default_factory=Counter)
    hangs: Counter[str] = field(default_factory=Counter)
    reported_actions: set[tuple[str, str]] = field(default_factory=set)
    last_begin: dict[str, Any] | None = None
    suspected_trials: dict[str, tuple[str, str, str]] = field(default_factory=dict)
    known_crashes: set[tuple[str, str, str]] = field(default_factory=set)
    begun_trials: int = 0
    hanging_threads: int = 1
    needs_new_process: bool = False
    done: bool = False

    def send_output_line(self, **fields: Any) -> None:
        """Write one line to the auditor."""
        sys.stdout.write(json.dumps(fields) + "\n")
        sys.stdout.flush()

    def report_action(self, rule: str, message: str) -> None:
        """Report an action of the FMU outside of its calls; each once."""
        interface = (self.last_begin or {}).get("begin", ": ").partition(": ")[0]
        if (rule, message) not in self.reported_actions and rule in self.request["rules"]:
            self.reported_actions.add((rule, message))
            self.send_output_line(found=[rule, message, interface])

    # --- one process

    def run_worker(self) -> None:
        """Run one process until it ends, or until it has to be ended."""
        self.channel.clear()
        self.last_begin, self.begun_trials, self.needs_new_process = None, 0, False
        snapshot = FolderSnapshot(Path(self.request["root"]))
        own_end, worker_end = socket.socketpair()
        process = _start_worker(self.request, self.channel, self.tried, self.ended_interfaces, own_end, worker_end)
        worker_end.close()
        listener = receive_seccomp_descriptor(own_end) if hasattr(os, "fork") else None
        folder, needs_tool = Path(self.request["root"]), bool(self.request["tool"])
        monitor = (
            SystemCallMonitor(listener, process.process_id, folder, needs_tool=needs_tool, report=self.report_action)
            if listener is not None
            else None
        )
        try:
            ending, broken_limit = self._watch_worker(process, monitor)
        finally:
            remaining_processes = set(list_descendant_processes(os.getpid())) - {process.process_id}
            kill_process_session(process.process_id)
            process.wait()
            own_end.close()
            if monitor:
                monitor.close()
        self._forward_messages()
        if self.request["far"] or (not self.done and self.last_begin is None):
            remaining_processes = set()
        self._report_leftovers(process.process_id, len(remaining_processes), snapshot)
        if self.done or self.needs_new_process:
            return
        if (
            broken_limit in {"", "call"}
            and self.last_begin
            and self.last_begin["begin"].endswith(f": {REINSTANTIATION_TITLE}")
        ):
            self.request["once"] = True  # its right, as its description says
            return
        self._report_end(ending, broken_limit)

    def _report_leftovers(self, process_id: int, processes: int, snapshot: FolderSnapshot) -> None:
        """Report shared memory, running processes and changed files that a worker has left behind."""
        segments = remove_shared_memory(process_id)
        if segments:
            self.report_action("host.files", f"leaves {segments} segment{'s' * (segments > 1)} of shared memory behind")
        if processes:
            self.report_action("host.processes", f"leaves {processes} process{'es' * (processes > 1)} running")
        for change in snapshot.changes():
            self.report_action("host.files", change)

    def _watch_worker(self, process: _WorkerProcess, monitor: SystemCallMonitor | None) -> tuple[str, str]:
        """Return how a process ended; if it was killed, the limit it broke: ``call``, ``budget`` or ``auditor``."""
        elapsed, last_look, cpu_at_progress, progress = 0.0, time.monotonic(), 0.0, (0, 0, 0)
        while True:
            watched_inputs = [sys.stdin, *([monitor.listener] if monitor else []), *process.end_descriptors]
            interval = REPORTED_END_POLL_INTERVAL if process.end_descriptors else POLL_INTERVAL
            readable_inputs = select.select(watched_inputs, [], [], interval)[0] if os.name == "posix" else []
            if sys.stdin in readable_inputs and not os.read(sys.stdin.fileno(), 1):
                raise EOFError  # the auditor is gone
            if monitor and monitor.listener in readable_inputs:
                monitor.handle_notification()
            self._forward_messages()
            exit_code = process.poll()
            if exit_code is not None:
                return _describe_exit(exit_code), ""
            progress_now = self.channel.activity_counters()
            # Where this process did not come to look, the machine stood still or was busy: that is not the FMU's time.
            elapsed, last_look = elapsed + min(time.monotonic() - last_look, MAX_LOOK_INTERVAL), time.monotonic()
            if progress_now != progress:
                progress, elapsed, cpu_at_progress = progress_now, 0.0, self._cpu_time(process.process_id)
            if time.monotonic() > self.request["deadline"] + GRACE_TIME:
                return "did not end with the budget", "budget"
            time_limit = self._call_time_limit()
            is_waiting = elapsed > time_limit and is_process_waiting(process.process_id)
            if elapsed > time_limit and _is_hanging(
                elapsed, self._cpu_time(process.process_id) - cpu_at_progress, time_limit, is_waiting=is_waiting
            ):
                self.hanging_threads = count_process_threads(process.process_id)
                return f"is not back after {time_limit:g} s", "call" if self.channel.last_call()[1] else "auditor"

    def _cpu_time(self, process: int) -> float:
        """Return the processor time so far, in s, with processes that run the FMU in place of the child."""
        descendants = list_descendant_processes(process) if self.request["far"] else []
        return sum(map(read_process_cpu_time, (process, *descendants)))

    def _call_time_limit(self) -> float:
        """Return the time limit of one call now, in s."""
        if self.last_begin is None:
            return float(max(START_TIME_LIMIT, self.request["limit"]))
        return float(min(self.request["limit"], self.last_begin.get("limit") or self.request["limit"]))

    def _forward_messages(self) -> None:
        """Forward messages of the worker to the auditor."""
        for line in self.channel.read():
            if "begin" in line:
                self._clear_suspicion()
                self.last_begin = line
                self.begun_trials += 1
                self.tried.append(line["begin"])
            elif "at" in line and self.last_begin is not None:
                self.last_begin["at"] = line["at"]
                continue
            elif "ended" in line:
                self.ended_interfaces.append(line["ended"])
            elif "once" in line:
                self.request["once"] = True
                continue
            elif "done" in line or "fresh" in line:
                self._clear_suspicion()
                self.done, self.needs_new_process = "done" in line, "fresh" in line
                continue
            self.send_output_line(**line)

    def _clear_suspicion(self) -> None:
        """Report a suspected trial that now ended normally: an earlier trial had damaged the process."""
        suspected_trial = self.suspected_trials.pop(self.last_begin["begin"], None) if self.last_begin else None
        if suspected_trial:
            rule, text, interface = suspected_trial
            text += "; tried alone it does not: something tried before has done the damage"
            self.send_output_line(found=[rule, text, interface], killed=True)

    def _report_end(self, ending: str, broken_limit: str) -> None:
        """Report a process that did not come to its end."""
        if self.last_begin is None:
            self.send_output_line(fault=f"the trying process ended before the first probe: {ending}")
            self.done = True
            return
        interface, _, title = self.last_begin["begin"].partition(": ")
        function, is_in_call = self.channel.last_call()
        activity = f": {self.last_begin['at']}" if self.last_begin.get("at") else ""
        if broken_limit == "budget":
            place = f", in {function}" if is_in_call else ""
            self.send_output_line(skipped=f"{interface}: {title}: the time is spent{place}")
            self.done = True
            return
        if broken_limit == "auditor":
            self._report_standstill(interface, title, function, activity)
            return
        place = f"in {function}" if is_in_call else f"after {function}" if function else ""
        if broken_limit:
            self.hangs[interface] += 1
            text = f"{function} {ending} while trying {title}{activity}"
        else:
            self.crashes[interface] += 1
            text = f"the process {ending}{place and f' {place}'} while trying {title}{activity}"
            if self.begun_trials > 1 and self.last_begin["begin"] not in self.suspected_trials:
                self.suspected_trials[self.last_begin["begin"]] = self._choose_suspected_rule(ending), text, interface
                self.tried = [begin for begin in self.tried if begin != self.last_begin["begin"]]
                return
            self.suspected_trials.pop(self.last_begin["begin"], None)
        self.send_output_line(
            found=[self._choose_broken_rule(broken_limit, ending, function, interface), text, interface], killed=True
        )
        reason = ""
        if title == "instantiating it":
            reason = "no instance can be had"
        elif self.hangs[interface] >= MAX_HANGS:
            reason = f"calls did not come back {MAX_HANGS} times, the last one was {function}"
        elif self.crashes[interface] > MAX_CRASHES:
            reason = f"it took {MAX_CRASHES} processes with it"
        if reason:
            self.ended_interfaces.append(interface)
            self.send_output_line(ended=interface, why=reason)

    def _choose_suspected_rule(self, ending: str) -> str:
        """Return the rule of a crash that an earlier trial may have caused: traps end a process by themselves."""
        assert self.last_begin is not None
        is_trap = self.last_begin["crash"] == TRAPS_RULE and "SIGFPE" in ending
        return TRAPS_RULE if is_trap else "life.crash"

    def _report_standstill(self, interface: str, title: str, function: str, activity: str) -> None:
        """Report a standstill outside of calls: threads of the FMU block the process, or the auditor is at fault."""
        if self.hanging_threads > 1:
            text = (
                f"{self.hanging_threads - 1} threads that it left running keep the processor busy while "
                f"trying {title}{activity}"
            )
            self.send_output_line(found=["life.leak", text, interface], killed=True)
        else:
            self.send_output_line(
                fault=f"{interface}: {title}: the auditor itself came to no end after {function}{activity}"
            )

    def _choose_broken_rule(self, broken_limit: str, ending: str, function: str, interface: str) -> str:
        """Return the rule broken by a crash or hang: the trial's own, unless it also happens without the trial."""
        assert self.last_begin is not None
        crash_key = (interface, ending, function)
        if crash_key in self.known_crashes:
            return "life.crash"
        rule = str(self.last_begin["slow"] if broken_limit else self.last_begin["crash"])
        if rule == "life.crash":
            self.known_crashes.add(crash_key)
        return rule


def _is_hanging(elapsed: float, cpu_time: float, time_limit: float, *, is_waiting: bool) -> bool:
    """Return whether a process hangs: it has used its time, or has waited without working.

    On a busy machine elapsed time is not enough: a process that gets a tenth of a processor is slow, and not at fault.

    Args:
        elapsed: By the clock since it last did something, in s.
        cpu_time: Time of the processor in between, in s.
        time_limit: What it may take, in s.
        is_waiting: The process does not wait for a processor now.
    """
    return (
        cpu_time > time_limit
        or (is_waiting and cpu_time < IDLE_CPU_SHARE * elapsed)
        or elapsed > MAX_SLOWDOWN * time_limit
    )


def _describe_exit(exit_code: int) -> str:
    """Return how a process ended, in words; a negative code is minus the signal's number."""
    if exit_code >= 0:
        return f"ends with exit code {exit_code}"
    with suppress(ValueError):
        return f"dies by {signal.Signals(-exit_code).name}"
    return f"dies by signal {-exit_code}"


# --- processes


class _WorkerProcess:
    """A forked process, or, where fork is missing, a new one."""

    def __init__(self, process_id: int, process: subprocess.Popen[bytes] | None) -> None:
        self.process_id, self._process, self._exit_code = process_id, process, None
        self.end_descriptors: list[int] = []  # readable once the process has ended; none where the system has none
        if sys.platform == "linux" and hasattr(os, "pidfd_open") and process is None:
            with suppress(OSError):
                self.end_descriptors.append(os.pidfd_open(process_id))

    def poll(self) -> int | None:
        """Return the exit code; None while it runs."""
        if self._process is not None:
            return self._process.poll()
        if self._exit_code is None:
            with suppress(ChildProcessError):
                ended_process_id, status = os.waitpid(self.process_id, os.WNOHANG)
                if ended_process_id:
                    self._exit_code = os.waitstatus_to_exitcode(status)  # type: ignore[assignment]
        return self._exit_code

    def wait(self) -> None:
        """Wait until it has ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        while self.poll() is None:
            time.sleep(POLL_INTERVAL / 10)
        while self.end_descriptors:
            os.close(self.end_descriptors.pop())


def _start_worker(
    request: dict[str, Any],
    channel: SharedMemoryChannel,
    tried_rules: list[str],
    ended_interfaces: list[str],
    own_end: socket.socket,
    worker_end: socket.socket,
) -> _WorkerProcess:
    """Start a process that tries the FMU: a fork where the system has it, a new interpreter elsewhere."""
    from mb2fmu.audit.behaviour.runner import trial_worker_process

    current_request = {**request, "tried": tried_rules, "ended": ended_interfaces}
    if hasattr(os, "fork"):
        trial_worker_process.read_cached_model_description(request["folder"])
        parent = os.getpid()
        process_id = os.fork()
        if process_id == 0:
            own_end.close()
            trial_worker_process.run_trials_in_sandbox(current_request, channel, worker_end, parent)
        return _WorkerProcess(process_id, None)
    request_file = Path(request["root"]) / "now.json"
    request_file.write_text(json.dumps(current_request), encoding="utf-8")
    command = [sys.executable, "-P", "-m", "mb2fmu.audit.behaviour.runner.trial_worker_process", str(request_file)]
    return _WorkerProcess(0, subprocess.Popen(command, stdin=subprocess.DEVNULL))  # noqa: S603  our own module


def _run_supervisor_process() -> None:
    """Read the request and try everything."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    root = Path(request["root"])
    become_parent_of_orphans()
    make_work_folders(root)
    supervisor = _FmuProcessSupervisor(request, SharedMemoryChannel(root.parent / f"{root.name}.channel"))
    try:
        while not supervisor.done and time.monotonic() < request["deadline"]:
            supervisor.run_worker()
        supervisor.send_output_line(end=True)
        gc.freeze()  # the system takes back all memory: a search for cycles at the exit is a tenth of the start
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        shutil.rmtree(request["scratch"], ignore_errors=True)
        os._exit(1)


if __name__ == "__main__":
    _run_supervisor_process()
