"""Runs one FMU step by step, in a process of its own (``python driver.py request.json``): a crash kills only itself.

The request (written by ``simulate``) names everything: nothing is read from the FMU's description here. Inputs are set
at the beginning of each communication step and held over it; values are read after it, before inputs change again.
Co-Simulation units make the steps themselves. Model Exchange units are integrated by fmpy's CVODE, which begins anew
where an input jumps; its steps go past communication points, so they are interpolated there.
Written into the request's ``folder``: ``log.jsonl`` (one [status, category, message] a line, as they come),
``values.npy`` (n + 1, n_variables) and ``outcome.json``.
"""

from __future__ import annotations

import ctypes
import json
import sys
import time
from pathlib import Path
from typing import IO, Any

import numpy as np
from fmpy.fmi1 import FMICallException
from fmpy.fmi2 import (
    FMU2Model,
    FMU2Slave,
    calloc,
    fmi2CallbackAllocateMemoryTYPE,
    fmi2CallbackFreeMemoryTYPE,
    fmi2CallbackFunctions,
    fmi2CallbackLoggerTYPE,
    free,
)
from fmpy.fmi3 import FMU3Model, FMU3Slave
from fmpy.logging import addLoggerProxy
from fmpy.sundials import CVodeSolver

STATUS = ("ok", "warning", "discard", "error", "fatal", "pending")
MOST_EVENTS = 1000
MOST_STEPS = 1_000_000


