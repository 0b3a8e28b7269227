"""Dry friction that sticks: Coulomb's law with a higher break-away force, and Stribeck's curve."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm

from mb2fmu.errors import Fault
from mb2fmu.model.elements.element_attachment import (
    AttachmentPlace,
    ElementAttachment,
    find_attachment_faults,
    make_element_attachment,
)
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.supported_functions import sticking_sign

if TYPE_CHECKING:
    from mb2fmu.model import Model

__all__ = ["CoulombFriction", "declare_friction_load_and_outputs"]

FrictionCurve = Callable[[sm.Expr], sm.Expr]


@dataclass(frozen=True)
class CoulombFriction(NamedElement):
    """Dry friction on a joint, between two points along a direction, or between two frames about an axis.

    While it slides the second is pulled against its slip v by ``normal`` · ``kinetic``; where v comes to zero it sticks
    as long as what that takes is no more than ``normal`` · ``static``, and then goes on the way it is driven.

    Several on one motion share what they hold by what each can hold. Where a rigid stop or contact rests, or a latch is
    closed, that holds the same motion still, it bears the whole load: this friction sticks and its force is 0.

    Example:
        A block on an incline along N.x, μ = 0.3, and 0.4 to break away::

            model.add(CoulombFriction("floor", (O, P, N.x), kinetic=0.3, static=0.4, normal=m * g * sm.cos(slope)))

        Outputs are ``floor.force`` (on the second), ``floor.slip`` and ``floor.sticking``; parameters
        ``floor.kinetic`` and ``floor.static``.

    Attributes:
        name: In front of the names of its variables.
        on: A joint, (first point, second point, direction) or (first frame, second frame, axis); see ``attachment``.
        kinetic: Coefficient while it slides; without ``normal`` the force in N, or the torque in N.m, itself.
        static: Likewise, at which it breaks away; None: as ``kinetic``, or the curve at zero slip. A value that is set
            below ``kinetic`` counts as ``kinetic``.
        normal: Normal force in N, or what a torque is proportional to in N.m: any expression of the state, >= 0.
        stribeck: Speed over which it falls from ``static`` to ``kinetic``: kinetic + (static − kinetic) exp(−(v/v_s)²);
            None: it falls at once, as it breaks away.
        curve: In place of ``kinetic`` and ``stribeck``: of the magnitude of v, such as ``lambda v: 1 / (1 + 3 * v)``.
        drive: Speed of the first's surface beyond its own: that of a belt.
    """

    on: AttachmentPlace
    kinetic: float | sm.Expr | None = None
    static: float | sm.Expr | None = None
    normal: float | sm.Expr | None = None
    stribeck: float | sm.Expr | None = None
    curve: FrictionCurve | None = None
    drive: float | sm.Expr = 0.0

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of attachment, coefficients and curve."""
        yield from (self.fault(what, remedy) for what, remedy in find_attachment_faults(self.on, model))
        for part in ("kinetic", "static", "normal", "stribeck"):
            yield from self.negative(part, getattr(self, part))
        if (self.kinetic is None) == (self.curve is None):
            has = "neither kinetic nor curve" if self.curve is None else "both kinetic and curve"
            yield self.fault(f"it has {has}", "give one of them")
        if self.stribeck is not None and (self.static is None or self.curve is not None):
            yield self.fault(
                "stribeck needs a static friction that falls to the kinetic one",
                "give static and kinetic, and no curve",
            )
        if self.stribeck is not None and sm.sympify(self.stribeck).is_zero:
            yield self.fault("stribeck is 0", "leave it out: friction then falls at once, as it breaks away")
        numbers = [sm.sympify(value) for value in (self.static, self.kinetic)]
        if all(number is not None and number.is_number and number.is_finite for number in numbers) and (
            numbers[0] < numbers[1]
        ):
            yield self.fault(f"static {self.static} is less than kinetic {self.kinetic}", "exchange them")
        if self.kinetic is not None and sm.sympify(self.kinetic).is_zero:
            yield self.fault("kinetic is 0: nothing could stick", "give a number > 0")

    def declare(self, model: Model) -> None:
        """Declare load, parameters and outputs."""
        at = make_element_attachment(self.on, model)
        drive = self.parameter(model, "drive", self.drive, at.speed_unit, "speed of the surface") if self.drive else 0
        slip = at.speed - drive
        sliding, static = self._law(model, "1" if self.normal is not None else at.effort_unit, at.speed_unit)
        at_zero = sliding(sm.S.Zero)
        sense = sticking_sign(slip, 1 if static is None else static / at_zero)
        normal = (
            1 if self.normal is None else self.parameter(model, "normal", self.normal, at.effort_unit, "normal force")
        )
        effort = -normal * sliding(slip * sense) * sense
        declare_friction_load_and_outputs(model, self.name, at, effort, slip, sense)

    def _law(self, model: Model, unit: str, speed_unit: str) -> tuple[FrictionCurve, sm.Expr | None]:
        """Return the coefficient as a function of slip, and the break-away coefficient."""
        static = None
        if self.static is not None:
            static = self.parameter(model, "static", self.static, unit, "friction that breaks it away", low=0.0)
        if self.curve is not None:
            return self.curve, static
        assert self.kinetic is not None  # or it has faults
        kinetic = self.parameter(model, "kinetic", self.kinetic, unit, "friction while it slides", low=0.0)
        if self.stribeck is None:
            return lambda _: kinetic, static
        assert static is not None  # as above
        fall = self.parameter(model, "stribeck", self.stribeck, speed_unit, "speed over which friction falls", low=0.0)
        return lambda v: kinetic + (static - kinetic) * sm.exp(-((v / fall) ** 2)), static


def declare_friction_load_and_outputs(
    model: Model, name: str, at: ElementAttachment, effort: sm.Expr, slip: sm.Expr, sense: sm.Expr
) -> None:
    """Add the load and the outputs ``name.force`` (or ``torque``), ``name.slip`` and ``name.sticking``.

    Args:
        model: That the element is added to.
        name: Of the element.
        at: Where it acts.
        effort: On the second.
        slip: Speed of sliding.
        sense: The ``sticking_sign`` that stands in the effort: it is 1 or −1 only while it slides.
    """
    at.load(model, effort)
    model.output(f"{name}.{at.effort}", effort, at.effort_unit, description="friction on the second")
    model.output(f"{name}.slip", slip, at.speed_unit, description="speed of sliding")
    sticking = sm.Piecewise((0, sm.Eq(sense**2, 1)), (1, True))
    model.output(f"{name}.sticking", sticking, description="1 while it sticks")
