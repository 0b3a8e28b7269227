"""FMI 3: arrays of other sizes, and ticking clocks."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, Value, status_name
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.behaviour.trials.resized_array_trials import declared_size, list_size_parameters, list_sized_arrays
from mb2fmu.audit.description.description_records import DescribedVariable, parse_number
from mb2fmu.audit.findings import Observation

MAX_TRIED_SIZE = 64
"""Up to this size the bounds of structural parameters are tried, too."""


@register_trial("arrays of other sizes", "value.structural")
def try_resized_arrays(fixture: TrialFixture) -> Iterator[Observation]:
    """Check that structural parameters set in Configuration Mode size the arrays that refer to them."""
    parameters = list_size_parameters(fixture)
    if fixture.description.version != 3 or not parameters:
        fixture.mark_inapplicable("value.structural", "it has no structural parameters")
        return
    tried_parameters = 0
    for parameter in parameters:
        arrays = list_sized_arrays(fixture, parameter)
        start = declared_size(parameter)
        other_size = next(
            (
                size_
                for size_ in (start + 1, start - 1, start + 2)
                if size_ > 0 and fixture.clip_to_bounds(parameter, size_) == size_
            ),
            None,
        )
        if other_size is None or not arrays:
            continue
        tried_parameters += 1
        for size in dict.fromkeys((other_size, *_list_size_bounds(parameter))):
            faults = list(_check_size(fixture, parameter, size, arrays))
            yield from faults
            if faults:
                break
    if not tried_parameters:
        fixture.mark_inapplicable(
            "value.structural", "no array has the size of a structural parameter that can be another"
        )


def _list_size_bounds(parameter: DescribedVariable) -> list[int]:
    """Return the bounds of a size, if the description gives them and they are no large numbers."""
    bounds = (parameter.number("min"), parameter.number("max"))
    return [int(bound) for bound in bounds if bound is not None and 1 <= bound <= MAX_TRIED_SIZE]


def _check_size(
    fixture: TrialFixture, parameter: DescribedVariable, size: int, arrays: list[DescribedVariable]
) -> Iterator[Observation]:
    """Yield faults after a structural parameter was set: in its value, or the number of elements of its arrays."""
    place = fixture.locate(parameter)
    with fixture.open_instance() as instance:
        try:
            for value in (declared_size(parameter), size):  # as often as one likes
                instance.must_call("EnterConfigurationMode")
                instance.set({parameter: value})
                instance.must_call("ExitConfigurationMode")
            instance.enter_initialization(fixture.start, None, fixture.tolerance)
            read_value = instance.get([parameter])[0]
        except RefusedCallError as error:
            yield Observation("value.structural", f"set to {size} in Configuration Mode: {error}", place)
            return
        if read_value != size:
            yield Observation("value.structural", f"set to {size} in Configuration Mode, it is {read_value!r}", place)
            return
        yield from _check_other_start_values(fixture, instance, parameter, size)
        for array in arrays:
            count = _count_elements(fixture, array, parameter, size)
            status = _read_elements(instance, array, count)
            declared_count = fixture.description.size(array)
            if status not in {OK, WARNING}:
                message = f'with {size} the array "{array.name}" should have {count} elements; reading these answers'
                yield Observation("value.structural", f"{message} {status_name(status)}", place)
            elif declared_count != count and _read_elements(instance, array, declared_count) in {OK, WARNING}:
                message = f'with {size} the array "{array.name}" is read with {declared_count} elements, as before, too'
                yield Observation("value.structural", message, place)
            elif array.is_float and array.causality in {"input", "parameter"}:
                yield from _check_set_elements(fixture, instance, array, count, place)


def _check_set_elements(
    fixture: TrialFixture, instance: FmuInstance, array: DescribedVariable, count: int, place: str
) -> Iterator[Observation]:
    """Yield the first element that does not have the value it was set to; an array that is refused is no fault."""
    step = 2.0**-6 * fixture.scale(array)
    values = tuple(fixture.clip_to_bounds(array, (index + 1) * step) for index in range(count))
    if instance.try_set(array, values) not in {OK, WARNING}:
        return
    element_type: Any = instance.types[array.type][1]
    buffer = (element_type * count)()
    instance.call(f"Get{instance.types[array.type][0]}", (c.c_uint * 1)(array.reference or 0), c.c_size_t(1), buffer,
                  c.c_size_t(count))  # fmt: skip
    for index, (set_value, read_value) in enumerate(zip(values, buffer, strict=True)):
        if abs(read_value - set_value) > 1e-6 * abs(set_value):
            message = f'as one of {count} elements, number {index + 1} of "{array.name}" is set to {set_value:.7g}, '
            message += f"and is {read_value:.7g}"
            yield Observation("value.structural", message, place)
            return


def _check_other_start_values(
    fixture: TrialFixture, instance: FmuInstance, parameter: DescribedVariable, size: int
) -> Iterator[Observation]:
    """Yield the first variable whose start value is lost with another size, though it has no such dimension."""
    arrays = frozenset(list_sized_arrays(fixture, parameter))
    variables_with_start = [
        variable_
        for variable_ in fixture.variables
        if (variable_.initial == "exact" or variable_.causality == "input")
        and variable_ not in arrays
        and variable_ is not parameter
    ]
    for variable, value in zip(variables_with_start, instance.get(variables_with_start), strict=True):
        start = fixture.start_value(variable)
        if start is not None and not have_same_bits(start, value):
            message = f'it starts with {value!r} instead of {start!r} where "{parameter.name}" is {size}'
            yield Observation("value.structural", message, fixture.locate(variable))
            return


def _count_elements(fixture: TrialFixture, array: DescribedVariable, parameter: DescribedVariable, size: int) -> int:
    """Return the number of elements if a structural parameter has another value."""
    product = 1
    for dimension in array.dimensions:
        if fixture.description.target(dimension.reference) is parameter:
            product *= size
        else:
            product *= fixture.description.size(replace(array, dimensions=(dimension,)))
    return product


def _read_elements(instance: FmuInstance, array: DescribedVariable, count: int) -> int:
    """Return the status of reading an array as so many elements; the buffer has room for more."""
    type_suffix: str = instance.types[array.type][0]
    element_type: Any = instance.types[array.type][1]
    buffer = (element_type * (count + 64))()
    references = (c.c_uint * 1)(array.reference or 0)
    return instance.call(f"Get{type_suffix}", references, c.c_size_t(1), buffer, c.c_size_t(count))


# --- clocks


PERIODIC_INTERVALS = frozenset({"constant", "fixed", "tunable", "changing", "countdown"})
"""Variabilities of intervals that can be asked for."""

TICKS_PER_CLOCK = 6
"""Of each input clock: an output clock may divide it."""


@register_trial("clocks that tick", "clock.ticks", "clock.interval", "clock.previous")
def try_input_clocks(fixture: TrialFixture) -> Iterator[Observation]:
    """Check clocks: activate input clocks in Event Mode, read clocked variables, ask for intervals."""
    clocks = [clock_ for clock_ in fixture.description.variables if clock_.type == "Clock"]
    if fixture.description.version != 3 or not clocks:
        for rule in ("clock.ticks", "clock.interval", "clock.previous"):
            fixture.mark_inapplicable(rule, "it has no clocks")
        return
    if fixture.interface == "CoSimulation" and not fixture.needs_event_mode:
        for rule in ("clock.ticks", "clock.interval", "clock.previous"):
            fixture.mark_inapplicable(rule, "clocks need hasEventMode")
        return
    periodic = [clock_ for clock_ in clocks if clock_.written.get("intervalVariability") in PERIODIC_INTERVALS]
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        for clock in periodic * 2:  # the second answer counts as the first
            yield from _check_interval(fixture, instance, clock)
        instance.enter_event_mode()
        for clock in clocks:
            if clock.causality == "input":
                yield from _check_repeated_ticks(fixture, instance, clock)
        for clock in periodic:
            if clock.written.get("intervalVariability") == "constant":  # after ticks, too
                yield from _check_interval(fixture, instance, clock)


def _check_repeated_ticks(
    fixture: TrialFixture, instance: FmuInstance, clock: DescribedVariable
) -> Iterator[Observation]:
    """Check that at each tick a ``previous`` variable has the value of the tick before."""
    previous_values: dict[DescribedVariable, Value] = {}
    for _ in range(TICKS_PER_CLOCK):
        current_values: dict[DescribedVariable, Value] = {}
        faults = list(_check_tick(fixture, instance, clock, current_values))
        yield from faults
        if faults:
            return
        for variable in current_values:
            previous_variable = fixture.description.target(variable.written.get("previous"))
            if (
                previous_variable
                and previous_variable in current_values
                and variable in previous_values
                and not have_same_bits(current_values[previous_variable], previous_values[variable])
            ):
                message = (
                    f'it is {current_values[previous_variable]!r} at a tick; "{variable.name}" was '
                    f"{previous_values[variable]!r} at the one before"
                )
                yield Observation("clock.previous", message, fixture.locate(previous_variable))
                return
        previous_values = current_values


def _check_interval(fixture: TrialFixture, instance: FmuInstance, clock: DescribedVariable) -> Iterator[Observation]:
    """Yield a clock's interval that is refused, not positive, or other than declared."""
    value, qualifier = c.c_double(float("nan")), c.c_int(-1)
    references = (c.c_uint * 1)(clock.reference or 0)
    status = instance.call("GetIntervalDecimal", references, c.c_size_t(1), c.byref(value), c.byref(qualifier))
    place = fixture.locate(clock)
    variability = clock.written.get("intervalVariability")
    if status not in {OK, WARNING}:
        if variability in {"changing", "countdown"}:
            yield Observation(
                "clock.interval", f"a {variability} clock, whose interval is answered with {status_name(status)}", place
            )
        return
    declared = parse_number(clock.written.get("intervalDecimal"))
    if qualifier.value == 0 and variability in {"constant", "fixed"}:
        yield Observation("clock.interval", f"a {variability} clock, whose interval is said to be not known yet", place)
    if qualifier.value != 0 and variability in {"constant", "fixed", "tunable"} and not value.value > 0.0:
        yield Observation("clock.interval", f"its interval is {value.value!r}, which is not positive", place)
    elif (
        declared is not None
        and variability == "constant"
        and qualifier.value != 0
        and abs(value.value - declared) > 1e-12 * declared
    ):
        yield Observation(
            "clock.interval", f"its interval is {value.value!r}, the description says {declared!r}", place
        )


