"""Conditioning of x' along a motion: digits that the digits of the data support.

Every number that x' is computed from (states, inputs, parameters) is known to half a unit in its last place at best.
If x' changes by κ times the relative change of these numbers, log10 κ of its sixteen digits say nothing, in any unit
and by any formulation. Loops that lie nearly flat, masses that differ by 1e12, and forces that nearly cancel do this.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mb2fmu.errors import ValidationError

if TYPE_CHECKING:
    from mb2fmu.validation.reference.reference_run import ReferenceRun

FEW_DIGITS = 10.0
"""Digits below which a note is given."""
_SAMPLED_POINTS = 12
_RANDOM_DRAWS = 3
_RELATIVE_CHANGE = 2.0**-22
DOUBLE_DIGITS = -math.log10(2.0**-53)


@dataclass(frozen=True, slots=True)
class LeastKnownDerivativeDigits:
    """The smallest number of known digits of any derivative along the motion.

    Attributes:
        name: Of the state whose derivative it is.
        at: When, in s.
        known: Decimal digits, of the derivative's largest magnitude on the way, that the data determine; 0 to 16. Of
            one that is less than what moves its state by the state's own scale in the whole experiment: digits of that.
    """

    name: str
    at: float
    known: float

    @property
    def text(self) -> str:
        """A sentence for people if few digits are known, else an empty text."""
        if self.known >= FEW_DIGITS:
            return ""
        return (
            f"x' is ill conditioned: near t = {self.at:.4g} s the data determine der({self.name}) to about "
            f"{self.known:.0f} digits only, whatever computes it"
        )


def count_remaining_digits(error_growth: float) -> float:
    """Return the decimal digits of a double that are left, 0 to 16, where relative errors are magnified."""
    return round(min(DOUBLE_DIGITS, max(0.0, DOUBLE_DIGITS - math.log10(max(error_growth, 1.0)))), 1)


def compute_digits_of_worst_derivative(reference: ReferenceRun) -> LeastKnownDerivativeDigits | None:
    """Return the known digits of the reference's worst derivative, at a dozen points; None without any."""
    numeric, run = reference.numeric, reference.experiment
    rows = np.unique(np.linspace(0, len(reference.states) - 2, _SAMPLED_POINTS).astype(np.int64)).tolist()
    random, least_digits, changes = np.random.default_rng(16), [], []
    free = np.array(run.parameters)
    for k in rows:
        t, x, r = float(run.time[k]), reference.states[k], run.inputs_at(k)
        try:
            base = numeric.x_dot(t, x, r.tolist(), numeric.prepare(run.parameters))[0]
            changed = np.zeros_like(base)
            for _ in range(_RANDOM_DRAWS):
                moved_parts = [
                    part * (1 + _RELATIVE_CHANGE * random.choice([-1.0, 1.0], len(part))) for part in (x, r, free)
                ]
                prepared = numeric.prepare(moved_parts[2].tolist())
                projected = numeric.project(t, moved_parts[0], moved_parts[1], prepared)
                changed_x_dot = numeric.x_dot(t, projected, moved_parts[1].tolist(), prepared)[0]
                changed = np.maximum(changed, np.abs(changed_x_dot - base) / _RELATIVE_CHANGE)
        except (ValidationError, ArithmeticError, ValueError):
            continue  # other lengths do not close the loop
        least_digits.append((float(run.time[k]), np.abs(base)))
        changes.append(changed)
    if not least_digits or not numeric.n_x:
        return None
    sizes = np.max([size for _, size in least_digits], axis=0)
    # A rate that cancels throughout matters as far as it would move its state in the whole experiment.
    sizes = np.maximum(sizes, reference.state_scales / float(run.time[-1] - run.time[0]))
    kappa = np.array(changes) / sizes
    row, column = np.unravel_index(int(np.argmax(kappa)), kappa.shape)
    known_digits = count_remaining_digits(float(kappa[row, column]))
    name = reference.variables[reference.state_columns[column]].name
    return LeastKnownDerivativeDigits(name, least_digits[row][0], known_digits)
