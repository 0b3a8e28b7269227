"""Instances with unusual names, visible instances, and switching of messages."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Sequence

from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import find_first_run_difference, run_as_interface_type
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError, format_fmi_status
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.instance.fmu_log_messages import find_messages_without_logging
from mb2fmu.audit.behaviour.trials.life_cycle_trials import SHORT_RUN_STEPS
from mb2fmu.audit.rules_and_findings import RuleViolation

UNUSUAL_NAMES = {
    "with per cent signs": b"50 %s of %n",
    "in Greek and Chinese": "άξονας 轴".encode(),
    "with 400 letters": b"instance" * 50,
}


@register_trial("instances with unusual names", "life.name", crash_rule="life.name")
def try_unusual_instance_names(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check long instance names: importers join the names of all levels."""
    for description, name in UNUSUAL_NAMES.items():
        fixture.report_progress(f"a name {description}")
        instance = fixture.instantiate(name=name)
        if not instance.alive:
            yield RuleViolation("life.name", f"no instance is made by a name {description}", fixture.interface)
            return
        try:
            fixture.initialize(instance)
        finally:
            instance.free()
    # How much of such a name a message repeats is not judged here.
    for violation in [text for text, rule in fixture.library.violations.items() if rule == "log.arguments"]:
        del fixture.library.violations[violation]


@register_trial("a run under another name", "life.name")
def try_renamed_instance(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that the name of an instance changes nothing of its motion, to the end of the run."""
    runs = []
    for name in (b"audited", b"another name"):
        with fixture.open_instance(name=name) as instance:
            runs.append(run_as_interface_type(fixture, instance, fixture.variables_to_try))
    difference = find_first_run_difference(fixture.variables_to_try, *runs)
    if difference:
        message = f'"{difference[0].name}" differs at point {difference[1]} of a run if the instance has another name'
        yield RuleViolation("life.name", message, fixture.interface)


@register_trial("an instance that may be visible", "life.visible", crash_rule="life.visible")
def try_visible_instance(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check visible instances, which may show a window."""
    if fixture.flag("needsExecutionTool"):
        fixture.mark_inapplicable("life.visible", "it needs a tool, which would come into sight")
        return
    instance = fixture.instantiate(visible=True)
    if not instance.alive:
        yield RuleViolation("life.visible", "no instance is made that may be visible", fixture.interface)
        return
    try:
        fixture.initialize(instance)
    finally:
        instance.free()


@register_trial("a run with messages off", "log.disabled")
def try_logging_off(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that with logging off there are no messages but errors."""
    with fixture.open_instance(logging=False) as instance:
        try:
            run_as_interface_type(fixture, instance, fixture.variables_to_try, steps=SHORT_RUN_STEPS)
        except RefusedCallError:
            return  # reported by the ordinary run
        unwanted_messages = find_messages_without_logging(instance.messages, instance.version)
    if unwanted_messages:
        yield RuleViolation(
            "log.disabled", f'"{unwanted_messages[0][2]}" is written though logging is off', fixture.interface
        )


@register_trial("switching messages on and off", "log.setting", crash_rule="log.setting")
def try_switching_log_categories(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check categories of messages: all (none given), each one, none; then an invalid call."""
    categories = [category.encode() for category in fixture.description.categories]
    with fixture.open_instance(logging=False) as instance:
        for switched_categories in ([], categories, *([category] for category in categories)):
            for enabled in (True, False):
                status = _switch_logging(instance, switched_categories, enabled=enabled)
                if status not in {OK, WARNING}:
                    category_text = (
                        f"for {', '.join(category.decode() for category in switched_categories)}"
                        if switched_categories
                        else "for all categories"
                    )
                    state = "on" if enabled else "off"
                    message = f"switching messages {state} {category_text} returns {format_fmi_status(status)}"
                    yield RuleViolation("log.setting", message, fixture.interface)
                    return
        unwanted_messages = find_messages_without_logging(
            _collect_refusal_messages(fixture, instance), instance.version
        )
        if unwanted_messages:
            message = f'"{unwanted_messages[0][2]}" is written though messages were switched off again'
            yield RuleViolation("log.setting", message, fixture.interface)


@register_trial("messages after a reset", "log.setting")
def try_messages_after_reset(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a reset instance logs messages as a new one does."""
    with fixture.open_instance(logging=True) as instance:
        messages_before = _collect_refusal_messages(fixture, instance)
        instance.reset()
        if messages_before and not _collect_refusal_messages(fixture, instance):
            message = "was made with messages on, and a refusal that was logged before is not logged after a reset"
            yield RuleViolation("log.setting", message, fixture.interface)


def _collect_refusal_messages(fixture: TrialFixture, instance: FmuInstance) -> list[tuple[int, str, str]]:
    """Return the messages of entering Initialization Mode and requesting a variable that is not there."""
    message_count = len(instance.messages)
    instance.enter_initialization(fixture.start, None, fixture.tolerance)
    reference_arguments = (c.c_uint * 1)(find_unused_value_reference(fixture)), c.c_size_t(1)
    buffer = (c.c_double * 4)()
    size_arguments = () if fixture.description.version == 2 else (c.c_size_t(1),)
    name = "GetReal" if fixture.description.version == 2 else "GetFloat64"
    instance.call(name, *reference_arguments, buffer, *size_arguments)
    return instance.messages[message_count:]


def find_unused_value_reference(fixture: TrialFixture) -> int:
    """Return a value reference that no variable has."""
    return next(
        reference
        for reference in range(2**31 - 2, 0, -1)
        if reference not in fixture.description.variables_by_reference
    )


def _switch_logging(instance: FmuInstance, categories: Sequence[bytes], *, enabled: bool) -> int:
    """Return the status of switching messages of these categories on or off."""
    flag_type = c.c_int if instance.version == 2 else c.c_bool
    names = (c.c_char_p * max(len(categories), 1))(*categories)
    return instance.call("SetDebugLogging", flag_type(enabled), c.c_size_t(len(categories)), names)
