"""Try an FMU in this process, which the FMU may kill: forked by ``guard.py``, or started anew where fork is missing.

What is found is written as it comes, so that a crash loses none: ``begin`` before each probe, ``at`` before
what may take long in it, then what it saw, and what it had nothing to judge of. The FMU's own output goes to a file.
"""

from __future__ import annotations

import ctypes as c
import functools
import json
import os
import socket
import sys
import time
import traceback
from pathlib import Path
from typing import Any

from mb2fmu.audit.behaviour.fixture.trial_fixture import (
    EndlessEventsError,
    IntegratorBudgetError,
    SimulationEndedError,
    SingleInstanceError,
    TrialFixture,
)
from mb2fmu.audit.behaviour.fixture.trial_registry import PROBES, Trial
from mb2fmu.audit.behaviour.fixture.work_folders import WORK, work_folder_environment
from mb2fmu.audit.behaviour.instance.fmi_types import FmuLibrary, RefusedCallError
from mb2fmu.audit.behaviour.instance.remote_hosts import HERE, VALGRIND, WINE, load_remote_library, windows_path
from mb2fmu.audit.behaviour.instance.remote_library import RemoteLibrary
from mb2fmu.audit.behaviour.process.process_settings import describe_exhausted_resources
from mb2fmu.audit.behaviour.process.sandbox import (
    confine_writes,
    end_with_parent,
    limit_resources,
    monitor_system_calls,
)
from mb2fmu.audit.behaviour.process.shared_memory import SharedMemoryChannel
from mb2fmu.audit.behaviour.process.time_budget import SPENT, SkippedTrialError, TimeBudget
from mb2fmu.audit.behaviour.trials import (
    array_trials,
    call_trials,
    clock_trials,
    dependency_trials,
    derivative_trials,
    event_trials,
    host_environment_trials,
    input_timing_trials,
    instance_trials,
    life_cycle_trials,
    memory_trials,
    model_exchange_trials,
    naming_trials,
    order_trials,
    persistence_trials,
    recorded_trials,
    resized_array_trials,
    stale_value_trials,
    state_trials,
    step_trials,
    time_derivative_trials,
    typed_dependency_trials,
    unusual_text_trials,
    update_trials,
    valgrind_trials,
    value_trials,
)
from mb2fmu.audit.description.description_import import read_description
from mb2fmu.audit.description.description_records import DESCRIPTION, DescribedModel
from mb2fmu.audit.recorded_reference import RecordedReference

# In this order: first what all others need, last what may leave the process in disorder.
ORDER = (
    life_cycle_trials, naming_trials, value_trials, model_exchange_trials, step_trials,
    recorded_trials, time_derivative_trials, input_timing_trials, update_trials, event_trials, state_trials,
    dependency_trials, typed_dependency_trials, derivative_trials, stale_value_trials, call_trials, instance_trials,
    unusual_text_trials, persistence_trials, order_trials, array_trials, clock_trials, resized_array_trials,
    memory_trials, host_environment_trials, valgrind_trials,
)  # fmt: skip
LEAK = "life.leak"
LOOK = 0.2
"""How long is looked at what threads do, in s."""

SHARE = 0.15
"""Part of the budget that one probe may take of the processor."""


def order_trials_by_risk() -> list[Trial]:
    """Return all probes in the order in which they are tried."""
    place = {module.__name__: k for k, module in enumerate(ORDER)}
    return sorted(PROBES, key=lambda each: (each.late, place[each.function.__module__]))


def run_trial(each: Trial, stage: TrialFixture, write: Any) -> bool:
    """Run one probe; return whether the FMU is worth further ones."""
    good, pace = True, stage.library.pace
    judged, leaks = False, False
    for _ in range(2):
        try:
            for seen in each.function(stage):
                good = good and seen.rule != "life.instantiate"
                leaks = leaks or seen.rule == LEAK
                write({"found": [seen.rule, seen.message, seen.where]})
            judged = True
        except (SimulationEndedError, IntegratorBudgetError) as error:
            judged, again = _short(each, stage, error, write)
            if again:
                continue
        except Exception as error:  # noqa: BLE001  whatever it is: it must not take the other probes along
            judged = _stopped(each, stage, error, write)
        break
    _say_beside(stage, write, leaks=leaks)
    if pace.spent:
        judged = False
        write({"skipped": f"{stage.kind}: {each.title}: not to its end: {pace.spent}"})
    if judged:
        write({"judged": [rule for rule in each.rules if rule not in stage.idle]})
    for rule, why in stage.idle.items():
        write({"idle": [rule, f"{stage.kind}: {why}"]})
    stage.idle.clear()
    return good


def _say_beside(stage: TrialFixture, write: Any, *, leaks: bool) -> None:
    """Report side effects of the FMU on its process; leaks only where the probe does not report them itself."""
    for misdeed, rule in stage.library.misdeeds.items():
        write({"found": [rule, misdeed, stage.kind]})
    stage.library.misdeeds.clear()
    if not leaks and (left := describe_exhausted_resources()):
        write({"found": [LEAK, left, stage.kind]})


