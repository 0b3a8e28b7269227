"""Calls that get and set variables: single, several at once, in any order, twice; and in permitted modes only."""

from __future__ import annotations

import ctypes as c
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_other_value, list_inputs, list_settable_variables
from mb2fmu.audit.behaviour.fixture.short_runs import (
    ModelExchangeIntegration,
    ShortRun,
    find_first_difference,
    run_co_simulation,
)
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits, list_first_names
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, MemoryBlock, RefusedCallError, Value, status_name
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

SOME = 60
"""Variables of one type that are asked for alone."""

SHORT = 5
"""Communication steps after a parameter was changed."""

MOST_PARAMETERS = 8
MOST_READ = 60
"""Steps at each of which everything is read."""


def _groups(variables: Sequence[DescribedVariable]) -> Iterator[list[DescribedVariable]]:
    """Yield the variables type by type, as getters and setters take them."""
    ordered = sorted(variables, key=lambda each: each.type)
    return (list(group) for _, group in groupby(ordered, key=lambda each: each.type))


@probe("asking for several variables at once", "value.order")
def try_reading_order(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a value belongs to its reference, alone or with others, in any order, and asked for twice."""
    with stage.instance() as instance:
        stage.initialize(instance)
        if stage.kind == "CoSimulation":
            instance.must_step(stage.start, stage.step)
        for group in _groups(stage.variables):
            some = group[:SOME]
            together = instance.get(some)
            asked = {
                "alone": [instance.get([each])[0] for each in some],
                "together with the others in another order": instance.in_order(some[::-1])[::-1],
                "the second time in one call": instance.in_order([*some, *some])[len(some) :],
            }
            for how, found in asked.items():
                wrong = next(
                    (k for k, (a, b) in enumerate(zip(together, found, strict=True)) if not have_same_bits(a, b)), None
                )
                if wrong is not None:
                    text = f"is {together[wrong]!r} where all are asked for, and {found[wrong]!r} asked for {how}"
                    yield Observation("value.order", text, f'{stage.kind}, "{some[wrong].name}"')
                    return


@probe("asking for nothing", "value.nothing", crash="value.nothing")
def try_empty_lists(stage: TrialFixture) -> Iterator[Observation]:
    """Check that empty lists of variables can be read and set, as importers do."""
    name, kind = ("Real", c.c_double) if stage.description.version == 2 else ("Float64", c.c_double)
    tail = () if stage.description.version == 2 else (c.c_size_t(0),)
    with stage.instance() as instance:
        stage.initialize(instance)
        for verb in ("Get", "Set"):
            room, none = MemoryBlock(kind, 0), (c.c_uint * 1)()
            status = instance.call(f"{verb}{name}", none, c.c_size_t(0), room.array, *tail)
            wrong = room.misdeed(answered=True)
            if wrong or status not in {OK, WARNING}:
                text = wrong or f"answers {status_name(status)}"
                said = f"fmi{stage.description.version}{verb}{name} for no variables {text}"
                yield Observation("value.nothing", said, stage.kind)


@probe("setting what is there already", "value.twice")
def try_setting_inputs_again(stage: TrialFixture) -> Iterator[Observation]:
    """Check that setting inputs to their own values at each step changes nothing."""
    known = [each for each in (*list_settable_variables(stage), *list_inputs(stage)) if not each.dimensions][:SOME]
    for moving_on in (False, True):
        with stage.instance() as instance:
            instance.enter(stage.start, None, stage.tolerance)
            if moving_on:
                instance.exit()
                if instance.mode == "Event Mode":
                    stage.settle(instance, first=True)
                known = list_inputs(stage)[:SOME]
            given = dict(zip(known, instance.get(known), strict=True))
            before = instance.get(stage.variables)
            for _ in range(2):
                for each, value in given.items():
                    if instance.put(each, value) not in {OK, WARNING}:
                        return
            after = instance.get(stage.variables)
        for variable, a, b in zip(stage.variables, before, after, strict=True):
            small = isinstance(a, float) and isinstance(b, float) and abs(a - b) < 1e-6 * stage.scale(variable)
            if not (_near(a, b) or small):  # what is iterated may change a little
                text = f"goes from {a!r} to {b!r} where inputs and start values are set to what they are"
                yield Observation("value.twice", text, f'{stage.kind}, "{variable.name}"')
                return


@probe("setting several variables at once", "value.set")
def try_setting_all_at_once(stage: TrialFixture) -> Iterator[Observation]:
    """Check that all variables of one type can be set by one call, the last one first."""
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        for group in _groups([*list_settable_variables(stage), *list_inputs(stage)]):
            given = {
                each: value
                for each in group[::-1]
                if (value := choose_other_value(stage, each, "set", 0.1)) is not None
            }
            if len(given) < 2 or instance.put_all(given) not in {OK, WARNING}:
                continue
            try:
                found = instance.get(list(given))
            except RefusedCallError:
                return  # the values may not go together
            for (variable, value), got in zip(given.items(), found, strict=True):
                if not _near(value, got):
                    text = f"set to {value!r} by one call with others of its type, it is read as {got!r}"
                    yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')
                    return


def _near(a: Value, b: Value) -> bool:
    """Return whether two values agree to a relative 1e-6; arrays element by element."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_near, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return have_same_bits(a, b) or abs(a - b) <= 1e-6 * max(abs(a), abs(b))
    return a == b


@probe("setting fixed parameters after the initialization", "value.unsettable")
def try_setting_fixed_parameters(stage: TrialFixture) -> Iterator[Observation]:
    """Check that fixed parameters cannot be set later."""
    accepted = []
    for variable in [
        each for each in stage.role("parameter", variability="fixed") if each in list_settable_variables(stage)
    ][:5]:
        value = choose_other_value(stage, variable, "set", 0.1)
        if value is None:
            continue
        with stage.instance() as instance:
            stage.initialize(instance)
            if instance.put(variable, value) in {OK, WARNING} and not have_same_bits(
                instance.get([variable])[0], value
            ):
                continue  # it pretends only
            instance.reset()
            stage.initialize(instance)
            if instance.put(variable, value) in {OK, WARNING}:
                accepted.append(variable)
    if accepted:
        text = f"{list_first_names(accepted)} can be set after the initialization, though variability is fixed"
        yield Observation("value.unsettable", text, stage.kind)


@probe("setting tunable parameters after the initialization", "value.tunable")
def try_tuning_parameters(stage: TrialFixture) -> Iterator[Observation]:
    """Check that tunable parameters have an effect later, if they have one in Initialization Mode."""
    known = [each for each in stage.role("parameter", variability="tunable") if each in list_settable_variables(stage)]
    if not known:
        stage.nothing("value.tunable", "it has no tunable parameters")
        return
    for variable in known[:MOST_PARAMETERS]:
        value = choose_other_value(stage, variable, "tuned", 0.2)
        if value is None:
            continue
        with suppress(RefusedCallError):
            plain, early, late = (_short(stage, variable, value, when) for when in ("never", "initially", "later"))
            if plain is None or early is None or late is None:
                continue
            others = [each for each in stage.variables if each is not variable]
            if find_first_difference(others, plain, early) and not find_first_difference(others, plain, late):
                text = f"set to {value!r} after the initialization, it is read so, and nothing moves in another way"
                yield Observation("value.tunable", text, f'{stage.kind}, "{variable.name}"')


def _short(stage: TrialFixture, variable: DescribedVariable, value: Value, when: str) -> ShortRun | None:
    """Do a few steps with another value of a parameter and read all others; None if the FMU refuses."""
    others = [each for each in stage.variables if each is not variable]
    with stage.instance() as instance, suppress(SkippedTrialError):
        stage.initialize(instance, within={variable: value} if when == "initially" else {})
        if stage.kind == "CoSimulation":
            instance.set({variable: value} if when == "later" else {})
            return run_co_simulation(stage, instance, others, steps=min(SHORT, stage.steps), first=False)
        instance.event()
        instance.set({variable: value} if when == "later" else {})
        following = stage.settle(instance).next_time
        instance.go_on()
        integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-6, following)
        found = ShortRun()
        for k in range(min(SHORT, stage.steps)):
            integration.advance(stage.start + (k + 1) * stage.step)
            found.rows.append(instance.get(others))
        return found
    return None


