"""Calls that get and set variables: single, several at once, in any order, twice; and in permitted modes only."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_changed_value,
    list_freely_settable_inputs,
    list_parameters_and_exact_starts,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, abbreviate_name_list, are_identical_values
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    ModelExchangeIntegration,
    find_first_run_difference,
    run_co_simulation,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import (
    OK,
    WARNING,
    GuardedArray,
    RefusedCallError,
    Value,
    format_fmi_status,
)
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

MAX_SINGLE_READS = 60
"""Most variables of one type that are read one by one."""

STEPS_AFTER_CHANGE = 5
"""Communication steps after a parameter was changed."""

MAX_PARAMETERS = 8
MAX_READ_STEPS = 60
"""Steps at each of which everything is read."""


def _group_by_type(variables: Sequence[DescribedVariable]) -> Iterator[list[DescribedVariable]]:
    """Yield the variables type by type, as getters and setters take them."""
    sorted_variables = sorted(variables, key=lambda variable: variable.type)
    return (list(group) for _, group in groupby(sorted_variables, key=lambda variable: variable.type))


@register_trial("reading several variables at once", "value.order")
def try_reading_order(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a value belongs to its reference, alone or with others, in any order, and read twice."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        if fixture.interface == "CoSimulation":
            instance.must_step(fixture.start, fixture.step)
        for group in _group_by_type(fixture.variables_to_try):
            sample = group[:MAX_SINGLE_READS]
            values_together = instance.get(sample)
            reads = {
                "alone": [instance.get([variable])[0] for variable in sample],
                "together with the others in another order": instance.get_in_order(sample[::-1])[::-1],
                "the second time in one call": instance.get_in_order([*sample, *sample])[len(sample) :],
            }
            for order, values in reads.items():
                differing = next(
                    (
                        index
                        for index, (first, second) in enumerate(zip(values_together, values, strict=True))
                        if not are_identical_values(first, second)
                    ),
                    None,
                )
                if differing is not None:
                    message = f"is {values_together[differing]!r} read together, and {values[differing]!r} read {order}"
                    yield RuleViolation("value.order", message, fixture.format_finding_location(sample[differing]))
                    return


@register_trial("reading no variable", "value.nothing", crash_rule="value.nothing")
def try_empty_lists(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that empty lists of variables can be read and set, as importers do."""
    name, c_type = ("Real", c.c_double) if fixture.description.version == 2 else ("Float64", c.c_double)
    size_arguments = () if fixture.description.version == 2 else (c.c_size_t(0),)
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        for verb in ("Get", "Set"):
            block, no_references = GuardedArray(c_type, 0), (c.c_uint * 1)()
            status = instance.call(f"{verb}{name}", no_references, c.c_size_t(0), block.array, *size_arguments)
            _, violation = block.read(succeeded=True)
            if violation or status not in {OK, WARNING}:
                fault = violation or f"returns {format_fmi_status(status)}"
                message = f"fmi{fixture.description.version}{verb}{name} for no variables {fault}"
                yield RuleViolation("value.nothing", message, fixture.interface)


