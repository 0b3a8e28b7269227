"""Latches as the reference closes them: by numbers, from what a force along each row does to the accelerations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_RANK = 1e-10


@dataclass(frozen=True, slots=True)
class Held:
    """Rows of latches at one instant, shape (r,) each.

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
    """Impulses that end the rates of all rows that are held, shape (r,); of least norm where rows say the same."""
    return np.asarray(np.linalg.lstsq(W, -rates, rcond=_RANK)[0])


def with_rows_held(W: Floats, reach: Floats, contacts: int) -> tuple[Floats, Floats]:
    """W of the contacts, and what their impulses change the states by, while the rows behind them are held.

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
