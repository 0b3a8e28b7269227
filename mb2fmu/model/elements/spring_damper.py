"""Springs with dampers: between two points, or along or about a joint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import sympy as sm
from sympy.physics.mechanics import ForceActuator, LinearPathway, Point
from sympy.physics.mechanics.joint import Joint

from mb2fmu.errors import Fault
from mb2fmu.model.elements.element_attachment import make_element_attachment
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.elements.element_pathways import (
    find_pathway_or_joint_faults,
    form_link_point_distance,
    is_link_point_pair,
    is_point_pair,
    make_link_point_pair_forces,
)
from mb2fmu.model.sources.frame_and_point_restoration import restore_frames_and_points
from mb2fmu.model.sources.record_based_mechanics import NamedFramePoint, RecordBasedMechanics

if TYPE_CHECKING:
    from mb2fmu.model import Model

SpringLaw = Callable[[sm.Expr], sm.Expr]


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
        on: (point, point), of a robot two of its ``point(link, offset)``; a ``PinJoint`` or ``PrismaticJoint``, or a
            robot's joint by its name.
        stiffness: N/m, or N.m/rad on a pin.
        damping: N.s/m, or N.m.s/rad.
        rest: Length, or coordinate, at which the spring is slack.
        law: In place of ``stiffness``: of the stretch, such as ``lambda e: 100 * e + 4e4 * e**3`` or a lookup table.
        only: ``pull`` or ``push``: the whole of it is zero where it would do the other.
        limits: (lowest, highest) pull in N or N.m, between which the whole of it stays; None: no limit on that side.
    """

    on: tuple[Point, Point] | tuple[NamedFramePoint, NamedFramePoint] | Joint | str
    stiffness: float | sm.Expr | None = None
    damping: float | sm.Expr | None = None
    rest: float | sm.Expr = 0.0
    law: SpringLaw | None = None
    only: Literal["pull", "push"] | None = None
    limits: tuple[float | sm.Expr | None, float | sm.Expr | None] = (None, None)

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of places and numbers."""
        yield from (self.fault(what, remedy) for what, remedy in find_pathway_or_joint_faults(self.on, model))
        for part in ("stiffness", "damping"):
            yield from self.negative(part, getattr(self, part))
        if self.stiffness is not None and self.law is not None:
            yield self.fault("it has both stiffness and law", "give one of them")
        if self.stiffness is None and self.law is None and self.damping is None:
            yield self.fault("it has neither stiffness, law nor damping", "give one of them")
        if self.only not in (None, "pull", "push"):
            yield self.fault(f"only is {self.only!r}", "take 'pull', 'push' or nothing")
        yield from self._limit_faults()

    def _limit_faults(self) -> Iterator[Fault]:
        """Yield faults of the stops: not a pair, not finite, or lower above upper."""
        if not isinstance(self.limits, tuple) or len(self.limits) != 2:
            yield self.fault(f"limits are {self.limits!r}", "give (lowest, highest); None where there is none")
            return
        low, high = (None if value is None else sm.sympify(value) for value in self.limits)
        for value in (low, high):
            if value is not None and value.is_number and not value.is_finite:
                yield self.fault(f"limits have {value}", "give numbers; None where there is none")
        if low is not None and high is not None and (low >= high) == True:  # noqa: E712 - of symbols it is neither
            yield self.fault(f"limits are {float(low):g} and {float(high):g}", "give the lower one first")

    def declare(self, model: Model) -> None:
        """Declare load, parameters and outputs."""
        if is_point_pair(self.on):
            pathway = LinearPathway(*self.on)
            with restore_frames_and_points(list(self.on)):
                length, rate = pathway.length, pathway.extension_velocity
            stretch, pull = self._pull(model, length, rate, ("m", "N"))
            model.add_loads(ForceActuator(-pull, pathway))
            effort, unit, at = "force", "N", "m"
        elif isinstance(model.mechanics, RecordBasedMechanics) and is_link_point_pair(self.on):
            stretch, pull = self._pull(model, *form_link_point_distance(self.on, model.mechanics), ("m", "N"))
            model.add_loads(*make_link_point_pair_forces(self.on, model.mechanics, pull))
            effort, unit, at = "force", "N", "m"
        else:
            place = make_element_attachment(self.on, model)
            assert place.position is not None  # a joint has a coordinate
            units = (place.position_unit, place.effort_unit)
            stretch, pull = self._pull(model, place.position, place.speed, units)
            place.load(model, -pull)
            effort, unit, at = place.effort, place.effort_unit, place.position_unit
        model.output(f"{self.name}.{effort}", pull, unit, description="of spring and damper, pulling positive")
        model.output(f"{self.name}.stretch", stretch, at, description="beyond the rest")

    def _pull(self, model: Model, position: sm.Expr, rate: sm.Expr, units: tuple[str, str]) -> tuple[sm.Expr, sm.Expr]:
        """Return the stretch, and the force that pulls the ends together."""
        at, effort = units
        stretch = position - self.parameter(model, "rest", self.rest, at, "where the spring is slack")
        pull = sm.S.Zero if self.law is None else sm.sympify(self.law(stretch))
        if self.stiffness is not None:
            unit = f"{effort}/{at}"
            pull += self.parameter(model, "stiffness", self.stiffness, unit, "of the spring", low=0.0) * stretch
        if self.damping is not None:
            unit = f"{effort}.s/{at}"
            pull += self.parameter(model, "damping", self.damping, unit, "of the damper", low=0.0) * rate
        if self.only is not None:
            pull = sm.Max(0, pull) if self.only == "pull" else sm.Min(0, pull)
        low, high = self.limits
        if low is not None:
            pull = sm.Max(self.parameter(model, "lowest", low, effort, "limit of the pull"), pull)
        if high is not None:
            pull = sm.Min(self.parameter(model, "highest", high, effort, "limit of the pull"), pull)
        return stretch, pull
