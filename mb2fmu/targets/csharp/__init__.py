"""C# target: equations as one static class for .NET, without packages.

Input: ``ScalarProgram`` and ``TargetModelDescription``. Output: ``InMemoryFileTree`` with ``<name>.cs``, the class, and
``<name>Main.cs``, a program that integrates the default experiment by the classical Runge–Kutta method.

Promises: what is evaluated is the graph, operation by operation; numbers read back to the same bits; nothing is shared
between calls. Must not decide anything about variables, and must not change the equations.
"""

from mb2fmu.targets.csharp.csharp_files import emit_csharp_files

__all__ = ["emit_csharp_files"]
