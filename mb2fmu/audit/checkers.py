"""Independent checkers of FMUs: each in a process of its own; their output is read, not only the exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, ToolError

TIME_LIMIT = 120.0
Severity = Literal["error", "warning", "note"]

_FMPY = """
import json, sys, zipfile
from fmpy.validation import validate_fmu
try:
    problems = validate_fmu(sys.argv[1])
except zipfile.BadZipFile as error:
    problems = [str(error)]
print(json.dumps(problems))
"""
_LEVELS: dict[str, Severity] = {"WARNING": "warning", "ERROR": "error", "CRITICAL": "error", "FATAL": "error"}
_APPROVAL = ("seems to be compliant", "No semantic error", "[End of report]")


@dataclass(frozen=True, slots=True)
class CheckerFinding:
    """One objection or note of a checker.

    Attributes:
        checker: Name and version.
        severity: ``error``: the FMU breaks the standard.
        message: In the checker's words.
    """

    checker: str
    severity: Severity
    message: str

    def __str__(self) -> str:
        return f"{self.checker}: {self.severity}: {self.message}"


def check_conformance(fmu: Path, *, time_limit: float = TIME_LIMIT) -> tuple[CheckerFinding, ...]:
    """Return everything that fmpy and fmutool say against an FMU; a checker without objections gives one note.

    Args:
        fmu: The archive.
        time_limit: For each checker, in s.

    Raises:
        ToolError: If a checker does not run to its end, or is not installed (extra ``audit``).
    """
    require_packages("the validation", "fmu_manipulation_toolbox")
    with ThreadPoolExecutor(2) as pool:
        said = [pool.submit(checker, fmu, time_limit) for checker in (_fmpy, _fmutool)]
        return tuple(finding for each in said for finding in each.result())


def _fmpy(fmu: Path, time_limit: float) -> list[CheckerFinding]:
    """Return what fmpy's validation finds, or a note that it finds nothing."""
    checker = f"fmpy {version('fmpy')}"
    done = _run(checker, [sys.executable, "-P", "-c", _FMPY, str(fmu)], time_limit)
    try:
        problems = json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise _unreadable(checker, done) from error
    if not problems:
        return [CheckerFinding(checker, "note", "no problems found")]
    return [CheckerFinding(checker, "error", _without_path(str(problem), fmu)) for problem in problems]


def _fmutool(fmu: Path, time_limit: float) -> list[CheckerFinding]:
    """Return what the FMU manipulation toolbox finds, or its approval as a note; raise if it gave neither."""
    checker = f"fmutool {version('fmu-manipulation-toolbox')}"
    command = [sys.executable, "-P", "-m", "fmu_manipulation_toolbox", "-input", str(fmu), "-check", "-summary"]
    done = _run(checker, command, time_limit)
    lines = (done.stdout + done.stderr).splitlines()
    findings: list[CheckerFinding] = []
    for line in lines:
        level, separator, message = line.partition("|")
        severity = _LEVELS.get(level.strip())
        if separator and severity:
            findings.append(CheckerFinding(checker, severity, _without_path(message.strip(), fmu)))
    text = "\n".join(lines)
    if not findings and not all(sign in text for sign in _APPROVAL):
        raise _unreadable(checker, done)
    return findings or [CheckerFinding(checker, "note", "compliant, no semantic error")]


def _run(checker: str, command: list[str], time_limit: float) -> subprocess.CompletedProcess[str]:
    """Run a checker; raise if it takes longer than the limit, in s."""
    try:
        return subprocess.run(  # noqa: S603  our own interpreter and installed packages
            command, capture_output=True, timeout=time_limit, check=False, text=True, errors="replace"
        )
    except subprocess.TimeoutExpired as error:
        raise ToolError(f"{checker} did not finish within {time_limit:g} s") from error


def _unreadable(checker: str, done: subprocess.CompletedProcess[str]) -> ToolError:
    """Return the error of a checker without a verdict, with its last lines."""
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()][-10:]
    return ToolError(f"{checker} gave no verdict (exit code {done.returncode}):", [Fault(line) for line in said])


def _without_path(message: str, fmu: Path) -> str:
    """Return the message without the folder, so that results are the same wherever they are made."""
    return message.replace(f"{fmu.parent}/", "")
