"""Instances of FMUs by fmpy, of both versions and interface types, with the same methods.

Inputs are set at the beginning of each communication step and held over it; values are read after it, before inputs
change again. Co-Simulation FMUs make the steps themselves. Model Exchange FMUs are integrated by fmpy's CVODE
(``continuous``), which begins anew where an input jumps.
"""

from __future__ import annotations

import ctypes
import inspect
import json
from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import IO, Any

import numpy as np
import numpy.typing as npt
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
from fmpy.sundials.nvector_serial import N_VectorContent_Serial

from mb2fmu.fmu.runner.compiled_cvode_callbacks import CompiledCvodeCallbacks
from mb2fmu.fmu.runner.cvode_iterations import (
    LARGE_STATE_COUNT,
    is_too_stiff,
    use_fixed_point_iteration,
    use_newton_iteration,
)
from mb2fmu.fmu.runner.fmi3_array_elements import locate_array_elements

Floats = npt.NDArray[np.float64]

MAX_EVENTS_PER_STEP = 1000
MAX_CVODE_STEPS = 1_000_000
MAX_RECORDED_EVENTS = 2000


FMI_STATUS_NAMES = ("ok", "warning", "discard", "error", "fatal", "pending")


class CvodeIntegration:
    """Integrates a Model Exchange instance of either version by CVODE, and handles its events.

    ``look`` reads what is noted of events: ``recorded_events`` has the time in s of each, and what was read before and
    after it. ``begin`` is the start time in s.
    """

    def __init__(
        self,
        fmu: Any,
        get_derivatives: Any,
        update: Any,
        request: dict[str, Any],
        inputs: list[float],
        look: Callable[[], list[float]],
        begin: float = 0.0,
    ) -> None:
        self.recorded_events: list[list[Any]] = []
        self._look = look
        self._fmu, self._update, self._get_derivatives = fmu, update, get_derivatives
        self._request = request
        self._inputs: list[float] | None = inputs
        self._completes = request["completes_steps"]
        self._next_event = float("inf")
        self._time = begin
        self._terminated = False
        self._settle()
        fmu.enterContinuousTimeMode()
        self._solver = self._make_solver()

    def _make_solver(self) -> _FailureAwareCvodeSolver:
        """Return CVODE at the FMU's states and time."""
        fmu, library = self._fmu, self._request.get("cvode_callbacks")
        return _FailureAwareCvodeSolver(
            compiled=CompiledCvodeCallbacks(library, fmu, self._request) if library else None,
            nx=self._request["states"],
            nz=self._request["indicators"],
            get_x=fmu.getContinuousStates,
            set_x=fmu.setContinuousStates,
            get_dx=self._get_derivatives,
            get_z=fmu.getEventIndicators,
            get_nominals=self._read_nominals,
            set_time=fmu.setTime,
            input=_ConstantInputs(),
            startTime=self._time,
            relativeTolerance=self._request["integration_tolerance"],
            maxNumSteps=MAX_CVODE_STEPS,
        )

    def _read_nominals(self, values: Any, count: int) -> None:
        """Read the nominal values of the states, by which absolute tolerances are measured: at most those requested."""
        self._fmu.getNominalsOfContinuousStates(values, count)
        for index, largest in enumerate(self._request["largest_nominals"]):
            values[index] = min(values[index], largest)

    def restart_integrator(self, time: float) -> None:
        """Start a new integrator at the FMU's states and ``time`` in s; the next inputs are an event."""
        self._time = time
        self._inputs = None
        self._solver = self._make_solver()

    def jump(self, inputs: list[float], change: Callable[[], None]) -> None:
        """Handle an event if the inputs differ from those before."""
        if inputs != self._inputs:
            self._inputs = inputs
            self.event(change)

    def event(self, change: Callable[[], None]) -> None:
        """Enter Event Mode, apply a change there, and leave it."""
        is_recorded = len(self.recorded_events) < MAX_RECORDED_EVENTS
        before = self._look() if is_recorded else []
        self._fmu.enterEventMode()
        change()
        self._settle()
        self._fmu.enterContinuousTimeMode()
        self._solver.reset(self._time)
        if is_recorded:
            self.recorded_events.append([self._time, before, self._look()])

    def advance(self, begin: float, end: float) -> str:
        """Integrate to the next communication point; return what is wrong, or nothing."""
        for _ in range(MAX_EVENTS_PER_STEP):
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
        return f"more than {MAX_EVENTS_PER_STEP} events in the step from t = {begin!r} s"

    def _settle(self) -> None:
        """Iterate the discrete states until they settle."""
        needed = True
        while needed and not self._terminated:
            needed, self._terminated, _, _, defined, time_event = self._update()
            self._next_event = time_event if defined else float("inf")


