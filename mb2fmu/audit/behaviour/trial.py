"""``try_unit``: runs the probes in a process of their own; what kills it is a finding, and the others go on."""

from __future__ import annotations

import json
import os
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any

from mb2fmu.audit.description.archive_rules import Archive
from mb2fmu.audit.description.described_model import Description
from mb2fmu.audit.finding import Observation
from mb2fmu.scratch import work_folder

AWKWARD = "mb2fmu audit größe é"
"""A folder as users have them: with spaces and umlauts. Units are tried in one."""

_FOLDERS = {
    ("Linux", "x86_64"): ("linux64", "x86_64-linux"),
    ("Linux", "aarch64"): ("aarch64-linux", "aarch64-linux"),
}
FIRST = "while trying instantiating it"
"""How a crash in the first probe is told."""

MOST_CRASHES = 12
START_LIMIT = 120.0
"""For the trying process to come to its first probe, in s."""

IDLE = 0.002
"""Part of a processor below which a process only waits."""

MOST_SLOWNESS = 20.0
"""By how much a busy machine may slow a process down."""


@dataclass
class Trial:
    """What running it showed.

    Attributes:
        observations: What the probes saw.
        skipped: What could not be judged, with the reason.
        faults: Tracebacks of the auditor itself.
        tried: Titles of the probes, in order.
        killed: How many processes the unit took with it.
    """

    observations: list[Observation] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    tried: list[str] = field(default_factory=list)
    killed: int = 0


def libraries(description: Description, names: Collection[str]) -> dict[str, str]:
    """Kind → member of the archive that this machine can run."""
    pair = _FOLDERS.get((platform.system(), platform.machine()))
    if pair is None:
        return {}
    folder = pair[0] if description.version == 2 else pair[1]
    found = {}
    for kind in description.interfaces:
        member = f"binaries/{folder}/{description.identifier(kind)}.so"
        if kind != "ScheduledExecution" and member in names:
            found[kind] = member
    return found


def try_unit(
    archive: Archive, description: Description, rules: Collection[str], *, time_limit: float, memory_limit: int
) -> Trial:
    """Unpacks a unit and tries it.

    Args:
        archive: The unit.
        description: Of it.
        rules: Ids that are asked for: probes of others are not tried.
        time_limit: For each probe, in s.
        memory_limit: Address space of the process, in bytes.
    """
    members = libraries(description, archive.names)
    trial = Trial()
    for kind in description.interfaces:
        if kind not in members:
            why = (
                "the auditor does not run it"
                if kind == "ScheduledExecution"
                else "the archive has no binary for this machine"
            )
            trial.skipped.append(f"{kind}: {why}; only its description was judged")
    if not members:
        return trial
    with work_folder("run the unit") as root:
        folder = root / AWKWARD
        _unpack(archive, folder)
        _tried(trial, folder, members, rules, time_limit, memory_limit)
        failed = [each for each in trial.observations if _stillborn(each)]
        if failed:
            plain = Trial(skipped=trial.skipped)
            _unpack(archive, root / "plain")
            _tried(plain, root / "plain", members, rules, time_limit, memory_limit)
            if not any(map(_stillborn, plain.observations)):
                text = f"in a folder with spaces and umlauts: {failed[0].message}"
                plain.observations.append(Observation("host.path", text, failed[0].where))
                return plain
    return trial


def _stillborn(each: Observation) -> bool:
    return each.rule in {"life.load", "life.instantiate"} or each.message.endswith(FIRST)


def _unpack(archive: Archive, folder: Path) -> None:
    for name, content in archive.contents.items():
        parts = PurePosixPath(name).parts
        if ".." in parts or name.startswith("/") or "\\" in name:
            continue
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        if name.startswith("binaries/"):
            path.chmod(0o755)
    (folder / "resources").mkdir(parents=True, exist_ok=True)


