"""Co-Simulation: values set between steps act during the whole next step, as much as in Model Exchange."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mb2fmu.audit.behaviour.fixture.short_runs import ModelExchangeIntegration, begin_run, do_communication_step
from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError, Value
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.behaviour.trials.step_trials import CS, list_continuous_variables, run_as_model_exchange
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

STRAIGHT = 0.2
"""Relative departure from the mean slope times the step below which an effect is that of a changed slope."""

LATE = 0.8
"""Part of that effect: less of it in all states means that something acted later than it was set."""

MOST = 6
"""Inputs and tunable parameters that are tried."""


@probe("how much of a step what is set acts", "steps.exchange", kinds=CS)
def try_inputs_over_whole_step(stage: TrialFixture) -> Iterator[Observation]:
    """Check that inputs and tunable parameters set between two steps move states as in Model Exchange."""
    exchange = run_as_model_exchange(stage)
    if exchange is None or not stage.states or len(stage.states) != stage.n_states:
        return
    tunable = stage.role("parameter", variability="tunable")
    for known in (*stage.inputs[:MOST], *tunable[:MOST]):
        try:
            part = _acting(stage, exchange, known)
        except TimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError):
            continue
        if part is not None and part < LATE:
            text = f"set between two steps, it moves the states in the next one by {100 * part:.0f} % of what it does "
            text += "in Model Exchange: it is taken up later in the step, or together with its earlier value"
            yield Observation("steps.exchange", text, f'{stage.kind}, "{known.name}"')
            return


FINE = 8
"""Steps in place of one, for what acts almost at once."""

ALIKE = 0.25
"""Relative departure, from half and from a quarter of it, of a delay that goes with the size of the steps."""


@probe("how much of a step what is set acts, by smaller steps", "steps.parts", kinds=CS)
def try_inputs_in_step_parts(stage: TrialFixture) -> Iterator[Observation]:
    """Check, without Model Exchange, that a value set between steps has the same effect in one step as in several.

    Where a value is taken up a part f of a step too late, n steps over the same time lose f/n of its effect, and the
    effect itself grows with the time. Whoever starts with Euler's step has the first without the second.
    """
    if run_as_model_exchange(stage) is not None or not stage.flag("canHandleVariableCommunicationStepSize"):
        return
    seen = list_continuous_variables(stage)
    tunable = stage.role("parameter", variability="tunable")
    for known in (*stage.inputs[:MOST], *tunable[:MOST]) if seen else ():
        try:
            late = _lateness(stage, known, seen)
        except TimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError):
            continue
        if late is not None and late > 1.0 - LATE:
            text = f"set between two steps, it loses {100 * late:.0f} % of its effect in the next one, less of it the "
            text += "smaller the steps are: it is taken up later in the step, or together with its earlier value"
            yield Observation("steps.parts", text, f'{stage.kind}, "{known.name}"')
            return


def _lateness(stage: TrialFixture, known: DescribedVariable, seen: Sequence[DescribedVariable]) -> float | None:
    """Return the smallest share of an effect that one step loses, over what grows with time; None: nothing."""
    given = {known: stage.near(known, 0.3)}
    effects, size = [], [0.0] * len(seen)
    for parts, spans in ((1, 1), (2, 1), (4, 1), (FINE, 1), (FINE, 2)):
        plain, moved = (_after(stage, seen, values, parts, spans) for values in ({}, given))
        effects.append([b - a for a, b in zip(plain, moved, strict=True)])
        size = [max(old, abs(each)) for old, each in zip(size, plain, strict=True)]
    lost: list[float] = []
    for k, whole in enumerate(size):
        once, twice, four, fine, longer = (row[k] for row in effects)
        noise = _noise(stage, seen[k], whole)
        if not math.isfinite(sum(row[k] for row in effects)) or abs(fine) <= noise:
            continue
        true = (FINE * fine - once) / (FINE - 1)  # where each of n steps less loses the n-th part
        if abs(true) <= noise or abs(longer / fine - 2.0) > STRAIGHT:
            continue
        parts_lost = [1.0 - each / true for each in (once, twice, four)]
        in_proportion = all(
            abs(each - parts_lost[0] / n) <= ALIKE * abs(parts_lost[0]) / n
            for n, each in zip((2, 4), parts_lost[1:], strict=True)
        )
        lost.append(parts_lost[0] if in_proportion else 0.0)
    return min(lost, default=None)


def _after(
    stage: TrialFixture,
    seen: Sequence[DescribedVariable],
    given: dict[DescribedVariable, float],
    parts: int,
    spans: int,
) -> list[float]:
    """Return what is watched at the end of steps that were made in parts; something is set behind the first of them."""
    with stage.instance() as instance:
        stage.initialize(instance)
        do_communication_step(stage, instance, stage.start, stage.step)
        instance.set(given)
        for k in range(parts * spans):
            do_communication_step(stage, instance, stage.start + stage.step * (1.0 + k / parts), stage.step / parts)
        return _numbers(instance.get(seen))


SPAN, PIECES = 1 / 16, 64
"""Part of a communication step that is made at once, and in how many steps it is made again."""

FAR = 0.2
"""Part of a change that is no matter of a solver's accuracy any more."""


