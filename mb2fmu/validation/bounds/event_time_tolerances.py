"""Allowed time differences between events of an FMU and of the reference.

The margin m of a switch (positive as long as its mode is right) depends on the states, each of which may be off by its
bound at the communication point before. So m may be off by

    b = Σ_j |∂m/∂x_j| bound_j + round-off + what the FMU's indicators are off by

and falls with the rate m'. The event may be early or late by the δ that solves |m'| δ − |m''| δ² / 2 = b, by twice
the uncertainty of the reference's own instant, and by round-off. Where m'² ≤ 4 b |m''| the margin only touches zero as
far as the uncertainty shows: the event is *grazing*; its instant, and whether there is one, is not judged. So it is
where another sign begins to slip by a force that is no larger than what indicators are off by, and where a condition
tests a quantity that is zero all the time, whose sign is that of round-off. Such a sign's own changes do nothing, and
are left out.

Of a condition on time alone no state is off: its δ is round-off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import ValidationError
from mb2fmu.validation.bounds.marginal_friction_modes import find_indeterminate_friction_signs
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.event_time_matching import (
    SIMULTANEOUS_FRACTION,
    SimultaneousEvents,
    advance_with_held_modes,
    drop_round_off_events,
    evaluate_both_event_sides,
    find_round_off_switches,
    group_simultaneous_events,
)
from mb2fmu.validation.reference.perturbed_contact_starts import find_switch_mode_state_indices
from mb2fmu.validation.reference.reference_run import ReferenceRun, list_compared_values
from mb2fmu.validation.reference.variable_scales import EPSILON, ROUND_OFF_ALLOWANCE

if TYPE_CHECKING:
    from mb2fmu.validation.modes.located_events import LocatedEvent
    from mb2fmu.validation.modes.mode_equations import SwitchModes
    from mb2fmu.validation.runs.fmu_description_for_runs import InterfaceType

Floats = npt.NDArray[np.float64]

MARGIN_OFFSETS: Mapping[InterfaceType, float] = MappingProxyType({"CoSimulation": 1e-12, "ModelExchange": 2e-10})
"""What margins may be off by, over their sizes: FMUs show indicators off by 1e-10, and find their own to 1e-13."""
ROOT_SEARCH_TOLERANCE = 200 * EPSILON
"""CVODE stops looking for an event within this part of time and step."""
DUE_TIME_FRACTION = 1e-12  # of the experiment: an instant so near behind a point falls on it
PROBE_FRACTION = 1e-6
"""Part of a state's scale by which it is moved to see what depends on it."""
_SMALLEST_NUMBER = float(np.finfo(float).tiny)
_STEP_BACK_FRACTION = 1e-2  # of a communication step


