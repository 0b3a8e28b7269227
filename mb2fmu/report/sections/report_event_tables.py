"""Events in the page's records: their table, ticks in charts, and the strip of modes between events."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import sympy as sm

from mb2fmu.report.figures.svg_chart import Chart, ModeTimelineStrip, draw_chart
from mb2fmu.report.number_format import format_exact_number, format_short_number
from mb2fmu.report.pages.report_page_records import (
    EventComparisonRow,
    EventComparisonTable,
    ReportFigure,
    RoundedDisplayNumber,
    VerdictColour,
)
from mb2fmu.validation.bounds.untested_switches import describe_switch_mode
from mb2fmu.validation.modes.event_names import list_switch_names
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.event_time_matching import drop_round_off_events
from mb2fmu.validation.reference.reference_run import ReferenceRun
from mb2fmu.validation.validation_result import INTERFACE_TYPE_NAMES, EventResult, ValidationResult

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.contact_equations import UnilateralContact
    from mb2fmu.mechanics.equations.latch_equations import MechanicalLatch
    from mb2fmu.validation.modes.equations_between_events import EquationsBetweenEvents, ReferenceSwitch

_VERDICT_COLOURS: dict[str, VerdictColour] = {"passed": "good", "failed": "bad", "unjudged": "neutral"}
_MAX_EVENT_ROWS = 40  # events of one run, the failed ones always
_MAX_EVENT_TICKS = 400


def describe_event_verdict_counts(result: ValidationResult) -> str:
    """Say how many events were judged, for headlines; empty where there are none."""
    events = result.all_events
    if not events:
        return ""
    judged_events = [event for event in events if event.verdict != "unjudged"]
    passed = sum(event.verdict == "passed" for event in judged_events)
    left = len(events) - len(judged_events)
    return f"{passed} of {len(judged_events)} events as they should be" + (f", {left} not judged" if left else "")


def describe_event_failures(result: ValidationResult) -> Iterator[str]:
    """Yield what failed, for headlines: a sentence for each run."""
    for kind in dict.fromkeys(event.kind for event in result.all_events):
        wrong = [event for event in result.all_events if event.kind == kind and event.verdict == "failed"]
        if wrong:
            first = wrong[0]
            at = first.found if math.isnan(first.time) else first.time
            count = f"{len(wrong)} event{'s' if len(wrong) > 1 else ''}"
            yield (
                f"{count} wrong as {INTERFACE_TYPE_NAMES[kind]}: "
                f"{first.name} at {format_short_number(at)} s: {first.reason}"
            )


def form_report_event_tables(result: ValidationResult) -> tuple[EventComparisonTable, ...]:
    """Return one table for each run with events."""
    runs = [
        ("", result.kinds),
        ("Perturbed experiment: ", result.perturbed_experiment.kinds if result.perturbed_experiment else ()),
    ]
    return tuple(
        _form_event_table(prefix + INTERFACE_TYPE_NAMES[kind.simulation.kind], kind.events)
        for prefix, kinds in runs
        for kind in kinds
        if kind.events
    )


def _form_event_table(heading: str, events: tuple[EventResult, ...]) -> EventComparisonTable:
    """Show the first events and all that failed; say of the others how many there are."""
    chosen = [k for k, event in enumerate(events) if k < _MAX_EVENT_ROWS or event.verdict == "failed"]
    hidden = [event for k, event in enumerate(events) if k not in set(chosen)]
    worst = max((event.ratio for event in hidden), default=0.0)
    text = (
        f"{len(hidden)} more passed or are not judged, the worst {format_short_number(worst)} of its bound."
        if hidden
        else ""
    )
    return EventComparisonTable(heading, tuple(_form_event_row(k + 1, events[k]) for k in chosen), text)


def _form_event_row(number: int, event: EventResult) -> EventComparisonRow:
    """Format one event: when it was expected and found, against its bound, and what jumped."""
    return EventComparisonRow(
        number=number,
        name=event.name,
        expected=_display_number_or_none(event.time, 9),
        found=_display_number_or_none(event.found, 9),
        difference=_display_number_or_none(event.difference),
        allowed=_display_number_or_none(event.allowed) if not event.grazing else None,
        ratio=_display_number_or_none(event.ratio) if event.verdict != "unjudged" else None,
        jumps=tuple(
            f"{jump.name} {format_short_number(jump.before, 4)} → {format_short_number(jump.after, 4)}"
            + ("" if jump.unit == "1" else f" {jump.unit}")
            for jump in event.jumps
        ),
        verdict="grazes" if event.grazing else "not judged" if event.verdict == "unjudged" else event.verdict,
        state=_VERDICT_COLOURS[event.verdict],
        remark=event.reason,
    )


def _display_number_or_none(value: float, digits: int = 3) -> RoundedDisplayNumber | None:
    """Return a number as shown and exact; None for NaN."""
    return (
        None
        if math.isnan(value)
        else RoundedDisplayNumber(format_short_number(value, digits), format_exact_number(value))
    )


def list_event_times(reference: ReferenceRun) -> tuple[float, ...]:
    """Return the instants of the reference's events, s; none where they would form a black bar."""
    times = tuple(event.time for event in drop_round_off_events(reference.events))
    return times if len(times) <= _MAX_EVENT_TICKS else ()


