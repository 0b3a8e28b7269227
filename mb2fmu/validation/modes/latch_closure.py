"""Latches as the reference closes them: in numbers, from the effect of a force along each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.modes.shared_holding_forces import compute_row_scale_factors

Floats = npt.NDArray[np.float64]

_RANK_TOLERANCE = 1e-10
_PINNED_FRACTION = 1e-9  # of what it is without latches


@dataclass(frozen=True, slots=True)
class ClosedLatchRows:
    """Held rows of latches at one instant, shape (r,) each.

    Attributes:
        accelerations: What is zero where the row is held.
        rates: Of the rows.
        engaged: 1 where the latch is closed.
        closed_after: 1 where it is closed behind this instant.
        closes_now: 1 where it closes at this instant.
    """

    accelerations: Floats
    rates: Floats
    engaged: Floats
    closed_after: Floats
    closes_now: Floats


def solve_closing_impulses(W: Floats, rates: Floats) -> Floats:
    """Return impulses that stop all held rows, shape (r,).

    Of redundant rows, those of least norm, each times the square root of what it moves by itself.
    """
    scales = compute_row_scale_factors(W)
    return np.asarray(scales * np.linalg.lstsq(W * scales * scales[:, None], -scales * rates, rcond=_RANK_TOLERANCE)[0])


def find_pinned_contact_rows(W: Floats, contacts: int) -> npt.NDArray[np.bool_]:
    """Return which rows of contacts held rows hold still already, shape (k,).

    Args:
        W: Of the contacts, then of the rows that are held.
        contacts: k.
    """
    left = W[:contacts, :contacts] - W[:contacts, contacts:] @ _compute_row_reactions(W, contacts)
    return np.asarray(np.abs(np.diag(left)) < _PINNED_FRACTION * np.abs(np.diag(W)[:contacts]))


def find_pinned_contacts(B: Floats, held: Sequence[int], first: int, lines: int) -> list[int]:
    """Return the places of contacts among what holds in whose directions closed latches hold already.

    Args:
        B: Effect of each on the rates of all, shape (k, k).
        held: Numbers of what holds: signs below ``first``, then ``lines`` of contacts, then of latches.
        first: The first number of a contact's line.
        lines: How many there are.
    """
    touching = [i for i, own in enumerate(held) if first <= own < first + lines]
    latched = [i for i, own in enumerate(held) if own >= first + lines]
    if not (touching and latched):
        return []
    both = [*touching, *latched]
    still = find_pinned_contact_rows(B[np.ix_(both, both)], len(touching))
    return [i for i, here in zip(touching, still, strict=True) if here]


def eliminate_held_rows(
    W: Floats, reach: Floats, accelerations: Floats, contacts: int
) -> tuple[Floats, Floats, Floats]:
    """Return W, state changes and accelerations of the contacts, with the other rows held.

    A contact's row that is pinned stands alone, has no effect and does not accelerate.

    Args:
        W: Of the contacts, then of the rows.
        reach: What each changes the states by, shape (n_x, k + r).
        accelerations: Without any of the forces, shape (k + r,).
        contacts: k.
    """
    if contacts == len(W):
        return W, reach, accelerations
    pinned, answers = find_pinned_contact_rows(W, contacts), _compute_row_reactions(W, contacts)
    held = np.linalg.lstsq(W[contacts:, contacts:], accelerations[contacts:], rcond=_RANK_TOLERANCE)[0]
    left = W[:contacts, :contacts] - W[:contacts, contacts:] @ answers
    return (
        np.where(pinned | pinned[:, None], np.diag(np.diag(W)[:contacts]), left),
        np.where(pinned, 0.0, reach[:, :contacts] - reach[:, contacts:] @ answers),
        np.where(pinned, 0.0, accelerations[:contacts] - W[:contacts, contacts:] @ held),
    )


def _compute_row_reactions(W: Floats, contacts: int) -> Floats:
    """Return what a contact's force takes from each of the other rows, shape (r, k)."""
    return np.asarray(np.linalg.lstsq(W[contacts:, contacts:], W[contacts:, :contacts], rcond=_RANK_TOLERANCE)[0])
