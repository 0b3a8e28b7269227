"""Memory: leaks of instances and calls, and FMUs without the importer's memory functions."""

from __future__ import annotations

import ctypes as c
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_changed_value,
    choose_excited_run_values,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import IN_PROCESS_ONLY, register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    do_communication_step,
    find_first_run_difference,
    run_as_interface_type,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError, find_libc_function
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.process_global_settings import (
    MAX_OPEN_DESCRIPTORS,
    count_open_descriptors,
    count_own_threads,
)
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.description.binary_rules import parse_shared_library
from mb2fmu.audit.rules_and_findings import RuleViolation

MAX_INSTANTIATIONS = 1_000
LEAK_TRIAL_TIME = 1.5
"""In s of the processor; FMUs that take longer are instantiated fewer times."""


class _Mallinfo(c.Structure):
    _fields_ = tuple(
        (name, c.c_size_t)
        for name in [
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        ]
    )


def _read_allocated_bytes() -> int | None:
    """Return the bytes that the C library has allocated; None where it cannot report them."""
    mallinfo = find_libc_function("mallinfo2")
    if mallinfo is None:
        return None
    mallinfo.restype = _Mallinfo
    info = mallinfo()
    return int(info.uordblks + info.hblkhd)


def _collect_garbage() -> None:
    """Return the memory of objects without users, and spare those that stay further visits.

    A collection visits all objects of the process. A process has some 100,000, and a trial collects dozens of times.
    """
    gc.collect()
    gc.freeze()


@dataclass
class _MemoryLeakCount:
    """Memory that instances have not freed."""

    unfreed_blocks: int = 0
    invalid_frees: int = 0
    allocations: int = 0

    def use_one_instance(self, fixture: TrialFixture) -> None:
        """Make, use and free one instance."""
        with fixture.open_instance(logging=False) as instance:
            fixture.initialize(instance)
            if fixture.interface == "CoSimulation":
                do_communication_step(fixture, instance, fixture.start, fixture.step)
            elif fixture.n_states:
                instance.get_derivatives(fixture.n_states)
            if fixture.can_save_states:
                instance.free_state(instance.get_state())
        self.unfreed_blocks += len(instance.memory.live_blocks)
        self.invalid_frees += instance.memory.invalid_free_count
        self.allocations += instance.memory.allocation_count


def _repeat_action(max_count: int, action: Callable[[], object]) -> int:
    """Repeat something for a while; return how often."""
    count, end_time = 0, time.process_time() + LEAK_TRIAL_TIME
    while count < max_count and (count < 2 or time.process_time() < end_time):
        action()
        count += 1
    return count


def _count_process_resources() -> dict[str, int]:
    """Return how many descriptors and threads the process has."""
    return {"descriptors": count_open_descriptors() or 0, "threads": count_own_threads() or 0}


