"""Start values on the constraints: follow the solution from the FMU's own start to the values that were set."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from .failures import UndefinedValueError

Numbers = Sequence[float]

SHORTEST = 1.0 / 1024.0
"""Part of the way; a shorter piece is none."""


def continue_to_set_values(
    to: Callable[[float, Numbers, Numbers], None], own: tuple[Numbers, Numbers], wanted: tuple[Numbers, Numbers]
) -> None:
    """Move states and parameters together from the FMU's own start to the set values, in small steps.

    Newton's method stays on the branch of the assembly that it begins on, so the branch is kept as long as no singular
    position lies between.

    Args:
        to: Solves at one place: (part of the way, states, parameters); keeps what it finds for the next piece.
        own: States and parameters of the FMU's own start.
        wanted: Those that were set.

    Raises:
        UndefinedValueError: If a piece of the way cannot be made, however short.
    """
    done, size = 0.0, 0.5
    while done < 1.0:
        part = min(1.0, done + size)
        x, p = (
            [a + part * (b - a) if part < 1.0 else b for a, b in zip(first, last, strict=True)]
            for first, last in zip(own, wanted, strict=True)
        )
        try:
            to(part, x, p)
            done = part
        except UndefinedValueError:
            size *= 0.5
            if size < SHORTEST:
                raise
