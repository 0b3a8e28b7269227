"""Integrate equations with events: the reference's own method, by NumPy and SciPy alone.

DOP853 goes from one communication point to the next. On every step its own interpolant, of order 7, is looked at; where
a surface has changed its side the instant is bracketed to the last digit, the step is made anew up to there, and modes
are found anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from mb2fmu.first_crossing_search import find_first_crossing
from mb2fmu.validation.compiled.compiled_integration_in_modes import CompiledEventLog, CompiledEventSettlingLimits
from mb2fmu.validation.evaluation_plans.event_iteration_errors import make_alternating_switches_error
from mb2fmu.validation.modes.event_names import format_event_name
from mb2fmu.validation.modes.located_events import IntegrationEventLog, LocatedEvent
from mb2fmu.validation.modes.mode_equations import SwitchModes
from mb2fmu.validation.reference.smooth_integration import (
    TIGHTEST_SOLVER_TOLERANCE,
    make_integration_standstill_error,
    require_slope_at_start,
    return_nan_outside_domain,
)

if TYPE_CHECKING:
    from scipy.integrate import DOP853

    from mb2fmu.validation.compiled.compiled_integration_in_modes import CompiledStepResult
    from mb2fmu.validation.modes.hybrid_equations import HybridEquations

Floats = npt.NDArray[np.float64]

_CHECKS_PER_STEP = 4  # on the way of a step
_FIRST_CHECK_FRACTION = 2.0**-20  # part of a step: the first look behind an event
_MAX_EVENTS = 20_000
_MAX_SIMULTANEOUS_EVENTS = 200  # events without time going on
_SIMULTANEOUS_FRACTION = 1e-6  # of a communication step
_HELD_AT_ZERO_FRACTION = 1e-12  # of a surface's size: what is held at zero stays so near to it


def integrate_with_events(
    numeric: HybridEquations,
    time: Floats,
    inputs: Floats,
    prepared: Sequence[float],
    start: Floats,
    tolerance: float,
    scales: Floats,
    *,
    parts: int,
    projected: bool,
    budget: int,
    event_log: IntegrationEventLog | None = None,
    ends_early: Callable[[Floats], bool] | None = None,
) -> Floats:
    """Return (x, W) at each communication point; arguments: :meth:`.TrajectoryIntegrationProblem.integrate_trajectory`.

    W takes the work of events, too: what the kinetic energy jumps by. ``event_log`` takes the events and modes.
    """
    loop = _EventIntegrationLoop(
        numeric, prepared, max(tolerance, TIGHTEST_SOLVER_TOLERANCE), tolerance * scales, projected, budget,
        event_log if event_log and event_log.records_events else None,
    )  # fmt: skip
    loop.step_size = event_log.step_size if event_log else np.inf
    y = np.empty((len(time), len(start)))
    y[0] = start
    first = inputs[0].tolist()
    if time[0] == 0.0:
        loop.modes, x = numeric.start_modes_and_state(float(time[0]), start[:-1], first, prepared)
        numeric.check_contact_effects(float(time[0]), x, first, prepared, loop.modes)
        y[0] = np.append(x, start[-1])
    else:
        loop.modes = numeric.find_modes(float(time[0]), start[:-1], first, prepared)
    state = y[0].copy()
    log_of_run = event_log or IntegrationEventLog()
    log_of_run.modes.append(loop.modes.copy())
    for k, (begin, end) in enumerate(zip(time[:-1].tolist(), time[1:].tolist(), strict=True)):
        r = inputs[k].tolist()
        loop.number = k
        if k and not np.array_equal(inputs[k], inputs[k - 1]):
            state = loop.state_after_input_jump(begin, state, inputs[k - 1].tolist(), r)
        state = loop.step(begin, end, state, r, parts)
        y[k + 1] = state
        log_of_run.modes.append(loop.modes.copy())
        if ends_early is not None and ends_early(y[: k + 2]):
            break
    log_of_run.step_size, log_of_run.event_count = loop.step_size, loop.event_count
    return y[: len(log_of_run.modes)]


class _EventIntegrationLoop:
    """State of one integration."""

    def __init__(
        self,
        numeric: HybridEquations,
        prepared: Sequence[float],
        relative: float,
        absolute: Floats,
        projected: bool,
        budget: int,
        event_log: IntegrationEventLog | None,
    ) -> None:
        self.numeric, self.prepared = numeric, prepared
        self._relative_tolerance, self._absolute_tolerances = relative, absolute
        self._projected, self._budget, self._event_log = projected, budget, event_log
        self._evaluations_spent = self.event_count = 0
        self._events_at_instant: tuple[float, list[str]] = (-np.inf, [])
        self.step_size = np.inf  # of the next internal step
        self._last_event_time = np.nan  # instant of the last event
        condition_switches = numeric.frozen.condition_switches
        self._matters = np.array([i not in condition_switches for i in range(len(numeric.frozen.switches))], np.bool_)
        """Of each switch whether more than conditions depends on it."""
        self.number = 0  # of the communication step
        self.span = 1.0  # its length in s
        self.modes: SwitchModes

    def state_after_input_jump(self, t: float, y: Floats, before: Sequence[float], r: Sequence[float]) -> Floats:
        """Return the state after inputs have jumped, at a communication point.

        What switches there by itself, with the inputs as they were (a sample at that very instant), comes before: it is
        an event of the motion, and no work of the inputs.
        """
        modes = self.modes.copy()
        self.numeric.settle_modes(t, y[:-1], before, self.prepared, modes, ())
        by_itself = np.flatnonzero(modes.values != self.modes.values)
        if len(by_itself):
            y = self._process_event(t, y, before, by_itself[:1].tolist())
        return self._process_event(t, y, r, ())

    def step(self, begin: float, end: float, y: Floats, r: Sequence[float], parts: int) -> Floats:
        """Integrate from one communication point to the next."""
        self.span = end - begin
        t, largest_step = begin, (end - begin) / parts
        while t < end:
            t, y, has_event = self._integrate_in_c(t, end, y, r, largest_step)
            if t < end and not has_event:
                t, y = self._integrate_to_event(t, end, y, r, largest_step)
        return y

    def _integrate_in_c(
        self, t: float, end: float, y: Floats, r: Sequence[float], largest_step: float
    ) -> tuple[float, Floats, bool]:
        """Integrate by compiled functions as far as they can; return whether they came to an event, which is done."""
        compiled = self.numeric.mode_steps
        if compiled is None:
            return t, y, False
        blocked_lines = self.numeric.find_blocked_contact_lines(t, y[:-1], r, self.prepared, self.modes)
        held_inputs = self.numeric.list_held_inputs(y[:-1], self.modes, blocked_lines)
        if held_inputs is None:
            return t, y, False
        compiled.set_modes(
            self.modes.values, r, self.prepared, self.numeric.margin_offset, held_inputs,
            past_conditions=self.modes.past_conditions,
            set_inputs=[line - self.numeric.contact_line_count for line in blocked_lines],
        )  # fmt: skip
        parts = max(1, math.ceil((end - t) / largest_step * (1.0 - 1e-12)))
        steps = compiled.integrate(
            (t, end), y, min(self.step_size, end - t) if np.isfinite(self.step_size) else np.inf,
            (self._relative_tolerance, self._absolute_tolerances), parts=parts, projected=self._projected,
            behind=self._last_event_time == t, budget=self._budget - self._evaluations_spent,
            limits=self._form_event_limits(largest_step),
        )  # fmt: skip
        self._evaluations_spent += steps.evaluations
        self.step_size = steps.step_size
        if steps.event_count:
            self._take_settled_events(steps)
        if steps.event_margins is None:
            return steps.time, steps.y, steps.is_stopped
        margins_before, margins, *earlier_margins = steps.event_margins
        state = self._process_switch_event(steps.time, steps.y, r, (margins_before, margins), lambda: earlier_margins)
        return steps.time, state, True

    def _form_event_limits(self, longest_step: float) -> CompiledEventSettlingLimits:
        """Return what C may settle by itself; ``longest_step``: in s."""
        instant = _SIMULTANEOUS_FRACTION * self.span
        return CompiledEventSettlingLimits(
            longest_step, instant, _MAX_EVENTS - self.event_count, self._event_log is not None
        )

    def _take_settled_events(self, steps: CompiledStepResult) -> None:
        """Take the modes after events that C has settled, and keep what it recorded of them."""
        self.event_count += steps.event_count
        self._last_event_time = steps.last_event_time
        self.modes = SwitchModes(steps.values, steps.conditions)
        if steps.events:
            self._record_events(steps.events)

    def _make_slope(self, r: Sequence[float]) -> Callable[[float, Any], Any]:
        """Return y' (x' and the power of loads) as a function; NaN where it is not defined, which shortens the step."""

        def slope(t: float, y: Any) -> Any:
            """Return y' at t, s."""
            y_dot = np.empty_like(y)
            y_dot[:-1], y_dot[-1] = self.numeric.slope(t, y[:-1], r, self.prepared, self.modes)
            return y_dot

        return return_nan_outside_domain(slope)

    def _make_solver(self, t: float, y: Floats, end: float, r: Sequence[float], largest_step: float) -> DOP853:
        """Return an integrator from t to `end` at most, starting with the last step size known."""
        from scipy.integrate import DOP853  # takes long to import, and smooth equations do without

        first_step = min(self.step_size, largest_step, end - t)
        solver: DOP853[Any] = DOP853(
            self._make_slope(r), t, y, end, first_step=first_step if np.isfinite(self.step_size) else None,
            max_step=largest_step,
            rtol=self._relative_tolerance, atol=self._absolute_tolerances,  # type: ignore[arg-type] # SciPy takes one per component

        )  # fmt: skip
        require_slope_at_start(t, solver.f, y[np.newaxis])
        return solver

    def _make_step(self, solver: DOP853, y: Floats, r: Sequence[float]) -> None:
        """Make a step; y: where the integration began, for the message.

        Raises:
            ValidationError: If the solver or a contact stands still.
        """
        failure = solver.step()
        if failure:
            self.numeric.check_contact_effects(solver.t, solver.y[:-1], r, self.prepared, self.modes)
            raise make_integration_standstill_error(solver.t, failure.rstrip("."), np.vstack([y, solver.y]))

    def _integrate_to_event(
        self, t: float, end: float, y: Floats, r: Sequence[float], largest_step: float
    ) -> tuple[float, Floats]:
        """Integrate up to the next event, or to the end."""
        solver = self._make_solver(t, y, end, r, largest_step)
        while solver.status == "running":
            before = (solver.t, solver.y.copy())
            self._make_step(solver, y, r)
            if self._evaluations_spent + solver.nfev > self._budget:
                reason = f"{self._budget} evaluations are spent"
                raise make_integration_standstill_error(solver.t, reason, np.vstack([y, solver.y]))
            event_time = self._find_crossing(solver, r)
            if event_time is not None:
                self._evaluations_spent += solver.nfev
                self.step_size = max(solver.t - before[0], 1e-12)
                return self._repeat_step_to_event(*before, event_time, r, largest_step)
            if self._projected:
                x = self.numeric.project(solver.t, solver.y[:-1], r, self.prepared)
                solver.y = np.append(x, solver.y[-1])
                solver.f = solver.fun(solver.t, solver.y)
        self.step_size, self._evaluations_spent = solver.h_abs, self._evaluations_spent + solver.nfev
        return end, solver.y

    def _margins(self, t: float, y: Floats, r: Sequence[float]) -> Floats:
        """Return the margin of each switch: positive as long as its mode is right."""
        return self.numeric.margins(t, y[:-1], r, self.prepared, self.modes)

    def _find_crossing(self, solver: DOP853, r: Sequence[float]) -> float | None:
        """Return the first instant of the last step at which a mode is no longer right."""
        dense = solver.dense_output()
        low = solver.t_old
        start = self._margins(low, dense(low), r)
        # What begins on its surface counts once it is clearly beyond.
        limits = np.minimum(0.0, 2.0 * start) - 1e-15

        def smallest_margin(t: float) -> float:
            """Return how far the nearest switch is from being wrong."""
            return float(np.fmin.reduce(self._margins(t, dense(t), r) - limits, initial=np.inf))

        before = float(np.fmin.reduce(start - limits, initial=np.inf))
        check_times = np.linspace(low, solver.t, _CHECKS_PER_STEP + 1)[1:].tolist()
        if self._last_event_time == low:  # what leaves its surface there may be back before the first look
            check_times.insert(0, low + _FIRST_CHECK_FRACTION * (solver.t - low))
        for high in check_times:
            margin_at_check = smallest_margin(high)
            if margin_at_check < 0.0:
                return find_first_crossing(smallest_margin, low, high, (before, margin_at_check))
            low, before = high, margin_at_check
        return None

    def _repeat_step_to_event(
        self, t: float, y: Floats, instant: float, r: Sequence[float], largest_step: float
    ) -> tuple[float, Floats]:
        """Repeat the step up to an event; return it, and the event."""
        before = self._margins(t, y, r)
        solver = self._make_solver(t, y, instant, r, largest_step)
        while solver.status == "running":
            self._make_step(solver, y, r)
        self._evaluations_spent += solver.nfev

        def look_back() -> list[Floats]:
            """Return the margins shortly before, on the last step."""
            dense, (begin, end) = solver.dense_output(), (solver.t_old, solver.t)
            return [self._margins(t, dense(t), r) for t in (end - part * (end - begin) for part in (1e-3, 0.5))]

        margins = before, self._margins(instant, solver.y, r)
        return instant, self._process_switch_event(instant, solver.y, r, margins, look_back)

    def _process_switch_event(
        self,
        t: float,
        y: Floats,
        r: Sequence[float],
        margins: tuple[Floats, Floats],
        find_earlier_margins: Callable[[], Sequence[Floats]],
    ) -> Floats:
        """Return the state after an event of switches.

        Args:
            t: Time of the event, s.
            y: (x, W) there.
            r: Inputs.
            margins: Of all switches at the beginning of the step, and here.
            find_earlier_margins: Gives the margins a thousandth and a half of the last step before.
        """
        margins_before, margins_here = margins
        is_falling = margins_here < 0.5 * margins_before
        is_near = np.abs(margins_here) <= 1e-9 * np.maximum(1.0, np.abs(margins_before))
        due_switches = np.flatnonzero((is_falling & is_near) | (margins_here < 0.0))
        due_switches = (
            due_switches[np.argsort(margins_here[due_switches])]
            if len(due_switches)
            else np.array([int(np.argmin(margins_here))])
        )
        return self._process_event(t, y, r, *self._find_event_switch(due_switches, margins, find_earlier_margins))

    def _find_event_switch(
        self,
        due_switches: npt.NDArray[np.intp],
        margins: tuple[Floats, Floats],
        find_earlier_margins: Callable[[], Sequence[Floats]],
    ) -> tuple[list[int], bool]:
        """Return the switch that an event is of, and whether its margin has been zero all the time, by round-off.

        Of several, those are left out that could as well have come far earlier or later, as slowly as they fall.

        Args:
            due_switches: Switches that may have come to their surfaces, those first that are farthest beyond.
            margins: Of all switches at the beginning of the step, and here.
            find_earlier_margins: As for :meth:`_process_switch_event`.
        """
        margins_before, margins_here = (each[due_switches] for each in margins)
        if len(due_switches) == 1 and abs(margins_here[0]) > _HELD_AT_ZERO_FRACTION:
            return due_switches.tolist(), False
        known_margins = np.array(
            [
                *(earlier_margins[due_switches] for earlier_margins in find_earlier_margins()),
                margins_before,
                margins_here,
            ]
        )
        is_round_off = np.all(np.abs(known_margins) <= _HELD_AT_ZERO_FRACTION, axis=0)
        with np.errstate(over="ignore"):  # what has not fallen is infinitely far away
            times_away = (np.abs(margins_here) + _HELD_AT_ZERO_FRACTION) / np.maximum(
                known_margins[0] - margins_here, np.finfo(float).tiny
            )
        k = int(np.flatnonzero(times_away <= 100.0 * np.min(times_away))[0])
        return [int(due_switches[k])], bool(is_round_off[k])

    def _process_event(
        self, t: float, y: Floats, r: Sequence[float], due_switches: Sequence[int], is_round_off: bool = False
    ) -> Floats:
        """Return modes and states after an event; its work is added to W.

        ``is_round_off``: what is due has been zero all the time, by round-off.
        """
        self.event_count, self._last_event_time = self.event_count + 1, t
        if self.event_count > _MAX_EVENTS:
            name = self.numeric.frozen.switches[due_switches[0]].name if due_switches else "an input"
            raise make_integration_standstill_error(
                t, f"more than {_MAX_EVENTS:,} events came before, the last of {name}",
                remedy="let the experiment end earlier, or let controllers sample less often",
            )  # fmt: skip
        self._check_event_accumulation(t, due_switches)
        before_modes, x = self.modes.copy(), y[:-1]
        after, name = self.numeric.settle_modes(t, x, r, self.prepared, self.modes, due_switches)
        work = 0.0
        if not np.array_equal(after, x):
            energy_before, energy_after = (
                self.numeric.kinetic_energy_at(t, each, r, self.prepared) for each in (x, after)
            )
            work = energy_after - energy_before
        state_after = np.append(after, y[-1] + (work if np.isfinite(work) else 0.0))
        if self._event_log is not None:
            modes = np.array([[before_modes.values, self.modes.values]])
            conditions = np.array([[before_modes.past_conditions, self.modes.past_conditions]])
            first_switch, states = due_switches[0] if due_switches else -1, np.array([[y, state_after]])
            round_off = np.array([is_round_off], dtype=np.bool_)
            self._record_events(CompiledEventLog([t], [first_switch], [-1], round_off, modes, conditions, states), name)
        return state_after

    def _check_event_accumulation(self, t: float, due: Sequence[int]) -> None:
        """Raise if events follow each other without end at one instant."""
        first_time, names = self._events_at_instant
        if t - first_time > _SIMULTANEOUS_FRACTION * self.span:
            first_time, names = t, []
        names.extend(self.numeric.frozen.switches[i].name for i in due)
        self._events_at_instant = (first_time, names)
        if len(names) > _MAX_SIMULTANEOUS_EVENTS:
            raise make_alternating_switches_error(
                t, f"more than {_MAX_SIMULTANEOUS_EVENTS} events follow each other at once", names
            )

    def _record_events(self, events: CompiledEventLog, name: str | None = None) -> None:
        """Keep the events in which anything changed, all at once; ``name``: of the only one, else they have their own.

        Some models have ten thousand, ten times over.
        """
        assert self._event_log is not None
        changed = events.modes[:, 0] != events.modes[:, 1]
        jumped = (events.y[:, 0, :-1] != events.y[:, 1, :-1]).any(axis=1)
        shows = jumped | (events.conditions[:, 0] != events.conditions[:, 1]).any(axis=1)
        round_off = (events.round_off & ~shows & ~(changed & self._matters).any(axis=1)).tolist()
        before, after = (list(map(tuple, events.modes[:, side].tolist())) for side in (0, 1))
        kept, sets_state = changed.any(axis=1) | jumped, jumped.tolist()
        for k in np.flatnonzero(kept).tolist():
            switch, states = events.switches[k], events.y[k]
            self._event_log.events.append(
                LocatedEvent(
                    events.times[k], self._name_event(events.fired[k], switch, states) if name is None else name,
                    before[k], after[k], sets_state[k], switch < 0, switch, self.number, events.modes[k],
                    events.conditions[k], states, round_off[k],
                )
            )  # fmt: skip

    def _name_event(self, fired: int, switch: int, states: Floats) -> str:
        """Return the name of an event that C has settled.

        Args:
            fired: Number of the first of the model's events that happened; -1: none.
            switch: Number of what came first.
            states: (x, W) before and after it, shape (2, n_x + 1).
        """
        frozen = self.numeric.frozen
        name = frozen.events[fired].name if fired >= 0 else ""
        return format_event_name(frozen, states[:, :-1], name, self.numeric.switch_names[switch])
