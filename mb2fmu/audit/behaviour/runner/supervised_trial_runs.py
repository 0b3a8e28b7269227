"""``run_all_trials``: run the trials of an FMU in supervised processes and collect their reports."""

from __future__ import annotations

import json
import os
import platform
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from mb2fmu.audit.behaviour.fixture.trial_folders import UNPACK_FOLDER
from mb2fmu.audit.behaviour.fixture.trial_registry import MEMORY_RULE, VALGRIND_TITLE
from mb2fmu.audit.behaviour.instance.wine_and_valgrind_hosts import VALGRIND, FmuHostProgram
from mb2fmu.audit.behaviour.process.process_cleanup import list_processes_with_token
from mb2fmu.audit.behaviour.process.trial_time_budget import BUDGET_SPENT
from mb2fmu.audit.description.archive_rules import FmuArchive
from mb2fmu.audit.description.description_records import DescribedModel
from mb2fmu.audit.recorded_reference_run import AuditReferenceRun
from mb2fmu.audit.rules_and_findings import RuleViolation
from mb2fmu.temporary_files import make_temporary_folder

_PLATFORM_FOLDERS = {
    ("Linux", "x86_64"): ("linux64", "x86_64-linux", ".so"),
    ("Linux", "aarch64"): ("aarch64-linux", "aarch64-linux", ".so"),
    ("Darwin", "x86_64"): ("darwin64", "x86_64-darwin", ".dylib"),
    ("Darwin", "arm64"): ("aarch64-darwin", "aarch64-darwin", ".dylib"),
    ("Windows", "AMD64"): ("win64", "x86_64-windows", ".dll"),
}
_WINDOWS = ("Windows", "AMD64")
UNTRIED_FLAGS = (
    "needsExecutionTool",
    "canRunAsynchronuously",
    "fixedInternalStepSize",
    "mightReturnEarlyFromDoStep",
)
"""Attributes of an interface that claim what no trial can refute; misspelled as in FMI 2. What is recommended only,
``recommendedIntermediateInputSmoothness``, claims nothing."""
_NO_CLAIM = ("", "false", "0")
INSTANTIATION_CRASH_END = "while trying instantiating it"
"""End of the message on a crash in the first trial."""

TRIAL_VARIABLE = "MB2FMU_TRIAL"
"""Environment variable by which processes of a trial are found, wherever they went."""

SUPERVISOR_GRACE_TIME = 3.0
"""Time that a supervisor may need beyond the deadline, s."""

MAX_SUPERVISORS = 3
"""Number of killed supervisors after which an FMU is given up."""


@dataclass
class _SupervisorProcesses:
    """Supervisor processes of one audit.

    Attributes:
        running: Those that run now.
        stopped: No more of them are to be started: the trial is being interrupted.
    """

    running: set[subprocess.Popen[str]] = field(default_factory=set)
    stopped: bool = False

    def register_process(self, process: subprocess.Popen[str]) -> None:
        """Add a process that was started."""
        self.running.add(process)
        if self.stopped:
            process.kill()

    def stop(self) -> None:
        """End all of them; callers that wait for one return."""
        self.stopped = True
        for process in tuple(self.running):
            process.kill()


@dataclass
class SupervisedTrialsResult:
    """Observations of all trials of an FMU, the rules judged, and what was skipped.

    Attributes:
        observations: Observations of the trials.
        skipped: What could not be judged, with the reason.
        faults: Tracebacks of the auditor itself.
        tried: Titles of the trials, in order.
        judged: Rules that had something to judge.
        inapplicable: Rule → why it had nothing to judge.
        lacking: Bounds that could not be had on this machine.
        killed: How many processes the FMU took with it.
        runnable: Whether there is a binary for this machine.
    """

    observations: list[RuleViolation] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)
    inapplicable: dict[str, str] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    killed: int = 0
    runnable: bool = False

    def merge(self, other: SupervisedTrialsResult) -> None:
        """Add the results of another part."""
        for name in ("observations", "skipped", "faults", "tried", "lacking"):
            getattr(self, name).extend(getattr(other, name))
        self.judged |= other.judged
        self.inapplicable |= other.inapplicable
        self.killed += other.killed


