"""Values: as declared, as set, within bounds, changing only when permitted, and never silently NaN."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    choose_other_value,
    choose_parameters_and_starts,
    list_inputs,
    list_settable_variables,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.short_runs import ShortRun, run_co_simulation, run_interface_type
from mb2fmu.audit.behaviour.fixture.trial_fixture import (
    SimulationEndedError,
    TrialFixture,
    are_all_finite,
    have_same_bits,
    list_first_names,
)
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, Value, status_name
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

EXTREMES = (math.nan, math.inf, 1e300)
FEW = 2
"""Communication steps after which those are read that a sample of a large FMU leaves out."""

LONGEST_REFUSAL = 30.0
"""For one step with an extreme value, in s of the processor."""


def _close(first: Value, second: Value, relative: float) -> bool:
    """Return whether two values agree to a relative tolerance; arrays element by element."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(_close(a, b, relative) for a, b in zip(first, second, strict=True))
    if isinstance(first, float) and isinstance(second, float):
        return have_same_bits(first, second) or math.isclose(first, second, rel_tol=relative, abs_tol=1e-300)
    if isinstance(first, bool) or isinstance(second, bool):
        return bool(first) == bool(second)
    return first == second


def _relative(variable: DescribedVariable) -> float:
    """Return the relative round-off of a variable's type."""
    return 1e-6 if variable.type == "Float32" else 1e-14


@probe("reading start values", "value.start")
def try_start_values(stage: TrialFixture) -> Iterator[Observation]:
    """Check values in Initialization Mode that are declared exact, of inputs and of constants."""
    wanted = [
        each for each in stage.readable
        if (each.initial == "exact" or each.causality == "input") and stage.start_value(each) is not None
    ]  # fmt: skip
    try:
        with stage.instance() as instance:
            instance.enter(stage.start, None, stage.tolerance)
            found = instance.get(wanted)
    except RefusedCallError:  # FMI 2 lets an FMU show only outputs, states and derivatives there
        wanted = [each for each in wanted if each.causality in {"parameter", "input"} or each.variability == "constant"]
        with stage.instance() as instance:
            stage.initialize(instance)
            found = instance.get(wanted)
    wrong = [
        (each, declared, value)
        for each, value in zip(wanted, found, strict=True)
        if (declared := stage.start_value(each)) is not None and not _close(declared, value, _relative(each))
    ]
    for variable, declared, value in wrong:
        yield Observation(
            "value.start", f"declared {declared!r}, but it starts with {value!r}", f'{stage.kind}, "{variable.name}"'
        )


@probe("setting start values", "value.set")
def try_setting_and_reading(stage: TrialFixture) -> Iterator[Observation]:
    """Check that values set in Initialization Mode are read back: all types, one by one, then all at once."""
    wanted = [*list_settable_variables(stage), *list_inputs(stage)]
    if not wanted:
        stage.nothing("value.set", "it has nothing that can be set")
        return
    given: dict[DescribedVariable, Value] = {}
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        for variable in wanted:
            value = choose_other_value(stage, variable, "set", 0.1)
            if value is None:
                continue
            status = instance.put(variable, value)
            if status not in {OK, WARNING}:
                if _has_no_bounds(variable):
                    text = f"setting it to {value!r} is refused in Initialization Mode"
                    yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')
                return
            given[variable] = value
            try:
                found = instance.get([variable])[0]
            except RefusedCallError:
                return  # the values set so far may not go together
            if not _close(value, found, _relative(variable)):
                yield Observation(
                    "value.set", f"set to {value!r}, read as {found!r}", f'{stage.kind}, "{variable.name}"'
                )
            elif isinstance(value, tuple) and len(value) > 1:
                yield from _last_alone(stage, instance, variable, value)
        try:
            found_all = instance.get(list(given))
        except RefusedCallError:
            return
    yield from _kept(stage, given, found_all)


def _last_alone(
    stage: TrialFixture, instance: FmuInstance, variable: DescribedVariable, value: tuple[Any, ...]
) -> Iterator[Observation]:
    """Yield an array in which only the last element is changed."""
    start = stage.start_value(variable)
    other = (*value[:-1], start[-1]) if isinstance(start, tuple) else value
    for given in (other, value):
        if instance.put(variable, given) not in {OK, WARNING}:
            return
        found = instance.get([variable])[0]
        if not _close(given, found, _relative(variable)):
            text = f"set to {given!r}, where its last element alone was another one before, it is read as {found!r}"
            yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')
            return


