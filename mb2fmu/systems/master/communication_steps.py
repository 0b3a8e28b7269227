"""Marching: communication steps of a whole system, Jacobi or Gauss–Seidel, once or until inputs agree.

One step from t_n to t_n + H:

1. Inputs get courses: polynomials of order k through the last k + 1 communication points, extrapolated; where the value
   at the end is known (Gauss–Seidel: from components that have stepped already; repeated passes: from the pass before)
   the newest k of these points and the end.
2. Every component steps along its inputs' courses.
3. Inputs and outputs are made to agree at the end (``algebraic_loops``), so that no output is read of an input that is
old. 4. If inputs at the end are others than those of the courses, and passes are left: back to t_n, and again.

Source: M. Busch, Continuous approximation techniques for co-simulation methods, ZAMM 96 (2016), 1061-1081; Newton
passes after S. Sicklinger et al., Interface Jacobian-based co-simulation algorithm, Int. J. Numer. Meth. Engng 98
(2014), 418-444.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master import input_extrapolation as courses
from mb2fmu.systems.master.algebraic_loops import AlgebraicLoopSolver, KeptValues
from mb2fmu.systems.master.connection_delays import DelayedConnections
from mb2fmu.systems.master.evaluation_order import order_components
from mb2fmu.systems.master.fmu_slaves import Slave, SlaveError, SlaveStepResult
from mb2fmu.systems.resolved_system import SteppingSettings, SystemWiring

Floats = npt.NDArray[np.float64]

_SHIFT = 1e-6
_ROUND_OFF = 8.0 * np.finfo(float).eps
_SLACK = 1e-9
"""Times are compared with this, relative to the step."""


MOST_MEETINGS = 50
"""Shorter and shorter steps to an instant at which all components can meet: other inputs move another's event."""


class CommunicationStepError(Exception):
    """A system could not be stepped further.

    Args:
        component: Name of the component that failed; empty if it is the coupling itself.
        time: The last communication point that was reached, in s.
        what: Happened.
    """

    def __init__(self, component: str, time: float, what: str) -> None:
        self.component, self.time, self.what = component, time, what
        super().__init__(f"{component or 'the coupling'} at t = {time:.9g} s: {what}")


@dataclass(frozen=True, slots=True)
class AcceptedStep:
    """One accepted communication step.

    Attributes:
        begin: In s.
        size: In s.
        courses: Of the inputs, from ``begin``; shape (n_inputs, 3).
        passes: How many there were.
        change: Of the inputs at the end in the last pass, relative to their size.
        error: Of the extrapolated inputs at the end, relative to their size.
        event: At the end.
        starts: Outputs at the beginning once the inputs are those of the courses, shape (n_outputs,).
        ends: Outputs at the end while the inputs are still those of the courses, shape (n_outputs,).
        anew: There was an event at the beginning.
    """

    begin: float
    size: float
    courses: Floats
    passes: int
    change: float
    error: float
    event: bool
    starts: Floats
    ends: Floats
    anew: bool = False


@dataclass(frozen=True, slots=True)
class SavedSystemState:
    """All that a system is at a communication point, to go back to.

    Attributes:
        states: Of the components.
        time: Of the point, in s.
        past: Points and inputs that courses are fitted to.
        values: Of :class:`AlgebraicLoopSolver`.
        scale: Largest inputs so far.
        jacobian: Of the interface, with what it belongs to.
        next: Instant of the next event that is known beforehand, in s.
    """

    states: list[Any]
    time: float
    past: list[tuple[float, Floats]]
    values: KeptValues
    scale: Floats
    jacobian: tuple[tuple[float, int], Floats] | None
    next: float


