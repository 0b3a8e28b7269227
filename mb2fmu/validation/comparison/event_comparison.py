"""Compare events of an FMU with the reference's: presence, instant, and jumps.

An event is recognized by its effect: one of the variables (or of the derivatives of states, where only these jump)
goes from its value before the event in the reference to its value after it. That variable is watched: in Co-Simulation
the FMU is stepped from a kept state to one instant after the other until it is known between which two the event is; in
Model Exchange the importer notes what is there before and after each of its events. What only changes modes, and no
value and no derivative, does nothing to the motion and is not judged.

Judged of each event:

- *its instant*, against ``compute_event_time_bounds``: |t_unit − t_reference| ≤ δ;
- *every variable just before and just after*, against the reference's, each continued to the FMU's own instant with
  modes held, within the bounds of the communication points beside it. Impulses are such variables. Of an output that is
  zero at every communication point and not in between (the torque of a stop that is left before the next one) those
  know nothing: it may be off by as much as the bounds of the states make of it there, to first order, and by 5 % of
  what it is there at most. Events whose order the allowed differences leave open are one occasion: before means before
  the first of them, after means after the last.

A watched event that does not come within half a step (or half-way to the next event) is missing, and fails. In Model
Exchange an event in which a state jumps beyond its bound, and which the reference does not have, fails too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.bounds.event_time_tolerances import PROBE_FRACTION, EventTimeBound
from mb2fmu.validation.comparison.motion_comparison import ErrorBounds
from mb2fmu.validation.modes.hybrid_equations_recognition import is_hybrid
from mb2fmu.validation.reference.event_time_matching import (
    SimultaneousEvents,
    advance_with_held_modes,
    extrapolate_from_event,
)
from mb2fmu.validation.reference.reference_run import ReferenceRun, list_compared_values
from mb2fmu.validation.reference.variable_scales import MAX_INFORMATIVE_FRACTION
from mb2fmu.validation.runs.fmu_run import FmuProcessResult, Operations
from mb2fmu.validation.validation_result import EventJump, EventResult

if TYPE_CHECKING:
    from mb2fmu.validation.runs.fmu_description_for_runs import FmuDescription, InterfaceType

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MAX_EVENTS_TO_LOCATE = 200
"""Events of one experiment that are looked at."""
_CLEAR_JUMP_FACTOR = 20.0  # times its bound a value must jump by to be watched
_DERIVATIVE_JUMP_FRACTION = 1e-3  # part of its magnitude that a derivative must jump by
_TIME_RESOLUTION_FACTOR = 1024.0  # times better than what is allowed an instant is looked for
_NEGLIGIBLE_FRACTION = 1e-9  # part of a variable's scale
_REPORTED_JUMP_COUNT = 3  # of an event that are named


@dataclass(frozen=True, slots=True)
class EventToLocate:
    """An event of the reference to find in the FMU.

    Attributes:
        time_bound: The event of the reference.
        earliest: From here on it may come, s.
        latest: Up to here, s.
        variable_index: Among the watched variables; -1: not watched.
        values: All watched variables just before and just after, shape (2, n).
        slopes: How those change with time, shape (2, n).
        reason: Why it is not judged; empty if it is.
        grazing_events_before: Grazing events that may come before this one, and those that may have come, as far as
            their time bounds show.
        grazing_events_after: That may come after this one, but may have come already.
    """

    time_bound: EventTimeBound
    earliest: float
    latest: float
    variable_index: int
    values: Floats
    slopes: Floats
    reason: str
    grazing_events_before: tuple[EventTimeBound, ...] = ()
    grazing_events_after: tuple[EventTimeBound, ...] = ()

    @property
    def is_of_several(self) -> bool:
        """Whether it consists of several events that cannot be distinguished by their times."""
        return self.time_bound.simultaneous_events.count > 1

    def localization_request(self, kind: InterfaceType) -> dict[str, float]:
        """Return the request for ``mb2fmu.fmu.runner.co_simulation_event_search``."""
        (before, after), (slope_before, slope_after) = (
            self.values[:, self.variable_index].tolist(),
            self.slopes[:, self.variable_index].tolist(),
        )
        allowed_difference = self.time_bound.allowed_differences[kind]
        time = self.time_bound.simultaneous_events.time
        return {
            "low": self.earliest,
            "high": self.latest,
            "at": time,
            "near": allowed_difference,
            "around": allowed_difference if self.is_of_several else 0.0,
            "fine": max(allowed_difference / _TIME_RESOLUTION_FACTOR, 4.0 * float(np.spacing(time))),
            "place": self.variable_index,
            "sign": 1.0 if after > before else -1.0,
            "level": 0.5 * (before + after),
            "rate": 0.5 * (slope_before + slope_after),
        }

    def has_passed(self, request: Mapping[str, float], time: float, values: Sequence[float]) -> bool:
        """Return whether the event has happened, by the values at an instant."""
        level = request["level"] + request["rate"] * (time - request["at"])
        return request["sign"] * (values[self.variable_index] - level) > 0.0


def list_variables_to_read_at_events(reference: ReferenceRun, description: FmuDescription) -> tuple[str, ...]:
    """Return the variables to read at events: all compared ones, then derivatives that the FMU has as variables."""
    if not is_hybrid(reference.numeric):
        return ()
    return (*(v.name for v in reference.variables), *_find_derivative_variables(reference, description).values())


def _find_derivative_variables(reference: ReferenceRun, description: FmuDescription) -> dict[int, str]:
    """Return number of a state → the FMU's variable for its derivative."""
    names = dict(description.state_derivative_pairs)
    states = [reference.variables[c].name for c in reference.state_columns]
    return {i: names[name] for i, name in enumerate(states) if name in names}