def _short(
    each: Trial, stage: TrialFixture, error: SimulationEndedError | IntegratorBudgetError, write: Any
) -> tuple[bool, bool]:
    """Return, for an interrupted run, whether that is a verdict, and whether to retry with shorter runs."""
    if isinstance(error, IntegratorBudgetError):
        write({"skipped": f"{stage.kind}: {each.title}: {error}"})
        sooner = stage.start + 0.1 * (error.time - stage.start)  # so that others come to an end in next to no time
        return False, _shortened(stage, sooner, str(error))
    if error.moved:
        write({"skipped": f"{stage.kind}: {each.title}: with other values {error}"})
        return False, False
    if stage.told_stop is not None:  # without an experiment of its own it may end when it likes
        write({"found": ["life.ends", str(error), stage.kind]})
    return True, _shortened(stage, error.time, "it wants to end")


def _shortened(stage: TrialFixture, end: float, why: str) -> bool:
    """Let all runs end before a time; return whether any part of them is left."""
    steps = int((end - stage.start) / stage.step * (1 - 1e-9)) - 1
    if not 0 < steps < stage.steps:
        return False
    stage.__dict__["steps"] = steps
    stage.skipped.append(f"{stage.kind}: the motion after t = {stage.start + steps * stage.step:.6g}: {why}")
    return True


def _stopped(each: Trial, stage: TrialFixture, error: Exception, write: Any) -> bool:
    """Report what stopped a probe; return whether that is a verdict on the FMU.

    What the FMU does is told by classes of errors; any other is a fault of the auditor's own, reported as such.
    """
    if isinstance(error, EndlessEventsError):
        write({"found": ["life.rest", str(error), stage.kind]})
        return True
    if isinstance(error, RefusedCallError):
        write({"found": ["life.calls", f"{each.title}: {error}", stage.kind]})
        return True
    if isinstance(error, SingleInstanceError):
        for rule in each.rules:
            stage.nothing(rule, str(error))
    elif isinstance(error, SkippedTrialError):
        if not stage.library.pace.spent:
            write({"skipped": f"{stage.kind}: {each.title}: {error}"})
    elif isinstance(error, AttributeError) and "symbol" in str(error):
        # ctypes: a function that is not exported; binary.symbols names it
        write({"skipped": f"{stage.kind}: {each.title}: {str(error).rpartition(': ')[2]}"})
    elif isinstance(error, (OSError, MemoryError, ImportError, RuntimeError)) and (
        left := describe_exhausted_resources()
    ):
        write({"skipped": f"{stage.kind}: {each.title}: {left}"})
    else:
        write({"fault": f"{stage.kind}: {each.title}: {''.join(traceback.format_exception(error))}"})
    return False


def load_fmu_library(path: Path, request: dict[str, Any]) -> c.CDLL | RemoteLibrary:
    """Load the library: in this process, or in a host of its own.

    Raises:
        OSError: If the loader refuses it.
    """
    return load_remote_library(request["far"], Path(request["root"]), path) if request["far"] else c.CDLL(str(path))


def _resources(request: dict[str, Any]) -> str:
    """Return the path of the resources as the FMU sees it: with drive and slashes under wine."""
    path = Path(request["folder"]) / "resources"
    return windows_path(path).replace("\\", "/") if describe_host(request) == WINE else str(path)


BY = {HERE: "", WINE: " through wine", VALGRIND: " under valgrind"}
"""How an FMU is run → as a sentence ends with it."""


def describe_host(request: dict[str, Any]) -> str:
    """Return how the FMU is run: here, through wine or under valgrind."""
    return str(request["far"]["name"]) if request["far"] else HERE


@functools.cache
def read_cached_description(folder: str) -> DescribedModel:
    """Return the FMU's description; read once by a watching process for all its forks, as large ones take a second.

    Args:
        folder: Where it is unpacked.
    """
    return read_description((Path(folder) / DESCRIPTION).read_bytes())


def run_requested_trials(request: dict[str, Any], channel: SharedMemoryChannel) -> None:
    """Try all requested probes that were not tried yet."""
    description = read_cached_description(request["folder"])
    host_environment_trials.note_process_settings()
    pace = TimeBudget(channel, request["deadline"])
    for kind, library in request["libraries"].items():
        if kind not in request["ended"] and not _kind(request, kind, Path(library), description, pace, channel):
            channel.write({"fresh": True})
            return
    channel.write({"done": True})


def _kind(
    request: dict[str, Any], kind: str, path: Path, description: Any, pace: TimeBudget, channel: SharedMemoryChannel
) -> bool:  # fmt: skip
    """Try the probes of one interface type in order, and write what they find; stop if no instance can be had.

    Returns:
        False if the next probe needs a new process, since the FMU has used up what this one may have, or nearly.
    """
    write = channel.write
    wanted = [each for each in order_trials_by_risk() if _asked(each, kind, request)]
    if not wanted:
        return True
    _say_untried(request, kind, write)
    stage: TrialFixture | None = None
    for each in wanted:
        name = f"{kind}: {each.title}"
        if pace.over:
            write({"skipped": f"{name}: {SPENT}"})
            continue
        write({"begin": name, "crash": each.crash, "slow": each.slow, "limit": each.limit})
        stage = stage or _staged(request, kind, path, description, pace, write)
        if stage is None:
            return True
        once = stage.once
        pace.begin(SHARE * request["effort"] * each.weight)
        good = run_trial(each, stage, write)
        for text in dict.fromkeys(stage.skipped):
            write({"skipped": text})
        stage.skipped.clear()
        if stage.once and not once:
            write({"once": True})
        after = _after(stage, write, good=good)
        if after is not None:
            return after
    return True


