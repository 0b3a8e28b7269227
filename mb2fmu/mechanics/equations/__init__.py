"""Equations of motion: the records that every formulation returns and every later stage reads.

Input: none, there is nothing but records here. Output: ``EquationsOfMotion``.

Promises: a record that exists has matching shapes, and uses no symbol before it is defined.

Must not: form equations, which is what ``formulation`` does, or know how they are evaluated.
"""

from mb2fmu.mechanics.equations import latex_display as latex_display  # registers how notebooks show equations
from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, Method, Treatment

__all__ = ["EquationsOfMotion", "Method", "Treatment"]
