"""Uncertainty after grazing events: whether they happen is uncertain, and so is what they set.

A ball comes to rest by bounces that become lower than errors of integrators; the last of them graze
(``compute_event_time_bounds``). One right motion has eleven of them and rests, another one has fifteen and rests 10 ms
later. In both the ball lies on the floor in the end; how often it bounced, and how hard it did so last, they do not
agree upon.

Grazing events whose intervals of possible instants meet, or have less than a communication step between them, make one
run. A state v may be off, besides its bound,

- from the beginning of a run to its end by Σ |v after − v before| over the run's events,
- behind it by the same sum, where v keeps what events set (its rate is zero): for ever, or, of the impulse of a
  contact's last impact, until an impact that does not graze sets it again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun

if TYPE_CHECKING:
    from mb2fmu.validation.bounds.event_time_tolerances import EventTimeBound
    from mb2fmu.validation.modes.hybrid_equations import HybridEquations

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class _ConsecutiveGrazingEvents:
    """Grazing events that follow each other, and what they make states jump by."""

    begin: float
    end: float
    jumps: Floats


def compute_grazing_uncertainty(reference: ReferenceRun, events: Sequence[EventTimeBound]) -> Floats:
    """Return what the grazing events of a reference leave in doubt of each state, shape (n_t, n_x)."""
    numeric, time = reference.numeric, reference.experiment.time
    uncertainty = np.zeros((len(time), len(reference.state_columns)))
    if not is_hybrid(numeric):
        return uncertainty
    equations = numeric.frozen.equations
    is_kept = np.zeros(uncertainty.shape[1], dtype=np.bool_)
    is_kept[len(is_kept) - len(equations.z) :] = [rate == 0 for rate in equations.z_dot]
    later_impacts = _find_later_impacts(numeric, events)
    for run in _group_grazing_events(events, float(np.min(np.diff(time)))):
        uncertainty[(time >= run.begin) & (time <= run.end)] += run.jumps
        for j in np.flatnonzero(is_kept & (run.jumps > 0.0)).tolist():
            end_time = min((instant for instant in later_impacts.get(j, ()) if instant > run.end), default=np.inf)
            uncertainty[(time > run.end) & (time <= end_time), j] += run.jumps[j]
    return uncertainty


def _group_grazing_events(events: Sequence[EventTimeBound], step: float) -> list[_ConsecutiveGrazingEvents]:
    """Return the runs of grazing events that set states, in their order."""
    runs: list[_ConsecutiveGrazingEvents] = []
    for event in events:
        first, last = event.simultaneous_events.first, event.simultaneous_events.last
        if not event.grazing or event.simultaneous_events.from_input_jump or not (first.sets_state or last.sets_state):
            continue
        width = event.largest_allowed_difference
        jumps = np.max([np.abs(np.diff(e.states, axis=0)[0]) for e in (first, last)], axis=0)
        jumps = np.maximum(jumps, np.abs(last.states[1] - first.states[0]))[:-1]
        begin, end = first.time - width, last.time + width
        if runs and begin <= runs[-1].end + step:
            runs[-1].end = max(runs[-1].end, end)
            runs[-1].jumps += jumps
        else:
            runs.append(_ConsecutiveGrazingEvents(begin, end, jumps))
    return runs


def _find_later_impacts(numeric: HybridEquations, events: Sequence[EventTimeBound]) -> dict[int, list[float]]:
    """Return place of an impulse among the states → instants of impacts that do not graze and set it, in s."""
    contacts, states = numeric.frozen.contacts, list(numeric.frozen.equations.states)
    instants: dict[int, list[float]] = {}
    for contact in contacts.each if contacts else ():
        count, impulse = states.index(contact.impact_count), states.index(contact.impulse)
        instants[impulse] = [
            event.simultaneous_events.last.time + event.largest_allowed_difference
            for event in events
            if not event.grazing
            and event.simultaneous_events.last.states[1][count] > event.simultaneous_events.first.states[0][count]
        ]
    return instants
