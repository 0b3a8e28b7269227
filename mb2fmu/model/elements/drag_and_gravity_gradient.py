"""Surroundings of a body: fluid drag, and the gravity gradient of a far mass."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm
from sympy.physics.mechanics import Point, RigidBody
from sympy.physics.vector import Vector

from mb2fmu.errors import Fault
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.sources import mechanics_source
from mb2fmu.model.sources.frame_and_point_restoration import restore_frames_and_points

if TYPE_CHECKING:
    from mb2fmu.model import Model


@dataclass(frozen=True)
class Drag(NamedElement):
    """Drag of a fluid on a point: -density/2 · coefficient · area · |v| v, v the velocity against the wind.

    |v| is taken as √(v² + still²), whose slope is finite where nothing moves; at 1 m/s that changes the force by 5e-13.

    Attributes:
        name: In front of the names of its variables; outputs are ``name.force`` and ``name.speed``.
        point: Where it acts.
        area: m2, that faces the wind.
        coefficient: Of drag, in the direction of the wind.
        density: Of the fluid, kg/m3; air unless given.
        wind: Its velocity in the inertial frame; a vector, or nothing.
        still: Speed in m/s below which the force goes through zero as a straight line.
    """

    point: Point
    area: float | sm.Expr
    coefficient: float | sm.Expr
    density: float | sm.Expr = 1.225
    wind: Vector | None = None
    still: float = 1e-6

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of place and numbers."""
        for part in ("area", "coefficient", "density"):
            yield from self.negative(part, getattr(self, part))
        if not self.still > 0:
            yield self.fault(f"still is {self.still}", "give a speed > 0, far below those that matter")
        if self.wind is not None and not isinstance(self.wind, Vector):
            yield self.fault(f"the wind is {self.wind!r}", "give a vector, such as 3 * N.x")
        frame = mechanics_source.inertial_frame(model.mechanics)
        if not isinstance(self.point, Point):
            yield self.fault(f"it acts on {self.point!r}", "give a point")
        elif frame is None:
            yield self.fault("the mechanics have no inertial frame", "give LagrangesMethod its frame and bodies")
        else:
            try:
                with restore_frames_and_points([frame, self.point]):
                    self.point.vel(frame)
            except ValueError as error:
                reason = " ".join(str(error).split())
                yield self.fault(
                    f"the velocity of {self.point} is not known: {reason}", "connect it with the mechanism"
                )

    def declare(self, model: Model) -> None:
        """Declare load, parameters and outputs."""
        frame = mechanics_source.inertial_frame(model.mechanics)
        with restore_frames_and_points([frame, self.point]):
            velocity = self.point.vel(frame) - (self.wind or Vector(0))
            square = sm.sympify(velocity.dot(velocity))
        area = self.parameter(model, "area", self.area, "m2", "that faces the wind", low=0.0)
        coefficient = self.parameter(model, "coefficient", self.coefficient, "1", "of drag", low=0.0)
        density = self.parameter(model, "density", self.density, "kg/m3", "of the fluid", low=0.0)
        speed = sm.sqrt(square + sm.Float(self.still) ** 2)
        factor = density * coefficient * area * speed / 2
        model.add_loads((self.point, -factor * velocity))
        model.output(f"{self.name}.speed", speed, "m/s", description="against the wind")
        model.output(f"{self.name}.force", factor * speed, "N", description="magnitude of the drag")


@dataclass(frozen=True)
class GravityGradient(NamedElement):
    """Attraction of a far mass: the force at the mass centre, and the torque that turns the long axis towards it.

    With r from the far mass to the mass centre: force -μ m r / |r|³, torque 3 μ / |r|⁵ · r × I r, both to the order
    (size / |r|)². Source: P. C. Hughes, Spacecraft Attitude Dynamics, 1986, sect. 8.1.

    Attributes:
        name: In front of the names of its variables; the output is ``name.distance``.
        body: That is attracted.
        centre: Where the far mass is.
        mu: Its gravitational parameter G M in m3/s2; the Earth's unless given.
    """

    body: RigidBody
    centre: Point
    mu: float | sm.Expr = 3.986004418e14

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of body, centre and number."""
        yield from self.negative("mu", self.mu)
        if not isinstance(self.body, RigidBody):
            yield self.fault(f"it acts on {self.body!r}", "give a RigidBody")
        elif not any(self.body is body for body in mechanics_source.bodies(model.mechanics)):
            yield self.fault(f"{self.body.name} is no body of the mechanics", "give one of the mechanics' own")
        elif not isinstance(self.centre, Point):
            yield self.fault(f"the far mass is at {self.centre!r}", "give a point")
        else:
            try:
                self.body.masscenter.pos_from(self.centre)
            except ValueError as error:
                reason = " ".join(str(error).split())
                yield self.fault(f"the way to the far mass is not known: {reason}", "connect it with the mechanism")

    def declare(self, model: Model) -> None:
        """Declare loads, parameter and output."""
        body, frame = self.body, self.body.frame
        mu = self.parameter(model, "mu", self.mu, "m3/s2", "gravitational parameter of the far mass", low=0.0)
        with restore_frames_and_points([body.masscenter, self.centre, frame]):
            offset = body.masscenter.pos_from(self.centre)
            square = sm.sympify(offset.dot(offset))
            seen = sum((offset.dot(axis) * axis for axis in frame), Vector(0))
            turning = seen.cross(body.central_inertia.dot(seen))
        distance = sm.sqrt(square)
        model.add_loads(
            (body.masscenter, -mu * body.mass / distance**3 * offset), (frame, 3 * mu / distance**5 * turning)
        )
        model.output(f"{self.name}.distance", distance, "m", description="from the far mass")
