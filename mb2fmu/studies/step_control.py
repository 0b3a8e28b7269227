"""Sizes of steps for many instances at once, by the arithmetic of ``emit/c/runtime/solver_walk.c``.

Every function is that of the same name there, of arrays with one element per instance; so an instance has the bits that
the unit's solver has. Sources are named there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]

SAFETY, SHRINK, GROWTH, LONGEST = 0.9, 0.2, 5.0, 1e12
EXPONENT, OF_ERROR, OF_LAST, LEAST_ERROR = 13, 11, 2, 1e-4
"""Of Dormand and Prince's method, in 64ths (``solver_methods.c``)."""


def root(x: Floats, sixtyfourths: int) -> Floats:
    """x^(sixtyfourths/64) by square roots, which IEEE 754 defines to the last bit."""
    result = np.ones_like(x)
    bit = 32
    while bit:
        x = np.sqrt(x)
        if sixtyfourths & bit:
            result = result * x
        bit //= 2
    return result


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What errors are measured with.

    Attributes:
        relative: Tolerance.
        scale: Absolute tolerance over the relative one, of each state, shape (n_x,).
    """

    relative: float
    scale: Floats

    def norm(self, vector: Floats, x: Floats, following: Floats) -> Floats:
        """Size of vectors, shape (n, n_x), in units of the tolerance at x and what follows it; shape (n,)."""
        size = np.maximum(np.abs(x), np.abs(following))
        ratio = vector / (self.relative * (size + self.scale))
        total = np.zeros(len(vector))
        for i in range(vector.shape[1]):
            total = total + ratio[:, i] * ratio[:, i]
        return np.asarray(np.sqrt(total / max(vector.shape[1], 1)))


def choose(step: Floats, least: Floats, left: Floats) -> Floats:
    """The proposed step, or the rest of the way in one or in two equal steps."""
    proposal = np.where(step > least, step, least)
    return np.where(left <= proposal * (1.0 + 1e-10), left, np.where(left < 2.0 * proposal, 0.5 * left, proposal))


def shrink(error: Floats) -> Floats:
    """Ratio of the next step to one that was rejected; the error is infinite where there was no result."""
    factor = SAFETY / root(error, EXPONENT)
    return np.where(error < np.inf, np.where(factor > SHRINK, factor, SHRINK), SHRINK)


def learned(
    h: Floats, error: Floats, rejected: Mask, step: Floats, last_step: Floats, last_error: Floats
) -> tuple[Floats, Floats, Floats]:
    """Proposed step, last step and last error after accepted steps of size h."""
    largest = np.where(rejected, 1.0, GROWTH)
    history = (last_error > 0.0) & (last_step > 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        plain = SAFETY / root(error, EXPONENT)
        integral = SAFETY * root(last_error, OF_LAST) / root(error, OF_ERROR)
    factor = np.where(error > 0.0, np.where(history, integral, plain), largest)
    factor = np.where(factor < largest, factor, largest)
    factor = np.where(factor > SHRINK, factor, SHRINK)
    wish = h * factor
    cut = (h < 0.5 * step) & (error < 0.01)
    proposed = np.where(~cut | (wish > step), np.where(wish < LONGEST, wish, LONGEST), step)
    remembered = np.where(error > LEAST_ERROR, error, LEAST_ERROR)
    return proposed, np.where(cut, last_step, h), np.where(cut, last_error, remembered)
