"""FMI 3: arrays of other sizes, and ticking clocks."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, Value, status_name
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.behaviour.trials.resized_array_trials import declared_size, list_size_parameters, list_sized_arrays
from mb2fmu.audit.description.description_records import DescribedVariable, parse_number
from mb2fmu.audit.findings import Observation

MOST_ELEMENTS = 64
"""Up to this size the bounds of structural parameters are tried, too."""


@probe("arrays of other sizes", "value.structural")
def try_resized_arrays(stage: TrialFixture) -> Iterator[Observation]:
    """Check that structural parameters set in Configuration Mode size the arrays that refer to them."""
    known = list_size_parameters(stage)
    if stage.description.version != 3 or not known:
        stage.nothing("value.structural", "it has no structural parameters")
        return
    judged = 0
    for parameter in known:
        arrays = list_sized_arrays(stage, parameter)
        start = declared_size(parameter)
        other = next((k for k in (start + 1, start - 1, start + 2) if k > 0 and stage.inside(parameter, k) == k), None)
        if other is None or not arrays:
            continue
        judged += 1
        for size in dict.fromkeys((other, *_ends(parameter))):
            found = list(_with_size(stage, parameter, size, arrays))
            yield from found
            if found:
                break
    if not judged:
        stage.nothing("value.structural", "no array has the size of a structural parameter that can be another")


def _ends(parameter: DescribedVariable) -> list[int]:
    """Return the bounds of a size, if the description gives them and they are no large numbers."""
    told = (parameter.number("min"), parameter.number("max"))
    return [int(each) for each in told if each is not None and 1 <= each <= MOST_ELEMENTS]


def _with_size(
    stage: TrialFixture, parameter: DescribedVariable, size: int, arrays: list[DescribedVariable]
) -> Iterator[Observation]:
    """Yield faults after a structural parameter was set: in its value, or the number of elements of its arrays."""
    where = f'{stage.kind}, "{parameter.name}"'
    with stage.instance() as instance:
        try:
            for each in (declared_size(parameter), size):  # as often as one likes
                instance.do("EnterConfigurationMode")
                instance.set({parameter: each})
                instance.do("ExitConfigurationMode")
            instance.enter(stage.start, None, stage.tolerance)
            found = instance.get([parameter])[0]
        except RefusedCallError as error:
            yield Observation("value.structural", f"set to {size} in Configuration Mode: {error}", where)
            return
        if found != size:
            yield Observation("value.structural", f"set to {size} in Configuration Mode, it is {found!r}", where)
            return
        yield from _untouched(stage, instance, parameter, size)
        for array in arrays:
            count = _count(stage, array, parameter, size)
            status = _read_elements(instance, array, count)
            old = stage.description.size(array)
            if status not in {OK, WARNING}:
                text = f'with {size} the array "{array.name}" should have {count} elements; reading these answers'
                yield Observation("value.structural", f"{text} {status_name(status)}", where)
            elif old != count and _read_elements(instance, array, old) in {OK, WARNING}:
                text = f'with {size} the array "{array.name}" is read with {old} elements, as before, too'
                yield Observation("value.structural", text, where)
            elif array.is_float and array.causality in {"input", "parameter"}:
                yield from _taken(stage, instance, array, count, where)


def _taken(
    stage: TrialFixture, instance: FmuInstance, array: DescribedVariable, count: int, where: str
) -> Iterator[Observation]:
    """Yield the first element that does not have the value it was set to; an array that is refused is no fault."""
    step = 2.0**-6 * stage.scale(array)
    given = tuple(stage.inside(array, (k + 1) * step) for k in range(count))
    if instance.put(array, given) not in {OK, WARNING}:
        return
    kind: Any = instance.types[array.type][1]
    room = (kind * count)()
    instance.call(f"Get{instance.types[array.type][0]}", (c.c_uint * 1)(array.reference or 0), c.c_size_t(1), room,
                  c.c_size_t(count))  # fmt: skip
    for k, (wanted, found) in enumerate(zip(given, room, strict=True)):
        if abs(found - wanted) > 1e-6 * abs(wanted):
            text = f'as one of {count} elements, number {k + 1} of "{array.name}" is set to {wanted:.7g}, '
            text += f"and is {found:.7g}"
            yield Observation("value.structural", text, where)
            return


def _untouched(
    stage: TrialFixture, instance: FmuInstance, parameter: DescribedVariable, size: int
) -> Iterator[Observation]:
    """Yield the first variable whose start value is lost with another size, though it has no such dimension."""
    arrays = frozenset(list_sized_arrays(stage, parameter))
    exact = [
        each for each in stage.variables
        if (each.initial == "exact" or each.causality == "input") and each not in arrays and each is not parameter
    ]  # fmt: skip
    for variable, found in zip(exact, instance.get(exact), strict=True):
        start = stage.start_value(variable)
        if start is not None and not have_same_bits(start, found):
            text = f'it starts with {found!r} instead of {start!r} where "{parameter.name}" is {size}'
            yield Observation("value.structural", text, f'{stage.kind}, "{variable.name}"')
            return


def _count(stage: TrialFixture, array: DescribedVariable, by: DescribedVariable, size: int) -> int:
    """Return the number of elements if a structural parameter has another value."""
    product = 1
    for dimension in array.dimensions:
        if stage.description.target(dimension.reference) is by:
            product *= size
        else:
            product *= stage.description.size(replace(array, dimensions=(dimension,)))
    return product


def _read_elements(instance: FmuInstance, array: DescribedVariable, count: int) -> int:
    """Return the status of reading an array as so many elements; the buffer has room for more."""
    name: str = instance.types[array.type][0]
    kind: Any = instance.types[array.type][1]
    room = (kind * (count + 64))()
    references = (c.c_uint * 1)(array.reference or 0)
    return instance.call(f"Get{name}", references, c.c_size_t(1), room, c.c_size_t(count))


# --- clocks


PERIODIC = frozenset({"constant", "fixed", "tunable", "changing", "countdown"})
"""Variabilities of intervals that can be asked for."""

TICKS = 6
"""Of each input clock: an output clock may divide it."""


@probe("clocks that tick", "clock.ticks", "clock.interval", "clock.previous")
def try_input_clocks(stage: TrialFixture) -> Iterator[Observation]:
    """Check clocks: activate input clocks in Event Mode, read clocked variables, ask for intervals."""
    clocks = [each for each in stage.description.variables if each.type == "Clock"]
    if stage.description.version != 3 or not clocks:
        for rule in ("clock.ticks", "clock.interval", "clock.previous"):
            stage.nothing(rule, "it has no clocks")
        return
    if stage.kind == "CoSimulation" and not stage.needs_event_mode:
        for rule in ("clock.ticks", "clock.interval", "clock.previous"):
            stage.nothing(rule, "clocks need hasEventMode")
        return
    periodic = [each for each in clocks if each.written.get("intervalVariability") in PERIODIC]
    with stage.instance() as instance:
        stage.initialize(instance)
        for clock in periodic * 2:  # the second answer counts as the first
            yield from _interval(stage, instance, clock)
        instance.event()
        for clock in clocks:
            if clock.causality == "input":
                yield from _ticks(stage, instance, clock)
        for clock in periodic:
            if clock.written.get("intervalVariability") == "constant":  # after ticks, too
                yield from _interval(stage, instance, clock)


def _ticks(stage: TrialFixture, instance: FmuInstance, clock: DescribedVariable) -> Iterator[Observation]:
    """Check that at each tick a ``previous`` variable has the value of the tick before."""
    before: dict[DescribedVariable, Value] = {}
    for _ in range(TICKS):
        seen: dict[DescribedVariable, Value] = {}
        wrong = list(_tick(stage, instance, clock, seen))
        yield from wrong
        if wrong:
            return
        for variable in seen:
            earlier = stage.description.target(variable.written.get("previous"))
            if (
                earlier
                and earlier in seen
                and variable in before
                and not have_same_bits(seen[earlier], before[variable])
            ):
                text = (
                    f'it is {seen[earlier]!r} at a tick; "{variable.name}" was {before[variable]!r} at the one before'
                )
                yield Observation("clock.previous", text, f'{stage.kind}, "{earlier.name}"')
                return
        before = seen


def _interval(stage: TrialFixture, instance: FmuInstance, clock: DescribedVariable) -> Iterator[Observation]:
    """Yield a clock's interval that is refused, not positive, or other than declared."""
    value, qualifier = c.c_double(float("nan")), c.c_int(-1)
    references = (c.c_uint * 1)(clock.reference or 0)
    status = instance.call("GetIntervalDecimal", references, c.c_size_t(1), c.byref(value), c.byref(qualifier))
    where = f'{stage.kind}, "{clock.name}"'
    kind = clock.written.get("intervalVariability")
    if status not in {OK, WARNING}:
        if kind in {"changing", "countdown"}:
            yield Observation(
                "clock.interval", f"a {kind} clock, whose interval is answered with {status_name(status)}", where
            )
        return
    told = parse_number(clock.written.get("intervalDecimal"))
    if qualifier.value == 0 and kind in {"constant", "fixed"}:
        yield Observation("clock.interval", f"a {kind} clock, whose interval is said to be not known yet", where)
    if qualifier.value != 0 and kind in {"constant", "fixed", "tunable"} and not value.value > 0.0:
        yield Observation("clock.interval", f"its interval is {value.value!r}, which is not positive", where)
    elif told is not None and kind == "constant" and qualifier.value != 0 and abs(value.value - told) > 1e-12 * told:
        yield Observation("clock.interval", f"its interval is {value.value!r}, the description says {told!r}", where)


