"""One pendulum through every mechanics source, and a way to read what is wrong with it."""

from dataclasses import dataclass, field
from typing import Any

import pytest
import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu.errors import ModelError
from mb2fmu.model import Model, Parts, check_model

TIME = me.dynamicsymbols._t


@dataclass
class Pendulum:
    """A damped driven pendulum in pieces that tests may spoil before the mechanics source is made."""

    q: sm.Expr = field(default_factory=lambda: me.dynamicsymbols("q"))
    u: sm.Expr = field(default_factory=lambda: me.dynamicsymbols("u"))
    torque: sm.Expr = field(default_factory=lambda: me.dynamicsymbols("torque"))
    m: sm.Symbol = field(default_factory=lambda: sm.Symbol("m"))
    length: sm.Symbol = field(default_factory=lambda: sm.Symbol("l"))
    g: sm.Symbol = field(default_factory=lambda: sm.Symbol("g"))
    c: sm.Symbol = field(default_factory=lambda: sm.Symbol("c"))
    speed: Any = None
    load: Any = 0

    def parts(self, **changes) -> Parts:
        """As parts."""
        self.N, self.A, self.O = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.Point("O")
        rate = self.u if self.speed is None else self.speed
        self.A.orient_axis(self.N, self.N.z, self.q)
        self.A.set_ang_vel(self.N, rate * self.N.z)
        self.O.set_vel(self.N, 0)
        self.P = self.O.locatenew("P", -self.length * self.A.y)
        self.P.set_vel(self.N, self.length * rate * self.A.x)
        self.bob = me.Particle("bob", self.P, self.m)
        self.gravity = (self.P, -self.m * self.g * self.N.y)
        self.drive = (self.A, (self.torque - self.c * rate + self.load) * self.N.z)
        return Parts(
            **{
                "frame": self.N,
                "origin": self.O,
                "q": [self.q],
                "u": [self.u],
                "kinematic_equations": [self.q.diff() - self.u],
                "bodies": [self.bob],
                "loads": [self.gravity, self.drive],
                **changes,
            }
        )

    def kane(self, **changes) -> me.KanesMethod:
        """As a method object."""
        parts = self.parts()
        method = me.KanesMethod(
            parts.frame,
            parts.q,
            parts.u,
            parts.kinematic_equations,
            bodies=parts.bodies,
            forcelist=parts.loads,
            **changes,
        )
        method.kanes_equations()
        return method

    def lagrange(self) -> me.LagrangesMethod:
        """As a method object, with q' for u."""
        self.speed = self.q.diff()
        parts = self.parts()
        energy = me.Lagrangian(parts.frame, self.bob) + self.m * self.g * self.length * sm.cos(self.q)
        return me.LagrangesMethod(energy, parts.q, forcelist=[self.drive], bodies=parts.bodies, frame=parts.frame)

    def system(self) -> me.System:
        """As a System."""
        wall = me.RigidBody("wall")
        system = me.System.from_newtonian(wall)
        self.N, self.A = system.frame, me.ReferenceFrame("A")
        self.P = me.Point("P")
        inertia = me.inertia(self.A, 0, 0, self.m * self.length**2 / 12)
        self.bob = me.RigidBody("bob", self.P, self.A, self.m, (inertia, self.P))
        pin = me.PinJoint(
            "pin", wall, self.bob, self.q, self.u, child_point=self.length * self.A.y, joint_axis=self.N.z
        )
        system.add_joints(pin)
        system.apply_uniform_gravity(-self.g * self.N.y)
        self.motor = me.TorqueActuator.at_pin_joint(self.torque - self.c * self.u, pin)
        system.add_actuators(self.motor)
        return system

    def model(self, mechanics=None, *, without: str = "", name: str = "Pendulum") -> Model:
        """A model with all declarations but those whose symbols are named in ``without``."""
        model = Model(name, self.parts() if mechanics is None else mechanics)
        left_out = without.split()
        for symbol, value, unit in (
            (self.m, 1.0, "kg"),
            (self.length, 0.5, "m"),
            (self.g, 9.81, "m/s2"),
            (self.c, 0.1, "N.m.s"),
        ):
            if str(symbol) not in left_out:
                model.parameter(symbol, value, unit)
        if "torque" not in left_out:
            model.input(self.torque, 0.0, "N.m")
        if "q" not in left_out:
            model.coordinate(self.q, 0.5, "rad", display_unit="deg")
        if "u" not in left_out:
            lagrange = isinstance(model.mechanics, me.LagrangesMethod)
            model.speed(self.q.diff() if lagrange else self.u, 0.0, "rad/s")
        return model


@pytest.fixture
def pendulum() -> Pendulum:
    return Pendulum()


@pytest.fixture
def faults_of():
    """All faults that ``check`` raises for a model, as objects."""

    def faults(model: Model):
        with pytest.raises(ModelError) as caught:
            check_model(model)
        return caught.value.faults

    return faults
