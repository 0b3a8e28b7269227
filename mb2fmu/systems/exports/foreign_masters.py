"""``run_foreign_masters``: run the written files in other masters."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from mb2fmu.systems.monolithic_reference_comparison import SystemVariableDeviation

TIME_LIMIT = 120.0
_MAX_MESSAGE_LENGTH = 300
_MAX_NAMED_INPUTS = 4


@dataclass(frozen=True, slots=True)
class _ForeignMaster:
    """Another master that can run the written files.

    Attributes:
        name: Name in the report.
        module: Module that must be installed.
        script: File beside this one that runs the master.
        input_format: ``ssp`` or ``osp``.
        applies_transformations: It does the linear transformations of connections.
    """

    name: str
    module: str
    script: str
    input_format: str
    applies_transformations: bool = True


FOREIGN_MASTERS: Mapping[str, _ForeignMaster] = MappingProxyType(
    {
        "fmpy": _ForeignMaster(
            "FMPy's SSP simulation", "fmpy", "fmpy_run_script.py", "ssp", applies_transformations=False
        ),
        "libcosim": _ForeignMaster("libcosim", "libcosimpy", "libcosim_run_script.py", "osp"),
        "ecos": _ForeignMaster("ecos", "ecospy", "ecos_run_script.py", "ssp"),
    }
)


@dataclass(frozen=True, slots=True)
class ForeignMasterResult:
    """Results of another master.

    Attributes:
        master_name: Its name.
        final_values: Variable → value at the end; empty if it failed.
        failure: Why it failed, or why it was not run.
        note: How it deviates from the written files.
    """

    master_name: str
    final_values: Mapping[str, float]
    failure: str = ""
    note: str = ""


def run_foreign_masters(
    master_keys: Sequence[str], ssp: Path, osp: Path, step: float, stop: float, variable_names: Sequence[str],
    transformed_inputs: Sequence[str] = (),
) -> tuple[ForeignMasterResult, ...]:  # fmt: skip
    """Run a system in other masters, each in a process of its own.

    Args:
        master_keys: Keys of :data:`FOREIGN_MASTERS`.
        ssp: The ``.ssp``.
        osp: Folder of the OSP configuration.
        step: Communication step in s.
        stop: Stop time in s.
        variable_names: ``component.variable`` of the variables whose final values are returned.
        transformed_inputs: ``component.variable`` of inputs whose values are transformed on their way.
    """
    results = []
    for key in master_keys:
        result = _run_foreign_master(FOREIGN_MASTERS[key], ssp, osp, step, stop, variable_names)
        if transformed_inputs and not FOREIGN_MASTERS[key].applies_transformations:
            remainder = (
                ""
                if len(transformed_inputs) <= _MAX_NAMED_INPUTS
                else f" and {len(transformed_inputs) - _MAX_NAMED_INPUTS} more"
            )
            named_inputs = ", ".join(transformed_inputs[:_MAX_NAMED_INPUTS])
            note = f"it passes numbers on as they are, without factor and offset: {named_inputs}{remainder}"
            result = replace(result, note=note)
        results.append(result)
    return tuple(results)


def find_largest_master_difference(
    result: ForeignMasterResult, deviations: Sequence[SystemVariableDeviation]
) -> tuple[float, str] | None:
    """Return the largest relative error of an answer at the end, and its variable; None: none known."""
    relative_errors = [
        (
            abs(result.final_values[deviation.name] - float(deviation.reference_values[-1]))
            / (deviation.reference_magnitude or 1.0),
            deviation.name,
        )
        for deviation in deviations
        if deviation.name in result.final_values
    ]
    return max(relative_errors, default=None)


def _run_foreign_master(
    master: _ForeignMaster, ssp: Path, osp: Path, step: float, stop: float, variable_names: Sequence[str]
) -> ForeignMasterResult:
    """Run the system in another master, in a process of its own; the answer has values or the reason."""
    if importlib.util.find_spec(master.module) is None:
        return ForeignMasterResult(master.name, {}, f"not run: the package {master.module} is not installed")
    script = Path(__file__).with_name(master.script)
    source = ssp if master.input_format == "ssp" else osp
    command = [sys.executable, "-P", str(script), str(source.resolve()), repr(step), repr(stop), *variable_names]
    try:
        process = subprocess.run(  # noqa: S603  our own script
            command,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
            errors="replace",
            env=_make_environment(),
        )
    except subprocess.TimeoutExpired:
        return ForeignMasterResult(master.name, {}, f"did not finish within {TIME_LIMIT:g} s")
    # libcosim's own messages go to stdout too.
    lines = [line for line in process.stdout.splitlines() if line.startswith("{")]
    if process.returncode != 0 or not lines:
        return ForeignMasterResult(master.name, {}, f"failed: {_extract_error(process.stderr or process.stdout)}")
    try:
        return ForeignMasterResult(master.name, json.loads(lines[-1]))
    except ValueError:
        return ForeignMasterResult(master.name, {}, f"printed no values: {lines[-1][-_MAX_MESSAGE_LENGTH:]}")


def _extract_error(output: str) -> str:
    """Return the end of a process's output; of a traceback only the error."""
    lines = output.strip().splitlines()
    if any(line.startswith("Traceback") for line in lines):
        lines = lines[max((index + 1 for index, line in enumerate(lines) if line.startswith("  ")), default=0) :]
    return "\n".join(lines)[-_MAX_MESSAGE_LENGTH:]


def _make_environment() -> dict[str, str]:
    """Return the environment with the folder of its own libraries added: ecos looks for libtbb there."""
    libraries = Path(sys.prefix) / "lib"
    library_path = os.environ.get("LD_LIBRARY_PATH", "")
    return {
        **os.environ,
        "LD_LIBRARY_PATH": f"{libraries}{os.pathsep}{library_path}" if library_path else str(libraries),
    }
