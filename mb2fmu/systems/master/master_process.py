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

from mb2fmu.fmu.runner.fmpy_instances import Fmi2CoSimulationInstance, FmuMessageLog
from mb2fmu.systems.master.cosimulation_run import run_coupled_system
from mb2fmu.systems.master.fmu_slaves import (
    Fmi2Slave,
    Fmi3Slave,
    IntermediateUpdateInstance,
    SlaveCapabilities,
    SlaveError,
    SlaveStepResult,
)
from mb2fmu.systems.master.stability_forecast import LinearCoupledComponentModel
from mb2fmu.systems.port_and_bond_records import CommunicationStepSettings, SystemWiring

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MasterComponentRequest:
    """Data of one component.

    Attributes:
        version: 2 or 3.
        instance_request: Arguments of an instance, see ``fmu.runner.fmpy_instances``.
        capabilities: Optional functions that the master may use.
        start_values: Start values: value references and values.
        state_references: Value references of continuous states, and of their derivatives; () if they are not known.
    """

    version: int
    instance_request: Mapping[str, Any]
    capabilities: SlaveCapabilities
    start_values: tuple[tuple[int, ...], tuple[float, ...]]
    state_references: tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class MasterRunRequest:
    """Data of a system."""

    folder: str
    wiring: SystemWiring
    stepping: CommunicationStepSettings
    stop: float
    tolerance: float
    components: tuple[MasterComponentRequest, ...]


class _ComponentMessageLog(FmuMessageLog):
    """A log that names the component of each message.

    Args:
        stream: File that messages are written to.
        component: Name of the component.
        components: Names of all components. In FMI 2 fmpy's logger is that of the last instance, for all FMUs, so the
            name in the message counts.
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


class _NamedFmi2Instance(Fmi2CoSimulationInstance):
    """An FMI 2.0 FMU with the name of its component."""

    def _make_fmpy_fmu(self, request: dict[str, Any]) -> FMU2Slave:
        return FMU2Slave(
            guid=request["token"], modelIdentifier=request["identifier"], unzipDirectory=request["unzipped"],
            instanceName=request["name"],
        )  # fmt: skip


class _CallRecordingSlave:
    """A slave whose calls are noted, so that a crash can be attributed."""

    def __init__(self, slave: Fmi2Slave | Fmi3Slave, number: int, current_component: npt.NDArray[np.int64]) -> None:
        self._slave, self._number, self._current_component = slave, number, current_component
        self.capabilities = slave.capabilities
        self.read_outputs, self.write_inputs = slave.read_outputs, slave.write_inputs
        self.save_state, self.restore_state, self.free_state, self.handle_events = (
            slave.save_state,
            slave.restore_state,
            slave.free_state,
            slave.handle_events,
        )

    def do_step(self, time: float, size: float, input_polynomials: Floats) -> SlaveStepResult:
        """Do one communication step, and note it."""
        self._current_component[0] = self._number + 1
        result = self._slave.do_step(time, size, input_polynomials)
        self._current_component[0] = 0
        return result


def _initialize_component_slaves(request: MasterRunRequest, log: IO[str]) -> list[Fmi2Slave | Fmi3Slave]:
    """Return all components, in Initialization Mode with their start values."""
    slaves: list[Fmi2Slave | Fmi3Slave] = []
    wiring = request.wiring
    for index, component in enumerate(request.components):
        message_log = _ComponentMessageLog(log, wiring.components[index], wiring.components)
        inputs = [wiring.inputs[port].reference for port in wiring.inputs_of(index)]
        outputs = [wiring.outputs[port].reference for port in wiring.outputs_of(index)]
        slave: Fmi2Slave | Fmi3Slave
        if component.version == 2:
            slave = Fmi2Slave(
                _NamedFmi2Instance(dict(component.instance_request), message_log),
                inputs,
                outputs,
                component.capabilities,
                request.stepping.substeps,
            )
        else:
            instance = IntermediateUpdateInstance(
                dict(component.instance_request), message_log, component.capabilities, inputs
            )
            slave = Fmi3Slave(instance, inputs, outputs, component.capabilities, request.stepping.substeps)
        slave.set_start_values(*component.start_values)
        slave.enter_initialization_mode(0.0, request.stop, request.tolerance)
        slaves.append(slave)
    return slaves


def _linearize_components(
    request: MasterRunRequest, slaves: Sequence[Fmi2Slave | Fmi3Slave]
) -> list[LinearCoupledComponentModel] | None:
    """Return linear models of the components at their states; None if one has none."""
    models = []
    wiring = request.wiring
    for index, (component, slave) in enumerate(zip(request.components, slaves, strict=True)):
        states, derivatives = component.state_references
        inputs = [wiring.inputs[port].reference for port in wiring.inputs_of(index)]
        outputs = [wiring.outputs[port].reference for port in wiring.outputs_of(index)]
        if not component.capabilities.directional_derivatives:
            return None
        unknowns, knowns = [*derivatives, *outputs], [*states, *inputs]
        try:
            columns = [slave.directional_derivatives(unknowns, [reference], [1.0]) for reference in knowns]
        except SlaveError:
            return None
        state_count, input_count = len(states), len(inputs)
        system_matrix = np.array(columns, dtype=float).reshape(len(knowns), len(unknowns)).T
        models.append(
            LinearCoupledComponentModel(
                system_matrix[:state_count, :state_count],
                system_matrix[:state_count, state_count : state_count + input_count],
                system_matrix[state_count:, :state_count],
                system_matrix[state_count:, state_count : state_count + input_count],
            )
        )
    return models


def _run_master_request() -> None:
    """Read the request, run the system, write the outcome."""
    request: MasterRunRequest = pickle.loads(Path(sys.argv[1]).read_bytes())  # noqa: S301  our own file
    folder = Path(request.folder)
    current_component = np.memmap(folder / "at.i64", dtype=np.int64, mode="w+", shape=(1,))
    with (
        (folder / "log.jsonl").open("w", encoding="utf-8") as log,
        (folder / "rows.f64").open("wb", buffering=0) as rows,
    ):
        try:
            slaves = _initialize_component_slaves(request, log)
        except (SlaveError, Exception) as error:  # noqa: BLE001  an FMU that cannot be made: fmpy raises bare exceptions
            failure = {"component": "", "time": 0.0, "what": f"instantiating failed: {error}"}
            (folder / "outcome.json").write_text(json.dumps({"failure": failure, "notes": []}), encoding="utf-8")
            return
        recording_slaves = [_CallRecordingSlave(slave, index, current_component) for index, slave in enumerate(slaves)]

        def record(time: float, outputs: Floats, defects: Floats, energies: Floats) -> None:
            rows.write(np.concatenate([[time], outputs, defects, energies]).tobytes())

        def ready() -> None:
            for slave in slaves:
                slave.enter_step_mode()

        statistics = run_coupled_system(
            request.wiring, recording_slaves, request.stepping, request.stop, record,
            lambda: _linearize_components(request, slaves), ready,
        )  # fmt: skip
        (folder / "outcome.json").write_text(json.dumps(asdict(statistics)), encoding="utf-8")
        if statistics.failure is None:
            for slave in slaves:
                slave.terminate()


if __name__ == "__main__":
    _run_master_request()