DISCARD_STATUS = 2
CVODE_TRY_SHORTER, CVODE_GIVE_UP = 1, -1
"""What a callback of CVODE answers where it has no value: a shorter step may do; or nothing will."""


_DOUBLES = ctypes.POINTER(ctypes.c_double)
_VECTOR_CONTENT: Any = N_VectorContent_Serial._type_
"""What such a pointer points to."""


class _FailureAwareCvodeSolver(CVodeSolver):  # type: ignore[misc]
    """CVODE, which learns of FMUs that give no derivatives or indicators.

    An exception in a callback is lost: CVODE would go on with the values that lay there before. After Discard a shorter
    step is tried; after Error the instance is of no use any more. fmpy's own callbacks do the same but for that, and
    take three times as long to find where a vector has its numbers.

    Args:
        compiled: Callbacks in C to be used instead, where there are any.
        arguments: As fmpy's.
    """

    def __init__(self, compiled: CompiledCvodeCallbacks | None = None, **arguments: Any) -> None:
        self._compiled = compiled
        if compiled is not None:
            self.__dict__.update(compiled.addresses)  # fmpy makes callbacks of `f` and `g`: functions or addresses
        super().__init__(**arguments)
        if compiled is not None:
            compiled.attach(self.cvode_mem)
        self._needs_matrices = self.nx < LARGE_STATE_COUNT
        if not self._needs_matrices:
            use_fixed_point_iteration(self)

    def step(self, t: float, tNext: float) -> tuple[bool, Any, float]:
        """Integrate to a time or an event, from there on with matrices where the equations turn out to be stiff."""
        try:
            return super().step(t, tNext)  # type: ignore[no-any-return]
        except RuntimeError:
            if self._needs_matrices or not is_too_stiff(self):
                raise
        self._needs_matrices = True
        return super().step(use_newton_iteration(self, MAX_CVODE_STEPS), tNext)  # type: ignore[no-any-return]

    def f(self, t: float, y: Any, ydot: Any, user_data: Any) -> int:  # noqa: ARG002  CVODE gives it
        """Return the right-hand side."""
        try:
            self.set_time(t)
            if self.discrete:  # one dummy state
                _numbers_of_vector(ydot)[0] = 0.0
            else:
                self.set_x(_numbers_of_vector(y), self.nx)
                self.get_dx(_numbers_of_vector(ydot), self.nx)
        except FMICallException as error:
            return CVODE_TRY_SHORTER if error.status == DISCARD_STATUS else CVODE_GIVE_UP
        return 0

    def g(self, t: float, y: Any, gout: Any, user_data: Any) -> int:  # noqa: ARG002  CVODE gives it
        """Return the event indicators at (t, x)."""
        try:
            self.set_time(t)
            if not self.discrete:
                self.set_x(_numbers_of_vector(y), self.nx)
            self.get_z(gout, self.nz)
        except FMICallException as error:
            return CVODE_TRY_SHORTER if error.status == DISCARD_STATUS else CVODE_GIVE_UP
        return 0


def _numbers_of_vector(vector: Any) -> Any:
    """Return a pointer to the numbers of one of CVODE's vectors."""
    return _VECTOR_CONTENT.from_address(vector.contents.content).data


class _ConstantInputs:
    """fmpy's solvers set continuous inputs through this; here they are held."""

    def apply(self, time: float) -> None:
        """Do nothing."""


