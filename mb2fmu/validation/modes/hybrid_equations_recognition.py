"""``is_hybrid``: whether equations have events; what evaluates these is imported only for models that have some."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeGuard

from mb2fmu.validation.reference_equations.numeric_equations import NumericEquations

if TYPE_CHECKING:
    from mb2fmu.validation.modes.hybrid_equations import HybridEquations


def is_hybrid(numeric: NumericEquations) -> TypeGuard[HybridEquations]:
    """Return whether the equations have events."""
    return numeric.has_modes