@dataclass(frozen=True, slots=True)
class EventTimeBound:
    """An event of the reference, and the allowed difference of the FMU's event.

    Attributes:
        simultaneous_events: The event, or several that cannot be distinguished.
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
    if not is_hybrid(reference.numeric) or not reference.events:
        return ()
    events, round_off_switches = drop_round_off_events(reference.events), find_round_off_switches(reference.events)
    step = float(np.min(np.diff(reference.trajectory.time)))
    state_errors = bounds[:, list(reference.state_columns)]
    state_errors = state_errors + ROUND_OFF_ALLOWANCE * np.max(np.abs(reference.states), axis=0)
    steady_clocks: dict[int, _EventMarginNearZero] = {}
    single_bounds = [
        _bound_single_event(reference, state_errors, event, step, round_off_switches, steady_clocks) for event in events
    ]
    gaps, previous_width = [], 0.0
    for bound in single_bounds:
        width = 0.0 if bound.grazing else bound.largest_allowed_difference
        gaps.append(max(SIMULTANEOUS_FRACTION * step, min(previous_width + width, step)))
        previous_width = width
    event_bounds, first = [], 0
    for event_group in group_simultaneous_events(events, gaps):
        group_bounds = single_bounds[first : first + event_group.count]
        first += event_group.count
        allowed_differences = {
            kind: max(
                part.simultaneous_events.time - event_group.time + part.allowed_differences[kind]
                for part in group_bounds
            )
            for kind in MARGIN_OFFSETS
        }
        event_bounds.append(
            EventTimeBound(
                event_group, MappingProxyType(allowed_differences), any(part.grazing for part in group_bounds)
            )
        )
    return tuple(event_bounds)


def _bound_single_event(
    reference: ReferenceRun,
    state_errors: Floats,
    event: LocatedEvent,
    step: float,
    round_off_switches: frozenset[int],
    steady_clocks: dict[int, _EventMarginNearZero],
) -> EventTimeBound:
    """Return one event by itself, as an occasion.

    Args:
        reference: Its motion has the event.
        state_errors: How far each state may be off at each communication point, shape (n_t, n_x).
        event: The event.
        step: Shortest communication step, s.
        round_off_switches: Switches that round-off changes.
        steady_clocks: Margins of clocks that fall alike before each of their events; those of this one are added.
    """
    event_group, time = SimultaneousEvents(event, event, 1), reference.trajectory.time
    smallest_difference = 2 * reference.event_uncertainty + ROUND_OFF_ALLOWANCE * max(event.time, step)
    if event.from_input_jump:
        return EventTimeBound(
            event_group, MappingProxyType(dict.fromkeys(MARGIN_OFFSETS, smallest_difference)), grazing=False
        )
    row = max(int(np.searchsorted(time, event.time)) - 1, 0)
    margin_near_zero = steady_clocks.get(event.switch) or _measure_margin_near_zero(
        reference, event, state_errors[row], step
    )
    assert is_hybrid(reference.numeric)
    if event.switch in reference.numeric.frozen.steady_clock_switches:
        steady_clocks[event.switch] = margin_near_zero
    allowed_differences: dict[InterfaceType, float] = {}
    grazing = False
    rate, second_derivative = margin_near_zero.rate, margin_near_zero.second_derivative
    for kind, offset in MARGIN_OFFSETS.items():
        margin_error = margin_near_zero.uncertainty + offset
        grazes = rate**2 <= 4.0 * margin_error * second_derivative
        grazing |= grazes
        root_search_error = ROOT_SEARCH_TOLERANCE * (event.time + step) if kind == "ModelExchange" else 0.0
        final_rate = math.sqrt(max(rate**2 - 2.0 * margin_error * second_derivative, 0.0))
        delay = 2.0 * margin_error / (rate + final_rate + _SMALLEST_NUMBER)
        time_near_zero = (
            2.0 * math.sqrt(margin_error / second_derivative)
            if 4.0 * margin_error < second_derivative * step**2
            else step
        )
        allowed_differences[kind] = (time_near_zero if grazes else delay) + smallest_difference + root_search_error
    grazing = (
        grazing
        or _has_indeterminate_friction(reference, event)
        or _depends_on_round_off_switch(reference, event, round_off_switches)
    )
    return EventTimeBound(event_group, MappingProxyType(allowed_differences), grazing)


def _depends_on_round_off_switch(
    reference: ReferenceRun, event: LocatedEvent, round_off_switches: frozenset[int]
) -> bool:
    """Return whether conditions at an event are what they are by a switch that only round-off changes."""
    numeric, run = reference.numeric, reference.experiment
    assert is_hybrid(numeric)
    (before, after), other_switches = event.sides, round_off_switches - {event.switch}
    if not other_switches:
        return False
    inputs, prepared = run.inputs[event.step].tolist(), numeric.prepare(run.parameters)
    modes_of_others = before.copy()
    modes_of_others.values[event.switch] = after.values[event.switch]
    for x, modes in zip(event.states[:, :-1], (modes_of_others, after), strict=True):
        margins = numeric.margins(event.time, x, inputs, prepared, modes)
        for i in other_switches:
            flipped = modes.values.copy()
            flipped[i] = 1.0 - flipped[i]
            first_motion, second_motion = (
                numeric.evaluate_in_modes(event.time, x, inputs, prepared, side) for side in (modes.values, flipped)
            )
            if abs(margins[i]) <= max(MARGIN_OFFSETS.values()) and not np.array_equal(
                first_motion.conditions, second_motion.conditions
            ):
                return True
    return False


def _has_indeterminate_friction(reference: ReferenceRun, event: LocatedEvent) -> bool:
    """Return whether another sign changes its mode at an event, and could as well not do so."""
    numeric, run = reference.numeric, reference.experiment
    assert is_hybrid(numeric)
    changed = {i for i, (old, new) in enumerate(zip(event.before, event.after, strict=True)) if old != new}
    other_switches = changed - {event.switch}
    if not other_switches:
        return False
    inputs, prepared = run.inputs[event.step].tolist(), numeric.prepare(run.parameters)
    largest_offset = max(MARGIN_OFFSETS.values())
    indeterminate = find_indeterminate_friction_signs(
        numeric, event.time, event.states[1][:-1], inputs, prepared, event.sides[1], largest_offset
    )
    return any(i in other_switches for i, _ in indeterminate)


@dataclass(frozen=True, slots=True)
class _EventMarginNearZero:
    """Behaviour of a margin near zero: its uncertainty, |m'| and |m''|."""

    uncertainty: float
    rate: float
    second_derivative: float