class FmuMessageLog:
    """Writes the FMU's messages at once, so that a crash loses none."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def write(self, status: int, category: bytes | None, message: bytes | None) -> None:
        """Write one message."""
        label = FMI_STATUS_NAMES[status] if 0 <= status < len(FMI_STATUS_NAMES) else str(status)
        texts = [(text or b"").decode("utf-8", "replace") for text in (category, message)]
        self._stream.write(json.dumps([label, *texts]) + "\n")
        self._stream.flush()

    def hear(self, instance: bytes | None, status: int, category: bytes | None, message: bytes | None) -> None:  # noqa: ARG002
        """Write one message of an instance that names itself."""
        self.write(status, category, message)


class FmpyInstance:
    """Common part of instances of both versions: their state can be saved and restored."""

    _fmu: Any

    def set(self, references: list[int], values: list[float]) -> None:
        """Set floating point variables."""
        raise NotImplementedError

    def get(self, references: list[int]) -> list[float]:
        """Read floating point variables."""
        raise NotImplementedError

    def make_reader(self, references: list[int]) -> Callable[[], Floats]:
        """Return a function that reads floating point variables; its array holds until the next call.

        For many reads: fmpy makes arrays of the references and of the values at each read, which takes longer than it.
        """
        raise NotImplementedError

    def save(self) -> Any:
        """Return the whole state, kept within the FMU."""
        return self._fmu.getFMUState()

    def restore(self, state: Any, time: float) -> None:  # noqa: ARG002  Model Exchange needs to know it
        """Go back to a state that was saved at that ``time`` in s."""
        self._fmu.setFMUState(state)

    def written(self, state: Any) -> bytes:
        """Return a kept state as bytes."""
        return bytes(self._fmu.serializeFMUState(state))

    def read(self, content: bytes) -> Any:
        """Return a state to restore, from bytes."""
        return self._fmu.deserializeFMUState(content)

    def forget(self, state: Any) -> None:
        """Free a saved state."""
        self._fmu.freeFMUState(state)

    def directional(self, unknowns: list[int], knowns: list[int], seed: list[float]) -> list[float]:
        """Return changes of the unknowns per change ``seed`` of the knowns."""
        return list(self._fmu.getDirectionalDerivative(unknowns, knowns, seed))

    def restart_integrator(self, time: float) -> None:
        """Start the integrator anew at ``time`` in s; nothing for FMUs with their own."""

    def recorded_events(self) -> list[list[Any]]:
        """Return events up to now; none for FMUs that find them themselves."""
        return []

    def reset(self) -> None:
        """Reset to the state after instantiation."""
        self._fmu.reset()

    def terminate(self) -> None:
        """End the simulation; values can still be read, and the instance can be reset."""
        self._fmu.terminate()

    def free(self) -> None:
        """Free the instance in any state."""
        self._fmu.freeInstance()

    def close(self) -> None:
        """Terminate and free."""
        self.terminate()
        self.free()


class Fmi2CoSimulationInstance(FmpyInstance):
    """An FMI 2.0 Co-Simulation instance."""

    def __init__(self, request: dict[str, Any], log: FmuMessageLog) -> None:
        self._request = request
        self._fmu = self._make_fmpy_fmu(request)
        self._callbacks = fmi2CallbackFunctions()
        self._callbacks.logger = fmi2CallbackLoggerTYPE(
            lambda _environment, instance, status, category, message: log.hear(instance, status, category, message)
        )
        self._callbacks.allocateMemory = fmi2CallbackAllocateMemoryTYPE(calloc)
        self._callbacks.freeMemory = fmi2CallbackFreeMemoryTYPE(free)
        addLoggerProxy(ctypes.byref(self._callbacks))
        self._fmu.instantiate(callbacks=self._callbacks, loggingOn=False)
        _log_failed_calls(self._fmu, request)

    def _make_fmpy_fmu(self, request: dict[str, Any]) -> Any:
        """Return fmpy's instance for FMI 2 Co-Simulation."""
        return _load_fmu(FMU2Slave, request)

    def initialize(self, experiment: dict[str, Any], inputs: list[float]) -> None:
        """Initialize with start values and first inputs, and enter Step Mode."""
        fmu = self._fmu
        begin = experiment.get("begin", 0.0)
        fmu.setupExperiment(tolerance=experiment["tolerance"], startTime=begin, stopTime=experiment["stop"])
        self.set(experiment["starts"]["references"], experiment["starts"]["values"])
        fmu.enterInitializationMode()
        self.set(experiment["inputs"], inputs)
        fmu.exitInitializationMode()

    def set(self, references: list[int], values: list[float]) -> None:
        """Set Real variables."""
        if references:
            self._fmu.setReal(references, values)

    def change(self, references: list[int], values: list[float]) -> None:
        """Set inputs between two steps."""
        self.set(references, values)

    def set_tunable_parameters(self, references: list[int], values: list[float]) -> None:
        """Set tunable parameters between two steps."""
        self.set(references, values)

    def get(self, references: list[int]) -> list[float]:
        """Read Real variables."""
        return list(self._fmu.getReal(references))

    def make_reader(self, references: list[int]) -> Callable[[], Floats]:
        """Return a function that reads Real variables; its array holds until the next call."""
        count, values = len(references), np.zeros(len(references))
        numbers, pointer = (ctypes.c_uint32 * count)(*references), values.ctypes.data_as(_DOUBLES)

        def read() -> Floats:
            self._fmu.fmi2GetReal(self._fmu.component, numbers, count, pointer)
            return values

        return read

    def step(self, begin: float, size: float) -> str:
        """Do one communication step; return what is wrong with it, or nothing."""
        self._fmu.doStep(begin, size)
        return ""

    def put(self, kind: str, references: list[int], values: list[Any]) -> None:
        """Set variables of a type other than Real."""
        getattr(self._fmu, f"set{'Integer' if kind == 'Enumeration' else kind}")(references, values)

    def look(self, kind: str, references: list[int]) -> list[Any]:
        """Read variables of a type other than Real."""
        return list(getattr(self._fmu, f"get{'Integer' if kind == 'Enumeration' else kind}")(references))

    def set_ramps(self, references: list[int], rates: list[float]) -> None:
        """Set first derivatives of inputs by time."""
        self._fmu.setRealInputDerivatives(references, [1] * len(references), rates)

    def slopes(self, references: list[int], order: int) -> list[float]:
        """Return derivatives of outputs by time."""
        return list(self._fmu.getRealOutputDerivatives(references, [order] * len(references)))


