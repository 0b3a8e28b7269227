"""Uncertainty after grazing events: whether they happen is uncertain, and so is what they set.

A ball comes to rest by bounces that become lower than errors of integrators; the last of them graze
(``compute_event_time_bounds``). One right motion has eleven of them and rests, another one has fifteen and rests 10 ms
later. In both the ball lies on the floor in the end; how often it bounced, and how hard it did so last, they do not
agree upon.

Grazing events whose intervals of possible instants meet, or have less than a communication step between them, make one
run. A state v may be off, besides its bound,

- from the beginning of a run to its end by Σ |v after − v before| over the run's events;
- behind it by the same sum, where v keeps what events set (its rate is zero): for ever, or, of the impulses of a
  contact's last impact, until an impact that does not graze sets them again.

The number of changes of friction modes may be off by more than its own jumps: where n impacts may happen or not, and f
contacts with friction rest meanwhile, each of these contacts may begin or cease to slide after each impact. That makes
n f changes besides those of the reference.

In one step from an FMU's own state the same holds of what contacts count and of the impulses that they keep, with the
errors of one step. All else is what other events make of it (``one_step_flow``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.model.quantity_declarations import MODE_THRESHOLD
from mb2fmu.validation.bounds.event_time_tolerances import EventTimeBound, bound_event_times
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.reference_run import ReferenceRun

if TYPE_CHECKING:
    from mb2fmu.validation.modes.hybrid_equations import HybridEquations
    from mb2fmu.validation.modes.located_events import LocatedEvent

Floats = npt.NDArray[np.float64]


@dataclass(slots=True)
class _ConsecutiveGrazingEvents:
    """Grazing events that follow each other, and what they make states jump by."""

    begin: float
    end: float
    jumps: Floats
    visited_states: Floats


def compute_grazing_uncertainty(reference: ReferenceRun, events: Sequence[EventTimeBound]) -> Floats:
    """Return what the grazing events of a reference leave in doubt of each state, shape (n_t, n_x)."""
    numeric, time = reference.numeric, reference.experiment.time
    uncertainty = np.zeros((len(time), len(reference.state_columns)))
    if not is_hybrid(numeric):
        return uncertainty
    equations = numeric.frozen.equations
    is_kept = np.zeros(uncertainty.shape[1], dtype=np.bool_)
    is_kept[len(is_kept) - len(equations.z) :] = [rate == 0 for rate in equations.z_dot]
    for run in _group_grazing_events(numeric, events, float(np.min(np.diff(time)))):
        uncertainty[(time >= run.begin) & (time <= run.end)] += run.jumps
        for j in np.flatnonzero(is_kept & (run.jumps > 0.0)).tolist():
            uncertainty[(time > run.end) & (time <= _find_next_setting(numeric, events, run, j)), j] += run.jumps[j]
    return uncertainty


def compute_step_grazing_uncertainty(
    reference: ReferenceRun, located_events: Sequence[LocatedEvent], state_errors: Floats
) -> Floats:
    """Return what grazing events in one step leave in doubt of records of contacts at its end, shape (n_x,).

    Args:
        reference: Its equations and experiment.
        located_events: Of the flow over the step; each with the number of the step.
        state_errors: How far each state may be off by errors of one step, shape (n_x,).
    """
    numeric, uncertainty = reference.numeric, np.zeros(len(state_errors))
    if not is_hybrid(numeric) or numeric.frozen.contacts is None:
        return uncertainty
    errors = np.broadcast_to(state_errors, (len(reference.trajectory.time), len(state_errors)))
    events = bound_event_times(reference, located_events, errors)
    for run in _group_grazing_events(numeric, events, float(np.min(np.diff(reference.trajectory.time)))):
        for j in _find_contact_record_indices(numeric):
            uncertainty[j] += run.jumps[j] * np.isinf(_find_next_setting(numeric, events, run, j))
    return uncertainty


def _group_grazing_events(
    numeric: HybridEquations, events: Sequence[EventTimeBound], step: float
) -> list[_ConsecutiveGrazingEvents]:
    """Return the runs of grazing events that set states, in their order."""
    runs: list[_ConsecutiveGrazingEvents] = []
    for event in events:
        first, last = event.simultaneous_events.first, event.simultaneous_events.last
        if not event.grazing or event.simultaneous_events.from_input_jump or not (first.sets_state or last.sets_state):
            continue
        width = event.largest_allowed_difference
        jumps = np.max([np.abs(np.diff(e.states, axis=0)[0]) for e in (first, last)], axis=0)
        jumps = np.maximum(jumps, np.abs(last.states[1] - first.states[0]))[:-1]
        visited = np.vstack([first.states, last.states])[:, :-1]
        begin, end = first.time - width, last.time + width
        if runs and begin <= runs[-1].end + step:
            runs[-1].end = max(runs[-1].end, end)
            runs[-1].jumps += jumps
            runs[-1].visited_states = np.vstack([runs[-1].visited_states, visited])
        else:
            runs.append(_ConsecutiveGrazingEvents(begin, end, jumps, visited))
    for run in runs:
        _add_possible_mode_changes(numeric, run)
    return runs


def _add_possible_mode_changes(numeric: HybridEquations, run: _ConsecutiveGrazingEvents) -> None:
    """Add to the jumps of a run the changes of friction modes that its impacts may be followed by."""
    contacts, states = numeric.frozen.contacts, list(numeric.frozen.equations.states)
    if contacts is None or contacts.mode_change_count is None:
        return
    rests = [states.index(contact.resting) for contact in contacts.contacts_with_friction]
    resting_count = int(np.sum(np.any(run.visited_states[:, rests] > MODE_THRESHOLD, axis=0)))
    impact_count = sum(float(run.jumps[states.index(contact.impact_count)]) for contact in contacts.each)
    run.jumps[states.index(contacts.mode_change_count)] += resting_count * impact_count


def _find_contact_record_indices(numeric: HybridEquations) -> list[int]:
    """Return places in x of what contacts count, and of the impulses of their last impacts."""
    contacts, states = numeric.frozen.contacts, list(numeric.frozen.equations.states)
    if contacts is None:
        return []
    records = [symbol for each in contacts.each for symbol in (each.impact_count, each.impulse)]
    records += [friction.impulse for friction in contacts.frictions]
    if contacts.mode_change_count is not None:
        records.append(contacts.mode_change_count)
    return [states.index(record) for record in records]


def _find_next_setting(
    numeric: HybridEquations, events: Sequence[EventTimeBound], run: _ConsecutiveGrazingEvents, j: int
) -> float:
    """Return the instant behind a run at which an impact that does not graze has set state j again, s; inf if none."""
    contacts, states = numeric.frozen.contacts, list(numeric.frozen.equations.states)
    for contact in contacts.each if contacts else ():
        impulses = [contact.impulse, *([contact.friction.impulse] if contact.friction else [])]
        if states[j] not in impulses:
            continue
        count = states.index(contact.impact_count)
        for event in events:
            group = event.simultaneous_events
            instant = group.last.time + event.largest_allowed_difference
            if not event.grazing and instant > run.end and group.last.states[1][count] > group.first.states[0][count]:
                return instant
    return np.inf
