"""Short runs: Co-Simulation by its own steps, Model Exchange by the auditor's own integrator with events."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import mul

from mb2fmu.audit.behaviour.binding import DISCARD, Events, RefusedError, Step, Value
from mb2fmu.audit.behaviour.instance import Instance
from mb2fmu.audit.behaviour.stage import EndedError, Stage, TiredError, UnsettledError, same
from mb2fmu.audit.description.described_model import Variable
from mb2fmu.crossings import first_beyond

# Dormand and Prince 1980, RK5(4)7M.
_A = (
    (),
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
_C = (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0)
_E = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
_TINY = math.ulp(0.0)
MOST_STEPS = 20_000
MOST_EVENTS = 1_000
MOST_JUMPS = 200
"""Events that are remembered."""

MOST_AT_ONCE = 50
"""Events at one time, after which no end of them is expected."""


@dataclass
class Jump:
    """One event of a Model Exchange run.

    Attributes:
        time: When.
        before: States before it.
        after: States after it.
        said: What the unit said of it, all iterations together.
        why: ``state``, ``time``, ``step`` or ``input``.
        signs: Whether each event indicator was positive before it, and after it.
        nominals: Nominal values before and after it.
        announced: Time event that was known before it.
    """

    time: float
    before: list[float]
    after: list[float]
    said: Events
    why: str
    signs: tuple[list[float], list[float]]
    nominals: tuple[list[float], list[float]]
    announced: float


@dataclass
class Run:
    """Values at the communication points.

    Attributes:
        times: Of the points.
        rows: Values of the observed variables at each.
        events: How many events a Model Exchange run had had at each point.
        jumps: These events.
    """

    times: list[float] = field(default_factory=list)
    rows: list[list[Value]] = field(default_factory=list)
    events: list[int] = field(default_factory=list)
    jumps: list[Jump] = field(default_factory=list)


def differing(variables: Sequence[Variable], first: Run, second: Run) -> tuple[Variable, int] | None:
    """Return the first variable whose bits differ, and the point; None if the runs are equal."""
    for k, (a, b) in enumerate(zip(first.rows, second.rows, strict=True)):
        if a == b:
            continue  # no number is equal to itself that is none: these are looked at one by one
        for variable, one, other in zip(variables, a, b, strict=True):
            if not same(one, other):
                return variable, k
    return None


def cosimulate(
    stage: Stage, instance: Instance, variables: Sequence[Variable], *, steps: int | None = None,
    size: float | None = None, begin: float | None = None, first: bool = True,
) -> Run:  # fmt: skip
    """Do communication steps from the present point on."""
    size = stage.step if size is None else size
    begin = stage.start if begin is None else begin
    run = Run()
    if first:
        run.times.append(begin)
        run.rows.append(instance.get(variables))
    for k in range(stage.steps if steps is None else steps):
        advance(stage, instance, begin + k * size, size)
        run.times.append(begin + (k + 1) * size)
        run.rows.append(instance.get(variables))
    return run


def advance(stage: Stage, instance: Instance, point: float, size: float) -> Step:
    """Do one communication step, with the events of an FMI 3 unit in event mode; return the step's result.

    Raises:
        SkippedError: If the unit ends the simulation.
        RefusedError: If it refuses the step.
    """
    seen = len(instance.messages)
    done = instance.must_step(point, size)
    if done.terminate:
        end = done.last if math.isfinite(done.last) else point + size
        said = f': "{instance.told_since(seen)}"' if len(instance.messages) > seen else ""
        raise EndedError(f"the unit asks to end the simulation at t = {end:.6g}{said}", end)
    if instance.event_mode and done.events:
        instance.event()
        stage.settle(instance)
        instance.go_on()
    return done


class Integration:
    """Integrates Model Exchange with error control, and state, time and step events.

    Args:
        stage: Of the unit.
        instance: In Continuous-Time Mode.
        time: Where it is.
        tolerance: Relative, of a step.
        next_event: Time event known from the initialization.
    """

    def __init__(
        self, stage: Stage, instance: Instance, time: float, tolerance: float, next_event: float | None
    ) -> None:
        self._stage, self._instance, self._tolerance = stage, instance, tolerance
        self._size = stage.n_states
        self.time = time
        self.states = instance.states(self._size) if self._size else []
        self._next = math.inf if next_event is None else next_event
        nominals = instance.vector("GetNominalsOfContinuousStates", self._size) if self._size else []
        self._scale = [abs(each) or 1.0 for each in nominals]
        self._signs = self._indicators()
        self._attempt = stage.step / 10.0
        self._done = 0
        self._needs_completed = not stage.flag("completedIntegratorStepNotNeeded")
        self.events = 0
        self._moment, self._at_once = -math.inf, 0
        self._jumped, self._apart = -math.inf, math.inf
        self._span = min(1.0, stage.stop - stage.start)  # by which times are alike: 1e-12 s is much to a microsecond
        self.jumps: list[Jump] = []
        self.watch: Callable[[str], None] = lambda _: None
        self.left: Callable[[], None] = lambda: None
        """Called when Event Mode was left, before anything else is."""
        self.moves: Callable[[float], Mapping[Variable, Value]] | None = None
        """Continuous inputs by time, set wherever something is evaluated."""

    @property
    def following(self) -> float:
        """Time of the next time event; infinite if none is known."""
        return self._next

    def _indicators(self) -> list[float]:
        """Return the event indicators at the present time and states."""
        count = self._stage.n_indicators
        return self._instance.vector("GetEventIndicators", count) if count else []

    def _go_to(self, time: float) -> None:
        """Set the time, and the inputs that move with it."""
        self._instance.set_time(time)
        if self.moves is not None:
            self._instance.set(self.moves(time))

    def _slopes(self, time: float, states: Sequence[float]) -> list[float]:
        """Return x' at a time and states, which the unit keeps afterwards."""
        self._go_to(time)
        if not self._size:
            return []
        self._instance.set_states(states)
        return self._instance.slopes(self._size)

    def _tried(self, size: float) -> tuple[list[float], float]:
        """Return states after one step, and the error relative to its limit."""
        stages: list[list[float]] = []
        state = self.states
        for row, part in zip(_A, _C, strict=True):
            if row:
                state = [
                    x + size * sum(map(mul, row, k))
                    for x, k in zip(self.states, zip(*stages, strict=True), strict=True)
                ]
            stages.append(self._slopes(self.time + part * size, state))
        worst = 0.0
        for x, before, scale, k in zip(state, self.states, self._scale, zip(*stages, strict=True), strict=True):
            error = size * sum(map(mul, _E, k))
            allowed = self._tolerance * max(abs(x), abs(before), 1e-3 * scale)
            worst = max(worst, abs(error) / allowed if math.isfinite(error) else math.inf)
        return state, worst

    def _attempted(self, size: float) -> tuple[list[float], float, RefusedError | None]:
        """Return a step as ``_tried``; Discard asks for a smaller one (FMI 2.0, 2.1.3): an infinite error."""
        try:
            return *self._tried(size), None
        except RefusedError as refused:
            if refused.status != DISCARD:
                raise
            return self.states, math.inf, refused

    def advance(self, until: float) -> None:
        """Integrate to a time in s, through all events on the way.

        Raises:
            TiredError: If there are too many steps or events.
        """
        while self.time < until - 1e-12 * max(self._span, abs(until)):
            self._done += 1
            if self._done > MOST_STEPS or self.events > MOST_EVENTS:
                raise TiredError("too many steps or events for the auditor's integrator", self.time)
            target = min(until, self._next)
            size = min(self._attempt, target - self.time)
            if size > 1e-15 * max(self._span, abs(self.time)):
                size = self._step(size, target)
            if self.time >= self._next - 1e-12 * max(self._span, abs(self._next)):
                self._event("time")

    def _step(self, size: float, target: float) -> float:
        """Take a step of at most `size` s, cut to its tolerance or the first event; return its size."""
        state, error, refused = self._attempted(size)
        while error > 1.0:
            size *= max(0.1, 0.9 * error**-0.2) if math.isfinite(error) else 0.1
            if size < 1e-13 * max(self._span, abs(self.time)):
                raise refused or TiredError("the auditor's integrator cannot keep its tolerance", self.time)
            state, error, refused = self._attempted(size)
        if size < target - self.time or error > 0.0:
            self._attempt = size * min(5.0, 0.9 * max(error, 1e-8) ** -0.2)
        else:
            self._attempt = max(self._attempt, 2.0 * size)
        beyond = self._margin(self.time + size, state)
        if beyond < 0.0:
            size, state = self._located(size, state, beyond)
            events = self.events
            self._accept(size, state)
            if self.events == events:
                self._event("state")
        else:
            self._accept(size, state)
        return size

    def _margin(self, time: float, state: Sequence[float]) -> float:
        """Return the least magnitude of an event indicator, < 0 if one has another sign than at the last step."""
        if not self._signs:
            return math.inf
        self._go_to(time)
        if self._size:
            self._instance.set_states(state)
        pairs = list(zip(self._signs, self._indicators(), strict=True))
        least = min(b if a > 0.0 else -b for a, b in pairs)
        if any((a > 0.0) != (b > 0.0) for a, b in pairs):
            return least if least < 0.0 else -_TINY
        return max(least, 0.0)

    def _located(self, size: float, state: list[float], beyond: float) -> tuple[float, list[float]]:
        """Return the shortest step that crosses, and where it ends; ``state``, ``beyond``: behind a whole step."""
        states = {size: state}

        def margin(part: float) -> float:
            """Return the margin behind a part of the step."""
            states[part] = self._tried(part)[0]
            return self._margin(self.time + part, states[part])

        before = min(map(abs, self._signs))
        high = first_beyond(margin, 0.0, size, (before, beyond), 1e-13 * max(self._span, abs(self.time)))
        return high, states[high]

    def _accept(self, size: float, state: list[float]) -> None:
        """Take a time and states as reached, report the step, and handle a step event."""
        self.time += size
        self.states = state
        self._go_to(self.time)
        if self._size:
            self._instance.set_states(state)
        if self._needs_completed:
            event, end = self._instance.completed()
            if end:
                raise EndedError(f"the unit asks to end the simulation at t = {self.time:.6g}", self.time)
            if event:
                self._event("step")
                return
        self._signs = self._indicators()

    def interrupt(self, values: Mapping[Variable, Value]) -> None:
        """Set inputs at an event."""
        self._event("input", values)

    def _nominals(self) -> list[float]:
        """Return the nominal values of the continuous states."""
        return self._instance.vector("GetNominalsOfContinuousStates", self._size) if self._size else []

    def _event(self, why: str, values: Mapping[Variable, Value] | None = None) -> None:
        """Handle an event: Event Mode, inputs that jump, iterations; record what jumped and the next time event."""
        self.events += 1
        self._at_once = self._at_once + 1 if self.time == self._moment else 0
        self._moment = self.time
        if self._at_once > MOST_AT_ONCE:
            raise UnsettledError(
                f"events follow each other without end at t = {self.time:.6g}; the next time event is said to be at "
                f"{self._next:.6g}"
            )
        before, nominals, signs = self.states, self._nominals(), self._signs
        self.watch("before")
        self._instance.event()
        self._instance.set(values or {})
        events = self._stage.settle(self._instance)
        self.watch("settled")
        self._instance.go_on()
        self.left()
        announced, self._next = self._next, math.inf if events.next_time is None else events.next_time
        if self._size:
            self.states = self._instance.states(self._size)
        self._signs = self._indicators()
        if len(self.jumps) < MOST_JUMPS:
            after = self._nominals()
            self.jumps.append(
                Jump(self.time, before, self.states, events, why, (signs, self._signs), (nominals, after), announced)
            )
        if self._next < self.time:
            text = f"at t = {self.time:.9g} the next time event is said to be at {self._next:.9g}, which is over"
            raise UnsettledError(text)
        if self.states != before:
            self._jumped, self._apart = self.time, self.time - self._jumped
        # bounces that follow each other faster and faster must not lie within one step
        self._attempt = min(self._stage.step, 2.0 * (self._apart or math.inf)) / 10.0


