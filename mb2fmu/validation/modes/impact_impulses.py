"""Impacts in the reference: in numbers, from the effect of contact forces on accelerations.

An impulse is the limit of a large force for a short time, and accelerations are linear in forces: so what a force at
contact k changes the second rates of all gaps by is what an impulse there changes the rates by. Nothing of the program
is used; simultaneous impacts are found as a least-squares problem with bounds and not by modes. Where a gap has no
slope in numbers (exp(1000 y) far below 0), an impulse moves nothing, and there is none, as of least norm.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from mb2fmu.mechanics.equations.contact_equations import REIMPACT_SPEED_RATIO, ContactEquations
from mb2fmu.model.quantity_declarations import MODE_THRESHOLD

Floats = npt.NDArray[np.float64]

_SPEED_MARGIN = 1e-15
_SMALLEST_IMPULSE = 1e-300
_APPROACH_START_FRACTION = 1e-9  # of the speed below which a contact rests: an approach that only begins


@dataclass(frozen=True, slots=True)
class ContactsAtInstant:
    """Contacts at one instant, shape (k,) each.

    Attributes:
        accelerations: Second rates of the gaps.
        rates: Of the gaps.
        restitution: Coefficients.
        rest_below: Speeds.
        closed: 1 where the bodies touch, by the modes.
        resting: 1 where the contact rests, less where it leaves.
        approaching_by_mode: 1 where closed bodies approach, by the modes: where an approach begins, its rate is
        round-off.
    """

    accelerations: Floats
    rates: Floats
    restitution: Floats
    rest_below: Floats
    closed: Floats
    resting: Floats
    approaching_by_mode: Floats

    @property
    def approach_rates(self) -> Floats:
        """Gap rates; for pairs known to approach, at most just below the re-impact threshold."""
        reimpact_rate = -float(REIMPACT_SPEED_RATIO) * self.rest_below * self.resting
        return np.where(
            self.approaching_by_mode > MODE_THRESHOLD,
            np.minimum(self.rates, reimpact_rate * (1.0 + _SPEED_MARGIN) - _SMALLEST_IMPULSE),
            self.rates,
        )


def solve_impact_impulses(
    contacts: ContactEquations, W: Floats, contact_rows: ContactsAtInstant
) -> tuple[Floats, Floats]:
    """Return impulses at this instant, and the contacts that rest after it (1 or 0); both shape (k,).

    Args:
        contacts: Their laws.
        W: What an impulse at each changes the gaps' rates by, shape (k, k).
        contact_rows: Just before.
    """
    reimpact_speed = float(REIMPACT_SPEED_RATIO) * contact_rows.rest_below
    if contacts.order == "sequential":
        impulses, rests = _solve_sequential_impacts(W, contact_rows, reimpact_speed)
    else:
        impulses, rests = _solve_simultaneous_impacts(W, contact_rows, poisson=contacts.each[0].law == "poisson")
    drift_rates = np.where(contact_rows.resting > 0.0, np.maximum(contact_rows.rates, 0.0), 0.0)
    is_thrown = contact_rows.rates + W @ impulses > drift_rates + reimpact_speed
    return impulses, np.where(is_thrown, 0.0, rests)


def _solve_sequential_impacts(
    W: Floats, contact_rows: ContactsAtInstant, reimpact_speed: Floats
) -> tuple[Floats, Floats]:
    """Return impulses of contacts whose impacts follow one another, if they approach."""
    v, resting = contact_rows.approach_rates, contact_rows.resting.copy()
    impulses = np.zeros(len(v))
    for k in np.flatnonzero(contact_rows.closed > MODE_THRESHOLD):
        if v[k] >= -reimpact_speed[k] * resting[k] or W[k, k] <= 0.0:
            continue
        comes_to_rest = -contact_rows.restitution[k] * v[k] < contact_rows.rest_below[k]
        impulses[k] = -v[k] * (1.0 if comes_to_rest else 1.0 + contact_rows.restitution[k]) / W[k, k]
        resting[k] = float(comes_to_rest)
        v = v + W[:, k] * impulses[k]
    return impulses, resting


def _solve_simultaneous_impacts(W: Floats, contact_rows: ContactsAtInstant, *, poisson: bool) -> tuple[Floats, Floats]:
    """Return impulses of all closed contacts together."""
    closed_indices = np.flatnonzero(contact_rows.closed > MODE_THRESHOLD)
    impulses, resting = np.zeros(len(contact_rows.rates)), contact_rows.resting.copy()
    if not len(closed_indices):
        return impulses, resting
    W, v = W[np.ix_(closed_indices, closed_indices)], contact_rows.approach_rates[closed_indices]
    comes_to_rest = -contact_rows.restitution[closed_indices] * v < contact_rows.rest_below[closed_indices]
    e = np.where(comes_to_rest, 0.0, contact_rows.restitution[closed_indices])
    if poisson:
        compression_impulses = _solve_complementarity(W, v)
        closed_impulses = (1.0 + e) * compression_impulses
        closed_impulses += _solve_complementarity(W, v + W @ closed_impulses)
    else:
        closed_impulses = _solve_complementarity(W, v - e * np.maximum(-v, 0.0))
    approach_begins = (contact_rows.approaching_by_mode[closed_indices] > MODE_THRESHOLD) & (
        np.abs(v + W @ closed_impulses) <= _APPROACH_START_FRACTION * contact_rows.rest_below[closed_indices]
    )
    impulses[closed_indices] = closed_impulses = np.where(
        approach_begins, np.maximum(closed_impulses, _SMALLEST_IMPULSE), closed_impulses
    )
    resting[closed_indices] = np.where((closed_impulses > 0.0) & comes_to_rest, 1.0, resting[closed_indices])
    return impulses, resting


def _solve_complementarity(W: Floats, q: Floats) -> Floats:
    """Return z >= 0 with W z + q >= 0, complementary: the minimum of zᵀ W z / 2 + qᵀ z, by least squares."""
    from scipy.optimize import nnls

    values, vectors = np.linalg.eigh(W)
    is_kept = values > max(1e-12 * values[-1], 0.0)
    if not is_kept.any():
        return np.zeros(len(q))
    root = np.sqrt(values[is_kept])[:, None] * vectors[:, is_kept].T
    right = -(vectors[:, is_kept].T @ q) / np.sqrt(values[is_kept])
    z = np.asarray(nnls(root, right)[0], dtype=np.float64)
    is_pressed = z > 0.0
    if is_pressed.any():  # once more, without the errors of squares
        part = W[np.ix_(is_pressed, is_pressed)]
        z[is_pressed] = np.maximum(np.linalg.lstsq(part, -q[is_pressed], rcond=None)[0], 0.0)
    return z
