"""Run a system in a process of its own (``python -m … request.pickle``): a crash ends only this process.

Written into the request's folder as they come: ``rows.f64`` (time, outputs, defects and energies of bonds),
``log.jsonl`` ([status, category, message, component]), ``at.i64`` (which component is called now); at the end
``outcome.json``.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from fmpy.fmi2 import FMU2Slave

from mb2fmu.fmu.runner.fmpy_instances import Fmi2CoSimulation, MessageLog
from mb2fmu.systems.master.fmu_slaves import Fmi2Slave, Fmi3Slave, SlaveCapabilities, SlaveError, SlaveStepResult
from mb2fmu.systems.master.fmu_slaves import IntermediateUpdateInstance as Unit3
from mb2fmu.systems.master.simulation_run import run_coupled_system
from mb2fmu.systems.master.stability_forecast import LinearModel
from mb2fmu.systems.resolved_system import SteppingSettings, SystemWiring

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class ComponentRequest:
    """Data of one component.

    Attributes:
        version: 2 or 3.
        request: What ``driving.instances`` reads.
        abilities: What may be asked of it.
        values: Start values: value references and values.
        states: Value references of continuous states, and of their derivatives; () if they are not known.
    """

    version: int
    request: Mapping[str, Any]
    abilities: SlaveCapabilities
    values: tuple[tuple[int, ...], tuple[float, ...]]
    states: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class SystemRequest:
    """Data of a system."""

    folder: str
    wiring: SystemWiring
    stepping: SteppingSettings
    stop: float
    tolerance: float
    units: tuple[ComponentRequest, ...]


class _ComponentMessageLog(MessageLog):
    """A log that names the component of each message.

    Args:
        stream: To write to.
        component: That the log is of.
        components: All of the system. fmpy's logger of FMI 2 is that of the FMU that was made last, for all FMUs, so
            the name that the message has counts.
    """

    def __init__(self, stream: IO[str], component: str, components: Sequence[str]) -> None:
        super().__init__(stream)
        self._component, self._components = component, components

    def write(self, status: int, category: bytes | None, message: bytes | None) -> None:
        """Write one message."""
        self._write(self._component, status, category, message)

    def hear(self, instance: bytes | None, status: int, category: bytes | None, message: bytes | None) -> None:
        """Write one message of an instance that names itself."""
        name = (instance or b"").decode("utf-8", "replace")
        self._write(name if name in self._components else self._component, status, category, message)

    def _write(self, component: str, status: int, category: bytes | None, message: bytes | None) -> None:
        texts = [(text or b"").decode("utf-8", "replace") for text in (category, message)]
        self._stream.write(json.dumps([status, *texts, component]) + "\n")
        self._stream.flush()


class _NamedFmi2Instance(Fmi2CoSimulation):
    """An FMI 2.0 FMU with the name of its component."""

    def _made(self, request: dict[str, Any]) -> FMU2Slave:
        return FMU2Slave(
            guid=request["token"], modelIdentifier=request["identifier"], unzipDirectory=request["unzipped"],
            instanceName=request["name"],
        )  # fmt: skip


class _CallRecordingSlave:
    """A slave whose calls are noted, so that a crash can be attributed."""

    def __init__(self, slave: Fmi2Slave | Fmi3Slave, number: int, at: npt.NDArray[np.int64]) -> None:
        self._slave, self._number, self._at = slave, number, at
        self.abilities = slave.abilities
        self.read, self.write = slave.read, slave.write
        self.save, self.restore, self.forget, self.settle = slave.save, slave.restore, slave.forget, slave.settle

    def advance(self, time: float, size: float, course: Floats) -> SlaveStepResult:
        """Do one communication step, and note it."""
        self._at[0] = self._number + 1
        done = self._slave.advance(time, size, course)
        self._at[0] = 0
        return done


def make_component_slave(request: SystemRequest, log: IO[str]) -> list[Fmi2Slave | Fmi3Slave]:
    """Return all components, in Initialization Mode with their start values."""
    slaves: list[Fmi2Slave | Fmi3Slave] = []
    wiring = request.wiring
    for k, unit in enumerate(request.units):
        said = _ComponentMessageLog(log, wiring.components[k], wiring.components)
        inputs = [wiring.inputs[i].reference for i in wiring.inputs_of(k)]
        outputs = [wiring.outputs[i].reference for i in wiring.outputs_of(k)]
        slave: Fmi2Slave | Fmi3Slave
        if unit.version == 2:
            slave = Fmi2Slave(
                _NamedFmi2Instance(dict(unit.request), said), inputs, outputs, unit.abilities, request.stepping.substeps
            )
        else:
            instance = Unit3(dict(unit.request), said, unit.abilities, inputs)
            slave = Fmi3Slave(instance, inputs, outputs, unit.abilities, request.stepping.substeps)
        slave.start(*unit.values)
        slave.begin(0.0, request.stop, request.tolerance)
        slaves.append(slave)
    return slaves


def linearize_components(request: SystemRequest, slaves: Sequence[Fmi2Slave | Fmi3Slave]) -> list[LinearModel] | None:
    """Return linear models of the components at their states; None if one has none."""
    found = []
    wiring = request.wiring
    for k, (unit, slave) in enumerate(zip(request.units, slaves, strict=True)):
        states, rates = unit.states
        inputs = [wiring.inputs[i].reference for i in wiring.inputs_of(k)]
        outputs = [wiring.outputs[i].reference for i in wiring.outputs_of(k)]
        if not unit.abilities.directional:
            return None
        unknowns, knowns = [*rates, *outputs], [*states, *inputs]
        try:
            columns = [slave.directional(unknowns, [each], [1.0]) for each in knowns]
        except SlaveError:
            return None
        n, m = len(states), len(inputs)
        whole = np.array(columns, dtype=float).reshape(len(knowns), len(unknowns)).T
        found.append(LinearModel(whole[:n, :n], whole[:n, n : n + m], whole[n:, :n], whole[n:, n : n + m]))
    return found


def main() -> None:
    """Read the request, run the system, write the outcome."""
    request: SystemRequest = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301  our own file
    folder = Path(request.folder)
    at = np.memmap(folder / "at.i64", dtype=np.int64, mode="w+", shape=(1,))
    with (
        (folder / "log.jsonl").open("w", encoding="utf-8") as log,
        (folder / "rows.f64").open("wb", buffering=0) as rows,
    ):
        try:
            slaves = make_component_slave(request, log)
        except (SlaveError, Exception) as error:  # noqa: BLE001  an FMU that cannot be made: fmpy raises bare exceptions
            failure = {"component": "", "time": 0.0, "what": f"instantiating failed: {error}"}
            (folder / "outcome.json").write_text(json.dumps({"failure": failure, "notes": []}), encoding="utf-8")
            return
        watched = [_CallRecordingSlave(slave, k, at) for k, slave in enumerate(slaves)]

        def record(time: float, outputs: Floats, defects: Floats, energies: Floats) -> None:
            rows.write(np.concatenate([[time], outputs, defects, energies]).tobytes())

        def ready() -> None:
            for slave in slaves:
                slave.ready()

        tally = run_coupled_system(
            request.wiring, watched, request.stepping, request.stop, record,
            lambda: linearize_components(request, slaves), ready,
        )  # fmt: skip
        (folder / "outcome.json").write_text(json.dumps(asdict(tally)), encoding="utf-8")
        if tally.failure is None:
            for slave in slaves:
                slave.close()


if __name__ == "__main__":
    main()
