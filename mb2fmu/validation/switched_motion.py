"""The motion at one instant for given modes, and further outputs of equations with events.

Each part is taken out of the outputs only where it is asked for: an integration looks at rates alone, some hundred
thousand times.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.latched import Held
from mb2fmu.validation.numeric import Motion
from mb2fmu.validation.own_friction import Rub
from mb2fmu.validation.own_impacts import Touch

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Counts:
    """Numbers of outputs, in order.

    Attributes:
        outputs: Of the model itself.
        switches: Each has a surface, a limit and a rate.
        conditions: Of events.
        settings: Values that events set.
        contacts: Seven outputs each, see :class:`Touch`.
        frictions: Of contacts; five outputs each, see :class:`Rub`.
        latched: Rows of latches; five outputs each, see :class:`Held`.
    """

    outputs: int
    switches: int
    conditions: int
    settings: int
    contacts: int
    frictions: int
    latched: int


class SwitchedMotion:
    """All quantities at one instant, for given modes.

    Args:
        motion: With all outputs.
        counts: Of the outputs.
        sizes: What surfaces are divided by, shape (switches,).
    """

    def __init__(self, motion: Motion, counts: Counts, sizes: Floats) -> None:
        self.motion, self._counts, self._sizes = motion, counts, sizes

    def _part(self, first: int, count: int) -> Floats:
        """Return the outputs from one of our own on."""
        begin = self._counts.outputs + first
        return self.motion.outputs[begin : begin + count]

    @cached_property
    def surfaces(self) -> Floats:
        """Switching functions over their sizes."""
        return self._part(0, self._counts.switches) / self._sizes

    @cached_property
    def limits(self) -> Floats:
        """Largest values at which signs hold."""
        return self._part(self._counts.switches, self._counts.switches)

    @cached_property
    def rates(self) -> Floats:
        """Rates of the signs' surfaces, then second rates of gaps, rates of slip, second rates of latch rows."""
        count = self._counts
        rates = self._part(2 * count.switches, count.switches) / self._sizes
        if not (count.contacts or count.frictions or count.latched):
            return rates
        return np.concatenate([rates, self.touch.accelerations, self.rub.accelerations, self.held.accelerations])

    @cached_property
    def conditions(self) -> Floats:
        """Conditions of events."""
        return self._part(3 * self._counts.switches, self._counts.conditions)

    @cached_property
    def settings(self) -> Floats:
        """Values that events set, event by event."""
        return self._part(3 * self._counts.switches + self._counts.conditions, self._counts.settings)

    @cached_property
    def touch(self) -> Touch:
        """Quantities of contacts."""
        return Touch(*self._part(self._touched, 7 * self._counts.contacts).reshape(7, self._counts.contacts))

    @cached_property
    def rub(self) -> Rub:
        """Quantities of the friction of contacts."""
        first, k = self._touched + 7 * self._counts.contacts, self._counts.frictions
        return Rub(*self._part(first, 5 * k).reshape(5, k))

    @cached_property
    def held(self) -> Held:
        """Quantities of the rows of latches."""
        first, k = self._touched + 7 * self._counts.contacts + 5 * self._counts.frictions, self._counts.latched
        return Held(*self._part(first, 5 * k).reshape(5, k))

    @property
    def _touched(self) -> int:
        """Index of the first output of contacts, among our own."""
        return 3 * self._counts.switches + self._counts.conditions + self._counts.settings
