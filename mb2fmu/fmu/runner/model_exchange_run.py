"""CVODE and the events of one Model Exchange instance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fmpy.fmi1 import FMICallException
from fmpy.sundials import CVodeSolver

MAX_EVENTS_PER_STEP = 1000
MAX_CVODE_STEPS = 1_000_000
MAX_RECORDED_EVENTS = 2000


class CvodeIntegration:
    """Integrates a Model Exchange instance of either version by CVODE, and handles its events.

    ``look`` reads what is noted of events: ``recorded_events`` has the time in s of each, and what was read before and
    after it.
    """

    def __init__(
        self,
        fmu: Any,
        get_derivatives: Any,
        update: Any,
        request: dict[str, Any],
        inputs: list[float],
        look: Callable[[], list[float]],
    ) -> None:
        self.recorded_events: list[list[Any]] = []
        self._look = look
        self._fmu, self._update, self._get_derivatives = fmu, update, get_derivatives
        self._request = request
        self._inputs: list[float] | None = inputs
        self._completes = request["completes_steps"]
        self._next_event = float("inf")
        self._time = 0.0
        self._terminated = False
        self._settle()
        fmu.enterContinuousTimeMode()
        self._solver = self._made()

    def _made(self) -> _CvodeWithFailures:
        """Return CVODE at the FMU's states and time."""
        fmu = self._fmu
        return _CvodeWithFailures(
            nx=self._request["states"],
            nz=self._request["indicators"],
            get_x=fmu.getContinuousStates,
            set_x=fmu.setContinuousStates,
            get_dx=self._get_derivatives,
            get_z=fmu.getEventIndicators,
            get_nominals=fmu.getNominalsOfContinuousStates,
            set_time=fmu.setTime,
            input=_ConstantInputs(),
            startTime=self._time,
            relativeTolerance=self._request["integration_tolerance"],
            maxNumSteps=MAX_CVODE_STEPS,
        )

    def restart_integrator(self, time: float) -> None:
        """Start a new integrator at the FMU's states and ``time`` in s; the next inputs are an event."""
        self._time = time
        self._inputs = None
        self._solver = self._made()

    def jump(self, inputs: list[float], change: Callable[[], None]) -> None:
        """Handle an event if the inputs differ from those before."""
        if inputs != self._inputs:
            self._inputs = inputs
            self.event(change)

    def event(self, change: Callable[[], None]) -> None:
        """Enter Event Mode, apply a change there, and leave it."""
        before = self._look()
        self._fmu.enterEventMode()
        change()
        self._settle()
        self._fmu.enterContinuousTimeMode()
        self._solver.reset(self._time)
        if len(self.recorded_events) < MAX_RECORDED_EVENTS:
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


class _CvodeWithFailures(CVodeSolver):  # type: ignore[misc]
    """CVODE, told of FMUs that give no derivatives or indicators.

    An exception in a callback is lost: CVODE would go on with the values that lay there before. After Discard a shorter
    step is tried; after Error the instance is of no use any more.
    """

    def f(self, t: float, y: Any, ydot: Any, user_data: Any) -> int:
        """Return the right-hand side."""
        try:
            return int(super().f(t, y, ydot, user_data))
        except FMICallException as error:
            return CVODE_TRY_SHORTER if error.status == DISCARD_STATUS else CVODE_GIVE_UP

    def g(self, t: float, y: Any, gout: Any, user_data: Any) -> int:
        """Return the event indicators at (t, x)."""
        try:
            return int(super().g(t, y, gout, user_data))
        except FMICallException as error:
            return CVODE_TRY_SHORTER if error.status == DISCARD_STATUS else CVODE_GIVE_UP


class _ConstantInputs:
    """fmpy's solvers set continuous inputs through this; here they are held."""

    def apply(self, time: float) -> None:
        """Do nothing."""