def select_reference_events(
    reference: ReferenceRun, limits: ErrorBounds, description: FmuDescription
) -> tuple[EventToLocate, ...]:
    """Return the events of a reference, at most ``MAX_EVENTS_TO_LOCATE``, except those caused by jumps of inputs."""
    numeric = reference.numeric
    if not is_hybrid(numeric):
        return ()
    rates = list(_find_derivative_variables(reference, description))
    events = [event for event in limits.event_time_bounds if not event.simultaneous_events.from_input_jump]
    grazing = [k for k, event in enumerate(events) if event.grazing]
    candidates = (_form_watched_event(reference, limits, events, k, rates, grazing) for k in range(len(events)))
    return tuple(
        islice(
            (
                watched
                for watched in candidates
                if watched.variable_index >= 0 or _list_largest_jumps(reference, watched.values)
            ),
            MAX_EVENTS_TO_LOCATE,
        )
    )


def describe_events_not_located(limits: ErrorBounds, watched_events: Sequence[EventToLocate]) -> str:
    """Describe how many events come after the last watched one; empty if none does."""
    if len(watched_events) < MAX_EVENTS_TO_LOCATE:
        return ""
    last_time = watched_events[-1].time_bound.simultaneous_events.time
    later_count = sum(
        event.simultaneous_events.time > last_time and not event.simultaneous_events.from_input_jump
        for event in limits.event_time_bounds
    )
    return (
        f"{later_count} events after t = {last_time:.6g} s, behind the first {MAX_EVENTS_TO_LOCATE}, are not judged "
        "one by one, but by the trajectory at the communication points only"
        if later_count
        else ""
    )


