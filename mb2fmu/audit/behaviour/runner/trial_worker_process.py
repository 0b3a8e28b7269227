"""Run the trials in this process, which the FMU may kill: a fork of the supervisor, or a new process without fork.

What is found is written as it comes, so that a crash loses none: ``begin`` before each trial, ``at`` before
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
    SingleInstanceError,
    TerminateSimulationError,
    TrialFixture,
)
from mb2fmu.audit.behaviour.fixture.trial_folders import WORK, make_work_folder_environment
from mb2fmu.audit.behaviour.fixture.trial_registry import TRIALS, AuditTrial
from mb2fmu.audit.behaviour.instance.fmi_c_interface import DISCARD, FmuLibrary, RefusedCallError
from mb2fmu.audit.behaviour.instance.remote_library import RemoteFmuLibrary
from mb2fmu.audit.behaviour.instance.wine_and_valgrind_hosts import (
    IN_PROCESS,
    VALGRIND,
    WINE,
    convert_to_wine_path,
    load_remote_library,
)
from mb2fmu.audit.behaviour.process.process_global_settings import describe_exhausted_resources
from mb2fmu.audit.behaviour.process.sandbox import (
    confine_writes,
    end_process_with_parent,
    install_seccomp_filter,
    limit_process_resources,
)
from mb2fmu.audit.behaviour.process.shared_memory_channel import SharedMemoryChannel
from mb2fmu.audit.behaviour.process.trial_time_budget import BUDGET_SPENT, SkippedTrialError, TrialTimeBudget
from mb2fmu.audit.behaviour.trials import (
    array_size_trials,
    call_order_trials,
    clock_trials,
    communication_step_trials,
    declared_value_trials,
    dependency_trials,
    event_trials,
    get_and_set_trials,
    host_environment_trials,
    input_and_output_derivative_trials,
    input_timing_trials,
    instance_name_and_logging_trials,
    intermediate_update_trials,
    life_cycle_trials,
    memory_trials,
    model_exchange_trials,
    parallel_instance_trials,
    partial_derivative_trials,
    recorded_run_trials,
    saved_state_trials,
    stale_value_trials,
    unusual_text_and_setup_trials,
    valgrind_trials,
    value_persistence_trials,
)
from mb2fmu.audit.description.description_import import parse_model_description
from mb2fmu.audit.description.description_records import DESCRIPTION, DescribedModel
from mb2fmu.audit.recorded_reference_run import AuditReferenceRun

# In this order: first what all others need, last what may leave the process in disorder.
TRIAL_MODULES = (
    life_cycle_trials, instance_name_and_logging_trials, declared_value_trials, model_exchange_trials,
    communication_step_trials, recorded_run_trials, input_and_output_derivative_trials, input_timing_trials,
    intermediate_update_trials,
    event_trials, saved_state_trials, dependency_trials, partial_derivative_trials, stale_value_trials,
    get_and_set_trials, parallel_instance_trials,
    unusual_text_and_setup_trials, value_persistence_trials, call_order_trials, array_size_trials, clock_trials,
    memory_trials, host_environment_trials, valgrind_trials,
)  # fmt: skip
LEAK_RULE = "life.leak"
BUSY_CHECK_TIME = 0.2
"""Time in which the activity of threads is measured, s."""

MEMORY_SPENT = "the memory that it may take is used up"
_INPUT_REDUCTIONS = 2
"""How often inputs without bounds are changed a tenth as far after a Discard."""
TRIAL_TIME_SHARE = 0.15
"""Share of the processor budget that one trial may take."""


def order_trials_by_risk() -> list[AuditTrial]:
    """Return all trials in order, those that may disturb the process last."""
    module_order = {module.__name__: index for index, module in enumerate(TRIAL_MODULES)}
    return sorted(TRIALS, key=lambda trial: (trial.runs_last, module_order[trial.function.__module__]))


def _run_trial(trial: AuditTrial, fixture: TrialFixture, write: Any) -> bool:
    """Run one trial; return whether the FMU can be instantiated, so that further trials make sense."""
    can_be_instantiated, trial_budget = True, fixture.library.trial_budget
    is_judged, reports_leak = False, False
    for _ in range(2 + _INPUT_REDUCTIONS):
        try:
            for observation in trial.function(fixture):
                can_be_instantiated = can_be_instantiated and observation.rule != "life.instantiate"
                reports_leak = reports_leak or observation.rule == LEAK_RULE
                write({"found": [observation.rule, observation.message, observation.where]})
            is_judged = True
        except (TerminateSimulationError, IntegratorBudgetError) as error:
            is_judged, retry = _handle_early_end(trial, fixture, error, write)
            if retry:
                continue
        except Exception as error:  # noqa: BLE001  whatever it is: it must not take the other trials along
            if isinstance(error, RefusedCallError) and _reduce_inputs(fixture, error):
                continue
            is_judged = _report_stop(trial, fixture, error, write)
        break
    _report_side_effects(fixture, write, reports_leak=reports_leak)
    if trial_budget.exhausted_reason:
        is_judged = False
        write({"skipped": f"{fixture.interface}: {trial.title}: not to its end: {trial_budget.exhausted_reason}"})
    if is_judged:
        write({"judged": [rule for rule in trial.rules if rule not in fixture.inapplicable]})
    for rule, reason in fixture.inapplicable.items():
        write({"idle": [rule, f"{fixture.interface}: {reason}"]})
    fixture.inapplicable.clear()
    return can_be_instantiated


def _report_side_effects(fixture: TrialFixture, write: Any, *, reports_leak: bool) -> None:
    """Report side effects of the FMU on its process; leaks only where the trial does not report them itself."""
    for violation, rule in fixture.library.violations.items():
        write({"found": [rule, violation, fixture.interface]})
    fixture.library.violations.clear()
    if not reports_leak and (exhausted_resource := describe_exhausted_resources()):
        write({"found": [LEAK_RULE, exhausted_resource, fixture.interface]})


def _handle_early_end(
    trial: AuditTrial, fixture: TrialFixture, error: TerminateSimulationError | IntegratorBudgetError, write: Any
) -> tuple[bool, bool]:
    """Return, for an interrupted run, whether that is a verdict, and whether to retry with shorter runs."""
    if isinstance(error, IntegratorBudgetError):
        write({"skipped": f"{fixture.interface}: {trial.title}: {error}"})
        earlier_end = fixture.start + 0.1 * (
            error.time - fixture.start
        )  # so that others come to an end in next to no time
        return False, _shorten_runs(fixture, earlier_end, str(error))
    if error.values_were_changed:
        write({"skipped": f"{fixture.interface}: {trial.title}: with other values {error}"})
        return False, False
    if fixture.declared_stop is not None:  # without an experiment of its own it may end when it likes
        write({"found": ["life.ends", str(error), fixture.interface]})
    return True, _shorten_runs(fixture, error.time, "it wants to end")


def _reduce_inputs(fixture: TrialFixture, refusal: RefusedCallError) -> bool:
    """Let inputs without bounds change a tenth as far after a Discard; return whether the trial is to be repeated.

    Nothing says how far such an input goes: far out an equation may have no value, which is no fault of the FMU. A
    Discard at a hundredth of its typical magnitude is one.
    """
    inputs, factor = fixture.unbounded_inputs, fixture.shared.unbounded_input_factor
    if refusal.status != DISCARD or not inputs or factor < 1.01 * 0.1**_INPUT_REDUCTIONS:
        return False
    fixture.shared.unbounded_input_factor = 0.1 * factor
    names = ", ".join(variable.name for variable in inputs[:3])
    fixture.skipped.append(
        f"{fixture.interface}: larger changes of inputs without bounds ({names}): {refusal}; bounds say how far they go"
    )
    return True


def _shorten_runs(fixture: TrialFixture, end: float, reason: str) -> bool:
    """Let all runs end before a time; return whether any part of them is left."""
    steps = int((end - fixture.start) / fixture.step * (1 - 1e-9)) - 1
    if not 0 < steps < fixture.affordable_step_count:
        return False
    fixture.step_count = steps
    fixture.skipped.append(
        f"{fixture.interface}: the motion after t = {fixture.start + steps * fixture.step:.6g}: {reason}"
    )
    return True


def _report_stop(trial: AuditTrial, fixture: TrialFixture, error: Exception, write: Any) -> bool:
    """Report the exception that ended a trial; return whether it is a verdict on the FMU.

    Known classes of exceptions are behaviour of the FMU; any other is a fault of the auditor and reported as such.
    """
    if isinstance(error, EndlessEventsError):
        write({"found": ["life.rest", str(error), fixture.interface]})
        return True
    if isinstance(error, RefusedCallError):
        write({"found": ["life.calls", f"{trial.title}: {error}", fixture.interface]})
        return True
    if isinstance(error, SingleInstanceError):
        for rule in trial.rules:
            fixture.mark_inapplicable(rule, str(error))
    elif isinstance(error, SkippedTrialError):
        if not fixture.library.trial_budget.exhausted_reason:
            write({"skipped": f"{fixture.interface}: {trial.title}: {error}"})
    elif isinstance(error, AttributeError) and "symbol" in str(error):
        # ctypes: a function that is not exported; binary.symbols names it
        write({"skipped": f"{fixture.interface}: {trial.title}: {str(error).rpartition(': ')[2]}"})
    elif isinstance(error, MemoryError):
        write({"skipped": f"{fixture.interface}: {trial.title}: {MEMORY_SPENT}"})
    elif isinstance(error, (OSError, ImportError, RuntimeError)) and (
        exhausted_resource := describe_exhausted_resources()
    ):
        write({"skipped": f"{fixture.interface}: {trial.title}: {exhausted_resource}"})
    else:
        write({"fault": f"{fixture.interface}: {trial.title}: {''.join(traceback.format_exception(error))}"})
    return False


def _load_fmu_library(path: Path, request: dict[str, Any]) -> c.CDLL | RemoteFmuLibrary:
    """Load the library: in this process, or in a host of its own.

    Raises:
        OSError: If the loader refuses it.
    """
    return load_remote_library(request["far"], Path(request["root"]), path) if request["far"] else c.CDLL(str(path))


def _resources_path(request: dict[str, Any]) -> str:
    """Return the path of the resources as the FMU sees it: with drive and slashes under wine."""
    path = Path(request["folder"]) / "resources"
    return convert_to_wine_path(path).replace("\\", "/") if _describe_fmu_execution_host(request) == WINE else str(path)


HOST_PHRASES = {IN_PROCESS: "", WINE: " through wine", VALGRIND: " under valgrind"}
"""How an FMU is run → as a sentence ends with it."""


def _describe_fmu_execution_host(request: dict[str, Any]) -> str:
    """Return how the FMU is run: here, through wine or under valgrind."""
    return str(request["far"]["name"]) if request["far"] else IN_PROCESS


@functools.cache
def read_cached_model_description(folder: str) -> DescribedModel:
    """Return the FMU's description; read once by a watching process for all its forks, as large ones take a second.

    Args:
        folder: Where it is unpacked.
    """
    return parse_model_description((Path(folder) / DESCRIPTION).read_bytes())


def _run_requested_trials(request: dict[str, Any], channel: SharedMemoryChannel) -> None:
    """Try all requested trials that were not tried yet."""
    description = read_cached_model_description(request["folder"])
    host_environment_trials.record_initial_process_settings()
    trial_budget = TrialTimeBudget(channel, request["deadline"])
    for interface, library in request["libraries"].items():
        if interface not in request["ended"] and not _run_interface_trials(
            request, interface, Path(library), description, trial_budget, channel
        ):
            channel.write({"fresh": True})
            return
    channel.write({"done": True})


def _run_interface_trials(
    request: dict[str, Any],
    interface: str,
    path: Path,
    description: Any,
    trial_budget: TrialTimeBudget,
    channel: SharedMemoryChannel,
) -> bool:
    """Run the trials of one interface type in order and write their findings; stop if no instance can be made.

    Returns:
        False if the next trial needs a new process, since resources of this one are nearly exhausted.
    """
    write = channel.write
    trials = [trial for trial in order_trials_by_risk() if _is_requested(trial, interface, request)]
    if not trials:
        return True
    _report_untried_rules(request, interface, write)
    fixture: TrialFixture | None = None
    for trial in trials:
        name = f"{interface}: {trial.title}"
        if trial_budget.is_over:
            write({"skipped": f"{name}: {BUDGET_SPENT}"})
            continue
        write({"begin": name, "crash": trial.crash_rule, "slow": trial.timeout_rule, "limit": trial.call_time_limit})
        fixture = fixture or _load_fixture(request, interface, path, description, trial_budget, write)
        if fixture is None:
            return True
        was_single_instance = fixture.single_instance_only
        trial_budget.start_trial(TRIAL_TIME_SHARE * request["effort"] * trial.weight)
        can_be_instantiated = _run_trial(trial, fixture, write)
        for reason in dict.fromkeys(fixture.skipped):
            write({"skipped": reason})
        fixture.skipped.clear()
        if fixture.single_instance_only and not was_single_instance:
            write({"once": True})
        continuation = _decide_continuation(fixture, write, can_be_instantiated=can_be_instantiated)
        if continuation is not None:
            return continuation
    return True


def _load_fixture(
    request: dict[str, Any], interface: str, path: Path, description: Any, trial_budget: TrialTimeBudget, write: Any
) -> TrialFixture | None:  # fmt: skip
    """Load the library; report it if it cannot be loaded."""
    try:
        with trial_budget.observe_call("loading the library"):
            handle = _load_fmu_library(path, request)
    except OSError as error:
        write({"found": ["life.load", str(error).replace(f"{path.parent}/", ""), interface]})
        write(
            {
                "ended": interface,
                "why": f"its library cannot be loaded{HOST_PHRASES[_describe_fmu_execution_host(request)]}",
            }
        )
        return None
    library = FmuLibrary(
        handle, description, _resources_path(request), trial_budget=trial_budget, path=path,
        stage_library=c.CDLL(request["stages"]) if request["stages"] and not request["far"] else None,
    )  # fmt: skip
    library.process_state.single_instance_only = bool(request.get("once", False))
    recorded = request.get("recorded")
    return TrialFixture(
        library,
        interface,
        Path(request["folder"]),
        report_progress=lambda text: write({"at": text}),
        effort=request["effort"],
        run_calls=request["run_calls"],
        recorded=None if recorded is None else AuditReferenceRun.of_json(recorded),
    )


def _decide_continuation(fixture: TrialFixture, write: Any, *, can_be_instantiated: bool) -> bool | None:
    """Return None to continue with the next trial, False to continue in a new process, True to end."""
    if not can_be_instantiated:
        write({"ended": fixture.interface, "why": "no instance can be had"})
        return True
    if fixture.single_instance_only and fixture.instance_count:
        return False
    exhausted_resource = describe_exhausted_resources()
    if not exhausted_resource:
        return None
    if _is_process_busy():
        write({"ended": fixture.interface, "why": f"{exhausted_resource}, and they keep the processor busy"})
        return True
    return False


def _is_process_busy() -> bool:
    """Return whether threads of the FMU use the processor while this process sleeps."""
    start_time = time.process_time()
    time.sleep(BUSY_CHECK_TIME)
    return time.process_time() - start_time > BUSY_CHECK_TIME / 10


def _report_untried_rules(request: dict[str, Any], interface: str, write: Any) -> None:
    """Report rules that can be judged only for an FMU in this process."""
    for trial in TRIALS if _describe_fmu_execution_host(request) == WINE else ():
        if WINE not in trial.hosts:
            for rule in set(trial.rules) & set(request["rules"]):
                write({"idle": [rule, f"{interface}: it cannot be tried through wine"]})


def _is_requested(trial: AuditTrial, interface: str, request: dict[str, Any]) -> bool:
    """Return whether a trial is wanted for this kind and place, and not tried before."""
    is_wanted = trial.function in {
        life_cycle_trials.try_instantiation,
        life_cycle_trials.try_instantiation_after_free,
    } or bool(set(trial.rules) & set(request["rules"]))
    return (
        _describe_fmu_execution_host(request) in trial.hosts
        and interface in trial.interfaces
        and f"{interface}: {trial.title}" not in request["tried"]
        and is_wanted
    )


def run_trials_in_sandbox(
    request: dict[str, Any], channel: SharedMemoryChannel, connection: socket.socket, parent: int
) -> None:
    """Run within limits, after a fork; never return."""
    try:
        os.setsid()
        end_process_with_parent(parent)
        root = Path(request["root"])
        _redirect_descriptors(Path(request["spoken"]), connection)
        os.environ.update(make_work_folder_environment(root))
        os.chdir(root / WORK)
        remote_host = request["far"]
        missing_protections = [
            *limit_process_resources(None if remote_host else request["memory"]),
            confine_writes(root),
            install_seccomp_filter(connection, is_remote=bool(remote_host)),
        ]
        connection.close()
        channel.write({"lacking": [bound for bound in missing_protections if bound]})
        sys.stdout = sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123  what Python says is not the FMU's
        _run_requested_trials(request, channel)
    except BaseException:  # noqa: BLE001  a fork must not go on as its parent would
        channel.write({"fault": traceback.format_exc()})
        channel.write({"done": True})
    os._exit(0)


def _redirect_descriptors(output_file: Path, kept_socket: socket.socket) -> None:
    """Empty the standard input, redirect the output to a file, and close all other descriptors but one."""
    null_input = os.open(os.devnull, os.O_RDONLY)
    output = os.open(output_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(null_input, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    kept_descriptor = kept_socket.fileno()
    os.closerange(3, kept_descriptor)
    os.closerange(kept_descriptor + 1, 256)


def _run_worker_process() -> None:
    """Run the request in a file, on systems without fork."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    root = Path(request["root"])
    channel = SharedMemoryChannel(root.parent / f"{root.name}.channel")
    os.environ.update(make_work_folder_environment(root))
    os.chdir(root / WORK)
    missing_protections = [
        *limit_process_resources(request["memory"]),
        confine_writes(root),
        install_seccomp_filter(None, is_remote=False),
    ]
    channel.write({"lacking": [bound for bound in missing_protections if bound]})
    # The deadline is by the clock of the watching process.
    request["deadline"] = time.monotonic() + request["left"]
    _run_requested_trials(request, channel)


if __name__ == "__main__":
    _run_worker_process()
