"""Sources of mechanics: one interface to ``System``, ``KanesMethod``, ``LagrangesMethod``, ``Parts`` and records.

Input: the user's mechanics object. Output: its coordinates, speeds, equations, bodies, loads, joints and frames.

Promises: the caller need not know the kind of source; SymPy's caches can be restored after a computation.
Must not: form equations of motion, check declarations, or change the user's objects.
"""
