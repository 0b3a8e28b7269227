"""Clutches and brakes: dry friction pressed by a signal; and freewheels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm
from sympy.physics.vector import dynamicsymbols

from mb2fmu.errors import Fault
from mb2fmu.model.elements.coulomb_friction import declare_friction_load_and_outputs
from mb2fmu.model.elements.element_attachment import AttachmentPlace, find_attachment_faults, make_element_attachment
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.supported_functions import sticking_sign

if TYPE_CHECKING:
    from mb2fmu.model import Model


@dataclass(frozen=True)
class Clutch(NamedElement):
    """Dry friction pressed by a signal: it slips, locks, and slips again above its limit.

    Attributes:
        name: In front of the names of its variables.
        on: What it connects, as for ``CoulombFriction``.
        capacity: Largest torque in N.m (force in N) while it slips, fully pressed.
        engagement: How far it is pressed, from 0 to 1: any expression; None: an input ``name.engagement``. Below 0
            it is open.
        peak: Torque at which it breaks away over that while it slips, >= 1.
        drag: Torque that is left while it is open, > 0: what slips must have something to slip against.
    """

    on: AttachmentPlace
    capacity: float | sm.Expr
    engagement: sm.Expr | float | None = None
    peak: float | sm.Expr = 1.0
    drag: float = 1e-10

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of attachment and numbers."""
        yield from (self.fault(what, remedy) for what, remedy in find_attachment_faults(self.on, model))
        yield from self.negative("capacity", self.capacity)
        peak, drag = sm.sympify(self.peak), sm.sympify(self.drag)
        if peak.is_number and not peak >= 1:
            yield self.fault(f"peak is {peak}", "breaking away takes no less force than slipping: give 1 or more")
        if not (drag.is_number and drag > 0):
            yield self.fault(f"drag is {drag}", "give a small number > 0")

    def declare(self, model: Model) -> None:
        """Declare load, parameters, input and outputs."""
        at = make_element_attachment(self.on, model)
        capacity = self.parameter(model, "capacity", self.capacity, at.effort_unit, "effort fully pressed", low=0.0)
        pressed = self.engagement
        if pressed is None:
            pressed = dynamicsymbols(f"{self.name}_engagement".replace(".", "_"))
            model.input(pressed, 0.0, name=f"{self.name}.engagement", description="how far it is pressed, from 0 to 1")
        peak = self.parameter(model, "peak", self.peak, "1", "break-away over slip", low=1.0)
        sense = sticking_sign(at.speed, peak)
        effort = -(sm.Max(capacity * pressed, 0) + sm.Float(self.drag)) * sense  # never zero, in no mode
        declare_friction_load_and_outputs(model, self.name, at, effort, at.speed, sense)


@dataclass(frozen=True)
class Brake(Clutch):
    """A clutch against a fixed part: the first of ``on`` is the ground, or the carrier of the brake."""


@dataclass(frozen=True)
class OneWayClutch(NamedElement):
    """A freewheel: the second may be faster than the first; else it is driven, up to the capacity.

    Attributes:
        name: In front of the names of its variables.
        on: What it connects, as for ``CoulombFriction``.
        capacity: Torque in N.m (force in N) above which it slips backwards.
    """

    on: AttachmentPlace
    capacity: float | sm.Expr

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of attachment and capacity."""
        yield from (self.fault(what, remedy) for what, remedy in find_attachment_faults(self.on, model))
        yield from self.negative("capacity", self.capacity)
        if sm.sympify(self.capacity).is_zero:
            yield self.fault("capacity is 0: it would transmit nothing", "give a number > 0")

    def declare(self, model: Model) -> None:
        """Declare load, parameter and outputs."""
        at = make_element_attachment(self.on, model)
        capacity = self.parameter(model, "capacity", self.capacity, at.effort_unit, "largest effort", low=0.0)
        sense = sticking_sign(at.speed, sm.S.One)
        declare_friction_load_and_outputs(model, self.name, at, capacity * (1 - sense) / 2, at.speed, sense)
