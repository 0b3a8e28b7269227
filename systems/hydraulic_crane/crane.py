"""A crane: a boom that a cylinder lifts, and a load that hangs from its tip."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model

PARAMETERS = (
    ("m", 300.0, "kg", "mass of the boom"),
    ("J", 400.0, "kg.m2", "its inertia about its mass centre"),
    ("load", 500.0, "kg", "mass of the load"),
    ("g", 9.81, "m/s2", "acceleration of gravity, along -N.y"),
    ("reach", 4.0, "m", "from the hinge to the tip"),
    ("centre", 1.8, "m", "from the hinge to the mass centre"),
    ("eye", 1.2, "m", "from the hinge to the cylinder's eye on the boom"),
    ("foot", 0.9, "m", "from the hinge down to the cylinder's eye on the column"),
    ("rope", 2.0, "m", "from the tip to the load"),
    ("damping", 40.0, "N.m.s/rad", "of the load's swing"),
)
P = {name: sm.Symbol(name, positive=True) for name, *_ in PARAMETERS}


class Crane:
    """Boom and load in the plane of N.x and N.y; the hinge of the boom is the origin."""

    def __init__(self) -> None:
        self.q = self.boom, self.swing = me.dynamicsymbols("boom swing")
        self.u = self.boom_rate, self.swing_rate = me.dynamicsymbols("boom_rate swing_rate")
        self.N, self.O = N, O = me.ReferenceFrame("N"), me.Point("O")
        O.set_vel(N, 0)
        B, R = N.orientnew("B", "Axis", (self.boom, N.z)), N.orientnew("R", "Axis", (self.swing, N.z))
        B.set_ang_vel(N, self.boom_rate * N.z)
        R.set_ang_vel(N, self.swing_rate * N.z)
        tip, centre, self.eye = (O.locatenew(name, P[name] * B.x) for name in ("reach", "centre", "eye"))
        for point in (tip, centre, self.eye):
            point.v2pt_theory(O, N, B)
        load = tip.locatenew("load", -P["rope"] * R.y)
        load.v2pt_theory(tip, N, R)
        self.bodies = [
            me.RigidBody("boom", centre, B, P["m"], (me.inertia(B, 0, 0, P["J"]), centre)),
            me.Particle("load", load, P["load"]),
        ]
        self.loads = [(centre, -P["m"] * P["g"] * N.y), (load, -P["load"] * P["g"] * N.y)]
        torque = -P["damping"] * (self.swing_rate - self.boom_rate) * N.z
        self.loads += [(R, torque), (B, -torque)]
        span = self.eye.pos_from(O) + P["foot"] * N.y
        self.length = sm.sqrt(P["eye"] ** 2 + P["foot"] ** 2 + 2 * P["eye"] * P["foot"] * sm.sin(self.boom))
        self.rate = P["eye"] * P["foot"] * sm.cos(self.boom) * self.boom_rate / self.length
        self.along = span / self.length

    def kane(self, force: sm.Expr, more: tuple = ()) -> me.KanesMethod:
        """The method, with the cylinder's force on the boom, and further coordinates, speeds, bodies and loads."""
        q, u, bodies, loads = more or ([], [], [], [])
        q, u = [*self.q, *q], [*self.u, *u]
        rates = [a.diff() - b for a, b in zip(q, u, strict=True)]
        pushed = [*self.loads, (self.eye, force * self.along), *loads]
        return me.KanesMethod(self.N, q, u, rates, bodies=[*self.bodies, *bodies], forcelist=pushed)

    def declare(self, model: Model) -> None:
        """Parameters and states: the boom is level, the load hangs at rest."""
        for name, value, unit, what in PARAMETERS:
            model.parameter(P[name], value, unit, description=what, min=1e-6)
        for q, u, what in zip(self.q, self.u, ("boom from N.x", "rope from the downward line"), strict=True):
            model.coordinate(q, 0.0, "rad", description=f"angle of the {what}")
            model.speed(u, 0.0, "rad/s", description=f"rate of the {what}")


def crane() -> Model:
    """The crane; takes the cylinder's force, gives its length and rate."""
    machine, force = Crane(), me.dynamicsymbols("f")
    model = Model("LoadCrane", machine.kane(force), description="A boom that a cylinder lifts, with a hanging load")
    machine.declare(model)
    model.input(force, 0.0, "N", name="force", description="of the cylinder, pushes its ends apart")
    model.output("length", machine.length, "m", description="of the cylinder, from eye to eye")
    model.output("rate", machine.rate, "m/s", description="of the length")
    members = {"f": force, "s": "length", "v": "rate"}
    model.terminal("cylinder", members, inflow=["f"], description="between column and boom")
    model.experiment(stop=3.0, step=0.01, tolerance=1e-9)
    return model
