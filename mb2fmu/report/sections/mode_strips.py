"""The strip of modes: what contacts, latches and switches of the reference are between events."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import sympy as sm

from mb2fmu.mechanics.equations.contact_records import UnilateralContact
from mb2fmu.mechanics.equations.latch_records import Latch
from mb2fmu.report.figures.svg_chart import Chart, Strip, draw
from mb2fmu.report.pages.report_content import Figure
from mb2fmu.report.sections.event_tables import ticks
from mb2fmu.validation.bounds.untested_switches import mode_word
from mb2fmu.validation.modes.event_names import switch_names
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.modes.reference_switches import FrozenEquations, OwnSwitch
from mb2fmu.validation.reference.event_sides import of_the_motion
from mb2fmu.validation.reference.reference_run import Reference

_MOST_STRIPS = 12
_BRIEF = 1e-3  # part of the run below which a mode is not drawn

State = Callable[[sm.Symbol], float]
Word = tuple[str, str]  # class of a span in the style sheet, and what it means


def modes(reference: Reference) -> Figure | None:
    """Return modes over time, each as a strip: contacts and latches, then switches; None if none changes."""
    numeric = reference.numeric
    if not isinstance(numeric, HybridEquations) or not reference.modes or not of_the_motion(reference.events):
        return None
    strips = tuple(_strips(reference, numeric.frozen))[:_MOST_STRIPS]
    if not strips:
        return None
    chart = Chart("modes", "Modes of the reference over time", (), ticks=ticks(reference), strips=strips)
    text = "What contacts, latches and switches are between events; marks above are all changes of modes."
    return Figure("modes", "Modes", text, draw(chart), ())


def _strips(reference: Reference, frozen: FrozenEquations) -> Iterator[Strip]:
    """Yield the spans of time that each contact, latch or switch with several lasting modes stays in one."""
    events = of_the_motion(reference.events)

    def of_states(word: Callable[[State], Word]) -> list[Word]:
        """Return the words at the start and after each event, by states."""
        rows = [events[0].states[0], *(event.states[1] for event in events)]
        return [word(dict(zip(frozen.equations.states, row.tolist(), strict=False)).__getitem__) for row in rows]

    contacts = frozen.contacts.each if frozen.contacts else ()
    latches = frozen.latches.each if frozen.latches else ()
    found = [(each.name, of_states(partial(_of_contact, each))) for each in contacts]
    found += [(each.name, of_states(partial(_of_latch, each))) for each in latches]
    for k, (switch, name) in enumerate(zip(frozen.switches, switch_names(frozen), strict=True)):
        if name == switch.name:  # others are quantities of contacts, which have their strips
            values = [float(reference.modes[0].values[k]), *(event.after[k] for event in events)]
            found.append((name, [_of_switch(switch, value) for value in values]))
    end, times = float(reference.trajectory.time[-1]), [event.time for event in events]
    for name, words in found:
        spans = [span for span in _spans(words, times, end) if span[1] - span[0] > _BRIEF * end]
        if len({word for *_, word in spans}) > 1:
            yield Strip(name, tuple(spans))


def _spans(words: Sequence[Word], times: Sequence[float], end: float) -> Iterator[tuple[float, float, str, str]]:
    """Yield (begin, end, class, meaning) of what stays the same."""
    since, now = 0.0, words[0]
    for time, word in zip([*times, end], [*words[1:], None], strict=True):
        if word != now:
            yield since, time, *now
            if word is not None:
                since, now = time, word


def _of_contact(contact: UnilateralContact, state: State) -> Word:
    """Return what a contact is, by its states."""
    rests = state(contact.resting)
    if rests <= 0.5:
        return ("none", "parting" if rests > 0.0 else "open")
    if contact.friction is None:
        return ("up", "rests")
    return ("down", "slides") if abs(state(contact.friction.sliding)) > 0.5 else ("up", "sticks")


def _of_latch(latch: Latch, state: State) -> Word:
    """Return what a latch is, by its state."""
    return ("up", "closed") if state(latch.engaged) > 0.5 else ("none", "open")


def _of_switch(switch: OwnSwitch, mode: float) -> Word:
    """Return the style and the word of a switch's mode."""
    word = mode_word(switch, mode)
    if switch.kind == "truth":
        return ("none" if word == "false" or (mode <= 0.5 and word != "true") else "up", word)
    return ("none" if mode == 0.0 else "up" if mode > 0.0 else "down", word)
