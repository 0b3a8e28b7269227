"""Sensitivities through events: variational equations between events, jumps across them.

Before an event the motion is x' = f(t, x, θ), behind it x' = f⁺; the event is at the instant τ(θ) at which the margin
m(t, x, θ) comes to zero, and makes x⁺ = R(τ, x⁻, θ). With S = ∂x/∂θ at fixed time,

    ∂τ/∂θ = −(∂m/∂x S⁻ + ∂m/∂θ) / (∂m/∂x f⁻ + ∂m/∂t),
    S⁺ = ∂R/∂x (S⁻ + f⁻ ∂τ/∂θ) + ∂R/∂θ + ∂R/∂t ∂τ/∂θ − f⁺ ∂τ/∂θ.

With R = x this is the saltation matrix of a change of modes. Where m only touches zero (grazing) there is no
derivative: a little to one side there is an event, to the other side there is none.

Source: R. I. Leine, H. Nijmeijer, Dynamics and Bifurcations of Non-Smooth Mechanical Systems, Springer 2004, ch. 7;
M. A. Aizerman, F. R. Gantmakher, Q. J. Mech. Appl. Math. 11 (1958) 225.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.integrate import DOP853, Radau
from scipy.optimize import brentq

from mb2fmu.analysis.event_jump_sensitivities import (
    MARGIN_TOLERANCE,
    MotionPointWithDerivatives,
    ProgramEventProcessor,
)
from mb2fmu.errors import AnalysisError, Fault

Floats = npt.NDArray[np.float64]
SlopeFunction = Callable[[float, Floats], Floats]

_CHECKS_PER_STEP = 4  # in each step, evenly
_EARLY_CHECK_RATIO = 2.0**-20  # of a step: the first look behind an event, where something may be back soon
_MAX_SIMULTANEOUS_EVENTS = 200
_SAME_EVENT_TOLERANCE = 1e-5  # instants that move apart by more than this part are those of two events
_CURVATURE_STEP_S = 1e-7  # s, over which the curvature of a margin is taken
_TIME_ROUND_OFF = 4 * np.finfo(float).eps


@dataclass(frozen=True, slots=True)
class EventFreeMotionSegment:
    """A part of the motion without events.

    Attributes:
        rows: Which of the instants wanted lie in it.
        y: States and their derivatives at these, shape (len(rows), n_x (1 + k)).
        memory: Modes, shape (n_m,).
        part: Between which jumps of the inputs, counted from 0.
    """

    rows: npt.NDArray[np.intp]
    y: Floats
    memory: Floats
    part: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrationProblem:
    """What is integrated over each stretch, and how.

    Attributes:
        slope: Of states and derivatives, with the present modes.
        size: Number of states.
        time: Instants that are wanted in s, increasing, shape (n_t,).
        ends: Goes from jump to jump of the inputs: gives the instant of each, then the last one of ``time``.
        tolerance: Relative.
        scales: Magnitudes of states and derivatives, times the tolerance the absolute one.
        stiff: True: by an implicit method.
    """

    slope: SlopeFunction
    size: int
    time: Floats
    ends: Iterator[float]
    tolerance: float
    scales: Floats
    stiff: bool


class SaltationIntegration:
    """A motion with its derivatives through all events.

    Args:
        changes: Modes and events.
        integration: How stretches are integrated.
    """

    def __init__(self, changes: ProgramEventProcessor, integration: IntegrationProblem) -> None:
        self._changes, self._how = changes, integration
        self._at_once = 0

    def integrate_through_events(self, x: Floats, slopes: Floats) -> list[EventFreeMotionSegment]:
        """Integrate over the instants wanted.

        Args:
            x: Start values, shape (n_x,).
            slopes: Their derivatives, rows by quantity, shape (k, n_x).

        Raises:
            AnalysisError: If the motion grazes, ends early, or has events without end.
        """
        time = self._how.time
        at = MotionPointWithDerivatives(float(time[0]), x, slopes, np.zeros(len(slopes)))
        stretches: list[EventFreeMotionSegment] = []
        done = 0
        for part, end in enumerate(self._how.ends):
            if part == 0:
                self._changes.set_initial_modes(at)
            else:
                self._changes.settle_modes_and_events(at)  # inputs have jumped, at an instant that nothing moves
            at, done = self._stretch(at, done, end, part, stretches)
        return stretches

    def _stretch(
        self, at: MotionPointWithDerivatives, done: int, end: float, part: int, stretches: list[EventFreeMotionSegment]
    ) -> tuple[MotionPointWithDerivatives, int]:
        """Integrate from a point through all events to an instant; return the instants that were passed."""
        fresh = part > 0
        while True:
            y, rows, values, event = self._until_event(at, done, end, fresh=fresh)
            if len(rows):
                memory = self._changes.memory.copy()
                stretches.append(EventFreeMotionSegment(np.array(rows, dtype=np.intp), np.array(values), memory, part))
                done = rows[-1] + 1
            if event is None:
                n = self._how.size
                return MotionPointWithDerivatives(end, y[:n], y[n:].reshape(-1, n), np.zeros(len(at.slopes))), done
            soon = event <= at.t + _TIME_ROUND_OFF * (abs(at.t) + abs(float(self._how.time[-1])))
            self._at_once = self._at_once + 1 if soon else 0
            at = self._across(event, y)
            fresh = True

    def _until_event(
        self, at: MotionPointWithDerivatives, done: int, end: float, *, fresh: bool
    ) -> tuple[Floats, list[int], list[Floats], float | None]:
        """Integrate to the first event: its states, the instants passed, the values there, and its time."""
        how = self._how
        y = np.concatenate([at.x, at.slopes.ravel()])
        rows, values = [], []
        while done < len(how.time) and how.time[done] <= min(at.t, end):
            rows.append(done)
            values.append(y)
            done += 1
        if done == len(how.time) or at.t >= end:
            return y, rows, values, None
        solver = (Radau if how.stiff else DOP853)(
            how.slope, at.t, y, end, rtol=max(how.tolerance, 2.3e-14), atol=how.tolerance * how.scales
        )
        while solver.status == "running":
            message = solver.step()
            if solver.status == "failed":
                fault = Fault(f"it ends early, at t = {solver.t:.6g} s: {message}")
                raise AnalysisError("the motion cannot be differentiated:", [fault])
            way = solver.dense_output()
            event = self._first(way, solver.t_old, solver.t, early=fresh)
            fresh = False
            last = solver.t if event is None else event
            while done < len(how.time) and (how.time[done] < last or (event is None and how.time[done] == last)):
                rows.append(done)
                values.append(way(how.time[done]) if how.time[done] < solver.t else solver.y)
                done += 1
            if event is not None:
                return way(event), rows, values, event
        return solver.y, rows, values, None

    def _first(self, way: Callable[[float], Floats], start: float, end: float, *, early: bool) -> float | None:
        """Return the first instant of a step with a negative margin; None if all margins stay positive."""

        def least(t: float) -> float:
            """Return the smallest margin, plus the slack."""
            return float(np.min(self._changes.margins(t, way(t)[: self._how.size]))) + MARGIN_TOLERANCE

        instants = [
            start + (end - start) * part
            for part in [*([_EARLY_CHECK_RATIO] if early else []), *np.linspace(0, 1, _CHECKS_PER_STEP + 1)[1:]]
        ]
        low = start
        for instant in instants:
            if least(instant) < 0.0:
                if least(low) < 0.0:
                    return low
                found = float(
                    brentq(least, low, instant, xtol=_TIME_ROUND_OFF * max(abs(end), 1e-300), rtol=_TIME_ROUND_OFF)
                )
                while least(found) >= 0.0 and found < instant:
                    found = min(found + max(np.spacing(found), 0.5 * _TIME_ROUND_OFF * abs(end)), instant)
                return found
            low = instant
        return None

    def _across(self, t: float, y: Floats) -> MotionPointWithDerivatives:
        """Return the point after an event."""
        how, changes = self._how, self._changes
        n = how.size
        at = MotionPointWithDerivatives(t, y[:n], y[n:].reshape(-1, n), np.zeros(len(y) // n - 1))
        rates = how.slope(t, y)[:n]
        at.late = self._moved(at, rates)
        at.slopes = at.slopes + np.multiply.outer(at.late, rates)
        changed = changes.settle_modes_and_events(at)
        if self._at_once > _MAX_SIMULTANEOUS_EVENTS:
            name = ", ".join(dict.fromkeys(changed[-4:]))
            fault = Fault(f"more than {_MAX_SIMULTANEOUS_EVENTS} events follow each other at t = {t:.6g} s: {name}")
            raise AnalysisError("the motion cannot be differentiated:", [fault])
        behind = how.slope(t, np.concatenate([at.x, at.slopes.ravel()]))[:n]
        at.slopes = at.slopes - np.multiply.outer(at.late, behind)
        return at

    def _moved(self, at: MotionPointWithDerivatives, rates: Floats) -> Floats:
        """Return the derivatives of the instant of an event, shape (k,).

        Raises:
            AnalysisError: If the margin only touches zero, or two events happen at once that move apart.
        """
        margins = self._changes.margins(at.t, at.x)
        rate, by = self._changes.margin_rates(at, rates)
        first = int(np.argmin(margins))
        if self._is_grazing(at, rates, rate, first):
            return np.zeros(len(at.slopes))
        late = -by[:, first] / rate[first]
        for k in np.flatnonzero((margins < 0.0) & (rate < 0.0)).tolist():
            other = -by[:, k] / rate[k]
            apart = np.any(
                np.abs(other - late) > _SAME_EVENT_TOLERANCE * (np.abs(other) + np.abs(late)) + _SAME_EVENT_TOLERANCE**2
            )
            if apart and not self._is_idle(k, at):
                names = f"{self._changes.names[first]} and {self._changes.names[k]}"
                what = f"{names} change at one instant, t = {at.t:.6g} s, and apart from each other beside it"
                fault = Fault(what, remedy="there is no derivative here; take a point beside it")
                raise AnalysisError("the motion cannot be differentiated:", [fault])
        return np.asarray(late)

    def _is_grazing(self, at: MotionPointWithDerivatives, rates: Floats, rate: Floats, k: int) -> bool:
        """Return whether an error of the tolerance's size could avoid the event, and that would change the motion.

        It makes none where nothing depends on the mode: whether two bodies approach, while they are far from each other
        and a third one holds them at zero speed. A margin that turns back falls below zero by its rate² /
        (2 curvature) at most: such an event may not be there beside this point. One that falls faster and faster is
        there; but its instant is as uncertain as its rate is small. That makes no difference where the motion is the
        same before and behind: bodies whose contact has opened part at no speed, and the gap notes it.

        Raises:
            AnalysisError: If it makes a difference, or the margin turns back.
        """
        how = self._how
        n = how.size
        ahead = MotionPointWithDerivatives(
            at.t + _CURVATURE_STEP_S, at.x + _CURVATURE_STEP_S * rates, at.slopes, at.late
        )
        y = np.concatenate([ahead.x, at.slopes.ravel()])
        curvature = (self._changes.margin_rates(ahead, how.slope(ahead.t, y)[:n])[0][k] - rate[k]) / _CURVATURE_STEP_S
        least = np.sqrt(2 * abs(curvature) * how.tolerance) if np.isfinite(curvature) else 0.0
        if rate[k] < -least:
            return False
        if self._is_idle(k, at) or (rate[k] < 0.0 and curvature < 0.0 and self._is_one_at_any_instant(at, rates)):
            return True
        what = f"{self._changes.names[k]} is only touched at t = {at.t:.6g} s (grazing)"
        fault = Fault(what, remedy="near this point the event does not happen, so there is no derivative: take another")
        raise AnalysisError("the motion cannot be differentiated:", [fault])

    def _is_idle(self, k: int, at: MotionPointWithDerivatives) -> bool:
        """Return whether a switch has no effect, neither before an event nor after it."""
        changes, modes = self._changes, self._changes.memory.copy()
        idle = changes.switch_has_no_effect(k, at, self._how.slope)
        if idle:
            there = MotionPointWithDerivatives(at.t, at.x.copy(), at.slopes.copy(), at.late.copy())
            changes.settle_modes_and_events(there)
            idle = changes.switch_has_no_effect(k, there, self._how.slope)
            changes.memory[:] = modes  # in place: they are shared
        return idle

    def _is_one_at_any_instant(self, at: MotionPointWithDerivatives, rates: Floats) -> bool:
        """Return whether the motion after an event stays the same if the event comes a little later."""
        how, modes = self._how, self._changes.memory.copy()
        n, ends = how.size, []
        for late in (0.0, 1.0):
            there = MotionPointWithDerivatives(
                at.t, at.x.copy(), at.slopes + late * rates, np.full(len(at.slopes), late)
            )
            self._changes.settle_modes_and_events(there)
            behind = how.slope(at.t, np.concatenate([there.x, there.slopes.ravel()]))[:n]
            ends.append(there.slopes - late * behind)
            self._changes.memory[:] = modes  # in place: they are shared
        return bool(np.all(np.abs(ends[1] - ends[0]) <= how.tolerance * (how.scales[:n] + np.abs(rates))))