_MAX_MODE_STRIPS = 12
_MIN_MODE_DURATION = 1e-3  # part of the run below which a mode is not drawn

SymbolValue = Callable[[sm.Symbol], float]
ModeLabel = tuple[str, str]  # class of a span in the style sheet, and what it means


def form_mode_strips(reference: ReferenceRun) -> ReportFigure | None:
    """Return modes over time, each as a strip: contacts and latches, then switches; None if none changes."""
    numeric = reference.numeric
    if not is_hybrid(numeric) or not reference.modes or not drop_round_off_events(reference.events):
        return None
    strips = tuple(_form_strips(reference, numeric.frozen))[:_MAX_MODE_STRIPS]
    if not strips:
        return None
    chart = Chart("modes", "Modes of the reference over time", (), ticks=list_event_times(reference), strips=strips)
    text = "What contacts, latches and switches are between events; marks above are all changes of modes."
    return ReportFigure("modes", "Modes", text, draw_chart(chart), ())


def _form_strips(reference: ReferenceRun, frozen: EquationsBetweenEvents) -> Iterator[ModeTimelineStrip]:
    """Yield the spans of time that each contact, latch or switch with several lasting modes stays in one."""
    events = drop_round_off_events(reference.events)

    def of_states(word: Callable[[SymbolValue], ModeLabel]) -> list[ModeLabel]:
        """Return the words at the start and after each event, by states."""
        rows = [events[0].states[0], *(event.states[1] for event in events)]
        return [word(dict(zip(frozen.equations.states, row.tolist(), strict=False)).__getitem__) for row in rows]

    contacts = frozen.contacts.each if frozen.contacts else ()
    latches = frozen.latches.each if frozen.latches else ()
    found = [(each.name, of_states(partial(_contact_mode_label, each))) for each in contacts]
    found += [(each.name, of_states(partial(_latch_mode_label, each))) for each in latches]
    for k, (switch, name) in enumerate(zip(frozen.switches, list_switch_names(frozen), strict=True)):
        if name == switch.name:  # others are quantities of contacts, which have their strips
            values = [float(reference.modes[0].values[k]), *(event.after[k] for event in events)]
            found.append((name, [_switch_mode_label(switch, value) for value in values]))
    end, times = float(reference.trajectory.time[-1]), [event.time for event in events]
    for name, words in found:
        spans = [span for span in _find_mode_spans(words, times, end) if span[1] - span[0] > _MIN_MODE_DURATION * end]
        if len({word for *_, word in spans}) > 1:
            yield ModeTimelineStrip(name, tuple(spans))


def _find_mode_spans(
    words: Sequence[ModeLabel], times: Sequence[float], end: float
) -> Iterator[tuple[float, float, str, str]]:
    """Yield (begin, end, class, meaning) of what stays the same."""
    since, now = 0.0, words[0]
    for time, word in zip([*times, end], [*words[1:], None], strict=True):
        if word != now:
            yield since, time, *now
            if word is not None:
                since, now = time, word


def _contact_mode_label(contact: UnilateralContact, state: SymbolValue) -> ModeLabel:
    """Return what a contact is, by its states."""
    rests = state(contact.resting)
    if rests <= 0.5:
        return ("none", "parting" if rests > 0.0 else "open")
    if contact.friction is None:
        return ("up", "rests")
    return ("down", "slides") if abs(state(contact.friction.sliding)) > 0.5 else ("up", "sticks")


def _latch_mode_label(latch: MechanicalLatch, state: SymbolValue) -> ModeLabel:
    """Return what a latch is, by its state."""
    return ("up", "closed") if state(latch.engaged) > 0.5 else ("none", "open")


def _switch_mode_label(switch: ReferenceSwitch, mode: float) -> ModeLabel:
    """Return the style and the word of a switch's mode."""
    word = describe_switch_mode(switch, mode)
    if switch.kind == "truth":
        return ("none" if word == "false" or (mode <= 0.5 and word != "true") else "up", word)
    return ("none" if mode == 0.0 else "up" if mode > 0.0 else "down", word)
