"""Instances with unusual names, visible instances, and switching of messages."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Sequence

from mb2fmu.audit.behaviour.fixture.short_runs import find_first_difference, run_interface_type
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, status_name
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.instance.logged_messages import find_messages_without_logging
from mb2fmu.audit.behaviour.trials.life_cycle_trials import SHORT
from mb2fmu.audit.findings import Observation

NAMES = {
    "with per cent signs": b"50 %s of %n",
    "in Greek and Chinese": "άξονας 轴".encode(),
    "with 400 letters": b"instance" * 50,
}


@probe("instances with unusual names", "life.name", crash="life.name")
def try_long_instance_names(stage: TrialFixture) -> Iterator[Observation]:
    """Check long instance names: importers join the names of all levels."""
    for which, name in NAMES.items():
        stage.tell(f"a name {which}")
        made = stage.make(name=name)
        if not made.alive:
            yield Observation("life.name", f"no instance is made by a name {which}", stage.kind)
            return
        try:
            stage.initialize(made)
        finally:
            made.free()
    # How much of such a name a message repeats is not judged here.
    for misdeed in [each for each, rule in stage.library.misdeeds.items() if rule == "log.arguments"]:
        del stage.library.misdeeds[misdeed]


@probe("a run under another name", "life.name")
def try_renamed_instance(stage: TrialFixture) -> Iterator[Observation]:
    """Check that the name of an instance changes nothing of its motion, to the end of the run."""
    runs = []
    for name in (b"audited", b"another name"):
        with stage.instance(name=name) as instance:
            runs.append(run_interface_type(stage, instance, stage.variables))
    different = find_first_difference(stage.variables, *runs)
    if different:
        text = f'"{different[0].name}" differs at point {different[1]} of a run if the instance has another name'
        yield Observation("life.name", text, stage.kind)


@probe("an instance that may be visible", "life.visible", crash="life.visible")
def try_visible_instance(stage: TrialFixture) -> Iterator[Observation]:
    """Check visible instances, which may show a window."""
    if stage.flag("needsExecutionTool"):
        stage.nothing("life.visible", "it needs a tool, which would come into sight")
        return
    made = stage.make(visible=True)
    if not made.alive:
        yield Observation("life.visible", "no instance is made that may be visible", stage.kind)
        return
    try:
        stage.initialize(made)
    finally:
        made.free()


@probe("a run with messages off", "log.disabled")
def try_logging_off(stage: TrialFixture) -> Iterator[Observation]:
    """Check that with logging off there are no messages but errors."""
    with stage.instance(logging=False) as instance:
        try:
            run_interface_type(stage, instance, stage.variables, steps=SHORT)
        except RefusedCallError:
            return  # told by the ordinary run
        quiet = find_messages_without_logging(instance.messages, instance.version)
    if quiet:
        yield Observation("log.disabled", f'"{quiet[0][2]}" is written though logging is off', stage.kind)


@probe("switching messages on and off", "log.setting", crash="log.setting")
def try_switching_log_categories(stage: TrialFixture) -> Iterator[Observation]:
    """Check categories of messages: all (none given), each one, none; then an invalid call."""
    listed = [each.encode() for each in stage.description.categories]
    with stage.instance(logging=False) as instance:
        for names in ([], listed, *([each] for each in listed)):
            for on in (True, False):
                status = _switched(instance, names, on=on)
                if status not in {OK, WARNING}:
                    which = f"for {', '.join(each.decode() for each in names)}" if names else "for all categories"
                    text = f"switching messages {'on' if on else 'off'} {which} answers {status_name(status)}"
                    yield Observation("log.setting", text, stage.kind)
                    return
        said = find_messages_without_logging(_said(stage, instance), instance.version)
        if said:
            text = f'"{said[0][2]}" is written though messages were switched off again'
            yield Observation("log.setting", text, stage.kind)


@probe("messages after a reset", "log.setting")
def try_messages_after_reset(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a reset instance gives messages as a new one does."""
    with stage.instance(logging=True) as instance:
        before = _said(stage, instance)
        instance.reset()
        if before and not _said(stage, instance):
            text = "was made with messages on, and a refusal that it told is told no more after a reset"
            yield Observation("log.setting", text, stage.kind)


def _said(stage: TrialFixture, instance: FmuInstance) -> list[tuple[int, str, str]]:
    """Return the messages of entering Initialization Mode and asking for a variable that is not there."""
    seen = len(instance.messages)
    instance.enter(stage.start, None, stage.tolerance)
    unknown = (c.c_uint * 1)(find_unused_reference(stage)), c.c_size_t(1)
    room = (c.c_double * 4)()
    tail = () if stage.description.version == 2 else (c.c_size_t(1),)
    name = "GetReal" if stage.description.version == 2 else "GetFloat64"
    instance.call(name, *unknown, room, *tail)
    return instance.messages[seen:]


def find_unused_reference(stage: TrialFixture) -> int:
    """Return a value reference that no variable has."""
    return next(each for each in range(2**31 - 2, 0, -1) if each not in stage.description.by_reference)


def _switched(instance: FmuInstance, names: Sequence[bytes], *, on: bool) -> int:
    """Return the status of switching messages of these categories on or off."""
    flag = c.c_int if instance.version == 2 else c.c_bool
    listed = (c.c_char_p * max(len(names), 1))(*names)
    return instance.call("SetDebugLogging", flag(on), c.c_size_t(len(names)), listed)
