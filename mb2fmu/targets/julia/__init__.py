"""Julia target: equations as one module without packages, for DifferentialEquations.jl and others.

Input: ``ScalarProgram`` and ``TargetModelDescription``. Output: ``InMemoryFileTree`` with ``<name>.jl``.

Promises: what is evaluated is the graph, operation by operation, by the statements of the Fortran and C# targets;
numbers read back to the same bits; element types are those of the arguments, so dual numbers go through. Must not
decide anything about variables, and must not change the equations.
"""

from mb2fmu.targets.julia.julia_file import emit_julia_file

__all__ = ["emit_julia_file"]
