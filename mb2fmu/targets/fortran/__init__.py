"""Fortran target: equations as one module of Fortran 2008, without global variables.

Input: ``ScalarProgram`` and ``TargetModelDescription``. Output: ``InMemoryFileTree`` with ``<name>.f90``, the module,
and ``<name>_main.f90``, a program that integrates the default experiment by the classical Runge–Kutta method.

Promises: what is evaluated is the graph, operation by operation; numbers are of kind ``real64`` and read back to the
same bits; all procedures are pure. Must not decide anything about variables, and must not change the equations.
"""

from mb2fmu.targets.fortran.fortran_files import emit_fortran_files

__all__ = ["emit_fortran_files"]
