"""The first instant at which something is beyond a limit, to the last digit, in few looks.

Input: a margin over time, positive before the limit and negative beyond it, and two instants on its two sides. Output:
the later end of a bracket that has no number inside, or is as narrow as requested. Next: who looks for events.

Each look goes where a straight line between the two ends comes to zero, a little towards the middle, and never so far
from the middle that bisection would have done better: a smooth margin takes about ten looks, no margin more than two
beyond those of bisection. What is not smooth (the least of several margins, with noise) is located as well.

Source: I. Oliveira, R. Takahashi, An enhancement of the bisection method average performance preserving minmax
optimality, ACM Transactions on Mathematical Software 47 (2020), algorithm ITP with κ₁ = 0.2 / (b − a), κ₂ = 2, n₀ = 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

_ITP_TRUNCATION = 0.2


def find_first_crossing(
    margin: Callable[[float], float], low: float, high: float, ends: tuple[float, float], near: float = 0.0
) -> float:
    """Return the first instant at which a margin is negative; where it is so several times, one of those.

    Args:
        margin: At an instant.
        low: An instant at which it is not negative.
        high: A later one, at which it is.
        ends: The margins there.
        near: How wide the bracket may be at the end; 0: it has no number inside.
    """
    (before, beyond), whole = ends, high - low
    resolution = max(near, math.ulp(high))
    left, least = math.ceil(math.log2(max(whole / resolution, 1.0))) + 1, resolution
    while True:
        width, middle = high - low, low + 0.5 * (high - low)
        if width <= near or not low < middle < high:
            return high
        straight = low + width * before / (before - beyond)
        inwards = math.copysign(1.0, middle - straight)
        shift = max(_ITP_TRUNCATION * width * width / whole, least)
        look = straight + inwards * min(shift, abs(middle - straight))
        reach = max(0.5 * resolution * 2.0**left - 0.5 * width, 0.0)
        if not abs(look - middle) <= reach:
            look = middle - inwards * reach
        if not low < look < high:
            look = middle
        found = margin(look)
        if found < 0.0:
            high, beyond = look, found
        else:
            low, before = look, found
        least = 4.0 * least if high - low > 0.5 * width else resolution
        left -= 1
