"""The motion at one instant for given modes, and further outputs of equations with events.

Each part is taken out of the outputs only where it is requested: an integration uses rates alone, some hundred
thousand times.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from mb2fmu.validation.modes.contact_friction_modes import InstantFrictionContacts
from mb2fmu.validation.modes.impact_impulses import ContactsAtInstant
from mb2fmu.validation.modes.latch_closing_impulses import ClosedLatchRows

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ModeMotionOutputLayout:
    """Numbers of outputs, in order.

    Attributes:
        outputs: Of the model itself.
        switches: Each has a surface, a limit and a rate.
        conditions: Of events.
        settings: Values that events set.
        contacts: Seven outputs each, see :class:`ContactsAtInstant`.
        frictions: Of contacts; five outputs each, see :class:`InstantFrictionContacts`.
        latch_rows: Rows of latches; five outputs each, see :class:`ClosedLatchRows`.
        rate_indices: Places, among all outputs, of the rates of everything that may hold: of the signs' surfaces,
            second rates of gaps, rates of slip, second rates of latch rows.
    """

    outputs: int
    switches: int
    conditions: int
    settings: int
    contacts: int
    frictions: int
    latch_rows: int
    rate_indices: npt.NDArray[np.int64] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        first = (
            self.outputs + 2 * self.switches,
            self.first_contact_output,
            self.first_contact_friction_output,
            self.first_latch_output,
        )
        parts = zip(first, (self.switches, self.contacts, self.frictions, self.latch_rows), strict=True)
        object.__setattr__(self, "rate_indices", np.concatenate([begin + np.arange(count) for begin, count in parts]))

    @property
    def first_contact_output(self) -> int:
        """Index of the first output of contacts; accelerations come first there, as in the two that follow."""
        return self.outputs + 3 * self.switches + self.conditions + self.settings

    @property
    def first_contact_friction_output(self) -> int:
        """Index of the first output of the friction of contacts."""
        return self.first_contact_output + 7 * self.contacts

    @property
    def first_latch_output(self) -> int:
        """Index of the first output of latches."""
        return self.first_contact_friction_output + 5 * self.frictions


@dataclass(frozen=True, slots=True)
class DerivativesAndOutputs:
    """What is observed at one instant, for given forces of frictions, contacts and latches.

    Attributes:
        x_dot: Derivative of (q, independent u, z).
        outputs: All of them.
    """

    x_dot: Floats
    outputs: Floats


class InstantMotionInModes:
    """All quantities at one instant, for given modes.

    Args:
        motion: At these modes.
        counts: Of the outputs.
        sizes: What surfaces are divided by, shape (switches,).
    """

    def __init__(self, motion: DerivativesAndOutputs, counts: ModeMotionOutputLayout, sizes: Floats) -> None:
        self.motion, self._counts, self._sizes = motion, counts, sizes

    def _select_outputs(self, first: int, count: int) -> Floats:
        """Return the outputs from one of our own on."""
        start = self._counts.outputs + first
        return self.motion.outputs[start : start + count]

    @cached_property
    def surfaces(self) -> Floats:
        """Switching functions over their sizes."""
        return self._select_outputs(0, self._counts.switches) / self._sizes

    @cached_property
    def holding_limits(self) -> Floats:
        """Largest values at which signs hold: no less than when they slip, or nothing could hold them."""
        return np.maximum(self._select_outputs(self._counts.switches, self._counts.switches), 1.0)

    @cached_property
    def rates(self) -> Floats:
        """Rates of the signs' surfaces, then second rates of gaps, rates of slip, second rates of latch rows."""
        scaled_rates = self.motion.outputs[self._counts.rate_indices]
        scaled_rates[: self._counts.switches] /= self._sizes
        return scaled_rates

    def compute_rate_changes(self, outputs: Floats, places: Sequence[int]) -> Floats:
        """Return how some :attr:`rates` differ at other outputs, shape (k, n_y), from these; shape (k, len(places))."""
        changed_rates = outputs[:, self._counts.rate_indices[places]]
        sign_count = sum(place < self._counts.switches for place in places)  # they come first
        if sign_count:
            changed_rates[:, :sign_count] /= self._sizes[places[:sign_count]]
        return np.asarray(changed_rates - self.rates[places])

    @cached_property
    def conditions(self) -> Floats:
        """Conditions of events."""
        return self._select_outputs(3 * self._counts.switches, self._counts.conditions)

    @cached_property
    def event_set_values(self) -> Floats:
        """Values that events set, event by event."""
        return self._select_outputs(3 * self._counts.switches + self._counts.conditions, self._counts.settings)

    @cached_property
    def contact_rows(self) -> ContactsAtInstant:
        """Quantities of contacts."""
        return ContactsAtInstant(*self._rows(self._counts.first_contact_output, 7, self._counts.contacts))

    @cached_property
    def friction_contacts(self) -> InstantFrictionContacts:
        """Quantities of the friction of contacts."""
        return InstantFrictionContacts(
            *self._rows(self._counts.first_contact_friction_output, 5, self._counts.frictions)
        )

    @cached_property
    def latch_rows(self) -> ClosedLatchRows:
        """Quantities of the rows of latches."""
        return ClosedLatchRows(*self._rows(self._counts.first_latch_output, 5, self._counts.latch_rows))

    def _rows(self, first: int, rows: int, count: int) -> Floats:
        """Return the outputs from one on, one row per quantity."""
        return self.motion.outputs[first : first + rows * count].reshape(rows, count)