class SystemStepper:
    """A system during its run.

    Args:
        wiring: The system.
        slaves: Its components, in order, ready to step.
        stepping: How.

    Attributes:
        time: The last communication point, s.
        closing: Inputs and outputs there.
    """

    def __init__(
        self, wiring: SystemWiring, slaves: Sequence[Slave], stepping: SteppingSettings, time: float = 0.0
    ) -> None:
        self._wiring, self._slaves, self._stepping = wiring, slaves, stepping
        self.closing = AlgebraicLoopSolver(wiring, slaves)
        self._sequence = order_components(wiring, stepping.sequence)
        self._fed = [self.closing.fed_by(k) for k in range(len(slaves))]
        self._past: list[tuple[float, Floats]] = []
        self._delays = DelayedConnections(wiring)
        self._scale = np.zeros(len(wiring.inputs))
        self._jacobian: tuple[tuple[float, int], Floats] | None = None
        self._next: float = np.inf
        self._starts = self.closing.y
        self._stopped = 0
        self.time = time

    def begin(self) -> None:
        """Make inputs and outputs agree at the first communication point."""
        self.closing.u[self._delays.targets] = self._delays.arriving(self.time)
        self._guarded(self.closing.close_wholly)
        self._remember(anew=True)

    def place(self, past: Sequence[Floats], size: float) -> None:
        """Set the known past of the inputs: one row per communication point, the newest last."""
        self._past = [(self.time - size * (len(past) - 1 - k), np.array(u)) for k, u in enumerate(past)]
        self._scale = np.maximum(self._scale, np.max(np.abs(np.array(past)), axis=0))

    @property
    def newest(self) -> tuple[Floats, ...]:
        """Inputs at the communication points that courses are fitted to, the newest last."""
        return tuple(u for _, u in self._past[-(self._stepping.order + 1) :])

    def step(self, size: float) -> AcceptedStep:
        """Do one communication step; a shorter one if a component returned early.

        Raises:
            MarchError: If a component fails; time and past are still those of the last communication point.
        """
        for made in range(MOST_MEETINGS):
            size = min(size, self._next - self.time) if self._next > self.time + _SLACK * size else size
            size = min(size, self._delays.shortest)
            states = self._saved() if self._stepping.goes_back or self._may_return_early() else None
            try:
                done = self._met(size, states)
            finally:
                self.forget(states)
            if done is not None:
                done = replace(done, anew=made > 0)
                break
            self._events()
            self._remember(anew=True)
        else:
            raise CommunicationStepError("", self.time, f"{MOST_MEETINGS} events follow one another at this instant")
        self.time = done.begin + done.size
        if done.event or self.time >= self._next - _SLACK * size:
            self._events()
        self._remember(anew=done.event)
        return done

    def _met(self, size: float, states: list[Any] | None) -> AcceptedStep | None:
        """Step to where all components can meet; None if one has an event at once, before it has moved.

        Then it stays where it is, since its inputs' courses may have begun a little beside the values of the inputs
        there, and all others go back. Where one of them stopped there is an event, though it may not see it again when
        it comes to that instant with slightly other inputs: left to itself it would handle it unseen in the next step.
        """
        values = self.closing.kept()
        done = self._passes(size, states)
        event = False
        for _ in range(MOST_MEETINGS):
            event = event or done.event
            if not self._fell_short(done.size, size):
                return replace(done, event=event)
            size = done.size
            at_once = size <= _ROUND_OFF * abs(self.time)
            self._back(states, but=self._stopped if at_once else None)
            self.closing.restore(values)
            if at_once and done.event:
                return None
            if at_once:
                raise CommunicationStepError(
                    self._wiring.components[self._stopped], self.time, "it stops without an event"
                )
            done = self._passes(size, states)  # all go again, to where the first of them stopped
        raise CommunicationStepError(
            "", self.time, f"events recede from pass to pass, {MOST_MEETINGS} times in one step"
        )

    def undo(self, kept: SavedSystemState) -> None:
        """Go back to an earlier communication point: all that follows has the bits of a run that never went on."""
        self._back(kept.states)
        self.time, self._past = kept.time, list(kept.past)
        self._scale, self._jacobian, self._next = kept.scale.copy(), kept.jacobian, kept.next
        self.closing.restore(kept.values)
        self._delays.forget_after(kept.time)

    def kept(self) -> SavedSystemState:
        """Return the argument for :meth:`undo`."""
        return SavedSystemState(
            self._saved(), self.time, list(self._past), self.closing.kept(), self._scale.copy(), self._jacobian,
            self._next,
        )  # fmt: skip

    def slopes(self, pairs: Sequence[tuple[int, int]]) -> Floats:
        """Return ∂output/∂input of (input, output) at the last communication point, shape (len(pairs),)."""
        return np.asarray(self._guarded(self.closing.slopes, pairs))

    # --- one step

    def _passes(self, size: float, states: list[Any] | None) -> AcceptedStep:
        """Step all components, and repeat until the inputs at the end agree; stop early where a component did."""
        predicted = courses.evaluate_polynomials(self._courses(size, None, None), size)
        end: Floats | None = None
        change, made, ends = np.inf, 0, self.closing.y
        self._starts = self.closing.y.copy()
        newton = self._stepping.jacobian and states is not None
        for made in range(1, self._stepping.passes + 1):
            if made > 1:
                self._back(states)
            used, shortest, event = self._pass(size, end)
            if self._fell_short(shortest, size):
                return AcceptedStep(
                    self.time, shortest, used, made, 0.0, 0.0, event, self._starts, self.closing.y.copy()
                )
            found = self.closing.linked(np.arange(len(self._scale))) if newton else None
            ends = self.closing.y.copy()
            self._guarded(self.closing.close)
            self._scale = np.maximum(self._scale, np.abs(self.closing.u))
            given = courses.evaluate_polynomials(used, size)
            change = self._relative(self.closing.u - given)
            if change <= self._stepping.converged or made == self._stepping.passes:
                break
            end = self.closing.u.copy()
            if found is not None:
                end = given + self._newton(size, given, found, states)
        error = self._relative(self.closing.u - predicted)
        return AcceptedStep(self.time, size, used, made, change, error, event, self._starts, ends)

    def _pass(self, size: float, end: Floats | None) -> tuple[Floats, float, bool]:
        """Step all components once; return their courses, the shortest step, and any event."""
        known = np.full(len(self._scale), end is not None)
        target = np.zeros(len(self._scale)) if end is None else end.copy()
        used = self._courses(size, target, known)
        shortest, event = size, False
        for k in self._sequence:
            ins = self.closing.ins(k)
            if self._stepping.method == "gauss-seidel" and not self._stepping.jacobian:
                used[ins] = self._courses(size, target, known)[ins]
            if self._wiring.bonds and not self._stepping.order:  # a held input may jump at the beginning
                self._guarded(self._slaves[k].write, used[ins, 0], component=k)
                self._starts[self.closing.outs(k)] = self._guarded(self._slaves[k].read, component=k)
            done: SlaveStepResult = self._guarded(self._slaves[k].advance, self.time, size, used[ins], component=k)
            shortest = min(shortest, done.reached - self.time)
            event = event or done.event
            if self._fell_short(shortest, size):
                self._stopped = k
                return used, shortest, event
            self.closing.u[ins] = courses.evaluate_polynomials(used[ins], size)
            self._guarded(self.closing.read, k, component=k)
            if self._stepping.method == "gauss-seidel":
                fed = self._fed[k]
                target[fed], known[fed] = self.closing.linked(fed), True
        return used, shortest, event

    def _courses(self, size: float, end: Floats | None, known: npt.NDArray[np.bool_] | None) -> Floats:
        """Return the inputs' courses: through the past, or through the last past point and the known end."""
        order = self._stepping.order
        past = courses.select_distant_points(self._past, size)[-(order + 1) :]
        times = [time - self.time for time, _ in past]
        found = courses.fit_polynomials(times, np.array([u for _, u in past]))
        if self._delays.targets.size:
            found[self._delays.targets] = self._delays.courses(self.time, size)
        if end is None or known is None or not known.any():
            return found
        known = known & ~np.isin(np.arange(len(known)), self._delays.targets)
        past = past[len(past) - order :] if order else []
        times = [*(time - self.time for time, _ in past), size]
        ended = courses.fit_polynomials(times, np.array([*(u for _, u in past), end]))
        return np.where(known[:, None], ended, found)

    def _newton(self, size: float, given: Floats, found: Floats, states: list[Any] | None) -> Floats:
        """Return the change of inputs at the end for u = L y(u), by the interface Jacobian from differences."""
        kind = (size, min(len(courses.select_distant_points(self._past, size)), self._stepping.order))
        if self._jacobian is None or self._jacobian[0] != kind:
            self._jacobian = kind, self._differences(size, given, states)
        return np.asarray(np.linalg.solve(np.eye(len(given)) - self._jacobian[1], found - given))

    def _differences(self, size: float, given: Floats, states: list[Any] | None) -> Floats:
        """Return d(L y at the end)/d(u at the end); each component steps from t_n once per input, and once more."""
        count = len(given)
        jacobian = np.zeros((count, count))
        assert states is not None
        for k, slave in enumerate(self._slaves):
            ins = self.closing.ins(k)
            rows = []
            for moved in [None, *ins.tolist()]:
                end = given.copy()
                if moved is not None:
                    end[moved] += _SHIFT * max(1.0, self._scale[moved])
                course = self._courses(size, end, np.ones(count, dtype=bool))[ins]
                self._guarded(slave.restore, states[k], component=k)
                self._guarded(slave.advance, self.time, size, course, component=k)
                self._guarded(self.closing.read, k, component=k)
                rows.append(self.closing.linked(self._fed[k]))
            for moved, row in zip(ins.tolist(), rows[1:], strict=True):
                jacobian[self._fed[k], moved] = (row - rows[0]) / (_SHIFT * max(1.0, self._scale[moved]))
        return jacobian

    def _relative(self, difference: Floats) -> float:
        """Return the largest change of an input, relative to its largest value so far."""
        scale = np.where(self._scale > 0.0, self._scale, 1.0)
        return float(np.max(np.abs(difference) / scale, initial=0.0))

    # --- states, events

    def _fell_short(self, reached: float, size: float) -> bool:
        """Return whether a step ended early by more than round-off, so that a component would be left behind."""
        return bool(size - reached > _ROUND_OFF * (abs(self.time) + size))

    def _may_return_early(self) -> bool:
        """Return whether a component may stop inside a step and all can go back to meet it there."""
        return any(slave.abilities.early or slave.abilities.events for slave in self._slaves) and all(
            slave.abilities.back for slave in self._slaves
        )

    def _saved(self) -> list[Any]:
        """Save the state of every component."""
        return [self._guarded(slave.save, component=k) for k, slave in enumerate(self._slaves)]

    def _back(self, states: list[Any] | None, but: int | None = None) -> None:
        """Restore every component, ``but`` one, to saved states; raise if they could not be saved."""
        if states is None:
            raise CommunicationStepError(
                "", self.time, "a component returned early, and others cannot go back to meet it there"
            )
        for k, slave in enumerate(self._slaves):
            if k != but:
                self._guarded(slave.restore, states[k], component=k)

    def forget(self, states: list[Any] | None) -> None:
        """Free saved states."""
        for slave, state in zip(self._slaves, states or (), strict=False):
            slave.forget(state)

    def _events(self) -> None:
        """Handle events of all components that have Event Mode, until none has another one at this instant."""
        times = [self._guarded(slave.settle, component=k) for k, slave in enumerate(self._slaves)]
        self._next = min((time for time in times if time is not None), default=np.inf)
        self._guarded(self.closing.close)

    def _remember(self, *, anew: bool) -> None:
        """Keep time and inputs of the last three points, from which courses are extrapolated; `anew` after an event."""
        if anew:
            self._past.clear()
        self._delays.remember(self.time, self.closing.y)
        self._past.append((self.time, self.closing.u.copy()))
        del self._past[:-3]
        self._scale = np.maximum(self._scale, np.abs(self.closing.u))

    def _guarded(self, function: Any, *arguments: Any, component: int | None = None) -> Any:
        """Call a function; an error of an FMU becomes one that names component and time."""
        try:
            return function(*arguments)
        except SlaveError as error:
            name = "" if component is None else self._wiring.components[component]
            raise CommunicationStepError(name, self.time, str(error)) from error
