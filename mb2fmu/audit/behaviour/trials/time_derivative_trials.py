"""Slopes in Co-Simulation: derivatives of inputs and of outputs."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mb2fmu.audit.behaviour.fixture.short_runs import do_communication_step
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import OK, WARNING, RefusedCallError, Value, status_name
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.behaviour.trials.model_exchange_trials import STOPS
from mb2fmu.audit.behaviour.trials.step_trials import (
    CS,
    choose_excited_inputs,
    list_continuous_variables,
    run_as_model_exchange,
)
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

SAME = 0.5
"""Part of a difference that remains, with steps of a quarter of the size, where it is none of the method's."""

PART = 0.01
"""Of a communication step: a step in which values change nearly straight."""


@probe("derivatives of outputs by time", "steps.output_derivatives", kinds=CS)
def try_output_derivatives(stage: TrialFixture) -> Iterator[Observation]:
    """Check promised output derivatives: they are the slopes at the end of the step."""
    order = int(stage.description.interfaces[stage.kind].get("maxOutputDerivativeOrder", "0") or 0)
    outputs = [each for each in stage.role("output") if each.variability == "continuous"]
    if order < 1 or not outputs or not stage.flag("canHandleVariableCommunicationStepSize"):
        return
    with stage.instance() as instance:
        stage.initialize(instance, within=choose_excited_inputs(stage))
        stops = sorted({1, *(int(part * stage.steps) for part in STOPS)} - {0})
        point = stage.start
        for stop in stops:
            while point < stage.start + (stop - 0.5) * stage.step:
                do_communication_step(stage, instance, point, stage.step)
                point += stage.step
            wide = _slopes(stage, instance, outputs, order, point, PART * stage.step)
            point += 3 * PART * stage.step
            if isinstance(wide, str):
                yield Observation("steps.output_derivatives", wide, stage.kind)
                return
            narrow: dict[DescribedVariable, _OutputDerivative] | str = {}
            if any(each.beyond for each in wide.values()):
                narrow = _slopes(stage, instance, outputs, order, point, 0.25 * PART * stage.step)
                point += 0.75 * PART * stage.step
            if isinstance(narrow, str):
                return
            for variable, found in narrow.items():
                # A method of first order comes nearer to the slope in proportion to its steps: that is its own matter.
                if wide[variable].beyond and found.beyond and found.gap > SAME * wide[variable].gap:
                    text = f"says {found.said:.6g} per second at t = {point:.6g}, and moves with {found.measured:.6g}"
                    yield Observation("steps.output_derivatives", text, f'{stage.kind}, "{variable.name}"')
                    return


@dataclass(frozen=True)
class _OutputDerivative:
    """What is said of an output's slope, and what it is by differences.

    Attributes:
        said: By the FMU.
        measured: Over two tiny steps.
        beyond: They differ by more than is explained.
    """

    said: float
    measured: float
    beyond: bool

    @property
    def gap(self) -> float:
        """By how much they differ."""
        return abs(self.said - self.measured)


def _slopes(
    stage: TrialFixture, instance: FmuInstance, outputs: Sequence[DescribedVariable], order: int, point: float, h: float
) -> dict[DescribedVariable, _OutputDerivative] | str:
    """Do three tiny steps from a point, and read slopes in their middle; return a text if they are refused."""
    do_communication_step(stage, instance, point, h)
    before = instance.get(outputs)
    do_communication_step(stage, instance, point + h, h)
    middle = instance.get(outputs)
    answers = [instance.derivatives_of(outputs, number) for number in range(1, order + 1)]
    do_communication_step(stage, instance, point + 2 * h, h)
    after = instance.get(outputs)
    for number, (status, _) in enumerate(answers, 1):
        if status not in {OK, WARNING}:
            return f"maxOutputDerivativeOrder is {order}, but asking for order {number} answers {status_name(status)}"
    found = {}
    for variable, a, b, c, slope in zip(outputs, before, middle, after, answers[0][1], strict=True):
        assert isinstance(a, float)
        assert isinstance(b, float)
        assert isinstance(c, float)
        measured, curved = (c - a) / (2 * h), abs(c - 2 * b + a) / h
        resolved = 4 * sys.float_info.epsilon * max(abs(a), abs(b), abs(c)) / h  # of slopes, by values that are rounded
        bound = 0.03 * max(abs(measured), abs(slope)) + 3 * curved + 1e-5 * stage.scale(variable) + resolved
        found[variable] = _OutputDerivative(slope, measured, not abs(slope - measured) <= bound)
    return found


