"""The command line: one command per file, each a thin layer over ``mb2fmu.pipeline``.

Input: arguments. Output: files, text on the terminal, and an exit code
(``docs/decisions/0004-exit-codes-and-published-results.md``).

Promises: every ``Mb2FmuError`` is shown as its message, its faults and its exit code; ``--debug`` shows the traceback.

Must not: compose stages by itself.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use

if TYPE_CHECKING:
    from mb2fmu.cli.cli_application import commands

__all__ = ["commands", "main"]

__getattr__ = import_on_first_use(__name__, {"cli_application": "commands"})


def main(*, is_whole_process: bool = False) -> None:
    """Runs the command line and ends the process, by Ctrl-C also while the commands are imported.

    Args:
        is_whole_process: Nobody goes on behind the end of this function: forks of the process may end by it.
    """
    try:
        from mb2fmu.cli import cli_application
    except KeyboardInterrupt:
        sys.stderr.write("mb2fmu: interrupted\n")
        sys.exit(130)
    cli_application.main(is_whole_process=is_whole_process)
