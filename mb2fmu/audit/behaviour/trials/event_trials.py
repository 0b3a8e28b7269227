"""Model Exchange: compare the effects of events with the FMU's flags, over whole runs with moving inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    Values,
    choose_excited_run_values,
    choose_varied_input_values,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.shared_trial_results import ModelExchangeEvent
from mb2fmu.audit.behaviour.fixture.trial_fixture import TerminateSimulationError, TrialFixture, are_identical_values
from mb2fmu.audit.behaviour.fixture.trial_registry import register_trial
from mb2fmu.audit.behaviour.fixture.trial_simulation_runs import (
    ModelExchangeIntegration,
    initialize_model_exchange,
    record_ordinary_run,
    start_model_exchange_integration,
)
from mb2fmu.audit.behaviour.instance.fmi_c_interface import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.fmu_instance import FmuInstance
from mb2fmu.audit.behaviour.process.trial_time_budget import (
    SkippedTrialError,
    TrialTimeBudgetError,
    tolerate_fmu_refusals,
)
from mb2fmu.audit.behaviour.trials.communication_step_trials import list_continuous_variables
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.rules_and_findings import RuleViolation

MODEL_EXCHANGE = ("ModelExchange",)
NO_EVENT_REASON = "no event was seen, also with inputs and parameters that move"
MAX_EVENTS_WITHOUT_EFFECT = 8
"""Number of consecutive state events without an effect that count as chattering."""

MIN_LATE_EVENTS = 3
"""Number of early events from which on a late announcement is reported."""

_START_CHANGE = 1e-3
"""Relative change of the start values that shifts events which depend on states."""

_TIME_TOLERANCE = 1e-9
"""Relative tolerance of equal event times."""

MAX_CHECKED_POINTS = 40
"""Points of a run at which Event Mode is entered though nothing happens."""


def _collect_events(fixture: TrialFixture) -> list[ModelExchangeEvent]:
    """Return events of the ordinary run, and of others until there are some, without those of inputs alone."""
    if fixture.shared.events is None:
        with tolerate_fmu_refusals():
            record_ordinary_run(fixture)
        events = list(fixture.shared.ordinary_run.recorded_events) if fixture.shared.ordinary_run else []
        for number in (1, 2, 3) if fixture.n_indicators else (1,):  # without indicators only times and steps are left
            if any(event.cause != "input" for event in events):
                break
            events += _list_excited_events(fixture, number)
        fixture.shared.events = [event for event in events if event.cause != "input"]
    return fixture.shared.events


def _list_excited_events(fixture: TrialFixture, number: int) -> list[ModelExchangeEvent]:
    """Return the events of a run with a set of other parameters; none if the FMU refuses or ends it."""
    known = fixture.shared.excited_events
    if number not in known:
        with tolerate_fmu_refusals(RefusedCallError), fixture.open_instance() as instance:
            known[number] = run_with_excitation(fixture, instance, (), number=number).recorded_events
    return known.get(number, [])


EVENT_RULES = ("exchange.values_changed", "exchange.reinit", "exchange.values_flag", "exchange.nominals_changed",
         "exchange.chatter")  # fmt: skip


@register_trial("events of whole runs", *EVENT_RULES, interfaces=MODEL_EXCHANGE)
def try_discrete_update_flags(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Compare states, nominal values and indicators before and after each event with the flags."""
    events = _collect_events(fixture)
    if not events:
        for rule in EVENT_RULES:
            fixture.mark_inapplicable(rule, NO_EVENT_REASON)
        return
    yield from _check_event_flags(fixture, events)
    yield from _check_chatter(fixture, events)
    if len(fixture.states) != fixture.n_states:
        return
    changed_states = {
        index
        for event in events
        for index, (old, new) in enumerate(zip(event.before, event.after, strict=True))
        if old != new
    }
    for index in sorted(changed_states):
        if not fixture.states[index].flag("reinit"):
            reinit_text = fixture.states[index].written.get("reinit")
            declaration = "says reinit=false" if reinit_text else "has no reinit, which means false"
            message = f"an event changes it, but it {declaration}"
            yield RuleViolation("exchange.reinit", message, fixture.format_finding_location(fixture.states[index]))


