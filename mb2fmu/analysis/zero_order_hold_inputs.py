"""``ZeroOrderHoldInputs``: inputs that keep their values from one instant to the next, as importers hold them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


class ZeroOrderHoldInputs:
    """Time → inputs, shape (n_r,), with jumps; at a jump those before, until :meth:`hold_interval_ends` is past it.

    Args:
        begins: When each row begins to hold, in s, increasing, shape (n,); the first holds from the start on.
        rows: Values, shape (n, n_r).
    """

    def __init__(self, begins: Floats, rows: Floats) -> None:
        self._jumps, self._rows, self.row = begins[1:], rows, 0

    def __call__(self, _time: float) -> Floats:
        """Return the values that hold; a copy, which may be changed."""
        return np.array(self._rows[self.row])

    def hold_interval_ends(self, end: float) -> Iterator[float]:
        """Yield the end of each stretch between two jumps, from the first row on.

        Args:
            end: Of the motion in s.
        """
        self.row = 0
        for jump in self._jumps.tolist():
            if jump >= end:
                break
            yield jump
            self.row += 1
        yield end


def iterate_input_jump_times(signals: Callable[[float], Floats], end: float) -> Iterator[float]:
    """Yield the ends of stretches in which inputs do not jump, one after the other.

    Args:
        signals: Time in s → inputs.
        end: Of the motion in s.
    """
    return signals.hold_interval_ends(end) if isinstance(signals, ZeroOrderHoldInputs) else iter((end,))