@register_trial("setting what is there already", "value.twice")
def try_setting_unchanged_values(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that setting inputs to their own values at each step changes nothing."""
    variables = [
        candidate
        for candidate in (*list_parameters_and_exact_starts(fixture), *list_freely_settable_inputs(fixture))
        if not candidate.dimensions
    ][:MAX_SINGLE_READS]
    for after_initialization in (False, True):
        with fixture.open_instance() as instance:
            instance.enter_initialization(fixture.start, None, fixture.tolerance)
            if after_initialization:
                instance.exit_initialization()
                if instance.mode == "Event Mode":
                    fixture.settle_events(instance, after_initialization=True)
                variables = list_freely_settable_inputs(fixture)[:MAX_SINGLE_READS]
            values = dict(zip(variables, instance.get(variables), strict=True))
            values_before = instance.get(fixture.variables_to_try)
            for _ in range(2):
                for candidate, value in values.items():
                    if instance.try_set(candidate, value) not in {OK, WARNING}:
                        return
            values_after = instance.get(fixture.variables_to_try)
        for variable, first, second in zip(fixture.variables_to_try, values_before, values_after, strict=True):
            is_small = (
                isinstance(first, float)
                and isinstance(second, float)
                and abs(first - second) < 1e-6 * fixture.typical_magnitude(variable)
            )
            if not (_agree(first, second) or is_small):  # what is iterated may change a little
                message = f"goes from {first!r} to {second!r} where inputs and start values are set to what they are"
                yield RuleViolation("value.twice", message, fixture.format_finding_location(variable))
                return


@register_trial("setting several variables at once", "value.set")
def try_setting_all_at_once(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that all variables of one type can be set by one call, the last one first."""
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        for group in _group_by_type(
            [*list_parameters_and_exact_starts(fixture), *list_freely_settable_inputs(fixture)]
        ):
            values = {
                candidate: value
                for candidate in group[::-1]
                if (value := choose_changed_value(fixture, candidate, "set", 0.1)) is not None
            }
            if len(values) < 2 or instance.try_set_all(values) not in {OK, WARNING}:
                continue
            try:
                read_values = instance.get(list(values))
            except RefusedCallError:
                return  # the values may not go together
            for (variable, value), read_value in zip(values.items(), read_values, strict=True):
                if not _agree(value, read_value):
                    message = f"set to {value!r} by one call with others of its type, it is read as {read_value!r}"
                    yield RuleViolation("value.set", message, fixture.format_finding_location(variable))
                    return


def _agree(first: Value, second: Value) -> bool:
    """Return whether two values agree to a relative 1e-6; arrays element by element."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(_agree, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return are_identical_values(first, second) or abs(first - second) <= 1e-6 * max(abs(first), abs(second))
    return first == second


@register_trial("setting fixed parameters after the initialization", "value.unsettable")
def try_setting_fixed_parameters(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that fixed parameters cannot be set later."""
    accepted = []
    for variable in [
        parameter
        for parameter in fixture.select_scalars("parameter", variability="fixed")
        if parameter in list_parameters_and_exact_starts(fixture)
    ][:5]:
        value = choose_changed_value(fixture, variable, "set", 0.1)
        if value is None:
            continue
        with fixture.open_instance() as instance:
            fixture.initialize(instance)
            if instance.try_set(variable, value) in {OK, WARNING} and not are_identical_values(
                instance.get([variable])[0], value
            ):
                continue  # it pretends only
            instance.reset()
            fixture.initialize(instance)
            if instance.try_set(variable, value) in {OK, WARNING}:
                accepted.append(variable)
    if accepted:
        message = f"{abbreviate_name_list(accepted)} can be set after the initialization, though variability is fixed"
        yield RuleViolation("value.unsettable", message, fixture.interface)


@register_trial("setting tunable parameters after the initialization", "value.tunable")
def try_tuning_parameters(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that tunable parameters have an effect later, if they have one in Initialization Mode."""
    parameters = [
        parameter
        for parameter in fixture.select_scalars("parameter", variability="tunable")
        if parameter in list_parameters_and_exact_starts(fixture)
    ]
    if not parameters:
        fixture.mark_inapplicable("value.tunable", "it has no tunable parameters")
        return
    for variable in parameters[:MAX_PARAMETERS]:
        value = choose_changed_value(fixture, variable, "tuned", 0.2)
        if value is None:
            continue
        with suppress(RefusedCallError):
            unchanged, set_initially, set_later = (
                _run_with_parameter(fixture, variable, value, moment) for moment in ("never", "initially", "later")
            )
            if unchanged is None or set_initially is None or set_later is None:
                continue
            other_variables = [parameter for parameter in fixture.variables_to_try if parameter is not variable]
            if find_first_run_difference(other_variables, unchanged, set_initially) and not find_first_run_difference(
                other_variables, unchanged, set_later
            ):
                message = f"set to {value!r} after the initialization, it is read so, and nothing moves in another way"
                yield RuleViolation("value.tunable", message, fixture.format_finding_location(variable))


def _run_with_parameter(
    fixture: TrialFixture, variable: DescribedVariable, value: Value, moment: str
) -> RecordedTrialRun | None:
    """Do a few steps with another value of a parameter and read all others; None if the FMU refuses."""
    other_variables = [candidate for candidate in fixture.variables_to_try if candidate is not variable]
    with fixture.open_instance() as instance, suppress(SkippedTrialError):
        fixture.initialize(instance, initial_values={variable: value} if moment == "initially" else {})
        if fixture.interface == "CoSimulation":
            instance.set({variable: value} if moment == "later" else {})
            return run_co_simulation(
                fixture,
                instance,
                other_variables,
                steps=min(STEPS_AFTER_CHANGE, fixture.affordable_step_count),
                include_start=False,
            )
        instance.enter_event_mode()
        instance.set({variable: value} if moment == "later" else {})
        next_event_time = fixture.settle_events(instance).next_time
        instance.leave_event_mode()
        integration = ModelExchangeIntegration(fixture, instance, fixture.start, 1e-6, next_event_time)
        run = RecordedTrialRun()
        for step_index in range(min(STEPS_AFTER_CHANGE, fixture.affordable_step_count)):
            integration.advance(fixture.start + (step_index + 1) * fixture.step)
            run.values.append(instance.get(other_variables))
        return run
    return None


@register_trial("setting inputs in Event Mode", "value.set")
def try_setting_in_event_mode(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that values set in Event Mode can be read there, before the update and after it."""
    if fixture.interface == "CoSimulation" and not fixture.needs_event_mode:
        return
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        instance.enter_event_mode()
        values = {
            candidate: value
            for candidate in list_freely_settable_inputs(fixture)
            if (value := choose_changed_value(fixture, candidate, "event", 0.2)) is not None
        }
        with suppress(RefusedCallError):  # other values may be impossible ones
            instance.set(values)
            for moment in ("before", "after"):
                if moment == "after":
                    fixture.settle_events(instance)
                for (variable, value), read_value in zip(values.items(), instance.get(list(values)), strict=True):
                    if not _agree(value, read_value):
                        message = f"set to {value!r} in Event Mode, it is read as {read_value!r} {moment} the update"
                        yield RuleViolation("value.set", message, fixture.format_finding_location(variable))
                        return


@register_trial("reading at each step, and only at the end", "value.pure", interfaces=("CoSimulation",))
def try_reading_without_effect(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that reading changes nothing."""
    steps = min(fixture.affordable_step_count, MAX_READ_STEPS)
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        for step_index in range(steps):
            run_co_simulation(
                fixture,
                instance,
                (),
                steps=1,
                begin_time=fixture.start + step_index * fixture.step,
                include_start=False,
            )
            for _ in range(3):
                instance.get(fixture.variables_to_try)
        read_often = instance.get(fixture.variables_to_try)
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        run_co_simulation(fixture, instance, (), steps=steps, include_start=False)
        read_once = instance.get(fixture.variables_to_try)
    for variable, first, second in zip(fixture.variables_to_try, read_once, read_often, strict=True):
        if not _agree(first, second):
            message = f"is {first!r} at the end, and {second!r} where everything was read at each step"
            yield RuleViolation("value.pure", message, fixture.format_finding_location(variable))
            return
