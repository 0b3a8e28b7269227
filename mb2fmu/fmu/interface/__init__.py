"""Interface: everything that an importer sees of an FMU.

Input: ``DeclaredModelContent``, ``EquationsOfMotion``, ``ScalarProgram``. Output: ``FmuInterface``.

Promises: value references, causality, variability, initial, start values, units, dependencies and the token are
decided here, once, for every backend; the laws of FMI hold for the result. Must not print anything, know a file
format, or change the equations.
"""

from mb2fmu.fmu.interface.fmu_interface import FmuInterface, FmuTarget, FmuVariable
from mb2fmu.fmu.interface.interface_description import form_fmu_interface

__all__ = ["FmuInterface", "FmuTarget", "FmuVariable", "form_fmu_interface"]
