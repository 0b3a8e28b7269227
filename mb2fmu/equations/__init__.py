"""Equations of motion: the records that every formulation returns and every later stage reads.

Input: none, there is nothing but records here. Output: ``EquationsOfMotion``.

Promises: a record that exists has matching shapes, and uses no symbol before it is defined.

Must not: form equations, which is what ``formulation`` does, or know how they are evaluated.
"""

from mb2fmu.equations import display as display  # registers how notebooks show equations
from mb2fmu.equations.motion import EquationsOfMotion, Method, Treatment

__all__ = ["EquationsOfMotion", "Method", "Treatment"]