def _staged(
    request: dict[str, Any], kind: str, path: Path, description: Any, pace: TimeBudget, write: Any
) -> TrialFixture | None:  # fmt: skip
    """Load the library; report it if it cannot be loaded."""
    try:
        with pace.calling("loading the library"):
            handle = load_fmu_library(path, request)
    except OSError as error:
        write({"found": ["life.load", str(error).replace(f"{path.parent}/", ""), kind]})
        write({"ended": kind, "why": f"its library cannot be loaded{BY[describe_host(request)]}"})
        return None
    library = FmuLibrary(handle, description, _resources(request), pace=pace, path=path)
    library.process["once"] = int(request.get("once", False))
    recorded = request.get("recorded")
    return TrialFixture(
        library, kind, Path(request["folder"]), tell=lambda text: write({"at": text}), effort=request["effort"],
        recorded=None if recorded is None else RecordedReference.of_json(recorded),
    )  # fmt: skip


def _after(stage: TrialFixture, write: Any, *, good: bool) -> bool | None:
    """Return how to go on behind a probe: None: with the next one, False: in a new process, True: not at all."""
    if not good:
        write({"ended": stage.kind, "why": "no instance can be had"})
        return True
    if stage.once and stage.made:
        return False
    left = describe_exhausted_resources()
    if not left:
        return None
    if _busy():
        write({"ended": stage.kind, "why": f"{left}, and they keep the processor busy"})
        return True
    return False


def _busy() -> bool:
    """Whether this process works although it waits: threads of the FMU do."""
    began = time.process_time()
    time.sleep(LOOK)
    return time.process_time() - began > LOOK / 10


def _say_untried(request: dict[str, Any], kind: str, write: Any) -> None:
    """Report rules that can be judged only for an FMU in this process."""
    for each in PROBES if describe_host(request) == WINE else ():
        if WINE not in each.where:
            for rule in set(each.rules) & set(request["rules"]):
                write({"idle": [rule, f"{kind}: it cannot be tried through wine"]})


def _asked(each: Trial, kind: str, request: dict[str, Any]) -> bool:
    """Return whether a probe is wanted for this kind and place, and not tried before."""
    asked = each.function in {
        life_cycle_trials.try_instantiation,
        life_cycle_trials.try_instantiation_after_free,
    } or bool(set(each.rules) & set(request["rules"]))
    return (
        describe_host(request) in each.where
        and kind in each.kinds
        and f"{kind}: {each.title}" not in request["tried"]
        and asked
    )


def run_confined(request: dict[str, Any], channel: SharedMemoryChannel, end: socket.socket, parent: int) -> None:
    """Run within limits, after a fork; never return."""
    try:
        os.setsid()
        end_with_parent(parent)
        root = Path(request["root"])
        _descriptors(Path(request["spoken"]), end)
        os.environ.update(work_folder_environment(root))
        os.chdir(root / WORK)
        far = request["far"]
        lacking = [
            *limit_resources(None if far else request["memory"]),
            confine_writes(root),
            monitor_system_calls(end, far=bool(far)),
        ]
        end.close()
        channel.write({"lacking": [each for each in lacking if each]})
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123  what Python says is not the FMU's
        run_requested_trials(request, channel)
    except BaseException:  # noqa: BLE001  a fork must not go on as its parent would
        channel.write({"fault": traceback.format_exc()})
        channel.write({"done": True})
    os._exit(0)


def _descriptors(spoken: Path, spared: socket.socket) -> None:
    """Empty the standard input, redirect the output to a file, and close all other descriptors but one."""
    nothing = os.open(os.devnull, os.O_RDONLY)
    said = os.open(spoken, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(nothing, 0)
    os.dup2(said, 1)
    os.dup2(said, 2)
    kept = spared.fileno()
    os.closerange(3, kept)
    os.closerange(kept + 1, 256)


def main() -> None:
    """Run the request in a file, on systems without fork."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    root = Path(request["root"])
    channel = SharedMemoryChannel(root.parent / f"{root.name}.channel")
    os.environ.update(work_folder_environment(root))
    os.chdir(root / WORK)
    lacking = [*limit_resources(request["memory"]), confine_writes(root), monitor_system_calls(None, far=False)]
    channel.write({"lacking": [each for each in lacking if each]})
    # The deadline is by the clock of the watching process.
    request["deadline"] = time.monotonic() + request["left"]
    run_requested_trials(request, channel)


if __name__ == "__main__":
    main()
