"""Find the line of the user's file that made a declaration."""

from __future__ import annotations

import sys
from pathlib import Path


def find_user_source_line() -> str:
    """Return ``file:line`` of the user's running line: the innermost one outside of mb2fmu."""
    frame = sys._getframe(1)  # noqa: SLF001 - there is no cheaper public way
    while str(frame.f_globals.get("__name__")).startswith("mb2fmu.") and frame.f_back is not None:
        frame = frame.f_back
    return f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
