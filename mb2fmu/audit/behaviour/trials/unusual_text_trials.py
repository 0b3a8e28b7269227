"""Texts and bytes with unusual contents, units without a logger, a second interface type, another step flag."""

from __future__ import annotations

import ctypes as c
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial

from mb2fmu.audit.behaviour.fixture.excited_runs import iterate_excited_run
from mb2fmu.audit.behaviour.fixture.short_runs import ShortRun, find_first_difference, run_interface_type
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.instance.logged_messages import find_messages_without_logging
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.life_cycle_trials import SHORT
from mb2fmu.audit.behaviour.trials.naming_trials import find_unused_reference
from mb2fmu.audit.behaviour.trials.step_trials import CS, run_as_model_exchange
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

TEXTS = (b"", b"100 %s %d", "größer ✓".encode(), b"a, \"b\"\\n'c'", b" blanks beside it ", b"two\nlines\t.",
         b"Upper and LOWER", "e\u0301 \U0001d11e\r\n".encode(), b"x")  # fmt: skip
BYTES = (b"", b"\0", b"a\0b", b"\xff\0\x80", b"\x07", bytes(range(256)), b"\x08\x7f")


@probe("texts and bytes with unusual contents", "value.set", crash="value.set")
def try_unusual_contents(stage: TrialFixture) -> Iterator[Observation]:
    """Check texts and bytes of unusual contents: empty, short after long, of other letters; refusals are allowed."""
    wanted = [
        each for each in stage.variables
        if each.type in {"String", "Binary"} and each.causality in {"parameter", "input"} and not each.dimensions
    ]  # fmt: skip
    if not wanted:
        return
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        for variable in wanted:
            most = variable.number("maxSize")
            for value in TEXTS if variable.type == "String" else BYTES:
                if most is not None and len(value) > most:
                    continue
                if instance.put(variable, value) not in {OK, WARNING}:
                    continue
                found = instance.get([variable])[0]
                if found != value:
                    text = f"set to {value!r}, it is {found!r}"
                    yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')
                    break


MOST_NUMBERS = 20
"""Inputs and parameters that are set to the ends of their types."""


def _size(kind: str) -> tuple[int, int]:
    """Return the smallest and largest whole number of a type; both zero if it is another type."""
    if kind == "Integer":
        return -(2**31), 2**31 - 1
    bits = kind.removeprefix("U").removeprefix("Int")
    if not bits.isdecimal():
        return 0, 0
    return (0, 2 ** int(bits) - 1) if kind.startswith("U") else (-(2 ** (int(bits) - 1)), 2 ** (int(bits) - 1) - 1)


def _ends(stage: TrialFixture, variable: DescribedVariable) -> Iterator[float | int]:
    """Yield the ends of a whole number's range and what is next to them, or small fractions; none for other types."""
    low, high = _size(variable.type)
    if high:
        with suppress(ValueError):
            low, high = max(low, int(variable.get("min") or low)), min(high, int(variable.get("max") or high))
            yield from sorted({low, min(low + 1, high), max(high - 1, low), high})
    elif variable.is_float:
        for part in (1e-5, -1e-5):
            value = stage.inside(variable, part * stage.scale(variable))
            yield struct.unpack("f", struct.pack("f", value))[0] if variable.type == "Float32" else value


@probe("numbers at the ends of their types", "value.set", crash="value.extreme")
def try_extreme_integers(stage: TrialFixture) -> Iterator[Observation]:
    """Check that all bits of whole numbers, and small fractions, are taken up; refusals are allowed."""
    wanted = [each for each in stage.variables if each.causality in {"parameter", "input"} and not each.dimensions]
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        for variable in wanted[:MOST_NUMBERS]:
            usual = stage.start_value(variable)
            for value in _ends(stage, variable):
                if instance.put(variable, value) not in {OK, WARNING}:
                    continue
                with suppress(RefusedCallError):
                    found = instance.get([variable])[0]
                    if found != value:
                        text = f"set to {value!r}, it is {found!r}"
                        yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')
                        break
            if usual is not None:
                instance.put(variable, usual)


@probe("a refusal where there is no logger", "life.crash", crash="life.crash")
def try_without_logger(stage: TrialFixture) -> Iterator[Observation]:
    """Check FMI 3 instances without a logger."""
    if stage.description.version == 2:
        return
    with stage.instance(logging=None) as instance:
        instance.enter(stage.start, None, stage.tolerance)
        room = (c.c_double * 1)()
        instance.call("GetFloat64", (c.c_uint * 1)(find_unused_reference(stage)), c.c_size_t(1), room, c.c_size_t(1))
    yield from ()


