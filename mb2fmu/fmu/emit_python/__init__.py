"""Python backend: the code of an FMU that runs in a Python host; pythonfmu packs it.

Input: ``ScalarProgram`` and ``FmuInterface``. Output: ``InMemoryFileTree``: one script with the slave class and one
package beside it, both named after the FMU's token.

Promises: the code imports the standard library, numpy and pythonfmu, nothing else; equal input gives equal bytes;
numbers read back to the same bits. Must not decide anything about variables, and must not change the equations.
"""

from mb2fmu.fmu.emit_python.python_fmu_code import emit_python_fmu_sources

__all__ = ["emit_python_fmu_sources"]
