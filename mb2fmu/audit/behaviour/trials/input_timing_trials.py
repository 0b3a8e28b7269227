"""Co-Simulation: values set between steps act during the whole next step, as much as in Model Exchange."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from mb2fmu.audit.behaviour.fixture.trial_fixture import TrialFixture
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    do_communication_step,
    start_model_exchange_integration,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import RefusedCallError, Value
from mb2fmu.audit.behaviour.process.trial_time_budget import SkippedTrialError, TrialTimeBudgetError
from mb2fmu.audit.behaviour.trials.communication_step_trials import (
    CO_SIMULATION,
    list_continuous_variables,
    make_model_exchange_fixture,
)
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

LINEARITY_TOLERANCE = 0.2
"""Relative departure from the mean slope times the step below which an effect is that of a changed slope."""

MIN_EFFECT_SHARE = 0.8
"""Part of that effect: less of it in all states means that something acted later than it was set."""

MAX_KNOWNS = 6
"""Inputs and tunable parameters that are tried."""


@register_trial("how much of a step what is set acts", "steps.exchange", interfaces=CO_SIMULATION)
def try_inputs_over_whole_step(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that inputs and tunable parameters set between two steps move states as in Model Exchange."""
    model_exchange = make_model_exchange_fixture(fixture)
    if model_exchange is None or not fixture.states or len(fixture.states) != fixture.n_states:
        return
    tunable_parameters = fixture.select_scalars("parameter", variability="tunable")
    for known in (*fixture.inputs[:MAX_KNOWNS], *tunable_parameters[:MAX_KNOWNS]):
        try:
            share = _measure_effect_share(fixture, model_exchange, known)
        except TrialTimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError):
            continue
        if share is not None and share < MIN_EFFECT_SHARE:
            message = (
                f"set between two steps, it moves the states in the next one by {100 * share:.0f} % of what it does "
            )
            message += "in Model Exchange: it is taken up later in the step, or together with its earlier value"
            yield RuleViolation("steps.exchange", message, fixture.format_finding_location(known))
            return


FINE_STEPS = 8
"""Number of parts of one step that approximate immediate action."""

PROPORTION_TOLERANCE = 0.25
"""Relative departure, from half and from a quarter of it, of a delay that goes with the size of the steps."""


