"""Repeat a recorded run: the FMU must reproduce the results of another tool."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mb2fmu.audit.behaviour.fixture.shared_trial_results import RecordedTrialRun
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, abbreviate_name_list
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    ModelExchangeIntegration,
    do_communication_step,
    initialize_model_exchange,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import Value
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.recorded_reference_run import AuditReferenceRun, RecordedReferenceTable
from mb2fmu.audit.rules_and_findings import RuleViolation

REFERENCE_RULE = "experiment.reference"
BAND_WIDTH = 0.02
"""Part of a variable's range, and of the run's length, that other solvers and output points are granted."""

TRANSIT_TIME_SHARE = 0.1
"""Largest time shift, relative to the time in which a variable passes its range at its mean rate."""

MAX_STEPS_PER_RUN = 5000
"""Communication steps, where their size is free."""


@register_trial("repeating the recorded run", REFERENCE_RULE, weight=2.0)
def try_recorded_run(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check the columns of the reference, each within a band about it."""
    recorded = fixture.recorded
    if recorded is None:
        fixture.mark_inapplicable(
            REFERENCE_RULE,
            "no recorded result was given (NAME_ref.csv beside the FMU, --reference), and the FMU carries none",
        )
        return
    by_name = {item.name: item for item in fixture.readable_variables if not item.dimensions}
    input_names = recorded.inputs.names if recorded.inputs else []
    arrays = {item.name for item in fixture.readable_variables if item.dimensions}
    if any(name.partition("[")[0] in arrays for name in [*recorded.reference.names, *input_names]):
        fixture.mark_inapplicable(REFERENCE_RULE, "the recorded result has elements of arrays as columns")
        return
    missing = [name for name in [*recorded.reference.names, *input_names] if name not in by_name]
    if missing:
        yield RuleViolation(REFERENCE_RULE, f"the FMU has no variable {', '.join(missing[:5])}", fixture.interface)
    non_inputs = [by_name[name] for name in input_names if name in by_name and by_name[name].causality != "input"]
    if non_inputs:
        yield RuleViolation(
            REFERENCE_RULE,
            f"values are given for what is no input: {abbreviate_name_list(non_inputs)}",
            fixture.interface,
        )
    if missing or non_inputs:
        return
    variables = [by_name[name] for name in recorded.reference.names]
    for variable, message in _find_deviations(
        fixture, recorded, variables, _repeat_run(fixture, recorded, variables, by_name)
    ):
        yield RuleViolation(REFERENCE_RULE, message, fixture.format_finding_location(variable))


def _repeat_run(
    fixture: TrialFixture,
    recorded: AuditReferenceRun,
    variables: Sequence[DescribedVariable],
    by_name: dict[str, DescribedVariable],
) -> RecordedTrialRun:
    """Return the run, with the inputs as recorded."""
    start, stop = recorded.start, recorded.stop
    assert start is not None
    assert stop is not None
    if fixture.interface == "ModelExchange" or fixture.flag("canHandleVariableCommunicationStepSize"):
        step = recorded.step or min(fixture.step, (stop - start) / 500)
        count = min(max(1, math.ceil((stop - start) / step * (1 - 1e-9))), MAX_STEPS_PER_RUN)
        step = (stop - start) / count
    else:
        step = recorded.step or fixture.step
        count = max(1, int((stop - start) / step * (1 + 1e-9)))
    inputs = _RecordedInputs(recorded.inputs, by_name)
    with fixture.open_instance() as instance:
        fixture.given_start = start
        try:
            return _run_steps(fixture, instance, variables, inputs, (start, step, count))
        finally:
            fixture.given_start = None


def _run_steps(
    fixture: TrialFixture,
    instance: FmuInstance,
    variables: Sequence[DescribedVariable],
    inputs: _RecordedInputs,
    time_grid: tuple[float, float, int],
) -> RecordedTrialRun:
    """Do communication steps of Co-Simulation, or integrate between the same points."""
    start, step, count = time_grid
    at_start = inputs.at(start)
    integration = None
    if fixture.interface == "CoSimulation":
        fixture.initialize(instance, initial_values=at_start)
    else:
        integration = ModelExchangeIntegration(
            fixture, instance, start, 1e-6, initialize_model_exchange(fixture, instance, at_start)
        )
        integration.input_function = lambda t: inputs.at(t, discrete=False)
    run = RecordedTrialRun([start], [instance.get(variables)])
    for step_index in range(count):
        begin_time, end_time = start + step_index * step, start + (step_index + 1) * step
        if integration is None:
            instance.set(inputs.at(begin_time))
            do_communication_step(fixture, instance, begin_time, step)
        else:
            for jump_time in [*inputs.change_times(begin_time, end_time), None]:
                integration.advance(end_time if jump_time is None else jump_time)
                if jump_time is not None:
                    integration.set_inputs_at_event(inputs.at(jump_time))
        run.times.append(end_time)
        run.values.append(instance.get(variables))
    return run


