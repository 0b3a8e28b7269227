"""Toolchain: tools outside of mb2fmu, run as subprocesses with a time limit.

Input: files. Output: what the tool made, as bytes. Raises ``ToolError`` with command, exit code and output when a
tool fails. Must not know models, equations or FMI.
"""

from mb2fmu.toolchain.pythonfmu import licence, run_builder, version

__all__ = ["licence", "run_builder", "version"]
