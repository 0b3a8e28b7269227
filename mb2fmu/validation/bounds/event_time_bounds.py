"""Allowed time differences between events of an FMU and of the reference.

The margin m of a switch (positive as long as its mode is right) depends on the states, each of which may be off by its
bound at the communication point before. So m may be off by

    b = Σ_j |∂m/∂x_j| bound_j + round-off + what the FMU's indicators are off by

and falls with the rate m'. The event may be early or late by the δ that solves |m'| δ − |m''| δ² / 2 = b, by twice
the uncertainty of the reference's own instant, and by round-off. Where m'² ≤ 4 b |m''| the margin only touches zero as
far as can be told: the event is *grazing*; its instant, and whether there is one, is not judged. So it is where
another sign begins to slip by a force that is no larger than what indicators are off by, and where a condition looks at
what is zero all the time, whose sign is that of round-off. Such a sign's own changes do nothing, and are left out.

Of a condition on time alone no state is off: its δ is round-off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.bounds.indeterminate_friction import find_indeterminate_friction_signs
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.modes.mode_equations import SwitchModes
from mb2fmu.validation.reference.event_sides import (
    SIMULTANEOUS_FRACTION,
    SimultaneousEvents,
    advance_with_held_modes,
    drop_round_off_events,
    evaluate_both_event_sides,
    find_round_off_switches,
    group_simultaneous_events,
)
from mb2fmu.validation.reference.event_step_loop import LocatedEvent
from mb2fmu.validation.reference.initial_contact_modes import find_mode_state_indices
from mb2fmu.validation.reference.reference_run import ReferenceRun, list_compared_values
from mb2fmu.validation.reference.variable_scales import EPSILON, ROUND_OFF_ALLOWANCE

if TYPE_CHECKING:
    from mb2fmu.validation.runs.fmu_description import InterfaceType

Floats = npt.NDArray[np.float64]

MARGIN_OFFSETS: Mapping[InterfaceType, float] = MappingProxyType({"CoSimulation": 1e-12, "ModelExchange": 2e-10})
"""What margins may be off by, over their sizes: FMUs show indicators off by 1e-10, and find their own to 1e-13."""
ROOT_SEARCH_TOLERANCE = 200 * EPSILON
"""CVODE stops looking for an event within this part of time and step."""
PROBE_FRACTION = 1e-6
"""Part of a state's scale by which it is moved to see what depends on it."""
_STEP_BACK_FRACTION = 1e-2  # of a communication step


@dataclass(frozen=True, slots=True)
class EventTimeBound:
    """An event of the reference, and the allowed difference of the FMU's event.

    Attributes:
        simultaneous_events: The event, or several that cannot be told apart.
        allowed_differences: How far it may be by kind of FMU, s; of a grazing one how far its margin is near zero.
        grazing: Its instant is not judged.
    """

    simultaneous_events: SimultaneousEvents
    allowed_differences: Mapping[InterfaceType, float]
    grazing: bool

    @property
    def largest_allowed_difference(self) -> float:
        """The larger of the allowed differences, s."""
        return max(self.allowed_differences.values())


def compute_event_time_bounds(reference: ReferenceRun, bounds: Floats) -> tuple[EventTimeBound, ...]:
    """Return the limits of all events of a reference.

    Args:
        reference: Its events are those of its motion.
        bounds: How far each variable may be off, shape (n_t, n).
    """
    if not isinstance(reference.numeric, HybridEquations) or not reference.events:
        return ()
    events, idle = drop_round_off_events(reference.events), find_round_off_switches(reference.events)
    single = [_bound_single_event(reference, bounds, event, idle) for event in events]
    step = float(np.min(np.diff(reference.trajectory.time)))
    gaps, before = [], 0.0
    for limit in single:
        width = 0.0 if limit.grazing else limit.largest_allowed_difference
        gaps.append(max(SIMULTANEOUS_FRACTION * step, min(before + width, step)))
        before = width
    found, k = [], 0
    for occasion in group_simultaneous_events(events, gaps):
        parts = single[k : k + occasion.count]
        k += occasion.count
        allowed = {
            kind: max(part.simultaneous_events.time - occasion.time + part.allowed_differences[kind] for part in parts)
            for kind in MARGIN_OFFSETS
        }
        found.append(EventTimeBound(occasion, MappingProxyType(allowed), any(part.grazing for part in parts)))
    return tuple(found)


