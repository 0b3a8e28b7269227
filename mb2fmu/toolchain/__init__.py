"""Toolchain: tools outside of mb2fmu, run as subprocesses with a time limit.

Input: files. Output: what the tool made, as bytes.

Promises: a tool that fails raises ``ToolError`` with its command, exit code and output; nothing is left on the disk.

Must not: know models, equations or FMI.
"""

from mb2fmu.toolchain.pythonfmu import licence, run_builder, version

__all__ = ["licence", "run_builder", "version"]
