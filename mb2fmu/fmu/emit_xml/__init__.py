"""XML backend: files that importers read before they load an FMU.

Input: ``FmuInterface``. Output: ``InMemoryFileTree`` with ``modelDescription.xml``, and for native FMUs
``terminalsAndIcons/terminalsAndIcons.xml`` and ``sources/buildDescription.xml``.

Promises: valid against the schemas of FMI 2.0.5 and 3.0.2; numbers read back to the same bits; equal input gives equal
bytes (no date, no host, no random number in it). Must not decide anything: names, references and dependencies are the
interface's.
"""

from mb2fmu.fmu.emit_xml.description_files import emit_fmu_description_files

__all__ = ["emit_fmu_description_files"]