def _bound_single_event(
    reference: ReferenceRun, bounds: Floats, event: LocatedEvent, idle: frozenset[int]
) -> EventTimeBound:
    """Return one event by itself, as an occasion; ``idle``: switches that round-off changes."""
    occasion, time = SimultaneousEvents(event, event, 1), reference.trajectory.time
    step = float(np.min(np.diff(time)))
    floor = 2 * reference.event_uncertainty + ROUND_OFF_ALLOWANCE * max(event.time, step)
    if event.from_input_jump:
        return EventTimeBound(occasion, MappingProxyType(dict.fromkeys(MARGIN_OFFSETS, floor)), grazing=False)
    row = max(int(np.searchsorted(time, event.time)) - 1, 0)
    fall = _measure_margin_near_zero(reference, event, bounds[row, list(reference.state_columns)], step)
    allowed: dict[InterfaceType, float] = {}
    grazing = False
    for kind, offset in MARGIN_OFFSETS.items():
        b = fall.uncertainty + offset
        touching = fall.rate**2 <= 4.0 * b * fall.second_derivative
        grazing |= touching
        root = ROOT_SEARCH_TOLERANCE * (event.time + step) if kind == "ModelExchange" else 0.0
        late = (
            2.0
            * b
            / (fall.rate + np.sqrt(max(fall.rate**2 - 2.0 * b * fall.second_derivative, 0.0)) + np.finfo(float).tiny)
        )
        near = 2.0 * np.sqrt(b / fall.second_derivative) if 4.0 * b < fall.second_derivative * step**2 else step
        allowed[kind] = float(near if touching else late) + floor + root
    grazing = (
        grazing or _has_indeterminate_friction(reference, event) or _depends_on_round_off_switch(reference, event, idle)
    )
    return EventTimeBound(occasion, MappingProxyType(allowed), grazing)


def _depends_on_round_off_switch(reference: ReferenceRun, event: LocatedEvent, idle: frozenset[int]) -> bool:
    """Return whether conditions at an event are what they are by a switch that only round-off changes."""
    numeric, run = reference.numeric, reference.experiment
    assert isinstance(numeric, HybridEquations)
    r, prepared = run.inputs[event.step].tolist(), numeric.prepare(run.parameters)
    (before, after), others = event.sides, idle - {event.switch}
    there = before.copy()
    there.values[event.switch] = after.values[event.switch]
    for x, modes in zip(event.states[:, :-1], (there, after), strict=True):
        margins = numeric.margins(event.time, x, r, prepared, modes)
        for i in others:
            flipped = modes.values.copy()
            flipped[i] = 1.0 - flipped[i]
            one, other = (
                numeric.evaluate_in_modes(event.time, x, r, prepared, side) for side in (modes.values, flipped)
            )
            if abs(margins[i]) <= max(MARGIN_OFFSETS.values()) and not np.array_equal(one.conditions, other.conditions):
                return True
    return False


def _has_indeterminate_friction(reference: ReferenceRun, event: LocatedEvent) -> bool:
    """Return whether another sign changes its mode at an event, and could as well not do so."""
    numeric, run, (before, after) = reference.numeric, reference.experiment, event.sides
    assert isinstance(numeric, HybridEquations)
    others = set(np.flatnonzero(before.values != after.values).tolist()) - {event.switch}
    if not others:
        return False
    r, prepared = run.inputs[event.step].tolist(), numeric.prepare(run.parameters)
    widest = max(MARGIN_OFFSETS.values())
    found = find_indeterminate_friction_signs(numeric, event.time, event.states[1][:-1], r, prepared, after, widest)
    return any(i in others for i, _ in found)


@dataclass(frozen=True, slots=True)
class _MarginNearZero:
    """Behaviour of a margin near zero: its uncertainty, |m'| and |m''|."""

    uncertainty: float
    rate: float
    second_derivative: float


