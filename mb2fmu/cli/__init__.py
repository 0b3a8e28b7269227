"""The command line: one command per file, each a thin layer over ``mb2fmu.pipeline``.

Input: arguments. Output: files, text on the terminal, and an exit code
(``docs/decisions/0004-exit-codes-and-published-results.md``).

Promises: every ``Mb2FmuError`` is shown as its message, its faults and its exit code; ``--debug`` shows the traceback.

Must not: compose stages by itself.
"""

from mb2fmu.cli.cli_application import commands, main

__all__ = ["commands", "main"]
