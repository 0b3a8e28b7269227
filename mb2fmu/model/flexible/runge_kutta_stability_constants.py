"""How long the steps of an explicit solver may be beside the fastest mode of a flexible body."""

from __future__ import annotations

STABLE_STEP = 2.785
"""Step times angular frequency up to which the classical Runge-Kutta method is stable (E. Hairer, G. Wanner, Solving
Ordinary Differential Equations II, Springer 1996, ch. IV.2: -2.785 on the real axis, ±2.828 on the imaginary one)."""

MAX_INTERNAL_STEPS = 10.0
"""Internal steps per communication step, for stability alone, from which fast modes are reported."""
