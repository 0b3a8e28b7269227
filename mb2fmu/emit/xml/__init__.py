"""XML backend: the description file of a unit.

Input: ``FmuInterface``. Output: ``FileTree`` with ``modelDescription.xml``.

Promises: valid against the schema of FMI 2.0.5; numbers read back to the same bits; equal input gives equal bytes (no
date, no host, no random number in it). Must not decide anything: names, references and dependencies are the
interface's.
"""

from mb2fmu.emit.xml.fmi2 import emit

__all__ = ["emit"]
