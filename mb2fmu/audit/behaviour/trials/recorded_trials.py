"""Repeat a recorded run: the FMU must reproduce the results of another tool."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mb2fmu.audit.behaviour.fixture.short_runs import (
    ModelExchangeIntegration,
    ShortRun,
    begin_run,
    do_communication_step,
)
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture, list_first_names
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation
from mb2fmu.audit.recorded_reference import RecordedReference, RecordedTable

RULE = "experiment.reference"
BAND = 0.02
"""Part of a variable's range, and of the run's length, that other solvers and output points are granted."""

OWN_PACE = 0.1
"""Part of the time in which a variable goes through its range, at its mean rate."""

MOST = 5000
"""Communication steps, where their size is free."""


@probe("repeating the recorded run", RULE, weight=2.0)
def try_recorded_run(stage: TrialFixture) -> Iterator[Observation]:
    """Check the columns of the reference, each within a band about it."""
    recorded = stage.recorded
    if recorded is None:
        stage.nothing(RULE, "no recorded result was given (UNIT_ref.csv beside the FMU, or --reference)")
        return
    known = {each.name: each for each in stage.variables if not each.dimensions}
    moved = recorded.inputs.names if recorded.inputs else []
    missing = [name for name in [*recorded.reference.names, *moved] if name not in known]
    if missing:
        yield Observation(RULE, f"the FMU has no variable {', '.join(missing[:5])}", stage.kind)
    wrong = [known[name] for name in moved if name in known and known[name].causality != "input"]
    if wrong:
        yield Observation(RULE, f"values are given for what is no input: {list_first_names(wrong)}", stage.kind)
    if missing or wrong:
        return
    watched = [known[name] for name in recorded.reference.names]
    for variable, text in _departures(stage, recorded, watched, _repeated(stage, recorded, watched, known)):
        yield Observation(RULE, text, f'{stage.kind}, "{variable.name}"')


def _repeated(
    stage: TrialFixture,
    recorded: RecordedReference,
    watched: Sequence[DescribedVariable],
    known: dict[str, DescribedVariable],
) -> ShortRun:
    """Return the run, with the inputs as recorded."""
    start, stop = recorded.start, recorded.stop
    assert start is not None
    assert stop is not None
    if stage.kind == "ModelExchange" or stage.flag("canHandleVariableCommunicationStepSize"):
        step = recorded.step or min(stage.step, (stop - start) / 500)
        count = min(max(1, math.ceil((stop - start) / step * (1 - 1e-9))), MOST)
        step = (stop - start) / count
    else:
        step = recorded.step or stage.step
        count = max(1, int((stop - start) / step * (1 + 1e-9)))
    signal = _RecordedInputs(recorded.inputs, known)
    with stage.instance() as instance:
        stage.__dict__["start"] = start
        try:
            return _stepped(stage, instance, watched, signal, (start, step, count))
        finally:
            del stage.__dict__["start"]


def _stepped(
    stage: TrialFixture,
    instance: FmuInstance,
    watched: Sequence[DescribedVariable],
    signal: _RecordedInputs,
    grid: tuple[float, float, int],
) -> ShortRun:
    """Do communication steps of Co-Simulation, or integrate between the same points."""
    start, step, count = grid
    at_start = signal.at(start)
    integration = None
    if stage.kind == "CoSimulation":
        stage.initialize(instance, within=at_start)
    else:
        integration = ModelExchangeIntegration(stage, instance, start, 1e-6, begin_run(stage, instance, at_start))
        integration.moves = lambda t: signal.at(t, discrete=False)
    run = ShortRun([start], [instance.get(watched)])
    for k in range(count):
        point, end = start + k * step, start + (k + 1) * step
        if integration is None:
            instance.set(signal.at(point))
            do_communication_step(stage, instance, point, step)
        else:
            for jump in [*signal.jumps(point, end), None]:
                integration.advance(end if jump is None else jump)
                if jump is not None:
                    integration.interrupt(signal.at(jump))
        run.times.append(end)
        run.rows.append(instance.get(watched))
    return run


class _RecordedInputs:
    """Inputs over time: continuous ones linear between rows, others as in the last row."""

    def __init__(self, table: RecordedTable | None, known: dict[str, DescribedVariable]) -> None:
        self._table = table
        self._variables = [known[name] for name in table.names] if table else []

    def at(self, time: float, *, discrete: bool = True) -> dict[DescribedVariable, Value]:
        """Return values at a time (at a jump, those after it); discrete ones are left out on request."""
        if self._table is None:
            return {}
        times, rows = self._table.times, self._table.rows
        k = max(bisect_right(times, time * (1 + 1e-14)) - 1, 0)
        after = min(k + 1, len(times) - 1)
        width = times[after] - times[k]
        part = min(max((time - times[k]) / width, 0.0), 1.0) if width > 0.0 else 0.0
        found: dict[DescribedVariable, Value] = {}
        for variable, low, high in zip(self._variables, rows[k], rows[after], strict=True):
            if variable.is_float and variable.variability == "continuous":
                found[variable] = low + part * (high - low)
            elif discrete:
                kind = variable.type
                found[variable] = low if variable.is_float else bool(low) if kind == "Boolean" else round(low)
        return found

    def jumps(self, begin: float, end: float) -> list[float]:
        """Return times within (begin, end] from which a value differs from the line before."""
        if self._table is None:
            return []
        times, rows = self._table.times, self._table.rows
        steady = [each.is_float and each.variability == "continuous" for each in self._variables]
        found = []
        for k in range(max(bisect_right(times, begin), 1), bisect_right(times, end)):
            doubled = times[k] == times[k - 1]
            stepped = any(not s and a != b for s, a, b in zip(steady, rows[k - 1], rows[k], strict=True))
            if (doubled or stepped) and times[k] not in found:
                found.append(times[k])
        return found


def _departures(
    stage: TrialFixture, recorded: RecordedReference, watched: Sequence[DescribedVariable], run: ShortRun
) -> Iterator[tuple[DescribedVariable, str]]:
    """Yield columns that leave the band, and the time of their largest departure."""
    times = recorded.reference.times
    assert recorded.start is not None
    assert recorded.stop is not None
    spacing = max((b - a for a, b in pairwise(run.times)), default=0.0)
    for column, variable in enumerate(watched):
        truth = [row[column] for row in recorded.reference.rows]
        extent = max(truth) - min(truth)
        size = max(map(abs, truth))
        reach = max(_reach(truth, recorded.stop - recorded.start), 2.0 * spacing)
        loose = 1e3 * (recorded.tolerance or 0.0)
        width = max(max(BAND, loose) * extent, 1e-3 * size, 1e-6 * stage.scale(variable))
        worst, place, found = 0.0, 0, 0.0
        for k, (time, row) in enumerate(zip(run.times, run.rows, strict=True)):
            value = row[column]
            if not isinstance(value, int | float) or not times[0] <= time <= times[-1]:
                continue
            near = _near(times, truth, time, reach)
            away = max(min(near) - value, value - max(near), 0.0) if math.isfinite(value) else math.inf
            if away > worst:
                worst, place, found = away, k, value
        if worst > width:
            there = _between(times, truth, run.times[place])
            yield (
                variable,
                (
                    f"is {found:.6g} at t = {run.times[place]:.6g}, the recorded result {there:.6g}; "
                    f"{width:.3g} beside what is recorded within {reach:.3g} s would pass"
                ),
            )


def _reach(values: Sequence[float], length: float) -> float:
    """Return by how much a value may be early or late, s: a fraction of the run, and by the variable's own pace.

    What goes to and fro many times in a run would else be right with any phase. A sine has an own time of half a
    period: its extent over its mean rate.
    """
    variation = sum(abs(b - a) for a, b in pairwise(values))
    extent = max(values) - min(values)
    own = length * extent / variation if variation > 0.0 else math.inf
    return min(BAND * length, OWN_PACE * own)


def _near(times: Sequence[float], values: Sequence[float], time: float, reach: float) -> list[float]:
    """Return recorded values from ``time - reach`` to ``time + reach``; beyond the ends extrapolated."""
    low, high = bisect_left(times, time - reach), bisect_right(times, time + reach)
    found = [*values[low:high], *(_between(times, values, t) for t in (time - reach, time, time + reach))]
    for beyond, end, inner in ((times[0] - time + reach, 0, 1), (time + reach - times[-1], -1, -2)):
        width = abs(times[inner] - times[end])
        if beyond > 0.0 and width > 0.0:
            found.append(values[end] + (values[end] - values[inner]) / width * beyond)
    return found


def _between(times: Sequence[float], values: Sequence[float], time: float) -> float:
    """Return a value linear between rows; beyond the ends the last value."""
    k = bisect_right(times, time)
    if k == 0 or k == len(times):
        return values[0] if k == 0 else values[-1]
    part = (time - times[k - 1]) / (times[k] - times[k - 1])
    return values[k - 1] + part * (values[k] - values[k - 1])
