"""``run_all_trials``: give an FMU to a guard, which runs the probes; collect its messages."""

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

from mb2fmu.audit.behaviour.fixture.trial_registry import MEMORY, WATCHED
from mb2fmu.audit.behaviour.fixture.work_folders import UNIT
from mb2fmu.audit.behaviour.instance.remote_hosts import VALGRIND, RemoteHost
from mb2fmu.audit.behaviour.process.process_cleanup import list_marked_processes
from mb2fmu.audit.behaviour.process.time_budget import SPENT
from mb2fmu.audit.description.archive_rules import FmuArchive
from mb2fmu.audit.description.description_records import DescribedModel
from mb2fmu.audit.findings import Observation
from mb2fmu.audit.recorded_reference import RecordedReference
from mb2fmu.temporary_files import make_work_folder

_FOLDERS = {
    ("Linux", "x86_64"): ("linux64", "x86_64-linux", ".so"),
    ("Linux", "aarch64"): ("aarch64-linux", "aarch64-linux", ".so"),
    ("Darwin", "x86_64"): ("darwin64", "x86_64-darwin", ".dylib"),
    ("Darwin", "arm64"): ("aarch64-darwin", "aarch64-darwin", ".dylib"),
    ("Windows", "AMD64"): ("win64", "x86_64-windows", ".dll"),
}
_WINDOWS = ("Windows", "AMD64")
FIRST = "while trying instantiating it"
"""How a crash in the first probe is told."""

MARK = "MB2FMU_TRIAL"
"""Environment variable by which processes of a trial are found, wherever they went."""

LATE = 3.0
"""What a guard may need beyond the deadline, in s."""

MOST_GUARDS = 3
"""An FMU that kills the process that watches it is given up then."""


@dataclass
class _Supervisors:
    """Processes that watch the parts of one trial.

    Attributes:
        running: Those that run now.
        stopped: No more of them are to be started: the trial is being interrupted.
    """

    running: set[subprocess.Popen[str]] = field(default_factory=set)
    stopped: bool = False

    def enter(self, process: subprocess.Popen[str]) -> None:
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
class SupervisedRunResult:
    """Results of running the FMU.

    Attributes:
        observations: What the probes saw.
        skipped: What could not be judged, with the reason.
        faults: Tracebacks of the auditor itself.
        tried: Titles of the probes, in order.
        judged: Rules that had something to judge.
        idle: Rule → why it had nothing to judge.
        lacking: Bounds that could not be had on this machine.
        killed: How many processes the FMU took with it.
        runnable: Whether there is a binary for this machine.
    """

    observations: list[Observation] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    judged: set[str] = field(default_factory=set)
    idle: dict[str, str] = field(default_factory=dict)
    lacking: list[str] = field(default_factory=list)
    killed: int = 0
    runnable: bool = False

    def absorb(self, other: SupervisedRunResult) -> None:
        """Add the results of another part."""
        for name in ("observations", "skipped", "faults", "tried", "lacking"):
            getattr(self, name).extend(getattr(other, name))
        self.judged |= other.judged
        self.idle |= other.idle
        self.killed += other.killed


@dataclass(frozen=True, slots=True)
class SupervisedRunLimits:
    """Limits of a trial, and the data that it is compared with.

    Attributes:
        deadline: Of everything, by the monotonic clock, in s.
        call: What one call of the FMU may take, in s.
        memory: Address space of the process that runs it, in bytes.
        jobs: Processes at once.
        effort: Of the processor, for all probes, in s.
        recorded: A run to be repeated.
        windows: What the archive has for Windows is run, on another system.
        wine: Runs what is there for Windows, in place of what is there for this machine.
        valgrind: Watches the memory that the FMU uses, in a run of its own.
        together: All interface types are tried in one process.
    """

    deadline: float
    call: float
    memory: int
    jobs: int
    effort: float
    recorded: RecordedReference | None = None
    windows: bool = False
    wine: RemoteHost | None = None
    valgrind: RemoteHost | None = None
    together: bool = False


def find_loadable_libraries(
    description: DescribedModel, names: Collection[str], *, windows: bool = False
) -> dict[str, str]:
    """Return interface type → member of the archive that this machine can run.

    Args:
        description: Of the FMU.
        names: Members of the archive.
        windows: Those of Windows, whatever this machine is.
    """
    found = _FOLDERS.get(_WINDOWS if windows else (platform.system(), platform.machine()))
    if found is None:
        return {}
    folder = found[0] if description.version == 2 else found[1]
    members = {kind: f"binaries/{folder}/{description.identifier(kind)}{found[2]}" for kind in description.interfaces}
    return {kind: member for kind, member in members.items() if kind != "ScheduledExecution" and member in names}


