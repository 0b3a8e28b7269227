"""Persistence of set values: at bounds and near the start, over a whole run, and in Configuration Mode."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_changed_value,
    list_freely_settable_inputs,
    list_parameters_and_exact_starts,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, are_identical_values
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import run_as_interface_type
from mb2fmu.audit.behaviour.instance.fmi_c_interface import OK, WARNING, RefusedCallError, Value
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError, TrialTimeBudgetError
from mb2fmu.audit.behaviour.trials.array_size_trials import list_array_size_parameters
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

RELATIVE_DISTANCE = 0.3
"""How far from its start a value is set, in its size."""


@register_trial("values at their bounds", "value.set")
def try_reading_set_values(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that values above and below the start, and at the bounds, are read back where they are taken."""
    variables = fixture.select_scalars("parameter", "input")
    with fixture.open_instance() as instance:
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        for variable in variables:
            start = fixture.start_value(variable)
            for value in _list_values_to_set(fixture, variable):
                if instance.try_set(variable, value) not in {OK, WARNING}:
                    continue
                try:
                    read_value = instance.get([variable])[0]
                except RefusedCallError:
                    break
                if isinstance(read_value, float) and not math.isclose(read_value, value, rel_tol=1e-9, abs_tol=1e-12):
                    message = f"set to {value!r}, which is within its bounds, it is read as {read_value!r}"
                    yield RuleViolation("value.set", message, fixture.format_finding_location(variable))
                    break
            if start is not None:
                instance.try_set(variable, start)


def _list_values_to_set(fixture: TrialFixture, variable: DescribedVariable) -> list[float]:
    """Return values on both sides of the start, and the bounds that the description gives."""
    start = fixture.start_value(variable)
    centre = start if isinstance(start, float) and math.isfinite(start) else 0.0
    distance = RELATIVE_DISTANCE * fixture.typical_magnitude(variable)
    bounds = (variable.number("min"), variable.number("max"))
    finite_bounds = [value for value in bounds if value is not None and math.isfinite(value) and abs(value) < 1e9]
    return [
        value
        for value in (centre - distance, centre + distance, *finite_bounds)
        if fixture.clip_to_bounds(variable, value) == value
    ]


@register_trial("inputs over a whole run", "value.set")
def try_input_persistence(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that inputs that are set once stay so to the end: at events, too, they are the importer's."""
    input_values = {
        candidate: value
        for candidate in list_freely_settable_inputs(fixture)
        if (value := choose_changed_value(fixture, candidate, "kept", RELATIVE_DISTANCE)) is not None
    }
    if not input_values:
        return
    run = RecordedTrialRun()
    with (
        fixture.open_instance() as instance,
        suppress(RefusedCallError, SkippedTrialError),
    ):  # other values may be impossible ones
        run = run_as_interface_type(fixture, instance, list(input_values), initial_values=input_values)
    for index, variable in enumerate(input_values):
        for time, values in zip(run.times, run.values, strict=True):
            if not are_identical_values(run.values[0][index], values[index]):
                message = (
                    f"an input that was {run.values[0][index]!r} is {values[index]!r} at t = {time:.6g}, "
                    "and was not set again"
                )
                yield RuleViolation("value.set", message, fixture.format_finding_location(variable))
                break


@register_trial("Configuration Mode without a change", "value.structural")
def try_values_after_configuration_mode(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that values set before Configuration Mode are there behind it, where no size was changed in it."""
    if fixture.description.version != 3 or not list_array_size_parameters(fixture):
        return
    candidates = dict.fromkeys([*list_parameters_and_exact_starts(fixture), *list_freely_settable_inputs(fixture)])
    values = {
        candidate: value
        for candidate in candidates
        if (value := choose_changed_value(fixture, candidate, "configured", RELATIVE_DISTANCE)) is not None
    }
    try:
        without_configuration, with_configuration = (
            _read_after_setting(fixture, values, configure=configure) for configure in (False, True)
        )
    except TrialTimeBudgetError:
        raise
    except (RefusedCallError, SkippedTrialError) as error:
        fixture.skipped.append(f"{fixture.interface}: Configuration Mode without a change: {error}")
        return
    for variable, expected, actual in zip(values, without_configuration, with_configuration, strict=True):
        if not are_identical_values(expected, actual):
            message = (
                f"set to {expected!r} before Configuration Mode, in which nothing was changed, it is "
                f"{actual!r} behind it"
            )
            yield RuleViolation("value.structural", message, fixture.format_finding_location(variable))
            return


def _read_after_setting(
    fixture: TrialFixture, values: dict[DescribedVariable, Value], *, configure: bool
) -> list[Value]:
    """Return values in Initialization Mode that were set before it."""
    with fixture.open_instance() as instance:
        instance.set(values)
        if configure:
            instance.must_call("EnterConfigurationMode")
            instance.must_call("ExitConfigurationMode")
        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        return instance.get(list(values))