@probe("the same way in tiny steps", "steps.parts", kinds=CS)
def try_tiny_steps(stage: TrialFixture) -> Iterator[Observation]:
    """Check that a tiny step moves little, and that many of them move as much as one step."""
    seen = list_continuous_variables(stage)
    if not seen or not stage.flag("canHandleVariableCommunicationStepSize"):
        return
    rows = []
    for pieces in (1, PIECES):
        with stage.instance() as instance:
            stage.initialize(instance)
            do_communication_step(stage, instance, stage.start, stage.step)
            before = _numbers(instance.get(seen))
            size = SPAN * stage.step / pieces
            for k in range(pieces):
                do_communication_step(stage, instance, stage.start + stage.step + k * size, size)
            rows.append([b - a for a, b in zip(before, _numbers(instance.get(seen)), strict=True)])
    for k, (variable, once, often) in enumerate(zip(seen, *rows, strict=True)):
        size = max(abs(before[k]), abs(once), stage.scale(variable))
        bound = FAR * abs(once) + PIECES * (stage.tolerance or 1e-4) * size
        if math.isfinite(once) and math.isfinite(often) and abs(once - often) > bound:
            text = f"one step of {SPAN * stage.step:.3g} s changes it by {once:.3g}, {PIECES} steps over the same time "
            text += f"by {often:.3g}; canHandleVariableCommunicationStepSize is true"
            yield Observation("steps.parts", text, f'{stage.kind}, "{variable.name}"')
            return


def _acting(stage: TrialFixture, exchange: TrialFixture, known: DescribedVariable) -> float | None:
    """Return the largest fraction of Model Exchange's effect over the states; None without a linear one.

    Effects are straight where a state's derivative follows what is set at once, and nothing else changes much in a
    step: there a solver of any order that holds inputs over the step gives them whole.
    """
    other = stage.near(known, 0.3)
    rows = [_stepped(stage, known, value) for value in (None, other)]
    led = [_led(exchange, known, value) for value in (None, other)]
    parts = []
    for k, state in enumerate(stage.states):
        wanted, got = led[1][0][k] - led[0][0][k], rows[1][k] - rows[0][k]
        straight = stage.step * (led[1][1][k] - led[0][1][k])
        noise = _noise(stage, state, max(abs(rows[0][k]), abs(led[0][0][k])))
        if abs(straight) > noise and abs(wanted - straight) < STRAIGHT * abs(straight) and math.isfinite(got):
            parts.append(got / wanted)
    return max(parts, default=None)


def _noise(stage: TrialFixture, variable: DescribedVariable, size: float) -> float:
    """Return the change of a variable of some size that a solver may make; one at zero has only round-off."""
    return (stage.tolerance or 1e-4) * max(size, 1e-3 * stage.scale(variable))


def _stepped(stage: TrialFixture, known: DescribedVariable, value: float | None) -> list[float]:
    """Return states after two steps, with or without a known set between them."""
    with stage.instance() as instance:
        stage.initialize(instance)
        do_communication_step(stage, instance, stage.start, stage.step)
        if value is not None:
            instance.set({known: value})
        do_communication_step(stage, instance, stage.start + stage.step, stage.step)
        return _numbers(instance.get(stage.states))


def _led(exchange: TrialFixture, known: DescribedVariable, value: float | None) -> tuple[list[float], list[float]]:
    """Return the same in Model Exchange, set at an event; and the mean derivatives over the second step."""
    with exchange.instance() as instance:
        integration = ModelExchangeIntegration(exchange, instance, exchange.start, 1e-9, begin_run(exchange, instance))
        integration.advance(exchange.start + exchange.step)
        integration.interrupt({} if value is None else {known: value})
        slopes = instance.slopes(exchange.n_states)
        integration.advance(exchange.start + 2 * exchange.step)
        ends = instance.slopes(exchange.n_states)
        return list(integration.states), [0.5 * (a + b) for a, b in zip(slopes, ends, strict=True)]


def _numbers(values: Sequence[Value]) -> list[float]:
    """Return values of states, which are floating point numbers."""
    return [value if isinstance(value, float) else math.nan for value in values]