def _check_event_flags(fixture: TrialFixture, events: list[ModelExchangeEvent]) -> Iterator[RuleViolation]:
    """Yield flags of events that contradict what the events did to states and nominal values."""
    unreported_events = [event for event in events if event.before != event.after and not event.update.values_changed]
    without_change = [event for event in events if event.before == event.after and event.update.values_changed]
    if unreported_events:
        time = unreported_events[0].time
        message = f"an event changes the states without valuesOfContinuousStatesChanged, at t = {time:.6g}"
        yield RuleViolation("exchange.values_changed", message, fixture.interface)
    if without_change:
        message = "valuesOfContinuousStatesChanged is true at an event that changes no bit of the states, "
        yield RuleViolation("exchange.values_flag", f"{message}at t = {without_change[0].time:.6g}", fixture.interface)
    unreported_nominals = [
        event for event in events if event.nominals[0] != event.nominals[1] and not event.update.nominals_changed
    ]
    if unreported_nominals:
        message = "an event changes nominal values without nominalsOfContinuousStatesChanged, "
        yield RuleViolation(
            "exchange.nominals_changed", f"{message}at t = {unreported_nominals[0].time:.6g}", fixture.interface
        )
    unchanged_nominals = [
        event for event in events if event.nominals[0] == event.nominals[1] and event.update.nominals_changed
    ]
    if unchanged_nominals:
        message = "nominalsOfContinuousStatesChanged is true at an event that changes no nominal value, "
        yield RuleViolation(
            "exchange.values_flag", f"{message}at t = {unchanged_nominals[0].time:.6g}", fixture.interface
        )


def _check_chatter(fixture: TrialFixture, events: list[ModelExchangeEvent]) -> Iterator[RuleViolation]:
    """Report events by the same indicators, one right after another, that change no state."""
    count = 0
    for first, second in pairwise(events):
        is_near = second.time - first.time <= 1e-6 * fixture.step
        count = count + 1 if is_near and second.cause == "state" and second.before == second.after else 0
        if count >= MAX_EVENTS_WITHOUT_EFFECT:
            message = f"{count} state events one right after another, each without an effect, at t = {second.time:.6g}"
            yield RuleViolation("exchange.chatter", message, fixture.interface)
            return


# --- what events do, again


def _list_discrete_variables(fixture: TrialFixture) -> list[DescribedVariable]:
    """Return variables that change at events only."""
    return [
        variable for variable in fixture.variables_to_try
        if variable.variability == "discrete" and variable.causality in {"local", "output"}
    ]  # fmt: skip


def _read_discrete_and_states(fixture: TrialFixture, instance: FmuInstance) -> list[Value]:
    """Return all discrete variables, then the continuous states."""
    return [
        *instance.get(_list_discrete_variables(fixture)),
        *(instance.get_states(fixture.n_states) if fixture.n_states else []),
    ]


def _find_first_changed_name(fixture: TrialFixture, first_values: list[Value], second_values: list[Value]) -> str:
    """Return the name of the first difference; empty if there is none."""
    names = [
        *(f'"{variable.name}"' for variable in _list_discrete_variables(fixture)),
        *(f"state {index + 1}" for index in range(fixture.n_states)),
    ]
    return next(
        (
            name
            for name, first, second in zip(names, first_values, second_values, strict=True)
            if not are_identical_values(first, second)
        ),
        "",
    )


