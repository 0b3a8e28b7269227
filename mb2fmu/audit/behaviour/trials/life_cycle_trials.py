"""Instances: made, refused, reset, repeated, several at once, freed; and their side effects."""

from __future__ import annotations

import ctypes as c
import itertools
import threading
from collections.abc import Iterator
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.short_runs import ShortRun, find_first_difference, run_interface_type
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import AGAIN, NEAR, probe
from mb2fmu.audit.behaviour.instance.fmi_types import ERROR, FATAL, OK, WARNING, RefusedCallError
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.instance.logged_messages import find_messages_without_logging
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.description.binary_rules import list_required_exports
from mb2fmu.audit.findings import Observation

SHORT = 5
"""Communication steps of the runs that are repeated often."""


@probe("instantiating it", "life.instantiate", "life.version", "life.load", "life.crash", "host.path", "host.output",
       "host.files", "host.network", "host.processes", "host.system")  # fmt: skip
def try_instantiation(stage: TrialFixture) -> Iterator[Observation]:
    """Check instantiation with the right token, and the version that the binary reports."""
    function = stage.library.function("GetVersion")
    function.restype = c.c_char_p
    said = (function() or b"").decode("utf-8", "replace")
    if not said.startswith(f"{stage.description.version}."):
        yield Observation("life.version", f'fmi{stage.description.version}GetVersion says "{said}"', stage.kind)
    if stage.description.version == 2:
        types = stage.library.function("GetTypesPlatform")
        types.restype = c.c_char_p
        if (types() or b"") != b"default":
            yield Observation("life.version", f"fmi2GetTypesPlatform says {types()!r}, not 'default'", stage.kind)
    made = stage.make()
    if not made.alive:
        text = f': "{made.messages[-1][2]}"' if made.messages else ", without a message"
        yield Observation("life.instantiate", f"no instance is made{text}", stage.kind)
    made.free()


@probe(AGAIN, "life.instantiate")
def try_instantiation_after_free(stage: TrialFixture) -> Iterator[Observation]:
    """Find out whether an FMU that must be instantiated only once can be when the first one is freed.

    Most can, and are tried so; where not, which is their right, each probe has one instance in a process of its own.
    """
    if stage.flag("canBeInstantiatedOnlyOncePerProcess"):
        for _ in range(2):
            made = stage.make()
            good = made.alive
            with suppress(SkippedTrialError):
                try:
                    if good:
                        stage.initialize(made)
                except RefusedCallError:
                    good = False
                finally:
                    made.free()
        if not good:
            stage.library.process["once"] = 1
    yield from ()


@probe("an ordinary run", "life.calls", "life.crash", "life.writes", "life.rest", "life.ends", "host.output",
       "value.text")  # fmt: skip
def try_ordinary_run(stage: TrialFixture) -> Iterator[Observation]:
    """Check an ordinary run: initialization, steps, reading everything, termination; nothing may be refused."""
    with stage.instance() as instance:
        try:
            run_interface_type(stage, instance, stage.variables)
            instance.terminate()
            instance.get(stage.variables)
        except RefusedCallError as error:
            yield Observation("life.calls", str(error), stage.kind)


@probe("a run without a tolerance", "life.calls")
def try_run_without_tolerance(stage: TrialFixture) -> Iterator[Observation]:
    """Check a run without tolerance and stop time: the arguments behind the flags mean nothing then."""
    with stage.instance() as instance:
        instance.enter(stage.start, None, None)
        instance.exit()
        if instance.mode == "Event Mode":
            stage.settle(instance, first=True)
            instance.go_on()
        if stage.kind == "CoSimulation":
            instance.must_step(stage.start, stage.step)
        instance.get(stage.variables)
    yield from ()