class Fmi3CoSimulationInstance(FmpyInstance):
    """An FMI 3.0 Co-Simulation instance."""

    def __init__(self, request: dict[str, Any], log: FmuMessageLog) -> None:
        self._request = request
        self._fmu = self._make_fmpy_fmu(request)
        self._fmu.instantiate(
            loggingOn=False, logMessage=lambda _environment, status, category, text: log.write(status, category, text)
        )
        _log_failed_calls(self._fmu, request)

    @cached_property
    def _arrays(self) -> dict[int, int]:
        """Value reference of an array → number of its elements, where the request names arrays."""
        return dict(self._request.get("arrays", ()))

    def _make_fmpy_fmu(self, request: dict[str, Any]) -> Any:
        """Return fmpy's instance for FMI 3 Co-Simulation."""
        return _load_fmu(FMU3Slave, request)

    def initialize(self, experiment: dict[str, Any], inputs: list[float]) -> None:
        """Initialize with start values and first inputs, and enter Step Mode."""
        fmu = self._fmu
        self.set(experiment["starts"]["references"], experiment["starts"]["values"])
        begin = experiment.get("begin", 0.0)
        fmu.enterInitializationMode(tolerance=experiment["tolerance"], startTime=begin, stopTime=experiment["stop"])
        self.set(experiment["inputs"], inputs)
        fmu.exitInitializationMode()

    def set(self, references: list[int], values: list[float]) -> None:
        """Set Float64 variables; array elements that are not given keep their values."""
        found = locate_array_elements(references, self._arrays)
        if found is not None:
            now = self._fmu.getFloat64(found.references, found.size) if found.size > len(values) else None
            self._fmu.setFloat64(found.references, found.merge_variable_values(values, now))
        elif references:
            self._fmu.setFloat64(references, values)

    def change(self, references: list[int], values: list[float]) -> None:
        """Set inputs between two steps."""
        self.set(references, values)

    def set_tunable_parameters(self, references: list[int], values: list[float]) -> None:
        """Set tunable parameters between two steps."""
        self.set(references, values)

    def get(self, references: list[int]) -> list[float]:
        """Read Float64 variables."""
        found = locate_array_elements(references, self._arrays)
        if found is not None:
            return found.select_elements(self._fmu.getFloat64(found.references, found.size))
        return list(self._fmu.getFloat64(references))

    def make_reader(self, references: list[int]) -> Callable[[], Floats]:
        """Return a function that reads Float64 variables; its array holds until the next call."""
        found = locate_array_elements(references, self._arrays)
        variables: Sequence[int] = references if found is None else found.references
        values = np.zeros(len(references) if found is None else found.size)
        places = None if found is None else np.array(found.places)
        numbers, pointer = (ctypes.c_uint32 * len(variables))(*variables), values.ctypes.data_as(_DOUBLES)

        def read() -> Floats:
            self._fmu.fmi3GetFloat64(self._fmu.component, numbers, len(numbers), pointer, len(values))
            return values if places is None else values[places]

        return read

    def step(self, begin: float, size: float) -> str:
        """Do one communication step; return what is wrong with it, or nothing."""
        _, terminate, early, last = self._fmu.doStep(begin, size)
        if terminate:
            return f"the FMU asked to end the simulation at t = {last!r} s"
        return f"the FMU returned early at t = {last!r} s without being allowed to" if early else ""

    def put(self, kind: str, references: list[int], values: list[Any]) -> None:
        """Set variables of a type other than Float64."""
        getattr(self._fmu, f"set{'Int64' if kind == 'Enumeration' else kind}")(references, values)

    def look(self, kind: str, references: list[int]) -> list[Any]:
        """Read variables of a type other than Float64."""
        return list(getattr(self._fmu, f"get{'Int64' if kind == 'Enumeration' else kind}")(references))

    def slopes(self, references: list[int], order: int) -> list[float]:
        """Return derivatives of outputs by time."""
        found = locate_array_elements(references, self._arrays)
        if found is None:
            return list(self._fmu.getOutputDerivatives(references, [order] * len(references)))
        count, values = len(found.references), (ctypes.c_double * found.size)()
        numbers, orders = (ctypes.c_uint32 * count)(*found.references), (ctypes.c_int32 * count)(*[order] * count)
        self._fmu.fmi3GetOutputDerivatives(self._fmu.component, numbers, count, orders, values, found.size)
        return found.select_elements(list(values))

    def directional(self, unknowns: list[int], knowns: list[int], seed: list[float]) -> list[float]:
        """Return changes of the unknowns per change ``seed`` of the knowns."""
        return self._derivative(self._fmu.getDirectionalDerivative, unknowns, knowns, seed, by=knowns)

    def adjoint(self, unknowns: list[int], knowns: list[int], seed: list[float]) -> list[float]:
        """Return the gradient, by the knowns, of the sum of the unknowns, each times its ``seed``."""
        return self._derivative(self._fmu.getAdjointDerivative, unknowns, knowns, seed, by=unknowns)

    def _derivative(
        self, way: Any, unknowns: list[int], knowns: list[int], seed: list[float], *, by: Any
    ) -> list[float]:
        """Return derivatives; array elements that were not requested have the seed 0."""
        of = knowns if by is unknowns else unknowns
        locations = {id(each): locate_array_elements(each, self._arrays) for each in (unknowns, knowns)}

        def variables(each: list[int]) -> Any:
            found = locations[id(each)]
            return each if found is None else found.references

        given, answer = locations[id(by)], locations[id(of)]
        values = way(
            variables(unknowns),
            variables(knowns),
            seed if given is None else given.merge_variable_values(seed),
            len(of) if answer is None else answer.size,
        )
        return list(values) if answer is None else answer.select_elements(values)


