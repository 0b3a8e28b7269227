"""The reference in C: expressions printed by SymPy's printer, and an integrator of its own.

Nothing of the FMU's is used: neither its Program nor its printer, linear algebra, elementary functions or integrator.
What is here has a twin in Python (``numeric``, ``newton_euler``, ``integration``), which is used where there is no
compiler, and which tests hold it against.
"""
