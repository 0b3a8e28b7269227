"""Backends: from a program and an interface to files. Each backend is a folder, independent of the others.

Input: ``Program`` and ``FmuInterface``. Output: ``FileTree``. ``fmu/emit_c`` and ``fmu/emit_python`` print the equations of
units, ``fmu/emit_xml`` the description; the others are source targets, for use without FMI.

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
    }
)
"""Targets that give source code to be used without FMI, with what ``--help`` says of them; here, so that the command
line need not import them."""