def _form_watched_event(
    reference: ReferenceRun,
    limits: ErrorBounds,
    events: Sequence[EventTimeBound],
    k: int,
    rates: list[int],
    grazing: Sequence[int],
) -> EventToLocate:
    """Return the watch of one event; ``grazing``: numbers of the events that graze, in order."""
    time_bound, time, stop = events[k], reference.trajectory.time, float(reference.trajectory.time[-1])
    event_group, allowed_difference = time_bound.simultaneous_events, time_bound.largest_allowed_difference
    half_widths = [0.5 * float(np.min(np.diff(time)))] * 2
    for direction, neighbour in ((0, k - 1), (1, k + 1)):
        if 0 <= neighbour < len(events):
            gap = abs(events[neighbour].simultaneous_events.time - event_group.time)
            neighbour_difference = 0.0 if events[neighbour].grazing else events[neighbour].largest_allowed_difference
            half_widths[direction] = min(
                half_widths[direction], gap * allowed_difference / (allowed_difference + neighbour_difference)
            )
    values, slopes = _evaluate_beside_event(reference, event_group, rates)
    undecided_times = _compute_undecided_times(values, slopes)
    variable_index = _find_clearest_jump(
        reference, limits, event_group, values, rates, undecided_times > allowed_difference
    )
    if variable_index >= 0:
        half_widths = [min(half_width, float(undecided_times[variable_index])) for half_width in half_widths]
    reason = ""
    horizon = float(time[int(np.min(limits.predictable_points[list(reference.state_columns)])) - 1])
    if time_bound.grazing:
        reason = "it grazes: its surface is only touched, as far as can be determined"
    elif variable_index < 0:
        reason = "nothing jumps there by more than is allowed anyway, or than it changes in the time allowed"
    elif variable_index >= len(reference.variables) and _inputs_jump(reference, time_bound):
        reason = "only rates change there by more than is allowed anyway, and those jump with the inputs, too"
    elif event_group.time > horizon:
        reason = "the motion cannot be judged so late"
    elif not allowed_difference < min(event_group.time, stop - event_group.time):
        reason = "it is too near to the start or the end"
    elif allowed_difference > min(half_widths):
        reason = "it cannot be distinguished from those beside it"
    earliest, latest = max(event_group.time - half_widths[0], 0.0), min(event_group.time + half_widths[1], stop)
    neighbours = [i for i in grazing if i != k and _is_possible_beside(events[i], time_bound)]
    events_before, events_after = (
        tuple(events[i] for i in side) for side in ([i for i in neighbours if i < k], [i for i in neighbours if i > k])
    )
    return EventToLocate(
        time_bound, earliest, latest, variable_index, values, slopes, reason, events_before, events_after
    )


def _compute_undecided_times(values: Floats, slopes: Floats) -> Floats:
    """Return how far from an event each watched value is on one side of it or the other beyond doubt, s; shape (n,).

    Beside a jump J both sides go on with their own slopes. After J / (difference of slopes) they meet, and no level
    lies between them; up to half of that time one does.
    """
    jumps, slope_changes = np.abs(values[1] - values[0]), np.abs(slopes[1] - slopes[0])
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        return np.where(jumps > 0.0, 0.5 * jumps / slope_changes, 0.0)


def _is_possible_beside(event: EventTimeBound, watched: EventTimeBound) -> bool:
    """Return whether an event may happen between the instants at which values beside another one are read."""
    half_width = watched.largest_allowed_difference if watched.simultaneous_events.count > 1 else 0.0
    distance = abs(event.simultaneous_events.time - watched.simultaneous_events.time)
    return distance <= event.largest_allowed_difference + half_width


def _evaluate_beside_event(
    reference: ReferenceRun, event_group: SimultaneousEvents, rates: Sequence[int]
) -> tuple[Floats, Floats]:
    """Return all watched values just before and after an event, and their slopes, shapes (2, n)."""
    time_step = 1e-4 * float(np.min(np.diff(reference.trajectory.time)))
    step = event_group.first.step  # beyond it outputs may jump, which is no slope
    values, values_later = (
        np.array([_extrapolate_to_instant(reference, event_group, side, time, rates, step) for side in (0, 1)])
        for time in (event_group.time, event_group.time + time_step)
    )
    return values, (values_later - values) / time_step


def _extrapolate_to_instant(
    reference: ReferenceRun,
    event_group: SimultaneousEvents,
    side: int,
    time: float,
    rates: Sequence[int],
    step: int | None = None,
) -> Floats:
    """Return all watched values on a side of an event (0: before it), extrapolated to an instant; shape (n,).

    Beyond the communication point beside the event the inputs of the next step hold: values are read so far from events
    that belong together that a point may lie between. ``step``: whose inputs hold throughout, if given.
    """
    numeric, run = reference.numeric, reference.experiment
    assert is_hybrid(numeric)
    prepared, step_at_event = numeric.prepare(run.parameters), event_group.first.step if step is None else step
    point, step_there = (
        _find_communication_point_between(run.time, step_at_event, time) if step is None else (time, step)
    )
    inputs_at_event, inputs = run.inputs[step_at_event].tolist(), run.inputs[step_there].tolist()
    y_at_point, modes = extrapolate_from_event(numeric, event_group, side, point, inputs_at_event, prepared)
    y = advance_with_held_modes(numeric, point, y_at_point, time, inputs, prepared, modes)
    motion = numeric.motion_in_modes(time, y[:-1], inputs, prepared, modes)
    return np.append(list_compared_values(numeric, y[:-1], motion), motion.x_dot[list(rates)])


