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

from mb2fmu.systems.reference_comparison import VariableDeviation

TIME_LIMIT = 120.0
_LAST = 300
_NAMED = 4


@dataclass(frozen=True, slots=True)
class ForeignMaster:
    """One other master.

    Attributes:
        name: For the report.
        module: What must be installed.
        script: Beside this file.
        takes: ``ssp`` or ``osp``.
        converts: It does the linear transformations of connections.
    """

    name: str
    module: str
    script: str
    takes: str
    converts: bool = True


MASTERS: Mapping[str, ForeignMaster] = MappingProxyType(
    {
        "fmpy": ForeignMaster("FMPy's SSP simulation", "fmpy", "fmpy_master.py", "ssp", converts=False),
        "libcosim": ForeignMaster("libcosim", "libcosimpy", "libcosim_master.py", "osp"),
        "ecos": ForeignMaster("ecos", "ecospy", "ecos_master.py", "ssp"),
    }
)


@dataclass(frozen=True, slots=True)
class ForeignMasterResult:
    """Results of another master.

    Attributes:
        master: Its name.
        values: Variable → value at the end; empty if it failed.
        failure: Why it failed, or why it was not asked.
        note: What it does otherwise than the files say.
    """

    master: str
    values: Mapping[str, float]
    failure: str = ""
    note: str = ""


def run_foreign_masters(
    wanted: Sequence[str], ssp: Path, osp: Path, step: float, stop: float, names: Sequence[str],
    converted: Sequence[str] = (),
) -> tuple[ForeignMasterResult, ...]:  # fmt: skip
    """Run a system in other masters, each in a process of its own.

    Args:
        wanted: Keys of :data:`MASTERS`.
        ssp: The ``.ssp``.
        osp: Folder of the OSP configuration.
        step: Communication step in s.
        stop: In s.
        names: ``component.variable`` of what is wanted at the end.
        converted: ``component.variable`` of inputs whose values are transformed on their way.
    """
    answers = []
    for name in wanted:
        answer = _asked(MASTERS[name], ssp, osp, step, stop, names)
        if converted and not MASTERS[name].converts:
            many = "" if len(converted) <= _NAMED else f" and {len(converted) - _NAMED} more"
            what = f"it passes numbers on as they are, without factor and offset: {', '.join(converted[:_NAMED])}{many}"
            answer = replace(answer, note=what)
        answers.append(answer)
    return tuple(answers)


def find_largest_difference(
    answer: ForeignMasterResult, deviations: Sequence[VariableDeviation]
) -> tuple[float, str] | None:
    """Return the largest relative error of an answer at the end, and its variable; None: none known."""
    found = [
        (abs(answer.values[each.name] - float(each.truth[-1])) / (each.scale or 1.0), each.name)
        for each in deviations
        if each.name in answer.values
    ]
    return max(found, default=None)


def _asked(
    master: ForeignMaster, ssp: Path, osp: Path, step: float, stop: float, names: Sequence[str]
) -> ForeignMasterResult:
    """Run the system in another master, in a process of its own; the answer has values or the reason."""
    if importlib.util.find_spec(master.module) is None:
        return ForeignMasterResult(master.name, {}, f"not asked: the package {master.module} is not installed")
    script = Path(__file__).with_name(master.script)
    source = ssp if master.takes == "ssp" else osp
    command = [sys.executable, "-P", str(script), str(source.resolve()), repr(step), repr(stop), *names]
    try:
        done = subprocess.run(  # noqa: S603  our own script
            command,
            capture_output=True,
            text=True,
            timeout=TIME_LIMIT,
            check=False,
            errors="replace",
            env=_environment(),
        )
    except subprocess.TimeoutExpired:
        return ForeignMasterResult(master.name, {}, f"did not finish within {TIME_LIMIT:g} s")
    # libcosim's own messages go to stdout too.
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        return ForeignMasterResult(master.name, {}, f"failed: {_reason(done.stderr or done.stdout)}")
    try:
        return ForeignMasterResult(master.name, json.loads(lines[-1]))
    except ValueError:
        return ForeignMasterResult(master.name, {}, f"printed no values: {lines[-1][-_LAST:]}")


def _reason(said: str) -> str:
    """Return the end of what a process said: of a traceback the error alone."""
    lines = said.strip().splitlines()
    if any(line.startswith("Traceback") for line in lines):
        lines = lines[max((k + 1 for k, line in enumerate(lines) if line.startswith("  ")), default=0) :]
    return "\n".join(lines)[-_LAST:]


def _environment() -> dict[str, str]:
    """Return the environment with the folder of its own libraries added: ecos looks for libtbb there."""
    libraries = Path(sys.prefix) / "lib"
    before = os.environ.get("LD_LIBRARY_PATH", "")
    return {**os.environ, "LD_LIBRARY_PATH": f"{libraries}{os.pathsep}{before}" if before else str(libraries)}
