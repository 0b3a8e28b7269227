"""Model Exchange: compare the effects of events with the FMU's flags, over whole runs with moving inputs."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

from mb2fmu.audit.behaviour.fixture.excited_runs import (
    Values,
    choose_moving_inputs,
    choose_parameters_and_starts,
    run_with_excitation,
)
from mb2fmu.audit.behaviour.fixture.short_runs import ModelExchangeEvent, ModelExchangeIntegration, begin_run
from mb2fmu.audit.behaviour.fixture.trial_fixture import SimulationEndedError, TrialFixture, have_same_bits
from mb2fmu.audit.behaviour.fixture.trial_registry import probe
from mb2fmu.audit.behaviour.instance.fmi_types import RefusedCallError, Value
from mb2fmu.audit.behaviour.instance.instance import FmuInstance
from mb2fmu.audit.behaviour.process.time_budget import SkippedTrialError, TimeBudgetError
from mb2fmu.audit.behaviour.trials.step_trials import list_continuous_variables
from mb2fmu.audit.description.description_records import DescribedVariable
from mb2fmu.audit.findings import Observation

ME = ("ModelExchange",)
NONE = "no event was seen, also with inputs and parameters that move"
CHATTER = 8
"""State events one after another, in next to no time and without any effect, that are too many."""

LATE = 3
"""Time events that come before they were announced for, that are no accident."""

_ELSEWHERE = 1e-3
"""Change of the start, in sizes of the states, that moves what depends on states."""

_UNMOVED = 1e-9
"""Relative: what a change of the start moves an instant by that depends on time alone."""

MOST_CHECKED = 40
"""Points of a run at which Event Mode is entered though nothing happens."""


def _seen(stage: TrialFixture) -> list[ModelExchangeEvent]:
    """Return events of the ordinary run, and of others until there are some, without those of inputs alone."""
    if "jumps" not in stage.notes:
        found: list[ModelExchangeEvent] = []
        with stage.instance() as instance:
            integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-6, begin_run(stage, instance))
            try:
                integration.advance(stage.start + stage.steps * stage.step)
            except TimeBudgetError:
                raise
            except SkippedTrialError:
                pass
            found += integration.jumps
        for number in (1, 2, 3):
            if any(each.why != "input" for each in found):
                break
            with stage.instance() as instance:
                try:
                    found += run_with_excitation(stage, instance, (), number=number).jumps
                except TimeBudgetError:
                    raise
                except (RefusedCallError, SkippedTrialError):
                    continue
        stage.notes["jumps"] = [each for each in found if each.why != "input"]
    jumps: list[ModelExchangeEvent] = stage.notes["jumps"]
    return jumps


RULES = ("exchange.values_changed", "exchange.reinit", "exchange.values_flag", "exchange.nominals_changed",
         "exchange.chatter")  # fmt: skip


@probe("events of whole runs", *RULES, kinds=ME)
def try_event_jumps(stage: TrialFixture) -> Iterator[Observation]:
    """Compare states, nominal values and indicators before and after each event with the flags."""
    found = _seen(stage)
    if not found:
        for rule in RULES:
            stage.nothing(rule, NONE)
        return
    yield from _flags(stage, found)
    yield from _chatter(stage, found)
    if len(stage.states) != stage.n_states:
        return
    moved = {k for each in found for k, (a, b) in enumerate(zip(each.before, each.after, strict=True)) if a != b}
    for k in sorted(moved):
        if not stage.states[k].flag("reinit"):
            written = stage.states[k].written.get("reinit")
            said = "says reinit=false" if written else "has no reinit, which means false"
            text = f"an event changes it, but it {said}"
            yield Observation("exchange.reinit", text, f'{stage.kind}, "{stage.states[k].name}"')


def _flags(stage: TrialFixture, found: list[ModelExchangeEvent]) -> Iterator[Observation]:
    """Yield flags of events that contradict what the events did to states and nominal values."""
    silent = [each for each in found if each.before != each.after and not each.said.values_changed]
    idle = [each for each in found if each.before == each.after and each.said.values_changed]
    if silent:
        text = f"an event changes the states without valuesOfContinuousStatesChanged, at t = {silent[0].time:.6g}"
        yield Observation("exchange.values_changed", text, stage.kind)
    if idle:
        text = "valuesOfContinuousStatesChanged is true at an event that changes no bit of the states, "
        yield Observation("exchange.values_flag", f"{text}at t = {idle[0].time:.6g}", stage.kind)
    other = [each for each in found if each.nominals[0] != each.nominals[1] and not each.said.nominals_changed]
    if other:
        text = "an event changes nominal values without nominalsOfContinuousStatesChanged, "
        yield Observation("exchange.nominals_changed", f"{text}at t = {other[0].time:.6g}", stage.kind)
    same_ones = [each for each in found if each.nominals[0] == each.nominals[1] and each.said.nominals_changed]
    if same_ones:
        text = "nominalsOfContinuousStatesChanged is true at an event that changes no nominal value, "
        yield Observation("exchange.values_flag", f"{text}at t = {same_ones[0].time:.6g}", stage.kind)


def _chatter(stage: TrialFixture, found: list[ModelExchangeEvent]) -> Iterator[Observation]:
    """Report events by the same indicators, one right after another, that change no state."""
    count = 0
    for first, second in pairwise(found):
        near = second.time - first.time <= 1e-6 * stage.step
        count = count + 1 if near and second.why == "state" and second.before == second.after else 0
        if count >= CHATTER:
            text = f"{count} state events one right after another, each without an effect, at t = {second.time:.6g}"
            yield Observation("exchange.chatter", text, stage.kind)
            return


# --- what events do, again


def _discrete(stage: TrialFixture) -> list[DescribedVariable]:
    """Return variables that change at events only."""
    return [
        each for each in stage.variables
        if each.variability == "discrete" and each.causality in {"local", "output"}
    ]  # fmt: skip


def _look(stage: TrialFixture, instance: FmuInstance) -> list[Value]:
    """Return all discrete variables, then the continuous states."""
    return [*instance.get(_discrete(stage)), *(instance.states(stage.n_states) if stage.n_states else [])]


def _difference(stage: TrialFixture, a: list[Value], b: list[Value]) -> str:
    """Return the name of the first difference; empty if there is none."""
    names = [*(f'"{each.name}"' for each in _discrete(stage)), *(f"state {k + 1}" for k in range(stage.n_states))]
    return next((name for name, x, y in zip(names, a, b, strict=True) if not have_same_bits(x, y)), "")


@probe("updating once more", "exchange.iteration", kinds=ME)
def try_further_event_iteration(stage: TrialFixture) -> Iterator[Observation]:
    """Check that after the last iteration a further one changes nothing."""
    seen: list[str] = []
    events = 0
    with stage.instance() as instance:

        def once_more(moment: str) -> None:
            """Compare values before and after one more update."""
            nonlocal events
            if moment != "settled":
                return
            events += 1
            before = _look(stage, instance)
            instance.update()
            name = _difference(stage, before, _look(stage, instance))
            if name:
                seen.append(name)

        instance.enter(stage.start, None, stage.tolerance)
        instance.exit()
        first = stage.settle(instance, first=True)
        once_more("settled")
        instance.go_on()
        integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-4, first.next_time)
        integration.watch = once_more
        try:
            integration.advance(stage.start + stage.steps * stage.step)
        except TimeBudgetError:
            raise
        except SkippedTrialError:
            pass
    if seen:
        text = f"{seen[0]} changes in one more iteration, though the FMU says that none is needed"
        yield Observation("exchange.iteration", text, stage.kind)
    elif not events:
        stage.nothing("exchange.iteration", NONE)


@probe("values in Event Mode and behind it", "exchange.pure", kinds=ME)
def try_values_across_events(stage: TrialFixture) -> Iterator[Observation]:
    """Check that values in Event Mode, when it is settled, are those of Continuous-Time Mode at that point."""
    seen, found = list_continuous_variables(stage), list[Observation]()
    with stage.instance() as instance:
        inside: list[Value] = []

        def note(moment: str) -> None:
            """Read values in Event Mode, when it is settled."""
            inside[:] = instance.get(seen) if moment == "settled" else []

        def compare() -> None:
            """Read them again behind it."""
            for each, a, b in zip(seen, inside, instance.get(seen), strict=True):
                if isinstance(a, float) and isinstance(b, float) and not _close(a, b, stage.scale(each)):
                    text = f"at t = {integration.time:.6g} it is {a:.9g} in Event Mode, when no further iteration "
                    text += f"is needed, and {b:.9g} in Continuous-Time Mode at the same point"
                    found.append(Observation("exchange.pure", text, f'{stage.kind}, "{each.name}"'))

        integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-4, begin_run(stage, instance))
        integration.watch, integration.left = note, compare
        try:
            integration.advance(stage.start + stage.steps * stage.step)
        except TimeBudgetError:
            raise
        except SkippedTrialError:
            pass
    yield from found[:1]


ROUND_OFF = 1e-9
"""Relative difference of what is evaluated twice at one point."""


def _close(a: float, b: float, scale: float) -> bool:
    """Return whether two values are one but for round-off."""
    return abs(a - b) <= ROUND_OFF * max(abs(a), abs(b), scale) or not math.isfinite(a - b)


def _choose_excitation(stage: TrialFixture, number: int) -> Values | None:
    """Return parameters, start values and inputs of a run; None for number 0, the set of the start values."""
    if not number:
        return None
    return {**choose_parameters_and_starts(stage, number), **choose_moving_inputs(stage, 0, number)}


@probe("entering Event Mode where nothing happens", "exchange.unannounced", kinds=ME)
def try_event_mode_between_events(stage: TrialFixture) -> Iterator[Observation]:
    """Check that Event Mode changes nothing between events: a change was due earlier, or must be announced."""
    if not _discrete(stage) and not stage.n_states:
        stage.nothing("exchange.unannounced", "it has neither states nor discrete variables")
        return
    for number in (0, 1):
        with stage.instance() as instance:
            begun = begin_run(stage, instance, _choose_excitation(stage, number))
            integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-6, begun)
            every = max(1, stage.steps // MOST_CHECKED)
            for k in range(stage.steps):
                try:
                    integration.advance(stage.start + (k + 1) * stage.step)
                except TimeBudgetError:
                    raise
                except SimulationEndedError:
                    if number:
                        break
                    raise
                except SkippedTrialError:
                    break
                if k % every or not _quiet(stage, integration):
                    continue
                name = _disturbed(stage, instance, integration)
                if name:
                    text = (
                        f"{name} changes in Event Mode at t = {integration.time:.9g}, where no indicator has crossed "
                    )
                    yield Observation("exchange.unannounced", text + "and no time event is due", stage.kind)
                    return


def _quiet(stage: TrialFixture, integration: ModelExchangeIntegration) -> bool:
    """Return whether no event has just happened or is due, so that round-off does not decide."""
    near = 1e-6 * stage.step
    last = integration.jumps[-1].time if integration.jumps else -1e300
    return integration.time - last > near and integration.following - integration.time > near


def _disturbed(stage: TrialFixture, instance: FmuInstance, integration: ModelExchangeIntegration) -> str:
    """Return the name of a quantity that an event changes although nothing was due; empty if none does."""
    before = _look(stage, instance)
    integration.interrupt({})
    return _difference(stage, before, _look(stage, instance))


@probe("time events", "exchange.next_event", kinds=ME)
def try_time_events(stage: TrialFixture) -> Iterator[Observation]:
    """Check that announced time events happen: something changes, or another time is announced."""
    timed = [each for each in _seen(stage) if each.why == "time"]
    if not timed:
        stage.nothing("exchange.next_event", "no time event was seen")
        return
    watched = [each for each in stage.variables if each.causality in {"local", "output"}]
    if not watched:
        stage.nothing("exchange.next_event", "it has no variables that could change")
        return
    empty, full = [], 0
    with stage.instance() as instance:
        integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-6, begin_run(stage, instance))
        rows: list[list[Value]] = []

        def note(moment: str) -> None:
            """Note values before and after an event."""
            rows.append(
                [
                    *instance.get(watched),
                    *(instance.slopes(stage.n_states) if moment == "before" and stage.n_states else []),
                ]
            )

        integration.watch = note
        for each in timed[:MOST_CHECKED]:
            rows.clear()
            try:
                integration.advance(each.time)
            except TimeBudgetError:
                raise
            except SkippedTrialError:
                break
            if len(rows) < 2:
                continue
            after = [*instance.get(watched), *(instance.slopes(stage.n_states) if stage.n_states else [])]
            if all(map(have_same_bits, rows[-2], after)):
                empty.append(each.time)
            else:
                full += 1
    if len(empty) > full:
        text = f"a time event is announced for t = {empty[0]:.9g}, and nothing changes at it"
        yield Observation("exchange.next_event", f"{text}, as at {len(empty)} of {len(empty) + full}", stage.kind)


@probe("time events that come before they were announced for", "exchange.next_event", kinds=ME)
def try_late_time_events(stage: TrialFixture) -> Iterator[Observation]:
    """Check that no time event is announced too late, while an indicator finds it.

    An importer that goes by indicators comes to the instant itself; one with fixed steps, or that trusts what it is
    told, is late. Such an event withdraws the announcement, and comes at the same instant from another start.
    """
    early = [each for each in _seen(stage) if _withdraws(each)]
    if len(early) < LATE:
        return
    within: dict[DescribedVariable, Value] = {}
    for state in stage.states:
        start = stage.start_value(state)
        if state.initial == "exact" and isinstance(start, float):
            within[state] = stage.inside(state, start + _ELSEWHERE * stage.scale(state))
    if not within:
        return
    with stage.instance() as instance:
        integration = ModelExchangeIntegration(stage, instance, stage.start, 1e-6, begin_run(stage, instance, within))
        try:
            integration.advance(min(early[-1].time + stage.step, stage.stop))
        except TimeBudgetError:
            raise
        except SkippedTrialError:
            pass
    again = [each.time for each in integration.jumps if _withdraws(each)]
    unmoved = [each for each in early if any(_same_instant(each.time, time) for time in again)]
    if len(unmoved) >= LATE:
        first = unmoved[0]
        text = f"the next time event is announced for t = {first.announced:.9g}, and comes at t = {first.time:.9g}, "
        text += f"where an indicator crosses at the same instant from another start, too; so do {len(unmoved)} events"
        yield Observation("exchange.next_event", text, stage.kind)


def _withdraws(jump: ModelExchangeEvent) -> bool:
    """Return whether an event that an indicator found takes back the time event that was announced."""
    if jump.why != "state" or not math.isfinite(jump.announced) or _same_instant(jump.announced, jump.time):
        return False
    return jump.said.next_time is None or not _same_instant(jump.said.next_time, jump.announced)


def _same_instant(one: float, other: float) -> bool:
    """Return whether two times are equal, up to what locating an event leaves."""
    return abs(one - other) <= _UNMOVED * max(1.0, abs(one))
