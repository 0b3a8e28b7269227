"""Values: as declared, as set, within bounds, changing only when permitted, and never silently NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_changed_value,
    choose_excited_run_values,
    list_freely_settable_inputs,
    list_parameters_and_exact_starts,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import (
    TerminateSimulationError,
    TrialFixture,
    abbreviate_name_list,
    are_all_finite,
    are_identical_values,
)
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    record_ordinary_run,
    run_as_interface_type,
    run_co_simulation,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError, Value, format_fmi_status
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

EXTREME_VALUES = (math.nan, math.inf, 1e300)
SAMPLE_STEPS = 2
"""Communication steps of the run that reads all variables of a large FMU."""

REFUSAL_TIME_LIMIT = 30.0
"""For one step with an extreme value, in s of the processor."""


def _agree(first: Value, second: Value, permitted_relative_difference: float) -> bool:
    """Return whether two values agree to a relative tolerance; arrays element by element."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(
            _agree(first_element, second_element, permitted_relative_difference)
            for first_element, second_element in zip(first, second, strict=True)
        )
    if isinstance(first, float) and isinstance(second, float):
        return are_identical_values(first, second) or math.isclose(
            first, second, rel_tol=permitted_relative_difference, abs_tol=1e-300
        )
    if isinstance(first, bool) or isinstance(second, bool):
        return bool(first) == bool(second)
    return first == second


def _type_round_off(variable: DescribedVariable) -> float:
    """Return the relative round-off of a variable's type."""
    return 1e-6 if variable.type == "Float32" else 1e-14


