"""Slaves: components as the master steps them, FMI 2.0 and 3.0, by fmpy's classes.

A slave has its connected inputs and its recorded outputs in a fixed order. In ``do_step`` inputs follow polynomials:

- FMI 2 with ``canInterpolateInputs``: value and first derivative (``fmi2SetRealInputDerivatives``), so lines; parabolas
  become the lines of the same moments (``input_polynomial_operations``), one per substep.
- FMI 3 with ``providesIntermediateUpdate``: values at each internal step (2.3.8 of FMI 3.0.2). An FMU that makes lines
  of them needs two values for a line: the first substep is ``FIRST_SUBSTEP_FRACTION`` of the step.
- other FMUs: each input is its mean over a substep.

After ``do_step`` the inputs have the values at the end of their polynomials, so that outputs belong to these.
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

from mb2fmu.fmu.runner.fmpy_instances import FMI_STATUS_NAMES, Fmi3CoSimulationInstance, FmuMessageLog
from mb2fmu.systems.master import input_polynomial_operations

Floats = npt.NDArray[np.float64]

FIRST_SUBSTEP_FRACTION = 1e-4
"""First part of a communication step, in which an FMI 3 FMU finds the slopes of its inputs (error: half its square)."""
MAX_EVENT_ITERATIONS = 100
"""Iterations over discrete states at one event."""


class SlaveError(Exception):
    """A component could not continue; the argument is function and status, or the reason."""


@dataclass(frozen=True, slots=True)
class SlaveStepResult:
    """Result of one step of a slave.

    Attributes:
        end_time: Time that was reached, in s.
        needs_event_mode: It needs Event Mode there (FMI 3).
    """

    end_time: float
    needs_event_mode: bool = False


@dataclass(frozen=True, slots=True)
class SlaveCapabilities:
    """Abilities of a slave that the master uses.

    Attributes:
        interpolates_inputs: Inputs can follow lines by derivatives (FMI 2).
        intermediate_updates: Intermediate updates take inputs (FMI 3).
        saves_state: It can be set back to an earlier state.
        variable_step: Steps of any size.
        directional_derivatives: Directional derivatives.
        event_mode: Event Mode (FMI 3).
        early_return: It may return early (FMI 3).
    """

    interpolates_inputs: bool = False
    intermediate_updates: bool = False
    saves_state: bool = False
    variable_step: bool = True
    directional_derivatives: bool = False
    event_mode: bool = False
    early_return: bool = False


class Slave(Protocol):
    """Protocol of a component that the master steps."""

    capabilities: SlaveCapabilities

    def write_inputs(self, values: Floats) -> None:
        """Set its inputs, shape (n_inputs,)."""

    def read_outputs(self) -> Floats:
        """Return its outputs, shape (n_outputs,)."""

    def do_step(self, time: float, size: float, input_polynomials: Floats) -> SlaveStepResult:
        """Do one communication step with inputs along ``input_polynomials``, shape (n_inputs, 3)."""

    def save_state(self) -> Any:
        """Return its saved state."""

    def restore_state(self, state: Any) -> None:
        """Restore a saved state."""

    def free_state(self, state: Any) -> None:
        """Free a saved state."""

    def handle_events(self) -> float | None:
        """Handle an event; return the time of the next one in s, if known."""


class _FmuSlave:
    """Common part of slaves of FMI 2 and 3; ``instance`` is one of ``fmpy_instances``."""

    def __init__(
        self,
        instance: Any,
        inputs: Sequence[int],
        outputs: Sequence[int],
        capabilities: SlaveCapabilities,
        substeps: int,
    ) -> None:
        self.instance, self.capabilities = instance, capabilities
        self._inputs, self._outputs = list(inputs), list(outputs)
        self._substeps = substeps
        self._stepping = False

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the FMU; a refusal becomes an error with the function's name and status."""
        try:
            return function(*arguments)
        except FMICallException as error:
            raise SlaveError(f"{error.function} returned {FMI_STATUS_NAMES[error.status]}") from error

    def write_inputs(self, values: Floats) -> None:
        """Set its inputs, shape (n_inputs,)."""
        if self._inputs:
            self._call(self.instance.set, self._inputs, values.tolist())

    def read_outputs(self) -> Floats:
        """Return its outputs, shape (n_outputs,)."""
        if not self._outputs:
            return np.zeros(0)
        return np.array(self._call(self.instance.get, self._outputs))

    def set_start_values(self, references: Sequence[int], values: Sequence[float]) -> None:
        """Set start values and parameters before initialization."""
        if references:
            self._call(self.instance.set, list(references), list(values))

    def save_state(self) -> Any:
        """Return its saved state."""
        return self._call(self.instance.save)

    def restore_state(self, state: Any) -> None:
        """Restore a saved state."""
        self._call(self.instance.restore, state, 0.0)

    def free_state(self, state: Any) -> None:
        """Free a saved state."""
        self._call(self.instance.forget, state)

    def directional_derivatives(
        self, unknowns: Sequence[int], knowns: Sequence[int], seed: Sequence[float]
    ) -> list[float]:
        """Return changes of unknowns per change ``seed`` of knowns, by value references."""
        changes: list[float] = self._call(self.instance.directional, list(unknowns), list(knowns), list(seed))
        return changes

    def terminate(self) -> None:
        """End and free it."""
        self._call(self.instance.close)