class Log:
    """Writes the FMU's messages as they come, so that a crash loses none."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, status: int, category: bytes | None, message: bytes | None) -> None:
        """One message."""
        label = STATUS[status] if 0 <= status < len(STATUS) else str(status)
        texts = [(text or b"").decode("utf-8", "replace") for text in (category, message)]
        self._stream.write(json.dumps([label, *texts]) + "\n")
        self._stream.flush()


class Unit2:
    """An FMI 2.0 Co-Simulation instance."""

    def __init__(self, request: dict[str, Any], log: Log) -> None:
        self._fmu = self._made(request)
        self._callbacks = fmi2CallbackFunctions()
        self._callbacks.logger = fmi2CallbackLoggerTYPE(
            lambda _environment, _instance, status, category, message: log.write(status, category, message)
        )
        self._callbacks.allocateMemory = fmi2CallbackAllocateMemoryTYPE(calloc)
        self._callbacks.freeMemory = fmi2CallbackFreeMemoryTYPE(free)
        addLoggerProxy(ctypes.byref(self._callbacks))
        self._fmu.instantiate(callbacks=self._callbacks, loggingOn=False)
        _hear_of_troubles(self._fmu, request)

    def _made(self, request: dict[str, Any]) -> Any:
        return FMU2Slave(**_identity(request))

    def initialize(self, request: dict[str, Any], inputs: list[float]) -> None:
        """To step mode, with start values and the first inputs set."""
        fmu = self._fmu
        fmu.setupExperiment(tolerance=request["tolerance"], startTime=0.0, stopTime=request["stop"])
        self.set(request["starts"]["references"], request["starts"]["values"])
        fmu.enterInitializationMode()
        self.set(request["inputs"], inputs)
        fmu.exitInitializationMode()

    def set(self, references: list[int], values: list[float]) -> None:
        """Sets Real variables."""
        if references:
            self._fmu.setReal(references, values)

    def change(self, references: list[int], values: list[float]) -> None:
        """Sets inputs between two steps."""
        self.set(references, values)

    def get(self, references: list[int]) -> list[float]:
        """Reads Real variables."""
        return list(self._fmu.getReal(references))

    def step(self, begin: float, size: float) -> str:
        """One communication step; what is wrong with it, or nothing."""
        self._fmu.doStep(begin, size)
        return ""

    def close(self) -> None:
        """Terminates and frees."""
        self._fmu.terminate()
        self._fmu.freeInstance()


class Unit3:
    """An FMI 3.0 Co-Simulation instance."""

    def __init__(self, request: dict[str, Any], log: Log) -> None:
        self._fmu = self._made(request)
        self._fmu.instantiate(
            loggingOn=False, logMessage=lambda _environment, status, category, text: log.write(status, category, text)
        )
        _hear_of_troubles(self._fmu, request)

    def _made(self, request: dict[str, Any]) -> Any:
        return FMU3Slave(**_identity(request))

    def initialize(self, request: dict[str, Any], inputs: list[float]) -> None:
        """To step mode, with start values and the first inputs set."""
        fmu = self._fmu
        self.set(request["starts"]["references"], request["starts"]["values"])
        fmu.enterInitializationMode(tolerance=request["tolerance"], startTime=0.0, stopTime=request["stop"])
        self.set(request["inputs"], inputs)
        fmu.exitInitializationMode()

    def set(self, references: list[int], values: list[float]) -> None:
        """Sets Float64 variables."""
        if references:
            self._fmu.setFloat64(references, values)

    def change(self, references: list[int], values: list[float]) -> None:
        """Sets inputs between two steps."""
        self.set(references, values)

    def get(self, references: list[int]) -> list[float]:
        """Reads Float64 variables."""
        return list(self._fmu.getFloat64(references))

    def step(self, begin: float, size: float) -> str:
        """One communication step; what is wrong with it, or nothing."""
        _, terminate, early, last = self._fmu.doStep(begin, size)
        if terminate:
            return f"the FMU asked to end the simulation at t = {last!r} s"
        return f"the FMU returned early at t = {last!r} s without being allowed to" if early else ""

    def close(self) -> None:
        """Terminates and frees."""
        self._fmu.terminate()
        self._fmu.freeInstance()


class Exchange2(Unit2):
    """An FMI 2.0 Model Exchange instance, and what integrates it."""

    def _made(self, request: dict[str, Any]) -> Any:
        return FMU2Model(**_identity(request))

    def initialize(self, request: dict[str, Any], inputs: list[float]) -> None:
        """To continuous-time mode."""
        super().initialize(request, inputs)
        fmu = self._fmu
        self._integration = Integration(fmu, fmu.getDerivatives, fmu.newDiscreteStates, request, inputs)

    def change(self, references: list[int], values: list[float]) -> None:
        """Inputs that jump: an event."""
        self._integration.jump(values, lambda: self.set(references, values))

    def step(self, begin: float, size: float) -> str:
        """One communication step; what is wrong with it, or nothing."""
        return self._integration.advance(begin, begin + size)


class Exchange3(Unit3):
    """An FMI 3.0 Model Exchange instance, and what integrates it."""

    def _made(self, request: dict[str, Any]) -> Any:
        return FMU3Model(**_identity(request))

    def initialize(self, request: dict[str, Any], inputs: list[float]) -> None:
        """To continuous-time mode."""
        super().initialize(request, inputs)
        fmu = self._fmu
        slopes = fmu.getContinuousStateDerivatives
        self._integration = Integration(fmu, slopes, fmu.updateDiscreteStates, request, inputs)

    def change(self, references: list[int], values: list[float]) -> None:
        """Inputs that jump: an event."""
        self._integration.jump(values, lambda: self.set(references, values))

    def step(self, begin: float, size: float) -> str:
        """One communication step; what is wrong with it, or nothing."""
        return self._integration.advance(begin, begin + size)


class Integration:
    """CVODE and the events of a Model Exchange instance of either version."""

    def __init__(
        self, fmu: Any, get_derivatives: Any, update: Any, request: dict[str, Any], inputs: list[float]
    ) -> None:
        self._fmu, self._update, self._inputs = fmu, update, inputs
        self._completes = request["completes_steps"]
        self._next_event = float("inf")
        self._time = 0.0
        self._terminated = False
        self._settle()
        fmu.enterContinuousTimeMode()
        self._solver = CVodeSolver(
            nx=request["states"],
            nz=request["indicators"],
            get_x=fmu.getContinuousStates,
            set_x=fmu.setContinuousStates,
            get_dx=get_derivatives,
            get_z=fmu.getEventIndicators,
            get_nominals=fmu.getNominalsOfContinuousStates,
            set_time=fmu.setTime,
            input=_Held(),
            startTime=0.0,
            relativeTolerance=request["integration_tolerance"],
            maxNumSteps=MOST_STEPS,
        )

    def jump(self, inputs: list[float], change: Any) -> None:
        """An event if the inputs are others than before."""
        if inputs != self._inputs:
            self._inputs = inputs
            self.event(change)

    def event(self, change: Any) -> None:
        """Event mode, with what is changed there, and back."""
        self._fmu.enterEventMode()
        change()
        self._settle()
        self._fmu.enterContinuousTimeMode()
        self._solver.reset(self._time)

    def advance(self, begin: float, end: float) -> str:
        """From a communication point to the next; what is wrong, or nothing."""
        for _ in range(MOST_EVENTS):
            until = min(end, self._next_event)
            state_event, _, self._time = self._solver.step(self._time, until)
            self._fmu.setTime(self._time)
            step_event = False
            if self._completes:
                step_event, self._terminated = self._fmu.completedIntegratorStep()
            if not self._terminated and (state_event or step_event or self._time >= self._next_event):
                self.event(lambda: None)
            if self._terminated:
                return f"the FMU asked to end the simulation at t = {self._time!r} s"
            if self._time >= end:
                return ""
        return f"more than {MOST_EVENTS} events in the step from t = {begin!r} s"

    def _settle(self) -> None:
        """Iterates over the discrete states."""
        needed = True
        while needed and not self._terminated:
            needed, self._terminated, _, _, defined, time_event = self._update()
            self._next_event = time_event if defined else float("inf")


class _Held:
    """fmpy's solvers set continuous inputs through this; ours are held."""

    def apply(self, time: float) -> None:
        """Nothing to do."""