def _kept(
    stage: TrialFixture, given: Mapping[DescribedVariable, Value], found: Sequence[Value]
) -> Iterator[Observation]:
    """Compare values set one by one with all read at once."""
    for (variable, value), got in zip(given.items(), found, strict=True):
        if not _close(value, got, _relative(variable)):
            text = f"set to {value!r}, read as {got!r} after others were set"
            yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')


@probe("setting before the initialization", "value.set")
def try_setting_before_initialization(stage: TrialFixture) -> Iterator[Observation]:
    """Check that values set before the initialization hold in it, as if set in it: variables of all types."""
    moved = {
        each: value for each in list_inputs(stage) if (value := choose_other_value(stage, each, "set", 0.1)) is not None
    }
    given = {**choose_parameters_and_starts(stage, 1), **moved}
    if not given:
        return
    found = []
    for before in (False, True):
        with stage.instance() as instance:
            try:
                instance.set(given if before else {})
                instance.enter(stage.start, None, stage.tolerance)
                instance.set({} if before else given)
                found.append(instance.get(list(given)))
            except RefusedCallError:
                return  # values may not go together, and one that is refused then is told elsewhere
    for variable, within, got in zip(given, *found, strict=True):
        if not _close(within, got, _relative(variable)):
            text = f"set to {within!r} before the initialization, it is {got!r} in it"
            yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')


def _has_no_bounds(variable: DescribedVariable) -> bool:
    """Return whether any value may be set: text can always be one that means something."""
    return variable.get("min") is None and variable.get("max") is None and variable.type not in {"String", "Binary"}


@probe("setting what cannot be set", "value.unsettable")
def try_setting_unsettable_variables(stage: TrialFixture) -> Iterator[Observation]:
    """Check that constants, time and calculated values cannot be set."""
    closed = [
        each
        for each in stage.scalars
        if each.variability == "constant" or each.causality in {"independent", "calculatedParameter"}
    ]
    accepted = []
    for variable in closed[:5]:
        with stage.instance() as instance:
            instance.enter(stage.start, None, stage.tolerance)
            if instance.put(variable, 0.123) in {OK, WARNING} and variable.initial != "approx":
                accepted.append(variable)
    if accepted:
        yield Observation("value.unsettable", f"{list_first_names(accepted)} can be set, and must not", stage.kind)


@probe("watching a run", "value.variability", "value.bounds", "value.finite", "value.time",
       "value.items")  # fmt: skip
def try_values_during_run(stage: TrialFixture) -> Iterator[Observation]:
    """Check a run: constants and parameters stay, values are finite and within bounds, time is the time."""
    for rule, some in _watched_kinds(stage).items():
        if not some:
            stage.nothing(rule, "it has no variables of that kind")
    variables = stage.variables
    with stage.instance() as instance:
        found = run_interface_type(stage, instance, variables)
    standing = list(_moved(stage, variables, found))
    yield from standing
    yield from _seen(stage, variables, found)
    if len(variables) < len(stage.readable):
        with stage.instance() as instance:
            few = run_interface_type(stage, instance, stage.readable, steps=FEW)
        yield from _moved(stage, stage.readable, few)
        yield from _seen(stage, stage.readable, few)
    if stage.kind == "ModelExchange":
        yield from _discrete(stage, found)
    if not standing:
        yield from _driven(stage)


def _seen(stage: TrialFixture, variables: Sequence[DescribedVariable], found: ShortRun) -> Iterator[Observation]:
    """Yield values that contradict a variable's description."""
    for place, variable in enumerate(variables):
        column = [row[place] for row in found.rows]
        where = f'{stage.kind}, "{variable.name}"'
        if not all(map(are_all_finite, column)) and are_all_finite(column[0]):
            yield Observation(
                "value.finite",
                "is not a finite number during an ordinary run, and every call was answered with OK",
                where,
            )
        yield from _bounds(variable, column, where)
        yield from _items(stage, variable, column, where)
        if variable.causality == "independent":
            late = [
                (t, v)
                for t, v in zip(found.times, column, strict=True)
                if isinstance(v, float) and abs(v - t) > 1e-9 * max(1.0, abs(t))
            ]
            rests = stage.kind == "CoSimulation" and late and late[-1][0] != found.times[-1]
            # An FMU of fixed internal steps rests within them, as long as it catches up.
            if late and not rests:
                yield Observation("value.time", f"at t = {late[0][0]:.9g} it says {late[0][1]:.9g}", where)


