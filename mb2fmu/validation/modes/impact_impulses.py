"""Impacts in the reference: in numbers, from the effect of contact forces on accelerations.

An impulse is the limit of a large force for a short time, and accelerations are linear in forces: so what a force at
contact k changes the second rates of all gaps by is what an impulse there changes the rates by. Nothing of the program
is used; impacts at once are found as a least-squares problem with bounds and not by modes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import nnls

from mb2fmu.mechanics.equations.contact_records import REIMPACT_SPEED_RATIO, Contacts

Floats = npt.NDArray[np.float64]

_SPEED_MARGIN = 1e-15
_SMALLEST_IMPULSE = 1e-300
_APPROACH_START_FRACTION = 1e-9  # of the speed below which a contact rests: an approach that only begins


@dataclass(frozen=True, slots=True)
class ContactRows:
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
        """Rates of the gaps, those of bodies that approach by the modes on that side of where they begin to."""
        least = -float(REIMPACT_SPEED_RATIO) * self.rest_below * self.resting
        return np.where(
            self.approaching_by_mode > 0.5,
            np.minimum(self.rates, least * (1.0 + _SPEED_MARGIN) - _SMALLEST_IMPULSE),
            self.rates,
        )


def solve_impact_impulses(contacts: Contacts, W: Floats, touch: ContactRows) -> tuple[Floats, Floats]:
    """Return impulses at this instant, and the contacts that rest after it (1 or 0); both shape (k,).

    Args:
        contacts: Their laws.
        W: What an impulse at each changes the gaps' rates by, shape (k, k).
        touch: Just before.
    """
    settled = float(REIMPACT_SPEED_RATIO) * touch.rest_below
    if contacts.order == "in turn":
        impulses, rests = _solve_sequential_impacts(W, touch, settled)
    else:
        impulses, rests = _solve_simultaneous_impacts(W, touch, poisson=contacts.each[0].law == "poisson")
    drifted = np.where(touch.resting > 0.0, np.maximum(touch.rates, 0.0), 0.0)
    thrown = touch.rates + W @ impulses > drifted + settled
    return impulses, np.where(thrown, 0.0, rests)


def _solve_sequential_impacts(W: Floats, touch: ContactRows, settled: Floats) -> tuple[Floats, Floats]:
    """Return impulses of contacts struck one after the other, if approaching."""
    v, rests = touch.approach_rates, touch.resting.copy()
    impulses = np.zeros(len(v))
    for k in np.flatnonzero(touch.closed > 0.5):
        if v[k] >= -settled[k] * rests[k]:
            continue
        slow = -touch.restitution[k] * v[k] < touch.rest_below[k]
        impulses[k] = -v[k] * (1.0 if slow else 1.0 + touch.restitution[k]) / W[k, k]
        rests[k] = float(slow)
        v = v + W[:, k] * impulses[k]
    return impulses, rests


def _solve_simultaneous_impacts(W: Floats, touch: ContactRows, *, poisson: bool) -> tuple[Floats, Floats]:
    """Return impulses of all closed contacts together."""
    at = np.flatnonzero(touch.closed > 0.5)
    impulses, rests = np.zeros(len(touch.rates)), touch.resting.copy()
    if not len(at):
        return impulses, rests
    W, v = W[np.ix_(at, at)], touch.approach_rates[at]
    slow = -touch.restitution[at] * v < touch.rest_below[at]
    e = np.where(slow, 0.0, touch.restitution[at])
    if poisson:
        pressed = _solve_complementarity(W, v)
        found = (1.0 + e) * pressed
        found += _solve_complementarity(W, v + W @ found)
    else:
        found = _solve_complementarity(W, v - e * np.maximum(-v, 0.0))
    begun = (touch.approaching_by_mode[at] > 0.5) & (
        np.abs(v + W @ found) <= _APPROACH_START_FRACTION * touch.rest_below[at]
    )
    impulses[at] = found = np.where(begun, np.maximum(found, _SMALLEST_IMPULSE), found)
    rests[at] = np.where((found > 0.0) & slow, 1.0, rests[at])
    return impulses, rests


def _solve_complementarity(W: Floats, q: Floats) -> Floats:
    """Return z >= 0 with W z + q >= 0, complementary: the minimum of zᵀ W z / 2 + qᵀ z, by least squares."""
    values, vectors = np.linalg.eigh(W)
    kept = values > 1e-12 * values[-1]
    root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
    right = -(vectors[:, kept].T @ q) / np.sqrt(values[kept])
    z = np.asarray(nnls(root, right)[0], dtype=np.float64)
    pressed = z > 0.0
    if pressed.any():  # once more, without the errors of squares
        part = W[np.ix_(pressed, pressed)]
        z[pressed] = np.maximum(np.linalg.lstsq(part, -q[pressed], rcond=None)[0], 0.0)
    return z