@probe("inputs with slopes", "steps.input_derivatives", kinds=CS)
def try_input_derivatives(stage: TrialFixture) -> Iterator[Observation]:
    """Check FMI 2's input derivatives: a ramp in one step against many short steps with the input moved along.

    A stiff state is at the end of a ramp where the slope holds it, and where short steps of equal length hold their
    input it settles: there both are right and differ. Steps that shorten towards the end follow every time constant,
    so a difference counts that both ways of stepping show.
    """
    if stage.description.version != 2 or not stage.flag("canInterpolateInputs") or not stage.inputs:
        return
    if not stage.flag("canHandleVariableCommunicationStepSize"):
        return
    read = stage.states or [each for each in list_continuous_variables(stage) if each.written.get("derivative") is None]
    for known in stage.inputs:
        base = stage.near(known, 0.0)
        slope = stage.scale(known) / stage.step
        held = _stepped(stage, read, known, (base, 0.0), (1.0,))
        ramp = _ramped(stage, read, known, (base, slope))
        if ramp is None:
            text = f'canInterpolateInputs is true, but a slope of "{known.name}" is refused'
            yield Observation("steps.input_derivatives", text, stage.kind)
            return
        differing = dict.fromkeys(range(len(read)), 0.0)
        for shares in (_EQUAL, _SHORTENING):
            moved = _stepped(stage, read, known, (base, slope), shares)
            effects = {k: moved[k] - held[k] for k in differing}
            differing = {
                k: effect
                for k, effect in effects.items()
                if abs(effect) > 1e-6 * max(abs(moved[k]), 1e-3 * stage.scale(read[k]))
                and abs(ramp[k] - moved[k]) > 0.3 * abs(effect)
            }
            if not differing:
                break
        for k, effect in differing.items():
            text = f'a slope of "{known.name}" moves it by {ramp[k] - held[k]:.4g} in a step'
            text += f"; moving the input along, by {effect:.4g}"
            yield Observation("steps.input_derivatives", text, f'{stage.kind}, "{read[k].name}"')
            return


def _shortening() -> tuple[float, ...]:
    """Return ends of steps within [0, 1]: at most 1/32, and at most 1/5 of the rest, down to a millionth."""
    ends, remaining = [], 1.0
    while remaining > 1e-6:
        remaining -= min(1 / 32, remaining / 5)
        ends.append(1.0 - remaining)
    return (*ends[:-1], 1.0)


_EQUAL = tuple((k + 1) / 16 for k in range(16))
_SHORTENING = _shortening()


def _stepped(
    stage: TrialFixture,
    watched: Sequence[DescribedVariable],
    known: DescribedVariable,
    line: tuple[float, float],
    shares: Sequence[float],
) -> list[float]:
    """Return values after one communication step in parts, with the input at its value in the middle of each.

    Args:
        stage: Where the FMU is tried.
        watched: What is read at the end.
        known: The input.
        line: Its value at the start, and its slope by time.
        shares: Ends of the parts over the step; the last is 1.
    """
    base, slope = line
    with stage.instance() as instance:
        stage.initialize(instance, within={known: base})
        begin = 0.0
        for end in shares:
            if slope:
                instance.set({known: base + slope * stage.step * (begin + end) / 2})
            do_communication_step(stage, instance, stage.start + begin * stage.step, (end - begin) * stage.step)
            begin = end
        return _floats(instance.get(watched))


def _ramped(
    stage: TrialFixture, watched: Sequence[DescribedVariable], known: DescribedVariable, line: tuple[float, float]
) -> list[float] | None:
    """Return values after one communication step with a slope of the input; None if the slope is refused."""
    with stage.instance() as instance:
        stage.initialize(instance, within={known: line[0]})
        if instance.ramp([known], [line[1]]) not in {OK, WARNING}:
            return None
        do_communication_step(stage, instance, stage.start, stage.step)
        return _floats(instance.get(watched))


def _floats(values: Sequence[Value]) -> list[float]:
    """Return values of continuous variables, which are floating point numbers."""
    return [value for value in values if isinstance(value, float)]


AFTER = 3
"""Steps that are watched after an input was set."""

MOST_INPUTS = 6


@probe("inputs that are set between steps", "steps.exchange", kinds=CS)
def try_inputs_in_derivatives(stage: TrialFixture) -> Iterator[Observation]:
    """Check that an input on which derivatives depend directly moves its states in the very next step."""
    exchange = run_as_model_exchange(stage)
    if exchange is None or not stage.states or not stage.inputs:
        return
    for known in stage.inputs[:MOST_INPUTS]:
        try:
            if _first_effect(stage, known) == 1 and _drives(exchange, known):
                text = "set between two steps, it moves no state in the next one, but in the one after; as Model "
                text += "Exchange derivatives follow at once"
                yield Observation("steps.exchange", text, f'{stage.kind}, "{known.name}"')
                return
        except TimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError):
            continue


def _first_effect(stage: TrialFixture, known: DescribedVariable) -> int | None:
    """Return the number of the first step, from 0 on, after which a state differs because of an input."""
    runs = []
    for moved in (False, True):
        with stage.instance() as instance:
            stage.initialize(instance)
            do_communication_step(stage, instance, stage.start, stage.step)
            if moved:
                instance.set({known: stage.near(known, 0.3)})
            rows = []
            for k in range(AFTER):
                do_communication_step(stage, instance, stage.start + (k + 1) * stage.step, stage.step)
                rows.append(instance.get(stage.states))
            runs.append(rows)
    return next((k for k, (a, b) in enumerate(zip(*runs, strict=True)) if a != b), None)


def _drives(exchange: TrialFixture, known: DescribedVariable) -> bool:
    """Return whether derivatives follow an input at once."""
    with exchange.instance() as instance:
        exchange.initialize(instance)
        before = instance.slopes(exchange.n_states)
        instance.set({known: exchange.near(known, 0.3)})
        return instance.slopes(exchange.n_states) != before