@register_trial("instantiating it a thousand times", "life.leak", "flags.memory", hosts=IN_PROCESS_ONLY)
def try_instance_leaks(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that instances leave nothing behind."""
    leak_count = _MemoryLeakCount()
    _repeat_action(20, lambda: leak_count.use_one_instance(fixture))
    leak_count.unfreed_blocks = 0
    _collect_garbage()
    resources_before, bytes_before = _count_process_resources(), _read_allocated_bytes()
    if resources_before["descriptors"] > MAX_OPEN_DESCRIPTORS:  # what reaches the limit does not grow any more
        message = f"{resources_before['descriptors']} descriptors are open, of all that was tried before"
        yield RuleViolation("life.leak", message, fixture.interface)
    count = _repeat_action(MAX_INSTANTIATIONS, lambda: leak_count.use_one_instance(fixture))
    _collect_garbage()
    bytes_after, resources_after = _read_allocated_bytes(), _count_process_resources()
    if leak_count.unfreed_blocks:
        message = (
            f"{leak_count.unfreed_blocks / count:.3g} blocks of the importer's memory are not given back per instance"
        )
        yield RuleViolation("life.leak", message, fixture.interface)
    if leak_count.invalid_frees:
        yield RuleViolation("life.leak", "memory is given back that the importer never gave", fixture.interface)
    if bytes_before is not None and bytes_after is not None and bytes_after - bytes_before > max(16_384, 12 * count):
        yield RuleViolation(
            "life.leak",
            f"{(bytes_after - bytes_before) / count:.4g} bytes remain of each of {count} instances",
            fixture.interface,
        )
    for resource, count_before in resources_before.items():
        increase = resources_after[resource] - count_before
        if increase >= max(
            min(count // 2, MAX_OPEN_DESCRIPTORS // 2), 1
        ):  # the process has a limit, which a fast FMU reaches
            yield RuleViolation("life.leak", f"{increase} {resource} remain of {count} instances", fixture.interface)
    yield from _check_memory_flag(fixture, leak_count.allocations)


def _check_memory_flag(fixture: TrialFixture, allocations: int) -> Iterator[RuleViolation]:
    """Yield canNotUseMemoryManagementFunctions if it contradicts how the FMU allocates (FMI 2)."""
    if fixture.description.version != 2:
        return
    declares_own_allocation = fixture.flag("canNotUseMemoryManagementFunctions")
    if declares_own_allocation and allocations:
        yield RuleViolation(
            "flags.memory",
            "canNotUseMemoryManagementFunctions is true, but it calls the importer's functions",
            fixture.interface,
        )
    if declares_own_allocation or allocations:
        return
    try:
        images = parse_shared_library(fixture.library.path.read_bytes())
    except OSError:
        fixture.mark_inapplicable("flags.memory", "the library is not there any more")
        return
    if any({"malloc", "calloc", "realloc"} & image.imported for image in images):
        message = "canNotUseMemoryManagementFunctions is false, but all its memory is the C library's"
        yield RuleViolation("flags.memory", message, fixture.interface)


@register_trial("null memory functions", "flags.memory_null", crash_rule="flags.memory_null")
def try_null_memory_functions(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that an FMU that declares not to use memory functions works without them."""
    if fixture.description.version == 2 and fixture.flag("canNotUseMemoryManagementFunctions"):
        instance = fixture.instantiate(memory_callbacks=False)
        if not instance.alive:
            yield RuleViolation(
                "flags.memory_null", "no instance is made with null memory functions", fixture.interface
            )
        instance.free()


# --- calls on one instance

CALL_COUNT = 400
"""Of each function, whose memory is counted."""


@register_trial("calling functions many times", "life.leak", hosts=IN_PROCESS_ONLY)
def try_memory_growth_by_calls(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that an instance's memory does not grow with the number of calls."""
    with fixture.open_instance(logging=False) as instance:
        fixture.initialize(instance)
        for action_name, action in _map_actions(fixture, instance).items():
            try:
                _repeat_action(20, action)
                _collect_garbage()
                bytes_before, blocks_before = _read_allocated_bytes(), len(instance.memory.live_blocks)
                count = _repeat_action(CALL_COUNT, action)
            except RefusedCallError:
                continue
            _collect_garbage()
            bytes_after = _read_allocated_bytes()
            kept_blocks = len(instance.memory.live_blocks) - blocks_before
            if kept_blocks >= count:
                yield RuleViolation(
                    "life.leak",
                    f"{action_name} keeps {kept_blocks / count:.3g} blocks of memory each time",
                    fixture.interface,
                )
            elif (
                bytes_before is not None
                and bytes_after is not None
                and bytes_after - bytes_before > max(8_192, 12 * count)
            ):
                message = f"{action_name} keeps {(bytes_after - bytes_before) / count:.4g} bytes each time, of {count}"
                yield RuleViolation("life.leak", message, fixture.interface)


@register_trial("refusals and resets many times", "life.leak", hosts=IN_PROCESS_ONLY)
def try_memory_after_refusals(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that refusals before freeing, and resets, leave no memory behind."""
    with fixture.open_instance(logging=False) as instance:
        for action_name, action in (
            ("a refusal", partial(_cause_refusal, fixture)),
            ("a reset", partial(_initialize_and_reset, fixture, instance)),
        ):
            try:
                _repeat_action(20, action)
                _collect_garbage()
                bytes_before = _read_allocated_bytes()
                count = _repeat_action(CALL_COUNT, action)
            except (RefusedCallError, SkippedTrialError):
                continue
            _collect_garbage()
            bytes_after = _read_allocated_bytes()
            if (
                bytes_before is not None
                and bytes_after is not None
                and bytes_after - bytes_before > max(8_192, 12 * count)
            ):
                message = f"{action_name} keeps {(bytes_after - bytes_before) / count:.4g} bytes each time, of {count}"
                yield RuleViolation("life.leak", message, fixture.interface)


def _cause_refusal(fixture: TrialFixture) -> None:
    """Enter Initialization Mode twice in an instance, and free it."""
    with fixture.open_instance(logging=False) as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        arguments = () if fixture.description.version == 2 else (
            c.c_bool(0), c.c_double(0.0), c.c_double(fixture.start), c.c_bool(0), c.c_double(0.0)
        )  # fmt: skip
        instance.call("EnterInitializationMode", *arguments)


def _initialize_and_reset(fixture: TrialFixture, instance: FmuInstance) -> None:
    """Move from Instantiated to the ordinary mode, and reset."""
    fixture.initialize(instance)
    instance.reset()


def _map_actions(fixture: TrialFixture, instance: FmuInstance) -> dict[str, Callable[[], object]]:
    """Return name → one call, or a pair of calls that restores the state."""
    actions: dict[str, Callable[[], object]] = {}
    for type_name in dict.fromkeys(variable.type for variable in fixture.variables_to_try):
        group = [variable for variable in fixture.variables_to_try if variable.type == type_name]
        actions[f"reading variables of type {type_name}"] = partial(instance.get, group)
        start_values = {variable: fixture.start_value(variable) for variable in group if variable.causality == "input"}
        input_values = {variable: value for variable, value in start_values.items() if value is not None}
        if input_values:
            actions[f"setting inputs of type {type_name}"] = partial(instance.set, input_values)
    if fixture.can_save_states:
        actions["getting and freeing a state"] = lambda: instance.free_state(instance.get_state())
        actions["getting a state into an earlier one"] = partial(_save_state_twice, instance)
        state_word = "state" if fixture.description.version == 2 else "State"
        if fixture.flag(f"canSerializeFMU{state_word}"):
            actions["serializing a state"] = partial(_serialize_and_restore, instance)
    if fixture.interface == "ModelExchange" and fixture.n_states:
        actions["evaluating derivatives"] = partial(_evaluate_derivatives, fixture, instance)
    return actions


def _evaluate_derivatives(fixture: TrialFixture, instance: FmuInstance) -> None:
    """Evaluate the derivatives once at the start time."""
    instance.set_time(fixture.start)
    instance.get_derivatives(fixture.n_states)


def _save_state_twice(instance: FmuInstance) -> None:
    """Keep the state twice in one place, which is overwritten; free it."""
    instance.free_state(instance.get_state(instance.get_state()))


def _serialize_and_restore(instance: FmuInstance) -> None:
    """Serialize the state, restore it from bytes, and free both."""
    state = instance.get_state()
    copy = instance.deserialize_state(instance.serialize_state(state))
    instance.free_state(copy)
    instance.free_state(state)


# --- memory that was never written

_MALLOPT_PERTURB = -6
FILL_PATTERNS = (0xFF, 0x5A, 0xE7)
"""New memory is filled with the complement: zeros first, as it mostly happens to be."""

PLAIN_RUN_STEPS = 5
"""Communication steps of the run with start values."""


@register_trial(
    "memory with other contents", "life.uninitialized", crash_rule="life.uninitialized", hosts=IN_PROCESS_ONLY
)
def try_uninitialized_memory(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that no value depends on uninitialized memory, filled with one pattern and then another."""
    mallopt = find_libc_function("mallopt")
    if mallopt is None:
        fixture.mark_inapplicable("life.uninitialized", "the C library of this machine cannot fill memory")
        return
    set_number = 1 if choose_excited_run_values(fixture, 1) else 0
    for run_once in (partial(_run_with_start_values, fixture), partial(_run_excited, fixture, set_number)):
        outcomes: list[RecordedTrialRun | str] = []
        for pattern in FILL_PATTERNS:
            mallopt(_MALLOPT_PERTURB, pattern)
            try:
                outcomes.append(run_once())
            except RefusedCallError as error:
                outcomes.append(str(error))
            finally:
                mallopt(_MALLOPT_PERTURB, 0)
        first_outcome, *other_outcomes = outcomes
        for outcome in other_outcomes:
            message = _describe_run_difference(fixture, first_outcome, outcome)
            if message:
                yield RuleViolation("life.uninitialized", message, fixture.interface)
                return


def _run_with_start_values(fixture: TrialFixture) -> RecordedTrialRun:
    """Return a short run with the start values."""
    with fixture.open_instance() as instance:
        return run_as_interface_type(
            fixture, instance, fixture.variables_to_try, steps=min(fixture.affordable_step_count, PLAIN_RUN_STEPS)
        )


def _run_excited(fixture: TrialFixture, number: int) -> RecordedTrialRun:
    """Return a run with other parameters and moving inputs."""
    with fixture.open_instance() as instance:
        return run_with_excitation(
            fixture, instance, fixture.variables_to_try, number=number, steps=min(fixture.affordable_step_count, 40)
        )


def _describe_run_difference(
    fixture: TrialFixture, first_outcome: RecordedTrialRun | str, second_outcome: RecordedTrialRun | str
) -> str:
    """Return the differences of two runs; empty if there are none."""
    if isinstance(first_outcome, str) or isinstance(second_outcome, str):
        if first_outcome == second_outcome or (isinstance(first_outcome, str) and isinstance(second_outcome, str)):
            return ""
        refusal = first_outcome if isinstance(first_outcome, str) else second_outcome
        return f"with other contents of new memory it does not run: {refusal}"
    difference = find_first_run_difference(fixture.variables_to_try, first_outcome, second_outcome)
    return (
        f'"{difference[0].name}" differs at point {difference[1]} with what new memory held before'
        if difference
        else ""
    )


# --- strings and binaries


@register_trial("strings and binaries that the importer changes afterwards", "value.copied")
def try_overwriting_set_value_memory(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that set values are copied: the importer may reuse its memory at once."""
    variables = fixture.settable_texts
    if not variables:
        fixture.mark_inapplicable("value.copied", "it has no strings and no binaries that can be set")
        return
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        for variable in variables:
            value = choose_changed_value(fixture, variable, "copied", 0.1)
            if not isinstance(value, bytes) or instance.try_set(variable, value, overwrite_buffers=True) not in {
                OK,
                WARNING,
            }:
                continue
            read_value = instance.get([variable])[0]
            if read_value != value:
                message = f"set to {value!r}, it is {read_value!r} after the importer has used that memory again"
                yield RuleViolation("value.copied", message, fixture.format_finding_location(variable))