@register_trial("updating once more", "exchange.iteration", interfaces=MODEL_EXCHANGE)
def try_further_event_iteration(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that after the last iteration a further one changes nothing."""
    changed_names: list[str] = []
    event_count = 0
    with fixture.open_instance() as instance:

        def check_further_update(moment: str) -> None:
            """Compare values before and after one more update."""
            nonlocal event_count
            if moment != "settled":
                return
            event_count += 1
            values_before = _read_discrete_and_states(fixture, instance)
            instance.update_discrete_states()
            name = _find_first_changed_name(fixture, values_before, _read_discrete_and_states(fixture, instance))
            if name:
                changed_names.append(name)

        instance.enter_initialization(fixture.start, None, fixture.tolerance)
        instance.exit_initialization()
        initial_update = fixture.settle_events(instance, after_initialization=True)
        check_further_update("settled")
        instance.leave_event_mode()
        integration = ModelExchangeIntegration(fixture, instance, fixture.start, 1e-4, initial_update.next_time)
        integration.observe_event = check_further_update
        try:
            integration.advance(fixture.start + fixture.affordable_step_count * fixture.step)
        except TrialTimeBudgetError:
            raise
        except SkippedTrialError:
            pass
    if changed_names:
        message = f"{changed_names[0]} changes in one more iteration, though the FMU reports that none is needed"
        yield RuleViolation("exchange.iteration", message, fixture.interface)
    elif not event_count:
        fixture.mark_inapplicable("exchange.iteration", NO_EVENT_REASON)


@register_trial("values in Event Mode and behind it", "exchange.pure", interfaces=MODEL_EXCHANGE)
def try_values_across_events(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that values in Event Mode, when it is settled, are those of Continuous-Time Mode at that point."""
    variables, observations = list_continuous_variables(fixture), list[RuleViolation]()
    with fixture.open_instance() as instance:
        event_mode_values: list[Value] = []

        def record_values(moment: str) -> None:
            """Read values in Event Mode, when it is settled."""
            event_mode_values[:] = instance.get(variables) if moment == "settled" else []

        def compare() -> None:
            """Read them again behind it."""
            for variable, event_value, later_value in zip(
                variables, event_mode_values, instance.get(variables), strict=True
            ):
                if (
                    isinstance(event_value, float)
                    and isinstance(later_value, float)
                    and not _agree(event_value, later_value, fixture.typical_magnitude(variable))
                ):
                    message = (
                        f"at t = {integration.time:.6g} it is {event_value:.9g} in Event Mode, when no "
                        "further iteration "
                    )
                    message += f"is needed, and {later_value:.9g} in Continuous-Time Mode at the same point"
                    observations.append(
                        RuleViolation("exchange.pure", message, fixture.format_finding_location(variable))
                    )

        integration = start_model_exchange_integration(fixture, instance, 1e-4)
        integration.observe_event, integration.after_event = record_values, compare
        try:
            integration.advance(fixture.start + fixture.affordable_step_count * fixture.step)
        except TrialTimeBudgetError:
            raise
        except SkippedTrialError:
            pass
    yield from observations[:1]


ROUND_OFF = 1e-9
"""Relative difference of two evaluations at one point."""


def _agree(first: float, second: float, scale: float) -> bool:
    """Return whether two values are one but for round-off."""
    return abs(first - second) <= ROUND_OFF * max(abs(first), abs(second), scale) or not math.isfinite(first - second)


def _choose_excitation(fixture: TrialFixture, number: int) -> Values | None:
    """Return parameters, start values and inputs of a run; None for number 0, the set of the start values."""
    if not number:
        return None
    return {**choose_excited_run_values(fixture, number), **choose_varied_input_values(fixture, 0, number)}


@register_trial("entering Event Mode where nothing happens", "exchange.unannounced", interfaces=MODEL_EXCHANGE)
def try_event_mode_between_events(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that Event Mode changes nothing between events: a change was due earlier, or must be announced."""
    if not _list_discrete_variables(fixture) and not fixture.n_states:
        fixture.mark_inapplicable("exchange.unannounced", "it has neither states nor discrete variables")
        return
    for number in (0, 1):
        with fixture.open_instance() as instance:
            first_event_time = initialize_model_exchange(fixture, instance, _choose_excitation(fixture, number))
            integration = ModelExchangeIntegration(fixture, instance, fixture.start, 1e-6, first_event_time)
            check_interval = max(1, fixture.affordable_step_count // MAX_CHECKED_POINTS)
            for step_index in range(fixture.affordable_step_count):
                try:
                    integration.advance(fixture.start + (step_index + 1) * fixture.step)
                except TrialTimeBudgetError:
                    raise
                except TerminateSimulationError:
                    if number:
                        break
                    raise
                except SkippedTrialError:
                    break
                if step_index % check_interval or not _is_between_events(fixture, integration):
                    continue
                name = _find_quantity_changed_by_event(fixture, instance, integration)
                if name:
                    message = (
                        f"{name} changes in Event Mode at t = {integration.time:.9g}, where no indicator has crossed "
                    )
                    yield RuleViolation("exchange.unannounced", message + "and no time event is due", fixture.interface)
                    return


def _is_between_events(fixture: TrialFixture, integration: ModelExchangeIntegration) -> bool:
    """Return whether no event has just happened or is due, so that round-off does not decide."""
    time_margin = 1e-6 * fixture.step
    last_event_time = integration.recorded_events[-1].time if integration.recorded_events else -1e300
    return (
        integration.time - last_event_time > time_margin
        and integration.next_event_time - integration.time > time_margin
    )


def _find_quantity_changed_by_event(
    fixture: TrialFixture, instance: FmuInstance, integration: ModelExchangeIntegration
) -> str:
    """Return the name of a quantity that an event changes although nothing was due; empty if none does."""
    values_before = _read_discrete_and_states(fixture, instance)
    integration.set_inputs_at_event({})
    return _find_first_changed_name(fixture, values_before, _read_discrete_and_states(fixture, instance))


def _read_with_derivatives(
    fixture: TrialFixture, instance: FmuInstance, variables: Sequence[DescribedVariable]
) -> list[Value]:
    """Return variables, then the derivatives of the states."""
    derivatives = instance.get_derivatives(fixture.n_states) if fixture.n_states else []
    return [*instance.get(variables), *derivatives]


def _separate_time_events(
    fixture: TrialFixture, variables: Sequence[DescribedVariable], time_events: Sequence[ModelExchangeEvent]
) -> tuple[list[float], int]:
    """Return the times of time events without an effect, and the number of those with one."""
    empty_times: list[float] = []
    effective_count = 0
    with fixture.open_instance() as instance:
        integration = start_model_exchange_integration(fixture, instance, 1e-6)
        readings: list[list[Value]] = []

        def record_values(moment: str) -> None:
            """Note values before and after an event."""
            if moment == "before":
                readings.append(_read_with_derivatives(fixture, instance, variables))
            else:  # derivatives must not be requested in Event Mode
                readings.append(instance.get(variables))

        integration.observe_event = record_values
        for event in time_events[:MAX_CHECKED_POINTS]:
            readings.clear()
            try:
                integration.advance(event.time)
            except TrialTimeBudgetError:
                raise
            except SkippedTrialError:
                break
            if len(readings) < 2:
                continue
            if all(map(are_identical_values, readings[-2], _read_with_derivatives(fixture, instance, variables))):
                empty_times.append(event.time)
            else:
                effective_count += 1
    return empty_times, effective_count


@register_trial("time events", "exchange.next_event", interfaces=MODEL_EXCHANGE)
def try_time_events(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that announced time events happen: something changes, or another time is announced."""
    time_events = [event for event in _collect_events(fixture) if event.cause == "time"]
    if not time_events:
        fixture.mark_inapplicable("exchange.next_event", "no time event was seen")
        return
    variables = [variable for variable in fixture.variables_to_try if variable.causality in {"local", "output"}]
    if not variables:
        fixture.mark_inapplicable("exchange.next_event", "it has no variables that could change")
        return
    empty_times, effective_count = _separate_time_events(fixture, variables, time_events)
    if len(empty_times) > effective_count:
        message = f"a time event is announced for t = {empty_times[0]:.9g}, and nothing changes at it"
        yield RuleViolation(
            "exchange.next_event",
            f"{message}, as at {len(empty_times)} of {len(empty_times) + effective_count}",
            fixture.interface,
        )


@register_trial(
    "time events that come before they were announced for", "exchange.next_event", interfaces=MODEL_EXCHANGE
)
def try_late_event_announcements(fixture: TrialFixture) -> Iterator[RuleViolation]:
    """Check that no time event is announced too late, while an indicator finds it.

    An importer that goes by indicators comes to the instant itself; one with fixed steps, or that trusts
    the announcement, is late. Such an event withdraws the announcement, and comes at the same instant from another
    start.
    """
    early_events = [event for event in _collect_events(fixture) if _withdraws_announcement(event)]
    if len(early_events) < MIN_LATE_EVENTS:
        return
    initial_values: dict[DescribedVariable, Value] = {}
    for state in fixture.states:
        start = fixture.start_value(state)
        if state.initial == "exact" and isinstance(start, float):
            initial_values[state] = fixture.clip_to_bounds(
                state, start + _START_CHANGE * fixture.typical_magnitude(state)
            )
    if not initial_values:
        return
    with fixture.open_instance() as instance:
        integration = start_model_exchange_integration(fixture, instance, 1e-6, initial_values)
        try:
            integration.advance(min(early_events[-1].time + fixture.step, fixture.stop))
        except TrialTimeBudgetError:
            raise
        except SkippedTrialError:
            pass
    repeated_times = [event.time for event in integration.recorded_events if _withdraws_announcement(event)]
    unmoved_events = [
        event for event in early_events if any(_are_simultaneous(event.time, time) for time in repeated_times)
    ]
    if len(unmoved_events) >= MIN_LATE_EVENTS:
        first = unmoved_events[0]
        message = (
            f"the next time event is announced for t = {first.announced_time:.9g}, and comes at t = {first.time:.9g}, "
        )
        message += (
            f"where an indicator crosses at the same instant from another start, too; so do "
            f"{len(unmoved_events)} events"
        )
        yield RuleViolation("exchange.next_event", message, fixture.interface)


def _withdraws_announcement(event: ModelExchangeEvent) -> bool:
    """Return whether an event that an indicator found takes back the time event that was announced."""
    if (
        event.cause != "state"
        or not math.isfinite(event.announced_time)
        or _are_simultaneous(event.announced_time, event.time)
    ):
        return False
    return event.update.next_time is None or not _are_simultaneous(event.update.next_time, event.announced_time)


def _are_simultaneous(first: float, second: float) -> bool:
    """Return whether two times are equal, up to what locating an event leaves."""
    return abs(first - second) <= _TIME_TOLERANCE * max(1.0, abs(first))