def _measure_margin_near_zero(
    reference: ReferenceRun, event: LocatedEvent, bounds: Floats, step: float
) -> _MarginNearZero:
    """Return how a switch's margin falls at an event: its uncertainty b, its rate −m' and |m''|, from differences."""
    numeric, run = reference.numeric, reference.experiment
    assert isinstance(numeric, HybridEquations)
    prepared, r, modes = numeric.prepare(run.parameters), run.inputs[event.step].tolist(), event.sides[0]

    def margin(t: float, x: Floats) -> float:
        return float(numeric.margins(t, x, r, prepared, modes)[event.switch])

    y, t = event.states[0], event.time
    off = 0.0
    largest = np.max(np.abs(reference.states), axis=0)
    modes_in_x = find_mode_state_indices(numeric)
    for j, scale in enumerate(reference.state_scales.tolist()):
        if j in modes_in_x:  # it is right or wrong, never a little off
            continue
        moved = np.zeros(len(y) - 1)
        moved[j] = PROBE_FRACTION * scale
        slope = abs(margin(t, y[:-1] + moved) - margin(t, y[:-1] - moved)) / (2 * moved[j])
        off += slope * (float(bounds[j]) + ROUND_OFF_ALLOWANCE * float(largest[j]))
    h = _STEP_BACK_FRACTION * step
    values = [
        margin(t - back, advance_with_held_modes(numeric, t, y, t - back, r, prepared, modes)[:-1])
        for back in (0.0, h, 2.0 * h)
    ]
    rate = (3.0 * values[0] - 4.0 * values[1] + values[2]) / (2.0 * h)
    curve = (values[0] - 2.0 * values[1] + values[2]) / h**2
    return _MarginNearZero(off, max(-rate, 0.0), abs(curve))


@dataclass(frozen=True, slots=True)
class ValuesNearEvents:
    """Possible values at a point near events: the reference's, and with each event later or earlier.

    The reference's own is there because the others know of one event each, and another may lie before the point.

    Attributes:
        values: All variables, a row for each.
        modes: Of each.
    """

    values: Floats
    modes: tuple[SwitchModes, ...]


def find_values_near_events(reference: ReferenceRun, events: Sequence[EventTimeBound]) -> dict[int, ValuesNearEvents]:
    """Return the communication points so near to an event that an FMU may be on either side.

    And those at which a sign may as well hold as slip.
    """
    numeric, run = reference.numeric, reference.experiment
    found: dict[int, ValuesNearEvents] = {}
    if not isinstance(numeric, HybridEquations):
        return {}
    prepared = numeric.prepare(run.parameters)
    for event in events:
        away = np.abs(run.time - event.simultaneous_events.time)
        near = (
            []
            if event.simultaneous_events.from_input_jump
            else np.flatnonzero(away <= event.largest_allowed_difference).tolist()
        )
        for k in filter(None, near):
            t, r = float(run.time[k]), run.inputs_at(k).tolist()
            rows, modes = [], []
            for y, side in evaluate_both_event_sides(numeric, event.simultaneous_events, t, r, prepared):
                rows.append(
                    list_compared_values(numeric, y[:-1], numeric.motion_in_modes(t, y[:-1], r, prepared, side))
                )
                modes.append(side)
            _add_possible_values(found, reference, k, rows, modes)
    for k in range(len(run.time)):
        t, r, x = float(run.time[k]), run.inputs_at(k).tolist(), reference.states[k]
        known = found[k].modes if k in found else ()
        for _, other in find_indeterminate_friction_signs(
            numeric, t, x, r, prepared, reference.modes[k], max(MARGIN_OFFSETS.values())
        ):
            if not any(np.array_equal(other.values, modes.values) for modes in known):
                _add_possible_values(
                    found,
                    reference,
                    k,
                    [list_compared_values(numeric, x, numeric.motion_in_modes(t, x, r, prepared, other))],
                    [other],
                )
    return found


def _add_possible_values(
    found: dict[int, ValuesNearEvents],
    reference: ReferenceRun,
    k: int,
    rows: Sequence[Floats],
    modes: Sequence[SwitchModes],
) -> None:
    """Add possible values at a point to those that are known."""
    known = found.get(k) or ValuesNearEvents(reference.trajectory.values[k : k + 1], (reference.modes[k],))
    found[k] = ValuesNearEvents(np.vstack([known.values, rows]), (*known.modes, *modes))