class ModelExchangeInstance(FmpyInstance):
    """Common part of Model Exchange instances of both versions: fmpy's CVODE integrates them.

    Among the bases it stands before the class of the version.
    """

    _request: dict[str, Any]
    _integration: CvodeIntegration
    _slopes: Callable[[Any, int], Any]  # FMI's function for x'

    def _watched(self) -> list[float]:
        """Return what is recorded at events."""
        watched = self._request.get("watched")
        return self.get(watched) if watched else []

    def recorded_events(self) -> list[list[Any]]:
        """Return events up to now: time in s, recorded values before and after."""
        return self._integration.recorded_events

    def change(self, references: list[int], values: list[float]) -> None:
        """Change inputs: an event."""
        self._integration.jump(values, lambda: self.set(references, values))

    def set_tunable_parameters(self, references: list[int], values: list[float]) -> None:
        """Set parameters between two steps: an event."""
        self._integration.event(lambda: self.set(references, values))

    def derivatives(self, time: float, states: list[float]) -> list[float]:
        """Return x' at a time and state."""
        self._fmu.setTime(time)
        self._fmu.setContinuousStates((ctypes.c_double * len(states))(*states), len(states))
        found = (ctypes.c_double * len(states))()
        self._slopes(found, len(states))
        return list(found)

    def nominals(self) -> list[float]:
        """Return the nominal values of the continuous states."""
        count = self._request["states"]
        found = (ctypes.c_double * count)()
        if count:
            self._fmu.getNominalsOfContinuousStates(found, count)
        return list(found)

    def set_time_and_states(self, time: float, states: dict[int, float]) -> None:
        """Set time in s and some of the continuous states, by their place."""
        _set_time_and_states(self._fmu, self._request["states"], time, states)

    def restart_integrator(self, time: float) -> None:
        """Start CVODE anew at ``time`` in s."""
        self._integration.restart_integrator(time)

    def restore(self, state: Any, time: float) -> None:
        """Go back to a state that was saved at that ``time`` in s."""
        super().restore(state, time)
        self.restart_integrator(time)

    def step(self, begin: float, size: float) -> str:
        """Do one communication step; return what is wrong with it, or nothing."""
        return self._integration.advance(begin, begin + size)


