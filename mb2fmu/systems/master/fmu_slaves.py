"""Slaves: components as the master steps them, FMI 2.0 and 3.0, by fmpy's classes.

A slave has its connected inputs and its recorded outputs in a fixed order. ``advance`` lets its inputs follow courses:

- FMI 2 with ``canInterpolateInputs``: value and first derivative (``fmi2SetRealInputDerivatives``), so lines; parabolas
  become the lines of the same moments (``courses``), one per substep.
- FMI 3 with ``providesIntermediateUpdate``: values at each internal step (2.3.8 of FMI 3.0.2). An FMU that makes lines
  of them needs two values for a line: the first substep is ``RUN_IN`` of the step.
- others: held means over substeps.

After ``advance`` the inputs have the values at the end of their courses, so that outputs are read of these.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from fmpy.fmi1 import FMICallException
from fmpy.fmi3 import FMU3Slave

from mb2fmu.fmu.runner.fmpy_instances import FMI_STATUS_NAMES, Fmi3CoSimulation, MessageLog
from mb2fmu.systems.master import input_extrapolation

Floats = npt.NDArray[np.float64]

RUN_IN = 1e-4
"""Part of a communication step in which an FMI 3 unit finds the slopes of its inputs; it errs by half its square."""
MOST_UPDATES = 100
"""Iterations over discrete states at one event."""


class SlaveError(Exception):
    """A component could not continue; the argument is function and status, or the reason."""


@dataclass(frozen=True, slots=True)
class SlaveStepResult:
    """Result of a step: how far it went.

    Attributes:
        reached: Time in s.
        event: It needs Event Mode there (FMI 3).
    """

    reached: float
    event: bool = False


@dataclass(frozen=True, slots=True)
class SlaveCapabilities:
    """Abilities of a slave that the master uses.

    Attributes:
        lines: Inputs can follow lines by derivatives (FMI 2).
        updates: Intermediate updates take inputs (FMI 3).
        back: It can be set back to an earlier state.
        any_step: Steps of any size.
        directional: Directional derivatives.
        events: Event Mode (FMI 3).
        early: It may return early (FMI 3).
    """

    lines: bool = False
    updates: bool = False
    back: bool = False
    any_step: bool = True
    directional: bool = False
    events: bool = False
    early: bool = False


class Slave(Protocol):
    """Protocol of a component that the master steps."""

    abilities: SlaveCapabilities

    def write(self, values: Floats) -> None:
        """Set its inputs, shape (n_inputs,)."""

    def read(self) -> Floats:
        """Return its outputs, shape (n_outputs,)."""

    def advance(self, time: float, size: float, course: Floats) -> SlaveStepResult:
        """Do one communication step with inputs along ``course``, shape (n_inputs, 3)."""

    def save(self) -> Any:
        """Return its whole state."""

    def restore(self, state: Any) -> None:
        """Go back to a state."""

    def forget(self, state: Any) -> None:
        """Free a state."""

    def settle(self) -> float | None:
        """Handle an event; return the time of the next one in s, if known."""


class _FmuSlave:
    """Common part of slaves of both versions; ``unit`` is an instance of ``driving``."""

    def __init__(
        self, unit: Any, inputs: Sequence[int], outputs: Sequence[int], abilities: SlaveCapabilities, substeps: int
    ) -> None:
        self.unit, self.abilities = unit, abilities
        self._inputs, self._outputs = list(inputs), list(outputs)
        self._substeps = substeps
        self._stepping = False

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the FMU; a refusal becomes an error with the function's name and status."""
        try:
            return function(*arguments)
        except FMICallException as error:
            raise SlaveError(f"{error.function} returned {FMI_STATUS_NAMES[error.status]}") from error

    def write(self, values: Floats) -> None:
        """Set its inputs, shape (n_inputs,)."""
        if self._inputs:
            self._call(self.unit.set, self._inputs, values.tolist())

    def read(self) -> Floats:
        """Return its outputs, shape (n_outputs,)."""
        if not self._outputs:
            return np.zeros(0)
        return np.array(self._call(self.unit.get, self._outputs))

    def start(self, references: Sequence[int], values: Sequence[float]) -> None:
        """Set start values and parameters before initialization."""
        if references:
            self._call(self.unit.set, list(references), list(values))

    def save(self) -> Any:
        """Return its whole state."""
        return self._call(self.unit.save)

    def restore(self, state: Any) -> None:
        """Go back to a state."""
        self._call(self.unit.restore, state, 0.0)

    def forget(self, state: Any) -> None:
        """Free a state."""
        self._call(self.unit.forget, state)

    def directional(self, unknowns: Sequence[int], knowns: Sequence[int], seed: Sequence[float]) -> list[float]:
        """Return changes of unknowns per change ``seed`` of knowns, by value references."""
        found: list[float] = self._call(self.unit.directional, list(unknowns), list(knowns), list(seed))
        return found

    def close(self) -> None:
        """End and free it."""
        self._call(self.unit.close)


