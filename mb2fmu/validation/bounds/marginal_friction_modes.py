"""Dry friction whose mode next to nothing decides, and how large the efforts are that hold it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from mb2fmu.validation.modes.hybrid_equations import HybridEquations
    from mb2fmu.validation.modes.mode_equations import SwitchModes

Floats = npt.NDArray[np.float64]

_HOLDING_VALUE_STEP = 1e-3  # of its limit, that what a sign takes is moved by


def find_indeterminate_friction_signs(
    numeric: HybridEquations,
    t: float,
    x: Floats,
    inputs: Sequence[float],
    prepared: Sequence[float],
    modes: SwitchModes,
    largest_offset: float,
) -> Iterator[tuple[int, SwitchModes]]:
    """Yield signs that may as well hold as slip, and the modes with them on the other side.

    A freewheel behind an open clutch transmits, or does not, what the clutch drags it with: next to nothing.

    Args:
        numeric: The equations.
        t: In s.
        x: States.
        inputs: Inputs.
        prepared: Parameters.
        modes: At this instant.
        largest_offset: What surfaces and margins may be off by, over their sizes.
    """
    if not numeric.signs:
        return
    motion, values = numeric.evaluate_with_holding_values(t, x, inputs, prepared, modes)
    for i in numeric.signs:
        other_modes = modes.copy()
        if modes.values[i] == 0.0 and motion.holding_limits[i] - abs(values[i]) <= largest_offset:
            other_modes.values[i] = np.sign(values[i])
        elif modes.values[i] != 0.0 and abs(motion.surfaces[i]) <= largest_offset:
            other_modes.values[i] = 0.0
        if (
            other_modes.values[i] != modes.values[i]
            and numeric.mode_contradiction(t, x, inputs, prepared, other_modes) <= largest_offset
        ):
            yield i, other_modes


def compute_sticking_output_changes(
    numeric: HybridEquations,
    t: float,
    x: Floats,
    inputs: Sequence[float],
    prepared: Sequence[float],
    modes: SwitchModes,
) -> Floats:
    """Return what outputs would change by if held signs took their limits, summed over the signs, shape (n_y,).

    An effort that a sign takes is the sum of terms of that size: so much of it is round-off.
    """
    motion, values = numeric.evaluate_with_holding_values(t, x, inputs, prepared, modes)
    outputs, effects = motion.motion.outputs[: numeric.frozen.outputs], np.zeros(numeric.frozen.outputs)
    for i in numeric.signs:
        if modes.values[i] == 0.0:
            changed_values = values.copy()
            changed_values[i] += _HOLDING_VALUE_STEP * motion.holding_limits[i]
            changed_outputs = numeric.evaluate_in_modes(t, x, inputs, prepared, changed_values).motion.outputs[
                : numeric.frozen.outputs
            ]
            effects += np.abs(changed_outputs - outputs) / _HOLDING_VALUE_STEP
    return effects
