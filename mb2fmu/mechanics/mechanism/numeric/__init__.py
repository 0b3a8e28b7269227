"""Numeric evaluation of a mechanism: kinematics, loads, constraints and Newton-Euler equations in NumPy.

Input: ``Mechanism`` and one state. Output: arrays in SI units, vectors in components of the inertial frame; random
states near the start, to check the import.

Promises: only the local relations are evaluated, so no symbolic formulation is needed; a random state is used only if
all values are finite there.
Must not: form equations symbolically, or be used by the FMU.
"""
