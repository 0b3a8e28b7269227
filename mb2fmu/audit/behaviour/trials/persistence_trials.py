"""What is set stays: at bounds and on both sides of the start, over a whole run, and in Configuration Mode."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

from mb2fmu.audit.behaviour.fixture.excited_runs import choose_other_value, list_inputs, list_settable_variables
from mb2fmu.audit.behaviour.fixture.short_runs import ShortRun, run_interface_type
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, Value
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.behaviour.trials.resized_array_trials import list_size_parameters
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

SIDE = 0.3
"""How far from its start a value is set, in its size."""


@probe("values at their bounds", "value.set")
def try_values_at_bounds(stage: TrialFixture) -> Iterator[Observation]:
    """Check that values above and below the start, and at the bounds, are read back where they are taken."""
    wanted = stage.role("parameter", "input")
    with stage.instance() as instance:
        instance.enter(stage.start, None, stage.tolerance)
        for variable in wanted:
            start = stage.start_value(variable)
            for value in _sides(stage, variable):
                if instance.put(variable, value) not in {OK, WARNING}:
                    continue
                try:
                    found = instance.get([variable])[0]
                except RefusedCallError:
                    break
                if isinstance(found, float) and not math.isclose(found, value, rel_tol=1e-9, abs_tol=1e-12):
                    text = f"set to {value!r}, which is within its bounds, it is read as {found!r}"
                    yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')
                    break
            if start is not None:
                instance.put(variable, start)


def _sides(stage: TrialFixture, variable: DescribedVariable) -> list[float]:
    """Return values on both sides of the start, and the bounds that the description gives."""
    start = stage.start_value(variable)
    middle = start if isinstance(start, float) and math.isfinite(start) else 0.0
    away = SIDE * stage.scale(variable)
    bounds = (variable.number("min"), variable.number("max"))
    told = [each for each in bounds if each is not None and math.isfinite(each) and abs(each) < 1e9]
    return [each for each in (middle - away, middle + away, *told) if stage.inside(variable, each) == each]


@probe("inputs over a whole run", "value.set")
def try_inputs_kept(stage: TrialFixture) -> Iterator[Observation]:
    """Check that inputs that are set once stay so to the end: at events, too, they are the importer's."""
    given = {
        each: value
        for each in list_inputs(stage)
        if (value := choose_other_value(stage, each, "kept", SIDE)) is not None
    }
    if not given:
        return
    found = ShortRun()
    with (
        stage.instance() as instance,
        suppress(RefusedCallError, SkippedTrialError),
    ):  # other values may be impossible ones
        found = run_interface_type(stage, instance, list(given), within=given)
    for k, variable in enumerate(given):
        for time, row in zip(found.times, found.rows, strict=True):
            if not have_same_bits(found.rows[0][k], row[k]):
                text = f"an input that was {found.rows[0][k]!r} is {row[k]!r} at t = {time:.6g}, and was not set again"
                yield Observation("value.set", text, f'{stage.kind}, "{variable.name}"')
                break


@probe("Configuration Mode without a change", "value.structural")
def try_values_after_configuration(stage: TrialFixture) -> Iterator[Observation]:
    """Check that values set before Configuration Mode are there behind it, where no size was changed in it."""
    if stage.description.version != 3 or not list_size_parameters(stage):
        return
    wanted = dict.fromkeys([*list_settable_variables(stage), *list_inputs(stage)])
    given = {
        each: value for each in wanted if (value := choose_other_value(stage, each, "configured", SIDE)) is not None
    }
    try:
        usual, behind = (_begun(stage, given, configure=configure) for configure in (False, True))
    except TimeBudgetError:
        raise
    except (RefusedCallError, SkippedTrialError) as error:
        stage.skipped.append(f"{stage.kind}: Configuration Mode without a change: {error}")
        return
    for variable, a, b in zip(given, usual, behind, strict=True):
        if not have_same_bits(a, b):
            text = f"set to {a!r} before Configuration Mode, in which nothing was changed, it is {b!r} behind it"
            yield Observation("value.structural", text, f'{stage.kind}, "{variable.name}"')
            return


def _begun(stage: TrialFixture, given: dict[DescribedVariable, Value], *, configure: bool) -> list[Value]:
    """Return what is read in Initialization Mode of values that were set before it."""
    with stage.instance() as instance:
        instance.set(given)
        if configure:
            instance.do("EnterConfigurationMode")
            instance.do("ExitConfigurationMode")
        instance.enter(stage.start, None, stage.tolerance)
        return instance.get(list(given))
