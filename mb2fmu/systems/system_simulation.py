"""``simulate_system``: run a wired system by the master, in a process of its own."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ToolError, describe_process_end
from mb2fmu.fmu.package import write_files_for_run
from mb2fmu.systems.fmu_component import FmuComponent
from mb2fmu.systems.master.master_process import MasterComponentRequest, MasterRunRequest
from mb2fmu.systems.wired_system import CouplingError, WiredSystem
from mb2fmu.temporary_files import make_temporary_folder

Floats = npt.NDArray[np.float64]
ProgressCallback = Callable[[float], None]
"""Receives the part of the experiment that is done, 0 to 1."""

TIME_LIMIT = 3600.0
_POLL_INTERVAL = 0.2
_MAX_MESSAGES = 20


@dataclass(frozen=True)
class SystemTrajectories:
    """Results of a system's run.

    Attributes:
        names: ``component.variable`` of every output.
        units: Units of measure by the FMUs; empty where they declare none.
        time: Communication points in s, shape (n_t,).
        values: Shape (n_t, n).
        bonds: Names of bonds.
        energy_defects: Energy that each bond took out of the system in J, shape (n_t, n_bonds).
        exchanged_energies: Energy that the first side of each bond has received in J, shape (n_t, n_bonds).
        statistics: Fields of ``master.cosimulation_run.SystemRunStatistics``.
        log: Messages of the FMUs.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    time: Floats
    values: Floats
    bonds: tuple[str, ...]
    energy_defects: Floats
    exchanged_energies: Floats
    statistics: Mapping[str, Any]
    log: tuple[str, ...]

    def __getitem__(self, name: str) -> Floats:
        """Return one variable over time, shape (n_t,)."""
        return np.asarray(self.values[:, self.names.index(name)])


class UnstableSystemError(CouplingError):
    """The coupling is forecast to diverge with this master and step; another one may carry it."""


class SystemRunError(ToolError):
    """A component failed while the system ran.

    Attributes:
        motion: Recorded outputs up to the last valid communication point.
    """

    def __init__(self, headline: str, faults: list[Fault], motion: SystemTrajectories) -> None:
        super().__init__(headline, faults)
        self.motion = motion


def simulate_system(
    wired_system: WiredSystem, progress: ProgressCallback | None = None, time_limit: float = TIME_LIMIT
) -> SystemTrajectories:
    """Run a system to its end.

    Args:
        wired_system: The system.
        progress: Receives the completed part of the experiment.
        time_limit: Limit of wall-clock time in s.

    Raises:
        UnstableSystemError: If the coupling is forecast to diverge.
        SystemRunError: If a component fails, with the outputs recorded before.
    """
    with make_temporary_folder("run the system") as folder:
        request = _make_request(wired_system, folder)
        (folder / "request.pickle").write_bytes(pickle.dumps(request))
        exit_code, output = _run_master_process(wired_system, folder, progress, time_limit)
        outcome_file = folder / "outcome.json"
        outcome = json.loads(outcome_file.read_text(encoding="utf-8")) if outcome_file.is_file() else None
        motion = _read_motion(wired_system, folder, outcome or {})
        if outcome is None:
            raise _crash_error(wired_system, folder, exit_code, output, motion)
    failure = outcome.get("failure")
    if failure and failure.get("unstable"):
        raise _instability_error(wired_system, outcome["forecast"])
    if failure:
        raise _component_failure_error(wired_system, failure, motion)
    return motion


def _make_request(wired_system: WiredSystem, folder: Path) -> MasterRunRequest:
    """Unpack the FMUs into a folder and return the request for the master's process."""
    component_requests = []
    for component, values in zip(wired_system.components, wired_system.values, strict=True):
        unzipped_folder = folder / "units" / component.name
        write_files_for_run(component.file_tree, unzipped_folder)
        references = tuple(component.variables[name].reference or 0 for name in values)
        instance_request = {
            "name": component.name,
            "token": component.description.token,
            "identifier": component.model_identifier,
            "unzipped": str(unzipped_folder),
            "troubles": component.trouble_log_categories,
        }
        component_requests.append(
            MasterComponentRequest(component.description.version, instance_request, component.capabilities,
                        (references, tuple(values.values())), _list_state_references(component))
        )  # fmt: skip
    run_settings = wired_system.system.run_settings
    return MasterRunRequest(
        str(folder),
        wired_system.wiring,
        run_settings.stepping,
        run_settings.stop,
        run_settings.tolerance,
        tuple(component_requests),
    )