@dataclass(frozen=True, slots=True)
class SupervisedTrialsOptions:
    """Limits of a trial, and the data that it is compared with.

    Attributes:
        deadline: Of everything, by the monotonic clock, in s.
        call_time: Time limit of one call of the FMU, s.
        memory: Address space of the process that runs it, in bytes.
        jobs: Processes at once.
        effort: Processor time for all trials, s.
        recorded: A run to be repeated.
        windows: What the archive has for Windows is run, on another system.
        wine: Host for the binary for Windows; None: the binary for this machine runs.
        valgrind: Watches the memory that the FMU uses, in a run of its own.
        together: All interface types are tried in one process; which rules no trial judges is not told.
        run_calls: Calls of the FMU that one run may have; None: as many as its share of the time allows.
        stage_library: Compiled part of the auditor's integrator, if there is one.
    """

    deadline: float
    call_time: float
    memory: int
    jobs: int
    effort: float
    recorded: AuditReferenceRun | None = None
    windows: bool = False
    wine: FmuHostProgram | None = None
    valgrind: FmuHostProgram | None = None
    together: bool = False
    run_calls: int | None = None
    stage_library: Path | None = None


def find_loadable_libraries(
    description: DescribedModel, member_names: Collection[str], *, windows: bool = False
) -> dict[str, str]:
    """Return interface type → member of the archive that this machine can run.

    Args:
        description: Of the FMU.
        member_names: Members of the archive.
        windows: Select the libraries for Windows on any machine.
    """
    platform_folders = _PLATFORM_FOLDERS.get(_WINDOWS if windows else (platform.system(), platform.machine()))
    if platform_folders is None:
        return {}
    folder = platform_folders[0] if description.version == 2 else platform_folders[1]
    members = {
        interface: f"binaries/{folder}/{description.identifier(interface)}{platform_folders[2]}"
        for interface in description.interfaces
    }
    return {
        interface: member
        for interface, member in members.items()
        if interface != "ScheduledExecution" and member in member_names
    }


def _list_untried(description: DescribedModel, members: Collection[str], *, windows: bool) -> Iterator[str]:
    """Yield interfaces that are not run, and attributes of the others that no trial is about, with reasons."""
    for interface, attributes in description.interfaces.items():
        if interface not in members:
            reason = (
                "the auditor does not run it"
                if interface == "ScheduledExecution"
                else "the archive has no binary for Windows"
                if windows
                else "the archive has no binary for this machine"
            )
            yield f"{interface}: {reason}; only its description was judged"
            continue
        untried = [name for name in UNTRIED_FLAGS if attributes.get(name, "").strip() not in _NO_CLAIM]
        if untried:
            yield f"{interface}: no trial says whether this is so: {', '.join(untried)}"


def run_all_trials(
    archive: FmuArchive, description: DescribedModel, rules: Collection[str], limits: SupervisedTrialsOptions
) -> SupervisedTrialsResult:
    """Unpack an FMU and try it.

    Args:
        archive: The FMU.
        description: Of it.
        rules: Ids of requested rules: trials of other rules do not run.
        limits: Time, memory and processes that it may take.
    """
    members = find_loadable_libraries(description, archive.names, windows=limits.windows)
    result = SupervisedTrialsResult(runnable=bool(members))
    result.skipped += _list_untried(description, members, windows=limits.windows)
    if not members:
        return result
    with make_temporary_folder("run the FMU") as work_folder:
        needs_tool = any(description.flag(interface, "needsExecutionTool") for interface in description.interfaces)
        request = {
            "rules": sorted(rules),
            "memory": limits.memory,
            "limit": limits.call_time,
            "tool": needs_tool,
            "scratch": str(work_folder),
            "deadline": limits.deadline,
            "left": max(limits.deadline - time.monotonic(), 0.0),
            "recorded": limits.recorded and limits.recorded.as_json(),
            "far": limits.wine and limits.wine.as_json(),
            "run_calls": limits.run_calls,
            "stages": limits.stage_library and str(limits.stage_library),
        }
        if limits.wine:
            result.lacking.append(f"this is what it does on Windows as far as {limits.wine.version} is Windows")
        groups = [members]
        if not limits.together:
            tried_rules = _map_tried_rules(members, rules)
            for rule in set(rules) - set().union(*tried_rules.values()) - {MEMORY_RULE}:
                result.inapplicable[rule] = f"no trial judges it in {' and '.join(members)}"
            # Each interface type has its own processes and folders; without a requested rule none is started.
            groups = [{interface: member} for interface, member in members.items() if tried_rules[interface]]
        request["effort"] = limits.effort / (1 if limits.jobs > 1 else max(len(groups), 1))
        supervisors = _SupervisorProcesses()
        with _open_thread_map(min(max(len(groups), 1), limits.jobs), supervisors) as map_groups:
            for part_result in map_groups(
                lambda group: _run_in_awkward_folder(archive, work_folder, group, request, supervisors), groups
            ):
                result.merge(part_result)
        if limits.valgrind and MEMORY_RULE in rules:
            result.merge(_run_under_valgrind(archive, work_folder, members, request, limits.valgrind, supervisors))
    return result


