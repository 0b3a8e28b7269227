"""``simulate_system``: run a joined system by the master, in a process of its own."""

from __future__ import annotations

import json
import math
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ToolError
from mb2fmu.systems.fmu_component import FmuComponent
from mb2fmu.systems.master.master_process import ComponentRequest, SystemRequest
from mb2fmu.systems.wired_system import CouplingError, WiredSystem
from mb2fmu.temporary_files import make_work_folder

Floats = npt.NDArray[np.float64]
Progress = Callable[[float], None]
"""Is told the part of the experiment that is done, 0 to 1."""

TIME_LIMIT = 3600.0
_PULSE = 0.2
_SHOWN = 20


@dataclass(frozen=True)
class SystemMotion:
    """Results of a system's run.

    Attributes:
        names: ``component.variable`` of every output.
        units: As the FMUs of the system say; empty where they say none.
        time: Communication points in s, shape (n_t,).
        values: Shape (n_t, n).
        bonds: Names of bonds.
        defects: Energy that each bond took out of the system in J, shape (n_t, n_bonds).
        energies: Energy that the first side of each bond has taken up in J, shape (n_t, n_bonds).
        tally: Steps, passes, forecast, as ``master.simulation_run.RunStatistics`` says.
        log: Messages of the FMUs.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    time: Floats
    values: Floats
    bonds: tuple[str, ...]
    defects: Floats
    energies: Floats
    tally: Mapping[str, Any]
    log: tuple[str, ...]

    def __getitem__(self, name: str) -> Floats:
        """Return one variable over time, shape (n_t,)."""
        return np.asarray(self.values[:, self.names.index(name)])


class SystemRunError(ToolError):
    """A component failed while the system ran.

    Attributes:
        motion: What was recorded up to the last good communication point.
    """

    def __init__(self, headline: str, faults: list[Fault], motion: SystemMotion) -> None:
        super().__init__(headline, faults)
        self.motion = motion


def simulate_system(
    joined: WiredSystem, progress: Progress | None = None, time_limit: float = TIME_LIMIT
) -> SystemMotion:
    """Run a system to its end.

    Args:
        joined: The system.
        progress: Is told how far it is.
        time_limit: In s.

    Raises:
        CouplingError: If the coupling is foretold to explode.
        SystemRunError: If a component fails, with all that was recorded before.
    """
    with make_work_folder("run the system") as folder:
        request = _request(joined, folder)
        (folder / "request.pickle").write_bytes(pickle.dumps(request))
        code, said = _watched(joined, folder, progress, time_limit)
        outcome_file = folder / "outcome.json"
        outcome = json.loads(outcome_file.read_text(encoding="utf-8")) if outcome_file.is_file() else None
        motion = _motion(joined, folder, outcome or {})
        if outcome is None:
            raise _crashed(joined, folder, code, said, motion)
    failure = outcome.get("failure")
    if failure and failure.get("unstable"):
        raise _unstable(joined, outcome["forecast"])
    if failure:
        raise _failed(joined, failure, motion)
    return motion


def _request(joined: WiredSystem, folder: Path) -> SystemRequest:
    """Unpack the FMUs into a folder and return what the master's process needs of them."""
    units = []
    for component, values in zip(joined.components, joined.values, strict=True):
        unzipped = folder / "units" / component.name
        for path in component.tree:
            target = unzipped / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(component.tree[path])
        (unzipped / "resources").mkdir(exist_ok=True)
        references = tuple(component.variables[name].reference or 0 for name in values)
        request = {
            "name": component.name,
            "token": component.description.token,
            "identifier": component.identifier,
            "unzipped": str(unzipped),
            "troubles": component.troubles,
        }
        units.append(
            ComponentRequest(component.description.version, request, component.abilities,
                        (references, tuple(values.values())), _states(component))
        )  # fmt: skip
    run = joined.system.run
    return SystemRequest(str(folder), joined.wiring, run.stepping, run.stop, run.tolerance, tuple(units))