def _find_communication_point_between(times: Floats, step: int, instant: float) -> tuple[float, int]:
    """Return the communication point between a step and an instant, s, and the step in which the instant lies.

    The instant and the step themselves where it is within the step, or where the experiment ends.
    """
    if step > 0 and instant < times[step]:
        return float(times[step]), step - 1
    if step + 2 < len(times) and instant > times[step + 1]:
        return float(times[step + 1]), step + 1
    return instant, step


def _list_possible_steps(reference: ReferenceRun, limit: EventTimeBound) -> tuple[int, ...]:
    """Return the steps whose inputs may hold at an event: its own, and at a communication point the one beside it, too.

    There inputs may jump: an event at 0.1 s comes at the end of a step to one who finds it a little early, and at the
    beginning of the next to one who finds it a little late.
    """
    time, event_step, allowed_difference = (
        reference.experiment.time,
        limit.simultaneous_events.first.step,
        limit.largest_allowed_difference,
    )
    instant, last_step = limit.simultaneous_events.time, len(time) - 2
    at_start = event_step > 0 and instant - float(time[event_step]) <= allowed_difference
    at_end = event_step < last_step and float(time[event_step + 1]) - instant <= allowed_difference
    return (event_step, *([event_step - 1] if at_start else []), *([event_step + 1] if at_end else []))


def _inputs_jump(reference: ReferenceRun, limit: EventTimeBound) -> bool:
    """Return whether an event comes at a communication point at which inputs jump, too."""
    inputs, event_step = reference.experiment.inputs, limit.simultaneous_events.first.step
    return any(not np.array_equal(inputs[event_step], inputs[step]) for step in _list_possible_steps(reference, limit))


def _compute_bounds_at_event(reference: ReferenceRun, limits: ErrorBounds, time: float) -> Floats:
    """Return bounds of all variables at an event: those of the communication points beside it, shape (n,)."""
    after = min(int(np.searchsorted(reference.trajectory.time, time)), len(limits.values) - 1)
    return np.asarray(np.maximum(limits.values[max(after - 1, 0)], limits.values[after]))


def _find_clearest_jump(
    reference: ReferenceRun,
    limits: ErrorBounds,
    event_group: SimultaneousEvents,
    values: Floats,
    rates: Sequence[int],
    is_decided: Flags,
) -> int:
    """Return the index of the clearest jump: of a value, or else of a derivative; -1: none.

    ``is_decided``: which values can be watched, shape (n,).
    """
    n = len(reference.variables)
    jumps = np.where(is_decided, np.abs(values[1] - values[0]), 0.0)
    bound = _compute_bounds_at_event(reference, limits, event_group.time)
    clear_jumps = np.where(jumps[:n] > _CLEAR_JUMP_FACTOR * bound, jumps[:n] / reference.scales, 0.0)
    if np.any(clear_jumps > 0.0):
        return int(np.argmax(clear_jumps))
    typical_rates = reference.state_scales[list(rates)] / float(reference.trajectory.time[-1])
    rate_jumps = jumps[n:] / np.maximum(np.max(np.abs(values[:, n:]), axis=0), typical_rates)
    return n + int(np.argmax(rate_jumps)) if len(rate_jumps) and np.max(rate_jumps) > _DERIVATIVE_JUMP_FRACTION else -1