def _moved(stage: TrialFixture, variables: Sequence[DescribedVariable], found: ShortRun) -> Iterator[Observation]:
    """Yield constants and parameters that a run has changed."""
    for place, variable in enumerate(variables):
        column = [row[place] for row in found.rows]
        moved = next((value for value in column if not have_same_bits(value, column[0])), None)
        if variable.variability in {"constant", "fixed", "tunable"} and moved is not None:
            text = f"{variable.variability}, but it goes from {column[0]!r} to {moved!r} during a run"
            yield Observation("value.variability", text, f'{stage.kind}, "{variable.name}"')


def _driven(stage: TrialFixture) -> Iterator[Observation]:
    """Check with other parameters: an event that restores a start value is visible only if that was changed.

    With other parameters an FMU may refuse a step, and be right.
    """
    wanted = [each for each in stage.variables if each.variability in {"constant", "fixed", "tunable"}]
    if not wanted or not choose_parameters_and_starts(stage, 1):
        return
    with suppress(RefusedCallError, SimulationEndedError), stage.instance() as instance:
        yield from _moved(stage, wanted, run_with_excitation(stage, instance, wanted, number=1, steps=stage.steps))


def _watched_kinds(stage: TrialFixture) -> dict[str, bool]:
    """Return rule → whether it has any subject."""
    variables = stage.variables
    calculated = [each for each in variables if each.causality not in {"parameter", "input"}]
    return {
        "value.variability": any(each.variability != "continuous" for each in variables),
        "value.bounds": any(each.get("min") or each.get("max") for each in calculated),
        "value.items": any(stage.description.items(each) or each.type == "Boolean" for each in variables),
        "value.time": any(each.causality == "independent" for each in variables),
    }


def _bounds(variable: DescribedVariable, column: list[Value], where: str) -> Iterator[Observation]:
    """Yield the first value of a computed variable that lies outside of min or max."""
    if variable.dimensions or variable.causality in {"parameter", "input"}:
        return
    low, high = variable.number("min"), variable.number("max")
    slack = 1e-6 * max((abs(each) for each in column if isinstance(each, float) and math.isfinite(each)), default=1.0)
    for value in column:
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            continue
        if (low is not None and value < low - slack) or (high is not None and value > high + slack):
            yield Observation("value.bounds", f"reaches {value:.9g}, beyond its bounds {low} … {high}", where)
            return


def _items(stage: TrialFixture, variable: DescribedVariable, column: list[Value], where: str) -> Iterator[Observation]:
    """Yield values that are no truth value, or no item of the enumeration."""
    items: tuple[int, ...] = stage.description.items(variable)
    if variable.type == "Boolean":
        wrong = next((each for each in column if isinstance(each, int) and each not in {0, 1}), None)
        if wrong is not None:
            yield Observation("value.items", f"a Boolean is {wrong}, which is neither true nor false", where)
    strange = next((each for each in column if isinstance(each, int) and each not in items), None) if items else None
    if strange is not None:
        yield Observation("value.items", f"is {strange}, which is no item of its enumeration", where)


def _discrete(stage: TrialFixture, found: ShortRun) -> Iterator[Observation]:
    """Yield discrete variables that change between two events."""
    for place, variable in enumerate(stage.variables):
        column = [row[place] for row in found.rows]
        quiet = [k for k in range(1, len(column)) if found.events[k] == found.events[k - 1]]
        if variable.variability == "discrete" and any(not have_same_bits(column[k - 1], column[k]) for k in quiet):
            text = "discrete, but it changes though no event took place"
            yield Observation("value.variability", text, f'{stage.kind}, "{variable.name}"')