@probe("messages of categories that are off", "log.setting")
def try_single_log_category(stage: TrialFixture) -> Iterator[Observation]:
    """Check that with one log category on, messages of others are errors only.

    FMI 2 has a name for all of them (2.2.4): with ``logAll`` on, any may come.
    """
    listed = stage.description.categories
    for one in listed if len(listed) > 1 else ():
        if one == "logAll" and stage.description.version == 2:
            continue
        with stage.instance(logging=False) as instance:
            names = (c.c_char_p * 1)(one.encode())
            flag = c.c_int if instance.version == 2 else c.c_bool
            if instance.call("SetDebugLogging", flag(1), c.c_size_t(1), names) not in {OK, WARNING}:
                continue
            seen = len(instance.messages)
            try:
                run_interface_type(stage, instance, stage.variables, steps=SHORT)
            except (RefusedCallError, SkippedTrialError):
                continue
            others = {
                each[1] for each in find_messages_without_logging(instance.messages[seen:], instance.version)
            } & set(listed) - {one}
        if others:
            text = f'only "{one}" is switched on, and messages of "{min(others)}" are written'
            yield Observation("log.setting", text, stage.kind)
            return


@probe("an instance of the other interface beside it", "life.several", kinds=CS)
def try_both_interface_types(stage: TrialFixture) -> Iterator[Observation]:
    """Check that Model Exchange and Co-Simulation of one FMU do not disturb each other in one process."""
    exchange = run_as_model_exchange(stage)
    if exchange is None or stage.flag("canBeInstantiatedOnlyOncePerProcess"):
        return
    alone = _run(stage, None)
    with exchange.instance(name=b"other") as other:
        exchange.initialize(other)
    found = _run(stage, exchange)
    different = find_first_difference(stage.variables, alone, found) if alone and found else None
    if different:
        text = f'"{different[0].name}" differs at point {different[1]} where an instance for Model Exchange is made'
        yield Observation("life.several", f"{text} beside it", stage.kind)
    elif alone and not found:
        text = "it does not run where an instance for Model Exchange is made beside it"
        yield Observation("life.several", text, stage.kind)


def _run(stage: TrialFixture, exchange: TrialFixture | None) -> ShortRun | None:
    """Do a short run; a second instance is made after this one if its stage is given. None if it is refused."""
    other: FmuInstance | None = None
    with stage.instance(name=b"one") as instance:
        if exchange:
            other = FmuInstance(exchange.library, exchange.kind, name=b"other")
        try:
            for found in iterate_excited_run(stage, instance, stage.variables, steps=SHORT):
                last = found
        except (RefusedCallError, SkippedTrialError):
            return None
        finally:
            if other and other.alive:
                other.free()
    return last


@probe("a run with messages switched off", "life.repeat")
def try_motion_without_logging(stage: TrialFixture) -> Iterator[Observation]:
    """Check that switching messages off does not change the motion."""
    makes = (partial(stage.instance, logging=on) for on in (True, False))
    yield from _alike(stage, makes, "messages are switched off")


@probe("steps with the other flag of states", "life.repeat", kinds=CS)
def try_no_set_state_flag(stage: TrialFixture) -> Iterator[Observation]:
    """Check that noSetFMUStatePriorToCurrentPoint does not change the motion."""
    if stage.keeps_states:
        makes = (partial(_with_flag, stage, flag) for flag in (1, 0))
        yield from _alike(stage, makes, "noSetFMUStatePriorToCurrentPoint is false")


@contextmanager
def _with_flag(stage: TrialFixture, flag: int) -> Iterator[FmuInstance]:
    """Return an instance whose steps have this value of noSetFMUStatePriorToCurrentPoint."""
    with stage.instance() as instance:
        instance.no_return = flag
        yield instance


def _alike(
    stage: TrialFixture, makes: Iterable[Callable[[], AbstractContextManager[FmuInstance]]], where: str
) -> Iterator[Observation]:
    """Check that two instances move alike; ``where`` says how the second one differs."""
    runs = []
    for make in makes:
        with make() as instance:
            try:
                runs.append(run_interface_type(stage, instance, stage.variables, steps=SHORT))
            except (RefusedCallError, SkippedTrialError):
                return
    different = find_first_difference(stage.variables, *runs)
    if different:
        text = f'"{different[0].name}" differs at point {different[1]} where {where}'
        yield Observation("life.repeat", text, stage.kind)
