"""Memory: leaks of instances and calls, and units without the importer's memory functions."""

from __future__ import annotations

import ctypes as c
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_other_value,
    choose_parameters_and_starts,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.short_runs import (
    ShortRun,
    do_communication_step,
    find_first_difference,
    run_interface_type,
)
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import NEAR, probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, find_c_function
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.process_settings import MOST_OPEN, count_own_threads, list_open_descriptors
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.description.binary_rules import read_executable_images
from mb2fmu.audit.findings import Observation

INSTANTIATIONS = 1_000
LEAK_TIME = 1.5
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


def _in_use() -> int | None:
    """Return the bytes that the C library has allocated; None where it cannot tell."""
    ask = find_c_function("mallinfo2")
    if ask is None:
        return None
    ask.restype = _Mallinfo
    info = ask()
    return int(info.uordblks + info.hblkhd)


@dataclass
class _LeakCount:
    """Memory that instances have not freed."""

    unfreed: int = 0
    wrong: int = 0
    asked: int = 0

    def once(self, stage: TrialFixture) -> None:
        """Make, use and free one instance."""
        with stage.instance(logging=False) as instance:
            stage.initialize(instance)
            if stage.kind == "CoSimulation":
                do_communication_step(stage, instance, stage.start, stage.step)
            elif stage.n_states:
                instance.slopes(stage.n_states)
            if stage.keeps_states:
                instance.free_state(instance.get_state())
        self.unfreed += len(instance.memory.live)
        self.wrong += instance.memory.wrong
        self.asked += instance.memory.asked


def _repeated(most: int, action: Callable[[], object]) -> int:
    """Repeat something for a while; return how often."""
    done, end = 0, time.process_time() + LEAK_TIME
    while done < most and (done < 2 or time.process_time() < end):
        action()
        done += 1
    return done


def _held() -> dict[str, int]:
    """Return how many descriptors and threads the process has."""
    return {"descriptors": list_open_descriptors() or 0, "threads": count_own_threads() or 0}


