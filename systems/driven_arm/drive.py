"""The drive of one joint: a controlled motor behind an elastic gear, felt at the joint."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model


def drive(kind: str = "hinge", inertia: float = 0.2, stiffness: float = 400.0, target: float = 0.5) -> Model:
    """A rotor, all numbers as seen from the joint; its terminal is that of a robot's joint.

    The controller moves the rotor to a target along a smooth course; gear and damper carry the joint after it.

    Args:
        kind: ``hinge`` (rad, N.m) or ``slide`` (m, N).
        inertia: Of the rotor, kg.m2 or kg.
        stiffness: Of the gear, N.m/rad or N/m.
        target: Of the joint, rad or m.
    """
    hinge = kind == "hinge"
    place, effort, mass = ("rad", "N.m", "kg.m2") if hinge else ("m", "N", "kg")
    phi, omega, q, u = me.dynamicsymbols("phi omega q u")
    law = Law()
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    gear = law.gear(phi, omega, q, u)
    force = law.motor(phi, omega) - gear
    if hinge:
        rotor = me.ReferenceFrame("rotor")
        rotor.orient_axis(N, N.z, phi)
        rotor.set_ang_vel(N, omega * N.z)
        body = me.RigidBody("rotor", O, rotor, 0, (me.inertia(rotor, 0, 0, law.J), O))
        loads = [(rotor, force * N.z)]
    else:
        P = O.locatenew("P", phi * N.z)
        P.set_vel(N, omega * N.z)
        body, loads = me.Particle("rotor", P, law.J), [(P, force * N.z)]
    kane = me.KanesMethod(N, [phi], [omega], [phi.diff() - omega], bodies=[body], forcelist=loads)
    model = Model(f"{kind.capitalize()}Drive", kane, description="A controlled motor behind an elastic gear")
    law.declare(model, place, effort, mass, (inertia, stiffness, target))
    model.input(q, 0.0, place, name="angle" if hinge else "position", description="of the joint")
    model.input(u, 0.0, f"{place}/s", name="speed", description="of the joint")
    model.coordinate(phi, 0.0, place, description="of the rotor")
    model.speed(omega, 0.0, f"{place}/s", description="of the rotor")
    model.output("effort", gear, effort, description="of the gear on the joint")
    names = ("tau", "phi", "w") if hinge else ("f", "s", "v")
    members = dict(zip(names, ("effort", q, u), strict=True))
    model.terminal("shaft", members, outflow=names[:1], description="at the joint")
    model.experiment(stop=2.0, step=0.01, tolerance=1e-10)
    return model


class Law:
    """What a drive does, for its FMU and for the monolithic model.

    Args:
        index: Behind the names of its symbols.
    """

    def __init__(self, index: str = "") -> None:
        names = "J k d kp kd target rise"
        self.J, self.k, self.d, self.kp, self.kd, self.target, self.rise = sm.symbols(
            [f"{n}{index}" for n in names.split()]
        )

    def gear(self, phi: sm.Expr, omega: sm.Expr, q: sm.Expr, u: sm.Expr) -> sm.Expr:
        """Effort on the joint."""
        return self.k * (phi - q) + self.d * (omega - u)

    def motor(self, phi: sm.Expr, omega: sm.Expr) -> sm.Expr:
        """Effort on the rotor: a controller of place and speed; the course is 0 with rates of 0 at the start."""
        t = me.dynamicsymbols._t
        course = self.target * (1 - sm.exp(-((t / self.rise) ** 3)))
        return self.kp * (course - phi) + self.kd * (course.diff(t) - omega)

    def declare(
        self, model: Model, place: str, effort: str, mass: str, numbers: tuple[float, float, float], prefix: str = ""
    ) -> None:
        """Parameters; the controller's frequency is 15 rad/s, well damped."""
        inertia, stiffness, target = numbers
        for symbol, value, unit, what in (
            (self.J, inertia, mass, "of the rotor, seen from the joint"),
            (self.k, stiffness, f"{effort}/{place}", "stiffness of the gear"),
            (self.d, 0.01 * stiffness, f"{effort}.s/{place}", "damping of the gear"),
            (self.kp, 225 * inertia, f"{effort}/{place}", "gain of place"),
            (self.kd, 24 * inertia, f"{effort}.s/{place}", "gain of speed"),
            (self.target, target, place, "of the joint"),
            (self.rise, 0.5, "s", "time of the course"),
        ):
            model.parameter(symbol, value, unit, name=f"{prefix}{symbol}", description=what)
