"""A motor that drives a joint through a gear, with the inertia of its rotor."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import sympy as sm
from sympy.physics.mechanics import PinJoint, Point, PrismaticJoint, ReferenceFrame, RigidBody
from sympy.physics.vector import Vector, outer

from mb2fmu.errors import Fault
from mb2fmu.model.elements.element_attachment import ElementAttachment, find_attachment_faults, make_element_attachment
from mb2fmu.model.elements.element_base_class import NamedElement
from mb2fmu.model.sources import mechanics_source

if TYPE_CHECKING:
    from mb2fmu.model import Model
    from mb2fmu.model.declarations.declared_content_and_experiment import Number


@dataclass(frozen=True, kw_only=True)
class GearMotor(NamedElement):
    """A motor on the first part of a joint that turns the second through a gear without play.

    Its rotor turns at ``ratio`` times the joint's speed against the first, about the joint's axis: a body of its own
    without mass, so that the mass matrix has ratio² · inertia on the joint and the gyroscopic terms of the rotor. The
    torque acts between rotor and first. Mass and other inertia of the motor belong to the first body. With a voltage
    the torque is k i; L i' = v − R i − k ω, or R i = v − k ω without inductance.

    Example:
        The shoulder of an arm, with a torque of its own and with a voltage::

            model.add(GearMotor("shoulder", on=joint, ratio=50, inertia=2e-5, torque=tau))
            model.add(GearMotor("elbow", on=joint, ratio=50, inertia=2e-5, voltage=v, resistance=0.8, constant=0.05))

        Outputs are ``shoulder.torque`` (on the rotor), ``shoulder.speed`` (of the rotor) and, with a voltage,
        ``elbow.current``, a state where there is an inductance.

    Attributes:
        on: A pin or prismatic joint, or (frame, frame, axis).
        ratio: Turns of the rotor by turns of the joint; rad/m along a prismatic joint.
        inertia: Of the rotor about its axis, kg.m2.
        torque: On the rotor in N.m: an input, a number or any expression.
        voltage: v, in place of ``torque``.
        resistance: R in Ohm.
        constant: k in N.m/A, which is V.s/rad.
        inductance: L in H.
        friction: Viscous, on the rotor, N.m.s/rad.
    """

    on: PinJoint | PrismaticJoint | tuple[ReferenceFrame | None, ReferenceFrame, Vector]
    ratio: Number
    inertia: Number
    torque: Number | None = None
    voltage: Number | None = None
    resistance: Number | None = None
    constant: Number | None = None
    inductance: Number | None = None
    friction: Number = 0.0

    def faults(self, model: Model) -> Iterator[Fault]:
        """Yield faults of joint, torque or voltage, and numbers."""
        if isinstance(self.on, str):
            remedy = "give its armature in the robot's file, and its torque by model.add_loads((joint, effort))"
            yield self.fault("a robot's joint takes no rotor", remedy)
            return
        if isinstance(self.on, tuple) and any(isinstance(place, Point) for place in self.on):
            yield self.fault("it acts on points", "give a pin or prismatic joint, or (frame, frame, axis)")
            return
        yield from (self.fault(what, remedy) for what, remedy in find_attachment_faults(self.on, model))
        if not model.accepts_bodies:
            remedy = "add its energy, inertia (ratio u)²/2, to the Lagrangian, and its torque by model.add_loads"
            yield self.fault("a LagrangesMethod takes no rotor", remedy)
        ratio = sm.sympify(self.ratio)
        if ratio.is_number and not (ratio.is_finite and abs(ratio) > 0):
            yield self.fault(f"ratio is {float(ratio):g}", "give a number that is not 0")
        for part in ("inertia", "friction"):
            yield from self.negative(part, getattr(self, part))
        yield from self._drive_faults()

    def _drive_faults(self) -> Iterator[Fault]:
        """Yield faults of torque or voltage."""
        electric = {part: getattr(self, part) for part in ("resistance", "constant", "inductance")}
        for part, value in electric.items():
            if value is not None:
                yield from self.not_positive(part, value)
        if (self.torque is None) == (self.voltage is None):
            has = "neither torque nor voltage" if self.torque is None else "both torque and voltage"
            yield self.fault(f"it has {has}", "give one of them")
        elif self.voltage is None and any(value is not None for value in electric.values()):
            given = ", ".join(part for part, value in electric.items() if value is not None)
            yield self.fault(f"it has {given} and no voltage", "give voltage in place of torque")
        elif self.voltage is not None and (self.resistance is None or self.constant is None):
            yield self.fault("it has a voltage without resistance or constant", "give both")

    def declare(self, model: Model) -> None:
        """Declare rotor, loads, parameters and outputs."""
        at = make_element_attachment(self.on, model)
        unit = "1" if at.turns else "rad/m"
        ratio = self.parameter(model, "ratio", self.ratio, unit, "turns of the rotor by the joint's motion")
        rotor, base, along = self._rotor(model, at, ratio)
        speed = ratio * at.speed
        torque = self._torque(model, speed)
        friction = self.parameter(model, "friction", self.friction, "N.m.s/rad", "on the rotor", low=0.0)
        torque -= friction * speed
        model.add_loads((rotor, torque * along))
        if base != mechanics_source.inertial_frame(model.mechanics):
            model.add_loads((base, -torque * along))
        model.output(f"{self.name}.torque", torque, "N.m", description="on the rotor")
        model.output(f"{self.name}.speed", speed, "rad/s", description="of the rotor against what carries it")

    def _rotor(
        self, model: Model, at: ElementAttachment, ratio: sm.Expr
    ) -> tuple[ReferenceFrame, ReferenceFrame, Vector]:
        """Add the rotor; return its frame, the frame of its carrier, and its axis."""
        assert at.places is not None  # no robot's
        first, _, along = at.places
        centre = mechanics_source.origin(model.mechanics)
        if isinstance(self.on, PinJoint | PrismaticJoint):
            first, centre = self.on.parent.frame, self.on.parent_point
        base = first or mechanics_source.inertial_frame(model.mechanics)
        rotor = ReferenceFrame(f"{self.name}_rotor".replace(".", "_"))
        if at.position is not None:
            rotor.orient_axis(base, along, ratio * at.position)
        rotor.set_ang_vel(base, ratio * at.speed * along)
        inertia = self.parameter(model, "inertia", self.inertia, "kg.m2", "of the rotor", low=0.0)
        model.add_bodies(RigidBody(rotor.name, centre, rotor, 0, (inertia * outer(along, along), centre)))
        return rotor, base, along

    def _torque(self, model: Model, speed: sm.Expr) -> sm.Expr:
        """Return the torque on the rotor without friction, N·m."""
        if self.torque is not None:
            return self.parameter(model, "drive", self.torque, "N.m", "torque of the motor")
        assert self.voltage is not None  # or it has faults
        assert self.resistance is not None
        assert self.constant is not None
        voltage = self.parameter(model, "voltage", self.voltage, "V", "at its terminals")
        resistance = self.parameter(model, "resistance", self.resistance, "Ohm", "of its windings", low=0.0)
        constant = self.parameter(model, "constant", self.constant, "N.m/A", "torque by current", low=0.0)
        if self.inductance is None:
            current = (voltage - constant * speed) / resistance
            model.output(f"{self.name}.current", current, "A", description="of the motor")
        else:
            current = self.state("current")
            inductance = self.parameter(model, "inductance", self.inductance, "H", "of its windings", low=0.0)
            rate = (voltage - resistance * current - constant * speed) / inductance
            self.declare_state(model, "current", rate, 0.0, "A", "of the motor")
        return constant * current
