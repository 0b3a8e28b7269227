"""Targets: equations as source code of other languages, for use without FMI. Each target is a folder and a row.

Input: ``Program`` and facts about its variables. Output: ``FileTree``. The target ``c`` is that of FMUs,
``mb2fmu.fmu.emit_c``.

Promises: equal input gives equal bytes; numbers read back to the same bits.

Must not: decide anything about variables, or touch the disk (but for its own templates), the clock or the environment.
"""

from __future__ import annotations

from types import MappingProxyType

SOURCE_TARGETS = MappingProxyType(
    {
        "c": "C99 functions of x', outputs and Jacobian, with a main program",
        "matlab": "the same for MATLAB and GNU Octave",
        "modelica": "one flat model without libraries",
        "casadi": "external functions with first and second derivatives, compiled",
        "fortran": "one module of Fortran 2008, with a main program",
        "csharp": "one static class for .NET, with a main program",
    }
)
"""Targets that give source code to be used without FMI, with what ``--help`` says of them; here, so that the command
line need not import them."""