def _map_tried_rules(interfaces: Collection[str], rules: Collection[str]) -> dict[str, set[str]]:
    """Return for each interface type the requested rules that a trial judges in it."""
    from mb2fmu.audit.behaviour.runner.trial_worker_process import (
        order_trials_by_risk,  # takes a while: a command that runs nothing has no use for it
    )

    trials = [trial for trial in order_trials_by_risk() if trial.hosts != (VALGRIND,)]
    return {
        interface: {rule for trial in trials if interface in trial.interfaces for rule in trial.rules} & set(rules)
        for interface in interfaces
    }


def _run_under_valgrind(
    archive: FmuArchive, work_folder: Path, members: dict[str, str], request: dict[str, Any],
    valgrind_host: FmuHostProgram, supervisors: _SupervisorProcesses
) -> SupervisedTrialsResult:  # fmt: skip
    """Run the FMU once more under valgrind, for the rule on memory."""
    own_request = {**request, "far": valgrind_host.as_json(), "rules": [MEMORY_RULE]}
    result = _run_supervised(archive, work_folder, "valgrind", "plain", members, own_request, supervisors)
    result.observations = [item for item in result.observations if item.rule == MEMORY_RULE]
    result.tried = [item for item in result.tried if item.endswith(VALGRIND_TITLE)]
    result.judged &= {MEMORY_RULE}
    result.lacking.clear()
    return result


@contextmanager
def _open_thread_map(count: int, supervisors: _SupervisorProcesses) -> Iterator[Any]:
    """Yield a map function over threads; an interruption kills the supervisors that the threads wait for."""
    if count == 1:
        yield map
        return
    with ThreadPoolExecutor(count) as pool:
        try:
            yield pool.map
        except BaseException:  # the threads end with what they wait for
            supervisors.stop()
            raise


def _run_in_awkward_folder(
    archive: FmuArchive, work_folder: Path, members: dict[str, str], request: dict[str, Any],
    supervisors: _SupervisorProcesses,
) -> SupervisedTrialsResult:  # fmt: skip
    """Run in a folder with spaces and umlauts, and in a plain one too if no instance can be made there."""
    name = next(iter(members))
    result = _run_supervised(archive, work_folder, f"{name}-1", UNPACK_FOLDER, members, request, supervisors)
    failures = [observation for observation in result.observations if _means_no_instance(observation)]
    if not failures or failures[0].message.count("is not back"):
        return result
    plain_result = _run_supervised(archive, work_folder, f"{name}-2", "plain", members, request, supervisors)
    if any(map(_means_no_instance, plain_result.observations)):
        return result
    text = f"in a folder with spaces and umlauts: {failures[0].message}"
    plain_result.observations.append(RuleViolation("host.path", text, failures[0].where))
    return plain_result


def _means_no_instance(observation: RuleViolation) -> bool:
    """Return whether an observation says that no instance could be made at all."""
    return observation.rule in {"life.load", "life.instantiate"} or observation.message.endswith(
        INSTANTIATION_CRASH_END
    )