def _left(stage: TrialFixture, instance: FmuInstance) -> Iterator[Observation]:
    """Yield output clocks that are active though the discrete states were updated."""
    for clock in stage.description.variables:
        if clock.type == "Clock" and clock.causality == "output":
            state = (c.c_bool * 1)()
            status = instance.call("GetClock", (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1), state)
            if status in {OK, WARNING} and state[0]:
                text = "it is still active after the discrete states were updated"
                yield Observation("clock.ticks", text, f'{stage.kind}, "{clock.name}"')
                return


def _tick(
    stage: TrialFixture, instance: FmuInstance, clock: DescribedVariable, seen: dict[DescribedVariable, Value]
) -> Iterator[Observation]:
    """Do one tick; values of its variables while it is active go to ``seen``."""
    where = f'{stage.kind}, "{clock.name}"'
    references, one = (c.c_uint * 1)(clock.reference or 0), c.c_size_t(1)
    clocked = [
        each for each in stage.description.variables
        if str(clock.reference) in each.written.get("clocks", "").split() and each.type != "Clock"
        and each.causality != "input" and each.reference is not None
    ]  # fmt: skip
    state = (c.c_bool * 1)()
    state[0] = True
    status = instance.call("SetClock", references, one, state)
    if status not in {OK, WARNING}:
        yield Observation("clock.ticks", f"setting it in Event Mode answers {status_name(status)}", where)
        return
    try:
        seen.update(zip(clocked, instance.get(clocked), strict=True))
        stage.settle(instance)
        state[0] = True
        if instance.call("GetClock", references, one, state) in {OK, WARNING} and state[0]:
            yield Observation("clock.ticks", "it is still active after the discrete states were updated", where)
        yield from _left(stage, instance)
    except TimeBudgetError:
        raise
    except (RefusedCallError, SkippedTrialError) as error:
        yield Observation("clock.ticks", f"while it ticks: {error}", where)