@register_trial("reading start values", "value.start")
def try_start_values(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check values in Initialization Mode that are declared exact, of inputs and of constants."""
    variables = [
        item for item in fixture.readable_variables
        if (item.initial == "exact" or item.causality == "input") and fixture.start_value(item) is not None
    ]  # fmt: skip
    try:
        with fixture.open_instance() as instance:
            instance.enter_initialization(fixture.start, None, fixture.tolerance)
            values = instance.get(variables)
    except RefusedCallError:  # FMI 2 lets an FMU show only outputs, states and derivatives there
        variables = [
            item for item in variables if item.causality in {"parameter", "input"} or item.variability == "constant"
        ]
        with fixture.open_instance() as instance:
            fixture.initialize(instance)
            values = instance.get(variables)
    deviations = [
        (item, declared, value)
        for item, value in zip(variables, values, strict=True)
        if (declared := fixture.start_value(item)) is not None and not _agree(declared, value, _type_round_off(item))
    ]
    for variable, declared, value in deviations:
        yield RuleViolation(
            "value.start",
            f"declared {declared!r}, but it starts with {value!r}",
            fixture.format_finding_location(variable),
        )


@register_trial("setting start values", "value.set")
def try_setting_and_reading(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that values set in Initialization Mode are read back: all types, one by one, then all at once."""
    variables = [*list_parameters_and_exact_starts(fixture), *list_freely_settable_inputs(fixture)]
    if not variables:
        fixture.mark_inapplicable("value.set", "it has nothing that can be set")
        return
    values: dict[DescribedVariable, Value] = {}
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        for variable in variables:
            value = choose_changed_value(fixture, variable, "set", 0.1)
            if value is None:
                continue
            status = instance.try_set(variable, value)
            if status not in {OK, WARNING}:
                if _has_no_bounds(variable):
                    message = f"setting it to {value!r} is refused in Initialization Mode"
                    yield RuleViolation("value.set", message, fixture.format_finding_location(variable))
                return
            values[variable] = value
            try:
                read_value = instance.get([variable])[0]
            except RefusedCallError:
                return  # the values set so far may not go together
            if not _agree(value, read_value, _type_round_off(variable)):
                yield RuleViolation(
                    "value.set", f"set to {value!r}, read as {read_value!r}", fixture.format_finding_location(variable)
                )
            elif isinstance(value, tuple) and len(value) > 1:
                yield from _check_last_element(fixture, instance, variable, value)
        try:
            all_read = instance.get(list(values))
        except RefusedCallError:
            return
    yield from _compare_after_setting_all(fixture, values, all_read)


def _check_last_element(
    fixture: TrialFixture, instance: FmuInstance, variable: DescribedVariable, value: tuple[Any, ...]
) -> Iterator[RuleViolation]:
    """Yield an array in which only the last element is changed."""
    start = fixture.start_value(variable)
    changed_value = (*value[:-1], start[-1]) if isinstance(start, tuple) else value
    for set_value in (changed_value, value):
        if instance.try_set(variable, set_value) not in {OK, WARNING}:
            return
        read_value = instance.get([variable])[0]
        if not _agree(set_value, read_value, _type_round_off(variable)):
            message = (
                f"set to {set_value!r}, where its last element alone was another one before, it is read "
                f"as {read_value!r}"
            )
            yield RuleViolation("value.set", message, fixture.format_finding_location(variable))
            return


def _compare_after_setting_all(
    fixture: TrialFixture, values: Mapping[DescribedVariable, Value], read_values: Sequence[Value]
) -> Iterator[RuleViolation]:
    """Compare values set one by one with all read at once."""
    for (variable, value), read_value in zip(values.items(), read_values, strict=True):
        if not _agree(value, read_value, _type_round_off(variable)):
            message = f"set to {value!r}, read as {read_value!r} after others were set"
            yield RuleViolation("value.set", message, fixture.format_finding_location(variable))


@register_trial("setting before the initialization", "value.set")
def try_setting_before_initialization(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that values set before the initialization hold in it, as if set in it: variables of all types."""
    input_values = {
        item: value
        for item in list_freely_settable_inputs(fixture)
        if (value := choose_changed_value(fixture, item, "set", 0.1)) is not None
    }
    values = {**choose_excited_run_values(fixture, 1), **input_values}
    if not values:
        return
    readings = []
    for set_before in (False, True):
        with fixture.open_instance() as instance:
            try:
                instance.set(values if set_before else {})
                instance.enter_initialization(fixture.start, None, fixture.tolerance)
                instance.set({} if set_before else values)
                readings.append(instance.get(list(values)))
            except RefusedCallError:
                return  # values may not go together, and one that is refused then is reported elsewhere
    for variable, set_within_value, set_before_value in zip(values, *readings, strict=True):
        if not _agree(set_within_value, set_before_value, _type_round_off(variable)):
            message = f"set to {set_within_value!r} before the initialization, it is {set_before_value!r} in it"
            yield RuleViolation("value.set", message, fixture.format_finding_location(variable))


def _has_no_bounds(variable: DescribedVariable) -> bool:
    """Return whether any value may be set: texts may have a meaning to the FMU."""
    return variable.get("min") is None and variable.get("max") is None and variable.type not in {"String", "Binary"}


@register_trial("setting what cannot be set", "value.unsettable")
def try_setting_unsettable_variables(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that constants, time and calculated values cannot be set."""
    unsettable_variables = [
        item
        for item in fixture.float_scalars
        if item.variability == "constant" or item.causality in {"independent", "calculatedParameter"}
    ]
    accepted = []
    for variable in unsettable_variables[:5]:
        with fixture.open_instance() as instance:
            instance.enter_initialization(fixture.start, None, fixture.tolerance)
            if instance.try_set(variable, 0.123) in {OK, WARNING} and variable.initial != "approx":
                accepted.append(variable)
    if accepted:
        yield RuleViolation(
            "value.unsettable", f"{abbreviate_name_list(accepted)} can be set, and must not", fixture.interface
        )


@register_trial("watching a run", "value.variability", "value.bounds", "value.finite", "value.time",
       "value.items")  # fmt: skip
def try_constants_and_bounds_during_run(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check a run: constants and parameters stay, values are finite and within bounds, time is the time."""
    for rule, has_subject in _map_rules_to_subjects(fixture).items():
        if not has_subject:
            fixture.mark_inapplicable(rule, "it has no variables of that kind")
    variables = fixture.variables_to_try
    run = record_ordinary_run(fixture)
    observations = list(_find_changed_constants(fixture, variables, run))
    yield from observations
    yield from _check_run_values(fixture, variables, run)
    if len(variables) < len(fixture.readable_variables):
        with fixture.open_instance() as instance:
            short_run = run_as_interface_type(fixture, instance, fixture.readable_variables, steps=SAMPLE_STEPS)
        yield from _find_changed_constants(fixture, fixture.readable_variables, short_run)
        yield from _check_run_values(fixture, fixture.readable_variables, short_run)
    if fixture.interface == "ModelExchange":
        yield from _check_discrete_values(fixture, run)
    if not observations:
        yield from _check_excited_run(fixture)


def _check_run_values(
    fixture: TrialFixture, variables: Sequence[DescribedVariable], run: RecordedTrialRun
) -> Iterator[RuleViolation]:
    """Yield values that contradict a variable's description."""
    for position, variable in enumerate(variables):
        column = [row[position] for row in run.values]
        place = fixture.format_finding_location(variable)
        if not all(map(are_all_finite, column)) and are_all_finite(column[0]):
            yield RuleViolation(
                "value.finite",
                "is not a finite number during an ordinary run, and every call returned OK",
                place,
            )
        yield from _check_bounds(variable, column, place)
        yield from _check_items(fixture, variable, column, place)
        if variable.causality == "independent":
            time_errors = [
                (time, value)
                for time, value in zip(run.times, column, strict=True)
                if isinstance(value, float) and abs(value - time) > 1e-9 * max(1.0, abs(time))
            ]
            catches_up = fixture.interface == "CoSimulation" and time_errors and time_errors[-1][0] != run.times[-1]
            # An FMU of fixed internal steps rests within them, as long as it catches up.
            if time_errors and not catches_up:
                yield RuleViolation(
                    "value.time", f"at t = {time_errors[0][0]:.9g} it reports {time_errors[0][1]:.9g}", place
                )


def _find_changed_constants(
    fixture: TrialFixture, variables: Sequence[DescribedVariable], run: RecordedTrialRun
) -> Iterator[RuleViolation]:
    """Yield constants and parameters that a run has changed."""
    for position, variable in enumerate(variables):
        column = [row[position] for row in run.values]
        changed = next((value for value in column if not are_identical_values(value, column[0])), None)
        if variable.variability in {"constant", "fixed", "tunable"} and changed is not None:
            message = f"{variable.variability}, but it goes from {column[0]!r} to {changed!r} during a run"
            yield RuleViolation("value.variability", message, fixture.format_finding_location(variable))


def _check_excited_run(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check with other parameters: an event that restores a start value is visible only if that was changed.

    With other parameters an FMU may refuse a step, and be right.
    """
    constants = [
        variable for variable in fixture.variables_to_try if variable.variability in {"constant", "fixed", "tunable"}
    ]
    if not constants or not choose_excited_run_values(fixture, 1):
        return
    with suppress(RefusedCallError, TerminateSimulationError), fixture.open_instance() as instance:
        run = run_with_excitation(fixture, instance, constants, number=1, steps=fixture.affordable_step_count)
        fixture.shared.excited_events[1] = run.recorded_events
        yield from _find_changed_constants(fixture, constants, run)


def _map_rules_to_subjects(fixture: TrialFixture) -> dict[str, bool]:
    """Return rule → whether it has any subject."""
    variables = fixture.variables_to_try
    calculated_variables = [variable for variable in variables if variable.causality not in {"parameter", "input"}]
    return {
        "value.variability": any(variable.variability != "continuous" for variable in variables),
        "value.bounds": any(variable.get("min") or variable.get("max") for variable in calculated_variables),
        "value.items": any(
            fixture.description.enumeration_values(variable) or variable.type == "Boolean" for variable in variables
        ),
        "value.time": any(variable.causality == "independent" for variable in variables),
    }


def _check_bounds(variable: DescribedVariable, column: list[Value], place: str) -> Iterator[RuleViolation]:
    """Yield the first value of a computed variable that lies outside of min or max."""
    if variable.dimensions or variable.causality in {"parameter", "input"}:
        return
    low, high = variable.number("min"), variable.number("max")
    tolerance = 1e-6 * max(
        (abs(item) for item in column if isinstance(item, float) and math.isfinite(item)), default=1.0
    )
    for value in column:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            continue
        if (low is not None and value < low - tolerance) or (high is not None and value > high + tolerance):
            yield RuleViolation("value.bounds", f"reaches {value:.9g}, beyond its bounds {low} … {high}", place)
            return


def _check_items(
    fixture: TrialFixture, variable: DescribedVariable, column: list[Value], place: str
) -> Iterator[RuleViolation]:
    """Yield values that are no truth value, or no item of the enumeration."""
    items: tuple[int, ...] = fixture.description.enumeration_values(variable)
    if variable.type == "Boolean":
        invalid = next((item for item in column if isinstance(item, int) and item not in {0, 1}), None)
        if invalid is not None:
            yield RuleViolation("value.items", f"a Boolean is {invalid}, which is neither true nor false", place)
    unknown_item = (
        next((item for item in column if isinstance(item, int) and item not in items), None) if items else None
    )
    if unknown_item is not None:
        yield RuleViolation("value.items", f"is {unknown_item}, which is no item of its enumeration", place)


def _check_discrete_values(fixture: TrialFixture, run: RecordedTrialRun) -> Iterator[RuleViolation]:
    """Yield discrete variables that change between two events."""
    for position, variable in enumerate(fixture.variables_to_try):
        column = [row[position] for row in run.values]
        points_without_event = [point for point in range(1, len(column)) if run.events[point] == run.events[point - 1]]
        if variable.variability == "discrete" and any(
            not are_identical_values(column[point - 1], column[point]) for point in points_without_event
        ):
            message = "discrete, but it changes though no event took place"
            yield RuleViolation("value.variability", message, fixture.format_finding_location(variable))


@register_trial(
    "inputs and parameters that are no numbers, or enormous",
    "value.nan",
    "value.extreme",
    timeout_rule="value.extreme",
    call_time_limit=REFUSAL_TIME_LIMIT,
)
def try_extreme_values(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check extreme values: either a call is refused, or everything stays finite."""
    watched_variables = [item for item in fixture.float_scalars if item.causality not in {"parameter", "input"}]
    yield from _check_nan_states(fixture)
    has_time = fixture.make_time_remaining_check()
    for variable in [*fixture.inputs, *fixture.select_scalars("parameter")[:8]]:
        for value in EXTREME_VALUES:
            if not has_time():
                fixture.skipped.append(
                    f"{fixture.interface}: enormous values: not all inputs and parameters were tried"
                )
                return
            rule = "value.nan" if math.isnan(value) else "value.extreme"
            fixture.report_progress(f'"{variable.name}" = {value}')
            with fixture.open_instance() as instance:
                non_finite = _list_non_finite_after_setting(fixture, instance, variable, value, watched_variables)
            if non_finite:
                message = (
                    f"{value} is taken with OK, and {abbreviate_name_list(non_finite, 3)} are no finite "
                    "numbers then, with OK too"
                )
                yield RuleViolation(rule, message, fixture.format_finding_location(variable))
                break


def _check_nan_states(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check Model Exchange with NaN states, as failing integrators set them."""
    if fixture.interface != "ModelExchange" or not fixture.n_states:
        return
    with fixture.open_instance() as instance:
        try:
            fixture.initialize(instance)
            instance.set_states([math.nan] * fixture.n_states)
            derivatives = instance.get_derivatives(fixture.n_states)
        except (RefusedCallError, SkippedTrialError):
            return
    if not all(map(math.isfinite, derivatives)):
        message = "a state that is no number is taken with OK, and derivatives that are none are given with OK"
        yield RuleViolation("value.nan", message, fixture.interface)


@register_trial("another start time", "value.time", "life.start")
def try_later_start_time(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check a run that begins later: the independent variable begins there, and steps continue from there."""
    start_time = fixture.start + 3.7 * fixture.step
    independent = fixture.description.independent
    with fixture.open_instance() as instance:
        try:
            fixture.initialize(instance, start=start_time)
        except RefusedCallError:
            return  # it says that it cannot
        if independent is not None and independent in fixture.float_scalar_set:
            reported_time = instance.get([independent])[0]
            if isinstance(reported_time, float) and abs(reported_time - start_time) > 1e-9 * max(1.0, abs(start_time)):
                message = f"initialized to start at {start_time:.9g}, it reports {reported_time:.9g}"
                yield RuleViolation("value.time", message, fixture.format_finding_location(independent))
                return
        if fixture.interface == "CoSimulation":
            status = instance.do_step(start_time, fixture.step).status
            if status not in {OK, WARNING}:
                message = (
                    f"initialized to start at {start_time:.9g}, a step from there returns {format_fmi_status(status)}"
                )
                yield RuleViolation("value.time", message, fixture.interface)
    if fixture.interface == "ModelExchange":
        yield from _check_start_after_stop(fixture, fixture.stop + 3.7 * fixture.step)


def _check_start_after_stop(fixture: TrialFixture, start_time: float) -> Iterator[RuleViolation]:
    """Check a run that begins after its experiment: the next event lies after its beginning."""
    with fixture.open_instance() as instance, suppress(RefusedCallError, TerminateSimulationError):
        instance.enter_initialization(start_time, None, fixture.tolerance)
        instance.exit_initialization()
        next_event_time = fixture.settle_events(instance, after_initialization=True).next_time
        if next_event_time is not None and next_event_time < start_time - 1e-9 * max(1.0, abs(start_time)):
            message = (
                f"initialized to start at {start_time:.9g}, its next time event is reported at {next_event_time:.9g}"
            )
            yield RuleViolation("life.start", message, fixture.interface)


def _list_non_finite_after_setting(
    fixture: TrialFixture,
    instance: FmuInstance,
    variable: DescribedVariable,
    value: float,
    watched_variables: list[DescribedVariable],
) -> list[DescribedVariable]:
    """Return which variables are not finite after a value was set and nothing was refused."""
    try:
        fixture.initialize(instance, initial_values={variable: value})
        if fixture.interface == "CoSimulation":
            run_co_simulation(fixture, instance, (), steps=1, include_start=False)
        elif fixture.n_states:
            instance.get_derivatives(fixture.n_states)
        values = instance.get(watched_variables)
    except (RefusedCallError, SkippedTrialError):
        return []
    return [item for item, read_value in zip(watched_variables, values, strict=True) if not are_all_finite(read_value)]