def _measure_margin_near_zero(
    reference: ReferenceRun, event: LocatedEvent, state_errors: Floats, step: float
) -> _EventMarginNearZero:
    """Return how a switch's margin falls at an event: its uncertainty b, its rate −m' and |m''|, from differences.

    ``state_errors``: how far each state may be off, shape (n_x,).
    """
    numeric, run = reference.numeric, reference.experiment
    assert is_hybrid(numeric)
    prepared, inputs, modes = numeric.prepare(run.parameters), run.inputs[event.step].tolist(), event.sides[0]

    def margin(t: float, x: Floats) -> float:
        return float(numeric.margins(t, x, inputs, prepared, modes)[event.switch])

    y, t = event.states[0], event.time
    looks_at_time_alone = event.switch in numeric.frozen.clock_switches
    uncertainty = 0.0
    modes_in_x = find_switch_mode_state_indices(numeric)
    for j, scale in enumerate(() if looks_at_time_alone else reference.state_scales.tolist()):
        if j in modes_in_x:  # it is right or wrong, never a little off
            continue
        displacement = np.zeros(len(y) - 1)
        displacement[j] = PROBE_FRACTION * scale
        slope = abs(margin(t, y[:-1] + displacement) - margin(t, y[:-1] - displacement)) / (2 * displacement[j])
        uncertainty += slope * float(state_errors[j])
    time_step = _STEP_BACK_FRACTION * step
    values = []
    for sample_time in (t, t - time_step, t - 2.0 * time_step):
        y_earlier = (
            y if looks_at_time_alone else advance_with_held_modes(numeric, t, y, sample_time, inputs, prepared, modes)
        )
        values.append(margin(sample_time, y_earlier[:-1]))
    rate = (3.0 * values[0] - 4.0 * values[1] + values[2]) / (2.0 * time_step)
    second_derivative = (values[0] - 2.0 * values[1] + values[2]) / time_step**2
    return _EventMarginNearZero(uncertainty, max(-rate, 0.0), abs(second_derivative))


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


