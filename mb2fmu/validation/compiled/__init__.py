"""The reference in C: expressions printed by SymPy's printer, and an integrator of its own.

Nothing of the FMU's is used: neither its Program nor its printer, linear algebra, elementary functions or integrator.
Each function has a counterpart in Python (``numeric_equations``, ``newton_euler``, ``smooth_integration``), which is
used where there is no compiler, and which tests compare it with.

Input: evaluation plans, and the records of a mechanism. Output: x', observed quantities and trajectories by a
compiled library. Promises: each function equals its counterpart in Python to round-off. Must not: use anything of the
FMU's code generation.
"""