def plan_event_location_sessions(
    watched_events: Sequence[Sequence[EventToLocate]],
    kind: InterfaceType,
    description: FmuDescription,
    watched: Sequence[str],
) -> dict[str, Operations]:
    """Return sessions for the events of each experiment in Co-Simulation; none if the state cannot be saved."""
    sessions: dict[str, Operations] = {}
    references = [description.variables[name].reference for name in watched]
    if kind == "CoSimulation" and description.capabilities[kind].states and description.any_step:
        for experiment_index, events_of_experiment in enumerate(watched_events):
            requests = [event.localization_request(kind) for event in events_of_experiment if not event.reason]
            if requests:
                sessions[f"events {experiment_index}"] = [["watch", experiment_index, requests, references]]
    return sessions


def compare_events(
    reference: ReferenceRun,
    limits: ErrorBounds,
    watched_events: Sequence[EventToLocate],
    fmu_result: FmuProcessResult,
    experiment_index: int,
    description: FmuDescription,
) -> tuple[EventResult, ...]:
    """Return one result per watched event, and one per event that the reference does not have.

    Args:
        reference: Of the experiment.
        limits: Of the reference.
        watched_events: Its events.
        fmu_result: What the FMU did.
        experiment_index: Of the experiment.
        description: Of the FMU.
    """
    rates = list(_find_derivative_variables(reference, description))
    kind = fmu_result.simulations[experiment_index].kind
    recorded_events: Sequence[Any] = (
        fmu_result.events[experiment_index]
        if kind == "ModelExchange"
        else _read_session_findings(fmu_result, experiment_index)
    )
    session_results = iter(recorded_events) if kind == "CoSimulation" else None
    results = []
    for event in watched_events:
        if event.reason:
            results.append(_form_unjudged_result(reference, event, kind, event.reason))
            continue
        recorded_event = (
            next(session_results, "not looked at")
            if session_results
            else _find_model_exchange_event(event, kind, recorded_events)
        )
        results.append(_judge_event(reference, limits, event, kind, recorded_event, rates))
    if kind == "ModelExchange" and is_hybrid(reference.numeric):  # else nothing was watched
        results += _find_unexpected_events(reference, limits, watched_events, recorded_events)
    return tuple(results)


def _read_session_findings(fmu_result: FmuProcessResult, experiment_index: int) -> Sequence[Any]:
    """Return the findings in Co-Simulation; none where the session failed."""
    recorded = fmu_result.recorded_values.get(f"events {experiment_index}", [])
    return recorded[0] if recorded and isinstance(recorded[0], list) else ()


def _find_model_exchange_event(watched: EventToLocate, kind: InterfaceType, recorded_events: Sequence[Any]) -> Any:
    """Return the event of Model Exchange in which the watched variable changes side: as the search in Co-Simulation."""
    request, allowed = watched.localization_request(kind), watched.time_bound.allowed_differences[kind]
    candidates = [event for event in recorded_events if watched.earliest <= event[0] <= watched.latest]
    for time, before, after in candidates:
        if watched.has_passed(request, time, after) and not watched.has_passed(request, time, before):
            last = candidates[-1] if candidates[-1][0] - time <= allowed else [time, before, after]
            allowed_before = allowed if watched.is_of_several else 0.0
            first = next(each for each in candidates if time - each[0] <= allowed_before)
            return [first[0], first[1], last[0], last[2], time, time]
    return "none"


def _judge_event(
    reference: ReferenceRun,
    limits: ErrorBounds,
    event: EventToLocate,
    kind: InterfaceType,
    recorded_event: Any,
    rates: Sequence[int],
) -> EventResult:
    """Return the verdict on one event."""
    if recorded_event == "not looked at":
        return _form_unjudged_result(
            reference, event, kind, "the FMU's state cannot be kept and restored, or that failed"
        )
    event_group, allowed = event.time_bound.simultaneous_events, event.time_bound.allowed_differences[kind]
    if isinstance(recorded_event, str):
        description = "no such event" if recorded_event == "none" else "it is there before"
        text = f"{description}, between {event.earliest:.9g} s and {event.latest:.9g} s"
        return _form_event_result(reference, event, kind, float("nan"), float("inf"), "", "failed", text)
    before_time, before, after_time, after, low, high = recorded_event
    time = 0.5 * (low + high)
    instants_and_resolution = ((before_time, after_time), high - low)
    error_ratios = _compute_error_ratios(reference, limits, event, instants_and_resolution, [before, after], rates)
    direction, column = divmod(int(np.argmax(error_ratios)), error_ratios.shape[1])
    worst_ratio, time_ratio = float(error_ratios[direction, column]), abs(time - event_group.time) / allowed
    name = reference.variables[column].name
    reason = ""
    if time_ratio > 1.0:
        reason = f"it is {abs(time - event_group.time):.3g} s {'late' if time > event_group.time else 'early'}"
    elif worst_ratio > 1.0:
        reason = f"{name} {'after' if direction else 'before'} it is {worst_ratio:.3g} times its bound off"
    verdict = "failed" if reason else "passed"
    return _form_event_result(reference, event, kind, time, worst_ratio, name, verdict, reason)