def begin(stage: Stage, instance: Instance, within: Mapping[Variable, Value] | None = None) -> float | None:
    """Move Model Exchange from Instantiated to Continuous-Time Mode; return the first time event, if any."""
    instance.enter(stage.start, None, stage.tolerance)
    instance.set(within or {})
    instance.exit()
    events = stage.settle(instance, first=True)
    instance.go_on()
    return events.next_time


def integrate(
    stage: Stage, instance: Instance, variables: Sequence[Variable], within: Mapping[Variable, Value] | None = None,
    tolerance: float = 1e-9, steps: int | None = None,
) -> Run:  # fmt: skip
    """Return a Model Exchange run from Instantiated on."""
    integration = Integration(stage, instance, stage.start, tolerance, begin(stage, instance, within))
    run = Run([stage.start], [instance.get(variables)], [0])
    for k in range(stage.steps if steps is None else steps):
        integration.advance(stage.start + (k + 1) * stage.step)
        run.times.append(integration.time)
        run.rows.append(instance.get(variables))
        run.events.append(integration.events)
    return run


def run(
    stage: Stage,
    instance: Instance,
    variables: Sequence[Variable],
    within: Mapping[Variable, Value] | None = None,
    steps: int | None = None,
) -> Run:
    """Return a run of either kind from Instantiated on."""
    if stage.kind == "ModelExchange":
        return integrate(stage, instance, variables, within, tolerance=1e-6, steps=steps)
    stage.initialize(instance, within=within)
    return cosimulate(stage, instance, variables, steps=steps)