class Fmi2Slave(_FmuSlave):
    """A slave of FMI 2.0."""

    def enter_initialization_mode(self, start: float, stop: float, tolerance: float | None) -> None:
        """Enter Initialization Mode."""
        fmu = self.instance._fmu  # noqa: SLF001
        self._call(lambda: fmu.setupExperiment(tolerance=tolerance, startTime=start, stopTime=stop))
        self._call(fmu.enterInitializationMode)

    def enter_step_mode(self) -> None:
        """Enter Step Mode."""
        self._call(self.instance._fmu.exitInitializationMode)  # noqa: SLF001

    def do_step(self, time: float, size: float, input_polynomials: Floats) -> SlaveStepResult:
        """Do one communication step with inputs along ``input_polynomials``, shape (n_inputs, 3)."""
        substep = size / self._substeps
        for index in range(self._substeps):
            shifted_polynomials = input_polynomial_operations.shift_input_polynomials(
                input_polynomials, index * substep
            )
            if self._inputs and self.capabilities.interpolates_inputs:
                followed_lines = input_polynomial_operations.fit_moment_preserving_input_line(
                    shifted_polynomials, substep
                )
                self.write_inputs(followed_lines[:, 0])
                slopes = followed_lines[:, 1].tolist()
                fmu = self.instance._fmu  # noqa: SLF001
                self._call(fmu.setRealInputDerivatives, self._inputs, [1] * len(slopes), slopes)
            elif self._inputs:
                self.write_inputs(input_polynomial_operations.average_input_polynomials(shifted_polynomials, substep))
            self._call(self.instance.step, time + index * substep, substep)
        self.write_inputs(input_polynomial_operations.evaluate_input_polynomials(input_polynomials, size))
        return SlaveStepResult(time + size)

    def handle_events(self) -> float | None:
        """Do nothing: FMI 2 has no events in Co-Simulation."""
        return None