class _RecordedInputs:
    """Inputs over time: continuous ones linear between rows, others as in the last row."""

    def __init__(self, table: RecordedReferenceTable | None, by_name: dict[str, DescribedVariable]) -> None:
        self._table = table
        self._variables = [by_name[name] for name in table.names] if table else []

    def at(self, time: float, *, discrete: bool = True) -> dict[DescribedVariable, Value]:
        """Return values at a time (at a jump, those after it); discrete ones are left out on request."""
        if self._table is None:
            return {}
        times, rows = self._table.times, self._table.rows
        row = max(bisect_right(times, time * (1 + 1e-14)) - 1, 0)
        next_row = min(row + 1, len(times) - 1)
        interval = times[next_row] - times[row]
        fraction = min(max((time - times[row]) / interval, 0.0), 1.0) if interval > 0.0 else 0.0
        values: dict[DescribedVariable, Value] = {}
        for variable, value_before, value_after in zip(self._variables, rows[row], rows[next_row], strict=True):
            if variable.is_float and variable.variability == "continuous":
                values[variable] = value_before + fraction * (value_after - value_before)
            elif discrete:
                type_name = variable.type
                values[variable] = (
                    value_before
                    if variable.is_float
                    else bool(value_before)
                    if type_name == "Boolean"
                    else round(value_before)
                )
        return values

    def change_times(self, begin_time: float, end_time: float) -> list[float]:
        """Return times within (begin, end] from which a value differs from the line before."""
        if self._table is None:
            return []
        times, rows = self._table.times, self._table.rows
        is_continuous = [variable.is_float and variable.variability == "continuous" for variable in self._variables]
        jump_times = []
        for row in range(max(bisect_right(times, begin_time), 1), bisect_right(times, end_time)):
            is_doubled = times[row] == times[row - 1]
            is_stepped = any(
                not continuous and before != after
                for continuous, before, after in zip(is_continuous, rows[row - 1], rows[row], strict=True)
            )
            if (is_doubled or is_stepped) and times[row] not in jump_times:
                jump_times.append(times[row])
        return jump_times


def _find_deviations(
    fixture: TrialFixture, recorded: AuditReferenceRun, variables: Sequence[DescribedVariable], run: RecordedTrialRun
) -> Iterator[tuple[DescribedVariable, str]]:
    """Yield columns that leave the band, and the time of their largest departure."""
    times = recorded.reference.times
    assert recorded.start is not None
    assert recorded.stop is not None
    point_spacing = max((later - earlier for earlier, later in pairwise(run.times)), default=0.0)
    for column, variable in enumerate(variables):
        reference_values = [values[column] for values in recorded.reference.rows]
        value_range = max(reference_values) - min(reference_values)
        magnitude = max(map(abs, reference_values))
        time_tolerance = max(_time_tolerance(reference_values, recorded.stop - recorded.start), 2.0 * point_spacing)
        tolerance_band = 1e3 * (recorded.tolerance or 0.0)
        band = max(
            max(BAND_WIDTH, tolerance_band) * value_range, 1e-3 * magnitude, 1e-6 * fixture.typical_magnitude(variable)
        )
        largest_deviation, worst_point, worst_value = 0.0, 0, 0.0
        for point, (time, values) in enumerate(zip(run.times, run.values, strict=True)):
            value = values[column]
            if not isinstance(value, int | float) or not times[0] <= time <= times[-1]:
                continue
            nearby_values = _list_reference_values_nearby(times, reference_values, time, time_tolerance)
            deviation = (
                max(min(nearby_values) - value, value - max(nearby_values), 0.0) if math.isfinite(value) else math.inf
            )
            if deviation > largest_deviation:
                largest_deviation, worst_point, worst_value = deviation, point, value
        if largest_deviation > band:
            reference_value = _interpolate(times, reference_values, run.times[worst_point])
            yield (
                variable,
                (
                    f"is {worst_value:.6g} at t = {run.times[worst_point]:.6g}, "
                    f"the recorded result {reference_value:.6g}; "
                    f"{band:.3g} beside what is recorded within {time_tolerance:.3g} s would pass"
                ),
            )


def _time_tolerance(values: Sequence[float], duration: float) -> float:
    """Return by how much a value may be early or late, s: a fraction of the run, and by the variable's own pace.

    What goes to and fro many times in a run would else be right with any phase. A sine has an own time of half a
    period: its extent over its mean rate.
    """
    variation = sum(abs(later - earlier) for earlier, later in pairwise(values))
    value_range = max(values) - min(values)
    transit_time = duration * value_range / variation if variation > 0.0 else math.inf
    return min(BAND_WIDTH * duration, TRANSIT_TIME_SHARE * transit_time)


def _list_reference_values_nearby(
    times: Sequence[float], values: Sequence[float], time: float, time_tolerance: float
) -> list[float]:
    """Return recorded values from ``time - reach`` to ``time + reach``; beyond the ends extrapolated."""
    first_row, end_row = bisect_left(times, time - time_tolerance), bisect_right(times, time + time_tolerance)
    nearby_values = [
        *values[first_row:end_row],
        *(_interpolate(times, values, moment) for moment in (time - time_tolerance, time, time + time_tolerance)),
    ]
    for distance, end_index, inner_index in (
        (times[0] - time + time_tolerance, 0, 1),
        (time + time_tolerance - times[-1], -1, -2),
    ):
        interval = abs(times[inner_index] - times[end_index])
        if distance > 0.0 and interval > 0.0:
            nearby_values.append(values[end_index] + (values[end_index] - values[inner_index]) / interval * distance)
    return nearby_values


def _interpolate(times: Sequence[float], values: Sequence[float], time: float) -> float:
    """Return a value linear between rows; beyond the ends the last value."""
    row = bisect_right(times, time)
    if row == 0 or row == len(times):
        return values[0] if row == 0 else values[-1]
    fraction = (time - times[row - 1]) / (times[row] - times[row - 1])
    return values[row - 1] + fraction * (values[row] - values[row - 1])
