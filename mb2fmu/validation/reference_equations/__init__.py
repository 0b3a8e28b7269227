"""Equations of motion as functions of numbers: from a formulation, or by Newton-Euler from a mechanism.

Input: ``EquationsOfMotion`` or ``Mechanism``. Output: x', outputs and wrenches at one instant. Must not: use the
compiler of FMUs.
"""
