"""The error of a motion that cannot begin: x' has no value at the start."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from mb2fmu.errors import Fault, ValidationError


def require_finite_start_derivative(what: str, states: Sequence[str], x_dot: npt.NDArray[np.float64]) -> None:
    """Refuse a start without x': SciPy's first step would be NaN, which it makes smaller for ever.

    Args:
        what: What cannot be done then, as the head of the message.
        states: Name of each state.
        x_dot: Derivative of each state at the start, shape (n,).

    Raises:
        ValidationError: If one is NaN or infinite.
    """
    without = [name for name, value in zip(states, x_dot.tolist(), strict=True) if not np.isfinite(value)]
    if not without:
        return
    remedy = "other start values or parameters: a root or logarithm of a negative number, a division by zero"
    raise ValidationError(what, [Fault(f"at the start, der({name}) has no value", remedy=remedy) for name in without])
