"""Co-Simulation: values set between steps act during the whole next step, as much as in Model Exchange."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mb2fmu.audit.behaviour.binding import RefusedError, Value
from mb2fmu.audit.behaviour.pace import SkippedError, SpentError
from mb2fmu.audit.behaviour.probe import probe
from mb2fmu.audit.behaviour.simulation import Integration, advance, begin
from mb2fmu.audit.behaviour.stage import Stage
from mb2fmu.audit.behaviour.step_trials import CS, as_exchange
from mb2fmu.audit.description.described_model import Variable
from mb2fmu.audit.finding import Observation

STRAIGHT = 0.2
"""Relative departure from the mean slope times the step below which an effect is that of a changed slope."""

LATE = 0.8
"""Part of that effect: less of it in all states means that something acted later than it was set."""

MOST = 6
"""Inputs and tunable parameters that are tried."""


@probe("how much of a step what is set acts", "steps.exchange", kinds=CS)
def whole_step(stage: Stage) -> Iterator[Observation]:
    """Check that inputs and tunable parameters set between two steps move states as in Model Exchange."""
    exchange = as_exchange(stage)
    if exchange is None or not stage.states or len(stage.states) != stage.n_states:
        return
    tunable = stage.role("parameter", variability="tunable")
    for known in (*stage.inputs[:MOST], *tunable[:MOST]):
        try:
            part = _acting(stage, exchange, known)
        except SpentError:
            raise
        except (RefusedError, SkippedError):
            continue
        if part is not None and part < LATE:
            text = f"set between two steps, it moves the states in the next one by {100 * part:.0f} % of what it does "
            text += "in Model Exchange: it is taken up later in the step, or together with its earlier value"
            yield Observation("steps.exchange", text, f'{stage.kind}, "{known.name}"')
            return


def _acting(stage: Stage, exchange: Stage, known: Variable) -> float | None:
    """Return the largest fraction of Model Exchange's effect over the states; None without a linear one.

    Effects are straight where a state's derivative follows what is set at once, and nothing else changes much in a
    step: there a solver of any order that holds inputs over the step gives them whole.
    """
    other = stage.near(known, 0.3)
    rows = [_stepped(stage, known, value) for value in (None, other)]
    led = [_led(exchange, known, value) for value in (None, other)]
    parts = []
    for k, _ in enumerate(stage.states):
        wanted, got = led[1][0][k] - led[0][0][k], rows[1][k] - rows[0][k]
        straight = stage.step * (led[1][1][k] - led[0][1][k])
        noise = 100 * (stage.tolerance or 1e-4) * 1e-2 * max(abs(rows[0][k]), abs(led[0][0][k]))
        if abs(straight) > noise and abs(wanted - straight) < STRAIGHT * abs(straight) and math.isfinite(got):
            parts.append(got / wanted)
    return max(parts, default=None)


def _stepped(stage: Stage, known: Variable, value: float | None) -> list[float]:
    """Return states after two steps, with or without a known set between them."""
    with stage.instance() as instance:
        stage.initialize(instance)
        advance(stage, instance, stage.start, stage.step)
        if value is not None:
            instance.set({known: value})
        advance(stage, instance, stage.start + stage.step, stage.step)
        return _numbers(instance.get(stage.states))


def _led(exchange: Stage, known: Variable, value: float | None) -> tuple[list[float], list[float]]:
    """Return the same in Model Exchange, set at an event; and the mean derivatives over the second step."""
    with exchange.instance() as instance:
        integration = Integration(exchange, instance, exchange.start, 1e-9, begin(exchange, instance))
        integration.advance(exchange.start + exchange.step)
        integration.interrupt({} if value is None else {known: value})
        slopes = instance.slopes(exchange.n_states)
        integration.advance(exchange.start + 2 * exchange.step)
        ends = instance.slopes(exchange.n_states)
        return list(integration.states), [0.5 * (a + b) for a, b in zip(slopes, ends, strict=True)]


def _numbers(values: Sequence[Value]) -> list[float]:
    """Return values of states, which are floating point numbers."""
    return [value if isinstance(value, float) else math.nan for value in values]
