"""Common part of all probes: the unit, its experiment, its variables by role, and ways into each mode."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from mb2fmu.audit.behaviour.binding import Events, Library, RefusedError, Value
from mb2fmu.audit.behaviour.instance import Instance
from mb2fmu.audit.behaviour.magnitudes import Magnitudes
from mb2fmu.audit.behaviour.pace import SkippedError
from mb2fmu.audit.description.described_model import FLOATS, Description, Variable, number
from mb2fmu.audit.recorded_run import Recorded

MOST_ITERATIONS = 100
PATIENCE = 8.0
"""For evaluating at many points, in s of the processor: a busy machine tries as much as an idle one."""


RUN_SHARE = 0.012
"""Part of the time that one run may take."""

SOME = 20
"""Steps that every run has, and by which its cost is measured."""

MOST_STEPS = 500
"""Communication steps of an experiment, where their size is free."""

LONGEST_STEP = 1000
"""Communication steps, as the unit prefers them, that are made in one: more of them are no fair question."""

MOST_WHOLE = 5000
"""Communication steps of a run, however long the experiment is."""


MOST_VARIABLES = 600
"""Of a larger unit a sample is tried: all states, their derivatives, and some of each kind of the others."""

LEAST_OF_A_KIND = 10


class UnmadeError(SkippedError):
    """No instance could be made."""


class OnceError(SkippedError):
    """A second instance in one process, of a unit that says that it must be instantiated only once."""


class UnsettledError(SkippedError):
    """Events follow each other without an end."""


class EndedError(SkippedError):
    """The unit asked to end the simulation.

    Args:
        text: The message.
        time: When.

    Attributes:
        moved: Inputs, parameters or start values were not its own, which may be what ends it.
    """

    def __init__(self, text: str, time: float) -> None:
        super().__init__(text)
        self.time = time
        self.moved = False


class TiredError(SkippedError):
    """The auditor's integrator came to no end.

    Args:
        text: The message.
        time: Where it gave up.
    """

    def __init__(self, text: str, time: float) -> None:
        super().__init__(text)
        self.time = time


@dataclass
class Stage:
    """A unit of one interface type, ready to be tried.

    Attributes:
        library: Loaded.
        kind: ``ModelExchange`` or ``CoSimulation``.
        folder: Where it is unpacked.
        skipped: What could not be judged, with the reason; filled by the probes.
        tell: Is told what a probe is at, for the message if the process is gone then.
        effort: Seconds for all probes of this kind.
        idle: Rule → why it has nothing to judge here; filled by the probes.
        notes: What probes have found out once for all of them.
        recorded: A run to be repeated, if one was given.
        due: First time event that was announced at the end of an initialization; None if there was none.
    """

    library: Library
    kind: str
    folder: Path
    skipped: list[str] = field(default_factory=list)
    tell: Callable[[str], None] = lambda _: None
    effort: float = 120.0
    idle: dict[str, str] = field(default_factory=dict)
    notes: dict[str, Any] = field(default_factory=dict)
    recorded: Recorded | None = None
    due: float | None = None

    def nothing(self, rule: str, why: str) -> None:
        """Report that a rule has nothing to judge in this unit."""
        self.idle.setdefault(rule, why)

    @property
    def description(self) -> Description:
        """The unit's description."""
        return self.library.description

    def flag(self, name: str) -> bool:
        """Return a capability of this kind of interface; FMI 2 and 3 spell some differently."""
        return self.description.flag(self.kind, name)

    @cached_property
    def random(self) -> random.Random:
        """A generator that gives the same numbers each time."""
        return random.Random(20)  # noqa: S311

    # --- experiment

    def _experiment(self, name: str) -> float | None:
        """Return a number of the default experiment; None if absent or not finite."""
        value = number(self.description.experiment.get(name))
        return value if value is not None and math.isfinite(value) else None

    @cached_property
    def start(self) -> float:
        """Start time."""
        return self._experiment("startTime") or 0.0

    @property
    def stop(self) -> float:
        """End of the experiment; a hundred steps after its start if not declared."""
        return self.start + 100.0 * self._preferred if self.told_stop is None else self.told_stop

    @property
    def told_stop(self) -> float | None:
        """Stop time of the declared experiment; None if it has none."""
        stop = self._experiment("stopTime")
        return stop if stop is not None and stop > self.start else None

    @property
    def _preferred(self) -> float:
        """The step size to try: declared, else the fixed internal one, else 1/100 of the span, in s."""
        fixed = number(self.description.interfaces[self.kind].get("fixedInternalStepSize"))
        span = 1.0 if self.told_stop is None else self.told_stop - self.start
        preferred = self._experiment("stepSize") or fixed
        return preferred if preferred and preferred > 0.0 else span / 100.0

    @cached_property
    def step(self) -> float:
        """Communication step: the preferred one, or a hundredth of the experiment.

        Where any step can be made, it is a multiple of the preferred one if the experiment is too long for that.
        """
        any_size = self.kind == "ModelExchange" or self.flag("canHandleVariableCommunicationStepSize")
        count = (self.stop - self.start) / self._preferred
        return self._preferred * (min(max(1, math.ceil(count / MOST_STEPS)), LONGEST_STEP) if any_size else 1)

    def patient(self) -> Callable[[], bool]:
        """Return whether there is still time for more points; large units are tried at fewer."""
        end = time.process_time() + PATIENCE * min(1.0, self.effort / 60.0)
        return lambda: time.process_time() < end

    @property
    def whole(self) -> int:
        """Number of communication steps to the stop time."""
        return max(1, int((self.stop - self.start) / self.step * (1 + 1e-9)))

    @cached_property
    def steps(self) -> int:
        """Number of communication steps of a run: to the stop time, if the unit is quick enough for that."""
        if self.whole <= SOME:
            return self.whole
        if self.once:  # the only instance is not there to be measured
            return self._shorter(min(self.whole, MOST_STEPS))
        began = time.process_time()
        with self.instance() as instance:
            try:
                self.initialize(instance)
                for k in range(SOME):
                    if self.kind == "CoSimulation":
                        instance.step(self.start + k * self.step, self.step)
                    else:
                        for j in range(4):
                            self.at(instance, self.start + (k + 0.25 * j) * self.step, ())
                            if self.n_states:
                                instance.slopes(self.n_states)
                    instance.get(self.variables)
            except (RefusedError, SkippedError):
                pass
        each = max((time.process_time() - began) / SOME, 1e-7)
        return self._shorter(min(self.whole, MOST_WHOLE, max(SOME, int(RUN_SHARE * self.effort / each))))

    def _shorter(self, steps: int) -> int:
        """Return a number of steps; where they are not the whole run, that is told."""
        if steps < self.whole:
            end = self.start + steps * self.step
            why = f"the motion after t = {end:.6g}: its run is too long for the budget (stop time {self.stop:.6g})"
            self.skipped.append(f"{self.kind}: {why}")
        return steps

    @cached_property
    def tolerance(self) -> float | None:
        """Relative tolerance of the experiment."""
        value = self._experiment("tolerance")
        return value if value and 0.0 < value < 1.0 else None

    # --- variables

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """Variables that are tried: all readable ones, or a sample in a large unit."""
        if len(self.readable) <= MOST_VARIABLES:
            return self.readable
        found = self._sample()
        left = len(self.readable) - len(found)
        if not left:
            return found
        why = f"only their start and two steps: of units with more than {MOST_VARIABLES} a sample is tried"
        self.skipped.append(f"{self.kind}: {left} of {len(self.readable)} variables: {why}")
        return found

    def _sample(self) -> tuple[Variable, ...]:
        """Return all states and their derivatives, the time, and of each kind of variables some, evenly spread."""
        derivatives = (each.variable for each in self.description.listed("Derivatives"))
        kept = {*self.description.state_set, *derivatives, self.description.independent}
        kinds: dict[tuple[str, ...], list[Variable]] = {}
        for each in self.readable:
            if each not in kept:
                kinds.setdefault((each.causality, each.variability, each.type, each.initial), []).append(each)
        rest = sum(map(len, kinds.values()))
        for kind in kinds.values():
            count = min(len(kind), max(LEAST_OF_A_KIND, MOST_VARIABLES * len(kind) // rest))
            kept |= {kind[k * len(kind) // count] for k in range(count)}
        return tuple(each for each in self.readable if each in kept)

    @cached_property
    def readable(self) -> tuple[Variable, ...]:
        """Variables that can be read at any communication point: not clocks, nor clocked ones."""
        known = {"Clock", "Binary", "String", "Boolean", "Enumeration", "Real", "Integer"}
        return tuple(
            each
            for each in self.description.variables
            if each.reference is not None and not each.clocked and each.type != "Clock"
            and (each.type in known or each.type.startswith(("Float", "Int", "UInt")))
        )  # fmt: skip

    @cached_property
    def scalars(self) -> tuple[Variable, ...]:
        """Double precision variables without dimensions."""
        return tuple(each for each in self.variables if each.type in {"Real", "Float64"} and not each.dimensions)

    @cached_property
    def scalar_set(self) -> frozenset[Variable | None]:
        """The same as a set, for membership tests."""
        return frozenset(self.scalars)

    def role(self, *causalities: str, variability: str | None = None) -> list[Variable]:
        """Return scalars of a causality."""
        return [
            each for each in self.scalars if each.causality in causalities and variability in {None, each.variability}
        ]

    @cached_property
    def inputs(self) -> list[Variable]:
        """Continuous scalar inputs: settable at any time."""
        return self.role("input", variability="continuous")

    @cached_property
    def states(self) -> list[Variable]:
        """Continuous states, if all of them are scalars."""
        found = self.description.states
        return [each for each in found if each in self.scalar_set]

    @cached_property
    def n_states(self) -> int:
        """Number of continuous states, elements of arrays counted."""
        listed = [each.variable for each in self.description.listed("Derivatives") if each.variable]
        return sum(self.description.size(each) for each in listed)

    @cached_property
    def n_indicators(self) -> int:
        """Number of event indicators."""
        if self.description.version == 2:
            return int(self.description.attributes.get("numberOfEventIndicators", "0") or 0)
        listed = [each.variable for each in self.description.listed("EventIndicators") if each.variable]
        return sum(self.description.size(each) for each in listed)

    def start_value(self, variable: Variable) -> Value | None:
        """Return the start value as the interface hands it over; None if there is none, or if it is malformed."""
        if variable.start is None:
            return None
        read = [_typed(variable.type, text) for text in variable.start]
        if any(each is None for each in read):
            return None
        if not variable.dimensions:
            return read[0]
        size = self.description.size(variable)
        return tuple(read * size if len(read) == 1 else read)

    @cached_property
    def magnitudes(self) -> Magnitudes:
        """Typical magnitudes of all variables."""
        starts = {each: self.start_value(each) for each in self.description.variables}
        finite = {k: v for k, v in starts.items() if isinstance(v, float) and math.isfinite(v)}
        return Magnitudes(finite, self.description.units)

    def scale(self, variable: Variable) -> float:
        """Return a typical magnitude of the variable."""
        return self.magnitudes.of(variable)

    def inside(self, variable: Variable, value: float) -> float:
        """Return the value within the declared bounds."""
        low, high = variable.number("min"), variable.number("max")
        low = -math.inf if low is None or math.isnan(low) else low
        high = math.inf if high is None or math.isnan(high) else high
        return min(max(value, low), high)

    def near(self, variable: Variable, spread: float) -> float:
        """Return a random value near the start value, within the bounds."""
        start = self.start_value(variable)
        middle = start if isinstance(start, float) and math.isfinite(start) else 0.0
        offset = self.scale(variable) * spread * self.random.uniform(0.3, 1.0) * self.random.choice((-1.0, 1.0))
        if self.inside(variable, middle + offset) != middle + offset:
            offset = -offset
        return self.inside(variable, middle + offset)

    def other(self, variable: Variable) -> Value | None:
        """Choose a value near, and unequal to, the start value of a scalar of any type; None if there is none."""
        start = self.start_value(variable)
        if variable.dimensions or start is None:
            return None
        if isinstance(start, float):
            return self.near(variable, 0.3)
        if isinstance(start, bytes):
            return start + b"x"
        if isinstance(start, bool):
            return not start
        assert isinstance(start, int)
        items = self.description.items(variable)
        if items:
            return next((each for each in items if each != start), None)
        return next((each for each in (start + 1, start - 1) if self.inside(variable, each) == each), None)

    @property
    def keeps_states(self) -> bool:
        """Whether the unit can get and set its whole state."""
        return self.flag("canGetAndSetFMUstate" if self.description.version == 2 else "canGetAndSetFMUState")

    # --- ways into modes

    def make(self, **settings: Any) -> Instance:
        """Make an instance in the way that the unit demands: with event mode where it has clocks.

        Raises:
            OnceError: If it is the second one of a unit of which there may be one in a process.
        """
        if self.once and self.made:
            raise OnceError("it must be instantiated only once per process (canBeInstantiatedOnlyOncePerProcess)")
        self.library.process["made"] += 1
        settings.setdefault("event_mode", self.kind == "CoSimulation" and self.needs_event_mode)
        return Instance(self.library, self.kind, **settings)

    @property
    def made(self) -> int:
        """Number of instances that were made in this process."""
        return self.library.process["made"]

    @property
    def once(self) -> bool:
        """Whether it must be instantiated only once per process, and cannot be when the first one is freed."""
        return self.library.process["once"] > 0

    @contextmanager
    def instance(self, **settings: Any) -> Iterator[Instance]:
        """Make an instance, freed at the end.

        Raises:
            SkippedError: If there is none to be had; the probe of instantiation says so itself.
        """
        made = self.make(**settings)
        if not made.alive:
            raise UnmadeError("it could not be instantiated")
        try:
            yield made
        finally:
            made.free()

    @cached_property
    def needs_event_mode(self) -> bool:
        """Whether clocks (FMI 3) demand event mode."""
        return self.flag("hasEventMode") and any(each.type == "Clock" for each in self.description.variables)

    def initialize(
        self, instance: Instance, before: Mapping[Variable, Value] | None = None,
        within: Mapping[Variable, Value] | None = None, start: float | None = None, tolerance: float | None = None,
    ) -> None:  # fmt: skip
        """Move from Instantiated to Continuous-Time or Step Mode, with variables set before and in initialization."""
        instance.set(before or {})
        instance.enter(self.start if start is None else start, None, tolerance or self.tolerance)
        instance.set(within or {})
        instance.exit()
        if instance.mode == "Event Mode":
            self.due = self.settle(instance, first=True).next_time
            instance.go_on()

    def settle(self, instance: Instance, *, first: bool = False) -> Events:
        """Iterate over discrete states until they settle.

        Args:
            instance: In Event Mode.
            first: It comes from initialization.

        Raises:
            SkippedError: If they never do, or if the unit wants to end.
        """
        changed = nominals = False
        for _ in range(MOST_ITERATIONS):
            events = instance.update()
            changed |= events.values_changed
            nominals |= events.nominals_changed
            if events.terminate:
                when = "before it has begun" if first else f"at t = {instance.time:.6g}"
                raise EndedError(f"the unit asks to end the simulation {when}", instance.time)
            if not events.needed:
                return replace(events, nominals_changed=nominals, values_changed=changed)
        raise UnsettledError(f"the discrete states do not come to rest in {MOST_ITERATIONS} iterations")

    def at(self, instance: Instance, moment: float, states: Sequence[float]) -> None:
        """Move Model Exchange to a point."""
        instance.set_time(moment)
        if states:
            instance.set_states(states)


def _typed(kind: str, text: str) -> Value | None:
    """Return a start value from its text; None if it is malformed."""
    if kind in FLOATS:
        return number(text)
    readers: dict[str, Callable[[str], Value]] = {
        "String": str.encode,
        "Binary": bytes.fromhex,
        "Boolean": lambda written: written.strip() in {"true", "1"},
    }
    try:
        return readers.get(kind, int)(text)
    except ValueError:
        return None


def same(first: Value, second: Value) -> bool:
    """Return whether bits are equal; any two NaN count as equal."""
    if isinstance(first, tuple) and isinstance(second, tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, float) and isinstance(second, float):
        return first == second or (math.isnan(first) and math.isnan(second))
    return first == second


def finite(value: Value) -> bool:
    """Return whether all numbers are finite."""
    if isinstance(value, tuple):
        return all(map(finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def names(variables: Sequence[Variable], most: int = 5) -> str:
    """Return the first names of a list."""
    listed = [f'"{each.name}"' for each in variables[:most]]
    return ", ".join(listed) + (f" and {len(variables) - most} more" if len(variables) > most else "")
