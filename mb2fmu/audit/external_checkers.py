"""Independent checkers of FMUs: each in a process of its own; their output is read, not only the exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from mb2fmu.deferred_imports import require_packages
from mb2fmu.errors import Fault, ToolError, make_tool_failure_fault

DEFAULT_TIME_LIMIT = 120.0
Severity = Literal["error", "warning", "note"]

_FMPY_SCRIPT = """
import functools, json, sys, zipfile
import lark
from fmpy.validation import validate_fmu

class TablesFirst:
    def __init__(self, grammar, **options):
        self.parse_as_requested = functools.cache(lambda: make_parser(grammar, **options).parse)
        self.parse_by_tables = make_parser(grammar, **(options | {"parser": "lalr"})).parse

    def parse(self, text):
        try:
            return self.parse_by_tables(text)
        except lark.exceptions.LarkError:
            return self.parse_as_requested()(text)

make_parser, lark.Lark = lark.Lark, TablesFirst
try:
    problems = validate_fmu(sys.argv[1])
except zipfile.BadZipFile as error:
    problems = [str(error)]
print(json.dumps(problems))
"""
"""fmpy reads each variable's name by a grammar and Earley's method, some milliseconds each. What tables of the same
grammar (LALR) accept is right; only what they do not accept is read as fmpy says, which also writes the message."""
_FMUTOOL_SCRIPT = """
import sys
from fmu_manipulation_toolbox.cli.fmutool import fmutool
sys.argv[1:] = ["-input", sys.argv[1], "-check", "-summary"]
fmutool()
"""
_SEVERITIES_BY_LEVEL: dict[str, Severity] = {
    "WARNING": "warning",
    "ERROR": "error",
    "CRITICAL": "error",
    "FATAL": "error",
}
_APPROVAL_TEXTS = ("seems to be compliant", "No semantic error", "[End of report]")


@dataclass(frozen=True, slots=True)
class ExternalCheckerFinding:
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


ScriptRunner = Callable[[str, Sequence[str], float], subprocess.CompletedProcess[str]]
"""Script, its arguments, time limit in s → the process that ran it, or a ``subprocess.TimeoutExpired``."""


def _run_script(script: str, arguments: Sequence[str], time_limit: float) -> subprocess.CompletedProcess[str]:
    """Run a script by a new interpreter, at most for so long, in s."""
    return subprocess.run(  # noqa: S603  our own interpreter and installed packages
        [sys.executable, "-P", "-c", script, *arguments],
        capture_output=True, timeout=time_limit, check=False, text=True, errors="replace",
    )  # fmt: skip


def run_external_checkers(
    fmu: Path,
    *,
    time_limit: float = DEFAULT_TIME_LIMIT,
    run_script: ScriptRunner = _run_script,
) -> tuple[ExternalCheckerFinding, ...]:
    """Return the findings of fmpy and fmutool; a checker without objections gives one note.

    Args:
        fmu: The archive.
        time_limit: For each checker, in s.
        run_script: Runs each checker; some callers need not import anew what these import.

    Raises:
        ToolError: If a checker does not run to its end, or is not installed (extra ``audit``).
    """
    require_packages("the validation", "fmu_manipulation_toolbox")
    fmu = fmu.absolute()
    with ThreadPoolExecutor(2) as pool:
        checker_runs = [
            pool.submit(check_with_fmpy, fmu, time_limit=time_limit, run_script=run_script),
            pool.submit(_check_with_fmutool, fmu, time_limit, run_script),
        ]
        return tuple(finding for run in checker_runs for finding in run.result())


def check_with_fmpy(
    fmu: Path, *, time_limit: float = DEFAULT_TIME_LIMIT, run_script: ScriptRunner = _run_script
) -> tuple[ExternalCheckerFinding, ...]:
    """Return what fmpy's validation finds, or a note that it finds nothing.

    Args:
        fmu: The archive.
        time_limit: In s.
        run_script: Runs it; see ``run_external_checkers``.

    Raises:
        ToolError: If it does not run to its end.
    """
    fmu, checker = fmu.absolute(), f"fmpy {version('fmpy')}"
    with _explain_timeout(checker, time_limit):
        process = run_script(_FMPY_SCRIPT, [str(fmu)], time_limit)
    try:
        problems = json.loads(process.stdout.splitlines()[-1])
    except (IndexError, ValueError) as error:
        raise _form_verdict_error(checker, process) from error
    if not problems:
        return (ExternalCheckerFinding(checker, "note", "no problems found"),)
    return tuple(ExternalCheckerFinding(checker, "error", _remove_folder(str(problem), fmu)) for problem in problems)


def _check_with_fmutool(fmu: Path, time_limit: float, run_script: ScriptRunner) -> tuple[ExternalCheckerFinding, ...]:
    """Return what the FMU manipulation toolbox finds, or its approval as a note; raise if it gave neither."""
    checker = f"fmutool {version('fmu-manipulation-toolbox')}"
    with _explain_timeout(checker, time_limit):
        process = run_script(_FMUTOOL_SCRIPT, [str(fmu)], time_limit)
    lines = (process.stdout + process.stderr).splitlines()
    findings: list[ExternalCheckerFinding] = []
    for line in lines:
        level, separator, message = line.partition("|")
        severity = _SEVERITIES_BY_LEVEL.get(level.strip())
        if separator and severity:
            findings.append(ExternalCheckerFinding(checker, severity, _remove_folder(message.strip(), fmu)))
    text = "\n".join(lines)
    if not findings and not all(phrase in text for phrase in _APPROVAL_TEXTS):
        raise _form_verdict_error(checker, process)
    return tuple(findings) or (ExternalCheckerFinding(checker, "note", "compliant, no semantic error"),)


@contextmanager
def _explain_timeout(checker: str, time_limit: float) -> Iterator[None]:
    """Say of a checker that took longer than the limit, in s, that it gave no verdict."""
    try:
        yield
    except subprocess.TimeoutExpired as error:
        fault = Fault(f"it did not finish within {time_limit:g} s", remedy="run it again when the machine is less busy")
        raise ToolError(f"{checker} gave no verdict:", [fault]) from error


def _form_verdict_error(checker: str, process: subprocess.CompletedProcess[str]) -> ToolError:
    """Return the error of a checker without a verdict."""
    package = "fmpy" if checker.startswith("fmpy") else "fmu-manipulation-toolbox"
    fault = make_tool_failure_fault(
        checker, process.returncode, process.stdout + process.stderr,
        f"install {package} anew (pip install --force-reinstall {package}); if that does not help, report it to its "
        "makers, with the FMU",
    )  # fmt: skip
    return ToolError(f"{checker} gave no verdict:", [fault])


def _remove_folder(message: str, fmu: Path) -> str:
    """Return the message without the folder, so that results are the same wherever they are made."""
    return message.replace(f"{fmu.parent}/", "")