def _find_active_output_clock(fixture: TrialFixture, instance: FmuInstance) -> Iterator[Observation]:
    """Yield output clocks that are active though the discrete states were updated."""
    for clock in fixture.description.variables:
        if clock.type == "Clock" and clock.causality == "output":
            is_active = (c.c_bool * 1)()
            status = instance.call("GetClock", (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1), is_active)
            if status in {OK, WARNING} and is_active[0]:
                message = "it is still active after the discrete states were updated"
                yield Observation("clock.ticks", message, fixture.locate(clock))
                return


def _check_tick(
    fixture: TrialFixture, instance: FmuInstance, clock: DescribedVariable, values: dict[DescribedVariable, Value]
) -> Iterator[Observation]:
    """Do one tick; values of its variables while it is active go to ``values``."""
    place = fixture.locate(clock)
    references, count = (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1)
    clocked = [
        variable for variable in fixture.description.variables
        if str(clock.reference) in variable.written.get("clocks", "").split() and variable.type != "Clock"
        and variable.causality != "input" and variable.reference is not None
    ]  # fmt: skip
    is_active = (c.c_bool * 1)()
    is_active[0] = True
    status = instance.call("SetClock", references, count, is_active)
    if status not in {OK, WARNING}:
        yield Observation("clock.ticks", f"setting it in Event Mode answers {status_name(status)}", place)
        return
    try:
        values.update(zip(clocked, instance.get(clocked), strict=True))
        fixture.settle_events(instance)
        is_active[0] = True
        if instance.call("GetClock", references, count, is_active) in {OK, WARNING} and is_active[0]:
            yield Observation("clock.ticks", "it is still active after the discrete states were updated", place)
        yield from _find_active_output_clock(fixture, instance)
    except TimeBudgetError:
        raise
    except (RefusedCallError, SkippedTrialError) as error:
        yield Observation("clock.ticks", f"while it ticks: {error}", place)