def _compute_error_ratios(
    reference: ReferenceRun,
    limits: ErrorBounds,
    event: EventToLocate,
    instants_and_resolution: tuple[tuple[float, float], float],
    fmu_values: Sequence[Sequence[float]],
    rates: Sequence[int],
) -> Floats:
    """Return errors of all variables just before and after an event over their bounds, shape (2, n).

    ``instants_and_resolution``: instants before and after, and resolution, s. ``fmu_values``: what it showed then.
    """
    n, (times, resolution) = len(reference.variables), instants_and_resolution
    bound = np.maximum(_compute_bounds_at_event(reference, limits, times[0]), np.finfo(float).tiny)
    ratios = np.full((2, n), np.inf)
    for direction, neighbours in enumerate((event.grazing_events_before, event.grazing_events_after)):
        reading_uncertainty = 2.0 * resolution * np.abs(event.slopes[direction, :n])
        own_group = event.time_bound.simultaneous_events
        steps = _list_possible_steps(reference, event.time_bound)
        own_candidates = ((own_group, None if step == own_group.first.step else step) for step in steps)
        for event_group, step in (
            *own_candidates,
            *((other.simultaneous_events, None) for other in neighbours),
        ):
            is_known = event_group is own_group and step is None
            value_at_event, value_read = (
                event.values[direction]
                if is_known and instant == own_group.time
                else _extrapolate_to_instant(reference, event_group, direction, instant, rates, step)
                for instant in (own_group.time, times[direction])
            )
            reference_rows = np.array([value_at_event[:n], value_read[:n]])
            distances = np.min(np.abs(np.array(fmu_values[direction][:n]) - reference_rows), axis=0)
            direction_ratios = np.maximum(distances - reading_uncertainty, 0.0) / bound
            if np.any(direction_ratios > 1.0):  # else it passes, whatever outputs make of the states
                direction_ratios *= bound / np.maximum(
                    bound, _carry_state_bounds_to_outputs(reference, event, direction, bound)
                )
            ratios[direction] = min(
                ratios[direction], np.where(np.isfinite(direction_ratios), direction_ratios, np.inf), key=np.max
            )
    return ratios


def _carry_state_bounds_to_outputs(
    reference: ReferenceRun, watched: EventToLocate, direction: int, bound: Floats
) -> Floats:
    """Return how far outputs on one side of an event may be off since states may be off by their bounds, shape (n,).

    States and what has no such bound have 0. ``bound``: of all variables beside the event.
    """
    numeric, run, event_group = reference.numeric, reference.experiment, watched.time_bound.simultaneous_events
    assert is_hybrid(numeric)
    located_event = (event_group.first, event_group.last)[direction]
    prepared, inputs = numeric.prepare(run.parameters), run.inputs[event_group.first.step].tolist()
    x, modes, columns = (
        located_event.states[direction][:-1],
        located_event.sides[direction],
        list(reference.state_columns),
    )

    def values(state: Floats) -> Floats:
        """Return all variables at a state."""
        return list_compared_values(
            numeric, state, numeric.motion_in_modes(located_event.time, state, inputs, prepared, modes)
        )

    output_errors = np.zeros(len(reference.variables))
    for j, scale in enumerate(reference.state_scales.tolist()):
        displacement = np.zeros(len(x))
        displacement[j] = PROBE_FRACTION * scale
        output_errors += (
            np.abs(values(x + displacement) - values(x - displacement)) / (2.0 * displacement[j]) * bound[columns[j]]
        )
    output_errors = np.minimum(
        np.where(np.isfinite(output_errors), output_errors, 0.0),
        MAX_INFORMATIVE_FRACTION * np.max(np.abs(watched.values[:, : len(output_errors)]), 0),
    )
    output_errors[columns] = 0.0
    return np.asarray(output_errors)