@probe("instantiating it a thousand times", "life.leak", "flags.memory", where=NEAR)
def try_instance_leaks(stage: TrialFixture) -> Iterator[Observation]:
    """Check that instances leave nothing behind."""
    left = _LeakCount()
    _repeated(20, lambda: left.once(stage))
    left.unfreed = 0
    gc.collect()
    held, before = _held(), _in_use()
    if held["descriptors"] > MOST_OPEN:  # what reaches the limit does not grow any more
        text = f"{held['descriptors']} descriptors are open, of all that was tried before"
        yield Observation("life.leak", text, stage.kind)
    done = _repeated(INSTANTIATIONS, lambda: left.once(stage))
    gc.collect()
    after, now = _in_use(), _held()
    if left.unfreed:
        text = f"{left.unfreed / done:.3g} blocks of the importer's memory are not given back per instance"
        yield Observation("life.leak", text, stage.kind)
    if left.wrong:
        yield Observation("life.leak", "memory is given back that the importer never gave", stage.kind)
    if before is not None and after is not None and after - before > max(16_384, 12 * done):
        yield Observation(
            "life.leak", f"{(after - before) / done:.4g} bytes remain of each of {done} instances", stage.kind
        )
    for what, number in held.items():
        more = now[what] - number
        if more >= max(min(done // 2, MOST_OPEN // 2), 1):  # the process has a limit, which a fast FMU reaches
            yield Observation("life.leak", f"{more} {what} remain of {done} instances", stage.kind)
    yield from _memory_flag(stage, left.asked)


def _memory_flag(stage: TrialFixture, asked: int) -> Iterator[Observation]:
    """Yield canNotUseMemoryManagementFunctions if it contradicts how the FMU allocates (FMI 2)."""
    if stage.description.version != 2:
        return
    own = stage.flag("canNotUseMemoryManagementFunctions")
    if own and asked:
        yield Observation(
            "flags.memory",
            "canNotUseMemoryManagementFunctions is true, but it calls the importer's functions",
            stage.kind,
        )
    try:
        found = read_executable_images(stage.library.path.read_bytes())
    except OSError:
        stage.nothing("flags.memory", "the library is not there any more")
        return
    if not own and not asked and any({"malloc", "calloc", "realloc"} & each.imported for each in found):
        text = "canNotUseMemoryManagementFunctions is false, but all its memory is the C library's"
        yield Observation("flags.memory", text, stage.kind)


@probe("null memory functions", "flags.memory_null", crash="flags.memory_null")
def try_null_memory_functions(stage: TrialFixture) -> Iterator[Observation]:
    """Check that an FMU that declares not to use memory functions works without them."""
    if stage.description.version == 2 and stage.flag("canNotUseMemoryManagementFunctions"):
        made = stage.make(callbacks=False)
        if not made.alive:
            yield Observation("flags.memory_null", "no instance is made with null memory functions", stage.kind)
        made.free()


# --- calls on one instance

CALLS = 400
"""Of each function, whose memory is counted."""


@probe("calling functions many times", "life.leak", where=NEAR)
def try_memory_growth_by_calls(stage: TrialFixture) -> Iterator[Observation]:
    """Check that an instance's memory does not grow with the number of calls."""
    with stage.instance(logging=False) as instance:
        stage.initialize(instance)
        for what, action in _actions(stage, instance).items():
            try:
                _repeated(20, action)
                gc.collect()
                before, live = _in_use(), len(instance.memory.live)
                done = _repeated(CALLS, action)
            except RefusedCallError:
                continue
            gc.collect()
            after = _in_use()
            kept = len(instance.memory.live) - live
            if kept >= done:
                yield Observation("life.leak", f"{what} keeps {kept / done:.3g} blocks of memory each time", stage.kind)
            elif before is not None and after is not None and after - before > max(8_192, 12 * done):
                text = f"{what} keeps {(after - before) / done:.4g} bytes each time, of {done}"
                yield Observation("life.leak", text, stage.kind)


@probe("refusals and resets many times", "life.leak", where=NEAR)
def try_memory_after_refusals(stage: TrialFixture) -> Iterator[Observation]:
    """Check that refusals before freeing, and resets, leave no memory behind."""
    with stage.instance(logging=False) as instance:
        for what, action in (("a refusal", partial(_refused, stage)), ("a reset", partial(_reset, stage, instance))):
            try:
                _repeated(20, action)
                gc.collect()
                before = _in_use()
                done = _repeated(CALLS, action)
            except (RefusedCallError, SkippedTrialError):
                continue
            gc.collect()
            after = _in_use()
            if before is not None and after is not None and after - before > max(8_192, 12 * done):
                text = f"{what} keeps {(after - before) / done:.4g} bytes each time, of {done}"
                yield Observation("life.leak", text, stage.kind)


def _refused(stage: TrialFixture) -> None:
    """Enter Initialization Mode twice in an instance, and free it."""
    with stage.instance(logging=False) as instance:
        instance.enter(stage.start, None, stage.tolerance)
        given = () if stage.description.version == 2 else (
            c.c_bool(0), c.c_double(0.0), c.c_double(stage.start), c.c_bool(0), c.c_double(0.0)
        )  # fmt: skip
        instance.call("EnterInitializationMode", *given)


def _reset(stage: TrialFixture, instance: FmuInstance) -> None:
    """Move from Instantiated to the ordinary mode, and reset."""
    stage.initialize(instance)
    instance.reset()


def _actions(stage: TrialFixture, instance: FmuInstance) -> dict[str, Callable[[], object]]:
    """Return name → one call, or a pair of calls that restores the state."""
    found: dict[str, Callable[[], object]] = {}
    for kind in dict.fromkeys(each.type for each in stage.variables):
        group = [each for each in stage.variables if each.type == kind]
        found[f"reading variables of type {kind}"] = partial(instance.get, group)
        free = {each: stage.start_value(each) for each in group if each.causality == "input"}
        given = {each: value for each, value in free.items() if value is not None}
        if given:
            found[f"setting inputs of type {kind}"] = partial(instance.set, given)
    if stage.keeps_states:
        found["getting and freeing a state"] = lambda: instance.free_state(instance.get_state())
        found["getting a state into an earlier one"] = partial(_kept_again, instance)
        word = "state" if stage.description.version == 2 else "State"
        if stage.flag(f"canSerializeFMU{word}"):
            found["serializing a state"] = partial(_serialized, instance)
    if stage.kind == "ModelExchange" and stage.n_states:
        found["evaluating derivatives"] = partial(_evaluated, stage, instance)
    return found


def _evaluated(stage: TrialFixture, instance: FmuInstance) -> None:
    """Evaluate the derivatives once at the start time."""
    instance.set_time(stage.start)
    instance.slopes(stage.n_states)


def _kept_again(instance: FmuInstance) -> None:
    """Keep the state twice in one place, which is overwritten; free it."""
    instance.free_state(instance.get_state(instance.get_state()))


def _serialized(instance: FmuInstance) -> None:
    """Serialize the state, restore it from bytes, and free both."""
    state = instance.get_state()
    copy = instance.deserialize(instance.serialize(state))
    instance.free_state(copy)
    instance.free_state(state)


# --- memory that was never written

_PERTURB = -6
PATTERNS = (0xFF, 0x5A, 0xE7)
"""New memory is filled with the complement: zeros first, as it mostly happens to be."""

FEW = 5
"""Communication steps of the run in which nothing is set."""


@probe("memory with other contents", "life.uninitialized", crash="life.uninitialized", where=NEAR)
def try_uninitialized_memory(stage: TrialFixture) -> Iterator[Observation]:
    """Check that no value depends on uninitialized memory, filled with one pattern and then another."""
    fill = find_c_function("mallopt")
    if fill is None:
        stage.nothing("life.uninitialized", "the C library of this machine cannot fill memory")
        return
    number = 1 if choose_parameters_and_starts(stage, 1) else 0
    for runs in (partial(_plain, stage), partial(_driven, stage, number)):
        found: list[ShortRun | str] = []
        for pattern in PATTERNS:
            fill(_PERTURB, pattern)
            try:
                found.append(runs())
            except RefusedCallError as error:
                found.append(str(error))
            finally:
                fill(_PERTURB, 0)
        first, *others = found
        for other in others:
            text = _other_memory(stage, first, other)
            if text:
                yield Observation("life.uninitialized", text, stage.kind)
                return


def _plain(stage: TrialFixture) -> ShortRun:
    """Return a short run with the start values."""
    with stage.instance() as instance:
        return run_interface_type(stage, instance, stage.variables, steps=min(stage.steps, FEW))


def _driven(stage: TrialFixture, number: int) -> ShortRun:
    """Return a run with other parameters and moving inputs."""
    with stage.instance() as instance:
        return run_with_excitation(stage, instance, stage.variables, number=number, steps=min(stage.steps, 40))


def _other_memory(stage: TrialFixture, first: ShortRun | str, other: ShortRun | str) -> str:
    """Return the differences of two runs; empty if there are none."""
    if isinstance(first, str) or isinstance(other, str):
        if first == other or (isinstance(first, str) and isinstance(other, str)):
            return ""
        refused = first if isinstance(first, str) else other
        return f"with other contents of new memory it does not run: {refused}"
    different = find_first_difference(stage.variables, first, other)
    return (
        f'"{different[0].name}" differs at point {different[1]} with what new memory held before' if different else ""
    )


# --- strings and binaries


@probe("strings and binaries that the importer changes afterwards", "value.copied")
def try_copied_values(stage: TrialFixture) -> Iterator[Observation]:
    """Check that set values are copied: the importer may reuse its memory at once."""
    wanted = [
        each for each in stage.variables
        if each.type in {"String", "Binary"} and each.causality in {"parameter", "input"} and not each.dimensions
    ]  # fmt: skip
    if not wanted:
        stage.nothing("value.copied", "it has no strings and no binaries that can be set")
        return
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        for variable in wanted:
            value = choose_other_value(stage, variable, "copied", 0.1)
            if not isinstance(value, bytes) or instance.put(variable, value, spoil=True) not in {OK, WARNING}:
                continue
            found = instance.get([variable])[0]
            if found != value:
                text = f"set to {value!r}, it is {found!r} after the importer has used that memory again"
                yield Observation("value.copied", text, f'{stage.kind}, "{variable.name}"')
