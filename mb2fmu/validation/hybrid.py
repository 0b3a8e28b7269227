"""Equations with events as functions of numbers, and their motion: the reference's own, by NumPy and SciPy alone.

Between events every switch has a mode, and the motion is smooth: DOP853 from one communication point to the next. On
every step its own interpolant, of order 7, is looked at; where a surface has changed its side the instant is bracketed
and bisected to the last digit, the step is made anew up to there, and modes are found anew. A sign that can keep its
own surface at zero (dry friction) holds it there while the value that this takes is within its limit.

At one instant alone (``x_dot``, ``motion``) modes follow from the state: by the sides on which the surfaces are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.integrate import DOP853

from mb2fmu.errors import Fault, ValidationError
from mb2fmu.validation.integration import TIGHTEST, stuck
from mb2fmu.validation.numeric import Motion, NumericEquations
from mb2fmu.validation.own_switches import FrozenEquations

Floats = npt.NDArray[np.float64]

AT_REST = 1e-9
"""Surfaces of signs closer to zero than this, in their units, may be held there."""

_LOOKS = 4  # on the way of a step
_MOST_CHANGES = 50
_MOST_EVENTS = 20_000


@dataclass(frozen=True, slots=True)
class EventSeen:
    """An event of a motion.

    Attributes:
        time: In s.
        name: Of the switch that came first.
        before: Modes before.
        after: Modes after.
        jumped: Whether a state was set.
    """

    time: float
    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    jumped: bool


@dataclass(slots=True)
class _Modes:
    """Modes of all switches; signs that are held are 0. ``fired``: conditions as they were."""

    values: Floats
    fired: Floats


@dataclass(frozen=True, slots=True)
class _Look:
    """Everything at one instant, for given modes: the motion, and our own further outputs."""

    motion: Motion
    surfaces: Floats
    limits: Floats
    rates: Floats
    conditions: Floats
    settings: Floats


class HybridEquations(NumericEquations):
    """Equations with events: state x as without them.

    Args:
        frozen: The equations between events.
        typical: Magnitude of each coordinate.
    """

    def __init__(self, frozen: FrozenEquations, typical: Sequence[float] | None = None) -> None:
        self.frozen = frozen
        self._kept: _Modes | None = None
        self._count = len(frozen.switches)
        self._signs = [i for i, s in enumerate(frozen.switches) if s.kind == "sign"]
        self._names = [s.name for s in frozen.switches]
        super().__init__(frozen.equations, typical)
        e = frozen.equations
        places = {symbol: i for i, symbol in enumerate(e.states)}
        self._targets = [
            [places[symbol] for symbol, _ in event.settings if symbol in places] for event in frozen.events
        ]

    # --- one instant -------------------------------------------------------------------------------------------------

    def x_dot(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> tuple[Floats, float]:
        """As without events, with the modes that the state says."""
        modes = self.modes_at(t, x, r, prepared)
        return self.slope(t, x, r, prepared, modes)

    def motion(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> Motion:
        """Everything at one instant, with the modes that the state says."""
        look = self._held(t, x, r, prepared, self.modes_at(t, x, r, prepared))[0]
        return replace(look.motion, outputs=look.motion.outputs[: self.frozen.outputs])

    def slope(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes
    ) -> tuple[Floats, float]:
        """State derivative and power for given modes."""
        held = [i for i in self._signs if modes.values[i] == 0.0]
        if not held:
            return super().x_dot(t, x, [*r, *modes.values.tolist()], prepared)
        base, others, values = self._sticking(t, x, r, prepared, modes, held)
        x_dot, power = base.motion.x_dot, base.motion.power
        for other, value in zip(others, values.tolist(), strict=True):  # forces are linear in what holds
            x_dot = x_dot + value * (other.motion.x_dot - base.motion.x_dot)
            power += value * (other.motion.power - base.motion.power)
        return x_dot, power

    def _look(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], values: Floats) -> _Look:
        motion = super().motion(t, x, [*r, *values.tolist()], prepared)
        ours = motion.outputs[self.frozen.outputs :]
        n, c = self._count, len(self.frozen.events)
        parts = np.split(ours, [n, 2 * n, 3 * n, 3 * n + c])
        return _Look(motion, *parts)

    def _held(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes
    ) -> tuple[_Look, Floats]:
        """What is there with held signs at the values that hold them, and all values."""
        held = [i for i in self._signs if modes.values[i] == 0.0]
        if not held:
            return self._look(t, x, r, prepared, modes.values), modes.values
        values = modes.values.copy()
        values[held] = self._sticking(t, x, r, prepared, modes, held)[2]
        return self._look(t, x, r, prepared, values), values

    def _sticking(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes, held: Sequence[int]
    ) -> tuple[_Look, list[_Look], Floats]:
        """What is there if held signs are 0, if one by one is 1, and the values that hold them."""
        base = self._look(t, x, r, prepared, modes.values)
        unit = np.eye(self._count)
        others = [self._look(t, x, r, prepared, modes.values + unit[i]) for i in held]
        B = np.array([(other.rates - base.rates)[list(held)] for other in others]).T
        return base, others, self._solved(B, -base.rates[list(held)], t)

    def _solved(self, B: Floats, right: Floats, t: float) -> Floats:
        try:
            return np.asarray(np.linalg.solve(B, right))
        except np.linalg.LinAlgError as error:
            what, remedy = f"at t = {t:.6g} s no force holds what sticks", "friction must act on what it looks at"
            raise ValidationError("the reference cannot be integrated:", [Fault(what, remedy=remedy)]) from error

    def kinetic_at(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> float:
        """The kinetic energy in J, which no mode changes."""
        return super().motion(t, x, [*r, *([1.0] * self._count)], prepared).kinetic

    @contextmanager
    def keeping_modes(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], after: Sequence[float] | None = None
    ) -> Iterator[None]:
        """Inside, modes are those of this instant, or behind the event in which parameters become ``after``."""
        modes = self.modes_at(t, x, r, prepared)
        if after is not None:
            self.settle(t, x, r, after, modes, ())
        self._kept = modes
        try:
            yield
        finally:
            self._kept = None

    def changed(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], after: Sequence[float]
    ) -> Floats:
        """The state behind the event in which parameters become ``after``."""
        return self.settle(t, x, r, after, self.modes_at(t, x, r, prepared), ())[0]

    def modes_at(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> _Modes:
        """Modes by the sides on which a state is."""
        if self._kept is not None:
            return _Modes(self._kept.values.copy(), self._kept.fired.copy())
        modes = _Modes(np.zeros(self._count), np.zeros(len(self.frozen.events)))
        look = self._look(t, x, r, prepared, modes.values)
        for _ in range(self._count + 1):
            before = modes.values.copy()
            for i, switch in enumerate(self.frozen.switches):
                at = look.surfaces[i]
                if switch.kind == "integer":
                    modes.values[i] = np.floor(at)
                elif switch.kind == "truth":
                    modes.values[i] = float(at > 0.0)
                else:
                    modes.values[i] = 0.0 if abs(at) <= AT_REST else np.sign(at)
            look = self._look(t, x, r, prepared, modes.values)
            if np.array_equal(before, modes.values):
                break
        self._release(t, x, r, prepared, modes)
        modes.fired = look.conditions.copy()
        return modes

    def _release(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes) -> None:
        """Signs that cannot be held slip the way in which they are driven, one after the other."""
        for _ in self._signs:
            held = [i for i in self._signs if modes.values[i] == 0.0]
            if not held:
                return
            look, values = self._held(t, x, r, prepared, modes)
            excess = [abs(values[i]) - look.limits[i] for i in held]
            worst = int(np.argmax(excess))
            if excess[worst] <= 0.0:
                return
            modes.values[held[worst]] = np.sign(values[held[worst]])

    def margins(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes) -> Floats:
        """Positive where modes are right, one per switch."""
        held = [i for i in self._signs if modes.values[i] == 0.0]
        values = modes.values.copy()
        if held:
            look, _, values[held] = self._sticking(t, x, r, prepared, modes, held)
        else:
            look = self._look(t, x, r, prepared, modes.values)
        found = np.empty(self._count)
        for i, switch in enumerate(self.frozen.switches):
            at, mode = look.surfaces[i], modes.values[i]
            if switch.kind == "integer":
                found[i] = min(at - mode, mode + 1.0 - at)
            elif switch.kind == "truth":
                found[i] = at if mode > 0.5 else -at
            else:
                found[i] = look.limits[i] - abs(values[i]) if mode == 0.0 else mode * at
        return found

    # --- events ------------------------------------------------------------------------------------------------------

    def settle(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes, due: Sequence[int]
    ) -> tuple[Floats, str]:
        """Modes after an event, in place; states after it, and the name of what came first.

        The switches ``due`` have come to their surfaces: they change, whatever side round-off puts them on. Without
        any, something was set: inputs or parameters.
        """
        name = self._names[due[0]] if due else ""
        reached: set[int] = set()
        if not due:
            self._moved(t, x, r, prepared, modes)
        for i in due:
            x = self._change(i, t, x, r, prepared, modes)
            reached.add(i)
        for _ in range(_MOST_CHANGES):
            margins = self.margins(t, x, r, prepared, modes)
            slack = np.array([AT_REST if i in reached else 0.0 for i in range(self._count)])
            wrong = np.flatnonzero(margins < -slack)
            if len(wrong):
                i = int(wrong[np.argmin(margins[wrong])])
                x = self._change(i, t, x, r, prepared, modes)
                reached.add(i)
                name = name or self._names[i]
                continue
            fired, x = self._fired(t, x, r, prepared, modes)
            if not fired:
                return x, name
            self._moved(t, x, r, prepared, modes)
        raise stuck(t, f"modes switch to and fro ({name})")

    def _change(
        self, i: int, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes
    ) -> Floats:
        kind, mode = self.frozen.switches[i].kind, modes.values[i]
        look, values = self._held(t, x, r, prepared, modes)
        if kind == "truth":
            modes.values[i] = 1.0 - mode
        elif kind == "integer":
            modes.values[i] = mode + 1.0 if look.surfaces[i] > mode + 0.5 else mode - 1.0
        elif mode == 0.0:
            modes.values[i] = np.sign(values[i])
        else:
            modes.values[i] = 0.0
            x = self._at_rest(t, x, r, prepared, modes)
            look, values = self._held(t, x, r, prepared, modes)
            if abs(values[i]) > look.limits[i]:
                modes.values[i] = np.sign(values[i])
        return x

    def _at_rest(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes) -> Floats:
        """Speeds changed by an impulse of the held signs alone, so that their surfaces are at zero."""
        held = [i for i in self._signs if modes.values[i] == 0.0]
        base = self._look(t, x, r, prepared, modes.values)
        others = [self._look(t, x, r, prepared, modes.values + np.eye(self._count)[i]) for i in held]
        B = np.array([(other.rates - base.rates)[held] for other in others]).T
        reach = np.array([other.motion.x_dot - base.motion.x_dot for other in others]).T
        reach[: self.n_q] = 0.0
        reach[len(x) - self.n_z :] = 0.0
        return np.asarray(x + reach @ self._solved(B, -base.surfaces[held], t))

    def _fired(
        self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes
    ) -> tuple[bool, Floats]:
        """What the model's own events set, with the values before."""
        look, _ = self._held(t, x, r, prepared, modes)
        after, place, fired = x.copy(), 0, False
        for k, targets in enumerate(self._targets):
            if look.conditions[k] > modes.fired[k]:
                fired = True
                for offset, target in enumerate(targets):
                    after[target] = look.settings[place + offset]
            place += len(self.frozen.events[k].settings)
        modes.fired = look.conditions.copy()
        return fired, after

    def _moved(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: _Modes) -> None:
        """Signs slip on the side to which something has set their surface, be they held or from the other side."""
        look = self._look(t, x, r, prepared, modes.values)
        for i in self._signs:
            if abs(look.surfaces[i]) > AT_REST:
                modes.values[i] = np.sign(look.surfaces[i])

    def begin(self, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float]) -> tuple[_Modes, Floats]:
        """Modes and states at the start of a simulation, where the first instants of ``every`` may be."""
        modes = self.modes_at(t, x, r, prepared)
        for k, event in enumerate(self.frozen.events):
            if event.kind == "ticks":
                modes.fired[k] = 0.0
        x, _ = self.settle(t, x, r, prepared, modes, ())
        return modes, x


