"""Texts and bytes with unusual contents, FMUs without a logger, a second interface type, another step flag."""

from __future__ import annotations

import ctypes as c
import struct
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial

from mb2fmu.audit.behaviour.fixture.excited_runs import iterate_excited_run
from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import find_first_run_difference, run_as_interface_type
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.instance.fmu_log_messages import find_messages_without_logging
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.behaviour.trials.communication_step_trials import CO_SIMULATION, make_model_exchange_fixture
from mb2fmu.audit.behaviour.trials.instance_name_and_logging_trials import find_unused_value_reference
from mb2fmu.audit.behaviour.trials.life_cycle_trials import SHORT_RUN_STEPS
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

UNUSUAL_TEXTS = (b"", b"100 %s %d", "größer ✓".encode(), b"a, \"b\"\\n'c'", b" blanks beside it ", b"two\nlines\t.",
         b"Upper and LOWER", "e\u0301 \U0001d11e\r\n".encode(), b"x")  # fmt: skip
UNUSUAL_BYTES = (b"", b"\0", b"a\0b", b"\xff\0\x80", b"\x07", bytes(range(256)), b"\x08\x7f")


@register_trial("texts and bytes with unusual contents", "value.set", crash_rule="value.set")
def try_unusual_strings_and_bytes(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check texts and bytes of unusual contents: empty, short after long, of other letters; refusals are allowed."""
    variables = fixture.settable_texts
    if not variables:
        return
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        for variable in variables:
            max_size = variable.number("maxSize")
            for value in UNUSUAL_TEXTS if variable.type == "String" else UNUSUAL_BYTES:
                if max_size is not None and len(value) > max_size:
                    continue
                if instance.try_set(variable, value) not in {OK, WARNING}:
                    continue
                read_value = instance.get([variable])[0]
                if read_value != value:
                    message = f"set to {value!r}, it is {read_value!r}"
                    yield RuleViolation("value.set", message, fixture.format_finding_location(variable))
                    break


MAX_NUMBERS = 20
"""Inputs and parameters that are set to the ends of their types."""


def _integer_range(type_name: str) -> tuple[int, int]:
    """Return the smallest and largest whole number of a type; both zero if it is another type."""
    if type_name == "Integer":
        return -(2**31), 2**31 - 1
    bits = type_name.removeprefix("U").removeprefix("Int")
    if not bits.isdecimal():
        return 0, 0
    return (0, 2 ** int(bits) - 1) if type_name.startswith("U") else (-(2 ** (int(bits) - 1)), 2 ** (int(bits) - 1) - 1)


def _list_extreme_values(fixture: TrialFixture, variable: DescribedVariable) -> Iterator[float | int]:
    """Yield the ends of an integer range and their neighbours, or small fractions; nothing for other types."""
    low, high = _integer_range(variable.type)
    if high:
        with suppress(ValueError):
            low, high = max(low, int(variable.get("min") or low)), min(high, int(variable.get("max") or high))
            yield from sorted({low, min(low + 1, high), max(high - 1, low), high})
    elif variable.is_float:
        for fraction in (1e-5, -1e-5):
            value = fixture.clip_to_bounds(variable, fraction * fixture.typical_magnitude(variable))
            yield struct.unpack("f", struct.pack("f", value))[0] if variable.type == "Float32" else value


@register_trial("numbers at the ends of their types", "value.set", crash_rule="value.extreme")
def try_extreme_integers(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that all bits of whole numbers, and small fractions, are taken up; refusals are allowed."""
    variables = [
        candidate
        for candidate in fixture.variables_to_try
        if candidate.causality in {"parameter", "input"} and not candidate.dimensions
    ]
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        for variable in variables[:MAX_NUMBERS]:
            start_value = fixture.start_value(variable)
            for value in _list_extreme_values(fixture, variable):
                if instance.try_set(variable, value) not in {OK, WARNING}:
                    continue
                with suppress(RefusedCallError):
                    read_value = instance.get([variable])[0]
                    if read_value != value:
                        message = f"set to {value!r}, it is {read_value!r}"
                        yield RuleViolation("value.set", message, fixture.format_finding_location(variable))
                        break
            if start_value is not None:
                instance.try_set(variable, start_value)


@register_trial("a refusal where there is no logger", "life.crash", crash_rule="life.crash")
def try_without_logger(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check FMI 3 instances without a logger."""
    if fixture.description.version == 2:
        return
    with fixture.open_instance(logging=None) as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        buffer = (c.c_double * 1)()
        instance.call(
            "GetFloat64", (c.c_uint * 1)(find_unused_value_reference(fixture)), c.c_size_t(1), buffer, c.c_size_t(1)
        )
    yield from ()


@register_trial("messages of categories that are off", "log.setting")
def try_single_log_category(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that with one log category on, messages of others are errors only.

    FMI 2 has a name for all of them (2.2.4): with ``logAll`` on, any may come.
    """
    categories = fixture.description.categories
    for category in categories if len(categories) > 1 else ():
        if category == "logAll" and fixture.description.version == 2:
            continue
        with fixture.open_instance(logging=False) as instance:
            names = (c.c_char_p * 1)(category.encode())
            flag_type = c.c_int if instance.version == 2 else c.c_bool
            if instance.call("SetDebugLogging", flag_type(1), c.c_size_t(1), names) not in {OK, WARNING}:
                continue
            message_count = len(instance.messages)
            try:
                run_as_interface_type(fixture, instance, fixture.variables_to_try, steps=SHORT_RUN_STEPS)
            except (RefusedCallError, SkippedTrialError):
                continue
            other_categories = {
                message[1]
                for message in find_messages_without_logging(instance.messages[message_count:], instance.version)
            } & set(categories) - {category}
        if other_categories:
            message_text = f'only "{category}" is switched on, and messages of "{min(other_categories)}" are written'
            yield RuleViolation("log.setting", message_text, fixture.interface)
            return


@register_trial("an instance of the other interface beside it", "life.several", interfaces=CO_SIMULATION)
def try_both_interface_types(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that Model Exchange and Co-Simulation of one FMU do not disturb each other in one process."""
    model_exchange = make_model_exchange_fixture(fixture)
    if model_exchange is None or fixture.flag("canBeInstantiatedOnlyOncePerProcess"):
        return
    run_alone = _run_beside(fixture, None)
    with model_exchange.open_instance(name=b"other") as other_instance:
        model_exchange.initialize(other_instance)
    run_beside = _run_beside(fixture, model_exchange)
    difference = (
        find_first_run_difference(fixture.variables_to_try, run_alone, run_beside) if run_alone and run_beside else None
    )
    if difference:
        message = (
            f'"{difference[0].name}" differs at point {difference[1]} where an instance for Model Exchange is made'
        )
        yield RuleViolation("life.several", f"{message} beside it", fixture.interface)
    elif run_alone and not run_beside:
        message = "it does not run where an instance for Model Exchange is made beside it"
        yield RuleViolation("life.several", message, fixture.interface)


def _run_beside(fixture: TrialFixture, model_exchange: TrialFixture | None) -> RecordedTrialRun | None:
    """Do a short run; a second instance is made after this one if its fixture is given. None if it is refused."""
    other_instance: FmuInstance | None = None
    with fixture.open_instance(name=b"one") as instance:
        if model_exchange:
            other_instance = FmuInstance(model_exchange.library, model_exchange.interface, name=b"other")
        try:
            for run in iterate_excited_run(fixture, instance, fixture.variables_to_try, steps=SHORT_RUN_STEPS):
                last_run = run
        except (RefusedCallError, SkippedTrialError):
            return None
        finally:
            if other_instance and other_instance.alive:
                other_instance.free()
    return last_run


@register_trial("a run with messages switched off", "life.repeat")
def try_motion_without_logging(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that switching messages off does not change the motion."""
    instance_makers = (partial(fixture.open_instance, logging=enabled) for enabled in (True, False))
    yield from _compare_two_instances(fixture, instance_makers, "messages are switched off")


@register_trial("steps with the other flag of states", "life.repeat", interfaces=CO_SIMULATION)
def try_no_prior_state_flag(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that noSetFMUStatePriorToCurrentPoint does not change the motion."""
    if fixture.can_save_states:
        instance_makers = (partial(_open_with_step_flag, fixture, flag) for flag in (1, 0))
        yield from _compare_two_instances(fixture, instance_makers, "noSetFMUStatePriorToCurrentPoint is false")


@contextmanager
def _open_with_step_flag(fixture: TrialFixture, flag: int) -> Iterator[FmuInstance]:
    """Return an instance whose steps have this value of noSetFMUStatePriorToCurrentPoint."""
    with fixture.open_instance() as instance:
        instance.no_set_state_before = flag
        yield instance


def _compare_two_instances(
    fixture: TrialFixture, instance_makers: Iterable[Callable[[], AbstractContextManager[FmuInstance]]], situation: str
) -> Iterator[RuleViolation]:
    """Check that two instances move alike; ``situation`` says how the second one differs."""
    runs = []
    for make_instance in instance_makers:
        with make_instance() as instance:
            try:
                runs.append(run_as_interface_type(fixture, instance, fixture.variables_to_try, steps=SHORT_RUN_STEPS))
            except (RefusedCallError, SkippedTrialError):
                return
    difference = find_first_run_difference(fixture.variables_to_try, *runs)
    if difference:
        message = f'"{difference[0].name}" differs at point {difference[1]} where {situation}'
        yield RuleViolation("life.repeat", message, fixture.interface)
