"""Backends: a program and an interface become files. Each backend is a folder and knows nothing of the others.

Input: ``Program`` and ``FmuInterface``. Output: ``FileTree``. ``emit/python`` and later ``emit/c`` print the equations,
``emit/xml`` the description; each offers ``emit``.

Promises: equal input gives equal bytes; numbers read back to the same bits.

Must not: decide anything about variables, or touch the disk (but for its own templates), the clock or the environment.
"""

SOURCE_TARGETS = ("c", "matlab", "modelica", "casadi")
"""Targets that give source code to be used without FMI; here, so that the command line need not import them."""