def run_all_trials(
    archive: FmuArchive, description: DescribedModel, rules: Collection[str], bounds: SupervisedRunLimits
) -> SupervisedRunResult:
    """Unpack an FMU and try it.

    Args:
        archive: The unit.
        description: Of it.
        rules: Ids that are asked for: probes of others are not tried.
        bounds: What it may take.
    """
    members = find_loadable_libraries(description, archive.names, windows=bounds.windows)
    trial = SupervisedRunResult(runnable=bool(members))
    for kind in description.interfaces:
        if kind not in members:
            why = (
                "the auditor does not run it"
                if kind == "ScheduledExecution"
                else "the archive has no binary for Windows"
                if bounds.windows
                else "the archive has no binary for this machine"
            )
            trial.skipped.append(f"{kind}: {why}; only its description was judged")
    if not members:
        return trial
    with make_work_folder("run the FMU") as scratch:
        tool = any(description.flag(kind, "needsExecutionTool") for kind in description.interfaces)
        base = {
            "rules": sorted(rules), "memory": bounds.memory, "limit": bounds.call, "tool": tool,
            "scratch": str(scratch), "deadline": bounds.deadline, "left": max(bounds.deadline - time.monotonic(), 0.0),
            "recorded": bounds.recorded and bounds.recorded.as_json(), "far": bounds.wine and bounds.wine.as_json(),
        }  # fmt: skip
        if bounds.wine:
            trial.lacking.append(f"this is what it does on Windows as far as {bounds.wine.version} is Windows")
        served = _served(members, rules)
        for rule in set(rules) - set().union(*served.values()) - {MEMORY}:
            trial.idle[rule] = f"nothing of it is tried in {' and '.join(members)}"
        # What one leaves behind is not the other's; where nothing is asked, nothing is started.
        groups = [{kind: member} for kind, member in members.items() if served[kind]]
        if bounds.together:
            groups = [{kind: member for group in groups for kind, member in group.items()}]
        base["effort"] = bounds.effort / (1 if bounds.jobs > 1 else len(groups))
        guards = _Supervisors()
        with _parallel(min(max(len(groups), 1), bounds.jobs), guards) as run:
            for part in run(lambda group: _tried(archive, scratch, group, base, guards), groups):
                trial.absorb(part)
        if bounds.valgrind and MEMORY in rules:
            trial.absorb(_watched(archive, scratch, members, base, bounds.valgrind, guards))
    return trial


def _served(kinds: Collection[str], rules: Collection[str]) -> dict[str, set[str]]:
    """Return for each kind of interface the rules that something is tried for in it, out of those asked for."""
    from mb2fmu.audit.behaviour.runner.worker_process import (
        order_trials_by_risk,  # takes a while: a command that runs nothing has no use for it
    )

    tried = [each for each in order_trials_by_risk() if each.where != (VALGRIND,)]
    return {kind: {rule for each in tried if kind in each.kinds for rule in each.rules} & set(rules) for kind in kinds}


def _watched(
    archive: FmuArchive, scratch: Path, members: dict[str, str], base: dict[str, Any],
    host: RemoteHost, guards: _Supervisors
) -> SupervisedRunResult:  # fmt: skip
    """Run the FMU once more under valgrind, for the rule that needs it."""
    own = {**base, "far": host.as_json(), "rules": [MEMORY]}
    trial = _guarded(archive, scratch, "valgrind", "plain", members, own, guards)
    trial.observations = [each for each in trial.observations if each.rule == MEMORY]
    trial.tried = [each for each in trial.tried if each.endswith(WATCHED)]
    trial.judged &= {MEMORY}
    trial.lacking.clear()
    return trial


@contextmanager
def _parallel(count: int, guards: _Supervisors) -> Iterator[Any]:
    """Yield a map over so many threads; an interruption kills the guards that the threads wait for."""
    if count == 1:
        yield map
        return
    with ThreadPoolExecutor(count) as pool:
        try:
            yield pool.map
        except BaseException:  # the threads end with what they wait for
            guards.stop()
            raise


def _tried(
    archive: FmuArchive, scratch: Path, members: dict[str, str], base: dict[str, Any], guards: _Supervisors
) -> SupervisedRunResult:  # fmt: skip
    """Try the FMU in an awkward folder, and in a plain one too if no instance can be had there."""
    name = next(iter(members))
    trial = _guarded(archive, scratch, f"{name}-1", UNIT, members, base, guards)
    failed = [each for each in trial.observations if _stillborn(each)]
    if not failed or failed[0].message.count("is not back"):
        return trial
    plain = _guarded(archive, scratch, f"{name}-2", "plain", members, base, guards)
    if any(map(_stillborn, plain.observations)):
        return trial
    text = f"in a folder with spaces and umlauts: {failed[0].message}"
    plain.observations.append(Observation("host.path", text, failed[0].where))
    return plain


def _stillborn(each: Observation) -> bool:
    """Return whether an observation says that no instance could be made at all."""
    return each.rule in {"life.load", "life.instantiate"} or each.message.endswith(FIRST)


