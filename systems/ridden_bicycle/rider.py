"""A rider who looks fifty times a second and turns the handlebar with arms that follow later."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model


class Rider:
    """What the rider does: a command that is held from look to look, and arms that carry it to the handlebar.

    The command is -(K_lean lean + K_rate lean_rate + K_steer steer_rate). The arms are an inertia on muscles like
    springs: a lag of second order with 30 rad/s and a damping of 0.707.

    Source of the arms: R. Hess, J. K. Moore, M. Hubbard, "Modeling the manually controlled bicycle", IEEE Trans.
    Systems, Man, and Cybernetics A 42 (2012) 545-557.

    Args:
        N: Frame of the arms' axis, N.z.
        seen: Lean, its rate, rate of steer, as the rider sees them.
    """

    def __init__(self, N: me.ReferenceFrame, seen: tuple[sm.Expr, ...]) -> None:
        self.reach, self.reach_rate, self.command = me.dynamicsymbols("reach reach_rate command")
        self.gains = sm.symbols("K_lean K_rate K_steer")
        self.inertia, omega, zeta = sm.symbols("J_arms omega zeta", positive=True)
        self.omega, self.zeta = omega, zeta
        self.frame = me.ReferenceFrame("arms")
        self.frame.orient_axis(N, N.z, self.reach)
        self.frame.set_ang_vel(N, self.reach_rate * N.z)
        self.torque = self.inertia * omega**2 * self.reach
        damper = 2 * zeta * omega * self.inertia * self.reach_rate
        self.load = (self.frame, (self.command - self.torque - damper) * N.z)
        self.wanted = -sum(gain * each for gain, each in zip(self.gains, seen, strict=True))

    def body(self, O: me.Point) -> me.RigidBody:
        """The arms."""
        inertia = (me.inertia(self.frame, 0, 0, self.inertia), O)
        return me.RigidBody("arms", O, self.frame, 0, inertia)

    def declare(self, model: Model) -> None:
        """Parameters, states and looks."""
        units = ("N.m/rad", "N.m.s/rad", "N.m.s/rad")
        for gain, value, unit in zip(self.gains, (-17.5, -20.0, 3.0), units, strict=True):
            model.parameter(gain, value, unit, description="of the rider")
        model.parameter(self.inertia, 0.1, "kg.m2", min=1e-6, description="of the arms")
        model.parameter(self.omega, 30.0, "rad/s", min=1e-3, description="own frequency of the arms")
        model.parameter(self.zeta, 0.707, "1", min=0.0, description="their damping")
        model.coordinate(self.reach, 0.0, "rad", description="turn of the arms in their muscles")
        model.speed(self.reach_rate, 0.0, "rad/s", description="its rate")
        model.discrete(self.command, 0.0, "N.m", name="command", description="to the arms, from look to look")
        model.every(0.02, {self.command: self.wanted}, name="look")


def rider() -> Model:
    """The rider; takes what the bicycle does, gives the torque on the handlebar."""
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    seen = me.dynamicsymbols("lean lean_rate steer_rate")
    one = Rider(N, tuple(seen))
    rates = [one.reach.diff() - one.reach_rate]
    kane = me.KanesMethod(N, [one.reach], [one.reach_rate], rates, bodies=[one.body(O)], forcelist=[one.load])
    model = Model("Rider", kane, description="A rider who looks fifty times a second")
    one.declare(model)
    for symbol, start, unit in zip(seen, (0.0, 0.3, 0.0), ("rad", "rad/s", "rad/s"), strict=True):
        model.input(symbol, start, unit)
    model.output("steer_torque", one.torque, "N.m", description="on the handlebar")
    model.experiment(stop=2.0, step=0.01, tolerance=1e-10)
    return model
