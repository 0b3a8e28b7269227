"""Errors: one base class and one class per stage; each error carries all faults that were found.

The command line prints ``str(error)`` on stderr and exits with ``error.exit_code``: 2 where the input is wrong,
3 where a tool (compiler, importer, archive) failed. A traceback is shown under ``--debug`` only.
"""

from __future__ import annotations

import signal
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault: what is wrong, where, and what to do.

    Attributes:
        what: What is wrong, in the user's words, naming the symbol or file.
        where: Where: ``file:line``, a variable, a body, an archive member. Empty if it is not known.
        remedy: What to do about it. Empty only where there is nothing the user can do.
    """

    what: str
    where: str = ""
    remedy: str = ""

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}" if self.where else self.what
        return f"{text}\n    → {self.remedy}" if self.remedy else text


class Mb2FmuError(Exception):
    """Base of all errors that mb2fmu raises on purpose.

    Args:
        headline: One sentence that says what could not be done.
        faults: Every fault found, in the order found.

    Attributes:
        is_explained: The faults say by numbers what happened: nothing is added that is only likely.
    """

    exit_code = 2
    is_explained = False

    def __init__(self, headline: str, faults: Iterable[Fault] = ()) -> None:
        self.headline = headline
        self.faults = tuple(faults)
        super().__init__(headline, self.faults)

    def __str__(self) -> str:
        return "\n".join([self.headline, *(f"  • {fault}" for fault in self.faults)])


class ModelError(Mb2FmuError):
    """The model file, or the model in it, is wrong."""


class MechanismError(Mb2FmuError):
    """The mechanics cannot be read as a mechanism, or contradict themselves."""


class FormulationError(Mb2FmuError):
    """The chosen formulation does not apply to this mechanism."""


class LoweringError(Mb2FmuError):
    """An expression has no counterpart in the scalar program."""


class AnalysisError(Mb2FmuError):
    """No such operating point or sensitivity exists, or it cannot be computed."""


class InterfaceError(Mb2FmuError):
    """The variables cannot be described as an FMU interface."""


class EmitError(Mb2FmuError):
    """The program and interface cannot be printed by this backend."""


class PackageError(Mb2FmuError):
    """An archive is not an FMU, is damaged, or cannot be written."""


class ValidationError(Mb2FmuError):
    """An FMU could not be compared with the model (wrong platform, missing variables)."""


class ToolError(Mb2FmuError):
    """A tool outside of mb2fmu (compiler, importer) failed: shows its command, exit code and output."""

    exit_code = 3


class PlatformError(ToolError):
    """No FMU can be built for the requested platform."""

    exit_code = 2


def describe_process_end(code: int) -> str:
    """Return how a process ended, in words.

    Args:
        code: Its exit code, or minus the number of the signal that killed it.
    """
    if code >= 0:
        return f"exit code {code}"
    names = {member.value: member.name for member in signal.Signals}
    return f"killed by {names.get(-code, f'signal {-code}')}"


def make_tool_failure_fault(tool: str, code: int, output: str, remedy: str) -> Fault:
    """Return the fault of a program that failed: how it ended, its own last line, and what to do.

    Args:
        tool: Its name.
        code: Its exit code, or minus the number of the signal that killed it.
        output: What it wrote.
        remedy: What the user can do.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = f"its last line is: {lines[-1][:500]}" if lines else "it wrote nothing"
    return Fault(f"{tool} failed ({describe_process_end(code)}); {last}", remedy=remedy)
