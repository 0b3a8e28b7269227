"""Equations of motion: the records that every formulation returns and every later stage reads.

Input: none, there is nothing but records here. Output: ``EquationsOfMotion``.

Promises: a record that exists has matching shapes, and uses no symbol before it is defined.

Must not: form equations, which is what ``formulation`` does, or know how they are evaluated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mb2fmu.deferred_imports import import_on_first_use
from mb2fmu.mechanics.equations import notebook_display_registry

if TYPE_CHECKING:
    from mb2fmu.mechanics.equations.equations_of_motion import EquationsOfMotion, Method, Treatment

__all__ = ["EquationsOfMotion", "Method", "Treatment"]

__getattr__ = import_on_first_use(__name__, {"equations_of_motion": "EquationsOfMotion Method Treatment"})
notebook_display_registry.import_on_first_display("mb2fmu.mechanics.equations.latex_display")