def find_communication_points_near_events(
    reference: ReferenceRun, events: Sequence[EventTimeBound]
) -> dict[int, ValuesNearEvents]:
    """Return the communication points so near to an event that an FMU may be on either side.

    And those at which a sign may as well hold as slip.
    """
    numeric, run = reference.numeric, reference.experiment
    values_by_point: dict[int, ValuesNearEvents] = {}
    if not is_hybrid(numeric):
        return {}
    prepared = numeric.prepare(run.parameters)
    near = [(k, event.simultaneous_events) for event in events for k in _find_points_near(run.time, event) if k]
    if near:
        points = np.array([k for k, _ in near])
        time, inputs = run.time[points], run.inputs_at(points)
        sides = [
            side
            for (_, event), t, r in zip(near, time.tolist(), inputs.tolist(), strict=True)
            for side in evaluate_both_event_sides(numeric, event, t, r, prepared)
        ]
        states, modes = np.array([y[:-1] for y, _ in sides]), [modes_of_side for _, modes_of_side in sides]
        motions = numeric.motions_in_modes(np.repeat(time, 2), states, np.repeat(inputs, 2, axis=0), prepared, modes)
        rows = list_compared_values(numeric, states, motions)
        for i, k in enumerate(points.tolist()):
            _add_possible_values(values_by_point, reference, k, rows[2 * i : 2 * i + 2], modes[2 * i : 2 * i + 2])
    _add_values_behind_end(values_by_point, reference)
    for k in range(len(run.time)):
        t, inputs, x = float(run.time[k]), run.inputs_at(k).tolist(), reference.states[k]
        known_modes = values_by_point[k].modes if k in values_by_point else ()
        for _, other_modes in find_indeterminate_friction_signs(
            numeric, t, x, inputs, prepared, reference.modes[k], max(MARGIN_OFFSETS.values())
        ):
            if not any(np.array_equal(other_modes.values, modes.values) for modes in known_modes):
                motion = numeric.motion_in_modes(t, x, inputs, prepared, other_modes)
                values = list_compared_values(numeric, x, motion)
                _add_possible_values(values_by_point, reference, k, values[None], [other_modes])
    return values_by_point


def _add_values_behind_end(values_by_point: dict[int, ValuesNearEvents], reference: ReferenceRun) -> None:
    """Add values behind an instant that falls on the end, and that the reference's clock has behind it by round-off."""
    numeric, run, last = reference.numeric, reference.experiment, len(reference.states) - 1
    assert is_hybrid(numeric)
    t, inputs, prepared = float(run.time[last]), run.inputs_at(last).tolist(), numeric.prepare(run.parameters)
    modes = reference.modes[last].copy()
    try:
        due_time = (1.0 + DUE_TIME_FRACTION) * t
        x, _ = numeric.settle_modes(due_time, reference.states[last], inputs, prepared, modes, ())
        if not any(modes.values[i] != reference.modes[last].values[i] for i in numeric.frozen.clock_switches):
            return
        values = list_compared_values(numeric, x, numeric.motion_in_modes(t, x, inputs, prepared, modes))
    except (ValidationError, ArithmeticError, ValueError):
        return
    _add_possible_values(values_by_point, reference, last, values[None], [modes])


def _find_points_near(time: Floats, event: EventTimeBound) -> list[int]:
    """Return the communication points within an event's allowed difference; none of inputs, which jump at points."""
    if event.simultaneous_events.from_input_jump:
        return []
    instant, difference = event.simultaneous_events.time, event.largest_allowed_difference
    first, last = np.searchsorted(time, (instant - 2.0 * difference, instant + 2.0 * difference))
    return [k for k in range(int(first), int(last)) if abs(time[k] - instant) <= difference]


def _add_possible_values(
    values_by_point: dict[int, ValuesNearEvents],
    reference: ReferenceRun,
    point: int,
    rows: Floats,
    modes: Sequence[SwitchModes],
) -> None:
    """Add possible values at a point to those that are known."""
    known_values = values_by_point.get(point) or ValuesNearEvents(
        reference.trajectory.values[point : point + 1], (reference.modes[point],)
    )
    values_by_point[point] = ValuesNearEvents(np.vstack([known_values.values, rows]), (*known_values.modes, *modes))