def travel(
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
    seen: list[EventSeen] | None = None,
) -> Floats:
    """(x, W) at each communication point; arguments as of :meth:`mb2fmu.validation.journey.Journey.travel`.

    W takes the work of events, too: what the kinetic energy jumps by. ``seen`` takes the events.
    """
    walk = _Walk(numeric, prepared, max(tolerance, TIGHTEST), tolerance * scales, projected, budget, seen)
    y = np.empty((len(time), len(start)))
    y[0] = start
    first = inputs[0].tolist()
    if time[0] == 0.0:
        walk.modes, x = numeric.begin(float(time[0]), start[:-1], first, prepared)
        y[0] = np.append(x, start[-1])
    else:
        walk.modes = numeric.modes_at(float(time[0]), start[:-1], first, prepared)
    here = y[0].copy()
    for k, (begin, end) in enumerate(zip(time[:-1].tolist(), time[1:].tolist(), strict=True)):
        r = inputs[k].tolist()
        here = walk.step(begin, end, here, r, parts, changed=bool(k) and not np.array_equal(inputs[k], inputs[k - 1]))
        y[k + 1] = here
    return y


class _Walk:
    """One motion on its way."""

    def __init__(
        self,
        numeric: HybridEquations,
        prepared: Sequence[float],
        relative: float,
        absolute: Floats,
        projected: bool,
        budget: int,
        seen: list[EventSeen] | None,
    ) -> None:
        self.numeric, self.prepared = numeric, prepared
        self._relative, self._absolute = relative, absolute
        self._projected, self._budget, self._seen = projected, budget, seen
        self._spent = self._events = 0
        self._step = np.inf
        self.modes: _Modes

    def step(self, begin: float, end: float, y: Floats, r: Sequence[float], parts: int, *, changed: bool) -> Floats:
        """From one communication point to the next."""
        if changed:
            y = self._event(begin, y, r, ())
        t, most = begin, (end - begin) / parts
        while t < end:
            t, y = self._smooth(t, end, y, r, most)
        return y

    def _slope(self, r: Sequence[float]) -> Callable[[float, Any], Any]:
        def slope(t: float, y: Any) -> Any:
            try:
                x_dot, power = self.numeric.slope(t, y[:-1], r, self.prepared, self.modes)
            except (ArithmeticError, ValueError):
                return np.full_like(y, np.nan)
            return np.append(x_dot, power)

        return slope

    def _solver(self, t: float, y: Floats, end: float, r: Sequence[float], most: float) -> DOP853:
        first = min(self._step, most, end - t)
        return DOP853(
            self._slope(r), t, y, end, first_step=first if np.isfinite(self._step) else None, max_step=most,
            rtol=self._relative, atol=self._absolute,  # type: ignore[arg-type] # SciPy takes one per component

        )  # fmt: skip

    def _smooth(self, t: float, end: float, y: Floats, r: Sequence[float], most: float) -> tuple[float, Floats]:
        """Up to the next event, or to the end."""
        solver = self._solver(t, y, end, r, most)
        while solver.status == "running":
            before = (solver.t, solver.y.copy())
            why = solver.step()
            if why:
                raise stuck(solver.t, why.rstrip("."))
            if self._spent + solver.nfev > self._budget:
                raise stuck(solver.t, f"{self._budget} evaluations are spent")
            found = self._crossing(solver, r)
            if found is not None:
                self._spent += solver.nfev
                self._step = max(solver.t - before[0], 1e-12)
                return self._up_to(*before, found, r, most)
            if self._projected:
                x = self.numeric.project(solver.t, solver.y[:-1], self.prepared)
                solver.y = np.append(x, solver.y[-1])
                solver.f = solver.fun(solver.t, solver.y)
        self._step, self._spent = solver.h_abs, self._spent + solver.nfev
        return end, solver.y

    def _margins(self, t: float, y: Floats, r: Sequence[float]) -> Floats:
        return self.numeric.margins(t, y[:-1], r, self.prepared, self.modes)

    def _crossing(self, solver: DOP853, r: Sequence[float]) -> float | None:
        """The first instant of the last step at which a mode is no longer right."""
        dense = solver.dense_output()
        low = solver.t_old
        start = self._margins(low, dense(low), r)
        for high in np.linspace(solver.t_old, solver.t, _LOOKS + 1)[1:].tolist():
            if self._wrong(high, dense(high), r, start):
                return self._bracketed(low, high, lambda t: bool(self._wrong(t, dense(t), r, start)))
            low = high
        return None

    @staticmethod
    def _bracketed(low: float, high: float, wrong: Callable[[float], bool]) -> float:
        """The first instant, to the last digit, at which something is wrong that is so at ``high``."""
        while True:
            middle = 0.5 * (low + high)
            if not low < middle < high:
                return high
            if wrong(middle):
                high = middle
            else:
                low = middle

    def _wrong(self, t: float, y: Floats, r: Sequence[float], start: Floats) -> list[int]:
        """Switches that are not right; what begins on its surface is, until it is clearly beyond."""
        margins = self._margins(t, y, r)
        return [i for i, margin in enumerate(margins) if margin < min(0.0, 2.0 * start[i]) - 1e-15]

    def _up_to(self, t: float, y: Floats, instant: float, r: Sequence[float], most: float) -> tuple[float, Floats]:
        """The step made anew up to an event, and the event."""
        before = self._margins(t, y, r)
        solver = self._solver(t, y, instant, r, most)
        while solver.status == "running":
            why = solver.step()
            if why:
                raise stuck(solver.t, why.rstrip("."))
        self._spent += solver.nfev
        margins = self._margins(instant, solver.y, r)
        falling = margins < 0.5 * before
        near = np.abs(margins) <= 1e-9 * np.maximum(1.0, np.abs(before))
        due = np.flatnonzero((falling & near) | (margins < 0.0))
        due = due[np.argsort(margins[due])][:1] if len(due) else np.array([int(np.argmin(margins))])
        return instant, self._event(instant, solver.y, r, due.tolist())

    def _event(self, t: float, y: Floats, r: Sequence[float], due: Sequence[int]) -> Floats:
        """Modes and states after an event; its work is part of W."""
        self._events += 1
        if self._events > _MOST_EVENTS:
            name = self.numeric.frozen.switches[due[0]].name if due else "an input"
            raise stuck(t, f"more than {_MOST_EVENTS} events came before, the last of {name}")
        old, x = tuple(self.modes.values.tolist()), y[:-1]
        before = self.numeric.kinetic_at(t, x, r, self.prepared)
        after, name = self.numeric.settle(t, x, r, self.prepared, self.modes, due)
        new = tuple(self.modes.values.tolist())
        jumped = not np.array_equal(after, x)
        if self._seen is not None and (old != new or jumped):
            self._seen.append(EventSeen(t, name, old, new, jumped))
        work = self.numeric.kinetic_at(t, after, r, self.prepared) - before if jumped else 0.0
        return np.append(after, y[-1] + (work if np.isfinite(work) else 0.0))
