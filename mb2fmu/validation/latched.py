"""Latches as the reference closes them: in numbers, from the effect of a force along each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_RANK = 1e-10


@dataclass(frozen=True, slots=True)
class Held:
    """Held rows of latches at one instant, shape (r,) each.

    Attributes:
        accelerations: What is zero where the row is held.
        rates: Of the rows.
        engaged: 1 where the latch is closed.
        holding: 1 where it is closed behind this instant.
        closing: 1 where it closes at this instant.
    """

    accelerations: Floats
    rates: Floats
    engaged: Floats
    holding: Floats
    closing: Floats


def closing_impulses(W: Floats, rates: Floats) -> Floats:
    """Return impulses that stop all held rows, shape (r,); of least norm for redundant rows."""
    return np.asarray(np.linalg.lstsq(W, -rates, rcond=_RANK)[0])


def with_rows_held(W: Floats, reach: Floats, contacts: int) -> tuple[Floats, Floats]:
    """Return W of the contacts, and the state changes by their impulses, with the other rows held.

    Args:
        W: Of the contacts, then of the rows.
        reach: What each changes the states by, shape (n_x, k + r).
        contacts: k.
    """
    if contacts == len(W):
        return W, reach
    answers = np.linalg.lstsq(W[contacts:, contacts:], W[contacts:, :contacts], rcond=_RANK)[0]
    return (
        W[:contacts, :contacts] - W[:contacts, contacts:] @ answers,
        reach[:, :contacts] - reach[:, contacts:] @ answers,
    )