class Fmi2Slave(_FmuSlave):
    """An FMI 2.0 unit."""

    def begin(self, start: float, stop: float, tolerance: float | None) -> None:
        """Enter Initialization Mode."""
        fmu = self.unit._fmu  # noqa: SLF001
        self._call(lambda: fmu.setupExperiment(tolerance=tolerance, startTime=start, stopTime=stop))
        self._call(fmu.enterInitializationMode)

    def ready(self) -> None:
        """Enter Step Mode."""
        self._call(self.unit._fmu.exitInitializationMode)  # noqa: SLF001

    def advance(self, time: float, size: float, course: Floats) -> SlaveStepResult:
        """Do one communication step with inputs along ``course``, shape (n_inputs, 3)."""
        part = size / self._substeps
        for k in range(self._substeps):
            ahead = input_extrapolation.shift_polynomials(course, k * part)
            if self._inputs and self.abilities.lines:
                followed = input_extrapolation.fit_line_of_equal_moments(ahead, part)
                self.write(followed[:, 0])
                slopes = followed[:, 1].tolist()
                fmu = self.unit._fmu  # noqa: SLF001
                self._call(fmu.setRealInputDerivatives, self._inputs, [1] * len(slopes), slopes)
            elif self._inputs:
                self.write(input_extrapolation.average_polynomials(ahead, part))
            self._call(self.unit.step, time + k * part, part)
        self.write(input_extrapolation.evaluate_polynomials(course, size))
        return SlaveStepResult(time + size)

    def settle(self) -> float | None:
        """Do nothing: FMI 2 has no events in Co-Simulation."""
        return None