def _unpack_archive_members(archive: FmuArchive, folder: Path) -> None:
    """Write the members that stay within the folder; rules of the archive report the others."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in archive.contents.items():
        parts = PurePosixPath(name).parts
        if ".." in parts or name.startswith("/") or "\\" in name or (len(name) > 1 and name[1] == ":"):
            continue
        file = folder / name
        with suppress(OSError):  # a file where another member wants a folder: archive.paths reports it
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
            if name.startswith("binaries/"):
                file.chmod(0o755)
    with suppress(OSError):
        (folder / "resources").mkdir(parents=True, exist_ok=True)


def _run_supervised(
    archive: FmuArchive,
    work_folder: Path,
    name: str,
    folder_name: str,
    members: dict[str, str],
    request: dict[str, Any],
    supervisors: _SupervisorProcesses,
) -> SupervisedTrialsResult:
    """Run a supervisor in a folder of its own; if it dies, continue with the trial after the one that killed it."""
    result = SupervisedTrialsResult(runnable=True)
    if time.monotonic() > request["deadline"]:
        suffix = " under valgrind" if request["far"] and request["far"]["name"] == VALGRIND else ""
        result.skipped += [f"{interface}: all that is tried{suffix}: {BUDGET_SPENT}" for interface in members]
        return result
    root = work_folder / name
    folder = root / folder_name
    _unpack_archive_members(archive, folder)
    error_file = work_folder / f"{name}.out"
    request_file = work_folder / f"{name}.json"
    libraries = {interface: str(folder / member) for interface, member in members.items()}
    ended_interfaces: list[str] = []
    for _ in range(MAX_SUPERVISORS):
        full_request = {
            **request, "root": str(root), "folder": str(folder), "libraries": libraries, "spoken": str(root / "spoken"),
            "tried": result.tried, "ended": ended_interfaces,
        }  # fmt: skip
        request_file.write_text(json.dumps(full_request), encoding="utf-8")
        ending = _run_supervisor(request_file, error_file, result, ended_interfaces, request["deadline"], supervisors)
        if not ending or supervisors.stopped:
            break
        result.killed += 1
        interface = (result.tried or [f"{name.rpartition('-')[0]}: "])[-1].partition(": ")[0]
        if result.tried:
            title = result.tried[-1].partition(": ")[2]
            text = f"the process that watches it {ending} while trying {title}"
            result.observations.append(RuleViolation("host.system", text, interface))
        else:
            result.faults.append(f"the watching process {ending}: {_read_output_tail(error_file)}")
            break
    _report_standard_output(result, root / "spoken", request["rules"])
    return result


def _run_supervisor(
    request_file: Path,
    error_file: Path,
    result: SupervisedTrialsResult,
    ended_interfaces: list[str],
    deadline: float,
    supervisors: _SupervisorProcesses,
) -> str:
    """Run one supervisor; return how it ended, empty if it ended normally."""
    token = secrets.token_hex(16)
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", TRIAL_VARIABLE: token}
    # A cache of small blocks would hand them out as they were given back, whatever new memory is filled with.
    environment["GLIBC_TUNABLES"] = "glibc.malloc.tcache_count=0"
    command = [sys.executable, "-P", "-m", "mb2fmu.audit.behaviour.runner.fmu_process_supervisor", str(request_file)]
    is_complete = False
    with error_file.open("ab") as errors:
        process = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True,
            encoding="utf-8", start_new_session=True,
        )  # fmt: skip
        timed_out = threading.Event()

        def kill_supervisor() -> None:
            """End the supervisor itself: it is too slow, for example on a busy machine."""
            timed_out.set()
            process.kill()

        timer = threading.Timer(max(deadline - time.monotonic(), 0.0) + SUPERVISOR_GRACE_TIME, kill_supervisor)
        timer.daemon = True
        timer.start()
        supervisors.register_process(process)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                is_complete = _read_report_line(result, line, ended_interfaces) or is_complete
            exit_code = process.wait()
        finally:
            supervisors.running.discard(process)
            timer.cancel()
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    with suppress(OSError):
                        stream.close()
            for process_id in list_processes_with_token(token):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(process_id, getattr(signal, "SIGKILL", signal.SIGTERM))
    if timed_out.is_set() and not is_complete:
        result.skipped.append(f"what was being tried: {BUDGET_SPENT}")
        return ""
    return "" if is_complete else f"ends with {exit_code}"


def _read_report_line(result: SupervisedTrialsResult, text: str, ended_interfaces: list[str]) -> bool:
    """Read one line of the supervisor; return whether it is the last."""
    try:
        line = json.loads(text)
    except ValueError:
        return False
    result.killed += bool(line.get("killed"))
    if "begin" in line:
        result.tried.append(line["begin"])
    elif "found" in line:
        result.observations.append(RuleViolation(*line["found"]))
    elif "skipped" in line:
        result.skipped.append(line["skipped"])
    elif "judged" in line:
        result.judged |= set(line["judged"])
    elif "idle" in line:
        result.inapplicable.setdefault(*line["idle"])
    elif "lacking" in line:
        result.lacking += [bound for bound in line["lacking"] if bound not in result.lacking]
    elif "fault" in line:
        result.faults.append(line["fault"])
    elif "ended" in line:
        ended_interfaces.append(line["ended"])
        result.skipped.append(f"{line['ended']}: all that follows: {line['why']}")
    return "end" in line


def _read_output_tail(output_file: Path) -> str:
    """Return the last 2,000 bytes of an output file; empty if it does not exist."""
    try:
        with output_file.open("rb") as file:
            file.seek(max(output_file.stat().st_size - 2000, 0))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _report_standard_output(result: SupervisedTrialsResult, output_file: Path, rules: Collection[str]) -> None:
    """Add an observation if the FMU wrote to its host's standard output."""
    text = _read_output_tail(output_file).strip()
    if text and "host.output" in rules:
        first_line = text.splitlines()[0]
        result.observations.append(
            RuleViolation("host.output", f'writes to the standard output of its host: "{first_line[:120]}"')
        )
