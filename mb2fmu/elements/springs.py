"""Springs with dampers: between two points, or along or about a joint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeGuard

import sympy as sm
from sympy.physics.mechanics import ForceActuator, LinearPathway, Point
from sympy.physics.mechanics.joint import Joint

from mb2fmu.elements.attachment import attached, attachment_fault
from mb2fmu.elements.element import NamedElement
from mb2fmu.errors import Fault
from mb2fmu.model import mechanics as mechanics_source
from mb2fmu.model.snapshot import restored

if TYPE_CHECKING:
    from mb2fmu.model import Model

Law = Callable[[sm.Expr], sm.Expr]


@dataclass(frozen=True)
class SpringDamper(NamedElement):
    """A spring and a damper side by side between two points, or on a pin or prismatic joint.

    With the stretch e = length - rest (on a joint: coordinate - rest) it pulls the ends together with
    stiffness · e + damping · e', or law(e) + damping · e'; ``only`` lets it pull or push alone, as a rope or a stop.

    Example:
        A rope that pulls only, then a torsion spring with a table::

            model.add(SpringDamper("rope", (P, Q), stiffness=2e3, damping=5.0, rest=1.2, only="pull"))
            model.add(SpringDamper("knee", joint, law=LookupTable("knee", angles, torques), damping=0.1))

        Outputs are ``rope.force`` (``.torque`` on a pin), positive where it pulls, and ``rope.stretch``.

    Attributes:
        name: In front of the names of its variables.
        on: (point, point), a ``PinJoint`` or ``PrismaticJoint``, or a robot's joint by its name.
        stiffness: N/m, or N.m/rad on a pin.
        damping: N.s/m, or N.m.s/rad.
        rest: Length, or coordinate, at which the spring is slack.
        law: In place of ``stiffness``: of the stretch, such as ``lambda e: 100 * e + 4e4 * e**3`` or a lookup table.
        only: ``pull`` or ``push``: the whole of it is zero where it would do the other.
    """

    on: tuple[Point, Point] | Joint | str
    stiffness: float | sm.Expr | None = None
    damping: float | sm.Expr | None = None
    rest: float | sm.Expr = 0.0
    law: Law | None = None
    only: Literal["pull", "push"] | None = None

    def faults(self, model: Model) -> Iterator[Fault]:
        """Of places and numbers."""
        if _is_pair(self.on):
            first, second = self.on
            if first is second:
                yield self.fault(f"both ends are {first}", "give two points")
            elif mechanics_source.inertial_frame(model.mechanics) is None:
                yield self.fault("the mechanics have no inertial frame", "give LagrangesMethod its frame and bodies")
            else:
                yield from self._unconnected(first, second)
        elif isinstance(self.on, tuple):
            yield self.fault(f"it acts on {self.on!r}", "give two points, or a joint")
        else:
            yield from (self.fault(what, remedy) for what, remedy in attachment_fault(self.on, model))
        for part in ("stiffness", "damping"):
            yield from self.negative(part, getattr(self, part))
        if self.stiffness is not None and self.law is not None:
            yield self.fault("it has both stiffness and law", "give one of them")
        if self.stiffness is None and self.law is None and self.damping is None:
            yield self.fault("it has neither stiffness, law nor damping", "give one of them")
        if self.only not in (None, "pull", "push"):
            yield self.fault(f"only is {self.only!r}", "take 'pull', 'push' or nothing")

    def _unconnected(self, first: Point, second: Point) -> Iterator[Fault]:
        try:
            second.pos_from(first)
        except ValueError as error:
            told = " ".join(str(error).split())
            yield self.fault(f"the way is not known: {told}", "connect both with the mechanism")

    def declare(self, model: Model) -> None:
        """Its load, parameters and outputs."""
        if _is_pair(self.on):
            way = LinearPathway(*self.on)
            with restored(list(self.on)):
                length, rate = way.length, way.extension_velocity
            stretch, pull = self._pull(model, length, rate, ("m", "N"))
            model.add_loads(ForceActuator(-pull, way))
            effort, unit, at = "force", "N", "m"
        else:
            place = attached(self.on, model)
            assert place.position is not None  # a joint has a coordinate
            units = (place.position_unit, place.effort_unit)
            stretch, pull = self._pull(model, place.position, place.speed, units)
            place.load(model, -pull)
            effort, unit, at = place.effort, place.effort_unit, place.position_unit
        model.output(f"{self.name}.{effort}", pull, unit, description="of spring and damper, pulling positive")
        model.output(f"{self.name}.stretch", stretch, at, description="beyond the rest")

    def _pull(self, model: Model, position: sm.Expr, rate: sm.Expr, units: tuple[str, str]) -> tuple[sm.Expr, sm.Expr]:
        """The stretch, and what pulls the ends together."""
        at, effort = units
        stretch = position - self.parameter(model, "rest", self.rest, at, "where the spring is slack")
        pull = sm.S.Zero if self.law is None else sm.sympify(self.law(stretch))
        if self.stiffness is not None:
            unit = f"{effort}/{at}"
            pull += self.parameter(model, "stiffness", self.stiffness, unit, "of the spring", low=0.0) * stretch
        if self.damping is not None:
            unit = f"{effort}.s/{at}"
            pull += self.parameter(model, "damping", self.damping, unit, "of the damper", low=0.0) * rate
        if self.only is None:
            return stretch, pull
        return stretch, sm.Max(0, pull) if self.only == "pull" else sm.Min(0, pull)


def _is_pair(on: object) -> TypeGuard[tuple[Point, Point]]:
    return isinstance(on, tuple) and len(on) == 2 and all(isinstance(point, Point) for point in on)
