"""Events of a frozen program in numbers: valid modes at a point, and new states with their derivatives.

Derivatives go with the states: of every state that an event sets, the derivative of what it sets is taken, at an
instant that moves with the parameters as well. Modes change as they do in units (``fmu/emit_c/runtime/events.c``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.compiler.derivatives import differentiate_forward
from mb2fmu.compiler.evaluation import make_evaluator
from mb2fmu.compiler.events import list_program_switches
from mb2fmu.compiler.program.program_result_dependencies import VariableGroup
from mb2fmu.compiler.program.scalar_program import ScalarProgram, read_initial_discrete_memory
from mb2fmu.errors import AnalysisError, Fault

Floats = npt.NDArray[np.float64]
InputSignals = Callable[[float], Floats]

MARGIN_TOLERANCE = 1e-13
"""Margins above minus this are right; as in FMUs that find their own events."""

_STICKING_TOLERANCE = 1e-9
"""Surfaces of signs that may be held, in their units."""

_MAX_MODE_CHANGES = 16
_MAX_TICK_COUNT = 2.0**53

_SEED_GROUPS: tuple[VariableGroup, ...] = ("states", "inputs", "parameters", "time")
_DIFFERENCE_STEP_S = 1e-6
"""Seconds over which a signal's slope is taken, to each side."""


@dataclass(slots=True)
class MotionPointWithDerivatives:
    """A point of a motion, and its derivatives by k quantities.

    Attributes:
        t: Time in s.
        x: States, shape (n_x,).
        slopes: Of the states, rows by quantity, shape (k, n_x).
        late: Derivatives of the instant itself, s per unit of each quantity, shape (k,).
    """

    t: float
    x: Floats
    slopes: Floats
    late: Floats