def _hear_of_troubles(fmu: Any, request: dict[str, Any]) -> None:
    """Messages of why a call fails, and none of what a unit does otherwise, which may be many."""
    if request["troubles"]:
        fmu.setDebugLogging(loggingOn=True, categories=request["troubles"])


def _identity(request: dict[str, Any]) -> dict[str, str]:
    return {
        "guid": request["token"],
        "modelIdentifier": request["identifier"],
        "unzipDirectory": request["unzipped"],
        "instanceName": "validated",
    }


UNITS: dict[tuple[str, int], type[Unit2 | Unit3]] = {
    ("CoSimulation", 2): Unit2,
    ("CoSimulation", 3): Unit3,
    ("ModelExchange", 2): Exchange2,
    ("ModelExchange", 3): Exchange3,
}


def run(request: dict[str, Any], log: Log) -> dict[str, Any]:
    """Steps through the experiment; the outcome says where and why it ended, or how long it took."""
    held = np.load(request["held"])
    steps, size = len(held), float(request["step"])
    values = np.full((steps + 1, len(request["variables"])), np.nan)
    outcome: dict[str, Any] = {"reached": 0, "failure": "", "seconds": 0.0}
    k = 0
    try:
        unit = UNITS[request["kind"], request["version"]](request, log)
        unit.initialize(request, held[0].tolist())
        values[0] = unit.get(request["variables"])
        for k in range(steps):
            if k:
                unit.change(request["inputs"], held[k].tolist())
            begin = time.perf_counter()
            outcome["failure"] = unit.step(k * size, size)
            outcome["seconds"] += time.perf_counter() - begin
            if outcome["failure"]:
                break
            values[k + 1] = unit.get(request["variables"])
            outcome["reached"] = k + 1
        else:
            unit.close()
    except FMICallException as error:
        outcome["failure"] = f"{error.function} returned {STATUS[error.status]} in the step from t = {k * size:.9g} s"
    except RuntimeError as error:  # CVODE's failures
        outcome["failure"] = f"{error} in the step from t = {k * size:.9g} s"
    np.save(Path(request["folder"]) / "values.npy", values)
    return outcome


def main() -> None:
    """Reads the request, runs, writes the outcome."""
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    folder = Path(request["folder"])
    with (folder / "log.jsonl").open("w", encoding="utf-8") as stream:
        outcome = run(request, Log(stream))
    (folder / "outcome.json").write_text(json.dumps(outcome), encoding="utf-8")


if __name__ == "__main__":
    main()