def _list_state_references(component: FmuComponent) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the value references of states and of their derivatives; both empty where they do not match."""
    derivatives = [
        entry.variable for entry in component.description.model_structure_entries("Derivatives") if entry.variable
    ]
    states = component.description.states
    if len(derivatives) != len(states):
        return (), ()
    return tuple(entry.reference or 0 for entry in states), tuple(entry.reference or 0 for entry in derivatives)


def _run_master_process(
    wired_system: WiredSystem, folder: Path, report_progress: ProgressCallback | None, limit: float
) -> tuple[int, str]:
    """Run the process and report its progress; return its exit code and last messages."""
    command = [sys.executable, "-P", "-m", "mb2fmu.systems.master.master_process", str(folder / "request.pickle")]
    row_bytes = 8 * _compute_row_length(wired_system)
    steps = wired_system.system.run_settings.stop / wired_system.system.run_settings.stepping.step
    rows_file = folder / "rows.f64"
    with (folder / "said").open("w+", encoding="utf-8", errors="replace") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)  # noqa: S603
        start_time = time.monotonic()
        try:
            while True:
                try:
                    process.wait(timeout=_POLL_INTERVAL)
                    break
                except subprocess.TimeoutExpired:
                    if report_progress is not None and rows_file.is_file():
                        report_progress(min(1.0, rows_file.stat().st_size / row_bytes / steps))
                    if time.monotonic() - start_time > limit:
                        break
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        output.seek(0)
        return process.returncode, output.read()


def _compute_row_length(wired_system: WiredSystem) -> int:
    """Return the numbers in a recorded row: time, outputs, defect and exchanged energy of each bond."""
    return 1 + len(wired_system.wiring.outputs) + 2 * len(wired_system.wiring.bonds)


def _read_motion(wired_system: WiredSystem, folder: Path, outcome: Mapping[str, Any]) -> SystemTrajectories:
    """Read the master's records, also of a run that ended early; an incomplete row is dropped."""
    wiring, row_length = wired_system.wiring, _compute_row_length(wired_system)
    rows_file = folder / "rows.f64"
    row_bytes = rows_file.read_bytes() if rows_file.is_file() else b""
    table = np.frombuffer(row_bytes[: len(row_bytes) // (8 * row_length) * 8 * row_length]).reshape(-1, row_length)
    output_count, bond_count = len(wiring.outputs), len(wiring.bonds)
    log_file = folder / "log.jsonl"
    messages = map(json.loads, log_file.read_text(encoding="utf-8").splitlines()) if log_file.is_file() else ()
    return SystemTrajectories(
        tuple(wiring.output_name(output) for output in range(output_count)),
        tuple(port.unit for port in wiring.outputs),
        table[:, 0].copy(),
        table[:, 1 : 1 + output_count].copy(),
        tuple(bond.name for bond in wiring.bonds),
        table[:, 1 + output_count : 1 + output_count + bond_count].copy(),
        table[:, 1 + output_count + bond_count :].copy(),
        outcome,
        tuple(f"{component}: {text}" for _, _, text, component in messages),
    )


def _describe_last_point(motion: SystemTrajectories) -> str:
    """Return the time up to which results are valid, in words."""
    if not len(motion.time):
        return "it had not begun"
    last_index = len(motion.time) - 1
    return f"the last good point is t = {motion.time[-1]:.9g} s, point {last_index}; results up to there are kept"


def _component_failure_error(
    wired_system: WiredSystem, failure: Mapping[str, Any], motion: SystemTrajectories
) -> SystemRunError:
    """Return the error of a component that refused or ended the run, with its last messages."""
    failed_name = failure["component"] or wired_system.system.name
    log_faults = [Fault(line, "log") for line in motion.log[-_MAX_MESSAGES:]]
    problem = f"{failure['what']} in the step from t = {failure['time']:.9g} s; {_describe_last_point(motion)}"
    remedy = "a smaller step, or a tighter coupling (order, passes), may avoid this"
    return SystemRunError(
        f"{failed_name} failed while {wired_system.system.name} ran:",
        [Fault(problem, failed_name, remedy), *log_faults],
        motion,
    )


def _crash_error(
    wired_system: WiredSystem, folder: Path, exit_code: int, output: str, motion: SystemTrajectories
) -> SystemRunError:
    """Return the error of a process that died, with the component that was being called."""
    current_component_file = folder / "at.i64"
    component_number = (
        int(np.frombuffer(current_component_file.read_bytes(), dtype=np.int64)[0])
        if current_component_file.is_file()
        else 0
    )
    crashed_name = wired_system.components[component_number - 1].name if component_number else wired_system.system.name
    output_faults = [Fault(line, "output") for line in output.splitlines()[-_MAX_MESSAGES:]]
    fault = Fault(
        f"its process {'was' if exit_code < 0 else 'ended with'} {describe_process_end(exit_code)}; "
        f"{_describe_last_point(motion)}",
        crashed_name,
        "run the FMU alone: mb2fmu audit",
    )
    return SystemRunError(
        f"{crashed_name} crashed while {wired_system.system.name} ran:", [fault, *output_faults], motion
    )


def _instability_error(wired_system: WiredSystem, forecast: Mapping[str, Any]) -> UnstableSystemError:
    """Return the error of a coupling that is forecast to diverge; its remedy names stable settings."""
    stepping = wired_system.system.run_settings.stepping
    remedies = []
    stable_step = forecast["stable_step"]
    if stable_step is not None and not math.isnan(stable_step):
        remedies.append(f"steps of {stable_step:.3g} s")
    if stepping.method == "jacobi":
        remedies.append('method="gauss-seidel"')
    if stepping.passes == 1:
        remedies.append("passes=20")
    if not stepping.jacobian:
        remedies.append("passes=20 with jacobian=True")
    spectral_radius = forecast["spectral_radius"]
    problem = (
        f"errors are multiplied by {spectral_radius:.6g} per step of {forecast['step_size']:.6g} s, "
        f"in the exact system by {forecast['exact_spectral_radius']:.6g}"
        + (": no smaller step helps" if stable_step is not None and math.isnan(stable_step) else "")
    )
    remedy = f'{", or ".join(remedies)}; unstable="run" runs it anyway'
    return UnstableSystemError(
        f"{wired_system.system.name} would be unstable:", [Fault(problem, wired_system.system.where, remedy)]
    )
