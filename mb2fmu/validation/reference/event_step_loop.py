"""Integrate equations with events: the reference's own method, by NumPy and SciPy alone.

DOP853 goes from one communication point to the next. On every step its own interpolant, of order 7, is looked at; where
a surface has changed its side the instant is bracketed to the last digit, the step is made anew up to there, and modes
are found anew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.integrate import DOP853

from mb2fmu.root_finding import find_first_crossing
from mb2fmu.validation.evaluation_plans.event_errors import make_alternating_switches_error
from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.modes.mode_equations import SwitchModes
from mb2fmu.validation.reference.smooth_integration import TIGHTEST_SOLVER_TOLERANCE, make_standstill_error
from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

Floats = npt.NDArray[np.float64]

_CHECKS_PER_STEP = 4  # on the way of a step
_FIRST_CHECK_FRACTION = 2.0**-20  # part of a step: the first look behind an event
_MAX_EVENTS = 20_000
_MAX_SIMULTANEOUS_EVENTS = 200  # events without time going on
_SIMULTANEOUS_FRACTION = 1e-6  # of a communication step
_HELD_AT_ZERO_FRACTION = 1e-12  # of a surface's size: what is held at zero stays so near to it


@dataclass(frozen=True, slots=True)
class LocatedEvent:
    """An event of a motion.

    Attributes:
        time: In s.
        name: What it did to contacts and latches, or of the first of the model's events, or of the first switch.
        before: Modes before.
        after: Modes after.
        sets_state: Whether a state was set.
        outside: Inputs that jumped made it, and not the motion.
        switch: Number of the switch that came first; -1 where inputs did.
        step: Number of the communication step.
        sides: Everything that is discrete just before and just after.
        states: (x, W) just before and just after, shape (2, n_x + 1).
        round_off: It changes nothing but which of two sides a condition's quantity is on, which is zero all the time
            (what a latch holds): the sign of round-off.
    """

    time: float
    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    sets_state: bool
    outside: bool
    switch: int
    step: int
    sides: tuple[SwitchModes, SwitchModes]
    states: Floats
    round_off: bool = False


@dataclass(slots=True)
class IntegrationEventLog:
    """Events of an integration.

    Attributes:
        events: In their order.
        modes: At each communication point, at the end of the step before.
    """

    events: list[LocatedEvent] = field(default_factory=list)
    modes: list[SwitchModes] = field(default_factory=list)


@contextmanager
def assume_start_events_done(numeric: NumericEquations) -> Iterator[None]:
    """Treat states at 0 s as those after the events of the start: ``every`` does not sample there again."""
    if not isinstance(numeric, HybridEquations):
        yield
        return
    numeric.begun = True
    try:
        yield
    finally:
        numeric.begun = False


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
    seen: IntegrationEventLog | None = None,
) -> Floats:
    """Return (x, W) at each communication point; arguments as of :meth:`.TrajectoryIntegration.travel`.

    W takes the work of events, too: what the kinetic energy jumps by. ``seen`` takes the events and modes.
    """
    loop = _EventStepLoop(
        numeric, prepared, max(tolerance, TIGHTEST_SOLVER_TOLERANCE), tolerance * scales, projected, budget, seen
    )
    y = np.empty((len(time), len(start)))
    y[0] = start
    first = inputs[0].tolist()
    if time[0] == 0.0:
        loop.modes, x = numeric.begin(float(time[0]), start[:-1], first, prepared)
        numeric.check_contact_effects(float(time[0]), x, first, prepared, loop.modes)
        y[0] = np.append(x, start[-1])
    else:
        loop.modes = numeric.find_modes(float(time[0]), start[:-1], first, prepared)
    here = y[0].copy()
    log = seen or IntegrationEventLog()
    log.modes.append(loop.modes.copy())
    for k, (begin, end) in enumerate(zip(time[:-1].tolist(), time[1:].tolist(), strict=True)):
        r = inputs[k].tolist()
        loop.number = k
        if k and not np.array_equal(inputs[k], inputs[k - 1]):
            here = loop.jump(begin, here, inputs[k - 1].tolist(), r)
        here = loop.step(begin, end, here, r, parts)
        y[k + 1] = here
        log.modes.append(loop.modes.copy())
    return y


class _EventStepLoop:
    """State of one integration."""

    def __init__(
        self,
        numeric: HybridEquations,
        prepared: Sequence[float],
        relative: float,
        absolute: Floats,
        projected: bool,
        budget: int,
        seen: IntegrationEventLog | None,
    ) -> None:
        self.numeric, self.prepared = numeric, prepared
        self._relative, self._absolute = relative, absolute
        self._projected, self._budget, self._seen = projected, budget, seen
        self._spent = self._events = 0
        self._burst: tuple[float, list[str]] = (-np.inf, [])
        self._step = np.inf
        self._behind = np.nan  # instant of the last event
        self._testing = numeric.frozen.condition_switches
        self.number = 0  # of the communication step
        self.span = 1.0  # its length in s
        self.modes: SwitchModes

    def jump(self, t: float, y: Floats, before: Sequence[float], r: Sequence[float]) -> Floats:
        """Return the state after inputs have jumped, at a communication point.

        What switches there by itself, with the inputs as they were (a sample at that very instant), comes before: it is
        an event of the motion, and no work of the inputs.
        """
        modes = self.modes.copy()
        self.numeric.settle(t, y[:-1], before, self.prepared, modes, ())
        by_itself = np.flatnonzero(modes.values != self.modes.values)
        if len(by_itself):
            y = self._event(t, y, before, by_itself[:1].tolist())
        return self._event(t, y, r, ())

    def step(self, begin: float, end: float, y: Floats, r: Sequence[float], parts: int) -> Floats:
        """Integrate from one communication point to the next."""
        self.span = end - begin
        t, most = begin, (end - begin) / parts
        while t < end:
            t, y = self._integrate_in_c(t, end, y, r, most)
            if t >= end:
                break
            t, y = self._integrate_to_event(t, end, y, r, most)
        return y

    def _integrate_in_c(self, t: float, end: float, y: Floats, r: Sequence[float], most: float) -> tuple[float, Floats]:
        """Integrate by compiled functions, up to the step of the next event at most."""
        compiled = self.numeric.mode_steps
        if compiled is None or not compiled.can_hold(self.modes.values):
            return t, y
        compiled.set_modes(self.modes.values, r, self.prepared, self.numeric.late)
        parts = max(1, math.ceil((end - t) / most * (1.0 - 1e-12)))
        t, y, self._step, spent = compiled.integrate(
            (t, end), y, min(self._step, end - t) if np.isfinite(self._step) else np.inf,
            (self._relative, self._absolute), parts=parts, projected=self._projected,
            behind=self._behind == t, budget=self._budget - self._spent,
        )  # fmt: skip
        self._spent += spent
        return t, y

    def _slope(self, r: Sequence[float]) -> Callable[[float, Any], Any]:
        """Return y' (x' and the power of loads) as a function; NaN where it is not defined, which shortens the step."""

        def slope(t: float, y: Any) -> Any:
            """Return y' at t, s."""
            try:
                x_dot, power = self.numeric.slope(t, y[:-1], r, self.prepared, self.modes)
            except (ArithmeticError, ValueError):
                return np.full_like(y, np.nan)
            y_dot = np.empty_like(y)
            y_dot[:-1], y_dot[-1] = x_dot, power
            return y_dot if np.isfinite(y_dot).all() else np.full_like(y, np.nan)

        return slope

    def _solver(self, t: float, y: Floats, end: float, r: Sequence[float], most: float) -> DOP853:
        """Return an integrator from t to `end` at most, starting with the last step size known."""
        first = min(self._step, most, end - t)
        return DOP853(
            self._slope(r), t, y, end, first_step=first if np.isfinite(self._step) else None, max_step=most,
            rtol=self._relative, atol=self._absolute,  # type: ignore[arg-type] # SciPy takes one per component

        )  # fmt: skip

    def _integrate_to_event(
        self, t: float, end: float, y: Floats, r: Sequence[float], most: float
    ) -> tuple[float, Floats]:
        """Integrate up to the next event, or to the end."""
        solver = self._solver(t, y, end, r, most)
        while solver.status == "running":
            before = (solver.t, solver.y.copy())
            why = solver.step()
            if why:
                self.numeric.check_contact_effects(solver.t, solver.y[:-1], r, self.prepared, self.modes)
                raise make_standstill_error(solver.t, why.rstrip("."))
            if self._spent + solver.nfev > self._budget:
                raise make_standstill_error(solver.t, f"{self._budget} evaluations are spent")
            found = self._crossing(solver, r)
            if found is not None:
                self._spent += solver.nfev
                self._step = max(solver.t - before[0], 1e-12)
                return self._repeat_step_to_event(*before, found, r, most)
            if self._projected:
                x = self.numeric.project(solver.t, solver.y[:-1], self.prepared)
                solver.y = np.append(x, solver.y[-1])
                solver.f = solver.fun(solver.t, solver.y)
        self._step, self._spent = solver.h_abs, self._spent + solver.nfev
        return end, solver.y

    def _margins(self, t: float, y: Floats, r: Sequence[float]) -> Floats:
        """Return the margin of each switch: positive as long as its mode is right."""
        return self.numeric.margins(t, y[:-1], r, self.prepared, self.modes)

    def _crossing(self, solver: DOP853, r: Sequence[float]) -> float | None:
        """Return the first instant of the last step at which a mode is no longer right."""
        dense = solver.dense_output()
        low = solver.t_old
        start = self._margins(low, dense(low), r)
        # What begins on its surface counts once it is clearly beyond.
        limits = np.minimum(0.0, 2.0 * start) - 1e-15

        def least(t: float) -> float:
            """Return how far the nearest switch is from being wrong."""
            return float(np.fmin.reduce(self._margins(t, dense(t), r) - limits, initial=np.inf))

        before = float(np.fmin.reduce(start - limits, initial=np.inf))
        looks = np.linspace(low, solver.t, _CHECKS_PER_STEP + 1)[1:].tolist()
        if self._behind == low:  # what leaves its surface there may be back before the first look
            looks.insert(0, low + _FIRST_CHECK_FRACTION * (solver.t - low))
        for high in looks:
            beyond = least(high)
            if beyond < 0.0:
                return find_first_crossing(least, low, high, (before, beyond))
            low, before = high, beyond
        return None

    def _repeat_step_to_event(
        self, t: float, y: Floats, instant: float, r: Sequence[float], most: float
    ) -> tuple[float, Floats]:
        """Repeat the step up to an event; return it, and the event."""
        before = self._margins(t, y, r)
        solver = self._solver(t, y, instant, r, most)
        while solver.status == "running":
            why = solver.step()
            if why:
                self.numeric.check_contact_effects(solver.t, solver.y[:-1], r, self.prepared, self.modes)
                raise make_standstill_error(solver.t, why.rstrip("."))
        self._spent += solver.nfev
        margins = self._margins(instant, solver.y, r)
        falling = margins < 0.5 * before
        near = np.abs(margins) <= 1e-9 * np.maximum(1.0, np.abs(before))
        due = np.flatnonzero((falling & near) | (margins < 0.0))
        due = due[np.argsort(margins[due])] if len(due) else np.array([int(np.argmin(margins))])
        return instant, self._event(instant, solver.y, r, *self._find_event_switch(solver, due, (before, margins), r))

    def _find_event_switch(
        self, solver: DOP853, due: npt.NDArray[np.intp], margins: tuple[Floats, Floats], r: Sequence[float]
    ) -> tuple[list[int], bool]:
        """Return the switch that an event is of, and whether its margin has been zero all the time, by round-off.

        Of several, those are left out that could as well have come far earlier or later, as slowly as they fall.

        Args:
            solver: At the event.
            due: Switches that may have come to their surfaces, those first that are farthest beyond.
            margins: Of all switches at the beginning of the step, and here.
            r: Inputs.
        """
        before, here = (each[due] for each in margins)
        if len(due) == 1 and abs(here[0]) > _HELD_AT_ZERO_FRACTION:
            return due.tolist(), False
        dense, (begin, end) = solver.dense_output(), (solver.t_old, solver.t)
        looks = [end - part * (end - begin) for part in (1e-3, 0.5)]
        seen = np.array([*(self._margins(t, dense(t), r)[due] for t in looks), before, here])
        hovers = np.all(np.abs(seen) <= _HELD_AT_ZERO_FRACTION, axis=0)
        with np.errstate(over="ignore"):  # what has not fallen is infinitely far away
            away = (np.abs(here) + _HELD_AT_ZERO_FRACTION) / np.maximum(seen[0] - here, np.finfo(float).tiny)
        k = int(np.flatnonzero(away <= 100.0 * np.min(away))[0])
        return [int(due[k])], bool(hovers[k])

    def _event(self, t: float, y: Floats, r: Sequence[float], due: Sequence[int], hovers: bool = False) -> Floats:
        """Return modes and states after an event; its work is added to W.

        ``hovers``: what is due has been zero all the time, by round-off.
        """
        self._events, self._behind = self._events + 1, t
        if self._events > _MAX_EVENTS:
            name = self.numeric.frozen.switches[due[0]].name if due else "an input"
            raise make_standstill_error(t, f"more than {_MAX_EVENTS} events came before, the last of {name}")
        self._check_event_accumulation(t, due)
        before_modes, x = self.modes.copy(), y[:-1]
        before = self.numeric.kinetic_energy_at(t, x, r, self.prepared)
        after, name = self.numeric.settle(t, x, r, self.prepared, self.modes, due)
        jumped = not np.array_equal(after, x)
        work = self.numeric.kinetic_energy_at(t, after, r, self.prepared) - before if jumped else 0.0
        behind = np.append(after, y[-1] + (work if np.isfinite(work) else 0.0))
        if self._seen is not None:
            self._record_event(t, name, due, (before_modes, self.modes.copy()), np.array([y, behind]), hovers)
        return behind

    def _check_event_accumulation(self, t: float, due: Sequence[int]) -> None:
        """Raise if events follow each other without end at one instant."""
        since, names = self._burst
        if t - since > _SIMULTANEOUS_FRACTION * self.span:
            since, names = t, []
        names.extend(self.numeric.frozen.switches[i].name for i in due)
        self._burst = (since, names)
        if len(names) > _MAX_SIMULTANEOUS_EVENTS:
            raise make_alternating_switches_error(
                t, f"more than {_MAX_SIMULTANEOUS_EVENTS} events follow each other at once", names
            )

    def _record_event(
        self,
        t: float,
        name: str,
        due: Sequence[int],
        sides: tuple[SwitchModes, SwitchModes],
        states: Floats,
        hovers: bool,
    ) -> None:
        """Keep an event in which anything changed."""
        assert self._seen is not None
        old, new = (tuple(side.values.tolist()) for side in sides)
        jumped = not np.array_equal(states[0, :-1], states[1, :-1])
        if old != new or jumped:
            switch = due[0] if due else -1
            round_off = hovers and not jumped and np.array_equal(sides[0].fired, sides[1].fired)
            round_off &= {i for i, (was, now) in enumerate(zip(old, new, strict=True)) if was != now} <= self._testing
            self._seen.events.append(
                LocatedEvent(t, name, old, new, jumped, not due, switch, self.number, sides, states, round_off)
            )
