"""A hydraulic cylinder with its valve; the short hose between them makes it stiff (2e4 1/s)."""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Model

PARAMETERS = (
    ("piston", 6.4e-3, "m2", "area on the bore's side"),
    ("ring", 3.6e-3, "m2", "area on the rod's side"),
    ("shortest", 1.2, "m", "length from eye to eye with the rod in"),
    ("stroke", 0.7, "m", "of the piston"),
    ("dead", 4.0e-4, "m3", "oil on either side besides the stroke"),
    ("line", 1.0e-4, "m3", "oil between valve and hose"),
    ("bulk", 1.0e9, "Pa", "bulk modulus of the oil and what holds it"),
    ("hose", 2.0e-9, "m3/(s.Pa)", "conductance from the line to the bore"),
    ("leak", 2.0e-12, "m3/(s.Pa)", "conductance past the piston"),
    ("flow", 2.0e-3, "m3/s", "through the full opening of the valve at the nominal drop"),
    ("full", 1.0e-3, "m", "full opening"),
    ("drop", 3.5e6, "Pa", "nominal drop of pressure"),
    ("laminar", 1.0e5, "Pa", "drop of pressure below which the flow is laminar"),
    ("underlap", 4.0e-5, "m", "opening of the valve in the middle of the spool"),
    ("supply", 2.0e7, "Pa", "pressure of the pump; that of the tank is 0"),
    ("drag", 2.0e3, "N.s/m", "viscous friction of the piston"),
    ("spool", 0.05, "kg", "mass of the spool"),
    ("omega", 150.0, "rad/s", "own frequency of the spool"),
    ("gain", 8.0e-3, "1", "way of the spool per way that the piston has to go"),
    ("start", 1.5, "m", "length at the start"),
    ("target", 1.65, "m", "length to go to"),
    ("rise", 1.2, "s", "time of the course"),
)
P = {name: sm.Symbol(name, positive=True) for name, *_ in PARAMETERS}


class Hydraulics:
    """Spool (a mass on a spring), line, bore and ring.

    Args:
        length: From eye to eye.
        rate: Of the length.
    """

    def __init__(self, length: sm.Expr, rate: sm.Expr) -> None:
        self.x, self.v = me.dynamicsymbols("x v")
        self.pressures = line, bore, ring = me.dynamicsymbols("p_line p_bore p_ring")
        self.force = P["piston"] * bore - P["ring"] * ring - P["drag"] * rate
        # Both edges of the spool as smooth functions of its place.
        wide = sm.sqrt(self.x**2 + P["underlap"] ** 2)
        out, back = (wide + self.x) / 2, (wide - self.x) / 2
        into_line = self._orifice(out, P["supply"] - line) - self._orifice(back, line)
        into_ring = self._orifice(back, P["supply"] - ring) - self._orifice(out, ring)
        hose, leak = P["hose"] * (line - bore), P["leak"] * (bore - ring)
        volume_bore = P["dead"] + P["piston"] * (length - P["shortest"])
        volume_ring = P["dead"] + P["ring"] * (P["shortest"] + P["stroke"] - length)
        self.rates = (
            P["bulk"] / P["line"] * (into_line - hose),
            P["bulk"] / volume_bore * (hose - leak - P["piston"] * rate),
            P["bulk"] / volume_ring * (into_ring + leak + P["ring"] * rate),
        )
        t = me.dynamicsymbols._t
        course = P["start"] + (P["target"] - P["start"]) * (1 - sm.exp(-((t / P["rise"]) ** 3)))
        wanted = P["gain"] * (course - length)
        self.on_spool = P["spool"] * (P["omega"] ** 2 * (wanted - self.x) - 1.6 * P["omega"] * self.v)

    @staticmethod
    def _orifice(opening: sm.Expr, drop: sm.Expr) -> sm.Expr:
        """Flow: as the root of the drop of pressure, and in line with it where it is small."""
        root = (drop**2 + P["laminar"] ** 2) ** sm.Rational(1, 4)
        return P["flow"] * opening / P["full"] * drop / (root * sm.sqrt(P["drop"]))

    def mechanics(self, N: me.ReferenceFrame, O: me.Point) -> tuple[list, list, list, list]:
        """Coordinates, speeds, bodies and loads of the spool."""
        S = O.locatenew("S", self.x * N.x)
        S.set_vel(N, self.v * N.x)
        return [self.x], [self.v], [me.Particle("spool", S, P["spool"])], [(S, self.on_spool * N.x)]

    def declare(self, model: Model) -> None:
        """Parameters and states: the spool is in the middle, the pressures carry the crane's boom."""
        for name, value, unit, what in PARAMETERS:
            model.parameter(P[name], value, unit, description=what, min=value * 1e-6)
        model.coordinate(self.x, 0.0, "m", nominal=1e-3, description="place of the spool")
        model.speed(self.v, 0.0, "m/s", nominal=1e-2, description="of the spool")
        starts, places = (1.1e7, 1.1e7, 1.0e7), ("line", "bore", "ring")
        for p, rate, value, place in zip(self.pressures, self.rates, starts, places, strict=True):
            model.state(p, rate, value, "Pa", nominal=1e7, description=f"pressure of the {place}")


def cylinder() -> Model:
    """The cylinder; takes its length and rate, gives its force. Needs an implicit solver."""
    length, rate = me.dynamicsymbols("length rate")
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    oil = Hydraulics(length, rate)
    q, u, bodies, loads = oil.mechanics(N, O)
    kane = me.KanesMethod(N, q, u, [q[0].diff() - u[0]], bodies=bodies, forcelist=loads)
    model = Model("HydraulicCylinder", kane, description="A cylinder with its valve, which goes to a length")
    oil.declare(model)
    model.input(length, 1.5, "m", description="from eye to eye")
    model.input(rate, 0.0, "m/s", description="of the length")
    model.output("force", oil.force, "N", nominal=1e4, description="pushes the ends apart")
    members = {"f": "force", "s": length, "v": rate}
    model.terminal("eyes", members, outflow=["f"], description="of the cylinder")
    model.experiment(stop=3.0, step=0.01, tolerance=1e-9, stiff=True)
    return model