def _tried(
    trial: Trial, folder: Path, members: dict[str, str], rules: Collection[str], time_limit: float, memory_limit: int
) -> None:
    output = folder.parent / f"{folder.name}.jsonl"
    spoken = folder.parent / f"{folder.name}.out"
    ended: list[str] = []
    while trial.killed <= MOST_CRASHES:
        request = {
            "folder": str(folder),
            "libraries": {kind: str(folder / member) for kind, member in members.items()},
            "rules": sorted(rules),
            "tried": trial.tried,
            "ended": ended,
            "memory": memory_limit,
            "output": str(output),
        }
        asked = folder.parent / f"{folder.name}.json"
        asked.write_text(json.dumps(request), encoding="utf-8")
        output.write_text("", encoding="utf-8")
        ending, late = _process(asked, output, spoken, folder, time_limit)
        done, last = _read(trial, output, ended), _begun(output)
        if done:
            break
        trial.killed += 1
        if last is None:
            trial.faults.append(f"the trying process ended before the first probe: {ending}: {_tail(spoken)}")
            break
        kind, _, title = last.begin.partition(": ")
        if title == "instantiating it":
            ended.append(kind)
        text = f"the process {ending} while trying {title}{last.at and f': {last.at}'}"
        trial.observations.append(Observation(last.slow if late else last.crash, text, kind))
    _output(trial, spoken, rules)


def _process(asked: Path, output: Path, spoken: Path, folder: Path, time_limit: float) -> tuple[str, bool]:
    """Runs one process; how it ended, and whether that was for the time it took."""
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "mb2fmu.audit.behaviour.child", str(asked)]
    with spoken.open("ab") as stream:
        process = subprocess.Popen(  # noqa: S603  our own interpreter and module
            command, stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, cwd=folder.parent, env=environment
        )
        size, since, used, limit = -1, time.monotonic(), 0.0, max(time_limit, START_LIMIT)
        while True:
            try:
                code = process.wait(timeout=0.02)
                break
            except subprocess.TimeoutExpired:
                now = output.stat().st_size
                if now != size:
                    size, since, used = now, time.monotonic(), _processor_time(process.pid)
                    last = _begun(output)
                    limit = min(time_limit, last.limit or time_limit) if last else max(time_limit, START_LIMIT)
                elif _hangs(time.monotonic() - since, _processor_time(process.pid) - used, limit):
                    process.kill()
                    process.wait()
                    return f"was not done after {limit:g} s", True
    if code < 0:
        try:
            return f"dies by {signal.Signals(-code).name}", False
        except ValueError:
            return f"dies by signal {-code}", False
    return f"ends with exit code {code}", False


def _hangs(passed: float, worked: float, limit: float) -> bool:
    """Whether a process is given up: it has worked for as long as it may, or has waited without working.

    On a busy machine the clock tells little: a process that gets a tenth of a processor is slow through no fault of its
    own.

    Args:
        passed: By the clock since it last said something, in s.
        worked: Time of the processor in between, in s.
        limit: What it may take, in s.
    """
    idle = passed > limit and worked < IDLE * passed
    return worked > limit or idle or passed > MOST_SLOWNESS * limit


def _processor_time(process: int) -> float:
    """User and system time of a process so far, in s; 0 where that cannot be known."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class _Begun:
    """The probe begun last: kind and title, rules of a crash and of slowness, its limit in s, what it was at."""

    begin: str
    crash: str
    slow: str
    limit: float | None
    at: str = ""


def _lines(output: Path) -> list[dict[str, Any]]:
    """What one process wrote so far; what it was just writing is left out."""
    text = output.read_text(encoding="utf-8")
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def _begun(output: Path) -> _Begun | None:
    last = None
    for line in _lines(output):
        if "begin" in line:
            last = _Begun(**line)
        elif "at" in line and last is not None:
            last = replace(last, at=line["at"])
    return last


def _read(trial: Trial, output: Path, ended: list[str]) -> bool:
    """Takes what one process wrote; whether it came to the end."""
    done = False
    for line in _lines(output):
        if "begin" in line:
            trial.tried.append(line["begin"])
        elif "found" in line:
            trial.observations.append(Observation(*line["found"]))
        elif "skipped" in line:
            trial.skipped.append(line["skipped"])
        elif "fault" in line:
            trial.faults.append(line["fault"])
        elif "ended" in line:
            ended.append(line["ended"])
        done = done or "done" in line
    return done


def _tail(spoken: Path) -> str:
    return spoken.read_text(encoding="utf-8", errors="replace")[-2000:]


def _output(trial: Trial, spoken: Path, rules: Collection[str]) -> None:
    text = _tail(spoken).strip()
    if text and not trial.killed and "host.output" in rules:
        first = text.splitlines()[0]
        trial.observations.append(
            Observation("host.output", f'writes to the standard output of its host: "{first[:120]}"')
        )
