"""Dry friction whose mode next to nothing decides, and how large the efforts are that hold it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.modes.hybrid_equations import HybridEquations
from mb2fmu.validation.modes.mode_equations import SwitchModes

Floats = npt.NDArray[np.float64]

_HOLDING_VALUE_STEP = 1e-3  # of its limit, that what a sign takes is moved by


def find_indeterminate_friction_signs(
    numeric: HybridEquations,
    t: float,
    x: Floats,
    r: Sequence[float],
    prepared: Sequence[float],
    modes: SwitchModes,
    off: float,
) -> Iterator[tuple[int, SwitchModes]]:
    """Yield signs that may as well hold as slip, and the modes with them on the other side.

    A freewheel behind an open clutch transmits, or does not, what the clutch drags it with: next to nothing.

    Args:
        numeric: The equations.
        t: In s.
        x: States.
        r: Inputs.
        prepared: Parameters.
        modes: At this instant.
        off: What surfaces and margins may be off by, over their sizes.
    """
    if not numeric.signs:
        return
    look, values = numeric.evaluate_with_holding_values(t, x, r, prepared, modes)
    for i in numeric.signs:
        other = modes.copy()
        if modes.values[i] == 0.0 and look.limits[i] - abs(values[i]) <= off:
            other.values[i] = np.sign(values[i])
        elif modes.values[i] != 0.0 and abs(look.surfaces[i]) <= off:
            other.values[i] = 0.0
        if other.values[i] != modes.values[i] and numeric.contradiction(t, x, r, prepared, other) <= off:
            yield i, other


def compute_sticking_force_effects(
    numeric: HybridEquations, t: float, x: Floats, r: Sequence[float], prepared: Sequence[float], modes: SwitchModes
) -> Floats:
    """Return what outputs would change by if held signs took their limits, summed over the signs, shape (n_y,).

    An effort that a sign takes is the sum of terms of that size: so much of it is round-off.
    """
    look, values = numeric.evaluate_with_holding_values(t, x, r, prepared, modes)
    base, found = look.motion.outputs[: numeric.frozen.outputs], np.zeros(numeric.frozen.outputs)
    for i in numeric.signs:
        if modes.values[i] == 0.0:
            moved = values.copy()
            moved[i] += _HOLDING_VALUE_STEP * look.limits[i]
            there = numeric.evaluate_in_modes(t, x, r, prepared, moved).motion.outputs[: numeric.frozen.outputs]
            found += np.abs(there - base) / _HOLDING_VALUE_STEP
    return found
