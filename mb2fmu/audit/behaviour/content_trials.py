"""Texts and bytes with unusual contents, units without a logger, a second interface type, another step flag."""

from __future__ import annotations

import ctypes as c
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial

from mb2fmu.audit.behaviour.binding import OK, WARNING, RefusedError
from mb2fmu.audit.behaviour.driven_runs import driving
from mb2fmu.audit.behaviour.instance import Instance
from mb2fmu.audit.behaviour.life import SHORT
from mb2fmu.audit.behaviour.messages import unasked
from mb2fmu.audit.behaviour.naming_trials import unused
from mb2fmu.audit.behaviour.pace import SkippedError
from mb2fmu.audit.behaviour.probe import probe
from mb2fmu.audit.behaviour.simulation import Run, differing, run
from mb2fmu.audit.behaviour.stage import Stage
from mb2fmu.audit.behaviour.step_trials import CS, as_exchange
from mb2fmu.audit.finding import Observation

TEXTS = (b"", b"100 %s %d", "größer ✓".encode(), b"a, \"b\"\\n'c'", b" blanks beside it ", b"two\nlines\t.")
BYTES = (b"", b"\0", b"a\0b", b"\xff\0\x80")


@probe("texts and bytes with unusual contents", "value.set", crash="value.set")
def contents(stage: Stage) -> Iterator[Observation]:
    """Check texts and bytes of unusual contents (empty, per cent signs, other letters, zeros); refusals are allowed."""
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


@probe("a refusal where there is no logger", "life.crash", crash="life.crash")
def unheard(stage: Stage) -> Iterator[Observation]:
    """Check FMI 3 instances without a logger."""
    if stage.description.version == 2:
        return
    with stage.instance(logging=None) as instance:
        instance.enter(stage.start, None, stage.tolerance)
        room = (c.c_double * 1)()
        instance.call("GetFloat64", (c.c_uint * 1)(unused(stage)), c.c_size_t(1), room, c.c_size_t(1))
    yield from ()


@probe("messages of categories that are off", "log.setting")
def categories(stage: Stage) -> Iterator[Observation]:
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
                run(stage, instance, stage.variables, steps=SHORT)
            except (RefusedError, SkippedError):
                continue
            others = {each[1] for each in unasked(instance.messages[seen:], instance.version)} & set(listed) - {one}
        if others:
            text = f'only "{one}" is switched on, and messages of "{min(others)}" are written'
            yield Observation("log.setting", text, stage.kind)
            return


@probe("an instance of the other interface beside it", "life.several", kinds=CS)
def beside(stage: Stage) -> Iterator[Observation]:
    """Check that Model Exchange and Co-Simulation of one unit do not disturb each other in one process."""
    exchange = as_exchange(stage)
    if exchange is None or stage.flag("canBeInstantiatedOnlyOncePerProcess"):
        return
    alone = _run(stage, None)
    with exchange.instance(name=b"other") as other:
        exchange.initialize(other)
    found = _run(stage, exchange)
    different = differing(stage.variables, alone, found) if alone and found else None
    if different:
        text = f'"{different[0].name}" differs at point {different[1]} where an instance for Model Exchange is made'
        yield Observation("life.several", f"{text} beside it", stage.kind)
    elif alone and not found:
        text = "it does not run where an instance for Model Exchange is made beside it"
        yield Observation("life.several", text, stage.kind)


def _run(stage: Stage, exchange: Stage | None) -> Run | None:
    """Do a short run; a second instance is made after this one if its stage is given. None if it is refused."""
    other: Instance | None = None
    with stage.instance(name=b"one") as instance:
        if exchange:
            other = Instance(exchange.library, exchange.kind, name=b"other")
        try:
            for found in driving(stage, instance, stage.variables, steps=SHORT):
                last = found
        except (RefusedError, SkippedError):
            return None
        finally:
            if other and other.alive:
                other.free()
    return last


@probe("a run with messages switched off", "life.repeat")
def unlogged(stage: Stage) -> Iterator[Observation]:
    """Check that switching messages off does not change the motion."""
    makes = (partial(stage.instance, logging=on) for on in (True, False))
    yield from _alike(stage, makes, "messages are switched off")


@probe("steps with the other flag of states", "life.repeat", kinds=CS)
def flagged(stage: Stage) -> Iterator[Observation]:
    """Check that noSetFMUStatePriorToCurrentPoint does not change the motion."""
    if stage.keeps_states:
        makes = (partial(_with_flag, stage, flag) for flag in (1, 0))
        yield from _alike(stage, makes, "noSetFMUStatePriorToCurrentPoint is false")


@contextmanager
def _with_flag(stage: Stage, flag: int) -> Iterator[Instance]:
    """Return an instance whose steps have this value of noSetFMUStatePriorToCurrentPoint."""
    with stage.instance() as instance:
        instance.no_return = flag
        yield instance


def _alike(
    stage: Stage, makes: Iterable[Callable[[], AbstractContextManager[Instance]]], where: str
) -> Iterator[Observation]:
    """Check that two instances move alike; ``where`` says how the second one differs."""
    runs = []
    for make in makes:
        with make() as instance:
            try:
                runs.append(run(stage, instance, stage.variables, steps=SHORT))
            except (RefusedError, SkippedError):
                return
    different = differing(stage.variables, *runs)
    if different:
        text = f'"{different[0].name}" differs at point {different[1]} where {where}'
        yield Observation("life.repeat", text, stage.kind)