class ProgramEventProcessor:
    """Modes of a frozen program, and the effects of its events.

    Args:
        program: As ``switch_to_mode_conversion.convert_switches_to_modes`` gives it, with modes.
        signals: Time in s → inputs.
        p: Values of the parameters.
        along_p: Derivatives of the parameters, shape (k, n_p).

    Attributes:
        memory: Discrete memory, modes in it, shape (n_m,).
        names: Of all switches, in the order of margins, then conditions.
    """

    def __init__(self, program: ScalarProgram, signals: InputSignals, p: Floats, along_p: Floats) -> None:
        self._signals, self._p, self._along_p = signals, p, along_p
        switches = list_program_switches(program)
        self.names = [each.name for each in switches]
        self._kinds = [each.kind for each in switches]
        self._places = [each.memory for each in switches]
        self._margins = len(program.entries["indicators"].results)
        self.memory = np.array(read_initial_discrete_memory(program))
        self._held_again: set[int] = set()
        self._indicators = make_evaluator(program, "indicators")
        self._surfaces = make_evaluator(program, "surfaces", memory=self._indicators.memory)
        self._event = make_evaluator(program, "event", memory=self._indicators.memory)
        margins = differentiate_forward(program, "indicators", _SEED_GROUPS)
        self._margin_slopes = make_evaluator(margins, "jvp_indicators", memory=self._indicators.memory)
        event = differentiate_forward(program, "event", _SEED_GROUPS)
        self._event_slopes = make_evaluator(event, "jvp_event", memory=self._indicators.memory)

    # --- margins and surfaces ---------------------------------------------------------------------------------------

    def margins(self, t: float, x: Floats) -> Floats:
        """Return margins, positive where modes are valid, shape (n_margins,)."""
        return self._indicators(t, x, self._signals(t), self._p, self.memory)

    def margin_rates(self, at: MotionPointWithDerivatives, rates: Floats) -> tuple[Floats, Floats]:
        """Return rates of the margins along the motion, shape (n,), and their derivatives by k quantities, (k, n).

        Args:
            at: With derivatives at a fixed instant.
            rates: x' there.
        """
        r = self._signals(at.t)
        along = [np.concatenate([rates, self._signal_slopes(at.t), np.zeros(len(self._p)), [1.0]])]
        none = np.zeros(len(r) + 1)
        for slope, along_p in zip(at.slopes, self._along_p, strict=True):
            along.append(np.concatenate([slope, none[:-1], along_p, none[:1]]))
        found = [self._margin_slopes(at.t, at.x, r, self._p, self.memory, seed) for seed in along]
        return found[0], np.array(found[1:])

    def _signal_slopes(self, t: float) -> Floats:
        """Return rates of the inputs, by differences."""
        return (self._signals(t + _DIFFERENCE_STEP_S) - self._signals(t - _DIFFERENCE_STEP_S)) / (
            2 * _DIFFERENCE_STEP_S
        )

    # --- events -----------------------------------------------------------------------------------------------------

    def set_initial_modes(self, at: MotionPointWithDerivatives) -> None:
        """Set initial modes from the sides of the surfaces at a point, and process the events there."""
        for _ in range(self._margins + 1):
            found = self._surface(at)
            for k in range(self._margins):
                side = {"steps": np.floor(found[k]), "relation": float(found[k] > 0.0)}
                self._put(k, side.get(self._kinds[k], float(np.sign(found[k]))))
        own = range(self._margins, len(self._places))
        for k in own:
            self._put(k, _MAX_TICK_COUNT)  # nothing becomes true at the start
        if own:
            self._fire(at)
        for k in own:
            if self._kinds[k] == "ticks":
                self._put(k, 0.0)  # the first may be now
        self._held_again.clear()
        self._agree(at, [])
        self.settle_modes_and_events(at)

    def settle_modes_and_events(self, at: MotionPointWithDerivatives) -> list[str]:
        """Make the modes valid at a point and process the events there; return what changed, in order.

        Raises:
            AnalysisError: If modes switch to and fro without end.
        """
        changed: list[str] = []
        self._held_again.clear()
        self._let_go(at, changed, set_by_event=False)
        fired = True
        while fired:
            self._agree(at, changed)
            pending = any(
                kind == "ticks" and self._mode(k) == 0.0 for k, kind in enumerate(self._kinds) if k >= self._margins
            )
            fired = bool(changed or pending) and self._fire(at, changed)
            if fired:
                self._let_go(at, changed, set_by_event=True)
                self._bounded(at, changed)
        return changed

    def switch_has_no_effect(
        self, k: int, at: MotionPointWithDerivatives, slope: Callable[[float, Floats], Floats]
    ) -> bool:
        """Return whether rates, events and the derivatives of both are the same in both modes of a switch.

        Args:
            k: Of the margin.
            at: Where; it stays as it is, and so do the modes.
            slope: Of states and derivatives, with the present modes.
        """
        if self._kinds[k] != "relation":
            return False
        modes, found = self.memory.copy(), []
        for mode in (0.0, 1.0):
            self._put(k, mode)
            there = MotionPointWithDerivatives(at.t, at.x.copy(), at.slopes.copy(), at.late.copy())
            rates = slope(at.t, np.concatenate([at.x, at.slopes.ravel()]))
            self._fire(there)
            self._put(k, 0.0)
            found.append(np.concatenate([rates, there.x, there.slopes.ravel(), self.memory]))
            self.memory[:] = modes  # in place: they are shared
        return bool(np.array_equal(found[0], found[1]))

    def _mode(self, k: int) -> float:
        """Return the mode of a switch."""
        return float(self.memory[self._places[k]])

    def _put(self, k: int, mode: float) -> None:
        """Set the mode of a switch."""
        self.memory[self._places[k]] = mode

    def _surface(self, at: MotionPointWithDerivatives) -> Floats:
        """Return the surface of each switch, then the factor of each (the force that holds it, over its limit)."""
        return self._surfaces(at.t, at.x, self._signals(at.t), self._p, self.memory)

    def _agree(self, at: MotionPointWithDerivatives, changed: list[str]) -> None:
        """Change modes one by one until no margin is negative."""
        while True:
            margins = self.margins(at.t, at.x)
            due = int(np.argmin(margins)) if len(margins) else -1
            if due < 0 or not margins[due] < -0.5 * MARGIN_TOLERANCE:
                if self._hold_again(at, changed):
                    continue
                return
            changed.append(self.names[due])
            self._bounded(at, changed)
            self._change(due, at, 0.0 if len(changed) > 2 * len(self._places) else _STICKING_TOLERANCE)

    def _hold_again(self, at: MotionPointWithDerivatives, changed: list[str]) -> bool:
        """Hold a sign again that was released and is driven back, since others slip, too; each once in an event."""
        signs = [k for k in range(self._margins) if self._kinds[k] == "sticking"]
        if len(signs) < 2:
            return False
        found = self._surface(at)
        for k in signs:
            slips = self._mode(k)
            if slips == 0.0 or k in self._held_again or abs(found[k]) > _STICKING_TOLERANCE:
                continue
            self._put(k, 0.0)
            found = self._surface(at)
            if slips * found[self._margins + k] < 1.0 - _STICKING_TOLERANCE:
                self._held_again.add(k)
                changed.append(self.names[k])
                return True
            self._put(k, slips)
        return False

    def _change(self, k: int, at: MotionPointWithDerivatives, least: float) -> None:
        """Change the mode of a switch whose margin is negative; a sign that comes to rest is held if it can be.

        One that has no effect here, and so moves nothing to its surface, goes to the side of the state: beyond
        ``least`` at once.
        """
        found = self._surface(at)
        if self._kinds[k] == "relation":
            self._put(k, 1.0 - self._mode(k))
        elif self._kinds[k] == "steps":
            self._put(k, float(np.floor(found[k])))
        elif self._mode(k) != 0.0:
            for j in range(self._margins):
                if self._kinds[j] == "sticking" and abs(found[j]) <= _STICKING_TOLERANCE:
                    self._put(j, 0.0)
            self._put(k, 0.0)
            self._fire(at)
            if abs(found[k]) > least and self._surface(at)[k] == found[k]:
                self._put(k, 1.0 if found[k] > 0.0 else -1.0)
        else:
            self._put(k, 1.0 if found[self._margins + k] > 0.0 else -1.0)

    def _let_go(self, at: MotionPointWithDerivatives, changed: list[str], *, set_by_event: bool) -> None:
        """Release held signs that were set in motion; after an event also those that it has set to another side."""
        found = self._surface(at)
        for k in range(self._margins):
            side = 1.0 if found[k] > 0.0 else -1.0
            moved = self._mode(k) == 0.0 or (set_by_event and self._mode(k) != side)
            if self._kinds[k] == "sticking" and moved and abs(found[k]) > _STICKING_TOLERANCE:
                self._put(k, side)
                changed.append(self.names[k])

    def _fire(self, at: MotionPointWithDerivatives, changed: list[str] | None = None) -> bool:
        """Apply an event to states, derivatives and conditions; return whether a condition changed."""
        n, r = len(at.x), self._signals(at.t)
        after = self._event(at.t, at.x, r, self._p, self.memory)
        rates = np.multiply.outer(at.late, self._signal_slopes(at.t))
        seeds = np.concatenate([at.slopes, rates, self._along_p, at.late[:, None]], axis=1)
        slopes = [self._event_slopes(at.t, at.x, r, self._p, self.memory, seed)[:n] for seed in seeds]
        at.slopes = np.array(slopes).reshape(at.slopes.shape)
        at.x = after[:n]
        if not np.all(np.isfinite(at.x)):
            _raise_mode_error(at.t, "an event sets a state to what is no finite number", changed or [])
        fired = False
        for k, value in enumerate(after[n:], self._margins):
            if self._mode(k) != value:
                self._put(k, float(value))
                fired = True
                if changed is not None:
                    changed.append(self.names[k])
        return fired

    def _bounded(self, at: MotionPointWithDerivatives, changed: list[str]) -> None:
        """Raise if more modes have changed at this instant than can be right."""
        if len(changed) > _MAX_MODE_CHANGES * len(self._places):
            _raise_mode_error(at.t, "no modes are right: they switch to and fro", changed)


def _raise_mode_error(t: float, what: str, changed: list[str]) -> None:
    """Raise an error that names the switches that changed last.

    Raises:
        AnalysisError: Always.
    """
    last = ", ".join(list(dict.fromkeys(reversed(changed)))[:4])
    fault = Fault(f"at t = {t:.6g} s {what}" + (f": {last}" if last else ""), remedy="see what mb2fmu run says")
    raise AnalysisError("the motion cannot be differentiated:", [fault])
