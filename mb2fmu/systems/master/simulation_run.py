"""``run_coupled_system``: run a system from start to end; records are kept even if it fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.systems.master.bond_energy import BondEnergyAccount
from mb2fmu.systems.master.communication_steps import AcceptedStep, CommunicationStepError, SystemStepper
from mb2fmu.systems.master.fmu_slaves import Slave
from mb2fmu.systems.master.stability_forecast import LinearModel, StabilityForecast, forecast_stability
from mb2fmu.systems.resolved_system import SteppingSettings, SystemWiring

Floats = npt.NDArray[np.float64]
Record = Callable[[float, Floats, Floats, Floats], None]
"""Is told of each communication point: time, outputs, energy defects of bonds, energies over bonds."""

_SLACK = 1e-9
_SMALLEST = 1e-6
"""Of the first step: no adapted step is smaller."""


@dataclass
class RunStatistics:
    """Statistics of a run.

    Attributes:
        steps: Accepted communication steps.
        rejected: Steps that were made again, smaller.
        passes: Most passes over one step.
        all_passes: Sum over all steps.
        unsettled: Steps whose passes ended before the inputs agreed.
        largest_change: Of the inputs in the last pass of such a step, relative.
        events: Events that components had.
        early: Steps that a component ended early.
        forecast: What was foretold; None if the components cannot be linearized.
        failure: Component, time and reason, if it ended early.
    """

    steps: int = 0
    rejected: int = 0
    passes: int = 0
    all_passes: int = 0
    unsettled: int = 0
    largest_change: float = 0.0
    events: int = 0
    early: int = 0
    forecast: dict[str, Any] | None = None
    failure: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)


class UnstableCouplingError(Exception):
    """The coupling is forecast to be unstable."""

    def __init__(self, foretold: StabilityForecast) -> None:
        self.foretold = foretold
        super().__init__(f"errors grow by {foretold.radius:.6g} per step")


def run_coupled_system(
    wiring: SystemWiring,
    slaves: Sequence[Slave],
    stepping: SteppingSettings,
    stop: float,
    record: Record,
    models: Callable[[], Sequence[LinearModel] | None] = lambda: None,
    ready: Callable[[], None] = lambda: None,
) -> RunStatistics:
    """Run a system whose components are in Initialization Mode.

    Args:
        wiring: The system.
        slaves: Its components.
        stepping: How.
        stop: End in s; it begins at 0.
        record: Is told of each communication point.
        models: Linearizes the components where they are; None if they cannot be.
        ready: Takes the components to Step Mode.

    Returns:
        How it went; ``failure`` is set if it ended early.
    """
    tally = RunStatistics()
    march = SystemStepper(wiring, slaves, stepping)
    try:
        march.begin()  # inputs and outputs agree while start values may still follow from them
        ready()
        march = SystemStepper(wiring, slaves, stepping)
        march.begin()
        _foretell(tally, wiring, models(), stepping, stop)
        account = BondEnergyAccount(
            wiring, stepping.order, 0.0, march.closing.u, march.closing.y, iterated=stepping.passes > 1
        )
        record(0.0, march.closing.y, account.defects(), account.exchanged())
        _march(tally, march, stepping, stop, account, record)
    except CommunicationStepError as error:
        tally.failure = {"component": error.component, "time": error.time, "what": error.what}
    except UnstableCouplingError as error:
        tally.failure = {"component": "", "time": 0.0, "what": str(error), "unstable": True}
    return tally


def _foretell(
    tally: RunStatistics,
    wiring: SystemWiring,
    models: Sequence[LinearModel] | None,
    stepping: SteppingSettings,
    stop: float,
) -> None:
    """Note the forecast of stability, or why there is none; raise if it is unstable and the user wants that refused."""
    if any(link.delay for link in wiring.links):
        tally.notes.append("no forecast of stability: connections have delays")
        return
    if models is None:
        tally.notes.append("no forecast of stability: not all components offer directional derivatives of their states")
        return
    foretold = forecast_stability(wiring, models, stepping, stop)
    tally.forecast = asdict(foretold)
    if foretold.unstable and stepping.unstable == "refuse":
        raise UnstableCouplingError(foretold)


def _march(
    tally: RunStatistics,
    march: SystemStepper,
    stepping: SteppingSettings,
    stop: float,
    account: BondEnergyAccount,
    record: Record,
) -> None:
    """Step the system to the end, with steps as given or adapted to the accuracy, and record every point."""
    count, size = round(stop / stepping.step), stepping.step
    steady = stepping.accuracy is None
    while march.time < stop * (1.0 - _SLACK):
        if steady:
            # Points are multiples of the step, so that round-off does not add up.
            wanted = min((np.floor(march.time / size + 1e-6) + 1.0) * size, stop)
            size_now = (stop if count and wanted > stop * (1.0 - _SLACK) else wanted) - march.time
        else:
            size_now = min(size, stop - march.time)
        if steady:
            done = march.step(size_now)
        else:
            attempt = _adapted(tally, march, stepping, size_now)
            if attempt is None:
                size = max(0.3 * size_now, _SMALLEST * stepping.step)
                continue
            done, size = attempt
        tally.steps += 1
        tally.passes, tally.all_passes = max(tally.passes, done.passes), tally.all_passes + done.passes
        tally.events += bool(done.event)
        tally.early += bool(done.size < size_now * (1.0 - _SLACK))
        if stepping.passes > 1 and done.change > stepping.converged:
            tally.unsettled += 1
            tally.largest_change = max(tally.largest_change, done.change)
        account.add(done, march.closing.u, march.closing.y, march.slopes(account.pairs))
        record(march.time, march.closing.y, account.defects(), account.exchanged())
        if not np.all(np.isfinite(march.closing.y)):
            raise CommunicationStepError("", march.time, "an output is no finite number")


def _adapted(
    tally: RunStatistics, march: SystemStepper, stepping: SteppingSettings, size: float
) -> tuple[AcceptedStep, float] | None:
    """Do one step and return it with the next size; None if its error was too large and the step was undone."""
    assert stepping.accuracy is not None
    kept = march.kept()
    order = min(len(kept.past) - 1, stepping.order)
    done = march.step(size)
    error = done.error / stepping.accuracy if order == stepping.order else 0.5
    again = error > 1.0 and not done.event and size > 2.0 * _SMALLEST * stepping.step
    if again:
        march.undo(kept)
        tally.rejected += 1
    march.forget(kept.states)
    if again:
        return None
    longest = 100.0 * stepping.step if stepping.longest is None else stepping.longest
    factor = min(2.0, max(0.3, 0.8 * max(error, 1e-9) ** (-1.0 / (stepping.order + 1))))
    return done, min(longest, size * factor)