@register_trial("how much of a step what is set acts, by smaller steps", "steps.parts", interfaces=CO_SIMULATION)
def try_inputs_over_split_steps(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check, without Model Exchange, that a value set between steps has the same effect in one step as in several.

    Where a value is taken up a part f of a step too late, n steps over the same time lose f/n of its effect, and the
    effect itself grows with the time. Whoever starts with Euler's step has the first without the second.
    """
    if make_model_exchange_fixture(fixture) is not None or not fixture.flag("canHandleVariableCommunicationStepSize"):
        return
    variables = list_continuous_variables(fixture)
    tunable_parameters = fixture.select_scalars("parameter", variability="tunable")
    for known in (*fixture.inputs[:MAX_KNOWNS], *tunable_parameters[:MAX_KNOWNS]) if variables else ():
        try:
            lost_share = _measure_lost_share(fixture, known, variables)
        except TrialTimeBudgetError:
            raise
        except (RefusedCallError, SkippedTrialError):
            continue
        if lost_share is not None and lost_share > 1.0 - MIN_EFFECT_SHARE:
            message = (
                f"set between two steps, it loses {100 * lost_share:.0f} % of its effect in the next one, "
                "less of it the "
            )
            message += "smaller the steps are: it is taken up later in the step, or together with its earlier value"
            yield RuleViolation("steps.parts", message, fixture.format_finding_location(known))
            return


def _measure_lost_share(
    fixture: TrialFixture, known: DescribedVariable, variables: Sequence[DescribedVariable]
) -> float | None:
    """Return the smallest share of an effect that one step loses, over what grows with time; None: nothing."""
    changed_values = {known: fixture.choose_near_start(known, 0.3)}
    effects, magnitudes = [], [0.0] * len(variables)
    for step_count, span_count in ((1, 1), (2, 1), (4, 1), (FINE_STEPS, 1), (FINE_STEPS, 2)):
        unchanged, changed = (
            _run_partial_steps(fixture, variables, values, step_count, span_count) for values in ({}, changed_values)
        )
        effects.append([second - first for first, second in zip(unchanged, changed, strict=True)])
        magnitudes = [max(previous, abs(value)) for previous, value in zip(magnitudes, unchanged, strict=True)]
    lost_shares: list[float] = []
    for index, magnitude in enumerate(magnitudes):
        in_one_step, in_two_steps, in_four_steps, in_fine_steps, in_double_span = (effect[index] for effect in effects)
        noise = _solver_noise(fixture, variables[index], magnitude)
        if not math.isfinite(sum(effect[index] for effect in effects)) or abs(in_fine_steps) <= noise:
            continue
        extrapolated = (FINE_STEPS * in_fine_steps - in_one_step) / (
            FINE_STEPS - 1
        )  # where each of n steps less loses the n-th part
        if abs(extrapolated) <= noise or abs(in_double_span / in_fine_steps - 2.0) > LINEARITY_TOLERANCE:
            continue
        lost_by_count = [1.0 - value / extrapolated for value in (in_one_step, in_two_steps, in_four_steps)]
        is_proportional = all(
            abs(value - lost_by_count[0] / count) <= PROPORTION_TOLERANCE * abs(lost_by_count[0]) / count
            for count, value in zip((2, 4), lost_by_count[1:], strict=True)
        )
        lost_shares.append(lost_by_count[0] if is_proportional else 0.0)
    return min(lost_shares, default=None)


def _run_partial_steps(
    fixture: TrialFixture,
    variables: Sequence[DescribedVariable],
    values: dict[DescribedVariable, float],
    step_count: int,
    span_count: int,
) -> list[float]:
    """Return variables after steps divided into parts; values are set after the first step."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        do_communication_step(fixture, instance, fixture.start, fixture.step)
        instance.set(values)
        for step_index in range(step_count * span_count):
            do_communication_step(
                fixture,
                instance,
                fixture.start + fixture.step * (1.0 + step_index / step_count),
                fixture.step / step_count,
            )
        return _convert_to_floats(instance.get(variables))


TINY_SPAN, TINY_STEPS = 1 / 16, 64
"""Part of a communication step that is made at once, and in how many steps it is made again."""

CHANGE_TOLERANCE = 0.2
"""Share of a change that exceeds the error of any solver."""


@register_trial("the same way in tiny steps", "steps.parts", interfaces=CO_SIMULATION)
def try_tiny_steps(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that a tiny step moves little, and that many of them move as much as one step."""
    variables = list_continuous_variables(fixture)
    if not variables or not fixture.flag("canHandleVariableCommunicationStepSize"):
        return
    changes = []
    for step_count in (1, TINY_STEPS):
        with fixture.open_instance() as instance:
            fixture.initialize(instance)
            do_communication_step(fixture, instance, fixture.start, fixture.step)
            values_before = _convert_to_floats(instance.get(variables))
            step_size = TINY_SPAN * fixture.step / step_count
            for index in range(step_count):
                do_communication_step(fixture, instance, fixture.start + fixture.step + index * step_size, step_size)
            changes.append(
                [new - old for old, new in zip(values_before, _convert_to_floats(instance.get(variables)), strict=True)]
            )
    for index, (variable, in_one_step, in_many_steps) in enumerate(zip(variables, *changes, strict=True)):
        step_size = max(abs(values_before[index]), abs(in_one_step), fixture.typical_magnitude(variable))
        bound = CHANGE_TOLERANCE * abs(in_one_step) + TINY_STEPS * (fixture.tolerance or 1e-4) * step_size
        if math.isfinite(in_one_step) and math.isfinite(in_many_steps) and abs(in_one_step - in_many_steps) > bound:
            message = (
                f"one step of {TINY_SPAN * fixture.step:.3g} s changes it by {in_one_step:.3g}, "
                f"{TINY_STEPS} steps over the same time "
            )
            message += f"by {in_many_steps:.3g}; canHandleVariableCommunicationStepSize is true"
            yield RuleViolation("steps.parts", message, fixture.format_finding_location(variable))
            return


def _measure_effect_share(
    fixture: TrialFixture, model_exchange: TrialFixture, known: DescribedVariable
) -> float | None:
    """Return the largest fraction of Model Exchange's effect over the states; None without a linear one.

    Effects are straight where a state's derivative follows what is set at once, and nothing else changes much in a
    step: there a solver of any order that holds inputs over the step gives them whole.
    """
    changed_value = fixture.choose_near_start(known, 0.3)
    stepped_states = [_run_two_steps(fixture, known, value) for value in (None, changed_value)]
    reference_runs = [_run_as_reference(model_exchange, known, value) for value in (None, changed_value)]
    shares = []
    for index, state in enumerate(fixture.states):
        expected_effect, measured_effect = (
            reference_runs[1][0][index] - reference_runs[0][0][index],
            stepped_states[1][index] - stepped_states[0][index],
        )
        linear_effect = fixture.step * (reference_runs[1][1][index] - reference_runs[0][1][index])
        noise = _solver_noise(fixture, state, max(abs(stepped_states[0][index]), abs(reference_runs[0][0][index])))
        if (
            abs(linear_effect) > noise
            and abs(expected_effect - linear_effect) < LINEARITY_TOLERANCE * abs(linear_effect)
            and math.isfinite(measured_effect)
        ):
            shares.append(measured_effect / expected_effect)
    return max(shares, default=None)


def _solver_noise(fixture: TrialFixture, variable: DescribedVariable, magnitude: float) -> float:
    """Return the change that solver errors may cause in a variable of a given magnitude."""
    return (fixture.tolerance or 1e-4) * max(magnitude, 1e-3 * fixture.typical_magnitude(variable))


def _run_two_steps(fixture: TrialFixture, known: DescribedVariable, value: float | None) -> list[float]:
    """Return states after two steps, with or without a known set between them."""
    with fixture.open_instance() as instance:
        fixture.initialize(instance)
        do_communication_step(fixture, instance, fixture.start, fixture.step)
        if value is not None:
            instance.set({known: value})
        do_communication_step(fixture, instance, fixture.start + fixture.step, fixture.step)
        return _convert_to_floats(instance.get(fixture.states))


def _run_as_reference(
    model_exchange: TrialFixture, known: DescribedVariable, value: float | None
) -> tuple[list[float], list[float]]:
    """Return the same in Model Exchange, set at an event; and the mean derivatives over the second step."""
    with model_exchange.open_instance() as instance:
        integration = start_model_exchange_integration(model_exchange, instance, 1e-9)
        integration.advance(model_exchange.start + model_exchange.step)
        integration.set_inputs_at_event({} if value is None else {known: value})
        start_derivatives = instance.get_derivatives(model_exchange.n_states)
        integration.advance(model_exchange.start + 2 * model_exchange.step)
        end_derivatives = instance.get_derivatives(model_exchange.n_states)
        return list(integration.states), [
            0.5 * (first + second) for first, second in zip(start_derivatives, end_derivatives, strict=True)
        ]


def _convert_to_floats(values: Sequence[Value]) -> list[float]:
    """Return values of states, which are floating point numbers."""
    return [value if isinstance(value, float) else math.nan for value in values]
