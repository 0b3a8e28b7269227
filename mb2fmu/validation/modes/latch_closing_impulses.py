"""Latches as the reference closes them: in numbers, from the effect of a force along each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.modes.coupled_holding_forces import (
    compute_row_scale_factors,
    compute_weighted_pseudo_inverse,
)

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


def solve_latch_closing_impulses(W: Floats, rates: Floats) -> Floats:
    """Return impulses that stop all held rows, shape (r,).

    Of redundant rows, those of least norm, each times the square root of what it moves by itself.
    """
    scales = compute_row_scale_factors(W)
    return np.asarray(scales * np.linalg.lstsq(W * scales * scales[:, None], -scales * rates, rcond=_RANK_TOLERANCE)[0])


def _find_pinned_contact_rows(W: Floats, contacts: int) -> npt.NDArray[np.bool_]:
    """Return which rows of contacts held rows hold still already, shape (k,).

    Args:
        W: Of the contacts, then of the rows that are held.
        contacts: k.
    """
    own_effects = W.diagonal()[:contacts]
    reactions = compute_weighted_pseudo_inverse(W[contacts:, contacts:]) @ W[contacts:, :contacts]
    remaining_effects = own_effects - (W[:contacts, contacts:] * reactions.T).sum(axis=1)
    return np.asarray(np.abs(remaining_effects) < _PINNED_FRACTION * np.abs(own_effects))


def find_contacts_blocked_by_latches(
    B: Floats, holding_inputs: Sequence[int], first: int, line_count: int
) -> list[int]:
    """Return the places of contacts among what holds in whose directions closed latches hold already.

    Args:
        B: Effect of each on the rates of all, shape (k, k).
        holding_inputs: Numbers of what holds: signs below ``first``, then ``line_count`` of contacts, then of latches.
        first: The first number of a contact's line.
        line_count: How many there are.
    """
    contact_indices = [i for i, number in enumerate(holding_inputs) if first <= number < first + line_count]
    latch_indices = [i for i, number in enumerate(holding_inputs) if number >= first + line_count]
    if not (contact_indices and latch_indices):
        return []
    all_indices = [*contact_indices, *latch_indices]
    W = B if len(all_indices) == len(B) else B[np.ix_(all_indices, all_indices)]  # signs come first, then contacts
    is_pinned = _find_pinned_contact_rows(W, len(contact_indices))
    return [i for i, is_pinned_row in zip(contact_indices, is_pinned, strict=True) if is_pinned_row]


def eliminate_held_rows(
    W: Floats, state_effects: Floats, accelerations: Floats, contacts: int
) -> tuple[Floats, Floats, Floats]:
    """Return W, state changes and accelerations of the contacts, with the other rows held.

    A contact's row that is pinned stands alone, has no effect and does not accelerate.

    Args:
        W: Of the contacts, then of the rows.
        state_effects: What each changes the states by, shape (n_x, k + r).
        accelerations: Without any of the forces, shape (k + r,).
        contacts: k.
    """
    if contacts == len(W):
        return W, state_effects, accelerations
    pinned, reactions = _find_pinned_contact_rows(W, contacts), _compute_row_reactions(W, contacts)
    held_forces = np.linalg.lstsq(W[contacts:, contacts:], accelerations[contacts:], rcond=_RANK_TOLERANCE)[0]
    reduced = W[:contacts, :contacts] - W[:contacts, contacts:] @ reactions
    return (
        np.where(pinned | pinned[:, None], np.diag(np.diag(W)[:contacts]), reduced),
        np.where(pinned, 0.0, state_effects[:, :contacts] - state_effects[:, contacts:] @ reactions),
        np.where(pinned, 0.0, accelerations[:contacts] - W[:contacts, contacts:] @ held_forces),
    )


def _compute_row_reactions(W: Floats, contacts: int) -> Floats:
    """Return what a contact's force takes from each of the other rows, shape (r, k)."""
    return np.asarray(np.linalg.lstsq(W[contacts:, contacts:], W[contacts:, :contacts], rcond=_RANK_TOLERANCE)[0])