class Fmi3Slave(_FmuSlave):
    """A slave of FMI 3.0."""

    def __init__(
        self,
        instance: IntermediateUpdateInstance,
        inputs: Sequence[int],
        outputs: Sequence[int],
        capabilities: SlaveCapabilities,
        substeps: int,
    ) -> None:
        super().__init__(instance, inputs, outputs, capabilities, substeps)
        instance.provide_inputs = self._provide_inputs
        self._start_time, self._polynomials = 0.0, np.zeros((len(inputs), 3))

    def enter_initialization_mode(self, start: float, stop: float, tolerance: float | None) -> None:
        """Enter Initialization Mode."""
        fmu = self.instance._fmu  # noqa: SLF001
        self._call(lambda: fmu.enterInitializationMode(tolerance=tolerance, startTime=start, stopTime=stop))

    def enter_step_mode(self) -> None:
        """Enter Step Mode, by way of Event Mode if the FMU has one."""
        self._call(self.instance._fmu.exitInitializationMode)  # noqa: SLF001
        if self.capabilities.event_mode:
            self._iterate_discrete_states()

    def _provide_inputs(self, time: float) -> tuple[list[int], list[float]]:
        """Return inputs at an intermediate update."""
        return self._inputs, input_polynomial_operations.evaluate_input_polynomials(
            self._polynomials, time - self._start_time
        ).tolist()

    def do_step(self, time: float, size: float, input_polynomials: Floats) -> SlaveStepResult:
        """Do one communication step with inputs along ``input_polynomials``, shape (n_inputs, 3)."""
        if not self.capabilities.intermediate_updates or not self._inputs or not input_polynomials[:, 1:].any():
            return self._step_with_held_inputs(time, size, input_polynomials)
        substep = size / self._substeps
        for index in range(self._substeps):
            self._start_time = time + index * substep
            self._polynomials = input_polynomial_operations.fit_moment_preserving_input_line(
                input_polynomial_operations.shift_input_polynomials(input_polynomials, index * substep), substep
            )
            for substep_start, substep_end in (
                (0.0, FIRST_SUBSTEP_FRACTION * substep),
                (FIRST_SUBSTEP_FRACTION * substep, substep),
            ):
                self.write_inputs(
                    input_polynomial_operations.evaluate_input_polynomials(self._polynomials, substep_start)
                )
                result = self._do_internal_step(self._start_time + substep_start, substep_end - substep_start)
                if result.needs_event_mode or result.end_time < self._start_time + substep_end:
                    return result
        self.write_inputs(input_polynomial_operations.evaluate_input_polynomials(input_polynomials, size))
        return SlaveStepResult(time + size)

    def _step_with_held_inputs(self, time: float, size: float, input_polynomials: Floats) -> SlaveStepResult:
        """Step in substeps with inputs held at their means; stop at the first event."""
        substep = size / self._substeps
        for index in range(self._substeps):
            held_inputs = input_polynomial_operations.average_input_polynomials(
                input_polynomial_operations.shift_input_polynomials(input_polynomials, index * substep), substep
            )
            self._start_time, self._polynomials = (
                time,
                np.stack([held_inputs, 0.0 * held_inputs, 0.0 * held_inputs], axis=1),
            )
            self.write_inputs(held_inputs)
            result = self._do_internal_step(time + index * substep, substep)
            if result.needs_event_mode or result.end_time < time + (index + 1) * substep:
                return result
        self.write_inputs(input_polynomial_operations.evaluate_input_polynomials(input_polynomials, size))
        return SlaveStepResult(time + size)

    def _do_internal_step(self, time: float, size: float) -> SlaveStepResult:
        """Do one communication step; return where it ended and whether there is an event."""
        has_event, wants_termination, returned_early, last_time = self._call(self.instance._fmu.doStep, time, size)  # noqa: SLF001
        if wants_termination:
            raise SlaveError(f"it asked to end the simulation at t = {last_time:.9g} s")
        if returned_early and not self.capabilities.early_return:
            raise SlaveError(f"it returned early at t = {last_time:.9g} s without being allowed to")
        return SlaveStepResult(last_time if returned_early else time + size, bool(has_event))

    def handle_events(self) -> float | None:
        """Handle an event; return the time of the next one in s, if known."""
        if not self.capabilities.event_mode:
            return None
        self._call(self.instance._fmu.enterEventMode)  # noqa: SLF001
        return self._iterate_discrete_states()

    def _iterate_discrete_states(self) -> float | None:
        """Iterate the discrete states until they settle; return the next time event in s, None without one."""
        fmu = self.instance._fmu  # noqa: SLF001
        for _ in range(MAX_EVENT_ITERATIONS):
            update_needed, wants_termination, _, _, next_time_defined, next_time = self._call(fmu.updateDiscreteStates)
            if wants_termination:
                raise SlaveError("it asked to end the simulation at an event")
            if not update_needed:
                self._call(fmu.enterStepMode)
                return float(next_time) if next_time_defined else None
        raise SlaveError(f"its discrete states do not settle in {MAX_EVENT_ITERATIONS} iterations")


class IntermediateUpdateInstance(Fmi3CoSimulationInstance):
    """An FMI 3.0 Co-Simulation instance whose inputs can be given at internal steps.

    Args:
        request: As :class:`mb2fmu.fmu.runner.fmpy_instances.Fmi3CoSimulationInstance` reads it.
        log: Log of the FMU's messages.
        capabilities: Whether updates, events and early return are used.
    """

    provide_inputs: Callable[[float], tuple[list[int], list[float]]]

    def __init__(
        self,
        request: dict[str, Any],
        log: FmuMessageLog,
        capabilities: SlaveCapabilities,
        required_variables: Sequence[int],
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
            eventModeUsed=capabilities.event_mode,
            earlyReturnAllowed=capabilities.early_return,
            logMessage=lambda _environment, status, category, text: log.write(status, category, text),
            intermediateUpdate=self._handle_intermediate_update if capabilities.intermediate_updates else None,
            requiredIntermediateVariables=list(required_variables) if capabilities.intermediate_updates else None,
        )
        if request["troubles"]:
            self._fmu.setDebugLogging(loggingOn=True, categories=request["troubles"])

    def _handle_intermediate_update(
        self, _environment: Any, time: float, may_set: bool, _may_get: bool, _finished: bool, _may_return: bool,
        early_return: Any, _early_time: Any,
    ) -> None:  # fmt: skip
        """Set the inputs by their polynomials at an intermediate time; never request an early return."""
        if early_return:
            ctypes.cast(early_return, ctypes.POINTER(ctypes.c_bool))[0] = False
        if may_set:
            self.set(*self.provide_inputs(time))
