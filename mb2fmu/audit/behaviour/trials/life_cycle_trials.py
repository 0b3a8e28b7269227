"""Instances: made, refused, reset, repeated, several at once, freed; and their side effects."""

from __future__ import annotations

import ctypes as c
import itertools
import threading
from collections.abc import Iterator
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import IN_PROCESS_ONLY, REINSTANTIATION_TITLE, register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    find_first_run_difference,
    record_ordinary_run,
    run_as_interface_type,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import ERROR, FATAL, OK, WARNING, RefusedCallError
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.instance.fmu_log_messages import find_messages_without_logging
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.description.binary_rules import list_required_exports
from mb2fmu.audit.rules_and_findings import RuleViolation

SHORT_RUN_STEPS = 5
"""Communication steps of the runs that are repeated often."""


@register_trial(
    "instantiating it",
    "life.instantiate",
    "life.version",
    "life.load",
    "life.crash",
    "host.path",
    "host.output",
    "host.files",
    "host.network",
    "host.processes",
    "host.system",
)
def try_instantiation(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check instantiation with the right token, and the version that the binary reports."""
    function = fixture.library.function("GetVersion")
    function.restype = c.c_char_p
    reported_version = (function() or b"").decode("utf-8", "replace")
    if not reported_version.startswith(f"{fixture.description.version}."):
        yield RuleViolation(
            "life.version",
            f'fmi{fixture.description.version}GetVersion returns "{reported_version}"',
            fixture.interface,
        )
    if fixture.description.version == 2:
        get_types_platform = fixture.library.function("GetTypesPlatform")
        get_types_platform.restype = c.c_char_p
        if (get_types_platform() or b"") != b"default":
            yield RuleViolation(
                "life.version",
                f"fmi2GetTypesPlatform returns {get_types_platform()!r}, not 'default'",
                fixture.interface,
            )
    instance = fixture.instantiate()
    if not instance.alive:
        reason = f': "{instance.messages[-1][2]}"' if instance.messages else ", without a message"
        yield RuleViolation("life.instantiate", f"no instance is made{reason}", fixture.interface)
    instance.free()


@register_trial(REINSTANTIATION_TITLE, "life.instantiate")
def try_instantiation_after_free(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Find out whether an FMU that must be instantiated only once can be when the first one is freed.

    Most can, and are tried so; where not, which is their right, each trial has one instance in a process of its own.
    """
    if fixture.flag("canBeInstantiatedOnlyOncePerProcess"):
        for _ in range(2):
            instance = fixture.instantiate()
            succeeded = instance.alive
            with suppress(SkippedTrialError):
                try:
                    if succeeded:
                        fixture.initialize(instance)
                except RefusedCallError:
                    succeeded = False
                finally:
                    instance.free()
        if not succeeded:
            fixture.library.process_state.single_instance_only = True
    yield from ()


@register_trial("an ordinary run", "life.calls", "life.crash", "life.writes", "life.rest", "life.ends", "host.output",
       "value.text")  # fmt: skip
def try_ordinary_run(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check an ordinary run: initialization, steps, reading everything, termination; nothing may be refused."""
    try:
        record_ordinary_run(fixture)
    except RefusedCallError as error:
        yield RuleViolation("life.calls", str(error), fixture.interface)


@register_trial("a run without a tolerance", "life.calls")
def try_run_without_tolerance(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check a run without tolerance and stop time: the arguments behind the flags mean nothing then."""
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, None)
        instance.exit_initialization()
        if instance.mode == "Event Mode":
            fixture.settle_events(instance, after_initialization=True)
            instance.leave_event_mode()
        if fixture.interface == "CoSimulation":
            instance.must_step(fixture.start, fixture.step)
        instance.get(fixture.variables_to_try)
    yield from ()


@register_trial("a wrong token", "life.token")
def try_wrong_token(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a wrong token is noticed."""
    instance = fixture.instantiate(token="{00000000-0000-0000-0000-00000badbad0}")  # noqa: S106  no password
    if instance.alive:
        yield RuleViolation(
            "life.token", "an instance is made with a token that is not the description's", fixture.interface
        )
    instance.free()


@register_trial("an invalid value reference", "value.reference")
def try_invalid_reference(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that an unknown value reference is answered with Error."""
    used_references = {variable.reference for variable in fixture.description.variables}
    unused_reference = next(candidate for candidate in itertools.count(4_000_000) if candidate not in used_references)
    function, size_arguments = ("GetReal", ()) if fixture.description.version == 2 else ("GetFloat64", (c.c_size_t(1),))
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        value = (c.c_double * 1)(0.0)
        status = instance.call(function, (c.c_uint * 1)(unused_reference), c.c_size_t(1), value, *size_arguments)
        if status in {OK, WARNING}:
            yield RuleViolation(
                "value.reference",
                f"reading value reference {unused_reference}, which no variable has, returns OK",
                fixture.interface,
            )


@register_trial("freeing nothing", "life.free", crash_rule="life.free")
def try_freeing_null_instance(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that FreeInstance of a null pointer does not crash."""
    function = fixture.library.function("FreeInstance")
    function.restype = None
    function(c.c_void_p())
    yield from ()


@register_trial("running it twice", "life.repeat", "life.reset")
def try_repeated_run_and_reset(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a second instance, and a reset one, move like the first, bit for bit."""
    variables = fixture.variables_to_try
    with fixture.open_instance() as instance:
        first = run_as_interface_type(fixture, instance, variables, steps=SHORT_RUN_STEPS)
        if fixture.flag("canBeInstantiatedOnlyOncePerProcess"):
            second: RecordedTrialRun | None = None
        else:
            with fixture.open_instance() as second_instance:
                second = run_as_interface_type(fixture, second_instance, variables, steps=SHORT_RUN_STEPS)
        difference = second and find_first_run_difference(variables, first, second)
        if difference:
            yield RuleViolation(
                "life.repeat",
                f'"{difference[0].name}" differs at point {difference[1]} of a second run',
                fixture.interface,
            )
            return
        for whole_run in (False, True):
            try:
                _change_values_and_run(fixture, instance, whole_run=whole_run)
                instance.reset()
                repeated_run = run_as_interface_type(fixture, instance, variables, steps=SHORT_RUN_STEPS)
            except RefusedCallError as error:
                yield RuleViolation("life.reset", str(error), fixture.interface)
                return
            reset_difference = find_first_run_difference(variables, first, repeated_run)
            if reset_difference:
                message = f'"{reset_difference[0].name}" differs at point {reset_difference[1]} of a run after a reset'
                yield RuleViolation("life.reset", message, fixture.interface)
                return
        yield from _check_whole_run_after_reset(fixture, instance)


def _check_whole_run_after_reset(fixture: TrialFixture, instance: FmuInstance) -> Iterator[RuleViolation]:
    """Run to the stop time after a reset, as a new instance did: what a reset leaves may show at a late event only."""
    if fixture.flag("canBeInstantiatedOnlyOncePerProcess"):
        return
    with suppress(RefusedCallError):
        _change_values_and_run(fixture, instance, whole_run=False)
    instance.reset()
    run_after_reset = run_as_interface_type(fixture, instance, fixture.variables_to_try)
    difference = find_first_run_difference(fixture.variables_to_try, record_ordinary_run(fixture), run_after_reset)
    if difference:
        message = f'"{difference[0].name}" differs at point {difference[1]} of a whole run after a reset'
        yield RuleViolation("life.reset", message, fixture.interface)


def _change_values_and_run(fixture: TrialFixture, instance: FmuInstance, *, whole_run: bool) -> None:
    """Set other parameters and inputs of all types, refused or not; then do a whole run with its events."""
    if whole_run:
        instance.reset()
    for variable in fixture.variables_to_try:
        changed = fixture.choose_unequal_value(variable)
        if variable.causality in {"parameter", "input"} and changed is not None:
            instance.try_set(variable, changed)
    if whole_run:
        with suppress(RefusedCallError, SkippedTrialError):  # other values may be impossible ones
            run_as_interface_type(fixture, instance, ())


@register_trial("several instances", "life.several")
def try_neighbouring_instance(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a neighbouring instance with other values changes nothing."""
    if fixture.flag("canBeInstantiatedOnlyOncePerProcess"):
        return
    instances = fixture.instantiate(), fixture.instantiate(name=b"neighbour")
    are_alive = [created_instance.alive for created_instance in instances]
    for created_instance in instances:
        created_instance.free()
    if not all(are_alive):
        message = "a second instance beside the first is not made, though canBeInstantiatedOnlyOncePerProcess is false"
        yield RuleViolation("life.several", message, fixture.interface)
        return
    variables = fixture.variables_to_try
    with fixture.open_instance() as single_instance:
        expected = run_as_interface_type(fixture, single_instance, variables, steps=SHORT_RUN_STEPS)
    with fixture.open_instance() as instance, fixture.open_instance(name=b"neighbour") as neighbour:
        settable = [*fixture.select_scalars("parameter", variability="tunable"), *fixture.inputs]
        initial_values = {
            created_instance: fixture.choose_near_start(created_instance, 0.3) for created_instance in settable
        }
        with suppress(RefusedCallError, SkippedTrialError):  # other values may be impossible ones
            run_as_interface_type(fixture, neighbour, [], initial_values=initial_values, steps=1)
        run = run_as_interface_type(fixture, instance, variables, steps=SHORT_RUN_STEPS)
    difference = find_first_run_difference(variables, expected, run)
    if difference:
        yield RuleViolation(
            "life.several", f'"{difference[0].name}" differs when a second instance runs beside it', fixture.interface
        )


@register_trial("instances in two threads", "life.threads", hosts=IN_PROCESS_ONLY)
def try_parallel_instances(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that different instances can run in parallel threads."""
    if fixture.flag("canBeInstantiatedOnlyOncePerProcess") or fixture.flag("needsExecutionTool"):
        return
    variables = fixture.variables_to_try
    runs: list[RecordedTrialRun | None] = [None, None]
    refusals: list[str] = []

    def run_in_thread(position: int) -> None:
        """Do one short run in a thread of its own; a refusal is kept for the main thread."""
        try:
            with fixture.open_instance(name=b"thread%d" % position) as instance:
                runs[position] = run_as_interface_type(fixture, instance, variables, steps=SHORT_RUN_STEPS)
        except SkippedTrialError:
            return
        except RefusedCallError as error:
            refusals.append(str(error))

    workers = [threading.Thread(target=run_in_thread, args=(position,)) for position in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if refusals:
        with fixture.open_instance() as instance:
            run_as_interface_type(
                fixture, instance, variables, steps=SHORT_RUN_STEPS
            )  # refused here as well: it is not the threads
        yield RuleViolation("life.threads", refusals[0], fixture.interface)
    elif runs[0] and runs[1]:
        difference = find_first_run_difference(variables, runs[0], runs[1])
        if difference:
            yield RuleViolation(
                "life.threads", f'"{difference[0].name}" differs between two threads', fixture.interface
            )


@register_trial("the functions that it must have", "binary.symbols")
def try_loading_fmi_functions(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that the loader finds all functions."""
    missing = [
        name
        for name in sorted(list_required_exports(fixture.description.version, frozenset({fixture.interface})))
        if not hasattr(fixture.library.handle, name)
    ]
    if missing:
        yield RuleViolation(
            "binary.symbols", f"{', '.join(missing[:6])} cannot be found by the loader", fixture.interface
        )


@register_trial("messages", "log.undeclared", "log.disabled", "log.silent", "log.null", "log.arguments", "value.text")
def try_messages_of_invalid_call(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check messages of an invalid call: a declared category with logging on, none or errors only with it off."""
    for logging in (True, False):
        with fixture.open_instance(logging=logging) as instance:
            instance.enter_initialization(fixture.start, None, fixture.tolerance)
            message_count = len(instance.messages)
            unwanted_messages = find_messages_without_logging(instance.messages[:message_count], instance.version)
            status = instance.call("EnterInitializationMode", *_initialization_arguments(fixture))
            new_messages = instance.messages[message_count:]
        if not logging and unwanted_messages:
            yield RuleViolation(
                "log.disabled", f'"{unwanted_messages[0][2]}" is written though logging is off', fixture.interface
            )
        if logging and status in {ERROR, FATAL} and not new_messages:
            yield RuleViolation("log.silent", "Error is returned without a message", fixture.interface)
        declared_categories = set(fixture.description.categories)
        undeclared_categories = sorted(
            {message[1] for message in new_messages if message[1] not in declared_categories}
        )
        if logging and declared_categories and undeclared_categories:
            yield RuleViolation(
                "log.undeclared",
                f"category {', '.join(map(repr, undeclared_categories))} is not in LogCategories",
                fixture.interface,
            )


def _initialization_arguments(fixture: TrialFixture) -> tuple[object, ...]:
    """Return the arguments of EnterInitializationMode in FMI 3; none in FMI 2."""
    if fixture.description.version == 2:
        return ()
    return c.c_bool(0), c.c_double(0.0), c.c_double(fixture.start), c.c_bool(0), c.c_double(0.0)
