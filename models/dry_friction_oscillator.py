"""A mass on a spring, braked by dry friction: it stops between two values of rest, and stays there.

Coordinates: ``x`` is the position of the mass along ``N.x`` from where the spring is slack, the speed ``v`` is x'.

    m x'' = -k x - F sign(x')    while it slides;    x' = 0 as long as k |x| <= F

Each half period pi sqrt(m/k) takes 2 F/k from the amplitude, until the spring no longer overcomes the friction: from
0.2 m the mass comes to rest at 0.008 m after eight half periods, at 0.8 pi s.

Source: J. P. Den Hartog, Mechanical Vibrations, 4th ed. 1956, section 8.4 (free vibration with Coulomb damping).
"""

import sympy as sm
import sympy.physics.mechanics as me

from mb2fmu import Box, Model

DIAGRAM = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 260 150" font-family="serif" font-size="15">
<rect width="260" height="150" fill="white"/>
<path d="M20 40V110H240" fill="none" stroke="#333" stroke-width="3"/>
<path d="M20 85h20l6 -10 10 20 10 -20 10 20 10 -20 10 20 6 -10h18" fill="none" stroke="#333"/>
<rect x="120" y="60" width="60" height="48" fill="#ddd" stroke="#333"/>
<path d="M150 60V36M150 42H186" stroke="#d62728" fill="none"/><path d="M194 42l-10 -4v8z" fill="#d62728"/>
<g font-style="italic"><text x="200" y="46" fill="#d62728">x</text><text x="66" y="64">k</text>
<text x="144" y="90">m</text><text x="196" y="130">F</text></g>
</svg>
"""


def dry_friction_oscillator() -> Model:
    """The mass, pulled by 0.2 m and released."""
    t = me.dynamicsymbols._t  # noqa: SLF001  (the symbol of time that SymPy mechanics uses)
    x, v = me.dynamicsymbols("x v")
    m, k, F = sm.symbols("m k F", positive=True)
    N, O = me.ReferenceFrame("N"), me.Point("O")
    O.set_vel(N, 0)
    P = O.locatenew("P", x * N.x)
    P.set_vel(N, v * N.x)
    mass = me.Particle("mass", P, m)
    friction = -F * sm.sign(v)
    loads = [(P, -k * x * N.x), (P, friction * N.x)]
    kane = me.KanesMethod(N, [x], [v], [x.diff(t) - v], bodies=[mass], forcelist=loads)

    model = Model("DryFrictionOscillator", kane, description="A mass on a spring, with dry friction", diagram=DIAGRAM)
    model.parameter(m, 1.0, "kg", min=1e-6, description="mass")
    model.parameter(k, 100.0, "N/m", min=0.0, description="stiffness of the spring")
    model.parameter(F, 1.2, "N", min=0.0, description="largest force of the friction")
    model.coordinate(x, 0.2, "m", description="position")
    model.speed(v, 0.0, "m/s", description="speed")
    model.output("friction", friction, "N", description="force of the friction")
    model.output("acceleration", v.diff(t), "m/s2", description="acceleration")
    model.output_kinetic_energy("kinetic_energy")
    model.visual(mass, Box(0.06, 0.04, 0.04))
    model.visual(N, Box(0.6, 0.01, 0.08), at=O.locatenew("floor", -0.025 * N.y), color="#8a94a3")
    model.experiment(stop=4.0, step=0.01, tolerance=1e-8)
    return model