class Fmi3Slave(_FmuSlave):
    """An FMI 3.0 unit."""

    def __init__(
        self,
        unit: IntermediateUpdateInstance,
        inputs: Sequence[int],
        outputs: Sequence[int],
        abilities: SlaveCapabilities,
        substeps: int,
    ) -> None:
        super().__init__(unit, inputs, outputs, abilities, substeps)
        unit.provide = self._provided
        self._begin, self._course = 0.0, np.zeros((len(inputs), 3))

    def begin(self, start: float, stop: float, tolerance: float | None) -> None:
        """Enter Initialization Mode."""
        fmu = self.unit._fmu  # noqa: SLF001
        self._call(lambda: fmu.enterInitializationMode(tolerance=tolerance, startTime=start, stopTime=stop))

    def ready(self) -> None:
        """Enter Step Mode, by way of Event Mode if the FMU has one."""
        self._call(self.unit._fmu.exitInitializationMode)  # noqa: SLF001
        if self.abilities.events:
            self._discrete()

    def _provided(self, time: float) -> tuple[list[int], list[float]]:
        """Return inputs at an intermediate update."""
        return self._inputs, input_extrapolation.evaluate_polynomials(self._course, time - self._begin).tolist()

    def advance(self, time: float, size: float, course: Floats) -> SlaveStepResult:
        """Do one communication step with inputs along ``course``, shape (n_inputs, 3)."""
        if not self.abilities.updates or not self._inputs or not course[:, 1:].any():
            return self._held(time, size, course)
        part = size / self._substeps
        for k in range(self._substeps):
            self._begin = time + k * part
            self._course = input_extrapolation.fit_line_of_equal_moments(
                input_extrapolation.shift_polynomials(course, k * part), part
            )
            for begin, end in ((0.0, RUN_IN * part), (RUN_IN * part, part)):
                self.write(input_extrapolation.evaluate_polynomials(self._course, begin))
                done = self._step(self._begin + begin, end - begin)
                if done.event or done.reached < self._begin + end:
                    return done
        self.write(input_extrapolation.evaluate_polynomials(course, size))
        return SlaveStepResult(time + size)

    def _held(self, time: float, size: float, course: Floats) -> SlaveStepResult:
        """Step in substeps, each with the mean of the inputs' course held; stop at the first event."""
        part = size / self._substeps
        for k in range(self._substeps):
            held = input_extrapolation.average_polynomials(
                input_extrapolation.shift_polynomials(course, k * part), part
            )
            self._begin, self._course = time, np.stack([held, 0.0 * held, 0.0 * held], axis=1)
            self.write(held)
            done = self._step(time + k * part, part)
            if done.event or done.reached < time + (k + 1) * part:
                return done
        self.write(input_extrapolation.evaluate_polynomials(course, size))
        return SlaveStepResult(time + size)

    def _step(self, time: float, size: float) -> SlaveStepResult:
        """Do one communication step; return where it ended and whether there is an event."""
        events, terminate, early, last = self._call(self.unit._fmu.doStep, time, size)  # noqa: SLF001
        if terminate:
            raise SlaveError(f"it asked to end the simulation at t = {last:.9g} s")
        if early and not self.abilities.early:
            raise SlaveError(f"it returned early at t = {last:.9g} s without being allowed to")
        return SlaveStepResult(last if early else time + size, bool(events))

    def settle(self) -> float | None:
        """Handle an event; return the time of the next one in s, if known."""
        if not self.abilities.events:
            return None
        self._call(self.unit._fmu.enterEventMode)  # noqa: SLF001
        return self._discrete()

    def _discrete(self) -> float | None:
        """Iterate the discrete states until they settle; return the next time event in s, None without one."""
        fmu = self.unit._fmu  # noqa: SLF001
        for _ in range(MOST_UPDATES):
            needed, terminate, _, _, defined, time = self._call(fmu.updateDiscreteStates)
            if terminate:
                raise SlaveError("it asked to end the simulation at an event")
            if not needed:
                self._call(fmu.enterStepMode)
                return float(time) if defined else None
        raise SlaveError(f"its discrete states do not settle in {MOST_UPDATES} iterations")


class IntermediateUpdateInstance(Fmi3CoSimulation):
    """An FMI 3.0 Co-Simulation instance whose inputs can be given at internal steps.

    Args:
        request: As :class:`mb2fmu.fmu.runner.fmpy_instances.Fmi3CoSimulation` reads it.
        log: Of the FMU's messages.
        abilities: Whether updates, events and early return are used.
    """

    provide: Callable[[float], tuple[list[int], list[float]]]

    def __init__(
        self, request: dict[str, Any], log: MessageLog, abilities: SlaveCapabilities, required: Sequence[int]
    ) -> None:
        self._request = request
        self._fmu = FMU3Slave(
            guid=request["token"],
            modelIdentifier=request["identifier"],
            unzipDirectory=request["unzipped"],
            instanceName=request["name"],
        )
        self._fmu.instantiate(
            loggingOn=False,
            eventModeUsed=abilities.events,
            earlyReturnAllowed=abilities.early,
            logMessage=lambda _environment, status, category, text: log.write(status, category, text),
            intermediateUpdate=self._update if abilities.updates else None,
            requiredIntermediateVariables=list(required) if abilities.updates else None,
        )
        if request["troubles"]:
            self._fmu.setDebugLogging(loggingOn=True, categories=request["troubles"])

    def _update(
        self, _environment: Any, time: float, may_set: bool, _may_get: bool, _finished: bool, _may_return: bool,
        early_return: Any, _early_time: Any,
    ) -> None:  # fmt: skip
        """Set the inputs to their course at an intermediate time; never ask for an early return."""
        if early_return:
            ctypes.cast(early_return, ctypes.POINTER(ctypes.c_bool))[0] = False
        if may_set:
            self.set(*self.provide(time))