def unpack_archive_members(archive: FmuArchive, folder: Path) -> None:
    """Write the members that stay within the folder; rules of the archive report the others."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in archive.contents.items():
        parts = PurePosixPath(name).parts
        if ".." in parts or name.startswith("/") or "\\" in name or (len(name) > 1 and name[1] == ":"):
            continue
        path = folder / name
        with suppress(OSError):  # a file where another member wants a folder: archive.paths tells it
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            if name.startswith("binaries/"):
                path.chmod(0o755)
    with suppress(OSError):
        (folder / "resources").mkdir(parents=True, exist_ok=True)


def _guarded(
    archive: FmuArchive, scratch: Path, name: str, place: str, members: dict[str, str], base: dict[str, Any],
    guards: _Supervisors,
) -> SupervisedRunResult:  # fmt: skip
    """Try an FMU in a folder of its own; where its watching process dies, go on behind the probe that killed it."""
    trial = SupervisedRunResult(runnable=True)
    if time.monotonic() > base["deadline"]:
        more = " under valgrind" if base["far"] and base["far"]["name"] == VALGRIND else ""
        trial.skipped += [f"{kind}: all that is tried{more}: {SPENT}" for kind in members]
        return trial
    root = scratch / name
    folder = root / place
    unpack_archive_members(archive, folder)
    spoken = scratch / f"{name}.out"
    asked = scratch / f"{name}.json"
    libraries_ = {kind: str(folder / member) for kind, member in members.items()}
    ended: list[str] = []
    for _ in range(MOST_GUARDS):
        request = {
            **base, "root": str(root), "folder": str(folder), "libraries": libraries_, "spoken": str(root / "spoken"),
            "tried": trial.tried, "ended": ended,
        }  # fmt: skip
        asked.write_text(json.dumps(request), encoding="utf-8")
        ending = _run(asked, spoken, trial, ended, base["deadline"], guards)
        if not ending or guards.stopped:
            break
        trial.killed += 1
        kind = (trial.tried or [f"{name.rpartition('-')[0]}: "])[-1].partition(": ")[0]
        if trial.tried:
            title = trial.tried[-1].partition(": ")[2]
            text = f"the process that watches it {ending} while trying {title}"
            trial.observations.append(Observation("host.system", text, kind))
        else:
            trial.faults.append(f"the watching process {ending}: {_tail(spoken)}")
            break
    _output(trial, root / "spoken", base["rules"])
    return trial


def _run(
    asked: Path, spoken: Path, trial: SupervisedRunResult, ended: list[str], deadline: float, guards: _Supervisors
) -> str:  # fmt: skip
    """Run one guard; return how it ended, empty if as it should."""
    token = secrets.token_hex(16)
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1", MARK: token}
    # A cache of small blocks would hand them out as they were given back, whatever new memory is filled with.
    environment["GLIBC_TUNABLES"] = "glibc.malloc.tcache_count=0"
    command = [sys.executable, "-P", "-m", "mb2fmu.audit.behaviour.runner.supervisor", str(asked)]
    complete = False
    with spoken.open("ab") as errors:
        process = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, env=environment, text=True,
            encoding="utf-8", start_new_session=True,
        )  # fmt: skip
        late = threading.Event()

        def end() -> None:
            """End the guard itself: it is too slow, for example on a busy machine."""
            late.set()
            process.kill()

        timer = threading.Timer(max(deadline - time.monotonic(), 0.0) + LATE, end)
        timer.daemon = True
        timer.start()
        guards.enter(process)
        try:
            assert process.stdout is not None
            for line in process.stdout:
                complete = _read(trial, line, ended) or complete
            code = process.wait()
        finally:
            guards.running.discard(process)
            timer.cancel()
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream:
                    with suppress(OSError):
                        stream.close()
            for number in list_marked_processes(token):
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(number, getattr(signal, "SIGKILL", signal.SIGTERM))
    if late.is_set() and not complete:
        trial.skipped.append(f"what was being tried: {SPENT}")
        return ""
    return "" if complete else f"ends with {code}"


def _read(trial: SupervisedRunResult, text: str, ended: list[str]) -> bool:
    """Read one line of the guard; return whether it is the last."""
    try:
        line = json.loads(text)
    except ValueError:
        return False
    trial.killed += bool(line.get("killed"))
    if "begin" in line:
        trial.tried.append(line["begin"])
    elif "found" in line:
        trial.observations.append(Observation(*line["found"]))
    elif "skipped" in line:
        trial.skipped.append(line["skipped"])
    elif "judged" in line:
        trial.judged |= set(line["judged"])
    elif "idle" in line:
        trial.idle.setdefault(*line["idle"])
    elif "lacking" in line:
        trial.lacking += [each for each in line["lacking"] if each not in trial.lacking]
    elif "fault" in line:
        trial.faults.append(line["fault"])
    elif "ended" in line:
        ended.append(line["ended"])
        trial.skipped.append(f"{line['ended']}: all that follows: {line['why']}")
    return "end" in line


def _tail(spoken: Path) -> str:
    """Return the last 2,000 bytes of what was printed; empty where there is no file."""
    try:
        with spoken.open("rb") as file:
            file.seek(max(spoken.stat().st_size - 2000, 0))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def _output(trial: SupervisedRunResult, spoken: Path, rules: Collection[str]) -> None:
    """Add an observation if the FMU wrote to its host's standard output."""
    text = _tail(spoken).strip()
    if text and "host.output" in rules:
        first = text.splitlines()[0]
        trial.observations.append(
            Observation("host.output", f'writes to the standard output of its host: "{first[:120]}"')
        )