@probe(
    "inputs and parameters that are no numbers, or enormous", "value.nan", "value.extreme", slow="value.extreme",
    limit=LONGEST_REFUSAL,
)  # fmt: skip
def try_extreme_values(stage: TrialFixture) -> Iterator[Observation]:
    """Check extreme values: either a call is refused, or everything stays finite."""
    watched_ = [each for each in stage.scalars if each.causality not in {"parameter", "input"}]
    yield from _states_that_are_none(stage)
    patient = stage.patient()
    for variable in [*stage.inputs, *stage.role("parameter")[:8]]:
        for value in EXTREMES:
            if not patient():
                stage.skipped.append(f"{stage.kind}: enormous values: not all inputs and parameters were tried")
                return
            rule = "value.nan" if math.isnan(value) else "value.extreme"
            stage.tell(f'"{variable.name}" = {value}')
            with stage.instance() as instance:
                bad = _spoiled(stage, instance, variable, value, watched_)
            if bad:
                text = (
                    f"{value} is taken with OK, and {list_first_names(bad, 3)} are no finite numbers then, with OK too"
                )
                yield Observation(rule, text, f'{stage.kind}, "{variable.name}"')
                break


def _states_that_are_none(stage: TrialFixture) -> Iterator[Observation]:
    """Check Model Exchange with NaN states, as failing integrators set them."""
    if stage.kind != "ModelExchange" or not stage.n_states:
        return
    with stage.instance() as instance:
        try:
            stage.initialize(instance)
            instance.set_states([math.nan] * stage.n_states)
            slopes = instance.slopes(stage.n_states)
        except (RefusedCallError, SkippedTrialError):
            return
    if not all(map(math.isfinite, slopes)):
        text = "a state that is no number is taken with OK, and derivatives that are none are given with OK"
        yield Observation("value.nan", text, stage.kind)


@probe("another start time", "value.time", "life.start")
def try_later_start_time(stage: TrialFixture) -> Iterator[Observation]:
    """Check a run that begins later: the independent variable begins there, and steps continue from there."""
    start = stage.start + 3.7 * stage.step
    independent = stage.description.independent
    with stage.instance() as instance:
        try:
            stage.initialize(instance, start=start)
        except RefusedCallError:
            return  # it says that it cannot
        if independent is not None and independent in stage.scalar_set:
            found = instance.get([independent])[0]
            if isinstance(found, float) and abs(found - start) > 1e-9 * max(1.0, abs(start)):
                text = f"initialized to start at {start:.9g}, it says {found:.9g}"
                yield Observation("value.time", text, f'{stage.kind}, "{independent.name}"')
                return
        if stage.kind == "CoSimulation":
            status = instance.step(start, stage.step).status
            if status not in {OK, WARNING}:
                text = f"initialized to start at {start:.9g}, it answers a step from there with {status_name(status)}"
                yield Observation("value.time", text, stage.kind)
    if stage.kind == "ModelExchange":
        yield from _late_start(stage, stage.stop + 3.7 * stage.step)


def _late_start(stage: TrialFixture, start: float) -> Iterator[Observation]:
    """Check a run that begins after its experiment: the next event lies after its beginning."""
    with stage.instance() as instance, suppress(RefusedCallError, SimulationEndedError):
        instance.enter(start, None, stage.tolerance)
        instance.exit()
        following = stage.settle(instance, first=True).next_time
        if following is not None and following < start - 1e-9 * max(1.0, abs(start)):
            text = f"initialized to start at {start:.9g}, its next time event is said to be at {following:.9g}"
            yield Observation("life.start", text, stage.kind)


def _spoiled(
    stage: TrialFixture,
    instance: FmuInstance,
    variable: DescribedVariable,
    value: float,
    watched_: list[DescribedVariable],
) -> list[DescribedVariable]:
    """Return which variables are not finite after a value was set and nothing was refused."""
    try:
        stage.initialize(instance, within={variable: value})
        if stage.kind == "CoSimulation":
            run_co_simulation(stage, instance, (), steps=1, first=False)
        elif stage.n_states:
            instance.slopes(stage.n_states)
        found = instance.get(watched_)
    except (RefusedCallError, SkippedTrialError):
        return []
    return [each for each, got in zip(watched_, found, strict=True) if not are_all_finite(got)]