@probe("a wrong token", "life.token")
def try_wrong_token(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a wrong token is noticed."""
    made = stage.make(token="{00000000-0000-0000-0000-00000badbad0}")  # noqa: S106  no password
    if made.alive:
        yield Observation("life.token", "an instance is made with a token that is not the description's", stage.kind)
    made.free()


@probe("an invalid value reference", "value.reference")
def try_invalid_reference(stage: TrialFixture) -> Iterator[Observation]:
    """Check that an unknown value reference is answered with Error."""
    used = {each.reference for each in stage.description.variables}
    free = next(k for k in itertools.count(4_000_000) if k not in used)
    name, sizes = ("GetReal", ()) if stage.description.version == 2 else ("GetFloat64", (c.c_size_t(1),))
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        value = (c.c_double * 1)(0.0)
        status = instance.call(name, (c.c_uint * 1)(free), c.c_size_t(1), value, *sizes)
        if status in {OK, WARNING}:
            yield Observation(
                "value.reference",
                f"reading value reference {free}, which no variable has, is answered with OK",
                stage.kind,
            )


@probe("freeing nothing", "life.free", crash="life.free")
def try_freeing_null_instance(stage: TrialFixture) -> Iterator[Observation]:
    """Check that FreeInstance of a null pointer does not crash."""
    function = stage.library.function("FreeInstance")
    function.restype = None
    function(c.c_void_p())
    yield from ()


@probe("running it twice", "life.repeat", "life.reset")
def try_repeated_run_and_reset(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a second instance, and a reset one, move like the first, bit for bit."""
    variables = stage.variables
    with stage.instance() as instance:
        first = run_interface_type(stage, instance, variables, steps=SHORT)
        if stage.flag("canBeInstantiatedOnlyOncePerProcess"):
            second: ShortRun | None = None
        else:
            with stage.instance() as other:
                second = run_interface_type(stage, other, variables, steps=SHORT)
        different = second and find_first_difference(variables, first, second)
        if different:
            yield Observation(
                "life.repeat", f'"{different[0].name}" differs at point {different[1]} of a second run', stage.kind
            )
            return
        for long in (False, True):
            try:
                _spoil(stage, instance, long=long)
                instance.reset()
                again = run_interface_type(stage, instance, variables, steps=SHORT)
            except RefusedCallError as error:
                yield Observation("life.reset", str(error), stage.kind)
                return
            found = find_first_difference(variables, first, again)
            if found:
                text = f'"{found[0].name}" differs at point {found[1]} of a run after a reset'
                yield Observation("life.reset", text, stage.kind)
                return
        yield from _whole(stage, instance)


def _whole(stage: TrialFixture, instance: FmuInstance) -> Iterator[Observation]:
    """Run to the stop time after a reset and in a new instance: what a reset leaves may show at a late event only."""
    if stage.flag("canBeInstantiatedOnlyOncePerProcess"):
        return
    with suppress(RefusedCallError):
        _spoil(stage, instance, long=False)
    instance.reset()
    found = run_interface_type(stage, instance, stage.variables)
    with stage.instance() as other:
        different = find_first_difference(stage.variables, run_interface_type(stage, other, stage.variables), found)
    if different:
        text = f'"{different[0].name}" differs at point {different[1]} of a whole run after a reset'
        yield Observation("life.reset", text, stage.kind)


def _spoil(stage: TrialFixture, instance: FmuInstance, *, long: bool) -> None:
    """Set other parameters and inputs of all types, refused or not; then do a whole run with its events."""
    if long:
        instance.reset()
    for variable in stage.variables:
        other = stage.other(variable)
        if variable.causality in {"parameter", "input"} and other is not None:
            instance.put(variable, other)
    if long:
        with suppress(RefusedCallError, SkippedTrialError):  # other values may be impossible ones
            run_interface_type(stage, instance, ())


@probe("several instances", "life.several")
def try_neighbouring_instance(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a neighbouring instance with other values changes nothing."""
    if stage.flag("canBeInstantiatedOnlyOncePerProcess"):
        return
    both = stage.make(), stage.make(name=b"neighbour")
    alive = [each.alive for each in both]
    for each in both:
        each.free()
    if not all(alive):
        text = "a second instance beside the first is not made, though canBeInstantiatedOnlyOncePerProcess is false"
        yield Observation("life.several", text, stage.kind)
        return
    variables = stage.variables
    with stage.instance() as alone:
        expected = run_interface_type(stage, alone, variables, steps=SHORT)
    with stage.instance() as instance, stage.instance(name=b"neighbour") as neighbour:
        settable = [*stage.role("parameter", variability="tunable"), *stage.inputs]
        within = {each: stage.near(each, 0.3) for each in settable}
        with suppress(RefusedCallError, SkippedTrialError):  # other values may be impossible ones
            run_interface_type(stage, neighbour, [], within=within, steps=1)
        found = run_interface_type(stage, instance, variables, steps=SHORT)
    different = find_first_difference(variables, expected, found)
    if different:
        yield Observation(
            "life.several", f'"{different[0].name}" differs when a second instance runs beside it', stage.kind
        )


@probe("instances in two threads", "life.threads", where=NEAR)
def try_parallel_instances(stage: TrialFixture) -> Iterator[Observation]:
    """Check that different instances can run in parallel threads."""
    if stage.flag("canBeInstantiatedOnlyOncePerProcess") or stage.flag("needsExecutionTool"):
        return
    variables = stage.variables
    runs: list[ShortRun | None] = [None, None]
    refused: list[str] = []

    def one(place: int) -> None:
        """Do one short run in a thread of its own; a refusal is kept for the main thread."""
        try:
            with stage.instance(name=b"thread%d" % place) as instance:
                runs[place] = run_interface_type(stage, instance, variables, steps=SHORT)
        except SkippedTrialError:
            return
        except RefusedCallError as error:
            refused.append(str(error))

    workers = [threading.Thread(target=one, args=(place,)) for place in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if refused:
        with stage.instance() as instance:
            run_interface_type(stage, instance, variables, steps=SHORT)  # refused here as well: it is not the threads
        yield Observation("life.threads", refused[0], stage.kind)
    elif runs[0] and runs[1]:
        different = find_first_difference(variables, runs[0], runs[1])
        if different:
            yield Observation("life.threads", f'"{different[0].name}" differs between two threads', stage.kind)


@probe("the functions that it must have", "binary.symbols")
def try_loading_functions(stage: TrialFixture) -> Iterator[Observation]:
    """Check that the loader finds all functions."""
    lacking = [
        name
        for name in sorted(list_required_exports(stage.description.version, frozenset({stage.kind})))
        if not hasattr(stage.library.handle, name)
    ]
    if lacking:
        yield Observation("binary.symbols", f"{', '.join(lacking[:6])} cannot be found by the loader", stage.kind)


@probe("messages", "log.undeclared", "log.disabled", "log.silent", "log.null", "log.arguments", "value.text")
def try_messages_of_invalid_call(stage: TrialFixture) -> Iterator[Observation]:
    """Check messages of an invalid call: a declared category with logging on, none or errors only with it off."""
    for logging in (True, False):
        with stage.instance(logging=logging) as instance:
            instance.enter(stage.start, None, stage.tolerance)
            seen = len(instance.messages)
            quiet = find_messages_without_logging(instance.messages[:seen], instance.version)
            status = instance.call("EnterInitializationMode", *_again(stage))
            said = instance.messages[seen:]
        if not logging and quiet:
            yield Observation("log.disabled", f'"{quiet[0][2]}" is written though logging is off', stage.kind)
        if logging and status in {ERROR, FATAL} and not said:
            yield Observation("log.silent", "Error is answered without a message", stage.kind)
        known = set(stage.description.categories)
        unknown = sorted({each[1] for each in said if each[1] not in known})
        if logging and known and unknown:
            yield Observation(
                "log.undeclared", f"category {', '.join(map(repr, unknown))} is not in LogCategories", stage.kind
            )


def _again(stage: TrialFixture) -> tuple[object, ...]:
    """Return the arguments of EnterInitializationMode in FMI 3; none in FMI 2."""
    if stage.description.version == 2:
        return ()
    return c.c_bool(0), c.c_double(0.0), c.c_double(stage.start), c.c_bool(0), c.c_double(0.0)
