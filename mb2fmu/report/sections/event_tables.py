"""Events in the page's records: their table, and ticks in charts."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mb2fmu.report.number_format import exact, short
from mb2fmu.report.pages.report_content import EventRow, EventTable, Number, State
from mb2fmu.validation.reference.event_sides import of_the_motion
from mb2fmu.validation.reference.reference_run import Reference
from mb2fmu.validation.result import KIND_NAMES, EventResult, ValidationResult

_STATES: dict[str, State] = {"passed": "good", "failed": "bad", "unjudged": "neutral"}
_SHOWN = 40  # events of one run, the failed ones always
_MOST_TICKS = 400


def events_text(result: ValidationResult) -> str:
    """Say how many events were judged, for headlines; empty where there are none."""
    events = result.all_events
    if not events:
        return ""
    judged = [event for event in events if event.verdict != "unjudged"]
    passed = sum(event.verdict == "passed" for event in judged)
    left = len(events) - len(judged)
    return f"{passed} of {len(judged)} events as they should be" + (f", {left} not judged" if left else "")


def failures(result: ValidationResult) -> Iterator[str]:
    """Yield what failed, for headlines: a sentence for each run."""
    for kind in dict.fromkeys(event.kind for event in result.all_events):
        wrong = [event for event in result.all_events if event.kind == kind and event.verdict == "failed"]
        if wrong:
            first = wrong[0]
            at = first.found if math.isnan(first.time) else first.time
            count = f"{len(wrong)} event{'s' if len(wrong) > 1 else ''}"
            yield f"{count} wrong as {KIND_NAMES[kind]}: {first.name} at {short(at)} s: {first.reason}"


def event_tables(result: ValidationResult) -> tuple[EventTable, ...]:
    """Return one table for each run with events."""
    runs = [("", result.kinds), ("Moved experiment: ", result.moved.kinds if result.moved else ())]
    return tuple(
        _table(prefix + KIND_NAMES[kind.simulation.kind], kind.events)
        for prefix, kinds in runs
        for kind in kinds
        if kind.events
    )


def _table(heading: str, events: tuple[EventResult, ...]) -> EventTable:
    """Show the first events and all that failed; say of the others how many there are."""
    chosen = [k for k, event in enumerate(events) if k < _SHOWN or event.verdict == "failed"]
    hidden = [event for k, event in enumerate(events) if k not in set(chosen)]
    worst = max((event.ratio for event in hidden), default=0.0)
    text = f"{len(hidden)} more passed or are not judged, the worst {short(worst)} of its bound." if hidden else ""
    return EventTable(heading, tuple(_row(k + 1, events[k]) for k in chosen), text)


def _row(number: int, event: EventResult) -> EventRow:
    """Format one event: when it was expected and found, against its bound, and what jumped."""
    return EventRow(
        number=number,
        name=event.name,
        expected=_number(event.time, 9),
        found=_number(event.found, 9),
        difference=_number(event.difference),
        allowed=_number(event.allowed) if not event.grazing else None,
        ratio=_number(event.ratio) if event.verdict != "unjudged" else None,
        jumps=tuple(
            f"{jump.name} {short(jump.before, 4)} → {short(jump.after, 4)}"
            + ("" if jump.unit == "1" else f" {jump.unit}")
            for jump in event.jumps
        ),
        verdict="grazes" if event.grazing else "not judged" if event.verdict == "unjudged" else event.verdict,
        state=_STATES[event.verdict],
        remark=event.reason,
    )


def _number(value: float, digits: int = 3) -> Number | None:
    """Return a number as shown and exact; None for NaN."""
    return None if math.isnan(value) else Number(short(value, digits), exact(value))


def ticks(reference: Reference) -> tuple[float, ...]:
    """Return the instants of the reference's events, s; none where they would form a black bar."""
    times = tuple(event.time for event in of_the_motion(reference.events))
    return times if len(times) <= _MOST_TICKS else ()
