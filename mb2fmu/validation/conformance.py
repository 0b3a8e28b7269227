"""What independent checkers say of an FMU: each runs in a process of its own, its output is read, not only its exit code."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mb2fmu.errors import Fault, ToolError

TIME_LIMIT = 120.0
Severity = Literal["error", "warning", "note"]

_FMPY = "import json, sys; from fmpy.validation import validate_fmu; print(json.dumps(validate_fmu(sys.argv[1])))"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a checker says.

    Attributes:
        checker: Name and version.
        severity: ``error``: the FMU breaks the standard.
        message: In the checker's words.
    """

    checker: str
    severity: Severity
    message: str