@probe("setting inputs in Event Mode", "value.set")
def try_setting_in_event_mode(stage: TrialFixture) -> Iterator[Observation]:
    """Check that values set in Event Mode can be read there, before the update and after it."""
    if stage.kind == "CoSimulation" and not stage.needs_event_mode:
        return
    with stage.instance() as instance:
        stage.initialize(instance)
        instance.event()
        given = {
            each: value
            for each in list_inputs(stage)
            if (value := choose_other_value(stage, each, "event", 0.2)) is not None
        }
        with suppress(RefusedCallError):  # other values may be impossible ones
            instance.set(given)
            for when in ("before", "after"):
                if when == "after":
                    stage.settle(instance)
                for (variable, value), got in zip(given.items(), instance.get(list(given)), strict=True):
                    if not _near(value, got):
                        text = f"set to {value!r} in Event Mode, it is read as {got!r} {when} the update"
                        yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')
                        return


@probe("reading at each step, and only at the end", "value.pure", kinds=("CoSimulation",))
def try_reading_without_effect(stage: TrialFixture) -> Iterator[Observation]:
    """Check that reading changes nothing."""
    steps = min(stage.steps, MOST_READ)
    with stage.instance() as instance:
        stage.initialize(instance)
        for k in range(steps):
            run_co_simulation(stage, instance, (), steps=1, begin=stage.start + k * stage.step, first=False)
            for _ in range(3):
                instance.get(stage.variables)
        often = instance.get(stage.variables)
    with stage.instance() as instance:
        stage.initialize(instance)
        run_co_simulation(stage, instance, (), steps=steps, first=False)
        once = instance.get(stage.variables)
    for variable, a, b in zip(stage.variables, once, often, strict=True):
        if not _near(a, b):
            text = f"is {a!r} at the end, and {b!r} where everything was read at each step"
            yield Observation("value.pure", text, f'{stage.kind}, "{variable.name}"')
            return