def _states(component: FmuComponent) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the value references of states and of their derivatives; both empty where they do not match."""
    rates = [each.variable for each in component.description.listed("Derivatives") if each.variable]
    states = component.description.states
    if len(rates) != len(states):
        return (), ()
    return tuple(each.reference or 0 for each in states), tuple(each.reference or 0 for each in rates)


def _watched(joined: WiredSystem, folder: Path, progress: Progress | None, limit: float) -> tuple[int, str]:
    """Run the process and report its progress; return its exit code and last messages."""
    command = [sys.executable, "-P", "-m", "mb2fmu.systems.master.master_process", str(folder / "request.pickle")]
    row = 8 * _width(joined)
    steps = joined.system.run.stop / joined.system.run.stepping.step
    rows = folder / "rows.f64"
    with (folder / "said").open("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)  # noqa: S603
        begin = time.monotonic()
        try:
            while True:
                try:
                    process.wait(timeout=_PULSE)
                    break
                except subprocess.TimeoutExpired:
                    if progress is not None and rows.is_file():
                        progress(min(1.0, rows.stat().st_size / row / steps))
                    if time.monotonic() - begin > limit:
                        break
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        said.seek(0)
        return process.returncode, said.read()


def _width(joined: WiredSystem) -> int:
    """Return the numbers in a recorded row: time, outputs, defect and exchanged energy of each bond."""
    return 1 + len(joined.wiring.outputs) + 2 * len(joined.wiring.bonds)


def _motion(joined: WiredSystem, folder: Path, outcome: Mapping[str, Any]) -> SystemMotion:
    """Read the master's records, also of a run that ended early; an incomplete row is dropped."""
    wiring, width = joined.wiring, _width(joined)
    rows = folder / "rows.f64"
    content = rows.read_bytes() if rows.is_file() else b""
    table = np.frombuffer(content[: len(content) // (8 * width) * 8 * width]).reshape(-1, width)
    count, bonds = len(wiring.outputs), len(wiring.bonds)
    log = folder / "log.jsonl"
    lines = map(json.loads, log.read_text(encoding="utf-8").splitlines()) if log.is_file() else ()
    return SystemMotion(
        tuple(wiring.output_name(k) for k in range(count)),
        tuple(port.unit for port in wiring.outputs),
        table[:, 0].copy(),
        table[:, 1 : 1 + count].copy(),
        tuple(bond.name for bond in wiring.bonds),
        table[:, 1 + count : 1 + count + bonds].copy(),
        table[:, 1 + count + bonds :].copy(),
        outcome,
        tuple(f"{component}: {text}" for _, _, text, component in lines),
    )


def _last_good(motion: SystemMotion) -> str:
    """Return the time up to which results are valid, in words."""
    if not len(motion.time):
        return "it had not begun"
    last = len(motion.time) - 1
    return f"the last good point is t = {motion.time[-1]:.9g} s, point {last}; results up to there are kept"


def _failed(joined: WiredSystem, failure: Mapping[str, Any], motion: SystemMotion) -> SystemRunError:
    """Return the error of a component that refused or ended the run, with its last messages."""
    who = failure["component"] or joined.system.name
    said = [Fault(line, "log") for line in motion.log[-_SHOWN:]]
    what = f"{failure['what']} in the step from t = {failure['time']:.9g} s; {_last_good(motion)}"
    remedy = "a smaller step, or a tighter coupling (order, passes), may avoid this"
    return SystemRunError(f"{who} failed while {joined.system.name} ran:", [Fault(what, who, remedy), *said], motion)


def _crashed(joined: WiredSystem, folder: Path, code: int, said: str, motion: SystemMotion) -> SystemRunError:
    """Return the error of a process that died, with the component that was being called."""
    at = folder / "at.i64"
    number = int(np.frombuffer(at.read_bytes(), dtype=np.int64)[0]) if at.is_file() else 0
    who = joined.components[number - 1].name if number else joined.system.name
    names = {member.value: member.name for member in signal.Signals}
    how = names.get(-code, f"signal {-code}") if code < 0 else f"exit code {code}"
    lines = [Fault(line, "output") for line in said.splitlines()[-_SHOWN:]]
    fault = Fault(f"the process ended with {how}; {_last_good(motion)}", who, "run the FMU alone: mb2fmu audit")
    return SystemRunError(f"{who} crashed while {joined.system.name} ran:", [fault, *lines], motion)


def _unstable(joined: WiredSystem, foretold: Mapping[str, Any]) -> CouplingError:
    """Return the error of a coupling that is forecast to diverge, with what would make it stable."""
    stepping = joined.system.run.stepping
    remedies = []
    stable = foretold["stable_step"]
    if stable is not None and not math.isnan(stable):
        remedies.append(f"steps of {stable:.3g} s")
    if stepping.method == "jacobi":
        remedies.append('method="gauss-seidel"')
    if stepping.passes == 1:
        remedies.append("passes=20")
    if not stepping.jacobian:
        remedies.append("passes=20 with jacobian=True")
    factor = foretold["radius"]
    what = (
        f"errors are multiplied by {factor:.6g} per step of {foretold['size']:.6g} s, by the exact system's motion by "
        f"{foretold['exact']:.6g}" + (": no smaller step helps" if stable is not None and math.isnan(stable) else "")
    )
    remedy = f'{", or ".join(remedies)}; unstable="run" runs it anyway'
    return CouplingError(f"{joined.system.name} would be unstable:", [Fault(what, joined.system.where, remedy)])
