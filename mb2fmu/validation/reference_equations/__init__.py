"""Equations of motion as functions of numbers: from a formulation, or by Newton-Euler from a mechanism.

Input: ``EquationsOfMotion`` or ``Mechanism``. Output: x', outputs and wrenches at one instant. Promises: no
expression is expanded; redundant constraints are solved by least norm. Must not: use the compiler of FMUs.
"""