def _form_unjudged_result(
    reference: ReferenceRun, event: EventToLocate, kind: InterfaceType, reason: str
) -> EventResult:
    """Return the result of an event that is not judged, with the reason."""
    return _form_event_result(reference, event, kind, float("nan"), 0.0, "", "unjudged", reason)


def _form_event_result(
    reference: ReferenceRun,
    event: EventToLocate,
    kind: InterfaceType,
    time: float,
    worst_ratio: float,
    name: str,
    verdict: Any,
    reason: str,
) -> EventResult:
    """Return one result."""
    event_group, allowed = event.time_bound.simultaneous_events, event.time_bound.allowed_differences[kind]
    since_first = time - event_group.time
    difference = min(since_first, time - event_group.last.time, key=abs)
    ratio = worst_ratio if np.isnan(since_first) else max(worst_ratio, abs(since_first) / allowed)
    return EventResult(
        name=event_group.first.name,
        kind=kind,
        time=event_group.time,
        found=time,
        difference=difference,
        allowed=allowed,
        ratio=float(ratio),
        worst=name,
        jumps=_list_largest_jumps(reference, event.values),
        grazing=event.time_bound.grazing,
        verdict=verdict,
        reason=reason,
    )


def _list_largest_jumps(reference: ReferenceRun, values: Floats) -> tuple[EventJump, ...]:
    """Return the largest jump, by the reference."""
    n = len(reference.variables)
    before, after = np.where(np.abs(values[:, :n]) < _NEGLIGIBLE_FRACTION * reference.scales, 0.0, values[:, :n])
    sizes = np.abs(after - before) / reference.scales
    order = [i for i in np.argsort(-sizes).tolist() if sizes[i] > _NEGLIGIBLE_FRACTION][:_REPORTED_JUMP_COUNT]
    return tuple(
        EventJump(reference.variables[i].name, reference.variables[i].unit, float(before[i]), float(after[i]))
        for i in order
    )


def _find_unexpected_events(
    reference: ReferenceRun,
    limits: ErrorBounds,
    watched_events: Sequence[EventToLocate],
    recorded_events: Sequence[Any],
) -> list[EventResult]:
    """Return events of Model Exchange in which a state jumps and that the reference does not have."""
    columns, results = list(reference.state_columns), []
    times = np.array([event.time for event in reference.events])
    step = float(np.min(np.diff(reference.trajectory.time)))
    end = reference.events[-1].time if len(watched_events) == MAX_EVENTS_TO_LOCATE else float("inf")
    horizon = float(reference.trajectory.time[int(np.min(limits.predictable_points[columns])) - 1])
    for time, before, after in recorded_events:
        if not before:  # nothing is read where the reference has no events: an input that jumps is one to the FMU
            continue
        jump = np.abs(np.array(after) - np.array(before))[columns]
        bound = _compute_bounds_at_event(reference, limits, time)[columns]
        if np.all(jump <= _CLEAR_JUMP_FACTOR * bound) or np.min(np.abs(times - time), initial=np.inf) <= 0.5 * step:
            continue
        if time > min(end, horizon):
            break
        k = columns[int(np.argmax(jump / np.maximum(bound, np.finfo(float).tiny)))]
        variable = reference.variables[k]
        results.append(
            EventResult(
                name="an event that the reference does not have",
                kind="ModelExchange",
                time=float("nan"),
                found=float(time),
                difference=float("nan"),
                allowed=0.0,
                ratio=float("inf"),
                worst=variable.name,
                jumps=(EventJump(variable.name, variable.unit, float(before[k]), float(after[k])),),
                grazing=False,
                verdict="failed",
                reason=f"{variable.name} jumps",
            )
        )
    return results
