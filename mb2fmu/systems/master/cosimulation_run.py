"""``run_coupled_system``: run a system from start to end; records are kept even if it fails."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master.coupled_system_stepping import (
    AcceptedCommunicationStep,
    CommunicationStepError,
    SystemStepper,
)
from mb2fmu.systems.master.fmu_slaves import Slave
from mb2fmu.systems.master.power_bond_energy import SystemBondEnergies
from mb2fmu.systems.master.stability_forecast import (
    LinearCoupledComponentModel,
    StabilityForecast,
    forecast_coupling_stability,
)
from mb2fmu.systems.port_and_bond_records import CommunicationStepSettings, SystemWiring

Floats = npt.NDArray[np.float64]
RecordPoint = Callable[[float, Floats, Floats, Floats], None]
"""Receives each communication point: time, outputs, energy defects of bonds, energies over bonds."""

_TIME_TOLERANCE = 1e-9
_MIN_STEP_RATIO = 1e-6
"""Smallest adapted step, relative to the first one."""


@dataclass
class SystemRunStatistics:
    """Statistics of a run.

    Attributes:
        steps: Accepted communication steps.
        rejected_steps: Steps that were repeated with a smaller size.
        max_passes: Largest number of iterations of one step.
        total_passes: Iterations of all steps.
        unconverged_steps: Steps whose iterations ended before the inputs agreed.
        largest_change: Largest relative change of the inputs in the last iteration of such a step.
        events: Events that components had.
        early_returns: Steps that a component ended early.
        forecast: Forecast of stability; None if the components cannot be linearized.
        failure: Component, time and reason, if it ended early.
    """

    steps: int = 0
    rejected_steps: int = 0
    max_passes: int = 0
    total_passes: int = 0
    unconverged_steps: int = 0
    largest_change: float = 0.0
    events: int = 0
    early_returns: int = 0
    forecast: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)


class _UnstableCouplingError(Exception):
    """The coupling is forecast to be unstable."""

    def __init__(self, forecast: StabilityForecast) -> None:
        self.forecast = forecast
        super().__init__(f"errors grow by {forecast.spectral_radius:.6g} per step")


def run_coupled_system(
    wiring: SystemWiring,
    slaves: Sequence[Slave],
    stepping: CommunicationStepSettings,
    stop: float,
    record: RecordPoint,
    linearize: Callable[[], Sequence[LinearCoupledComponentModel] | None] = lambda: None,
    enter_step_mode: Callable[[], None] = lambda: None,
) -> SystemRunStatistics:
    """Run a system whose components are in Initialization Mode.

    Args:
        wiring: The system.
        slaves: The components.
        stepping: Settings of the master.
        stop: Stop time in s; the run begins at 0.
        record: Receives each communication point.
        linearize: Returns linear models of the components at their states; None if they cannot be linearized.
        enter_step_mode: Brings the components to Step Mode.

    Returns:
        How it went; ``failure`` is set if it ended early.
    """
    statistics = SystemRunStatistics()
    stepper = SystemStepper(wiring, slaves, stepping)
    try:
        stepper.initialize()  # inputs and outputs agree while start values may still follow from them
        enter_step_mode()
        stepper = SystemStepper(wiring, slaves, stepping)
        stepper.initialize()
        _forecast_stability(statistics, wiring, linearize(), stepping, stop)
        energy_account = SystemBondEnergies(
            wiring, stepping.order, 0.0, stepper.loop_solver.u, stepper.loop_solver.y, iterated=stepping.passes > 1
        )
        record(0.0, stepper.loop_solver.y, energy_account.energy_defects(), energy_account.exchanged_energies())
        _step_to_end(statistics, stepper, stepping, stop, energy_account, record)
    except CommunicationStepError as error:
        statistics.failure = {"component": error.component, "time": error.time, "what": error.reason}
    except _UnstableCouplingError as error:
        statistics.failure = {"component": "", "time": 0.0, "what": str(error), "unstable": True}
    return statistics


def _forecast_stability(
    statistics: SystemRunStatistics,
    wiring: SystemWiring,
    models: Sequence[LinearCoupledComponentModel] | None,
    stepping: CommunicationStepSettings,
    stop: float,
) -> None:
    """Note the forecast of stability, or why there is none; raise if it is unstable and the user wants that refused."""
    if any(link.delay for link in wiring.links):
        statistics.notes.append("no forecast of stability: connections have delays")
        return
    if models is None:
        statistics.notes.append(
            "no forecast of stability: not all components offer directional derivatives of their states"
        )
        return
    forecast = forecast_coupling_stability(wiring, models, stepping, stop)
    statistics.forecast = asdict(forecast)
    if forecast.unstable and stepping.unstable == "refuse":
        raise _UnstableCouplingError(forecast)


def _step_to_end(
    statistics: SystemRunStatistics,
    stepper: SystemStepper,
    stepping: CommunicationStepSettings,
    stop: float,
    energy_account: SystemBondEnergies,
    record: RecordPoint,
) -> None:
    """Step the system to the end, with steps as given or adapted to the accuracy, and record every point."""
    step_count, step_size = round(stop / stepping.step), stepping.step
    fixed_step = stepping.accuracy is None
    while stepper.time < stop * (1.0 - _TIME_TOLERANCE):
        if fixed_step:
            # Points are multiples of the step, so that round-off does not add up.
            next_time = min((math.floor(stepper.time / step_size + 1e-6) + 1.0) * step_size, stop)
            present_size = (
                stop if step_count and next_time > stop * (1.0 - _TIME_TOLERANCE) else next_time
            ) - stepper.time
        else:
            present_size = min(step_size, stop - stepper.time)
        if fixed_step:
            step = stepper.step(present_size)
        else:
            attempt = _try_adapted_step(statistics, stepper, stepping, present_size)
            if attempt is None:
                step_size = max(0.3 * present_size, _MIN_STEP_RATIO * stepping.step)
                continue
            step, step_size = attempt
        statistics.steps += 1
        statistics.max_passes, statistics.total_passes = (
            max(statistics.max_passes, step.iterations),
            statistics.total_passes + step.iterations,
        )
        statistics.events += bool(step.event)
        statistics.early_returns += bool(step.size < present_size * (1.0 - _TIME_TOLERANCE))
        if stepping.passes > 1 and step.last_change > stepping.converged:
            statistics.unconverged_steps += 1
            statistics.largest_change = max(statistics.largest_change, step.last_change)
        energy_account.add_step(
            step,
            stepper.loop_solver.u,
            stepper.loop_solver.y,
            stepper.feedthrough_derivatives(energy_account.feedthrough_pairs),
        )
        record(
            stepper.time, stepper.loop_solver.y, energy_account.energy_defects(), energy_account.exchanged_energies()
        )
        if not np.all(np.isfinite(stepper.loop_solver.y)):
            raise CommunicationStepError("", stepper.time, "an output is no finite number")


def _try_adapted_step(
    statistics: SystemRunStatistics, stepper: SystemStepper, stepping: CommunicationStepSettings, step_size: float
) -> tuple[AcceptedCommunicationStep, float] | None:
    """Do one step and return it with the next size; None if its error was too large and the step was undone."""
    assert stepping.accuracy is not None
    saved_state = stepper.save()
    order = min(len(saved_state.past_points) - 1, stepping.order)
    step = stepper.step(step_size)
    relative_error = step.extrapolation_error / stepping.accuracy if order == stepping.order else 0.5
    is_rejected = relative_error > 1.0 and not step.event and step_size > 2.0 * _MIN_STEP_RATIO * stepping.step
    if is_rejected:
        stepper.restore(saved_state)
        statistics.rejected_steps += 1
    stepper.free_saved_states(saved_state.states)
    if is_rejected:
        return None
    longest_step = 100.0 * stepping.step if stepping.longest is None else stepping.longest
    size_factor = min(2.0, max(0.3, 0.8 * max(relative_error, 1e-9) ** (-1.0 / (stepping.order + 1))))
    return step, min(longest_step, step_size * size_factor)