class Fmi2ModelExchangeInstance(ModelExchangeInstance, Fmi2CoSimulationInstance):
    """An FMI 2.0 Model Exchange instance, and its integrator."""

    def _make_fmpy_fmu(self, request: dict[str, Any]) -> Any:
        """Return fmpy's instance for FMI 2 Model Exchange."""
        return _load_fmu(FMU2Model, request)

    def initialize(self, experiment: dict[str, Any], inputs: list[float]) -> None:
        """Initialize and enter Continuous-Time Mode."""
        super().initialize(experiment, inputs)
        fmu = self._fmu
        self._slopes = fmu.getDerivatives
        self._integration = CvodeIntegration(
            fmu, self._slopes, fmu.newDiscreteStates, self._request, inputs, self._watched,
            experiment.get("begin", 0.0),
        )  # fmt: skip


class Fmi3ModelExchangeInstance(ModelExchangeInstance, Fmi3CoSimulationInstance):
    """An FMI 3.0 Model Exchange instance, and its integrator."""

    def _make_fmpy_fmu(self, request: dict[str, Any]) -> Any:
        """Return fmpy's instance for FMI 3 Model Exchange."""
        return _load_fmu(FMU3Model, request)

    def initialize(self, experiment: dict[str, Any], inputs: list[float]) -> None:
        """Initialize and enter Continuous-Time Mode."""
        super().initialize(experiment, inputs)
        fmu = self._fmu
        self._slopes = fmu.getContinuousStateDerivatives
        self._integration = CvodeIntegration(
            fmu, self._slopes, fmu.updateDiscreteStates, self._request, inputs, self._watched,
            experiment.get("begin", 0.0),
        )  # fmt: skip


def _set_time_and_states(fmu: Any, count: int, time: float, states: dict[int, float]) -> None:
    """Set time and some of the ``count`` continuous states of a Model Exchange instance of either version."""
    fmu.setTime(time)
    x = (ctypes.c_double * count)()
    if count:
        fmu.getContinuousStates(x, count)
    for place, value in states.items():
        x[place] = value
    if count:
        fmu.setContinuousStates(x, count)


def _log_failed_calls(fmu: Any, request: dict[str, Any]) -> None:
    """Keep messages about failed calls; drop all others, which may be many."""
    if request["troubles"]:
        fmu.setDebugLogging(loggingOn=True, categories=request["troubles"])


def _load_fmu(fmpy_class: type, request: dict[str, Any]) -> Any:
    """Load an FMU as an object of one of fmpy's classes."""
    _remember_signatures(fmpy_class)
    return fmpy_class(
        guid=request["token"],
        modelIdentifier=request["identifier"],
        unzipDirectory=request["unzipped"],
        instanceName="validated",
    )


@cache
def _remember_signatures(fmpy_class: type) -> None:
    """Attach the signatures of FMI's functions to them: fmpy asks for all of them again with each FMU that it loads."""
    for name, function in inspect.getmembers(fmpy_class, inspect.isfunction):
        if name.startswith("fmi"):
            vars(function)["__signature__"] = inspect.signature(function)


INSTANCE_CLASSES: dict[tuple[str, int], type[Fmi2CoSimulationInstance | Fmi3CoSimulationInstance]] = {
    ("CoSimulation", 2): Fmi2CoSimulationInstance,
    ("CoSimulation", 3): Fmi3CoSimulationInstance,
    ("ModelExchange", 2): Fmi2ModelExchangeInstance,
    ("ModelExchange", 3): Fmi3ModelExchangeInstance,
}
